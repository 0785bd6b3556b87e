// Layers, cells, losses, metrics and samplers: functions of a scope.
//
//   rn_edge_t h = rn_dense(s, x, 128, .activation = rn_relu, .name = "hidden");
//   rn_edge_t logits = rn_dense(s, h, 10, .name = "out");
//   rn_edge_t loss = rn_sparse_softmax_cross_entropy(s, labels, logits);
//
// A layer opens a variable scope of its name (by default "dense", "dense_1" …) and gets its
// variables there, so that scopes that reuse variables (runnel/variables.h) share layers too. The
// scope keeps errors, and the message names the layer; after that every function accepts RN_NO_EDGE
// and NULL and does nothing.
#ifndef RUNNEL_NN_H_
#define RUNNEL_NN_H_

#include "runnel/variables.h"

#ifdef __cplusplus
extern "C" {
#endif

// Activations: functions that are applied to a layer's result. You can write your own.
typedef rn_edge_t (*rn_activation_t)(rn_scope_t* scope, rn_edge_t x);
RN_API rn_edge_t rn_relu(rn_scope_t* scope, rn_edge_t x);
RN_API rn_edge_t rn_relu6(rn_scope_t* scope, rn_edge_t x);
RN_API rn_edge_t rn_elu(rn_scope_t* scope, rn_edge_t x);
RN_API rn_edge_t rn_selu(rn_scope_t* scope, rn_edge_t x);
RN_API rn_edge_t rn_softplus(rn_scope_t* scope, rn_edge_t x);
RN_API rn_edge_t rn_sigmoid(rn_scope_t* scope, rn_edge_t x);
RN_API rn_edge_t rn_tanh(rn_scope_t* scope, rn_edge_t x);
RN_API rn_edge_t rn_softmax(rn_scope_t* scope, rn_edge_t x);

// Options that layers share.
typedef struct rn_layer_options_t {
  const char* name;
  rn_activation_t activation;  // NULL: none
  bool no_bias;
  rn_initializer_t kernel_initializer;  // default: the scope's, or Glorot's
  rn_initializer_t bias_initializer;    // default: zeros
  rn_regularizer_t kernel_regularizer;
  rn_regularizer_t bias_regularizer;
  // For convolutions and pools; 0 means 1.
  int width;  // of the window, if it is not square
  int strides[2];
  int dilation[2];
  const char* padding;      // "VALID" or "SAME"; NULL: "VALID"
  const char* data_format;  // "NHWC" or "NCHW"; NULL: "NHWC"
  int multiplier;           // depthwise: results per channel
  char unused_;             // last, for initializers in C++
} rn_layer_options_t;
#define RN_LAYER_(...) RN_OPTIONS_(rn_layer_options_t, __VA_ARGS__, .unused_ = 0)

// x · kernel + bias over the last axis: variables "kernel" and "bias".
RN_API rn_edge_t rn_dense_(rn_scope_t* scope, rn_edge_t x, int64_t units,
                           rn_layer_options_t options);
#define rn_dense(scope, x, ...) rn_dense_((scope), (x), RN_LAYER_(__VA_ARGS__))
RN_API rn_edge_t rn_conv2d_(rn_scope_t* scope, rn_edge_t x, int64_t filters, int size,
                            rn_layer_options_t options);
#define rn_conv2d(scope, x, filters, ...) \
  rn_conv2d_((scope), (x), (filters), RN_LAYER_(__VA_ARGS__))
// Convolves each channel separately: variables "depthwise_kernel" and "bias".
RN_API rn_edge_t rn_depthwise_conv2d_(rn_scope_t* scope, rn_edge_t x, int size,
                                      rn_layer_options_t options);
#define rn_depthwise_conv2d(scope, x, ...) \
  rn_depthwise_conv2d_((scope), (x), RN_LAYER_(__VA_ARGS__))
RN_API rn_edge_t rn_max_pool2d_(rn_scope_t* scope, rn_edge_t x, int size,
                                rn_layer_options_t options);
#define rn_max_pool2d(scope, x, ...) rn_max_pool2d_((scope), (x), RN_LAYER_(__VA_ARGS__))
RN_API rn_edge_t rn_average_pool2d_(rn_scope_t* scope, rn_edge_t x, int size,
                                    rn_layer_options_t options);
#define rn_average_pool2d(scope, x, ...) rn_average_pool2d_((scope), (x), RN_LAYER_(__VA_ARGS__))
// Reshapes [batch, …] to [batch, product of the rest].
RN_API rn_edge_t rn_flatten(rn_scope_t* scope, rn_edge_t x);

typedef struct rn_norm_options_t {
  const char* name;
  rn_edge_t training;       // batch norm: a bool; default: training
  bool inference;           // batch norm: not training
  rn_opt_float_t momentum;  // of the moving averages; default 0.99
  rn_opt_float_t epsilon;   // 0.001
  bool no_center, no_scale;
  char unused_;  // last, for initializers in C++
} rn_norm_options_t;
// Over all axes except the last: variables "gamma", "beta", "moving_mean", "moving_variance". The
// nodes that update the averages are collected as RN_UPDATE_OPS.
RN_API rn_edge_t rn_batch_norm_(rn_scope_t* scope, rn_edge_t x, rn_norm_options_t options);
#define rn_batch_norm(scope, ...) \
  rn_batch_norm_((scope), RN_OPTIONS_(rn_norm_options_t, __VA_ARGS__, .unused_ = 0))
// Over the last axis: variables "gamma" and "beta".
RN_API rn_edge_t rn_layer_norm_(rn_scope_t* scope, rn_edge_t x, rn_norm_options_t options);
#define rn_layer_norm(scope, ...) \
  rn_layer_norm_((scope), RN_OPTIONS_(rn_norm_options_t, __VA_ARGS__, .unused_ = 0))

typedef struct rn_dropout_options_t {
  rn_edge_t training;  // a bool; default: training
  int64_t seed;
  char unused_;  // last, for initializers in C++
} rn_dropout_options_t;
// Zeros with probability |rate|; the other elements are divided by 1 - rate.
RN_API rn_edge_t rn_dropout_(rn_scope_t* scope, rn_edge_t x, float rate,
                             rn_dropout_options_t options);
#define rn_dropout(scope, x, ...) \
  rn_dropout_((scope), (x), RN_OPTIONS_(rn_dropout_options_t, __VA_ARGS__, .unused_ = 0))

// Rows of a table "embeddings" [count, size].
RN_API rn_edge_t rn_embedding_(rn_scope_t* scope, rn_edge_t ids, int64_t count, int64_t size,
                               rn_layer_options_t options);
#define rn_embedding(scope, ids, count, ...) \
  rn_embedding_((scope), (ids), (count), RN_LAYER_(__VA_ARGS__))
// Rows of a partitioned table: row i is row i / parts of part i % parts, or, with |by_division|,
// the parts follow each other.
RN_API rn_edge_t rn_embedding_lookup(rn_scope_t* scope, const rn_var_t* const* parts,
                                     int part_count, rn_edge_t ids, bool by_division);
// Makes the parts "name/part_0" … of a table [rows, columns].
RN_API bool rn_partitioned_variable(rn_scope_t* scope, const char* name, int64_t rows,
                                    int64_t columns, rn_initializer_t initializer, int part_count,
                                    const rn_var_t** out_parts);

// Cells: one step of a recurrent network. They are plain values; for your own, set |step|.
#define RN_MAX_STATES 16
typedef struct rn_cell_t rn_cell_t;
struct rn_cell_t {
  // Builds the next states and returns the output. |scope| is the variable scope around the cell.
  rn_edge_t (*step)(rn_scope_t* scope, const rn_cell_t* self, rn_edge_t x, const rn_edge_t* states,
                    rn_edge_t* out_states);
  int64_t units;    // of the output
  int state_count;  // at most RN_MAX_STATES
  int64_t state_units[RN_MAX_STATES];
  const char* name;  // of its variable scope; NULL: that of its kind
  rn_activation_t activation;
  rn_opt_float_t forget_bias;  // LSTM: 1
  bool peepholes;         // LSTM: gates see the state, through "w_i_diag", "w_f_diag", "w_o_diag"
  int64_t projection;     // LSTM: > 0: width of the output, by "projection/kernel"
  float state_clip;       // LSTM: > 0: limit of c
  float projection_clip;  // LSTM: > 0: limit of the projection
  float drop_input, drop_output, drop_state;  // of rn_dropout_cell: rates
  rn_edge_t training;                         // of rn_dropout_cell: a bool; none: it trains
  int64_t seed;
  rn_initializer_t initializer;
  const rn_cell_t* inner;  // cells of a stack; borrowed
  int inner_count;
  const void* arg;
};
// State: h. Variables "basic_rnn_cell/kernel" and "bias".
RN_API rn_cell_t rn_rnn_cell_(rn_cell_t options);
// States: c, h. Variables "lstm_cell/kernel" and "bias", gates in the order i, j, f, o.
RN_API rn_cell_t rn_lstm_cell_(rn_cell_t options);
// State: h. Variables "gru_cell/gates/…" and "gru_cell/candidate/…".
RN_API rn_cell_t rn_gru_cell_(rn_cell_t options);
#define rn_rnn_cell(...) rn_rnn_cell_(RN_STRUCT_(rn_cell_t, .units = __VA_ARGS__))
#define rn_lstm_cell(...) rn_lstm_cell_(RN_STRUCT_(rn_cell_t, .units = __VA_ARGS__))
#define rn_gru_cell(...) rn_gru_cell_(RN_STRUCT_(rn_cell_t, .units = __VA_ARGS__))
// Stacked cells; |cells| is borrowed. The states are those of the first cell, then of the next …
RN_API rn_cell_t rn_stacked_cells(const rn_cell_t* cells, int count);
// |cell| with dropout on its inputs, outputs and states (for an LSTM only h); borrowed.
RN_API rn_cell_t rn_dropout_cell_(const rn_cell_t* cell, rn_cell_t options);
#define rn_dropout_cell(...) rn_dropout_cell_2_(__VA_ARGS__, .arg = NULL)
#define rn_dropout_cell_2_(cell, ...) rn_dropout_cell_((cell), RN_STRUCT_(rn_cell_t, __VA_ARGS__))
// |cell| with its input added to its output, which must have the same width; borrowed.
RN_API rn_cell_t rn_residual_cell(const rn_cell_t* cell);
// Zero states for |batch| rows, a scalar int32.
RN_API void rn_zero_states(rn_scope_t* scope, const rn_cell_t* cell, rn_edge_t batch, int dtype,
                           rn_edge_t* out_states);

typedef struct rn_rnn_options_t {
  const char* name;                 // NULL: "rnn"; "bidirectional_rnn"
  rn_edge_t lengths;                // per row: beyond it outputs are 0 and states stay
  const rn_edge_t* initial_states;  // NULL: zeros
  bool time_major;                  // [time, batch, …] instead of [batch, time, …]
  int parallel_iterations;          // 0: 32
  bool swap_memory;
  char unused_;  // last, for initializers in C++
} rn_rnn_options_t;
#define RN_RNN_(...) RN_OPTIONS_(rn_rnn_options_t, __VA_ARGS__, .unused_ = 0)
// Over |count| inputs [batch, depth], unrolled. |out_states| may be NULL.
RN_API bool rn_static_rnn_(rn_scope_t* scope, const rn_cell_t* cell, const rn_edge_t* inputs,
                           int count, rn_edge_t* out_outputs, rn_edge_t* out_states,
                           rn_rnn_options_t options);
#define rn_static_rnn(scope, cell, inputs, count, outputs, ...) \
  rn_static_rnn_((scope), (cell), (inputs), (count), (outputs), RN_RNN_(__VA_ARGS__))
// Over [batch, time, depth] by a while loop. Outputs [batch, time, units].
RN_API rn_edge_t rn_dynamic_rnn_(rn_scope_t* scope, const rn_cell_t* cell, rn_edge_t inputs,
                                 rn_edge_t* out_states, rn_rnn_options_t options);
#define rn_dynamic_rnn(scope, cell, inputs, ...) \
  rn_dynamic_rnn_((scope), (cell), (inputs), RN_RNN_(__VA_ARGS__))
// The same in both directions; the outputs of both are concatenated along the last axis.
// |out_states|: those of |forward|, then those of |backward|.
RN_API rn_edge_t rn_bidirectional_rnn_(rn_scope_t* scope, const rn_cell_t* forward,
                                       const rn_cell_t* backward, rn_edge_t inputs,
                                       rn_edge_t* out_states, rn_rnn_options_t options);
#define rn_bidirectional_rnn(scope, forward, backward, inputs, ...) \
  rn_bidirectional_rnn_((scope), (forward), (backward), (inputs), RN_RNN_(__VA_ARGS__))

// Attention.
typedef struct rn_attended_t {
  rn_edge_t context;  // the weighted sum of the memory
  rn_edge_t weights;  // which sum to one
} rn_attended_t;
typedef struct rn_attention_options_t {
  const char* name;
  rn_edge_t lengths;  // of each memory
  rn_edge_t mask;     // dot product: a bool; false is ignored
  bool scale;         // Luong: a learned factor "attention_g"
  char unused_;       // last, for initializers in C++
} rn_attention_options_t;
#define RN_ATTENTION_(...) RN_OPTIONS_(rn_attention_options_t, __VA_ARGS__, .unused_ = 0)
// softmax(q kᵀ / √depth) v, over the last two axes.
RN_API rn_attended_t rn_dot_product_attention_(rn_scope_t* scope, rn_edge_t q, rn_edge_t k,
                                               rn_edge_t v, rn_attention_options_t options);
#define rn_dot_product_attention(scope, q, k, ...) \
  rn_dot_product_attention_((scope), (q), (k), RN_ATTENTION_(__VA_ARGS__))
// Query [batch, depth], memory [batch, time, any depth].
RN_API rn_attended_t rn_luong_attention_(rn_scope_t* scope, rn_edge_t query, rn_edge_t memory,
                                         rn_attention_options_t options);
#define rn_luong_attention(scope, query, ...) \
  rn_luong_attention_((scope), (query), RN_ATTENTION_(__VA_ARGS__))
RN_API rn_attended_t rn_bahdanau_attention_(rn_scope_t* scope, rn_edge_t query, rn_edge_t memory,
                                            int64_t units, rn_attention_options_t options);
#define rn_bahdanau_attention(scope, query, memory, ...) \
  rn_bahdanau_attention_((scope), (query), (memory), RN_ATTENTION_(__VA_ARGS__))

// Losses. They are collected as RN_LOSSES.
typedef enum rn_reduction_t {
  RN_REDUCE_BY_NONZERO,  // the sum, divided by the number of weights that are not 0
  RN_REDUCE_NONE,        // one per element
  RN_REDUCE_SUM,
  RN_REDUCE_MEAN,      // divided by the sum of the weights
  RN_REDUCE_BY_COUNT,  // divided by the number of elements
} rn_reduction_t;
typedef struct rn_loss_options_t {
  const char* name;
  rn_edge_t weights;  // broadcast to the losses; none: 1
  rn_reduction_t reduction;
  float label_smoothing;   // softmax, sigmoid
  rn_opt_float_t delta;    // Huber: 1
  rn_opt_float_t epsilon;  // log: 1e-7
  int axis;                // cosine distance
  bool not_collected;
  char unused_;  // last, for initializers in C++
} rn_loss_options_t;
RN_API rn_edge_t rn_weighted_loss_(rn_scope_t* scope, rn_edge_t losses, rn_loss_options_t options);
#define RN_LOSS_(...) RN_OPTIONS_(rn_loss_options_t, __VA_ARGS__, .unused_ = 0)
#define rn_weighted_loss(scope, ...) rn_weighted_loss_((scope), RN_LOSS_(__VA_ARGS__))
#define RN_LOSSES_OF_TWO_(X) \
  X(mean_squared_error)      \
  X(absolute_difference)     \
  X(huber_loss)              \
  X(log_loss)                \
  X(cosine_distance)         \
  X(hinge_loss) X(softmax_cross_entropy) X(sigmoid_cross_entropy) X(sparse_softmax_cross_entropy)
// Losses of labels and predictions or logits.
#define RN_DECLARE_(name)                                                                   \
  RN_API rn_edge_t rn_##name##_(rn_scope_t* scope, rn_edge_t labels, rn_edge_t predictions, \
                                rn_loss_options_t options);
