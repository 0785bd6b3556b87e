// Functions (TF_Function) of the C API: not implemented yet.

#include "capi/unimplemented.h"
#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_experimental.h"

void TF_GraphCopyFunction(TF_Graph* g, const TF_Function* func, const TF_Function* grad,
                          TF_Status* status) {
  RN_NOT_YET(status);
}
void TF_GraphRemoveFunction(TF_Graph* g, const char* func_name, TF_Status* status) {
  RN_NOT_YET(status);
}
TF_Function* TF_GraphToFunction(const TF_Graph* fn_body, const char* fn_name,
                                unsigned char append_hash_to_fn_name, int num_opers,
                                const TF_Operation* const* opers, int ninputs,
                                const TF_Output* inputs, int noutputs, const TF_Output* outputs,
                                const char* const* output_names, const TF_FunctionOptions* opts,
                                const char* description, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
TF_Function* TF_GraphToFunctionWithControlOutputs(
    const TF_Graph* fn_body, const char* fn_name, unsigned char append_hash_to_fn_name,
    int num_opers, const TF_Operation* const* opers, int ninputs, const TF_Output* inputs,
    int noutputs, const TF_Output* outputs, const char* const* output_names, int ncontrol_outputs,
    const TF_Operation* const* control_outputs, const char* const* control_output_names,
    const TF_FunctionOptions* opts, const char* description, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
const char* TF_FunctionName(TF_Function* func) { return NULL; }
void TF_FunctionToFunctionDef(TF_Function* func, TF_Buffer* output_func_def, TF_Status* status) {
  RN_NOT_YET(status);
}
TF_Function* TF_FunctionImportFunctionDef(const void* proto, size_t proto_len, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
void TF_FunctionSetAttrValueProto(TF_Function* func, const char* attr_name, const void* proto,
                                  size_t proto_len, TF_Status* status) {
  RN_NOT_YET(status);
}
void TF_FunctionGetAttrValueProto(TF_Function* func, const char* attr_name,
                                  TF_Buffer* output_attr_value, TF_Status* status) {
  RN_NOT_YET(status);
}
char* TF_FunctionDebugString(TF_Function* func, size_t* len) {
  RN_CLEAR(len);
  return NULL;
}
void TF_DeleteFunction(TF_Function* func) {}
