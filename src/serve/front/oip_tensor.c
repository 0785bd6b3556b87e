// Tensors of the Open Inference Protocol in raw form: elements as they are in memory, each string
// after its length in four bytes, the lowest first. See oip.h.
#include "serve/front/oip.h"
#include "serve/front/shared_memory.h"
#include "tensor/tstring.h"

// Plain values of at least this size are not copied where they can be shared.
#define LARGE 4096
#define LENGTH sizeof(uint32_t)

static rn_status_t wrong_size(const rn_oip_input_t* input, size_t have, size_t want) {
  return rn_invalid_argument("unexpected total byte size %zu for input '%.*s', expecting %zu", have,
                             RN_STR_ARGS(input->name), want);
}

// Takes the next string of |*inout_rest|.
static bool next_string(rn_str_t* inout_rest, rn_str_t* out) {
  if (inout_rest->size < LENGTH) return false;
  uint32_t size;
  memcpy(&size, inout_rest->data, LENGTH);
  if (size > inout_rest->size - LENGTH) return false;
  *out = rn_str_n(inout_rest->data + LENGTH, size);
  *inout_rest = rn_str_n(out->data + size, inout_rest->size - LENGTH - size);
  return true;
}

static rn_status_t read_strings(const rn_oip_input_t* input, rn_str_t bytes,
                                rn_allocator_t allocator, rn_tensor_t* out) {
  int64_t count = 0;
  // Each element takes four bytes at least: a large shape needs a large request.
  if (!rn_shape_count(input->shape, &count) || (uint64_t)count > bytes.size / LENGTH)
    return rn_invalid_argument("incomplete string data for inference input '%.*s'",
                               RN_STR_ARGS(input->name));
  RN_RETURN_IF_ERROR(rn_tensor_create(allocator, RN_STRING, input->shape, out));
  rn_str_t rest = bytes, text;
  rn_status_t status = RN_OK;
  for (int64_t i = 0; rn_ok(status) && i < out->count; ++i) {
    if (!next_string(&rest, &text))
      status = rn_invalid_argument("incomplete string data for inference input '%.*s'",
                                   RN_STR_ARGS(input->name));
    else if (!rn_tstring_assign(&RN_DATA(out, rn_tstring_t)[i], text.data, text.size))
      status = rn_out_of_memory();
  }
  if (rn_ok(status) && rest.size)
    status = rn_invalid_argument("unexpected number of string elements for inference input '%.*s'",
                                 RN_STR_ARGS(input->name));
  if (!rn_ok(status)) rn_tensor_clear(out);
  return status;
}

// Whether the bytes hold the elements of a bool tensor: anything but 0 and 1 is undefined in C.
static bool are_bools(rn_str_t bytes) {
  unsigned char seen = 0;
  for (size_t i = 0; i < bytes.size; ++i) seen |= (unsigned char)bytes.data[i];
  return seen <= 1;
}

rn_status_t rn_oip_input_raw(rn_oip_infer_t* infer, int i, rn_str_t bytes, rn_buffer_t* buffer) {
  const rn_oip_input_t* input = &infer->inputs[i];
  rn_tensor_t* out = &infer->predict.inputs[i].value;
  rn_allocator_t allocator = infer->front->allocator;
  if (input->dtype == RN_STRING) return read_strings(input, bytes, allocator, out);
  rn_tensor_t tensor;
  RN_RETURN_IF_ERROR(rn_tensor_init(&tensor, input->dtype, input->shape));
  size_t size = rn_tensor_bytes(&tensor);
  if (size == bytes.size && size >= LARGE && buffer && input->dtype != RN_BOOL &&
      (uintptr_t)bytes.data % rn_dtype_size(input->dtype) == 0) {
    rn_buffer_retain(buffer);
    tensor.buffer = buffer;
    tensor.data = (char*)bytes.data;
    *out = tensor;
    return RN_OK;
  }
  rn_tensor_clear(&tensor);
  if (size != bytes.size) return wrong_size(input, bytes.size, size);
  if (input->dtype == RN_BOOL && !are_bools(bytes))
    return rn_invalid_argument("Input '%.*s' has BOOL elements that are neither 0 nor 1",
                               RN_STR_ARGS(input->name));
  RN_RETURN_IF_ERROR(rn_tensor_create(allocator, input->dtype, input->shape, out));
  if (size) memcpy(out->data, bytes.data, size);
  rn_series_add(rn_metrics_series(infer->front->metrics, RN_METRIC_COPIED_BYTES, RN_STR("oip"),
                                  RN_STR(""), RN_STR("")),
                (double)size);
  return RN_OK;
}

rn_status_t rn_oip_input_shared(rn_oip_infer_t* infer, int i) {
  const rn_oip_input_t* input = &infer->inputs[i];
  const rn_oip_place_t* place = &input->place;
  if (input->dtype != RN_STRING) {
    rn_tensor_t tensor;
    RN_RETURN_IF_ERROR(rn_tensor_init(&tensor, input->dtype, input->shape));
    size_t size = rn_tensor_bytes(&tensor);
    rn_tensor_clear(&tensor);
    if (size != place->size) return wrong_size(input, place->size, size);
  }
  rn_buffer_t* buffer = NULL;
  RN_RETURN_IF_ERROR(rn_shared_memory_read(infer->front->shared_memory, place->region,
                                           place->offset, place->size, &buffer));
  rn_status_t status =
      rn_oip_input_raw(infer, i, rn_str_n(buffer->data, (size_t)place->size), buffer);
  rn_buffer_release(buffer);
  return status;
}

