// The steps that scenarios share; see sweep.h.
#include "sweep.h"

bool ft_start(ft_t* t) {
  if (!t->status) t->status = TF_NewStatus();
  if (!t->graph) t->graph = TF_NewGraph();
  return t->status && t->graph;
}

bool ft_tensor(TF_Tensor** slot, TF_DataType dtype, const int64_t* dims, int rank,
               const void* values) {
  size_t bytes = TF_DataTypeSize(dtype);
  for (int i = 0; i < rank; ++i) bytes *= (size_t)dims[i];
  TF_DeleteTensor(*slot);
  *slot = TF_AllocateTensor(dtype, dims, rank, bytes);
  if (*slot) memcpy(TF_TensorData(*slot), values, bytes);
  return *slot != NULL;
}

bool ft_scalar(TF_Tensor** slot, float value) { return ft_tensor(slot, TF_FLOAT, NULL, 0, &value); }

bool ft_finish(ft_t* t, TF_OperationDescription* desc, TF_Operation** slot) {
  *slot = desc ? TF_FinishOperation(desc, t->status) : NULL;
  return *slot != NULL;
}

bool ft_abandon(ft_t* t, TF_OperationDescription* desc) {
  TF_Code code = TF_GetCode(t->status);
  FT_CHECK(t, TF_FinishOperation(desc, t->status) == NULL);
  TF_SetStatus(t->status, code, "abandoned");
  return false;
}

bool ft_placeholder(ft_t* t, TF_Operation** slot, const char* name, TF_DataType dtype) {
  TF_OperationDescription* desc = TF_NewOperation(t->graph, "Placeholder", name);
  TF_SetAttrType(desc, "dtype", dtype);
  return ft_finish(t, desc, slot);
}

bool ft_const(ft_t* t, TF_Operation** slot, const char* name, TF_Tensor* value) {
  TF_OperationDescription* desc = TF_NewOperation(t->graph, "Const", name);
  if (!desc) return false;
  TF_SetAttrTensor(desc, "value", value, t->status);
  if (!ft_ok(t)) return ft_abandon(t, desc);
  TF_SetAttrType(desc, "dtype", TF_TensorType(value));
  return ft_finish(t, desc, slot);
}

bool ft_op(ft_t* t, TF_Operation** slot, const char* type, const char* name, TF_Operation* a,
           TF_Operation* b) {
  TF_OperationDescription* desc = TF_NewOperation(t->graph, type, name);
  if (a) TF_AddInput(desc, ft_out(a));
  if (b) TF_AddInput(desc, ft_out(b));
  return ft_finish(t, desc, slot);
}

bool ft_session(ft_t* t, int threads) {
  // ConfigProto: intra_op_parallelism_threads (2) and inter_op_parallelism_threads (5).
  const char config[] = {0x10, (char)threads, 0x28, (char)threads};
  if (!t->options) t->options = TF_NewSessionOptions();
  if (!t->options) return false;
  TF_SetConfig(t->options, config, sizeof config, t->status);
  if (!ft_ok(t)) return false;
  t->session = TF_NewSession(t->graph, t->options, t->status);
  return t->session != NULL;
}

bool ft_run(ft_t* t, TF_Operation* feed, TF_Tensor* value, TF_Operation* fetch, TF_Tensor** out) {
  TF_Output from = ft_out(feed), to = ft_out(fetch);
  TF_DeleteTensor(*out);
  *out = NULL;
  TF_SessionRun(t->session, NULL, &from, &value, feed ? 1 : 0, &to, out, 1, NULL, 0, NULL,
                t->status);
  FT_CHECK(t, ft_ok(t) == (*out != NULL));
  return ft_ok(t);
}

bool ft_target(ft_t* t, TF_Operation* target) {
  const TF_Operation* targets[] = {target};
  TF_SessionRun(t->session, NULL, NULL, NULL, 0, NULL, NULL, 0, targets, 1, NULL, t->status);
  return ft_ok(t);
}

bool ft_buffer(TF_Buffer** slot) {
  TF_DeleteBuffer(*slot);
  *slot = TF_NewBuffer();
  return *slot != NULL;
}
