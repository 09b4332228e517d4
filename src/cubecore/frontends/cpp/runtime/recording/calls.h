// What each call issues: found by its name and parameters; Python is asked when it is new.
#pragma once

#include <string.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "child/exchange.h"

namespace {

uint64_t mixed(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

struct Known {
  uint64_t hash;
  const char* call;
  uint32_t words;
  uint64_t* key;
  Entry entry;
};

// Open addressing; entries never move, so that pointers to them stay.
struct Table {
  std::vector<Known*> cells = std::vector<Known*>(1024, nullptr);
  size_t used = 0;

  Known* find(uint64_t hash, const char* call, const uint64_t* key, uint32_t words) const {
    size_t mask = cells.size() - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
      Known* known = cells[at];
      if (known == nullptr) return nullptr;
      if (known->hash == hash && known->call == call && known->words == words &&
          memcmp(known->key, key, words * sizeof(uint64_t)) == 0)
        return known;
    }
  }

  void enter(Known* known) {
    if (2 * ++used > cells.size()) {
      std::vector<Known*> old(cells.size() * 2, nullptr);
      old.swap(cells);
      for (Known* each : old)
        if (each != nullptr) place(each);
    }
    place(known);
  }

  void place(Known* known) {
    size_t mask = cells.size() - 1, at = known->hash & mask;
    while (cells[at] != nullptr) at = (at + 1) & mask;
    cells[at] = known;
  }
};

Table table;

// Libraries that are loaded once for each core have literals of their own: equal texts count as one
// when a call is met for the first time.
std::unordered_map<std::string, const char*> texts;

uint64_t canonical(uint64_t pointer) {
  const char* text = reinterpret_cast<const char*>(pointer);
  auto found = texts.emplace(text, text);
  return reinterpret_cast<uint64_t>(found.first->second);
}

Table canonical_calls;

uint64_t hash_of(const char* call, const uint64_t* key, uint32_t words) {
  uint64_t hash = mixed(0, reinterpret_cast<uint64_t>(call));
  for (uint32_t n = 0; n < words; ++n) hash = mixed(hash, key[n]);
  return hash;
}

// Asks what a call issues: its arguments are words, or texts where they point to one.
void ask_for(const char* name, const std::vector<uint64_t>& key, const Where* at, Entry* entry) {
  using cubecore::detail::POINTER;
  using cubecore::detail::WORD;
  Core* core = current;
  Message question(MISS, core->number);
  question.where(at).text(name).word(key.size() / 2);
  for (size_t n = 0; n < key.size(); n += 2) {
    uint64_t tag = key[n] & 0xF;
    question.word(key[n] & 0xFF).text(reinterpret_cast<const char*>(key[n] >> 8));
    if (tag == POINTER || tag == WORD)
      question.text(reinterpret_cast<const char*>(key[n + 1]));
    else
      question.word(key[n + 1]);
  }
  Command& answer = asked(core, question);
  entry->flags = static_cast<uint32_t>(answer.word());
  entry->note = static_cast<uint32_t>(answer.word());
  entry->steps = static_cast<uint32_t>(answer.word());
  memcpy(entry->step, answer.raw(entry->steps * sizeof(Step)), entry->steps * sizeof(Step));
}

const Entry* canonical_entry(const char* call, const uint64_t* key, uint32_t words,
                             const Where* at) {
  const char* name = reinterpret_cast<const char*>(canonical(reinterpret_cast<uint64_t>(call)));
  std::vector<uint64_t> own(key, key + words);
  for (uint32_t n = 0; n < words; n += 2) {
    uint64_t tag = own[n] & 0xF;
    if (tag == cubecore::detail::POINTER || tag == cubecore::detail::WORD)
      own[n + 1] = canonical(own[n + 1]);
    if (own[n] >> 8) own[n] = (own[n] & 0xFF) | canonical(own[n] >> 8) << 8;
  }
  uint64_t hash = hash_of(name, own.data(), words);
  if (Known* known = canonical_calls.find(hash, name, own.data(), words)) return &known->entry;
  Known* made = new Known{hash, name, words, new uint64_t[words + 1], Entry{}};
  memcpy(made->key, own.data(), words * sizeof(uint64_t));
  ask_for(name, own, at, &made->entry);
  canonical_calls.enter(made);
  return &made->entry;
}

const Entry* entry_of(const char* call, const uint64_t* key, uint32_t words, const Where* at) {
  uint64_t hash = hash_of(call, key, words);
  if (Known* known = table.find(hash, call, key, words)) return &known->entry;
  Known* made = new Known{hash, call, words, new uint64_t[words + 1], Entry{}};
  memcpy(made->key, key, words * sizeof(uint64_t));
  made->entry = *canonical_entry(call, key, words, at);
  table.enter(made);
  return &made->entry;
}

}  // namespace
