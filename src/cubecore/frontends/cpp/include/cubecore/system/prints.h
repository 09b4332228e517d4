// What a kernel shows and checks. Pages: printf, DumpTensor, ascendc_assert, PrintTimeStamp, Trap,
// CheckLocalMemoryIA.
#pragma once

#include <cassert>
#include <cstdio>

#include "cubecore/basic/tensors.h"

namespace AscendC {

// No page has it; public kernels call it before they dump.
inline void InitDump(bool, uint8_t*, uint32_t) {}

template <typename... A>
inline void printf(const char* format, A... arguments) {
  char text[1024];
  if constexpr (sizeof...(A) == 0)
    std::snprintf(text, sizeof(text), "%s", format);
  else
    std::snprintf(text, sizeof(text), format, cubecore::scalar(arguments)...);
  cubecore_print(text);
}
template <typename... A>
inline void PRINTF(const char* format, A... arguments) {
  printf(format, arguments...);
}

template <typename T>
inline void DumpTensor(const LocalTensor<T>& tensor, uint32_t desc, uint32_t dumpSize,
                       CUBECORE_AT) {
  cubecore_dump(tensor.memory(), cubecore::Element<PrimT<T>>::name,
                static_cast<int64_t>(tensor.GetPhyAddr()), desc, dumpSize, nullptr, 0, &at);
}
template <typename T>
inline void DumpTensor(const GlobalTensor<T>& tensor, uint32_t desc, uint32_t dumpSize,
                       CUBECORE_AT) {
  cubecore_dump(0, cubecore::Element<PrimT<T>>::name, tensor.address(0), desc, dumpSize, nullptr, 0,
                &at);
}
template <typename T>
inline void DumpTensor(const LocalTensor<T>& tensor, uint32_t desc, uint32_t dumpSize,
                       const ShapeInfo& shape, CUBECORE_AT) {
  (void)dumpSize;
  cubecore_dump(tensor.memory(), cubecore::Element<PrimT<T>>::name,
                static_cast<int64_t>(tensor.GetPhyAddr()), desc, 0, shape.shape, shape.shapeDim,
                &at);
}
template <typename T>
inline void DumpTensor(const GlobalTensor<T>& tensor, uint32_t desc, uint32_t dumpSize,
                       const ShapeInfo& shape, CUBECORE_AT) {
  (void)dumpSize;
  cubecore_dump(0, cubecore::Element<PrimT<T>>::name, tensor.address(0), desc, 0, shape.shape,
                shape.shapeDim, &at);
}
inline void PrintTimeStamp(uint32_t) {}
inline void Trap(CUBECORE_AT) { cubecore_refuse("the kernel", "run to its end", "Trap", &at); }

// In the order of the page's table, which is that of its example.
struct CheckLocalMemoryIAParam {
  uint8_t enableBit = 0;
  uint32_t startAddr = 0, endAddr = 0;
  bool isScalarRead = false, isScalarWrite = false;
  bool isVectorRead = false, isVectorWrite = false;
  bool isMteRead = false, isMteWrite = false;
  bool isEnable = false;
  uint32_t reserved = 0;
};
inline void CheckLocalMemoryIA(const CheckLocalMemoryIAParam& checkParams, CUBECORE_AT) {
  const CheckLocalMemoryIAParam& p = checkParams;
  using cubecore::named;
  cubecore::issue("check_ub", at, named("number", p.enableBit), named("start", p.startAddr),
                  named("end", p.endAddr), named("scalar_read", p.isScalarRead),
                  named("scalar_write", p.isScalarWrite), named("vector_read", p.isVectorRead),
                  named("vector_write", p.isVectorWrite), named("mte_read", p.isMteRead),
                  named("mte_write", p.isMteWrite), named("enable", p.isEnable));
}

}  // namespace AscendC

namespace AscendC::detail {

// A term 0, judged at the end of its expression: a variable that the expression begins has its
// value by then.
template <typename F>
struct Asserted {
  F condition;
  const char* text;
  cubecore::Where at;
  operator int32_t() const { return 0; }
  ~Asserted() noexcept(false) {
    if (!condition()) cubecore_refuse("the assertion", "hold", text, &at);
  }
};
template <typename F>
inline Asserted<F> asserted(F condition, const char* text, CUBECORE_AT) {
  return {condition, text, at};
}

}  // namespace AscendC::detail

#define ascendc_assert(CONDITION, ...)                                                      \
  do {                                                                                      \
    if (!(CONDITION)) {                                                                     \
      ::cubecore::Where where = {__builtin_FILE(), __builtin_FUNCTION(), __builtin_LINE()}; \
      cubecore_refuse("the assertion", "hold", #CONDITION, &where);                         \
    }                                                                                       \
  } while (false)
// No page has it. On chips it is nothing: public kernels build for them with conditions of names
// that nobody declares.
#define ASCENDC_ASSERT(...)
#define KERNEL_LOG(LEVEL, ...) ::AscendC::printf(__VA_ARGS__)
#undef assert
#define assert(...) ascendc_assert((__VA_ARGS__))
// On chips it may be nothing, and kernels write it behind what they have not ended, or do not end
// it: a term 0 with an end is neither in the way there nor as a statement. It sees AscendC's names,
// as nothing would.
#define ASSERT(...)                            \
  +::AscendC::detail::asserted(                \
      [&] {                                    \
        using namespace AscendC;               \
        return static_cast<bool>(__VA_ARGS__); \
      },                                       \
      #__VA_ARGS__);
#define ASSERT_MSG(CONDITION, ...) ascendc_assert(CONDITION)

// As public kernels call Trap; no page has this name.
inline void trap(CUBECORE_AT) { AscendC::Trap(at); }
