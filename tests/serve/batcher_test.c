// The batcher on a simulated clock: what is joined, in which order, when, and what is refused.
#include "serve/model/batcher.h"

#include "fake_time.h"

typedef struct bench_t {
  fake_time_t time;
  fake_cost_t cost;
  rn_batcher_t* batcher;
} bench_t;

static rn_batcher_options_t options_of(bench_t* bench) {
  return (rn_batcher_options_t){.is_on = true,
                                .size = {.objective_ns = 20 * MS},
                                .max_wait_ns = 0,
                                .timers = fake_timers(&bench->time),
                                .watch = fake_timers(&bench->time),
                                .env = &bench->time.env,
                                .allocator = memory()};
}

static void open_bench(bench_t* bench, double fixed_us, double row_us) {
  fake_time_init(&bench->time, 1);
  fake_cost_init(&bench->cost, &bench->time, fixed_us, row_us);
}

static void start(bench_t* bench, const rn_batcher_options_t* options) {
  OK(rn_batcher_create(options, &bench->cost.model.base, &bench->batcher));
}

// What the version does before the batcher.
static void prepare(bench_t* bench, fake_request_t* request, rn_allocator_t allocator) {
  rn_predict_t* predict = &request->predict;
  int index = rn_backend_signature(&bench->cost.model.base, predict->signature);
  const rn_serve_signature_t* signature = &fake_signatures[index];
  predict->signature_index = index;
  predict->allocator = allocator;
  predict->rows = signature->is_batched ? rn_tensor_dim(&request->inputs[0].value, 0) : -1;
  OK(RN_NEW_ARRAY(allocator, (size_t)signature->output_count, &predict->outputs));
  predict->output_count = signature->output_count;
  for (int i = 0; i < signature->output_count; ++i)
    predict->outputs[i].name = signature->outputs[i].name;
  request->env = &bench->time.env;
}

static void add(bench_t* bench, fake_request_t* request) {
  prepare(bench, request, memory());
  rn_batcher_add(bench->batcher, &request->predict);
}

static void run_for(bench_t* bench, int64_t ns) {
  fake_time_run(&bench->time, bench->time.now + ns);
}

static void close_bench(bench_t* bench) {
  run_for(bench, 100 * SECOND);
  rn_batcher_stats_t stats = rn_batcher_stats(bench->batcher);
  cr_assert_eq(stats.queued + stats.running, 0);
  rn_batcher_destroy(bench->batcher);
}

static void fixed_size(rn_batcher_options_t* options, int64_t max) {
  options->size.policy = RN_BATCH_FIXED;
  options->size.max = max;
}

Test(batcher, joins_what_waits_and_splits_the_answer) {
  bench_t bench;
  open_bench(&bench, 1000, 1);
  rn_batcher_options_t options = options_of(&bench);
  fixed_size(&options, 16);
  start(&bench, &options);
  fake_request_t requests[6];
  for (int i = 0; i < 6; ++i) {
    fake_double(&requests[i], i % 3 + 1, i == 4 ? 7 : 5, (float)(100 * i));
    add(&bench, &requests[i]);
  }
  run_for(&bench, SECOND);
  for (int i = 0; i < 6; ++i)
    cr_assert(fake_is_doubled(&requests[i], i % 3 + 1, i == 4 ? 7 : 5, (float)(100 * i)));
  // The first alone, four together, and the one of another shape.
  cr_assert_eq(bench.cost.model.runs, 3);
  cr_assert_eq(requests[0].predict.times.batch_size, 1);
  cr_assert_eq(requests[5].predict.times.batch_size, 2 + 3 + 1 + 3);
  // Answers of one batch share its memory.
  cr_assert_eq(requests[5].predict.outputs[0].value.buffer,
               requests[1].predict.outputs[0].value.buffer);
  for (int i = 0; i < 6; ++i) rn_predict_clear(&requests[i].predict);
  close_bench(&bench);
}

