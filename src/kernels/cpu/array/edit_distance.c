// EditDistance: the number of insertions, deletions and replacements that turn one sequence into
// another.
//
// The sequences are the rows, along the last dimension, of two ordered sparse tensors.
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/kernel_rows.h"
#include "tensor/float16.h"
#include "tensor/tstring.h"

typedef struct edit_distance_state_t {
  bool normalizes;
} edit_distance_state_t;

static rn_status_t distance_init(const rn_kernel_init_t* init, void* state) {
  ((edit_distance_state_t*)state)->normalizes = rn_init_bool(init, "normalize");
  return RN_OK;
}

// One of the two sparse tensors.
typedef struct edit_distance_sparse_t {
  const rn_tensor_t *indices, *values, *shape;
  int64_t count, rank;
} edit_distance_sparse_t;

static rn_status_t read_sparse(rn_kernel_ctx_t* ctx, int first, const char* name,
                               edit_distance_sparse_t* out) {
  out->indices = rn_in(ctx, first);
  out->values = rn_in(ctx, first + 1);
  out->shape = rn_in(ctx, first + 2);
  if (out->indices->rank != 2)
    return rn_invalid_argument("%s_indices should be a matrix, but got shape: %s", name,
                               rn_text_of(out->indices).text);
  if (out->values->rank != 1)
    return rn_invalid_argument("%s_values should be a vector, but got shape: %s", name,
                               rn_text_of(out->values).text);
  if (out->shape->rank != 1)
    return rn_invalid_argument("%s_shape should be a vector, but got shape: %s", name,
                               rn_text_of(out->shape).text);
  out->count = rn_tensor_dim(out->indices, 0);
  out->rank = out->shape->count;
  if (out->values->count != out->count)
    return rn_invalid_argument(
        "Expected %s_values.NumElements == #rows(%s_indices), their shapes "
        "are: %s and %s",
        name, name, rn_text_of(out->values).text, rn_text_of(out->indices).text);
  if (out->rank != rn_tensor_dim(out->indices, 1))
    return rn_invalid_argument(
        "Expected %s_shape.NumElements == #cols(%s_indices), their shapes "
        "are: %s and %s",
        name, name, rn_text_of(out->shape).text, rn_text_of(out->indices).text);
  int64_t dims[RN_MAX_RANK];
  rn_shape_t shape;
  return rn_read_dims(out->shape, dims, &shape);
}

// The sequence that element |i| belongs to, as an index into the result; INT64_MAX at the end.
static rn_status_t sequence_of(const edit_distance_sparse_t* sparse, const int64_t* dims, int64_t i,
                               int64_t* out) {
  *out = INT64_MAX;
  if (i >= sparse->count) return RN_OK;
  uint64_t place = 0;
  int64_t places = rn_dims_product(dims, 0, (int)sparse->rank - 1);
  for (int64_t d = 0; d + 1 < sparse->rank; ++d)
    place = place * (uint64_t)dims[d] +
            (uint64_t)RN_DATA(sparse->indices, const int64_t)[i * sparse->rank + d];
  *out = (int64_t)place;
  if (*out >= 0 && *out < places) return RN_OK;
  return rn_internal("Got an inner product %" PRId64
                     " which would require writing to outside of the buffer for the output tensor "
                     "(max elements %" PRId64 ")",
                     *out, places);
}

static bool is_equal(const rn_tensor_t* a, int64_t i, const rn_tensor_t* b, int64_t k) {
  size_t item = rn_dtype_size(a->dtype);
  switch (a->dtype) {
    case RN_STRING:
      return rn_str_eq(rn_tstring_view(&RN_DATA(a, const rn_tstring_t)[i]),
                       rn_tstring_view(&RN_DATA(b, const rn_tstring_t)[k]));
    case RN_FLOAT:
      return RN_DATA(a, const float)[i] == RN_DATA(b, const float)[k];
    case RN_DOUBLE:
      return RN_DATA(a, const double)[i] == RN_DATA(b, const double)[k];
    case RN_COMPLEX64:
      return RN_DATA(a, const float)[2 * i] == RN_DATA(b, const float)[2 * k] &&
             RN_DATA(a, const float)[2 * i + 1] == RN_DATA(b, const float)[2 * k + 1];
    case RN_COMPLEX128:
      return RN_DATA(a, const double)[2 * i] == RN_DATA(b, const double)[2 * k] &&
             RN_DATA(a, const double)[2 * i + 1] == RN_DATA(b, const double)[2 * k + 1];
    case RN_HALF:
      return rn_half_to_float(RN_DATA(a, const uint16_t)[i]) ==
             rn_half_to_float(RN_DATA(b, const uint16_t)[k]);
    case RN_BFLOAT16:
      return rn_bfloat16_to_float(RN_DATA(a, const uint16_t)[i]) ==
             rn_bfloat16_to_float(RN_DATA(b, const uint16_t)[k]);
    default:
      return memcmp((const char*)a->data + (size_t)i * item,
                    (const char*)b->data + (size_t)k * item, item) == 0;
  }
}

// A run of elements of one sequence.
typedef struct edit_distance_run_t {
  const rn_tensor_t* values;
  int64_t begin, count;
} edit_distance_run_t;

