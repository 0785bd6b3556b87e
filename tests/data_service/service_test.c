// Servers of the tf.data service and what reaches them: calls that are given up, numbers and graphs
// that no client of ours sends, and servers that are stopped while they are busy.
#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "../support/status.h"
#include "base/net.h"
#include "data_service/ask.h"
#include "data_service/element.h"
#include "data_service/server.h"
#include "proto/data_service.pb.h"
#include "proto/service_config.pb.h"
#include "wire/encode.h"
#include "wire/scan.h"
#include "wire/text.h"
#include "wire/writer.h"

#define SERVICE_TEST(name) Test(data_service, name, .timeout = 60)
#define SECOND INT64_C(1000000000)
#define DISPATCHER "/tensorflow.data.DispatcherService/"
#define WORKER "/tensorflow.data.WorkerService/"

static rn_allocator_t memory(void) { return rn_allocator_system(); }
static int64_t now(void) { return rn_env_system()->now_ns(rn_env_system()->self); }

// A dispatcher, a worker, and channels to both.
typedef struct cluster_t {
  rn_ds_server_t *dispatcher, *worker;
  rn_loop_t* loop;
  rn_channel_t *to_dispatcher, *to_worker;
  char worker_address[32];
} cluster_t;

static rn_ds_server_t* open_server(bool is_dispatcher, const rn_pb_message_desc_t* desc,
                                   const void* config) {
  rn_strbuf_t bytes;
  rn_ds_server_t* server = NULL;
  rn_strbuf_init(&bytes, memory());
  OK(rn_pb_encode(desc, config, NULL, &bytes));
  OK(rn_ds_server_create(is_dispatcher, rn_strbuf_view(&bytes), "127.0.0.1", rn_env_system(),
                         memory(), &server));
  rn_strbuf_clear(&bytes);
  OK(rn_ds_server_start(server));
  return server;
}

static rn_channel_t* channel_to(rn_loop_t* loop, const char* address) {
  rn_channel_t* channel = NULL;
  rn_channel_options_t options = {.loop = loop, .allocator = memory(), .address = address};
  OK(rn_channel_create(&options, &channel));
  return channel;
}

static void cluster_open(cluster_t* cluster, int64_t heartbeat_ms, int64_t check_ms) {
  char address[32];
  *cluster = (cluster_t){0};
  OK(rn_loop_create(rn_env_system(), memory(), &cluster->loop));
  rn_pb_data_experimental_DispatcherConfig_t first = {.job_gc_check_interval_ms = check_ms,
                                                      .client_timeout_ms = check_ms};
  cluster->dispatcher = open_server(true, &rn_pb_data_experimental_DispatcherConfig_desc, &first);
  snprintf(address, sizeof address, "127.0.0.1:%d", rn_ds_server_port(cluster->dispatcher));
  rn_pb_data_experimental_WorkerConfig_t second = {.dispatcher_address = rn_str(address),
                                                   .worker_address = RN_STR("127.0.0.1:%port%"),
                                                   .dispatcher_timeout_ms = INT64_MAX,
                                                   .heartbeat_interval_ms = heartbeat_ms};
  cluster->worker = open_server(false, &rn_pb_data_experimental_WorkerConfig_desc, &second);
  snprintf(cluster->worker_address, sizeof cluster->worker_address, "127.0.0.1:%d",
           rn_ds_server_port(cluster->worker));
  cluster->to_dispatcher = channel_to(cluster->loop, address);
  cluster->to_worker = channel_to(cluster->loop, cluster->worker_address);
}

static void cluster_close(cluster_t* cluster) {
  rn_channel_destroy(cluster->to_dispatcher);
  rn_channel_destroy(cluster->to_worker);
  rn_loop_destroy(cluster->loop);
  rn_ds_server_destroy(cluster->worker);
  rn_ds_server_destroy(cluster->dispatcher);
}

// Calls |path| with the message that |text| is in text format; the response is appended to |out|.
static rn_status_t call_text(cluster_t* cluster, const char* path, const rn_pb_message_desc_t* desc,
                             const char* text, rn_strbuf_t* out) {
  rn_arena_t arena;
  rn_strbuf_t request;
  void* message = NULL;
  rn_arena_init(&arena, memory());
  rn_strbuf_init(&request, memory());
  OK(rn_pb_parse(desc, rn_str(text), NULL, &arena, &message));
  OK(rn_pb_encode(desc, message, NULL, &request));
  rn_channel_t* channel = rn_str_starts_with(rn_str(path), RN_STR(WORKER)) ? cluster->to_worker
                                                                           : cluster->to_dispatcher;
  rn_status_t status = rn_ds_ask(channel, cluster->loop, memory(), path, rn_strbuf_view(&request),
                                 20 * SECOND, NULL, out);
  rn_strbuf_clear(&request);
  rn_arena_clear(&arena);
  return status;
}