RN_LOSSES_OF_TWO_(RN_DECLARE_)
#undef RN_DECLARE_
#define rn_mean_squared_error(scope, labels, ...) \
  rn_mean_squared_error_((scope), (labels), RN_LOSS_(__VA_ARGS__))
#define rn_absolute_difference(scope, labels, ...) \
  rn_absolute_difference_((scope), (labels), RN_LOSS_(__VA_ARGS__))
#define rn_huber_loss(scope, labels, ...) rn_huber_loss_((scope), (labels), RN_LOSS_(__VA_ARGS__))
#define rn_log_loss(scope, labels, ...) rn_log_loss_((scope), (labels), RN_LOSS_(__VA_ARGS__))
#define rn_cosine_distance(scope, labels, ...) \
  rn_cosine_distance_((scope), (labels), RN_LOSS_(__VA_ARGS__))
#define rn_hinge_loss(scope, labels, ...) rn_hinge_loss_((scope), (labels), RN_LOSS_(__VA_ARGS__))
#define rn_softmax_cross_entropy(scope, labels, ...) \
  rn_softmax_cross_entropy_((scope), (labels), RN_LOSS_(__VA_ARGS__))
#define rn_sigmoid_cross_entropy(scope, labels, ...) \
  rn_sigmoid_cross_entropy_((scope), (labels), RN_LOSS_(__VA_ARGS__))
