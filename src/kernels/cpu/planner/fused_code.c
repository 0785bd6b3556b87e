// Makes loops of fused chains. See fused_code.h.
//
// Registers of a loop: a vector register per temporary, from 0 on; five for arguments and values
// inside a formula; then scalars and constants, as they are met. Every array has a pointer in a
// general register; temporaries that other parts read or write are in memory too, with one pointer
// for all. A part ends before the step for which no register is left.
#include "kernels/cpu/planner/fused_code.h"

#include "base/code_pages.h"
#include "kernels/cpu/planner/fused_formulas.h"
#include "kernels/cpu/planner/x86_code.h"

#ifdef __x86_64__

enum { PLACES = RN_X86_RDI, END = RN_X86_RSI, INDEX = RN_X86_RAX, TEMPORARIES = RN_X86_RDX };
static const int8_t pointer_registers[] = {RN_X86_RCX, RN_X86_R8,  RN_X86_R9,
                                           RN_X86_R10, RN_X86_R11, RN_X86_RBX,
                                           RN_X86_R12, RN_X86_R14, RN_X86_R15};
enum { POINTERS = sizeof pointer_registers, CALLERS_POINTERS = 5 };
#define FORMULA_REGISTERS (RN_FORMULA_RESULT + 1)
#define CODE_BYTES 16384  // per program, at most; what does not fit is called

// What the loop of a part uses.
typedef struct loop_uses_t {
  int8_t pointers[RN_FUSED_OPERANDS];  // by operand: its register; -1: none yet
  int8_t scalars[RN_FUSED_OPERANDS];
  int8_t constants[RN_FORMULA_VALUES];
  int pointer_count, register_count;
  uint64_t present;  // temporaries whose value is in their register
  uint64_t written;  // temporaries
  size_t bytes;      // of the body
} loop_uses_t;

typedef struct emitter_t {
  const rn_fused_t* program;
  uint64_t scalars;
  rn_x86_code_t body;  // of the current loop
  rn_x86_code_t code;  // all loops that are finished
  loop_uses_t uses;
  bool is_short;  // of registers
} emitter_t;

static bool is_temporary(const rn_fused_t* program, int operand) {
  return operand >= program->inputs && operand < program->inputs + program->temporaries;
}

static int32_t temporary_offset(const rn_fused_t* program, int operand) {
  return (operand - program->inputs) * RN_FUSED_BLOCK_BYTES;
}

static int pointer_of(emitter_t* e, int operand) {
  int8_t* pointer = &e->uses.pointers[operand];
  if (*pointer < 0 && e->uses.pointer_count < POINTERS)
    *pointer = pointer_registers[e->uses.pointer_count++];
  if (*pointer < 0) e->is_short = true;
  return *pointer < 0 ? 0 : *pointer;
}

// Takes a vector register for |*kept|, unless it has one.
static int keep_in_register(emitter_t* e, int8_t* kept) {
  const int most = e->body.is_wide ? 32 : RN_X86_MASK;
  if (*kept < 0 && e->uses.register_count < most) *kept = (int8_t)e->uses.register_count++;
  if (*kept < 0) e->is_short = true;
  return *kept < 0 ? 0 : *kept;
}

// The register that holds |operand|; |into| if it has to be loaded.
static int read_operand(emitter_t* e, int operand, int into) {
  const rn_fused_t* program = e->program;
  if (is_temporary(program, operand)) {
    const int reg = operand - program->inputs;
    if (!(e->uses.present >> reg & 1))
      rn_x86_load(&e->body, reg, TEMPORARIES, INDEX, temporary_offset(program, operand));
    e->uses.present |= UINT64_C(1) << reg;
    return reg;
  }
  if (operand < program->inputs && (e->scalars >> operand & 1))
    return keep_in_register(e, &e->uses.scalars[operand]);
  rn_x86_load(&e->body, into, pointer_of(e, operand), INDEX, 0);
  return into;
}

static void emit_instruction(rn_x86_code_t* code, const rn_formula_t* f, int out, int a, int b) {
  switch (f->kind) {
    case RN_FORMULA_ARITHMETIC:
      rn_x86_arithmetic(code, f->how, out, a, b);
      break;
    case RN_FORMULA_ROUND:
      rn_x86_round(code, f->how, out, a);
      break;
    case RN_FORMULA_COMPARE:
      rn_x86_compare(code, f->how, a, b);
      break;
    case RN_FORMULA_KEEP:
      rn_x86_keep(code, out, a);
      break;
    default:
      rn_x86_choose(code, out, a, b);
  }
}

