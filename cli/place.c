// runnel place: finds devices for the nodes of a step.
#include "cli/place.h"

#include <stdio.h>

#include "cli/json.h"
#include "place/auto/report.h"
#include "wire/encode.h"

// What a placement other than the client's must gain.
#define MARGIN 0.03

static rn_status_t take_fetches(cli_place_job_t* job) {
  rn_cli_run_t* run = &job->run;
  size_t at = 0;
  for (const char* name; (name = rn_cli_each(run->cli, "--fetch", &at));)
    RN_RETURN_IF_ERROR(
        rn_vec_push(&run->fetch_texts, run->cli->allocator, (rn_cli_run_fetch_t){.name = name}));
  if (run->fetch_texts.count || rn_cli_has(run->cli, "--target")) return RN_OK;
  return rn_cli_usage(run->cli, "name the step with --fetch or --target");
}

static rn_status_t read_costs(cli_place_job_t* job) {
  const rn_cli_t* cli = job->run.cli;
  size_t at = 0;
  for (const char* path; (path = rn_cli_each(cli, "--costs", &at));)
    RN_RETURN_IF_ERROR(rn_cli_at(rn_placement_add_file(job->automatic, cli->env, path), path));
  return RN_OK;
}

static rn_status_t open_graph(cli_place_job_t* job) {
  rn_cli_run_t* run = &job->run;
  rn_session_options_t options;
  rn_cli_place_session(job, &options);
  RN_RETURN_IF_ERROR(rn_cli_load(run->cli, run->path, &run->file));
  RN_RETURN_IF_ERROR(rn_cli_import(&run->file, &run->graph));
  RN_RETURN_IF_ERROR(
      rn_session_create(run->graph, &options, run->cli->env, run->cli->allocator, &run->session));
  RN_RETURN_IF_ERROR(rn_cli_run_resolve(run));
  job->signature = (rn_signature_t){.feeds = run->feeds.items,
                                    .feed_count = (int32_t)run->feeds.count,
                                    .fetches = run->fetches.items,
                                    .fetch_count = (int32_t)run->fetches.count,
                                    .targets = run->targets.items,
                                    .target_count = (int32_t)run->targets.count};
  return RN_OK;
}

// The graph of the step, with the shapes that are fed. Functions stay calls: their nodes are not in
// the graph that is written.
static rn_status_t make_step(cli_place_job_t* job, rn_ir_t** out) {
  rn_shape_t* shapes = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&job->arena, job->run.values.count + 1, &shapes));
  const rn_calls_options_t calls = {.keeps_calls = true, .lowering = RN_LOWER_NEVER};
  for (size_t i = 0; i < job->run.values.count; ++i)
    shapes[i] = rn_tensor_shape(&job->run.values.items[i]);
  RN_RETURN_IF_ERROR(rn_ir_create(job->run.graph, &job->signature, out));
  RN_RETURN_IF_ERROR(rn_ir_set_feed_shapes(*out, job->run.values.count ? shapes : NULL));
  RN_RETURN_IF_ERROR(rn_pass_inline_calls(*out, &calls));
  rn_auto_place_t* automatic = job->automatic;
  if (!automatic->traces.count) return RN_OK;
  return rn_costs_learn(automatic->costs, *out, automatic->traces.items, automatic->traces.count);
}

// --link LATENCY_US,MB_PER_S
static rn_status_t read_link(const cli_place_job_t* job, rn_fleet_link_t* out, bool* out_has) {
  const char* text = rn_cli_text(job->run.cli, "--link");
  rn_str_t rest = rn_str(text), latency = rn_str_split(&rest, ',');
  double us, mb;
  *out_has = text != NULL;
  if (!text) return RN_OK;
  if (!rn_str_to_f64(latency, &us) || !rn_str_to_f64(rest, &mb) || !(us >= 0) || !(mb > 0) ||
      us > 1e9)
    return rn_cli_usage(job->run.cli,
                        "--link %s: give microseconds and megabytes per second, as 100,1000", text);
  *out = (rn_fleet_link_t){.latency_ns = (int64_t)(us * 1000), .ns_per_byte = 1000 / mb};
  return RN_OK;
}