Test(batcher, one_request_is_not_copied) {
  bench_t bench;
  open_bench(&bench, 10, 1);
  rn_batcher_options_t options = options_of(&bench);
  start(&bench, &options);
  bench.cost.is_dry = true;
  fake_request_t request;
  fake_double(&request, 3, 4, 1);
  const void* data = request.inputs[0].value.data;
  add(&bench, &request);
  run_for(&bench, SECOND);
  cr_assert_eq(request.predict.outputs[0].value.data, data);
  rn_predict_clear(&request.predict);
  close_bench(&bench);
}

Test(batcher, strings_are_joined) {
  bench_t bench;
  open_bench(&bench, 1000, 1);
  rn_batcher_options_t options = options_of(&bench);
  fixed_size(&options, 16);
  start(&bench, &options);
  static const char* texts[] = {"", "short", "a string that is too long to be inside a TString"};
  fake_request_t requests[4];
  for (int i = 0; i < 4; ++i) {
    fake_request_init(&requests[i], "text", 1);
    requests[i].inputs[0].name = RN_STR("s");
    int64_t rows = 3;
    rn_tensor_t* value = &requests[i].inputs[0].value;
    OK(rn_tensor_create(memory(), RN_STRING, (rn_shape_t){1, &rows}, value));
    for (int k = 0; k < 3; ++k)
      cr_assert(rn_tstring_assign(&RN_DATA(value, rn_tstring_t)[k], texts[(i + k) % 3],
                                  strlen(texts[(i + k) % 3])));
    add(&bench, &requests[i]);
  }
  run_for(&bench, SECOND);
  cr_assert_eq(bench.cost.model.runs, 2);
  for (int i = 0; i < 4; ++i) {
    cr_assert_eq(requests[i].answers, 1);
    for (int k = 0; k < 3; ++k) {
      rn_str_t text =
          rn_tstring_view(&RN_DATA(&requests[i].predict.outputs[0].value, rn_tstring_t)[k]);
      size_t size = strlen(texts[(i + k) % 3]);
      cr_assert(text.size == size + 1 && !memcmp(text.data, texts[(i + k) % 3], size) &&
                text.data[size] == '!');
    }
    rn_predict_clear(&requests[i].predict);
  }
  close_bench(&bench);
}

static rn_metric_series_t* series_of(const rn_batcher_options_t* options, rn_metric_id_t id,
                                     const char* label) {
  return rn_metrics_series(options->metrics, id, options->model, rn_str(label), RN_STR(""));
}

static void count_in_metrics(rn_batcher_options_t* options) {
  OK(rn_metrics_create(memory(), &options->metrics));
  options->model = RN_STR("m");
}

Test(batcher, pads_to_allowed_sizes) {
  bench_t bench;
  open_bench(&bench, 1000, 1);
  rn_batcher_options_t options = options_of(&bench);
  fixed_size(&options, 8);
  int64_t allowed[] = {2, 4, 8};
  options.allowed_sizes = allowed;
  options.allowed_count = 3;
  count_in_metrics(&options);
  start(&bench, &options);
  fake_request_t requests[4];
  for (int i = 0; i < 4; ++i) {
    fake_double(&requests[i], i ? 2 : 1, 3, (float)i);
    add(&bench, &requests[i]);
  }
  run_for(&bench, SECOND);
  for (int i = 0; i < 4; ++i) {
    cr_assert(fake_is_doubled(&requests[i], i ? 2 : 1, 3, (float)i));
    cr_assert_eq(requests[i].predict.times.batch_size, i ? 8 : 2);
    rn_predict_clear(&requests[i].predict);
  }
  cr_assert_eq(rn_batcher_stats(bench.batcher).padded, 1 + 2);
  close_bench(&bench);
  const struct {
    rn_metric_id_t id;
    double sum;
  } sums[] = {{RN_METRIC_INPUT_BATCH_SIZE, 1 + 6},
              {RN_METRIC_PROCESSED_BATCH_SIZE, 2 + 8},
              {RN_METRIC_PADDING_SIZE, 1 + 2}};
  for (int i = 0; i < 3; ++i) {
    rn_metric_series_t* series = series_of(&options, sums[i].id, "");
    cr_assert_eq(rn_series_value(series), 2);
    cr_assert_eq(rn_series_sum(series), sums[i].sum);
  }
  cr_assert_eq(rn_series_value(series_of(&options, RN_METRIC_WRAPPED_RUN_COUNT, "")), 2);
  rn_metrics_destroy(options.metrics);
}

