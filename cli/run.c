// runnel run: runs steps of a graph from the shell.
#include <stdio.h>

#include "cli/npy.h"
#include "cli/precision.h"
#include "cli/progress.h"
#include "cli/run_inputs.h"
#include "cli/times.h"
#include "cli/trace.h"
#include "cli/value.h"

static rn_status_t take_fetch(rn_cli_run_t* job, const char* value, bool is_saved) {
  rn_cli_run_fetch_t fetch = {.name = value};
  if (is_saved) {
    rn_str_t name, copy;
    RN_RETURN_IF_ERROR(rn_cli_split(job->cli, "--save", rn_str(value), &name, &fetch.file));
    RN_RETURN_IF_ERROR(rn_arena_str(&job->arena, name, &copy));
    fetch.name = copy.data;
  }
  return rn_vec_push(&job->fetch_texts, job->cli->allocator, fetch);
}

static rn_status_t read_arguments(rn_cli_run_t* job) {
  const rn_cli_t* cli = job->cli;
  job->is_model = rn_cli_is_folder(cli, job->path);
  if (!job->is_model &&
      (rn_cli_has(cli, "--signature") || rn_cli_has(cli, "--tags") || rn_cli_has(cli, "--allow")))
    return rn_cli_usage(cli, "--signature, --tags and --allow are for SavedModels");
  for (size_t i = 0; i < cli->given.count; ++i) {
    const rn_cli_given_t* given = &cli->given.items[i];
    bool is_saved = rn_cli_is(given, "--save");
    if (is_saved || rn_cli_is(given, "--fetch"))
      RN_RETURN_IF_ERROR(take_fetch(job, given->value, is_saved));
  }
  job->asks_nothing =
      !job->fetch_texts.count && !rn_cli_has(cli, "--target") && !rn_cli_has(cli, "--init");
  if (!job->is_model && job->asks_nothing)
    return rn_cli_usage(cli, "nothing to run; give --fetch, --save or --target");
  return RN_OK;
}

static rn_status_t session_options(const rn_cli_run_t* job, rn_session_options_t* out) {
  rn_session_options_init(out);
  out->intra_threads = out->inter_threads = (int)rn_cli_number(job->cli, "--threads", 0);
  out->timeout_ms = rn_cli_number(job->cli, "--timeout", 0);
  out->allow_soft_placement = true;
  return rn_cli_precision(job->cli, &out->precision);
}

static rn_status_t open_graph(rn_cli_run_t* job) {
  rn_session_options_t session;
  RN_RETURN_IF_ERROR(session_options(job, &session));
  RN_RETURN_IF_ERROR(rn_cli_load(job->cli, job->path, &job->file));
  RN_RETURN_IF_ERROR(rn_cli_import(&job->file, &job->graph));
  return rn_session_create(job->graph, &session, job->cli->env, job->cli->allocator, &job->session);
}

static rn_status_t open_model(rn_cli_run_t* job) {
  rn_session_options_t session;
  RN_RETURN_IF_ERROR(session_options(job, &session));
  RN_RETURN_IF_ERROR(
      rn_cli_model_open(job->cli, job->path, rn_cli_text(job->cli, "--tags"), &job->model));
  RN_RETURN_IF_ERROR(
      rn_cli_model_load(job->cli, &job->model, &session, rn_cli_text(job->cli, "--allow")));
  RN_RETURN_IF_ERROR(rn_cli_model_use(job->cli, &job->model, rn_cli_text(job->cli, "--signature")));
  job->graph = job->model.graph;
  job->session = job->model.session;
  for (int32_t i = 0; job->asks_nothing && i < job->model.output_count; ++i) {
    rn_cli_run_fetch_t fetch = {.name = job->model.outputs[i].name.data};
    RN_RETURN_IF_ERROR(rn_vec_push(&job->fetch_texts, job->cli->allocator, fetch));
  }
  return RN_OK;
}

static rn_status_t run_inits(rn_cli_run_t* job) {
  for (size_t i = 0; i < job->inits.count; ++i) {
    rn_signature_t signature = {.targets = &job->inits.items[i], .target_count = 1};
    RN_RETURN_IF_ERROR(rn_cli_prefix(rn_session_run(job->session, &signature, NULL, NULL, NULL),
                                     "'%s': --init %.*s: ", job->path,
                                     RN_STR_ARGS(job->inits.items[i]->name)));
  }
  return RN_OK;
}

static void clear_results(rn_cli_run_t* job) {
  for (size_t i = 0; job->results && i < job->fetches.count; ++i) rn_tensor_clear(&job->results[i]);
}

