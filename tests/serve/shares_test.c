// Shares of the processor on a simulated clock: models with several lanes, whose batches take a
// given time once they have a thread.
#include <criterion/criterion.h>

#include "base/container.h"
#include "fake_time.h"
#include "serve/model/shares.h"

#define LANES 8
#define THREADS 12

typedef struct flow_t flow_t;
typedef struct lane_t {
  rn_share_turn_t turns[2];  // the batch that runs or waits, and the one after it
  int at;
  rn_timer_t timer;  // when its batch ends; or comes, if none is there
  flow_t* flow;
  int64_t come_ns;
  bool runs;
} lane_t;

// A model. |gap_ns| 0: its lanes always have a batch; otherwise each gets one so often.
struct flow_t {
  rn_share_t* share;
  int64_t cost_ns, expected_ns, gap_ns;
  bool hangs;
  int64_t used_ns, longest_wait_ns;
  lane_t lanes[LANES];
};

static fake_time_t time_;
static rn_shares_t* shares;
static int running, most_running;

static void begin(lane_t* lane) {
  flow_t* flow = lane->flow;
  int64_t wait = time_.now - lane->come_ns;
  if (wait > flow->longest_wait_ns) flow->longest_wait_ns = wait;
  lane->runs = true;
  if (++running > most_running) most_running = running;
  if (!flow->hangs) OK(fake_timer_set(&time_, &lane->timer, time_.now + flow->cost_ns));
}

static void run_first(rn_job_t* job) { begin(RN_CONTAINER_OF(job, lane_t, turns[0].job)); }
static void run_second(rn_job_t* job) { begin(RN_CONTAINER_OF(job, lane_t, turns[1].job)); }
static void start(void* self, rn_job_t* job) {
  (void)self;
  job->run(job);
}

static rn_share_turn_t* set_turn(lane_t* lane) {
  rn_share_turn_t* turn = &lane->turns[lane->at];
  turn->job.run = lane->at ? run_second : run_first;
  turn->expected_ns = lane->flow->expected_ns;
  lane->come_ns = time_.now;
  return turn;
}

static void on_lane(rn_timer_t* timer) {
  lane_t* lane = RN_CONTAINER_OF(timer, lane_t, timer);
  flow_t* flow = lane->flow;
  if (!lane->runs) {
    rn_share_submit(flow->share, set_turn(lane));
    return;
  }
  rn_share_turn_t* ended = &lane->turns[lane->at];
  int64_t come_ns = lane->come_ns;
  lane->runs = false;
  --running;
  flow->used_ns += flow->cost_ns;
  lane->at = !lane->at;
  if (flow->gap_ns) {
    rn_share_end(ended, flow->cost_ns, NULL, true);
    int64_t at = come_ns + flow->gap_ns;
    OK(fake_timer_set(&time_, &lane->timer, at > time_.now ? at : time_.now));
  } else if (rn_share_end(ended, flow->cost_ns, set_turn(lane), lane - flow->lanes != 1)) {
    begin(lane);
  }
}

static void set_up(int processors, const char* weights) {
  fake_time_init(&time_, 1);
  running = most_running = 0;
  rn_shares_options_t options = {.processors = processors,
                                 .threads = THREADS,
                                 .start = start,
                                 .timers = fake_timers(&time_),
                                 .weights = rn_str(weights),
                                 .env = &time_.env,
                                 .allocator = memory()};
  OK(rn_shares_create(&options, &shares));
}

static void open_flow(flow_t* flow, const char* model, int lanes, int64_t cost_ns, int64_t gap_ns) {
  *flow = (flow_t){.cost_ns = cost_ns, .expected_ns = cost_ns, .gap_ns = gap_ns};
  OK(rn_shares_get(shares, rn_str(model), &flow->share));
  for (int i = 0; i < lanes; ++i) {
    flow->lanes[i].flow = flow;
    flow->lanes[i].timer.fn = on_lane;
    OK(fake_timer_set(&time_, &flow->lanes[i].timer, time_.now));
  }
}

static void run(double seconds) { fake_time_run(&time_, time_.now + (int64_t)(seconds * 1e9)); }

// Lets everything end that ends by itself.
static void tear_down(flow_t** flows, int count) {
  for (int i = 0; i < count; ++i) flows[i]->gap_ns = 3600 * SECOND, flows[i]->hangs = false;
  run(1800);
  for (int i = 0; i < count; ++i) {
    for (int k = 0; k < LANES; ++k)
      if (flows[i]->lanes[k].flow) fake_timer_clear(&time_, &flows[i]->lanes[k].timer);
    rn_share_release(flows[i]->share);
  }
  cr_assert_eq(running, 0);
  rn_shares_destroy(shares);
}

static double ratio(const flow_t* a, const flow_t* b) {
  return (double)a->used_ns / (double)b->used_ns;
}

