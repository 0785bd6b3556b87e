// The update rules of optimizers, elementwise. The numbers in h are in the order of the op's
// arguments.
#include "kernels/cpu/isa/training.h"

#include <complex.h>
#include <math.h>

#include "kernels/cpu/isa/isa.h"

#define RULE(name, T, S, PREPARE, BODY)                                                        \
  static void name##_##S(void* const* v, const void* gradient, const void* numbers, int flags, \
                         int64_t n) {                                                          \
    const T* g_ = gradient;                                                                    \
    const T* h = numbers;                                                                      \
    T* var = v[0];                                                                             \
    (void)flags;                                                                               \
    PREPARE;                                                                                   \
    RN_IVDEP for (int64_t i = 0; i < n; ++i) {                                                 \
      const T g = g_[i];                                                                       \
      BODY;                                                                                    \
    }                                                                                          \
  }

#define SIGN(x) ((x) > 0 ? (T_)1 : (x) < 0 ? (T_)-1 : (x) == 0 ? (T_)0 : (x))

// The shrinkage step shared by all Ftrl variants: |linear| beyond l1 moves the variable, otherwise
// it becomes zero. As in stock, the dense form turns NaN into zero and the sparse form does not.
#define FTRL_REST(x) ((flags & RN_RULE_SPARSE) && (x) != (x) ? (x) : 0)
#define FTRL_FINISH(l1_, l2_, FTRL_POWER)                                    \
  const T_ quadratic = FTRL_POWER(new_accum) / lr + 2 * (l2_);               \
  const T_ pull = (l1_)*SIGN(linear[i]) - linear[i];                         \
  var[i] = ABS(linear[i]) > (l1_) ? pull / quadratic : FTRL_REST(linear[i]); \
  accum[i] = accum[i] + g * g

#define FTRL_FINISH_BY_LR(l1_, l2_, FTRL_POWER)                                 \
  const T_ quadratic = FTRL_POWER(new_accum) + 2 * (l2_)*lr;                    \
  const T_ pull = (l1_)*lr * SIGN(linear[i]) - linear[i];                       \
  var[i] = ABS(linear[i]) > (l1_)*lr ? pull / quadratic : FTRL_REST(linear[i]); \
  accum[i] = accum[i] + g * g

// Rules that also support complex numbers.
#define ANY_RULES(T, S)                                                                           \
  /* alpha */                                                                                     \
  RULE(gradient_descent, T, S, const T lr = h[0], var[i] -= lr * g)                               \
  /* lr, momentum */                                                                              \
  RULE(momentum, T, S, T* accum = v[1]; const T lr = h[0]; const T momentum = h[1];               \
       const int nesterov = flags & RN_RULE_NESTEROV, accum[i] = accum[i] * momentum + g;         \
       var[i] -= nesterov ? g * lr + accum[i] * momentum * lr : accum[i] * lr)                    \
  RULE(keras_momentum, T, S, T* accum = v[1]; const T lr = h[0]; const T momentum = h[1];         \
       const int nesterov = flags & RN_RULE_NESTEROV, accum[i] = accum[i] * momentum - g * lr;    \
       var[i] += nesterov ? accum[i] * momentum - g * lr : accum[i])                              \
  /* beta1_power, beta2_power, lr, beta1, beta2, epsilon */                                       \
  RULE(adam, T, S, T* m = v[1]; T* s = v[2]; const T alpha = h[2] * SQRT(1 - h[1]) / (1 - h[0]);  \
       const T b1 = h[3]; const T b2 = h[4]; const T epsilon = h[5];                              \
       const int nesterov = flags & RN_RULE_NESTEROV, m[i] += (g - m[i]) * (1 - b1);              \
       s[i] += (g * g - s[i]) * (1 - b2);                                                         \
       var[i] -= (nesterov ? g * (1 - b1) + b1 * m[i] : m[i]) * alpha / (SQRT(s[i]) + epsilon))   \
  /* lr */                                                                                        \
  RULE(adagrad, T, S, T* accum = v[1]; const T lr = h[0];                                         \
       const int updates = flags & RN_RULE_UPDATE_SLOTS, if (updates) accum[i] += g * g;          \
       var[i] -= g * lr * (1 / SQRT(accum[i])))                                                   \
  /* lr, epsilon */                                                                               \
  RULE(adagrad_v2, T, S, T* accum = v[1]; const T lr = h[0]; const T epsilon = h[1];              \
       const int updates = flags & RN_RULE_UPDATE_SLOTS, if (updates) accum[i] += g * g;          \
       var[i] -= g * lr / (SQRT(accum[i]) + epsilon))                                             \
  /* lr, rho, epsilon */                                                                          \
  RULE(adadelta, T, S, T* accum = v[1]; T* updates = v[2]; const T lr = h[0]; const T rho = h[1]; \
       const T epsilon = h[2], accum[i] = accum[i] * rho + g * g * (1 - rho);                     \
       const T update = SQRT(updates[i] + epsilon) * (1 / SQRT(accum[i] + epsilon)) * g;          \
       updates[i] = updates[i] * rho + update * update * (1 - rho); var[i] -= update * lr)        \
  /* lr, rho, momentum, epsilon */                                                                \
  RULE(rms_prop, T, S, T* ms = v[1]; T* mom = v[2]; const T lr = h[0]; const T rho = h[1];        \
       const T momentum = h[2]; const T epsilon = h[3], ms[i] += (g * g - ms[i]) * (1 - rho);     \
       mom[i] = mom[i] * momentum + g * lr / SQRT(ms[i] + epsilon); var[i] -= mom[i])             \
  RULE(centered_rms_prop, T, S, T* mg = v[1]; T* ms = v[2]; T* mom = v[3]; const T lr = h[0];     \
       const T rho = h[1]; const T momentum = h[2];                                               \
       const T epsilon = h[3], ms[i] += (g * g - ms[i]) * (1 - rho);                              \
       mg[i] += (g - mg[i]) * (1 - rho);                                                          \
       mom[i] = mom[i] * momentum + g * lr / SQRT(ms[i] - mg[i] * mg[i] + epsilon);               \
       var[i] -= mom[i])

