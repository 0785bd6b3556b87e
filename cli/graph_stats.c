// runnel graph --stats: the graph in figures.
#include "cli/graph_stats.h"

#include "base/vec.h"
#include "cli/color.h"
#include "framework/kernel.h"

#define SHOWN_ENDS 20  // inputs or outputs listed before the rest is only counted

static rn_status_t count_name(rn_tallies_t* tallies, rn_str_t name, rn_tally_t** out) {
  size_t number = (size_t)(intptr_t)rn_map_get(&tallies->numbers, name);
  if (number == 0) {
    RN_RETURN_IF_ERROR(
        rn_vec_push(&tallies->items, tallies->allocator, (rn_tally_t){.name = name}));
    number = tallies->items.count;
    RN_RETURN_IF_ERROR(rn_map_put(&tallies->numbers, name, (void*)(intptr_t)number));
  }
  *out = &tallies->items.items[number - 1];
  (*out)->count++;
  return RN_OK;
}

static int by_count(const void* a, const void* b) {
  const rn_tally_t *x = a, *y = b;
  if (x->count != y->count) return x->count < y->count ? 1 : -1;
  return rn_str_compare(x->name, y->name);
}

static void sort(rn_tallies_t* tallies) {
  if (tallies->items.count)
    qsort(tallies->items.items, tallies->items.count, sizeof *tallies->items.items, by_count);
}

static void tallies_clear(rn_tallies_t* tallies) {
  rn_map_clear(&tallies->numbers);
  rn_vec_free(&tallies->items, tallies->allocator);
}

static bool lacks_kernel(const rn_view_node_t* node) {
  if (!node->built) return false;
  uint8_t role = node->op ? node->op->role : RN_ROLE_PLAIN;
  bool is_control_flow = role >= RN_ROLE_SWITCH && role <= RN_ROLE_CONTROL_TRIGGER;
  if (is_control_flow || role == RN_ROLE_NO_OP || role == RN_ROLE_CONSTANT ||
      role == RN_ROLE_PLACEHOLDER)
    return false;
  return !rn_kernel_find(node->built->op, node->built->attrs, NULL, "CPU");
}

// The number of elements of a variable; -1 if its shape is unknown.
static int64_t variable_size(const rn_view_node_t* node) {
  int64_t count = -1;
  if (!node->built || node->built->output_count < 1) return -1;
  const rn_output_t* output = &node->built->outputs[0];
  bool is_handle = rn_dtype_base(output->dtype) == RN_RESOURCE;
  if (is_handle && !output->handle.is_set) return -1;
  return rn_shape_count(is_handle ? output->handle.shape : output->shape, &count) ? count : -1;
}

static void count_edges(const rn_view_node_t* node, rn_figures_t* out) {
  for (int32_t i = 0; i < node->input_count; ++i) {
    const rn_view_edge_t* edge = &node->inputs[i];
    *(edge->node < 0 ? &out->dangling : edge->output < 0 ? &out->control : &out->data) += 1;
  }
}

static void count_parameters(const rn_view_node_t* node, rn_figures_t* out) {
  uint8_t role = node->op ? node->op->role : RN_ROLE_PLAIN;
  // Queues and tables hold state too, but have no shape.
  if (role == RN_ROLE_VARIABLE && rn_op_attr_index(node->op, RN_STR("shape")) >= 0) {
    int64_t size = variable_size(node);
    out->variables++;
    if (size < 0) out->unsized++;
    if (size > 0) out->elements += size;
  } else if (role == RN_ROLE_CONSTANT) {
    const rn_tensor_t* value = rn_view_constant(node);
    out->constants++;
    if (value) out->constant_elements += value->count;
  }
}

rn_status_t rn_figures_create(const rn_cli_t* cli, const rn_view_t* view, rn_figures_t* out) {
  *out = (rn_figures_t){.ops = {.allocator = cli->allocator},
                        .devices = {.allocator = cli->allocator}};
  rn_map_init(&out->ops.numbers, cli->allocator);
  rn_map_init(&out->devices.numbers, cli->allocator);
  for (int32_t n = 0; n < view->count; ++n) {
    const rn_view_node_t* node = &view->nodes[n];
    rn_tally_t* tally;
    RN_RETURN_IF_ERROR(count_name(&out->ops, node->def->op, &tally));
    tally->is_unknown = !node->op && !node->is_function;
    tally->is_function = node->is_function;
    tally->lacks_kernel |= node->op && lacks_kernel(node);
    if (node->def->device.size)
      RN_RETURN_IF_ERROR(count_name(&out->devices, node->def->device, &tally));
    count_edges(node, out);
    count_parameters(node, out);
  }
  sort(&out->ops);
  sort(&out->devices);
  return RN_OK;
}

void rn_figures_clear(rn_figures_t* figures) {
  tallies_clear(&figures->ops);
  tallies_clear(&figures->devices);
}

bool rn_view_is_input(const rn_view_node_t* node) {
  return node->op && node->op->role == RN_ROLE_PLACEHOLDER;
}

bool rn_view_is_output(const rn_view_node_t* node) {
  bool has_outputs = node->built ? node->built->output_count > 0
                     : node->op  ? node->op->output_count > 0
                                 : true;
  return has_outputs && node->consumers == 0 && !rn_view_is_input(node) &&
         !(node->op && node->op->role == RN_ROLE_CONSTANT);
}

// The left column: |title|, or blank in the rows below it.
static void print_title(const rn_cli_t* cli, const char* title, rn_cli_color_t color) {
  printf("%s%-11s%s ", rn_cli_color(cli, stdout, color), title,
         rn_cli_color(cli, stdout, RN_COLOR_OFF));
}