// Levenshtein's algorithm, one row at a time; |row| holds truth->count + 1 numbers.
static int64_t distance_of(const edit_distance_run_t* hypothesis, const edit_distance_run_t* truth,
                           int64_t* row) {
  for (int64_t k = 0; k <= truth->count; ++k) row[k] = k;
  for (int64_t i = 1; i <= hypothesis->count; ++i) {
    int64_t diagonal = row[0];
    row[0] = i;
    for (int64_t k = 1; k <= truth->count; ++k) {
      bool same = is_equal(hypothesis->values, hypothesis->begin + i - 1, truth->values,
                           truth->begin + k - 1);
      int64_t replaced = diagonal + !same, above = row[k] + 1, left = row[k - 1] + 1;
      diagonal = row[k];
      int64_t best = above < left ? above : left;
      row[k] = replaced < best ? replaced : best;
    }
  }
  return row[truth->count];
}

static rn_status_t result_shape(const edit_distance_sparse_t* a, const edit_distance_sparse_t* b,
                                int64_t* dims) {
  if (a->rank != b->rank)
    return rn_invalid_argument(
        "Expected truth and hypothesis to have matching ranks, but their "
        "shapes are: %s and %s",
        rn_text_of(b->shape).text, rn_text_of(a->shape).text);
  if (a->rank > RN_MAX_RANK) return rn_invalid_argument("Too many dimensions");
  int64_t total = 1;
  for (int64_t d = 0; d + 1 < a->rank; ++d) {
    int64_t x = RN_DATA(a->shape, const int64_t)[d], y = RN_DATA(b->shape, const int64_t)[d];
    dims[d] = x > y ? x : y;
    if (dims[d] < 0) return rn_invalid_argument("Dimension %" PRId64 " must be >= 0", dims[d]);
    if (!rn_mul_i64_ok(total, dims[d], &total))
      return rn_invalid_argument("The result has too many elements");
  }
  return RN_OK;
}

// Takes the elements from |*inout_at| on that belong to |sequence|.
static rn_status_t take_run(const edit_distance_sparse_t* sparse, const int64_t* dims,
                            int64_t sequence, int64_t* inout_at, edit_distance_run_t* out) {
  *out = (edit_distance_run_t){sparse->values, *inout_at, 0};
  for (;;) {
    int64_t next = 0;
    RN_RETURN_IF_ERROR(sequence_of(sparse, dims, *inout_at, &next));
    if (next != sequence || next == INT64_MAX) return RN_OK;
    out->count++;
    ++*inout_at;
  }
}

static float score(const edit_distance_state_t* state, const edit_distance_run_t* hypothesis,
                   const edit_distance_run_t* truth, int64_t* row) {
  float distance = (float)distance_of(hypothesis, truth, row);
  if (!state->normalizes) return distance;
  if (truth->count == 0) return hypothesis->count ? INFINITY : 0;
  return distance / (float)truth->count;
}

static rn_status_t walk(rn_kernel_ctx_t* ctx, const edit_distance_sparse_t* hypothesis,
                        const edit_distance_sparse_t* truth, const int64_t* dims, rn_tensor_t* out,
                        int64_t* row) {
  int64_t h = 0, t = 0;
  for (;;) {
    int64_t a = 0, b = 0;
    edit_distance_run_t mine, other;
    RN_RETURN_IF_ERROR(sequence_of(hypothesis, dims, h, &a));
    RN_RETURN_IF_ERROR(sequence_of(truth, dims, t, &b));
    int64_t sequence = a < b ? a : b;
    if (sequence == INT64_MAX) return RN_OK;
    RN_RETURN_IF_ERROR(take_run(hypothesis, dims, sequence, &h, &mine));
    RN_RETURN_IF_ERROR(take_run(truth, dims, sequence, &t, &other));
    RN_DATA(out, float)[sequence] = score(ctx->state, &mine, &other, row);
  }
}

static rn_status_t distance_compute(rn_kernel_ctx_t* ctx) {
  edit_distance_sparse_t hypothesis, truth;
  int64_t dims[RN_MAX_RANK];
  if (rn_in(ctx, 5)->rank == 1 && rn_in(ctx, 5)->count < 2)
    return rn_invalid_argument(
        "Input SparseTensors must have rank at least 2, but truth_shape rank is: %" PRId64,
        rn_in(ctx, 5)->count);
  RN_RETURN_IF_ERROR(read_sparse(ctx, 0, "hypothesis", &hypothesis));
  RN_RETURN_IF_ERROR(read_sparse(ctx, 3, "truth", &truth));
  RN_RETURN_IF_ERROR(result_shape(&hypothesis, &truth, dims));
  rn_tensor_t *out = NULL, row = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){(int32_t)(hypothesis.rank - 1), dims}, &out));
  memset(out->data, 0, rn_tensor_bytes(out));
  int64_t width = truth.count + 1;
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT64, (rn_shape_t){1, &width}, &row));
  rn_status_t status = walk(ctx, &hypothesis, &truth, dims, out, row.data);
  rn_tensor_clear(&row);
  return status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "EditDistance",
     .device = "CPU",
     .types = {{"T", RN_TYPES_NUMBERS | RN_T(BOOL) | RN_T(STRING)}},
     .state_size = sizeof(edit_distance_state_t),
     .init = distance_init,
     .compute = distance_compute},
};
RN_KERNEL_FAMILY(cpu_edit_distance, rows);
