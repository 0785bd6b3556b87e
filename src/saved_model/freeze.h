// Freezing: a graph in which variables are constants, for those who only want to run it.
#ifndef RUNNEL_SAVED_MODEL_FREEZE_H_
#define RUNNEL_SAVED_MODEL_FREEZE_H_

#include "session/session.h"

typedef struct rn_freeze_options_t {
  const rn_edge_t* inputs;  // become placeholders
  const rn_str_t* input_names;
  int32_t input_count;
  const rn_edge_t* outputs;
  const rn_str_t* output_names;
  int32_t output_count;
  bool keeps_variables;    // variables and tables stay what they are
  bool keeps_calls;        // of functions: they are not put in place
  bool keeps_constants;    // what follows from constants is not computed ahead
  bool folds_batch_norms;  // see rn_pass_fold_batch_norms
} rn_freeze_options_t;

// Appends a GraphDef of what |outputs| need of |inputs|, named as the lists say. Where a list is
// NULL or a name is empty, the name is that of the edge's node; "node:1" stays output 1 of a node
// of that name, whatever became of the node itself. Functions are put in place and loops of
// functions taken apart; variables of |session|, which runs the graph, become constants of their
// values; what follows from constants is computed. FAILED_PRECONDITION naming the node where a
// variable has no value, or is changed by what is left. Tables keep their nodes; what they hold in
// |session| becomes constants, and the node |*out_fill| (its name is the session's graph's; empty
// if there are no tables) puts it there and is to be run once.
RN_MUST_USE rn_status_t rn_freeze(rn_session_t* session, const rn_freeze_options_t* options,
                                  rn_strbuf_t* out, rn_str_t* out_fill);

#endif  // RUNNEL_SAVED_MODEL_FREEZE_H_
