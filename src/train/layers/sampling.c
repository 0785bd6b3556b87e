// Candidate samplers, and the losses that look at a few classes of many.
#include "train/layers/layer.h"

// The inputs and attributes that all sampler ops share: the true classes and the sizes.
static void begin(rn_scope_t* s, const char* op, rn_edge_t classes, int count,
                  const rn_sample_options_t* options) {
  rn_op_begin(s, op);
  rn_op_input(s, classes);
  rn_op_attr_int(s, "num_true", options->true_count ? options->true_count : 1);
  rn_op_attr_int(s, "num_sampled", count);
  rn_op_attr_bool(s, "unique", !options->repeated);
  rn_op_attr_int(s, "seed", rn_graph_seed(options->seed));
  rn_op_attr_int(s, "seed2", options->seed);
}

static void fixed_unigram(rn_scope_t* s, const rn_sample_options_t* options) {
  if (options->vocabulary) rn_op_attr_string(s, "vocab_file", options->vocabulary);
  rn_op_attr_float(s, "distortion", options->distortion != 0 ? options->distortion : 1);
  if (options->unigrams)
    rn_op_attr_float_list(s, "unigrams", options->unigrams, options->unigram_count);
}

RN_API rn_sampled_t rn_sample_candidates_(rn_scope_t* scope, rn_edge_t true_classes, int count,
                                          int64_t classes, rn_sample_options_t options) {
  static const char* const ops[] = {"LogUniformCandidateSampler", "UniformCandidateSampler",
                                    "LearnedUnigramCandidateSampler",
                                    "FixedUnigramCandidateSampler"};
  rn_sampled_t none = {0};
  if (!rn_is_edge(scope, true_classes, "sample_candidates", "the list of true classes"))
    return none;
  if (options.sampler < 0 || options.sampler > RN_SAMPLE_FIXED_UNIGRAM || count <= 0) {
    rn_refuse(scope, "sample_candidates: bad sampler %d or number of classes %d", options.sampler,
              count);
    return none;
  }
  rn_edge_t ids = rn_as(scope, true_classes, RN_INT64);
  begin(scope, ops[options.sampler], ids, count, &options);
  rn_op_attr_int(scope, "range_max", classes);
  if (options.sampler == RN_SAMPLE_FIXED_UNIGRAM) fixed_unigram(scope, &options);
  rn_node_t* node = rn_op_finish(scope);
  return node ? (rn_sampled_t){{node, 0}, {node, 1}, {node, 2}} : none;
}

// Logits of the true classes and of the sampled ones, side by side, with labels for them.
typedef struct logits_t {
  rn_edge_t logits, labels;
} logits_t;

typedef struct sampling_work_t {
  rn_scope_t* s;
  const rn_class_weights_t* layer;
  rn_edge_t labels, inputs;
  int true_count, count;
  rn_sampled_t sampled;
  bool remove_hits;
} sampling_work_t;

// The rows of |edge| for the true classes, or the rows after them.
static rn_edge_t part(sampling_work_t* w, rn_edge_t edge, rn_edge_t true_rows, bool is_behind) {
  rn_edge_t zero = rn_axis(w->s, 0), one = rn_axis(w->s, 1);
  return is_behind ? rn_StridedSlice(w->s, edge, true_rows, zero, one, .end_mask = 1)
                   : rn_StridedSlice(w->s, edge, zero, true_rows, one);
}

// A sampled class that is also a true class gets so small a logit that it does not count.
static rn_edge_t without_hits(sampling_work_t* w, rn_edge_t logits) {
  rn_scope_t* s = w->s;
  rn_op_begin(s, "ComputeAccidentalHits");
  rn_op_input(s, w->labels);
  rn_op_input(s, w->sampled.candidates);
  rn_op_attr_int(s, "num_true", w->true_count);
  rn_node_t* hits = rn_op_finish(s);
  rn_edge_t rows = {hits, 0}, ids = {hits, 1}, weights = {hits, 2};
  rn_edge_t column = rn_const_int32(s, 1);
  rn_edge_t pair[2] = {rn_ExpandDims(s, rows, column),
                       rn_ExpandDims(s, rn_Cast(s, ids, RN_INT32), column)};
  rn_edge_t places = rn_ConcatV2(s, pair, 2, column);
  rn_edge_t shape = rn_Shape(s, logits);
  rn_edge_t zero = rn_like(s, logits, 0);
  rn_edge_t dense = rn_SparseToDense(s, places, shape, rn_as(s, weights, rn_edge_dtype(logits)),
                                     zero, .validate_indices = RN_SET(false));
  return rn_AddV2(s, logits, dense);
}

