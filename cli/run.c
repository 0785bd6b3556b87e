// runnel run: one step of a graph, from the shell.
#include <stdio.h>

#include "base/vec.h"
#include "cli/expr.h"
#include "cli/load.h"
#include "cli/model.h"
#include "cli/npy.h"
#include "cli/progress.h"
#include "cli/times.h"
#include "cli/trace.h"
#include "cli/value.h"
#include "session/session.h"

typedef struct fetch_t {
  const char* name;  // as written
  rn_str_t file;     // empty: print it
} fetch_t;

typedef struct job_t {
  rn_cli_t* cli;
  rn_arena_t arena;
  const char* path;
  rn_cli_file_t file;
  rn_cli_model_t model;  // of a folder; then graph and session are its
  bool is_model, asks_nothing;
  rn_graph_t* graph;      // Owned, unless the model's
  rn_session_t* session;  // Owned, unless the model's
  RN_VEC(rn_edge_t) feeds;
  RN_VEC(rn_tensor_t) values;
  RN_VEC(fetch_t) fetch_texts;
  RN_VEC(rn_edge_t) fetches;
  RN_VEC(rn_node_t*) targets;
  RN_VEC(rn_node_t*) inits;
  rn_tensor_t* results;  // in the arena; one a fetch
} job_t;

static rn_status_t take_fetch(job_t* job, const char* value, bool is_saved) {
  fetch_t fetch = {.name = value};
  if (is_saved) {
    rn_str_t name, copy;
    RN_RETURN_IF_ERROR(rn_cli_split(job->cli, "--save", rn_str(value), &name, &fetch.file));
    RN_RETURN_IF_ERROR(rn_arena_str(&job->arena, name, &copy));
    fetch.name = copy.data;
  }
  return rn_vec_push(&job->fetch_texts, job->cli->allocator, fetch);
}

static rn_status_t read_arguments(job_t* job) {
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
    return rn_cli_usage(cli, "nothing is asked for; say --fetch, --save or --target");
  return RN_OK;
}

static rn_status_t find_node(const job_t* job, const char* option, rn_str_t name, rn_node_t** out) {
  *out = rn_graph_find(job->graph, name);
  if (*out) return RN_OK;
  return rn_not_found(
      "%s %.*s: the graph has no node of that name; 'runnel %s %s' lists inputs and outputs",
      option, RN_STR_ARGS(name), job->is_model ? "saved_model show" : "graph", job->path);
}

// Whether the model's signature has a port of this name.
static bool find_port(const job_t* job, rn_str_t name, bool is_feed, rn_edge_t* out) {
  const rn_port_t* ports = is_feed ? job->model.inputs : job->model.outputs;
  int32_t count = is_feed ? job->model.input_count : job->model.output_count;
  for (int32_t i = 0; job->is_model && i < count; ++i) {
    if (!rn_str_eq(ports[i].name, name)) continue;
    *out = ports[i].edge;
    return true;
  }
  return false;
}

// "name" or "name:1". A node's name has no ':' in it.
static rn_status_t find_edge(const job_t* job, const char* option, rn_str_t text, bool is_feed,
                             rn_edge_t* out) {
  if (find_port(job, text, is_feed, out)) return RN_OK;
  rn_str_t rest = text, name = rn_str_split(&rest, ':');
  int64_t index = 0;
  if (name.size != text.size && (!rn_str_to_i64(rest, &index) || index < 0 || index > INT32_MAX))
    return rn_cli_usage(job->cli, "%s %.*s: ':' wants the number of an output behind it", option,
                        RN_STR_ARGS(text));
  RN_RETURN_IF_ERROR(find_node(job, option, name, &out->node));
  out->index = (int)index;
  if (index < out->node->output_count) return RN_OK;
  return rn_invalid_argument(
      "'%s': %s %.*s: the node (%s) has %d outputs; use --target for those "
      "that have none",
      job->path, option, RN_STR_ARGS(text), out->node->op->name, out->node->output_count);
}

// Whether a placeholder declares a shape that |value| does not have. Sessions run any shape; people
// are told before the step, as TensorFlow's Python client tells them.
static rn_status_t check_shape(const job_t* job, rn_edge_t edge, const rn_tensor_t* value) {
  rn_shape_t declared = edge.node->outputs[edge.index].shape;
  if (edge.node->op->role != RN_ROLE_PLACEHOLDER ||
      rn_shape_compatible(declared, rn_tensor_shape(value)))
    return RN_OK;
  rn_strbuf_t got, wanted;
  rn_strbuf_init(&got, job->cli->allocator);
  rn_strbuf_init(&wanted, job->cli->allocator);
  rn_shape_print(&got, rn_tensor_shape(value));
  rn_shape_print(&wanted, declared);
  rn_status_t status = rn_invalid_argument("the value has shape %s and the graph wants %s",
                                           rn_strbuf_view(&got).data, rn_strbuf_view(&wanted).data);
  rn_strbuf_clear(&got);
  rn_strbuf_clear(&wanted);
  return status;
}

