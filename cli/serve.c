// runnel serve: serves models over TensorFlow Serving's protocols, the Open Inference Protocol and
// Clipper's. The flags of TensorFlow Serving have its names and defaults.
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/machine.h"
#include "cli/cli.h"
#include "cli/log.h"
#include "cli/renewal.h"
#include "serve/model/config.h"
#include "serve/server.h"

#define SECOND_NS INT64_C(1000000000)
#define MS_NS INT64_C(1000000)

typedef struct serve_t {
  rn_cli_t* cli;
  rn_env_t env;  // the system's, with a log
  rn_log_settings_t log_settings;
  rn_arena_t arena;
  rn_model_server_options_t options;
  const char* config_file;  // NULL: one model, by flags
  rn_strbuf_t config_text;  // of the file, as it was last read
  const char* ssl_file;     // NULL: no TLS
  uint64_t ssl_stamp;       // of that file, when it was last read
  rn_redis_config_t redis;
  rn_model_server_t* server;
  _Atomic bool is_ending;
  rn_status_t status;  // Owned: why the ports were not opened
} serve_t;

// Flags of TensorFlow Serving that change nothing here: each is accepted with one line in the log.
static const char* const ignored[] = {
    "--grpc_channel_arguments",
    "--grpc_max_threads",
    "--rest_api_num_threads",
    "--platform_config_file",
    "--flush_filesystem_caches",
    "--use_tflite_model",
    "--prefer_tflite_model",
    "--num_tflite_interpreters_per_pool",
    "--num_tflite_pools",
    "--enable_profiler",
    "--xla_cpu_compilation_enabled",
    "--xla_gpu_compilation_enabled",
    "--skip_initialize_tpu",
    "--num_unload_threads",
    "--enable_per_model_batching_params",  // a version's own file always counts
    "--tensorflow_session_parallelism",
    "--remove_unused_fields_from_bundle_metagraph",
    "--enable_serialization_as_tensor_content",
    "--enable_grpc_healthcheck_service",
    "--thread_pool_factory_config_file",
    "--mixed_precision",
};

static void say_ignored(const serve_t* serve) {
  for (size_t i = 0; i < sizeof ignored / sizeof *ignored; ++i)
    if (rn_cli_has(serve->cli, ignored[i]))
      rn_log(&serve->env, RN_LOG_WARNING, "%s has no effect here", ignored[i]);
}

// "host:port", in the arena; NULL if the port is negative.
static rn_status_t address_of(serve_t* serve, int64_t port, const char** out) {
  const char* host = rn_cli_text(serve->cli, "--host");
  rn_str_t text;
  *out = NULL;
  if (port < 0) return RN_OK;
  RN_RETURN_IF_ERROR(
      rn_arena_printf(&serve->arena, &text, "%s:%lld", host ? host : "0.0.0.0", (long long)port));
  *out = text.data;
  return RN_OK;
}

static rn_status_t set_ports(serve_t* serve) {
  rn_cli_t* cli = serve->cli;
  rn_model_server_options_t* options = &serve->options;
  // Port 0 means "none" to TensorFlow Serving for REST only.
  int64_t rest = rn_cli_number(cli, "--rest_api_port", 0);
  bool has_any = rn_cli_has(cli, "--any_port");
  RN_RETURN_IF_ERROR(
      address_of(serve, has_any ? 0 : rn_cli_number(cli, "--port", 8500), &options->address));
  RN_RETURN_IF_ERROR(address_of(serve, has_any ? 0 : rest ? rest : -1, &options->rest_address));
  options->socket_path = rn_cli_text(cli, "--grpc_socket_path");
  options->loops = (int)rn_cli_number(cli, "--loops", 0);
  options->rest_timeout_ns = rn_cli_number(cli, "--rest_api_timeout_in_ms", 30000) * MS_NS;
  options->has_cors = rn_cli_has(cli, "--rest_api_enable_cors_support");
  options->token_file = rn_cli_text(cli, "--tokens");
  return RN_OK;
}

