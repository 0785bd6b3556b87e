// The runner of fused chains. See fused.h.
#include "kernels/cpu/fused.h"

#include "base/pool_small.h"

#define BLOCK_BYTES 4096  // of one operand's block, at most

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
    if (!reads_well || step->out < program->inputs || step->out >= operands)
      return rn_invalid_argument("Step %d of a fused chain names an operand that it cannot have",
                                 i);
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

typedef struct pass_t {
  const rn_fused_t* program;
  const void* const* in;
  const int* in_steps;
  void* const* out;
  size_t size;    // of an element
  int64_t block;  // elements
} pass_t;

// Where an operand's block is, and how far apart its blocks are.
typedef struct place_t {
  char* at;
  size_t advance;  // bytes; 0 for temporaries and single numbers
  int step;
} place_t;

static void set_places(const pass_t* pass, int64_t begin, char* scratch, place_t* places) {
  const rn_fused_t* program = pass->program;
  const size_t offset = (size_t)begin * pass->size, advance = (size_t)pass->block * pass->size;
  place_t* place = places;
  for (int k = 0; k < program->inputs; ++k, ++place) {
    int step = pass->in_steps[k];
    // Nothing is written through an input's place: rn_fused_check saw to it.
    *place =
        (place_t){(char*)(uintptr_t)pass->in[k] + (step ? offset : 0), step ? advance : 0, step};
  }
  for (int k = 0; k < program->temporaries; ++k, ++place)
    *place = (place_t){scratch + (size_t)k * BLOCK_BYTES, 0, 1};
  for (int k = 0; k < program->outputs; ++k, ++place)
    *place = (place_t){(char*)pass->out[k] + offset, advance, 1};
}

static void run_piece(void* arg, int64_t begin, int64_t end) {
  const pass_t* pass = arg;
  const rn_fused_t* program = pass->program;
  const int operands = program->inputs + program->temporaries + program->outputs;
  const rn_vector_fn_t* functions = rn_vector_table()->fn[program->dtype];
  _Alignas(RN_ALIGN) char scratch[RN_FUSED_TEMPORARIES * BLOCK_BYTES];
  place_t places[RN_FUSED_OPERANDS];
  set_places(pass, begin, scratch, places);
  for (; begin < end; begin += pass->block) {
    int64_t n = end - begin < pass->block ? end - begin : pass->block;
    for (int32_t i = 0; i < program->step_count; ++i) {
      const rn_fused_step_t* step = &program->steps[i];
      const place_t* a = &places[step->a];
      const place_t* b = step->b >= 0 ? &places[step->b] : a;
      rn_vector_fn_t fn = functions[step->code];
      if (fn)
        fn(a->at, a->step, b->at, b->step, places[step->out].at, n);
      else
        rn_vector_run(step->code, program->dtype, a->at, a->step, step->b >= 0 ? b->at : NULL,
                      b->step, places[step->out].at, n);
    }
    for (int k = 0; k < operands; ++k) places[k].at += places[k].advance;
  }
}

// Elements of a piece: about 50 microseconds of work, or, for threads that are awake anyway, about
// 3, in whole blocks.
static int64_t grain_of(int64_t weight) {
  int64_t blocks = 1024 / weight;
  return (blocks < 4 ? 4 : blocks > 64 ? 64 : blocks) * RN_VECTOR_BLOCK;
}
static int64_t small_grain_of(int64_t weight) {
  int64_t blocks = 64 / weight;
  return (blocks < 2 ? 2 : blocks) * RN_VECTOR_BLOCK;
}

void rn_fused_run(rn_pool_t* pool, const rn_fused_t* program, const void* const* in,
                  const int* in_steps, void* const* out, int64_t n) {
  const size_t size = rn_dtype_size(program->dtype);
  pass_t pass = {program, in,   in_steps,
                 out,     size, size > 4 ? RN_VECTOR_BLOCK / 2 : RN_VECTOR_BLOCK};
  int64_t weight = 1;
  for (int32_t i = 0; i < program->step_count; ++i)
    weight += rn_vector_is_costly(program->steps[i].code) ? 8 : 1;
  rn_pool_for_small(pool, n, grain_of(weight), small_grain_of(weight), run_piece, &pass);
}