// A file of integers may be what a quantised placeholder wants.
static rn_status_t fit(const job_t* job, rn_edge_t edge, rn_tensor_t* value) {
  rn_dtype_t wanted = rn_dtype_base(edge.node->outputs[edge.index].dtype);
  bool is_quantised = rn_dtype_stored(wanted) != wanted;
  if (is_quantised && rn_dtype_is_integer(value->dtype) &&
      rn_dtype_size(value->dtype) == rn_dtype_size(wanted))
    value->dtype = (uint8_t)wanted;
  if (value->dtype == wanted) return check_shape(job, edge, value);
  return rn_invalid_argument("the value is %s and the graph wants %s", rn_dtype_name(value->dtype),
                             rn_dtype_name(wanted));
}

// Feeds what |read| makes of |text|, "NAME=VALUE", as |option| gave it.
static rn_status_t resolve_feed(job_t* job, const char* option, rn_str_t text,
                                rn_cli_reader_t read) {
  rn_cli_t* cli = job->cli;
  rn_str_t name, value_text;
  rn_edge_t edge;
  RN_RETURN_IF_ERROR(rn_cli_split(cli, option, text, &name, &value_text));
  RN_RETURN_IF_ERROR(find_edge(job, option, name, true, &edge));
  rn_dtype_t wanted = rn_dtype_base(edge.node->outputs[edge.index].dtype);
  rn_tensor_t value;
  RN_RETURN_IF_ERROR(
      rn_cli_prefix(read(cli, value_text, wanted, &value), "%s %.*s: ", option, RN_STR_ARGS(name)));
  rn_status_t status =
      rn_cli_prefix(fit(job, edge, &value), "%s %.*s: ", option, RN_STR_ARGS(name));
  if (rn_ok(status)) status = rn_vec_push(&job->feeds, cli->allocator, edge);
  if (rn_ok(status)) status = rn_vec_push(&job->values, cli->allocator, value);
  if (!rn_ok(status)) rn_tensor_clear(&value);
  return status;
}

// --feed, and what saved_model_cli calls it.
static rn_status_t resolve_feeds(job_t* job) {
  static const struct {
    const char* option;
    rn_cli_reader_t read;
  } lists[] = {{"--inputs", rn_cli_read_file},
               {"--input_exprs", rn_cli_read_expr},
               {"--input_examples", rn_cli_read_examples}};
  size_t at = 0;
  for (const char* text; (text = rn_cli_each(job->cli, "--feed", &at));)
    RN_RETURN_IF_ERROR(resolve_feed(job, "--feed", rn_str(text), rn_cli_value));
  for (size_t i = 0; job->cli->verb && i < sizeof lists / sizeof *lists; ++i) {
    at = 0;
    for (const char* text; (text = rn_cli_each(job->cli, lists[i].option, &at));) {
      rn_str_t rest = rn_str(text), item;
      while (rn_cli_next_input(&rest, &item))
        RN_RETURN_IF_ERROR(resolve_feed(job, lists[i].option, item, lists[i].read));
    }
  }
  return RN_OK;
}

// Names to nodes, texts to values.
static rn_status_t resolve(job_t* job) {
  rn_allocator_t allocator = job->cli->allocator;
  rn_edge_t edge;
  rn_node_t* node;
  size_t at = 0;
  RN_RETURN_IF_ERROR(resolve_feeds(job));
  for (size_t i = 0; i < job->fetch_texts.count; ++i) {
    const fetch_t* fetch = &job->fetch_texts.items[i];
    RN_RETURN_IF_ERROR(
        find_edge(job, fetch->file.size ? "--save" : "--fetch", rn_str(fetch->name), false, &edge));
    RN_RETURN_IF_ERROR(rn_vec_push(&job->fetches, allocator, edge));
  }
  at = 0;
  for (const char* name; (name = rn_cli_each(job->cli, "--target", &at));) {
    RN_RETURN_IF_ERROR(find_node(job, "--target", rn_str(name), &node));
    RN_RETURN_IF_ERROR(rn_vec_push(&job->targets, allocator, node));
  }
  at = 0;
  for (const char* name; (name = rn_cli_each(job->cli, "--init", &at));) {
    RN_RETURN_IF_ERROR(find_node(job, "--init", rn_str(name), &node));
    RN_RETURN_IF_ERROR(rn_vec_push(&job->inits, allocator, node));
  }
  return RN_ARENA_ARRAY(&job->arena, job->fetches.count, &job->results);
}

