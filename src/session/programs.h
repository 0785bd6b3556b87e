// The programs of one signature: which one a step runs depends on the shapes that are fed.
//
// Where the shapes are those that the graph declares, and it declares them in full, there is one
// program. Where it leaves something open, or where other shapes are fed than it declares (as in
// stock, any may be), each set of fed shapes gets a program of its own, planned for just these;
// after a few of them a general one serves. Programs are added complete and stay until the end, so
// that looking one up takes no lock.
#ifndef RUNNEL_SESSION_PROGRAMS_H_
#define RUNNEL_SESSION_PROGRAMS_H_

#include "session/planner.h"

typedef struct rn_programs_t {
  const rn_planner_t* planner;  // Borrowed, as all that follows up to |arena|
  rn_graph_t* graph;
  const rn_signature_t* signature;
  rn_arena_t* arena;     // guarded by whoever makes programs
  rn_shape_t* declared;  // by feed, in |arena|
  bool is_open;          // those leave something open
  int32_t variant_count;
  struct rn_variant_t* _Atomic variants;
  rn_program_t* _Atomic general;  // Owned; for whatever the declared shapes allow
  rn_program_t* _Atomic any;      // Owned; for any shapes at all
} rn_programs_t;

// Takes note of what the graph declares of the feeds now, under the graph's lock.
RN_MUST_USE rn_status_t rn_programs_init(rn_programs_t* programs, const rn_planner_t* planner,
                                         rn_graph_t* graph, const rn_signature_t* signature,
                                         rn_arena_t* arena);
void rn_programs_clear(rn_programs_t* programs);

// The program for a step with these feeds; NULL if it is still to be made. From any thread.
rn_program_t* rn_programs_find(const rn_programs_t* programs, const rn_tensor_t* const* feeds);
// The same, made if need be. One thread at a time.
RN_MUST_USE rn_status_t rn_programs_make(rn_programs_t* programs, const rn_tensor_t* const* feeds,
                                         rn_program_t** out);

#endif  // RUNNEL_SESSION_PROGRAMS_H_
