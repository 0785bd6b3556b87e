// Compares gradients with central differences: implements rn_check_gradient.
#ifndef RUNNEL_TRAIN_CHECK_GRADIENT_H_
#define RUNNEL_TRAIN_CHECK_GRADIENT_H_

#include "base/env.h"
#include "runnel/gradients.h"
#include "tensor/tensor.h"

// See rn_check_gradient in runnel/gradients.h. |env| is the environment of the session that
// computes both.
bool rn_gradient_check(rn_scope_t* scope, const rn_edge_t* ys, int y_count, const rn_edge_t* xs,
                       const rn_tensor_t* const* values, int x_count,
                       const rn_check_options_t* options, const rn_env_t* env, double* out_error);

#endif  // RUNNEL_TRAIN_CHECK_GRADIENT_H_
