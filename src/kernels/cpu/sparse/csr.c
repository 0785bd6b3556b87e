// CSR matrices in variants: creation, checks, and their messages, which contain the five tensors.
#include "kernels/cpu/sparse/csr.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "kernels/cpu/array.h"
#include "tensor/tensor_proto.h"
#include "tensor/variant.h"

static const char kind[] = "CSRSparseMatrix";

static void csr_destroy(rn_object_t* object) {
  rn_csr_t *csr = (rn_csr_t*)object, *elsewhere = atomic_load(&csr->elsewhere);
  if (elsewhere) rn_object_release(&elsewhere->object);
  rn_tensor_clear(&csr->starts);
  for (int p = 0; p < RN_CSR_PARTS; ++p) rn_tensor_clear(&csr->part[p]);
  RN_FREE(csr->allocator, csr);
}

rn_csr_t* rn_csr_from(rn_object_t* object) {
  return object && object->kind && strcmp(object->kind, kind) == 0 ? (rn_csr_t*)object : NULL;
}

rn_csr_matrix_t rn_csr_matrix(const rn_csr_t* csr, int64_t b) {
  const int32_t* batch = RN_DATA(&csr->part[RN_CSR_BATCH], const int32_t);
  const rn_tensor_t* values = &csr->part[RN_CSR_VALUES];
  return (rn_csr_matrix_t){
      .height = csr->height,
      .width = csr->width,
      .entries = batch[b + 1] - batch[b],
      .rows = RN_DATA(&csr->part[RN_CSR_ROWS], const int32_t) + b * (csr->height + 1),
      .columns = RN_DATA(&csr->part[RN_CSR_COLUMNS], const int32_t) + batch[b],
      .values = RN_DATA(values, const char) + (size_t)batch[b] * rn_dtype_size(values->dtype)};
}

static int compare_columns(const void* a, const void* b) {
  return *(const int32_t*)a - *(const int32_t*)b;
}

void rn_csr_sort_columns(int32_t* columns, int64_t count) {
  qsort(columns, (size_t)count, sizeof *columns, compare_columns);
}

// Whether |pointers| begin at 0, do not descend and end at |last|.
static bool ascends(const int32_t* pointers, int64_t count, int64_t last) {
  for (int64_t i = 0; i < count; ++i)
    if (pointers[i] < (i ? pointers[i - 1] : 0)) return false;
  return pointers[0] == 0 && pointers[count - 1] == last;
}

static rn_status_t check_types(const rn_tensor_t part[RN_CSR_PARTS]) {
  static const char* const names[] = {"dense_shape", "batch_pointers", "row_pointers",
                                      "col_indices", "values"};
  for (int p = 0; p < RN_CSR_PARTS; ++p) {
    rn_dtype_t wanted = p == RN_CSR_SHAPE ? RN_INT64 : RN_INT32;
    if (part[p].rank != 1)
      return rn_invalid_argument("CSRSparseMatrix::Validate: %s should be a vector", names[p]);
    if (p != RN_CSR_VALUES && part[p].dtype != wanted)
      return rn_invalid_argument("CSRSparseMatrix::Validate: %s.dtype() = %s != %s", names[p],
                                 rn_dtype_name(part[p].dtype), rn_dtype_name(wanted));
  }
  rn_dtype_t dtype = part[RN_CSR_VALUES].dtype;
  if (dtype != RN_FLOAT && dtype != RN_DOUBLE && dtype != RN_COMPLEX64 && dtype != RN_COMPLEX128)
    return rn_invalid_argument(
        "CSRSparseMatrix::Validate: dtype = %s not in {float32, float64, complex64, complex128}",
        rn_dtype_name(dtype));
  return RN_OK;
}

