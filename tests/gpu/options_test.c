// Which GPUs a ConfigProto gives a session, on an emulated machine with two.
#include <stdlib.h>

#include "proto/config.pb.h"
#include "util.h"
#include "wire/encode.h"

#define MIB ((int64_t)1 << 20)
#define TWO_GPUS "RN_EMULATED_GPUS", "2", 1

// The options that a client's bytes give.
typedef struct config_t {
  int32_t count;  // device_count["GPU"]; -1: not set
  double fraction;
  const char* visible;
  int cards, parts[4];  // virtual_devices
  float limits[4][4];
} config_t;

static rn_status_t parse(const config_t* config, rn_session_options_t* out) {
  rn_pb_ConfigProto_DeviceCountEntry_t count = {RN_STR("GPU"), config->count};
  rn_pb_GPUOptions_Experimental_VirtualDevices_t cards[4] = {0};
  rn_pb_GPUOptions_Experimental_t experimental = {0};
  rn_pb_GPUOptions_t gpu = {.per_process_gpu_memory_fraction = config->fraction};
  rn_pb_ConfigProto_t proto = {.gpu_options = &gpu};
  if (config->count >= 0) proto.device_count.items = &count, proto.device_count.count = 1;
  if (config->visible) gpu.visible_device_list = rn_str(config->visible);
  for (int c = 0; c < config->cards; ++c) {
    cards[c].memory_limit_mb.items = (float*)(uintptr_t)config->limits[c];
    cards[c].memory_limit_mb.count = (uint32_t)config->parts[c];
  }
  experimental.virtual_devices.items = cards;
  experimental.virtual_devices.count = (uint32_t)config->cards;
  if (config->cards) gpu.experimental = &experimental;
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, rn_allocator_system());
  OK(RN_PB_ENCODE(ConfigProto, &proto, NULL, &bytes));
  rn_status_t status = rn_session_options_parse(rn_strbuf_view(&bytes), out);
  rn_strbuf_clear(&bytes);
  return status;
}

typedef struct machine_t {
  rn_graph_t* graph;
  rn_session_t* session;
} machine_t;

static rn_status_t machine_open(machine_t* machine, const config_t* config) {
  rn_session_options_t options;
  rn_session_options_init(&options);
  *machine = (machine_t){0};
  RN_RETURN_IF_ERROR(parse(config, &options));
  OK(rn_graph_create(rn_allocator_system(), &machine->graph));
  return rn_session_create(machine->graph, &options, rn_env_system(), rn_allocator_system(),
                           &machine->session);
}

static void machine_close(machine_t* machine) {
  rn_session_destroy(machine->session);
  rn_graph_release(machine->graph);
}

static int gpus(const machine_t* machine) { return rn_session_device_count(machine->session) - 1; }
static const rn_device_t* gpu(const machine_t* machine, int i) {
  return rn_session_device(machine->session, i + 1);
}

static void refused(const config_t* config, rn_code_t code, const char* message) {
  machine_t machine;
  rn_status_t status = machine_open(&machine, config);
  cr_assert_eq(rn_status_code(status), code, "%s", rn_status_message(status));
  cr_assert_str_eq(rn_status_message(status), message);
  rn_status_free(status);
  machine_close(&machine);
}

// Not on a machine's own GPUs, whose number is what it is.
#define OPTIONS_TEST(name)                                                    \
  static void test_##name(void);                                              \
  RT_TEST(gpu_options, name) {                                                \
    if (!getenv("RUNNEL_CUDA_PATH")) cr_skip_test("needs two emulated GPUs"); \
    setenv(TWO_GPUS);                                                         \
    test_##name();                                                            \
  }                                                                           \
  static void test_##name(void)

OPTIONS_TEST(all_by_default) {
  machine_t machine;
  OK(machine_open(&machine, &(config_t){.count = -1}));
  cr_assert_eq(gpus(&machine), 2);
  cr_assert_str_eq(gpu(&machine, 1)->name.data, "/job:localhost/replica:0/task:0/device:GPU:1");
  cr_assert_neq(gpu(&machine, 0)->incarnation, 0);
  cr_assert_neq(gpu(&machine, 0)->incarnation, gpu(&machine, 1)->incarnation);
  const char* text = gpu(&machine, 1)->description;
  cr_assert(strstr(text, "device: 1, name: "), "%s", text);
  cr_assert(strstr(text, ", pci bus id: "), "%s", text);
  cr_assert(strstr(text, ", compute capability: "), "%s", text);
  machine_close(&machine);
}

OPTIONS_TEST(device_count_is_the_most) {
  for (int count = 0; count < 4; ++count) {
    machine_t machine;
    OK(machine_open(&machine, &(config_t){.count = count}));
    cr_assert_eq(gpus(&machine), count < 2 ? count : 2);
    machine_close(&machine);
  }
}

OPTIONS_TEST(visible_devices_in_their_order) {
  machine_t machine;
  OK(machine_open(&machine, &(config_t){.count = -1, .visible = "1, 0"}));
  cr_assert_eq(gpus(&machine), 2);
  cr_assert_str_neq(gpu(&machine, 0)->description, gpu(&machine, 1)->description);
  machine_close(&machine);
  OK(machine_open(&machine, &(config_t){.count = -1, .visible = "1"}));
  cr_assert_eq(gpus(&machine), 1);
  machine_close(&machine);
}