static rn_status_t run_each(rn_cli_run_t* job, const rn_signature_t* signature,
                            rn_step_stats_t* stats, rn_cli_times_t* times) {
  const rn_env_t* env = job->cli->env;
  int64_t repeat = rn_cli_number(job->cli, "--repeat", 1);
  const rn_tensor_t** values = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&job->arena, job->values.count, &values));
  for (size_t i = 0; i < job->values.count; ++i) values[i] = &job->values.items[i];
  rn_cli_times_init(times, job->cli->allocator, repeat);
  rn_cli_progress_t progress = rn_cli_progress(job->cli, "steps", repeat);
  rn_status_t status = RN_OK;
  for (int64_t i = 0; rn_ok(status) && i < repeat; ++i) {
    rn_step_options_t step = {.stats = i + 1 == repeat ? stats : NULL};
    clear_results(job);
    int64_t begin = env->now_ns(env->self);
    status = rn_session_run(job->session, signature, values, job->results, &step);
    if (rn_ok(status)) status = rn_cli_times_add(times, i, env->now_ns(env->self) - begin);
    rn_cli_progress_set(&progress, i + 1);
  }
  rn_cli_progress_end(&progress);
  return rn_cli_at(status, job->path);
}

static rn_status_t run_steps(rn_cli_run_t* job, rn_step_stats_t* stats) {
  rn_signature_t signature = {.feeds = job->feeds.items,
                              .feed_count = (int32_t)job->feeds.count,
                              .fetches = job->fetches.items,
                              .fetch_count = (int32_t)job->fetches.count,
                              .targets = job->targets.items,
                              .target_count = (int32_t)job->targets.count};
  rn_cli_times_t times = {0};
  rn_status_t status = run_each(job, &signature, stats, &times);
  if (rn_ok(status)) rn_cli_times_print(&times, stderr);
  rn_cli_times_clear(&times);
  return status;
}

static rn_status_t write_file(const rn_cli_run_t* job, rn_str_t path, const rn_strbuf_t* bytes) {
  char* name = NULL;
  RN_RETURN_IF_ERROR(rn_str_dup(job->cli->allocator, path, &name));
  rn_status_t status = rn_fs_write(job->cli->env, name, rn_strbuf_view(bytes));
  status = rn_cli_prefix(rn_cli_at(status, name), "cannot write ");
  rn_free(job->cli->allocator, name, path.size + 1);
  return status;
}

// The file of a result: as --save names it, or in the folder --outdir.
static rn_status_t file_of(rn_cli_run_t* job, const rn_cli_run_fetch_t* fetch, rn_str_t* out) {
  const char* folder = job->cli->verb ? rn_cli_text(job->cli, "--outdir") : NULL;
  *out = fetch->file;
  if (fetch->file.size || !folder) return RN_OK;
  RN_RETURN_IF_ERROR(rn_cli_at(rn_fs_make_directories(job->cli->env, folder), folder));
  RN_RETURN_IF_ERROR(rn_arena_printf(&job->arena, out, "%s/%s.npy", folder, fetch->name));
  if (rn_cli_has(job->cli, "--overwrite") || !rn_fs_exists(job->cli->env, out->data)) return RN_OK;
  return rn_already_exists("'%s' exists already; --overwrite replaces it", out->data);
}

static rn_status_t print_result(rn_cli_run_t* job, size_t i) {
  const rn_tensor_t* value = &job->results[i];
  const rn_cli_run_fetch_t* fetch = &job->fetch_texts.items[i];
  rn_strbuf_t buf;
  rn_str_t file;
  RN_RETURN_IF_ERROR(file_of(job, fetch, &file));
  rn_strbuf_init(&buf, job->cli->allocator);
  rn_status_t status = RN_OK;
  if (file.size) {
    status = rn_cli_prefix(rn_npy_write(value, &buf), "%s: ", fetch->name);
    if (rn_ok(status)) status = write_file(job, file, &buf);
    buf.size = 0;
  }
  if (!fetch->file.size) {
    rn_strbuf_printf(&buf, "%s: %s ", fetch->name, rn_dtype_name(value->dtype));
    rn_shape_print(&buf, rn_tensor_shape(value));
    rn_strbuf_append(&buf, RN_STR("\n"));
    rn_cli_show(&buf, value);
    if (rn_ok(status)) status = rn_strbuf_status(&buf);
    if (rn_ok(status)) fwrite(buf.data, 1, buf.size, stdout);
  }
  rn_strbuf_clear(&buf);
  return status;
}

static rn_status_t write_trace(const rn_cli_run_t* job, const rn_step_stats_t* stats) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, job->cli->allocator);
  rn_cli_put_trace(stats, &buf);
  rn_status_t status = rn_strbuf_status(&buf);
  if (rn_ok(status)) status = write_file(job, rn_str(rn_cli_text(job->cli, "--trace")), &buf);
  rn_strbuf_clear(&buf);
  return status;
}

