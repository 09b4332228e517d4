// TQue and TQueBind: buffers that pass from one pipe to another, with the flags that order them.
// Pages: TQue with its members, TQueBind, TSCM. EnQue raises a flag of the pipe that filled the
// buffer, DeQue waits for it; FreeTensor raises one of the pipe that emptied it, and the
// AllocTensor that takes the buffer again waits for that.
#pragma once

#include "cubecore/basic/tensors.h"
#include "cubecore/sync/flags.h"

namespace AscendC {

using TBufHandle = uint8_t*;

struct TQueConfig {
  bool nd2nz = false;
  bool nz2nd = false;
  bool scmBlockGroup = false;
  uint32_t bufferLen = 0;
  uint32_t bufferNumber = 0;
  uint32_t consumerSize = 0;
  TPosition consumer[8] = {};
  bool enableStaticEvtId = false;
  bool enableLoopQueue = false;
};

namespace detail {

constexpr int32_t EVENTS = 8;
constexpr uint32_t MOST_BUFFERS = 64;

inline uint64_t memory_bytes(uint8_t mem) {
  const cubecore::Launch* launch = cubecore_launch();
  const uint64_t all[] = {~0ull,
                          launch->ub_bytes,
                          launch->l1_bytes,
                          launch->l0a_bytes,
                          launch->l0b_bytes,
                          launch->l0c_bytes,
                          launch->bt_bytes,
                          launch->fb_bytes};
  return all[mem];
}

// Digits of a number, for sentences.
struct Digits {
  char text[24];
  explicit Digits(uint64_t value, const char* unit = "") {
    char reversed[24];
    int count = 0;
    do {
      reversed[count++] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    int at = 0;
    while (count > 0) text[at++] = reversed[--count];
    while (*unit != 0) text[at++] = *unit++;
    text[at] = 0;
  }
};

[[noreturn]] inline void refuse_memory(const char* what, uint64_t most, uint64_t got,
                                       const cubecore::Where& at) {
  char need[64] = "fit ";
  Digits limit(most, " B");
  std::memcpy(need + 4, limit.text, sizeof(limit.text));
  cubecore_refuse(what, need, Digits(got, " B").text, &at);
}

// Reports buffers beyond the memory; on a chip only an access to them fails.
inline void found_full(const char* call, const char* what, uint64_t most, uint64_t got,
                       const cubecore::Where& at) {
  char said[128] = "";
  std::strcat(std::strcat(said, what), " must fit ");
  std::strcat(std::strcat(said, Digits(most, " B, got ").text), Digits(got, " B").text);
  cubecore_finding("capacity", call, said, &at);
}

// Reports one EnQue more in a row than the queue is deep (page "TQue简介").
inline void found_deeper(int32_t depth, uint32_t held, const cubecore::Where& at) {
  char said[112];
  std::snprintf(said, sizeof(said),
                "depth %d holds %s, got one more before DeQue; declare depth %u, as in TQue<..., %u>",
                depth, depth > 1 ? Digits(held, " tensors").text : "one tensor", held + 1,
                held + 1);
  cubecore_finding("queue-full", "EnQue", said, &at);
}

// What a core keeps beside its tensors: events that are taken, memory that is given.
struct CoreState {
  void* pipe = nullptr;
  uint64_t used[8] = {};
  uint32_t buffers = 0;  // of InitBuffer
  uint8_t array_memory = 0;  // of the first array, and whether a physical address was asked for
  bool physical = false;
  int64_t dynamic_at = -1;  // where UB begins that the launch asks for, once it is used
  uint32_t mutexes = 0;  // that AllocMutexID has given
  uint8_t taken[static_cast<size_t>(HardEvent::MAX)] = {};
  uint8_t freed[static_cast<size_t>(HardEvent::MAX)] = {};  // raised by FreeTensor, not waited for
  const void* owners[static_cast<size_t>(HardEvent::MAX)][EVENTS] = {};
  uint64_t used_at[static_cast<size_t>(HardEvent::MAX)][EVENTS] = {};
  uint64_t uses = 0;
  uint64_t pad = 0;  // of SetPadValue, if `pads`
  bool pads = false;
  uint8_t atomic = 0;       // the operation of SetAtomicAdd, SetAtomicMax or SetAtomicMin
  int8_t atomic_type = -1;  // of atomic stores, -1 where they are off or none was set
  uint64_t filled = 0;      // the value of the last Fill of global memory, of so many bytes
  uint8_t fill_bytes = 0;
  uint64_t rounds = 0;           // of WaitPreBlock
  uint8_t* workspace = nullptr;  // of SetSysWorkspace
  uint64_t mask_low = 0, mask_high = 0;
  bool counts = false;  // whether the mask is a count of elements
  int64_t sum = 0;      // where the last ReduceSum of a number of elements left its result
  bool popped = false;  // whether the kernel has asked for the memory that no buffer has
  uint32_t epoch = 0;   // counts resets: buffers of an earlier one hold no flags
  cubecore::Where last = {"", "", 0};
  static constexpr uint32_t NOTED = 8;
  cubecore::Where noted[NOTED] = {};  // the lines of the last notes, with their calls
  uint32_t notes = 0;