Test(batcher, pads_variable_lengths) {
  bench_t bench;
  open_bench(&bench, 1000, 1);
  rn_batcher_options_t options = options_of(&bench);
  fixed_size(&options, 8);
  options.pads_variable = true;
  start(&bench, &options);
  fake_request_t requests[3];
  for (int i = 0; i < 3; ++i) {
    fake_double(&requests[i], 2, 2 + i, 10);
    add(&bench, &requests[i]);
  }
  run_for(&bench, SECOND);
  cr_assert_eq(bench.cost.model.runs, 2);
  const rn_tensor_t* y = &requests[1].predict.outputs[0].value;
  cr_assert_eq(rn_tensor_dim(y, 1), 4);
  const float wanted[] = {20, 22, 24, 20, 26, 28, 30, 20};  // filled up with the first element
  for (int i = 0; i < 8; ++i) cr_assert_eq(RN_DATA(y, float)[i], wanted[i]);
  for (int i = 0; i < 3; ++i) rn_predict_clear(&requests[i].predict);
  close_bench(&bench);
}

Test(batcher, splits_large_requests) {
  bench_t bench;
  open_bench(&bench, 1000, 1);
  rn_batcher_options_t options = options_of(&bench);
  fixed_size(&options, 4);
  options.splits_large = true;
  start(&bench, &options);
  fake_request_t large, small;
  fake_double(&large, 11, 3, 5);
  add(&bench, &large);
  fake_double(&small, 1, 3, 7);
  add(&bench, &small);
  run_for(&bench, SECOND);
  cr_assert(fake_is_doubled(&large, 11, 3, 5));
  cr_assert(fake_is_doubled(&small, 1, 3, 7));
  cr_assert_eq(bench.cost.model.runs, 3);  // 4, 4, 3 and the small one
  rn_predict_clear(&large.predict);
  rn_predict_clear(&small.predict);
  close_bench(&bench);
  options.splits_large = false;
  start(&bench, &options);
  fake_double(&large, 11, 3, 5);
  add(&bench, &large);
  cr_assert_eq(large.code, RN_CODE_INVALID_ARGUMENT);
  cr_assert_str_eq(large.message, "Task size 11 is larger than maximum input batch size 4");
  close_bench(&bench);
}

static int order[16], ordered;
static void note_order(fake_request_t* request) { order[ordered++] = (int)(intptr_t)request->self; }

Test(batcher, runs_by_priority_and_then_by_deadline) {
  bench_t bench;
  open_bench(&bench, 1000, 1);
  rn_batcher_options_t options = options_of(&bench);
  options.is_on = false;
  start(&bench, &options);
  // The first starts at once; the others wait for it.
  static const struct {
    int64_t deadline_ms;
    int priority;
  } rows[] = {{90, 0}, {80, 0}, {50, 0}, {70, 0}, {95, 1}, {40, -1}, {60, 1}};
  fake_request_t requests[7];
  ordered = 0;
  for (int i = 0; i < 7; ++i) {
    fake_double(&requests[i], 1, 1, 1);
    requests[i].predict.deadline_ns = bench.time.now + rows[i].deadline_ms * MS;
    requests[i].predict.priority = rows[i].priority;
    requests[i].self = (void*)(intptr_t)i;
    requests[i].then = note_order;
    add(&bench, &requests[i]);
  }
  run_for(&bench, SECOND);
  const int wanted[] = {0, 6, 4, 2, 3, 1, 5};
  for (int i = 0; i < 7; ++i) {
    cr_assert_eq(order[i], wanted[i]);
    rn_predict_clear(&requests[i].predict);
  }
  close_bench(&bench);
}

