// Choosing loops and grids: see schedule.h.
#include "kernels/cuda/jit/schedule.h"

#define BLOCK 256               // threads
#define BLOCKS_PER_PROCESSOR 8  // of that size: a full multiprocessor
#define MAX_NARROW INT32_MAX    // what 32-bit indices and rn_div32 reach

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }

static rn_status_t check_sizes(const rn_jit_program_t* program, const rn_jit_sizes_t* sizes,
                               const rn_jit_operand_t* inputs) {
  if (sizes->count < 0) return rn_invalid_argument("A loop over a negative number of elements");
  int64_t product = 0;
  if (program->reduction_count &&
      (sizes->outer < 0 || sizes->reduced < 0 || sizes->inner < 0 ||
       !rn_mul_i64_ok(sizes->outer, sizes->reduced, &product) ||
       !rn_mul_i64_ok(product, sizes->inner, &product) || product != sizes->count))
    return rn_invalid_argument("A reduction's sizes do not multiply to its number of elements");
  bool has_strided = false;
  for (int i = 0; i < program->input_count; ++i) {
    has_strided |= program->inputs[i].access == RN_JIT_STRIDED;
    if ((program->inputs[i].access == RN_JIT_ROW || program->inputs[i].access == RN_JIT_COLUMN) &&
        inputs[i].period < 1)
      return rn_invalid_argument("A loop's input %d has a period below 1", i);
  }
  product = 1;
  for (int d = 0; has_strided && d < program->rank; ++d)
    if (sizes->dims[d] < 0 || !rn_mul_i64_ok(product, sizes->dims[d], &product))
      return rn_invalid_argument("A loop's dimensions are out of range");
  if (has_strided && product != sizes->count)
    return rn_invalid_argument("A loop's dimensions do not multiply to its number of elements");
  return RN_OK;
}

// Whether some index exceeds 31 bits.
static bool needs_wide(const rn_jit_program_t* program, const rn_jit_sizes_t* sizes,
                       const rn_jit_operand_t* inputs) {
  if (sizes->count > MAX_NARROW - (INT64_C(1) << 24)) return true;
  for (int i = 0; i < program->input_count; ++i) {
    if (program->inputs[i].access != RN_JIT_STRIDED) {
      if (inputs[i].period > MAX_NARROW) return true;
      continue;
    }
    int64_t reach = 0, part;
    for (int d = 0; d < program->rank; ++d) {
      const int64_t stride = inputs[i].strides[d];
      if (stride > MAX_NARROW || stride < -MAX_NARROW) return true;
      if (!rn_mul_i64_ok(sizes->dims[d], stride < 0 ? -stride : stride, &part) ||
          !rn_add_i64_ok(reach, part, &reach) || reach > MAX_NARROW)
        return true;
    }
  }
  return false;
}

// The type and address of each operand that the loop walks along in the order of the full space.
typedef struct walked_t {
  int count;
  size_t sizes[RN_JIT_MAX_INPUTS + RN_JIT_MAX_OUTPUTS];
  uint64_t addresses[RN_JIT_MAX_INPUTS + RN_JIT_MAX_OUTPUTS];
} walked_t;

static void find_walked(const rn_jit_program_t* program, const rn_jit_operand_t* inputs,
                        const uint64_t* outputs, walked_t* walked) {
  walked->count = 0;
  for (int i = 0; i < program->input_count; ++i) {
    const rn_jit_input_t* input = &program->inputs[i];
    if (input->access != RN_JIT_LINEAR || input->space != RN_JIT_FULL) continue;
    walked->sizes[walked->count] = rn_dtype_size(rn_dtype_stored(input->dtype));
    walked->addresses[walked->count++] = inputs[i].address;
  }
  for (int i = 0; i < program->output_count; ++i) {
    const rn_jit_value_t* value = &program->values[program->outputs[i]];
    if (value->space != RN_JIT_FULL && program->reduction_count) continue;
    walked->sizes[walked->count] = rn_dtype_size(rn_dtype_stored(value->dtype));
    walked->addresses[walked->count++] = outputs[i];
  }
}

