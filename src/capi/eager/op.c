// Ops of eager execution: names, devices, inputs, and running them.
#include "capi/eager/eager.h"
#include "proto/attr_value.pb.h"
#include "tensorflow/c/c_api_legacy.h"
#include "wire/writer.h"

static rn_status_t no_op(void) { return rn_invalid_argument("The op is NULL"); }

TFE_Op* TFE_NewOp(TFE_Context* ctx, const char* op_or_function_name, TF_Status* status) {
  rn_eager_op_t* op = NULL;
  rn_capi_set(status,
              !ctx ? RN_CAPI_NULL("ctx")
              : !op_or_function_name
                  ? RN_CAPI_NULL("op_or_function_name")
                  : rn_eager_op_create(rn_capi_eager(ctx), rn_str(op_or_function_name), &op));
  return (TFE_Op*)op;
}

void TFE_DeleteOp(TFE_Op* op) { rn_eager_op_destroy(rn_capi_eager_op(op)); }

void TFE_OpReset(TFE_Op* op_to_reset, const char* op_or_function_name, const char* raw_device_name,
                 TF_Status* status) {
  rn_status_t outcome = !op_to_reset           ? no_op()
                        : !op_or_function_name ? RN_CAPI_NULL("op_or_function_name")
                                               : rn_eager_op_reset(rn_capi_eager_op(op_to_reset),
                                                                   rn_str(op_or_function_name),
                                                                   rn_str(raw_device_name));
  rn_capi_set(status, outcome);
}

const char* TFE_OpGetName(const TFE_Op* op, TF_Status* status) {
  const rn_op_def_t* def = op ? rn_eager_op_def(rn_capi_eager_op(op)) : NULL;
  rn_capi_set(status, op ? RN_OK : no_op());
  return def ? def->name : op ? "" : NULL;
}

TFE_Context* TFE_OpGetContext(const TFE_Op* op, TF_Status* status) {
  rn_capi_set(status, op ? RN_OK : no_op());
  return op ? (TFE_Context*)rn_eager_op_context(rn_capi_eager_op(op)) : NULL;
}

void TFE_OpSetDevice(TFE_Op* op, const char* device_name, TF_Status* status) {
  rn_capi_set(status,
              op ? rn_eager_op_set_device(rn_capi_eager_op(op), rn_str(device_name)) : no_op());
}

const char* TFE_OpGetDevice(const TFE_Op* op, TF_Status* status) {
  rn_capi_set(status, op ? RN_OK : no_op());
  return op ? rn_eager_op_device(rn_capi_eager_op(op)) : NULL;
}

void TFE_OpAddInput(TFE_Op* op, TFE_TensorHandle* input, TF_Status* status) {
  rn_capi_set(status, !op ? no_op()
                      : !input
                          ? RN_CAPI_NULL("input")
                          : rn_eager_op_add_input(rn_capi_eager_op(op), rn_capi_handle(input)));
}

static rn_status_t add_list(TFE_Op* op, TFE_TensorHandle** inputs, int count) {
  if (!op) return no_op();
  if (count < 0 || (count > 0 && !inputs)) return rn_capi_null("TFE_OpAddInputList", "inputs");
  for (int i = 0; i < count; ++i)
    if (!inputs[i]) return rn_capi_null("TFE_OpAddInputList", "inputs[i]");
  return rn_eager_op_add_list(rn_capi_eager_op(op), (rn_eager_handle_t* const*)inputs, count);
}

void TFE_OpAddInputList(TFE_Op* op, TFE_TensorHandle** inputs, int num_inputs, TF_Status* status) {
  rn_capi_set(status, add_list(op, inputs, num_inputs));
}

int TFE_OpGetFlatInputCount(const TFE_Op* op, TF_Status* status) {
  rn_capi_set(status, op ? RN_OK : no_op());
  return op ? rn_eager_op_input_count(rn_capi_eager_op(op)) : -1;
}

TFE_TensorHandle* TFE_OpGetFlatInput(const TFE_Op* op, int index, TF_Status* status) {
  rn_eager_handle_t* input = op ? rn_eager_op_input(rn_capi_eager_op(op), index) : NULL;
  rn_capi_set(status, !op      ? no_op()
                      : !input ? rn_invalid_argument("The op has no input %d", index)
                               : RN_OK);
  return (TFE_TensorHandle*)input;
}

static int length_of(TFE_Op* op, const char* name, bool is_output, TF_Status* status) {
  int32_t length = -1;
  rn_status_t outcome =
      !op     ? no_op()
      : !name ? rn_capi_null("TFE_OpGetInputLength", "name")
              : rn_eager_op_length(rn_capi_eager_op(op), rn_str(name), is_output, &length);
  return rn_capi_ok(status, outcome) ? length : -1;
}

int TFE_OpGetInputLength(TFE_Op* op, const char* input_name, TF_Status* status) {
  return length_of(op, input_name, false, status);
}

int TFE_OpGetOutputLength(TFE_Op* op, const char* output_name, TF_Status* status) {
  return length_of(op, output_name, true, status);
}

