// Contexts of tiling and inference functions. Pages (namespace gert): KernelContext,
// ExtendedKernelContext, ComputeNodeInfo, TilingContext, TilingData, TilingParseContext,
// InferShapeContext, InferDataTypeContext.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "cubecore/host/device.h"
#include "cubecore/op_host/attributes.h"
#include "cubecore/op_host/shapes.h"

namespace fe {

enum class LocalMemType { L0_A, L0_B, L0_C, L1, L2, UB, HBM, RESERVED };

// The chip; more is asked through PlatformAscendC. Page: PlatFormInfos.
class PlatFormInfos {
 public:
  uint32_t GetCoreNum() const { return static_cast<uint32_t>(Asked(1)); }
  uint32_t GetCoreNumByType(const std::string& type) const {
    return static_cast<uint32_t>(Asked(type == "AiCore" ? 0 : 1));
  }
  // Not provided: refuses where it is called.
  bool GetPlatformRes(const std::string& label, const std::string& key, std::string& value) const;
  void GetLocalMemSize(const LocalMemType& type, uint64_t& size) const {
    size = Asked(2 + static_cast<uint64_t>(type));
  }

 private:
  static uint64_t Asked(uint64_t fact) {
    return cubecore_host(cubecore::CHIP, fact, 0, nullptr, nullptr, nullptr);
  }
};

// The facts of a chip as fields, and who is asked for them. Public op_hosts read these; no page has
// them.
struct PlatformInfo {
  struct {
    std::string short_soc_version = ::cubecore::soc_family(), aic_version, ccec_aic_version;
  } str_info;
  struct {
    uint32_t ai_core_cnt = 0, vector_core_cnt = 0, ai_cpu_cnt = 0;
    uint64_t l2_size = 0, memory_size = 0;
  } soc_info;
  struct {
    uint64_t l0_a_size = 0, l0_b_size = 0, l0_c_size = 0, l1_size = 0, ub_size = 0;
  } ai_core_spec;
  std::map<std::string, std::vector<std::string>> ai_core_intrinsic_dtype_map;
};
struct OptionalInfo {
  std::string soc_version, core_type;
  uint32_t ai_core_num = 0;
};
using OptionalInfos = OptionalInfo;

class PlatformInfoManager {
 public:
  static PlatformInfoManager& Instance() {
    static PlatformInfoManager own;
    return own;
  }
  static PlatformInfoManager& GeInstance() { return Instance(); }
  uint32_t InitializePlatformInfo() { return 0; }
  uint32_t GetPlatformInfoWithOutSocVersion(PlatformInfo& platform, OptionalInfo&) {
    PlatFormInfos chip;
    platform.soc_info.ai_core_cnt = chip.GetCoreNumByType("AiCore");
    platform.soc_info.vector_core_cnt = chip.GetCoreNumByType("VectorCore");
    chip.GetLocalMemSize(LocalMemType::L0_A, platform.ai_core_spec.l0_a_size);
    chip.GetLocalMemSize(LocalMemType::L0_B, platform.ai_core_spec.l0_b_size);
    chip.GetLocalMemSize(LocalMemType::L0_C, platform.ai_core_spec.l0_c_size);
    chip.GetLocalMemSize(LocalMemType::L1, platform.ai_core_spec.l1_size);
    chip.GetLocalMemSize(LocalMemType::UB, platform.ai_core_spec.ub_size);
    chip.GetLocalMemSize(LocalMemType::L2, platform.soc_info.l2_size);
    return 0;
  }
  uint32_t GetPlatformInfo(const std::string&, PlatformInfo& platform, OptionalInfo& optional) {
    return GetPlatformInfoWithOutSocVersion(platform, optional);
  }
};

}  // namespace fe

namespace gert {

// The raw bytes of tiling data.
class TilingData {
 public:
  size_t GetCapacity() const { return bytes.size(); }
  size_t GetDataSize() const { return size; }
  void SetDataSize(size_t wanted) {
    if (wanted > bytes.size()) cubecore::refused("tiling data is larger than its buffer");
    size = wanted;
  }
  void* GetData() { return bytes.data(); }
  const void* GetData() const { return bytes.data(); }
  template <typename T>
  ge::graphStatus Append(const T& value) {
    return Append(&value, 1);
  }
  template <typename T>
  ge::graphStatus Append(const T* values, size_t count) {
    if (size + sizeof(T) * count > bytes.size()) return ge::GRAPH_FAILED;
    std::memcpy(bytes.data() + size, values, sizeof(T) * count);
    size += sizeof(T) * count;
    return ge::GRAPH_SUCCESS;
  }

