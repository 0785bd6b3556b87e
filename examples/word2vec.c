// Word vectors: words that occur near each other get vectors that point in the same direction.
//
// The text has 400 words in 50 families; words of one family occur near each other. That is the
// only structure, and the program checks at the end whether each word's nearest neighbors are its
// family.
//
// The table of vectors is partitioned into four, as for a table too large for one machine: a lookup
// splits the ids by partition (DynamicPartition), gathers in each, and restores the order of the
// rows (DynamicStitch). Gradients flow back the same way and touch only rows that were read.
#include "families.h"

enum { DEPTH = 16, SHARDS = 4, BATCH = 256, NEGATIVES = 32 };

int main(int argc, char** argv) {
  example_t e = example_open(argc, argv, "Finds which words of a text belong together.", 3000);
  rn_scope_t* s = e.scope;
  rn_edge_t words = rn_Placeholder(s, TF_INT32, .shape = RN_SHAPE(BATCH));
  rn_edge_t neighbours = rn_Placeholder(s, TF_INT64, .shape = RN_SHAPE(BATCH, 1));

  const rn_var_t *shards[SHARDS], *outs[SHARDS];
  rn_initializer_t start = rn_init_uniform(-0.5, 0.5, example_seed(&e, 0));
  rn_partitioned_variable(s, "vectors", FAMILIES_WORDS, DEPTH, start, SHARDS, shards);
  rn_partitioned_variable(s, "context", FAMILIES_WORDS, DEPTH, rn_init_zeros(), SHARDS, outs);
  const int64_t count = FAMILIES_WORDS;
  const rn_var_t* biases = rn_get_variable(s, "biases", &count, 1, .initializer = rn_init_zeros());
  rn_edge_t vectors = rn_embedding_lookup(s, shards, SHARDS, words, false);

  // Noise-contrastive estimation: compares the true neighbor with a few random words instead of all
  // others.
  rn_class_weights_t context = {outs, SHARDS, biases, FAMILIES_WORDS};
  rn_edge_t losses = rn_nce_loss(s, &context, neighbours, vectors, NEGATIVES,
                                 .sampler = RN_SAMPLE_UNIFORM, .seed = example_seed(&e, 1));
  rn_edge_t loss = rn_Mean(s, losses, rn_const_int32(s, 0));
  rn_node_t* train = rn_minimize(s, rn_adagrad(.learning_rate = 0.5f), loss);
  rn_edge_t all =
      rn_Range(s, rn_const_int32(s, 0), rn_const_int32(s, FAMILIES_WORDS), rn_const_int32(s, 1));
  rn_edge_t near = families_nearest(s, rn_embedding_lookup(s, shards, SHARDS, all, false));

  example_start(&e);
  for (int step = 1; step <= e.steps; ++step) {
    int32_t w[BATCH];
    int64_t n[BATCH];
    float loss_now;
    families_pairs(&e, BATCH, w, n);
    example_run(&e, RN_TARGET(train), RN_FEED(words, w, BATCH), RN_FEED(neighbours, n, BATCH, 1),
                RN_FETCH(loss, &loss_now));
    example_progress(&e, step, "loss %.4f", loss_now);
  }

  static int32_t found[FAMILIES_WORDS][FAMILIES_MEMBERS];
  example_run(&e, RN_FETCH(near, found[0], FAMILIES_WORDS, FAMILIES_MEMBERS));
  float part = families_found(found);
  return example_close(&e, part >= 0.95f, "%.1f %% of the nearest words are of the family",
                       100 * part);
}
