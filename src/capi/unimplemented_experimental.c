// The rest of c_api_experimental.h that is not implemented yet.

#include "capi/unimplemented.h"
#include "tensorflow/c/c_api_experimental.h"

TF_Tensor* TF_DequeueNamedTensor(TF_Session* session, int tensor_id, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
void TF_EnqueueNamedTensor(TF_Session* session, int tensor_id, TF_Tensor* tensor,
                           TF_Status* status) {
  RN_NOT_YET(status);
}
TF_Buffer* TFE_GetServerDef(const char* text_proto, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
int TF_PickUnusedPortOrDie(void) { return 0; }

TF_AttrBuilder* TF_NewAttrBuilder(const char* op_name) { return NULL; }
void TF_DeleteAttrBuilder(TF_AttrBuilder* builder) {}
void TF_AttrBuilderSetType(TF_AttrBuilder* builder, const char* attr_name, TF_DataType value) {}
void TF_AttrBuilderSetTypeList(TF_AttrBuilder* builder, const char* attr_name,
                               const TF_DataType* values, int num_values) {}
void TF_AttrBuilderCheckCanRunOnDevice(TF_AttrBuilder* builder, const char* device_type,
                                       TF_Status* status) {
  RN_NOT_YET(status);
}

void TFE_EnableCollectiveOps(TFE_Context* ctx, const void* proto, size_t proto_len,
                             TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_AbortCollectiveOps(TFE_Context* ctx, TF_Status* status) { RN_NOT_YET(status); }
void TFE_CollectiveOpsCheckPeerHealth(TFE_Context* ctx, const char* task, int64_t timeout_in_ms,
                                      TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_InferShapes(TFE_Op* op, TF_ShapeAndTypeList* input_shapes, TF_Tensor** input_tensors,
                     TF_ShapeAndTypeList* input_tensor_as_shapes,
                     TF_ShapeAndTypeList** input_resource_shapes_and_types,
                     TF_ShapeAndTypeList** output_shapes,
                     TF_ShapeAndTypeList*** output_resource_shapes_and_types, TF_Status* status) {
  RN_CLEAR(output_shapes);
  RN_CLEAR(output_resource_shapes_and_types);
  RN_NOT_YET(status);
}

TF_ShapeAndTypeList* TF_NewShapeAndTypeList(int num_shapes) { return NULL; }
void TF_ShapeAndTypeListSetShape(TF_ShapeAndTypeList* shape_list, int index, const int64_t* dims,
                                 int num_dims) {}
void TF_ShapeAndTypeListSetUnknownShape(TF_ShapeAndTypeList* shape_list, int index) {}
void TF_ShapeAndTypeListSetDtype(TF_ShapeAndTypeList* shape_list, int index, TF_DataType dtype) {}
void TF_DeleteShapeAndTypeList(TF_ShapeAndTypeList* shape_list) {}
void TF_DeleteShapeAndTypeListArray(TF_ShapeAndTypeList** shape_list_array, int num_items) {}
