// A loaded model, run by the names of its signatures: what rn_model_t (runnel/saved_model.h) is
// made of.
#ifndef RUNNEL_SAVED_MODEL_MODEL_H_
#define RUNNEL_SAVED_MODEL_MODEL_H_

#include "runnel/saved_model.h"
#include "saved_model/saved_model.h"

// Index 0 of each pair: inputs; 1: outputs. Both arrays of a side are in the same order, by name.
typedef struct rn_model_signature_t {
  const char* name;
  int counts[2];
  rn_port_t* ports[2];
  rn_model_port_t* faces[2];  // what clients see of the ports
} rn_model_signature_t;

// The graph of these tags; |tags| NULL: that of "serve", or the only graph there is.
RN_MUST_USE rn_status_t rn_saved_model_choose(const rn_saved_model_t* file, const rn_str_t* tags,
                                              int tag_count, const rn_meta_graph_t** out);

// The signatures of |meta|, which was imported into |graph|; they lie in |arena|. Those that cannot
// be run by name, of sparse tensors for example, are left out; so is the one that says how the
// model is initialised.
RN_MUST_USE rn_status_t rn_model_signatures(const rn_meta_graph_t* meta, rn_graph_t* graph,
                                            rn_arena_t* arena, rn_model_signature_t** out,
                                            int* out_count);
// The edges that the names stand for. INVALID_ARGUMENT for a name that the signature does not have,
// and for an input that is missing.
RN_MUST_USE rn_status_t rn_model_signature_edges(const rn_model_signature_t* signature,
                                                 const char* const* input_names, int input_count,
                                                 const char* const* output_names, int output_count,
                                                 rn_edge_t* out_inputs, rn_edge_t* out_outputs);

#endif  // RUNNEL_SAVED_MODEL_MODEL_H_
