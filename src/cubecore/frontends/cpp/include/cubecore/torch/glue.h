// Bindings served without torch: functions by name, called with arguments that Python writes.
// Pages: PyTorch's C++ API, TORCH_LIBRARY; pybind11, PYBIND11_MODULE.
#pragma once

#include <array>
#include <cstdio>
#include <functional>

#include "cubecore/torch/functions.h"

namespace cubecore::glue {

// An argument as Python has written it.
struct Value {
  char kind = 'n';  // n none, b truth, i whole, f real, s text, T tensor, L list, d element type
  int64_t whole = 0;
  double real = 0;
  std::string text;
  at::Tensor tensor;
  std::vector<Value> list;
};

class Reader {
 public:
  explicit Reader(const std::string& text) : in_(text) {}
  std::string Word() {
    std::string word;
    in_ >> word;
    return word;
  }
  int64_t Whole() { return std::stoll(Word()); }
  Value Next() {
    Value made;
    const std::string kind = Word();
    made.kind = kind.empty() ? 'n' : kind[0];
    switch (made.kind) {
      case 'b':
      case 'i':
      case 'd': made.whole = Whole(); break;
      case 'f': made.real = std::strtod(Word().c_str(), nullptr); break;
      case 's': {
        const std::string hex = Word();
        for (size_t n = 1; n + 1 < hex.size(); n += 2)
          made.text += static_cast<char>(std::stoi(hex.substr(n, 2), nullptr, 16));
        break;
      }
      case 'T': made.tensor = Tensor(); break;
      case 'L':
        for (int64_t count = Whole(); count > 0; --count) made.list.push_back(Next());
        break;
      default: break;
    }
    return made;
  }
  bool More() { return static_cast<bool>(in_ >> std::ws) && !in_.eof(); }

