// Kernels that change some rows of their first input, and hashes of rows.
//
// Stock writes into the input itself, even if other nodes read it. Here, as elsewhere, an input
// that something else still reads is copied first.
#include "base/hash.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/combine.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

// Makes output 0 equal to input 0, in its memory if possible. |with| is the input that is read.
static rn_status_t begin(rn_kernel_ctx_t* ctx, const rn_tensor_t* with, rn_tensor_t** out) {
  const rn_tensor_t* x = rn_in(ctx, 0);
  uint64_t candidates = with->data != x->data;
  RN_RETURN_IF_ERROR(rn_output_in_place(ctx, 0, candidates, rn_tensor_shape(x), out));
  return (*out)->data != x->data ? rn_ctx_copy(ctx, x, *out) : RN_OK;
}

static int64_t wrap(int64_t row, int64_t rows) { return (row % rows + rows) % rows; }

// InplaceUpdate, InplaceAdd, InplaceSub.

typedef struct inplace_t {
  rn_combine_op_t op;
} inplace_t;

static rn_status_t inplace_init(const rn_kernel_init_t* init, void* state) {
  rn_str_t name = rn_str(init->op->name);
  ((inplace_t*)state)->op = rn_str_is(name, "InplaceAdd")   ? RN_COMBINE_ADD
                            : rn_str_is(name, "InplaceSub") ? RN_COMBINE_SUB
                                                            : RN_COMBINE_ASSIGN;
  return RN_OK;
}

static rn_status_t check_rows(const rn_tensor_t* x, const rn_tensor_t* i, const rn_tensor_t* v) {
  if (i->rank != 1) return rn_invalid_argument("i must be a vector. %s", rn_text_of(i).text);
  if (x->rank != v->rank)
    return rn_invalid_argument("x and v shape doesn't match (ranks differ): %s vs. %s",
                               rn_text_of(x).text, rn_text_of(v).text);
  for (int d = 1; d < x->rank; ++d)
    if (rn_tensor_dim(x, d) != rn_tensor_dim(v, d))
      return rn_invalid_argument("x and v shape doesn't match at index %d : %s vs. %s", d,
                                 rn_text_of(x).text, rn_text_of(v).text);
  if (v->rank == 0) return rn_invalid_argument("x and v must have rows, but are scalars");
  if (i->count != rn_tensor_dim(v, 0))
    return rn_invalid_argument("i and x shape doesn't match at index 0: %s vs. %s",
                               rn_text_of(i).text, rn_text_of(v).text);
  return RN_OK;
}

static rn_status_t inplace(rn_kernel_ctx_t* ctx) {
  rn_combine_op_t op = ((const inplace_t*)ctx->state)->op;
  const rn_tensor_t *x = rn_in(ctx, 0), *i = rn_in(ctx, 1), *v = rn_in(ctx, 2);
  bool is_update = op == RN_COMBINE_ASSIGN;
  RN_RETURN_IF_ERROR(check_rows(x, i, v));
  if (x->count == 0 || v->count == 0) return rn_forward(ctx, 0, 0);
  rn_dtypes_t types = RN_TYPES_NUMBERS | (is_update ? RN_T(STRING) | RN_T(BOOL) : 0);
  if (!rn_dtypes_has(types, x->dtype))
    return rn_invalid_argument("Unsupported data type: %s", rn_dtype_name(x->dtype));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(begin(ctx, v, &out));
  int64_t rows = rn_tensor_dim(x, 0), width = x->count / rows;
  size_t bytes = (size_t)width * rn_dtype_size(x->dtype);
  rn_combine_fn_t combine = rn_combine(op, x->dtype);
  for (int64_t k = 0; k < i->count; ++k) {
    char* to = RN_DATA(out, char) + (size_t)wrap(rn_int_at(i, k), rows) * bytes;
    const char* from = RN_DATA(v, const char) + (size_t)k * bytes;
    if (is_update)
      RN_RETURN_IF_ERROR(rn_move_row(x->dtype, from, to, width));
    else
      combine(to, from, 1, to, width);
  }
  return RN_OK;
}

// Fingerprint: eight bytes per row.

static void store_hash(rn_str_t bytes, uint8_t* out) {
  uint64_t hash = rn_farm_fingerprint64(bytes);
  memcpy(out, &hash, sizeof hash);
}

static void hash_string(const rn_tensor_t* data, int64_t i, uint8_t* out) {
  store_hash(rn_tstring_view(&RN_DATA(data, const rn_tstring_t)[i]), out);
}

// A row of several strings is hashed through the hashes of the strings.
static rn_status_t hash_strings(rn_kernel_ctx_t* ctx, const rn_tensor_t* data, int64_t width,
                                rn_tensor_t* out) {
  rn_tensor_t hashes = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_UINT8, (rn_shape_t){2, (int64_t[]){width, 8}}, &hashes));
  int64_t rows = width ? data->count / width : rn_tensor_dim(out, 0);
  for (int64_t row = 0; row < rows; ++row) {
    uint8_t* to = RN_DATA(out, uint8_t) + row * 8;
    for (int64_t k = 0; k < width; ++k)
      hash_string(data, row * width + k, width == 1 ? to : RN_DATA(&hashes, uint8_t) + k * 8);
    if (width != 1) store_hash(rn_str_n(hashes.data, (size_t)width * 8), to);
  }
  rn_tensor_clear(&hashes);
  return RN_OK;
}

static rn_status_t fingerprint(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *data = rn_in(ctx, 0), *method = rn_in(ctx, 1);
  if (!rn_dtype_is_plain(data->dtype) && data->dtype != RN_STRING)
    return rn_invalid_argument("Data type not supported: %s", rn_dtype_name(data->dtype));
  if (method->rank != 0)
    return rn_invalid_argument("`method` should be a scalar string: %s", rn_text_of(method).text);
  rn_str_t name = rn_tstring_view(RN_DATA(method, const rn_tstring_t));
  if (!rn_str_is(name, "farmhash64"))
    return rn_invalid_argument("Unsupported fingerprint method: %.*s", RN_STR_ARGS(name));
  if (data->rank < 1)
    return rn_invalid_argument("`data` should have at least one dimension: %s",
                               rn_text_of(data).text);
  int64_t rows = rn_tensor_dim(data, 0), width = rows ? data->count / rows : 0;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, (int64_t[]){rows, 8}}, &out));
  if (data->dtype == RN_STRING) return hash_strings(ctx, data, width, out);
  size_t bytes = (size_t)width * rn_dtype_size(data->dtype);
  for (int64_t row = 0; row < rows; ++row)
    store_hash(rn_str_n(RN_DATA(data, const char) + (size_t)row * bytes, bytes),
               RN_DATA(out, uint8_t) + row * 8);
  return RN_OK;
}

#define INPLACE(name)                                                                   \
  {                                                                                     \
    .op = name, .device = "CPU", .state_size = sizeof(inplace_t), .init = inplace_init, \
    .compute = inplace                                                                  \
  }

static const rn_kernel_def_t rows[] = {
    INPLACE("InplaceUpdate"),
    INPLACE("InplaceAdd"),
    INPLACE("InplaceSub"),
    {.op = "Fingerprint", .device = "CPU", .compute = fingerprint},
};
RN_KERNEL_FAMILY(cpu_inplace, rows);
