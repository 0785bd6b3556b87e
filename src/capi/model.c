// Loaded models that run by the names of their signatures: runnel/saved_model.h.
#include "saved_model/model.h"
#include "capi/session.h"
#include "saved_model/writer.h"

#define MOST_PORTS 16  // of one call without an allocation

struct rn_model_t {
  rn_saved_model_t* file;  // Owned
  const rn_meta_graph_t* meta;
  rn_graph_t* graph;    // Owned
  TF_Session* session;  // Owned
  rn_arena_t arena;
  int signature_count;
  rn_model_signature_t* signatures;
};

static rn_status_t find_graph(rn_model_t* model, const rn_model_options_t* options) {
  rn_str_t* tags = NULL;
  int count = options && options->tags ? options->tag_count : 0;
  if (count < 0) return rn_invalid_argument("bad list of %d tags", count);
  if (options && options->tags)
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&model->arena, (size_t)count + 1, &tags));
  for (int i = 0; i < count; ++i) tags[i] = rn_str(options->tags[i]);
  return rn_saved_model_choose(model->file, tags, count, &model->meta);
}

static rn_status_t load(rn_model_t* model, const char* folder, const rn_model_options_t* options) {
  rn_allocator_t allocator = rn_capi_allocator();
  RN_RETURN_IF_ERROR(rn_saved_model_open(rn_capi_env(), rn_str(folder), allocator, &model->file));
  RN_RETURN_IF_ERROR(find_graph(model, options));
  RN_RETURN_IF_ERROR(rn_graph_create(allocator, &model->graph));
  RN_RETURN_IF_ERROR(
      rn_saved_model_blame(model->file, rn_meta_graph_import(model->meta, model->graph)));
  RN_RETURN_IF_ERROR(rn_saved_model_blame(
      model->file, rn_model_signatures(model->meta, model->graph, &model->arena, &model->signatures,
                                       &model->signature_count)));
  RN_RETURN_IF_ERROR(rn_capi_session_create_for(model->graph, options ? options->session : NULL,
                                                folder, &model->session));
  model->session->origin = (rn_model_origin_t){model->file, model->meta, model->graph->nodes.count};
  return rn_saved_model_blame(
      model->file, rn_meta_graph_restore(model->file, model->meta, model->session->session, NULL));
}

RN_API rn_model_t* rn_model_load(const char* folder, const rn_model_options_t* options,
                                 TF_Status* status) {
  rn_model_t* model = NULL;
  rn_status_t outcome = folder ? RN_NEW(rn_capi_allocator(), &model) : RN_CAPI_NULL("folder");
  if (rn_ok(outcome)) {
    rn_arena_init(&model->arena, rn_capi_allocator());
    outcome = load(model, folder, options);
  }
  if (!rn_ok(outcome)) {
    rn_model_close(model);
    model = NULL;
  }
  rn_capi_set(status, outcome);
  return model;
}

RN_API void rn_model_close(rn_model_t* model) {
  if (!model) return;
  rn_capi_session_destroy(model->session);
  rn_graph_release(model->graph);
  rn_saved_model_destroy(model->file);
  rn_arena_clear(&model->arena);
  RN_FREE(rn_capi_allocator(), model);
}

RN_API TF_Graph* rn_model_graph(rn_model_t* model) {
  return model ? (TF_Graph*)model->graph : NULL;
}
RN_API TF_Session* rn_model_session(rn_model_t* model) { return model ? model->session : NULL; }

RN_API int rn_model_signature_count(const rn_model_t* model) {
  return model ? model->signature_count : 0;
}
RN_API const char* rn_model_signature(const rn_model_t* model, int index) {
  return model && index >= 0 && index < model->signature_count ? model->signatures[index].name
                                                               : NULL;
}

static const rn_model_signature_t* find_signature(const rn_model_t* model, const char* name) {
  for (int i = 0; i < model->signature_count; ++i)
    if (strcmp(model->signatures[i].name, name ? name : "serving_default") == 0)
      return &model->signatures[i];
  return NULL;
}

static int ports(const rn_model_t* model, const char* name, int side, const rn_model_port_t** out) {
  const rn_model_signature_t* signature = model ? find_signature(model, name) : NULL;
  if (out) *out = signature ? signature->faces[side] : NULL;
  return signature ? signature->counts[side] : -1;
}

RN_API int rn_model_inputs(const rn_model_t* model, const char* signature,
                           const rn_model_port_t** out_ports) {
  return ports(model, signature, 0, out_ports);
}

RN_API int rn_model_outputs(const rn_model_t* model, const char* signature,
                            const rn_model_port_t** out_ports) {
  return ports(model, signature, 1, out_ports);
}

static rn_status_t run(rn_model_t* model, const rn_model_signature_t* signature,
                       const char* const* input_names, const char* const* output_names,
                       rn_capi_step_t* step, TF_Output* inputs, TF_Output* outputs) {
  RN_RETURN_IF_ERROR(rn_model_signature_edges(signature, input_names, step->input_count,
                                              output_names, step->output_count, (rn_edge_t*)inputs,
                                              (rn_edge_t*)outputs));
  step->inputs = inputs;
  step->outputs = outputs;
  RN_RETURN_IF_ERROR(rn_capi_step_check(step));
  return rn_capi_session_run(model->session, step, NULL, NULL);
}

RN_API void rn_model_run(rn_model_t* model, const char* signature, const char* const* input_names,
                         TF_Tensor* const* inputs, int input_count, const char* const* output_names,
                         TF_Tensor** outputs, int output_count, TF_Status* status) {
  for (int i = 0; outputs && i < output_count; ++i) outputs[i] = NULL;
  bool is_bad = !model || input_count < 0 || output_count < 0 ||
                (input_count && (!input_names || !inputs)) ||
                (output_count && (!output_names || !outputs));
  if (is_bad) {
    rn_capi_set(status, rn_invalid_argument("rn_model_run: bad list of inputs or outputs"));
    return;
  }
  const rn_model_signature_t* found = find_signature(model, signature);
  if (!found) {
    const rn_pb_SignatureDef_t* def;
    rn_capi_set(status, rn_meta_graph_signature(
                            model->meta, rn_str(signature ? signature : "serving_default"), &def));
    return;
  }
  rn_capi_step_t step = {.input_values = inputs,
                         .input_count = input_count,
                         .output_values = outputs,
                         .output_count = output_count};
  TF_Output few[2 * MOST_PORTS], *edges = few;
  size_t count = (size_t)input_count + (size_t)output_count;
  rn_status_t outcome = RN_OK;
  if (count > 2 * MOST_PORTS) outcome = RN_NEW_ARRAY(rn_capi_allocator(), count, &edges);
  if (rn_ok(outcome))
    outcome = run(model, found, input_names, output_names, &step, edges, edges + input_count);
  if (edges != few) RN_FREE_ARRAY(rn_capi_allocator(), edges, count);
  rn_capi_set(status, outcome);
}

RN_API bool rn_saved_model_write(TF_Session* session, const char* folder,
                                 const rn_saved_model_def_t* def, TF_Status* status) {
  if (!session || !folder || !def) {
    rn_capi_set(status, RN_CAPI_NULL(!session ? "session" : !folder ? "folder" : "def"));
    return false;
  }
  return rn_capi_ok(status, rn_saved_model_save(session->session, &session->origin, folder, def,
                                                rn_capi_env(), rn_capi_allocator()));
}