  int64_t Reserve(TPosition pos, uint64_t bytes, uint32_t count, const cubecore::Where& at) {
    uint8_t mem = memory_of(pos);
    const bool fitted = buffers <= MOST_BUFFERS;
    buffers += count;
    if (fitted && buffers > MOST_BUFFERS) {
      char said[64] = "a kernel must have at most 64 buffers, got ";
      cubecore_finding("capacity", "InitBuffer", std::strcat(said, Digits(buffers).text), &at);
    }
    uint64_t most = memory_bytes(mem);
    if (mem == static_cast<uint8_t>(cubecore::Mem::UB)) most += cubecore_launch()->ub_kept;
    if (used[mem] + bytes > most)
      found_full("InitBuffer", "the buffers", most, used[mem] + bytes, at);
    int64_t found = static_cast<int64_t>(used[mem]);
    used[mem] += bytes;
    return found;
  }
  // One that no buffer has used, or the longest ago: a flag that EnQue or FreeTensor raised on
  // another may still stand. Events 6 and 7 are the system's (page SetFlag/WaitFlag).
  int32_t FreeEvent(HardEvent event) const {
    const uint8_t pair = static_cast<uint8_t>(event);
    int32_t found = -1;
    for (int32_t id : {5, 4, 3, 2, 1, 0, 7, 6}) {
      const bool is_free = (taken[pair] >> id & 1) == 0;
      if (is_free && (found < 0 || used_at[pair][id] < used_at[pair][found])) found = id;
    }
    return found < 0 ? EVENTS - 1 : found;
  }
  // A buffer keeps the event that it had before, as long as nobody else needs it: another that
  // takes it in between would raise a flag that may still stand.
  int32_t TakeEvent(HardEvent event, const void* owner, const cubecore::Where& at) {
    uint8_t pair = static_cast<uint8_t>(event);
    if (taken[pair] == 0xFF) {
      cubecore_finding("events-used-up", "AllocEventID",
                       "a pair of pipes must have at most 8 events in use, got 9", &at);
      return EVENTS - 1;
    }
    int32_t id = -1;
    for (int32_t n = 0; n < EVENTS; ++n) {
      if (taken[pair] >> n & 1) continue;
      if (owner != nullptr && owners[pair][n] == owner) {
        id = n;
        break;
      }
      if (id < 0 || used_at[pair][n] < used_at[pair][id]) id = n;
    }
    taken[pair] = static_cast<uint8_t>(taken[pair] | 1u << id);
    owners[pair][id] = owner;
    used_at[pair][id] = ++uses;
    return id;
  }
  void GiveEvent(HardEvent event, int32_t id) {
    uint8_t& own = taken[static_cast<uint8_t>(event)];
    own = static_cast<uint8_t>(own & ~(1u << id));
  }
  void Drain(const cubecore::Where& at) {
    for (uint8_t n = 0; n < static_cast<uint8_t>(HardEvent::MAX); ++n)
      for (int32_t id = 0; freed[n] != 0; ++id)
        if (freed[n] >> id & 1) {
          await_flag(static_cast<HardEvent>(n), id, at);
          GiveEvent(static_cast<HardEvent>(n), id);
          freed[n] = static_cast<uint8_t>(freed[n] & ~(1u << id));
        }
    barrier(PIPE_ALL, at);
  }
  void Forget() {
    ++epoch;
    for (uint64_t& each : used) each = 0;
    buffers = 0;
    cubecore_forget_buffers();
  }
};

inline CoreState& core_state() {
  void** slot = cubecore_slot(0);
  if (*slot == nullptr) *slot = new CoreState();
  return *static_cast<CoreState*>(*slot);
}

// Page SetFlag/WaitFlag: events 6 and 7 are the system's. Those that a TPipe gave are not the
// kernel's choice.
constexpr int32_t RESERVED_EVENT = 6;
inline void judge_event(const char* call, pipe_t from, pipe_t to, int64_t id,
                        const cubecore::Where& at) {
  if (id < RESERVED_EVENT || id >= EVENTS) return;
  const HardEvent event = event_of(from, to);
  if (event == HardEvent::MAX) return;
  const uint32_t taken = core_state().taken[static_cast<uint8_t>(event)];
  const bool is_full = (taken & ((1u << RESERVED_EVENT) - 1)) == (1u << RESERVED_EVENT) - 1;
  if (is_full || (taken >> id & 1) != 0) return;
  char said[112] =
      "event_id must be below 6 beside the vendor's libraries, which keep events 6 and 7, got ";
  cubecore_finding("event-reserved", call, std::strcat(said, Digits(id).text), &at);
}

// The pipes that fill and empty a buffer between two positions.
constexpr pipe_t filler(TPosition src, TPosition dst) {
  if (src == TPosition::GM) return PIPE_MTE2;
  if (dst == TPosition::GM) {
    if (src == TPosition::VECOUT) return PIPE_V;
    if (src == TPosition::CO1) return PIPE_M;
    if (src == TPosition::CO2) return PIPE_FIX;
    return PIPE_MTE2;
  }
  if (src == TPosition::VECIN && dst == TPosition::VECOUT) return PIPE_MTE2;
  if (src == TPosition::CO1) return PIPE_M;
  if (src == TPosition::A1 || src == TPosition::B1 || src == TPosition::C1) return PIPE_MTE1;
  return PIPE_V;
}

constexpr pipe_t emptier(TPosition src, TPosition dst) {
  if (dst == TPosition::GM) return src == TPosition::CO1 ? PIPE_FIX : PIPE_MTE3;
  switch (dst) {
    case TPosition::A1:
    case TPosition::B1:
    case TPosition::C1:
    case TPosition::TSCM:
      return PIPE_MTE1;
    case TPosition::A2:
    case TPosition::B2:
    case TPosition::C2:
      return PIPE_M;
    case TPosition::CO1:
    case TPosition::CO2:
      return PIPE_FIX;
    case TPosition::VECOUT:
      return PIPE_MTE3;
    default:
      return PIPE_V;
  }
}

struct Slot {
  int64_t address = 0;
  int32_t ready = -1;  // the event that EnQue raised
  int32_t freed = -1;  // the event that FreeTensor raised
  HardEvent ready_event = HardEvent::MAX;
  HardEvent freed_event = HardEvent::MAX;
  uint8_t state = 0;  // 0 free, 1 allocated, 2 in the queue, 3 taken out of it
};

// What TQue and TQueBind do; `src` and `dst` are the positions that the buffers go between.
template <TPosition src, TPosition dst, TPosition pos, int32_t depth>
class Queue {
 public:
  static constexpr TPosition position = pos;