// Rules with comparisons. NaN propagates where it does in stock.
#define REAL_RULES(T, S)                                                                           \
  /* beta1_power, beta2_power, lr, beta1, beta2, epsilon */                                        \
  RULE(adam_amsgrad, T, S, T* m = v[1]; T* s = v[2]; T* most = v[3];                               \
       const T alpha = h[2] * SQRT(1 - h[1]) / (1 - h[0]); const T b1 = h[3]; const T b2 = h[4];   \
       const T epsilon = h[5], m[i] += (g - m[i]) * (1 - b1); s[i] += (g * g - s[i]) * (1 - b2);   \
       most[i] = most[i] < s[i] ? s[i] : most[i];                                                  \
       var[i] -= m[i] * alpha / (SQRT(most[i]) + epsilon))                                         \
  /* beta1_power, lr, beta1, beta2, epsilon */                                                     \
  RULE(                                                                                            \
      ada_max, T, S, T* m = v[1]; T* s = v[2]; const T alpha = h[1] / (1 - h[0]);                  \
      const T b1 = h[2]; const T b2 = h[3]; const T epsilon = h[4], m[i] += (g - m[i]) * (1 - b1); \
      s[i] = b2 * s[i] < ABS(g) ? ABS(g) : b2 * s[i]; var[i] -= alpha * (m[i] / (s[i] + epsilon))) \
  /* lr, l1, l2, global_step */                                                                    \
  RULE(adagrad_da, T, S, T* sum = v[1]; T* squares = v[2]; const T lr = h[0]; const T l1 = h[1];   \
       const T l2 = h[2]; const T step = h[3], sum[i] += g; squares[i] += g * g;                   \
       const T magnitude = l1 > 0 ? ABS(sum[i]) - l1 * step : ABS(sum[i]);                         \
       const T top = l1 > 0 ? -SIGN(sum[i]) * (magnitude < 0 ? 0 : magnitude) : -sum[i];           \
       var[i] = lr * top / (l2 * step * lr + SQRT(squares[i])))                                    \
  /* lr, alpha, sign_decay, beta */                                                                \
  RULE(add_sign, T, S, T* m = v[1]; const T lr = h[0]; const T alpha = h[1]; const T decay = h[2]; \
       const T beta = h[3], m[i] = m[i] * beta + g * (1 - beta);                                   \
       var[i] -= lr * (alpha + decay * SIGN(g) * SIGN(m[i])) * g)                                  \
  /* lr, logbase, sign_decay, beta */                                                              \
  RULE(power_sign, T, S, T* m = v[1]; const T lr = h[0]; const T logbase = h[1];                   \
       const T decay = h[2]; const T beta = h[3], m[i] = m[i] * beta + g * (1 - beta);             \
       var[i] -= lr * EXP(logbase * decay * SIGN(g) * SIGN(m[i])) * g)                             \
  /* alpha, l1, l2 */                                                                              \
  RULE(proximal_gradient_descent, T, S, const T lr = h[0]; const T l1 = h[1];                      \
       const T l2 = h[2], const T prox = var[i] - g * lr; const T shrunk = ABS(prox) - lr * l1;    \
       var[i] = (l1 > 0 ? SIGN(prox) * (shrunk < 0 ? 0 : shrunk) : prox) / (1 + l2 * lr))          \
  /* lr, l1, l2 */                                                                                 \
  RULE(proximal_adagrad, T, S, T* accum = v[1]; const T lr = h[0]; const T l1 = h[1];              \
       const T l2 = h[2], accum[i] += g * g; const T rate = lr * (1 / SQRT(accum[i]));             \
       const T prox = var[i] - g * rate; const T shrunk = ABS(prox) - rate * l1;                   \
       var[i] = (l1 > 0 ? SIGN(prox) * (shrunk < 0 ? 0 : shrunk) : prox) / (1 + l2 * rate))

