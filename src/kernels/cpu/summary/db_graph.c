// Graphs in databases: a row per node and per input of a node. What is left of the messages is kept
// as bytes.
#include "kernels/cpu/summary/db_internal.h"
#include "wire/scan.h"

enum { GRAPH_NODE = 1 };
enum { NODE_NAME = 1, NODE_OP = 2, NODE_INPUT = 3, NODE_DEVICE = 4 };

typedef struct db_graph_t {
  rn_str_t bytes;
  int64_t id;
  double now;
  rn_map_t nodes;    // name -> int64_t, its place
  rn_arena_t arena;  // holds the places
  rn_strbuf_t rest;  // of a message
} db_graph_t;

static rn_status_t write_input(rn_summary_db_t* db, db_graph_t* graph, int64_t node, int64_t place,
                               rn_str_t input) {
  rn_str_t name = input;
  int64_t output = 0;
  size_t colon = name.size;
  while (colon > 0 && name.data[colon - 1] != ':') --colon;
  if (colon > 0) {
    if (!rn_str_to_i64(rn_str_n(name.data + colon, name.size - colon), &output))
      return rn_data_loss("Bad NodeDef.input: %.*s", RN_STR_ARGS(input));
    name.size = colon - 1;
  }
  bool is_control = name.size && name.data[0] == '^';
  if (is_control) name = rn_str_n(name.data + 1, name.size - 1);
  const int64_t* from = rn_map_get(&graph->nodes, name);
  if (!from) return rn_data_loss("Could not find node: %.*s", RN_STR_ARGS(name));
  return RN_SUMMARY_DB_RUN(
      db,
      "INSERT INTO NodeInputs (graph_id, node_id, idx, input_node_id, input_node_idx, is_control) "
      "VALUES (?, ?, ?, ?, ?, ?)",
      "iiiiii", graph->id, node, place, *from, output, (int64_t)is_control);
}

// Whether field |number| of a node, or of a graph, has no column.
static bool is_rest(uint32_t number, bool is_node) {
  return is_node ? number < NODE_NAME || number > NODE_DEVICE : number != GRAPH_NODE;
}

// Puts the fields of |bytes| that have no columns into |graph->rest|.
static rn_status_t take_rest(db_graph_t* graph, rn_str_t bytes, bool is_node) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  graph->rest.size = 0;
  for (const char* from = scan.next; rn_pb_scan_next(&scan, &field); from = scan.next)
    if (is_rest(field.number, is_node))
      rn_strbuf_append_n(&graph->rest, from, (size_t)(scan.next - from));
  return rn_strbuf_status(&graph->rest);
}

static rn_str_t rest_of(const db_graph_t* graph) {
  return graph->rest.size ? rn_strbuf_view(&graph->rest) : RN_STR("");
}

static rn_status_t write_node(rn_summary_db_t* db, db_graph_t* graph, int64_t node,
                              rn_str_t bytes) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  int64_t inputs = 0;
  while (rn_pb_scan_next(&scan, &field))
    if (field.number == NODE_INPUT && field.wire == RN_PB_WIRE_LENGTH)
      RN_RETURN_IF_ERROR(write_input(db, graph, node, inputs++, field.bytes));
  RN_RETURN_IF_ERROR(take_rest(graph, bytes, true));
  return RN_SUMMARY_DB_RUN(db,
                           "INSERT INTO Nodes (graph_id, node_id, node_name, op, device, node_def) "
                           "VALUES (?, ?, ?, ?, ?, ?)",
                           "iitttb", graph->id, node, rn_field_bytes(bytes, NODE_NAME),
                           rn_field_bytes(bytes, NODE_OP), rn_field_bytes(bytes, NODE_DEVICE),
                           rest_of(graph));
}

static rn_status_t write_graph(rn_summary_db_t* db, void* arg) {
  db_graph_t* graph = arg;
  rn_pb_scan_t scan = rn_pb_scan(graph->bytes);
  rn_pb_field_t field;
  RN_RETURN_IF_ERROR(rn_summary_db_new_id(db, &graph->id));
  for (int64_t node = 0; rn_pb_scan_next(&scan, &field);)
    if (field.number == GRAPH_NODE && field.wire == RN_PB_WIRE_LENGTH)
      RN_RETURN_IF_ERROR(write_node(db, graph, node++, field.bytes));
  RN_RETURN_IF_ERROR(take_rest(graph, graph->bytes, false));
  return RN_SUMMARY_DB_RUN(
      db,
      "INSERT OR REPLACE INTO Graphs (run_id, graph_id, inserted_time, graph_def) "
      "VALUES (?, ?, ?, ?)",
      db->run_id ? "iidb" : "nidb", db->run_id, graph->id, graph->now, rest_of(graph));
}

// Numbers the nodes by name.
static rn_status_t number_nodes(db_graph_t* graph) {
  rn_pb_scan_t scan = rn_pb_scan(graph->bytes);
  rn_pb_field_t field;
  for (int64_t node = 0; rn_pb_scan_next(&scan, &field);) {
    if (field.number != GRAPH_NODE || field.wire != RN_PB_WIRE_LENGTH) continue;
    rn_str_t name = rn_field_bytes(field.bytes, NODE_NAME);
    int64_t* place = NULL;
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&graph->arena, 1, &place));
    *place = node++;
    if (!rn_map_get(&graph->nodes, name))
      RN_RETURN_IF_ERROR(rn_map_put(&graph->nodes, name, place));
  }
  return scan.is_bad ? rn_invalid_argument("bad proto") : RN_OK;
}

rn_status_t rn_summary_db_put_graph(rn_summary_db_t* db, double time, rn_str_t bytes) {
  db_graph_t graph = {.bytes = bytes, .now = rn_summary_db_now(db)};
  rn_map_init(&graph.nodes, db->env.allocator);
  rn_arena_init(&graph.arena, db->env.allocator);
  rn_strbuf_init(&graph.rest, db->env.allocator);
  rn_status_t status = number_nodes(&graph);
  if (rn_ok(status)) status = rn_summary_db_begin_run(db, graph.now, time ? time : graph.now);
  if (rn_ok(status)) status = rn_summary_db_transact(db, write_graph, &graph);
  rn_strbuf_clear(&graph.rest);
  rn_arena_clear(&graph.arena);
  rn_map_clear(&graph.nodes);
  return status;
}
