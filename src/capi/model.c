// Loaded models, run by the names of their signatures: runnel/saved_model.h.
#include "capi/session.h"
#include "runnel/saved_model.h"
#include "saved_model/saved_model.h"
#include "saved_model/writer.h"
#include "tensor/tensor_proto.h"

#define MOST_PORTS 16  // of one call that needs no memory

typedef struct signature_t {
  const char* name;
  int counts[2];  // inputs, outputs
  rn_port_t* ports[2];
  rn_model_port_t* faces[2];
} signature_t;

struct rn_model_t {
  rn_saved_model_t* file;  // Owned
  const rn_meta_graph_t* meta;
  rn_graph_t* graph;    // Owned
  TF_Session* session;  // Owned
  rn_arena_t arena;
  int signature_count;
  signature_t* signatures;
};

static rn_status_t find_graph(rn_model_t* model, const rn_model_options_t* options) {
  if (options && options->tags) {
    rn_str_t* tags = NULL;
    if (options->tag_count < 0)
      return rn_invalid_argument("bad list of %d tags", options->tag_count);
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&model->arena, (size_t)options->tag_count, &tags));
    for (int i = 0; i < options->tag_count; ++i) tags[i] = rn_str(options->tags[i]);
    return rn_saved_model_find(model->file, tags, options->tag_count, &model->meta);
  }
  rn_str_t serve = RN_STR("serve");
  rn_status_t status = rn_saved_model_find(model->file, &serve, 1, &model->meta);
  if (rn_ok(status) || model->file->graph_count != 1) return status;
  rn_status_free(status);
  model->meta = &model->file->graphs[0];
  return RN_OK;
}

static rn_status_t describe_port(rn_model_t* model, const rn_port_t* port, rn_model_port_t* out) {
  rn_str_t tensor;
  RN_RETURN_IF_ERROR(rn_arena_str(&model->arena, port->info->name, &tensor));
  *out = (rn_model_port_t){.name = port->name.data,
                           .tensor = tensor.data,
                           .dtype = (TF_DataType)port->info->dtype,
                           .rank = -1};
  const rn_pb_TensorShapeProto_t* shape = port->info->tensor_shape;
  if (!shape || shape->unknown_rank) return RN_OK;
  int64_t* dims = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&model->arena, (size_t)shape->dim.count, &dims));
  for (uint32_t i = 0; i < shape->dim.count; ++i) dims[i] = shape->dim.items[i].size;
  out->rank = (int)shape->dim.count;
  out->dims = dims;
  return RN_OK;
}

static rn_status_t describe(rn_model_t* model, const rn_pb_SignatureDef_t* def, signature_t* out) {
  for (int side = 0; side < 2; ++side) {
    RN_RETURN_IF_ERROR(rn_signature_ports(model->graph, def, side == 1, &model->arena,
                                          &out->ports[side], &out->counts[side]));
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&model->arena, (size_t)out->counts[side], &out->faces[side]));
    for (int i = 0; i < out->counts[side]; ++i)
      RN_RETURN_IF_ERROR(describe_port(model, &out->ports[side][i], &out->faces[side][i]));
  }
  return RN_OK;
}

// Signatures that this interface cannot run, of sparse tensors for example, are left out; so is the
// one that says how the model is initialised.
static rn_status_t describe_all(rn_model_t* model) {
  const rn_pb_MetaGraphDef_t* def = model->meta->def;
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&model->arena, (size_t)def->signature_def.count, &model->signatures));
  for (uint32_t i = 0; i < def->signature_def.count; ++i) {
    rn_str_t key = def->signature_def.items[i].key, name;
    if (rn_str_starts_with(key, RN_STR("__saved_model_"))) continue;
    RN_RETURN_IF_ERROR(rn_arena_str(&model->arena, key, &name));
    signature_t* signature = &model->signatures[model->signature_count];
    *signature = (signature_t){.name = name.data};
    rn_status_t status = describe(model, def->signature_def.items[i].value, signature);
    if (rn_ok(status)) {
      ++model->signature_count;
    } else if (rn_status_code(status) == RN_CODE_UNIMPLEMENTED) {
      rn_status_free(status);
    } else {
      return rn_status_annotate(status, "\n\twhile looking at the signature '%s'", name.data);
    }
  }
  return RN_OK;
}

