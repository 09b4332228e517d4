// TPipe: the memory and the events of a core. Pages: TPipe with its members, TBuf, TBufPool,
// GetTPipePtr, LocalMemAllocator.
#pragma once

#include <exception>
#include <tuple>

#include "cubecore/basic/copy.h"
#include "cubecore/sync/queue.h"

namespace AscendC {

namespace detail {

// Says that a pipe or a pool has given buffers, one behind another.
inline void give_buffers(TPosition pos, int64_t address, uint32_t each, uint32_t number) {
  for (uint32_t n = 0; n < number; ++n)
    cubecore_buffer(memory_of(pos), address + static_cast<int64_t>(n) * each, each);
}

// A tensor that leaves its buffer: a note where it reaches into buffers behind, as public kernels
// do on purpose; a finding where no buffer lies, or the page forbids it.
template <typename T>
inline void judge_length(TPosition pos, int64_t address, uint64_t buffer,
                         uint32_t offset, uint32_t size, bool of_part, const cubecore::Where& at) {
  const uint32_t bits = cubecore::Element<PrimT<T>>::bits;
  const uint64_t most = offset < buffer ? (buffer - offset) * 8 / bits : 0;
  const uint64_t end = static_cast<uint64_t>(address) + offset + uint64_t{size} * bits / 8;
  const bool of_nobody = end > whole_blocks(core_state().used[memory_of(pos)]);
  const char* call = of_part ? "GetWithOffset" : "Get";
  char where[48] = "";
  if (offset != 0) std::snprintf(where, sizeof(where), " from byte %u", offset);
  char said[192];
  std::snprintf(said, sizeof(said), "%s must be at most %llu for %s in a buffer of %llu B%s, got %u%s",
                of_part ? "size" : "len",
                static_cast<unsigned long long>(most), cubecore::Element<PrimT<T>>::word,
                static_cast<unsigned long long>(buffer), where, size,
                of_nobody ? "" : ": it reaches into the buffers behind");
  if (of_nobody || of_part)
    cubecore_finding("out-of-bounds", call, said, &at);
  else
    note("long-tensor", call, said, at);
}

}  // namespace detail

// Page TBuf: memory without a queue.
template <TPosition pos = TPosition::LCM>
class TBuf {
 public:
  template <typename T>
  LocalTensor<T> Get(CUBECORE_AT) {
    return Get<T>(static_cast<uint32_t>(len_ * 8ull / bits<T>()), at);
  }
  template <typename T>
  LocalTensor<T> Get(uint32_t len, CUBECORE_AT) {
    cubecore_array(memory_of(pos), address_, len_);
    return Given<T>(len, 0, false, at);
  }
  template <typename T>
  LocalTensor<T> GetWithOffset(uint32_t size, uint32_t bufOffset, CUBECORE_AT) {
    const LocalTensor<T> made = Given<T>(size, bufOffset, true, at);
    made.Declare();
    return made;
  }
  // No page has these two for TBuf; public kernels call them as for a queue of one buffer.
  template <typename T>
  LocalTensor<T> AllocTensor(CUBECORE_AT) {
    return Get<T>(at);
  }
  template <typename T>
  void FreeTensor(LocalTensor<T>&) {}
  // It has a queue's names, which is all that a call that never runs needs.
  template <typename T>
  bool EnQue(const LocalTensor<T>&, CUBECORE_AT) {
    RefuseQueue("TBuf.EnQue", at);
  }
  template <typename T>
  LocalTensor<T> DeQue(CUBECORE_AT) {
    RefuseQueue("TBuf.DeQue", at);
  }
  uint32_t GetBufLen() const { return len_; }
  TPosition GetPosition() const { return pos; }

  // Ours: a pipe or a pool gives the memory.
  static constexpr TPosition position = pos;
  void Take(int64_t address, uint32_t len) {
    address_ = address;
    len_ = len;
  }
  void InitStartBufHandle(TBufHandle, uint8_t, uint32_t) {}
  template <typename P>
  void InitBufHandle(P*, uint32_t, TBufHandle, uint32_t curPoolAddr, uint32_t len) {
    Take(curPoolAddr, len);
  }

