// runnel load: sends requests to a model server and measures its latencies.
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/thread.h"
#include "cli/http.h"
#include "cli/json.h"
#include "cli/load_gen.h"
#include "cli/load_payload.h"
#include "io/record.h"
#include "net/token.h"

#define SECOND_NS INT64_C(1000000000)
#define MAX_LOGGED 10000  // requests of a log that are kept

typedef struct load_job_t {
  rn_cli_t* cli;
  rn_load_model_t model;
  rn_load_protocol_t protocol;
  rn_load_options_t options;
  rn_load_result_t* result;
  rn_arena_t arena;
  char token[RN_TOKEN_MAX + 1];
  rn_strbuf_t path;
  RN_VEC(rn_strbuf_t) bodies;
  RN_VEC(rn_str_t) payloads;
} load_job_t;

static const char protocols[] = "rest grpc oip oip-grpc clipper";

static rn_load_protocol_t protocol_named(const char* name) {
  rn_str_t rest = rn_str(protocols);
  int i = 0;
  while (name && !rn_str_is(rn_str_split(&rest, ' '), name)) ++i;  // it is one of them
  return (rn_load_protocol_t)i;
}

// A number that may have a fraction; the table has whole ones only.
static rn_status_t decimal(const rn_cli_t* cli, const char* option, double otherwise, double* out) {
  const char* text = rn_cli_text(cli, option);
  *out = otherwise;
  if (!text || (rn_str_to_f64(rn_str(text), out) && *out >= 0 && *out <= 1e9)) return RN_OK;
  return rn_cli_usage(cli, "%s needs a number from 0 to 1e9, not '%s'", option, text);
}

static rn_status_t add_payload(load_job_t* job, rn_load_inputs_t* inputs) {
  rn_strbuf_t body;
  rn_strbuf_init(&body, job->cli->allocator);
  rn_status_t status = rn_load_print(&job->model, job->protocol, inputs, &body);
  if (rn_ok(status)) status = rn_vec_push(&job->bodies, job->cli->allocator, body);
  if (!rn_ok(status)) rn_strbuf_clear(&body);
  return status;
}

static rn_status_t add_file(load_job_t* job, const char* path) {
  rn_strbuf_t body;
  rn_strbuf_init(&body, job->cli->allocator);
  rn_status_t status = rn_fs_read(job->cli->env, path, (size_t)1 << 31, &body);
  if (rn_ok(status)) status = rn_vec_push(&job->bodies, job->cli->allocator, body);
  if (!rn_ok(status)) rn_strbuf_clear(&body);
  return rn_cli_at(status, path);
}

// Every Predict request of a file of PredictionLogs.
static rn_status_t add_log(load_job_t* job, const char* path) {
  rn_record_reader_t* reader = NULL;
  rn_status_t status = rn_record_reader_open(job->cli->env, path, RN_COMPRESSION_NONE, 0, &reader);
  bool is_end = false;
  rn_str_t record;
  while (rn_ok(status) && job->bodies.count < MAX_LOGGED) {
    status = rn_record_reader_next(reader, &record, &is_end);
    if (!rn_ok(status) || is_end) break;
    rn_load_inputs_t inputs;
    rn_status_t found = rn_load_inputs_logged(record, &job->arena, job->cli->allocator, &inputs);
    if (rn_ok(found)) status = add_payload(job, &inputs);
    rn_load_inputs_clear(&inputs);
    if (rn_status_code(found) == RN_CODE_NOT_FOUND)
      rn_status_free(found);
    else if (rn_ok(status))
      status = found;
  }
  rn_record_reader_close(reader);
  if (rn_ok(status) && !job->bodies.count) status = rn_not_found("it has no Predict requests");
  return rn_cli_at(status, path);
}

// Random inputs, as the server's metadata describe them.
static rn_status_t add_random(load_job_t* job) {
  rn_cli_t* cli = job->cli;
  rn_strbuf_t path, reply;
  rn_strbuf_init(&path, cli->allocator);
  rn_strbuf_init(&reply, cli->allocator);
  rn_strbuf_printf(&path, "/v1/models/%s/metadata", job->model.model);
  rn_cli_http_t ask = {.env = cli->env,
                       .allocator = cli->allocator,
                       .token_file = rn_cli_text(cli, "--token"),
                       .address = job->options.address,
                       .method = "GET",
                       .path = path.data,
                       .timeout_ns = 10 * SECOND_NS};
  int code = 0;
  rn_status_t status = rn_cli_http(&ask, &code, &reply);
  if (rn_ok(status) && code != 200)
    status = rn_not_found("%s says: %.*s", job->options.address,
                          RN_STR_ARGS(rn_str_trim(rn_strbuf_view(&reply))));
  int64_t rows = rn_cli_number(cli, "--rows", 1);
  for (int i = 0; i < 16 && rn_ok(status); ++i) {
    rn_load_inputs_t inputs = {0};
    status = rn_load_inputs_random(&job->model, rn_strbuf_view(&reply), rows,
                                   job->options.seed + (uint64_t)i, &job->arena, cli->allocator,
                                   &inputs);
    if (rn_ok(status)) status = add_payload(job, &inputs);
    rn_load_inputs_clear(&inputs);
  }
  rn_strbuf_clear(&reply);
  rn_strbuf_clear(&path);
  return status;
}