#define rn_sparse_softmax_cross_entropy(scope, labels, ...) \
  rn_sparse_softmax_cross_entropy_((scope), (labels), RN_LOSS_(__VA_ARGS__))
// The sum of everything in RN_LOSSES and RN_REGULARIZATION_LOSSES.
RN_API rn_edge_t rn_total_loss(rn_scope_t* scope);

// Metrics over many batches, with variables in RN_LOCAL_VARIABLES and RN_METRIC_VARIABLES. |update|
// adds a batch and returns the new value; |value| is that of all batches so far.
typedef struct rn_metric_t {
  rn_edge_t value, update;
} rn_metric_t;
typedef struct rn_metric_options_t {
  const char* name;
  rn_edge_t weights;
  int thresholds;         // area under a curve: 0 is 200
  bool precision_recall;  // area under that curve instead of the ROC curve
  int axis;               // mean_cosine_distance: the axis of the vectors
  int classes;            // mean_iou, mean_per_class_accuracy: number of classes
  rn_edge_t normalizer;   // mean_relative_error: divides the errors
  char unused_;           // last, for initializers in C++
} rn_metric_options_t;
#define RN_METRIC_(...) RN_OPTIONS_(rn_metric_options_t, __VA_ARGS__, .unused_ = 0)
RN_API rn_metric_t rn_metric_mean_(rn_scope_t* scope, rn_edge_t values,
                                   rn_metric_options_t options);