 private:
  [[noreturn]] static void RefuseQueue(const char* call, const cubecore::Where& at) {
    cubecore_refuse(call, "be called of a TQue", "a TBuf; SetFlag and WaitFlag order its uses", &at);
  }
  template <typename T>
  LocalTensor<T> Given(uint32_t size, uint32_t bufOffset, bool of_part, const cubecore::Where& at) {
    cubecore_mark(&at);
    LocalTensor<T> made;
    made.Place(pos, address_ + bufOffset, size, nullptr);
    const uint64_t end = bufOffset + static_cast<uint64_t>(made.GetLength());
    if (end > len_) {
      detail::judge_length<T>(pos, address_, len_, bufOffset, size, of_part, at);
      detail::give_buffers(pos, address_ + bufOffset, made.GetLength(), 1);
    }
    made.Hold(address_, address_ + static_cast<int64_t>(end > len_ ? end : len_));
    return made;
  }
  template <typename T>
  static constexpr uint32_t bits() {
    return cubecore::Element<PrimT<T>>::bits;
  }

  int64_t address_ = 0;
  uint32_t len_ = 0;
};

// Page TBufPool: a piece of memory that buffers are taken from, perhaps in turn with another pool.
template <TPosition pos, uint32_t bufIDSize = 4>
class TBufPool {
 public:
  template <typename T>
  bool InitBuffer(T& que, uint8_t num, uint32_t len, CUBECORE_AT) {
    uint32_t each = detail::whole_blocks(len);
    const int64_t found = Reserve(num * static_cast<uint64_t>(each), at);
    detail::give_buffers(T::position, found, each, num);
    que.Take(found, each, num, at);
    return true;
  }
  template <TPosition bufPos>
  bool InitBuffer(TBuf<bufPos>& buf, uint32_t len, CUBECORE_AT) {
    uint32_t each = detail::whole_blocks(len);
    const int64_t found = Reserve(each, at);
    detail::give_buffers(bufPos, found, each, 1);
    buf.Take(found, each);
    return true;
  }
  template <typename T>
  bool InitBufPool(T& bufPool, uint32_t len, CUBECORE_AT) {
    bufPool.Take(Reserve(len, at), len);
    return true;
  }
  template <typename T, typename U>
  bool InitBufPool(T& bufPool, uint32_t len, U& shareBuf, CUBECORE_AT) {
    cubecore_mark(&at);
    bufPool.Take(shareBuf.Start(), len);
    return true;
  }
  void Reset(CUBECORE_AT) {
    detail::core_state().Drain(at);
    used_ = 0;
  }

  static constexpr TPosition position = pos;
  void Take(int64_t address, uint32_t len) {
    address_ = address;
    len_ = len;
    used_ = 0;
  }
  int64_t Start() const { return address_; }

 private:
  int64_t Reserve(uint64_t bytes, const cubecore::Where& at) {
    if (used_ + bytes > len_) detail::refuse_memory("TBufPool", len_, used_ + bytes, at);
    int64_t found = address_ + static_cast<int64_t>(used_);
    used_ += bytes;
    return found;
  }

  int64_t address_ = 0;
  uint64_t len_ = 0, used_ = 0;
};

// Page EXTERN_IMPL_BUFPOOL: the members of a pool that a user writes.
#define EXTERN_IMPL_BUFPOOL(EXT_BUFPOOL, POSITION, BUFID_SIZE)                       \
 public:                                                                             \
  static constexpr auto position = POSITION;                                         \
  void Init() { cubecore_count_ = 0; }                                               \
  void Reset(CUBECORE_AT) {                                                          \
    AscendC::detail::core_state().Drain(at);                                         \
    cubecore_count_ = 0;                                                             \
    cubecore_next_ = cubecore_start_;                                                \
  }                                                                                  \
  AscendC::TBufHandle GetBufHandle(uint8_t offset) {                                 \
    return reinterpret_cast<AscendC::TBufHandle>(static_cast<uint64_t>(offset) + 1); \
  }                                                                                  \
  void SetCurAddr(uint32_t curAddr) { cubecore_next_ = curAddr; }                    \
  uint32_t GetCurAddr() { return cubecore_next_; }                                   \
  void SetCurBufSize(uint8_t curBufSize) { cubecore_count_ = curBufSize; }           \
  uint8_t GetCurBufSize() { return cubecore_count_; }                                \
  void Take(int64_t address, uint32_t) {                                             \
    cubecore_start_ = cubecore_next_ = static_cast<uint32_t>(address);               \
  }                                                                                  \
  int64_t Start() const { return cubecore_start_; }                                  \
                                                                                     \
 private:                                                                            \
  uint32_t cubecore_start_ = 0, cubecore_next_ = 0;                                  \
  uint8_t cubecore_count_ = 0

class TPipe {
 public:
  TPipe() { Init(); }
  // Issues the waits for buffers that were freed, unless the launch is being stopped.
  ~TPipe() noexcept(false) {
    if (std::uncaught_exceptions() == 0) Destroy({"", "", 0});
  }
  // A copy is another name of the core's pipe: nothing ends with it.
  TPipe(const TPipe&) {}
  TPipe& operator=(const TPipe&) { return *this; }