static rn_status_t search(cli_place_job_t* job, rn_ir_t* ir, rn_auto_result_t* out) {
  const rn_cli_t* cli = job->run.cli;
  rn_fleet_link_t link;
  bool has_link;
  RN_RETURN_IF_ERROR(read_link(job, &link, &has_link));
  if (has_link)  // for --save-costs
    RN_RETURN_IF_ERROR(rn_costs_set_link(job->automatic->costs, RN_STR("*"), RN_STR("*"),
                                         link.latency_ns, link.ns_per_byte));
  rn_place_options_t place = {.devices = job->devices,
                              .device_count = job->device_count,
                              .allow_soft_placement = true,
                              .is_lenient = true,
                              .env = cli->env};
  rn_fleet_options_t fleet = {.lanes = (int32_t)rn_cli_number(cli, "--threads", 1),
                              .is_apart = rn_cli_has(cli, "--apart"),
                              .speeds = job->speeds,
                              .memory = job->memory,
                              .between_tasks = has_link ? &link : NULL};
  rn_search_options_t options = {.margin = MARGIN, .budget = rn_cli_number(cli, "--budget", 0)};
  return rn_cli_at(rn_auto_search(ir, &place, job->automatic->costs, &fleet, job->cpus == 0,
                                  &options, &job->arena, out),
                   job->run.path);
}

// The name that is written: without the task if there is only one.
static rn_str_t written_name(const cli_place_job_t* job, int32_t device) {
  rn_str_t name = job->devices[device]->name, task = rn_fleet_task(name);
  if (!rn_str_starts_with(name, RN_STR("/job:localhost/"))) return name;
  return rn_str_n(name.data + task.size, name.size - task.size);
}

// Writes the devices into the GraphDef.
static rn_status_t set_devices(cli_place_job_t* job, const rn_ir_t* ir,
                               const rn_auto_result_t* result, rn_strbuf_t* out) {
  rn_map_t devices;
  rn_map_init(&devices, job->run.cli->allocator);
  rn_status_t status = RN_OK;
  for (int32_t n = 0; rn_ok(status) && n < result->step.work.node_count; ++n) {
    int32_t index = result->step.nodes[n];
    if (index < 0 || rn_ir_node(ir, index)->feed >= 0) continue;
    intptr_t device = rn_auto_device(result, n);
    status = rn_map_put(&devices, rn_ir_node(ir, index)->name, (void*)(device + 1));
  }
  rn_pb_GraphDef_t* def = job->run.file.def;
  for (uint32_t i = 0; rn_ok(status) && i < def->node.count; ++i) {
    intptr_t device = (intptr_t)rn_map_get(&devices, def->node.items[i].name) - 1;
    if (device >= 0) def->node.items[i].device = written_name(job, (int32_t)device);
  }
  rn_map_clear(&devices);
  return rn_ok(status) ? RN_PB_ENCODE(GraphDef, def, NULL, out) : status;
}

static rn_status_t write_file(const cli_place_job_t* job, const char* path, rn_str_t bytes) {
  return rn_cli_prefix(rn_cli_at(rn_fs_write(job->run.cli->env, path, bytes), path),
                       "cannot write ");
}

static rn_status_t write_costs(const cli_place_job_t* job) {
  const char* path = rn_cli_text(job->run.cli, "--save-costs");
  rn_strbuf_t text;
  if (!path) return RN_OK;
  rn_strbuf_init(&text, job->run.cli->allocator);
  rn_status_t status = rn_costs_write(job->automatic->costs, &text);
  if (rn_ok(status)) status = write_file(job, path, rn_strbuf_view(&text));
  rn_strbuf_clear(&text);
  return status;
}

static rn_status_t write_picture(const cli_place_job_t* job, const rn_ir_t* ir,
                                 const rn_auto_result_t* result) {
  const char* path = rn_cli_text(job->run.cli, "--timeline");
  rn_strbuf_t text;
  if (!path) return RN_OK;
  rn_strbuf_init(&text, job->run.cli->allocator);
  rn_status_t status = rn_picture_write(ir, result, &text);
  if (rn_ok(status)) status = write_file(job, path, rn_strbuf_view(&text));
  rn_strbuf_clear(&text);
  return status;
}

