// Sparse tensors rearranged: sorted, reshaped, sliced, joined, split. A sparse
// tensor is a matrix of indices (one row per value), a vector of values and a vector of sizes.
// Values are only moved, so all types share this code.
#include <stdlib.h>

#include "base/arena.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/move.h"
#include "kernels/cpu/sparse/tensor.h"
#include "kernels/cpu/with_arena.h"
#include "kernels/kernel_rows.h"

rn_status_t rn_sparse_outputs(rn_kernel_ctx_t* ctx, int i, int v, int64_t count, int rank,
                              rn_tensor_t** out_indices, rn_tensor_t** out_values) {
  const int64_t dims[2] = {count, rank};
  RN_RETURN_IF_ERROR(rn_output(ctx, i, (rn_shape_t){2, dims}, out_indices));
  return v < 0 ? RN_OK : rn_output(ctx, v, (rn_shape_t){1, dims}, out_values);
}

rn_status_t rn_sparse_output_shape(rn_kernel_ctx_t* ctx, int i, const int64_t* shape, int rank) {
  const int64_t size = rank;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, i, (rn_shape_t){1, &size}, &out));
  if (rank) memcpy(out->data, shape, (size_t)rank * sizeof *shape);
  return RN_OK;
}

static rn_status_t move_value(const rn_tensor_t* from, int64_t i, rn_tensor_t* to, int64_t j) {
  size_t size = rn_dtype_size(from->dtype);
  const char* value = (const char*)from->data + (size_t)i * size;
  char* at = (char*)to->data + (size_t)j * size;
  if (!rn_dtype_is_plain(from->dtype)) return rn_move_row(from->dtype, value, at, 1);
  rn_move_bytes(at, value, size);
  return RN_OK;
}

// Sorts entries by index; stable.

typedef struct tensor_entry_t {
  int64_t* index;  // |rank| numbers
  const rn_tensor_t* values;
  int64_t place;   // index in |values|
  int64_t number;  // original position
  int rank;
} tensor_entry_t;

static int compare_entries(const void* a, const void* b) {
  const tensor_entry_t *x = a, *y = b;
  int order = rn_sparse_compare(x->index, y->index, x->rank);
  return order ? order : (x->number > y->number) - (x->number < y->number);
}

static void sort_entries(tensor_entry_t* entries, int64_t count) {
  for (int64_t i = 1; i < count; ++i) {
    if (compare_entries(&entries[i - 1], &entries[i]) <= 0) continue;
    qsort(entries, (size_t)count, sizeof *entries, compare_entries);
    return;
  }
}

static rn_status_t give_entries(rn_kernel_ctx_t* ctx, tensor_entry_t* entries, int64_t count,
                                int rank) {
  rn_tensor_t *indices = NULL, *values = NULL;
  sort_entries(entries, count);
  RN_RETURN_IF_ERROR(rn_sparse_outputs(ctx, 0, 1, count, rank, &indices, &values));
  for (int64_t i = 0; i < count; ++i) {
    if (rank)
      memcpy(RN_DATA(indices, int64_t) + i * rank, entries[i].index,
             (size_t)rank * sizeof(int64_t));
    RN_RETURN_IF_ERROR(move_value(entries[i].values, entries[i].place, values, i));
  }
  return RN_OK;
}

// Entries whose indices are within the sizes have a place in the dense tensor, which sorts them by
// digits.
typedef struct tensor_place_t {
  uint64_t place;
  int64_t number;  // original position
} tensor_place_t;
enum { DIGIT = 11 };

// False if an index is outside, or the tensor has too many elements. |*out_bits| is what the places
// differ in.
static bool find_places(const rn_sparse_t* in, tensor_place_t* out, uint64_t* out_bits) {
  int64_t size = 1;
  for (int d = 0; d < in->rank; ++d)
    if (in->shape[d] < 0 || !rn_mul_i64_ok(size, in->shape[d], &size)) return false;
  bool is_inside = true;
  uint64_t bits = 0;
  for (int64_t i = 0; i < in->count; ++i) {
    const int64_t* index = in->indices + i * in->rank;
    uint64_t place = 0;
    for (int d = 0; d < in->rank; ++d) {
      is_inside &= (uint64_t)index[d] < (uint64_t)in->shape[d];
      place = place * (uint64_t)in->shape[d] + (uint64_t)index[d];
    }
    bits |= place;
    out[i] = (tensor_place_t){place, i};
  }
  *out_bits = bits;
  return is_inside;
}

