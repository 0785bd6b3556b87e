// A loaded model that runs by the names of its signatures: the parts of rn_model_t
// (runnel/saved_model.h).
#ifndef RUNNEL_SAVED_MODEL_MODEL_H_
#define RUNNEL_SAVED_MODEL_MODEL_H_

#include "runnel/saved_model.h"
#include "saved_model/saved_model.h"

// In each pair, index 0 is for inputs and 1 for outputs. Both arrays of a side are sorted by name.
typedef struct rn_model_signature_t {
  const char* name;
  int counts[2];
  rn_port_t* ports[2];
  rn_model_port_t* faces[2];  // the public form of the ports
} rn_model_signature_t;

// The graph of these tags; if |tags| is NULL, the graph tagged "serve", or the only one.
RN_MUST_USE rn_status_t rn_saved_model_choose(const rn_saved_model_t* file, const rn_str_t* tags,
                                              int tag_count, const rn_meta_graph_t** out);

// The signatures of |meta|, which was imported into |graph|; allocated in |arena|. Leaves out
// signatures that cannot be run by name, for example those with sparse tensors, and the one that
// names the model's initialization.
RN_MUST_USE rn_status_t rn_model_signatures(const rn_meta_graph_t* meta, rn_graph_t* graph,
                                            rn_arena_t* arena, rn_model_signature_t** out,
                                            int* out_count);
// Looks up the edges of the names. INVALID_ARGUMENT for a name that the signature does not have,
// and for an input that is missing.
RN_MUST_USE rn_status_t rn_model_signature_edges(const rn_model_signature_t* signature,
                                                 const char* const* input_names, int input_count,
                                                 const char* const* output_names, int output_count,
                                                 rn_edge_t* out_inputs, rn_edge_t* out_outputs);

#endif  // RUNNEL_SAVED_MODEL_MODEL_H_