// The shape of |size| bytes for |port|: one row, and at most one dimension that is not known.
static rn_status_t deduce_shape(const rn_serve_port_t* port, bool is_batched, size_t size,
                                rn_arena_t* arena, rn_shape_t* out) {
  if (!rn_shape_has_rank(port->shape))
    return rn_invalid_argument("raw input '%.*s' has no known rank", RN_STR_ARGS(port->name));
  RN_RETURN_IF_ERROR(rn_shape_copy(arena, port->shape, out));
  int64_t* dims = (int64_t*)out->dims;
  if (is_batched && out->rank) dims[0] = 1;
  int unknown = -1;
  for (int i = 0; i < out->rank; ++i) {
    if (dims[i] >= 0) continue;
    if (unknown >= 0)
      return rn_invalid_argument("The shape of raw input '%.*s' cannot be deduced from its size",
                                 RN_STR_ARGS(port->name));
    unknown = i;
    dims[i] = 1;
  }
  int64_t count = 0;
  size_t unit = rn_dtype_size(port->dtype);
  if (port->dtype == RN_STRING || unknown < 0) return RN_OK;
  if (rn_shape_count(*out, &count) && count > 0 && rn_mul_ok(unit, (size_t)count, &unit) && unit)
    dims[unknown] = (int64_t)(size / unit);
  return RN_OK;
}

rn_status_t rn_oip_input_whole(rn_oip_infer_t* infer, rn_str_t bytes, rn_buffer_t* buffer) {
  rn_version_t* version = NULL;
  RN_RETURN_IF_ERROR(rn_oip_find(infer->front, infer->model, infer->version, &version));
  const rn_backend_t* backend = rn_version_backend(version);
  int index = rn_oip_signature(backend, RN_STR(""));
  const rn_serve_signature_t* signature = index < 0 ? NULL : &backend->signatures[index];
  rn_oip_input_t* input = NULL;
  rn_status_t status =
      signature && signature->input_count == 1
          ? rn_oip_add_input(infer, &input)
          : rn_invalid_argument("Raw request must only have 1 input (found %d) to be deduced",
                                signature ? signature->input_count : 0);
  if (rn_ok(status)) {
    const rn_serve_port_t* port = signature->inputs;
    input->dtype = port->dtype;
    status = rn_arena_str(&infer->arena, port->name, &input->name);
    if (rn_ok(status))
      status = deduce_shape(port, signature->is_batched, bytes.size, &infer->arena, &input->shape);
  }
  rn_version_release(version);
  if (!rn_ok(status)) return status;
  if (input->dtype != RN_STRING) return rn_oip_input_raw(infer, 0, bytes, buffer);
  rn_tensor_t* out = &infer->predict.inputs[0].value;
  RN_RETURN_IF_ERROR(rn_tensor_create(infer->front->allocator, RN_STRING, input->shape, out));
  if (out->count != 1) return wrong_size(input, 1, (size_t)out->count);
  bool is_set = rn_tstring_assign(RN_DATA(out, rn_tstring_t), bytes.data, bytes.size);
  return is_set ? RN_OK : rn_out_of_memory();
}

bool rn_oip_raw_size(const rn_tensor_t* tensor, size_t* out) {
  *out = rn_tensor_bytes(tensor);
  if (tensor->dtype != RN_STRING) return true;
  *out = 0;
  const rn_tstring_t* strings = tensor->data;
  for (int64_t i = 0; i < tensor->count; ++i) {
    size_t size = rn_tstring_view(&strings[i]).size;
    if (size > UINT32_MAX || !rn_add_ok(*out, size + LENGTH, out)) return false;
  }
  return true;
}

void rn_oip_raw_strings(const rn_tensor_t* tensor, rn_strbuf_t* out) {
  const rn_tstring_t* strings = tensor->data;
  for (int64_t i = 0; i < tensor->count; ++i) {
    rn_str_t text = rn_tstring_view(&strings[i]);
    uint32_t size = (uint32_t)text.size;
    rn_strbuf_append_n(out, &size, LENGTH);
    rn_strbuf_append(out, text);
  }
}

rn_status_t rn_oip_output_share(rn_oip_infer_t* infer, const rn_oip_place_t* place,
                                const rn_predict_value_t* output) {
  size_t size = 0;
  bool fits = rn_oip_raw_size(&output->value, &size) && size <= place->size;
  if (!fits)
    return rn_invalid_argument(
        "shared memory size specified with the request for output '%.*s' (%llu bytes) should be "
        "at least %zu bytes to hold the results",
        RN_STR_ARGS(output->name), (unsigned long long)place->size, size);
  rn_strbuf_t strings;
  rn_strbuf_init(&strings, infer->front->allocator);
  rn_str_t bytes = rn_str_n(output->value.data, size);
  if (output->value.dtype == RN_STRING) {
    rn_oip_raw_strings(&output->value, &strings);
    bytes = rn_strbuf_view(&strings);
  }
  rn_status_t status = rn_strbuf_status(&strings);
  if (rn_ok(status))
    status =
        rn_shared_memory_write(infer->front->shared_memory, place->region, place->offset, bytes);
  rn_strbuf_clear(&strings);
  return status;
}
