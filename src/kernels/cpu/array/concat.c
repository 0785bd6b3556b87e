// Kernels that concatenate and split tensors along an axis.
#include "base/pool.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/move.h"
#include "kernels/cpu/rows.h"
#include "kernels/kernel_rows.h"

#define FLOAT8 (RN_T(FLOAT8_E5M2) | RN_T(FLOAT8_E4M3FN))
#define OBJECTS (RN_T(RESOURCE) | RN_T(VARIANT))
#define CONCAT_TYPES \
  (RN_TYPES_NUMBERS | RN_TYPES_QUANTISED | FLOAT8 | RN_T(BOOL) | RN_T(STRING) | OBJECTS)
#define SPLIT_TYPES                                                                              \
  (RN_TYPES_NUMBERS | FLOAT8 | RN_T(BOOL) | RN_T(STRING) | OBJECTS | RN_T(QUINT8) | RN_T(INT4) | \
   RN_T(UINT4))

// Bytes worth a hand-off to another thread; bytes worth sharing with one that is awake anyway; and
// the minimum row of a part for copying whole rows.
#define PIECE_BYTES (512 * 1024)
#define SMALL_BYTES (64 * 1024)
#define LEAST_RUN 64
// Bytes that no cache keeps until they are read, and those of a cache line.
#define LARGE_BYTES (32 << 20)
#define LINE 64
// Bytes of the whole to copy before the next ones: well within the L1 cache.
#define BLOCK_BYTES (8 * 1024)

// Parts side by side in the rows of a whole tensor, for joining or splitting.
typedef struct sides_t {
  rn_kernel_ctx_t* ctx;
  int first, count;  // range of the parts among the inputs or outputs
  bool joins;
  int64_t outer;
  char* whole;
  size_t size, row;  // bytes per element, and per row of the whole
  bool streams;      // past the caches
} sides_t;

static const rn_tensor_t* part_of(const sides_t* sides, int i) {
  return sides->joins ? rn_in(sides->ctx, sides->first + i) : &sides->ctx->out[sides->first + i];
}

static size_t run_of(const sides_t* sides, int i) {
  return (size_t)(part_of(sides, i)->count / sides->outer) * sides->size;
}

// Copies rows [begin, end) of every part, some at a time, so that the whole is read or written in
// order.
static void copy_sides(void* arg, int64_t begin, int64_t end) {
  const sides_t* sides = arg;
  const rn_move_table_t* table = RN_ISA_PICK(&rn_move_table_);
  const rn_move_rows_fn_t copy = sides->streams ? table->stream : table->rows;
  const int64_t row = (int64_t)sides->row, step = BLOCK_BYTES / row + 1;
  for (int64_t r = begin; r < end; r += step) {
    const int64_t n = end - r < step ? end - r : step;
    char* whole = sides->whole + r * row;
    for (int i = 0; i < sides->count; ++i) {
      const int64_t run = (int64_t)run_of(sides, i);
      char* part = (char*)part_of(sides, i)->data + r * run;
      if (sides->joins)
        copy(part, run, whole, row, n, (size_t)run);
      else
        copy(whole, row, part, run, n, (size_t)run);
      whole += run;
    }
  }
}

// Copies whole rows, all parts at once. False if they are too short for that, or not plain bytes.
static bool copy_rows(sides_t* sides, rn_dtype_t dtype) {
  if (sides->outer < 2 || !rn_dtype_is_plain(dtype) || !rn_ctx_is_host(sides->ctx, dtype))
    return false;
  sides->streams = sides->joins && sides->row * (size_t)sides->outer >= LARGE_BYTES &&
                   (uintptr_t)sides->whole % LINE == 0;
  for (int i = 0; i < sides->count; ++i) {
    if (run_of(sides, i) < LEAST_RUN) return false;
    if (run_of(sides, i) % LINE) sides->streams = false;
  }
  rn_pool_for_small(rn_ctx_pool(sides->ctx), sides->outer, (int64_t)(PIECE_BYTES / sides->row) + 1,
                    (int64_t)(SMALL_BYTES / sides->row) + 1, copy_sides, (void*)sides);
  return true;
}