static int register_of(emitter_t* e, const int* registers, int value) {
  return value < RN_FORMULA_CONSTANTS ? registers[value]
                                      : keep_in_register(e, &e->uses.constants[value]);
}

// Adds a step to the body. False if it cannot.
static bool emit_step(emitter_t* e, const rn_fused_step_t* step) {
  const rn_fused_t* program = e->program;
  const rn_formula_t* formula = rn_formula_of(step->code);
  if (!formula) return false;
  int registers[FORMULA_REGISTERS];
  for (int i = 0; i < FORMULA_REGISTERS; ++i) registers[i] = program->temporaries + i;
  registers[RN_FORMULA_X] = read_operand(e, step->a, registers[RN_FORMULA_X]);
  if (step->b >= 0) registers[RN_FORMULA_Y] = read_operand(e, step->b, registers[RN_FORMULA_Y]);
  const bool is_kept = is_temporary(program, step->out);
  if (is_kept) registers[RN_FORMULA_RESULT] = step->out - program->inputs;
  for (const rn_formula_t* f = formula; f->kind != RN_FORMULA_END; ++f)
    emit_instruction(&e->body, f, registers[f->out], register_of(e, registers, f->a),
                     register_of(e, registers, f->b));
  if (is_kept) {
    e->uses.present |= UINT64_C(1) << registers[RN_FORMULA_RESULT];
    e->uses.written |= UINT64_C(1) << registers[RN_FORMULA_RESULT];
  } else {
    rn_x86_store(&e->body, registers[RN_FORMULA_RESULT], pointer_of(e, step->out), INDEX, 0);
  }
  return !e->is_short && !e->body.is_full;
}

// Whether a step from |first| on reads the value that |operand| has now.
static bool is_read_later(const rn_fused_t* program, int32_t first, int operand) {
  for (int32_t i = first; i < program->step_count; ++i) {
    const rn_fused_step_t* step = &program->steps[i];
    if (step->a == operand || step->b == operand) return true;
    if (step->out == operand) return false;
  }
  return false;
}

static void begin_loop(emitter_t* e) {
  memset(e->uses.pointers, -1, sizeof e->uses.pointers);
  memset(e->uses.scalars, -1, sizeof e->uses.scalars);
  memset(e->uses.constants, -1, sizeof e->uses.constants);
  e->uses.pointer_count = 0;
  e->uses.register_count = e->program->temporaries + FORMULA_REGISTERS;
  e->uses.present = e->uses.written = 0;
  e->body.count = 0;
  e->body.is_full = e->is_short = false;
}

// Adds as many steps from |first| on to the body as possible. Returns the step after them.
static int32_t emit_body(emitter_t* e, int32_t first) {
  int32_t i = first;
  for (; i < e->program->step_count; ++i) {
    const loop_uses_t before = e->uses;
    const size_t count = e->body.count;
    if (emit_step(e, &e->program->steps[i])) continue;
    e->uses = before;
    e->body.count = count;
    break;
  }
  e->body.is_full = false;
  for (int t = 0; t < e->program->temporaries; ++t) {
    const int operand = e->program->inputs + t;
    if ((e->uses.written >> t & 1) && is_read_later(e->program, i, operand))
      rn_x86_store(&e->body, t, TEMPORARIES, INDEX, temporary_offset(e->program, operand));
  }
  return i;
}

static void load_place(emitter_t* e, int reg, int operand) {
  rn_x86_load_pointer(
      &e->code, reg, PLACES,
      (int32_t)((size_t)operand * sizeof(rn_fused_place_t) + offsetof(rn_fused_place_t, at)));
}

static void emit_prologue(emitter_t* e) {
  const rn_fused_t* program = e->program;
  const loop_uses_t* uses = &e->uses;
  rn_x86_enter(&e->code);
  for (int i = CALLERS_POINTERS; i < uses->pointer_count; ++i)
    rn_x86_push(&e->code, pointer_registers[i]);
  for (int v = RN_FORMULA_CONSTANTS; v < RN_FORMULA_VALUES; ++v)
    if (uses->constants[v] >= 0)
      rn_x86_constant(&e->code, uses->constants[v], rn_formula_constant(v));
  for (int k = 0; k < RN_FUSED_OPERANDS; ++k) {
    if (uses->pointers[k] >= 0) load_place(e, uses->pointers[k], k);
    if (uses->scalars[k] < 0) continue;
    load_place(e, RN_X86_RAX, k);
    rn_x86_broadcast(&e->code, uses->scalars[k], RN_X86_RAX);
  }
  if (program->temporaries > 0) load_place(e, TEMPORARIES, program->inputs);
  rn_x86_clear(&e->code, INDEX);
}

