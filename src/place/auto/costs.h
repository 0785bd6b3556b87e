// What nodes and links were measured to cost, and what others probably cost.
//
// A table has three kinds of entries. An entry by node holds what one node of one graph took: what
// passes made of the graph is in it, so a node that ran as a part of another took nothing. An entry
// by op holds what an op took for inputs of given types and shapes, in any graph. Links have a
// latency and a time per byte. For a node without an entry, the table fits a line through the
// entries of the same op, or else scales a rough estimate by how the other ops compare with it.
//
// costs_file.c reads and writes tables. One thread at a time.
#ifndef RUNNEL_PLACE_AUTO_COSTS_H_
#define RUNNEL_PLACE_AUTO_COSTS_H_

#include "base/arena.h"
#include "step/work.h"

typedef struct rn_costs_t rn_costs_t;

// Something whose cost is asked for or told. All strings are borrowed for the call.
typedef struct rn_cost_key_t {
  rn_str_t node;       // its name in the graph; "": any
  const char* device;  // type: "CPU"
  rn_str_t op;
  rn_str_t signature;  // types and shapes: see rn_costs_sign
  rn_work_t work;
} rn_cost_key_t;

// How a cost is known.
typedef enum rn_cost_source_t {
  RN_COST_OF_NODE,  // measured for this node
  RN_COST_OF_OP,    // measured for this op with these shapes
  RN_COST_FITTED,   // from this op with other shapes
  RN_COST_GUESSED,  // from other ops
  RN_COST_SOURCES,
} rn_cost_source_t;

RN_MUST_USE rn_status_t rn_costs_create(rn_allocator_t allocator, rn_costs_t** out);
void rn_costs_destroy(rn_costs_t* costs);

// Appends the types and shapes of inputs and outputs: "float[2,3];float[3,?]->float[2,?]".
void rn_costs_sign(const rn_ir_t* ir, const rn_ir_node_t* node, rn_strbuf_t* out);

// Adds what a node took, and the bytes that it left, 0 if that is unknown. A later entry of the
// same node replaces the earlier one.
RN_MUST_USE rn_status_t rn_costs_add_node(rn_costs_t* costs, const rn_cost_key_t* key, int64_t ns,
                                          int64_t bytes);
// Adds what an op took; entries with the same key are averaged.
RN_MUST_USE rn_status_t rn_costs_add_op(rn_costs_t* costs, const rn_cost_key_t* key, int64_t ns);

// What |key| costs. Never fails: a guess needs nothing.
int64_t rn_costs_find(rn_costs_t* costs, const rn_cost_key_t* key, rn_cost_source_t* out_source);

// The bytes that a node left when it was measured; 0 if it was not.
int64_t rn_costs_bytes(rn_costs_t* costs, const char* device, rn_str_t node);

// The time of a step besides its nodes. 0 if it was not measured.
void rn_costs_set_step(rn_costs_t* costs, int64_t ns);
int64_t rn_costs_step(const rn_costs_t* costs);

// A link from task |from| to task |to| ("/job:worker/task:0"), or between the devices of one task
// if both are "". False if it was not measured.
RN_MUST_USE rn_status_t rn_costs_set_link(rn_costs_t* costs, rn_str_t from, rn_str_t to,
                                          int64_t latency_ns, double ns_per_byte);
bool rn_costs_link(const rn_costs_t* costs, rn_str_t from, rn_str_t to, int64_t* out_latency_ns,
                   double* out_ns_per_byte);

// Appends the table as text; the format is in doc/formats.md.
RN_MUST_USE rn_status_t rn_costs_write(const rn_costs_t* costs, rn_strbuf_t* out);
// Adds the entries of a file. DATA_LOSS, with the line, if it is damaged; UNIMPLEMENTED if a later
// version wrote it. The table is then unchanged or has some of the entries.
RN_MUST_USE rn_status_t rn_costs_read(rn_costs_t* costs, rn_str_t text);
// Whether |bytes| are a file of this format, damaged or not.
bool rn_costs_is_file(rn_str_t bytes);

// For costs_file.c.
typedef struct rn_cost_entry_t {
  rn_str_t node, device, op, signature;  // |node| or |signature| is ""
  rn_work_t work;                        // of a node: |bytes| are what it left
  double ns;
  int64_t count;  // of measurements in the mean
} rn_cost_entry_t;
typedef struct rn_cost_link_t {
  rn_str_t from, to;
  int64_t latency_ns;
  double ns_per_byte;
} rn_cost_link_t;
RN_MUST_USE rn_status_t rn_costs_add_entry(rn_costs_t* costs, const rn_cost_entry_t* entry);
size_t rn_costs_count(const rn_costs_t* costs);
const rn_cost_entry_t* rn_costs_entry(const rn_costs_t* costs, size_t i);
size_t rn_costs_link_count(const rn_costs_t* costs);
const rn_cost_link_t* rn_costs_link_at(const rn_costs_t* costs, size_t i);

#endif  // RUNNEL_PLACE_AUTO_COSTS_H_
