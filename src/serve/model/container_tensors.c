// Batches on their way to a container, and its replies: see container_wire.h.
#include "serve/model/container_cursor.h"
#include "serve/model/container_wire.h"
#include "tensor/tstring.h"

enum { ABSENT = 0, IN_PAYLOAD = 1, IN_REGION = 2 };  // the place of a tensor's bytes

// A tensor's entry in a frame, before its dimensions.
typedef struct container_entry_t {
  int32_t dtype;
  uint16_t rank, place;
  uint64_t offset, size;
} container_entry_t;
_Static_assert(sizeof(container_entry_t) == 24, "part of the protocol");

static size_t align_up(size_t value, size_t to) { return (value + to - 1) & ~(to - 1); }

rn_status_t rn_container_tensor_size(const rn_tensor_t* tensor, size_t* out) {
  if (rn_dtype_is_plain(tensor->dtype)) {
    *out = rn_tensor_bytes(tensor);
    return RN_OK;
  }
  if (tensor->dtype != RN_STRING)
    return rn_invalid_argument("Tensors of type %s cannot be sent to a container",
                               rn_dtype_name(tensor->dtype));
  size_t size = (size_t)tensor->count * sizeof(uint64_t);
  const rn_tstring_t* strings = tensor->data;
  for (int64_t i = 0; i < tensor->count; ++i)
    if (!rn_add_ok(size, rn_tstring_view(&strings[i]).size, &size))
      return rn_resource_exhausted("The inputs are too large");
  *out = size;
  return RN_OK;
}

void rn_container_tensor_write(const rn_tensor_t* tensor, char* to) {
  if (tensor->dtype != RN_STRING) {
    size_t size = rn_tensor_bytes(tensor);
    if (size) memcpy(to, tensor->data, size);
    return;
  }
  const rn_tstring_t* strings = tensor->data;
  char* bytes = to + (size_t)tensor->count * sizeof(uint64_t);
  for (int64_t i = 0; i < tensor->count; ++i) {
    rn_str_t view = rn_tstring_view(&strings[i]);
    uint64_t size = view.size;
    memcpy(to + (size_t)i * sizeof size, &size, sizeof size);
    if (size) memcpy(bytes, view.data, size);
    bytes += size;
  }
}

// The bytes that an output of |rows| rows takes; 0 if its shape is not known, or too large to offer
// room for.
static size_t expected_size(const rn_serve_port_t* port, int64_t rows) {
  size_t size = port->dtype == RN_STRING ? 0 : rn_dtype_size(port->dtype);
  if (!rn_shape_has_rank(port->shape)) return 0;
  for (int i = 0; i < port->shape.rank; ++i) {
    int64_t dim = i == 0 && rows >= 0 ? rows : port->shape.dims[i];
    if (dim < 0 || !rn_mul_ok(size, (size_t)dim, &size)) return 0;
  }
  return size < RN_CONTAINER_MAX_FRAME ? align_up(size, RN_ALIGN) : 0;
}

static int64_t rows_of(const rn_serve_signature_t* signature, const rn_tensor_t* inputs) {
  for (int i = 0; i < signature->input_count; ++i)
    if (!rn_shape_compatible(signature->inputs[i].shape, rn_tensor_shape(&inputs[i])))
      return RN_CONTAINER_ANY_ROWS;
  return signature->is_batched ? rn_tensor_dim(&inputs[0], 0) : -1;
}

rn_status_t rn_container_batch_measure(rn_container_batch_t* batch) {
  const rn_serve_signature_t* signature = batch->signature;
  batch->input_bytes = batch->output_bytes = 0;
  for (int i = 0; i < signature->input_count; ++i) {
    size_t size;
    RN_RETURN_IF_ERROR(rn_container_tensor_size(&batch->inputs[i], &size));
    // A frame has at most 2 GiB, and a region is not larger.
    if (size > RN_CONTAINER_MAX_FRAME ||
        (batch->input_bytes += align_up(size, RN_ALIGN)) > RN_CONTAINER_MAX_FRAME)
      return rn_resource_exhausted("The inputs have more than 2 GiB");
  }
  batch->rows = rows_of(signature, batch->inputs);
  for (int i = 0; i < signature->output_count; ++i)
    if (!batch->wanted || batch->wanted[i])
      batch->output_bytes += expected_size(&signature->outputs[i], batch->rows);
  return RN_OK;
}

static size_t entries_size(const rn_container_batch_t* batch) {
  size_t size = 0;
  for (int i = 0; i < batch->signature->input_count; ++i)
    size += sizeof(container_entry_t) + batch->inputs[i].rank * sizeof(int64_t);
  return size;
}

// A PREDICT up to its entries.
typedef struct container_predict_t {
  uint32_t size, kind;
  uint64_t id;
  // The payload.
  uint32_t signature, lane, inputs, outputs;
  int64_t deadline_us;
  uint64_t room_offset, room_size;
} container_predict_t;
_Static_assert(sizeof(container_predict_t) == RN_CONTAINER_HEADER + 40, "part of the protocol");