static rn_status_t set_batching(serve_t* serve) {
  rn_cli_t* cli = serve->cli;
  rn_batcher_options_t* batching = &serve->options.batching;
  const char* policy = rn_cli_text(cli, "--batching");
  *batching = (rn_batcher_options_t){
      .is_on = !policy || strcmp(policy, "none") != 0,
      .size = {.policy = policy && strcmp(policy, "aimd") == 0 ? RN_BATCH_AIMD : RN_BATCH_LEARN,
               .objective_ns = rn_cli_number(cli, "--latency_objective_ms", 20) * MS_NS,
               .max = rn_cli_number(cli, "--max_batch_size", 0)},
      .max_wait_ns = rn_cli_has(cli, "--max_batch_wait_micros")
                         ? rn_cli_number(cli, "--max_batch_wait_micros", 0) * 1000
                         : -1,
      .max_queued = rn_cli_number(cli, "--max_queued_requests", 0),
      .splits_large = true};
  const char* file = rn_cli_text(cli, "--batching_parameters_file");
  if (file || rn_cli_has(cli, "--enable_batching"))
    return rn_config_read_batching(&serve->env, file, &serve->arena, batching);
  return RN_OK;
}

static rn_status_t read_config(serve_t* serve, rn_pb_serving_ModelServerConfig_t** out) {
  rn_cli_t* cli = serve->cli;
  if (serve->config_file) {
    // What polls compare the file with.
    RN_RETURN_IF_ERROR(
        rn_fs_read(&serve->env, serve->config_file, RN_CONFIG_MAX_BYTES, &serve->config_text));
    return rn_config_parse_models(rn_strbuf_view(&serve->config_text), serve->config_file,
                                  &serve->arena, out);
  }
  const char* path = rn_cli_text(cli, "--model_base_path");
  const char* name = rn_cli_text(cli, "--model_name");
  if (!path)
    return rn_cli_usage(cli, "no model is given: use --model_base_path or --model_config_file");
  return rn_config_single(rn_str(name ? name : "default"), rn_str(path), &serve->arena, out);
}

static rn_status_t set_redis(serve_t* serve) {
  rn_cli_t* cli = serve->cli;
  const char *address = rn_cli_text(cli, "--redis"),
             *file = rn_cli_text(cli, "--redis_config_file");
  if (!!rn_cli_text(cli, "--state") + !!address + !!file > 1)
    return rn_cli_usage(cli, "--state, --redis and --redis_config_file exclude each other");
  serve->redis.address = address;
  if (file)
    RN_RETURN_IF_ERROR(rn_redis_config_read(&serve->env, file, cli->allocator, &serve->redis));
  if (address || file) serve->options.redis = &serve->redis;
  return RN_OK;
}

// Flags come after the file, if they are given.
static rn_status_t set_session(serve_t* serve) {
  rn_cli_t* cli = serve->cli;
  rn_session_options_t* session = &serve->options.session;
  rn_session_options_init(session);
  const char* file = rn_cli_text(cli, "--tensorflow_session_config_file");
  if (file) RN_RETURN_IF_ERROR(rn_config_read_session(&serve->env, file, &serve->arena, session));
  session->intra_threads =
      (int)rn_cli_number(cli, "--tensorflow_intra_op_parallelism", session->intra_threads);
  session->inter_threads =
      (int)rn_cli_number(cli, "--tensorflow_inter_op_parallelism", session->inter_threads);
  // As in TensorFlow Serving: a model may name devices that this machine lacks.
  session->allow_soft_placement = true;
  session->gpu.max_count = (int)rn_cli_number(cli, "--gpus", session->gpu.max_count);
  const char* fraction = rn_cli_text(cli, "--per_process_gpu_memory_fraction");
  double* part = &session->gpu.memory_fraction;
  if (fraction && (!rn_str_to_f64(rn_str(fraction), part) || !(*part >= 0 && *part <= 1)))
    return rn_cli_usage(cli, "--per_process_gpu_memory_fraction needs a number from 0 to 1");
  return RN_OK;
}