static void session_options(const job_t* job, rn_session_options_t* out) {
  rn_session_options_init(out);
  out->intra_threads = out->inter_threads = (int)rn_cli_number(job->cli, "--threads", 0);
  out->timeout_ms = rn_cli_number(job->cli, "--timeout", 0);
  out->allow_soft_placement = true;
}

static rn_status_t open_graph(job_t* job) {
  rn_session_options_t session;
  session_options(job, &session);
  RN_RETURN_IF_ERROR(rn_cli_load(job->cli, job->path, &job->file));
  RN_RETURN_IF_ERROR(rn_cli_import(&job->file, &job->graph));
  return rn_session_create(job->graph, &session, job->cli->env, job->cli->allocator, &job->session);
}

static rn_status_t open_model(job_t* job) {
  rn_session_options_t session;
  session_options(job, &session);
  RN_RETURN_IF_ERROR(
      rn_cli_model_open(job->cli, job->path, rn_cli_text(job->cli, "--tags"), &job->model));
  RN_RETURN_IF_ERROR(
      rn_cli_model_load(job->cli, &job->model, &session, rn_cli_text(job->cli, "--allow")));
  RN_RETURN_IF_ERROR(rn_cli_model_use(job->cli, &job->model, rn_cli_text(job->cli, "--signature")));
  job->graph = job->model.graph;
  job->session = job->model.session;
  for (int32_t i = 0; job->asks_nothing && i < job->model.output_count; ++i) {
    fetch_t fetch = {.name = job->model.outputs[i].name.data};
    RN_RETURN_IF_ERROR(rn_vec_push(&job->fetch_texts, job->cli->allocator, fetch));
  }
  return RN_OK;
}

static rn_status_t run_inits(job_t* job) {
  for (size_t i = 0; i < job->inits.count; ++i) {
    rn_signature_t signature = {.targets = &job->inits.items[i], .target_count = 1};
    RN_RETURN_IF_ERROR(rn_cli_prefix(rn_session_run(job->session, &signature, NULL, NULL, NULL),
                                     "'%s': --init %.*s: ", job->path,
                                     RN_STR_ARGS(job->inits.items[i]->name)));
  }
  return RN_OK;
}

static void clear_results(job_t* job) {
  for (size_t i = 0; job->results && i < job->fetches.count; ++i) rn_tensor_clear(&job->results[i]);
}

