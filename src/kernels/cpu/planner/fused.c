// Runs fused chains. See fused.h.
#include "kernels/cpu/planner/fused.h"

#include "base/pool.h"
#include "kernels/cpu/planner/fused_code.h"

static int arity(uint16_t code) {
  switch (code) {
#define ARITY(enumerator, op, count) \
  case RN_VECTOR_##enumerator:       \
    return count;
    RN_VECTOR_OPS(ARITY)
#undef ARITY
    default:
      return 0;
  }
}

static bool has_function(rn_dtype_t dtype, uint16_t code) {
  if (dtype == RN_HALF || dtype == RN_BFLOAT16) dtype = RN_FLOAT;
  return dtype > 0 && dtype < RN_DTYPE_COUNT && code < RN_VECTOR_COUNT &&
         rn_vector_table()->fn[dtype][code];
}

rn_status_t rn_fused_check(const rn_fused_t* program) {
  int operands = program->inputs + program->temporaries + program->outputs;
  if (program->inputs < 0 || program->temporaries < 0 || program->outputs < 1 ||
      program->temporaries > RN_FUSED_TEMPORARIES || operands > RN_FUSED_OPERANDS)
    return rn_invalid_argument("A fused chain has %d inputs, %d temporaries and %d outputs",
                               program->inputs, program->temporaries, program->outputs);
  uint64_t written = program->inputs < 64 ? (UINT64_C(1) << program->inputs) - 1 : UINT64_MAX;
  for (int32_t i = 0; i < program->step_count; ++i) {
    const rn_fused_step_t* step = &program->steps[i];
    if (!has_function(program->dtype, step->code))
      return rn_invalid_argument("Step %d of a fused chain has no function for %s", i,
                                 rn_dtype_name(program->dtype));
    bool reads_well = step->a >= 0 && step->a < operands && (written >> step->a & 1);
    if (arity(step->code) == 2)
      reads_well = reads_well && step->b >= 0 && step->b < operands && (written >> step->b & 1);
    else
      reads_well = reads_well && step->b == -1;
    if (!reads_well || step->out < program->inputs || step->out >= operands)
      return rn_invalid_argument("Step %d of a fused chain has an invalid operand", i);
    written |= UINT64_C(1) << step->out;
  }
  for (int k = operands - program->outputs; k < operands; ++k)
    if (!(written >> k & 1)) return rn_invalid_argument("A fused chain leaves an output unwritten");
  return RN_OK;
}

bool rn_fused_may_share(const rn_fused_t* program, int output, int input) {
  int16_t written = (int16_t)(program->inputs + program->temporaries + output);
  bool is_written = false;
  for (int32_t i = 0; i < program->step_count; ++i) {
    const rn_fused_step_t* step = &program->steps[i];
    bool reads = step->a == input || (arity(step->code) == 2 && step->b == input);
    if (is_written && reads) return false;
    is_written |= step->out == written;
  }
  return true;
}

typedef struct fused_pass_t {
  const rn_fused_t* program;
  const void* const* in;
  const int* in_steps;
  void* const* out;
  size_t size;    // bytes per element
  int64_t block;  // elements
  const rn_fused_rows_t* rows;
  const rn_fused_code_t* code;  // NULL: none for these operands
} fused_pass_t;

// Sets the places to element |begin|, or row |begin|.
static void set_places(const fused_pass_t* pass, int64_t begin, char* scratch,
                       rn_fused_place_t* places) {
  const rn_fused_t* program = pass->program;
  const rn_fused_rows_t* rows = pass->rows;
  const size_t start = (size_t)begin * pass->size, advance = (size_t)pass->block * pass->size;
  rn_fused_place_t* place = places;
  for (int k = 0; k < program->inputs; ++k, ++place) {
    int step = pass->in_steps[k];
    size_t offset = start * (size_t)(rows ? rows->in_rows[k] : 1);
    // Nothing is written through an input's place; rn_fused_check ensures that.
    *place = (rn_fused_place_t){(char*)(uintptr_t)pass->in[k] + (step ? offset : 0),
                                step ? advance : 0, step};
  }
  for (int k = 0; k < program->temporaries; ++k, ++place)
    *place = (rn_fused_place_t){scratch + (size_t)k * RN_FUSED_BLOCK_BYTES, 0, 1};
  for (int k = 0; k < program->outputs; ++k, ++place) {
    size_t offset = start * (size_t)(rows ? rows->out_rows[k] : 1);
    *place = (rn_fused_place_t){(char*)pass->out[k] + offset, advance, 1};
  }
}

// Calls the functions of steps [first, end) for elements [skip, n) of the current block.
static void call_steps(const rn_fused_t* program, const rn_fused_place_t* places, int32_t first,
                       int32_t end, int64_t skip, int64_t n) {
  const rn_vector_fn_t* functions = rn_vector_table()->fn[program->dtype];
  const size_t skipped = (size_t)skip * rn_dtype_size(program->dtype);
  for (int32_t i = first; i < end; ++i) {
    const rn_fused_step_t* step = &program->steps[i];
    const rn_fused_place_t* a = &places[step->a];
    const rn_fused_place_t* b = step->b >= 0 ? &places[step->b] : a;
    const char* a_at = a->at + (a->step ? skipped : 0);
    const char* b_at = b->at + (b->step ? skipped : 0);
    char* out = places[step->out].at + skipped;
    rn_vector_fn_t fn = functions[step->code];
    if (fn)
      fn(a_at, a->step, b_at, b->step, out, n - skip);
    else
      rn_vector_run(step->code, program->dtype, a_at, a->step, step->b >= 0 ? b_at : NULL, b->step,
                    out, n - skip);
  }
}

