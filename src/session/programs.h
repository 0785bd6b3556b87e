// The programs of one signature: which one a step runs depends on the shapes that are fed.
//
// If the graph declares full shapes and these are fed, there is one program. If it leaves
// dimensions open, or other shapes are fed (as in stock, any may be), each set of fed shapes gets a
// program planned for it; after a few of them, all others share a general one. Programs are
// published complete and stay until the end, so lookups need no lock.
//
// doc/invariants.md: invariant 39.
#ifndef RUNNEL_SESSION_PROGRAMS_H_
#define RUNNEL_SESSION_PROGRAMS_H_

#include "session/planner.h"

typedef struct rn_programs_t {
  const rn_planner_t* planner;  // Borrowed, as all that follows up to |arena|
  rn_graph_t* graph;
  const rn_signature_t* signature;
  rn_arena_t* arena;     // only rn_programs_make uses it, under its caller's lock
  rn_shape_t* declared;  // by feed, in |arena|
  bool is_open;          // some declared shape has open dimensions
  int32_t variant_count;
  struct rn_variant_t* _Atomic variants;
  rn_program_t* _Atomic general;  // Owned; for all shapes that the graph allows
  rn_program_t* _Atomic any;      // Owned; for any shapes at all
} rn_programs_t;

// Records the shapes that the graph declares for the feeds now, under the graph's lock.
RN_MUST_USE rn_status_t rn_programs_init(rn_programs_t* programs, const rn_planner_t* planner,
                                         rn_graph_t* graph, const rn_signature_t* signature,
                                         rn_arena_t* arena);
void rn_programs_clear(rn_programs_t* programs);

// The program for a step with these feeds; NULL if there is none yet. Any thread may call it.
rn_program_t* rn_programs_find(const rn_programs_t* programs, const rn_tensor_t* const* feeds);
// The same, but makes a missing program. One thread at a time.
RN_MUST_USE rn_status_t rn_programs_make(rn_programs_t* programs, const rn_tensor_t* const* feeds,
                                         rn_program_t** out);
// Makes the general program for the shapes that the graph allows, unless there is one: from now on
// no set of such shapes gets a program of its own. One thread at a time.
RN_MUST_USE rn_status_t rn_programs_plan(rn_programs_t* programs);

#endif  // RUNNEL_SESSION_PROGRAMS_H_