  std::vector<uint8_t> bytes;
  size_t size = 0;
};

namespace detail {

// One input or output of the operator's registration: the tensors that were given for it.
struct Slot {
  size_t first = 0, count = 0;
};

struct Node {
  std::string name, type;
  std::vector<Tensor> inputs, outputs;
  std::vector<Slot> input_slots, output_slots;
  RuntimeAttrs attributes;
};

// A tensor by its number, null beyond the last; `kind` is that of cubecore::absent.
inline Tensor* Within(std::vector<Tensor>& tensors, size_t index, uint64_t kind) {
  if (index < tensors.size()) return &tensors[index];
  cubecore::absent(kind, index);
  return nullptr;
}

}  // namespace detail

class AnchorInstanceInfo {
 public:
  AnchorInstanceInfo(size_t first, size_t count) : first_(first), count_(count) {}
  size_t GetInstanceNum() const { return count_; }
  size_t GetInstanceStart() const { return first_; }

 private:
  size_t first_, count_;
};

class ComputeNodeInfo {
 public:
  explicit ComputeNodeInfo(detail::Node& node) : node_(node) {
    for (const auto& slot : node.input_slots) inputs_.emplace_back(slot.first, slot.count);
    for (const auto& slot : node.output_slots) outputs_.emplace_back(slot.first, slot.count);
  }
  const char* GetNodeType() const { return node_.type.c_str(); }
  const char* GetNodeName() const { return node_.name.c_str(); }
  size_t GetIrInputsNum() const { return node_.input_slots.size(); }
  size_t GetIrOutputsNum() const { return node_.output_slots.size(); }
  size_t GetInputsNum() const { return node_.inputs.size(); }
  size_t GetOutputsNum() const { return node_.outputs.size(); }
  const AnchorInstanceInfo* GetInputInstanceInfo(size_t index) const {
    return index < inputs_.size() ? &inputs_[index] : nullptr;
  }
  const AnchorInstanceInfo* GetOutputInstanceInfo(size_t index) const {
    return index < outputs_.size() ? &outputs_[index] : nullptr;
  }
  const CompileTimeTensorDesc* GetInputTdInfo(size_t index) const {
    return index < node_.inputs.size() ? &node_.inputs[index].desc : nullptr;
  }
  const CompileTimeTensorDesc* GetOutputTdInfo(size_t index) const {
    return index < node_.outputs.size() ? &node_.outputs[index].desc : nullptr;
  }
  const RuntimeAttrs* GetAttrs() const { return &node_.attributes; }

 private:
  detail::Node& node_;
  std::vector<AnchorInstanceInfo> inputs_, outputs_;
};

// What every context tells of the operator: its names, types, formats and attributes.
class ExtendedKernelContext {
 public:
  explicit ExtendedKernelContext(detail::Node& node) : node_(node), info_(node) {}
  const CompileTimeTensorDesc* GetInputDesc(size_t index) const {
    return info_.GetInputTdInfo(index);
  }
  const CompileTimeTensorDesc* GetOutputDesc(size_t index) const {
    return info_.GetOutputTdInfo(index);
  }
  const CompileTimeTensorDesc* GetRequiredInputDesc(size_t index) const {
    return Desc(InputAt(index, 0));
  }
  const CompileTimeTensorDesc* GetOptionalInputDesc(size_t index) const {
    return Desc(InputAt(index, 0));
  }
  const CompileTimeTensorDesc* GetDynamicInputDesc(size_t index, size_t relative) const {
    return Desc(InputAt(index, relative));
  }
  const AnchorInstanceInfo* GetIrInputInstanceInfo(size_t index) const {
    return info_.GetInputInstanceInfo(index);
  }
  const AnchorInstanceInfo* GetIrOutputInstanceInfo(size_t index) const {
    return info_.GetOutputInstanceInfo(index);
  }
  size_t GetComputeNodeInputNum() const { return node_.inputs.size(); }
  size_t GetComputeNodeOutputNum() const { return node_.outputs.size(); }
  const RuntimeAttrs* GetAttrs() const { return &node_.attributes; }
  const char* GetNodeType() const { return node_.type.c_str(); }
  const char* GetNodeName() const { return node_.name.c_str(); }
  const ComputeNodeInfo* GetComputeNodeInfo() const { return &info_; }

