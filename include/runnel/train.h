// Training: optimizers, learning-rate schedules, clipping, moving averages, loss scaling.
//
//   const rn_var_t* step = rn_global_step(s);
//   rn_edge_t rate = rn_exponential_decay(s, 0.1f, step->value, 1000, 0.96f);
//   rn_node_t* train = rn_minimize(s, rn_momentum(.rate = rate, .momentum = 0.9f), loss,
//                                  .global_step = step, .clip = {RN_CLIP_GLOBAL_NORM, 5});
//
// All functions add nodes to the scope's graph; the scope keeps the first error, as with builders.
// Variables that optimizers keep ("slots") have the names of TensorFlow's tf.compat.v1.train, so
// that checkpoints agree.
#ifndef RUNNEL_TRAIN_H_
#define RUNNEL_TRAIN_H_

#include "runnel/gradients.h"
#include "runnel/variables.h"

#ifdef __cplusplus
extern "C" {
#endif

// Clipping. Norms are Euclidean.
typedef enum rn_clip_kind_t {
  RN_CLIP_NOTHING,
  RN_CLIP_VALUE,         // each element, to -limit … limit
  RN_CLIP_NORM,          // each gradient, to a norm of at most limit
  RN_CLIP_AVERAGE_NORM,  // each gradient, by its norm divided by its element count
  RN_CLIP_GLOBAL_NORM,   // all gradients together
} rn_clip_kind_t;
typedef struct rn_clip_t {
  rn_clip_kind_t kind;
  float limit;
} rn_clip_t;

// Clips each element of |x| to the range from |min| to |max|.
RN_API rn_edge_t rn_clip_by_value(rn_scope_t* scope, rn_edge_t x, rn_edge_t min, rn_edge_t max);
// Scales |x| down so that its norm is at most |limit|.
RN_API rn_edge_t rn_clip_by_norm(rn_scope_t* scope, rn_edge_t x, rn_edge_t limit);
// The same, with the norm divided by the number of elements.
RN_API rn_edge_t rn_clip_by_average_norm(rn_scope_t* scope, rn_edge_t x, rn_edge_t limit);
// The norm of all gradients as one vector; for slices, the norm of their values.
RN_API rn_edge_t rn_global_norm(rn_scope_t* scope, const rn_gradient_t* gradients, int count);
// Replaces the gradients (the values of slices) by clipped ones.
RN_API void rn_clip_gradients(rn_scope_t* scope, rn_clip_t clip, rn_gradient_t* gradients,
                              int count);

// Optimizers: plain values.
//
// Parameters that are left out have TensorFlow's defaults. Set a parameter whose default is not
// zero, except the learning rate, with RN_SET(value). An optimizer ignores parameters that it does
// not use.
typedef struct rn_optimizer_rule_t rn_optimizer_rule_t;
typedef struct rn_optimizer_t {
  const rn_optimizer_rule_t* rule;
  const char* name;             // NULL: that of the rule; slots are named "variable/name"
  float learning_rate;          // or:
  rn_edge_t rate;               // a scalar
  float momentum;               // Momentum, RMSProp
  rn_opt_float_t beta1, beta2;  // Adam: 0.9, 0.999
  rn_opt_float_t epsilon;       // Adam, Adadelta: 1e-8; RMSProp: 1e-10
  rn_opt_float_t rho;           // Adadelta: 0.95; RMSProp: 0.9
  rn_opt_float_t accumulator;   // Adagrad, AdagradDA, Ftrl, ProximalAdagrad: starts with 0.1
  rn_opt_float_t power;         // Ftrl: -0.5
  float l1, l2;                 // AdagradDA, Ftrl, Proximal…
  float l2_shrinkage;           // Ftrl
  float weight_decay;           // Adam: AdamW's, times the learning rate
  bool nesterov;                // Momentum, Adam
  bool centered;                // RMSProp
  bool amsgrad;                 // Adam
  bool use_locking;
  const rn_var_t* step;  // AdagradDA: the global step
  const void* arg;       // for your own rule
} rn_optimizer_t;

// The optimizers. Call the macros below with the options by name: rn_adam(.learning_rate = 0.01f).
RN_API rn_optimizer_t rn_gradient_descent_(rn_optimizer_t options);
RN_API rn_optimizer_t rn_momentum_(rn_optimizer_t options);
RN_API rn_optimizer_t rn_adagrad_(rn_optimizer_t options);
RN_API rn_optimizer_t rn_adagrad_da_(rn_optimizer_t options);
RN_API rn_optimizer_t rn_adadelta_(rn_optimizer_t options);
RN_API rn_optimizer_t rn_adam_(rn_optimizer_t options);
RN_API rn_optimizer_t rn_rmsprop_(rn_optimizer_t options);
RN_API rn_optimizer_t rn_ftrl_(rn_optimizer_t options);
RN_API rn_optimizer_t rn_proximal_gradient_descent_(rn_optimizer_t options);
RN_API rn_optimizer_t rn_proximal_adagrad_(rn_optimizer_t options);
#define RN_OPTIMIZER_(...) RN_STRUCT_(rn_optimizer_t, .rule = NULL, __VA_ARGS__)
#define rn_gradient_descent(...) rn_gradient_descent_(RN_OPTIMIZER_(__VA_ARGS__))
#define rn_momentum(...) rn_momentum_(RN_OPTIMIZER_(__VA_ARGS__))
#define rn_adagrad(...) rn_adagrad_(RN_OPTIMIZER_(__VA_ARGS__))
#define rn_adagrad_da(...) rn_adagrad_da_(RN_OPTIMIZER_(__VA_ARGS__))
#define rn_adadelta(...) rn_adadelta_(RN_OPTIMIZER_(__VA_ARGS__))
#define rn_adam(...) rn_adam_(RN_OPTIMIZER_(__VA_ARGS__))
#define rn_rmsprop(...) rn_rmsprop_(RN_OPTIMIZER_(__VA_ARGS__))
#define rn_ftrl(...) rn_ftrl_(RN_OPTIMIZER_(__VA_ARGS__))
#define rn_proximal_gradient_descent(...) rn_proximal_gradient_descent_(RN_OPTIMIZER_(__VA_ARGS__))
#define rn_proximal_adagrad(...) rn_proximal_adagrad_(RN_OPTIMIZER_(__VA_ARGS__))

// A rule says how a variable changes with its gradient (doc/adding_an_optimizer.md).
#define RN_MAX_SLOTS 4
typedef struct rn_update_t {
  rn_scope_t* scope;
  const rn_optimizer_t* optimizer;
  const rn_var_t* variable;
  const rn_var_t* slots[RN_MAX_SLOTS];   // of the variable
  const rn_var_t* shared[RN_MAX_SLOTS];  // of the optimizer, float
  rn_edge_t rate;                        // the learning rate, in the variable's type
} rn_update_t;

struct rn_optimizer_rule_t {
  const char* name;
  float learning_rate;  // default; 0: the caller must give one
  // The number of slots per variable, which have its shape, and their initial values; NULL: none.
  int (*slots)(const rn_optimizer_t* optimizer, float starts[RN_MAX_SLOTS]);
  // The same for variables that the optimizer has once, with their names; NULL: none.
  int (*shared)(const rn_optimizer_t* optimizer, const char* names[RN_MAX_SLOTS],
                float starts[RN_MAX_SLOTS]);
  // Builds the node that updates the variable with a dense gradient.
  rn_node_t* (*dense)(rn_update_t* update, rn_edge_t gradient);
  // The same with slices; NULL: slices are converted to dense. The indices differ from each other
  // unless |takes_repeated|.
  rn_node_t* (*sparse)(rn_update_t* update, rn_edge_t values, rn_edge_t indices);
  bool takes_repeated;
  // Called after |updated|, the node that has updated all variables; |update| has no variable. May
  // be NULL.
  rn_node_t* (*finish)(rn_update_t* update, rn_node_t* updated);
};
// |value| as a scalar of the variable's type.
RN_API rn_edge_t rn_update_number(const rn_update_t* update, float value);

// Loss scaling keeps small gradients in half precision from vanishing: the loss is multiplied by
// the scale, and the gradients are divided by it.
typedef struct rn_loss_scale_t {
  float scale;       // 0: none; the first one if dynamic
  bool is_dynamic;   // halve it and skip the step if a gradient is not finite
  int64_t period;    // successful steps before it grows; 0: 2000
  float multiplier;  // 0: 2
} rn_loss_scale_t;

typedef struct rn_minimize_options_t {
  const rn_var_t* global_step;       // counts the steps
  const rn_var_t* const* variables;  // NULL: all trainable ones
  int variable_count;
  rn_clip_t clip;
  rn_loss_scale_t loss_scale;
  rn_gate_t gate;
  bool colocate;
  const char* name;  // of the node; NULL: the optimizer's
  char unused_;      // last, for initializers in C++
} rn_minimize_options_t;
// The node that runs one training step: gradients of |loss|, clipped and applied.
RN_API rn_node_t* rn_minimize_(rn_scope_t* scope, rn_optimizer_t optimizer, rn_edge_t loss,
                               rn_minimize_options_t options);
#define rn_minimize(scope, optimizer, ...) \
  rn_minimize_((scope), (optimizer), RN_OPTIONS_(rn_minimize_options_t, __VA_ARGS__, .unused_ = 0))

// The two halves of rn_minimize. Gradients of |loss| with respect to |count| variables; none for
// those that it does not depend on.
RN_API bool rn_compute_gradients(rn_scope_t* scope, rn_edge_t loss,
                                 const rn_var_t* const* variables, int count,
                                 const rn_gradient_options_t* options, rn_gradient_t* out);
// Applies gradients and skips those that are none. |global_step| may be NULL.
RN_API rn_node_t* rn_apply_gradients(rn_scope_t* scope, rn_optimizer_t optimizer,
                                     const rn_gradient_t* gradients,
                                     const rn_var_t* const* variables, int count,
                                     const rn_var_t* global_step, const char* name);
// Slot |i| of |variable| in an optimizer called |name|; NULL if there is none.
RN_API const rn_var_t* rn_slot(rn_scope_t* scope, const rn_var_t* variable, const char* name,
                               int i);

// Learning rates that depend on |step|, a scalar of any number type. The results are floats.
typedef struct rn_decay_options_t {
  bool staircase;        // exponential, natural exponential, inverse time: in whole periods
  rn_opt_float_t end;    // polynomial: 0.0001
  rn_opt_float_t power;  // polynomial: 1
  bool cycle;            // polynomial: starts again at the end
  float alpha;           // cosine: the minimum, as a fraction of the rate; linear cosine: its alpha
  rn_opt_float_t beta;   // linear cosine: 0.001
  rn_opt_float_t periods;   // linear cosine: 0.5
  rn_opt_float_t time;      // restarts: factor of the period, 2
  rn_opt_float_t height;    // restarts: factor of the initial rate, 1
  rn_opt_float_t variance;  // noisy: 1
  rn_opt_float_t calming;   // noisy: how fast the variance falls, 0.55
  int64_t seed;             // noisy
  char unused_;             // last, for initializers in C++
} rn_decay_options_t;
RN_API rn_edge_t rn_exponential_decay_(rn_scope_t* scope, float rate, rn_edge_t step, float steps,
                                       float factor, rn_decay_options_t options);
RN_API rn_edge_t rn_natural_exp_decay_(rn_scope_t* scope, float rate, rn_edge_t step, float steps,
                                       float factor, rn_decay_options_t options);
RN_API rn_edge_t rn_inverse_time_decay_(rn_scope_t* scope, float rate, rn_edge_t step, float steps,
                                        float factor, rn_decay_options_t options);
RN_API rn_edge_t rn_polynomial_decay_(rn_scope_t* scope, float rate, rn_edge_t step, float steps,
                                      rn_decay_options_t options);
RN_API rn_edge_t rn_cosine_decay_(rn_scope_t* scope, float rate, rn_edge_t step, float steps,
                                  rn_decay_options_t options);
RN_API rn_edge_t rn_cosine_decay_restarts_(rn_scope_t* scope, float rate, rn_edge_t step,
                                           float steps, rn_decay_options_t options);
RN_API rn_edge_t rn_linear_cosine_decay_(rn_scope_t* scope, float rate, rn_edge_t step, float steps,
                                         rn_decay_options_t options);
RN_API rn_edge_t rn_noisy_linear_cosine_decay_(rn_scope_t* scope, float rate, rn_edge_t step,
                                               float steps, rn_decay_options_t options);
// |rates[i]| up to and including |boundaries[i]|, then |rates[count]|.
RN_API rn_edge_t rn_piecewise_constant(rn_scope_t* scope, rn_edge_t step, const int64_t* boundaries,
                                       const float* rates, int count);
#define RN_DECAY_(...) RN_OPTIONS_(rn_decay_options_t, __VA_ARGS__, .unused_ = 0)
#define rn_exponential_decay(scope, rate, step, steps, ...) \
  rn_exponential_decay_((scope), (rate), (step), (steps), RN_DECAY_(__VA_ARGS__))
#define rn_natural_exp_decay(scope, rate, step, steps, ...) \
  rn_natural_exp_decay_((scope), (rate), (step), (steps), RN_DECAY_(__VA_ARGS__))
#define rn_inverse_time_decay(scope, rate, step, steps, ...) \
  rn_inverse_time_decay_((scope), (rate), (step), (steps), RN_DECAY_(__VA_ARGS__))
#define rn_polynomial_decay(scope, rate, step, ...) \
  rn_polynomial_decay_((scope), (rate), (step), RN_DECAY_(__VA_ARGS__))
#define rn_cosine_decay(scope, rate, step, ...) \
  rn_cosine_decay_((scope), (rate), (step), RN_DECAY_(__VA_ARGS__))
#define rn_cosine_decay_restarts(scope, rate, step, ...) \
  rn_cosine_decay_restarts_((scope), (rate), (step), RN_DECAY_(__VA_ARGS__))
#define rn_linear_cosine_decay(scope, rate, step, ...) \
  rn_linear_cosine_decay_((scope), (rate), (step), RN_DECAY_(__VA_ARGS__))
#define rn_noisy_linear_cosine_decay(scope, rate, step, ...) \
  rn_noisy_linear_cosine_decay_((scope), (rate), (step), RN_DECAY_(__VA_ARGS__))

// Moving averages.
//
// variable -= (variable - value) · (1 - decay). With |zero_debias|, corrects the average of a
// variable that began with zeros; the two variables for this are called "variable/biased" and
// "variable/local_step".
RN_API rn_node_t* rn_assign_moving_average(rn_scope_t* scope, const rn_var_t* variable,
                                           rn_edge_t value, rn_edge_t decay, bool zero_debias);
typedef struct rn_average_options_t {
  rn_edge_t num_updates;  // the decay is at most (1 + num_updates) / (10 + num_updates)
  const char* name;       // NULL: "ExponentialMovingAverage"
  char unused_;           // last, for initializers in C++
} rn_average_options_t;
// Keeps an average "variable/ExponentialMovingAverage" of each variable, with the variable's
// initial value. Returns the node that updates them. |variables| NULL: all trainable ones.
RN_API rn_node_t* rn_average_variables_(rn_scope_t* scope, const rn_var_t* const* variables,
                                        int count, float decay, rn_average_options_t options);
#define rn_average_variables(scope, variables, count, ...) \
  rn_average_variables_((scope), (variables), (count),     \
                        RN_OPTIONS_(rn_average_options_t, __VA_ARGS__, .unused_ = 0))
// The average of |variable|; |name| as above. NULL if there is none.
RN_API const rn_var_t* rn_average_of(rn_scope_t* scope, const rn_var_t* variable, const char* name);

// Finds NaN and infinity: a node that fails the step if any value that |ys| depend on is NaN or
// infinite. The message names the first one in the graph: "hidden/MatMul:0 : Tensor had NaN
// values". It checks the results of conditionals and loops, but not values inside them. NULL if
// there is nothing to check.
RN_API rn_node_t* rn_add_check_numerics(rn_scope_t* scope, const rn_edge_t* ys, int count);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // RUNNEL_TRAIN_H_
