// Memory stays flat: over many steps, and over many sessions. RUNNEL_SOAK=1 in the environment
// asks for the full numbers.
#include "util.h"

// Resident bytes. An allocator's own books do not show what a thread or a mapping leaves behind.
static int64_t resident(void) {
#ifdef RT_HAS_SANITIZER
  return 0;
#endif
  FILE* file = fopen("/proc/self/statm", "r");
  long long pages = 0;
  if (file) {
    if (fscanf(file, "%*s %lld", &pages) != 1) pages = 0;
    fclose(file);
  }
  return pages * sysconf(_SC_PAGESIZE);
}

static int64_t times(int64_t many) { return getenv("RUNNEL_SOAK") ? many : many / 100; }

Test(soak, steps, .timeout = 600) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  rt_t rt = rt_begin(1);
  rt.allocator = rn_allocator_counting(&counting);
  rn_edge_t x = rt_placeholder(&rt, "x"), y = rn_Neg(rt.s, rn_AddV2(rt.s, x, x));
  int64_t blocks = 0, bytes = 0, before = 0, turns = times(1000000);
  rn_tensor_t fed = rt_scalar(1);
  rt_step_t step = {0};
  rt_feed(&step, x, &fed);
  rt_fetch(&step, rn_Identity(rt.s, x));
  rt_fetch(&step, y);
  for (int64_t turn = 0; turn < turns; ++turn) {
    RT_OK(rt_run(&rt, &step));
    rt_clear(&step);
    if (turn != 100) continue;
    blocks = counting.live_blocks;
    bytes = counting.live_bytes;
    before = resident();
  }
  cr_assert_eq(counting.live_blocks, blocks);
  cr_assert_eq(counting.live_bytes, bytes);
  cr_assert_lt(resident() - before, 1 << 20);
  rn_tensor_clear(&fed);
  rt_end(&rt);
  cr_assert_eq(counting.live_blocks, 0);
}

static void one_session(rn_graph_t* graph, const rn_session_options_t* options, rn_edge_t x,
                        rn_edge_t y, rn_allocator_t allocator) {
  rn_session_t* session = NULL;
  RT_OK(rn_session_create(graph, options, rn_env_system(), allocator, &session));
  rn_tensor_t fed = rt_scalar(1);
  rt_step_t step = {0};
  rt_feed(&step, x, &fed);
  rt_fetch(&step, y);
  RT_OK(rt_run_in(session, &step));
  rt_clear(&step);
  rn_tensor_clear(&fed);
  rn_session_destroy(session);
}

Test(soak, sessions, .timeout = 600) {
  for (int threads = 1; threads <= 2; ++threads) {
    rn_counting_allocator_t counting = {.base = rn_allocator_system()};
    rt_t rt = rt_begin(threads);
    rn_edge_t x = rt_placeholder(&rt, "x"), y = rn_Neg(rt.s, rn_AddV2(rt.s, x, x));
    int64_t before = 0, turns = times(10000);
    for (int64_t turn = 0; turn < turns; ++turn) {
      one_session(rt.graph, &rt.options, x, y, rn_allocator_counting(&counting));
      cr_assert_eq(counting.live_blocks, 0);
      if (turn == 50) before = resident();
    }
    cr_assert_lt(resident() - before, 1 << 20);
    rt_end(&rt);
  }
}