// Joins |count| tensors side by side: in |out|, seen as |outer| rows, input i fills a run of
// count_i / outer elements per row.
static rn_status_t join(rn_kernel_ctx_t* ctx, int first, int count, int64_t outer,
                        rn_tensor_t* out) {
  rn_dtype_t dtype = out->dtype;
  char* to = out->data;
  const size_t size = rn_dtype_size(dtype);
  if (outer == 1 && rn_dtype_is_plain(dtype) && out->count * (int64_t)size <= 1 << 18 &&
      rn_ctx_is_host(ctx, dtype)) {
    for (int i = 0; i < count; ++i) {
      const rn_tensor_t* input = rn_in(ctx, first + i);
      size_t bytes = (size_t)input->count * size;
      if (bytes) rn_move_bytes(to, input->data, bytes);
      to += bytes;
    }
    return RN_OK;
  }
  const int64_t row = out->count / outer;
  sides_t sides = {ctx, first, count, true, outer, to, size, (size_t)row * size, false};
  if (copy_rows(&sides, dtype)) return RN_OK;
  rn_moves_t moves;
  rn_moves_begin(&moves, ctx, dtype);
  for (int i = 0; i < count; ++i) {
    const rn_tensor_t* input = rn_in(ctx, first + i);
    if (input->count == 0) continue;
    int64_t run = input->count / outer;
    rn_move_t move;
    rn_move_begin(&move);
    rn_move_add(&move, outer, run, row);
    rn_move_add(&move, run, 1, 1);
    RN_RETURN_IF_ERROR(rn_moves_add(&moves, &move, input->data, to));
    to += (size_t)run * size;
  }
  return rn_moves_end(&moves);
}

// The range of concatenated parts among the inputs.
typedef struct array_concat_t {
  int axis_input, first;
  const char* axis_name;
} array_concat_t;

static rn_status_t concat_v1_init(const rn_kernel_init_t* init, void* state) {
  (void)init;
  *(array_concat_t*)state = (array_concat_t){0, 1, "concat_dim"};
  return RN_OK;
}

static rn_status_t concat_v2_init(const rn_kernel_init_t* init, void* state) {
  *(array_concat_t*)state = (array_concat_t){init->input_count - 1, 0, "axis"};
  return RN_OK;
}

static rn_status_t no_scalars(void) {
  return rn_invalid_argument("ConcatOp : Can't concatenate scalars (use tf.stack instead)");
}

static rn_status_t check_parts(rn_kernel_ctx_t* ctx, int first, int count, int axis,
                               int64_t* out_size) {
  const rn_tensor_t* model = rn_in(ctx, first);
  const int64_t* dims = rn_tensor_dims(model);
  int64_t size = 0;
  for (int i = 0; i < count; ++i) {
    const rn_tensor_t* input = rn_in(ctx, first + i);
    if (input->rank != model->rank)
      return rn_invalid_argument(
          "ConcatOp : Ranks of all input tensors should match: shape[0] = %s vs. shape[%d] = %s",
          rn_text_of(model).text, i, rn_text_of(input).text);
    const int64_t* own = rn_tensor_dims(input);
    for (int d = 0; d < model->rank; ++d)
      if (d != axis && own[d] != dims[d])
        return rn_invalid_argument(
            "ConcatOp : Dimension %d in both shapes must be equal: shape[0] = %s vs. shape[%d] = "
            "%s",
            d, rn_text_of(model).text, i, rn_text_of(input).text);
    if (!rn_add_i64_ok(size, own[axis], &size))
      return rn_invalid_argument("ConcatOp : the dimensions add up to too much");
  }
  *out_size = size;
  return RN_OK;
}

