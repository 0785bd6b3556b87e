// The update ops of optimizers, as far as all devices share it: the role of each argument, and the
// checks.
//
// The roles are derived once from the op's definition: references and resources are variables,
// "grad" and "delta" the gradient, "indices" its rows, and everything else is a number, in order.
#ifndef RUNNEL_KERNELS_CPU_TRAINING_APPLY_H_
#define RUNNEL_KERNELS_CPU_TRAINING_APPLY_H_

#include "framework/kernel.h"
#include "kernels/cpu/isa/training.h"

#define RN_APPLY_MAX_VARIABLES 4

typedef struct rn_apply_t {
  rn_rule_t rule;
  int variable_count;
  int gradient;  // input index
  int indices;   // input index; -1 if dense
  int number_count;
  int numbers[RN_RULE_MAX_NUMBERS];  // input indices
  int flags;
} rn_apply_t;

// The kernel's init for each rule; the state is an rn_apply_t.
#define RN_APPLY_INIT(name, variables) \
  RN_MUST_USE rn_status_t rn_apply_init_##name(const rn_kernel_init_t* init, void* state);
RN_RULES(RN_APPLY_INIT)
#undef RN_APPLY_INIT

// The variables of one update, locked together in order of address.
typedef struct rn_apply_held_t {
  rn_variable_t* variables[RN_APPLY_MAX_VARIABLES];
  rn_variable_t* locked[RN_APPLY_MAX_VARIABLES];
  int locked_count;
} rn_apply_held_t;

// The same in steps, for several updates at once.
// The variables of an update, in the order of its arguments. Borrowed.
RN_MUST_USE rn_status_t rn_apply_find(const rn_kernel_ctx_t* ctx, const rn_apply_t* apply,
                                      rn_variable_t** out);
// Sorts |variables| by address, drops repetitions, locks what is left and returns its number.
int rn_apply_lock(rn_variable_t** variables, int count);
void rn_apply_unlock(rn_variable_t* const* variables, int count);
// With the variables of the update locked: makes them writable, and checks them and the gradient.
RN_MUST_USE rn_status_t rn_apply_check_locked(rn_kernel_ctx_t* ctx, const rn_apply_t* apply,
                                              rn_variable_t* const* variables);

// Locks the variables, makes them writable, and checks them and the gradient's shape and type. The
// caller releases what is held, also on failure.
RN_MUST_USE rn_status_t rn_apply_hold(rn_kernel_ctx_t* ctx, const rn_apply_t* apply,
                                      rn_apply_held_t* held);
void rn_apply_release(rn_apply_held_t* held);

// Whether input |input|, a number, is a scalar.
RN_MUST_USE rn_status_t rn_apply_check_number(const rn_kernel_ctx_t* ctx, const rn_apply_t* apply,
                                              int input);
// The ranges that stock requires of the numbers of sparse Ftrl and proximal Adagrad.
RN_MUST_USE rn_status_t rn_apply_check_range(const rn_kernel_ctx_t* ctx, const rn_apply_t* apply,
                                             int input, double value);

#endif  // RUNNEL_KERNELS_CPU_TRAINING_APPLY_H_