#define CALL(cluster, side, method, text, out) \
  call_text(cluster, side #method, &rn_pb_data_##method##Request_desc, text, out)

// The number in field |number| of the response of a call that must succeed.
static long long number_of(rn_status_t status, rn_strbuf_t* response, uint32_t number) {
  OK(status);
  uint64_t value = rn_field_value(rn_strbuf_view(response), number);
  rn_strbuf_clear(response);
  return (long long)value;
}

// Nodes of the dataset range(0, stop, 1): "range", and the _Retval that names |output|.
#define NUMBER(name, value)                                                   \
  "node { name: '" name                                                       \
  "' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } } attr { key: " \
  "'value' value { tensor { dtype: DT_INT64 tensor_shape {} int64_val: " value " } } } } "
#define TYPES                                                                                   \
  "attr { key: 'output_types' value { list { type: DT_INT64 } } } attr { key: 'output_shapes' " \
  "value { list { shape {} } } } "
#define RANGE(stop) \
  "node { name: 'range' op: 'RangeDataset' input: 'zero' input: '" stop "' input: 'one' " TYPES "} "
#define RETURN(output)                                  \
  "node { name: 'return' op: '_Retval' input: '" output \
  "' attr { key: 'T' value { type: DT_VARIANT } } attr { key: 'index' value { i: 0 } } } "
#define NUMBERS(count) NUMBER("zero", "0") NUMBER("one", "1") NUMBER("count", count)

SERVICE_TEST(splits_of_the_last_repetition) {
  cluster_t cluster;
  rn_strbuf_t out;
  char text[256];
  rn_strbuf_init(&out, memory());
  cluster_open(&cluster, 0, 0);
  OK(CALL(&cluster, DISPATCHER, GetOrRegisterDataset,
          "dataset_id: 'd' dataset { graph { " NUMBERS("0") RANGE("count") RETURN("range:0") "} }",
          &out));
  rn_strbuf_clear(&out);
  long long job =
      number_of(CALL(&cluster, DISPATCHER, GetOrCreateJob,
                     "dataset_id: 'd' processing_mode_def { sharding_policy: DYNAMIC }", &out),
                &out, rn_pb_data_GetOrCreateJobResponse_job_id_field);
  snprintf(text, sizeof text, "job_id: %lld", job);
  OK(CALL(&cluster, DISPATCHER, GetOrCreateIteration, text, &out));
  rn_strbuf_clear(&out);
  const long long wrong[] = {INT64_MAX, -1, INT64_MIN};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    snprintf(text, sizeof text, "iteration_id: 2000 repetition: %lld", wrong[i]);
    FAILS_WITH(CALL(&cluster, DISPATCHER, GetSplit, text, &out), INVALID_ARGUMENT, "repetition");
  }
  snprintf(text, sizeof text, "iteration_id: 2000 repetition: %lld", (long long)(INT64_MAX - 1));
  for (int turn = 0; turn < 2; ++turn)
    cr_assert(number_of(CALL(&cluster, DISPATCHER, GetSplit, text, &out), &out,
                        rn_pb_data_GetSplitResponse_end_of_splits_field));
  cluster_close(&cluster);
}

// zip(d, d), where d is such a zip again, and so on: there are 2^|levels| ways to the source.
static void put_zips(rn_strbuf_t* out, int levels) {
  rn_strbuf_append(out, RN_STR(NUMBERS("3") RANGE("count")));
  for (int i = 0; i < levels; ++i) {
    char below[16] = "range";
    if (i) snprintf(below, sizeof below, "zip%d", i - 1);
    rn_strbuf_printf(out,
                     "node { name: 'zip%d' op: 'ZipDataset' input: '%s' input: '%s' attr { key: "
                     "'N' value { i: 2 } } " TYPES "} ",
                     i, below, below);
  }
  rn_strbuf_printf(out,
                   "node { name: 'return' op: '_Retval' input: 'zip%d:0' attr { key: 'T' "
                   "value { type: DT_VARIANT } } attr { key: 'index' value { i: 0 } } } ",
                   levels - 1);
}