static rn_status_t make_payloads(load_job_t* job) {
  rn_cli_t* cli = job->cli;
  const char *body = rn_cli_text(cli, "--body"), *log = rn_cli_text(cli, "--log");
  rn_load_inputs_t inputs = {0};
  rn_status_t status = RN_OK;
  if (body) {
    status = add_file(job, body);
  } else if (log) {
    status = add_log(job, log);
  } else if (rn_cli_has(cli, "--input")) {
    status = rn_load_inputs_given(cli, &job->arena, &inputs);
    if (rn_ok(status)) status = add_payload(job, &inputs);
    rn_load_inputs_clear(&inputs);
  } else if (job->protocol == RN_LOAD_CLIPPER) {
    status = rn_cli_usage(cli, "an application needs --input or --body");
  } else {
    status = add_random(job);
  }
  for (size_t i = 0; i < job->bodies.count && rn_ok(status); ++i)
    status = rn_vec_push(&job->payloads, cli->allocator, rn_strbuf_view(&job->bodies.items[i]));
  job->options.payloads = job->payloads.items;
  job->options.payload_count = job->payloads.count;
  return status;
}

static rn_status_t set_path(load_job_t* job) {
  const char* path = rn_cli_text(job->cli, "--path");
  if (path && (*path != '/' || strpbrk(path, " \t\r\n")))
    return rn_cli_usage(job->cli, "--path needs a path such as /predict, not '%s'", path);
  if (path)
    rn_strbuf_append(&job->path, rn_str(path));
  else
    rn_load_path(&job->model, job->protocol, &job->path);
  return rn_strbuf_status(&job->path);
}

static rn_status_t set_options(load_job_t* job) {
  rn_cli_t* cli = job->cli;
  double rate, seconds, warmup, deadline;
  RN_RETURN_IF_ERROR(decimal(cli, "--rate", 0, &rate));
  RN_RETURN_IF_ERROR(decimal(cli, "--seconds", 10, &seconds));
  RN_RETURN_IF_ERROR(decimal(cli, "--warmup", 1, &warmup));
  RN_RETURN_IF_ERROR(decimal(cli, "--deadline_ms", 0, &deadline));
  RN_RETURN_IF_ERROR(
      rn_token_read(cli->env, rn_cli_text(cli, "--token"), cli->allocator, job->token));
  job->protocol = protocol_named(rn_cli_text(cli, "--protocol"));
  bool is_grpc = job->protocol == RN_LOAD_GRPC || job->protocol == RN_LOAD_OIP_GRPC;
  RN_RETURN_IF_ERROR(set_path(job));
  job->options =
      (rn_load_options_t){.allocator = cli->allocator,
                          .address = rn_cli_word(cli, "ADDRESS"),
                          .is_grpc = is_grpc,
                          .path = job->path.data,
                          .token = job->token[0] ? job->token : NULL,
                          .type = "application/json",
                          .headers = "",
                          .rate = rate,
                          .is_uniform = rn_cli_has(cli, "--uniform"),
                          .seed = (uint64_t)rn_cli_number(cli, "--seed", 1),
                          .connections = (int)rn_cli_number(cli, "--connections",
                                                            is_grpc    ? 4
                                                            : rate > 0 ? 64
                                                                       : 8),
                          .streams = (int)rn_cli_number(cli, "--streams", rate > 0 ? 1000 : 8),
                          .duration_ns = (int64_t)(seconds * 1e9),
                          .warmup_ns = (int64_t)(warmup * 1e9),
                          .deadline_ns = (int64_t)(deadline * 1e6)};
  return RN_OK;
}

static const double shares[] = {0.5, 0.9, 0.99, 0.999, 0.9999};

static json_t* latency_json(const rn_latencies_t* latencies) {
  json_t* object = json_object();
  json_object_set_new(object, "mean", json_real(rn_latencies_mean(latencies) / 1e6));
  for (size_t i = 0; i < sizeof shares / sizeof *shares; ++i) {
    char name[16];
    snprintf(name, sizeof name, "p%g", shares[i] * 100);
    json_object_set_new(object, name,
                        json_real((double)rn_latencies_quantile(latencies, shares[i]) / 1e6));
  }
  json_object_set_new(object, "max", json_real((double)latencies->max / 1e6));
  return object;
}

