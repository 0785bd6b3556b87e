// The update rules of optimizers for one element, on the device: those of
// kernels/cpu/isa/training.c.
//
// v has the element in each variable, the variable itself first; g is the gradient, h the op's
// numbers in the order of its arguments. 16-bit floats are computed in float and rounded once.
#ifndef RUNNEL_KERNELS_CUDA_TRAINING_RULES_CUH_
#define RUNNEL_KERNELS_CUDA_TRAINING_RULES_CUH_

#include "kernels/cpu/isa/training_flags.h"

#define RN_RULE(name, variables_, numbers_)                        \
  template <typename V>                                            \
  struct name {                                                    \
    enum { variables = variables_, numbers = numbers_ };           \
    static RN_DEVICE void apply(V* v, V g, const V* h, int flags); \
  };                                                               \
  template <typename V>                                            \
  RN_DEVICE void name<V>::apply(V* v, V g, const V* h, [[maybe_unused]] int flags)

template <typename V>
RN_DEVICE V rn_sign(V x) {
  return x != x ? x : V((x > 0) - (x < 0));
}

// alpha
RN_RULE(gradient_descent, 1, 1) { v[0] = v[0] - h[0] * g; }

// lr, momentum
RN_RULE(momentum, 2, 2) {
  v[1] = v[1] * h[1] + g;
  v[0] = v[0] - (flags & RN_RULE_NESTEROV ? g * h[0] + v[1] * h[1] * h[0] : v[1] * h[0]);
}
RN_RULE(keras_momentum, 2, 2) {
  v[1] = v[1] * h[1] - g * h[0];
  v[0] = v[0] + (flags & RN_RULE_NESTEROV ? v[1] * h[1] - g * h[0] : v[1]);
}

// beta1_power, beta2_power, lr, beta1, beta2, epsilon
RN_RULE(adam, 3, 6) {
  V alpha = h[2] * sqrt(V(1) - h[1]) / (V(1) - h[0]);
  v[1] = v[1] + (g - v[1]) * (V(1) - h[3]);
  v[2] = v[2] + (g * g - v[2]) * (V(1) - h[4]);
  V step = flags & RN_RULE_NESTEROV ? g * (V(1) - h[3]) + h[3] * v[1] : v[1];
  v[0] = v[0] - step * alpha / (sqrt(v[2]) + h[5]);
}
RN_RULE(adam_amsgrad, 4, 6) {
  V alpha = h[2] * sqrt(V(1) - h[1]) / (V(1) - h[0]);
  v[1] = v[1] + (g - v[1]) * (V(1) - h[3]);
  v[2] = v[2] + (g * g - v[2]) * (V(1) - h[4]);
  v[3] = v[3] < v[2] ? v[2] : v[3];
  v[0] = v[0] - v[1] * alpha / (sqrt(v[3]) + h[5]);
}

// beta1_power, lr, beta1, beta2, epsilon
RN_RULE(ada_max, 3, 5) {
  V alpha = h[1] / (1 - h[0]);
  v[1] = v[1] + (g - v[1]) * (1 - h[2]);
  v[2] = h[3] * v[2] < fabs(g) ? fabs(g) : h[3] * v[2];
  v[0] = v[0] - alpha * (v[1] / (v[2] + h[4]));
}

// lr
RN_RULE(adagrad, 2, 1) {
  if (flags & RN_RULE_UPDATE_SLOTS) v[1] = v[1] + g * g;
  v[0] = v[0] - g * h[0] * (V(1) / sqrt(v[1]));
}
// lr, epsilon
RN_RULE(adagrad_v2, 2, 2) {
  if (flags & RN_RULE_UPDATE_SLOTS) v[1] = v[1] + g * g;
  v[0] = v[0] - g * h[0] / (sqrt(v[1]) + h[1]);
}
// lr, l1, l2, global_step
RN_RULE(adagrad_da, 3, 4) {
  v[1] = v[1] + g;
  v[2] = v[2] + g * g;
  V size = h[1] > 0 ? fabs(v[1]) - h[1] * h[3] : fabs(v[1]);
  V top = h[1] > 0 ? -rn_sign(v[1]) * (size < 0 ? V(0) : size) : -v[1];
  v[0] = h[0] * top / (h[2] * h[3] * h[0] + sqrt(v[2]));
}

