// Parts of c_api_experimental.h: whether an op has a kernel for given types, clusters from text,
// free ports.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "capi/internal.h"
#include "framework/kernel.h"
#include "proto/tensorflow_server.pb.h"
#include "tensorflow/c/c_api_experimental.h"
#include "wire/encode.h"
#include "wire/text.h"

// Types for the attributes of an op, by place in its definition.
struct TF_AttrBuilder {
  char* name;             // Owned
  const rn_op_def_t* op;  // NULL if there is no op of this name
  rn_arena_t arena;
  rn_attr_value_t* attrs;
  rn_status_t status;  // the first failure, reported by the query
};

static rn_status_t fill(TF_AttrBuilder* builder) {
  const rn_op_def_t* op = builder->op;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&builder->arena, (size_t)op->attr_count, &builder->attrs));
  for (int i = 0; i < op->attr_count; ++i)
    if (op->attrs[i].has_default) builder->attrs[i] = op->attrs[i].default_value;
  return RN_OK;
}

TF_AttrBuilder* TF_NewAttrBuilder(const char* op_name) {
  TF_AttrBuilder* builder = NULL;
  if (!op_name) return NULL;
  rn_status_t status = RN_NEW(rn_capi_allocator(), &builder);
  if (rn_ok(status)) {
    rn_arena_init(&builder->arena, rn_capi_allocator());
    status = rn_str_dup(rn_capi_allocator(), rn_str(op_name), &builder->name);
  }
  if (rn_ok(status)) {
    builder->op = rn_op_find(rn_str(op_name));
    if (builder->op) status = fill(builder);
  }
  if (rn_ok(status)) return builder;
  rn_status_free(status);
  TF_DeleteAttrBuilder(builder);
  return NULL;
}

void TF_DeleteAttrBuilder(TF_AttrBuilder* builder) {
  if (!builder) return;
  if (builder->name) rn_free(rn_capi_allocator(), builder->name, strlen(builder->name) + 1);
  rn_arena_clear(&builder->arena);
  rn_status_free(builder->status);
  RN_FREE(rn_capi_allocator(), builder);
}

// The slot for attribute |name|; NULL if the op does not have it.
static rn_attr_value_t* slot_of(TF_AttrBuilder* builder, const char* name) {
  int index = builder && builder->op && name ? rn_op_attr_index(builder->op, rn_str(name)) : -1;
  return index < 0 ? NULL : &builder->attrs[index];
}

void TF_AttrBuilderSetType(TF_AttrBuilder* builder, const char* attr_name, TF_DataType value) {
  rn_attr_value_t* slot = slot_of(builder, attr_name);
  if (slot) *slot = (rn_attr_value_t){.kind = RN_ATTR_TYPE, .type = (rn_dtype_t)value};
}

void TF_AttrBuilderSetTypeList(TF_AttrBuilder* builder, const char* attr_name,
                               const TF_DataType* values, int num_values) {
  rn_attr_value_t* slot = slot_of(builder, attr_name);
  if (!slot || num_values < 0 || (num_values > 0 && !values)) return;
  rn_dtype_t* types = NULL;
  rn_status_t status = RN_ARENA_ARRAY(&builder->arena, (size_t)num_values, &types);
  if (!rn_ok(status)) {
    builder->status = rn_status_join(builder->status, status);
    return;
  }
  for (int i = 0; i < num_values; ++i) types[i] = (rn_dtype_t)values[i];
  *slot = (rn_attr_value_t){
      .kind = RN_ATTR_TYPE, .is_list = true, .count = num_values, .list_type = types};
}

static rn_status_t can_run(const TF_AttrBuilder* builder, const char* device_type) {
  if (!builder) return rn_capi_null("TF_AttrBuilderCheckCanRunOnDevice", "builder");
  if (!device_type) return rn_capi_null("TF_AttrBuilderCheckCanRunOnDevice", "device_type");
  if (!rn_ok(builder->status)) return rn_status_copy(builder->status);
  if (builder->op && rn_kernel_find(builder->op, builder->attrs, NULL, device_type)) return RN_OK;
  return rn_not_found("No registered '%s' OpKernel for %s devices compatible with node",
                      builder->name, device_type);
}

void TF_AttrBuilderCheckCanRunOnDevice(TF_AttrBuilder* builder, const char* device_type,
                                       TF_Status* status) {
  rn_capi_set(status, can_run(builder, device_type));
}

// --- Clusters

static rn_status_t server_def(const char* text, rn_arena_t* arena, rn_strbuf_t* out) {
  if (!text) return rn_capi_null("TFE_GetServerDef", "text_proto");
  void* def = NULL;
  rn_status_t status = rn_pb_parse(&rn_pb_ServerDef_desc, rn_str(text), NULL, arena, &def);
  if (rn_status_code(status) == RN_CODE_INVALID_ARGUMENT) {
    rn_status_free(status);
    return rn_internal("Invalid text proto for ServerDef: %s", text);
  }
  RN_RETURN_IF_ERROR(status);
  return rn_pb_encode(&rn_pb_ServerDef_desc, def, NULL, out);
}

TF_Buffer* TFE_GetServerDef(const char* text_proto, TF_Status* status) {
  rn_arena_t arena;
  rn_strbuf_t bytes;
  rn_arena_init(&arena, rn_capi_allocator());
  rn_strbuf_init(&bytes, rn_capi_allocator());
  TF_Buffer* buffer = NULL;
  rn_status_t outcome = server_def(text_proto, &arena, &bytes);
  if (rn_ok(outcome)) {
    buffer = TF_NewBuffer();
    outcome = buffer ? rn_capi_buffer_take(&bytes, buffer) : rn_out_of_memory();
  }
  if (!rn_ok(outcome)) {
    TF_DeleteBuffer(buffer);
    buffer = NULL;
  }
  rn_strbuf_clear(&bytes);
  rn_arena_clear(&arena);
  rn_capi_set(status, outcome);
  return buffer;
}

int TF_PickUnusedPortOrDie(void) {
  int port = 0, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) return 0;
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t size = sizeof address;
  if (bind(listener, (const struct sockaddr*)&address, size) == 0 &&
      getsockname(listener, (struct sockaddr*)&address, &size) == 0)
    port = ntohs(address.sin_port);
  close(listener);
  return port;
}
