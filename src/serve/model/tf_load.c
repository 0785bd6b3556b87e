// Loads a SavedModel for serving: see tf_internal.h.
#include "io/bundle.h"
#include "proto/serving_metadata.pb.h"
#include "saved_model/model.h"
#include "serve/model/effects.h"
#include "serve/model/labels.h"
#include "serve/model/tf_internal.h"
#include "tensor/tensor_proto.h"
#include "wire/encode.h"

typedef struct tf_load_t {
  rn_tf_backend_t* backend;
  const rn_tf_backend_options_t* options;
  rn_saved_model_t* file;  // Owned
  const rn_meta_graph_t* meta;
  rn_model_signature_t* models;  // by name, in the backend's arena
  int count;
} tf_load_t;

static rn_status_t open_graph(tf_load_t* load) {
  const rn_tf_backend_options_t* options = load->options;
  rn_tf_backend_t* backend = load->backend;
  RN_RETURN_IF_ERROR(
      rn_saved_model_open(options->env, rn_str(options->folder), options->allocator, &load->file));
  RN_RETURN_IF_ERROR(rn_saved_model_choose(load->file, options->tag_count ? options->tags : NULL,
                                           options->tag_count, &load->meta));
  RN_RETURN_IF_ERROR(rn_graph_create(options->allocator, &backend->graph));
  return rn_saved_model_blame(load->file, rn_meta_graph_import(load->meta, backend->graph));
}

// A model copied in file by file may lack some of them; the graph says which there must be.

static rn_status_t check_assets(tf_load_t* load, rn_arena_t* arena) {
  const rn_pb_AssetFileDef_t* assets = NULL;
  uint32_t count = 0;
  RN_RETURN_IF_ERROR(rn_meta_graph_assets(load->meta, arena, &assets, &count));
  for (uint32_t i = 0; i < count; ++i) {
    rn_str_t path;
    RN_RETURN_IF_ERROR(rn_arena_printf(arena, &path, "%s/assets/%.*s", load->options->folder,
                                       RN_STR_ARGS(assets[i].filename)));
    rn_file_stat_t stat;
    const rn_env_t* env = load->options->env;
    RN_RETURN_IF_ERROR(env->fs->stat(env->fs_self, path.data, &stat));
  }
  return RN_OK;
}

// Whether restoring does anything: the saver of a model without variables is an empty node.
static bool needs_checkpoint(const tf_load_t* load) {
  const rn_pb_SaverDef_t* saver = load->meta->def->saver_def;
  if (!saver || !saver->restore_op_name.size) return false;
  const rn_node_t* restore = rn_graph_find(load->backend->graph, saver->restore_op_name);
  return restore && (restore->input_count || restore->controls.count);
}

static rn_status_t check_checkpoint(tf_load_t* load, rn_arena_t* arena) {
  if (!needs_checkpoint(load)) return RN_OK;
  rn_str_t prefix;
  rn_bundle_reader_t* reader = NULL;
  RN_RETURN_IF_ERROR(
      rn_arena_printf(arena, &prefix, "%s/variables/variables", load->options->folder));
  RN_RETURN_IF_ERROR(rn_bundle_reader_open(load->options->env, prefix.data, &reader));
  rn_status_t status = RN_OK;
  for (size_t i = 0; rn_ok(status) && i < rn_bundle_count(reader); ++i)
    status = rn_bundle_check(reader, rn_bundle_entry(reader, i), NULL);
  rn_bundle_reader_close(reader);
  return status;
}

static rn_status_t check_files(tf_load_t* load) {
  rn_arena_t arena;
  rn_arena_init(&arena, load->options->allocator);
  rn_status_t status = check_assets(load, &arena);
  if (rn_ok(status)) status = check_checkpoint(load, &arena);
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t restore(tf_load_t* load) {
  const rn_tf_backend_options_t* options = load->options;
  rn_tf_backend_t* backend = load->backend;
  rn_session_options_t session = options->session;
  session.shares_pool = true;
  session.is_limited = true;
  session.folder = rn_str(options->folder);
  RN_RETURN_IF_ERROR(rn_session_create(backend->graph, &session, options->env, options->allocator,
                                       &backend->session));
  rn_step_options_t step = {.is_quiet = true};
  return rn_saved_model_blame(
      load->file, rn_meta_graph_restore(load->file, load->meta, backend->session, &step));
}

// Signatures.

static int by_name(const void* a, const void* b) {
  return strcmp(((const rn_model_signature_t*)a)->name, ((const rn_model_signature_t*)b)->name);
}

static rn_status_t describe_port(rn_arena_t* arena, const rn_port_t* from, rn_serve_port_t* out) {
  out->name = from->name;
  RN_RETURN_IF_ERROR(rn_arena_str(arena, from->info->name, &out->tensor));
  out->dtype = rn_dtype_base(from->edge.node->outputs[from->edge.index].dtype);
  out->shape = RN_SHAPE_UNKNOWN;
  if (!from->info->tensor_shape) return RN_OK;
  return rn_shape_from_proto(from->info->tensor_shape, arena, &out->shape);
}

static rn_status_t describe_ports(const tf_load_t* load, const rn_model_signature_t* model,
                                  int side, const rn_serve_port_t** out,
                                  const rn_edge_t** out_edges) {
  rn_arena_t* arena = &load->backend->arena;
  rn_serve_port_t* ports = NULL;
  rn_edge_t* edges = NULL;
  size_t count = (size_t)model->counts[side];
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &ports));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &edges));
  for (size_t i = 0; i < count; ++i) {
    RN_RETURN_IF_ERROR(describe_port(arena, &model->ports[side][i], &ports[i]));
    if (side == 1)
      RN_RETURN_IF_ERROR(
          rn_labels_read(load->options->env, load->options->folder, arena, &ports[i]));
    edges[i] = model->ports[side][i].edge;
  }
  *out = ports;
  *out_edges = edges;
  return RN_OK;
}

