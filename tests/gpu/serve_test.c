// Served models on a GPU: batches in page-locked memory, two at a time, and which card has which
// model.
#include <stdatomic.h>

#include "../serve/util.h"
#include "serve/model/gpus.h"
#include "serve/model/loader.h"
#include "serve/model/version.h"

#define ROWS 20000  // per request: 80 KB, which is worth page-locked memory
#define REQUESTS 6
#define MOST_BLOCKS 64
#define WAIT_US 20000000

// The model behind another vtable and another device, which look at its batches.
typedef struct seen_t {
  rn_backend_t base;    // first
  rn_backend_t* model;  // Owned
  rn_device_t device;   // the model's, with page-locked memory that is watched
  rn_allocator_t below;
  void* _Atomic blocks[MOST_BLOCKS];
  _Atomic int block_count;
  _Atomic int pinned, joined, now, most;
  int wanted;  // batches at a time that the first ones wait for
} seen_t;

static void* watch_memory(void* self, void* block, size_t old_size, size_t size) {
  seen_t* seen = self;
  void* made = seen->below.fn(seen->below.self, block, old_size, size);
  int i = made && size >= ROWS * sizeof(float) ? seen->block_count++ : MOST_BLOCKS;
  if (i < MOST_BLOCKS) seen->blocks[i] = made;
  return made;
}

static bool is_pinned(const seen_t* seen, const rn_tensor_t* tensor) {
  for (int i = 0; i < seen->block_count && i < MOST_BLOCKS; ++i)
    if (seen->blocks[i] && (uintptr_t)tensor->data - (uintptr_t)seen->blocks[i] < 4096) return true;
  return false;
}

static void watch_run(rn_backend_t* base, rn_backend_run_t* run) {
  seen_t* seen = (seen_t*)base;
  bool is_joined = run->inputs[0].count > ROWS;
  seen->joined += is_joined;
  seen->pinned += is_joined && is_pinned(seen, &run->inputs[0]);
  int now = ++seen->now, most = seen->most;
  while (now > most && !atomic_compare_exchange_weak(&seen->most, &most, now)) {
  }
  for (int us = 0; seen->most < seen->wanted && us < WAIT_US; us += 100) usleep(100);
  seen->model->vtable->run(seen->model, run);
  --seen->now;
}

static void watch_destroy(rn_backend_t* base) {
  seen_t* seen = (seen_t*)base;
  seen->model->vtable->destroy(seen->model);
}

static const rn_backend_vtable_t watched = {
    .kind = "tensorflow", .run = watch_run, .destroy = watch_destroy};

static void seen_open(seen_t* seen) {
  OK(serve_load(SERVE_TWO "/00000123", rn_env_system(), &seen->model));
  seen->base = *seen->model;
  seen->base.vtable = &watched;
  cr_assert_not_null(seen->model->device);
  cr_assert_str_eq(seen->model->device->type, "GPU");
  seen->device = *seen->model->device;
  seen->below = seen->device.transfer_memory;
  seen->device.transfer_memory = (rn_allocator_t){.fn = watch_memory, .self = seen};
  seen->base.device = &seen->device;
}

typedef struct asked_t {
  rn_predict_t predict;  // first
  rn_predict_value_t input;
  rn_status_t status;
  _Atomic bool is_done;
} asked_t;

static void on_answered(rn_predict_t* predict, rn_status_t status) {
  asked_t* asked = (asked_t*)predict;
  asked->status = status;
  asked->is_done = true;
}

static void ask(rn_version_t* version, asked_t* asked, int number) {
  static float values[ROWS];
  for (int i = 0; i < ROWS; ++i) values[i] = (float)(i % 100 + number);
  asked->input = (rn_predict_value_t){RN_STR("x"), serve_column(values, ROWS)};
  asked->predict = (rn_predict_t){.inputs = &asked->input,
                                  .input_count = 1,
                                  .deadline_ns = INT64_MAX,
                                  .done = on_answered,
                                  .allocator = rn_allocator_default()};
  rn_version_predict(version, &asked->predict);
}

static void check_answer(asked_t* asked, int number) {
  for (int us = 0; !asked->is_done && us < WAIT_US; us += 100) usleep(100);
  cr_assert(asked->is_done);
  OK(asked->status);
  cr_assert_eq(asked->predict.outputs[0].value.count, ROWS);
  for (int i = 0; i < ROWS; ++i)
    cr_assert_eq(RN_DATA(&asked->predict.outputs[0].value, float)[i],
                 0.5f * (float)(i % 100 + number) + 2);
  rn_predict_clear(&asked->predict);
}

static void on_idle(void* self, rn_version_t* version) {
  rn_version_destroy(version);
  *(bool*)self = true;
}

