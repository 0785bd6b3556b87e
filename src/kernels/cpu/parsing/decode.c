// DecodeRaw, DecodePaddedRaw, DecodeCompressed, ParseTensor and SerializeTensor.
#include "wire/decode.h"
#include "io/inflate.h"
#include "io/zstd.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/string/text.h"
#include "kernels/kernel_rows.h"
#include "tensor/tensor_proto.h"
#include "tensor/tstring.h"
#include "wire/encode.h"

// The shape of |in| with one more dimension.
static rn_status_t output_wider(rn_kernel_ctx_t* ctx, const rn_tensor_t* in, int64_t size,
                                rn_tensor_t** out) {
  int64_t dims[RN_MAX_RANK + 1];
  if (in->rank >= RN_MAX_RANK) return rn_invalid_argument("Too many dimensions: %d", in->rank);
  for (int d = 0; d < in->rank; ++d) dims[d] = rn_tensor_dim(in, d);
  dims[in->rank] = size;
  return rn_output(ctx, 0, (rn_shape_t){(int16_t)(in->rank + 1), dims}, out);
}

static void swap_bytes(char* data, size_t count, size_t size) {
  for (size_t i = 0; i < count; ++i, data += size)
    for (size_t b = 0; b < size / 2; ++b) {
      char byte = data[b];
      data[b] = data[size - 1 - b];
      data[size - 1 - b] = byte;
    }
}

typedef struct raw_t {
  bool swaps;
  size_t part;  // bytes per number, or per half of a complex one
} raw_t;

static rn_status_t raw_init(const rn_kernel_init_t* init, void* self) {
  raw_t* raw = self;
  rn_dtype_t type = rn_init_type(init, "out_type");
  raw->swaps = !rn_init_bool(init, "little_endian");
  raw->part = rn_dtype_size(type) / (rn_dtype_is_complex(type) ? 2 : 1);
  return RN_OK;
}

static void finish_raw(const raw_t* raw, rn_tensor_t* out) {
  if (raw->swaps) swap_bytes(out->data, rn_tensor_bytes(out) / raw->part, raw->part);
}

static rn_status_t decode_raw(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  size_t length = in->count ? rn_text_at(in, 0).size : 0;
  rn_dtype_t type = ctx->kernel->output_types[0];
  size_t width = rn_dtype_size(type);
  rn_tensor_t* out = NULL;
  for (int64_t i = 1; i < in->count; ++i)
    if (rn_text_at(in, i).size != length)
      return rn_invalid_argument(
          "DecodeRaw requires input strings to all be the same size, but element %lld has size "
          "%zu != %zu",
          (long long)i, length, rn_text_at(in, i).size);
  if (length % width)
    return rn_invalid_argument(
        "Input to DecodeRaw has length %zu that is not a multiple of %zu, the size of %s", length,
        width, rn_dtype_name(type));
  RN_RETURN_IF_ERROR(output_wider(ctx, in, (int64_t)(length / width), &out));
  for (int64_t i = 0; i < in->count && length; ++i)
    memcpy((char*)out->data + (size_t)i * length, rn_text_at(in, i).data, length);
  finish_raw(ctx->state, out);
  return RN_OK;
}

static rn_status_t decode_padded_raw(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *in = rn_in(ctx, 0), *fixed = rn_in(ctx, 1);
  size_t width = rn_dtype_size(ctx->kernel->output_types[0]);
  rn_tensor_t* out = NULL;
  if (fixed->count != 1)
    return rn_invalid_argument("k must be scalar, got shape %s", rn_text_of(fixed).text);
  int32_t length = *RN_DATA(fixed, const int32_t);
  if (length <= 0)
    return rn_invalid_argument("fixed_length (%d) must be greater than zero.", length);
  if ((size_t)length % width)
    return rn_invalid_argument("fixed_length (%d) must be a multiple of the size of out_type (%zu)",
                               length, width);
  RN_RETURN_IF_ERROR(output_wider(ctx, in, length / (int64_t)width, &out));
  for (int64_t i = 0; i < in->count; ++i) {
    rn_str_t text = rn_text_at(in, i);
    size_t used = text.size < (size_t)length ? text.size : (size_t)length;
    char* to = (char*)out->data + (size_t)i * (size_t)length;
    memcpy(to, text.data, used);
    memset(to + used, 0, (size_t)length - used);
  }
  finish_raw(ctx->state, out);
  return RN_OK;
}

// Decompression.

typedef struct decode_compressed_t {
  rn_compression_t compression;
  bool is_zstd;  // then |compression| does not count
} decode_compressed_t;

static rn_status_t compressed_init(const rn_kernel_init_t* init, void* self) {
  decode_compressed_t* state = self;
  rn_str_t name = rn_init_string(init, "compression_type");
  state->is_zstd = rn_str_is(name, "ZSTD");
  if (state->is_zstd) return rn_zstd_need();
  if (rn_compression_from_name(name, &state->compression)) return RN_OK;
  return rn_invalid_argument("Only ZLIB, ZSTD, GZIP or NONE are supported compressions");
}

