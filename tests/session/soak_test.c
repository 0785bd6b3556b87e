// Memory stays flat over many steps (ordinary, failing, waiting and abandoned ones) and over many
// sessions. RUNNEL_SOAK=1 in the environment runs the full numbers.
#include "loop_bodies.h"

#define LEAST_SLACK (1 << 20)  // bytes that libc's heap may still take after the first turns

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

// Looks at the memory ten times on the way; from the first look on it may not grow.
typedef struct watch_t {
  const char* what;
  rn_counting_allocator_t counting;
  int64_t turns;
  int64_t slack;  // bytes of the allocator's; 0: to the byte and the block
  bool is_begun;
  int64_t blocks, bytes, resident, most;
} watch_t;

static void watch(watch_t* w, int64_t turn) {
  if ((turn + 1) % (w->turns / 10) != 0) return;
  int64_t now = resident();
  if (!w->is_begun) {
    w->is_begun = true;
    w->blocks = w->counting.live_blocks;
    w->bytes = w->counting.live_bytes;
    w->resident = now;
  }
  if (now - w->resident > w->most) w->most = now - w->resident;
  cr_assert_leq(w->counting.live_bytes, w->bytes + w->slack, "%s: %lld bytes, were %lld", w->what,
                (long long)w->counting.live_bytes, (long long)w->bytes);
  if (!w->slack) cr_assert_eq(w->counting.live_blocks, w->blocks);
  cr_assert_lt(now - w->resident, LEAST_SLACK, "%s: turn %lld has %lld resident bytes, were %lld",
               w->what, (long long)turn, (long long)now, (long long)w->resident);
}

static void report(const watch_t* w) {
  if (!getenv("RUNNEL_SOAK")) return;
  fprintf(stderr, "%s: %lld turns, %lld KiB resident, grew by %lld KiB at most\n", w->what,
          (long long)w->turns, (long long)(w->resident >> 10), (long long)(w->most >> 10));
}

Test(soak, steps, .timeout = 600) {
  watch_t w = {"steps", {.base = rn_allocator_system()}, .turns = times(1000000)};
  rt_t rt = rt_begin(1);
  rt.allocator = rn_allocator_counting(&w.counting);
  rn_edge_t x = rt_placeholder(&rt, "x"), y = rn_Neg(rt.s, rn_AddV2(rt.s, x, x));
  rn_tensor_t fed = rt_scalar(1);
  rt_step_t step = {0};
  rt_feed(&step, x, &fed);
  rt_fetch(&step, rn_Identity(rt.s, x));
  rt_fetch(&step, y);
  for (int64_t turn = 0; turn < w.turns; ++turn) {
    OK(rt_run(&rt, &step));
    rt_clear(&step);
    watch(&w, turn);
  }
  report(&w);
  rn_tensor_clear(&fed);
  rt_end(&rt);
  cr_assert_eq(w.counting.live_blocks, 0);
}

// A graph that steps can go wrong in, each in its own way.
typedef struct mixed_t {
  rt_t rt;
  rn_edge_t x, y, sum, product;  // y = -2x, for any shape; x + (a vector of 3); x times itself
  rn_edge_t fails, waits, loop, first, second, both;
} mixed_t;

static void plus_one(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  (void)arg;
  next[0] = rn_AddV2(s, values[0], rt_const_at(s, values[0], 1));
}

static mixed_t mixed_begin(int threads, rn_allocator_t allocator) {
  mixed_t m = {.rt = rt_begin(threads)};
  m.rt.allocator = allocator;
  rn_scope_t* s = m.rt.s;
  m.x = rt_placeholder(&m.rt, "x");
  m.y = rn_Neg(s, rn_AddV2(s, m.x, m.x));
  m.sum = rn_AddV2(s, m.x, rn_const(s, RN_FLOAT, (int64_t[]){3}, 1, (float[]){1, 2, 3}));
  m.product = rn_MatMul(s, m.x, m.x);
  m.fails = rn_Neg(s, rt_op(s, "TestFail", m.x));
  m.waits = rn_Neg(s, rt_op(s, "TestBlock", m.x));
  rt_loop_t loop = {.frame = "f",
                    .count = 1,
                    .start = {rt_placeholder(&m.rt, "start")},
                    .cond = below_ten,
                    .body = plus_one};
  m.first = loop.start[0];
  rt_loop(s, &loop);
  m.loop = loop.exits[0];
  m.second = rt_op(s, "TestCount", m.first);
  m.both = rn_Mul(s, m.second, m.x);
  return m;
}

static void step_of(mixed_t* m, rn_edge_t fetch, rn_edge_t feed, int64_t count, rn_code_t wanted,
                    const rn_step_options_t* options) {
  static const float values[64];
  rn_tensor_t fed = rt_floats(count, values);
  rt_step_t step = {0};
  if (options) step.options = *options;
  rt_feed(&step, feed, &fed);
  rt_fetch(&step, fetch);
  rn_status_t status = rt_run(&m->rt, &step);
  cr_assert_eq(rn_status_code(status), wanted, "%s", rn_status_message(status));
  rn_status_free(status);
  rt_clear(&step);
  rn_tensor_clear(&fed);
}

static void wrong_type(mixed_t* m) {
  rn_tensor_t fed = rt_bool(true);
  rt_step_t step = {0};
  rt_feed(&step, m->x, &fed);
  rt_fetch(&step, m->y);
  FAILS_WITH(rt_run(&m->rt, &step), INVALID_ARGUMENT, "Expects arg[0] to be float");
  rn_tensor_clear(&fed);
}

