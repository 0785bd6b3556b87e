// TF_DeprecatedSession: sessions that own their graph and refer to operations by name, the API
// before TF_Graph.
#include "capi/session.h"
#include "dist/client.h"
#include "graph/import.h"

struct TF_DeprecatedSession {
  TF_Session* session;  // Owned
  rn_graph_t* graph;    // Retained
  _Atomic bool has_graph;
};

static void destroy(TF_DeprecatedSession* session) {
  if (!session) return;
  rn_capi_session_destroy(session->session);
  rn_graph_release(session->graph);
  RN_FREE(rn_capi_allocator(), session);
}

TF_DeprecatedSession* TF_NewDeprecatedSession(const TF_SessionOptions* options, TF_Status* status) {
  TF_DeprecatedSession* session = NULL;
  rn_status_t outcome = RN_NEW(rn_capi_allocator(), &session);
  if (rn_ok(outcome)) outcome = rn_graph_create(rn_capi_allocator(), &session->graph);
  if (rn_ok(outcome)) {
    session->graph->keeps_misfits = true;
    outcome = rn_capi_session_create(session->graph, options, &session->session);
  }
  if (rn_capi_ok(status, outcome)) return session;
  destroy(session);
  return NULL;
}

void TF_CloseDeprecatedSession(TF_DeprecatedSession* session, TF_Status* status) {
  rn_capi_set(status,
              session ? rn_session_close(session->session->session) : RN_CAPI_NULL("session"));
}

void TF_DeleteDeprecatedSession(TF_DeprecatedSession* session, TF_Status* status) {
  destroy(session);
  rn_capi_set(status, RN_OK);
}

TF_DeviceList* TF_DeprecatedSessionListDevices(TF_DeprecatedSession* session, TF_Status* status) {
  TF_DeviceList* list = NULL;
  rn_capi_set(status,
              session ? rn_capi_session_devices(session->session, &list) : RN_CAPI_NULL("session"));
  return list;
}

static rn_status_t reset_cluster(const TF_SessionOptions* options, const char** containers,
                                 int count) {
  rn_client_options_t client_options = {.env = rn_capi_env(),
                                        .allocator = rn_capi_allocator(),
                                        .target = rn_str(options->target),
                                        .config = rn_strbuf_view(&options->config),
                                        .timeout_ms = options->parsed.timeout_ms};
  rn_client_t* client = NULL;
  rn_graph_t* graph = NULL;
  rn_str_t* names = NULL;
  rn_arena_t arena;
  rn_arena_init(&arena, rn_capi_allocator());
  rn_status_t status = RN_ARENA_ARRAY(&arena, (size_t)count, &names);
  for (int i = 0; rn_ok(status) && i < count; ++i) names[i] = rn_str(containers[i]);
  if (rn_ok(status)) status = rn_graph_create(rn_capi_allocator(), &graph);
  if (rn_ok(status)) status = rn_client_create(&client_options, graph, &client);
  if (rn_ok(status)) status = rn_client_reset(client, names, (size_t)count);
  rn_client_destroy(client);
  rn_graph_release(graph);
  rn_arena_clear(&arena);
  return status;
}

// Containers belong to a session and are freed with it, so there are none to clear in this process.
void TF_Reset(const TF_SessionOptions* opt, const char** containers, int ncontainers,
              TF_Status* status) {
  rn_status_t outcome = RN_OK;
  if (ncontainers < 0 || (ncontainers > 0 && !containers)) {
    outcome = rn_invalid_argument("TF_Reset: bad list of %d containers", ncontainers);
  } else if (opt && opt->target && rn_client_is_target(rn_str(opt->target))) {
    outcome = reset_cluster(opt, containers, ncontainers);
  } else if (opt && opt->target && *opt->target) {
    outcome = rn_not_found("No session factory registered for target \"%s\"", opt->target);
  }
  rn_capi_set(status, outcome);
}

