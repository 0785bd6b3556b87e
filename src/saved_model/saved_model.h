// A SavedModel: a folder with graphs, the values of their variables, and names for what they
// compute.
//
//   DIR/saved_model.pb (or .pbtxt)   a SavedModel message: one MetaGraphDef for each set of tags
//   DIR/variables/variables.*        a checkpoint
//   DIR/assets/                      files that the graph reads
//
// Opening reads the first of these. Its contents are untrusted, and nothing runs. Graphs stay
// serialized until they are imported; object graphs, which are for Python, are never decoded. An
// opened model is read-only; any number of threads may use it.
#ifndef RUNNEL_SAVED_MODEL_SAVED_MODEL_H_
#define RUNNEL_SAVED_MODEL_SAVED_MODEL_H_

#include "base/fs.h"
#include "graph/graph.h"
#include "proto/meta_graph.pb.h"
#include "session/session.h"

typedef struct rn_meta_graph_t {
  rn_str_t bytes;         // the MetaGraphDef, serialized
  rn_str_t graph_def;     // the GraphDef in it, serialized
  rn_str_t object_graph;  // the SavedObjectGraph, serialized; "" for a model without objects
  const rn_pb_MetaGraphDef_t* def;  // all but graph and objects
} rn_meta_graph_t;

typedef struct rn_saved_model_t {
  rn_allocator_t allocator;
  const rn_env_t* env;  // Borrowed
  rn_arena_t arena;
  rn_strbuf_t bytes;
  rn_str_t folder;  // NUL-terminated
  int64_t schema_version;
  int32_t graph_count;
  rn_meta_graph_t* graphs;
} rn_saved_model_t;

// Reads DIR/saved_model.pb, or .pbtxt if there is none. NOT_FOUND in stock's words if there is
// neither; DATA_LOSS, naming file and position, for what is not a model. |env| must outlive the
// model.
RN_MUST_USE rn_status_t rn_saved_model_open(const rn_env_t* env, rn_str_t folder,
                                            rn_allocator_t allocator, rn_saved_model_t** out);
// The same for a SavedModel message in |bytes|, binary or text, which it copies. |folder| is where
// the model's files would be.
RN_MUST_USE rn_status_t rn_saved_model_parse(const rn_env_t* env, rn_str_t folder, rn_str_t bytes,
                                             bool is_text, rn_allocator_t allocator,
                                             rn_saved_model_t** out);
void rn_saved_model_destroy(rn_saved_model_t* model);  // NULL is fine

// The graph whose tags are exactly these, in any order. NOT_FOUND in stock's words.
RN_MUST_USE rn_status_t rn_saved_model_find(const rn_saved_model_t* model, const rn_str_t* tags,
                                            int32_t tag_count, const rn_meta_graph_t** out);

// Adds the nodes and functions of |meta| to |graph|.
RN_MUST_USE rn_status_t rn_meta_graph_import(const rn_meta_graph_t* meta, rn_graph_t* graph);
// Restores the variables of |session|, which runs the imported graph, from the folder's checkpoint,
// then runs the graph's initialization. A model without a checkpoint has no variables.
RN_MUST_USE rn_status_t rn_meta_graph_restore(const rn_saved_model_t* model,
                                              const rn_meta_graph_t* meta, rn_session_t* session,
                                              const rn_step_options_t* options);

// The asset files that the graph reads, allocated in |arena| or the model. Newer models list them
// in a field, older ones in a collection.
RN_MUST_USE rn_status_t rn_meta_graph_assets(const rn_meta_graph_t* meta, rn_arena_t* arena,
                                             const rn_pb_AssetFileDef_t** out, uint32_t* out_count);

// |status|; the message of a failure then names the model's file.
RN_MUST_USE rn_status_t rn_saved_model_blame(const rn_saved_model_t* model, rn_status_t status);

// The signature |name|; NOT_FOUND, listing the existing ones, if there is none.
RN_MUST_USE rn_status_t rn_meta_graph_signature(const rn_meta_graph_t* meta, rn_str_t name,
                                                const rn_pb_SignatureDef_t** out);

// A named input or output of a signature, found in a graph.
typedef struct rn_port_t {
  rn_str_t name;  // NUL-terminated
  const rn_pb_TensorInfo_t* info;
  rn_edge_t edge;
} rn_port_t;
// The inputs or outputs of |signature| by ascending name, in |arena|. UNIMPLEMENTED for ports that
// are not single tensors, NOT_FOUND for those that the graph lacks. If |graph| is NULL, no edges
// are looked up.
RN_MUST_USE rn_status_t rn_signature_ports(rn_graph_t* graph, const rn_pb_SignatureDef_t* signature,
                                           bool is_output, rn_arena_t* arena, rn_port_t** out,
                                           int32_t* out_count);

#endif  // RUNNEL_SAVED_MODEL_SAVED_MODEL_H_