 private:
  at::Tensor Tensor() {
    auto storage = std::make_shared<at::Tensor::Storage>();
    storage->data = reinterpret_cast<uint8_t*>(std::stoull(Word()));
    const auto type = static_cast<c10::ScalarType>(Whole());
    std::vector<int64_t> sizes(static_cast<size_t>(Whole()));
    int64_t count = 1;
    for (int64_t& size : sizes) count *= size = Whole();
    storage->bytes = static_cast<size_t>(count * c10::elementSize(type));
    return at::Tensor(std::move(storage), std::move(sizes), type);
  }
  std::istringstream in_;
};

// A parameter of a bound function: what it holds while the function runs.
template <typename T, typename = void>
struct Held;
template <typename T>
struct Held<T, std::enable_if_t<std::is_arithmetic_v<T>>> {
  T value;
  explicit Held(const Value& given) {
    if (given.kind == 'T')
      value = given.tensor.item().to<T>();
    else
      value = given.kind == 'f' ? static_cast<T>(given.real) : static_cast<T>(given.whole);
    if (given.kind == 'n' || given.kind == 'L' || given.kind == 's')
      throw c10::Error("a number is needed");
  }
  T& Get() { return value; }
};
template <>
struct Held<at::Tensor> {
  at::Tensor value;
  explicit Held(const Value& given) : value(given.tensor) {
    if (given.kind != 'T' && given.kind != 'n') throw c10::Error("a Tensor is needed");
  }
  at::Tensor& Get() { return value; }
};
template <>
struct Held<c10::Scalar> {
  c10::Scalar value;
  explicit Held(const Value& given) {
    if (given.kind == 'T')
      value = given.tensor.item();
    else if (given.kind == 'f')
      value = c10::Scalar(given.real);
    else
      value = given.kind == 'b' ? c10::Scalar(given.whole != 0) : c10::Scalar(given.whole);
  }
  c10::Scalar& Get() { return value; }
};
template <>
struct Held<c10::ScalarType> {
  c10::ScalarType value;
  explicit Held(const Value& given) : value(static_cast<c10::ScalarType>(given.whole)) {}
  c10::ScalarType& Get() { return value; }
};
template <>
struct Held<std::string> {
  std::string value;
  explicit Held(const Value& given) : value(given.text) {}
  std::string& Get() { return value; }
};
template <>
struct Held<std::string_view> {
  std::string text;
  std::string_view value;
  explicit Held(const Value& given) : text(given.text) {}
  std::string_view& Get() { return value = text; }
};
template <>
struct Held<const char*> {
  std::string text;
  const char* value = nullptr;
  explicit Held(const Value& given) : text(given.text) {}
  const char*& Get() { return value = text.c_str(); }
};
template <typename T>
struct Held<std::vector<T>> {
  std::vector<T> value;
  explicit Held(const Value& given) {
    if (given.kind != 'L') throw c10::Error("a list is needed");
    for (const Value& each : given.list) value.push_back(Held<T>(each).Get());
  }
  std::vector<T>& Get() { return value; }
};
template <typename T>
struct Held<c10::ArrayRef<T>> {
  std::vector<T> values;
  c10::ArrayRef<T> value;
  explicit Held(const Value& given) {
    if (given.kind == 'L')
      for (const Value& each : given.list) values.push_back(Held<T>(each).Get());
    else
      values.push_back(Held<T>(given).Get());
  }
  c10::ArrayRef<T>& Get() { return value = c10::ArrayRef<T>(values); }
};
template <typename T>
struct Held<std::optional<T>> {
  std::optional<Held<T>> held;
  std::optional<T> value;
  explicit Held(const Value& given) {
    if (given.kind != 'n') held.emplace(given);
  }
  std::optional<T>& Get() {
    if (held) value = held->Get();
    return value;
  }
};

// Results and arguments of operators, as Python reads them.
class Writer {
 public:
  std::string text;
  void Add(const at::Tensor& tensor) {
    if (!tensor.defined()) return Add(nullptr);
    text += c10::str("T ", reinterpret_cast<uint64_t>(tensor.data_ptr()), ' ',
                     static_cast<int>(tensor.scalar_type()), ' ', tensor.dim(), ' ');
    for (int64_t size : tensor.sizes()) text += c10::str(size, ' ');
    for (int64_t stride : tensor.strides()) text += c10::str(stride, ' ');
  }
  void Add(std::nullptr_t) { text += "n "; }
  void Add(std::nullopt_t) { text += "n "; }
  void Add(c10::ScalarType type) { text += c10::str("d ", static_cast<int>(type), ' '); }
  void Add(const char* given) { Add(std::string(given)); }
  void Add(char* given) { Add(std::string(given)); }
  void Add(std::string_view given) { Add(std::string(given)); }
  void Add(const std::string& given) {
    text += "s x";
    for (unsigned char each : given) {
      char pair[3];
      std::snprintf(pair, sizeof(pair), "%02x", each);
      text += pair;
    }
    text += ' ';
  }
  void Add(const c10::Scalar& value) {
    if (value.isBoolean()) return Add(value.toBool());
    if (value.isIntegral()) return Add(value.toLong());
    Add(value.toDouble());
  }
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  void Add(T value) {
    char made[40];
    if constexpr (std::is_floating_point_v<T>) {
      std::snprintf(made, sizeof(made), "f %.17g ", static_cast<double>(value));
      text += made;
    } else {
      text += c10::str(std::is_same_v<T, bool> ? "b " : "i ", static_cast<int64_t>(value), ' ');
    }
  }
  template <typename T, std::enable_if_t<std::is_enum_v<T>, int> = 0>
  void Add(T value) {
    Add(static_cast<int64_t>(value));
  }
  template <typename T>
  void Add(const std::optional<T>& value) {
    if (value)
      Add(*value);
    else
      Add(nullptr);
  }
  template <typename T>
  void Add(const std::vector<T>& values) {
    text += c10::str("L ", values.size(), ' ');
    for (const auto& each : values) Add(static_cast<T>(each));
  }
  template <typename T>
  void Add(c10::ArrayRef<T> values) {
    Add(values.vec());
  }
  template <typename... T>
  void Add(const std::tuple<T...>& values) {
    text += c10::str("L ", sizeof...(T), ' ');
    std::apply([&](const T&... each) { (Add(each), ...); }, values);
  }
  template <typename A, typename B>
  void Add(const std::pair<A, B>& values) {
    Add(std::make_tuple(values.first, values.second));
  }
  template <typename T, size_t N>
  void Add(const std::array<T, N>& values) {
    Add(std::vector<T>(values.begin(), values.end()));
  }
  template <typename T, std::enable_if_t<!std::is_same_v<std::remove_cv_t<T>, char>, int> = 0>
  void Add(T* value) {
    if (value == nullptr) return Add(nullptr);
    Add(*value);
  }
};

inline uint64_t ask(const std::string& text, void* buffer = nullptr) {
  return cubecore_host(GLUE, reinterpret_cast<uint64_t>(buffer), 0, text.c_str(), nullptr, nullptr);
}

struct Function {
  std::string name;
  std::vector<std::string> words;  // names of parameters, where the binding says them
  std::vector<Value> defaults;     // of the last parameters
  std::function<std::string(std::vector<Value>&)> call;
  size_t count = 0;
};
inline std::vector<Function>& functions() {
  static std::vector<Function> all;
  return all;
}

template <typename... A, size_t... n>
std::tuple<Held<std::decay_t<A>>...> held_of(const std::vector<Value>& given,
                                             std::index_sequence<n...>) {
  return std::tuple<Held<std::decay_t<A>>...>(Held<std::decay_t<A>>(given[n])...);
}
template <typename R, typename... A>
std::function<std::string(std::vector<Value>&)> caller(std::function<R(A...)> body) {
  return [body](std::vector<Value>& given) {
    auto held = held_of<A...>(given, std::index_sequence_for<A...>{});
    Writer out;
    std::apply(
        [&](auto&... each) {
          if constexpr (std::is_void_v<R>) {
            body(static_cast<A>(each.Get())...);
            out.Add(nullptr);
          } else {
            out.Add(body(static_cast<A>(each.Get())...));
          }
        },
        held);
    return out.text;
  };
}
template <typename F>
struct Signature : Signature<decltype(&F::operator())> {};
template <typename R, typename... A>
struct Signature<R (*)(A...)> {
  using type = std::function<R(A...)>;
  static constexpr size_t count = sizeof...(A);
};
template <typename C, typename R, typename... A>
struct Signature<R (C::*)(A...) const> {
  using type = std::function<R(A...)>;
  static constexpr size_t count = sizeof...(A);
};

// The name of a parameter, with its default.
struct Argument {
  std::string name;
  bool has_default = false;
  Value given;
  explicit Argument(const char* word) : name(word) {}
  template <typename T>
  Argument operator=(const T& value) const {
    Writer out;
    out.Add(value);
    Argument made = *this;
    made.has_default = true;
    made.given = Reader(out.text).Next();
    return made;
  }
};

template <typename F, typename... E>
void bind(const char* name, F body, const E&... extra) {
  Function made;
  made.name = name;
  made.count = Signature<F>::count;
  const auto take = [&](const auto& each) {
    if constexpr (std::is_same_v<std::decay_t<decltype(each)>, Argument>) {
      made.words.push_back(each.name);
      if (each.has_default) made.defaults.push_back(each.given);
    }
  };
  (take(extra), ...);
  made.call = caller(typename Signature<F>::type(body));
  functions().push_back(std::move(made));
}

// Serves one call: its name and its arguments are asked for, its result is told.
inline int serve() {
  std::string asked(ask("size"), ' ');
  ask("call", asked.data());
  Reader reader(asked);
  const std::string name = reader.Word();
  for (Function& each : functions()) {
    if (each.name != name) continue;
    std::vector<Value> given;
    const int64_t plain = reader.Whole();
    for (int64_t n = 0; n < plain; ++n) given.push_back(reader.Next());
    given.resize(std::max(given.size(), each.count));
    const size_t first = each.count - std::min(each.defaults.size(), each.count);
    for (size_t n = std::max<size_t>(first, plain); n < each.count; ++n)
      given[n] = each.defaults[n - first];
    std::vector<bool> has(each.count, false);
    for (size_t n = 0; n < each.count; ++n) has[n] = n < static_cast<size_t>(plain) || n >= first;
    while (reader.More()) {
      const std::string word = reader.Word();
      Value value = reader.Next();
      for (size_t n = 0; n < each.words.size(); ++n)
        if (each.words[n] == word) given[n] = value, has[n] = true;
    }
    try {
      if (static_cast<size_t>(plain) > each.count)
        throw c10::Error(c10::str(name, " takes ", each.count, " arguments, got ", plain));
      for (size_t n = 0; n < each.count; ++n)
        if (!has[n]) throw c10::Error(c10::str(name, " takes ", each.count, " arguments"));
      ask("result " + each.call(given));
    } catch (const std::exception& error) {
      ask(c10::str("error ", error.what()));
    }
    return 0;
  }
  std::string known;
  for (const Function& each : functions()) known += ' ' + each.name;
  ask("unknown" + known);
  return 0;
}

}  // namespace cubecore::glue