// Sorts |*inout_from| by the digit at |shift|; stable.
static void sort_digit(tensor_place_t** inout_from, tensor_place_t** inout_to, int64_t count,
                       int shift) {
  tensor_place_t *from = *inout_from, *to = *inout_to;
  const uint64_t mask = (1 << DIGIT) - 1;
  int64_t starts[1 << DIGIT] = {0}, sum = 0;
  for (int64_t i = 0; i < count; ++i) ++starts[from[i].place >> shift & mask];
  for (int d = 0; d < 1 << DIGIT; ++d) {
    const int64_t own = starts[d];
    starts[d] = sum;
    sum += own;
  }
  for (int64_t i = 0; i < count; ++i) to[starts[from[i].place >> shift & mask]++] = from[i];
  *inout_from = to;
  *inout_to = from;
}

// |*out_done| is false if the places cannot be used.
static rn_status_t reorder_places(rn_kernel_ctx_t* ctx, rn_arena_t* arena, const rn_sparse_t* in,
                                  bool* out_done) {
  tensor_place_t *from = NULL, *to = NULL;
  uint64_t bits = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)in->count + 1, &from));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)in->count + 1, &to));
  *out_done = find_places(in, from, &bits);
  if (!*out_done) return RN_OK;
  for (int shift = 0; shift < 64 && bits >> shift; shift += DIGIT)
    sort_digit(&from, &to, in->count, shift);
  rn_tensor_t *indices = NULL, *values = NULL;
  RN_RETURN_IF_ERROR(rn_sparse_outputs(ctx, 0, 1, in->count, in->rank, &indices, &values));
  int64_t* index = indices->data;
  for (int64_t i = 0; i < in->count; ++i, index += in->rank) {
    const int64_t* own = in->indices + from[i].number * in->rank;
    for (int d = 0; d < in->rank; ++d) index[d] = own[d];
    RN_RETURN_IF_ERROR(move_value(in->values, from[i].number, values, i));
  }
  return RN_OK;
}

static rn_status_t reorder_in(rn_kernel_ctx_t* ctx, rn_arena_t* arena) {
  rn_sparse_t in;
  tensor_entry_t* entries = NULL;
  bool is_done = false;
  RN_RETURN_IF_ERROR(rn_sparse_read_parts(ctx, 0, &in));
  RN_RETURN_IF_ERROR(reorder_places(ctx, arena, &in, &is_done));
  if (is_done) return RN_OK;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)in.count + 1, &entries));
  for (int64_t i = 0; i < in.count; ++i)
    entries[i] = (tensor_entry_t){(int64_t*)in.indices + i * in.rank, in.values, i, i, in.rank};
  return give_entries(ctx, entries, in.count, in.rank);
}

static rn_status_t sparse_reorder(rn_kernel_ctx_t* ctx) { return rn_with_arena(ctx, reorder_in); }

// Joining.

rn_status_t rn_sparse_concat_init(const rn_kernel_init_t* init, void* state) {
  rn_sparse_concat_t* concat = state;
  concat->axis = rn_init_int(init, "concat_dim");
  concat->count = (int)rn_init_int(init, "N");
  return RN_OK;
}

// INVALID_ARGUMENT unless the |count| inputs from |first| on have rank |rank|.
static rn_status_t check_list(rn_kernel_ctx_t* ctx, int first, int count, int rank,
                              const char* name) {
  for (int n = 0; n < count; ++n)
    if (rn_in(ctx, first + n)->rank != rank)
      return rn_invalid_argument("Input %s should be a %s but received shape %s at position %d",
                                 name, rank == 2 ? "matrix" : "vector",
                                 rn_text_of(rn_in(ctx, first + n)).text, n);
  return RN_OK;
}