// TF_ExtendGraph has its own message for a name that is taken.
static rn_status_t translate(rn_status_t status) {
  static const char start[] = "Node name '";
  const char* message = rn_status_message(status);
  if (strncmp(message, start, sizeof start - 1) != 0) return status;
  const char* name = message + sizeof start - 1;
  const char* end = strchr(name, '\'');
  if (!end) return status;
  rn_status_t said = rn_invalid_argument(
      "GraphDef argument to Extend includes node '%.*s', which was created by a previous call to "
      "Create or Extend in this session.",
      (int)(end - name), name);
  rn_status_free(status);
  return said;
}

void TF_ExtendGraph(TF_DeprecatedSession* session, const void* proto, size_t proto_len,
                    TF_Status* status) {
  if (!session || (!proto && proto_len)) {
    rn_capi_set(status, RN_CAPI_NULL(session ? "proto" : "session"));
    return;
  }
  rn_import_options_t options = {.validate_colocation = true, .extends = true};
  rn_import_results_t results = {0};
  rn_status_t outcome =
      rn_graph_import(session->graph, rn_str_n(proto, proto_len), &options, &results);
  rn_import_results_clear(&results);
  if (rn_ok(outcome)) {
    session->has_graph = true;
  } else {
    outcome = translate(outcome);
  }
  rn_capi_set(status, outcome);
}

typedef enum said_by_t { BY_RUN, BY_SETUP_FEED, BY_SETUP_FETCH } said_by_t;

static rn_status_t not_found(rn_tensor_id_t id, const char* text, said_by_t by) {
  switch (by) {
    case BY_SETUP_FEED:
      return rn_not_found("FeedInputs: unable to find feed output %s", text);
    case BY_SETUP_FETCH:
      return rn_not_found("FetchOutputs node %s: not found", text);
    default:
      return rn_invalid_argument(
          "Tensor %.*s:%d, specified in either feed_devices or fetch_devices was not found in the "
          "Graph",
          RN_STR_ARGS(id.name), id.index);
  }
}

static rn_status_t find_outputs(TF_DeprecatedSession* session, const char** names, int count,
                                said_by_t by, TF_Output* out) {
  for (int i = 0; i < count; ++i) {
    if (!names[i]) return rn_invalid_argument("The name of a tensor is NULL");
    rn_tensor_id_t id = rn_tensor_id_parse(rn_str(names[i]));
    rn_edge_t edge = {rn_graph_find(session->graph, id.name), id.index};
    if (!edge.node) return not_found(id, names[i], by);
    if (!rn_capi_has_output(edge)) {
      return rn_out_of_range("Node '%s' (type: '%s', num of outputs: %d) does not have output %d",
                             edge.node->name.data, edge.node->op->name, edge.node->output_count,
                             edge.index);
    }
    out[i] = rn_capi_output(edge);
  }
  return RN_OK;
}

// A step after its names were looked up.
typedef struct named_step_t {
  const char** input_names;
  TF_Tensor** inputs;
  int ninputs;
  const char** output_names;
  TF_Tensor** outputs;
  int noutputs;
  const char** target_names;
  int ntargets;
} named_step_t;

static rn_status_t resolve(TF_DeprecatedSession* session, const named_step_t* named, bool is_setup,
                           rn_arena_t* arena, rn_capi_step_t* out) {
  if (named->ninputs < 0 || named->noutputs < 0 || named->ntargets < 0 ||
      (named->ninputs && !named->input_names) || (named->noutputs && !named->output_names) ||
      (named->ntargets && !named->target_names)) {
    return rn_invalid_argument("Session::Run: bad list of names");
  }
  TF_Output *inputs, *outputs;
  const TF_Operation** targets;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)named->ninputs, &inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)named->noutputs, &outputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)named->ntargets, &targets));
  RN_RETURN_IF_ERROR(find_outputs(session, named->input_names, named->ninputs,
                                  is_setup ? BY_SETUP_FEED : BY_RUN, inputs));
  RN_RETURN_IF_ERROR(find_outputs(session, named->output_names, named->noutputs,
                                  is_setup ? BY_SETUP_FETCH : BY_RUN, outputs));
  for (int i = 0; i < named->ntargets; ++i) {
    rn_node_t* node = named->target_names[i]
                          ? rn_graph_find(session->graph, rn_str(named->target_names[i]))
                          : NULL;
    if (!node) {
      return rn_not_found("PruneForTargets: Some target nodes not found: %s ",
                          named->target_names[i] ? named->target_names[i] : "NULL");
    }
    targets[i] = rn_capi_oper(node);
  }
  *out = (rn_capi_step_t){inputs,         named->inputs,   named->ninputs, outputs,
                          named->outputs, named->noutputs, targets,        named->ntargets};
  return RN_OK;
}

