// The registered ops as OpDefs.
#include "framework/op_proto.h"

#include "capi/internal.h"
#include "graph/build.h"
#include "tensorflow/c/c_api_experimental.h"

TF_Buffer* TF_GetAllOpList(void) {
  rn_strbuf_t buf;
  TF_Buffer* list = NULL;
  rn_strbuf_init(&buf, rn_capi_allocator());
  rn_status_t status = rn_op_write_list(&buf);
  if (rn_ok(status)) status = rn_capi_buffer_make(&buf, &list);
  rn_strbuf_clear(&buf);
  if (!rn_ok(status)) rn_status_free(status);
  return list;
}

void TF_GraphGetOpDef(TF_Graph* graph, const char* op_name, TF_Buffer* output_op_def,
                      TF_Status* status) {
  if (!graph || !op_name) {
    rn_capi_set(status, RN_CAPI_NULL(graph ? "op_name" : "graph"));
    return;
  }
  rn_graph_t* g = rn_capi_graph(graph);
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_capi_allocator());
  rn_mutex_lock(&g->mutex);
  const rn_op_def_t* op = rn_graph_find_op_locked(g, rn_str(op_name));
  if (op) rn_op_write_proto(&buf, op);
  rn_mutex_unlock(&g->mutex);
  rn_status_t outcome = op ? rn_capi_buffer_take(&buf, output_op_def)
                           : rn_op_not_registered(RN_CODE_NOT_FOUND, rn_str(op_name));
  rn_strbuf_clear(&buf);
  rn_capi_set(status, outcome);
}

static const rn_op_def_t* find(const char* name, const char* function, TF_Status* status) {
  const rn_op_def_t* op = name ? rn_op_find(rn_str(name)) : NULL;
  rn_status_t outcome = RN_OK;
  if (!name) {
    outcome = rn_capi_null(function, "op_name");
  } else if (!op) {
    outcome = rn_op_not_registered(RN_CODE_NOT_FOUND, rn_str(name));
  }
  rn_capi_set(status, outcome);
  return op;
}

int TF_OpIsStateful(const char* op_type, TF_Status* status) {
  const rn_op_def_t* op = find(op_type, __func__, status);
  return op && (op->flags & RN_OP_STATEFUL) != 0;
}

const char* TF_GetNumberAttrForOpListInput(const char* op_name, int input_index,
                                           TF_Status* status) {
  const rn_op_def_t* op = find(op_name, __func__, status);
  if (!op) return NULL;
  if (input_index < 0 || input_index >= op->input_count) {
    rn_capi_set(status, rn_invalid_argument("%d out of range for %s", input_index, op_name));
    return NULL;
  }
  int number_attr = op->inputs[input_index].number_attr;
  if (number_attr < 0) {
    rn_capi_set(status, rn_not_found("%s does not have number_attr() defined.", op_name));
    return NULL;
  }
  return op->attrs[number_attr].name;
}