#define rn_metric_mean(scope, ...) rn_metric_mean_((scope), RN_METRIC_(__VA_ARGS__))
// The fraction of values below |threshold|.
RN_API rn_metric_t rn_metric_percentage_below_(rn_scope_t* scope, rn_edge_t values, float threshold,
                                               rn_metric_options_t options);
#define rn_metric_percentage_below(scope, values, ...) \
  rn_metric_percentage_below_((scope), (values), RN_METRIC_(__VA_ARGS__))
#define RN_METRICS_OF_TWO_(X) \
  X(accuracy)                 \
  X(mean_squared_error)       \
  X(root_mean_squared_error)  \
  X(mean_absolute_error)      \
  X(true_positives)           \
  X(false_positives)          \
  X(true_negatives)           \
  X(false_negatives)          \
  X(precision)                \
  X(recall)                   \
  X(auc) X(mean_relative_error) X(mean_cosine_distance) X(mean_per_class_accuracy) X(mean_iou)
// Metrics of labels and predictions.
#define RN_DECLARE_(name)                                                     \
  RN_API rn_metric_t rn_metric_##name##_(rn_scope_t* scope, rn_edge_t labels, \
                                         rn_edge_t predictions, rn_metric_options_t options);
RN_METRICS_OF_TWO_(RN_DECLARE_)
#undef RN_DECLARE_
#define rn_metric_accuracy(scope, labels, ...) \
  rn_metric_accuracy_((scope), (labels), RN_METRIC_(__VA_ARGS__))