static rn_status_t print_json(const cli_place_job_t* job, const rn_auto_result_t* result) {
  const rn_search_result_t* s = &result->search;
  json_t *devices = json_array(), *root = NULL;
  for (int d = 0; d < job->device_count; ++d) {
    int nodes = 0;
    for (int32_t n = 0; n < result->step.work.node_count; ++n)
      nodes += rn_auto_device(result, n) == d;
    json_array_append_new(devices,
                          json_pack("{s:s%, s:i, s:I, s:I}", "name", job->devices[d]->name.data,
                                    job->devices[d]->name.size, "nodes", nodes, "busy_ns",
                                    (json_int_t)s->found.busy_ns[d], "memory_bytes",
                                    (json_int_t)s->found.high_bytes[d]));
  }
  root = json_pack("{s:i, s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:i, s:o}", "nodes",
                   (int)result->step.work.node_count, "before_ns", (json_int_t)s->start.step_ns,
                   "one_device_ns", (json_int_t)(s->single < 0 ? 0 : s->best_single.step_ns),
                   "found_ns", (json_int_t)s->found.step_ns, "method", s->method, "sent_bytes",
                   (json_int_t)s->found.sent_bytes, "over_bytes", (json_int_t)s->found.over_bytes,
                   "measured_before_ns", (json_int_t)job->measured_ns, "measured_found_ns",
                   (json_int_t)job->placed_ns, "forecasts", (int)s->tried, "devices", devices);
  return rn_cli_json_print(root);
}

static rn_status_t print_report(const cli_place_job_t* job, const rn_ir_t* ir,
                                const rn_auto_result_t* result) {
  const rn_search_result_t* s = &result->search;
  rn_strbuf_t text;
  if (rn_cli_has(job->run.cli, "--json")) return print_json(job, result);
  rn_strbuf_init(&text, job->run.cli->allocator);
  rn_status_t status = RN_OK;
  if (rn_cli_has(job->run.cli, "--report"))
    status = rn_report_write(ir, result, &text);
  else
    rn_strbuf_printf(&text, "a step: %.3f ms as it was, %.3f ms as placed by %s\n",
                     (double)s->start.step_ns / 1e6, (double)s->found.step_ns / 1e6, s->method);
  if (job->placed_ns)
    rn_strbuf_printf(&text, "measured: %.3f ms as it was, %.3f ms as placed\n",
                     (double)job->measured_ns / 1e6, (double)job->placed_ns / 1e6);
  else if (job->measured_ns)
    rn_strbuf_printf(&text, "measured: %.3f ms as it was\n", (double)job->measured_ns / 1e6);
  if (rn_ok(status)) status = rn_strbuf_status(&text);
  if (rn_ok(status)) fwrite(text.data, 1, text.size, stdout);
  rn_strbuf_clear(&text);
  return status;
}

// Measures the placed graph too, if this process can run it.
static rn_status_t compare(cli_place_job_t* job) {
  rn_graph_t* graph = NULL;
  if (!job->cpus || !rn_cli_has(job->run.cli, "--measure")) return RN_OK;
  RN_RETURN_IF_ERROR(rn_cli_import(&job->run.file, &graph));
  rn_status_t status = rn_cli_place_compare(job, graph);
  rn_graph_release(graph);
  return status;
}

static rn_status_t finish(cli_place_job_t* job, rn_ir_t* ir) {
  const rn_cli_t* cli = job->run.cli;
  rn_auto_result_t result;
  RN_RETURN_IF_ERROR(search(job, ir, &result));
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, cli->allocator);
  rn_status_t status = set_devices(job, ir, &result, &bytes);
  const char* out = rn_cli_text(cli, "--out");
  if (rn_ok(status) && out) status = rn_cli_write_graph(cli, out, rn_strbuf_view(&bytes), false);
  rn_strbuf_clear(&bytes);
  if (rn_ok(status)) status = compare(job);
  if (rn_ok(status)) status = write_picture(job, ir, &result);
  if (rn_ok(status)) status = write_costs(job);
  if (rn_ok(status)) status = print_report(job, ir, &result);
  return status;
}

static rn_status_t place(cli_place_job_t* job) {
  RN_RETURN_IF_ERROR(take_fetches(job));
  RN_RETURN_IF_ERROR(rn_cli_place_devices(job));
  RN_RETURN_IF_ERROR(rn_auto_place_create(job->run.cli->allocator, &job->automatic));
  RN_RETURN_IF_ERROR(read_costs(job));
  RN_RETURN_IF_ERROR(open_graph(job));
  RN_RETURN_IF_ERROR(rn_cli_place_measure(job));
  rn_ir_t* ir = NULL;
  rn_status_t status = make_step(job, &ir);
  if (rn_ok(status)) status = finish(job, ir);
  rn_ir_destroy(ir);
  return status;
}