 protected:
  // A tensor of an input of the registration; null if none was given.
  Tensor* InputAt(size_t index, size_t relative) const {
    if (index < node_.input_slots.size()) {
      const detail::Slot& slot = node_.input_slots[index];
      if (relative < slot.count) return &node_.inputs[slot.first + relative];
    }
    cubecore::absent(1, index);
    return nullptr;
  }
  static const CompileTimeTensorDesc* Desc(const Tensor* tensor) {
    return tensor == nullptr ? nullptr : &tensor->desc;
  }
  static const StorageShape* ShapeOf(const Tensor* tensor) {
    return tensor == nullptr ? nullptr : &tensor->shape;
  }
  static const Shape* PlainShape(const Tensor* tensor) {
    return tensor == nullptr ? nullptr : &tensor->shape.GetStorageShape();
  }

  detail::Node& node_;
  ComputeNodeInfo info_;
};

using KernelContext = ExtendedKernelContext;

class TilingContext : public ExtendedKernelContext {
 public:
  explicit TilingContext(detail::Node& node) : ExtendedKernelContext(node) {
    raw.bytes.resize(MOST_TILING);
  }
  const StorageShape* GetInputShape(size_t index) const {
    return ShapeOf(detail::Within(node_.inputs, index, 1));
  }
  const StorageShape* GetOutputShape(size_t index) const {
    return ShapeOf(detail::Within(node_.outputs, index, 2));
  }
  // Arrays of a call are whole: none is a view of another one.
  const Stride* GetInputStride(size_t) const { return nullptr; }
  const Stride* GetOutputStride(size_t) const { return nullptr; }
  bool InputIsView(size_t) const { return false; }
  bool OutputIsView(size_t) const { return false; }
  const StorageShape* GetRequiredInputShape(size_t index) const {
    return ShapeOf(InputAt(index, 0));
  }
  const StorageShape* GetOptionalInputShape(size_t index) const {
    return ShapeOf(InputAt(index, 0));
  }
  const StorageShape* GetDynamicInputShape(size_t index, size_t relative) const {
    return ShapeOf(InputAt(index, relative));
  }
  const Tensor* GetInputTensor(size_t index) const {
    return detail::Within(node_.inputs, index, 1);
  }
  const Tensor* GetRequiredInputTensor(size_t index) const { return InputAt(index, 0); }
  const Tensor* GetOptionalInputTensor(size_t index) const { return InputAt(index, 0); }
  const Tensor* GetDynamicInputTensor(size_t index, size_t relative) const {
    return InputAt(index, relative);
  }

  ge::graphStatus SetTilingKey(uint64_t key) { return Set(tiling_key, key); }
  uint64_t GetTilingKey() const { return tiling_key; }
  ge::graphStatus SetBlockDim(uint32_t dim) { return Set(block_dim, dim); }
  uint32_t GetBlockDim() const { return block_dim; }
  ge::graphStatus SetNumBlocks(uint32_t count) { return Set(block_dim, count); }
  uint32_t GetNumBlocks() const { return block_dim; }
  ge::graphStatus SetSimdNumBlocks(uint32_t count) { return Set(block_dim, count); }
  uint32_t GetSimdNumBlocks() const { return block_dim; }
  ge::graphStatus SetTilingCond(int32_t value) { return Set(condition, value); }
  int32_t GetTilingCond() const { return condition; }
  ge::graphStatus SetNeedAtomic(bool value) { return Set(atomic, value); }
  bool NeedAtomic() const { return atomic; }
  ge::graphStatus SetScheduleMode(uint32_t value) { return Set(schedule, value); }
  uint32_t GetScheduleMode() const { return schedule; }
  ge::graphStatus SetLocalMemorySize(uint32_t value) { return Set(local_memory, value); }
  uint32_t GetLocalMemorySize() const { return local_memory; }
  ge::graphStatus SetAicpuBlockDim(uint32_t) { return ge::GRAPH_SUCCESS; }
  int32_t GetDeterministic() const { return 0; }
  int32_t GetDeterministicLevel() const { return 0; }

  TilingData* GetRawTilingData() { return &raw; }
  const TilingData* GetRawTilingData() const { return &raw; }
  template <typename T>
  T* GetTilingData() {
    if (sizeof(T) > raw.bytes.size()) return nullptr;
    raw.size = sizeof(T);
    return reinterpret_cast<T*>(raw.bytes.data());
  }
  size_t* GetWorkspaceSizes(size_t count) {
    workspaces.resize(std::max(count, workspaces.size()));
    return workspaces.data();
  }
  size_t GetWorkspaceNum() const { return workspaces.size(); }
  fe::PlatFormInfos* GetPlatformInfo() const {
    static char chip;
    return reinterpret_cast<fe::PlatFormInfos*>(&chip);
  }
  const void* GetCompileInfo() const { return compile_info.get(); }
  template <typename T>
  const T* GetCompileInfo() const {
    return static_cast<const T*>(compile_info.get());
  }

