// What the files of the optimizers share.
#ifndef RUNNEL_TRAIN_OPTIMIZER_OPTIMIZER_H_
#define RUNNEL_TRAIN_OPTIMIZER_OPTIMIZER_H_

#include "base/arena.h"
#include "runnel/train.h"

// An option with a default value.
static inline float rn_number(rn_opt_float_t option, float standard) {
  return option.is_set ? option.value : standard;
}

// "ApplyX", "SparseApplyX", "ResourceApplyX" or "ResourceSparseApplyX" over |inputs|, with the
// optimizer's use_locking. Complete it with rn_step_finish.
void rn_step_begin(rn_update_t* update, const char* op, bool is_sparse, const rn_edge_t* inputs,
                   int count);
rn_node_t* rn_step_finish(rn_update_t* update);

// Collects the variables to train: those in |given| or, if it is NULL, all trainable ones.
// Allocates them, and space for one gradient per variable, in |arena|. Returns their number, or 0
// after setting the scope's error.
int rn_variables_to_train(rn_scope_t* scope, const rn_var_t* const* given, int given_count,
                          rn_arena_t* arena, const rn_var_t*** out_variables,
                          rn_gradient_t** out_gradients);

// Loss scaling around the gradients of one minimize.
typedef struct rn_scaling_t {
  rn_scope_t* scope;  // the client's
  rn_loss_scale_t options;
  rn_edge_t scale;
  const rn_var_t *current, *good_steps;  // of dynamic scaling
  rn_edge_t is_finite, gate_true, gate_false;
} rn_scaling_t;
// The loss to differentiate.
rn_edge_t rn_scaling_begin(rn_scaling_t* scaling, rn_scope_t* scope, rn_loss_scale_t options,
                           rn_edge_t loss);
// Divides the gradients by the scale. With dynamic scaling, the update runs only if all gradients
// are finite.
void rn_scaling_gradients(rn_scaling_t* scaling, rn_gradient_t* gradients, int count);
// The node that ends the update whether |step| ran or was skipped; it also updates the scale.
rn_node_t* rn_scaling_end(rn_scaling_t* scaling, rn_node_t* step);

#endif  // RUNNEL_TRAIN_OPTIMIZER_OPTIMIZER_H_