static rn_status_t check_session(TF_DeprecatedSession* session, const char* what) {
  if (!session) return rn_invalid_argument("The session is NULL");
  if (session->has_graph) return RN_OK;
  return rn_invalid_argument("Session was not created with a graph before %s()!", what);
}

void TF_Run(TF_DeprecatedSession* session, const TF_Buffer* run_options, const char** input_names,
            TF_Tensor** inputs, int ninputs, const char** output_names, TF_Tensor** outputs,
            int noutputs, const char** target_oper_names, int ntargets, TF_Buffer* run_metadata,
            TF_Status* status) {
  named_step_t named = {input_names, inputs,   ninputs,           output_names,
                        outputs,     noutputs, target_oper_names, ntargets};
  rn_capi_step_t step;
  rn_arena_t arena;
  rn_arena_init(&arena, rn_capi_allocator());
  RN_CAPI_CLEAR(outputs, noutputs);
  rn_status_t outcome = check_session(session, "Run");
  if (rn_ok(outcome)) outcome = resolve(session, &named, false, &arena, &step);
  if (rn_ok(outcome)) {
    outcome = rn_capi_session_run(session->session, &step, run_options, run_metadata);
  } else {
    rn_capi_no_metadata(run_metadata);
  }
  rn_arena_clear(&arena);
  rn_capi_set(status, outcome);
}

void TF_PRunSetup(TF_DeprecatedSession* session, const char** input_names, int ninputs,
                  const char** output_names, int noutputs, const char** target_oper_names,
                  int ntargets, const char** handle, TF_Status* status) {
  named_step_t named = {.input_names = input_names,
                        .ninputs = ninputs,
                        .output_names = output_names,
                        .noutputs = noutputs,
                        .target_names = target_oper_names,
                        .ntargets = ntargets};
  rn_capi_step_t step;
  rn_arena_t arena;
  rn_arena_init(&arena, rn_capi_allocator());
  if (handle) *handle = NULL;
  rn_status_t outcome = handle ? check_session(session, "PRunSetup") : RN_CAPI_NULL("handle");
  if (rn_ok(outcome)) outcome = resolve(session, &named, true, &arena, &step);
  if (rn_ok(outcome)) outcome = rn_capi_partial_setup(session->session, &step, handle);
  rn_arena_clear(&arena);
  rn_capi_set(status, outcome);
}

void TF_PRun(TF_DeprecatedSession* session, const char* handle, const char** input_names,
             TF_Tensor** inputs, int ninputs, const char** output_names, TF_Tensor** outputs,
             int noutputs, const char** target_oper_names, int ntargets, TF_Status* status) {
  named_step_t named = {input_names, inputs,   ninputs,           output_names,
                        outputs,     noutputs, target_oper_names, ntargets};
  rn_capi_step_t step;
  rn_arena_t arena;
  rn_arena_init(&arena, rn_capi_allocator());
  RN_CAPI_CLEAR(outputs, noutputs);
  rn_status_t outcome = check_session(session, "PRun");
  if (rn_ok(outcome)) outcome = resolve(session, &named, false, &arena, &step);
  if (rn_ok(outcome)) outcome = rn_capi_partial_run(session->session, handle, &step);
  rn_arena_clear(&arena);
  rn_capi_set(status, outcome);
}
