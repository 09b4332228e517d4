// Tiles as its attributes say: elements of a tile, of one vector call, and blocks.
#include "weigh_tiling.h"
#include "register/op_def_registry.h"
namespace optiling {
static ge::graphStatus Tile(gert::TilingContext* context) {
  int64_t total = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
  const gert::RuntimeAttrs* attrs = context->GetAttrs();
  int64_t blocks = *attrs->GetInt(0), tile = *attrs->GetInt(1), part = *attrs->GetInt(2);
  WeighTiling tiling;
  tiling.set_share(total / blocks);
  tiling.set_tile(tile);
  tiling.set_part(part);
  context->SetBlockDim(blocks);
  tiling.SaveToBuffer(context->GetRawTilingData()->GetData(),
                      context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
  return ge::GRAPH_SUCCESS;
}
}
namespace ge {
static graphStatus Shapes(gert::InferShapeContext* context) {
  *context->GetOutputShape(0) = *context->GetInputShape(0);
  return GRAPH_SUCCESS;
}
}
namespace ops {
class Weigh : public OpDef {
 public:
  explicit Weigh(const char* name) : OpDef(name) {
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Output("z").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Attr("blocks").AttrType(OPTIONAL).Int(40);
    this->Attr("tile").AttrType(OPTIONAL).Int(4096);
    this->Attr("part").AttrType(OPTIONAL).Int(4096);
    this->SetInferShape(ge::Shapes);
    this->AICore().SetTiling(optiling::Tile).AddConfig("ascend910b");
  }
};
OP_ADD(Weigh);
}