rn_status_t rn_container_batch_write(const rn_container_batch_t* batch,
                                     const rn_container_region_t* region, rn_strbuf_t* out) {
  const rn_serve_signature_t* signature = batch->signature;
  bool is_shared = region->data && batch->input_bytes && batch->input_bytes <= region->size;
  size_t inputs = (size_t)signature->input_count, outputs = (size_t)signature->output_count;
  size_t fixed = sizeof(container_predict_t) - RN_CONTAINER_HEADER + align_up(outputs, 8);
  size_t entries = fixed + entries_size(batch), size = entries;
  for (size_t i = 0; i < inputs && !is_shared; ++i) {
    size_t bytes;
    RN_RETURN_IF_ERROR(rn_container_tensor_size(&batch->inputs[i], &bytes));
    size = align_up(size, RN_CONTAINER_ALIGN) + bytes;
  }
  if (size > RN_CONTAINER_MAX_FRAME)
    return rn_resource_exhausted("The inputs have more than 2 GiB");
  size_t room = region->data ? (is_shared ? batch->input_bytes : 0) : 0;
  container_predict_t head = {.size = (uint32_t)size,
                              .kind = RN_CONTAINER_PREDICT,
                              .id = batch->id,
                              .signature = batch->signature_index,
                              .lane = batch->lane,
                              .inputs = (uint32_t)inputs,
                              .outputs = (uint32_t)outputs,
                              .deadline_us = batch->deadline_us,
                              .room_offset = room,
                              .room_size = region->data ? region->size - room : 0};
  if (!rn_strbuf_reserve(out, RN_CONTAINER_HEADER + size)) return rn_out_of_memory();
  char *start = out->data + out->size, *payload = start + RN_CONTAINER_HEADER;
  memset(payload, 0, entries);
  memcpy(start, &head, sizeof head);
  for (size_t i = 0; i < outputs; ++i) start[sizeof head + i] = !batch->wanted || batch->wanted[i];
  size_t at = fixed, offset = is_shared ? 0 : entries;
  for (size_t i = 0; i < inputs; ++i) {
    const rn_tensor_t* input = &batch->inputs[i];
    size_t aligned = align_up(offset, is_shared ? RN_ALIGN : RN_CONTAINER_ALIGN), bytes;
    if (!is_shared) memset(payload + offset, 0, aligned - offset);
    RN_RETURN_IF_ERROR(rn_container_tensor_size(input, &bytes));
    container_entry_t entry = {.dtype = input->dtype,
                               .rank = input->rank,
                               .place = is_shared ? IN_REGION : IN_PAYLOAD,
                               .offset = aligned,
                               .size = bytes};
    memcpy(payload + at, &entry, sizeof entry);
    at += sizeof entry;
    if (input->rank) memcpy(payload + at, rn_tensor_dims(input), input->rank * sizeof(int64_t));
    at += input->rank * sizeof(int64_t);
    rn_container_tensor_write(input, (is_shared ? region->data : payload) + aligned);
    offset = aligned + bytes;
  }
  out->size += RN_CONTAINER_HEADER + size;
  out->data[out->size] = '\0';
  return RN_OK;
}

// The lengths are read once each: they may be in memory that the container still writes to.
rn_status_t rn_container_strings_read(const char* bytes, size_t size, rn_tensor_t* out) {
  size_t at;
  if (!rn_mul_ok((size_t)out->count, sizeof(uint64_t), &at) || at > size)
    return rn_internal("has strings that are cut off");
  rn_tstring_t* strings = out->data;
  for (int64_t i = 0; i < out->count; ++i) {
    uint64_t length;
    memcpy(&length, bytes + (size_t)i * sizeof length, sizeof length);
    if (length > size - at) return rn_internal("has strings that are cut off");
    if (!rn_tstring_assign(&strings[i], bytes + at, length)) return rn_out_of_memory();
    at += length;
  }
  return at == size ? RN_OK : rn_internal("has strings with bytes left over");
}

static rn_status_t check_shape(const rn_serve_port_t* port, int64_t rows, rn_shape_t shape) {
  bool fits = rn_shape_is_full(shape);
  if (fits && rows != RN_CONTAINER_ANY_ROWS) fits = rn_shape_compatible(port->shape, shape);
  if (fits && rows >= 0) fits = shape.rank > 0 && shape.dims[0] == rows;
  if (fits) return RN_OK;
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  rn_strbuf_printf(&text, "has the shape ");
  rn_shape_print(&text, shape);
  rn_strbuf_printf(&text, ", which does not fit ");
  rn_shape_print(&text, port->shape);
  if (rows >= 0) rn_strbuf_printf(&text, " for a batch of %lld rows", (long long)rows);
  return rn_status_from_buf(RN_CODE_INTERNAL, &text);
}

