// Frames without tensors: see container_wire.h. Batches are in container_tensors.c.
#include "serve/model/container_wire.h"

#include "serve/model/container_cursor.h"

#define MAX_SIGNATURES 256
#define MAX_PORTS 1024  // inputs, and outputs, of a signature
#define MAX_NAME 1024
#define MAX_ERROR ((size_t)64 << 10)

enum { TAKES_REGIONS = 1 };            // flags of HELLO
enum { IS_BATCHED = 1, IS_PURE = 2 };  // flags of a signature
enum { HAS_REGIONS = 1 };              // flags of WELCOME

static size_t most_of(uint16_t kind) {
  switch (kind) {
    case RN_CONTAINER_HELLO:
      return RN_CONTAINER_MAX_HELLO;
    case RN_CONTAINER_REPLY:
      return RN_CONTAINER_MAX_FRAME;
    case RN_CONTAINER_ERROR:
      return MAX_ERROR;
    default:
      return 0;
  }
}

rn_status_t rn_container_frame_read(rn_str_t bytes, rn_container_frame_t* out, size_t* out_size) {
  *out = (rn_container_frame_t){0};
  *out_size = RN_CONTAINER_HEADER;
  if (bytes.size < RN_CONTAINER_HEADER) return RN_OK;
  rn_container_cursor_t cursor = rn_container_cursor(bytes);
  uint32_t size = rn_container_take_u32(&cursor);
  uint16_t rest;
  rn_container_take(&cursor, &out->kind, sizeof out->kind);
  rn_container_take(&cursor, &rest, sizeof rest);
  out->id = rn_container_take_u64(&cursor);
  bool is_known = out->kind == RN_CONTAINER_HELLO || out->kind == RN_CONTAINER_REPLY ||
                  out->kind == RN_CONTAINER_ERROR || out->kind == RN_CONTAINER_BEAT;
  if (!is_known || rest)
    return rn_invalid_argument("sent a frame of kind %u, which containers do not send", out->kind);
  if (size > most_of(out->kind))
    return rn_invalid_argument("sent a frame of kind %u with %u bytes; at most %zu are allowed",
                               out->kind, size, most_of(out->kind));
  *out_size += size;
  if (bytes.size >= *out_size) out->payload = rn_str_n(cursor.next, size);
  return RN_OK;
}

static rn_status_t read_port(rn_container_cursor_t* cursor, rn_arena_t* arena,
                             rn_serve_port_t* out) {
  rn_str_t name = rn_container_take_str(cursor);
  out->dtype = (rn_dtype_t)rn_container_take_u32(cursor);
  int32_t rank = (int32_t)rn_container_take_u32(cursor);
  out->tensor = RN_STR("");
  if (cursor->is_bad) return RN_OK;
  if (!name.size || name.size > MAX_NAME || memchr(name.data, '\0', name.size))
    return rn_invalid_argument("has an input or output with a bad name");
  RN_RETURN_IF_ERROR(rn_arena_str(arena, name, &out->name));
  if (rn_dtype_is_ref(out->dtype) || !rn_dtype_is_valid(out->dtype) || out->dtype == RN_RESOURCE ||
      out->dtype == RN_VARIANT)
    return rn_invalid_argument("has '%.*s' of type %d, which cannot be sent",
                               RN_STR_ARGS(out->name), out->dtype);
  out->shape = RN_SHAPE_UNKNOWN;
  if (rank == RN_UNKNOWN) return RN_OK;
  if (rank < 0 || rank > RN_MAX_RANK || rn_container_left(cursor) / sizeof(int64_t) < (size_t)rank)
    return rn_invalid_argument("has '%.*s' of rank %d", RN_STR_ARGS(out->name), rank);
  int64_t* dims = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)rank, &dims));
  for (int i = 0; i < rank; ++i) dims[i] = (int64_t)rn_container_take_u64(cursor);
  out->shape = (rn_shape_t){rank, dims};
  int64_t count;
  if (!rn_shape_count(out->shape, &count))
    return rn_invalid_argument("has '%.*s' of a shape that is too large", RN_STR_ARGS(out->name));
  return RN_OK;
}

static int compare_ports(const void* a, const void* b) {
  return rn_str_compare(((const rn_serve_port_t*)a)->name, ((const rn_serve_port_t*)b)->name);
}

