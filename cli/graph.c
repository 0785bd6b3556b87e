// runnel graph: shows the contents of a GraphDef.
#include <stdio.h>

#include "cli/graph_fold.h"
#include "cli/precision.h"
#include "proto/attr_value.pb.h"
#include "wire/text.h"

typedef enum graph_mode_t { STATS, OPS, TEXT, DOT, PASSES } graph_mode_t;

// "[2,?,3]" or "?" as a message in |arena|.
static rn_status_t parse_shape(rn_str_t text, rn_arena_t* arena, rn_pb_TensorShapeProto_t* out) {
  *out = (rn_pb_TensorShapeProto_t){0};
  out->unknown_rank = rn_str_is(text, "?");
  if (out->unknown_rank) return RN_OK;
  if (text.size < 2 || text.data[0] != '[' || text.data[text.size - 1] != ']')
    return rn_invalid_argument("'%.*s' is not a shape; write [2,?,3]", RN_STR_ARGS(text));
  rn_str_t rest = rn_str_trim(rn_str_n(text.data + 1, text.size - 2));
  size_t count = rest.size ? 1 : 0;
  for (size_t i = 0; i < rest.size; ++i) count += rest.data[i] == ',';
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &out->dim.items));
  out->dim.count = (uint32_t)count;
  for (size_t i = 0; i < count; ++i) {
    rn_str_t part = rn_str_trim(rn_str_split(&rest, ','));
    int64_t* size = &out->dim.items[i].size;
    if (rn_str_is(part, "?") || rn_str_is(part, "-1"))
      *size = -1;
    else if (!rn_str_to_i64(part, size) || *size < 0)
      return rn_invalid_argument("'%.*s' is not a shape; write [2,?,3]", RN_STR_ARGS(text));
  }
  return RN_OK;
}

// Gives the placeholder |name| the shape |text|, in the message.
static rn_status_t set_input(rn_cli_file_t* file, rn_str_t name, rn_str_t text) {
  rn_pb_NodeDef_t* node = NULL;
  for (uint32_t n = 0; n < file->def->node.count && !node; ++n)
    if (rn_str_eq(file->def->node.items[n].name, name)) node = &file->def->node.items[n];
  if (!node)
    return rn_not_found("'%s': --input %.*s: the graph has no such node", file->path,
                        RN_STR_ARGS(name));
  const rn_op_def_t* op = rn_op_find(node->op);
  if (!op || op->role != RN_ROLE_PLACEHOLDER || rn_op_attr_index(op, RN_STR("shape")) < 0)
    return rn_invalid_argument("'%s': --input %.*s: the node is a %.*s, not a placeholder",
                               file->path, RN_STR_ARGS(name), RN_STR_ARGS(node->op));
  rn_pb_AttrValue_t* value = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&file->arena, &value));
  value->value_case = rn_pb_AttrValue_shape_field;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&file->arena, &value->shape));
  RN_RETURN_IF_ERROR(rn_cli_prefix(parse_shape(text, &file->arena, value->shape),
                                   "--input %.*s: ", RN_STR_ARGS(name)));
  // The last of two entries wins, so appending replaces.
  uint32_t count = node->attr.count;
  rn_pb_NodeDef_AttrEntry_t* items = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&file->arena, (size_t)count + 1, &items));
  if (count) memcpy(items, node->attr.items, count * sizeof *items);
  items[count] = (rn_pb_NodeDef_AttrEntry_t){.key = RN_STR("shape"), .value = value};
  node->attr.items = items;
  node->attr.count = node->attr.capacity = count + 1;
  return RN_OK;
}

static rn_status_t print_text(const rn_cli_t* cli, const rn_cli_file_t* file) {
  rn_strbuf_t out;
  rn_strbuf_init(&out, cli->allocator);
  rn_status_t status = rn_pb_print(&rn_pb_GraphDef_desc, file->def, &out);
  if (rn_ok(status)) fwrite(rn_strbuf_view(&out).data, 1, out.size, stdout);
  rn_strbuf_clear(&out);
  return rn_cli_at(status, file->path);
}