namespace pybind11 {

using arg = ::cubecore::glue::Argument;
inline arg operator""_a(const char* name, size_t) { return arg(name); }
struct none {
  operator std::nullopt_t() const { return std::nullopt; }
};
struct module_ {
  const char* text = "";
  const char*& doc() { return text; }
  template <typename F, typename... E>
  module_& def(const char* name, F body, const E&... extra) {
    if constexpr (std::is_class_v<F>)
      ::cubecore::glue::bind(name, body, extra...);
    else
      ::cubecore::glue::bind(name, static_cast<std::decay_t<F>>(body), extra...);
    return *this;
  }
};
using module = module_;
namespace literals {
using ::pybind11::operator""_a;
}

}  // namespace pybind11
namespace py = pybind11;

namespace torch {

using arg = pybind11::arg;

// A library of operators: a schema alone binds nothing, nor does what infers shapes alone.
struct Library {
  explicit Library(const char* key = "") : infers_(std::string(key) == "Meta") {}
  Library& def(const char*) { return *this; }
  template <typename F>
  Library& def(const char* schema, F body) {
    return impl(schema, body);
  }
  template <typename F>
  Library& impl(const char* schema, F body) {
    if (infers_) return *this;
    const std::string name = std::string(schema).substr(0, std::string(schema).find('('));
    const size_t colons = name.rfind("::");
    const std::string plain = colons == std::string::npos ? name : name.substr(colons + 2);
    for (const auto& each : ::cubecore::glue::functions())
      if (each.name == plain) return *this;
    ::cubecore::glue::bind(plain.c_str(), body);
    return *this;
  }
  template <typename D, typename F>
  Library& impl(D, const char* name, F body) {
    return impl(name, body);
  }

 private:
  bool infers_;
};
using library = Library;

}  // namespace torch

#define CUBECORE_BINDS(ID, TYPE, M, ...)                        \
  static void cubecore_binds_##ID(TYPE&);                       \
  static const bool cubecore_bound_##ID = [] {                  \
    TYPE made{__VA_ARGS__};                                     \
    cubecore_binds_##ID(made);                                  \
    return true;                                                \
  }();                                                          \
  static void cubecore_binds_##ID([[maybe_unused]] TYPE& M)
#define PYBIND11_MODULE(NAME, M) CUBECORE_BINDS(module, ::pybind11::module_, M)
#define TORCH_LIBRARY(NAME, M) CUBECORE_BINDS(library_##NAME, ::torch::Library, M)
#define TORCH_LIBRARY_FRAGMENT(NAME, M) CUBECORE_BINDS(fragment_##NAME, ::torch::Library, M)
#define TORCH_LIBRARY_IMPL(NAME, KEY, M) \
  CUBECORE_BINDS(impl_##NAME##_##KEY, ::torch::Library, M, #KEY)
#define TORCH_FN(F) F
#define REGISTER_EXTENSION(NAME) static_assert(true)