static rn_status_t run(rn_cli_run_t* job) {
  RN_RETURN_IF_ERROR(read_arguments(job));
  RN_RETURN_IF_ERROR(job->is_model ? open_model(job) : open_graph(job));
  RN_RETURN_IF_ERROR(rn_cli_run_resolve(job));
  RN_RETURN_IF_ERROR(run_inits(job));
  if (job->fetches.count + job->targets.count == 0) return RN_OK;
  rn_step_stats_t stats;
  rn_step_stats_init(&stats, job->cli->allocator, job->cli->env);
  bool is_traced = rn_cli_has(job->cli, "--trace");
  rn_status_t status = rn_cli_run_name_inputs(job, run_steps(job, is_traced ? &stats : NULL));
  for (size_t i = 0; rn_ok(status) && i < job->fetches.count; ++i) status = print_result(job, i);
  if (rn_ok(status) && is_traced) status = write_trace(job, &stats);
  rn_step_stats_clear(&stats);
  return status;
}

rn_status_t rn_cli_run(rn_cli_t* cli) {
  rn_allocator_t allocator = cli->allocator;
  rn_cli_run_t job = {.cli = cli, .path = rn_cli_word(cli, cli->verb ? "DIR" : "GRAPH")};
  rn_arena_init(&job.arena, allocator);
  rn_arena_init(&job.file.arena, allocator);
  rn_arena_init(&job.model.arena, allocator);
  rn_strbuf_init(&job.file.bytes, allocator);
  rn_status_t status = run(&job);
  clear_results(&job);
  for (size_t i = 0; i < job.values.count; ++i) rn_tensor_clear(&job.values.items[i]);
  if (!job.is_model) {
    rn_session_destroy(job.session);
    rn_graph_release(job.graph);
  }
  rn_cli_model_clear(&job.model);
  rn_cli_file_clear(&job.file);
  rn_vec_free(&job.feeds, allocator);
  rn_vec_free(&job.values, allocator);
  rn_vec_free(&job.fetch_texts, allocator);
  rn_vec_free(&job.fetches, allocator);
  rn_vec_free(&job.targets, allocator);
  rn_vec_free(&job.inits, allocator);
  rn_arena_clear(&job.arena);
  return status;
}

static const rn_cli_option_t options[] = {
    RN_OPTION(
        TEXT, "--feed", "NAME=VALUE",
        "VALUE is @file.npy, or a literal: 1.5  true  \"text\"  [1,2,3] [[1,2],[3,4]]. It gets the "
        "type "
        "that the graph expects, or the type after it: 7:int64",
        .repeats = true),
    RN_OPTION(TEXT, "--fetch", "NAME", "print this value", .repeats = true),
    RN_OPTION(TEXT, "--save", "NAME=FILE", "write this value to FILE.npy instead", .repeats = true),
    RN_OPTION(TEXT, "--init", "OP",
              "run this node once, in a step of its own, before anything else, for example the "
              "initializer of variables",
              .repeats = true),
    RN_OPTION(TEXT, "--target", "OP", "also run this node, without fetching its value",
              .repeats = true),
    RN_OPTION(NUMBER, "--threads", "N", "use N threads (default: one per processor)", .least = 1,
              .most = 1024),
    RN_CLI_PRECISION_OPTION,
    RN_OPTION(NUMBER, "--repeat", "N",
              "run the step N times and print its time on stderr: mean, percentiles and maximum",
              .least = 1, .most = INT64_C(1000000000000)),
    RN_OPTION(NUMBER, "--timeout", "MS", "fail if a step takes longer than MS milliseconds",
              .least = 1),
    RN_OPTION(
        FILE, "--trace", "FILE",
        "write when each node of the last step ran, as JSON for chrome://tracing or Perfetto"),
    RN_OPTION(TEXT, "--signature", "NAME",
              "of a SavedModel (default: serving_default, or the only one)"),
    RN_OPTION(TEXT, "--tags", "T,...", "of a SavedModel with several graphs (default: serve)"),
    RN_OPTION(TEXT, "--allow", "WHAT",
              "what a SavedModel may do besides reading its own folder: read:FOLDER, write:FOLDER, "
              "network, all, separated by ';'"),
    {0},
};

const rn_cli_command_t rn_cli_run_command = {
    .name = "run",
    .summary = "run a graph: feed values, fetch results",
    .about =
        "Runs a step of a GraphDef (.pb or .pbtxt) or of a SavedModel (a folder): feeds values and "
        "prints the fetched ones as NumPy does. A NAME is that of a node, followed by ':1' for its "
        "second output; for a SavedModel it can also be the name of an input or output in the "
        "signature.",
    .words = "GRAPH",
    .word_kind = RN_CLI_FILE,
    .run = rn_cli_run,
    .options = options,
    .examples =
        "runnel run examples/models/line.pbtxt --feed 'x=[[1,2],[3,4]]' --fetch y\n"
        "runnel run examples/models/line.pbtxt --feed 'x=[[1,2]]' --save y=y.npy --repeat 1000\n"
        "runnel run examples/models/counter.pbtxt --init init --fetch value --trace step.json\n"
        "runnel run build/train/model --feed images=@examples/models/digits.npy   # after make "
        "train",
};
