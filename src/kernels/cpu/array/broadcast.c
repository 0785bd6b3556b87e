// BroadcastTo and Tile, and the shape arithmetic for gradients of broadcasting ops.
#include "kernels/cpu/array.h"
#include "kernels/cpu/array/begin.h"
#include "kernels/cpu/combine.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/kernel_rows.h"

static rn_status_t incompatible(const rn_tensor_t* a, const rn_tensor_t* b) {
  int64_t dims[2][RN_MAX_RANK];
  const rn_tensor_t* both[2] = {a, b};
  rn_shape_t shapes[2];
  for (int i = 0; i < 2; ++i) {
    int32_t rank = both[i]->count > RN_MAX_RANK ? RN_MAX_RANK : (int32_t)both[i]->count;
    for (int32_t d = 0; d < rank; ++d) dims[i][d] = rn_int_at(both[i], d);
    shapes[i] = (rn_shape_t){rank, dims[i]};
  }
  return rn_invalid_argument("Incompatible shapes: %s vs. %s", rn_shape_text(shapes[0]).text,
                             rn_shape_text(shapes[1]).text);
}

static rn_status_t check_vectors(const rn_kernel_ctx_t* ctx) {
  for (int i = 0; i < 2; ++i)
    if (rn_in(ctx, i)->rank != 1)
      return rn_invalid_argument("In[%d] must be a vector.%s", i, rn_text_of(rn_in(ctx, i)).text);
  return RN_OK;
}

// Dimension |d| of |rank|, counted from the front, of a shape with possibly fewer dimensions.
static inline int64_t aligned(const rn_tensor_t* shape, int64_t d, int64_t rank) {
  int64_t at = d - (rank - shape->count);
  return at < 0 ? 1 : rn_int_at(shape, at);
}

static rn_status_t broadcast_args(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(check_vectors(ctx));
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  const int64_t rank = a->count > b->count ? a->count : b->count;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &rank}, &out));
  for (int64_t d = 0; d < rank; ++d) {
    int64_t x = aligned(a, d, rank), y = aligned(b, d, rank);
    if (x != y && x != 1 && y != 1) return incompatible(a, b);
    rn_int_set(out, d, x == 1 ? y : x);
  }
  return RN_OK;
}

static bool same_values(const rn_tensor_t* a, const rn_tensor_t* b) {
  if (a->count != b->count) return false;
  return a->count == 0 || memcmp(a->data, b->data, rn_tensor_bytes(a)) == 0;
}

// The axes over which to sum the gradient of each operand: none for equal shapes; otherwise an axis
// where both are 1 is summed in both.
static rn_status_t broadcast_gradient_args(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(check_vectors(ctx));
  const rn_tensor_t* in[2] = {rn_in(ctx, 0), rn_in(ctx, 1)};
  const int64_t rank = in[0]->count > in[1]->count ? in[0]->count : in[1]->count;
  if (rank > RN_MAX_RANK)
    return rn_invalid_argument("Shapes have at most %d dimensions, not %lld", RN_MAX_RANK,
                               (long long)rank);
  uint8_t axes[2][RN_MAX_RANK];
  int64_t counts[2] = {0, 0};
  if (!same_values(in[0], in[1])) {
    for (int64_t d = 0; d < rank; ++d) {
      int64_t x = aligned(in[0], d, rank), y = aligned(in[1], d, rank);
      if (x != y && x != 1 && y != 1) return incompatible(in[0], in[1]);
      if (x == 1) axes[0][counts[0]++] = (uint8_t)d;
      if (y == 1) axes[1][counts[1]++] = (uint8_t)d;
    }
  }
  for (int i = 0; i < 2; ++i) {
    rn_tensor_t* out = NULL;
    RN_RETURN_IF_ERROR(rn_output(ctx, i, (rn_shape_t){1, &counts[i]}, &out));
    for (int64_t k = 0; k < counts[i]; ++k) rn_int_set(out, k, axes[i][k]);
  }
  return RN_OK;
}