static rn_status_t load(rn_model_t* model, const char* folder, const rn_model_options_t* options) {
  rn_allocator_t allocator = rn_capi_allocator();
  RN_RETURN_IF_ERROR(rn_saved_model_open(rn_capi_env(), rn_str(folder), allocator, &model->file));
  RN_RETURN_IF_ERROR(find_graph(model, options));
  RN_RETURN_IF_ERROR(rn_graph_create(allocator, &model->graph));
  RN_RETURN_IF_ERROR(
      rn_saved_model_blame(model->file, rn_meta_graph_import(model->meta, model->graph)));
  RN_RETURN_IF_ERROR(rn_saved_model_blame(model->file, describe_all(model)));
  RN_RETURN_IF_ERROR(rn_capi_session_create_for(model->graph, options ? options->session : NULL,
                                                folder, &model->session));
  model->session->origin = (rn_model_origin_t){model->file, model->meta, model->graph->nodes.count};
  return rn_saved_model_blame(
      model->file, rn_meta_graph_restore(model->file, model->meta, model->session->session, NULL));
}

rn_model_t* rn_model_load(const char* folder, const rn_model_options_t* options,
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

void rn_model_close(rn_model_t* model) {
  if (!model) return;
  rn_capi_session_destroy(model->session);
  rn_graph_release(model->graph);
  rn_saved_model_destroy(model->file);
  rn_arena_clear(&model->arena);
  RN_FREE(rn_capi_allocator(), model);
}

TF_Graph* rn_model_graph(rn_model_t* model) { return model ? (TF_Graph*)model->graph : NULL; }
TF_Session* rn_model_session(rn_model_t* model) { return model ? model->session : NULL; }

int rn_model_signature_count(const rn_model_t* model) { return model ? model->signature_count : 0; }
const char* rn_model_signature(const rn_model_t* model, int index) {
  return model && index >= 0 && index < model->signature_count ? model->signatures[index].name
                                                               : NULL;
}

static const signature_t* find_signature(const rn_model_t* model, const char* name) {
  for (int i = 0; i < model->signature_count; ++i)
    if (strcmp(model->signatures[i].name, name ? name : "serving_default") == 0)
      return &model->signatures[i];
  return NULL;
}

static int ports(const rn_model_t* model, const char* name, int side, const rn_model_port_t** out) {
  const signature_t* signature = model ? find_signature(model, name) : NULL;
  if (out) *out = signature ? signature->faces[side] : NULL;
  return signature ? signature->counts[side] : -1;
}

int rn_model_inputs(const rn_model_t* model, const char* signature,
                    const rn_model_port_t** out_ports) {
  return ports(model, signature, 0, out_ports);
}

int rn_model_outputs(const rn_model_t* model, const char* signature,
                     const rn_model_port_t** out_ports) {
  return ports(model, signature, 1, out_ports);
}

// The edges that |names| stand for; |*out| has room for |count|.
static rn_status_t find_edges(const signature_t* signature, int side, const char* const* names,
                              int count, TF_Output* out) {
  for (int i = 0; i < count; ++i) {
    int p = 0;
    while (p < signature->counts[side] && names[i] &&
           strcmp(signature->ports[side][p].name.data, names[i]) != 0)
      ++p;
    if (!names[i] || p == signature->counts[side])
      return rn_invalid_argument("The signature '%s' has no %s '%s'", signature->name,
                                 side ? "output" : "input", names[i] ? names[i] : "NULL");
    out[i] = rn_capi_output(signature->ports[side][p].edge);
  }
  return RN_OK;
}

static rn_status_t check_complete(const signature_t* signature, const char* const* names,
                                  int count) {
  for (int p = 0; p < signature->counts[0]; ++p) {
    int i = 0;
    while (i < count && strcmp(signature->ports[0][p].name.data, names[i]) != 0) ++i;
    if (i == count)
      return rn_invalid_argument("The signature '%s' wants the input '%s' too", signature->name,
                                 signature->ports[0][p].name.data);
  }
  return RN_OK;
}

static rn_status_t run(rn_model_t* model, const signature_t* signature,
                       const char* const* input_names, const char* const* output_names,
                       rn_capi_step_t* step, TF_Output* inputs, TF_Output* outputs) {
  RN_RETURN_IF_ERROR(find_edges(signature, 0, input_names, step->input_count, inputs));
  RN_RETURN_IF_ERROR(check_complete(signature, input_names, step->input_count));
  RN_RETURN_IF_ERROR(find_edges(signature, 1, output_names, step->output_count, outputs));
  step->inputs = inputs;
  step->outputs = outputs;
  RN_RETURN_IF_ERROR(rn_capi_step_check(step));
  return rn_capi_session_run(model->session, step, NULL, NULL);
}

void rn_model_run(rn_model_t* model, const char* signature, const char* const* input_names,
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
  const signature_t* found = find_signature(model, signature);
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

bool rn_saved_model_write(TF_Session* session, const char* folder, const rn_saved_model_def_t* def,
                          TF_Status* status) {
  if (!session || !folder || !def) {
    rn_capi_set(status, RN_CAPI_NULL(!session ? "session" : !folder ? "folder" : "def"));
    return false;
  }
  return rn_capi_ok(status, rn_saved_model_save(session->session, &session->origin, folder, def,
                                                rn_capi_env(), rn_capi_allocator()));
}