SERVICE_TEST(more_ways_to_a_source_than_can_be_gone) {
  cluster_t cluster;
  rn_strbuf_t graph, text, out;
  rn_strbuf_init(&graph, memory());
  rn_strbuf_init(&text, memory());
  rn_strbuf_init(&out, memory());
  cluster_open(&cluster, 0, 0);
  put_zips(&graph, 60);
  rn_strbuf_printf(&text, "dataset_id: 'd' dataset { graph { %s } }", graph.data);
  OK(CALL(&cluster, DISPATCHER, GetOrRegisterDataset, text.data, &out));
  rn_strbuf_clear(&out);
  OK(CALL(&cluster, DISPATCHER, GetOrCreateJob,
          "dataset_id: 'd' processing_mode_def { sharding_policy: DYNAMIC }", &out));
  rn_strbuf_clear(&out);
  FAILS_WITH(CALL(&cluster, DISPATCHER, GetOrCreateIteration, "job_id: 5000", &out),
             INVALID_ARGUMENT, "ways");
  text.size = 0;
  rn_strbuf_printf(&text,
                   "task { dataset_def { graph { %s } } task_id: 7 iteration_id: 1 worker_address: "
                   "'%s' num_split_providers: 1 processing_mode_def { sharding_policy: DYNAMIC } }",
                   graph.data, cluster.worker_address);
  OK(CALL(&cluster, WORKER, ProcessTask, text.data, &out));
  rn_strbuf_clear(&out);
  FAILS_WITH(CALL(&cluster, WORKER, GetElement, "task_id: 7", &out), INVALID_ARGUMENT, "ways");
  rn_strbuf_clear(&graph);
  rn_strbuf_clear(&text);
  cluster_close(&cluster);
}

// The dispatcher does not know a task that has ended here. The worker goes on to tell of itself, so
// that the dispatcher can have the task removed.
SERVICE_TEST(a_worker_whose_task_the_dispatcher_has_forgotten) {
  cluster_t cluster;
  rn_strbuf_t out;
  char text[2048];
  rn_strbuf_init(&out, memory());
  cluster_open(&cluster, 20, 0);
  snprintf(text, sizeof text,
           "task { dataset_def { graph { " NUMBERS("0") RANGE("count")
               RETURN("range:0") "} } task_id: 7 iteration_id: 1 worker_address: '%s' }",
           cluster.worker_address);
  OK(CALL(&cluster, WORKER, ProcessTask, text, &out));
  rn_strbuf_clear(&out);
  // It may be removed before it is asked for.
  rn_status_t status = CALL(&cluster, WORKER, GetElement, "task_id: 7", &out);
  cr_assert(!rn_ok(status) || rn_field_value(rn_strbuf_view(&out), RN_DS_ELEMENT_END));
  rn_status_free(status);
  rn_strbuf_clear(&out);
  int64_t until = now() + 20 * SECOND;
  while (rn_ds_server_active(cluster.worker) && now() < until) usleep(1000);
  cr_assert_eq(rn_ds_server_active(cluster.worker), 0);
  cluster_close(&cluster);
}

// A dataset that is made of a queue's element, which never comes.
#define ENDLESS                                                                                \
  NUMBERS("3")                                                                                 \
  "node { name: 'queue' op: 'FIFOQueueV2' attr { key: 'component_types' value { list { type: " \
  "DT_INT64 } } } } node { name: 'taken' op: 'QueueDequeueV2' input: 'queue' attr { key: "     \
  "'component_types' value { list { type: DT_INT64 } } } } " RANGE("taken") RETURN("range:0")

SERVICE_TEST(a_worker_stops_while_it_makes_a_dataset) {
  cluster_t cluster;
  rn_strbuf_t request, out;
  char text[2048];
  rn_strbuf_init(&request, memory());
  rn_strbuf_init(&out, memory());
  cluster_open(&cluster, 0, 0);
  snprintf(text, sizeof text,
           "task { dataset_def { graph { " ENDLESS
           "} } task_id: 7 iteration_id: 1 worker_address: '%s' }",
           cluster.worker_address);
  OK(CALL(&cluster, WORKER, ProcessTask, text, &out));
  rn_pb_put_uint(&request, rn_pb_data_GetElementRequest_task_id_field, 7);
  FAILS(rn_ds_ask(cluster.to_worker, cluster.loop, memory(), WORKER "GetElement",
                  rn_strbuf_view(&request), SECOND / 2, NULL, &out),
        DEADLINE_EXCEEDED);
  rn_strbuf_clear(&request);
  rn_strbuf_clear(&out);
  cluster_close(&cluster);
}