// Runs one block of |n| elements by the loops of the program's code. Loops have no types that a
// sanitizer could look up.
#ifdef __clang__
__attribute__((no_sanitize("function")))
#endif
static void
run_code(const fused_pass_t* pass, const rn_fused_place_t* places, int64_t n) {
  const rn_fused_code_t* code = pass->code;
  const size_t bytes = (size_t)n * pass->size, whole = bytes - bytes % code->width;
  for (int32_t i = 0; i < code->part_count; ++i) {
    const rn_fused_part_t* part = &code->parts[i];
    if (part->is_loop && whole > 0) part->loop(places, (int64_t)whole);
    const int64_t done = part->is_loop ? (int64_t)(whole / pass->size) : 0;
    if (done < n) call_steps(pass->program, places, part->first, part->end, done, n);
  }
}

// Runs |count| contiguous elements, block by block.
static void run_blocks(const fused_pass_t* pass, rn_fused_place_t* places, int64_t count) {
  const rn_fused_t* program = pass->program;
  const int operands = program->inputs + program->temporaries + program->outputs;
  for (int64_t begin = 0; begin < count; begin += pass->block) {
    int64_t n = count - begin < pass->block ? count - begin : pass->block;
    if (pass->code)
      run_code(pass, places, n);
    else
      call_steps(program, places, 0, program->step_count, 0, n);
    for (int k = 0; k < operands; ++k) places[k].at += places[k].advance;
  }
}

static void run_piece(void* arg, int64_t begin, int64_t end) {
  _Alignas(RN_ALIGN) char scratch[RN_FUSED_TEMPORARIES * RN_FUSED_BLOCK_BYTES];
  rn_fused_place_t places[RN_FUSED_OPERANDS];
  set_places(arg, begin, scratch, places);
  run_blocks(arg, places, end - begin);
}

static void run_rows(void* arg, int64_t begin, int64_t end) {
  const fused_pass_t* pass = arg;
  _Alignas(RN_ALIGN) char scratch[RN_FUSED_TEMPORARIES * RN_FUSED_BLOCK_BYTES];
  rn_fused_place_t places[RN_FUSED_OPERANDS];
  for (int64_t row = begin; row < end; ++row) {
    set_places(pass, row, scratch, places);
    run_blocks(pass, places, pass->rows->columns);
  }
}

// Elements per piece, in whole blocks: about 50 us of work, or about 3 us for threads that are
// awake anyway.
static int64_t grain_of(int64_t weight) {
  int64_t blocks = 1024 / weight;
  return (blocks < 4 ? 4 : blocks > 64 ? 64 : blocks) * RN_VECTOR_BLOCK;
}
#define SMALLEST_PIECE (2 * RN_VECTOR_BLOCK)
static int64_t small_grain_of(int64_t weight) {
  int64_t grain = 64 / weight * RN_VECTOR_BLOCK;
  return grain < SMALLEST_PIECE ? SMALLEST_PIECE : grain;
}

static int64_t weight_of(const rn_fused_t* program) {
  int64_t weight = 1;
  for (int32_t i = 0; i < program->step_count; ++i)
    weight += rn_vector_is_costly(program->steps[i].code) ? 8 : 1;
  return weight;
}

// The program's code, if it was made for arrays and scalars like these.
static const rn_fused_code_t* code_for(const rn_fused_t* program, const int* in_steps) {
  if (!program->code) return NULL;
  for (int k = 0; k < program->inputs; ++k)
    if ((program->code->scalars >> k & 1) == (uint64_t)(in_steps[k] != 0)) return NULL;
  return program->code;
}

static fused_pass_t pass_of(const rn_fused_t* program, const void* const* in, const int* in_steps,
                            void* const* out, const rn_fused_rows_t* rows) {
  const size_t size = rn_dtype_size(program->dtype);
  const int64_t block = size > 4 ? RN_VECTOR_BLOCK / 2 : RN_VECTOR_BLOCK;
  return (fused_pass_t){program, in, in_steps, out, size, block, rows, code_for(program, in_steps)};
}

void rn_fused_run(rn_pool_t* pool, const rn_fused_t* program, const void* const* in,
                  const int* in_steps, void* const* out, int64_t n) {
  fused_pass_t pass = pass_of(program, in, in_steps, out, NULL);
  if (n <= SMALLEST_PIECE) {  // too few elements for their cost to matter
    run_piece(&pass, 0, n);
    return;
  }
  int64_t weight = weight_of(program);
  rn_pool_for_small(pool, n, grain_of(weight), small_grain_of(weight), run_piece, &pass);
}

void rn_fused_run_rows(rn_pool_t* pool, const rn_fused_t* program, const rn_fused_rows_t* rows,
                       const void* const* in, const int* in_steps, void* const* out) {
  fused_pass_t pass = pass_of(program, in, in_steps, out, rows);
  int64_t weight = weight_of(program);
  rn_pool_for_small(pool, rows->rows, grain_of(weight) / rows->columns + 1,
                    small_grain_of(weight) / rows->columns + 1, run_rows, &pass);
}
