// runnel graph --stats: the graph in figures.
#include <stdio.h>

#include "base/map.h"
#include "base/vec.h"
#include "cli/graph_view.h"
#include "framework/kernel.h"

#define SHOWN_ENDS 20  // inputs or outputs listed before the rest is only counted

typedef struct tally_t {
  rn_str_t name;
  int64_t count;
  bool is_unknown;    // an op that this library does not have
  bool lacks_kernel;  // some node of it has no CPU kernel
  bool is_function;
} tally_t;

typedef struct tallies_t {
  const rn_cli_t* cli;
  rn_map_t numbers;  // name -> place in |items| + 1
  RN_VEC(tally_t) items;
} tallies_t;

static rn_status_t count_name(tallies_t* tallies, rn_str_t name, tally_t** out) {
  size_t number = (size_t)(intptr_t)rn_map_get(&tallies->numbers, name);
  if (number == 0) {
    RN_RETURN_IF_ERROR(
        rn_vec_push(&tallies->items, tallies->cli->allocator, (tally_t){.name = name}));
    number = tallies->items.count;
    RN_RETURN_IF_ERROR(rn_map_put(&tallies->numbers, name, (void*)(intptr_t)number));
  }
  *out = &tallies->items.items[number - 1];
  (*out)->count++;
  return RN_OK;
}

static int by_count(const void* a, const void* b) {
  const tally_t *x = a, *y = b;
  if (x->count != y->count) return x->count < y->count ? 1 : -1;
  return rn_str_compare(x->name, y->name);
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

static rn_status_t count_ops(const rn_view_t* view, tallies_t* tallies) {
  for (int32_t n = 0; n < view->count; ++n) {
    const rn_view_node_t* node = &view->nodes[n];
    tally_t* tally;
    RN_RETURN_IF_ERROR(count_name(tallies, node->def->op, &tally));
    tally->is_unknown = !node->op && !node->is_function;
    tally->is_function = node->is_function;
    tally->lacks_kernel |= node->op && lacks_kernel(node);
  }
  if (tallies->items.count)
    qsort(tallies->items.items, tallies->items.count, sizeof *tallies->items.items, by_count);
  return RN_OK;
}

// The elements that a variable of the graph holds; -1: its shape does not tell.
static int64_t variable_size(const rn_view_node_t* node) {
  int64_t count = -1;
  if (!node->built || node->built->output_count < 1) return -1;
  const rn_output_t* output = &node->built->outputs[0];
  bool is_handle = rn_dtype_base(output->dtype) == RN_RESOURCE;
  if (is_handle && !output->handle.is_set) return -1;
  return rn_shape_count(is_handle ? output->handle.shape : output->shape, &count) ? count : -1;
}

static void print_parameters(const rn_view_t* view) {
  int64_t variables = 0, elements = 0, unsized = 0, constants = 0, constant_elements = 0;
  for (int32_t n = 0; n < view->count; ++n) {
    const rn_view_node_t* node = &view->nodes[n];
    uint8_t role = node->op ? node->op->role : RN_ROLE_PLAIN;
    // Queues and tables hold state too, but have no shape.
    if (role == RN_ROLE_VARIABLE && rn_op_attr_index(node->op, RN_STR("shape")) >= 0) {
      int64_t size = variable_size(node);
      variables++;
      if (size < 0) unsized++;
      if (size > 0) elements += size;
    } else if (role == RN_ROLE_CONSTANT) {
      const rn_tensor_t* value = rn_view_constant(node);
      constants++;
      if (value) constant_elements += value->count;
    }
  }
  rn_cli_digits_t a, b;
  if (!view->graph) {
    printf("parameters  %lld variables, %lld constants\n", (long long)variables,
           (long long)constants);
    return;
  }
  printf("parameters  %s in %lld variables", rn_cli_digits(elements, &a), (long long)variables);
  if (unsized) printf(" (%lld of unknown size)", (long long)unsized);
  printf("; %s in %lld constants\n", rn_cli_digits(constant_elements, &b), (long long)constants);
}

static void print_end(const rn_cli_t* cli, const rn_view_node_t* node, int32_t shown,
                      const char* title) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, cli->allocator);
  rn_view_describe(node, 0, &text);
  printf("%-11s %.*s  %s\n", shown == 0 ? title : "", RN_STR_ARGS(node->def->name),
         text.size ? text.data : "");
  rn_strbuf_clear(&text);
}

static bool is_input(const rn_view_node_t* node) {
  return node->op && node->op->role == RN_ROLE_PLACEHOLDER;
}

// Values that nothing reads: what one would fetch.
static bool is_output(const rn_view_node_t* node) {
  bool has_outputs = node->built ? node->built->output_count > 0
                     : node->op  ? node->op->output_count > 0
                                 : true;
  return has_outputs && node->consumers == 0 && !is_input(node) &&
         !(node->op && node->op->role == RN_ROLE_CONSTANT);
}

