// Freezing: makes a graph whose variables are constants, for inference only.
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
  bool keeps_variables;    // variables and tables are kept
  bool keeps_calls;        // function calls are not inlined
  bool keeps_constants;    // constants are not folded
  bool folds_batch_norms;  // see rn_pass_fold_batch_norms
} rn_freeze_options_t;

// Appends a GraphDef of what |outputs| need from |inputs|, with the names of the lists. Where a
// list is NULL or a name is empty, the name of the edge's node is used; "node:1" remains output 1
// of a node of that name, even if a pass replaced the node. Calls are inlined and functional loops
// lowered; variables of |session|, which runs the graph, become constants; constants are folded.
// FAILED_PRECONDITION, naming the node, if a variable has no value or if the remaining graph
// changes it. Tables keep their nodes. Their contents in |session| become constants, and the node
// |*out_fill| fills the tables with them; run it once before use. Its name belongs to the session's
// graph; it is empty if there are no tables.
RN_MUST_USE rn_status_t rn_freeze(rn_session_t* session, const rn_freeze_options_t* options,
                                  rn_strbuf_t* out, rn_str_t* out_fill);

#endif  // RUNNEL_SAVED_MODEL_FREEZE_H_
