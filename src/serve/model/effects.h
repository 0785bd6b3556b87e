// What running a part of a graph does besides computing its outputs.
//
// A cache may keep the outputs of a signature only if equal inputs give equal outputs for as long
// as the model is loaded: nothing random is reached, and no step changes what is read.
#ifndef RUNNEL_SERVE_MODEL_EFFECTS_H_
#define RUNNEL_SERVE_MODEL_EFFECTS_H_

#include "step/ir.h"

typedef enum rn_effects_t {
  RN_EFFECTS_NONE,    // a function of the inputs and of variables and tables that it only reads
  RN_EFFECTS_OTHER,   // random numbers, printing, files …: two runs may differ
  RN_EFFECTS_CHANGE,  // may change a variable, a table or another resource
} rn_effects_t;

// The strongest effect of a step of |signature|. When in doubt, RN_EFFECTS_CHANGE. |*out_node|,
// unless NULL, gets the name of a node that has it, in |arena|.
RN_MUST_USE rn_status_t rn_effects_of(rn_graph_t* graph, const rn_signature_t* signature,
                                      rn_arena_t* arena, rn_effects_t* out, rn_str_t* out_node);

#endif  // RUNNEL_SERVE_MODEL_EFFECTS_H_