Test(shares, time_is_divided_by_weight) {
  for (int processors = 1; processors <= 4; ++processors) {
    flow_t a, b, c;
    set_up(processors, "a=3, b = 1,c=0.5");
    open_flow(&a, "a", LANES, 3 * MS, 0);
    open_flow(&b, "b", LANES, 12 * MS, 0);
    open_flow(&c, "c", 4, MS, 0);
    a.expected_ns = 1 * MS;  // what is expected may be wrong
    b.expected_ns = 20 * MS;
    c.expected_ns = 0;
    run(60);
    cr_assert_float_eq(ratio(&a, &b), 3, 0.1, "%g", ratio(&a, &b));
    cr_assert_float_eq(ratio(&b, &c), 2, 0.1, "%g", ratio(&b, &c));
    // All processors are used, and not more, but for one batch of each in the beginning.
    double used = (double)(a.used_ns + b.used_ns + c.used_ns) / 60e9;
    cr_assert_float_eq(used, processors, 0.01 * processors, "%g", used);
    cr_assert_leq(most_running, processors + 2);
    tear_down((flow_t*[]){&a, &b, &c}, 3);
  }
}

Test(shares, what_is_alone_has_everything) {
  flow_t a;
  set_up(3, "a=0.1");
  open_flow(&a, "a", LANES, 5 * MS, 0);
  run(10);
  cr_assert_float_eq((double)a.used_ns / 10e9, 3, 0.01);
  cr_assert_eq(most_running, 3);
  tear_down((flow_t*[]){&a}, 1);
}

// A model with little load waits for no batch of another one that has as much as it likes.
Test(shares, little_load_does_not_wait) {
  for (int processors = 1; processors <= 2; ++processors) {
    flow_t a, b;
    set_up(processors, NULL);
    open_flow(&a, "a", 1, 2 * MS, 10 * MS);
    open_flow(&b, "b", LANES, 12 * MS, 0);
    run(60);
    cr_assert_eq(a.longest_wait_ns, 0);
    cr_assert_float_eq((double)b.used_ns / 60e9, processors, 0.2);
    tear_down((flow_t*[]){&a, &b}, 2);
  }
}

// Time in which a model had nothing to do gives it no credit: later on, halves are halves.
Test(shares, idle_time_is_not_saved) {
  flow_t a, b;
  set_up(1, NULL);
  open_flow(&a, "a", 2, 4 * MS, 0);
  run(30);
  open_flow(&b, "b", 2, 4 * MS, 0);
  int64_t before = a.used_ns;
  run(10);
  cr_assert_float_eq((double)(a.used_ns - before) / 10e9, 0.5, 0.01);
  cr_assert_leq(a.longest_wait_ns, 30 * MS);
  tear_down((flow_t*[]){&a, &b}, 2);
}

// Models that hang keep their threads and nothing else.
Test(shares, hanging_batches_do_not_count) {
  flow_t a, b, c;
  set_up(2, NULL);
  open_flow(&a, "a", 4, 5 * MS, 0);
  run(1);
  open_flow(&b, "b", 3, 5 * MS, 0);
  b.hangs = true;
  run(2);
  int64_t before = a.used_ns;
  run(10);
  cr_assert_float_eq((double)(a.used_ns - before) / 10e9, 2, 0.05, "%g",
                     (double)(a.used_ns - before) / 10e9);
  open_flow(&c, "c", 4, 5 * MS, 0);
  before = a.used_ns;
  run(10);
  cr_assert_float_eq((double)(a.used_ns - before) / 10e9, 1, 0.05);
  // They end after all.
  b.hangs = false;
  for (int i = 0; i < 3; ++i)
    if (b.lanes[i].runs) OK(fake_timer_set(&time_, &b.lanes[i].timer, time_.now));
  int64_t used = b.used_ns;
  run(9);
  cr_assert_float_eq((double)(b.used_ns - used) / 9e9, 2.0 / 3, 0.1);
  tear_down((flow_t*[]){&a, &b, &c}, 3);
}

Test(shares, weights_have_a_form) {
  static const char* const wrong[] = {"a",
                                      "a=",
                                      "=2",
                                      "a=0",
                                      "a=-1",
                                      "a=x",
                                      "a=1,,b=2",
                                      "a=nan",
                                      "a=1e9",
                                      "a=1 2",
                                      "a=00000000000000000000000000000000001"};
  rn_shares_options_t options = {.processors = 1, .threads = 1, .env = rn_env_system()};
  options.allocator = memory();
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    rn_shares_t* made = NULL;
    options.weights = rn_str(wrong[i]);
    rn_status_t status = rn_shares_create(&options, &made);
    cr_assert_eq(rn_status_code(status), RN_CODE_INVALID_ARGUMENT, "%s", wrong[i]);
    cr_assert_not(made);
    rn_status_free(status);
  }
}