static rn_status_t set_models(serve_t* serve) {
  rn_cli_t* cli = serve->cli;
  rn_model_server_options_t* options = &serve->options;
  serve->config_file = rn_cli_text(cli, "--model_config_file");
  if (serve->config_file && rn_cli_text(cli, "--model_base_path"))
    return rn_cli_usage(cli, "--model_config_file and --model_base_path exclude each other");
  rn_pb_serving_ModelServerConfig_t* config = NULL;
  RN_RETURN_IF_ERROR(read_config(serve, &config));
  options->config = config;
  options->poll_ns = rn_cli_number(cli, "--file_system_poll_wait_seconds", 1) * SECOND_NS;
  options->max_load_retries = (int)rn_cli_number(cli, "--max_num_load_retries", 5);
  options->retry_ns = rn_cli_number(cli, "--load_retry_interval_micros", 60000000) * 1000;
  options->load_threads = (int)rn_cli_number(cli, "--num_load_threads", 0);
  options->labels_unavailable = rn_cli_has(cli, "--allow_version_labels_for_unavailable_models");
  options->keeps_emptied = rn_cli_has(cli, "--servable_versions_always_present");
  options->unloads_first = rn_cli_has(cli, "--unload_first");
  options->checks_methods = rn_cli_flag(cli, "--enable_signature_method_name_check", false);
  options->warms_up = rn_cli_flag(cli, "--enable_model_warmup", true);
  options->warmup_iterations = (int)rn_cli_number(cli, "--num_request_iterations_for_warmup", 1);
  options->tags = rn_str(rn_cli_text(cli, "--saved_model_tags"));
  options->replicas = (int)rn_cli_number(cli, "--replicas", 1);
  options->cpu_shares = rn_str(rn_cli_text(cli, "--cpu_shares"));
  options->model_gpus = rn_str(rn_cli_text(cli, "--model_gpus"));
  options->model_memory = (size_t)rn_cli_number(cli, "--model_memory_mb", 0) << 20;
  options->isolates = rn_cli_flag(cli, "--isolate", false);
  options->cache_bytes = (size_t)rn_cli_number(cli, "--cache_mb", 32) << 20;
  options->apps_file = rn_cli_text(cli, "--apps_file");
  options->state_folder = rn_cli_text(cli, "--state");
  RN_RETURN_IF_ERROR(set_redis(serve));
  // A check changes nothing, and a running server may hold the state.
  if (rn_cli_has(cli, "--check")) {
    options->state_folder = NULL;
    options->redis = NULL;
  }
  return set_session(serve);
}

// Makes the server's TLS of its file, or replaces its certificates.
static rn_status_t read_tls(serve_t* serve, rn_arena_t* arena) {
  rn_pb_serving_SSLConfig_t* config = NULL;
  serve->ssl_stamp = rn_cli_stamp(&serve->env, &serve->ssl_file, 1);
  RN_RETURN_IF_ERROR(rn_config_read_ssl(&serve->env, serve->ssl_file, arena, &config));
  rn_str_t texts[3] = {config->server_cert, config->server_key, config->custom_ca};
  for (int i = 0; i < 3; ++i)  // NUL-terminated
    RN_RETURN_IF_ERROR(rn_arena_str(arena, texts[i], &texts[i]));
  rn_tls_options_t tls = {.allocator = serve->cli->allocator,
                          .cert = texts[0].data,
                          .key = texts[1].data,
                          .ca = texts[2].size ? texts[2].data : NULL,
                          .is_public = true,
                          .verifies_clients = config->client_verify};
  rn_tls_t** made = &serve->options.tls;
  return rn_cli_at(*made ? rn_tls_replace(*made, &tls) : rn_tls_create(&tls, made),
                   serve->ssl_file);
}

