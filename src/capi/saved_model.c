// TF_LoadSessionFromSavedModel.
#include "saved_model/saved_model.h"

#include "capi/session.h"
#include "graph/build.h"

#define MOST_TAGS 64

typedef struct load_t {
  rn_saved_model_t* model;  // Owned
  const rn_meta_graph_t* meta;
  TF_Session* session;  // Owned
} load_t;

static void load_clear(load_t* load) {
  rn_saved_model_destroy(load->model);
  rn_capi_session_destroy(load->session);
}

static rn_status_t check_arguments(const char* folder, const char* const* tags, int tag_count,
                                   rn_graph_t* graph, const TF_Buffer* meta_graph_def) {
  if (!folder) return RN_CAPI_NULL("export_dir");
  if (!graph) return RN_CAPI_NULL("graph");
  if (tag_count < 0 || tag_count > MOST_TAGS || (tag_count && !tags))
    return rn_invalid_argument("bad list of %d tags", tag_count);
  for (int i = 0; i < tag_count; ++i)
    if (!tags[i]) return RN_CAPI_NULL("tags");
  rn_mutex_lock(&graph->mutex);
  bool is_empty = graph->nodes.count == 0;
  rn_mutex_unlock(&graph->mutex);
  if (!is_empty) return rn_invalid_argument("Graph is non-empty.");
  return meta_graph_def ? rn_capi_buffer_check(meta_graph_def) : RN_OK;
}

static rn_status_t load(load_t* load, const char* folder, const rn_str_t* tags, int tag_count,
                        rn_graph_t* graph, const TF_SessionOptions* options,
                        const TF_Buffer* run_options) {
  rn_step_options_t step = {0};
  RN_RETURN_IF_ERROR(rn_capi_timeout(run_options, &step.timeout_ms));
  RN_RETURN_IF_ERROR(
      rn_saved_model_open(rn_capi_env(), rn_str(folder), rn_capi_allocator(), &load->model));
  RN_RETURN_IF_ERROR(rn_saved_model_find(load->model, tags, tag_count, &load->meta));
  RN_RETURN_IF_ERROR(rn_saved_model_blame(load->model, rn_meta_graph_import(load->meta, graph)));
  RN_RETURN_IF_ERROR(rn_capi_session_create_for(graph, options, folder, &load->session));
  load->session->origin = (rn_model_origin_t){load->model, load->meta, graph->nodes.count};
  return rn_saved_model_blame(
      load->model, rn_meta_graph_restore(load->model, load->meta, load->session->session, &step));
}

static rn_status_t give_meta(const rn_meta_graph_t* meta, TF_Buffer* out) {
  if (!out) return RN_OK;
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, rn_capi_allocator());
  rn_strbuf_append(&bytes, meta->bytes);
  rn_status_t status = rn_strbuf_status(&bytes);
  if (rn_ok(status)) return rn_capi_buffer_take(&bytes, out);
  rn_strbuf_clear(&bytes);
  return status;
}

// After a failure the graph is unchanged, so the client may retry with it.
static void empty(rn_graph_t* graph) {
  rn_mutex_lock(&graph->mutex);
  rn_graph_take_back_locked(graph, 0, RN_STR(""));
  rn_mutex_unlock(&graph->mutex);
}

TF_Session* TF_LoadSessionFromSavedModel(const TF_SessionOptions* session_options,
                                         const TF_Buffer* run_options, const char* export_dir,
                                         const char* const* tags, int tags_len, TF_Graph* graph,
                                         TF_Buffer* meta_graph_def, TF_Status* status) {
  if (!rn_capi_ok(status, check_arguments(export_dir, tags, tags_len, rn_capi_graph(graph),
                                          meta_graph_def)))
    return NULL;
  rn_str_t names[MOST_TAGS];
  for (int i = 0; i < tags_len; ++i) names[i] = rn_str(tags[i]);
  load_t loaded = {0};
  rn_status_t outcome = load(&loaded, export_dir, names, tags_len, rn_capi_graph(graph),
                             session_options, run_options);
  if (rn_ok(outcome)) outcome = give_meta(loaded.meta, meta_graph_def);
  TF_Session* session = NULL;
  if (rn_ok(outcome)) {
    session = loaded.session;
    loaded.session = NULL;
    // Kept for writing the model again, if it has parts that only the file contains.
    if (loaded.meta->object_graph.size) {
      session->origin_file = loaded.model;
      loaded.model = NULL;
    } else {
      session->origin = (rn_model_origin_t){0};
    }
  }
  load_clear(&loaded);
  if (!rn_ok(outcome)) empty(rn_capi_graph(graph));
  rn_capi_set(status, outcome);
  return session;
}