static rn_status_t decode_compressed(rn_kernel_ctx_t* ctx) {
  const decode_compressed_t* state = ctx->state;
  const rn_tensor_t* in = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  rn_strbuf_t buffer;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(in), &out));
  rn_strbuf_init(&buffer, ctx->kernel->allocator);
  rn_status_t status = RN_OK;
  // Uncompressed data is as large as its input. The rest has one limit for all strings together.
  uint64_t packed = 0;
  for (int64_t i = 0; i < in->count; ++i) packed += rn_text_at(in, i).size;
  bool is_packed = state->is_zstd || state->compression != RN_COMPRESSION_NONE;
  size_t left = is_packed ? rn_unpacked_limit(packed) : SIZE_MAX;
  for (int64_t i = 0; rn_ok(status) && i < in->count; ++i) {
    buffer.size = 0;
    rn_str_t text = rn_text_at(in, i);
    status = state->is_zstd ? rn_unzstd(text, left, &buffer)
                            : rn_inflate(text, state->compression, left, &buffer);
    left -= is_packed ? buffer.size : 0;
    if (rn_ok(status) && !rn_tstring_assign(&RN_DATA(out, rn_tstring_t)[i],
                                            rn_strbuf_view(&buffer).data, buffer.size))
      status = rn_out_of_memory();
  }
  rn_strbuf_clear(&buffer);
  return status;
}

// Tensors as messages.

// The largest tensor that a message of a few bytes, which may repeat one value, may request.
#define MAX_TENSOR ((size_t)1 << 32)

static rn_status_t not_a_tensor(rn_kernel_ctx_t* ctx, rn_str_t bytes) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  rn_strbuf_t text;
  rn_strbuf_init(&text, ctx->kernel->allocator);
  for (size_t i = 0; i < bytes.size; i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size ? (uint8_t)bytes.data[i + k] : 0);
    for (size_t k = 0; k < 4; ++k) {
      char digit = i + k > bytes.size ? '=' : digits[(group >> (18 - 6 * k)) & 63];
      rn_strbuf_append_n(&text, &digit, 1);
    }
  }
  rn_status_t status =
      rn_invalid_argument("Could not parse `serialized` as TensorProto, base64: %.*s",
                          RN_STR_ARGS(rn_strbuf_view(&text)));
  rn_strbuf_clear(&text);
  return status;
}

static rn_status_t parse_bytes(rn_kernel_ctx_t* ctx, rn_arena_t* arena, rn_str_t bytes,
                               rn_tensor_t* out) {
  rn_pb_TensorProto_t* proto = NULL;
  rn_dtype_t type = ctx->kernel->output_types[0];
  rn_status_t status = RN_PB_DECODE(TensorProto, bytes, NULL, arena, &proto);
  if (rn_status_code(status) == RN_CODE_RESOURCE_EXHAUSTED) return status;
  if (!rn_ok(status)) {
    rn_status_free(status);
    return not_a_tensor(ctx, bytes);
  }
  RN_RETURN_IF_ERROR(rn_tensor_from_proto(proto, MAX_TENSOR, ctx->kernel->host_memory, out));
  if (out->dtype == type) return RN_OK;
  return rn_invalid_argument("Type mismatch between parsed tensor (%s) and dtype (%s)",
                             rn_dtype_name(out->dtype), rn_dtype_name(type));
}

static rn_status_t parse_tensor(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  if (in->rank != 0)
    return rn_invalid_argument("Expected `serialized` to be a scalar, got shape: %s",
                               rn_text_of(in).text);
  rn_arena_t arena;
  rn_tensor_t tensor = {0};
  rn_arena_init(&arena, ctx->kernel->allocator);
  rn_status_t status = parse_bytes(ctx, &arena, rn_text_at(in, 0), &tensor);
  if (rn_ok(status)) rn_set_output(ctx, 0, &tensor);
  rn_tensor_clear(&tensor);
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t serialize(rn_kernel_ctx_t* ctx, rn_arena_t* arena, rn_strbuf_t* buffer) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  rn_pb_TensorProto_t proto;
  rn_tensor_t* out = NULL;
  bool is_plain = rn_dtype_is_plain(in->dtype);
  RN_RETURN_IF_ERROR(
      rn_tensor_to_proto(in, is_plain ? RN_TENSOR_CONTENT : RN_TENSOR_TYPED, arena, &proto));
  RN_RETURN_IF_ERROR(RN_PB_ENCODE(TensorProto, &proto, NULL, buffer));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  rn_str_t view = rn_strbuf_view(buffer);
  return rn_tstring_assign(RN_DATA(out, rn_tstring_t), view.data, view.size) ? RN_OK
                                                                             : rn_out_of_memory();
}

static rn_status_t serialize_tensor(rn_kernel_ctx_t* ctx) {
  rn_arena_t arena;
  rn_strbuf_t buffer;
  rn_arena_init(&arena, ctx->kernel->allocator);
  rn_strbuf_init(&buffer, ctx->kernel->allocator);
  rn_status_t status = serialize(ctx, &arena, &buffer);
  rn_strbuf_clear(&buffer);
  rn_arena_clear(&arena);
  return status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "DecodeRaw",
     .device = "CPU",
     .state_size = sizeof(raw_t),
     .init = raw_init,
     .compute = decode_raw},
    {.op = "DecodePaddedRaw",
     .device = "CPU",
     .types = {{"out_type", RN_TYPES_INTS | RN_T(UINT8) | RN_T(UINT16) | RN_T(BFLOAT16) |
                                RN_T(FLOAT) | RN_T(DOUBLE)}},
     .state_size = sizeof(raw_t),
     .init = raw_init,
     .compute = decode_padded_raw},
    {.op = "DecodeCompressed",
     .device = "CPU",
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(decode_compressed_t),
     .init = compressed_init,
     .compute = decode_compressed},
    {.op = "ParseTensor", .device = "CPU", .flags = RN_KERNEL_OWN_OUTPUTS, .compute = parse_tensor},
    {.op = "SerializeTensor", .device = "CPU", .compute = serialize_tensor},
};
RN_KERNEL_FAMILY(cpu_decode, rows);
