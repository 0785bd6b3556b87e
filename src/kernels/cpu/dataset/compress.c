// CompressElement and UncompressElement: an element as one Snappy block in a variant.
//
// The variant holds a CompressedElement message: data 1, component_metadata 2 {dtype 1,
// tensor_shape 2, uncompressed_bytes 4 (packed)}. The data are the bytes of all components, one
// after the other: of plain types as they are in memory, of strings one by one, each with its size
// in uncompressed_bytes, of others a TensorProto.
#include "kernels/cpu/dataset/compress.h"

#include "io/snappy.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/expected.h"
#include "tensor/tensor_proto.h"
#include "tensor/tstring.h"
#include "tensor/variant.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/scan.h"
#include "wire/writer.h"

#define MAX_BYTES ((uint64_t)UINT32_MAX)  // of a Snappy block

typedef struct compressed_t {
  rn_object_t object;
  rn_allocator_t allocator;
  char* bytes;  // the message
  size_t size;
} compressed_t;

static void compressed_destroy(rn_object_t* object) {
  compressed_t* compressed = (compressed_t*)object;
  if (compressed->bytes) rn_free(compressed->allocator, compressed->bytes, compressed->size + 1);
  RN_FREE(compressed->allocator, compressed);
}

static rn_status_t compressed_make(rn_allocator_t allocator, rn_str_t bytes, rn_object_t** out) {
  compressed_t* compressed = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &compressed));
  compressed->object = (rn_object_t){.refs = 1, .destroy = compressed_destroy};
  compressed->allocator = allocator;
  rn_status_t status = rn_str_dup(allocator, bytes, &compressed->bytes);
  if (!rn_ok(status)) {
    rn_object_release(&compressed->object);
    return status;
  }
  compressed->size = bytes.size;
  *out = &compressed->object;
  return RN_OK;
}

// The variant in messages.
static bool holds(const rn_object_t* object) { return object->destroy == compressed_destroy; }

static rn_status_t to_proto(const rn_object_t* object, rn_arena_t* arena,
                            rn_pb_VariantTensorDataProto_t* out) {
  (void)arena;
  const compressed_t* compressed = (const compressed_t*)object;
  out->metadata = rn_str_n(compressed->bytes, compressed->size);
  return RN_OK;
}

static rn_status_t from_proto(const rn_pb_VariantTensorDataProto_t* proto, size_t max_bytes,
                              rn_allocator_t allocator, rn_object_t** out) {
  (void)max_bytes;  // no larger than the message
  return compressed_make(allocator, proto->metadata, out);
}

extern const rn_variant_kind_t rn_variant_compressed;
const rn_variant_kind_t rn_variant_compressed = {"tensorflow.data.CompressedElement", holds,
                                                 to_proto, from_proto, NULL};

// Compressing.
// Appends the bytes of |tensor| to |data| and their sizes to |meta|.
static rn_status_t put_component(const rn_tensor_t* tensor, rn_strbuf_t* data, rn_strbuf_t* meta) {
  rn_dtype_t dtype = tensor->dtype;
  rn_pb_put_uint(meta, 1, dtype);
  size_t shape = rn_pb_begin(meta, 2);
  for (int d = 0; d < tensor->rank; ++d) {
    size_t dim = rn_pb_begin(meta, 2);
    int64_t size = rn_tensor_dim(tensor, d);
    if (size) rn_pb_put_uint(meta, 1, (uint64_t)size);
    rn_pb_end(meta, dim);
  }
  rn_pb_end(meta, shape);
  size_t sizes = rn_pb_begin(meta, 4);
  size_t before = data->size;
  if (dtype == RN_STRING) {
    for (int64_t i = 0; i < tensor->count; ++i) {
      rn_str_t text = rn_tstring_view(&RN_DATA(tensor, const rn_tstring_t)[i]);
      rn_strbuf_append(data, text);
      rn_pb_put_varint(meta, text.size);
    }
  } else {
    if (rn_dtype_is_plain(dtype))
      rn_strbuf_append(data, rn_str_n(tensor->data, rn_tensor_bytes(tensor)));
    else
      RN_RETURN_IF_ERROR(rn_tensor_put_proto(tensor, RN_TENSOR_CONTENT, data));
    rn_pb_put_varint(meta, data->size - before);
  }
  rn_pb_end(meta, sizes);
  return RN_OK;
}

// The buffers of one call: bytes of the components, what describes one of them, and the message.
typedef struct compress_bufs_t {
  rn_strbuf_t data, meta, metas, message;
} compress_bufs_t;

