// AddN, Add of strings (concatenation), ZerosLike and OnesLike.
#include "base/pool.h"
#include "kernels/cpu/broadcasting.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

// Adds in the order of the inputs, block by block, so that every input is read once and the sum
// stays in the cache. A complex number counts as two floats.
typedef struct add_n_sum_t {
  const rn_kernel_ctx_t* ctx;
  rn_dtype_t dtype;  // type of the additions
  size_t size;
  char* out;
} add_n_sum_t;

static rn_dtype_t part_type(rn_dtype_t dtype) {
  return dtype == RN_COMPLEX64 ? RN_FLOAT : dtype == RN_COMPLEX128 ? RN_DOUBLE : dtype;
}

static void sum_piece(void* arg, int64_t begin, int64_t end) {
  const add_n_sum_t* sum = arg;
  const int inputs = sum->ctx->kernel->input_count;
  _Alignas(RN_ALIGN) char block[RN_VECTOR_BLOCK * sizeof(double)];
  for (; begin < end; begin += RN_VECTOR_BLOCK) {
    int64_t n = end - begin < RN_VECTOR_BLOCK ? end - begin : RN_VECTOR_BLOCK;
    size_t offset = (size_t)begin * sum->size;
    // Only the last addition writes to the output, which may be any of the inputs.
    const char* left = (const char*)rn_in(sum->ctx, 0)->data + offset;
    for (int i = 1; i < inputs; ++i) {
      char* to = i == inputs - 1 ? sum->out + offset : block;
      rn_vector_run(RN_VECTOR_ADD, sum->dtype, left, 1,
                    (const char*)rn_in(sum->ctx, i)->data + offset, 1, to, n);
      left = block;
    }
  }
}

static rn_status_t add_n(rn_kernel_ctx_t* ctx) {
  const int inputs = ctx->kernel->input_count;
  const rn_tensor_t* first = rn_in(ctx, 0);
  for (int i = 1; i < inputs; ++i)
    if (!rn_tensor_same_shape(first, rn_in(ctx, i))) return rn_same_shape_error(ctx, i);
  rn_tensor_t* output;
  uint64_t all = inputs < 64 ? (UINT64_C(1) << inputs) - 1 : UINT64_MAX;
  RN_RETURN_IF_ERROR(rn_output_in_place(ctx, 0, all, rn_tensor_shape(first), &output));
  if (inputs == 1) {
    if (output->data != first->data && first->count)
      memcpy(output->data, first->data, rn_tensor_bytes(first));
    return RN_OK;
  }
  rn_dtype_t part = part_type(first->dtype);
  add_n_sum_t sum = {ctx, part, rn_dtype_size(part), output->data};
  int64_t count = part == first->dtype ? first->count : 2 * first->count;
  rn_pool_for_small(rn_ctx_pool(ctx), count, RN_GRAIN_CHEAP, RN_GRAIN_CHEAP / 4, sum_piece, &sum);
  return RN_OK;
}

// Sets |arg| if memory runs out.
static void join_strings(void* arg, const void* const* in, const int* steps, void* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    rn_str_t left = rn_tstring_view((const rn_tstring_t*)in[0] + (steps[0] ? i : 0));
    rn_str_t right = rn_tstring_view((const rn_tstring_t*)in[1] + (steps[1] ? i : 0));
    char* to = rn_tstring_resize((rn_tstring_t*)out + i, left.size + right.size);
    if (!to) {
      *(bool*)arg = true;
      continue;
    }
    if (left.size) memcpy(to, left.data, left.size);
    if (right.size) memcpy(to + left.size, right.data, right.size);
  }
}

static rn_status_t add_strings(rn_kernel_ctx_t* ctx) {
  bool is_short_of_memory = false;
  RN_RETURN_IF_ERROR(rn_broadcast_compute(ctx, 2, 0, INT64_MAX, join_strings, &is_short_of_memory));
  return is_short_of_memory ? rn_out_of_memory() : RN_OK;
}

static rn_status_t zeros_like(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  rn_tensor_t* output;
  if (!rn_dtype_is_plain(input->dtype)) return rn_output(ctx, 0, rn_tensor_shape(input), &output);
  RN_RETURN_IF_ERROR(rn_output_like(ctx, 0, 0, &output));
  return rn_ctx_zero(ctx, output);
}

// The number 1 of |dtype|, in |out|.
static void write_one(rn_dtype_t dtype, void* out) {
  const uint16_t half = dtype == RN_HALF ? 0x3c00 : 0x3f80;
  const float single = 1;
  const double twice = 1;
  memset(out, 0, 16);
  if (rn_dtypes_has(RN_TYPES_HALVES, dtype))
    memcpy(out, &half, sizeof half);
  else if (dtype == RN_FLOAT || dtype == RN_COMPLEX64)
    memcpy(out, &single, sizeof single);
  else if (dtype == RN_DOUBLE || dtype == RN_COMPLEX128)
    memcpy(out, &twice, sizeof twice);
  else  // integers, little-endian, and bool
    *(uint8_t*)out = 1;
}

static rn_status_t ones_like(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* output;
  RN_RETURN_IF_ERROR(rn_output_like(ctx, 0, 0, &output));
  _Alignas(16) char one[16];
  write_one(output->dtype, one);
  return rn_ctx_fill_value(ctx, one, output);
}

static const rn_kernel_def_t rows[] = {
    {.op = "AddN",
     .device = "CPU",
     .types = {{"T", RN_TYPES_NUMBERS}},
     .flags = RN_KERNEL_IN_PLACE,
     .compute = add_n},
    {.op = "AccumulateNV2",
     .device = "CPU",
     .types = {{"T", RN_TYPES_NUMBERS}},
     .flags = RN_KERNEL_IN_PLACE,
     .compute = add_n},
    {.op = "Add", .device = "CPU", .types = {{"T", RN_T(STRING)}}, .compute = add_strings},
    {.op = "ZerosLike",
     .device = "CPU",
     .types = {{"T", RN_TYPES_ALL & ~(RN_T(RESOURCE) | RN_T(VARIANT))}},
     .flags = RN_KERNEL_IN_PLACE,
     .compute = zeros_like},
    {.op = "OnesLike",
     .device = "CPU",
     .types = {{"T", RN_TYPES_NUMBERS | RN_T(BOOL)}},
     .flags = RN_KERNEL_IN_PLACE,
     .compute = ones_like},
};
RN_KERNEL_FAMILY(cpu_add_n, rows);
