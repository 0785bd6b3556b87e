// See classify.h.
#include "serve/front/classify.h"

#include "base/vec.h"
#include "proto/serving_metadata.pb.h"
#include "tensor/tstring.h"
#include "wire/scan.h"
#include "wire/text.h"

const char* rn_infer_method_name(rn_infer_method_t method) {
  return method == RN_INFER_CLASSIFY ? "tensorflow/serving/classify" : "tensorflow/serving/regress";
}

// INVALID_ARGUMENT with |message| and the signature's text.
static rn_status_t bad_signature(const rn_backend_t* backend, rn_str_t name, const char* message) {
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_default());
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  rn_pb_serving_SignatureDefMap_t* map = NULL;
  rn_strbuf_append(&text, rn_str(message));
  rn_status_t status = RN_PB_DECODE(serving_SignatureDefMap, backend->meta, NULL, &arena, &map);
  for (uint32_t i = 0; rn_ok(status) && i < map->signature_def.count; ++i)
    if (rn_str_eq(map->signature_def.items[i].key, name))
      status = rn_pb_print(&rn_pb_SignatureDef_desc, map->signature_def.items[i].value, &text);
  rn_status_free(status);  // the message suffices without the text
  rn_arena_clear(&arena);
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

static bool has_port(const rn_serve_port_t* ports, int count, const char* name) {
  return rn_serve_port(ports, count, rn_str(name)) >= 0;
}

static rn_status_t check_classes(const rn_backend_t* backend,
                                 const rn_serve_signature_t* signature) {
  if (signature->output_count != 1 && signature->output_count != 2)
    return rn_invalid_argument("Expected one or two output Tensors, found %d",
                               signature->output_count);
  if (!has_port(signature->inputs, signature->input_count, RN_INFER_INPUT))
    return bad_signature(backend, signature->name,
                         "No classification inputs found in SignatureDef: ");
  if (!has_port(signature->outputs, signature->output_count, "classes") &&
      !has_port(signature->outputs, signature->output_count, "scores"))
    return bad_signature(backend, signature->name,
                         "Expected classification signature outputs to contain at least one of "
                         "\"classes\" or \"scores\". Signature was: ");
  return RN_OK;
}

static rn_status_t check_values(const rn_backend_t* backend,
                                const rn_serve_signature_t* signature) {
  if (signature->output_count != 1) return rn_invalid_argument("Expected one output Tensor.");
  if (!has_port(signature->inputs, signature->input_count, RN_INFER_INPUT))
    return bad_signature(backend, signature->name, "No regression inputs found in SignatureDef: ");
  if (!has_port(signature->outputs, signature->output_count, "outputs"))
    return bad_signature(backend, signature->name, "No regression outputs found in SignatureDef: ");
  return RN_OK;
}

rn_status_t rn_infer_check(const rn_backend_t* backend, rn_str_t name, rn_infer_method_t method,
                           bool checks_name) {
  int index = rn_backend_signature(backend, name);
  if (index < 0) {
    if (!name.size) name = RN_STR("serving_default");
    return rn_invalid_argument("No signature was found with the name: %.*s", RN_STR_ARGS(name));
  }
  const rn_serve_signature_t* signature = &backend->signatures[index];
  bool classifies = method == RN_INFER_CLASSIFY;
  if (checks_name && !rn_str_is(signature->method, rn_infer_method_name(method)))
    return rn_invalid_argument("Expected %s signature method_name to be %s. Was: %.*s",
                               classifies ? "classification" : "regression",
                               rn_infer_method_name(method), RN_STR_ARGS(signature->method));
  if (signature->input_count != 1) return rn_invalid_argument("Expected one input Tensor.");
  return classifies ? check_classes(backend, signature) : check_values(backend, signature);
}

// The examples of an Input, as they are in its bytes.
typedef struct example_list_t {
  uint32_t kind;  // the field of Input that they are from
  rn_str_t context;
  RN_VEC(rn_str_t) examples;
} example_list_t;

static rn_status_t bad_input(void) { return rn_internal("Error parsing serialized input."); }

// Adds the examples of one ExampleList or ExampleListWithContext.
static rn_status_t scan_list(rn_str_t bytes, rn_allocator_t allocator, example_list_t* list) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.wire != RN_PB_WIRE_LENGTH) continue;
    if (field.number == rn_pb_serving_ExampleListWithContext_examples_field)
      RN_RETURN_IF_ERROR(rn_vec_push(&list->examples, allocator, field.bytes));
    if (list->kind == rn_pb_serving_Input_example_list_with_context_field &&
        field.number == rn_pb_serving_ExampleListWithContext_context_field)
      list->context = field.bytes;
  }
  return scan.is_bad ? bad_input() : RN_OK;
}

static rn_status_t scan_input(rn_str_t bytes, rn_allocator_t allocator, example_list_t* list) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field)) {
    bool is_list = field.wire == RN_PB_WIRE_LENGTH &&
                   (field.number == rn_pb_serving_Input_example_list_field ||
                    field.number == rn_pb_serving_Input_example_list_with_context_field);
    if (!is_list) continue;
    if (field.number != list->kind) {  // a oneof: the last kind counts
      list->kind = field.number;
      list->context = RN_STR("");
      list->examples.count = 0;
    }
    RN_RETURN_IF_ERROR(scan_list(field.bytes, allocator, list));
  }
  return scan.is_bad ? bad_input() : RN_OK;
}