static TF_AttrType attr_type(const rn_op_def_t* def, const char* name, unsigned char* is_list,
                             TF_Status* status) {
  int index = def && name ? rn_op_attr_index(def, rn_str(name)) : -1;
  if (index < 0) {
    rn_capi_set(status, rn_invalid_argument("Attribute '%s' does not exist for this operation",
                                            name ? name : ""));
    return TF_ATTR_INT;
  }
  if (is_list) *is_list = def->attrs[index].is_list;
  rn_capi_set(status, RN_OK);
  return (TF_AttrType)def->attrs[index].kind;
}

TF_AttrType TFE_OpGetAttrType(TFE_Op* op, const char* attr_name, unsigned char* is_list,
                              TF_Status* status) {
  if (op) return attr_type(rn_eager_op_def(rn_capi_eager_op(op)), attr_name, is_list, status);
  rn_capi_set(status, no_op());
  return TF_ATTR_INT;
}

TF_AttrType TFE_OpNameGetAttrType(TFE_Context* ctx, const char* op_or_function_name,
                                  const char* attr_name, unsigned char* is_list,
                                  TF_Status* status) {
  const rn_op_def_t* def =
      ctx ? rn_eager_find_def(rn_capi_eager(ctx), rn_str(op_or_function_name)) : NULL;
  if (def) return attr_type(def, attr_name, is_list, status);
  rn_capi_set(status, ctx ? rn_eager_no_such_op(rn_str(op_or_function_name)) : RN_CAPI_NULL("ctx"));
  return TF_ATTR_INT;
}

void TFE_Execute(TFE_Op* op, TFE_TensorHandle** retvals, int* num_retvals, TF_Status* status) {
  int none = 0;
  if (!num_retvals) num_retvals = &none;
  rn_status_t outcome =
      !op ? no_op()
      : *num_retvals > 0 && !retvals
          ? RN_CAPI_NULL("retvals")
          : rn_eager_execute(rn_capi_eager_op(op), (rn_eager_handle_t**)retvals, num_retvals);
  if (__builtin_expect(!rn_ok(outcome), 0)) RN_CAPI_CLEAR(retvals, *num_retvals);
  rn_capi_set(status, outcome);
}

void TFE_OpSetCancellationManager(TFE_Op* op, TFE_CancellationManager* cancellation_manager,
                                  TF_Status* status) {
  if (op)
    rn_eager_op_set_cancel(rn_capi_eager_op(op),
                           cancellation_manager ? &cancellation_manager->base : NULL);
  rn_capi_set(status, op ? RN_OK : no_op());
}

void TFE_OpSetXLACompilation(TFE_Op* op, unsigned char enable) {
  (void)op;
  (void)enable;  // there is no XLA compiler
}

// --- TFE_OpAttrs: the attributes of an op

const TFE_OpAttrs* TFE_OpGetAttrs(const TFE_Op* op) { return (const TFE_OpAttrs*)op; }

static rn_status_t add_attr(void* arg, rn_str_t name, const rn_attr_value_t* value) {
  if (!rn_eager_op_has_attr(arg, name)) rn_eager_op_set_attr(arg, name, value);
  return RN_OK;
}

void TFE_OpAddAttrs(TFE_Op* op, const TFE_OpAttrs* attrs) {
  if (!op || !attrs || (const void*)op == (const void*)attrs) return;
  const rn_eager_op_t* from = rn_capi_eager_op((const TFE_Op*)attrs);
  rn_eager_op_t* to = rn_capi_eager_op(op);
  rn_eager_op_fail(to, rn_eager_op_each_attr(from, add_attr, to));
  rn_eager_op_fail(to, rn_eager_op_each_implied(from, false, add_attr, to));
}

static rn_status_t write_attr(void* arg, rn_str_t name, const rn_attr_value_t* value) {
  rn_strbuf_t* buf = arg;
  size_t entry = rn_pb_begin(buf, rn_pb_NameAttrList_attr_field);
  rn_pb_put_str(buf, rn_pb_NameAttrList_AttrEntry_key_field, name);
  size_t mark = rn_pb_begin(buf, rn_pb_NameAttrList_AttrEntry_value_field);
  rn_status_t status = rn_capi_write_attr(buf, value);
  rn_pb_end(buf, mark);
  rn_pb_end(buf, entry);
  return status;
}

void TFE_OpAttrsSerialize(const TFE_OpAttrs* attrs, TF_Buffer* buf, TF_Status* status) {
  const rn_eager_op_t* op = rn_capi_eager_op((const TFE_Op*)attrs);
  rn_status_t outcome = attrs ? rn_capi_buffer_check(buf) : RN_CAPI_NULL("attrs");
  if (rn_ok(outcome) && !rn_eager_op_def(op)) outcome = no_op();
  if (rn_ok(outcome)) {
    rn_strbuf_t text;
    rn_strbuf_init(&text, rn_capi_allocator());
    rn_pb_put_str(&text, rn_pb_NameAttrList_name_field, rn_str(rn_eager_op_def(op)->name));
    outcome = rn_eager_op_each_attr(op, write_attr, &text);
    if (rn_ok(outcome)) outcome = rn_eager_op_each_implied(op, true, write_attr, &text);
    if (rn_ok(outcome)) outcome = rn_strbuf_status(&text);
    if (rn_ok(outcome)) outcome = rn_capi_buffer_take(&text, buf);
    rn_strbuf_clear(&text);
  }
  rn_capi_set(status, outcome);
}