  template <typename T>
  LocalTensor<T> AllocTensor(CUBECORE_AT) {
    LocalTensor<T> made;
    AllocTensor(made, at);
    return made;
  }
  template <typename T>
  void AllocTensor(LocalTensor<T>& tensor, CUBECORE_AT) {
    Slot* slot = Next(at);
    CoreState& state = core_state();
    state.last = at;
    if (slot->freed >= 0 && epoch_ == state.epoch) {
      uint8_t event = static_cast<uint8_t>(slot->freed_event);
      await_flag(slot->freed_event, slot->freed, at);
      state.GiveEvent(slot->freed_event, slot->freed);
      state.freed[event] = static_cast<uint8_t>(state.freed[event] & ~(1u << slot->freed));
    }
    slot->freed = -1;
    slot->state = 1;
    cubecore_array(memory_of(pos), slot->address, len_);
    tensor.Place(pos, slot->address,
                 static_cast<uint32_t>(len_ * 8ull / cubecore::Element<PrimT<T>>::bits), slot);
    tensor.Hold(slot->address, slot->address + len_);
  }
  template <typename T>
  bool EnQue(const LocalTensor<T>& tensor, CUBECORE_AT) {
    return Enter(tensor, filler(src, dst), emptier(src, dst), at);
  }
  template <TPosition srcUserPos, TPosition dstUserPos, typename T>
  bool EnQue(const LocalTensor<T>& tensor, CUBECORE_AT) {
    return Enter(tensor, filler(srcUserPos, dstUserPos), emptier(srcUserPos, dstUserPos), at);
  }
  template <typename T = uint8_t>
  LocalTensor<T> DeQue(CUBECORE_AT) {
    LocalTensor<T> made;
    DeQue(made, at);
    return made;
  }
  template <TPosition srcUserPos, TPosition dstUserPos, typename T>
  LocalTensor<T> DeQue(CUBECORE_AT) {
    return DeQue<T>(at);
  }
  // Without a type: no page has it; public kernels wait so for a tensor that they hold.
  void DeQue(CUBECORE_AT) { DeQue<uint8_t>(at); }
  template <typename T>
  void DeQue(LocalTensor<T>& tensor, CUBECORE_AT) {
    core_state().last = at;
    if (count_ == 0) {
      cubecore_finding("queue-empty", "DeQue", "a queue must hold a tensor, got an empty queue",
                       &at);
      tensor.Place(pos, start_, Size<T>(), nullptr);
      return;
    }
    Slot* slot = queued_[head_];
    head_ = (head_ + 1) % number_;
    --count_;
    if (slot->ready >= 0) {
      await_flag(slot->ready_event, slot->ready, at);
      core_state().GiveEvent(slot->ready_event, slot->ready);
      slot->ready = -1;
    }
    slot->state = 3;
    tensor.Place(pos, slot->address, Size<T>(), slot);
    tensor.Hold(slot->address, slot->address + len_);
  }
  template <typename T>
  void FreeTensor(LocalTensor<T>& tensor, CUBECORE_AT) {
    CoreState& state = core_state();
    state.last = at;
    Slot* slot = Owned(tensor);
    if (slot == nullptr || slot->state == 0) {
      cubecore_finding("tensor-freed", "FreeTensor",
                       "a tensor must be freed once, by the queue that gave it, got another", &at);
      return;
    }
    pipe_t fill = filler(src, dst), empty = emptier(src, dst);
    if (fill != empty) {
      slot->freed_event = event_of(empty, fill);
      slot->freed = state.TakeEvent(slot->freed_event, slot, at);
      raise_flag(slot->freed_event, slot->freed, at);
      uint8_t event = static_cast<uint8_t>(slot->freed_event);
      state.freed[event] = static_cast<uint8_t>(state.freed[event] | 1u << slot->freed);
    }
    slot->state = 0;
  }
  void FreeAllEvent(CUBECORE_AT) {
    CoreState& state = core_state();
    for (uint32_t n = 0; n < number_; ++n) {
      Slot& slot = slots_[n];
      if (slot.freed < 0 || epoch_ != state.epoch) continue;
      uint8_t event = static_cast<uint8_t>(slot.freed_event);
      await_flag(slot.freed_event, slot.freed, at);
      state.GiveEvent(slot.freed_event, slot.freed);
      state.freed[event] = static_cast<uint8_t>(state.freed[event] & ~(1u << slot.freed));
      slot.freed = -1;
    }
  }
  bool VacantInQue() const { return static_cast<int32_t>(count_) < Depth(); }
  bool HasTensorInQue() const { return count_ != 0; }
  int32_t GetTensorCountInQue() const { return static_cast<int32_t>(count_); }
  bool HasIdleBuffer() const {
    for (uint32_t n = 0; n < number_; ++n)
      if (slots_[n].state == 0) return true;
    return false;
  }