// Whether the sizes of all |count| inputs are valid shapes.
static bool are_shapes(rn_kernel_ctx_t* ctx, int count) {
  for (int n = 0; n < count; ++n) {
    rn_status_t status = rn_sparse_check_sizes(rn_in(ctx, 2 * count + n));
    bool is_shape = rn_ok(status);
    rn_status_free(status);
    if (!is_shape) return false;
  }
  return true;
}

// INVALID_ARGUMENT unless the sizes of |part|, number |n|, equal those of |first| in all dimensions
// but |axis|.
static rn_status_t check_alike(const rn_tensor_t* first, const rn_tensor_t* part, int n,
                               int64_t axis) {
  if (part->count != first->count)
    return rn_invalid_argument(
        "Ranks of all input tensors must match: expected %lld but got %lld at position %d",
        (long long)first->count, (long long)part->count, n);
  for (int64_t d = 0; d < first->count; ++d)
    if (d != axis && rn_int_at(part, d) != rn_int_at(first, d))
      return rn_invalid_argument(
          "Input shapes must match: expected %lld for dimension %lld but got %lld at position %d",
          (long long)rn_int_at(first, d), (long long)d, (long long)rn_int_at(part, d), n);
  return RN_OK;
}

// Reads all inputs and adds up their sizes along the axis.
rn_status_t rn_sparse_concat_read(rn_kernel_ctx_t* ctx, rn_sparse_t* parts, int64_t* shape,
                                  int* out_axis, int64_t* out_total) {
  const rn_sparse_concat_t* concat = ctx->state;
  const int count = concat->count;
  int64_t axis = concat->axis;
  const rn_tensor_t* first = rn_in(ctx, 2 * count);
  RN_RETURN_IF_ERROR(check_list(ctx, 0, count, 2, "indices"));
  RN_RETURN_IF_ERROR(check_list(ctx, count, count, 1, "values"));
  RN_RETURN_IF_ERROR(check_list(ctx, 2 * count, count, 1, "shapes"));
  if (!are_shapes(ctx, count)) return rn_internal("Encountered overflow from large input shape.");
  int64_t rank = first->count;
  if (axis < -rank || axis >= rank)
    return rn_invalid_argument("Concat dimension must be in range [%lld, %lld), got %lld",
                               (long long)-rank, (long long)rank, (long long)axis);
  if (axis < 0) axis += rank;
  *out_axis = (int)axis;
  *out_total = 0;
  for (int n = 0; n < count; ++n) {
    const rn_tensor_t *indices = rn_in(ctx, n), *values = rn_in(ctx, count + n);
    const rn_tensor_t* sizes = rn_in(ctx, 2 * count + n);
    RN_RETURN_IF_ERROR(check_alike(first, sizes, n, axis));
    if (rn_tensor_dim(indices, 0) != values->count)
      return rn_invalid_argument(
          "indices and values rows (indexing dimension) must match. (indices = %lld, values = "
          "%lld)",
          (long long)rn_tensor_dim(indices, 0), (long long)values->count);
    if (rn_tensor_dim(indices, 1) != rank)
      return rn_invalid_argument("Order length must be SparseTensor rank.");
    RN_RETURN_IF_ERROR(rn_sparse_take(indices, values, sizes, &parts[n]));
    *out_total += values->count;
  }
  memcpy(shape, parts[0].shape, (size_t)rank * sizeof *shape);
  for (int n = 1; n < count; ++n)
    if (!rn_add_i64_ok(shape[axis], parts[n].shape[axis], &shape[axis]))
      return rn_internal("Encountered overflow from large input shape.");
  return RN_OK;
}