static bool has_open_rows(const rn_serve_port_t* ports, int count) {
  for (int i = 0; i < count; ++i)
    if (ports[i].shape.rank < 1 || ports[i].shape.dims[0] != RN_UNKNOWN) return false;
  return count > 0;
}

static rn_status_t describe(tf_load_t* load, const rn_model_signature_t* model,
                            rn_serve_signature_t* out, rn_signature_t* step) {
  rn_arena_t* arena = &load->backend->arena;
  const rn_pb_SignatureDef_t* def = NULL;
  out->name = rn_str(model->name);
  RN_RETURN_IF_ERROR(rn_meta_graph_signature(load->meta, out->name, &def));
  RN_RETURN_IF_ERROR(rn_arena_str(arena, def->method_name, &out->method));
  RN_RETURN_IF_ERROR(describe_ports(load, model, 0, &out->inputs, &step->feeds));
  RN_RETURN_IF_ERROR(describe_ports(load, model, 1, &out->outputs, &step->fetches));
  out->input_count = step->feed_count = model->counts[0];
  out->output_count = step->fetch_count = model->counts[1];
  out->is_batched = has_open_rows(out->inputs, out->input_count) &&
                    has_open_rows(out->outputs, out->output_count);
  return RN_OK;
}

// Equal inputs give equal outputs only as long as no signature changes what another reads.
static rn_status_t judge_effects(tf_load_t* load, rn_serve_signature_t* signatures) {
  bool changes = false;
  for (int i = 0; i < load->count; ++i) {
    rn_effects_t effects;
    RN_RETURN_IF_ERROR(rn_effects_of(load->backend->graph, &load->backend->signatures[i].step,
                                     &load->backend->arena, &effects, NULL));
    signatures[i].is_pure = effects == RN_EFFECTS_NONE;
    changes |= effects == RN_EFFECTS_CHANGE;
  }
  for (int i = 0; changes && i < load->count; ++i) signatures[i].is_pure = false;
  return RN_OK;
}

static rn_status_t describe_all(tf_load_t* load) {
  rn_tf_backend_t* backend = load->backend;
  rn_arena_t* arena = &backend->arena;
  rn_serve_signature_t* signatures = NULL;
  RN_RETURN_IF_ERROR(rn_saved_model_blame(
      load->file,
      rn_model_signatures(load->meta, backend->graph, arena, &load->models, &load->count)));
  if (load->count) qsort(load->models, (size_t)load->count, sizeof *load->models, by_name);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)load->count, &signatures));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)load->count, &backend->signatures));
  for (int i = 0; i < load->count; ++i)
    RN_RETURN_IF_ERROR(
        describe(load, &load->models[i], &signatures[i], &backend->signatures[i].step));
  backend->base.signatures = signatures;
  backend->base.signature_count = load->count;
  return judge_effects(load, signatures);
}

static rn_status_t write_meta(tf_load_t* load) {
  const rn_pb_MetaGraphDef_t* def = load->meta->def;
  rn_pb_serving_SignatureDefMap_t map = {0};
  rn_arena_t* arena = &load->backend->arena;
  uint32_t count = def->signature_def.count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)count, &map.signature_def.items));
  for (uint32_t i = 0; i < count; ++i) {
    map.signature_def.items[i].key = def->signature_def.items[i].key;
    map.signature_def.items[i].value = def->signature_def.items[i].value;
  }
  map.signature_def.count = count;
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, load->options->allocator);
  rn_pb_encode_options_t encode = {.sort_maps = true};
  rn_status_t status = RN_PB_ENCODE(serving_SignatureDefMap, &map, &encode, &bytes);
  if (rn_ok(status))
    status = rn_arena_str(arena, rn_strbuf_view(&bytes), &load->backend->base.meta);
  rn_strbuf_clear(&bytes);
  return status;
}

// Planning in advance.

// The most that a run on zeros may take, as a loop may not end for them, and the largest input.
#define TRIAL_MS 1000
#define TRIAL_BYTES ((size_t)64 << 20)

