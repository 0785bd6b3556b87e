// Sparse tensors by groups of entries: softmax along the last dimension, and reductions with a
// sparse result.
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/combine.h"
#include "kernels/cpu/sparse/sparse.h"
#include "kernels/cpu/with_arena.h"
#include "kernels/kernel_rows.h"
#include "tensor/float16.h"

// Softmax over neighbours whose indices differ only in the last number.

static void set_number(rn_tensor_t* tensor, int64_t i, double value) {
  if (tensor->dtype == RN_DOUBLE)
    RN_DATA(tensor, double)[i] = value;
  else if (tensor->dtype == RN_FLOAT)
    RN_DATA(tensor, float)[i] = (float)value;
  else
    RN_DATA(tensor, uint16_t)[i] = rn_float_to_half((float)value);
}

static void softmax_run(const rn_tensor_t* in, int64_t begin, int64_t end, rn_tensor_t* out) {
  double largest = rn_number_at(in, begin), sum = 0;
  for (int64_t i = begin + 1; i < end; ++i) {
    double x = rn_number_at(in, i);
    if (x > largest) largest = x;
  }
  for (int64_t i = begin; i < end; ++i) sum += exp(rn_number_at(in, i) - largest);
  for (int64_t i = begin; i < end; ++i)
    set_number(out, i, exp(rn_number_at(in, i) - largest) / sum);
}

// Reductions: sorting entries by the kept dimensions first makes those that are combined
// neighbours.

typedef struct groups_reduce_t {
  rn_combine_op_t op;
  bool keeps_dims;
} groups_reduce_t;

static rn_status_t reduce_init(const rn_kernel_init_t* init, void* state) {
  groups_reduce_t* reduce = state;
  reduce->op = strstr(init->op->name, "Max") ? RN_COMBINE_MAX : RN_COMBINE_ADD;
  reduce->keeps_dims = rn_init_bool(init, "keep_dims");
  return RN_OK;
}

typedef struct groups_entry_t {
  const int64_t* key;  // |rank| numbers
  int64_t place;
  int32_t rank;
} groups_entry_t;

static int compare_entries(const void* a, const void* b) {
  const groups_entry_t *x = a, *y = b;
  int order = rn_sparse_compare(x->key, y->key, x->rank);
  return order ? order : (x->place > y->place) - (x->place < y->place);
}

// The kept dimensions first, then the reduced ones.
typedef struct groups_order_t {
  int32_t kept, rank;
  int32_t dims[RN_MAX_RANK];
} groups_order_t;

// Reads the reduced axes (input 3) of the sparse tensor in inputs 0 to 2.
static rn_status_t read_axes(rn_kernel_ctx_t* ctx, groups_order_t* out) {
  const rn_tensor_t *shape = rn_in(ctx, 2), *axes = rn_in(ctx, 3);
  bool is_reduced[RN_MAX_RANK] = {false};
  RN_RETURN_IF_ERROR(rn_sparse_check_reduced(shape, axes));
  int32_t rank = (int32_t)shape->count;
  for (int64_t i = 0; i < axes->count; ++i) {
    int64_t axis = rn_int_at(axes, i);
    is_reduced[axis < 0 ? axis + rank : axis] = true;
  }
  *out = (groups_order_t){.rank = 0};
  for (int32_t pass = 0; pass < 2; ++pass) {
    for (int32_t d = 0; d < rank; ++d)
      if (is_reduced[d] == (pass == 1)) out->dims[out->rank++] = d;
    if (pass == 0) out->kept = out->rank;
  }
  return RN_OK;
}

static rn_status_t sorted_entries(const rn_sparse_t* in, const groups_order_t* order,
                                  rn_arena_t* arena, groups_entry_t** out) {
  int64_t* keys = NULL;
  size_t numbers = 0;
  if (!rn_mul_ok((size_t)in->count, (size_t)in->rank, &numbers)) return rn_out_of_memory();
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, numbers + 1, &keys));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)in->count + 1, out));
  for (int64_t i = 0; i < in->count; ++i) {
    int64_t* key = keys + i * in->rank;
    for (int32_t d = 0; d < in->rank; ++d) key[d] = rn_sparse_index(in, i)[order->dims[d]];
    (*out)[i] = (groups_entry_t){key, i, in->rank};
  }
  qsort(*out, (size_t)in->count, sizeof **out, compare_entries);
  return RN_OK;
}

static bool is_sorted(const rn_sparse_t* in) {
  for (int64_t i = 1; i < in->count; ++i)
    if (rn_sparse_compare(rn_sparse_index(in, i - 1), rn_sparse_index(in, i), in->rank) > 0)
      return false;
  return true;
}