// Ports come by ascending name, which makes them easy to find and hard to repeat.
static rn_status_t read_ports(rn_container_cursor_t* cursor, rn_arena_t* arena, uint32_t count,
                              const rn_serve_port_t** out) {
  rn_serve_port_t* ports = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &ports));
  *out = ports;
  for (uint32_t i = 0; i < count && !cursor->is_bad; ++i) {
    RN_RETURN_IF_ERROR(read_port(cursor, arena, &ports[i]));
    if (!cursor->is_bad && i && compare_ports(&ports[i - 1], &ports[i]) >= 0)
      return rn_invalid_argument("has inputs or outputs that are not by ascending name: '%.*s'",
                                 RN_STR_ARGS(ports[i].name));
  }
  return RN_OK;
}

static bool has_rows(const rn_serve_port_t* ports, int count) {
  for (int i = 0; i < count; ++i)
    if (ports[i].shape.rank < 1 || ports[i].shape.dims[0] != RN_UNKNOWN) return false;
  return true;
}

static rn_status_t read_signature(rn_container_cursor_t* cursor, rn_arena_t* arena,
                                  rn_serve_signature_t* out) {
  rn_str_t name = rn_container_take_str(cursor), method = rn_container_take_str(cursor);
  uint32_t flags = rn_container_take_u32(cursor);
  uint32_t inputs = rn_container_take_u32(cursor), outputs = rn_container_take_u32(cursor);
  if (cursor->is_bad) return RN_OK;
  if (!name.size || name.size > MAX_NAME || method.size > MAX_NAME ||
      memchr(name.data, '\0', name.size))
    return rn_invalid_argument("has a signature with a bad name");
  RN_RETURN_IF_ERROR(rn_arena_str(arena, name, &out->name));
  if (!method.size) method = RN_STR("tensorflow/serving/predict");
  RN_RETURN_IF_ERROR(rn_arena_str(arena, method, &out->method));
  if (inputs > MAX_PORTS || outputs > MAX_PORTS || !outputs)
    return rn_invalid_argument("has a signature '%.*s' with %u inputs and %u outputs",
                               RN_STR_ARGS(out->name), inputs, outputs);
  out->input_count = (int)inputs;
  out->output_count = (int)outputs;
  RN_RETURN_IF_ERROR(read_ports(cursor, arena, inputs, &out->inputs));
  RN_RETURN_IF_ERROR(read_ports(cursor, arena, outputs, &out->outputs));
  if (cursor->is_bad) return RN_OK;
  out->is_pure = flags & IS_PURE;
  out->is_batched = flags & IS_BATCHED;
  if (out->is_batched && !(inputs && has_rows(out->inputs, out->input_count) &&
                           has_rows(out->outputs, out->output_count)))
    return rn_invalid_argument(
        "has a batched signature '%.*s' with a first dimension that is not -1",
        RN_STR_ARGS(out->name));
  return RN_OK;
}

rn_status_t rn_container_hello_read(rn_str_t payload, rn_arena_t* arena,
                                    rn_container_hello_t* out) {
  *out = (rn_container_hello_t){0};
  rn_container_cursor_t cursor = rn_container_cursor(payload);
  uint32_t magic = rn_container_take_u32(&cursor), version = rn_container_take_u32(&cursor);
  uint32_t lanes = rn_container_take_u32(&cursor), flags = rn_container_take_u32(&cursor);
  uint64_t max_rows = rn_container_take_u64(&cursor);
  rn_str_t model = rn_container_take_str(&cursor);
  uint32_t count = rn_container_take_u32(&cursor);
  if (magic != RN_CONTAINER_MAGIC) return rn_invalid_argument("does not speak the protocol");
  if (version != RN_CONTAINER_VERSION)
    return rn_invalid_argument("speaks version %u of the protocol; this server speaks %d", version,
                               RN_CONTAINER_VERSION);
  if (lanes < 1 || lanes > RN_CONTAINER_MAX_LANES)
    return rn_invalid_argument("wants %u batches at a time; 1 to %d are allowed", lanes,
                               RN_CONTAINER_MAX_LANES);
  if (max_rows > INT64_MAX) return rn_invalid_argument("has a largest batch that is out of range");
  if (count < 1 || count > MAX_SIGNATURES)
    return rn_invalid_argument("has %u signatures; 1 to %d are allowed", count, MAX_SIGNATURES);
  out->lanes = (int)lanes;
  out->max_rows = (int64_t)max_rows;
  out->takes_regions = flags & TAKES_REGIONS;
  RN_RETURN_IF_ERROR(rn_arena_str(arena, model, &out->model));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &out->signatures));
  out->signature_count = (int)count;
  for (uint32_t i = 0; i < count && !cursor.is_bad; ++i) {
    RN_RETURN_IF_ERROR(read_signature(&cursor, arena, &out->signatures[i]));
    if (!cursor.is_bad && i &&
        rn_str_compare(out->signatures[i - 1].name, out->signatures[i].name) >= 0)
      return rn_invalid_argument("has signatures that are not by ascending name");
  }
  if (cursor.is_bad) return rn_invalid_argument("sent a HELLO that ends early");
  if (cursor.next != cursor.end) return rn_invalid_argument("sent a HELLO with bytes left over");
  return RN_OK;
}