// Calls for the splits of an endless dataset wait; others do not, not even those for other splits,
// once the clients of the first have gone; and the dispatcher stops.
SERVICE_TEST(a_dispatcher_that_waits_for_a_graph_answers_others) {
  cluster_t cluster;
  rn_strbuf_t out, request;
  char text[256];
  rn_strbuf_init(&out, memory());
  rn_strbuf_init(&request, memory());
  cluster_open(&cluster, 0, 0);
  OK(CALL(&cluster, DISPATCHER, GetOrRegisterDataset,
          "dataset_id: 'endless' dataset { graph { " ENDLESS "} }", &out));
  OK(CALL(&cluster, DISPATCHER, GetOrRegisterDataset,
          "dataset_id: 'd' dataset { graph { " NUMBERS("3") RANGE("count") RETURN("range:0") "} }",
          &out));
  rn_strbuf_clear(&out);
  for (int i = 0; i < 10; ++i) {
    long long job = number_of(
        CALL(&cluster, DISPATCHER, GetOrCreateJob,
             "dataset_id: 'endless' processing_mode_def { sharding_policy: DYNAMIC }", &out),
        &out, rn_pb_data_GetOrCreateJobResponse_job_id_field);
    rn_pb_put_uint(&request, rn_pb_data_GetOrCreateIterationRequest_job_id_field, (uint64_t)job);
    FAILS(
        rn_ds_ask(cluster.to_dispatcher, cluster.loop, memory(), DISPATCHER "GetOrCreateIteration",
                  rn_strbuf_view(&request), SECOND / 10, NULL, &out),
        DEADLINE_EXCEEDED);
    rn_strbuf_clear(&request);
    rn_strbuf_clear(&out);
  }
  int64_t begin = now();
  long long job =
      number_of(CALL(&cluster, DISPATCHER, GetOrCreateJob,
                     "dataset_id: 'd' processing_mode_def { sharding_policy: DYNAMIC }", &out),
                &out, rn_pb_data_GetOrCreateJobResponse_job_id_field);
  cr_assert_lt(now() - begin, SECOND / 2);
  snprintf(text, sizeof text, "job_id: %lld", job);
  OK(CALL(&cluster, DISPATCHER, GetOrCreateIteration, text, &out));
  rn_strbuf_clear(&out);
  cluster_close(&cluster);
}

// More milliseconds than there are nanoseconds.
SERVICE_TEST(times_without_end) {
  cluster_t cluster;
  rn_strbuf_t out;
  rn_strbuf_init(&out, memory());
  cluster_open(&cluster, INT64_MAX, INT64_MAX);
  OK(CALL(&cluster, DISPATCHER, GetVersion, "", &out));
  rn_strbuf_clear(&out);
  cluster_close(&cluster);
}

static void* cancel_soon(void* stop) {
  usleep(100000);
  rn_cancel(stop);
  return NULL;
}

// A peer that does not answer: calls end when they are given up, also if that was before they
// began.
SERVICE_TEST(calls_that_are_given_up) {
  const rn_env_t* env = rn_env_system();
  rn_socket_t* listener = NULL;
  rn_loop_t* loop = NULL;
  rn_strbuf_t address, out;
  rn_cancel_t stop;
  rn_strbuf_init(&address, memory());
  rn_strbuf_init(&out, memory());
  rn_cancel_init(&stop);
  OK(env->net->listen(env->net_self, "127.0.0.1:0", memory(), &listener));
  OK(listener->vtable->address(listener, &address));
  OK(rn_loop_create(env, memory(), &loop));
  rn_channel_t* channel = channel_to(loop, address.data);
  pthread_t thread;
  pthread_create(&thread, NULL, cancel_soon, &stop);
  int64_t begin = now();
  FAILS(rn_ds_ask(channel, loop, memory(), "/any", RN_STR(""), 50 * SECOND, &stop, &out),
        CANCELLED);
  pthread_join(thread, NULL);
  FAILS(rn_ds_ask(channel, loop, memory(), "/any", RN_STR(""), 50 * SECOND, &stop, &out),
        CANCELLED);
  cr_assert_lt(now() - begin, 40 * SECOND);
  rn_channel_destroy(channel);
  rn_loop_destroy(loop);
  rn_cancel_destroy(&stop);
  rn_strbuf_clear(&address);
  rn_strbuf_clear(&out);
  listener->vtable->close(listener);
}