static void cancelled(mixed_t* m) {
  rn_cancel_t cancel;
  rn_cancel_init(&cancel);
  rn_cancel(&cancel);
  step_of(m, m->waits, m->x, -1, RN_CODE_CANCELLED, &(rn_step_options_t){.cancel = &cancel});
  rn_cancel_destroy(&cancel);
}

// Begun with one part of two and given up.
static void abandoned(mixed_t* m) {
  rt_step_t setup = {0}, part = {0};
  rn_tensor_t fed = rt_scalar(2);
  rt_feed(&setup, m->x, NULL);
  rt_feed(&setup, m->first, NULL);
  rt_fetch(&setup, m->second);
  rt_fetch(&setup, m->both);
  rn_signature_t all = rt_signature(&setup);
  rn_partial_run_t* run = NULL;
  OK(rn_session_partial_setup(rt_session(&m->rt), &all, &run));
  rt_feed(&part, m->first, &fed);
  rt_fetch(&part, m->second);
  rn_signature_t some = rt_signature(&part);
  OK(rn_session_partial_run(m->rt.session, run, &some, part.values, part.out));
  rt_clear(&part);
  rn_partial_run_destroy(run);
  rn_tensor_clear(&fed);
}

static void mixed_turn(mixed_t* m, int64_t turn) {
  switch (turn % 10) {
    case 0:
      step_of(m, m->sum, m->x, 4 + turn / 10 % 16, RN_CODE_INVALID_ARGUMENT, NULL);
      return;
    case 1:
      rt_fails = true;
      step_of(m, m->fails, m->x, -1, RN_CODE_INTERNAL, NULL);
      return;
    case 2:
      wrong_type(m);
      return;
    case 3:
      cancelled(m);
      return;
    case 4:
      abandoned(m);
      return;
    case 5:
      step_of(m, m->loop, m->first, -1, RN_CODE_OK, NULL);
      return;
    case 6:
      step_of(m, m->product, m->x, 3, RN_CODE_INVALID_ARGUMENT, NULL);
      return;
    case 7:
      if (turn % 100 == 7)
        step_of(m, m->waits, m->x, -1, RN_CODE_DEADLINE_EXCEEDED,
                &(rn_step_options_t){.timeout_ms = 1});
      else
        step_of(m, (rn_edge_t){m->y.node, 7}, m->x, -1, RN_CODE_OUT_OF_RANGE, NULL);
      return;
    default:
      step_of(m, m->y, m->x, turn / 10 % 32, RN_CODE_OK, NULL);
  }
}

static void soak_mixed(int threads) {
  // With helpers a step may find more or fewer buffers free than the last one did.
  watch_t w = {threads > 1 ? "mixed steps, two threads" : "mixed steps, one thread",
               {.base = rn_allocator_system()},
               .turns = times(500000),
               .slack = threads > 1 ? 1 << 16 : 0};
  mixed_t m = mixed_begin(threads, rn_allocator_counting(&w.counting));
  for (int64_t turn = 0; turn < w.turns; ++turn) {
    mixed_turn(&m, turn);
    watch(&w, turn);
  }
  report(&w);
  rt_end(&m.rt);
  cr_assert_eq(w.counting.live_blocks, 0);
}
Test(soak, mixed_steps_of_one_thread, .timeout = 600) { soak_mixed(1); }
Test(soak, mixed_steps_of_two_threads, .timeout = 600) { soak_mixed(2); }

// A session over a graph that grows between the steps, then goes with it.
static void grow(int threads, rn_allocator_t allocator, int64_t turn) {
  mixed_t m = mixed_begin(threads, allocator);
  rn_edge_t last = m.y;
  for (int i = 0; i < 5; ++i) {
    step_of(&m, last, m.x, (turn + i) % 7, RN_CODE_OK, NULL);
    last = rn_Neg(m.rt.s, last);
  }
  for (int i = 0; i < 10; ++i) mixed_turn(&m, 10 * turn + i);
  rt_end(&m.rt);
}

Test(soak, growing_graphs, .timeout = 600) {
  watch_t w = {"growing graphs", {.base = rn_allocator_system()}, .turns = times(10000)};
  for (int64_t turn = 0; turn < w.turns; ++turn) {
    grow(1 + (int)turn % 2, rn_allocator_counting(&w.counting), turn);
    cr_assert_eq(w.counting.live_blocks, 0);
    watch(&w, turn);
  }
  report(&w);
}

static void one_session(rn_graph_t* graph, const rn_session_options_t* options, rn_edge_t x,
                        rn_edge_t y, rn_allocator_t allocator) {
  rn_session_t* session = NULL;
  OK(rn_session_create(graph, options, rn_env_system(), allocator, &session));
  rn_tensor_t fed = rt_scalar(1);
  rt_step_t step = {0};
  rt_feed(&step, x, &fed);
  rt_fetch(&step, y);
  OK(rt_run_in(session, &step));
  rt_clear(&step);
  rn_tensor_clear(&fed);
  rn_session_destroy(session);
}

static void soak_sessions(int threads) {
  watch_t w = {threads > 1 ? "sessions, two threads" : "sessions, one thread",
               {.base = rn_allocator_system()},
               .turns = times(10000)};
  rt_t rt = rt_begin(threads);
  rn_edge_t x = rt_placeholder(&rt, "x"), y = rn_Neg(rt.s, rn_AddV2(rt.s, x, x));
  for (int64_t turn = 0; turn < w.turns; ++turn) {
    one_session(rt.graph, &rt.options, x, y, rn_allocator_counting(&w.counting));
    cr_assert_eq(w.counting.live_blocks, 0);
    watch(&w, turn);
  }
  report(&w);
  rt_end(&rt);
}
Test(soak, sessions_of_one_thread, .timeout = 600) { soak_sessions(1); }
Test(soak, sessions_of_two_threads, .timeout = 600) { soak_sessions(2); }