static void print_ends(const rn_cli_t* cli, const rn_view_t* view, const char* title,
                       bool (*is_end)(const rn_view_node_t* node)) {
  int32_t count = 0;
  for (int32_t n = 0; n < view->count; ++n) {
    if (!is_end(&view->nodes[n])) continue;
    if (count < SHOWN_ENDS) print_end(cli, &view->nodes[n], count, title);
    count++;
  }
  if (count == 0) printf("%-11s none\n", title);
  if (count > SHOWN_ENDS) printf("%-11s and %d more\n", "", count - SHOWN_ENDS);
}

static rn_status_t print_devices(const rn_cli_t* cli, const rn_view_t* view) {
  tallies_t tallies = {.cli = cli};
  rn_map_init(&tallies.numbers, cli->allocator);
  rn_status_t status = RN_OK;
  for (int32_t n = 0; rn_ok(status) && n < view->count; ++n) {
    tally_t* tally;
    if (view->nodes[n].def->device.size)
      status = count_name(&tallies, view->nodes[n].def->device, &tally);
  }
  if (tallies.items.count)
    qsort(tallies.items.items, tallies.items.count, sizeof *tallies.items.items, by_count);
  for (size_t i = 0; i < tallies.items.count; ++i)
    printf("%-11s %.*s  %lld node%s\n", i ? "" : "devices",
           RN_STR_ARGS(tallies.items.items[i].name), (long long)tallies.items.items[i].count,
           tallies.items.items[i].count == 1 ? "" : "s");
  rn_map_clear(&tallies.numbers);
  rn_vec_free(&tallies.items, cli->allocator);
  return status;
}

static void print_lacks(const tallies_t* tallies, bool unknown, const char* title) {
  int shown = 0;
  for (size_t i = 0; i < tallies->items.count; ++i) {
    const tally_t* tally = &tallies->items.items[i];
    if (unknown ? !tally->is_unknown : !tally->lacks_kernel) continue;
    printf("%-11s %.*s  %lld node%s\n", shown++ ? "" : title, RN_STR_ARGS(tally->name),
           (long long)tally->count, tally->count == 1 ? "" : "s");
  }
}

static void print_ops(const tallies_t* tallies) {
  for (size_t i = 0; i < tallies->items.count; ++i) {
    const tally_t* tally = &tallies->items.items[i];
    printf("%-11s %6lld  %.*s%s\n", i ? "" : "ops", (long long)tally->count,
           RN_STR_ARGS(tally->name),
           tally->is_unknown    ? "  (unknown)"
           : tally->is_function ? "  (function of the graph)"
                                : "");
  }
}

static void print_head(const rn_view_t* view) {
  const rn_pb_GraphDef_t* def = view->file->def;
  rn_cli_digits_t a, b, c, d;
  int64_t data = 0, control = 0, dangling = 0;
  for (int32_t n = 0; n < view->count; ++n) {
    for (int32_t i = 0; i < view->nodes[n].input_count; ++i) {
      const rn_view_edge_t* edge = &view->nodes[n].inputs[i];
      *(edge->node < 0 ? &dangling : edge->output < 0 ? &control : &data) += 1;
    }
  }
  printf("file        %s, %s bytes as %s", view->file->path,
         rn_cli_digits((int64_t)view->file->bytes.size, &a),
         view->file->is_text ? "text" : "binary");
  if (def->versions) printf(", GraphDef version %d", def->versions->producer);
  printf("\nnodes       %s\nedges       %s data, %s control\n", rn_cli_digits(view->count, &b),
         rn_cli_digits(data, &c), rn_cli_digits(control, &d));
  if (dangling)
    printf("%-11s %lld edges come from nodes that do not exist\n", "", (long long)dangling);
  if (def->library && def->library->function.count)
    printf("functions   %u\n", def->library->function.count);
}

rn_status_t rn_view_stats(const rn_cli_t* cli, const rn_view_t* view) {
  print_head(view);
  print_parameters(view);
  print_ends(cli, view, "inputs", is_input);
  print_ends(cli, view, "outputs", is_output);
  RN_RETURN_IF_ERROR(print_devices(cli, view));
  tallies_t tallies = {.cli = cli};
  rn_map_init(&tallies.numbers, cli->allocator);
  rn_status_t status = count_ops(view, &tallies);
  if (rn_ok(status)) {
    print_ops(&tallies);
    print_lacks(&tallies, true, "unknown ops");
    print_lacks(&tallies, false, "no kernel");
    if (!view->graph) printf("import      fails: %s\n", rn_status_message(view->why));
  }
  rn_map_clear(&tallies.numbers);
  rn_vec_free(&tallies.items, cli->allocator);
  return status;
}
