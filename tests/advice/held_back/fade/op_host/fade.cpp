// Blocks, elements of a tile, and whether w is held over all tiles: as its attributes say.
#include "fade_tiling.h"
#include "register/op_def_registry.h"
namespace optiling {
static ge::graphStatus Tile(gert::TilingContext* context) {
  const gert::RuntimeAttrs* given = context->GetAttrs();
  FadeTiling tiling;
  tiling.set_share(context->GetInputShape(0)->GetStorageShape().GetShapeSize() / *given->GetInt(0));
  tiling.set_tile(*given->GetInt(1));
  tiling.set_held(*given->GetInt(2));
  context->SetBlockDim(*given->GetInt(0));
  auto raw = context->GetRawTilingData();
  tiling.SaveToBuffer(raw->GetData(), raw->GetCapacity());
  raw->SetDataSize(tiling.GetDataSize());
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
class Fade : public OpDef {
 public:
  explicit Fade(const char* name) : OpDef(name) {
    for (const char* input : {"x", "w"})
      this->Input(input).ParamType(REQUIRED).DataType({ge::DT_FLOAT16}).Format({ge::FORMAT_ND});
    this->Output("z").ParamType(REQUIRED).DataType({ge::DT_FLOAT16}).Format({ge::FORMAT_ND});
    this->Attr("blocks").AttrType(OPTIONAL).Int(40);
    this->Attr("tile").AttrType(OPTIONAL).Int(4096);
    this->Attr("held").AttrType(OPTIONAL).Int(1);
    this->SetInferShape(ge::Shapes);
    this->AICore().SetTiling(optiling::Tile).AddConfig("ascend910b");
  }
};
OP_ADD(Fade);
}
