// Inferences by REST: JSON text, and tensors in binary form behind it. See oip_rest.h.
#include "serve/front/oip_rest.h"

#include <stdio.h>

#include "base/container.h"
#include "serve/front/json.h"

// Reading.

static rn_status_t read_value(rn_json_reader_t* json, rn_oip_value_t* out) {
  *out = (rn_oip_value_t){.kind = RN_OIP_DOUBLE};
  switch (rn_json_kind(json)) {
    case RN_JSON_TRUE:
    case RN_JSON_FALSE: {
      bool value = false;
      RN_RETURN_IF_ERROR(rn_json_bool(json, &value));
      out->kind = RN_OIP_BOOL;
      out->number = value;
      return RN_OK;
    }
    case RN_JSON_STRING:
      out->kind = RN_OIP_STRING;
      return rn_json_string(json, &out->text);
    case RN_JSON_NUMBER: {
      rn_json_reader_t before = *json;
      rn_status_t status = rn_json_int(json, &out->number);
      if (rn_ok(status)) {
        out->kind = RN_OIP_INT;
        return RN_OK;
      }
      rn_status_free(status);
      *json = before;
      return rn_json_skip(json);
    }
    default:
      return rn_json_skip(json);
  }
}

// The next member of an object of parameters; false at its end and on failure.
static bool next_parameter(rn_json_reader_t* json, rn_str_t* key, rn_oip_value_t* value,
                           rn_status_t* status) {
  if (!rn_ok(*status) || !rn_json_next_member(json, key, status)) return false;
  *status = read_value(json, value);
  return rn_ok(*status);
}

static rn_status_t read_infer_parameters(rn_oip_infer_t* infer, rn_json_reader_t* json) {
  rn_str_t key;
  rn_oip_value_t value;
  rn_status_t status = rn_json_open_object(json);
  while (next_parameter(json, &key, &value, &status)) status = rn_oip_infer_set(infer, key, &value);
  return status;
}

static rn_status_t read_input_parameters(rn_oip_input_t* input, rn_json_reader_t* json) {
  rn_str_t key;
  rn_oip_value_t value;
  rn_status_t status = rn_json_open_object(json);
  while (next_parameter(json, &key, &value, &status)) status = rn_oip_input_set(input, key, &value);
  return status;
}

static rn_status_t read_output_parameters(rn_oip_output_t* output, rn_json_reader_t* json) {
  rn_str_t key;
  rn_oip_value_t value;
  rn_status_t status = rn_json_open_object(json);
  while (next_parameter(json, &key, &value, &status))
    status = rn_oip_output_set(output, key, &value);
  return status;
}

static rn_status_t read_shape(rn_oip_infer_t* infer, rn_json_reader_t* json, rn_shape_t* out) {
  int64_t dims[RN_MAX_RANK];
  int rank = 0;
  rn_status_t status = rn_json_open_array(json);
  while (rn_ok(status) && rn_json_next_element(json, &status)) {
    if (rank == RN_MAX_RANK) return rn_invalid_argument("A shape has too many dimensions");
    status = rn_json_int(json, &dims[rank++]);
  }
  RN_RETURN_IF_ERROR(status);
  return rn_shape_copy(&infer->arena, (rn_shape_t){rank, dims}, out);
}

// What of an input has been read.
typedef struct oip_rest_input_t {
  rn_oip_input_t* input;
  int index;
  bool has_shape, has_value;
  rn_str_t data;  // its text, if it came before type and shape
} oip_rest_input_t;

static rn_status_t read_data(rn_oip_infer_t* infer, oip_rest_input_t* in, rn_json_reader_t* json) {
  if (in->has_value) return rn_invalid_argument("An input has 'data' twice");
  RN_RETURN_IF_ERROR(rn_oip_input_check(infer, in->input));
  in->has_value = true;
  return rn_json_tensor_of_shape(json, in->input->dtype, in->input->shape, infer->front->allocator,
                                 &infer->predict.inputs[in->index].value);
}

static rn_status_t read_member(rn_oip_infer_t* infer, oip_rest_input_t* in, rn_str_t key,
                               rn_json_reader_t* json) {
  rn_oip_input_t* input = in->input;
  if (rn_str_is(key, "name")) return rn_json_string(json, &input->name);
  if (rn_str_is(key, "datatype")) {
    rn_str_t name;
    RN_RETURN_IF_ERROR(rn_json_string(json, &name));
    input->dtype = rn_oip_type_parse(name);
    return RN_OK;
  }
  if (rn_str_is(key, "shape")) {
    in->has_shape = true;
    return read_shape(infer, json, &input->shape);
  }
  if (rn_str_is(key, "parameters")) return read_input_parameters(input, json);
  if (!rn_str_is(key, "data")) return rn_json_skip(json);
  if (input->name.size && input->dtype != RN_INVALID && in->has_shape)
    return read_data(infer, in, json);
  return rn_json_span(json, &in->data);
}