static rn_status_t concat_in(rn_kernel_ctx_t* ctx, rn_arena_t* arena) {
  const rn_sparse_concat_t* concat = ctx->state;
  int64_t shape[RN_MAX_RANK], total = 0, offset = 0, number = 0;
  rn_sparse_t* parts = NULL;
  tensor_entry_t* entries = NULL;
  int64_t* indices = NULL;
  int axis = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)concat->count, &parts));
  RN_RETURN_IF_ERROR(rn_sparse_concat_read(ctx, parts, shape, &axis, &total));
  int rank = parts[0].rank;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)total + 1, &entries));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)(total * rank) + 1, &indices));
  for (int n = 0; n < concat->count; ++n) {
    for (int64_t i = 0; i < parts[n].count; ++i, ++number) {
      int64_t* index = indices + number * rank;
      memcpy(index, parts[n].indices + i * rank, (size_t)rank * sizeof *index);
      index[axis] = (int64_t)((uint64_t)index[axis] + (uint64_t)offset);
      entries[number] = (tensor_entry_t){index, parts[n].values, i, number, rank};
    }
    offset += parts[n].shape[axis];
  }
  RN_RETURN_IF_ERROR(give_entries(ctx, entries, total, rank));
  return rn_sparse_output_shape(ctx, 2, shape, rank);
}
static rn_status_t sparse_concat(rn_kernel_ctx_t* ctx) { return rn_with_arena(ctx, concat_in); }

// Slices: entries within a box, with indices relative to its corner.

static bool is_within(const rn_sparse_t* in, int64_t i, const int64_t* start, const int64_t* size) {
  for (int d = 0; d < in->rank; ++d) {
    int64_t at = in->indices[i * in->rank + d];
    if (at < start[d] || (uint64_t)at - (uint64_t)start[d] >= (uint64_t)size[d]) return false;
  }
  return true;
}

static rn_status_t give_box(rn_kernel_ctx_t* ctx, const rn_sparse_t* in, const int64_t* start,
                            const int64_t* size, int i, int v, int s) {
  rn_tensor_t *indices = NULL, *values = NULL;
  int64_t count = 0, next = 0;
  for (int64_t k = 0; k < in->count; ++k) count += is_within(in, k, start, size);
  RN_RETURN_IF_ERROR(rn_sparse_outputs(ctx, i, v, count, in->rank, &indices, &values));
  for (int64_t k = 0; k < in->count; ++k) {
    if (!is_within(in, k, start, size)) continue;
    for (int d = 0; d < in->rank; ++d)
      RN_DATA(indices, int64_t)[next * in->rank + d] = in->indices[k * in->rank + d] - start[d];
    RN_RETURN_IF_ERROR(move_value(in->values, k, values, next++));
  }
  return rn_sparse_output_shape(ctx, s, size, in->rank);
}

rn_status_t rn_sparse_slice_read(rn_kernel_ctx_t* ctx, rn_sparse_t* in, int64_t* start,
                                 int64_t* size) {
  RN_RETURN_IF_ERROR(rn_sparse_read_parts(ctx, 0, in));
  for (int k = 3; k < 5; ++k)
    if (rn_in(ctx, k)->rank != 1)
      return rn_invalid_argument("Input %s should be a vector but received shape %s",
                                 k == 3 ? "start" : "size", rn_text_of(rn_in(ctx, k)).text);
  for (int k = 3; k < 5; ++k)
    if (rn_in(ctx, k)->count != in->rank)
      return rn_invalid_argument("Expected %s to be a vector of length %d but got length %lld",
                                 k == 3 ? "start" : "size", in->rank,
                                 (long long)rn_in(ctx, k)->count);
  RN_RETURN_IF_ERROR(rn_sparse_check_sizes(rn_in(ctx, 2)));
  for (int d = 0; d < in->rank; ++d) {
    start[d] = RN_DATA(rn_in(ctx, 3), const int64_t)[d];
    size[d] = RN_DATA(rn_in(ctx, 4), const int64_t)[d];
    if (size[d] < 0)
      return rn_invalid_argument("Expected a non-negative size, got %lld", (long long)size[d]);
    // The box may start before element 0, where there are no entries.
    int64_t left = 0;
    if (start[d] < in->shape[d] && __builtin_sub_overflow(in->shape[d], start[d], &left))
      left = INT64_MAX;
    if (size[d] > left) size[d] = left;
  }
  return RN_OK;
}

