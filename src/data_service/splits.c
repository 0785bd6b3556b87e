// Splits of datasets: see splits.h.
#include "data_service/splits.h"

#include "data_service/pipeline.h"
#include "data_service/state.h"

typedef struct ds_source_t {
  int64_t count, start, step;  // split i is start + i * step; |count| -1: without end
} ds_source_t;

struct rn_ds_splits_t {
  rn_allocator_t allocator;
  RN_VEC(ds_source_t) sources;
};

// Sources by the number of an element. A range's splits are its elements.
static const char* const indexed[] = {"TensorSliceDataset", "TensorDataset",
                                      "SparseTensorSliceDataset", "ListDataset", NULL};

typedef struct ds_visit_t {
  rn_ds_splits_t* splits;
  rn_ds_graph_t* graph;
  rn_session_t* session;
  rn_cancel_t* cancel;
  RN_VEC(const rn_node_t*) nodes;  // of the sources
} ds_visit_t;

static rn_status_t fetch_number(const ds_visit_t* visit, rn_edge_t edge, int64_t* out) {
  rn_tensor_t value = {0};
  rn_signature_t step = {.fetches = &edge, .fetch_count = 1};
  const rn_step_options_t options = {.cancel = visit->cancel};
  RN_RETURN_IF_ERROR(rn_session_run(visit->session, &step, NULL, &value, &options));
  bool is_number = value.dtype == RN_INT64 && value.count == 1;
  if (is_number) *out = *RN_DATA(&value, const int64_t);
  rn_tensor_clear(&value);
  return is_number ? RN_OK : rn_invalid_argument("A range's limits must be integers");
}

static rn_status_t read_source(const ds_visit_t* visit, rn_node_t* source, ds_source_t* out) {
  ds_source_t found = {.step = 1};
  bool is_range = strcmp(source->op->name, "RangeDataset") == 0, is_indexed = false;
  for (const char* const* name = indexed; *name; ++name)
    is_indexed |= strcmp(source->op->name, *name) == 0;
  if (!is_range && !is_indexed)
    return rn_unimplemented(
        "Cannot create split providers for dataset of type %.*s, because the dataset implements "
        "neither `InputDatasets` nor `MakeSplitProvider`.",
        (int)(strlen(source->op->name) - strlen("Dataset")), source->op->name);
  rn_edge_t dataset = {source, 0}, number;
  rn_node_t* node = NULL;
  rn_node_spec_t spec = {.op = RN_STR("DatasetCardinality"),
                         .name = RN_STR("splits/count"),
                         .inputs = &dataset,
                         .input_count = 1};
  RN_RETURN_IF_ERROR(rn_graph_add_unique(visit->graph->graph, &spec, &node));
  number = (rn_edge_t){node, 0};
  RN_RETURN_IF_ERROR(fetch_number(visit, number, &found.count));
  if (is_range) {
    RN_RETURN_IF_ERROR(fetch_number(visit, source->inputs[0], &found.start));
    RN_RETURN_IF_ERROR(fetch_number(visit, source->inputs[2], &found.step));
  }
  *out = found;
  return RN_OK;
}

// A source that is read in several ways counts as several.
static rn_status_t add_source(void* arg, rn_node_t* source, rn_node_t* user, int input) {
  (void)user;
  (void)input;
  ds_visit_t* visit = arg;
  rn_ds_splits_t* splits = visit->splits;
  ds_source_t found;
  size_t known = 0;
  if (splits->sources.count == RN_DS_MAX_SOURCES)
    return rn_invalid_argument("The dataset reads sources in more than %d ways", RN_DS_MAX_SOURCES);
  while (known < visit->nodes.count && visit->nodes.items[known] != source) known++;
  if (known < visit->nodes.count)
    found = splits->sources.items[known];
  else
    RN_RETURN_IF_ERROR(read_source(visit, source, &found));
  RN_RETURN_IF_ERROR(rn_vec_push(&visit->nodes, splits->allocator, source));
  return rn_vec_push(&splits->sources, splits->allocator, found);
}

rn_status_t rn_ds_splits_create(const rn_env_t* env, rn_allocator_t allocator, rn_str_t bytes,
                                rn_cancel_t* cancel, rn_ds_splits_t** out) {
  *out = NULL;
  rn_ds_splits_t* splits = NULL;
  rn_ds_graph_t graph;
  rn_session_t* session = NULL;
  RN_RETURN_IF_ERROR(rn_ds_graph_load(bytes, allocator, &graph));
  rn_status_t status = RN_NEW(allocator, &splits);
  if (rn_ok(status)) {
    splits->allocator = allocator;
    status = rn_ds_session(&graph, env, allocator, &session);
  }
  ds_visit_t visit = {.splits = splits, .graph = &graph, .session = session, .cancel = cancel};
  if (rn_ok(status)) status = rn_ds_graph_sources(&graph, add_source, &visit);
  rn_vec_free(&visit.nodes, allocator);
  rn_session_destroy(session);
  rn_ds_graph_clear(&graph);
  if (!rn_ok(status)) {
    rn_ds_splits_destroy(splits);
    return status;
  }
  *out = splits;
  return RN_OK;
}

void rn_ds_splits_destroy(rn_ds_splits_t* splits) {
  if (!splits) return;
  rn_vec_free(&splits->sources, splits->allocator);
  RN_FREE(splits->allocator, splits);
}

int64_t rn_ds_splits_count(const rn_ds_splits_t* splits) { return (int64_t)splits->sources.count; }

bool rn_ds_splits_get(const rn_ds_splits_t* splits, int64_t source, int64_t index, int64_t* out) {
  const ds_source_t* from = &splits->sources.items[source];
  if (from->count >= 0 && index >= from->count) return false;
  // A range has so many elements that none of them overflows.
  *out = (int64_t)((uint64_t)from->start + (uint64_t)index * (uint64_t)from->step);
  return true;
}