  // Ours: a pipe or a pool gives the memory.
  void Take(int64_t address, uint32_t len, uint32_t num, const cubecore::Where& at) {
    cubecore_mark(&at);
    number_ = num < MOST_BUFFERS ? num : MOST_BUFFERS;
    len_ = len;
    start_ = address;
    epoch_ = core_state().epoch;
    head_ = count_ = next_ = 0;
    slots_ = new Slot[number_ + 1];
    queued_ = new Slot*[number_ + 1];
    for (uint32_t n = 0; n < number_; ++n) {
      slots_[n].address = address + static_cast<int64_t>(n) * len;
    }
  }
  int64_t Start() const { return start_; }
  // Pages InitStartBufHandle, InitBufHandle: a pool of the user's own says where each buffer lies.
  void InitStartBufHandle(TBufHandle, uint8_t num, uint32_t len, CUBECORE_AT) {
    Take(0, len, num, at);
  }
  template <typename P>
  void InitBufHandle(P*, uint32_t index, TBufHandle, uint32_t curPoolAddr, uint32_t) {
    if (index == 0) start_ = curPoolAddr;
    if (index < number_) slots_[index].address = curPoolAddr;
  }

 private:
  // Tensors that EnQue may add in a row; depth 0 is that of tensors in place.
  static constexpr int32_t Depth() { return depth > 0 ? depth : 1; }
  template <typename T>
  uint32_t Size() const {
    return static_cast<uint32_t>(len_ * 8ull / cubecore::Element<PrimT<T>>::bits);
  }
  Slot* Next(const cubecore::Where& at) {
    if (number_ == 0) cubecore_refuse("AllocTensor", "follow InitBuffer of its queue", "none", &at);
    for (uint32_t n = 0; n < number_; ++n) {
      Slot* slot = &slots_[(next_ + n) % number_];
      if (slot->state == 0) {
        next_ = (next_ + n + 1) % number_;
        return slot;
      }
    }
    cubecore_finding("queue-full", "AllocTensor",
                     "a queue must have a free buffer, got every buffer in use", &at);
    Slot* slot = &slots_[next_];
    next_ = (next_ + 1) % number_;
    return slot;
  }
  template <typename T>
  Slot* Owned(const LocalTensor<T>& tensor) {
    Slot* slot = static_cast<Slot*>(tensor.handle());
    if (slot >= slots_ && slot < slots_ + number_) return slot;
    int64_t distance = static_cast<int64_t>(tensor.GetPhyAddr()) - start_;
    if (len_ == 0 || distance < 0 || distance >= static_cast<int64_t>(len_) * number_)
      return nullptr;
    return &slots_[distance / len_];
  }
  template <typename T>
  bool Enter(const LocalTensor<T>& tensor, pipe_t from, pipe_t to, const cubecore::Where& at) {
    CoreState& state = core_state();
    state.last = at;
    Slot* slot = Owned(tensor);
    if (slot == nullptr || slot->state == 0 || slot->state == 2) {
      cubecore_finding("queue-order", "EnQue",
                       slot == nullptr
                           ? "a tensor must come from AllocTensor of the queue, got another"
                       : slot->state == 2
                           ? "a tensor must enter a queue once until DeQue takes it out, got it again"
                           : "a tensor must be in use, got one that FreeTensor has given back",
                       &at);
      if (slot == nullptr || slot->state == 2) return false;
    }
    if (count_ == number_) return false;
    if (static_cast<int32_t>(count_) >= Depth()) found_deeper(depth, count_, at);
    if (from != to) {
      slot->ready_event = event_of(from, to);
      slot->ready = state.TakeEvent(slot->ready_event, slot, at);
      raise_flag(slot->ready_event, slot->ready, at);
    }
    queued_[(head_ + count_) % number_] = slot;
    ++count_;
    slot->state = 2;
    return true;
  }

