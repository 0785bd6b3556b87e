// The update rules of optimizers, over n elements; kernels/cpu/training/training.c calls them.
#ifndef RUNNEL_KERNELS_CPU_ISA_TRAINING_H_
#define RUNNEL_KERNELS_CPU_ISA_TRAINING_H_

#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/training_flags.h"
#include "tensor/dtype.h"

#define RN_RULE_MAX_NUMBERS 8

// X(enumerator, number of variables). Each rule documents the arrays in |v|, the variable first,
// and the numbers in |h|.
#define RN_RULES(X)               \
  X(gradient_descent, 1)          \
  X(momentum, 2)                  \
  X(keras_momentum, 2)            \
  X(adam, 3)                      \
  X(adam_amsgrad, 4)              \
  X(ada_max, 3)                   \
  X(adagrad, 2)                   \
  X(adagrad_v2, 2)                \
  X(adagrad_da, 3)                \
  X(adadelta, 3)                  \
  X(rms_prop, 3)                  \
  X(centered_rms_prop, 4)         \
  X(ftrl, 3)                      \
  X(ftrl_v2, 3)                   \
  X(add_sign, 2)                  \
  X(power_sign, 2)                \
  X(proximal_gradient_descent, 1) \
  X(proximal_adagrad, 2)

// The rules that also support complex numbers.
#define RN_COMPLEX_RULES(X) \
  X(gradient_descent)       \
  X(momentum)               \
  X(keras_momentum)         \
  X(adam)                   \
  X(adagrad)                \
  X(adagrad_v2)             \
  X(adadelta)               \
  X(rms_prop)               \
  X(centered_rms_prop)

typedef enum rn_rule_t {
#define RN_RULE_ENUM(name, variables) RN_RULE_##name,
  RN_RULES(RN_RULE_ENUM)
#undef RN_RULE_ENUM
      RN_RULE_COUNT,
} rn_rule_t;

// |h| holds the op's scalar arguments in the element type.
typedef void (*rn_rule_fn_t)(void* const* v, const void* gradient, const void* h, int flags,
                             int64_t n);

typedef struct rn_rule_table_t {
  rn_rule_fn_t f32[RN_RULE_COUNT], f64[RN_RULE_COUNT];
  rn_rule_fn_t c64[RN_RULE_COUNT], c128[RN_RULE_COUNT];  // NULL where unsupported
} rn_rule_table_t;

RN_ISA_DECLARE(rn_rule_table_t, rn_rule_table_);

#endif  // RUNNEL_KERNELS_CPU_ISA_TRAINING_H_