static json_t* codes_json(const rn_load_result_t* result) {
  json_t* codes = json_object();
  for (int i = 0; i < 600; ++i) {
    if (!result->codes[i]) continue;
    char name[16];
    snprintf(name, sizeof name, "%d", i);
    json_object_set_new(codes, name, json_integer((json_int_t)result->codes[i]));
  }
  return codes;
}

static rn_status_t print_json(const load_job_t* job) {
  const rn_load_result_t* result = job->result;
  json_t* root = json_object();
  json_object_set_new(root, "offered_per_second", json_real(job->options.rate));
  json_object_set_new(root, "seconds", json_real(result->seconds));
  json_object_set_new(root, "sent", json_integer((json_int_t)result->sent));
  json_object_set_new(root, "answered", json_integer((json_int_t)result->answered));
  json_object_set_new(root, "ok", json_integer((json_int_t)result->ok));
  json_object_set_new(root, "ok_per_second", json_real((double)result->ok / result->seconds));
  json_object_set_new(root, "late", json_integer((json_int_t)result->late));
  json_object_set_new(root, "unsent", json_integer((json_int_t)result->unsent));
  json_object_set_new(root, "broken_connections", json_integer((json_int_t)result->broken));
  json_object_set_new(root, "codes", codes_json(result));
  json_object_set_new(root, "latency_ms", latency_json(&result->latency));
  json_object_set_new(root, "service_ms", latency_json(&result->service));
  return rn_cli_json_print(root);
}

static void print_row(const char* name, const rn_latencies_t* latencies) {
  printf("%-24s %9.3f", name, rn_latencies_mean(latencies) / 1e6);
  for (size_t i = 0; i < sizeof shares / sizeof *shares; ++i)
    printf(" %9.3f", (double)rn_latencies_quantile(latencies, shares[i]) / 1e6);
  printf(" %9.3f\n", (double)latencies->max / 1e6);
}

static void print_text(const load_job_t* job) {
  const rn_load_result_t* result = job->result;
  rn_cli_digits_t a, b, c;
  printf("%s requests in %.1f s", rn_cli_digits((int64_t)result->sent, &a), result->seconds);
  if (job->options.rate > 0)
    printf(", offered %s per second", rn_cli_digits((int64_t)job->options.rate, &b));
  printf("\nanswered well: %s, %s per second", rn_cli_digits((int64_t)result->ok, &a),
         rn_cli_digits((int64_t)((double)result->ok / result->seconds), &b));
  if (result->late) printf("; late: %s", rn_cli_digits((int64_t)result->late, &c));
  if (result->unsent)
    printf("; not sent in time: %s (more --connections?)",
           rn_cli_digits((int64_t)result->unsent, &c));
  if (result->broken) printf("; broken connections: %llu", (unsigned long long)result->broken);
  printf("\n");
  for (int i = 0; i < 600; ++i)
    if (result->codes[i] && i != (job->options.is_grpc ? 0 : 200))
      printf("%s %d: %s\n", job->options.is_grpc ? "status" : "code", i,
             rn_cli_digits((int64_t)result->codes[i], &a));
  printf("\n%-24s %9s %9s %9s %9s %9s %9s %9s\n", "ms", "mean", "p50", "p90", "p99", "p99.9",
         "p99.99", "max");
  if (job->options.rate > 0) print_row("from the intended time", &result->latency);
  print_row("from sending", &result->service);
}

static rn_status_t write_file(const load_job_t* job, const char* option,
                              void (*print)(const load_job_t* job, FILE* out)) {
  const char* path = rn_cli_text(job->cli, option);
  if (!path) return RN_OK;
  FILE* out = fopen(path, "w");
  if (!out) return rn_cli_at(rn_unavailable("cannot be written"), path);
  print(job, out);
  bool ok = !ferror(out);
  ok = fclose(out) == 0 && ok;
  return ok ? RN_OK : rn_cli_at(rn_unavailable("cannot be written"), path);
}

static const rn_latencies_t* chosen(const load_job_t* job) {
  return job->options.rate > 0 ? &job->result->latency : &job->result->service;
}

static void print_histogram(const load_job_t* job, FILE* out) {
  rn_latencies_print(chosen(job), out);
}

static void draw(const load_job_t* job, FILE* out) {
  char title[256];
  snprintf(title, sizeof title, "%s, %.0f requests per second", job->model.model,
           (double)job->result->ok / job->result->seconds);
  rn_latencies_draw(chosen(job), title, out);
}

static void show_progress(void* self, const rn_load_t* load) {
  (void)self;
  fprintf(stderr, "\r%.0f s: %llu answered ", (double)(rn_load_now() - load->begun_ns) / 1e9,
          (unsigned long long)load->result->answered);
  fflush(stderr);
}

