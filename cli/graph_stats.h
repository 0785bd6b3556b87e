// Statistics of a graph, which `runnel graph` prints as text or as JSON.
#ifndef RUNNEL_CLI_GRAPH_STATS_H_
#define RUNNEL_CLI_GRAPH_STATS_H_

#include "base/map.h"
#include "cli/graph_view.h"

typedef struct rn_tally_t {
  rn_str_t name;
  int64_t count;
  bool is_unknown;    // an op that this library does not have
  bool lacks_kernel;  // some node of it has no CPU kernel
  bool is_function;
} rn_tally_t;

typedef struct rn_tallies_t {
  rn_allocator_t allocator;
  rn_map_t numbers;  // name -> place in |items| + 1
  RN_VEC(rn_tally_t) items;
} rn_tallies_t;

typedef struct rn_figures_t {
  int64_t data, control, dangling;  // edges
  int64_t variables, elements;      // elements of variables with a known shape
  int64_t unsized;                  // variables with an unknown shape
  int64_t constants, constant_elements;
  rn_tallies_t ops, devices;  // the most frequent first
} rn_figures_t;

// Clear |*out| either way.
RN_MUST_USE rn_status_t rn_figures_create(const rn_cli_t* cli, const rn_view_t* view,
                                          rn_figures_t* out);
void rn_figures_clear(rn_figures_t* figures);

// Inputs are placeholders; outputs are values that no node reads, the likely fetches.
bool rn_view_is_input(const rn_view_node_t* node);
bool rn_view_is_output(const rn_view_node_t* node);

// {"nodes": 20, "inputs": [...], "ops": [...], ...}, printed.
RN_MUST_USE rn_status_t rn_figures_print_json(const rn_view_t* view, const rn_figures_t* figures);

#endif  // RUNNEL_CLI_GRAPH_STATS_H_