static rn_status_t concat(rn_kernel_ctx_t* ctx) {
  const array_concat_t* concat = ctx->state;
  const rn_tensor_t* axis_tensor = rn_in(ctx, concat->axis_input);
  if (axis_tensor->count != 1 || axis_tensor->rank > 1)
    return rn_invalid_argument("%s tensor should be a scalar integer, but got shape %s",
                               concat->axis_name, rn_text_of(axis_tensor).text);
  const int first = concat->first, count = ctx->kernel->input_count - 1;
  const rn_tensor_t* model = rn_in(ctx, first);
  int64_t axis = rn_int_at(axis_tensor, 0), rank = model->rank;
  // For scalars, axis 0 is rejected below with a message of its own.
  if ((axis < -rank || axis >= rank) && axis != 0)
    return rn_invalid_argument(
        "ConcatOp : Expected concatenating dimensions in the range [%lld, %lld), but got %lld",
        (long long)-rank, (long long)rank, (long long)axis);
  for (int i = 0; i < count; ++i)
    if (rn_in(ctx, first + i)->rank == 0) return no_scalars();
  if (axis < 0) axis += rank;
  int64_t dims[RN_MAX_RANK];
  memcpy(dims, rn_tensor_dims(model), (size_t)rank * sizeof *dims);
  RN_RETURN_IF_ERROR(check_parts(ctx, first, count, (int)axis, &dims[axis]));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){(int32_t)rank, dims}, &out));
  if (out->count == 0) return RN_OK;
  return join(ctx, first, count, rn_dims_product(dims, 0, (int)axis), out);
}

// Each input is one row along the first axis.
static rn_status_t parallel_concat(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* model = rn_in(ctx, 0);
  const int count = ctx->kernel->input_count;
  for (int i = 0; i < count; ++i)
    if (rn_in(ctx, i)->rank < 1 || rn_tensor_dim(rn_in(ctx, i), 0) != 1 ||
        !rn_tensor_same_shape(model, rn_in(ctx, i)))
      return rn_invalid_argument(
          "All values must have the same shape, with a first dimension of 1: values[0].shape = %s, "
          "values[%d].shape = %s",
          rn_text_of(model).text, i, rn_text_of(rn_in(ctx, i)).text);
  int64_t dims[RN_MAX_RANK];
  memcpy(dims, rn_tensor_dims(model), (size_t)model->rank * sizeof *dims);
  dims[0] = count;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){model->rank, dims}, &out));
  return out->count ? join(ctx, 0, count, 1, out) : RN_OK;
}

static void print_vector(rn_strbuf_t* buf, const rn_tensor_t* tensor) {
  rn_strbuf_printf(buf, "[");
  for (int64_t i = 0; i < tensor->count; ++i)
    rn_strbuf_printf(buf, i ? " %lld" : "%lld", (long long)rn_int_at(tensor, i));
  rn_strbuf_printf(buf, "]");
}

static rn_status_t offset_mismatch(rn_kernel_ctx_t* ctx, int64_t axis, int i) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  rn_strbuf_printf(&buf, "All dimensions except %lld must match. Input %d has shape ",
                   (long long)axis, i);
  print_vector(&buf, rn_in(ctx, 1 + i));
  rn_strbuf_printf(&buf, " and doesn't match input 0 with shape ");
  print_vector(&buf, rn_in(ctx, 1));
  rn_strbuf_printf(&buf, ".");
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &buf);
}

static rn_status_t concat_offset(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *axis_tensor = rn_in(ctx, 0), *model = rn_in(ctx, 1);
  if (axis_tensor->rank != 0)
    return rn_invalid_argument("Concat dim tensor should be a scalar integer, but got shape %s",
                               rn_text_of(axis_tensor).text);
  const int count = ctx->kernel->input_count - 1;
  for (int i = 0; i < count; ++i)
    if (rn_in(ctx, 1 + i)->rank != 1)
      return rn_invalid_argument("input %d should be a vector, but got shape %s", i + 1,
                                 rn_text_of(rn_in(ctx, 1 + i)).text);
  const int64_t rank = model->count, given = rn_int_at(axis_tensor, 0);
  const int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank)
    return rn_invalid_argument("Concat dim is out of range: %lld vs. %lld", (long long)given,
                               (long long)rank);
  int64_t offset = 0;
  for (int i = 0; i < count; ++i) {
    const rn_tensor_t* input = rn_in(ctx, 1 + i);
    if (input->count != rank)
      return rn_invalid_argument("input %d should contain %lld elements, but got %lld", i,
                                 (long long)rank, (long long)input->count);
    rn_tensor_t* out = NULL;
    RN_RETURN_IF_ERROR(rn_output(ctx, i, (rn_shape_t){1, &rank}, &out));
    for (int64_t d = 0; d < rank; ++d) {
      if (d != axis && rn_int_at(input, d) != rn_int_at(model, d))
        return offset_mismatch(ctx, axis, i);
      rn_int_set(out, d, d == axis ? offset : 0);
    }
    if (!rn_add_i64_ok(offset, rn_int_at(input, axis), &offset) ||
        (input->dtype == RN_INT32 && (offset > INT32_MAX || offset < INT32_MIN)))
      return rn_invalid_argument("The offsets do not fit into %s", rn_dtype_name(input->dtype));
  }
  return RN_OK;
}

