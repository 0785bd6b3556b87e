// Choosing loops and grids: see schedule.h.
#include "kernels/cuda/jit/schedule.h"

#define BLOCK 256               // threads
#define BLOCKS_PER_PROCESSOR 8  // of that size: a full multiprocessor
#define MAX_SHARED (40 << 10)   // bytes for the sums of a block; all cards have 48 KiB
#define MAX_NARROW INT32_MAX    // what 32-bit indices and rn_div32 reach

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }
// The least power of 2 from |n| on, or |most|.
static int64_t power_from(int64_t n, int64_t most) {
  int64_t power = 1;
  while (power < n && power < most) power *= 2;
  return power;
}

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

// Finds the STRIDED inputs whose elements are neighbours, or the same, along the last dimension.
static void find_strides(const rn_jit_program_t* program, const rn_jit_operand_t* inputs,
                         rn_jit_variant_t* variant) {
  const int last = program->rank - 1, vector = variant->vector;
  for (int i = 0; i < program->input_count; ++i) {
    if (program->inputs[i].access != RN_JIT_STRIDED) continue;
    const size_t bytes = rn_dtype_size(rn_dtype_stored(program->inputs[i].dtype)) * (size_t)vector;
    bool is_unit =
        inputs[i].strides[last] == 1 && inputs[i].address % (bytes < 16 ? bytes : 16) == 0;
    for (int d = 0; d < last; ++d) is_unit &= inputs[i].strides[d] % vector == 0;
    if (is_unit) variant->unit |= UINT64_C(1) << i;
    if (inputs[i].strides[last] == 0) variant->flat |= UINT64_C(1) << i;
  }
}

static void grid_pointwise(const rn_jit_sizes_t* sizes, int multiprocessors, rn_jit_grid_t* grid) {
  const int64_t threads = ceil_div(sizes->count, grid->variant.vector);
  const int64_t blocks =
      min_of(ceil_div(threads, BLOCK), (int64_t)multiprocessors * BLOCKS_PER_PROCESSOR);
  grid->launches[0] = (rn_jit_launch_t){(unsigned)blocks, BLOCK, 1, 0};
}

// What the choice of a loop for reductions looks at.
typedef struct traits_t {
  bool is_single;      // one pass, and no output of the full space after it
  int traversals;      // passes over the elements
  size_t input_bytes;  // registers for one element of every input of the full space
  size_t sum_bytes;    // of all reductions
} traits_t;

static traits_t find_traits(const rn_jit_program_t* program) {
  traits_t traits = {.is_single = program->passes == 1, .traversals = program->passes};
  for (int i = 0; i < program->output_count; ++i) {
    const rn_jit_value_t* value = &program->values[program->outputs[i]];
    if (value->space != RN_JIT_FULL) continue;
    traits.is_single &= value->passes == 0;
    if (value->passes + 1 > traits.traversals) traits.traversals = value->passes + 1;
  }
  for (int i = 0; i < program->input_count; ++i)
    if (program->inputs[i].space == RN_JIT_FULL)
      traits.input_bytes +=
          (size_t)max_of(4, (int64_t)rn_dtype_size(rn_dtype_stored(program->inputs[i].dtype)));
  for (int i = 0; i < program->value_count; ++i)
    if (program->values[i].kind == RN_JIT_REDUCE)
      traits.sum_bytes += rn_jit_sum_size(program->values[i].code, program->values[i].dtype);
  return traits;
}

// Adds the second kernel: sums of |chunks| pieces per column.
static void grid_finish(const rn_jit_program_t* program, const rn_jit_sizes_t* sizes,
                        int multiprocessors, rn_jit_grid_t* grid) {
  const int64_t columns = sizes->outer * sizes->inner;
  // Few columns per block: the sums of a column come one after the other.
  const int64_t sums = (int64_t)find_traits(program).sum_bytes, x = power_from(sizes->inner, 8);
  int64_t y = power_from(grid->chunks, 2 * BLOCK / x);
  while (y > 1 && sums * x * y > MAX_SHARED) y /= 2;
  const int64_t blocks = min_of(ceil_div(columns, x), (int64_t)multiprocessors * 32);
  const int64_t shared = sums * x * y + 16 * (int64_t)program->reduction_count;
  grid->variant.split = true;
  grid->kernel_count = 2;
  grid->launches[1] =
      (rn_jit_launch_t){(unsigned)blocks, (unsigned)x, (unsigned)y, (unsigned)shared};
  for (int i = 0; i < program->value_count; ++i) {
    const rn_jit_value_t* value = &program->values[i];
    if (value->kind != RN_JIT_REDUCE) continue;
    const int64_t bytes =
        (int64_t)rn_jit_sum_size(value->code, value->dtype) * columns * grid->chunks;
    grid->workspace += ceil_div(bytes, 256) * 256;
  }
}

// Bytes of inputs that a thread keeps in registers between passes: half of what the threads of a
// block of 1024 have.
#define MAX_KEPT_BYTES 128
#define WARPS 4  // per block of ROWS_BY_LANES

// Accesses per thread, as the variant keeps them: a power of 2, 0 if they are too many to keep or
// if there is no second pass.
static uint8_t choose_kept(const traits_t* traits, int vector, int64_t accesses) {
  const int64_t kept = power_from(accesses, INT64_C(1) << 40);
  const int64_t most =
      traits->input_bytes ? MAX_KEPT_BYTES / ((int64_t)traits->input_bytes * vector) : 16;
  return traits->traversals > 1 && kept <= most ? (uint8_t)kept : 0;
}