static rn_status_t read_input(rn_oip_infer_t* infer, rn_json_reader_t* json) {
  oip_rest_input_t in = {.index = infer->input_count};
  RN_RETURN_IF_ERROR(rn_oip_add_input(infer, &in.input));
  rn_str_t key;
  rn_status_t status = rn_json_open_object(json);
  while (rn_ok(status) && rn_json_next_member(json, &key, &status))
    status = read_member(infer, &in, key, json);
  RN_RETURN_IF_ERROR(status);
  RN_RETURN_IF_ERROR(rn_oip_input_check(infer, in.input));
  if (!in.has_shape)
    return rn_invalid_argument("Input '%.*s' has no shape", RN_STR_ARGS(in.input->name));
  if (in.data.size) {
    rn_json_reader_t later = rn_json_reader(in.data, &infer->arena);
    RN_RETURN_IF_ERROR(read_data(infer, &in, &later));
  }
  bool is_shared = in.input->place.region.size > 0, is_binary = in.input->binary_size >= 0;
  if (in.has_value + is_shared + is_binary != 1)
    return rn_invalid_argument(
        "Input '%.*s' must have one of 'data', 'binary_data_size' and 'shared_memory_region'",
        RN_STR_ARGS(in.input->name));
  return is_shared ? rn_oip_input_shared(infer, in.index) : RN_OK;
}

static rn_status_t read_output(rn_oip_infer_t* infer, rn_json_reader_t* json) {
  rn_oip_output_t* output = NULL;
  RN_RETURN_IF_ERROR(rn_oip_add_output(infer, &output));
  rn_str_t key;
  rn_status_t status = rn_json_open_object(json);
  while (rn_ok(status) && rn_json_next_member(json, &key, &status)) {
    if (rn_str_is(key, "name"))
      status = rn_json_string(json, &output->name);
    else if (rn_str_is(key, "parameters"))
      status = read_output_parameters(output, json);
    else
      status = rn_json_skip(json);
  }
  return status;
}

static rn_status_t read_list(rn_oip_infer_t* infer, rn_json_reader_t* json,
                             rn_status_t (*read)(rn_oip_infer_t*, rn_json_reader_t*)) {
  rn_status_t status = rn_json_open_array(json);
  while (rn_ok(status) && rn_json_next_element(json, &status)) status = read(infer, json);
  return status;
}

static rn_status_t read_head(rn_oip_infer_t* infer, rn_str_t text) {
  rn_json_reader_t json = rn_json_reader(text, &infer->arena);
  rn_str_t key;
  rn_status_t status = rn_json_open_object(&json);
  while (rn_ok(status) && rn_json_next_member(&json, &key, &status)) {
    if (rn_str_is(key, "id"))
      status = rn_json_string(&json, &infer->id);
    else if (rn_str_is(key, "inputs"))
      status = read_list(infer, &json, read_input);
    else if (rn_str_is(key, "outputs"))
      status = read_list(infer, &json, read_output);
    else if (rn_str_is(key, "parameters"))
      status = read_infer_parameters(infer, &json);
    else
      status = rn_json_skip(&json);
  }
  return status;
}

rn_status_t rn_oip_rest_read(rn_oip_infer_t* infer, rn_str_t body, size_t json,
                             rn_buffer_t* buffer) {
  if (json > body.size) json = body.size;
  RN_RETURN_IF_ERROR(read_head(infer, rn_str_n(body.data, json)));
  rn_str_t rest = rn_str_n(body.data + json, body.size - json);
  for (int i = 0; i < infer->input_count; ++i) {
    if (infer->inputs[i].binary_size < 0) continue;
    size_t size = (size_t)infer->inputs[i].binary_size;
    if (size > rest.size)
      return rn_invalid_argument(
          "unexpected size for input '%.*s', expecting %zu bytes behind the inference header, but "
          "there are %zu",
          RN_STR_ARGS(infer->inputs[i].name), size, rest.size);
    RN_RETURN_IF_ERROR(rn_oip_input_raw(infer, i, rn_str_n(rest.data, size), buffer));
    rest = rn_str_n(rest.data + size, rest.size - size);
  }
  if (rest.size)
    return rn_invalid_argument("unexpected additional input data for model '%.*s'",
                               RN_STR_ARGS(infer->model));
  return RN_OK;
}