// The first two requests start at once, one per lane, and wait for each other. The others are
// joined meanwhile.
Test(gpu_serve, batches, .timeout = 120) {
  seen_t seen = {.wanted = 2};
  seen_open(&seen);
  cr_assert_eq(seen.base.lanes, 2);
  rn_pool_t *pool, *device_pool;
  OK(rn_pool_create(rn_allocator_default(), 1, &pool));  // runs nothing: the device's does
  OK(rn_pool_create(rn_allocator_default(), 5, &device_pool));
  bool is_idle = false;
  rn_version_t* version = NULL;
  rn_backend_t* replicas[] = {&seen.base};
  rn_version_options_t options = {.model = RN_STR("half"),
                                  .replicas = replicas,
                                  .replica_count = 1,
                                  .batching = {.is_on = true,
                                               .size = {.policy = RN_BATCH_FIXED, .max = 1 << 20},
                                               .pool = pool,
                                               .device_pool = device_pool,
                                               .env = rn_env_system(),
                                               .allocator = rn_allocator_default()},
                                  .env = rn_env_system(),
                                  .allocator = rn_allocator_default(),
                                  .idle = on_idle,
                                  .self = &is_idle};
  OK(rn_version_create(&options, &version));
  asked_t asked[REQUESTS] = {0};
  for (int i = 0; i < REQUESTS; ++i) ask(version, &asked[i], i);
  for (int i = 0; i < REQUESTS; ++i) check_answer(&asked[i], i);
  cr_expect_eq(seen.most, 2);
  cr_expect_geq(seen.joined, 1);
  cr_expect_eq(seen.pinned, seen.joined);
  rn_version_release(version);
  cr_assert(is_idle);
  rn_pool_destroy(device_pool);
  rn_pool_destroy(pool);
}

// Loads half_plus_two, |replicas| times; says which card each has, 'x' for none.
static rn_status_t cards_of(const char* gpus, int replicas, char* out) {
  rn_loader_options_t options = {.gpus = rn_str(gpus),
                                 .replicas = replicas,
                                 .env = rn_env_system(),
                                 .allocator = rn_allocator_default()};
  rn_session_options_init(&options.session);
  rn_loader_t* loader = NULL;
  rn_backend_t** backends = NULL;
  int count = 0;
  RN_RETURN_IF_ERROR(rn_loader_create(&options, &loader));
  rn_pb_serving_ModelConfig_t config = {.name = RN_STR("half")};
  rn_status_t status =
      rn_loader_load(loader, &config, 123, SERVE_TWO "/00000123", &backends, &count);
  for (int i = 0; i < count; ++i) {
    const rn_device_t* device = backends[i]->device;
    const char* bus = device ? strstr(device->description, "pci bus id: ") : NULL;
    unsigned domain = 0, card = 0;
    out[i] =
        bus && sscanf(bus, "pci bus id: %x:%x", &domain, &card) == 2 ? (char)('0' + card) : 'x';
    backends[i]->vtable->destroy(backends[i]);
  }
  out[count] = '\0';
  if (backends) RN_FREE_ARRAY(options.allocator, backends, count);
  rn_loader_destroy(loader);
  return status;
}

Test(gpu_serve, cards_of_replicas, .timeout = 120) {
  setenv("RN_EMULATED_GPUS", "3", 1);
  static const struct {
    const char *gpus, *cards;
  } rows[] = {
      {"", "01201"},
      {"half=1", "11111"},
      {"half=2+0", "20202"},
      {"half=none", "xxxxx"},
      {"other=1", "01201"},
      {"other=none, half = 1", "11111"},
      {"", "0"},
      {"half=2,other=1,x=0", "22"},
  };
  char first[8], cards[8];
  OK(cards_of("half=0", 1, first));  // the buses need not begin with 0
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    OK(cards_of(rows[i].gpus, (int)strlen(rows[i].cards), cards));
    for (char* card = cards; *card; ++card)
      if (*card != 'x') *card = (char)(*card - *first + '0');
    cr_expect_str_eq(cards, rows[i].cards, "'%s': %s", rows[i].gpus, cards);
  }
}

Test(gpu_serve, refuses_other_cards, .timeout = 120) {
  static const char* const lists[] = {"half",   "half=",   "=1",       "half=-1",
                                      "half=a", "half=+1", "half=1;2", "half=32"};
  char cards[8];
  for (size_t i = 0; i < sizeof lists / sizeof *lists; ++i)
    FAILS_WITH(cards_of(lists[i], 1, cards), INVALID_ARGUMENT, "NAME=GPU");
  FAILS_WITH(cards_of("half=5", 1, cards), INVALID_ARGUMENT, "visible_device_list");
}