static rn_status_t fill(const example_list_t* list, rn_tensor_t* tensor) {
  for (size_t i = 0; i < list->examples.count; ++i) {
    rn_str_t example = list->examples.items[i];
    size_t size = 0;
    char* data = NULL;
    if (rn_add_ok(list->context.size, example.size, &size))
      data = rn_tstring_resize(&RN_DATA(tensor, rn_tstring_t)[i], size);
    if (!data) return rn_out_of_memory();
    // Messages are merged when their bytes are joined.
    if (list->context.size) memcpy(data, list->context.data, list->context.size);
    if (example.size) memcpy(data + list->context.size, example.data, example.size);
  }
  return RN_OK;
}

rn_status_t rn_infer_examples(rn_str_t input, rn_allocator_t allocator, rn_tensor_t* out) {
  *out = (rn_tensor_t){0};
  example_list_t list = {0};
  rn_status_t status = scan_input(input, allocator, &list);
  int64_t count = (int64_t)list.examples.count;
  if (rn_ok(status) && !count) status = rn_invalid_argument("Input is empty.");
  if (rn_ok(status)) status = rn_tensor_create(allocator, RN_STRING, (rn_shape_t){1, &count}, out);
  if (rn_ok(status)) {
    status = fill(&list, out);
    if (!rn_ok(status)) rn_tensor_clear(out);
  }
  rn_vec_free(&list.examples, allocator);
  return status;
}

static const rn_tensor_t* find_output(const rn_predict_value_t* outputs, int count,
                                      const char* name) {
  for (int i = 0; i < count; ++i)
    if (rn_str_is(outputs[i].name, name)) return &outputs[i].value;
  return NULL;
}

// |prefix| and the shape.
static rn_status_t bad_shape(const rn_tensor_t* tensor, const char* prefix) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  rn_strbuf_append(&text, rn_str(prefix));
  rn_shape_print(&text, rn_tensor_shape(tensor));
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

// Checks the output |name|: |dtype| and a row per example.
static rn_status_t check_matrix(const rn_tensor_t* tensor, const char* name, rn_dtype_t dtype,
                                int64_t examples) {
  if (!tensor) return RN_OK;
  if (tensor->rank != 2)
    return bad_shape(tensor, "Expected Tensor shape: [batch_size num_classes] but got ");
  if (tensor->dtype != dtype)
    return rn_invalid_argument("Expected %s Tensor of %s. Got: %s", name,
                               rn_dtype_proto_name(dtype), rn_dtype_proto_name(tensor->dtype));
  if (rn_tensor_dim(tensor, 0) != examples)
    return rn_invalid_argument("Expected %s output batch size of %lld. Got: %lld", name,
                               (long long)examples, (long long)rn_tensor_dim(tensor, 0));
  return RN_OK;
}

rn_status_t rn_infer_classes(const rn_predict_value_t* outputs, int count, int64_t examples,
                             rn_arena_t* arena, rn_pb_serving_ClassificationResult_t* out) {
  *out = (rn_pb_serving_ClassificationResult_t){0};
  const rn_tensor_t* labels = find_output(outputs, count, "classes");
  const rn_tensor_t* scores = find_output(outputs, count, "scores");
  RN_RETURN_IF_ERROR(check_matrix(labels, "classes", RN_STRING, examples));
  RN_RETURN_IF_ERROR(check_matrix(scores, "scores", RN_FLOAT, examples));
  if (!labels && !scores) return rn_invalid_argument("Expected 1 output tensor(s).  Got: 0");
  if (labels && scores && rn_tensor_dim(labels, 1) != rn_tensor_dim(scores, 1))
    return rn_invalid_argument(
        "Tensors class and score should match in dim_size(1). Got %lld vs. %lld",
        (long long)rn_tensor_dim(labels, 1), (long long)rn_tensor_dim(scores, 1));
  int64_t classes = rn_tensor_dim(labels ? labels : scores, 1);
  if (examples > UINT32_MAX || classes > UINT32_MAX) return rn_out_of_memory();
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)examples, &out->classifications.items));
  out->classifications.count = (uint32_t)examples;
  for (int64_t i = 0, at = 0; i < examples; ++i) {
    rn_pb_serving_Classifications_t* row = &out->classifications.items[i];
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)classes, &row->classes.items));
    row->classes.count = (uint32_t)classes;
    for (int64_t j = 0; j < classes; ++j, ++at) {
      rn_pb_serving_Class_t* entry = &row->classes.items[j];
      if (labels) entry->label = rn_tstring_view(&RN_DATA(labels, const rn_tstring_t)[at]);
      if (scores) entry->score = RN_DATA(scores, const float)[at];
    }
  }
  return RN_OK;
}

rn_status_t rn_infer_values(const rn_predict_value_t* outputs, int count, int64_t examples,
                            rn_arena_t* arena, rn_pb_serving_RegressionResult_t* out) {
  *out = (rn_pb_serving_RegressionResult_t){0};
  const rn_tensor_t* values = find_output(outputs, count, "outputs");
  if (!values) return rn_invalid_argument("Could not find output tensor 'outputs'");
  if (values->rank != 1 && !(values->rank == 2 && rn_tensor_dim(values, 1) == 1))
    return bad_shape(values,
                     "Expected output Tensor shape to be either [batch_size] or [batch_size, 1] "
                     "but got ");
  if (rn_tensor_dim(values, 0) != examples)
    return rn_invalid_argument("Input batch size did not match output batch size: %lld vs. %lld",
                               (long long)examples, (long long)rn_tensor_dim(values, 0));
  if (values->dtype != RN_FLOAT)
    return rn_invalid_argument("Expected output Tensor of DT_FLOAT.  Got: %s",
                               rn_dtype_proto_name(values->dtype));
  if (examples > UINT32_MAX) return rn_out_of_memory();
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)examples, &out->regressions.items));
  out->regressions.count = (uint32_t)examples;
  for (int64_t i = 0; i < examples; ++i)
    out->regressions.items[i].value = RN_DATA(values, const float)[i];
  return RN_OK;
}