static rn_status_t compress(rn_kernel_ctx_t* ctx, compress_bufs_t* bufs) {
  for (int i = 0; i < ctx->kernel->input_count; ++i) {
    bufs->meta.size = 0;
    RN_RETURN_IF_ERROR(put_component(rn_in(ctx, i), &bufs->data, &bufs->meta));
    rn_pb_put_str(&bufs->metas, 2, rn_strbuf_view(&bufs->meta));
  }
  RN_RETURN_IF_ERROR(rn_strbuf_status(&bufs->data));
  if (bufs->data.size > MAX_BYTES)
    return rn_out_of_range(
        "Encountered dataset element of size %zu, exceeding the 4GB Snappy limit.",
        bufs->data.size);
  bufs->meta.size = 0;
  rn_snappy_fold(rn_strbuf_view(&bufs->data), &bufs->meta);
  rn_pb_put_str(&bufs->message, 1, rn_strbuf_view(&bufs->meta));
  rn_strbuf_append(&bufs->message, rn_strbuf_view(&bufs->metas));
  RN_RETURN_IF_ERROR(rn_strbuf_status(&bufs->meta));
  RN_RETURN_IF_ERROR(rn_strbuf_status(&bufs->metas));
  RN_RETURN_IF_ERROR(rn_strbuf_status(&bufs->message));
  rn_object_t* object = NULL;
  RN_RETURN_IF_ERROR(
      compressed_make(ctx->kernel->allocator, rn_strbuf_view(&bufs->message), &object));
  rn_tensor_t out = {0};
  RN_RETURN_IF_ERROR(rn_data_variant(ctx->kernel->host_memory, object, &out));
  rn_set_output(ctx, 0, &out);
  return RN_OK;
}

static rn_status_t compress_compute(rn_kernel_ctx_t* ctx) {
  compress_bufs_t bufs;
  rn_strbuf_t* const all[] = {&bufs.data, &bufs.meta, &bufs.metas, &bufs.message};
  for (size_t i = 0; i < 4; ++i) rn_strbuf_init(all[i], ctx->kernel->allocator);
  rn_status_t status = compress(ctx, &bufs);
  for (size_t i = 0; i < 4; ++i) rn_strbuf_clear(all[i]);
  return status;
}

// Uncompressing.
typedef struct compress_meta_t {
  rn_dtype_t dtype;
  int32_t rank;
  int64_t dims[RN_MAX_RANK];
  rn_str_t sizes;  // varints
} compress_meta_t;

static rn_status_t damaged(void) { return rn_internal("The compressed element is damaged"); }

static rn_status_t read_shape(rn_str_t bytes, compress_meta_t* out) {
  rn_pb_scan_t shape = rn_pb_scan(bytes);
  rn_pb_field_t field, part;
  while (rn_pb_scan_next(&shape, &field)) {
    if (field.number != 2 || field.wire != RN_PB_WIRE_LENGTH || out->rank == RN_MAX_RANK)
      return damaged();
    int64_t size = 0;
    rn_pb_scan_t dim = rn_pb_scan(field.bytes);
    while (rn_pb_scan_next(&dim, &part))
      if (part.number == 1 && part.wire == RN_PB_WIRE_VARINT) size = (int64_t)part.value;
    if (dim.is_bad || size < 0) return damaged();
    out->dims[out->rank++] = size;
  }
  return shape.is_bad ? damaged() : RN_OK;
}

static rn_status_t read_meta(rn_str_t bytes, compress_meta_t* out) {
  *out = (compress_meta_t){0};
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field)) {
    bool is_bytes = field.wire == RN_PB_WIRE_LENGTH;
    if (field.number == 1 && !is_bytes) {
      if (field.value == 0 || field.value >= RN_DTYPE_COUNT) return damaged();
      out->dtype = (rn_dtype_t)field.value;
    }
    if (field.number == 2 && is_bytes) RN_RETURN_IF_ERROR(read_shape(field.bytes, out));
    if (field.number == 4 && is_bytes) out->sizes = field.bytes;
  }
  return scan.is_bad || out->dtype == RN_INVALID ? damaged() : RN_OK;
}

// Takes the next varint off |*inout_sizes| and as many bytes off |*inout_data|.
static bool take_piece(rn_str_t* inout_sizes, rn_str_t* inout_data, rn_str_t* out) {
  uint64_t size = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (!inout_sizes->size) return false;
    uint8_t byte = (uint8_t)*inout_sizes->data;
    *inout_sizes = rn_str_n(inout_sizes->data + 1, inout_sizes->size - 1);
    size |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) break;
  }
  if (size > inout_data->size) return false;
  *out = rn_str_n(inout_data->data, (size_t)size);
  *inout_data = rn_str_n(inout_data->data + size, inout_data->size - (size_t)size);
  return true;
}