static rn_status_t broadcast_to(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  const rn_tensor_t* sizes = rn_in(ctx, 1);
  int64_t dims[RN_MAX_RANK];
  rn_shape_t shape;
  RN_RETURN_IF_ERROR(rn_read_shape(sizes, dims, &shape));
  if (input->rank > shape.rank)
    return rn_invalid_argument(
        "Rank of input (%d) must be no greater than rank of output shape (%d).", input->rank,
        shape.rank);
  const int64_t* in_dims = rn_tensor_dims(input);
  int missing = shape.rank - input->rank;
  bool shrinks = false;
  for (int d = missing; d < shape.rank; ++d) {
    int64_t from = in_dims[d - missing];
    if (from == dims[d] || from == 1) continue;
    if (dims[d] != 1)
      return rn_invalid_argument("Incompatible shapes: %s vs. %s", rn_text_of(input).text,
                                 rn_shape_text(shape).text);
    shrinks = true;
  }
  if (shrinks)
    return rn_invalid_argument("Unable to broadcast tensor of shape %s to tensor of shape %s",
                               rn_text_of(input).text, rn_shape_text(shape).text);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &out));
  if (out->count == 0) return RN_OK;
  rn_move_t move;
  rn_move_begin(&move);
  int64_t from[RN_MAX_RANK], to[RN_MAX_RANK], in_step = 1, out_step = 1;
  for (int d = shape.rank - 1; d >= 0; --d) {
    int64_t size = d >= missing ? in_dims[d - missing] : 1;
    from[d] = size == 1 ? 0 : in_step;
    to[d] = out_step;
    in_step *= size;
    out_step *= dims[d];
  }
  for (int d = 0; d < shape.rank; ++d) rn_move_add(&move, dims[d], from[d], to[d]);
  return rn_ctx_move(ctx, &move, input->dtype, input->data, out->data);
}

// The types for which stock's Tile works, although it registers the kernel for all.
#define TILE_TYPES                                                                   \
  (RN_TYPES_FLOATS | RN_TYPES_INTS | RN_TYPES_COMPLEX | RN_T(UINT8) | RN_T(UINT32) | \
   RN_T(UINT64) | RN_T(BOOL) | RN_T(STRING) | RN_T(VARIANT))

static rn_status_t tile(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  const rn_tensor_t* multiples = rn_in(ctx, 1);
  if (multiples->rank != 1)
    return rn_invalid_argument("Expected multiples to be 1-D, but got shape %s",
                               rn_text_of(multiples).text);
  if (multiples->count != input->rank)
    return rn_invalid_argument(
        "Expected multiples argument to be a vector of length %d but got length %lld", input->rank,
        (long long)multiples->count);
  int64_t dims[RN_MAX_RANK], count = 1;
  const int64_t* in_dims = rn_tensor_dims(input);
  for (int d = 0; d < input->rank; ++d) {
    int64_t times = rn_int_at(multiples, d);
    if (times < 0)
      return rn_invalid_argument("Expected multiples[%d] >= 0, but got %lld", d, (long long)times);
    if (!rn_mul_i64_ok(in_dims[d], times, &dims[d]) || !rn_mul_i64_ok(count, dims[d], &count))
      return rn_invalid_argument(
          "Encountered overflow when multiplying %lld with %lld, result: -1", (long long)count,
          (long long)(__builtin_mul_overflow(in_dims[d], times, &dims[d]) ? times : dims[d]));
  }
  rn_shape_t shape = {input->rank, dims};
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &out));
  if (count == 0) return RN_OK;
  if (!rn_dtypes_has(TILE_TYPES, input->dtype) && !rn_shape_eq(shape, rn_tensor_shape(input)))
    return rn_unimplemented(
        "TileOp : The input data type is not supported, DataType : %s, Dimension : %d",
        rn_dtype_name(input->dtype), input->rank);
  rn_move_t move;
  rn_move_begin(&move);
  int64_t in_step = input->count, out_step = count;
  for (int d = 0; d < input->rank; ++d) {
    in_step /= in_dims[d];
    out_step /= dims[d];
    rn_move_add(&move, dims[d] / in_dims[d], 0, out_step * in_dims[d]);
    rn_move_add(&move, in_dims[d], in_step, out_step);
  }
  return rn_ctx_move(ctx, &move, input->dtype, input->data, out->data);
}