// Elements per access: 16 bytes of the smallest type, at most 32 of the largest, and a divisor of
// |length|, the size of what may not be straddled (0: none).
static int choose_vector(const walked_t* walked, int64_t length) {
  size_t least = 16, most = 1;
  for (int i = 0; i < walked->count; ++i) {
    if (walked->sizes[i] < least) least = walked->sizes[i];
    if (walked->sizes[i] > most) most = walked->sizes[i];
  }
  size_t vector = walked->count ? 16 / least : 1;
  // Many operands need many registers.
  const size_t limit = walked->count > 12 ? 2 : walked->count > 6 ? 4 : 8;
  if (vector > limit) vector = limit;
  while (vector > 1 && vector * most > 32) vector /= 2;
  while (vector > 1 && length % (int64_t)vector) vector /= 2;
  for (int i = 0; i < walked->count; ++i) {
    const size_t size = walked->sizes[i];
    while (vector > 1 && walked->addresses[i] % (size * vector < 16 ? size * vector : 16))
      vector /= 2;
  }
  return (int)vector;
}

static bool is_whole(const rn_jit_program_t* program, const rn_jit_sizes_t* sizes,
                     const rn_jit_operand_t* inputs, int vector) {
  for (int i = 0; i < program->input_count; ++i) {
    const rn_jit_input_t* input = &program->inputs[i];
    const size_t bytes = rn_dtype_size(rn_dtype_stored(input->dtype)) * (size_t)vector;
    if ((input->access == RN_JIT_ROW || input->access == RN_JIT_COLUMN) &&
        inputs[i].period % vector)
      return false;
    if (input->access == RN_JIT_ROW && inputs[i].address % (bytes < 16 ? bytes : 16)) return false;
    if (input->access == RN_JIT_STRIDED && sizes->dims[program->rank - 1] % vector) return false;
  }
  return true;
}

static void grid_pointwise(const rn_jit_sizes_t* sizes, int multiprocessors, rn_jit_grid_t* grid) {
  const int64_t threads = ceil_div(sizes->count, grid->variant.vector);
  const int64_t blocks =
      min_of(ceil_div(threads, BLOCK), (int64_t)multiprocessors * BLOCKS_PER_PROCESSOR);
  grid->launches[0] = (rn_jit_launch_t){(unsigned)blocks, BLOCK, 1, 0};
}

rn_status_t rn_jit_grid(const rn_jit_program_t* program, const rn_jit_sizes_t* sizes,
                        const rn_jit_operand_t* inputs, const uint64_t* outputs,
                        int multiprocessors, rn_jit_grid_t* out) {
  memset(out, 0, sizeof *out);
  RN_RETURN_IF_ERROR(rn_jit_check(program));
  RN_RETURN_IF_ERROR(check_sizes(program, sizes, inputs));
  walked_t walked;
  find_walked(program, inputs, outputs, &walked);
  out->variant.wide = needs_wide(program, sizes, inputs);
  out->kernel_count = 1;
  if (program->reduction_count) return rn_unimplemented("Loops with reductions");
  out->variant.schedule = RN_JIT_POINTWISE;
  out->variant.vector = (uint8_t)choose_vector(&walked, 0);
  grid_pointwise(sizes, multiprocessors, out);
  if (sizes->count == 0) out->kernel_count = 0;
  out->variant.whole = is_whole(program, sizes, inputs, out->variant.vector);
  rn_jit_layout_t layout;
  rn_jit_layout(program, &out->variant, &layout);
  if (layout.bytes > RN_JIT_MAX_ARGS)
    return rn_unimplemented("A loop's arguments take %zu bytes; kernels take %d", layout.bytes,
                            RN_JIT_MAX_ARGS);
  return RN_OK;
}
