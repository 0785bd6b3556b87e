// Keeps the names of the outputs of a frozen graph, whatever the passes did to their nodes.
//
// A pass may replace the node that an output came from: an identity by what it passes on, one of
// two equal nodes by the other, a call by the body of its function, a node with several outputs by
// one constant per output. If that happened to an output that keeps its own name, a node of that
// name is added: an Identity, or an IdentityN for outputs "name:1" and up.
#ifndef RUNNEL_SAVED_MODEL_FREEZE_PINS_H_
#define RUNNEL_SAVED_MODEL_FREEZE_PINS_H_

#include "saved_model/freeze.h"
#include "step/ir.h"

// The fetches of |signature|: the outputs, followed by the lower-numbered outputs of nodes whose
// higher-numbered output is fetched, so that an IdentityN can have them all. In |arena|.
RN_MUST_USE rn_status_t rn_freeze_fetches(const rn_freeze_options_t* options, rn_arena_t* arena,
                                          rn_signature_t* signature);

typedef struct rn_freeze_pins_t {
  const rn_edge_t* outputs;     // Borrowed: the fetches of the signature, one per fetch of the IR
  const rn_ir_edge_t* fetches;  // as they were before the passes; in the IR's arena
} rn_freeze_pins_t;

// Call before the passes: records the fetches of |signature|.
RN_MUST_USE rn_status_t rn_freeze_pins_note(rn_ir_t* ir, const rn_signature_t* signature,
                                            rn_freeze_pins_t* out);
// Call after the passes: restores the names of the outputs, and drops the additional fetches.
RN_MUST_USE rn_status_t rn_freeze_pins_apply(rn_ir_t* ir, const rn_freeze_options_t* options,
                                             const rn_freeze_pins_t* pins);

#endif  // RUNNEL_SAVED_MODEL_FREEZE_PINS_H_