// Sets the sizes of |csr| from its shape.
static rn_status_t read_sizes(rn_csr_t* csr) {
  const rn_tensor_t* shape = &csr->part[RN_CSR_SHAPE];
  if (shape->count != 2 && shape->count != 3)
    return rn_invalid_argument(
        "CSRSparseMatrix::Validate: dense_shape should be a 2- or 3- vector, but saw %" PRId64
        " elements",
        shape->count);
  const int64_t* sizes = shape->data;
  csr->rank = (int)shape->count;
  csr->count = csr->rank == 3 ? sizes[0] : 1;
  csr->height = sizes[csr->rank - 2];
  csr->width = sizes[csr->rank - 1];
  for (int i = 0; i < csr->rank; ++i)
    if (sizes[i] < 0)
      return rn_invalid_argument("CSRSparseMatrix::Validate: dense_shape has a negative size");
  return RN_OK;
}

static rn_status_t check_sizes(rn_csr_t* csr) {
  const rn_tensor_t* part = csr->part;
  RN_RETURN_IF_ERROR(check_types(part));
  RN_RETURN_IF_ERROR(read_sizes(csr));
  int64_t entries = part[RN_CSR_VALUES].count;
  size_t pointers;
  if (!rn_mul_ok((size_t)csr->count, (size_t)csr->height + 1, &pointers) ||
      part[RN_CSR_BATCH].count - 1 != csr->count || (size_t)part[RN_CSR_ROWS].count != pointers ||
      part[RN_CSR_COLUMNS].count != entries)
    return rn_invalid_argument("CSRSparseMatrix::Validate: the parts do not fit their dense_shape");
  return RN_OK;
}

static rn_status_t check(rn_csr_t* csr) {
  RN_RETURN_IF_ERROR(check_sizes(csr));
  if (csr->device) return RN_OK;
  const rn_tensor_t* part = csr->part;
  const int64_t entries = part[RN_CSR_VALUES].count;
  const int32_t *batch = part[RN_CSR_BATCH].data, *rows = part[RN_CSR_ROWS].data,
                *columns = part[RN_CSR_COLUMNS].data;
  bool is_good = ascends(batch, csr->count + 1, entries);
  for (int64_t b = 0; is_good && b < csr->count; ++b)
    is_good = ascends(rows + b * (csr->height + 1), csr->height + 1, batch[b + 1] - batch[b]);
  for (int64_t i = 0; is_good && i < entries; ++i)
    is_good = columns[i] >= 0 && columns[i] < csr->width;
  return is_good ? RN_OK : rn_invalid_argument("CSRSparseMatrix::Validate: bad pointers");
}

rn_status_t rn_csr_create_on(rn_allocator_t allocator, rn_device_t* device,
                             rn_tensor_t part[RN_CSR_PARTS], rn_tensor_t* starts, rn_csr_t** out) {
  rn_csr_t* csr = NULL;
  *out = NULL;
  rn_status_t status = RN_NEW(allocator, &csr);
  if (!rn_ok(status)) {
    for (int p = 0; p < RN_CSR_PARTS; ++p) rn_tensor_clear(&part[p]);
    if (starts) rn_tensor_clear(starts);
    return status;
  }
  csr->object.refs = 1;
  csr->object.destroy = csr_destroy;
  csr->object.kind = kind;
  csr->allocator = allocator;
  csr->device = device;
  if (starts) {
    csr->starts = *starts;
    *starts = (rn_tensor_t){0};
  }
  csr->dtype = part[RN_CSR_VALUES].dtype;
  for (int p = 0; p < RN_CSR_PARTS; ++p) {
    csr->part[p] = part[p];
    part[p] = (rn_tensor_t){0};
  }
  status = check(csr);
  if (!rn_ok(status)) {
    csr_destroy(&csr->object);
    return status;
  }
  *out = csr;
  return RN_OK;
}

rn_status_t rn_csr_create(rn_allocator_t allocator, rn_tensor_t part[RN_CSR_PARTS],
                          rn_csr_t** out) {
  return rn_csr_create_on(allocator, NULL, part, NULL, out);
}

rn_status_t rn_csr_in(rn_kernel_ctx_t* ctx, int i, rn_csr_t** out) {
  return rn_csr_in_on(ctx, i, NULL, out);
}