static void print_head(const rn_cli_t* cli, const rn_view_t* view, const rn_figures_t* figures) {
  const rn_pb_GraphDef_t* def = view->file->def;
  rn_cli_digits_t a, b, c, d;
  print_title(cli, "file", RN_COLOR_BOLD);
  printf("%s, %s bytes as %s", view->file->path, rn_cli_digits((int64_t)view->file->bytes.size, &a),
         view->file->is_text ? "text" : "binary");
  if (def->versions) printf(", GraphDef version %d", def->versions->producer);
  putchar('\n');
  print_title(cli, "nodes", RN_COLOR_BOLD);
  printf("%s\n", rn_cli_digits(view->count, &b));
  print_title(cli, "edges", RN_COLOR_BOLD);
  printf("%s data, %s control\n", rn_cli_digits(figures->data, &c),
         rn_cli_digits(figures->control, &d));
  if (figures->dangling)
    printf("%-11s %lld edges come from nodes that do not exist\n", "",
           (long long)figures->dangling);
  if (!def->library || !def->library->function.count) return;
  print_title(cli, "functions", RN_COLOR_BOLD);
  printf("%u\n", def->library->function.count);
}

static void print_parameters(const rn_cli_t* cli, const rn_view_t* view, const rn_figures_t* f) {
  rn_cli_digits_t a, b;
  print_title(cli, "parameters", RN_COLOR_BOLD);
  if (!view->graph) {
    printf("%lld variables, %lld constants\n", (long long)f->variables, (long long)f->constants);
    return;
  }
  printf("%s in %lld variables", rn_cli_digits(f->elements, &a), (long long)f->variables);
  if (f->unsized) printf(" (%lld of unknown size)", (long long)f->unsized);
  printf("; %s in %lld constants\n", rn_cli_digits(f->constant_elements, &b),
         (long long)f->constants);
}

static void print_ends(const rn_cli_t* cli, const rn_view_t* view, const char* title,
                       bool (*is_end)(const rn_view_node_t* node)) {
  int32_t count = 0;
  for (int32_t n = 0; n < view->count; ++n) {
    if (!is_end(&view->nodes[n]) || count++ >= SHOWN_ENDS) continue;
    rn_strbuf_t text;
    rn_strbuf_init(&text, cli->allocator);
    rn_view_describe(&view->nodes[n], 0, &text);
    print_title(cli, count == 1 ? title : "", RN_COLOR_BOLD);
    printf("%.*s  %s\n", RN_STR_ARGS(view->nodes[n].def->name), text.size ? text.data : "");
    rn_strbuf_clear(&text);
  }
  if (count == 0) {
    print_title(cli, title, RN_COLOR_BOLD);
    printf("none\n");
  }
  if (count > SHOWN_ENDS) printf("%-11s and %d more\n", "", count - SHOWN_ENDS);
}

static void print_counts(const rn_cli_t* cli, const rn_tallies_t* tallies, const char* title,
                         rn_cli_color_t color, bool (*is_shown)(const rn_tally_t* tally)) {
  int shown = 0;
  for (size_t i = 0; i < tallies->items.count; ++i) {
    const rn_tally_t* tally = &tallies->items.items[i];
    if (is_shown && !is_shown(tally)) continue;
    print_title(cli, shown++ ? "" : title, color);
    printf("%.*s  %lld node%s\n", RN_STR_ARGS(tally->name), (long long)tally->count,
           tally->count == 1 ? "" : "s");
  }
}

static void print_ops(const rn_cli_t* cli, const rn_tallies_t* tallies) {
  for (size_t i = 0; i < tallies->items.count; ++i) {
    const rn_tally_t* tally = &tallies->items.items[i];
    print_title(cli, i ? "" : "ops", RN_COLOR_BOLD);
    printf("%6lld  %.*s%s\n", (long long)tally->count, RN_STR_ARGS(tally->name),
           tally->is_unknown    ? "  (unknown)"
           : tally->is_function ? "  (function of the graph)"
                                : "");
  }
}

static bool is_unknown(const rn_tally_t* tally) { return tally->is_unknown; }
static bool has_no_kernel(const rn_tally_t* tally) { return tally->lacks_kernel; }

static void print_text(const rn_cli_t* cli, const rn_view_t* view, const rn_figures_t* figures) {
  print_head(cli, view, figures);
  print_parameters(cli, view, figures);
  print_ends(cli, view, "inputs", rn_view_is_input);
  print_ends(cli, view, "outputs", rn_view_is_output);
  print_counts(cli, &figures->devices, "devices", RN_COLOR_BOLD, NULL);
  print_ops(cli, &figures->ops);
  print_counts(cli, &figures->ops, "unknown ops", RN_COLOR_RED, is_unknown);
  print_counts(cli, &figures->ops, "no kernel", RN_COLOR_RED, has_no_kernel);
  if (view->graph) return;
  print_title(cli, "import", RN_COLOR_RED);
  printf("fails: %s\n", rn_status_message(view->why));
}

rn_status_t rn_view_stats(const rn_cli_t* cli, const rn_view_t* view) {
  rn_figures_t figures;
  rn_status_t status = rn_figures_create(cli, view, &figures);
  if (rn_ok(status) && rn_cli_has(cli, "--json"))
    status = rn_figures_print_json(view, &figures);
  else if (rn_ok(status))
    print_text(cli, view, &figures);
  rn_figures_clear(&figures);
  return status;
}