Test(batcher, keeps_deadlines_while_a_long_batch_runs) {
  bench_t bench;
  open_bench(&bench, 2000000, 0);
  rn_batcher_options_t options = options_of(&bench);
  count_in_metrics(&options);
  start(&bench, &options);
  fake_request_t requests[20];
  rn_cancel_t cancel;
  rn_cancel_init(&cancel);
  for (int i = 0; i < 20; ++i) {
    fake_double(&requests[i], 1, 1, 1);
    if (i) requests[i].predict.deadline_ns = bench.time.now + 50 * MS;
    if (i == 7) requests[i].predict.cancel = &cancel;
    add(&bench, &requests[i]);
  }
  run_for(&bench, 10 * MS);
  rn_cancel(&cancel);
  cr_assert_eq(requests[7].answers, 1);
  cr_assert_eq(requests[7].code, RN_CODE_CANCELLED);
  int64_t begun = bench.time.now - 10 * MS;
  run_for(&bench, 41 * MS);
  for (int i = 1; i < 20; ++i) {
    if (i == 7) continue;
    cr_assert_eq(requests[i].answers, 1);
    cr_assert_eq(requests[i].code, RN_CODE_DEADLINE_EXCEEDED);
    cr_assert(requests[i].answered_ns >= begun + 50 * MS);
    cr_assert(requests[i].answered_ns <= begun + 51 * MS);
  }
  run_for(&bench, 3 * SECOND);
  cr_assert_eq(requests[0].code, RN_CODE_OK);
  cr_assert_eq(bench.cost.model.runs, 1);  // and no kernel for the others
  rn_batcher_stats_t stats = rn_batcher_stats(bench.batcher);
  cr_assert_eq(stats.expired, 18);
  cr_assert_eq(stats.cancelled, 1);
  // Now the cost is known: what cannot be in time is refused at once, with a hint.
  fake_request_t again[2];
  for (int i = 0; i < 2; ++i) {
    fake_double(&again[i], 1, 1, 1);
    if (i) again[i].predict.deadline_ns = bench.time.now + 50 * MS;
    add(&bench, &again[i]);
  }
  cr_assert_eq(again[1].code, RN_CODE_UNAVAILABLE);
  cr_assert_gt(again[1].predict.retry_ns, SECOND);
  run_for(&bench, 3 * SECOND);
  rn_predict_clear(&again[0].predict);
  rn_predict_clear(&requests[0].predict);
  close_bench(&bench);
  cr_assert_eq(rn_series_value(series_of(&options, RN_METRIC_REFUSED_COUNT, "deadline")), 18);
  cr_assert_eq(rn_series_value(series_of(&options, RN_METRIC_REFUSED_COUNT, "overload")), 1);
  rn_metrics_destroy(options.metrics);
  rn_cancel_destroy(&cancel);
}

// A model that runs until it is cancelled.
typedef struct endless_t {
  rn_cancel_entry_t entry;  // first
  rn_backend_run_t* run;
} endless_t;

static void endless_cancelled(rn_cancel_entry_t* entry) {
  rn_backend_run_t* run = ((endless_t*)entry)->run;
  run->done(run, rn_cancelled("Step was cancelled"));
}

static void endless_run(fake_model_t* fake, rn_backend_run_t* run) {
  endless_t* endless = fake->self;
  *endless = (endless_t){{.fn = endless_cancelled}, run};
  cr_assert_not_null(run->cancel);
  cr_assert(rn_cancel_add(run->cancel, &endless->entry));
}