  void Init() {
    detail::core_state().pipe = this;
    live_ = true;
  }
  template <typename T>
  bool InitBuffer(T& que, uint8_t num, uint32_t len, CUBECORE_AT) {
    uint32_t each = detail::whole_blocks(len);
    const uint64_t bytes = num * static_cast<uint64_t>(each);
    const int64_t found = detail::core_state().Reserve(T::position, bytes, num, at);
    detail::give_buffers(T::position, found, each, num);
    que.Take(found, each, num, at);
    return true;
  }
  template <TPosition pos>
  bool InitBuffer(TBuf<pos>& buf, uint32_t len, CUBECORE_AT) {
    uint32_t each = detail::whole_blocks(len);
    const int64_t found = detail::core_state().Reserve(pos, each, 1, at);
    detail::give_buffers(pos, found, each, 1);
    buf.Take(found, each);
    return true;
  }
  template <typename T>
  bool InitBufPool(T& bufPool, uint32_t len, CUBECORE_AT) {
    bufPool.Take(detail::core_state().Reserve(T::position, detail::whole_blocks(len), 0, at), len);
    return true;
  }
  template <typename T, typename U>
  bool InitBufPool(T& bufPool, uint32_t len, U& shareBuf, CUBECORE_AT) {
    cubecore_mark(&at);
    bufPool.Take(shareBuf.Start(), len);
    return true;
  }
  void Reset(CUBECORE_AT) {
    detail::core_state().Drain(at);
    detail::core_state().Forget();
  }
  void Destroy(CUBECORE_AT) {
    if (!live_) return;
    live_ = false;
    detail::CoreState& state = detail::core_state();
    state.Drain(at.line == 0 ? state.last : at);
    state.Forget();
  }
  void DestroyWithoutPipeAll(CUBECORE_AT) { Destroy(at); }
  template <HardEvent evt>
  TEventID AllocEventID(CUBECORE_AT) {
    return static_cast<TEventID>(detail::core_state().TakeEvent(evt, nullptr, at));
  }
  template <HardEvent evt>
  void ReleaseEventID(TEventID id) {
    detail::core_state().GiveEvent(evt, id);
  }
  // The first id that is free; it stays free, so that two calls in a row may give the same.
  TEventID FetchEventID(HardEvent evt) {
    return static_cast<TEventID>(detail::core_state().FreeEvent(evt));
  }
  template <HardEvent evt>
  TEventID FetchEventID() {
    return FetchEventID(evt);
  }
  template <TPosition pos>
  uint64_t GetQueueEndAddress() const {
    return detail::core_state().used[memory_of(pos)];
  }
  uint64_t GetBaseAddr(int8_t) const { return 0; }