static logits_t logits_of(sampling_work_t* w, bool by_division) {
  rn_scope_t* s = w->s;
  rn_edge_t zero = rn_const_int32(s, 0), one = rn_const_int32(s, 1);
  rn_edge_t flat = rn_reshape(s, w->labels, (const int64_t[]){-1}, 1);
  rn_edge_t both[2] = {flat, rn_StopGradient(s, w->sampled.candidates)};
  rn_edge_t ids = rn_ConcatV2(s, both, 2, zero);
  rn_edge_t true_rows = rn_Shape(s, flat);
  rn_edge_t rows =
      rn_embedding_lookup(s, w->layer->weights, w->layer->part_count, ids, by_division);
  rn_edge_t biases = rn_var_gather(s, w->layer->biases, ids);
  // True logits: the input of a row times each of its classes' weights.
  int64_t depth = rn_dim_of_edge(w->inputs, 1);
  rn_edge_t of_true = rn_reshape(s, part(w, rows, true_rows, false),
                                 (const int64_t[]){-1, w->true_count, depth}, 3);
  rn_edge_t products = rn_Mul(s, rn_ExpandDims(s, w->inputs, one), of_true);
  rn_edge_t true_logits = rn_Sum(s, products, rn_axis(s, 2));
  rn_edge_t true_biases =
      rn_reshape(s, part(w, biases, true_rows, false), (const int64_t[]){-1, w->true_count}, 2);
  true_logits = rn_AddV2(s, true_logits, true_biases);
  rn_edge_t others = rn_MatMul(s, w->inputs, part(w, rows, true_rows, true), .transpose_b = true);
  others = rn_AddV2(s, others, part(w, biases, true_rows, true));
  if (w->remove_hits) others = without_hits(w, others);
  // Subtracts the log of the expected count: frequent samples weigh less.
  true_logits = rn_Sub(s, true_logits, rn_Log(s, rn_StopGradient(s, w->sampled.true_expected)));
  others = rn_Sub(s, others, rn_Log(s, rn_StopGradient(s, w->sampled.sampled_expected)));
  rn_edge_t sides[2] = {true_logits, others};
  rn_edge_t shares = rn_RealDiv(s, rn_OnesLike(s, true_logits), rn_like(s, others, w->true_count));
  rn_edge_t truths[2] = {shares, rn_ZerosLike(s, others)};
  return (logits_t){rn_ConcatV2(s, sides, 2, one), rn_ConcatV2(s, truths, 2, one)};
}

// Checks the arguments of the losses and draws the candidates.
static bool prepare(sampling_work_t* w, rn_scope_t* scope, const char* name,
                    const rn_class_weights_t* layer, rn_edge_t labels, rn_edge_t inputs, int count,
                    const rn_sample_options_t* options) {
  const char* who = options->name ? options->name : name;
  if (!rn_is_edge(scope, labels, who, "the labels") ||
      !rn_is_edge(scope, inputs, who, "the inputs"))
    return false;
  if (!layer || !layer->weights || layer->part_count <= 0 || !layer->biases) {
    rn_refuse(scope, "%s: weights or biases are missing", who);
    return false;
  }
  if (rn_dim_of_edge(inputs, 1) <= 0) {
    rn_refuse(scope, "%s: the depth of the inputs must be known", who);
    return false;
  }
  w->s = rn_scope_child(scope, who);
  w->layer = layer;
  w->inputs = inputs;
  w->true_count = options->true_count ? options->true_count : 1;
  w->count = count;
  rn_edge_t ids = rn_as(w->s, labels, RN_INT64);
  if (rn_shape_of_edge(ids).rank == 1) ids = rn_ExpandDims(w->s, ids, rn_const_int32(w->s, 1));
  w->labels = ids;
  w->sampled = options->sampled ? *options->sampled
                                : rn_sample_candidates_(w->s, ids, count, layer->classes, *options);
  return rn_scope_ok(scope);
}

RN_API rn_edge_t rn_sampled_softmax_loss_(rn_scope_t* scope, const rn_class_weights_t* layer,
                                          rn_edge_t labels, rn_edge_t inputs, int sample_count,
                                          rn_sample_options_t options) {
  sampling_work_t w = {.remove_hits = !options.keep_accidental_hits};
  rn_edge_t loss = RN_NO_EDGE;
  if (prepare(&w, scope, "sampled_softmax_loss", layer, labels, inputs, sample_count, &options)) {
    logits_t l = logits_of(&w, options.by_division);
    loss = rn_SoftmaxCrossEntropyWithLogits(w.s, l.logits, rn_StopGradient(w.s, l.labels)).loss;
  }
  rn_scope_destroy(w.s);
  return loss;
}

RN_API rn_edge_t rn_nce_loss_(rn_scope_t* scope, const rn_class_weights_t* layer, rn_edge_t labels,
                              rn_edge_t inputs, int sample_count, rn_sample_options_t options) {
  sampling_work_t w = {.remove_hits = options.remove_accidental_hits};
  rn_edge_t loss = RN_NO_EDGE;
  if (prepare(&w, scope, "nce_loss", layer, labels, inputs, sample_count, &options)) {
    logits_t l = logits_of(&w, options.by_division);
    rn_edge_t each = rn_sigmoid_cross_entropy(w.s, l.labels, l.logits, .reduction = RN_REDUCE_NONE,
                                              .not_collected = true);
    loss = rn_Sum(w.s, each, rn_axis(w.s, 1));
  }
  rn_scope_destroy(w.s);
  return loss;
}
