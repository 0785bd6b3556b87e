// Writes x86-64 instructions: AVX with 256 bits (VEX) or AVX-512 with 512 (EVEX), on whole
// registers of floats or doubles. Vector registers are numbered from 0, to 15 or 31. Memory is
// always [base + index + offset].
//
// A comparison sets "the mask" (k1, or register RN_X86_MASK), which the instructions after it read.
#ifndef RUNNEL_KERNELS_CPU_PLANNER_X86_CODE_H_
#define RUNNEL_KERNELS_CPU_PLANNER_X86_CODE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rn_x86_code_t {
  uint8_t* bytes;
  size_t count, room;
  bool is_full;    // there was no room for an instruction
  bool is_wide;    // 512 bits
  bool is_double;  // doubles, else floats
} rn_x86_code_t;

enum { RN_X86_RAX, RN_X86_RCX, RN_X86_RDX, RN_X86_RBX, RN_X86_RSI = 6, RN_X86_RDI, RN_X86_R8 };
enum { RN_X86_R9 = 9, RN_X86_R10, RN_X86_R11, RN_X86_R12, RN_X86_R14 = 14, RN_X86_R15 };

#define RN_X86_MASK 15  // with 256 bits only

// out = a op b. The numbers are the opcodes.
typedef enum rn_x86_op_t {
  RN_X86_SQRT = 0x51,     // of b
  RN_X86_AND_NOT = 0x55,  // b without the bits of a
  RN_X86_XOR = 0x57,
  RN_X86_ADD = 0x58,
  RN_X86_MUL = 0x59,
  RN_X86_SUB = 0x5c,
  RN_X86_DIV = 0x5e,
} rn_x86_op_t;

typedef enum rn_x86_relation_t {
  RN_X86_LESS = 1,
  RN_X86_UNORDERED = 3,
  RN_X86_NOT_EQUAL = 4,  // or unordered
  RN_X86_NOT_LESS = 5,   // or unordered
  RN_X86_GREATER = 14,
} rn_x86_relation_t;

typedef enum rn_x86_rounding_t {
  RN_X86_TO_EVEN = 8,
  RN_X86_DOWN = 9,
  RN_X86_UP = 10,
} rn_x86_rounding_t;

void rn_x86_arithmetic(rn_x86_code_t* code, rn_x86_op_t op, int out, int a, int b);
void rn_x86_round(rn_x86_code_t* code, rn_x86_rounding_t to, int out, int a);
void rn_x86_compare(rn_x86_code_t* code, rn_x86_relation_t relation, int a, int b);
void rn_x86_keep(rn_x86_code_t* code, int out, int a);  // where the mask is set, else 0
void rn_x86_choose(rn_x86_code_t* code, int out, int if_set, int if_not);

void rn_x86_load(rn_x86_code_t* code, int out, int base, int index, int32_t offset);
void rn_x86_store(rn_x86_code_t* code, int a, int base, int index, int32_t offset);
void rn_x86_broadcast(rn_x86_code_t* code, int out, int base);     // the number at base
void rn_x86_constant(rn_x86_code_t* code, int out, double value);  // uses rax

// General registers, 64 bits.
void rn_x86_push(rn_x86_code_t* code, int reg);
void rn_x86_pop(rn_x86_code_t* code, int reg);
void rn_x86_load_pointer(rn_x86_code_t* code, int out, int base, int32_t offset);
void rn_x86_clear(rn_x86_code_t* code, int reg);
// Adds |bytes| to |index|, and goes back to position |to| while it is less than |end|.
void rn_x86_loop(rn_x86_code_t* code, int index, int8_t bytes, int end, size_t to);
void rn_x86_enter(rn_x86_code_t* code);   // where indirect calls may land
void rn_x86_return(rn_x86_code_t* code);  // with clean upper halves of registers

#endif  // RUNNEL_KERNELS_CPU_PLANNER_X86_CODE_H_