// As in stock, entries out of order give results in order, which no longer match their indices.
static rn_status_t softmax_in(rn_kernel_ctx_t* ctx, rn_arena_t* arena) {
  rn_tensor_t *out = NULL, values;
  groups_order_t order = {.rank = RN_MAX_RANK};
  groups_entry_t* entries = NULL;
  int64_t* indices = NULL;
  char* data = NULL;
  rn_sparse_t in;
  RN_RETURN_IF_ERROR(rn_sparse_check_named(ctx, 0, "sp"));
  if (rn_in(ctx, 2)->count < 2)
    return rn_invalid_argument("Input should have rank >= 2, but received shape: %lld",
                               (long long)(rn_in(ctx, 2)->count ? rn_int_at(rn_in(ctx, 2), 0) : 0));
  RN_RETURN_IF_ERROR(rn_sparse_check_sizes(rn_in(ctx, 2)));
  RN_RETURN_IF_ERROR(rn_sparse_read(ctx, 0, &in));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &in.count}, &out));
  if (!is_sorted(&in)) {
    size_t size = rn_dtype_size(in.values->dtype), width = (size_t)in.rank * sizeof *indices;
    for (int32_t d = 0; d < RN_MAX_RANK; ++d) order.dims[d] = d;
    RN_RETURN_IF_ERROR(sorted_entries(&in, &order, arena, &entries));
    RN_RETURN_IF_ERROR(rn_arena_alloc_array(arena, (size_t)in.count, size, (void**)&data));
    RN_RETURN_IF_ERROR(rn_arena_alloc_array(arena, (size_t)in.count, width, (void**)&indices));
    for (int64_t i = 0; i < in.count; ++i) {
      memcpy(data + (size_t)i * size, rn_element(in.values, entries[i].place), size);
      memcpy(indices + i * in.rank, entries[i].key, width);
    }
    values = *in.values;
    values.data = data;
    in.values = &values;  // borrows its memory: never cleared
    in.indices = indices;
  }
  for (int64_t begin = 0, end; begin < in.count; begin = end) {
    const int64_t* first = rn_sparse_index(&in, begin);
    for (end = begin + 1; end < in.count; ++end)
      if (rn_sparse_compare(first, rn_sparse_index(&in, end), in.rank - 1)) break;
    softmax_run(in.values, begin, end, out);
  }
  return RN_OK;
}

static rn_status_t reduce_in(rn_kernel_ctx_t* ctx, rn_arena_t* arena) {
  const groups_reduce_t* reduce = ctx->state;
  rn_tensor_t* values = NULL;
  int64_t *indices = NULL, shape[RN_MAX_RANK], groups = 0, n = -1;
  groups_entry_t* entries = NULL;
  rn_sparse_t in;
  groups_order_t order;
  RN_RETURN_IF_ERROR(read_axes(ctx, &order));
  RN_RETURN_IF_ERROR(rn_sparse_read(ctx, 0, &in));
  RN_RETURN_IF_ERROR(sorted_entries(&in, &order, arena, &entries));
  int32_t rank = reduce->keeps_dims ? in.rank : order.kept;
  for (int32_t d = 0; d < in.rank; ++d) shape[d] = 1;
  for (int32_t d = 0; d < order.kept; ++d)
    shape[reduce->keeps_dims ? order.dims[d] : d] = in.shape[order.dims[d]];
  for (int64_t i = 0; i < in.count; ++i)
    groups += !i || rn_sparse_compare(entries[i - 1].key, entries[i].key, order.kept) != 0;
  RN_RETURN_IF_ERROR(rn_sparse_output(ctx, 0, groups, rank, shape, &indices, &values));
  rn_combine_fn_t combine = rn_combine(reduce->op, in.values->dtype);
  for (int64_t i = 0; i < in.count; ++i) {
    const char* value = rn_element(in.values, entries[i].place);
    if (i && !rn_sparse_compare(entries[i - 1].key, entries[i].key, order.kept)) {
      combine(rn_element(values, n), value, 1, rn_element(values, n), 1);
      continue;
    }
    memcpy(rn_element(values, ++n), value, rn_dtype_size(in.values->dtype));
    for (int32_t d = 0; d < rank; ++d) indices[n * rank + d] = 0;
    for (int32_t d = 0; d < order.kept; ++d)
      indices[n * rank + (reduce->keeps_dims ? order.dims[d] : d)] = entries[i].key[d];
  }
  return RN_OK;
}

static rn_status_t sparse_softmax(rn_kernel_ctx_t* ctx) { return rn_with_arena(ctx, softmax_in); }
static rn_status_t reduce_sparse(rn_kernel_ctx_t* ctx) { return rn_with_arena(ctx, reduce_in); }

#define REDUCE(name, types_)                                                                      \
  {                                                                                               \
    .op = name, .device = "CPU", .types = {{"T", types_}}, .state_size = sizeof(groups_reduce_t), \
    .init = reduce_init, .compute = reduce_sparse                                                 \
  }

static const rn_kernel_def_t rows[] = {
    {.op = "SparseSoftmax",
     .device = "CPU",
     .types = {{"T", RN_T(HALF) | RN_T(FLOAT) | RN_T(DOUBLE)}},
     .compute = sparse_softmax},
    REDUCE("SparseReduceSumSparse", RN_TYPES_NUMBERS),
    REDUCE("SparseReduceMaxSparse", RN_TYPES_REAL),
};
RN_KERNEL_FAMILY(cpu_sparse_groups, rows);
