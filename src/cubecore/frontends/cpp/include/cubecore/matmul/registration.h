// Registration of Matmul objects. Page REGIST_MATMUL_OBJ.
#pragma once

#include "cubecore/matmul/object.h"

namespace cubecore {

// Gives objects their tilings: each may be followed by one, or by a pointer to one.
inline void tile_objects() {}
template <typename O, typename... R>
inline void tile_objects(O& object, R&&... rest);

template <typename O, typename T, typename... R>
inline void tile_object(O& object, T&& tiling, R&&... rest) {
  using Bare = std::decay_t<T>;
  if constexpr (std::is_same_v<Bare, std::nullptr_t>) {
    object.Init(nullptr);
    tile_objects(rest...);
  } else if constexpr (std::is_pointer_v<Bare>) {
    object.Init(reinterpret_cast<const AscendC::tiling::TCubeTiling*>(tiling));
    tile_objects(rest...);
  } else if constexpr (std::is_same_v<Bare, AscendC::tiling::TCubeTiling>) {
    object.Init(&tiling);
    tile_objects(rest...);
  } else {
    tile_objects(tiling, rest...);
  }
}
template <typename O, typename... R>
inline void tile_objects(O& object, R&&... rest) {
  if constexpr (sizeof...(R) == 0)
    (void)object;
  else
    tile_object(object, rest...);
}

template <typename T, typename = void>
struct IsObject : std::false_type {};
template <typename T>
struct IsObject<T, std::void_t<decltype(&std::decay_t<T>::MakeIdle)>> : std::true_type {};

template <typename T>
constexpr bool runs_alone() {
  if constexpr (IsObject<T>::value)
    return std::decay_t<T>::takes_turns;
  else
    return false;
}

// On an AIC of a mix launch the kernel ends here: it serves its AIVs until they end.
template <typename... A>
inline void register_objects(bool cube_only, const Where& at, A&&... objects) {
  constexpr bool alone = (runs_alone<A>() || ...);
  uint64_t buffers = 0;
  for (uint64_t used : AscendC::detail::core_state().used) buffers += used;
  if (buffers != 0 && CUBECORE_PART != 0)
    cubecore_finding("call-order", "REGIST_MATMUL_OBJ",
                     "it must be called before InitBuffer, got a call behind one", &at);
  const Launch* launch = cubecore_launch();
  int32_t number = 0;
  auto count = [&](auto& each) {
    if constexpr (IsObject<decltype(each)>::value) each.SetNumber(number++);
  };
  (count(objects), ...);
  if constexpr (CUBECORE_PART == 1) {
    if (launch->task == 2 && !cube_only && !alone) {
      make_own_moves(matmul(MM_SERVE, nullptr, 0, at), at, [&](const OwnMove& move) {
        auto make = [&](auto& each) {
          if constexpr (IsObject<decltype(each)>::value)
            if (each.GetNumber() == move.object) each.MakeMove(move);
        };
        (make(objects), ...);
      });
      throw Done{};
    }
  } else {
    if (cube_only || alone) {
      auto idle = [](auto& each) {
        if constexpr (IsObject<decltype(each)>::value) each.MakeIdle();
      };
      (idle(objects), ...);
    } else if (launch->task != 2) {
      cubecore_refuse("a Matmul object", "be in a kernel with AICs (mix or cube)",
                      "a vector kernel", &at);
    } else {
      matmul(MM_SERVE, nullptr, 0, at);
    }
  }
  tile_objects(objects...);
}

}  // namespace cubecore

#define CUBECORE_TEXT_OF(...) #__VA_ARGS__
#define CUBECORE_TEXT(...) CUBECORE_TEXT_OF(__VA_ARGS__)
// True where the file defines ASCENDC_CUBE_ONLY, wherever this header was read.
#define CUBECORE_CUBE_ONLY (CUBECORE_TEXT(ASCENDC_CUBE_ONLY)[0] != 'A')
#define REGIST_MATMUL_OBJ(PIPE, WORKSPACE, ...) \
  ((void)(PIPE), (void)(WORKSPACE),             \
   ::cubecore::register_objects(                \
       CUBECORE_CUBE_ONLY,                      \
       ::cubecore::Where{__builtin_FILE(), __builtin_FUNCTION(), __builtin_LINE()}, __VA_ARGS__))