// Sums the tiles: the gradient of Tile in old graphs, which Sum replaced.
rn_status_t rn_tile_grad_begin(rn_kernel_ctx_t* ctx, rn_tensor_t** out) {
  const rn_tensor_t *input = rn_in(ctx, 0), *multiples = rn_in(ctx, 1);
  const int rank = input->rank;
  if (multiples->rank != 1 || multiples->count != rank)
    return rn_invalid_argument(
        "Expected multiples argument to be a vector of length %d but got shape %s", rank,
        rn_text_of(multiples).text);
  int64_t dims[RN_MAX_RANK];
  for (int d = 0; d < rank; ++d) {
    int64_t times = rn_int_at(multiples, d), size = rn_tensor_dim(input, d);
    if (times <= 0)
      return rn_invalid_argument("Expected multiples[%d] > 0, but got %lld", d, (long long)times);
    if (size % times != 0)
      return rn_invalid_argument("Expected dim %d of size %lld to be divisible by %lld", d,
                                 (long long)size, (long long)times);
    dims[d] = size / times;
  }
  return rn_output(ctx, 0, (rn_shape_t){rank, dims}, out);
}

static rn_status_t tile_grad(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  const int rank = input->rank;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_tile_grad_begin(ctx, &out));
  const int64_t* dims = rn_tensor_dims(out);
  int64_t steps[RN_MAX_RANK], step = 1;
  rn_combine_fn_t add = rn_combine(RN_COMBINE_ADD, out->dtype);
  if (!add)
    return rn_unimplemented("TileGradientOp : The input data type is not supported: %s",
                            rn_dtype_name(out->dtype));
  if (out->count == 0) return RN_OK;
  memset(out->data, 0, rn_tensor_bytes(out));
  for (int d = rank - 1; d >= 0; --d) {
    steps[d] = step;
    step *= dims[d];
  }
  const int64_t run = rank ? dims[rank - 1] : 1, size = (int64_t)rn_dtype_size(out->dtype);
  for (int64_t i = 0; i < input->count; i += run) {
    int64_t left = i, place = 0;
    for (int d = rank - 1; d >= 0; --d) {
      place += left % rn_tensor_dim(input, d) % dims[d] * steps[d];
      left /= rn_tensor_dim(input, d);
    }
    char* to = (char*)out->data + place * size;
    add(to, (const char*)input->data + i * size, 1, to, run);
  }
  return RN_OK;
}

#define FLOAT8 (RN_T(FLOAT8_E5M2) | RN_T(FLOAT8_E4M3FN))

static const rn_kernel_def_t rows[] = {
    {.op = "BroadcastArgs", .device = "CPU", .compute = broadcast_args},
    {.op = "BroadcastGradientArgs", .device = "CPU", .compute = broadcast_gradient_args},
    {.op = "BroadcastTo",
     .device = "CPU",
     .types = {{"T", RN_TYPES_NUMBERS | FLOAT8 | RN_T(BOOL) | RN_T(STRING) | RN_T(RESOURCE) |
                         RN_T(VARIANT)}},
     .compute = broadcast_to},
    {.op = "TileGrad", .device = "CPU", .compute = tile_grad},
    {.op = "Tile", .device = "CPU", .types = {{"T", RN_TYPES_ALL}}, .compute = tile},
};
RN_KERNEL_FAMILY(cpu_broadcast, rows);