// Writing.

static bool is_binary(const rn_oip_infer_t* infer, const rn_oip_output_t* want) {
  return want && want->has_binary ? want->is_binary : infer->is_binary;
}

static rn_status_t write_output(const rn_oip_infer_t* infer, const rn_predict_value_t* output,
                                rn_strbuf_t* out) {
  const rn_tensor_t* value = &output->value;
  const rn_oip_output_t* want = rn_oip_output_of(infer, output->name);
  const char* type = rn_oip_type_name(value->dtype);
  size_t size = 0;
  if (!type || !rn_oip_raw_size(value, &size))
    return rn_unimplemented("Output '%.*s' of type %s is not in the protocol",
                            RN_STR_ARGS(output->name), rn_dtype_name(value->dtype));
  rn_strbuf_append(out, RN_STR("{\"name\":"));
  rn_json_put_string(out, output->name);
  rn_strbuf_printf(out, ",\"datatype\":\"%s\",\"shape\":[", type);
  for (int i = 0; i < value->rank; ++i)
    rn_strbuf_printf(out, "%s%lld", i ? "," : "", (long long)rn_tensor_dim(value, i));
  rn_strbuf_append(out, RN_STR("],"));
  if (want && want->place.region.size) {
    rn_strbuf_append(out, RN_STR("\"parameters\":{\"shared_memory_region\":"));
    rn_json_put_string(out, want->place.region);
    if (want->place.offset)
      rn_strbuf_printf(out, ",\"shared_memory_offset\":%llu",
                       (unsigned long long)want->place.offset);
    rn_strbuf_printf(out, ",\"shared_memory_byte_size\":%zu}}", size);
    return RN_OK;
  }
  if (is_binary(infer, want)) {
    rn_strbuf_printf(out, "\"parameters\":{\"binary_data_size\":%zu}}", size);
    return RN_OK;
  }
  rn_strbuf_append(out, RN_STR("\"data\":"));
  RN_RETURN_IF_ERROR(rn_json_put_flat(out, value, false));
  rn_strbuf_append(out, RN_STR("}"));
  return RN_OK;
}

static rn_status_t write_head(const rn_oip_infer_t* infer, rn_strbuf_t* out) {
  const rn_predict_t* predict = &infer->predict;
  char marks[32];
  rn_strbuf_append(out, RN_STR("{"));
  if (infer->id.size) {
    rn_strbuf_append(out, RN_STR("\"id\":"));
    rn_json_put_string(out, infer->id);
    rn_strbuf_append(out, RN_STR(","));
  }
  rn_strbuf_append(out, RN_STR("\"model_name\":"));
  rn_json_put_string(out, infer->model);
  rn_strbuf_printf(out, ",\"model_version\":\"%lld\",", (long long)infer->number);
  if (predict->marks)
    rn_strbuf_printf(out, "\"parameters\":{\"runnel_marks\":\"%s\"},",
                     rn_front_marks(predict->marks, marks));
  rn_strbuf_append(out, RN_STR("\"outputs\":["));
  for (int i = 0; i < predict->output_count; ++i) {
    if (i) rn_strbuf_append(out, RN_STR(","));
    RN_RETURN_IF_ERROR(write_output(infer, &predict->outputs[i], out));
  }
  rn_strbuf_append(out, RN_STR("]}"));
  return rn_strbuf_status(out);
}

// Appends a tensor in binary form to |out|; a long one by reference.
static rn_status_t write_raw(const rn_tensor_t* value, rn_message_t* out) {
  if (value->dtype != RN_STRING) {
    rn_str_t bytes = rn_str_n(value->data, rn_tensor_bytes(value));
    return value->buffer ? rn_message_lend(out, value->buffer, bytes) : rn_message_add(out, bytes);
  }
  rn_strbuf_t strings;
  rn_strbuf_init(&strings, out->allocator);
  rn_oip_raw_strings(value, &strings);
  rn_status_t status = rn_strbuf_status(&strings);
  if (rn_ok(status)) status = rn_message_add(out, rn_strbuf_view(&strings));
  rn_strbuf_clear(&strings);
  return status;
}