// Two requests in an endless batch: its lane is free again after the later deadline.
Test(batcher, cancels_a_batch_at_its_last_deadline) {
  bench_t bench;
  open_bench(&bench, 100, 1);
  rn_batcher_options_t options = options_of(&bench);
  fixed_size(&options, 2);
  options.max_wait_ns = SECOND;
  start(&bench, &options);
  endless_t endless;
  bench.cost.model.self = &endless;
  bench.cost.model.on_run = endless_run;
  fake_request_t requests[2], after;
  int64_t begun = bench.time.now;
  for (int i = 0; i < 2; ++i) {
    fake_double(&requests[i], 1, 1, 1);
    requests[i].predict.deadline_ns = begun + (i ? 50 : 80) * MS;
    add(&bench, &requests[i]);
  }
  cr_assert_eq(bench.cost.model.runs, 1);
  run_for(&bench, 79 * MS);
  cr_assert_eq(requests[0].answers + requests[1].answers, 0);
  run_for(&bench, MS);
  for (int i = 0; i < 2; ++i) {
    cr_assert_eq(requests[i].code, RN_CODE_DEADLINE_EXCEEDED, "%s", requests[i].message);
    cr_assert_eq(requests[i].answered_ns, begun + 80 * MS);
  }
  bench.cost.model.on_run = fake_cost_run;
  fake_double(&after, 2, 1, 1);
  after.predict.deadline_ns = bench.time.now + SECOND;
  add(&bench, &after);
  run_for(&bench, MS);
  cr_assert(fake_is_doubled(&after, 2, 1, 1));
  rn_predict_clear(&after.predict);
  close_bench(&bench);
}

// A request that runs alone is ended by its client, or by its deadline, whichever comes first.
Test(batcher, cancels_one_request) {
  for (int is_late = 0; is_late < 2; ++is_late) {
    bench_t bench;
    open_bench(&bench, 100, 1);
    rn_batcher_options_t options = options_of(&bench);
    fixed_size(&options, 1);
    start(&bench, &options);
    endless_t endless;
    bench.cost.model.self = &endless;
    bench.cost.model.on_run = endless_run;
    rn_cancel_t cancel;
    rn_cancel_init(&cancel);
    fake_request_t request;
    fake_double(&request, 1, 1, 1);
    request.predict.cancel = &cancel;
    request.predict.deadline_ns = bench.time.now + 50 * MS;
    add(&bench, &request);
    run_for(&bench, (is_late ? 50 : 49) * MS);
    cr_assert_eq(request.answers, is_late);
    rn_cancel(&cancel);
    cr_assert_eq(request.answers, 1);
    cr_assert_eq(request.code, is_late ? RN_CODE_DEADLINE_EXCEEDED : RN_CODE_CANCELLED);
    close_bench(&bench);
    rn_cancel_destroy(&cancel);
  }
}

Test(batcher, waits_for_others_as_told) {
  bench_t bench;
  open_bench(&bench, 100, 1);
  rn_batcher_options_t options = options_of(&bench);
  fixed_size(&options, 4);
  options.max_wait_ns = 5 * MS;
  start(&bench, &options);
  fake_request_t requests[3];
  for (int i = 0; i < 3; ++i) {
    fake_double(&requests[i], 1, 1, (float)i);
    add(&bench, &requests[i]);
    run_for(&bench, MS);
  }
  cr_assert_eq(bench.cost.model.runs, 0);
  run_for(&bench, 3 * MS);
  cr_assert_eq(bench.cost.model.runs, 1);
  for (int i = 0; i < 3; ++i) {
    cr_assert(fake_is_doubled(&requests[i], 1, 1, (float)i));
    rn_predict_clear(&requests[i].predict);
  }
  // A full batch does not wait, not even for one of another shape, and neither does a deadline.
  fake_request_t other, full, hurried;
  fake_double(&other, 1, 2, 1);
  add(&bench, &other);
  fake_double(&full, 4, 1, 1);
  add(&bench, &full);
  run_for(&bench, MS);
  cr_assert_eq(full.answers, 1);
  cr_assert_eq(other.answers, 0);
  run_for(&bench, 5 * MS);
  cr_assert_eq(other.answers, 1);
  rn_predict_clear(&other.predict);
  fake_double(&hurried, 1, 1, 1);
  hurried.predict.deadline_ns = bench.time.now + 2 * MS;
  add(&bench, &hurried);
  run_for(&bench, 2 * MS);
  cr_assert(fake_is_doubled(&hurried, 1, 1, 1));
  rn_predict_clear(&full.predict);
  rn_predict_clear(&hurried.predict);
  close_bench(&bench);
}