static rn_status_t axis_init(const rn_kernel_init_t* init, void* state) {
  *(int64_t*)state = rn_init_int(init, "axis");
  return RN_OK;
}

static rn_status_t pack(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* model = rn_in(ctx, 0);
  const int count = ctx->kernel->input_count;
  int64_t axis = *(const int64_t*)ctx->state;
  const int32_t rank = model->rank + 1;
  for (int i = 1; i < count; ++i)
    if (!rn_tensor_same_shape(model, rn_in(ctx, i)))
      return rn_invalid_argument(
          "Shapes of all inputs must match: values[0].shape = %s != values[%d].shape = %s",
          rn_text_of(model).text, i, rn_text_of(rn_in(ctx, i)).text);
  if (axis < -rank || axis >= rank)
    return rn_invalid_argument("axis = %lld not in [%d, %d)", (long long)axis, -rank, rank);
  if (axis < 0) axis += rank;
  if (rank > RN_MAX_RANK)
    return rn_invalid_argument("Tensors have at most %d dimensions", RN_MAX_RANK);
  int64_t dims[RN_MAX_RANK];
  const int64_t* old = rn_tensor_dims(model);
  for (int d = 0; d < rank; ++d) dims[d] = d < axis ? old[d] : d == axis ? count : old[d - 1];
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){rank, dims}, &out));
  if (out->count == 0) return RN_OK;
  return join(ctx, 0, count, rn_dims_product(dims, 0, (int)axis), out);
}

// Copies |part|, elements [offset, offset + size) of the axis of each of |view|'s rows, out of
// |input|.
static rn_status_t take(rn_moves_t* moves, const rn_tensor_t* input, rn_axis_view_t view,
                        int64_t offset, int64_t size, rn_tensor_t* part) {
  if (part->count == 0) return RN_OK;
  rn_move_t move;
  rn_move_begin(&move);
  rn_move_add(&move, view.outer, view.size * view.inner, size * view.inner);
  rn_move_add(&move, size * view.inner, 1, 1);
  const char* from =
      (const char*)input->data + (size_t)(offset * view.inner) * rn_dtype_size(input->dtype);
  return rn_moves_add(moves, &move, from, part->data);
}

// Whether outputs that are rows of |input| should share its memory, as in stock: the plan gave them
// none, and they begin at multiples of |step| elements, which keep the alignment of tensors.
static bool shares_rows(const rn_kernel_ctx_t* ctx, const rn_tensor_t* input, int64_t step) {
  return !ctx->planned && input->buffer && rn_ctx_is_host(ctx, input->dtype) &&
         (size_t)step * rn_dtype_size(input->dtype) % RN_ALIGN == 0;
}

// Makes output |i| rows [begin, begin + count) of |input|.
static rn_status_t give_rows(rn_kernel_ctx_t* ctx, int i, const rn_tensor_t* input, int64_t begin,
                             int64_t count, bool drops_dim) {
  rn_tensor_t rows = {0};
  RN_RETURN_IF_ERROR(rn_ctx_rows(ctx, input, begin, count, drops_dim, &rows));
  rn_set_output(ctx, i, &rows);
  return RN_OK;
}

