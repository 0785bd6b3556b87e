// Functions for plug-in graph optimizers: not implemented yet.

#include "tensorflow/c/experimental/grappler/grappler.h"
#include "capi/unimplemented/unimplemented.h"

void TF_GetNodesToPreserveListSize(const TF_GrapplerItem* item, int* num_values,
                                   size_t* storage_size, TF_Status* status) {
  RN_CLEAR(num_values);
  RN_CLEAR(storage_size);
  RN_NOT_YET(status);
}
void TF_GetNodesToPreserveList(const TF_GrapplerItem* item, char** values, size_t* lengths,
                               int num_values, void* storage, size_t storage_size,
                               TF_Status* status) {
  RN_NOT_YET(status);
}
void TF_GetFetchNodesListSize(const TF_GrapplerItem* item, int* num_values, size_t* storage_size,
                              TF_Status* status) {
  RN_CLEAR(num_values);
  RN_CLEAR(storage_size);
  RN_NOT_YET(status);
}
void TF_GetFetchNodesList(const TF_GrapplerItem* item, char** values, size_t* lengths,
                          int num_values, void* storage, size_t storage_size, TF_Status* status) {
  RN_NOT_YET(status);
}
TF_GraphProperties* TF_NewGraphProperties(const TF_GrapplerItem* item) { return NULL; }
void TF_DeleteGraphProperties(TF_GraphProperties* graph_properties) {}
void TF_InferStatically(TF_GraphProperties* graph_properties, TF_Bool assume_valid_feeds,
                        TF_Bool aggressive_shape_inference, TF_Bool include_input_tensor_values,
                        TF_Bool include_output_tensor_values, TF_Status* s) {
  RN_NOT_YET(s);
}
void TF_GetInputPropertiesListSize(TF_GraphProperties* graph_properties, const char* name,
                                   int* num_values, TF_Status* status) {
  RN_CLEAR(num_values);
  RN_NOT_YET(status);
}
void TF_GetOutputPropertiesListSize(TF_GraphProperties* graph_properties, const char* name,
                                    int* num_values, TF_Status* status) {
  RN_CLEAR(num_values);
  RN_NOT_YET(status);
}
void TF_GetInputPropertiesList(TF_GraphProperties* graph_properties, const char* name,
                               TF_Buffer** properties, int num_values, TF_Status* status) {
  RN_NOT_YET(status);
}
void TF_GetOutputPropertiesList(TF_GraphProperties* graph_properties, const char* name,
                                TF_Buffer** properties, int num_values, TF_Status* status) {
  RN_NOT_YET(status);
}
TF_FunctionLibraryDefinition* TF_NewFunctionLibraryDefinition(const TF_Buffer* graph_buf,
                                                              TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
void TF_DeleteFunctionLibraryDefinition(TF_FunctionLibraryDefinition* fn_lib) {}
void TF_LookUpOpDef(TF_FunctionLibraryDefinition* fn_lib, const char* name, TF_Buffer* buf,
                    TF_Status* s) {
  RN_NOT_YET(s);
}
