// Vector functions: the entries of a body become one instruction when it ends.
//
// A body that was met before, at whatever base, is found by its entries: kinds, values, scalars and
// the addresses from the lowest one on, rounded down to 32 B. Only a new one is sent to Python.
#pragma once

#include "cubecore/reg/record.h"
#include "recording/sync.h"

namespace {

using cubecore::RegisterBlock;
using cubecore::RegisterEntry;

constexpr size_t ENTRY_WORDS = sizeof(RegisterEntry) / sizeof(uint64_t);
constexpr int64_t BASE_UNIT = 32;
constexpr size_t FIRST_ENTRIES = 1024;

// What a core keeps of its open vector function.
struct OpenFunction {
  RegisterBlock block;
  std::vector<RegisterEntry> entries;
  Where begin = {};
  std::vector<uint64_t> key;  // of a call with __simd_vf__, if it is empty none is made again
  uint64_t questions = 0;     // of the core before it began

  RegisterEntry* first() { return entries.data(); }
};

// A known body, and where its operands begin from the base on.
struct KnownFunction {
  std::vector<uint64_t> words;
  Entry entry;
  std::vector<int64_t> starts;
};

std::unordered_multimap<uint64_t, KnownFunction*> functions, canonical_functions;

// Calls of functions with __simd_vf__ by their arguments, and the bases that they were made at.
struct KnownCall {
  const KnownFunction* function;
  int64_t base;
};
constexpr size_t MOST_CALLS = 1 << 16;  // kernels may call with new arguments each time
std::unordered_map<std::string, KnownCall> known_calls;

bool touches(const RegisterEntry& entry) { return entry.variable != 0; }

// Takes the addresses off their base, which is returned.
int64_t rebased(RegisterEntry* first, RegisterEntry* last) {
  int64_t base = INT64_MAX;
  for (RegisterEntry* each = first; each < last; ++each)
    if (touches(*each) && each->address < base) base = each->address;
  if (base == INT64_MAX) return 0;
  base -= base % BASE_UNIT;
  for (RegisterEntry* each = first; each < last; ++each)
    if (touches(*each)) each->address -= base;
  return base;
}

KnownFunction* found_in(const std::unordered_multimap<uint64_t, KnownFunction*>& among,
                        uint64_t hash, const uint64_t* words, size_t count) {
  auto [at, end] = among.equal_range(hash);
  for (; at != end; ++at)
    if (at->second->words.size() == count &&
        memcmp(at->second->words.data(), words, count * sizeof(uint64_t)) == 0)
      return at->second;
  return nullptr;
}

// Four parts are mixed side by side, as each step waits for the one before it.
uint64_t hash_of(const uint64_t* words, size_t count) {
  uint64_t part[4] = {count, 1, 2, 3};
  size_t n = 0;
  for (; n + 4 <= count; n += 4)
    for (size_t k = 0; k < 4; ++k) part[k] = mixed(part[k], words[n + k]);
  for (; n < count; ++n) part[0] = mixed(part[0], words[n]);
  return mixed(mixed(mixed(part[0], part[1]), part[2]), part[3]);
}

// The few texts that entries have again and again, by their pointers.
class MetTexts {
 public:
  // What stands for a text, or nullptr if it was not met or others took its slot.
  const char*& of(const char* text) {
    Met& met = met_[reinterpret_cast<uint64_t>(text) * 0x9E3779B97F4A7C15ull >> 57];
    if (met.text != text) met = {text, nullptr};
    return met.stands;
  }

 private:
  struct Met {
    const char *text, *stands;
  };
  Met met_[128] = {};
};

// Texts by one pointer each: libraries that are loaded for each core have literals of their own.
void make_canonical(std::vector<RegisterEntry>& entries) {
  MetTexts met;
  auto same = [&met](const char*& text) {
    const char*& one = met.of(text);
    if (one == nullptr)
      one = reinterpret_cast<const char*>(canonical(reinterpret_cast<uint64_t>(text)));
    text = one;
  };
  for (RegisterEntry& each : entries) {
    same(each.operation), same(each.type), same(each.source), same(each.mode), same(each.file);
  }
}

// Puts the texts that entries point to, and the entries.
void put_entries(Message& question, const RegisterEntry* first, size_t count) {
  std::unordered_map<const char*, uint32_t> numbers;
  MetTexts met;
  for (const RegisterEntry* each = first; each < first + count; ++each)
    for (const char* text : {each->operation, each->type, each->source, each->mode, each->file}) {
      const char*& known = met.of(text);
      if (known == nullptr) numbers.emplace(text, 0);
      known = text;
    }
  question.word(numbers.size());
  for (auto& [text, number] : numbers) question.word(reinterpret_cast<uint64_t>(text)).text(text);
  question.word(count).raw(first, count * sizeof(RegisterEntry));
}

void ask_for(Core* core, const std::vector<RegisterEntry>& entries, const Where* at,
             KnownFunction* known) {
  Message question(VECTOR_FUNCTION, core->number);
  question.where(at);
  put_entries(question, entries.data(), entries.size());
  Command& answer = asked(core, question);
  known->entry.steps = 1;
  const size_t operands = answer.word();
  for (size_t n = 0; n < operands; ++n)
    known->starts.push_back(static_cast<int64_t>(answer.word()));
  memcpy(known->entry.step, answer.raw(sizeof(Step)), sizeof(Step));
}

KnownFunction* known_function(Core* core, RegisterEntry* first, RegisterEntry* last,
                              const Where* at) {
  const uint64_t* words = reinterpret_cast<const uint64_t*>(first);
  const size_t count = static_cast<size_t>(last - first) * ENTRY_WORDS;
  const uint64_t hash = hash_of(words, count);
  if (KnownFunction* known = found_in(functions, hash, words, count)) return known;
  std::vector<RegisterEntry> own(first, last);
  std::vector<uint64_t> raw(words, words + count);
  make_canonical(own);
  const uint64_t* texts_made = reinterpret_cast<const uint64_t*>(own.data());
  const uint64_t other = hash_of(texts_made, count);
  KnownFunction* known = found_in(canonical_functions, other, texts_made, count);
  if (known == nullptr) {
    known = new KnownFunction{};
    known->words.assign(texts_made, texts_made + count);
    ask_for(core, own, at, known);
    canonical_functions.emplace(other, known);
  }
  KnownFunction* alias = new KnownFunction(*known);
  alias->words = std::move(raw);
  functions.emplace(hash, alias);
  return alias;
}

std::string text_of(const std::vector<uint64_t>& key) {
  return {reinterpret_cast<const char*>(key.data()), key.size() * sizeof(uint64_t)};
}

// Keeps a call that has ended, unless values of UB, AR or an answer of Python had a part in it.
void keep_call(const Core* core, const KnownFunction* function, int64_t base) {
  const OpenFunction& open = *core->function;
  const RegisterBlock& block = open.block;
  const bool is_plain = open.questions == core->questions && !block.by_values &&
                        block.ar == cubecore::UNWRITTEN && block.counted == cubecore::UNWRITTEN;
  if (is_plain && !open.key.empty() && known_calls.size() < MOST_CALLS)
    known_calls.emplace(text_of(open.key), KnownCall{function, base});
}

void forget_functions() {
  functions.clear();
  canonical_functions.clear();
  known_calls.clear();
}

}  // namespace
