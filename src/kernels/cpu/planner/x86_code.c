// Encodes x86-64 instructions. See x86_code.h.
#include "kernels/cpu/planner/x86_code.h"

#include <string.h>

static void put(rn_x86_code_t* code, unsigned byte) {
  if (code->count == code->room)
    code->is_full = true;
  else
    code->bytes[code->count++] = (uint8_t)byte;
}

static void put_number(rn_x86_code_t* code, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) put(code, (unsigned)(number >> (8 * i)) & 0xff);
}

// The fields of a vector instruction.
typedef struct vector_fields_t {
  int map;     // of opcodes: 1 (0F), 2 (0F 38), 3 (0F 3A)
  int prefix;  // 0, or 1 for 66
  int opcode;
  int reg, second;  // |second| is 0 if there is none
  int rm;           // a register; the base if the operand is memory
  bool is_memory;
  int index;  // -1: none
  int32_t offset;
  bool is_masked, is_zeroing;
} vector_fields_t;

// [base + index + offset], with 32 bits of offset, which EVEX does not scale, or none.
static void put_memory(rn_x86_code_t* code, int reg, int base, int index, int32_t offset) {
  const bool has_offset = offset != 0 || (base & 7) == 5;
  put(code, (has_offset ? 0x80u : 0) | (unsigned)(reg & 7) << 3 | 4);
  put(code, (unsigned)((index < 0 ? 4 : index) & 7) << 3 | (unsigned)(base & 7));
  if (has_offset) put_number(code, (uint32_t)offset, 4);
}

static void put_prefix(rn_x86_code_t* code, const vector_fields_t* f) {
  // Numbers of registers are stored in pieces, inverted.
  const int x = f->is_memory ? (f->index < 0 ? 0 : f->index >> 3) : f->rm >> 4;
  const unsigned r = ~((unsigned)f->reg >> 3) & 1, b = ~((unsigned)f->rm >> 3) & 1;
  const unsigned high = r << 7 | (~(unsigned)x & 1) << 6 | b << 5 | (unsigned)f->map;
  const unsigned second = (~(unsigned)f->second & 15) << 3;
  if (!code->is_wide) {
    put(code, 0xc4);
    put(code, high);
    put(code, second | 1 << 2 | (unsigned)f->prefix);
    return;
  }
  put(code, 0x62);
  put(code, high | (~((unsigned)f->reg >> 4) & 1) << 4);
  put(code, (unsigned)code->is_double << 7 | second | 1 << 2 | (unsigned)f->prefix);
  put(code, (unsigned)f->is_zeroing << 7 | 2 << 5 | (~((unsigned)f->second >> 4) & 1) << 3 |
                (f->is_masked ? 1 : 0));
}

static void put_vector(rn_x86_code_t* code, vector_fields_t f) {
  put_prefix(code, &f);
  put(code, (unsigned)f.opcode);
  if (f.is_memory)
    put_memory(code, f.reg, f.rm, f.index, f.offset);
  else
    put(code, 0xc0u | (unsigned)(f.reg & 7) << 3 | (unsigned)(f.rm & 7));
}

void rn_x86_arithmetic(rn_x86_code_t* code, rn_x86_op_t op, int out, int a, int b) {
  put_vector(code, (vector_fields_t){.map = 1,
                                     .prefix = code->is_double,
                                     .opcode = (int)op,
                                     .reg = out,
                                     .second = op == RN_X86_SQRT ? 0 : a,
                                     .rm = b});
}

void rn_x86_round(rn_x86_code_t* code, rn_x86_rounding_t to, int out, int a) {
  put_vector(code,
             (vector_fields_t){
                 .map = 3, .prefix = 1, .opcode = code->is_double ? 9 : 8, .reg = out, .rm = a});
  put(code, to);
}

void rn_x86_compare(rn_x86_code_t* code, rn_x86_relation_t relation, int a, int b) {
  put_vector(code, (vector_fields_t){.map = 1,
                                     .prefix = code->is_double,
                                     .opcode = 0xc2,
                                     .reg = code->is_wide ? 1 : RN_X86_MASK,
                                     .second = a,
                                     .rm = b});
  put(code, relation);
}

// A masked move, or the bits of both.
void rn_x86_keep(rn_x86_code_t* code, int out, int a) {
  put_vector(code, (vector_fields_t){.map = 1,
                                     .prefix = code->is_double,
                                     .opcode = code->is_wide ? 0x28 : 0x54,
                                     .reg = out,
                                     .second = code->is_wide ? 0 : RN_X86_MASK,
                                     .rm = a,
                                     .is_masked = true,
                                     .is_zeroing = true});
}

