// Where (coordinates of nonzero elements) and UnravelIndex.
#include "kernels/cpu/array.h"
#include "kernels/cpu/spans.h"
#include "kernels/kernel_rows.h"

// Positions per block of a row: they are found without branches, then written as coordinates.
#define WHERE_BLOCK 512

// The nonzero elements of n: counts them, or writes their positions.
typedef struct where_fns_t {
  int64_t (*count)(const void* in, int64_t n);
  int (*find)(const void* in, int n, int64_t first, int64_t* out);
} where_fns_t;

// IS_SET uses x, a pointer to the element. The result of |find| has room for n positions, and one
// more is written at most.
#define WHERE(S, T, PARTS, IS_SET)                                          \
  static int64_t count_##S(const void* in, int64_t n) {                     \
    int64_t count = 0;                                                      \
    const T* x = in;                                                        \
    for (int64_t i = 0; i < n; ++i, x += PARTS) count += IS_SET;            \
    return count;                                                           \
  }                                                                         \
  static int find_##S(const void* in, int n, int64_t first, int64_t* out) { \
    int count = 0;                                                          \
    const T* x = in;                                                        \
    for (int i = 0; i < n; ++i, x += PARTS) {                               \
      out[count] = first + i;                                               \
      count += IS_SET;                                                      \
    }                                                                       \
    return count;                                                           \
  }
WHERE(f32, float, 1, x[0] != 0)
WHERE(f64, double, 1, x[0] != 0)
WHERE(bf16, uint16_t, 1, (x[0] & 0x7fff) != 0)
WHERE(c64, float, 2, (x[0] != 0) | (x[1] != 0))
WHERE(c128, double, 2, (x[0] != 0) | (x[1] != 0))
WHERE(b1, uint8_t, 1, x[0] != 0)
WHERE(b2, uint16_t, 1, x[0] != 0)
WHERE(b4, uint32_t, 1, x[0] != 0)
WHERE(b8, uint64_t, 1, x[0] != 0)

#define FNS(S) ((where_fns_t){count_##S, find_##S})
static where_fns_t fns_of(rn_dtype_t dtype) {
  switch (dtype) {
    case RN_FLOAT:
      return FNS(f32);
    case RN_DOUBLE:
      return FNS(f64);
    case RN_BFLOAT16:
      return FNS(bf16);
    case RN_COMPLEX64:
      return FNS(c64);
    case RN_COMPLEX128:
      return FNS(c128);
    default:
      break;
  }
  const size_t size = rn_dtype_size(dtype);
  return size == 1 ? FNS(b1) : size == 2 ? FNS(b2) : size == 4 ? FNS(b4) : FNS(b8);
}

static int64_t count_set(const rn_tensor_t* input) {
  if (input->dtype == RN_FLOAT) return rn_spans()->count_set_floats(input->data, input->count);
  if (rn_dtype_size(input->dtype) == 1)
    return rn_spans()->count_set_bytes(input->data, input->count);
  return fns_of(input->dtype).count(input->data, input->count);
}

// The coordinates of the first element of a row; those of the next.
static void next_row(int64_t* at, const rn_tensor_t* input) {
  for (int d = input->rank - 2; d >= 0 && ++at[d] == rn_tensor_dim(input, d); --d) at[d] = 0;
}

// Writes the coordinates of the elements that are set, row by row of the last dimension.
static void write_places(const rn_tensor_t* input, int64_t* to, const int64_t* end) {
  const where_fns_t fns = fns_of(input->dtype);
  const int rank = input->rank;
  const int64_t width = rn_tensor_dim(input, rank - 1),
                bytes = (int64_t)rn_dtype_size(input->dtype);
  const char* from = input->data;
  int64_t at[RN_MAX_RANK] = {0};
  int64_t places[WHERE_BLOCK + 1];
  for (int64_t left = input->count; left > 0; left -= width, next_row(at, input)) {
    for (int64_t begin = 0; begin < width; begin += WHERE_BLOCK) {
      const int n = (int)(width - begin < WHERE_BLOCK ? width - begin : WHERE_BLOCK);
      // Where there is room for all of a block, its places go straight into the result.
      const bool is_direct = rank == 1 && end - to > n;
      const int count = fns.find(from, n, begin, is_direct ? to : places);
      from += n * bytes;
      if (is_direct) {
        to += count;
        continue;
      }
      for (int i = 0; i < count; ++i) {
        for (int d = 0; d < rank - 1; ++d) *to++ = at[d];
        *to++ = places[i];
      }
    }
  }
}

static rn_status_t where(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  const int rank = input->rank;
  if (rank == 0) return rn_invalid_argument("WhereOp : Unhandled input dimensions: 0");
  if (input->dtype == RN_HALF)
    return rn_unimplemented(
        "No WhereOp available for float16/half type on CPU; dying in CPU WhereOp to avoid silently "
        "creating costly copies from device.");
  const int64_t count = count_set(input);
  const int64_t dims[2] = {count, rank};
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, dims}, &out));
  if (count > 0) write_places(input, RN_DATA(out, int64_t), RN_DATA(out, int64_t) + out->count);
  return RN_OK;
}

static rn_status_t check_unravel(const rn_tensor_t* indices, const rn_tensor_t* dims) {
  if (indices->count == 0)
    return rn_invalid_argument("received empty tensor indices: Tensor<type: %s shape: %s values: >",
                               rn_dtype_name(indices->dtype), rn_text_of(indices).text);
  if (indices->rank > 1)
    return rn_invalid_argument("The indices can only be scalar or vector, got \"%s\"",
                               rn_text_of(indices).text);
  if (dims->rank != 1)
    return rn_invalid_argument("The indices can only be 1-D, got \"%s\"", rn_text_of(dims).text);
  int64_t product = 1;
  bool overflows = false;
  for (int64_t d = 0; d < dims->count; ++d) {
    int64_t size = rn_int_at(dims, d);
    if (size == 0)
      return rn_invalid_argument(
          "Input dims cannot contain a dim of zero, but dims contains zero at index %lld",
          (long long)d);
    if (size < 0)
      return rn_invalid_argument("Input dims cannot be negative. Got dim = %lld at index %lld",
                                 (long long)size, (long long)d);
    overflows = overflows || !rn_mul_i64_ok(product, size, &product) ||
                (dims->dtype == RN_INT32 && product > INT32_MAX);
  }
  if (overflows) return rn_invalid_argument("Input dims product is causing integer overflow");
  for (int64_t i = 0; i < indices->count; ++i)
    if (rn_int_at(indices, i) >= product)
      return rn_invalid_argument("index is out of bound as with dims");
  return RN_OK;
}

static rn_status_t unravel_index(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *indices = rn_in(ctx, 0), *dims = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(check_unravel(indices, dims));
  const int64_t shape[2] = {dims->count, indices->count};
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){indices->rank + 1, shape}, &out));
  for (int64_t i = 0; i < indices->count; ++i) {
    int64_t left = rn_int_at(indices, i);
    for (int64_t d = dims->count - 1; d >= 0; --d) {
      int64_t size = rn_int_at(dims, d);
      rn_int_set(out, d * indices->count + i, left % size);
      left /= size;
    }
  }
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "Where",
     .device = "CPU",
     .types = {{"T", RN_TYPES_NUMBERS | RN_T(BOOL)}},
     .compute = where},
    {.op = "UnravelIndex", .device = "CPU", .compute = unravel_index},
};
RN_KERNEL_FAMILY(cpu_where, rows);