// Reads certificates and tokens again if their files have changed.
static void renew(serve_t* serve) {
  if (serve->ssl_file && rn_cli_stamp(&serve->env, &serve->ssl_file, 1) != serve->ssl_stamp) {
    rn_arena_t arena;
    rn_arena_init(&arena, serve->cli->allocator);
    rn_cli_log_renewal(&serve->env, serve->ssl_file, read_tls(serve, &arena));
    rn_arena_clear(&arena);
  }
  bool is_new = false;
  rn_status_t status = rn_model_server_renew_tokens(serve->server, &is_new);
  if (is_new || !rn_ok(status)) rn_cli_log_renewal(&serve->env, serve->options.token_file, status);
}

// One --trace_config: "triton,file=FILE", "triton,log-frequency=N", "rate=N", "count=N",
// "level=TIMESTAMPS", "mode=triton".
static rn_status_t set_trace(serve_t* serve, const char* text) {
  static const char* const names[][2] = {{"level", "trace_level"},
                                         {"rate", "trace_rate"},
                                         {"count", "trace_count"},
                                         {"log-frequency", "log_frequency"}};
  rn_str_t rest = rn_str(text), name, value, mode = RN_STR("triton,");
  if (rn_str_starts_with(rest, mode)) rest = rn_str_n(rest.data + mode.size, rest.size - mode.size);
  RN_RETURN_IF_ERROR(rn_cli_split(serve->cli, "--trace_config", rest, &name, &value));
  if (rn_str_is(name, "mode") && rn_str_is(value, "triton")) return RN_OK;
  if (rn_str_is(name, "file")) {
    RN_RETURN_IF_ERROR(rn_arena_str(&serve->arena, value, &value));
    serve->options.trace_file = value.data;
    return RN_OK;
  }
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
    if (rn_str_is(name, names[i][0]))
      return rn_cli_prefix(
          rn_trace_change_add(&serve->options.trace, rn_str(names[i][1]), &value, 1),
          "--trace_config: ");
  return rn_cli_usage(serve->cli, "--trace_config: there is no setting '%s'", text);
}

static rn_status_t set_operation(serve_t* serve) {
  size_t at = 0;
  for (const char* text; (text = rn_cli_each(serve->cli, "--trace_config", &at));)
    RN_RETURN_IF_ERROR(set_trace(serve, text));
  rn_cli_t* cli = serve->cli;
  const char* monitoring = rn_cli_text(cli, "--monitoring_config_file");
  serve->ssl_file = rn_cli_text(cli, "--ssl_config_file");
  serve->options.metrics_path = RN_STR(RN_CONFIG_METRICS_PATH);
  if (monitoring)
    RN_RETURN_IF_ERROR(rn_config_read_monitoring(&serve->env, monitoring, &serve->arena,
                                                 &serve->options.metrics_path));
  return serve->ssl_file ? read_tls(serve, &serve->arena) : RN_OK;
}

// Reads the configuration file, and puts it in force if it has changed or |is_forced|.
static rn_status_t read_again(serve_t* serve, bool is_forced, bool* out_is_new) {
  rn_strbuf_t text;
  rn_arena_t arena;
  rn_strbuf_init(&text, serve->cli->allocator);
  rn_arena_init(&arena, serve->cli->allocator);
  rn_pb_serving_ModelServerConfig_t* config = NULL;
  rn_status_t status = rn_fs_read(&serve->env, serve->config_file, RN_CONFIG_MAX_BYTES, &text);
  *out_is_new = rn_ok(status) && (is_forced || !rn_str_eq(rn_strbuf_view(&text),
                                                          rn_strbuf_view(&serve->config_text)));
  if (*out_is_new) {
    rn_strbuf_t old = serve->config_text;
    serve->config_text = text;
    text = old;
    status = rn_config_parse_models(rn_strbuf_view(&serve->config_text), serve->config_file, &arena,
                                    &config);
    if (rn_ok(status)) status = rn_model_server_reload(serve->server, config);
  }
  rn_arena_clear(&arena);
  rn_strbuf_clear(&text);
  return status;
}

