// The class that tilings of public operator repositories are made of: its steps in their order. No
// page has it; the meaning is the one that those op_hosts need.
#pragma once

#include "cubecore/op_host/base.h"

namespace Ops::Base {

struct CompileInfoCommon {
  uint64_t ubSize = 0;
  int64_t coreNum = 0, aivNum = 0, aicNum = 0, aivCoreNum = 0;
  int64_t numBlocks = 0, blockDim = 0, sysWorkspaceSize = 0;
  int32_t socVersion = 0;
};

struct AiCoreParams {
  uint64_t ubSize = 0, blockDim = 0, numBlocks = 0, aicNum = 0;
  uint64_t l1Size = 0, l0aSize = 0, l0bSize = 0, l0cSize = 0;
};

class TilingBaseClass {
 public:
  explicit TilingBaseClass(gert::TilingContext* context) : context_(context) {}
  virtual ~TilingBaseClass() = default;
  virtual void Reset(gert::TilingContext* context) { context_ = context; }

  // A class that is not capable leaves the operator to the next one.
  ge::graphStatus DoTiling() {
    using Step = ge::graphStatus (TilingBaseClass::*)();
    for (Step step : {&TilingBaseClass::GetShapeAttrsInfo, &TilingBaseClass::GetPlatformInfo})
      if (ge::graphStatus status = (this->*step)(); status != ge::GRAPH_SUCCESS) return status;
    if (!IsCapable()) return ge::GRAPH_PARAM_INVALID;
    for (Step step : {&TilingBaseClass::DoOpTiling, &TilingBaseClass::DoLibApiTiling,
                      &TilingBaseClass::GetWorkspaceSize, &TilingBaseClass::PostTiling})
      if (ge::graphStatus status = (this->*step)(); status != ge::GRAPH_SUCCESS) return status;
    context_->SetTilingKey(GetTilingKey());
    DumpTilingInfo();
    return ge::GRAPH_SUCCESS;
  }

 protected:
  virtual bool IsCapable() = 0;
  virtual ge::graphStatus GetPlatformInfo() = 0;
  virtual ge::graphStatus GetShapeAttrsInfo() = 0;
  virtual ge::graphStatus DoOpTiling() = 0;
  virtual ge::graphStatus DoLibApiTiling() = 0;
  virtual uint64_t GetTilingKey() const = 0;
  virtual ge::graphStatus GetWorkspaceSize() = 0;
  virtual ge::graphStatus PostTiling() = 0;
  virtual void DumpTilingInfo() {}

  gert::TilingContext* context_ = nullptr;
  AiCoreParams aicoreParams_;
  uint32_t blockDim_ = 0, numBlocks_ = 0;
  uint64_t workspaceSize_ = 0, tilingKey_ = 0;
};

}  // namespace Ops::Base
