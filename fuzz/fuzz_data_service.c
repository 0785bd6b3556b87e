// Fuzzes calls to a dispatcher and a worker of the tf.data service: one byte for the method, two
// for the size, then the message; up to twelve calls in sequence, on fresh servers. Ids are
// predictable, so that inputs can use them. Every call must end, and the servers reach nothing but
// each other.
#include <stdio.h>

#include "base/net.h"
#include "data_service/ask.h"
#include "data_service/server.h"
#include "fuzz/util.h"
#include "proto/service_config.pb.h"
#include "wire/encode.h"

#define MAX_CALLS 12
#define CALL_NS INT64_C(300000000)
#define CLOSE_NS INT64_C(10000000000)
#define PAUSE_NS 1000000
#define DISPATCHER_METHODS 16

static const char* const methods[] = {
#define DISPATCHER(name) "/tensorflow.data.DispatcherService/" #name
    DISPATCHER(WorkerHeartbeat),
    DISPATCHER(WorkerUpdate),
    DISPATCHER(GetDatasetDef),
    DISPATCHER(GetSplit),
    DISPATCHER(GetVersion),
    DISPATCHER(GetOrRegisterDataset),
    DISPATCHER(ReleaseIterationClient),
    DISPATCHER(MaybeRemoveTask),
    DISPATCHER(GetOrCreateJob),
    DISPATCHER(GetOrCreateIteration),
    DISPATCHER(ClientHeartbeat),
    DISPATCHER(GetWorkers),
    DISPATCHER(GetDataServiceMetadata),
    DISPATCHER(GetDataServiceConfig),
    DISPATCHER(DisableCompressionAtRuntime),
    DISPATCHER(Nothing),
    "/tensorflow.data.WorkerService/ProcessTask",
    "/tensorflow.data.WorkerService/GetElement",
    "/tensorflow.data.WorkerService/GetWorkerTasks",
    "/tensorflow.data.WorkerService/Nothing"};

typedef struct fuzz_service_t {
  rn_env_t env;
  rn_net_t net;
  _Atomic uint64_t next_random;
  fuzz_memory_t memory;
  rn_ds_server_t *dispatcher, *worker;
  rn_loop_t* loop;
  rn_channel_t *to_dispatcher, *to_worker;
  char dispatcher_address[32], worker_address[32];
} fuzz_service_t;

static uint64_t next_number(void* self) { return ++((fuzz_service_t*)self)->next_random; }
static int64_t system_now(void* self) {
  (void)self;
  return rn_env_system()->now_ns(rn_env_system()->self);
}
static int64_t system_wall(void* self) {
  (void)self;
  return rn_env_system()->wall_us(rn_env_system()->self);
}

// Inputs name any address.
static rn_status_t connect_here(void* self, const char* address, int64_t deadline_ns,
                                rn_allocator_t allocator, rn_socket_t** out) {
  const fuzz_service_t* service = self;
  *out = NULL;
  if (strcmp(address, service->dispatcher_address) != 0 &&
      strcmp(address, service->worker_address) != 0)
    return rn_unavailable("%s is out of reach", address);
  return rn_net_system.connect(rn_env_system()->net_self, address, deadline_ns, allocator, out);
}

static void open_channel(fuzz_service_t* service, const char* address, rn_channel_t** out) {
  rn_channel_options_t options = {
      .loop = service->loop, .allocator = rn_allocator_system(), .address = address};
  fuzz_must(rn_channel_create(&options, out));
}

static void service_open(fuzz_service_t* service) {
  rn_strbuf_t config;
  rn_allocator_t allocator = fuzz_memory_init(&service->memory, 256 << 20);
  service->env = *rn_env_system();
  service->net = rn_net_system;
  service->net.connect = connect_here;
  service->env.self = service->env.net_self = service;
  service->env.net = &service->net;
  service->env.fs = &fuzz_no_files;
  service->env.random = next_number;
  service->env.now_ns = system_now;
  service->env.wall_us = system_wall;
  fuzz_must(rn_ds_server_create(true, RN_STR(""), "127.0.0.1", &service->env, allocator,
                                &service->dispatcher));
  snprintf(service->dispatcher_address, sizeof service->dispatcher_address, "127.0.0.1:%d",
           rn_ds_server_port(service->dispatcher));
  fuzz_must(rn_ds_server_start(service->dispatcher));
  rn_pb_data_experimental_WorkerConfig_t worker = {
      .dispatcher_address = rn_str(service->dispatcher_address),
      .worker_address = RN_STR("127.0.0.1:%port%")};
  rn_strbuf_init(&config, rn_allocator_system());
  fuzz_must(RN_PB_ENCODE(data_experimental_WorkerConfig, &worker, NULL, &config));
  fuzz_must(rn_ds_server_create(false, rn_strbuf_view(&config), "127.0.0.1", &service->env,
                                allocator, &service->worker));
  rn_strbuf_clear(&config);
  snprintf(service->worker_address, sizeof service->worker_address, "127.0.0.1:%d",
           rn_ds_server_port(service->worker));
  fuzz_must(rn_ds_server_start(service->worker));
  fuzz_must(rn_loop_create(rn_env_system(), rn_allocator_system(), &service->loop));
  open_channel(service, service->dispatcher_address, &service->to_dispatcher);
  open_channel(service, service->worker_address, &service->to_worker);
}

// All their memory must have been freed. An attempt to connect may outlive its channel for a
// moment.
static void service_close(fuzz_service_t* service) {
  rn_channel_destroy(service->to_dispatcher);
  rn_channel_destroy(service->to_worker);
  rn_loop_destroy(service->loop);
  rn_ds_server_destroy(service->worker);
  rn_ds_server_destroy(service->dispatcher);
  int64_t until_ns = system_now(NULL) + CLOSE_NS;
  while (service->memory.counting.live_bytes && system_now(NULL) < until_ns)
    rn_ds_pause(system_now(NULL) + PAUSE_NS);
  fuzz_check(service->memory.counting.live_bytes == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_service_t service = {0};
  service_open(&service);
  fuzz_bytes_t bytes = {data, size};
  for (int i = 0; i < MAX_CALLS && bytes.left; ++i) {
    int kind = fuzz_pick(&bytes, sizeof methods / sizeof *methods);
    size_t length = (size_t)fuzz_byte(&bytes) << 8;
    length |= fuzz_byte(&bytes);
    rn_strbuf_t response;
    rn_strbuf_init(&response, rn_allocator_system());
    rn_status_free(rn_ds_ask(kind < DISPATCHER_METHODS ? service.to_dispatcher : service.to_worker,
                             service.loop, rn_allocator_system(), methods[kind],
                             fuzz_take(&bytes, length), CALL_NS, NULL, &response));
    rn_strbuf_clear(&response);
  }
  service_close(&service);
  return 0;
}
