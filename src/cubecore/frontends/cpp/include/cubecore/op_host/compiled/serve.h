// The main of an op_host: answers what Python asks of its operators. Included in one file of the
// library. Words: "describe", or a function's name, an operator, and what is given for it.
#pragma once

#include <cstdlib>

#include "cubecore/op_host/compiled/bodies.h"

namespace cubecore::op_host {

inline void Answer(const std::string& line) {
  cubecore_host(ANSWER, 0, 0, line.c_str(), nullptr, nullptr);
}

template <typename T>
std::string Joined(const std::vector<T>& values) {
  std::string text;
  for (T value : values)
    text += (text.empty() ? "" : ",") + std::to_string(static_cast<int>(value));
  return text;
}

inline void Describe(const char* role, const ops::OpParamDef& one, bool valued) {
  std::ostringstream out;
  out << role << '\t' << one.name << '\t' << static_cast<int>(one.kind) << '\t' << Joined(one.types)
      << '\t' << Joined(one.formats) << '\t' << one.free_types << '\t' << (one.valued || valued)
      << '\t' << one.type_of << '\t' << one.shape_of << '\t' << one.init << '\t' << one.computed;
  Answer(out.str());
}

// The parameters of a chip's own configuration, where it has some.
inline const ops::Named<ops::OpParamDef>& Chosen(const ops::OpDef& definition, bool inputs,
                                                 const std::string& chip) {
  for (const auto& [name, config] : definition.core.configs) {
    const auto& own = inputs ? config.inputs : config.outputs;
    if (name == chip && !own.all.empty()) return own;
  }
  return inputs ? definition.inputs : definition.outputs;
}

inline void Describe(const std::string& chip) {
  for (const auto& [type, each] : operators()) {
    std::ostringstream out;
    out << "operator\t" << type << '\t' << (each.definition != nullptr) << '\t'
        << static_cast<bool>(each.tiling) << '\t' << static_cast<bool>(each.infer_shape) << '\t'
        << static_cast<bool>(each.infer_type);
    Answer(out.str());
    if (each.definition == nullptr) continue;
    const ops::OpDef& definition = *each.definition;
    int32_t number = 0;
    for (const auto& input : Chosen(definition, true, chip).all) {
      bool valued = std::count(each.valued.begin(), each.valued.end(), number++) > 0;
      Describe("input", input, valued);
    }
    for (const auto& output : Chosen(definition, false, chip).all)
      Describe("output", output, false);
    for (const auto& one : definition.attributes.all)
      Answer("attribute\t" + one.name + '\t' + one.type + '\t' + (one.required ? "1" : "0") + '\t' +
             (one.has_value ? "1" : "0") + '\t' + one.value);
    for (const auto& [name, config] : definition.core.configs) {
      Answer("chip\t" + name);
      for (const auto& [key, value] : config.extended)
        if (name == chip) Answer("extended\t" + key + '\t' + value);
    }
  }
}

// Words of a request, read one by one.
class Words {
 public:
  Words(int count, char** words) : count_(count), words_(words) {}
  bool empty() const { return at_ >= count_; }
  std::string text() { return words_[at_++]; }
  int64_t number() { return std::strtoll(words_[at_++], nullptr, 10); }

