// Traced steps on a GPU: what the card did is in rows of its own, by CUPTI or by events.
#include <stdlib.h>

#include "session/step_stats_proto.h"
#include "util.h"

#define GPU "/job:localhost/replica:0/task:0/device:GPU:0"

// Streams have numbers of their own on a card, and there CUPTI may or may not be.
static bool is_real(void) { return !getenv("RUNNEL_CUDA_PATH"); }
static bool has_cupti(void) { return getenv("RN_TEST_CUPTI") && !getenv("RN_TEST_CUPTI_BUSY"); }

typedef struct traced_t {
  rt_t rt;
  rn_edge_t x, y;
} traced_t;

static traced_t begin(void) {
  traced_t t = {.rt = rt_begin(1)};
  rn_scope_t* s = t.rt.s;
  t.x = rn_Placeholder(s, RN_FLOAT, .shape = RN_SHAPE(2, 2), .name = "x");
  rn_edge_t sums = rn_Cumsum(s, t.x, rn_const_int32(s, 0), .name = "sums");
  t.y = rn_Softmax(s, sums, .name = "y");
  return t;
}

static void run(traced_t* t, rn_step_stats_t* stats) {
  int64_t square[2] = {2, 2};
  rn_tensor_t value;
  OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, (rn_shape_t){2, square}, &value));
  for (int i = 0; i < 4; ++i) RN_DATA(&value, float)[i] = 0.1f * (float)i;
  rt_step_t step = {.options = {.stats = stats}};
  rt_feed(&step, t->x, &value);
  rt_fetch(&step, t->y);
  OK(rt_run(&t->rt, &step));
  cr_assert_float_eq(RN_DATA(&step.out[0], float)[0] + RN_DATA(&step.out[0], float)[1], 1, 1e-5f);
  rt_clear(&step);
  rn_tensor_clear(&value);
}

// The entry of |node| on |device|; NULL if there is none.
static const rn_node_stats_t* find(const rn_step_stats_t* stats, const char* device,
                                   const char* node) {
  for (size_t i = 0; i < stats->nodes.count; ++i) {
    const rn_node_stats_t* entry = &stats->nodes.items[i];
    if (rn_str_is(entry->device, device) && rn_str_is(entry->node, node)) return entry;
  }
  return NULL;
}

static int count(const rn_step_stats_t* stats, const char* device) {
  int found = 0;
  for (size_t i = 0; i < stats->nodes.count; ++i)
    found += rn_str_is(stats->nodes.items[i].device, device);
  return found;
}

RT_TEST(trace, kernels_have_rows_of_their_own) {
  traced_t t = begin();
  for (int turn = 0; turn < 3; ++turn) run(&t, NULL);
  for (int turn = 0; turn < 3; ++turn) {
    rn_step_stats_t stats;
    rn_step_stats_init(&stats, rn_allocator_system(), rn_env_system());
    run(&t, &stats);
    const char* stream = has_cupti() ? GPU "/stream:13" : GPU "/stream:0";
    const char* nodes[] = {"sums:Cumsum", "y:Softmax"};
    const char* names[] = {"sums", "y"};
    for (int i = 0; i < 2; ++i) {
      const rn_node_stats_t* all = find(&stats, GPU "/stream:all", nodes[i]);
      const rn_node_stats_t* own = find(&stats, GPU, names[i]);
      cr_assert(all && own && (is_real() || find(&stats, stream, nodes[i])), "%s", nodes[i]);
      cr_assert(all->end_ns > all->start_ns && all->end_ns - all->start_ns < 60000000000);
      cr_assert(all->start_ns > stats.start_ns - 1000000000 &&
                all->end_ns < rt_now_ms() * 1000000 + 1000000000);
      cr_assert_eq(own->output_bytes, 16);
      if (has_cupti()) {
        cr_assert_eq(all->end_ns - all->start_ns, 5000);
        cr_assert(rn_str_starts_with(all->label, RN_STR("emulated_kernel@@")));
      }
    }
    // A copy for no node.
    if (!is_real()) cr_assert_eq(count(&stats, GPU "/memcpy"), has_cupti());
    if (has_cupti()) cr_assert(find(&stats, GPU "/memcpy", "edge:MEMCPYHtoD"));
    rn_step_stats_clear(&stats);
  }
  rt_end(&t.rt);
}

RT_TEST(trace, memory_is_the_cards) {
  traced_t t = begin();
  rn_step_stats_t stats;
  rn_step_stats_init(&stats, rn_allocator_system(), rn_env_system());
  run(&t, &stats);
  rn_strbuf_t out;
  rn_strbuf_init(&out, rn_allocator_system());
  rn_step_stats_write(&stats, &out);
  OK(rn_strbuf_status(&out));
  bool found = false;
  for (size_t i = 0; i + 9 <= out.size && !found; ++i)
    found = memcmp(out.data + i, "GPU_0_bfc", 9) == 0;
  cr_assert(found);
  rn_strbuf_clear(&out);
  rn_step_stats_clear(&stats);
  rt_end(&t.rt);
}

typedef struct traced_step_t {
  traced_t* t;
  rn_step_stats_t stats;
} traced_step_t;

static void* run_traced(void* arg) {
  traced_step_t* step = arg;
  run(step->t, &step->stats);
  return NULL;
}

// The card runs the work of all of them; nothing is mixed up or lost on the way.
RT_TEST(trace, steps_at_once) {
  traced_t t = begin();
  run(&t, NULL);
  traced_step_t steps[4];
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) {
    steps[i].t = &t;
    rn_step_stats_init(&steps[i].stats, rn_allocator_system(), rn_env_system());
    cr_assert_eq(pthread_create(&threads[i], NULL, run_traced, &steps[i]), 0);
  }
  for (int i = 0; i < 4; ++i) {
    pthread_join(threads[i], NULL);
    if (!has_cupti()) cr_assert(find(&steps[i].stats, GPU "/stream:all", "y:Softmax"));
    rn_step_stats_clear(&steps[i].stats);
  }
  rt_end(&t.rt);
}