  // Pages InitSpmBuffer, WriteSpmBuffer, ReadSpmBuffer: a piece of global memory for what UB does
  // not hold, at offsets in bytes; the copies are in order with nothing.
  template <typename T>
  void InitSpmBuffer(const GlobalTensor<T>& workspace, const int32_t bufferSize) {
    spm_ = reinterpret_cast<uint8_t*>(const_cast<PrimT<T>*>(workspace.GetPhyAddr()));
    spm_bytes_ = static_cast<uint64_t>(bufferSize);
  }
  template <typename T>
  void WriteSpmBuffer(const LocalTensor<T>& writeBuffer, const DataCopyParams& copyParams,
                      int32_t writeOffset = 0, CUBECORE_AT) {
    DataCopy(Spilled<T>(writeOffset, at), writeBuffer, copyParams, at);
  }
  template <typename T>
  void WriteSpmBuffer(const LocalTensor<T>& writeBuffer, const int32_t writeSize,
                      int32_t writeOffset = 0, CUBECORE_AT) {
    DataCopy(Spilled<T>(writeOffset, at), writeBuffer, static_cast<uint32_t>(writeSize), at);
  }
  template <typename T>
  void ReadSpmBuffer(const LocalTensor<T>& readBuffer, const DataCopyParams& copyParams,
                     int32_t readOffset = 0, CUBECORE_AT) {
    DataCopy(readBuffer, Spilled<T>(readOffset, at), copyParams, at);
  }
  template <typename T>
  void ReadSpmBuffer(const LocalTensor<T>& readBuffer, const int32_t readSize,
                     int32_t readOffset = 0, CUBECORE_AT) {
    DataCopy(readBuffer, Spilled<T>(readOffset, at), static_cast<uint32_t>(readSize), at);
  }

 private:
  template <typename T>
  GlobalTensor<T> Spilled(int32_t offset, const cubecore::Where& at) const {
    if (spm_ == nullptr)
      cubecore_refuse("the SPM buffer", "be initialised by InitSpmBuffer first", "none", &at);
    const uint64_t begin = static_cast<uint64_t>(offset);
    if (begin >= spm_bytes_)
      cubecore_refuse("the offset in the SPM buffer", "lie inside its bytes",
                      detail::Digits(begin, " B").text, &at);
    GlobalTensor<T> made;
    made.SetGlobalBuffer(reinterpret_cast<PrimT<T>*>(spm_ + begin),
                         (spm_bytes_ - begin) * 8 / cubecore::Element<PrimT<T>>::bits);
    return made;
  }

  bool live_ = false;
  uint8_t* spm_ = nullptr;
  uint64_t spm_bytes_ = 0;
};

// Page GetTPipePtr.
inline TPipe* GetTPipePtr() {
  detail::CoreState& state = detail::core_state();
  if (state.pipe == nullptr) state.pipe = new TPipe();
  return static_cast<TPipe*>(state.pipe);
}

// Page LocalMemAllocator: memory one piece behind another, without a pipe.
template <Hardware hard = Hardware::UB>
class LocalMemAllocator {
 public:
  uint32_t GetCurAddr() const { return static_cast<uint32_t>(used_); }
  template <typename T, uint32_t tileSize>
  LocalTensor<T> Alloc(CUBECORE_AT) {
    return Given<T>(position(), tileSize, at);
  }
  template <typename T>
  LocalTensor<T> Alloc(uint32_t tileSize, CUBECORE_AT) {
    return Given<T>(position(), tileSize, at);
  }
  template <TPosition pos, typename T, uint32_t tileSize>
  LocalTensor<T> Alloc(CUBECORE_AT) {
    return Given<T>(pos, tileSize, at);
  }
  template <TPosition pos, typename T>
  LocalTensor<T> Alloc(uint32_t tileSize, CUBECORE_AT) {
    return Given<T>(pos, tileSize, at);
  }

 private:
  static constexpr TPosition position() {
    return hard == Hardware::L1       ? TPosition::A1
           : hard == Hardware::L0A    ? TPosition::A2
           : hard == Hardware::L0B    ? TPosition::B2
           : hard == Hardware::L0C    ? TPosition::CO1
           : hard == Hardware::BIAS   ? TPosition::C2
           : hard == Hardware::FIXBUF ? TPosition::C2PIPE2GM
                                      : TPosition::VECCALC;
  }
  template <typename T>
  LocalTensor<T> Given(TPosition pos, uint32_t count, const cubecore::Where& at) {
    uint64_t bytes = static_cast<uint64_t>(cubecore::bytes_of<PrimT<T>>(count));
    uint64_t most = detail::memory_bytes(memory_of(pos));
    if (used_ + bytes > most) detail::refuse_memory("LocalMemAllocator", most, used_ + bytes, at);
    LocalTensor<T> made;
    made.Place(pos, static_cast<int64_t>(used_), count, nullptr);
    made.Bound();
    used_ += detail::whole_blocks(bytes);
    return made;
  }

  uint64_t used_ = 0;
};

}  // namespace AscendC

using AscendC::GetTPipePtr;  // kernels name it both ways