static void grid_rows(const rn_jit_program_t* program, const rn_jit_sizes_t* sizes,
                      int multiprocessors, rn_jit_grid_t* grid) {
  const traits_t traits = find_traits(program);
  const int vector = grid->variant.vector;
  const int64_t accesses = max_of(1, ceil_div(sizes->reduced, vector));  // per row
  const bool has_few_rows = sizes->outer < (int64_t)multiprocessors * 4;
  if (accesses <= (has_few_rows ? 64 : 256)) {
    const int64_t lanes = power_from(accesses, 32), rows = WARPS * 32 / lanes;
    grid->variant.schedule = RN_JIT_ROWS_BY_LANES;
    grid->variant.lanes = (uint8_t)lanes;
    grid->variant.kept = choose_kept(&traits, vector, ceil_div(accesses, lanes));
    grid->launches[0] = (rn_jit_launch_t){
        (unsigned)min_of(ceil_div(sizes->outer, rows), (int64_t)multiprocessors * 32), WARPS * 32,
        1, 0};
    return;
  }
  grid->variant.schedule = RN_JIT_ROWS_BY_BLOCKS;
  const unsigned shared = RN_JIT_SLOT * (unsigned)program->reduction_count;
  const int64_t pieces =
      min_of(ceil_div(accesses, BLOCK * 4),
             ceil_div((int64_t)multiprocessors * BLOCKS_PER_PROCESSOR, max_of(1, sizes->outer)));
  if (traits.is_single && pieces > 1 && sizes->outer < (int64_t)multiprocessors * 2) {
    grid->chunk = ceil_div(ceil_div(accesses, pieces), BLOCK) * BLOCK * vector;
    grid->chunks = ceil_div(sizes->reduced, grid->chunk);
    grid->launches[0] =
        (rn_jit_launch_t){(unsigned)(sizes->outer * grid->chunks), BLOCK, 1, shared};
    grid_finish(program, sizes, multiprocessors, grid);
    return;
  }
  const int64_t threads = max_of(64, power_from(ceil_div(accesses, 4), 1024));
  grid->variant.kept = choose_kept(&traits, vector, ceil_div(accesses, threads));
  grid->launches[0] = (rn_jit_launch_t){
      (unsigned)min_of(sizes->outer, (int64_t)multiprocessors * (2048 / threads) * 4),
      (unsigned)threads, 1, shared};
}

static void grid_columns(const rn_jit_program_t* program, const rn_jit_sizes_t* sizes,
                         int multiprocessors, rn_jit_grid_t* grid) {
  const traits_t traits = find_traits(program);
  int vector = grid->variant.vector;
  while (vector > 1 && (int64_t)traits.sum_bytes * BLOCK * vector > MAX_SHARED) vector /= 2;
  grid->variant.vector = (uint8_t)vector;
  grid->variant.schedule = RN_JIT_COLUMNS;
  int64_t x = power_from(ceil_div(sizes->inner, vector), 32);
  const int64_t y = power_from(sizes->reduced, BLOCK / x);
  while (x * y < BLOCK && x * vector < sizes->inner) x *= 2;
  const int64_t tiles = ceil_div(sizes->outer * sizes->inner, x * vector);
  const int64_t wanted = (int64_t)multiprocessors * BLOCKS_PER_PROCESSOR;
  const int64_t pieces =
      min_of(ceil_div(wanted, max_of(1, tiles)), ceil_div(sizes->reduced, y * 8));
  grid->chunk = max_of(1, sizes->reduced);
  grid->chunks = 1;
  if (pieces > 1) {
    grid->chunk = ceil_div(ceil_div(sizes->reduced, pieces), y) * y;
    grid->chunks = ceil_div(sizes->reduced, grid->chunk);
  }
  const int64_t shared =
      (int64_t)traits.sum_bytes * x * y * vector + 16 * (int64_t)program->reduction_count;
  grid->launches[0] =
      (rn_jit_launch_t){(unsigned)min_of(tiles * grid->chunks, (int64_t)multiprocessors * 32),
                        (unsigned)x, (unsigned)y, (unsigned)shared};
  if (grid->chunks > 1) grid_finish(program, sizes, multiprocessors, grid);
}

static rn_status_t grid_reduction(const rn_jit_program_t* program, const rn_jit_sizes_t* sizes,
                                  int multiprocessors, rn_jit_grid_t* grid) {
  if (sizes->inner == 1) {
    grid_rows(program, sizes, multiprocessors, grid);
  } else if (find_traits(program).is_single) {
    grid_columns(program, sizes, multiprocessors, grid);
  } else {
    return rn_unimplemented(
        "A loop that uses a reduction's result over the full space again reduces the last axis");
  }
  if (sizes->outer * sizes->inner == 0) grid->kernel_count = 0;
  return RN_OK;
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
  if (program->reduction_count) {
    const int64_t length = sizes->inner == 1 ? sizes->reduced : sizes->inner;
    out->variant.vector = (uint8_t)choose_vector(&walked, length);
    RN_RETURN_IF_ERROR(grid_reduction(program, sizes, multiprocessors, out));
  } else {
    out->variant.schedule = RN_JIT_POINTWISE;
    out->variant.vector = (uint8_t)choose_vector(&walked, 0);
    grid_pointwise(sizes, multiprocessors, out);
    if (sizes->count == 0) out->kernel_count = 0;
  }
  out->variant.whole = is_whole(program, sizes, inputs, out->variant.vector);
  if (out->variant.whole && out->variant.vector > 1) find_strides(program, inputs, &out->variant);
  rn_jit_layout_t layout;
  rn_jit_layout(program, &out->variant, &layout);
  if (layout.bytes > RN_JIT_MAX_ARGS)
    return rn_unimplemented("A loop's arguments take %zu bytes; kernels take %d", layout.bytes,
                            RN_JIT_MAX_ARGS);
  return RN_OK;
}