static rn_status_t take_component(compress_meta_t* meta, rn_str_t* inout_data,
                                  rn_allocator_t memory, rn_tensor_t* out) {
  rn_shape_t shape = {meta->rank, meta->dims};
  rn_str_t piece;
  if (!rn_dtype_is_plain(meta->dtype) && meta->dtype != RN_STRING)
    return take_piece(&meta->sizes, inout_data, &piece)
               ? rn_tensor_take_proto(piece, (size_t)1 << 32, memory, out)
               : damaged();
  // Each string takes at least one byte of sizes, and plain elements as many as they have.
  rn_tensor_t probe = {0};
  RN_RETURN_IF_ERROR(rn_tensor_init(&probe, meta->dtype, shape));
  int64_t count = probe.count;
  size_t bytes = rn_tensor_bytes(&probe);
  rn_tensor_clear(&probe);
  bool is_text = meta->dtype == RN_STRING;
  if (is_text ? (uint64_t)count > meta->sizes.size : bytes > inout_data->size) return damaged();
  RN_RETURN_IF_ERROR(rn_tensor_create(memory, meta->dtype, shape, out));
  for (int64_t i = 0; is_text && i < count; ++i) {
    if (!take_piece(&meta->sizes, inout_data, &piece)) return damaged();
    if (!rn_tstring_assign(&RN_DATA(out, rn_tstring_t)[i], piece.data, piece.size))
      return rn_out_of_memory();
  }
  if (is_text) return RN_OK;
  if (!take_piece(&meta->sizes, inout_data, &piece) || piece.size != bytes) return damaged();
  if (bytes) memcpy(out->data, piece.data, bytes);
  return RN_OK;
}

static rn_status_t check_type(rn_dtype_t expected, rn_dtype_t found) {
  if (expected == found) return RN_OK;
  return rn_failed_precondition("Expected a tensor of type %s but got a tensor of type %s",
                                rn_dtype_name(expected), rn_dtype_name(found));
}

// The components, whose bytes are |data|.
static rn_status_t take_components(rn_str_t message, rn_str_t data, rn_allocator_t memory,
                                   const rn_dtype_t* types, int32_t count, rn_tensor_t* out) {
  rn_pb_scan_t scan = rn_pb_scan(message);
  rn_pb_field_t field;
  int32_t found = 0;
  while (rn_pb_scan_next(&scan, &field)) found += field.number == 2;
  if (found != count)
    return rn_failed_precondition("Expected %d outputs from uncompress, but got %d", count, found);
  scan = rn_pb_scan(message);
  for (int32_t i = 0; rn_pb_scan_next(&scan, &field);) {
    if (field.number != 2 || field.wire != RN_PB_WIRE_LENGTH) continue;
    compress_meta_t meta;
    RN_RETURN_IF_ERROR(read_meta(field.bytes, &meta));
    RN_RETURN_IF_ERROR(check_type(types[i], meta.dtype));
    RN_RETURN_IF_ERROR(take_component(&meta, &data, memory, &out[i]));
    RN_RETURN_IF_ERROR(check_type(types[i], out[i].dtype));
    ++i;
  }
  return scan.is_bad ? damaged() : RN_OK;
}

rn_status_t rn_data_uncompress(rn_str_t message, rn_allocator_t allocator, rn_allocator_t memory,
                               const rn_dtype_t* types, int32_t count, rn_tensor_t* out) {
  rn_str_t folded = RN_STR("");
  rn_pb_scan_t scan = rn_pb_scan(message);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field))
    if (field.number == 1 && field.wire == RN_PB_WIRE_LENGTH) folded = field.bytes;
  uint64_t size = 0;
  char* data = NULL;
  // Snappy cannot compress more than about 21 to 1.
  if (scan.is_bad || !rn_snappy_size(folded, &size) || size > MAX_BYTES ||
      size > (folded.size + 1) * 64)
    return damaged();
  RN_RETURN_IF_ERROR(rn_alloc(allocator, (size_t)size + 1, (void**)&data));
  rn_status_t status =
      rn_snappy_unfold(folded, data, (size_t)size)
          ? take_components(message, rn_str_n(data, (size_t)size), memory, types, count, out)
          : damaged();
  rn_free(allocator, data, (size_t)size + 1);
  if (!rn_ok(status)) rn_data_row_clear(out, count);
  return status;
}

static rn_status_t uncompress_compute(rn_kernel_ctx_t* ctx) {
  const rn_kernel_t* kernel = ctx->kernel;
  const rn_tensor_t* in = rn_in(ctx, 0);
  const rn_object_t* object = in->count == 1 ? *RN_DATA(in, rn_object_t*) : NULL;
  if (!object || !holds(object))
    return rn_invalid_argument("Input does not contain a compressed element.");
  const compressed_t* compressed = (const compressed_t*)object;
  rn_tensor_t* row = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(kernel->allocator, (size_t)kernel->output_count, &row));
  rn_status_t status =
      rn_data_uncompress(rn_str_n(compressed->bytes, compressed->size), kernel->allocator,
                         kernel->host_memory, kernel->output_types, kernel->output_count, row);
  for (int32_t i = 0; rn_ok(status) && i < kernel->output_count; ++i)
    rn_set_output(ctx, i, &row[i]);
  RN_FREE_ARRAY(kernel->allocator, row, kernel->output_count);
  return status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "CompressElement",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS | RN_KERNEL_EXPENSIVE,
     .compute = compress_compute},
    {.op = "UncompressElement",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS | RN_KERNEL_EXPENSIVE,
     .compute = uncompress_compute},
};
RN_KERNEL_FAMILY(cpu_data_compress, rows);