static rn_status_t sparse_slice(rn_kernel_ctx_t* ctx) {
  rn_sparse_t in;
  int64_t start[RN_MAX_RANK], size[RN_MAX_RANK];
  RN_RETURN_IF_ERROR(rn_sparse_slice_read(ctx, &in, start, size));
  return give_box(ctx, &in, start, size, 0, 1, 2);
}

rn_status_t rn_sparse_split_read(rn_kernel_ctx_t* ctx, bool checks_bounds, rn_sparse_t* in,
                                 int64_t* out_axis) {
  const rn_tensor_t* axis_in = rn_in(ctx, 0);
  int parts = ctx->kernel->output_count / 3;
  if (axis_in->rank != 0)
    return rn_invalid_argument("Input axis should be a scalar but received shape %s",
                               rn_text_of(axis_in).text);
  RN_RETURN_IF_ERROR(rn_sparse_check_ranks(rn_in(ctx, 1), rn_in(ctx, 2), rn_in(ctx, 3)));
  RN_RETURN_IF_ERROR(rn_sparse_read_parts(ctx, 1, in));
  if (checks_bounds) RN_RETURN_IF_ERROR(rn_sparse_check_bounds(in));
  int64_t axis = *RN_DATA(axis_in, const int64_t);
  if (axis < -in->rank || axis >= in->rank)
    return rn_invalid_argument("Input axis should be in range [%d, %d), got %lld", -in->rank,
                               in->rank, (long long)axis);
  if (axis < 0) axis += in->rank;
  if (parts < 1 || parts > in->shape[axis])
    return rn_invalid_argument(
        "Input num_split should be between 1 and the splitting dimension "
        "size (%lld), got %d",
        (long long)in->shape[axis], parts);
  *out_axis = axis;
  return rn_sparse_check_sizes(rn_in(ctx, 3));
}

int64_t rn_sparse_split_size(const rn_kernel_ctx_t* ctx, const rn_sparse_t* in, int64_t axis,
                             int p) {
  const int parts = ctx->kernel->output_count / 3;
  return in->shape[axis] / parts + (p < in->shape[axis] % parts);
}

static rn_status_t sparse_split(rn_kernel_ctx_t* ctx) {
  const int parts = ctx->kernel->output_count / 3;
  int64_t start[RN_MAX_RANK] = {0}, size[RN_MAX_RANK], axis = 0;
  rn_sparse_t in;
  RN_RETURN_IF_ERROR(rn_sparse_split_read(ctx, true, &in, &axis));
  memcpy(size, in.shape, (size_t)in.rank * sizeof *size);
  for (int p = 0; p < parts; ++p) {
    size[axis] = rn_sparse_split_size(ctx, &in, axis, p);
    RN_RETURN_IF_ERROR(give_box(ctx, &in, start, size, p, parts + p, 2 * parts + p));
    start[axis] += size[axis];
  }
  return RN_OK;
}

// Reshaping.

// |target| with its -1, if any, replaced by the inferred size; |places| is the number of elements
// of the input.
static rn_status_t resolve(const rn_sparse_t* in, int64_t places, const rn_tensor_t* target,
                           int64_t* shape) {
  int64_t product = 1;
  int open = -1, rank = (int)target->count;
  rn_shape_t old = {(int16_t)in->rank, in->shape}, made = {(int16_t)rank, shape};
  for (int d = 0; d < rank; ++d) {
    int64_t before = product;
    shape[d] = RN_DATA(target, const int64_t)[d];
    if (shape[d] == -1) {
      if (open >= 0)
        return rn_invalid_argument("only one output dimension may be -1, not both %d and %d", open,
                                   d);
      open = d;
      shape[d] = 1;
    } else if (shape[d] < 0) {
      return rn_invalid_argument("size %d must be non-negative, not %lld", d, (long long)shape[d]);
    }
    if (!rn_mul_i64_ok(before, shape[d], &product))
      return rn_invalid_argument("Encountered overflow when multiplying %lld with %lld, result: -1",
                                 (long long)before, (long long)shape[d]);
  }
  if (open >= 0) {
    if (product == 0)
      return rn_invalid_argument(
          "reshape cannot infer the missing input size for an empty tensor "
          "unless all specified input sizes are non-zero");
    if (places % product)
      return rn_invalid_argument(
          "Input to reshape is a SparseTensor with %lld dense values, but the requested shape "
          "requires a multiple of %lld. input_shape=%s output_shape=%s",
          (long long)places, (long long)product, rn_shape_text(old).text, rn_shape_text(made).text);
    shape[open] = places / product;
    product = places;
  }
  if (product == places) return RN_OK;
  return rn_invalid_argument(
      "Input to reshape is a tensor with %lld dense values, but the requested shape has %lld. "
      "input_shape=%s output_shape=%s",
      (long long)places, (long long)product, rn_shape_text(old).text, rn_shape_text(made).text);
}