OPTIONS_TEST(bad_lists) {
  refused(&(config_t){.count = -1, .visible = "0,abc"}, RN_CODE_INVALID_ARGUMENT,
          "Could not parse entry in 'visible_device_list': 'abc'. visible_device_list = 0,abc");
  refused(&(config_t){.count = -1, .visible = "0,"}, RN_CODE_INVALID_ARGUMENT,
          "Could not parse entry in 'visible_device_list': ''. visible_device_list = 0,");
  refused(&(config_t){.count = -1, .visible = "2"}, RN_CODE_INVALID_ARGUMENT,
          "'visible_device_list' listed an invalid Device id '2' but visible device count is 2");
  refused(&(config_t){.count = -1, .visible = "-1"}, RN_CODE_INVALID_ARGUMENT,
          "'visible_device_list' listed an invalid Device id '-1' but visible device count is 2");
  refused(&(config_t){.count = -1, .visible = "1,1"}, RN_CODE_INVALID_ARGUMENT,
          "visible_device_list contained a duplicate entry: 1,1");
}

OPTIONS_TEST(memory_fraction) {
  machine_t whole, quarter;
  OK(machine_open(&whole, &(config_t){.count = -1}));
  int64_t memory = gpu(&whole, 0)->memory_limit;
  cr_assert_eq(memory, 1024 * MIB);  // the emulator's
  machine_close(&whole);
  OK(machine_open(&quarter, &(config_t){.count = -1, .fraction = 0.25}));
  cr_assert_eq(gpu(&quarter, 0)->memory_limit, memory / 4);
  void* block = NULL;
  rn_status_t status = rn_alloc(gpu(&quarter, 0)->allocator, (size_t)(300 * MIB), &block);
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  rn_status_free(status);
  OK(rn_alloc(gpu(&quarter, 0)->allocator, (size_t)(100 * MIB), &block));
  rn_device_memory_t use;
  rn_device_t* device = (rn_device_t*)(uintptr_t)gpu(&quarter, 0);
  device->vtable->memory_use(device, &use);
  cr_assert_eq(use.now, 100 * MIB);
  cr_assert_geq(use.peak, use.now);
  rn_free(device->allocator, block, (size_t)(100 * MIB));
  machine_close(&quarter);
}

OPTIONS_TEST(virtual_devices) {
  machine_t machine;
  config_t config = {.count = -1, .cards = 2, .parts = {2, 0}, .limits = {{64, 128}}};
  OK(machine_open(&machine, &config));
  cr_assert_eq(gpus(&machine), 3);
  cr_assert_eq(gpu(&machine, 0)->memory_limit, 64 * MIB);
  cr_assert_eq(gpu(&machine, 1)->memory_limit, 128 * MIB);
  cr_assert_eq(gpu(&machine, 2)->memory_limit, 1024 * MIB);
  cr_assert_neq(gpu(&machine, 0)->allocator.self, gpu(&machine, 1)->allocator.self);
  machine_close(&machine);
}

// Two devices of one card exchange values.
OPTIONS_TEST(virtual_devices_compute) {
  rt_t rt = rt_begin(1);
  config_t config = {.count = -1, .cards = 1, .parts = {2}, .limits = {{64, 64}}};
  OK(parse(&config, &rt.options));
  rn_edge_t x = rt_placeholder(&rt, "x");
  rn_scope_set_device(rt.s, "/gpu:0");
  rn_edge_t y = rn_AddV2(rt.s, x, x);
  rn_scope_set_device(rt.s, "/gpu:1");
  rn_edge_t z = rn_Mul(rt.s, y, x);
  rn_scope_set_device(rt.s, NULL);
  for (int turn = 1; turn < 5; ++turn)
    cr_assert_eq(rt_get(&rt, z, x, (float)turn), (float)(2 * turn * turn));
  rt_end(&rt);
}

OPTIONS_TEST(bad_virtual_devices) {
  refused(&(config_t){.count = -1, .fraction = 0.1, .cards = 1}, RN_CODE_INVALID_ARGUMENT,
          "It's invalid to set per_process_gpu_memory_fraction when virtual_devices is set.");
  refused(&(config_t){.count = 1, .cards = 2}, RN_CODE_UNKNOWN,
          "Not enough GPUs to create virtual devices. num_gpus_to_use: 1 #virtual_devices: 2");
  refused(&(config_t){.count = -1, .visible = "0,1", .cards = 1}, RN_CODE_INVALID_ARGUMENT,
          "The number of GPUs in visible_device_list doesn't match the number of elements in the "
          "virtual_devices list.");
  refused(&(config_t){.count = -1, .cards = 1, .parts = {1}, .limits = {{-1}}},
          RN_CODE_INVALID_ARGUMENT, "virtual_devices has a memory_limit_mb of -1");
}

// The message does not blame the build when there are GPUs.
OPTIONS_TEST(a_gpu_that_is_not_there) {
  rt_t rt = rt_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x");
  rn_scope_set_device(rt.s, "/gpu:7");
  rn_edge_t y = rn_AddV2(rt.s, x, x);
  rt_step_t step = {0};
  rn_tensor_t one = rt_scalar(1);
  rt_feed(&step, x, &one);
  rt_fetch(&step, y);
  rn_status_t status = rt_run(&rt, &step);
  rn_tensor_clear(&one);
  cr_assert_eq(rn_status_code(status), RN_CODE_INVALID_ARGUMENT);
  cr_assert(strstr(rn_status_message(status), "was explicitly assigned to /gpu:7 but available"));
  cr_assert(!strstr(rn_status_message(status), "CUDA"), "%s", rn_status_message(status));
  rn_status_free(status);
  rt_clear(&step);
  rt_end(&rt);
}