 private:
  int count_, at_ = 0;
  char** words_;
};

template <typename T>
std::vector<char> Bytes(const T& value) {
  const char* first = reinterpret_cast<const char*>(&value);
  return {first, first + sizeof(T)};
}

// An attribute: its type, then the count of its values, then the values.
inline void TakeAttribute(gert::RuntimeAttrs& attributes, Words& words) {
  attributes.values.emplace_back();
  auto& value = attributes.values.back();
  std::string type = words.text();
  int64_t count = words.number();
  if (type == "none") return;
  if (type == "str") {
    std::string text = words.text();
    value.held.assign(text.begin(), text.end());
    value.held.push_back(0);
  } else if (type == "list_list_int") {
    value.held.resize(1);
    value.lists = std::make_unique<gert::ContinuousVectorVector>();
    for (int64_t row = 0; row < count; ++row) {
      value.lists->rows.emplace_back();
      auto& made = value.lists->rows.back();
      made.size = static_cast<size_t>(words.number());
      auto* held = new int64_t[made.size + 1];
      for (size_t n = 0; n < made.size; ++n) held[n] = words.number();
      made.data = held;
    }
  } else if (type.rfind("list_", 0) == 0) {
    bool real = type == "list_float", truth = type == "list_bool";
    for (int64_t n = 0; n < count; ++n) {
      std::vector<char> bytes =
          real    ? Bytes(static_cast<float>(std::strtod(words.text().c_str(), nullptr)))
          : truth ? Bytes(words.number() != 0)
                  : Bytes(words.number());
      value.held.insert(value.held.end(), bytes.begin(), bytes.end());
    }
    value.held.resize(value.held.size() + 8);
    value.list = std::make_unique<gert::TypedContinuousVector<int64_t>>();
    value.list->size = static_cast<size_t>(count);
    value.list->data = value.held.data();
  } else if (type == "float") {
    value.held = Bytes(static_cast<float>(std::strtod(words.text().c_str(), nullptr)));
  } else if (type == "bool") {
    value.held = Bytes(words.number() != 0);
  } else {
    value.held = Bytes(words.number());
  }
}

// A tensor: the index in the registration, its type, format, the address of its values, its
// extents.
inline void TakeTensor(std::vector<gert::Tensor>& tensors, std::vector<gert::detail::Slot>& slots,
                       Words& words) {
  size_t slot = static_cast<size_t>(words.number());
  if (slots.size() <= slot) slots.resize(slot + 1);
  gert::Tensor tensor;
  tensor.desc.type = static_cast<ge::DataType>(words.number());
  tensor.desc.format = gert::StorageFormat(static_cast<ge::Format>(words.number()));
  tensor.data = reinterpret_cast<const void*>(words.number());
  int64_t count = words.number();
  for (int64_t n = 0; n < count; ++n) {
    int64_t extent = words.number();
    tensor.shape.MutableOriginShape().AppendDim(extent);
    tensor.shape.MutableStorageShape().AppendDim(extent);
  }
  if (slots[slot].count == 0) slots[slot].first = tensors.size();
  ++slots[slot].count;
  tensors.push_back(tensor);
}

inline void TakeNode(gert::detail::Node& node, Words& words) {
  node.input_slots.resize(static_cast<size_t>(words.number()));
  node.output_slots.resize(static_cast<size_t>(words.number()));
  while (!words.empty()) {
    std::string what = words.text();
    if (what == "input")
      TakeTensor(node.inputs, node.input_slots, words);
    else if (what == "output")
      TakeTensor(node.outputs, node.output_slots, words);
    else
      TakeAttribute(node.attributes, words);
  }
}

inline void AnswerState(ge::graphStatus state) { Answer("state\t" + std::to_string(state)); }

inline void Tile(const Operator& own, gert::detail::Node& node) {
  std::shared_ptr<void> info;
  if (own.compile_info) {
    info = own.compile_info();
    gert::TilingParseContext context(node, info);
    ge::graphStatus state = own.parse(&context);
    if (state != ge::GRAPH_SUCCESS) return AnswerState(state);
  }
  auto context = std::make_unique<gert::TilingContext>(node);
  context->compile_info = info;
  ge::graphStatus state = own.tiling(context.get());
  put_all();
  AnswerState(state);
  Answer("key\t" + std::to_string(context->tiling_key));
  Answer("blocks\t" + std::to_string(context->block_dim));
  Answer("atomic\t" + std::to_string(context->atomic));
  for (size_t size : context->workspaces) Answer("workspace\t" + std::to_string(size));
  std::string bytes;
  for (size_t n = 0; n < context->raw.size; ++n) {
    static const char digits[] = "0123456789abcdef";
    bytes += digits[context->raw.bytes[n] >> 4];
    bytes += digits[context->raw.bytes[n] & 15];
  }
  Answer("data\t" + bytes);
}

inline void InferShapes(const Operator& own, gert::detail::Node& node) {
  gert::InferShapeContext context(node);
  AnswerState(own.infer_shape(&context));
  for (const auto& output : node.outputs) {
    std::string text = "shape\t";
    const gert::Shape& shape = output.shape.GetStorageShape();
    for (size_t n = 0; n < shape.GetDimNum(); ++n)
      text += (n == 0 ? "" : ",") + std::to_string(shape.GetDim(n));
    Answer(text);
  }
}

inline void InferTypes(const Operator& own, gert::detail::Node& node) {
  gert::InferDataTypeContext context(node);
  AnswerState(own.infer_type(&context));
  for (const auto& output : node.outputs)
    Answer("type\t" + std::to_string(static_cast<int>(output.desc.type)));
}

inline int Serve(int count, char** given) {
  Words words(count, given);
  std::string what = words.text(), name = words.text();
  if (what == "describe") {
    Describe(name);
    return 0;
  }
  const Operator& own = operators().at(name);
  gert::detail::Node node;
  node.name = node.type = name;
  TakeNode(node, words);
  if (what == "tile")
    Tile(own, node);
  else if (what == "shapes")
    InferShapes(own, node);
  else
    InferTypes(own, node);
  return 0;
}

}  // namespace cubecore::op_host

extern "C" int cubecore_op_host(int count, char** words) {
  return cubecore::op_host::Serve(count, words);
}

namespace Ops::Base {

// For files that declare it as the package does, whose own definition lies in another file.
__attribute__((weak)) const gert::Shape& EnsureNotScalar(const gert::Shape& shape) {
  static const gert::Shape one = {1};
  return shape.IsScalar() ? one : shape;
}

}  // namespace Ops::Base
