// Bodies of functions of definition.h, registry.h and tilingdata_base.h. Included in one file of the
// library.
#pragma once

#include <map>

#include "cubecore/op_host/registry.h"

template class std::vector<ge::DataType>;
template class std::vector<ge::Format>;

namespace ops {

template <typename T>
T& Named<T>::operator()(const char* name) {
  for (T& each : all)
    if (each.name == name) return each;
  all.emplace_back(name);
  return all.back();
}
template class Named<OpParamDef>;
template class Named<OpAttrDef>;

OpAICoreConfig::OpAICoreConfig() = default;
OpAICoreConfig::OpAICoreConfig(const OpAICoreConfig&) = default;
OpAICoreConfig::~OpAICoreConfig() = default;
OpAICoreConfig& OpAICoreConfig::ExtendCfgInfo(const char* key, const char* value) {
  extended[key] = value;
  return *this;
}

OpAICoreDef& OpAICoreDef::AddConfig(const char* chip) {
  OpAICoreConfig config;
  return AddConfig(chip, config);
}
OpAICoreDef& OpAICoreDef::AddConfig(const char* chip, OpAICoreConfig& config) {
  configs.emplace_back(chip, config);
  return *this;
}

OpDef::OpDef(const char* type) : type(type) {}
OpDef::~OpDef() = default;

}  // namespace ops

namespace cubecore {

inline std::map<const void*, std::pair<void*, size_t>>& elsewhere() {
  static std::map<const void*, std::pair<void*, size_t>> places;
  return places;
}
void set_elsewhere(const void* fields, void* to, size_t bytes) {
  elsewhere()[fields] = {to, bytes};
}
void put(const void* fields) {
  auto found = elsewhere().find(fields);
  if (found == elsewhere().end()) return;
  std::memcpy(found->second.first, fields, found->second.second);
  elsewhere().erase(found);
}
inline void put_all() {
  while (!elsewhere().empty()) put(elsewhere().begin()->first);
}

}  // namespace cubecore

namespace cubecore::op_host {

inline std::map<std::string, Operator>& operators() {
  static std::map<std::string, Operator> all;
  return all;
}
Operator& operator_of(const char* type) { return operators()[type]; }

void add(const char* type, const ops::OpDef* definition) {
  Operator& own = operator_of(type);
  if (definition->core.tiling != nullptr) put(own.tiling, definition->core.tiling);
  if (definition->infer_shape != nullptr) put(own.infer_shape, definition->infer_shape);
  if (definition->infer_type != nullptr) put(own.infer_type, definition->infer_type);
  put(own.definition, definition);
}

}  // namespace cubecore::op_host