static rn_status_t measure(load_job_t* job) {
  bool is_shown = isatty(STDERR_FILENO) && !rn_cli_has(job->cli, "--json");
  if (is_shown) job->options.progress = show_progress;
  rn_thread_be_prompt();  // requests are due at their times, whatever else this machine does
  rn_status_t status = rn_load_run(&job->options, job->result);
  if (is_shown) fprintf(stderr, "\r%40s\r", "");
  RN_RETURN_IF_ERROR(status);
  if (rn_cli_has(job->cli, "--json"))
    RN_RETURN_IF_ERROR(print_json(job));
  else
    print_text(job);
  RN_RETURN_IF_ERROR(write_file(job, "--histogram", print_histogram));
  return write_file(job, "--plot", draw);
}

static rn_status_t load(rn_cli_t* cli) {
  load_job_t job = {.cli = cli,
                    .model = {rn_cli_word(cli, "MODEL"), rn_cli_text(cli, "--signature")}};
  rn_arena_init(&job.arena, cli->allocator);
  rn_strbuf_init(&job.path, cli->allocator);
  rn_status_t status = RN_NEW(cli->allocator, &job.result);
  if (rn_ok(status)) status = set_options(&job);
  if (rn_ok(status)) status = make_payloads(&job);
  if (rn_ok(status)) status = measure(&job);
  for (size_t i = 0; i < job.bodies.count; ++i) rn_strbuf_clear(&job.bodies.items[i]);
  rn_vec_free(&job.bodies, cli->allocator);
  rn_vec_free(&job.payloads, cli->allocator);
  if (job.result) RN_FREE(cli->allocator, job.result);
  rn_strbuf_clear(&job.path);
  rn_arena_clear(&job.arena);
  return status;
}

static const rn_cli_option_t options_of_load[] = {
    RN_OPTION(TEXT, "--rate", "N",
              "requests per second, as a Poisson process (default: a closed loop, which sends when "
              "an answer has come)"),
    RN_OPTION(FLAG, "--uniform", NULL, "equal distances between requests"),
    RN_OPTION(TEXT, "--seconds", "S", "how long to measure (default 10)"),
    RN_OPTION(TEXT, "--warmup", "S", "how long to send before that (default 1)"),
    RN_OPTION(CHOICE, "--protocol", "NAME",
              "rest (default), grpc, oip, oip-grpc or clipper (MODEL is an application)",
              .choices = protocols),
    RN_OPTION(TEXT, "--signature", "NAME", "of the model (default serving_default)"),
    RN_OPTION(TEXT, "--input", "NAME=VALUE",
              "an input, as for 'runnel run' (default: random values that fit)", .repeats = true),
    RN_OPTION(NUMBER, "--rows", "N", "rows of random inputs (default 1)", .least = 1),
    RN_OPTION(FILE, "--log", "FILE", "replay the Predict requests of a request log"),
    RN_OPTION(FILE, "--body", "FILE", "send this body as it is"),
    RN_OPTION(
        TEXT, "--path", "PATH",
        "send to this path (default: the protocol's), for servers of other kinds with --body"),
    RN_OPTION(NUMBER, "--connections", "N", "connections (default 64 with a rate, else 8; gRPC 4)",
              .least = 1, .most = 65536),
    RN_OPTION(NUMBER, "--streams", "N",
              "calls at a time per gRPC connection (default 1000 with a rate, else 8)", .least = 1,
              .most = 65536),
    RN_OPTION(TEXT, "--deadline_ms", "MS", "later answers do not count (gRPC sends it along)"),
    RN_OPTION(FILE, "--token", "FILE", "the token to send (default: that of RUNNEL_TOKEN)"),
    RN_OPTION(NUMBER, "--seed", "N", "of arrivals and inputs (default 1)"),
    RN_OPTION(FILE, "--histogram", "FILE", "write percentiles in HdrHistogram's text form"),
    RN_OPTION(FILE, "--plot", "FILE", "draw latency over percentile, as SVG"),
    RN_CLI_JSON_OPTION(NULL),
    {0},
};

const rn_cli_command_t rn_cli_load_command = {
    .name = "load",
    .summary = "send requests to a model server and measure latencies",
    .about =
        "Sends predictions to the server at ADDRESS (host:port, or unix:PATH) and prints "
        "throughput and percentiles of the latency.\n\nWith --rate, requests are sent when they "
        "are due, whether or not earlier ones were answered, and a latency counts from the moment "
        "when its request was due. So a stall of the server counts for every request that it "
        "delays. Without, each connection waits for its answer: that measures capacity, not "
        "latency under load.",
    .words = "ADDRESS MODEL",
    .run = load,
    .options = options_of_load,
    .examples =
        "runnel load localhost:8501 half --rate 5000\n"
        "runnel load localhost:8500 half --protocol grpc --rate 5000 --plot latency.svg\n"
        "runnel load localhost:8501 half --input 'x=[1,2,3]:float' --json",
};
