// Transformers and the LSTM language model.
#include "gpu_bench.h"

static const network_transformer_t bert_base = {12, 768, 12, 30522, false, false};
static const network_transformer_t gpt = {6, 512, 8, 32000, true, false};

static network_transformer_t sizes_of(const bench_t* b, const network_transformer_t* large) {
  if (!b->is_tiny) return *large;
  return (network_transformer_t){1, 16, 2, 32, large->is_causal, large->has_no_head};
}

// Returns the ids, which are the labels too.
static rn_edge_t transform(bench_t* b, const network_transformer_t* large, int64_t batch,
                           int64_t time, network_t* n) {
  network_transformer_t sizes = sizes_of(b, large);
  const int64_t dims[] = {bench_batch(b, batch, 2), bench_size(b, time, 4)};
  rn_edge_t ids = bench_ids(b, "ids", dims, 2, sizes.words);
  *n = bench_network(b);
  network_transformer(n, &sizes, ids);
  return ids;
}

typedef void (*train_t)(bench_t* b, rn_optimizer_t optimizer, rn_edge_t loss);

static void train(bench_t* b, const network_transformer_t* large, int64_t batch, int64_t time,
                  train_t by) {
  network_t n;
  rn_edge_t ids = transform(b, large, batch, time, &n);
  rn_edge_t labels = rn_Reshape(b->s, ids, rn_const_int32_list(b->s, (int32_t[]){-1}, 1));
  rn_edge_t loss = rn_sparse_softmax_cross_entropy(b->s, labels, n.x);
  by(b, rn_adam(.learning_rate = b->is_tiny ? 1e-2f : 1e-4f), loss);
}

static void bert(bench_t* b) { train(b, &bert_base, 32, 128, bench_train_dense); }
static void bert_sparse(bench_t* b) { train(b, &bert_base, 32, 128, bench_train); }
static void gpt_train(bench_t* b) { train(b, &gpt, 16, 256, bench_train_dense); }

static void bert_infer(bench_t* b) {
  network_t n;
  transform(b, &bert_base, 1, 128, &n);
  bench_infer(b, n.x);
}

// Without the product with the vocabulary.
static void bert_encoder(bench_t* b) {
  network_transformer_t encoder = bert_base;
  encoder.has_no_head = true;
  network_t n;
  transform(b, &encoder, 1, 128, &n);
  bench_infer(b, n.x);
}

// The language model: two layers of 512 units over 20 words, 128 texts at a time, 40,000 words.
typedef struct lstm_t {
  int64_t words, units, batch, time;
  rn_edge_t ids, labels;  // [time, batch], [time * batch]
} lstm_t;

static lstm_t lstm_of(bench_t* b, int64_t batch, int64_t time, int64_t words) {
  lstm_t m = {.words = words, .units = bench_size(b, 512, 8), .batch = batch, .time = time};
  const int64_t dims[] = {m.time, m.batch};
  m.ids = bench_ids(b, "ids", dims, 2, m.words);
  rn_edge_t next = bench_ids(b, "next", dims, 2, m.words);
  m.labels = rn_Reshape(b->s, next, rn_const_int32_list(b->s, (int32_t[]){-1}, 1));
  b->work = (double)(m.time * m.batch) / 1000;
  return m;
}

static lstm_t lstm_begin(bench_t* b) {
  return lstm_of(b, bench_batch(b, 128, 3), bench_size(b, 20, 3), bench_size(b, 40000, 50));
}