// The shape of |port| with |rows| rows; false if it has other open dimensions.
static bool shape_for(const rn_serve_port_t* port, int64_t rows, int64_t* dims, rn_shape_t* out) {
  if (port->shape.rank < 0 || port->shape.rank > RN_INLINE_DIMS) return false;
  for (int d = 0; d < port->shape.rank; ++d) {
    dims[d] = d == 0 && port->shape.dims[0] < 0 ? rows : port->shape.dims[d];
    if (dims[d] < 0) return false;
  }
  *out = (rn_shape_t){port->shape.rank, dims};
  return true;
}

static bool can_try(const rn_tensor_t* feeds, int count) {
  for (int i = 0; i < count; ++i) {
    bool is_value = rn_dtype_is_plain(feeds[i].dtype) || feeds[i].dtype == RN_STRING;
    if (!is_value || rn_tensor_bytes(&feeds[i]) > TRIAL_BYTES) return false;
  }
  return true;
}

// Runs a step once, on zeros, in this thread: kernels make and load things when they first run.
static rn_status_t run_trial(tf_load_t* load, const rn_signature_t* step, rn_tensor_t* feeds,
                             const rn_tensor_t* const* pointers, rn_arena_t* scratch) {
  rn_tensor_t* fetches = NULL;
  rn_step_options_t options = {.is_quiet = true, .timeout_ms = TRIAL_MS};
  rn_status_t status = RN_ARENA_ARRAY(scratch, (size_t)step->fetch_count, &fetches);
  for (int i = 0; rn_ok(status) && i < step->feed_count; ++i) {
    rn_tensor_t shape = feeds[i];
    status =
        rn_tensor_create(load->options->allocator, shape.dtype, rn_tensor_shape(&shape), &feeds[i]);
    if (rn_ok(status) && rn_dtype_is_plain(shape.dtype))
      memset(feeds[i].data, 0, rn_tensor_bytes(&feeds[i]));
  }
  if (rn_ok(status))
    status = rn_session_run(load->backend->session, step, pointers, fetches, &options);
  for (int i = 0; rn_ok(status) && i < step->fetch_count; ++i) rn_tensor_clear(&fetches[i]);
  for (int i = 0; i < step->feed_count; ++i) rn_tensor_clear(&feeds[i]);
  return status;
}

// Plans signature |s| for |rows| rows, unless other dimensions are open, too; then a trial, if that
// has no effects.
static rn_status_t plan_rows(tf_load_t* load, int s, int64_t rows, bool tries,
                             rn_arena_t* scratch) {
  const rn_serve_signature_t* signature = &load->backend->base.signatures[s];
  const rn_signature_t* step = &load->backend->signatures[s].step;
  rn_tensor_t* feeds = NULL;
  const rn_tensor_t** pointers = NULL;
  size_t count = (size_t)signature->input_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(scratch, count, &feeds));
  RN_RETURN_IF_ERROR(rn_arena_alloc_array(scratch, count, sizeof *pointers, (void**)&pointers));
  for (size_t i = 0; i < count; ++i) {
    int64_t dims[RN_INLINE_DIMS];
    rn_shape_t shape;
    if (!shape_for(&signature->inputs[i], rows, dims, &shape)) return RN_OK;
    RN_RETURN_IF_ERROR(rn_tensor_init(&feeds[i], signature->inputs[i].dtype, shape));
    pointers[i] = &feeds[i];
  }
  if (!tries) return rn_session_plan(load->backend->session, step, pointers);
  if (!signature->is_pure || !can_try(feeds, signature->input_count)) return RN_OK;
  return run_trial(load, step, feeds, pointers, scratch);
}

// Failures are left to the requests that have them.
static void plan_all(tf_load_t* load) {
  static const int64_t one = 1;
  const int64_t* sizes = load->options->size_count ? load->options->sizes : &one;
  int size_count = load->options->size_count ? load->options->size_count : 1;
  rn_arena_t scratch;
  rn_arena_init(&scratch, load->options->allocator);
  for (int s = 0; s < load->count; ++s) {
    for (int i = 0; i < size_count; ++i)
      rn_status_free(plan_rows(load, s, sizes[i], false, &scratch));
    rn_status_free(
        rn_session_plan(load->backend->session, &load->backend->signatures[s].step, NULL));
    rn_status_free(plan_rows(load, s, sizes[0], true, &scratch));
    if (load->backend->base.signatures[s].is_batched)  // the plan for all other sizes
      rn_status_free(plan_rows(load, s, sizes[size_count - 1] + 1, true, &scratch));
  }
  rn_arena_clear(&scratch);
}

static rn_status_t work(tf_load_t* load) {
  RN_RETURN_IF_ERROR(open_graph(load));
  RN_RETURN_IF_ERROR(check_files(load));
  RN_RETURN_IF_ERROR(restore(load));
  RN_RETURN_IF_ERROR(describe_all(load));
  RN_RETURN_IF_ERROR(write_meta(load));
  plan_all(load);
  return RN_OK;
}

rn_status_t rn_tf_load(rn_tf_backend_t* backend, const rn_tf_backend_options_t* options) {
  tf_load_t load = {.backend = backend, .options = options};
  rn_status_t status = work(&load);
  rn_saved_model_destroy(load.file);
  return status;
}