// Where the bytes of |entry| are.
static rn_status_t find_bytes(const container_entry_t* entry, rn_str_t payload,
                              const rn_container_region_t* region, const char** out) {
  const char* base = entry->place == IN_PAYLOAD ? payload.data : region->data;
  size_t limit = entry->place == IN_PAYLOAD ? payload.size : region->data ? region->size : 0;
  if (entry->place != IN_PAYLOAD && entry->place != IN_REGION)
    return rn_internal("is in place %u, which does not exist", entry->place);
  if (entry->offset > limit || entry->size > limit - entry->offset)
    return rn_internal("is outside of the reply");
  *out = base ? base + entry->offset : "";
  return RN_OK;
}

static rn_status_t read_output(rn_container_cursor_t* cursor, rn_str_t payload,
                               const container_entry_t* entry, const rn_serve_port_t* port,
                               int64_t rows, const rn_container_region_t* region,
                               rn_allocator_t allocator, rn_tensor_t* out) {
  int64_t dims[RN_MAX_RANK];
  if (entry->rank > RN_MAX_RANK) return rn_internal("has %u dimensions", entry->rank);
  rn_container_take(cursor, dims, entry->rank * sizeof *dims);
  if (cursor->is_bad) return rn_internal("is cut off");
  if (entry->dtype != port->dtype)
    return rn_internal("has the type %s instead of %s", rn_dtype_name(entry->dtype),
                       rn_dtype_name(port->dtype));
  rn_shape_t shape = {entry->rank, dims};
  RN_RETURN_IF_ERROR(check_shape(port, rows, shape));
  const char* bytes;
  RN_RETURN_IF_ERROR(find_bytes(entry, payload, region, &bytes));
  // No memory is taken for more than the reply has.
  int64_t count;
  size_t least, each = port->dtype == RN_STRING ? sizeof(uint64_t) : rn_dtype_size(port->dtype);
  if (!rn_shape_count(shape, &count) || count < 0 || !rn_mul_ok((size_t)count, each, &least) ||
      (port->dtype == RN_STRING ? least > entry->size : least != entry->size))
    return rn_internal("has %llu bytes, which do not fit its shape",
                       (unsigned long long)entry->size);
  RN_RETURN_IF_ERROR(rn_tensor_create(allocator, port->dtype, shape, out));
  if (port->dtype == RN_STRING) return rn_container_strings_read(bytes, entry->size, out);
  if (port->dtype == RN_BOOL) {  // other values than 0 and 1 are no bool
    for (int64_t i = 0; i < count; ++i) RN_DATA(out, bool)[i] = bytes[i] != 0;
  } else if (entry->size) {
    memcpy(out->data, bytes, entry->size);
  }
  return RN_OK;
}

static rn_status_t read_outputs(rn_container_cursor_t* cursor, rn_str_t payload,
                                const rn_serve_signature_t* signature, const bool* wanted,
                                int64_t rows, const rn_container_region_t* region,
                                rn_allocator_t allocator, rn_tensor_t* outputs, size_t* out_bytes) {
  for (int i = 0; i < signature->output_count; ++i) {
    container_entry_t entry;
    rn_container_take(cursor, &entry, sizeof entry);
    if (cursor->is_bad) return rn_internal("the reply is cut off");
    bool is_wanted = !wanted || wanted[i];
    const rn_serve_port_t* port = &signature->outputs[i];
    if (entry.place == ABSENT) {
      if (entry.rank) return rn_internal("an absent output has dimensions");
      if (!is_wanted) continue;
      return rn_internal("the output '%.*s' is missing", RN_STR_ARGS(port->name));
    }
    rn_tensor_t output = {0};
    rn_status_t status =
        read_output(cursor, payload, &entry, port, rows, region, allocator, &output);
    if (!rn_ok(status) || !is_wanted) rn_tensor_clear(&output);
    if (!rn_ok(status)) {
      rn_status_t named = rn_status_make(rn_status_code(status), "the output '%.*s' %s",
                                         RN_STR_ARGS(port->name), rn_status_message(status));
      rn_status_free(status);
      return named;
    }
    if (entry.place == IN_PAYLOAD) *out_bytes += align_up(entry.size, RN_ALIGN);
    if (is_wanted) outputs[i] = output;
  }
  return RN_OK;
}

rn_status_t rn_container_reply_read(rn_str_t payload, const rn_serve_signature_t* signature,
                                    const bool* wanted, int64_t rows,
                                    const rn_container_region_t* region, rn_allocator_t allocator,
                                    rn_tensor_t* outputs, size_t* out_bytes) {
  *out_bytes = 0;
  memset(outputs, 0, (size_t)signature->output_count * sizeof *outputs);
  rn_container_cursor_t cursor = rn_container_cursor(payload);
  uint32_t count = rn_container_take_u32(&cursor);
  rn_container_take_u32(&cursor);
  if (cursor.is_bad || count != (uint32_t)signature->output_count)
    return rn_internal("the reply has %u outputs instead of %d", count, signature->output_count);
  rn_status_t status = read_outputs(&cursor, payload, signature, wanted, rows, region, allocator,
                                    outputs, out_bytes);
  if (!rn_ok(status))
    for (int i = 0; i < signature->output_count; ++i) rn_tensor_clear(&outputs[i]);
  return status;
}
