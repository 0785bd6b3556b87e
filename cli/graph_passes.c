// runnel graph --passes: what the planner does to a graph, pass by pass.
#include <stdio.h>

#include "cli/color.h"
#include "cli/graph_stats.h"
#include "cli/json.h"
#include "cli/precision.h"
#include "session/passes.h"

typedef struct pass_report_t {
  const rn_cli_t* cli;
  json_t* json;  // an array to fill instead of printing; NULL: prints
  int64_t total_ns;
} pass_report_t;

static void print_pass(void* self, const rn_pass_report_t* done) {
  pass_report_t* report = self;
  report->total_ns += done->nanoseconds;
  if (report->json) {
    json_array_append_new(
        report->json,
        json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:I}", "name", done->pass->name, "summary",
                  done->pass->summary, "nodes", done->nodes, "removed", done->removed, "added",
                  done->added, "changed", done->changed, "ns", (json_int_t)done->nanoseconds));
    return;
  }
  bool did_something = done->removed || done->added || done->changed;
  printf("%s%-22s%s %7d %8d %6d %8d %10.3f  %s\n",
         did_something ? rn_cli_color(report->cli, stdout, RN_COLOR_BOLD) : "", done->pass->name,
         did_something ? rn_cli_color(report->cli, stdout, RN_COLOR_OFF) : "", done->nodes,
         done->removed, done->added, done->changed, (double)done->nanoseconds / 1e6,
         done->pass->summary);
}

// Placeholders are fed, and everything that nothing reads is fetched or run: what a client would
// ask for.
static rn_status_t find_ends(const rn_view_t* view, rn_arena_t* arena, rn_signature_t* out) {
  rn_edge_t *feeds = NULL, *fetches = NULL;
  rn_node_t** targets = NULL;
  size_t count = (size_t)view->count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &feeds));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &fetches));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &targets));
  *out = (rn_signature_t){.feeds = feeds, .fetches = fetches, .targets = targets};
  for (size_t n = 0; n < count; ++n) {
    const rn_view_node_t* node = &view->nodes[n];
    if (rn_view_is_input(node))
      feeds[out->feed_count++] = (rn_edge_t){node->built, 0};
    else if (rn_view_is_output(node))
      fetches[out->fetch_count++] = (rn_edge_t){node->built, 0};
    else if (node->built->output_count == 0)
      targets[out->target_count++] = node->built;
  }
  return RN_OK;
}

static rn_status_t plan(const rn_cli_t* cli, const rn_view_t* view, pass_report_t* report) {
  rn_pass_watch_t watch = {.self = report, .report = print_pass};
  rn_session_options_t options;
  rn_session_options_init(&options);
  options.watch = &watch;
  options.allow_soft_placement = true;
  RN_RETURN_IF_ERROR(rn_cli_precision(cli, &options.precision));
  rn_session_t* session = NULL;
  rn_arena_t arena;
  rn_signature_t signature = {0};
  rn_arena_init(&arena, cli->allocator);
  rn_status_t status = find_ends(view, &arena, &signature);
  if (rn_ok(status))
    status = rn_session_create(view->graph, &options, cli->env, cli->allocator, &session);
  if (rn_ok(status)) status = rn_session_plan(session, &signature, NULL);
  rn_session_destroy(session);
  rn_arena_clear(&arena);
  return status;
}

rn_status_t rn_view_passes(const rn_cli_t* cli, const rn_view_t* view) {
  if (!view->graph)
    return rn_status_annotate(rn_status_copy(view->why), " (so there is nothing to plan)");
  pass_report_t report = {.cli = cli};
  if (rn_cli_has(cli, "--json")) {
    report.json = json_array();
    rn_status_t status = plan(cli, view, &report);
    if (rn_ok(status)) return rn_cli_json_print(report.json);
    json_decref(report.json);
    return status;
  }
  printf("%-22s %7s %8s %6s %8s %10s\n", "pass", "nodes", "removed", "added", "changed", "ms");
  RN_RETURN_IF_ERROR(plan(cli, view, &report));
  printf("%-22s %7s %8s %6s %8s %10.3f\n", "together", "", "", "", "",
         (double)report.total_ns / 1e6);
  return RN_OK;
}
