// Word vectors, with the table of vectors on several machines.
//
// Each partition of both tables is on a parameter server, and a lookup fetches only the rows it
// needs. Gradients are sparse too, so a step costs the same however large the tables are. Workers
// do not wait for each other: updates of the same row rarely coincide, and then one is simply added
// after the other.
//
// ../word2vec.c describes the model.
#include "families.h"
#include "task.h"

enum { DEPTH = 16, SHARDS = 4, BATCH = 256, NEGATIVES = 32 };

int main(int argc, char** argv) {
  task_t t = task_open(argc, argv, "Finds which words of a text belong together, on a cluster.",
                       6000, 2, 2);
  rn_scope_t* s = t.e.scope;
  rn_edge_t words = rn_Placeholder(s, TF_INT32, .shape = RN_SHAPE(BATCH));
  rn_edge_t neighbours = rn_Placeholder(s, TF_INT64, .shape = RN_SHAPE(BATCH, 1));

  const rn_var_t *shards[SHARDS], *outs[SHARDS];
  rn_initializer_t start = rn_init_uniform(-0.5, 0.5, example_seed(&t.e, 0));
  rn_partitioned_variable(s, "vectors", FAMILIES_WORDS, DEPTH, start, SHARDS, shards);
  rn_partitioned_variable(s, "context", FAMILIES_WORDS, DEPTH, rn_init_zeros(), SHARDS, outs);
  const int64_t count = FAMILIES_WORDS;
  const rn_var_t* biases = rn_get_variable(s, "biases", &count, 1, .initializer = rn_init_zeros());
  rn_edge_t vectors = rn_embedding_lookup(s, shards, SHARDS, words, false);
  rn_class_weights_t context = {outs, SHARDS, biases, FAMILIES_WORDS};
  rn_edge_t losses = rn_nce_loss(s, &context, neighbours, vectors, NEGATIVES,
                                 .sampler = RN_SAMPLE_UNIFORM, .seed = example_seed(&t.e, 1));
  rn_edge_t loss = rn_Mean(s, losses, rn_const_int32(s, 0));
  rn_edge_t all =
      rn_Range(s, rn_const_int32(s, 0), rn_const_int32(s, FAMILIES_WORDS), rn_const_int32(s, 1));
  rn_edge_t near = families_nearest(s, rn_embedding_lookup(s, shards, SHARDS, all, false));
  task_train(&t, rn_adagrad(.learning_rate = 0.5f), loss);

  int32_t w[BATCH];
  int64_t n[BATCH];
  float loss_now = 0;
  for (bool goes_on = true; goes_on;) {
    families_pairs(&t.e, BATCH, w, n);
    goes_on = task_step(&t, RN_FEED(words, w, BATCH), RN_FEED(neighbours, n, BATCH, 1),
                        RN_FETCH(loss, &loss_now));
    if (task_is_chief(&t))
      example_progress(&t.e, (int)rn_supervisor_step(t.supervisor), "loss %.4f", loss_now);
  }

  static int32_t found[FAMILIES_WORDS][FAMILIES_MEMBERS];
  if (task_is_chief(&t)) task_look(&t, RN_FETCH(near, found[0], FAMILIES_WORDS, FAMILIES_MEMBERS));
  float part = families_found(found);
  return task_close(&t, part >= 0.95f, "%.1f %% of the nearest words are of the family",
                    100 * part);
}