static rn_status_t read_for_reshape(rn_kernel_ctx_t* ctx, rn_sparse_t* out, int64_t* out_places) {
  const rn_tensor_t *indices = rn_in(ctx, 0), *sizes = rn_in(ctx, 1), *target = rn_in(ctx, 2);
  if (indices->rank != 2) return rn_invalid_argument("Input must be a matrix.");
  if (sizes->rank != 1) return rn_invalid_argument("Input shape must be a vector.");
  if (sizes->count != rn_tensor_dim(indices, 1))
    return rn_invalid_argument("Input tensor rank must match input shape length.");
  if (target->rank != 1 || target->count > RN_MAX_RANK)
    return rn_invalid_argument("Target shape should be a vector but received shape %s",
                               rn_text_of(target).text);
  RN_RETURN_IF_ERROR(rn_sparse_check_sizes(sizes));
  RN_RETURN_IF_ERROR(rn_sparse_take(indices, NULL, sizes, out));
  *out_places = rn_dims_product(out->shape, 0, out->rank);
  return RN_OK;
}

rn_status_t rn_sparse_reshape_read(rn_kernel_ctx_t* ctx, rn_sparse_t* in, int64_t* shape,
                                   bool* out_is_same) {
  const rn_tensor_t* target = rn_in(ctx, 2);
  int64_t places = 0;
  RN_RETURN_IF_ERROR(read_for_reshape(ctx, in, &places));
  RN_RETURN_IF_ERROR(resolve(in, places, target, shape));
  int rank = (int)target->count;
  if (in->count && !places)
    return rn_invalid_argument(
        "Input tensor has %lld non zero elements but input shape (%s) or output shape (%s) is "
        "empty",
        (long long)in->count, rn_shape_text((rn_shape_t){(int16_t)in->rank, in->shape}).text,
        rn_shape_text((rn_shape_t){(int16_t)rank, shape}).text);
  *out_is_same =
      rank == in->rank && (rank == 0 || !memcmp(shape, in->shape, (size_t)rank * sizeof *shape));
  return RN_OK;
}

static rn_status_t sparse_reshape(rn_kernel_ctx_t* ctx) {
  const int rank = (int)rn_in(ctx, 2)->count;
  rn_sparse_t in;
  int64_t shape[RN_MAX_RANK], strides[RN_MAX_RANK];
  bool is_same = false;
  rn_tensor_t* indices = NULL;
  RN_RETURN_IF_ERROR(rn_sparse_reshape_read(ctx, &in, shape, &is_same));
  if (is_same) {
    RN_RETURN_IF_ERROR(rn_forward(ctx, 0, 0));  // without checking the indices
    return rn_sparse_output_shape(ctx, 1, shape, rank);
  }
  RN_RETURN_IF_ERROR(rn_sparse_outputs(ctx, 0, -1, in.count, rank, &indices, NULL));
  int64_t stride = 1;
  for (int d = rank; d-- > 0; stride *= shape[d]) strides[d] = stride;
  for (int64_t i = 0; i < in.count; ++i) {
    // Indices are not checked; the computed position wraps around.
    uint64_t sum = 0;
    for (int d = 0; d < in.rank; ++d)
      sum = sum * (uint64_t)in.shape[d] + (uint64_t)in.indices[i * in.rank + d];
    int64_t place = (int64_t)sum;
    for (int d = 0; d < rank; ++d) {
      RN_DATA(indices, int64_t)[i * rank + d] = place / strides[d];
      place %= strides[d];
    }
  }
  return rn_sparse_output_shape(ctx, 1, shape, rank);
}