// Ftrl with a power of its own, and with the usual one: -0.5, a root, which has an instruction.
#define BY_POWER(x) POW(x, -power)
#define BY_ROOT(x) SQRT(x)
#define FTRL_RULES(T, S, WAY, FTRL_POWER)                                                        \
  /* lr, l1, l2, lr_power */                                                                     \
  RULE(                                                                                          \
      ftrl_##WAY, T, S, T* accum = v[1]; T* linear = v[2]; const T lr = h[0]; const T l1 = h[1]; \
      const T l2 = h[2]; const T power = h[3]; (void)power;                                      \
      const int by_lr = flags & RN_RULE_MULTIPLY_LINEAR, const T new_accum = accum[i] + g * g;   \
      const T sigma = FTRL_POWER(new_accum) - FTRL_POWER(accum[i]); if (by_lr) {                 \
        linear[i] += g * lr - sigma * var[i];                                                    \
        FTRL_FINISH_BY_LR(l1, l2, FTRL_POWER);                                                   \
      } else {                                                                                   \
        linear[i] += g - sigma / lr * var[i];                                                    \
        FTRL_FINISH(l1, l2, FTRL_POWER);                                                         \
      })                                                                                         \
  /* lr, l1, l2, l2_shrinkage, lr_power */                                                       \
  RULE(                                                                                          \
      ftrl_v2_##WAY, T, S, T* accum = v[1]; T* linear = v[2]; const T lr = h[0];                 \
      const T l1 = h[1]; const T l2 = h[2]; const T shrinkage = h[3]; const T power = h[4];      \
      (void)power; const int by_lr = flags & RN_RULE_MULTIPLY_LINEAR,                            \
                   const T shrunk = g + 2 * shrinkage * var[i];                                  \
      const T new_accum = accum[i] + g * g;                                                      \
      const T sigma = FTRL_POWER(new_accum) - FTRL_POWER(accum[i]); if (by_lr) {                 \
        linear[i] += shrunk * lr - sigma * var[i];                                               \
        FTRL_FINISH_BY_LR(l1, l2, FTRL_POWER);                                                   \
      } else {                                                                                   \
        linear[i] += shrunk - sigma / lr * var[i];                                               \
        FTRL_FINISH(l1, l2, FTRL_POWER);                                                         \
      })
#define FTRL(name, T, S, at)                                                                   \
  static void name##_##S(void* const* v, const void* gradient, const void* numbers, int flags, \
                         int64_t n) {                                                          \
    const T* h = numbers;                                                                      \
    (h[at] == (T)-0.5 ? name##_root_##S : name##_power_##S)(v, gradient, numbers, flags, n);   \
  }
#define ALL_FTRL(T, S)              \
  FTRL_RULES(T, S, power, BY_POWER) \
  FTRL_RULES(T, S, root, BY_ROOT)   \
  FTRL(ftrl, T, S, 3)               \
  FTRL(ftrl_v2, T, S, 4)

#define T_ float
#define SQRT __builtin_sqrtf
#define ABS __builtin_fabsf
#define POW powf
#define EXP expf
ANY_RULES(float, f32)
REAL_RULES(float, f32)
ALL_FTRL(float, f32)
#undef T_
#undef SQRT
#undef ABS
#undef POW
#undef EXP
#define T_ double
#define SQRT __builtin_sqrt
#define ABS __builtin_fabs
#define POW pow
#define EXP exp
ANY_RULES(double, f64)
REAL_RULES(double, f64)
ALL_FTRL(double, f64)
#undef SQRT
#define SQRT csqrtf
ANY_RULES(float _Complex, c64)
#undef SQRT
#define SQRT csqrt
ANY_RULES(double _Complex, c128)

const rn_rule_table_t RN_ISA_NAME(rn_rule_table_) = {
#define F32(name, variables) [RN_RULE_##name] = name##_f32,
#define F64(name, variables) [RN_RULE_##name] = name##_f64,
#define C64(name) [RN_RULE_##name] = name##_c64,
#define C128(name) [RN_RULE_##name] = name##_c128,
    .f32 = {RN_RULES(F32)},
    .f64 = {RN_RULES(F64)},
    .c64 = {RN_COMPLEX_RULES(C64)},
    .c128 = {RN_COMPLEX_RULES(C128)},
};