// lr, rho, epsilon
RN_RULE(adadelta, 3, 3) {
  v[1] = v[1] * h[1] + g * g * (V(1) - h[1]);
  V update = sqrt(v[2] + h[2]) * (V(1) / sqrt(v[1] + h[2])) * g;
  v[2] = v[2] * h[1] + update * update * (V(1) - h[1]);
  v[0] = v[0] - update * h[0];
}

// lr, rho, momentum, epsilon
RN_RULE(rms_prop, 3, 4) {
  v[1] = v[1] + (g * g - v[1]) * (V(1) - h[1]);
  v[2] = v[2] * h[2] + g * h[0] / sqrt(v[1] + h[3]);
  v[0] = v[0] - v[2];
}
RN_RULE(centered_rms_prop, 4, 4) {
  v[2] = v[2] + (g * g - v[2]) * (V(1) - h[1]);
  v[1] = v[1] + (g - v[1]) * (V(1) - h[1]);
  v[3] = v[3] * h[2] + g * h[0] / sqrt(v[2] - v[1] * v[1] + h[3]);
  v[0] = v[0] - v[3];
}

// |linear| beyond l1 moves the variable, otherwise it becomes zero. As in stock, the dense form
// turns NaN into zero and the sparse form does not.
template <typename V>
RN_DEVICE void rn_ftrl(V* v, V g, V pulled, V lr, V l1, V l2, V power, int flags) {
  V sum = v[1] + g * g, root = pow(sum, -power), sigma = root - pow(v[1], -power), quadratic;
  if (flags & RN_RULE_MULTIPLY_LINEAR) {
    v[2] = v[2] + (pulled * lr - sigma * v[0]);
    quadratic = root + 2 * l2 * lr;
    l1 = l1 * lr;
  } else {
    v[2] = v[2] + (pulled - sigma / lr * v[0]);
    quadratic = root / lr + 2 * l2;
  }
  V rest = (flags & RN_RULE_SPARSE) && v[2] != v[2] ? v[2] : V(0);
  v[0] = fabs(v[2]) > l1 ? (l1 * rn_sign(v[2]) - v[2]) / quadratic : rest;
  v[1] = sum;
}
// lr, l1, l2, lr_power
RN_RULE(ftrl, 3, 4) { rn_ftrl(v, g, g, h[0], h[1], h[2], h[3], flags); }
// lr, l1, l2, l2_shrinkage, lr_power
RN_RULE(ftrl_v2, 3, 5) { rn_ftrl(v, g, g + 2 * h[3] * v[0], h[0], h[1], h[2], h[4], flags); }

// lr, alpha, sign_decay, beta
RN_RULE(add_sign, 2, 4) {
  v[1] = v[1] * h[3] + g * (1 - h[3]);
  v[0] = v[0] - h[0] * (h[1] + h[2] * rn_sign(g) * rn_sign(v[1])) * g;
}
// lr, logbase, sign_decay, beta
RN_RULE(power_sign, 2, 4) {
  v[1] = v[1] * h[3] + g * (1 - h[3]);
  v[0] = v[0] - h[0] * exp(h[1] * h[2] * rn_sign(g) * rn_sign(v[1])) * g;
}

template <typename V>
RN_DEVICE V rn_proximal(V var, V g, V rate, V l1, V l2) {
  V moved = var - g * rate, size = fabs(moved) - rate * l1;
  return (l1 > 0 ? rn_sign(moved) * (size < 0 ? V(0) : size) : moved) / (1 + l2 * rate);
}
// alpha, l1, l2
RN_RULE(proximal_gradient_descent, 1, 3) { v[0] = rn_proximal(v[0], g, h[0], h[1], h[2]); }
// lr, l1, l2
RN_RULE(proximal_adagrad, 2, 3) {
  v[1] = v[1] + g * g;
  v[0] = rn_proximal(v[0], g, h[0] * (1 / sqrt(v[1])), h[1], h[2]);
}

#endif  // RUNNEL_KERNELS_CUDA_TRAINING_RULES_CUH_