// The cells' outputs, one row per word.
static rn_edge_t lstm_outputs(bench_t* b, const lstm_t* m, bool has_loop) {
  rn_scope_t* s = b->s;
  rn_edge_t x = rn_embedding(s, m->ids, m->words, m->units,
                             .kernel_initializer = rn_init_uniform(-0.1, 0.1, 1));
  rn_cell_t layers[2], cell;
  for (int i = 0; i < 2; ++i)
    layers[i] = rn_lstm_cell(m->units, .initializer = rn_init_uniform(-0.1, 0.1, 2 + i));
  cell = rn_stacked_cells(layers, 2);
  rn_edge_t y = RN_NO_EDGE;
  if (has_loop) {
    y = rn_dynamic_rnn(s, &cell, x, NULL, .time_major = true);
  } else {
    rn_edge_t inputs[32], outputs[32];
    rn_edges_t moments = rn_Unpack(s, x, m->time);
    for (int t = 0; t < m->time; ++t) inputs[t] = rn_edge_at(moments, t);
    if (rn_static_rnn(s, &cell, inputs, (int)m->time, outputs, NULL))
      y = rn_Pack(s, outputs, (int)m->time);
  }
  return rn_Reshape(s, y, rn_const_int32_list(s, (int32_t[]){-1, (int32_t)m->units}, 2));
}

typedef struct softmax_t {
  const rn_var_t *weights, *biases;
} softmax_t;

static softmax_t softmax_variables(bench_t* b, const lstm_t* m) {
  const int64_t dims[] = {m->words, m->units};
  return (softmax_t){
      rn_get_variable(b->s, "weights", dims, 2, .initializer = rn_init_uniform(-0.05, 0.05, 9)),
      rn_get_variable(b->s, "biases", dims, 1, .initializer = rn_init_zeros())};
}

static rn_edge_t lstm_logits(bench_t* b, const lstm_t* m, bool has_loop) {
  rn_edge_t y = lstm_outputs(b, m, has_loop);
  softmax_t top = softmax_variables(b, m);
  if (!rn_scope_ok(b->s)) return RN_NO_EDGE;
  y = rn_MatMul(b->s, y, top.weights->value, .transpose_b = true);
  return rn_BiasAdd(b->s, y, top.biases->value);
}

static void lstm_full(bench_t* b, bool has_loop, train_t by) {
  lstm_t m = lstm_begin(b);
  rn_edge_t logits = lstm_logits(b, &m, has_loop);
  by(b, rn_adagrad(.learning_rate = 0.1f), rn_sparse_softmax_cross_entropy(b->s, m.labels, logits));
}

// One text of 128 words, 10,000 in the vocabulary.
static void lstm_infer(bench_t* b) {
  lstm_t m = lstm_of(b, bench_batch(b, 1, 1), bench_size(b, 128, 3), bench_size(b, 10000, 50));
  bench_infer(b, lstm_logits(b, &m, true));
  b->loss = rn_Mul(b->s, b->loss, rn_const_float(b->s, 1e9f));  // Untrained logits are tiny.
}

static void lstm(bench_t* b) { lstm_full(b, false, bench_train_dense); }
static void lstm_sparse(bench_t* b) { lstm_full(b, false, bench_train); }
static void lstm_loop(bench_t* b) { lstm_full(b, true, bench_train_dense); }

static void lstm_sampled(bench_t* b) {
  lstm_t m = lstm_begin(b);
  rn_edge_t y = lstm_outputs(b, &m, false);
  softmax_t top = softmax_variables(b, &m);
  if (!rn_scope_ok(b->s)) return;
  rn_class_weights_t layer = {&top.weights, 1, top.biases, m.words};
  rn_edge_t losses =
      rn_sampled_softmax_loss(b->s, &layer, m.labels, y, (int)bench_size(b, 512, 8), .seed = 5);
  bench_train(b, rn_adagrad(.learning_rate = 0.1f), rn_Mean(b->s, losses, rn_const_int32(b->s, 0)));
}

const bench_case_t bench_text[] = {
    {"bert", bert, "ms", true},
    {"bert_sparse", bert_sparse, "ms", true},
    {"bert_infer_b1", bert_infer, "ms", true},
    {"bert_encoder", bert_encoder, "ms", true},
    {"gpt", gpt_train, "ms", true},
    {"lstm", lstm, "thousand words/s", false},
    {"lstm_sparse", lstm_sparse, "thousand words/s", false},
    {"lstm_loop", lstm_loop, "thousand words/s", false},
    {"lstm_infer", lstm_infer, "thousand words/s", false},
    {"lstm_sampled", lstm_sampled, "thousand words/s", false},
    {0},
};