rn_status_t rn_csr_in_on(rn_kernel_ctx_t* ctx, int i, rn_device_t* device, rn_csr_t** out) {
  const rn_tensor_t* in = rn_in(ctx, i);
  *out = NULL;
  if (in->rank != 0)
    return rn_invalid_argument("Invalid input matrix: Shape must be rank 0 but is rank %d",
                               in->rank);
  *out = rn_csr_from(RN_DATA(in, rn_object_t*)[0]);
  if (!*out) return rn_invalid_argument("Could not retrieve Variant input %d", i);
  if ((*out)->part[RN_CSR_ROWS].count == 0) {
    *out = NULL;
    return rn_invalid_argument("Variant input %d is not valid.", i);
  }
  return rn_csr_on(*out, device, out);
}

rn_status_t rn_csr_output(rn_kernel_ctx_t* ctx, int i, rn_csr_t* csr) {
  rn_tensor_t* out = NULL;
  rn_status_t status = rn_output(ctx, i, RN_SHAPE_SCALAR, &out);
  if (!rn_ok(status)) {
    rn_object_release(&csr->object);
    return status;
  }
  rn_object_release(RN_DATA(out, rn_object_t*)[0]);
  RN_DATA(out, rn_object_t*)[0] = &csr->object;
  return RN_OK;
}

static rn_status_t vector(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int64_t count, rn_tensor_t* out) {
  return rn_tensor_create(ctx->kernel->host_memory, dtype, (rn_shape_t){1, &count}, out);
}

static rn_status_t check_counts(int64_t count, int64_t height) {
  size_t pointers;
  if (count >= INT32_MAX)
    return rn_invalid_argument(
        "dense_shape batch_size must be < Int32Max, but the input value is %" PRId64, count);
  if (!rn_mul_ok((size_t)height + 1, (size_t)count, &pointers) || pointers > INT32_MAX)
    return rn_invalid_argument(
        "The csr row index size, computed based on the dense_shape, must be <= Int32Max, but is "
        "too large. Current value is %" PRId64,
        (int64_t)(((uint64_t)height + 1) * (uint64_t)count));
  return RN_OK;
}

rn_status_t rn_csr_parts_set_entries(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int64_t entries,
                                     rn_csr_parts_t* parts) {
  if (entries > INT32_MAX)
    return rn_invalid_argument(
        "values number of elements must be <= Int32Max, but the input value is %" PRId64, entries);
  RN_RETURN_IF_ERROR(vector(ctx, RN_INT32, entries, &parts->part[RN_CSR_COLUMNS]));
  return vector(ctx, dtype, entries, &parts->part[RN_CSR_VALUES]);
}

rn_status_t rn_csr_parts_init(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int rank,
                              const int64_t* shape, int64_t entries, rn_csr_parts_t* out) {
  *out = (rn_csr_parts_t){0};
  int64_t count = rank == 3 ? shape[0] : 1, height = shape[rank - 2];
  RN_RETURN_IF_ERROR(check_counts(count, height));
  rn_status_t status = vector(ctx, RN_INT64, rank, &out->part[RN_CSR_SHAPE]);
  if (rn_ok(status)) status = vector(ctx, RN_INT32, count + 1, &out->part[RN_CSR_BATCH]);
  if (rn_ok(status)) status = vector(ctx, RN_INT32, count * (height + 1), &out->part[RN_CSR_ROWS]);
  if (rn_ok(status) && entries >= 0) status = rn_csr_parts_set_entries(ctx, dtype, entries, out);
  if (!rn_ok(status)) {
    rn_csr_parts_clear(out);
    return status;
  }
  memcpy(out->part[RN_CSR_SHAPE].data, shape, (size_t)rank * sizeof *shape);
  memset(out->part[RN_CSR_BATCH].data, 0, rn_tensor_bytes(&out->part[RN_CSR_BATCH]));
  if (out->part[RN_CSR_ROWS].count)
    memset(out->part[RN_CSR_ROWS].data, 0, rn_tensor_bytes(&out->part[RN_CSR_ROWS]));
  return RN_OK;
}