// Puts the current loop to the others. False if there is no room.
static bool finish_loop(emitter_t* e, size_t width) {
  rn_x86_code_t* code = &e->code;
  emit_prologue(e);
  const size_t start = code->count;
  if (e->body.is_full || e->body.count > code->room - code->count) return false;
  memcpy(code->bytes + code->count, e->body.bytes, e->body.count);
  code->count += e->body.count;
  rn_x86_loop(code, INDEX, (int8_t)width, END, start);
  for (int i = e->uses.pointer_count; i-- > CALLERS_POINTERS;)
    rn_x86_pop(code, pointer_registers[i]);
  rn_x86_return(code);
  return !code->is_full;
}

// Appends steps that are called; they join those before them.
static void add_calls(rn_fused_code_t* code, int32_t first, int32_t end) {
  rn_fused_part_t* last = code->part_count > 0 ? &code->parts[code->part_count - 1] : NULL;
  if (last && !last->is_loop)
    last->end = end;
  else
    code->parts[code->part_count++] = (rn_fused_part_t){.first = first, .end = end};
}

// Divides the program into parts. Returns the number of loops.
static int divide(emitter_t* e, rn_fused_code_t* code) {
  int loops = 0;
  for (int32_t i = 0; i < e->program->step_count;) {
    begin_loop(e);
    int32_t end = emit_body(e, i);
    const size_t at = e->code.count;
    if (end - i >= 2 && finish_loop(e, code->width)) {
      code->parts[code->part_count++] = (rn_fused_part_t){i, end, true, at, NULL};
      ++loops;
    } else {
      e->code.count = at;
      e->code.is_full = false;
      if (end == i) end = i + 1;
      add_calls(code, i, end);
    }
    i = end;
  }
  return loops;
}

// Makes the code in |room|: two buffers.
static bool make_code(const rn_fused_t* program, uint8_t* room, rn_fused_code_t* code) {
  const bool is_wide = code->width == 64, is_double = program->dtype == RN_DOUBLE;
  emitter_t e = {.program = program, .scalars = code->scalars};
  e.code = (rn_x86_code_t){room, 0, CODE_BYTES, false, is_wide, is_double};
  e.body = (rn_x86_code_t){room + CODE_BYTES, 0, CODE_BYTES, false, is_wide, is_double};
  if (divide(&e, code) == 0) return false;
  code->pages = rn_code_pages_new(e.code.bytes, e.code.count);
  if (!code->pages) return false;
  code->size = e.code.count;
  for (int32_t i = 0; i < code->part_count; ++i) {
    rn_fused_part_t* part = &code->parts[i];
    if (part->is_loop) part->loop = (rn_fused_loop_t)((uintptr_t)code->pages + part->at);
  }
  return true;
}

size_t rn_fused_code_width(void) {
  const char* name = rn_vector_table()->name;
  return strcmp(name, "avx512") == 0 ? 64 : strcmp(name, "avx2") == 0 ? 32 : 0;
}

rn_status_t rn_fused_code_create(rn_allocator_t allocator, const rn_fused_t* program,
                                 uint64_t scalars, size_t width, rn_fused_code_t** out) {
  *out = NULL;
  if (width == 0 || (program->dtype != RN_FLOAT && program->dtype != RN_DOUBLE)) return RN_OK;
  uint8_t* room = NULL;
  rn_fused_code_t* code = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &code));
  code->allocator = allocator;
  code->scalars = scalars;
  code->width = width;
  code->room = program->step_count;
  rn_status_t status = RN_NEW_ARRAY(allocator, (size_t)code->room, &code->parts);
  if (rn_ok(status)) status = RN_NEW_ARRAY(allocator, 2 * CODE_BYTES, &room);
  if (rn_ok(status) && make_code(program, room, code))
    *out = code;
  else
    rn_fused_code_destroy(code);
  RN_FREE_ARRAY(allocator, room, 2 * CODE_BYTES);
  return status;
}

void rn_fused_code_destroy(rn_fused_code_t* code) {
  if (!code) return;
  rn_code_pages_free(code->pages, code->size);
  RN_FREE_ARRAY(code->allocator, code->parts, (size_t)code->room);
  rn_free(code->allocator, code, sizeof *code);
}

#else  // no code for this processor

size_t rn_fused_code_width(void) { return 0; }

rn_status_t rn_fused_code_create(rn_allocator_t allocator, const rn_fused_t* program,
                                 uint64_t scalars, size_t width, rn_fused_code_t** out) {
  (void)allocator, (void)program, (void)scalars, (void)width;
  *out = NULL;
  return RN_OK;
}

void rn_fused_code_destroy(rn_fused_code_t* code) { (void)code; }

#endif