static void reload(serve_t* serve, bool is_forced) {
  bool is_new = false;
  if (!serve->config_file) return;
  rn_status_t status = read_again(serve, is_forced, &is_new);
  if (!rn_ok(status))
    rn_log(&serve->env, RN_LOG_ERROR, "the configuration stays as it is: %s",
           rn_status_message(status));
  else if (is_new)
    rn_log(&serve->env, RN_LOG_INFO, "%s is in force", serve->config_file);
  rn_status_free(status);
}

static void print_ports(const serve_t* serve) {
  int port = rn_model_server_port(serve->server), rest = rn_model_server_rest_port(serve->server);
  if (port) fprintf(stderr, "gRPC and REST at port %d\n", port);
  if (rest) fprintf(stderr, "REST at port %d\n", rest);
  if (serve->options.socket_path)
    fprintf(stderr, "gRPC and REST at %s\n", serve->options.socket_path);
}

// Opens the ports when the models are loaded, or have failed. If that fails, the server ends.
static rn_status_t open_when_loaded(serve_t* serve) {
  rn_status_t status = RN_OK;
  do {
    rn_status_free(status);
    status =
        rn_model_server_wait(serve->server, serve->env.now_ns(serve->env.self) + SECOND_NS / 5);
    if (serve->is_ending) return status;
  } while (rn_status_code(status) == RN_CODE_DEADLINE_EXCEEDED);
  if (!rn_ok(status)) rn_log(&serve->env, RN_LOG_ERROR, "%s", rn_status_message(status));
  bool is_ready = rn_ok(status);
  rn_status_free(status);
  RN_RETURN_IF_ERROR(rn_model_server_open(serve->server));
  print_ports(serve);
  if (is_ready) fprintf(stderr, "ready\n");
  return RN_OK;
}

static void* open_ports(void* arg) {
  serve_t* serve = arg;
  serve->status = open_when_loaded(serve);
  if (!rn_ok(serve->status)) kill(getpid(), SIGTERM);
  return NULL;
}

// Running requests end; false if a second signal came first.
static bool drain(serve_t* serve, const sigset_t* signals) {
  int64_t until =
      serve->env.now_ns(serve->env.self) + rn_cli_number(serve->cli, "--drain", 30) * SECOND_NS;
  rn_model_server_drain(serve->server);
  while (rn_model_server_is_busy(serve->server) && serve->env.now_ns(serve->env.self) < until) {
    const struct timespec moment = {.tv_nsec = 10000000};
    if (sigtimedwait(signals, NULL, &moment) > 0) return false;
  }
  return true;
}

static void wait_and_end(serve_t* serve, const sigset_t* signals) {
  int64_t poll = rn_cli_number(serve->cli, "--model_config_file_poll_wait_seconds", 0);
  bool polls_first = poll && poll < RN_CLI_RENEWAL_SECONDS;
  const struct timespec wait = {.tv_sec = polls_first ? poll : RN_CLI_RENEWAL_SECONDS};
  int64_t polled = serve->env.now_ns(serve->env.self);
  for (int signal; (signal = sigtimedwait(signals, NULL, &wait)) != SIGTERM && signal != SIGINT;) {
    renew(serve);
    int64_t now = serve->env.now_ns(serve->env.self);
    bool is_due = poll && now - polled >= poll * SECOND_NS;
    if (is_due) polled = now;
    if (signal == SIGHUP || is_due) reload(serve, signal == SIGHUP);
  }
  serve->is_ending = true;
  fprintf(stderr, "runnel: ending\n");
  if (drain(serve, signals)) return;
  fprintf(stderr, "runnel: exiting at once\n");
  _exit(1);
}

static rn_status_t run(serve_t* serve) {
  // Only this thread receives signals, and only when it waits for them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, NULL);
  RN_RETURN_IF_ERROR(rn_model_server_create(&serve->options, &serve->server));
  pthread_t opener;
  if (rn_cli_has(serve->cli, "--check")) return rn_model_server_check(serve->server);
  if (pthread_create(&opener, NULL, open_ports, serve) != 0)
    return rn_resource_exhausted("no thread can be started");
  wait_and_end(serve, &signals);
  pthread_join(opener, NULL);
  return serve->status;
}

