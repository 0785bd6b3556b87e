// Served models on a GPU: batches in page-locked memory, two at a time, and which card has which
// model.
#include <stdatomic.h>

#include "../serve/util.h"
#include "device/cuda/driver_api.h"
#include "emulated_driver.h"
#include "serve/front/shared_memory.h"
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

// Memory on a card that a client would share; the emulated driver opens handles of its own process.
#define SHARED 5000

#define FIND(library, name)                                \
  __typeof__(name)* find_##name = dlsym((library), #name); \
  cr_assert_not_null(find_##name)
CUresult cuIpcGetMemHandle(CUipcMemHandle* out, CUdeviceptr address);
CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t size);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuInit(unsigned flags);
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device);
CUresult cuCtxSetCurrent(CUcontext context);

Test(gpu_serve, shared_memory_on_cards, .timeout = 120) {
  find_emulator();
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  cr_assert_not_null(driver, "%s", dlerror());
  FIND(driver, cuInit);
  FIND(driver, cuDevicePrimaryCtxRetain);
  FIND(driver, cuCtxSetCurrent);
  FIND(driver, cuMemAlloc_v2);
  FIND(driver, cuMemFree_v2);
  FIND(driver, cuIpcGetMemHandle);
  CUcontext context;
  CUdeviceptr address;
  CUipcMemHandle bytes;
  cr_assert_eq(find_cuInit(0), 0);
  cr_assert_eq(find_cuDevicePrimaryCtxRetain(&context, 0), 0);
  cr_assert_eq(find_cuCtxSetCurrent(context), 0);
  cr_assert_eq(find_cuMemAlloc_v2(&address, SHARED), 0);
  cr_assert_eq(find_cuIpcGetMemHandle(&bytes, address), 0);
  rn_str_t handle = rn_str_n(bytes.reserved, sizeof bytes.reserved), name = RN_STR("r");
  char other[RN_PEER_HANDLE] = "not a handle", text[SHARED], found[SHARED];
  for (int i = 0; i < SHARED; ++i) text[i] = (char)(i * 7);

  rn_shared_memory_t* regions = NULL;
  OK(rn_shared_memory_create(rn_allocator_default(), &regions));
  FAILS_WITH(rn_shared_memory_add_cuda(regions, name, handle, 1, SHARED), INVALID_ARGUMENT,
             "no GPU 1");
  FAILS_WITH(rn_shared_memory_add_cuda(regions, name, handle, -1, SHARED), INVALID_ARGUMENT,
             "no GPU -1");
  FAILS_WITH(rn_shared_memory_add_cuda(regions, name, handle, 0, SHARED + 1), INVALID_ARGUMENT,
             "has 5000 bytes, not 5001");
  FAILS_WITH(rn_shared_memory_add_cuda(regions, name, handle, 0, 0), INVALID_ARGUMENT, "a size");
  FAILS_WITH(rn_shared_memory_add_cuda(regions, name, rn_str_n(other, sizeof other), 0, 10),
             INVALID_ARGUMENT, "does not open the handle");
  FAILS_WITH(rn_shared_memory_add_cuda(regions, name, RN_STR("short"), 0, 10), INVALID_ARGUMENT,
             "64 bytes, not 5");
  OK(rn_shared_memory_add_cuda(regions, name, handle, 0, SHARED));
  FAILS(rn_shared_memory_add_cuda(regions, name, handle, 0, SHARED), ALREADY_EXISTS);

  OK(rn_shared_memory_write(regions, name, 0, rn_str_n(text, SHARED)));
  OK(rn_shared_memory_write(regions, name, 100, RN_STR("in between")));
  memcpy(text + 100, "in between", 10);
  rn_buffer_t* buffer = NULL;
  for (int at = 0; at < SHARED; at += 1250) {
    OK(rn_shared_memory_read(regions, name, (uint64_t)at, 1250, &buffer));
    memcpy(found + at, buffer->data, 1250);
    rn_buffer_release(buffer);
  }
  cr_assert_eq(memcmp(found, text, SHARED), 0);
  FAILS(rn_shared_memory_read(regions, name, 1, SHARED, &buffer), INVALID_ARGUMENT);
  FAILS(rn_shared_memory_read(regions, name, UINT64_MAX, 2, &buffer), INVALID_ARGUMENT);
  FAILS(rn_shared_memory_write(regions, name, SHARED, RN_STR("x")), INVALID_ARGUMENT);

  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_default());
  rn_region_info_t* list = NULL;
  size_t count = 0;
  OK(rn_shared_memory_list(regions, RN_REGION_CUDA, RN_STR(""), &arena, &list, &count));
  cr_assert_eq(count, 1);
  cr_assert(rn_str_is(list->name, "r") && list->size == SHARED && list->card == 0);
  OK(rn_shared_memory_list(regions, RN_REGION_SYSTEM, RN_STR(""), &arena, &list, &count));
  cr_assert_eq(count, 0);
  rn_shared_memory_remove(regions, RN_REGION_SYSTEM, name);  // is of the other kind
  OK(rn_shared_memory_read(regions, name, 0, 1, &buffer));
  rn_buffer_release(buffer);
  rn_shared_memory_remove(regions, RN_REGION_CUDA, RN_STR(""));
  FAILS(rn_shared_memory_read(regions, name, 0, 1, &buffer), NOT_FOUND);
  rn_arena_clear(&arena);
  rn_shared_memory_destroy(regions);
  cr_assert_eq(find_cuCtxSetCurrent(context), 0);
  cr_assert_eq(find_cuMemFree_v2(address), 0);
}