static rn_status_t unpack(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  int64_t axis = *(const int64_t*)ctx->state;
  const int rank = input->rank, count = ctx->kernel->output_count;
  if (axis < -rank || axis >= rank)
    return rn_invalid_argument("axis = %lld not in [%d, %d)", (long long)axis, -rank, rank);
  if (axis < 0) axis += rank;
  const int64_t* old = rn_tensor_dims(input);
  if (old[axis] != count)
    return rn_invalid_argument("Input shape axis %lld must equal %d, got shape %s", (long long)axis,
                               count, rn_text_of(input).text);
  const bool shares = axis == 0 && count > 0 && shares_rows(ctx, input, input->count / count);
  for (int i = 0; shares && i < count; ++i)
    RN_RETURN_IF_ERROR(give_rows(ctx, i, input, i, 1, true));
  if (shares) return RN_OK;
  int64_t dims[RN_MAX_RANK];
  for (int d = 0; d < rank - 1; ++d) dims[d] = d < axis ? old[d] : old[d + 1];
  rn_axis_view_t view = rn_axis_view(input, (int)axis);
  rn_moves_t moves;
  rn_moves_begin(&moves, ctx, input->dtype);
  for (int i = 0; i < count; ++i) {
    rn_tensor_t* part = NULL;
    RN_RETURN_IF_ERROR(rn_output(ctx, i, (rn_shape_t){rank - 1, dims}, &part));
    RN_RETURN_IF_ERROR(take(&moves, input, view, i, 1, part));
  }
  return rn_moves_end(&moves);
}

static rn_status_t split_axis(const rn_tensor_t* input, const rn_tensor_t* axis_tensor,
                              int64_t* out_axis) {
  int64_t axis = rn_int_at(axis_tensor, 0), rank = input->rank;
  if (axis < -rank || axis >= rank)
    return rn_invalid_argument("-input rank(-%lld) <= split_dim < input rank (%lld), but got %lld",
                               (long long)rank, (long long)rank, (long long)axis);
  *out_axis = axis < 0 ? axis + rank : axis;
  return RN_OK;
}

// Splits |input| along |axis| into parts of |sizes|, or all of |size| if |sizes| is NULL.
static rn_status_t split_into(rn_kernel_ctx_t* ctx, const rn_tensor_t* input, int64_t axis,
                              const int64_t* sizes, int64_t size) {
  const int count = ctx->kernel->output_count;
  rn_axis_view_t view = rn_axis_view(input, (int)axis);
  int64_t offset = 0;
  const bool shares = axis == 0 && shares_rows(ctx, input, (sizes ? 1 : size) * view.inner);
  for (int i = 0; shares && i < count; offset += sizes ? sizes[i] : size, ++i)
    RN_RETURN_IF_ERROR(give_rows(ctx, i, input, offset, sizes ? sizes[i] : size, false));
  if (shares) return RN_OK;
  int64_t dims[RN_MAX_RANK];
  memcpy(dims, rn_tensor_dims(input), (size_t)input->rank * sizeof *dims);
  for (int i = 0; i < count; ++i) {
    dims[axis] = sizes ? sizes[i] : size;
    rn_tensor_t* part = NULL;
    RN_RETURN_IF_ERROR(rn_output(ctx, i, (rn_shape_t){input->rank, dims}, &part));
  }
  const size_t bytes = rn_dtype_size(input->dtype);
  sides_t sides = {ctx,        0,           count, false,
                   view.outer, input->data, bytes, (size_t)(view.size * view.inner) * bytes,
                   false};
  if (input->count > 0 && copy_rows(&sides, input->dtype)) return RN_OK;
  rn_moves_t moves;
  rn_moves_begin(&moves, ctx, input->dtype);
  for (int i = 0; i < count; offset += sizes ? sizes[i] : size, ++i)
    RN_RETURN_IF_ERROR(take(&moves, input, view, offset, sizes ? sizes[i] : size, &ctx->out[i]));
  return rn_moves_end(&moves);
}

