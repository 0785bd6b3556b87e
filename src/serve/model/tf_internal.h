// The parts of a SavedModel's backend: tf_load.c fills them, tf_backend.c runs them. For these
// files only.
#ifndef RUNNEL_SERVE_MODEL_TF_INTERNAL_H_
#define RUNNEL_SERVE_MODEL_TF_INTERNAL_H_

#include "base/cap_alloc.h"
#include "base/sync.h"
#include "saved_model/saved_model.h"
#include "serve/model/quiet_alloc.h"
#include "serve/model/tf_backend.h"
#include "step/ir.h"

// Sets of outputs of one signature that get a plan of their own; requests for others run all of
// them, because a client could ask for 2^n sets.
#define RN_TF_MOST_FILTERS 8
// Different steps that SessionRun may run per version: the session keeps a plan of each.
#define RN_TF_MOST_STEPS 64

// A signature, ready to run. Its members are in the backend's arena.
typedef struct rn_tf_signature_t {
  rn_signature_t step;  // feeds and fetches by ascending name of the ports
  // Sets of outputs that were run, as bits by output; 0: free. A slot is set once.
  _Atomic uint64_t filters[RN_TF_MOST_FILTERS];
} rn_tf_signature_t;

typedef struct rn_tf_backend_t {
  rn_backend_t base;         // first
  rn_allocator_t allocator;  // of |memory|, for all but this struct
  rn_allocator_t outer;      // the caller's, for this struct
  rn_quiet_alloc_t* pages;   // Owned; below |memory|
  rn_cap_alloc_t* memory;    // Owned
  rn_arena_t arena;          // signatures and what they point to
  const rn_env_t* env;       // Borrowed
  rn_graph_t* graph;
  rn_session_t* session;
  rn_tf_signature_t* signatures;  // as |base.signatures|
  rn_mutex_t mutex;               // guards |steps| and |step_arena|
  RN_VEC(rn_signature_t) steps;   // of SessionRun: checked, and planned by the session
  rn_arena_t step_arena;
} rn_tf_backend_t;

// Fills |backend|, whose allocator and arena are set; on failure some parts may be set.
RN_MUST_USE rn_status_t rn_tf_load(rn_tf_backend_t* backend,
                                   const rn_tf_backend_options_t* options);

#endif  // RUNNEL_SERVE_MODEL_TF_INTERNAL_H_
