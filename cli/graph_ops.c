// runnel graph --ops: the ops that a graph and its functions use, one per line.
#include <stdio.h>

#include "base/vec.h"
#include "cli/graph_view.h"

typedef struct graph_names_t {
  rn_map_t seen;
  RN_VEC(rn_str_t) names;
  const rn_cli_t* cli;
} graph_names_t;

static int by_name(const void* a, const void* b) {
  return rn_str_compare(*(const rn_str_t*)a, *(const rn_str_t*)b);
}

static rn_status_t note(graph_names_t* ops, rn_str_t op) {
  if (rn_map_get(&ops->seen, op)) return RN_OK;
  RN_RETURN_IF_ERROR(rn_map_put(&ops->seen, op, ops));
  return rn_vec_push(&ops->names, ops->cli->allocator, op);
}

// A node whose op is a function of the graph calls it: that is no op.
static rn_status_t collect(graph_names_t* ops, const rn_pb_GraphDef_t* def) {
  const rn_pb_FunctionDefLibrary_t* library = def->library;
  const uint32_t functions = library ? library->function.count : 0;
  for (uint32_t f = 0; f < functions; ++f) {
    const rn_pb_FunctionDef_t* function = &library->function.items[f];
    if (function->signature)
      RN_RETURN_IF_ERROR(rn_map_put(&ops->seen, function->signature->name, ops));
  }
  for (uint32_t n = 0; n < def->node.count; ++n)
    RN_RETURN_IF_ERROR(note(ops, def->node.items[n].op));
  for (uint32_t f = 0; f < functions; ++f)
    for (uint32_t n = 0; n < library->function.items[f].node_def.count; ++n)
      RN_RETURN_IF_ERROR(note(ops, library->function.items[f].node_def.items[n].op));
  return RN_OK;
}

rn_status_t rn_cli_print_ops(const rn_cli_t* cli, const rn_cli_file_t* file) {
  graph_names_t ops = {.cli = cli};
  rn_map_init(&ops.seen, cli->allocator);
  rn_status_t status = collect(&ops, file->def);
  if (rn_ok(status) && ops.names.count)
    qsort(ops.names.items, ops.names.count, sizeof *ops.names.items, by_name);
  for (size_t i = 0; rn_ok(status) && i < ops.names.count; ++i)
    printf("%.*s\n", RN_STR_ARGS(ops.names.items[i]));
  rn_vec_free(&ops.names, cli->allocator);
  rn_map_clear(&ops.seen);
  return status;
}