void rn_csr_parts_clear(rn_csr_parts_t* parts) {
  for (int p = 0; p < RN_CSR_PARTS; ++p) rn_tensor_clear(&parts->part[p]);
}

rn_status_t rn_csr_finish(rn_kernel_ctx_t* ctx, rn_csr_parts_t* parts, rn_status_t status) {
  rn_csr_t* csr = NULL;
  if (!rn_ok(status)) {
    rn_csr_parts_clear(parts);
    return status;
  }
  RN_RETURN_IF_ERROR(rn_csr_create(ctx->kernel->allocator, parts->part, &csr));
  return rn_csr_output(ctx, 0, csr);
}

// Messages. The metadata is stock's: a bool, padding to four bytes, and the type as an int32.
enum { METADATA_SIZE = 8 };

static bool holds(const rn_object_t* object) { return rn_csr_from((rn_object_t*)object) != NULL; }

static rn_status_t csr_to_proto(const rn_object_t* object, rn_arena_t* arena,
                                rn_pb_VariantTensorDataProto_t* out) {
  rn_csr_t* csr = (rn_csr_t*)object;
  char* metadata = NULL;
  RN_RETURN_IF_ERROR(rn_csr_on(csr, NULL, &csr));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, METADATA_SIZE, &metadata));
  metadata[0] = 1;
  metadata[4] = (char)csr->dtype;
  out->metadata = rn_str_n(metadata, METADATA_SIZE);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, RN_CSR_PARTS, &out->tensors.items));
  for (int p = 0; p < RN_CSR_PARTS; ++p)
    RN_RETURN_IF_ERROR(
        rn_tensor_to_proto(&csr->part[p], RN_TENSOR_TYPED, arena, &out->tensors.items[p]));
  out->tensors.count = out->tensors.capacity = RN_CSR_PARTS;
  return RN_OK;
}

static rn_status_t csr_from_proto(const rn_pb_VariantTensorDataProto_t* proto, size_t max_bytes,
                                  rn_allocator_t allocator, rn_object_t** out) {
  rn_csr_parts_t parts = {0};
  rn_csr_t* csr = NULL;
  *out = NULL;
  if (proto->tensors.count != RN_CSR_PARTS || proto->metadata.size != METADATA_SIZE)
    return rn_invalid_argument("A variant of a CSR matrix contains %u tensors",
                               (unsigned)proto->tensors.count);
  for (int p = 0; p < RN_CSR_PARTS; ++p) {
    rn_status_t status =
        rn_tensor_from_proto(&proto->tensors.items[p], max_bytes, allocator, &parts.part[p]);
    if (rn_ok(status) && rn_tensor_bytes(&parts.part[p]) > max_bytes)
      status = rn_invalid_argument("A CSR matrix exceeds %zu bytes", max_bytes);
    if (!rn_ok(status)) {
      rn_csr_parts_clear(&parts);
      return status;
    }
    max_bytes -= rn_tensor_bytes(&parts.part[p]);
  }
  RN_RETURN_IF_ERROR(rn_csr_create(allocator, parts.part, &csr));
  *out = &csr->object;
  return RN_OK;
}

static rn_status_t csr_to_host(rn_object_t* object, int depth, rn_object_t** out) {
  (void)depth;
  rn_csr_t* there = NULL;
  RN_RETURN_IF_ERROR(rn_csr_on((rn_csr_t*)object, NULL, &there));
  if (&there->object != object) *out = rn_object_retain(&there->object);
  return RN_OK;
}

extern const rn_variant_kind_t rn_variant_csr;
const rn_variant_kind_t rn_variant_csr = {"tensorflow::CSRSparseMatrix", holds, csr_to_proto,
                                          csr_from_proto, csr_to_host};