static rn_status_t show(const rn_cli_t* cli, rn_cli_file_t* file, graph_mode_t mode, int depth) {
  if (mode == TEXT) return print_text(cli, file);
  if (mode == OPS) return rn_cli_print_ops(cli, file);
  rn_view_t view;
  rn_status_t status = rn_view_create(cli, file, &view);
  if (rn_ok(status))
    status = mode == DOT      ? rn_view_dot(cli, &view, depth)
             : mode == PASSES ? rn_view_passes(cli, &view)
                              : rn_view_stats(cli, &view);
  rn_view_clear(&view);
  return status;
}

static rn_status_t set_inputs(const rn_cli_t* cli, rn_cli_file_t* file) {
  size_t at = 0;
  for (const char* value; (value = rn_cli_each(cli, "--input", &at));) {
    rn_str_t name, shape;
    RN_RETURN_IF_ERROR(rn_cli_split(cli, "--input", rn_str(value), &name, &shape));
    RN_RETURN_IF_ERROR(set_input(file, name, shape));
  }
  return RN_OK;
}

static rn_status_t graph(rn_cli_t* cli) {
  const char* path = rn_cli_word(cli, "FILE");
  bool is_text = rn_cli_has(cli, "--text"), is_dot = rn_cli_has(cli, "--dot");
  bool is_passes = rn_cli_has(cli, "--passes"), is_ops = rn_cli_has(cli, "--ops");
  if (rn_cli_has(cli, "--stats") + is_ops + is_text + is_dot + is_passes > 1)
    return rn_cli_usage(cli, "give only one of --stats, --ops, --passes, --text and --dot");
  if (rn_cli_has(cli, "--json") && (is_ops || is_text || is_dot))
    return rn_cli_usage(cli, "--json goes with --stats and --passes, not with text or drawings");
  graph_mode_t mode = is_ops ? OPS : is_text ? TEXT : is_dot ? DOT : is_passes ? PASSES : STATS;
  int depth = (int)rn_cli_number(cli, "--depth", RN_FOLD_AUTOMATIC);
  rn_cli_file_t file;
  rn_status_t status = rn_cli_load(cli, path, &file);
  if (rn_ok(status)) status = set_inputs(cli, &file);
  if (rn_ok(status)) status = show(cli, &file, mode, depth);
  rn_cli_file_clear(&file);
  return status;
}

static const rn_cli_option_t options[] = {
    RN_CLI_JSON_OPTION(NULL),
    RN_OPTION(FLAG, "--stats", NULL,
              "inputs, outputs, parameters, nodes per op, and what this library lacks to run it "
              "(the default)"),
    RN_OPTION(FLAG, "--ops", NULL,
              "the names of the ops that the graph and its functions use, one per line"),
    RN_OPTION(
        FLAG, "--passes", NULL,
        "the planner's passes over the graph, in order: what each removed, added and changed, "
        "and how long it took; RUNNEL_DUMP=PASS prints the graph before and after one"),
    RN_CLI_PRECISION_OPTION,
    RN_OPTION(FLAG, "--text", NULL, "the graph as text, one field per line (pbtxt)"),
    RN_OPTION(FLAG, "--dot", NULL,
              "a drawing for Graphviz: name scopes as boxes, small constants inside the nodes that "
              "use them, types and shapes on the edges, one color per device; in large graphs each "
              "scope is folded into one box"),
    RN_OPTION(NUMBER, "--depth", "N",
              "fold the scopes that are nested in N others (0: every scope is one box)",
              .most = 1000),
    RN_OPTION(TEXT, "--input", "NAME=SHAPE",
              "assume this shape for the placeholder NAME, as in x=[32,784] or x=[?,784], and show "
              "the shapes that follow from it",
              .repeats = true),
    {0},
};

const rn_cli_command_t rn_cli_graph_command = {
    .name = "graph",
    .summary = "show a graph: statistics, text, a picture",
    .about =
        "Shows a GraphDef, binary (.pb) or text (.pbtxt), or the graph of a SavedModel (a folder); "
        "'-' reads the standard input.",
    .words = "FILE",
    .word_kind = RN_CLI_FILE,
    .run = graph,
    .options = options,
    .examples =
        "runnel graph examples/models/line.pbtxt\n"
        "runnel graph examples/models/line.pbtxt --dot --input 'x=[1,2]' | dot -Tsvg > line.svg\n"
        "runnel graph examples/models/line.pbtxt --passes\n"
        "runnel graph build/train/model --text > model.pbtxt      # after make train\n"
        "runnel graph build/train/model --dot --depth 0 | dot -Tsvg > overview.svg",
};