// The gradient of a slice: that of the entries in it, 0 for the others.
rn_status_t rn_sparse_slice_grad_check(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *dy = rn_in(ctx, 0), *in = rn_in(ctx, 1), *start = rn_in(ctx, 2),
                    *taken = rn_in(ctx, 3);
  if (in->rank != 2 || taken->rank != 2)
    return rn_invalid_argument(
        "Input and output indices should be matrices but received shapes: %s and %s",
        rn_text_of(in).text, rn_text_of(taken).text);
  if (dy->rank != 1)
    return rn_invalid_argument("Input backprop_val_grad should be a vector but received shape: %s",
                               rn_text_of(dy).text);
  int64_t rank = rn_tensor_dim(in, 1), count = rn_tensor_dim(in, 0);
  if (rn_tensor_dim(taken, 1) != rank)
    return rn_invalid_argument(
        "The input and output should have the same ndims: got: %lld and %lld", (long long)rank,
        (long long)rn_tensor_dim(taken, 1));
  if (start->rank != 1)
    return rn_invalid_argument("Input start should be a vector but received shape %s",
                               rn_text_of(start).text);
  if (start->count != rank)
    return rn_invalid_argument(
        "Expected input_start to be a vector of length %lld but got length "
        "%lld",
        (long long)rank, (long long)start->count);
  if (dy->count != rn_tensor_dim(taken, 0))
    return rn_invalid_argument(
        "# elements of backprop_val_grad and # rows of output_indices should match (#nnz of sum): "
        "got %lld and %lld",
        (long long)dy->count, (long long)rn_tensor_dim(taken, 0));
  if (rn_tensor_dim(taken, 0) > count)
    return rn_invalid_argument(
        "# rows of output_indices should be not greater than of "
        "input_indices, got %lld and %lld",
        (long long)rn_tensor_dim(taken, 0), (long long)count);
  return RN_OK;
}

static rn_status_t sparse_slice_grad(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *dy = rn_in(ctx, 0), *in = rn_in(ctx, 1), *start = rn_in(ctx, 2),
                    *taken = rn_in(ctx, 3);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_sparse_slice_grad_check(ctx));
  int64_t rank = rn_tensor_dim(in, 1), count = rn_tensor_dim(in, 0), next = 0;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &count}, &out));
  rn_move_zero(rn_ctx_pool(ctx), out->dtype, out->data, count);
  const int64_t *from = RN_DATA(in, const int64_t), *to = RN_DATA(taken, const int64_t);
  const int64_t* corner = RN_DATA(start, const int64_t);
  for (int64_t i = 0; i < count && next < dy->count; ++i) {
    bool is_same = true;
    for (int64_t d = 0; d < rank && is_same; ++d)
      is_same = (uint64_t)from[i * rank + d] - (uint64_t)corner[d] == (uint64_t)to[next * rank + d];
    if (is_same) RN_RETURN_IF_ERROR(move_value(dy, next++, out, i));
  }
  if (next == dy->count) return RN_OK;
  return rn_internal(
      "Elements of backprop_val_grad aren't all propagated. Num elements:%lld, used: "
      "%lld",
      (long long)dy->count, (long long)next);
}

#define ROW(name, ...) \
  { .op = name, .device = "CPU", __VA_ARGS__ }

static const rn_kernel_def_t rows[] = {
    ROW("SparseReorder", .compute = sparse_reorder),
    ROW("SparseConcat", .state_size = sizeof(rn_sparse_concat_t), .init = rn_sparse_concat_init,
        .compute = sparse_concat),
    ROW("SparseSlice", .compute = sparse_slice),
    ROW("SparseSliceGrad", .types = {{"T", RN_TYPES_NUMBERS}}, .compute = sparse_slice_grad),
    ROW("SparseSplit", .compute = sparse_split),
    ROW("SparseReshape", .compute = sparse_reshape),
};
RN_KERNEL_FAMILY(cpu_sparse_tensor, rows);