  static constexpr size_t MOST_TILING = 1 << 16;
  TilingData raw;
  uint64_t tiling_key = 0;
  uint32_t block_dim = 1, schedule = 0, local_memory = 0;
  int32_t condition = 0;
  bool atomic = false;
  std::vector<size_t> workspaces;
  std::shared_ptr<void> compile_info;

 private:
  template <typename T, typename U>
  static ge::graphStatus Set(T& to, U value) {
    to = value;
    return ge::GRAPH_SUCCESS;
  }
};

// What an operator learns once from its chip, before its tiling.
class TilingParseContext : public ExtendedKernelContext {
 public:
  TilingParseContext(detail::Node& node, std::shared_ptr<void> info)
      : ExtendedKernelContext(node), compiled_(std::move(info)) {}
  template <typename T>
  T* GetCompiledInfo() const {
    return static_cast<T*>(compiled_.get());
  }
  const char* GetCompiledJson() const { return "{}"; }
  fe::PlatFormInfos* GetPlatformInfo() const {
    static char chip;
    return reinterpret_cast<fe::PlatFormInfos*>(&chip);
  }

 private:
  std::shared_ptr<void> compiled_;
};

class InferShapeContext : public ExtendedKernelContext {
 public:
  using ExtendedKernelContext::ExtendedKernelContext;
  const Shape* GetInputShape(size_t index) const {
    return PlainShape(detail::Within(node_.inputs, index, 1));
  }
  const Shape* GetRequiredInputShape(size_t index) const { return PlainShape(InputAt(index, 0)); }
  const Shape* GetOptionalInputShape(size_t index) const { return PlainShape(InputAt(index, 0)); }
  const Shape* GetDynamicInputShape(size_t index, size_t relative) const {
    return PlainShape(InputAt(index, relative));
  }
  const Tensor* GetInputTensor(size_t index) const {
    return detail::Within(node_.inputs, index, 1);
  }
  const Tensor* GetRequiredInputTensor(size_t index) const { return InputAt(index, 0); }
  const Tensor* GetOptionalInputTensor(size_t index) const { return InputAt(index, 0); }
  const Tensor* GetDynamicInputTensor(size_t index, size_t relative) const {
    return InputAt(index, relative);
  }
  Shape* GetOutputShape(size_t index) const {
    Tensor* tensor = detail::Within(node_.outputs, index, 2);
    return tensor == nullptr ? nullptr : &tensor->shape.MutableStorageShape();
  }
};

// Ranges of shapes are accepted and not used: none is ever asked for.
class InferShapeRangeContext : public ExtendedKernelContext {
 public:
  using ExtendedKernelContext::ExtendedKernelContext;
  const Range<Shape>* GetInputShapeRange(size_t) const { return nullptr; }
  const Range<Tensor>* GetInputTensorRange(size_t) const { return nullptr; }
  Range<Shape>* GetOutputShapeRange(size_t) const { return nullptr; }
};

class InferDataTypeContext : public ExtendedKernelContext {
 public:
  using ExtendedKernelContext::ExtendedKernelContext;
  ge::DataType GetInputDataType(size_t index) const {
    return TypeOf(detail::Within(node_.inputs, index, 1));
  }
  ge::DataType GetRequiredInputDataType(size_t index) const { return TypeOf(InputAt(index, 0)); }
  ge::DataType GetOptionalInputDataType(size_t index) const { return TypeOf(InputAt(index, 0)); }
  ge::DataType GetDynamicInputDataType(size_t index, size_t relative) const {
    return TypeOf(InputAt(index, relative));
  }
  ge::DataType GetOutputDataType(size_t index) const {
    return TypeOf(detail::Within(node_.outputs, index, 2));
  }
  ge::graphStatus SetOutputDataType(size_t index, ge::DataType type) {
    Tensor* tensor = detail::Within(node_.outputs, index, 2);
    if (tensor == nullptr) return ge::GRAPH_FAILED;
    tensor->desc.type = type;
    return ge::GRAPH_SUCCESS;
  }

 private:
  static ge::DataType TypeOf(const Tensor* tensor) {
    return tensor == nullptr ? ge::DT_UNDEFINED : tensor->desc.type;
  }
};

}  // namespace gert