Test(batcher, refuses_beyond_the_length_of_its_queue) {
  bench_t bench;
  open_bench(&bench, 1000, 1);
  rn_batcher_options_t options = options_of(&bench);
  fixed_size(&options, 1);
  options.max_queued = 3;
  count_in_metrics(&options);
  start(&bench, &options);
  fake_request_t requests[6];
  for (int i = 0; i < 6; ++i) {
    fake_double(&requests[i], 1, 1, (float)i);
    add(&bench, &requests[i]);
  }
  for (int i = 4; i < 6; ++i) {
    cr_assert_eq(requests[i].code, RN_CODE_UNAVAILABLE);
    cr_assert(strstr(requests[i].message,
                     "The batch scheduling queue to which this task was submitted is full"));
    cr_assert_gt(requests[i].predict.retry_ns, 0);
  }
  run_for(&bench, SECOND);
  for (int i = 0; i < 4; ++i) {
    cr_assert(fake_is_doubled(&requests[i], 1, 1, (float)i));
    rn_predict_clear(&requests[i].predict);
  }
  close_bench(&bench);
  cr_assert_eq(rn_series_value(series_of(&options, RN_METRIC_REFUSED_COUNT, "full")), 2);
  cr_assert_eq(rn_series_value(series_of(&options, RN_METRIC_REFUSED_COUNT, "overload")), 0);
  rn_metrics_destroy(options.metrics);
}

// Fails every batch with a negative number in it.
static void picky_run(fake_model_t* fake, rn_backend_run_t* run) {
  (void)fake;
  rn_status_t status = RN_OK;
  for (int64_t i = 0; i < run->inputs[0].count && rn_ok(status); ++i)
    if (RN_DATA(&run->inputs[0], float)[i] < 0) status = rn_invalid_argument("negative");
  if (rn_ok(status)) status = fake_compute(run);
  run->done(run, status);
}

Test(batcher, a_bad_request_does_not_fail_its_neighbours) {
  bench_t bench;
  open_bench(&bench, 1000, 1);
  rn_batcher_options_t options = options_of(&bench);
  fixed_size(&options, 8);
  options.max_wait_ns = MS;
  start(&bench, &options);
  bench.cost.model.on_run = picky_run;
  fake_request_t requests[5];
  for (int i = 0; i < 5; ++i) {
    fake_double(&requests[i], 1, 1, i == 2 ? -1 : (float)i);
    add(&bench, &requests[i]);
  }
  run_for(&bench, SECOND);
  cr_assert_eq(bench.cost.model.runs, 6);
  for (int i = 0; i < 5; ++i) {
    if (i == 2) {
      cr_assert_eq(requests[i].code, RN_CODE_INVALID_ARGUMENT);
      cr_assert_str_eq(requests[i].message, "negative");
    } else {
      cr_assert(fake_is_doubled(&requests[i], 1, 1, (float)i));
    }
    rn_predict_clear(&requests[i].predict);
  }
  close_bench(&bench);
}

// Outputs of another number of rows: the model cannot be batched, although it says so.
static void sum_run(fake_model_t* fake, rn_backend_run_t* run) {
  (void)fake;
  int64_t dims[] = {1, 1};
  rn_status_t status = rn_tensor_create(memory(), RN_FLOAT, (rn_shape_t){2, dims}, run->outputs);
  float sum = 0;
  for (int64_t i = 0; i < run->inputs[0].count; ++i) sum += RN_DATA(&run->inputs[0], float)[i];
  if (rn_ok(status)) *RN_DATA(run->outputs, float) = sum;
  run->done(run, status);
}