  Slot* slots_ = nullptr;
  Slot** queued_ = nullptr;  // a ring of `number_`
  uint32_t number_ = 0, len_ = 0, head_ = 0, count_ = 0, next_ = 0, epoch_ = 0;
  int64_t start_ = 0;
};

}  // namespace detail

// Page TQueBind.
template <TPosition src, TPosition dst, int32_t depth, auto mask = 0>
class TQueBind : public detail::Queue<src, dst, src == TPosition::GM ? dst : src, depth> {};

// Page TQue: the position says where the buffer comes from and where it goes.
template <TPosition pos, int32_t depth, auto mask = 0>
class TQue : public detail::Queue<pos == TPosition::VECIN || pos == TPosition::A1 ||
                                          pos == TPosition::B1 || pos == TPosition::C1
                                      ? TPosition::GM
                                  : pos == TPosition::A2 ? TPosition::A1
                                  : pos == TPosition::B2 ? TPosition::B1
                                  : pos == TPosition::C2 ? TPosition::C1
                                                         : pos,
                                  pos == TPosition::VECOUT || pos == TPosition::CO1 ||
                                          pos == TPosition::CO2 || pos == TPosition::VECCALC
                                      ? TPosition::GM
                                      : pos,
                                  pos, depth> {};

// Page TSCM: a queue in L1.
template <TPosition src, int32_t depth = 1, auto mask = 0>
class TSCM : public detail::Queue<src, TPosition::TSCM, TPosition::TSCM, depth> {};

}  // namespace AscendC