static rn_status_t run_place(rn_cli_t* cli) {
  cli_place_job_t job = {.run = {.cli = cli, .path = rn_cli_word(cli, "GRAPH")}};
  rn_cli_run_t* run = &job.run;
  rn_arena_init(&job.arena, cli->allocator);
  rn_arena_init(&run->arena, cli->allocator);
  rn_arena_init(&run->file.arena, cli->allocator);
  rn_strbuf_init(&run->file.bytes, cli->allocator);
  rn_status_t status = place(&job);
  for (size_t i = 0; i < run->values.count; ++i) rn_tensor_clear(&run->values.items[i]);
  rn_session_destroy(run->session);
  rn_graph_release(run->graph);
  rn_cli_file_clear(&run->file);
  rn_vec_free(&run->feeds, cli->allocator);
  rn_vec_free(&run->values, cli->allocator);
  rn_vec_free(&run->fetch_texts, cli->allocator);
  rn_vec_free(&run->fetches, cli->allocator);
  rn_vec_free(&run->targets, cli->allocator);
  rn_vec_free(&run->inits, cli->allocator);
  rn_arena_clear(&run->arena);
  rn_auto_place_destroy(job.automatic);
  rn_arena_clear(&job.arena);
  return status;
}

static const rn_cli_option_t options[] = {
    RN_OPTION(TEXT, "--devices", "NAME,...",
              "the devices (default: CPU:0,CPU:1). A NAME is CPU:1 or "
              "/job:worker/task:0/device:CPU:0, may be followed by *SPEED, relative to where costs "
              "were measured, and by @MEMORY, as 512M or 2G"),
    RN_OPTION(TEXT, "--fetch", "NAME", "the step fetches this value", .repeats = true),
    RN_OPTION(TEXT, "--target", "OP", "the step runs this node", .repeats = true),
    RN_OPTION(TEXT, "--feed", "NAME=VALUE", "the step is fed this value, as for runnel run",
              .repeats = true),
    RN_OPTION(TEXT, "--init", "OP", "run this node once before measuring", .repeats = true),
    RN_OPTION(FILE, "--costs", "FILE",
              "costs: a file of --save-costs, or the RunMetadata of a traced step",
              .repeats = true),
    RN_OPTION(NUMBER, "--measure", "N",
              "run the step N times on this machine, to learn its costs, and then as placed",
              .least = 1, .most = 64),
    RN_OPTION(FILE, "--save-costs", "FILE", "write the costs, for other graphs and machines"),
    RN_OPTION(FILE, "--out", "FILE", "write the graph with the devices that were found"),
    RN_OPTION(FILE, "--timeline", "FILE", "draw the step as placed: an SVG picture"),
    RN_OPTION(FLAG, "--report", NULL,
              "print what each device does, what moved and why, and how costs are known"),
    RN_CLI_JSON_OPTION(NULL),
    RN_OPTION(NUMBER, "--threads", "N",
              "nodes that run at a time on the CPUs of each task (default: 1)", .least = 1,
              .most = 1024),
    RN_OPTION(FLAG, "--apart", NULL, "each device has N threads of its own"),
    RN_OPTION(TEXT, "--link", "US,MB",
              "latency in microseconds and megabytes per second between tasks"),
    RN_OPTION(NUMBER, "--budget", "N", "nodes that forecasts may visit (default: 6000000)",
              .least = 1, .most = INT64_C(1000000000000)),
    {0},
};

const rn_cli_command_t rn_cli_place_command = {
    .name = "place",
    .summary = "find devices for the nodes of a graph",
    .about =
        "Finds a placement of a step on several devices by what its nodes cost, forecasts how long "
        "a step takes, and writes the graph with the devices. Devices that the graph names, and "
        "nodes that must share a device, are kept to. A placement is taken only if it is at least "
        "3 % faster than the present one.",
    .words = "GRAPH",
    .word_kind = RN_CLI_FILE,
    .run = run_place,
    .options = options,
    .examples =
        "runnel place examples/models/line.pbtxt --feed 'x=[[1,2]]' --fetch y --measure 5 "
        "--report\n"
        "runnel place examples/models/counter.pbtxt --fetch value --devices CPU:0,CPU:1@1G "
        "--out p.pb",
};