static rn_status_t serve(rn_cli_t* cli) {
  if (rn_cli_has(cli, "--version")) return rn_cli_version_command.run(cli);
  serve_t serve = {.cli = cli, .env = *cli->env};
  rn_machine_map_large_blocks();
  const char* format = rn_cli_text(cli, "--log_format");
  serve.env.log = format && strcmp(format, "json") == 0 ? rn_cli_log_json : rn_cli_log_text;
  serve.env.self = &serve.log_settings;
  serve.options.env = &serve.env;
  serve.options.log_settings = &serve.log_settings;
  serve.options.allocator = cli->allocator;
  serve.options.program = "/proc/self/exe";
  rn_arena_init(&serve.arena, cli->allocator);
  rn_strbuf_init(&serve.config_text, cli->allocator);
  rn_status_t status = set_ports(&serve);
  if (rn_ok(status)) status = set_batching(&serve);
  if (rn_ok(status)) status = set_models(&serve);
  if (rn_ok(status)) status = set_operation(&serve);
  if (rn_ok(status)) say_ignored(&serve);
  if (rn_ok(status)) status = run(&serve);
  if (rn_ok(status) && rn_cli_has(cli, "--check")) printf("the configuration is fine\n");
  rn_model_server_destroy(serve.server);
  rn_tls_release(serve.options.tls);
  rn_redis_config_clear(&serve.redis);
  rn_strbuf_clear(&serve.config_text);
  rn_arena_clear(&serve.arena);
  return status;
}

#define MAX_NUMBER (1 << 30)
#define IGNORED(kind, name, value) \
  RN_OPTION(kind, name, value, "accepted for TensorFlow Serving's sake; no effect")
