// Places of elements: of those that are not zero, of flat indices, of values among bins; and the
// check that numbers are finite.
#include "kernels/cpu/array.h"
#include "kernels/kernel_rows.h"

// Whether element |i| is not zero, by size where that is enough.
static inline bool is_set(const rn_tensor_t* tensor, int64_t i) {
  switch (tensor->dtype) {
    case RN_FLOAT:
      return RN_DATA(tensor, const float)[i] != 0;
    case RN_DOUBLE:
      return RN_DATA(tensor, const double)[i] != 0;
    case RN_BFLOAT16:
      return RN_DATA(tensor, const uint16_t)[i] & 0x7fff;
    case RN_COMPLEX64:
      return RN_DATA(tensor, const float)[2 * i] != 0 ||
             RN_DATA(tensor, const float)[2 * i + 1] != 0;
    case RN_COMPLEX128:
      return RN_DATA(tensor, const double)[2 * i] != 0 ||
             RN_DATA(tensor, const double)[2 * i + 1] != 0;
    default:
      break;
  }
  switch (rn_dtype_size(tensor->dtype)) {
    case 1:
      return RN_DATA(tensor, const uint8_t)[i];
    case 2:
      return RN_DATA(tensor, const uint16_t)[i];
    case 4:
      return RN_DATA(tensor, const uint32_t)[i];
    default:
      return RN_DATA(tensor, const uint64_t)[i];
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
  int64_t count = 0;
  for (int64_t i = 0; i < input->count; ++i) count += is_set(input, i);
  const int64_t dims[2] = {count, rank};
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, dims}, &out));
  int64_t* to = RN_DATA(out, int64_t);
  for (int64_t i = 0; i < input->count; ++i) {
    if (!is_set(input, i)) continue;
    int64_t left = i;
    for (int d = rank - 1; d >= 0; --d) {
      to[d] = left % rn_tensor_dim(input, d);
      left /= rn_tensor_dim(input, d);
    }
    to += rank;
  }
  return RN_OK;
}

static rn_status_t check_unravel(const rn_tensor_t* indices, const rn_tensor_t* dims) {
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
    overflows = overflows || !rn_mul_i64_ok(product, size, &product) ||
                (dims->dtype == RN_INT32 && (product > INT32_MAX || product < INT32_MIN));
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
      rn_int_set(out, d * indices->count + i, size == -1 ? 0 : left % size);
      left = size == -1 ? 0 - left : left / size;
    }
  }
  return RN_OK;
}

// CheckNumerics looks at bits only: an exponent of ones is an infinity or a NaN.
enum { HAS_NAN = 1, HAS_PLUS = 2, HAS_MINUS = 4 };

#define CHECK(T, EXPONENT, FRACTION)                                                  \
  do {                                                                                \
    const T* data = input->data;                                                      \
    for (int64_t at = 0; at < n; at += 1024) {                                        \
      int64_t end = at + 1024 < n ? at + 1024 : n;                                    \
      T any = 0;                                                                      \
      for (int64_t i = at; i < end; ++i) any |= (data[i] & (EXPONENT)) == (EXPONENT); \
      if (!any) continue;                                                             \
      for (int64_t i = at; i < end; ++i) {                                            \
        if ((data[i] & (EXPONENT)) != (EXPONENT)) continue;                           \
        found |= data[i] & (FRACTION)             ? HAS_NAN                           \
                 : data[i] >> (8 * sizeof(T) - 1) ? HAS_MINUS                         \
                                                  : HAS_PLUS;                         \
      }                                                                               \
    }                                                                                 \
  } while (0)

static int look_for_bad(const rn_tensor_t* input) {
  const int64_t n = input->count;
  int found = 0;
  switch (input->dtype) {
    case RN_FLOAT:
      CHECK(uint32_t, UINT32_C(0x7f800000), UINT32_C(0x007fffff));
      break;
    case RN_DOUBLE:
      CHECK(uint64_t, UINT64_C(0x7ff0000000000000), UINT64_C(0x000fffffffffffff));
      break;
    case RN_HALF:
      CHECK(uint16_t, 0x7c00, 0x03ff);
      break;
    default:
      CHECK(uint16_t, 0x7f80, 0x007f);
  }
  return found;
}

typedef struct check_t {
  rn_allocator_t allocator;
  char* message;  // Owned
  size_t size;
  bool tells_signs;
} check_t;

static rn_status_t check_init(const rn_kernel_init_t* init, void* state) {
  check_t* check = state;
  rn_str_t message = rn_init_string(init, "message");
  check->allocator = init->allocator;
  check->size = message.size;
  check->tells_signs = rn_str_ends_with(rn_str(init->op->name), RN_STR("V2"));
  return rn_str_dup(init->allocator, message, &check->message);
}

static void check_destroy(void* state) {
  check_t* check = state;
  if (check->message) rn_free(check->allocator, check->message, check->size + 1);
}

static rn_status_t check_numerics(rn_kernel_ctx_t* ctx) {
  static const char* const words[] = {"NaN", "Inf", "Inf and NaN"};
  static const char* const signed_words[] = {
      NULL,   "NaN",          "+Inf",          "+Inf and NaN",
      "-Inf", "-Inf and NaN", "-Inf and +Inf", "-Inf, +Inf, and NaN"};
  const check_t* check = ctx->state;
  int found = look_for_bad(rn_in(ctx, 0));
  if (!found) return rn_forward(ctx, 0, 0);
  const char* what = check->tells_signs   ? signed_words[found]
                     : found == HAS_NAN   ? words[0]
                     : !(found & HAS_NAN) ? words[1]
                                          : words[2];
  return rn_invalid_argument("%s : Tensor had %s values", check->message, what);
}

static const rn_kernel_def_t rows[] = {
    {.op = "Where",
     .device = "CPU",
     .types = {{"T", RN_TYPES_NUMBERS | RN_T(BOOL)}},
     .compute = where},
    {.op = "UnravelIndex", .device = "CPU", .compute = unravel_index},
    {.op = "CheckNumerics",
     .device = "CPU",
     .types = {{"T", RN_TYPES_FLOATS}},
     .flags = RN_KERNEL_FORWARDS,
     .state_size = sizeof(check_t),
     .init = check_init,
     .destroy = check_destroy,
     .compute = check_numerics},
    {.op = "CheckNumericsV2",
     .device = "CPU",
     .types = {{"T", RN_TYPES_FLOATS}},
     .flags = RN_KERNEL_FORWARDS,
     .state_size = sizeof(check_t),
     .init = check_init,
     .destroy = check_destroy,
     .compute = check_numerics},
};
RN_KERNEL_FAMILY(cpu_where, rows);