static bool same_ports(const rn_serve_port_t* a, const rn_serve_port_t* b, int count) {
  for (int i = 0; i < count; ++i)
    if (!rn_str_eq(a[i].name, b[i].name) || a[i].dtype != b[i].dtype ||
        !rn_shape_eq(a[i].shape, b[i].shape))
      return false;
  return true;
}

bool rn_container_hello_same(const rn_container_hello_t* a, const rn_container_hello_t* b) {
  if (a->signature_count != b->signature_count || a->lanes != b->lanes ||
      a->max_rows != b->max_rows)
    return false;
  for (int i = 0; i < a->signature_count; ++i) {
    const rn_serve_signature_t *x = &a->signatures[i], *y = &b->signatures[i];
    bool is_same = rn_str_eq(x->name, y->name) && rn_str_eq(x->method, y->method) &&
                   x->is_batched == y->is_batched && x->is_pure == y->is_pure &&
                   x->input_count == y->input_count && x->output_count == y->output_count &&
                   same_ports(x->inputs, y->inputs, x->input_count) &&
                   same_ports(x->outputs, y->outputs, x->output_count);
    if (!is_same) return false;
  }
  return true;
}

static void put_u32(rn_strbuf_t* out, uint32_t value) {
  rn_strbuf_append_n(out, &value, sizeof value);
}
static void put_u64(rn_strbuf_t* out, uint64_t value) {
  rn_strbuf_append_n(out, &value, sizeof value);
}
static void put_str(rn_strbuf_t* out, rn_str_t str) {
  put_u32(out, (uint32_t)str.size);
  rn_strbuf_append(out, str);
}

static void put_header(rn_strbuf_t* out, rn_container_kind_t kind, uint64_t id, size_t size) {
  put_u32(out, (uint32_t)size);
  put_u32(out, kind);
  put_u64(out, id);
}

void rn_container_write_welcome(rn_strbuf_t* out, rn_str_t model, int64_t number, rn_str_t token,
                                int64_t beat_ms, int64_t beat_timeout_ms, bool has_regions) {
  put_header(out, RN_CONTAINER_WELCOME, 0, 4 * 4 + 8 + 4 + model.size + 4 + token.size);
  put_u32(out, RN_CONTAINER_VERSION);
  put_u32(out, (uint32_t)beat_ms);
  put_u32(out, (uint32_t)beat_timeout_ms);
  put_u32(out, has_regions ? HAS_REGIONS : 0);
  put_u64(out, (uint64_t)number);
  put_str(out, model);
  put_str(out, token);
}

void rn_container_write_region(rn_strbuf_t* out, uint32_t lane, size_t size) {
  put_header(out, RN_CONTAINER_REGION, 0, 16);
  put_u32(out, lane);
  put_u32(out, 0);
  put_u64(out, size);
}

void rn_container_write_empty(rn_strbuf_t* out, rn_container_kind_t kind, uint64_t id) {
  put_header(out, kind, id, 0);
}

rn_status_t rn_container_error_read(rn_str_t payload) {
  rn_container_cursor_t cursor = rn_container_cursor(payload);
  uint32_t code = rn_container_take_u32(&cursor);
  rn_str_t message = rn_container_take_str(&cursor);
  if (cursor.is_bad || cursor.next != cursor.end)
    return rn_internal("the container sent a malformed error");
  if (code == RN_CODE_OK || code > RN_CODE_UNAUTHENTICATED) code = RN_CODE_UNKNOWN;
  return rn_status_make_n((rn_code_t)code, message.data, message.size);
}