static rn_status_t run_each(job_t* job, const rn_signature_t* signature, rn_step_stats_t* stats,
                            rn_cli_times_t* times) {
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

static rn_status_t run_steps(job_t* job, rn_step_stats_t* stats) {
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

static bool is_fed(const job_t* job, rn_edge_t edge) {
  for (size_t i = 0; i < job->feeds.count; ++i)
    if (job->feeds.items[i].node == edge.node && job->feeds.items[i].index == edge.index)
      return true;
  return false;
}

// A step fails with the name of a placeholder; people know it by its name in the signature.
static rn_status_t name_inputs(const job_t* job, rn_status_t status) {
  rn_strbuf_t names;
  bool is_cause = false;
  if (rn_ok(status) || !job->is_model) return status;
  rn_strbuf_init(&names, job->cli->allocator);
  for (int32_t i = 0; i < job->model.input_count; ++i) {
    const rn_port_t* input = &job->model.inputs[i];
    rn_str_t node = input->edge.node->name;
    char quoted[300];
    if (is_fed(job, input->edge) || input->edge.node->input_count) continue;
    snprintf(quoted, sizeof quoted, "placeholder tensor '%.*s'", RN_STR_ARGS(node));
    is_cause |= strstr(rn_status_message(status), quoted) != NULL;
    const rn_output_t* output = &input->edge.node->outputs[input->edge.index];
    rn_strbuf_printf(&names, "%s'%.*s' (%s ", names.size ? ", " : "", RN_STR_ARGS(input->name),
                     rn_dtype_name(output->dtype));
    rn_shape_print(&names, output->shape);
    rn_strbuf_append(&names, RN_STR(")"));
  }
  if (is_cause) {
    rn_status_free(status);
    status = rn_invalid_argument(
        "the signature '%.*s' of '%s' wants a value for %s; write --feed NAME=VALUE or --feed "
        "NAME=@FILE.npy",
        RN_STR_ARGS(job->model.signature), job->path, rn_strbuf_view(&names).data);
  }
  rn_strbuf_clear(&names);
  return status;
}

static rn_status_t write_file(const job_t* job, rn_str_t path, const rn_strbuf_t* bytes) {
  char* name = NULL;
  RN_RETURN_IF_ERROR(rn_str_dup(job->cli->allocator, path, &name));
  rn_status_t status = rn_fs_write(job->cli->env, name, rn_strbuf_view(bytes));
  status = rn_cli_prefix(rn_cli_at(status, name), "cannot write ");
  rn_free(job->cli->allocator, name, path.size + 1);
  return status;
}

// The file of a result: as --save names it, or in the folder --outdir.
static rn_status_t file_of(job_t* job, const fetch_t* fetch, rn_str_t* out) {
  const char* folder = job->cli->verb ? rn_cli_text(job->cli, "--outdir") : NULL;
  *out = fetch->file;
  if (fetch->file.size || !folder) return RN_OK;
  RN_RETURN_IF_ERROR(rn_cli_at(rn_fs_make_directories(job->cli->env, folder), folder));
  RN_RETURN_IF_ERROR(rn_arena_printf(&job->arena, out, "%s/%s.npy", folder, fetch->name));
  if (rn_cli_has(job->cli, "--overwrite") || !rn_fs_exists(job->cli->env, out->data)) return RN_OK;
  return rn_already_exists("'%s' is there already; --overwrite replaces it", out->data);
}

static rn_status_t print_result(job_t* job, size_t i) {
  const rn_tensor_t* value = &job->results[i];
  const fetch_t* fetch = &job->fetch_texts.items[i];
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

static rn_status_t write_trace(const job_t* job, const rn_step_stats_t* stats) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, job->cli->allocator);
  rn_cli_put_trace(stats, &buf);
  rn_status_t status = rn_strbuf_status(&buf);
  if (rn_ok(status)) status = write_file(job, rn_str(rn_cli_text(job->cli, "--trace")), &buf);
  rn_strbuf_clear(&buf);
  return status;
}

static rn_status_t run(job_t* job) {
  RN_RETURN_IF_ERROR(read_arguments(job));
  RN_RETURN_IF_ERROR(job->is_model ? open_model(job) : open_graph(job));
  RN_RETURN_IF_ERROR(resolve(job));
  RN_RETURN_IF_ERROR(run_inits(job));
  if (job->fetches.count + job->targets.count == 0) return RN_OK;
  rn_step_stats_t stats;
  rn_step_stats_init(&stats, job->cli->allocator, job->cli->env);
  bool is_traced = rn_cli_has(job->cli, "--trace");
  rn_status_t status = name_inputs(job, run_steps(job, is_traced ? &stats : NULL));
  for (size_t i = 0; rn_ok(status) && i < job->fetches.count; ++i) status = print_result(job, i);
  if (rn_ok(status) && is_traced) status = write_trace(job, &stats);
  rn_step_stats_clear(&stats);
  return status;
}

rn_status_t rn_cli_run(rn_cli_t* cli) {
  rn_allocator_t allocator = cli->allocator;
  job_t job = {.cli = cli, .path = rn_cli_word(cli, 0)};
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
        "that the graph wants, or the one written behind it: 7:int64",
        .repeats = true),
    RN_OPTION(TEXT, "--fetch", "NAME", "print this value", .repeats = true),
    RN_OPTION(TEXT, "--save", "NAME=FILE", "write this value to FILE.npy instead", .repeats = true),
    RN_OPTION(TEXT, "--init", "OP",
              "run this node once, in a step of its own, before anything else: the initialiser of "
              "variables, "
              "say",
              .repeats = true),
    RN_OPTION(TEXT, "--target", "OP", "run this node too, without fetching anything of it",
              .repeats = true),
    RN_OPTION(NUMBER, "--threads", "N", "work with N threads (default: one per processor)",
              .least = 1, .most = 1024),
    RN_OPTION(
        NUMBER, "--repeat", "N",
        "run the step N times and say on stderr how long one took: the mean, percentiles and the "
        "longest",
        .least = 1, .most = INT64_C(1000000000000)),
    RN_OPTION(NUMBER, "--timeout", "MS", "give up a step after so many milliseconds", .least = 1),
    RN_OPTION(FILE, "--trace", "FILE",
              "write what the (last) step did when, as JSON for chrome://tracing or Perfetto"),
    RN_OPTION(TEXT, "--signature", "NAME",
              "of a SavedModel; without it serving_default, or the only one"),
    RN_OPTION(TEXT, "--tags", "T,...", "of a SavedModel with several graphs; without it: serve"),
    RN_OPTION(TEXT, "--allow", "WHAT",
              "what a SavedModel may do beyond reading its own folder: read:FOLDER, write:FOLDER, "
              "network, "
              "all, with ';' between"),
    {0},
};

const rn_cli_command_t rn_cli_run_command = {
    .name = "run",
    .summary = "run a graph: feed values, fetch results",
    .about =
        "Runs a step of a GraphDef (.pb or .pbtxt), or of a SavedModel (a folder): feeds values, "
        "prints what is fetched as NumPy would. A NAME is a node's, with ':1' behind it for its "
        "second output; of a SavedModel it is an input's or output's in the signature too.",
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