void rn_x86_choose(rn_x86_code_t* code, int out, int if_set, int if_not) {
  const int blend = code->is_double ? 0x4b : 0x4a;
  put_vector(code, (vector_fields_t){.map = code->is_wide ? 2 : 3,
                                     .prefix = 1,
                                     .opcode = code->is_wide ? 0x65 : blend,
                                     .reg = out,
                                     .second = if_not,
                                     .rm = if_set,
                                     .is_masked = true});
  if (!code->is_wide) put(code, RN_X86_MASK << 4);
}

static void move_memory(rn_x86_code_t* code, int opcode, int reg, int base, int index,
                        int32_t offset) {
  put_vector(code, (vector_fields_t){.map = 1,
                                     .prefix = code->is_double,
                                     .opcode = opcode,
                                     .reg = reg,
                                     .rm = base,
                                     .is_memory = true,
                                     .index = index,
                                     .offset = offset});
}

void rn_x86_load(rn_x86_code_t* code, int out, int base, int index, int32_t offset) {
  move_memory(code, 0x10, out, base, index, offset);
}

void rn_x86_store(rn_x86_code_t* code, int a, int base, int index, int32_t offset) {
  move_memory(code, 0x11, a, base, index, offset);
}

void rn_x86_broadcast(rn_x86_code_t* code, int out, int base) {
  put_vector(code, (vector_fields_t){.map = 2,
                                     .prefix = 1,
                                     .opcode = code->is_double ? 0x19 : 0x18,
                                     .reg = out,
                                     .rm = base,
                                     .is_memory = true,
                                     .index = -1});
}

// By the stack, because what can come from a general register differs from level to level.
void rn_x86_constant(rn_x86_code_t* code, int out, double value) {
  uint64_t bits = 0;
  const float narrow = (float)value;
  if (code->is_double)
    memcpy(&bits, &value, sizeof value);
  else
    memcpy(&bits, &narrow, sizeof narrow);
  put(code, 0x48);  // mov rax, bits
  put(code, 0xb8);
  put_number(code, bits, 8);
  rn_x86_push(code, RN_X86_RAX);
  put_number(code, 0xe08948, 3);  // mov rax, rsp
  rn_x86_broadcast(code, out, RN_X86_RAX);
  rn_x86_pop(code, RN_X86_RAX);
}

void rn_x86_push(rn_x86_code_t* code, int reg) {
  if (reg > 7) put(code, 0x41);
  put(code, 0x50u + (unsigned)(reg & 7));
}

void rn_x86_pop(rn_x86_code_t* code, int reg) {
  if (reg > 7) put(code, 0x41);
  put(code, 0x58u + (unsigned)(reg & 7));
}

void rn_x86_load_pointer(rn_x86_code_t* code, int out, int base, int32_t offset) {
  put(code, 0x48u | (unsigned)(out >> 3) << 2 | (unsigned)(base >> 3));
  put(code, 0x8b);
  put_memory(code, out, base, -1, offset);
}

void rn_x86_clear(rn_x86_code_t* code, int reg) {
  put(code, 0x48u | (unsigned)(reg >> 3) * 5);
  put(code, 0x31);
  put(code, 0xc0u | (unsigned)(reg & 7) * 9);
}

void rn_x86_loop(rn_x86_code_t* code, int index, int8_t bytes, int end, size_t to) {
  put(code, 0x48u | (unsigned)(index >> 3));  // add index, bytes
  put(code, 0x83);
  put(code, 0xc0u | (unsigned)(index & 7));
  put(code, (uint8_t)bytes);
  put(code, 0x48u | (unsigned)(end >> 3) << 2 | (unsigned)(index >> 3));  // cmp index, end
  put(code, 0x39);
  put(code, 0xc0u | (unsigned)(end & 7) << 3 | (unsigned)(index & 7));
  put(code, 0x0f);  // jb
  put(code, 0x82);
  put_number(code, (uint32_t)((int64_t)to - (int64_t)(code->count + 4)), 4);
}

void rn_x86_enter(rn_x86_code_t* code) { put_number(code, 0xfa1e0ff3, 4); }  // endbr64

void rn_x86_return(rn_x86_code_t* code) {
  put_number(code, 0x77f8c5, 3);  // vzeroupper
  put(code, 0xc3);
}