static rn_status_t split(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *axis_tensor = rn_in(ctx, 0), *input = rn_in(ctx, 1);
  const int count = ctx->kernel->output_count;
  if (axis_tensor->rank != 0)
    return rn_invalid_argument("split_dim must be a scalar but has rank %d", axis_tensor->rank);
  int64_t axis;
  RN_RETURN_IF_ERROR(split_axis(input, axis_tensor, &axis));
  int64_t size = rn_tensor_dim(input, (int)axis);
  if (size % count != 0)
    return rn_invalid_argument(
        "Number of ways to split should evenly divide the split dimension, but got split_dim %lld "
        "(size = %lld) and num_split %d",
        (long long)axis, (long long)size, count);
  return split_into(ctx, input, axis, NULL, size / count);
}

// Copies the sizes, with -1 replaced by the inferred size.
static rn_status_t read_split_sizes(const rn_tensor_t* sizes, int64_t whole, int64_t* out) {
  int rest = -1;
  int64_t sum = 0;
  for (int i = 0; i < (int)sizes->count; ++i) {
    out[i] = rn_int_at(sizes, i);
    if (out[i] == -1) {
      if (rest >= 0) return rn_invalid_argument("There can only be one -1 in the input.");
      rest = i;
      continue;
    }
    if (out[i] < 0)
      return rn_invalid_argument("Split size at index %d must be >= 0. Got: %lld", i,
                                 (long long)out[i]);
    if (!rn_add_i64_ok(sum, out[i], &sum)) sum = INT64_MAX;
  }
  if (rest >= 0 ? sum > whole : sum != whole)
    return rn_invalid_argument(
        "Determined shape must either match input shape along split_dim exactly if fully "
        "specified, or be less than the size of the input along split_dim if not fully "
        "specified.  Got: %lld",
        (long long)sum);
  if (rest >= 0) out[rest] = whole - sum;
  return RN_OK;
}

static rn_status_t split_v(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *input = rn_in(ctx, 0), *sizes = rn_in(ctx, 1), *axis_tensor = rn_in(ctx, 2);
  const int count = ctx->kernel->output_count;
  if (axis_tensor->count != 1)
    return rn_invalid_argument("split_dim_tensor must have exactly one element.");
  int64_t axis;
  if (sizes->rank != 1 || sizes->count != count)
    return rn_invalid_argument(
        "size of the split_tensor must be 1-D and have the same elements as outputs got %d -D and "
        "%lld elements",
        sizes->rank, (long long)sizes->count);
  RN_RETURN_IF_ERROR(split_axis(input, axis_tensor, &axis));
  int64_t few[16];
  int64_t* all = few;
  if (count > 16) RN_RETURN_IF_ERROR(RN_NEW_ARRAY(ctx->kernel->allocator, (size_t)count, &all));
  rn_status_t status = read_split_sizes(sizes, rn_tensor_dim(input, (int)axis), all);
  if (rn_ok(status)) status = split_into(ctx, input, axis, all, 0);
  if (all != few) RN_FREE_ARRAY(ctx->kernel->allocator, all, count);
  return status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "Concat",
     .device = "CPU",
     .types = {{"T", CONCAT_TYPES}},
     .state_size = sizeof(array_concat_t),
     .init = concat_v1_init,
     .compute = concat},
    {.op = "ConcatV2",
     .device = "CPU",
     .types = {{"T", CONCAT_TYPES}},
     .state_size = sizeof(array_concat_t),
     .init = concat_v2_init,
     .compute = concat},
    {.op = "ParallelConcat",
     .device = "CPU",
     .types = {{"T", CONCAT_TYPES}},
     .compute = parallel_concat},
    {.op = "ConcatOffset", .device = "CPU", .compute = concat_offset},
    {.op = "Pack",
     .device = "CPU",
     .types = {{"T", CONCAT_TYPES}},
     .state_size = sizeof(int64_t),
     .init = axis_init,
     .compute = pack},
    {.op = "Unpack",
     .device = "CPU",
     .types = {{"T", SPLIT_TYPES}},
     .state_size = sizeof(int64_t),
     .init = axis_init,
     .compute = unpack},
    {.op = "Split", .device = "CPU", .types = {{"T", SPLIT_TYPES}}, .compute = split},
    {.op = "SplitV", .device = "CPU", .types = {{"T", SPLIT_TYPES}}, .compute = split_v},
};
RN_KERNEL_FAMILY(cpu_concat, rows);