static const rn_cli_option_t options_of_serve[] = {
    RN_OPTION(TEXT, "--model_name", "NAME", "the name of the model (default: default)"),
    RN_OPTION(FOLDER, "--model_base_path", "FOLDER",
              "the model: a folder with one folder per version, named by numbers"),
    RN_OPTION(FILE, "--model_config_file", "FILE",
              "several models: a ModelServerConfig in text form; SIGHUP reads it again"),
    RN_OPTION(NUMBER, "--model_config_file_poll_wait_seconds", "N",
              "look for changes of that file every N seconds (default 0: only after SIGHUP)",
              .most = MAX_NUMBER),
    RN_OPTION(NUMBER, "--file_system_poll_wait_seconds", "N",
              "look for new versions every N seconds (default 1; 0: once)", .most = MAX_NUMBER),
    RN_OPTION(NUMBER, "--port", "PORT",
              "gRPC, REST and the Open Inference Protocol listen here (default 8500)",
              .most = 65535),
    RN_OPTION(NUMBER, "--rest_api_port", "PORT", "REST listens here, too (default 0: it does not)",
              .most = 65535),
    RN_OPTION(TEXT, "--host", "HOST", "listen at this address (default 0.0.0.0)"),
    RN_OPTION(FLAG, "--any_port", NULL, "take any free ports, and print them"),
    RN_OPTION(FILE, "--grpc_socket_path", "PATH", "listen at this UNIX socket, too"),
    RN_OPTION(NUMBER, "--rest_api_timeout_in_ms", "MS",
              "the deadline of REST requests (default 30000)", .least = 1),
    RN_OPTION(FLAG, "--rest_api_enable_cors_support", NULL,
              "let pages of other origins use the REST API"),
    RN_OPTION(FILE, "--ssl_config_file", "FILE", "TLS: an SSLConfig in text form, for all ports"),
    RN_OPTION(FILE, "--tokens", "FILE",
              "who may do what: lines of 'predict TOKEN', 'read TOKEN' or 'admin TOKEN' (default: "
              "all may predict and read, and this machine's users administrate)"),
    RN_OPTION(NUMBER, "--latency_objective_ms", "MS",
              "batches are as large as this objective allows (default 20)", .least = 1),
    RN_OPTION(CHOICE, "--batching", "POLICY",
              "how large batches are: learn (default), aimd (Clipper's) or none",
              .choices = "learn aimd none"),
    RN_OPTION(NUMBER, "--max_batch_size", "ROWS", "the most rows of a batch (default: any)"),
    RN_OPTION(NUMBER, "--max_batch_wait_micros", "US",
              "how long the first request of a batch waits for others (default: automatic)"),
    RN_OPTION(NUMBER, "--max_queued_requests", "N",
              "refuse requests beyond this queue (default: as measured capacity allows)"),
    RN_OPTION(FLAG, "--enable_batching", NULL,
              "batches of fixed size, by TensorFlow Serving's parameters"),
    RN_OPTION(FILE, "--batching_parameters_file", "FILE",
              "these parameters: BatchingParameters in text form"),
    RN_OPTION(NUMBER, "--cache_mb", "MB", "memory of the prediction cache (default 32; 0: none)",
              .most = 1 << 20),
    RN_OPTION(NUMBER, "--replicas", "N", "instances of each SavedModel (default 1)", .least = 1,
              .most = 256),
    RN_OPTION(TEXT, "--cpu_shares", "SHARES",
              "weights of models when processors are short: NAME=WEIGHT,... (default 1 each)"),
    RN_OPTION(NUMBER, "--model_memory_mb", "MB",
              "the most memory of an instance of a SavedModel (default 0: any)", .most = 1 << 30),
    RN_OPTION(FLAG, "--isolate", NULL, "run each of them in a process of its own"),
    RN_OPTION(FILE, "--apps_file", "FILE",
              "applications over several models, in text form (doc/serving.md)"),
    RN_OPTION(FOLDER, "--state", "FOLDER", "keep what applications learn here"),
    RN_OPTION(TEXT, "--redis", "HOST:PORT", "keep it in Redis instead, for several servers"),
    RN_OPTION(FILE, "--redis_config_file", "FILE",
              "the same with a password, TLS, a database: a RedisConfig in text form"),
    RN_OPTION(NUMBER, "--max_num_load_retries", "N",
              "try to load a version N more times (default 5)"),
    RN_OPTION(NUMBER, "--load_retry_interval_micros", "US", "between tries (default 60000000)"),
    RN_OPTION(NUMBER, "--num_load_threads", "N", "versions that load at the same time (default 1)"),
    RN_OPTION(FLAG, "--allow_version_labels_for_unavailable_models", NULL,
              "new labels may name versions that are not loaded yet"),
    RN_OPTION(FLAG, "--servable_versions_always_present", NULL,
              "an emptied folder unloads nothing"),
    RN_OPTION(FLAG, "--unload_first", NULL,
              "unload an old version before loading the next, to need less memory"),
    RN_OPTION(FLAG, "--enable_model_warmup", NULL,
              "run a model's warm-up requests before it is served (default true)"),
    RN_OPTION(NUMBER, "--num_request_iterations_for_warmup", "N", "each N times (default 1)",
              .least = 1),
    RN_OPTION(FLAG, "--enable_signature_method_name_check", NULL,
              "Classify and Regress need signatures of their methods"),
    RN_OPTION(TEXT, "--saved_model_tags", "TAGS", "the graph to load (default serve)"),
    RN_OPTION(NUMBER, "--tensorflow_intra_op_parallelism", "N",
              "threads within an op (default: one per processor)"),
    RN_OPTION(NUMBER, "--tensorflow_inter_op_parallelism", "N",
              "ops that run at the same time (default: one per processor)"),
    RN_OPTION(FILE, "--tensorflow_session_config_file", "FILE",
              "options of sessions: a ConfigProto in text form"),
    RN_OPTION(NUMBER, "--gpus", "N", "use at most N GPUs (default: all)"),
    RN_OPTION(
        TEXT, "--model_gpus", "GPUS",
        "on which of them models run: NAME=0,NAME=1+2,NAME=none (default: the first; replicas "
        "take turns)"),
    RN_OPTION(TEXT, "--per_process_gpu_memory_fraction", "F",
              "the most of each GPU's memory, from 0 to 1 (default 0: any)"),
    RN_OPTION(FILE, "--monitoring_config_file", "FILE",
              "where metrics are: a MonitoringConfig in text form (default "
              "/monitoring/prometheus/metrics)"),
    RN_OPTION(NUMBER, "--loops", "N", "threads that watch connections (default: by processors)",
              .most = 256),
    RN_OPTION(NUMBER, "--drain", "SECONDS",
              "after SIGTERM, wait so long for running requests (default 30)"),
    RN_OPTION(CHOICE, "--log_format", "FORMAT", "text (default) or json", .choices = "text json"),
    RN_OPTION(
        TEXT, "--trace_config", "SETTING",
        "trace requests, as Triton does: triton,file=FILE, level=TIMESTAMPS, rate=N, count=N, "
        "triton,log-frequency=N",
        .repeats = true),
    RN_OPTION(FLAG, "--version", NULL, "print the version, and end"),
    RN_OPTION(FLAG, "--check", NULL, "load all models and applications, report, and end"),
    IGNORED(TEXT, "--grpc_channel_arguments", "ARGS"),
    IGNORED(NUMBER, "--grpc_max_threads", "N"),
    IGNORED(NUMBER, "--rest_api_num_threads", "N"),
    IGNORED(FILE, "--platform_config_file", "FILE"),
    IGNORED(FILE, "--thread_pool_factory_config_file", "FILE"),
    IGNORED(FLAG, "--flush_filesystem_caches", NULL),
    IGNORED(FLAG, "--use_tflite_model", NULL),
    IGNORED(FLAG, "--prefer_tflite_model", NULL),
    IGNORED(NUMBER, "--num_tflite_pools", "N"),
    IGNORED(NUMBER, "--num_tflite_interpreters_per_pool", "N"),
    IGNORED(FLAG, "--enable_profiler", NULL),
    IGNORED(FLAG, "--xla_cpu_compilation_enabled", NULL),
    IGNORED(FLAG, "--xla_gpu_compilation_enabled", NULL),
    IGNORED(FLAG, "--skip_initialize_tpu", NULL),
    IGNORED(NUMBER, "--num_unload_threads", "N"),
    IGNORED(FLAG, "--enable_per_model_batching_params", NULL),
    IGNORED(NUMBER, "--tensorflow_session_parallelism", "N"),
    IGNORED(FLAG, "--remove_unused_fields_from_bundle_metagraph", NULL),
    IGNORED(FLAG, "--enable_serialization_as_tensor_content", NULL),
    IGNORED(FLAG, "--enable_grpc_healthcheck_service", NULL),
    IGNORED(TEXT, "--mixed_precision", "TYPE"),
    {0},
};

const rn_cli_command_t rn_cli_serve_command = {
    .name = "serve",
    .summary = "serve models over gRPC and REST",
    .about =
        "Serves SavedModels, and models in processes of their own, over the protocols of "
        "TensorFlow Serving, the Open Inference Protocol and Clipper. The flags of TensorFlow "
        "Serving keep their names and defaults.\n\nThe folder of a model has one folder per "
        "version, named by a number. The server loads new versions when they appear and unloads "
        "old ones; no request waits or fails because of it. It joins requests into batches that "
        "are as large as the latency objective allows.\n\nhttp://HOST:PORT/ shows the models, "
        "/readyz is for probes, /monitoring/prometheus/metrics for Prometheus. doc/serving.md "
        "describes everything.",
    .run = serve,
    .options = options_of_serve,
    .examples =
        "runnel serve --model_name=half --model_base_path=/models/half --rest_api_port=8501\n"
        "runnel serve --model_config_file=models.pbtxt --latency_objective_ms=10\n"
        "curl -d '{\"instances\": [1.0, 2.0]}' localhost:8501/v1/models/half:predict",
};
