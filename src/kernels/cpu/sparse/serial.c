// SerializeSparse and DeserializeSparse: three serialized tensors or three variants.
#include "base/arena.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/list/tensor_variant.h"
#include "kernels/cpu/sparse/parts.h"
#include "kernels/kernel_rows.h"
#include "tensor/tensor_proto.h"
#include "tensor/tstring.h"
#include "wire/decode.h"

// Total bytes of all tensors of one call, because a message of a few bytes can request any number.
#define MAX_BYTES ((size_t)1 << 32)

static rn_status_t put_text(rn_kernel_ctx_t* ctx, const rn_tensor_t* tensor, rn_tstring_t* out) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  rn_status_t status = rn_tensor_put_proto(tensor, RN_TENSOR_CONTENT, &buf);
  rn_str_t text = rn_strbuf_view(&buf);
  if (rn_ok(status) && !rn_tstring_assign(out, text.data, text.size)) status = rn_out_of_memory();
  rn_strbuf_clear(&buf);
  return status;
}

// Writes row |row| of |out|: strings, or variants, which take the tensors.
static rn_status_t put_parts(rn_kernel_ctx_t* ctx, rn_sparse_parts_t* parts, rn_tensor_t* out,
                             int64_t row) {
  for (int p = 0; p < RN_SPARSE_PARTS; ++p) {
    int64_t i = row * RN_SPARSE_PARTS + p;
    if (out->dtype == RN_STRING) {
      RN_RETURN_IF_ERROR(put_text(ctx, &parts->part[p], &RN_DATA(out, rn_tstring_t)[i]));
      continue;
    }
    rn_object_t** to = &RN_DATA(out, rn_object_t*)[i];
    rn_object_release(*to);
    RN_RETURN_IF_ERROR(rn_tensor_variant_create(ctx->kernel->allocator, &parts->part[p], to));
  }
  return RN_OK;
}

static rn_status_t serialize_sparse(rn_kernel_ctx_t* ctx) {
  const int64_t size = RN_SPARSE_PARTS;
  rn_sparse_parts_t parts;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_sparse_parts_whole(ctx, &parts));
  rn_status_t status = rn_output(ctx, 0, (rn_shape_t){1, &size}, &out);
  if (rn_ok(status)) status = put_parts(ctx, &parts, out, 0);
  rn_sparse_parts_clear(&parts);
  return status;
}

typedef struct serial_writer_t {
  rn_kernel_ctx_t* ctx;
  rn_tensor_t* out;
} serial_writer_t;

static rn_status_t begin_rows(void* arg, int64_t rows) {
  serial_writer_t* writer = arg;
  const int64_t dims[2] = {rows, RN_SPARSE_PARTS};
  return rn_output(writer->ctx, 0, (rn_shape_t){2, dims}, &writer->out);
}

static rn_status_t write_row(void* arg, int64_t row, rn_sparse_parts_t* parts) {
  serial_writer_t* writer = arg;
  return put_parts(writer->ctx, parts, writer->out, row);
}

static rn_status_t serialize_many(rn_kernel_ctx_t* ctx) {
  serial_writer_t writer = {ctx, NULL};
  return rn_sparse_parts_each(ctx, &(rn_sparse_visitor_t){&writer, begin_rows, write_row});
}

static rn_status_t take_text(rn_kernel_ctx_t* ctx, rn_str_t text, size_t* inout_left,
                             rn_tensor_t* out) {
  rn_pb_TensorProto_t* proto = NULL;
  rn_arena_t arena;
  rn_arena_init(&arena, ctx->kernel->allocator);
  rn_status_t status = RN_PB_DECODE(TensorProto, text, NULL, &arena, &proto);
  if (!rn_ok(status) && rn_status_code(status) != RN_CODE_RESOURCE_EXHAUSTED) {
    rn_status_free(status);
    status = rn_invalid_argument("Could not parse serialized proto");
  }
  if (rn_ok(status))
    status = rn_tensor_from_proto(proto, *inout_left, ctx->kernel->host_memory, out);
  if (rn_ok(status)) *inout_left -= rn_tensor_bytes(out);
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t take_parts(rn_kernel_ctx_t* ctx, const rn_tensor_t* in, int64_t row,
                              size_t* inout_left, rn_sparse_parts_t* out) {
  for (int p = 0; p < RN_SPARSE_PARTS; ++p) {
    int64_t i = row * RN_SPARSE_PARTS + p;
    if (in->dtype == RN_STRING) {
      rn_str_t text = rn_tstring_view(&RN_DATA(in, const rn_tstring_t)[i]);
      RN_RETURN_IF_ERROR(take_text(ctx, text, inout_left, &out->part[p]));
      continue;
    }
    const rn_tensor_t* held = rn_tensor_variant_get(RN_DATA(in, rn_object_t* const)[i]);
    if (!held)
      return rn_invalid_argument("serialized_sparse[%lld, %d] is a variant without a tensor",
                                 (long long)row, p);
    RN_RETURN_IF_ERROR(rn_tensor_share(held, &out->part[p]));
  }
  return RN_OK;
}

static rn_status_t deserialize(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  rn_sparse_parts_t* all = NULL;
  size_t left = MAX_BYTES;
  if (in->rank < 1)
    return rn_invalid_argument("Serialized sparse should have non-zero rank %s",
                               rn_text_of(in).text);
  int32_t rank = in->rank - 1;
  if (rn_tensor_dim(in, rank) != RN_SPARSE_PARTS)
    return rn_invalid_argument("Serialized sparse should have 3 as the last dimension %s",
                               rn_text_of(in).text);
  int64_t count = in->count / RN_SPARSE_PARTS;
  if (count == 0)
    return rn_invalid_argument(
        "Serialized sparse should have at least 1 serialized tensor, but has a zero dimension %s",
        rn_text_of(in).text);
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(ctx->kernel->allocator, (size_t)count, &all));
  rn_status_t status = RN_OK;
  for (int64_t n = 0; n < count && rn_ok(status); ++n)
    status = take_parts(ctx, in, n, &left, &all[n]);
  if (rn_ok(status)) status = rn_sparse_parts_join(ctx, all, count, rank, rn_tensor_dims(in));
  for (int64_t n = 0; n < count; ++n) rn_sparse_parts_clear(&all[n]);
  RN_FREE_ARRAY(ctx->kernel->allocator, all, (size_t)count);
  return status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "SerializeSparse",
     .device = "CPU",
     .flags = RN_KERNEL_KEEPS_INPUTS,
     .compute = serialize_sparse},
    {.op = "SerializeManySparse", .device = "CPU", .compute = serialize_many},
    {.op = "DeserializeManySparse", .device = "CPU", .compute = deserialize},
    {.op = "DeserializeSparse", .device = "CPU", .compute = deserialize},
};
RN_KERNEL_FAMILY(cpu_sparse_serial, rows);