#define rn_metric_mean_squared_error(scope, labels, ...) \
  rn_metric_mean_squared_error_((scope), (labels), RN_METRIC_(__VA_ARGS__))
#define rn_metric_root_mean_squared_error(scope, labels, ...) \
  rn_metric_root_mean_squared_error_((scope), (labels), RN_METRIC_(__VA_ARGS__))
#define rn_metric_mean_absolute_error(scope, labels, ...) \
  rn_metric_mean_absolute_error_((scope), (labels), RN_METRIC_(__VA_ARGS__))
#define rn_metric_true_positives(scope, labels, ...) \
  rn_metric_true_positives_((scope), (labels), RN_METRIC_(__VA_ARGS__))
#define rn_metric_false_positives(scope, labels, ...) \
  rn_metric_false_positives_((scope), (labels), RN_METRIC_(__VA_ARGS__))
#define rn_metric_true_negatives(scope, labels, ...) \
  rn_metric_true_negatives_((scope), (labels), RN_METRIC_(__VA_ARGS__))
#define rn_metric_false_negatives(scope, labels, ...) \
  rn_metric_false_negatives_((scope), (labels), RN_METRIC_(__VA_ARGS__))
#define rn_metric_precision(scope, labels, ...) \
  rn_metric_precision_((scope), (labels), RN_METRIC_(__VA_ARGS__))