rn_status_t rn_oip_rest_write(const rn_oip_infer_t* infer, rn_message_t* out, size_t* out_json) {
  rn_strbuf_t head;
  rn_strbuf_init(&head, infer->front->allocator);
  rn_message_init(out, infer->front->allocator);
  rn_status_t status = write_head(infer, &head);
  size_t size = head.size;
  *out_json = 0;
  if (rn_ok(status)) status = rn_front_message(&head, out);
  for (int i = 0; rn_ok(status) && i < infer->predict.output_count; ++i) {
    const rn_predict_value_t* output = &infer->predict.outputs[i];
    const rn_oip_output_t* want = rn_oip_output_of(infer, output->name);
    if ((want && want->place.region.size) || !is_binary(infer, want)) continue;
    *out_json = size;
    status = write_raw(&output->value, out);
  }
  rn_strbuf_clear(&head);
  if (!rn_ok(status)) rn_message_clear(out);
  return status;
}

// The request.

typedef struct oip_rest_infer_t {
  rn_oip_infer_t infer;
  rn_http_in_t* request;
} oip_rest_infer_t;

static void on_inferred(rn_oip_infer_t* infer, rn_status_t status) {
  oip_rest_infer_t* self = RN_CONTAINER_OF(infer, oip_rest_infer_t, infer);
  rn_front_t* front = infer->front;
  rn_http_in_t* request = self->request;
  unsigned marks = infer->predict.marks;
  int64_t retry_ns = infer->predict.retry_ns;
  rn_message_t body;
  size_t json = 0;
  if (rn_ok(status)) status = rn_oip_rest_write(infer, &body, &json);
  rn_oip_infer_count(infer, rn_status_code(status));
  rn_oip_infer_clear(infer);
  RN_FREE(front->allocator, self);
  if (!rn_ok(status)) {
    rn_front_reply_error(front, request, status, retry_ns);
    return;
  }
  char text[24];
  int length = snprintf(text, sizeof text, "%zu", json);
  rn_http_header_t header = {RN_STR("Inference-Header-Content-Length"),
                             rn_str_n(text, (size_t)length)};
  rn_front_reply_message(front, request, json ? "application/octet-stream" : NULL, &body,
                         json ? &header : NULL, marks);
}

size_t rn_oip_rest_align(const rn_http1_request_t* request) {
  int64_t json = 0;
  bool has_any = rn_str_to_i64(rn_http1_header(request, "inference-header-content-length"), &json);
  return has_any && json > 0 ? (size_t)json : 0;
}

static rn_status_t read_request(oip_rest_infer_t* self, rn_str_t model, rn_str_t version) {
  rn_oip_infer_t* infer = &self->infer;
  const rn_http_in_t* request = self->request;
  RN_RETURN_IF_ERROR(rn_arena_str(&infer->arena, model, &infer->model));
  RN_RETURN_IF_ERROR(rn_arena_str(&infer->arena, version, &infer->version));
  rn_str_t header = rn_http_header(request, "inference-header-content-length");
  int64_t json = 0;
  if (header.size &&
      (!rn_str_to_i64(header, &json) || json < 0 || (uint64_t)json > request->body.size))
    return rn_invalid_argument("Inference-Header-Content-Length must be a length within the body");
  if (header.size && !json) {  // the body is an input, and the reply is binary, too
    infer->is_binary = true;
    return rn_oip_input_whole(infer, request->body, request->body_buffer);
  }
  return rn_oip_rest_read(infer, request->body, header.size ? (size_t)json : SIZE_MAX,
                          request->body_buffer);
}

void rn_oip_rest_infer(rn_front_t* front, rn_http_in_t* request, rn_str_t model, rn_str_t version) {
  oip_rest_infer_t* self = NULL;
  rn_status_t status = RN_NEW(front->allocator, &self);
  if (!rn_ok(status)) {
    rn_front_reply_error(front, request, status, 0);
    return;
  }
  self->request = request;
  rn_oip_infer_t* infer = &self->infer;
  rn_oip_infer_init(infer, front);
  infer->entry = "REST";
  infer->is_local = request->is_local;
  infer->done = on_inferred;
  infer->predict.cancel = &request->cancel;
  infer->predict.times.begun_ns = request->begun_ns;
  status = read_request(self, model, version);
  if (!rn_ok(status)) {
    on_inferred(infer, status);
    return;
  }
  if (!infer->timeout_us && front->rest_timeout_ns > 0)
    infer->predict.deadline_ns = request->begun_ns + front->rest_timeout_ns;
  rn_oip_infer_run(infer);
}
