// REINFORCE: learns to balance a pole on a cart by trial and error.
//
// A network maps the state of the cart (position, speed, angle, angular speed) to the probabilities
// of pushing left and right. An episode ends when the pole leans too far, the cart leaves its
// track, or 200 time steps have passed. REINFORCE then makes each push more likely, in proportion
// to how much longer than average the pole stood after it: the gradient of the mean return is the
// mean of return times the gradient of the log probability.
#include <math.h>

#include "example.h"

enum { POLES = 16, MOMENTS = 200, HIDDEN = 32 };

// One time step of physics: a pole of half length 0.5 m and 0.1 kg on a cart of 1 kg, pushed by 10
// N for 0.02 s. False once it has fallen.
static bool push(float pole[4], bool right) {
  const float gravity = 9.8f, mass = 1.1f, pole_mass = 0.1f, half = 0.5f, moment = 0.02f;
  float c = cosf(pole[2]), s = sinf(pole[2]);
  float force = ((right ? 10.0f : -10.0f) + pole_mass * half * pole[3] * pole[3] * s) / mass;
  float turn = (gravity * s - c * force) / (half * (4.0f / 3 - pole_mass * c * c / mass));
  float pull = force - pole_mass * half * turn * c / mass;
  float next[4] = {pole[0] + moment * pole[1], pole[1] + moment * pull, pole[2] + moment * pole[3],
                   pole[3] + moment * turn};
  for (int i = 0; i < 4; ++i) pole[i] = next[i];
  return fabsf(pole[0]) < 2.4f && fabsf(pole[2]) < 0.21f;
}

// States, actions and returns of POLES episodes, concatenated.
typedef struct memory_t {
  int count;
  float seen[POLES * MOMENTS * 4], returns[POLES * MOMENTS];
  int32_t pushes[POLES * MOMENTS], pole[POLES * MOMENTS], time[POLES * MOMENTS];
  int length[POLES];
} memory_t;

// Plays POLES episodes in parallel, so that one session step serves all that are still running.
// Returns their mean length.
static float play(example_t* e, rn_edge_t looks, rn_edge_t choice, memory_t* m) {
  float poles[POLES][4];
  bool stands[POLES];
  m->count = 0;
  for (int p = 0; p < POLES; ++p) {
    for (int i = 0; i < 4; ++i) poles[p][i] = 0.1f * example_uniform(e) - 0.05f;
    stands[p] = true;
    m->length[p] = MOMENTS;
  }
  for (int t = 0; t < MOMENTS; ++t) {
    int64_t chosen[POLES];
    example_run(e, RN_FEED(looks, poles[0], POLES, 4), RN_FETCH(choice, chosen, POLES));
    for (int p = 0; p < POLES; ++p) {
      if (!stands[p]) continue;
      int at = m->count++;
      for (int i = 0; i < 4; ++i) m->seen[4 * at + i] = poles[p][i];
      m->pushes[at] = (int32_t)chosen[p];
      m->pole[at] = p;
      m->time[at] = t;
      stands[p] = push(poles[p], chosen[p]);
      if (!stands[p]) m->length[p] = t + 1;
    }
  }
  return (float)m->count / POLES;
}

// The advantage of a push: the discounted number of time steps after it, minus the mean at the same
// time step, where a fallen pole counts as 0. (Late pushes have small returns because the episode
// is cut off, so a mean over all time steps would make them look bad.)
static void set_returns(memory_t* m) {
  const float discount = 0.97f;
  float usual[MOMENTS] = {0}, squares = 0;
  for (int i = 0; i < m->count; ++i) {
    float left = (float)(m->length[m->pole[i]] - m->time[i]);
    m->returns[i] = (1 - powf(discount, left)) / (1 - discount);
    usual[m->time[i]] += m->returns[i] / POLES;
  }
  for (int i = 0; i < m->count; ++i) {
    m->returns[i] -= usual[m->time[i]];
    squares += m->returns[i] * m->returns[i];
  }
  float scale = 1 / (1 + sqrtf(squares / (float)m->count));
  for (int i = 0; i < m->count; ++i) m->returns[i] *= scale;
}

int main(int argc, char** argv) {
  example_t e = example_open(argc, argv, "Learns to balance a pole by trial.", 100);
  rn_scope_t* s = e.scope;
  rn_edge_t looks = rn_Placeholder(s, TF_FLOAT, .shape = RN_SHAPE(-1, 4));
  rn_edge_t pushes = rn_Placeholder(s, TF_INT32, .shape = RN_SHAPE(-1));
  rn_edge_t returns = rn_Placeholder(s, TF_FLOAT, .shape = RN_SHAPE(-1));
  rn_edge_t h = rn_dense(s, looks, HIDDEN, .activation = rn_tanh,
                         .kernel_initializer = rn_init_glorot_normal(example_seed(&e, 0)));
  rn_edge_t logits =
      rn_dense(s, h, 2, .kernel_initializer = rn_init_normal(0, 0.01, example_seed(&e, 1)));
  rn_edge_t drawn = rn_Multinomial(s, logits, rn_const_int32(s, 1), .seed = example_seed(&e, 2));
  rn_edge_t choice = rn_Reshape(s, drawn, rn_const_int32_list(s, (int32_t[]){-1}, 1));

  // The cross entropy of a push is minus the logarithm of its probability.
  rn_edge_t surprise =
      rn_sparse_softmax_cross_entropy(s, pushes, logits, .reduction = RN_REDUCE_NONE);
  rn_edge_t loss = rn_Mean(s, rn_Mul(s, surprise, returns), rn_const_int32(s, 0));
  rn_node_t* train = rn_minimize(s, rn_adam(.learning_rate = 0.02f), loss);

  example_start(&e);
  static memory_t m;
  for (int step = 1; step <= e.steps; ++step) {
    float length = play(&e, looks, choice, &m);
    set_returns(&m);
    example_run(&e, RN_TARGET(train), RN_FEED(looks, m.seen, m.count, 4),
                RN_FEED(pushes, m.pushes, m.count), RN_FEED(returns, m.returns, m.count));
    example_progress(&e, step, "mean length %5.1f", length);
  }

  enum { TRIALS = 4 };
  float mean = 0;
  for (int i = 0; i < TRIALS; ++i) mean += play(&e, looks, choice, &m) / TRIALS;
  return example_close(&e, mean >= 180, "stands for %.1f of %d time steps, mean of %d episodes",
                       mean, MOMENTS, TRIALS * POLES);
}