Test(batcher, a_model_that_mixes_rows_is_not_batched) {
  bench_t bench;
  open_bench(&bench, 1000, 1);
  rn_batcher_options_t options = options_of(&bench);
  fixed_size(&options, 8);
  options.max_wait_ns = MS;
  start(&bench, &options);
  bench.cost.model.on_run = sum_run;
  for (int round = 0; round < 3; ++round) {
    fake_request_t requests[5];
    for (int i = 0; i < 5; ++i) {
      fake_double(&requests[i], 1, 1, (float)i);
      add(&bench, &requests[i]);
    }
    run_for(&bench, SECOND);
    for (int i = 0; i < 5; ++i) {
      cr_assert_eq(requests[i].code, RN_CODE_OK);
      cr_assert_eq(*RN_DATA(&requests[i].predict.outputs[0].value, float), (float)i);
      rn_predict_clear(&requests[i].predict);
    }
  }
  cr_assert_eq(bench.cost.model.runs, 1 + 15);
  close_bench(&bench);
}

Test(batcher, requests_without_rows_run_alone) {
  bench_t bench;
  open_bench(&bench, 1000, 1);
  rn_batcher_options_t options = options_of(&bench);
  fixed_size(&options, 8);
  start(&bench, &options);
  fake_request_t requests[4];
  for (int i = 0; i < 4; ++i) {
    fake_double(&requests[i], i == 1 ? 0 : 2, 2, (float)i);
    if (i > 1) requests[i].predict.signature = RN_STR("whole");
    add(&bench, &requests[i]);
  }
  run_for(&bench, SECOND);
  cr_assert_eq(bench.cost.model.runs, 4);
  cr_assert(fake_is_doubled(&requests[1], 0, 2, 1));
  cr_assert_eq(*RN_DATA(&requests[3].predict.outputs[0].value, float), 3 + 4 + 5 + 6);
  for (int i = 0; i < 4; ++i) rn_predict_clear(&requests[i].predict);
  close_bench(&bench);
}

// Whichever allocation fails, every request is answered once, and nothing is lost.
Test(batcher, answers_without_memory) {
  for (int64_t fail_at = 1; fail_at < 80; ++fail_at) {
    rn_counting_allocator_t counting = {.base = rn_allocator_system()};
    bench_t bench;
    open_bench(&bench, 1000, 1);
    rn_batcher_options_t options = options_of(&bench);
    fixed_size(&options, 6);
    int64_t allowed[] = {4, 6};
    options.allowed_sizes = allowed;
    options.allowed_count = 2;
    options.splits_large = true;
    options.allocator = rn_allocator_counting(&counting);
    counting.fail_at = fail_at;
    rn_status_t status = rn_batcher_create(&options, &bench.cost.model.base, &bench.batcher);
    if (!rn_ok(status)) {
      rn_status_free(status);
      cr_assert_eq(counting.live_bytes, 0);
      continue;
    }
    fake_request_t requests[4];
    for (int i = 0; i < 4; ++i) {
      fake_double(&requests[i], i == 2 ? 8 : 1, 2, (float)i);
      counting.fail_at = 0;
      prepare(&bench, &requests[i], options.allocator);
      counting.fail_at = fail_at;
      rn_batcher_add(bench.batcher, &requests[i].predict);
    }
    run_for(&bench, SECOND);
    for (int i = 0; i < 4; ++i) {
      cr_assert_eq(requests[i].answers, 1);
      if (requests[i].code)
        cr_assert_eq(requests[i].code, RN_CODE_RESOURCE_EXHAUSTED);
      else
        cr_assert(fake_is_doubled(&requests[i], i == 2 ? 8 : 1, 2, (float)i));
      rn_predict_clear(&requests[i].predict);
    }
    close_bench(&bench);
    cr_assert_eq(counting.live_bytes, 0);
  }
}