#define rn_metric_recall(scope, labels, ...) \
  rn_metric_recall_((scope), (labels), RN_METRIC_(__VA_ARGS__))
#define rn_metric_auc(scope, labels, ...) rn_metric_auc_((scope), (labels), RN_METRIC_(__VA_ARGS__))
#define rn_metric_mean_relative_error(scope, labels, ...) \
  rn_metric_mean_relative_error_((scope), (labels), RN_METRIC_(__VA_ARGS__))
#define rn_metric_mean_cosine_distance(scope, labels, ...) \
  rn_metric_mean_cosine_distance_((scope), (labels), RN_METRIC_(__VA_ARGS__))
#define rn_metric_mean_per_class_accuracy(scope, labels, ...) \
  rn_metric_mean_per_class_accuracy_((scope), (labels), RN_METRIC_(__VA_ARGS__))
#define rn_metric_mean_iou(scope, labels, ...) \
  rn_metric_mean_iou_((scope), (labels), RN_METRIC_(__VA_ARGS__))

// Candidate samplers.
typedef enum rn_sampler_t {
  RN_SAMPLE_LOG_UNIFORM,
  RN_SAMPLE_UNIFORM,
  RN_SAMPLE_LEARNED_UNIGRAM,
  RN_SAMPLE_FIXED_UNIGRAM,
} rn_sampler_t;
typedef struct rn_sampled_t {
  rn_edge_t candidates;        // int64, [count]
  rn_edge_t true_expected;     // like the true classes
  rn_edge_t sampled_expected;  // [count]
} rn_sampled_t;
typedef struct rn_sample_options_t {
  rn_sampler_t sampler;
  bool repeated;           // a class may occur twice
  int64_t seed;            // 0: random
  const char* vocabulary;  // fixed unigram: a file, or:
  const float* unigrams;   // one count per class
  int unigram_count;
  float distortion;  // fixed unigram; 0: 1
  // Losses:
  const rn_sampled_t* sampled;  // already drawn
  int true_count;               // classes per row; 0: 1
  bool keep_accidental_hits;    // sampled softmax: keep samples that are true classes
  bool remove_accidental_hits;  // NCE: remove those
  bool by_division;             // how the weights are partitioned
  const char* name;
  char unused_;  // last, for initializers in C++
} rn_sample_options_t;
#define RN_SAMPLE_(...) RN_OPTIONS_(rn_sample_options_t, __VA_ARGS__, .unused_ = 0)
// Draws |count| classes of 0 … |classes| - 1, besides |true_classes| (int64, [batch, true_count]).
RN_API rn_sampled_t rn_sample_candidates_(rn_scope_t* scope, rn_edge_t true_classes, int count,
                                          int64_t classes, rn_sample_options_t options);
#define rn_sample_candidates(scope, true_classes, count, ...) \
  rn_sample_candidates_((scope), (true_classes), (count), RN_SAMPLE_(__VA_ARGS__))

// A layer with |classes| outputs whose weights [classes, depth] are partitioned.
typedef struct rn_class_weights_t {
  const rn_var_t* const* weights;
  int part_count;
  const rn_var_t* biases;  // [classes]
  int64_t classes;
} rn_class_weights_t;
// One loss per row of |inputs| [batch, depth]; labels [batch, true_count].
RN_API rn_edge_t rn_sampled_softmax_loss_(rn_scope_t* scope, const rn_class_weights_t* layer,
                                          rn_edge_t labels, rn_edge_t inputs, int sample_count,
                                          rn_sample_options_t options);
#define rn_sampled_softmax_loss(scope, layer, labels, inputs, ...) \
  rn_sampled_softmax_loss_((scope), (layer), (labels), (inputs), RN_SAMPLE_(__VA_ARGS__))
RN_API rn_edge_t rn_nce_loss_(rn_scope_t* scope, const rn_class_weights_t* layer, rn_edge_t labels,
                              rn_edge_t inputs, int sample_count, rn_sample_options_t options);
#define rn_nce_loss(scope, layer, labels, inputs, ...) \
  rn_nce_loss_((scope), (layer), (labels), (inputs), RN_SAMPLE_(__VA_ARGS__))

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // RUNNEL_NN_H_
