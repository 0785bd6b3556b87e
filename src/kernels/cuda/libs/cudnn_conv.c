// Plans of convolutions: see cudnn_conv.h.
//
// cuDNN's heuristics name engines for a graph, the likely fastest first. The first few that accept
// the shape are run and timed; the fastest is kept, and remembered across processes: as the text
// that cuDNN makes of the plan, and as its place in the list of the heuristic, in case that cuDNN
// does not read the text.
#include "device/cuda/recording.h"
#include "kernels/cuda/libs/choices.h"
#include "kernels/cuda/libs/cudnn_graph.h"
#include "kernels/cuda/nn/conv_args.h"
#include "kernels/cuda/nn/conv_plain.h"

#define MOST_CONFIGS 16                    // asked of a heuristic
#define MOST_TIMED 5                       // plans
#define MOST_WORKSPACE (INT64_C(4) << 30)  // bytes, as stock's limit
#define COSTLY_WORKSPACE 0x1p35f           // counts as much as the time: 1 GiB must save 3 %
// An engine may take as much as its tensors and this much more, if there is one that does not need
// more: on an H200, those that take more were never the fastest.
#define SMALL_WORKSPACE (INT64_C(64) << 20)
#define TIMED_RUNS 3
#define MOST_NOTES 16
#define MOST_TEXT (INT64_C(32) << 20)  // bytes
// Of the largest number of a result. On an H200, sums of 200,000 floats come to 1e-5, an engine for
// gradients of filters that transforms, and has no note of it, to 5e-5 for 3 x 3 and 6e-3 for 5
// x 5.
#define MOST_ERROR 2e-5f

// A plan. What it was made of lives as long.
typedef struct conv_plan_t {
  rn_cuda_conv_t conv;  // the key of the map
  int64_t workspace;
  int64_t mode, place;                    // of the heuristic, and in its list
  cudnnBackendDescriptor_t config, plan;  // NULL if cuDNN has no engine
  bool is_remembered;                     // another process has found it
  rn_cudnn_graph_t graph;
} conv_plan_t;

static void drop(const rn_cudnn_t* cudnn, cudnnBackendDescriptor_t* descriptor) {
  if (*descriptor) cudnn->api.cudnnBackendDestroyDescriptor(*descriptor);
  *descriptor = NULL;
}

// Empties |plan|.
static void drop_plan(const rn_cudnn_t* cudnn, conv_plan_t* plan) {
  drop(cudnn, &plan->plan);
  drop(cudnn, &plan->config);
  rn_cudnn_graph_drop(&plan->graph);
  *plan = (conv_plan_t){.conv = plan->conv};
}

void rn_cudnn_drop_plans(rn_cudnn_t* cudnn) {
  size_t position = 0;
  const rn_map_entry_t* entry;
  while ((entry = rn_map_next(&cudnn->plans, &position))) {
    conv_plan_t* plan = entry->value;
    drop_plan(cudnn, plan);
    RN_FREE(rn_allocator_system(), plan);
  }
}

rn_status_t rn_cuda_conv_turn(const rn_kernel_ctx_t* ctx, const rn_cuda_conv_t* conv,
                              const void* from, void* to, bool back) {
  int64_t positions = conv->axes[0].filter * conv->axes[1].filter * conv->axes[2].filter;
  int64_t depth = conv->in_depth / conv->groups;
  conv_turn_args args = {.from = from,
                         .to = to,
                         .positions = positions,
                         .depth = depth,
                         .out_depth = conv->out_depth,
                         .is_channels_first = (i32)conv->is_channels_first,
                         .is_back = back};
  int64_t tiles = ((positions * depth + 31) / 32) * ((conv->out_depth + 31) / 32);
  int64_t most = (int64_t)rn_cuda_card(ctx)->multiprocessors * 16;
  rn_cuda_grid_t grid = {.x = (unsigned)(tiles < most ? tiles : most), .block_x = 32, .block_y = 8};
  rn_cuda_name_t name = rn_cuda_size_name("nn/conv/turn", (rn_dtype_t)conv->dtype);
  return rn_cuda_launch(ctx, name.text, grid, &args, sizeof args);
}

static rn_status_t failed(const rn_cudnn_t* cudnn, const char* call, cudnnStatus_t status) {
  return rn_internal("%s: %s", call, cudnn->api.cudnnGetErrorString(status));
}

static rn_status_t execute(rn_cudnn_t* cudnn, CUstream stream, const conv_plan_t* plan,
                           const rn_cuda_conv_data_t* data, void* workspace) {
  int64_t numbers[5] = {RN_CUDNN_X, RN_CUDNN_W, RN_CUDNN_Y}, count = 3;
  void* addresses[5] = {data->x, data->w, data->y};
  if (plan->conv.has_bias) numbers[count] = RN_CUDNN_BIAS, addresses[count++] = data->bias;
  if (plan->conv.has_residual)
    numbers[count] = RN_CUDNN_RESIDUAL, addresses[count++] = data->residual;
  rn_cudnn_graph_t pack = {.cudnn = cudnn};
  cudnnBackendDescriptor_t made = rn_cudnn_make(&pack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  rn_cudnn_set(&pack, made, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, numbers);
  rn_cudnn_set(&pack, made, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
               addresses);
  rn_cudnn_set(&pack, made, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  rn_cudnn_finish(&pack, made);
  cudnnStatus_t status = pack.status;
  if (status == CUDNN_STATUS_SUCCESS) status = cudnn->api.cudnnSetStream(cudnn->handle, stream);
  if (status == CUDNN_STATUS_SUCCESS)
    status = cudnn->api.cudnnBackendExecute(cudnn->handle, plan->plan, made);
  rn_cudnn_graph_drop(&pack);
  return status == CUDNN_STATUS_SUCCESS ? RN_OK : failed(cudnn, "cudnnBackendExecute", status);
}

// Issues |plan|, with |filter| as space for the reordered filter if it needs one.
static rn_status_t issue(const rn_kernel_ctx_t* ctx, rn_cudnn_t* cudnn, const conv_plan_t* plan,
                         rn_cuda_conv_data_t data, void* filter, void* workspace) {
  const rn_cuda_conv_t* conv = &plan->conv;
  bool turns = conv->filter != RN_CUDA_FILTER_TURNED;
  bool is_back = conv->kind == RN_CONV_FILTER;
  void* plain = data.w;
  if (turns) data.w = filter;
  if (turns && !is_back) RN_RETURN_IF_ERROR(rn_cuda_conv_turn(ctx, conv, plain, filter, false));
  CUstream stream = rn_cuda_stream(rn_cuda_card(ctx));
  RN_RETURN_IF_ERROR(execute(cudnn, stream, plan, &data, workspace));
  return turns && is_back ? rn_cuda_conv_turn(ctx, conv, filter, plain, true) : RN_OK;
}

// Calls |use| with the memory that |plan| needs.
typedef rn_status_t (*use_t)(const rn_kernel_ctx_t* ctx, rn_cudnn_t* cudnn, const conv_plan_t* plan,
                             const rn_cuda_conv_data_t* data, void* filter, void* workspace,
                             void* arg);
static rn_status_t with_memory(rn_kernel_ctx_t* ctx, rn_cudnn_t* cudnn, const conv_plan_t* plan,
                               const rn_cuda_conv_data_t* data, use_t use, void* arg) {
  rn_tensor_t filter = {0}, workspace = {0};
  int64_t size = rn_cuda_conv_filter_size(&plan->conv);
  rn_status_t status = RN_OK;
  // What a recording takes is never moved, so that all its convolutions should take the same, and
  // before the filter takes a part of it.
  int64_t most = cudnn->workspace > plan->workspace ? cudnn->workspace : plan->workspace;
  int64_t bytes = rn_cuda_is_recording(rn_cuda_card(ctx)) ? most : plan->workspace;
  if (plan->workspace) status = rn_temp(ctx, RN_UINT8, (rn_shape_t){1, &bytes}, &workspace);
  if (rn_ok(status) && plan->conv.filter != RN_CUDA_FILTER_TURNED)
    status = rn_temp(ctx, (rn_dtype_t)plan->conv.dtype, (rn_shape_t){1, &size}, &filter);
  if (rn_ok(status)) status = use(ctx, cudnn, plan, data, filter.data, workspace.data, arg);
  rn_tensor_clear(&filter);  // later work may use it: it is issued after this
  rn_tensor_clear(&workspace);
  return status;
}

static rn_status_t use_once(const rn_kernel_ctx_t* ctx, rn_cudnn_t* cudnn, const conv_plan_t* plan,
                            const rn_cuda_conv_data_t* data, void* filter, void* workspace,
                            void* arg) {
  (void)arg;
  return issue(ctx, cudnn, plan, *data, filter, workspace);
}

// Measuring.

typedef struct timing_t {
  CUevent begin, end;
  float best;  // milliseconds of the fastest plan so far
  float time;  // of this one
} timing_t;

static rn_status_t use_timed(const rn_kernel_ctx_t* ctx, rn_cudnn_t* cudnn, const conv_plan_t* plan,
                             const rn_cuda_conv_data_t* data, void* filter, void* workspace,
                             void* arg) {
  timing_t* timing = arg;
  rn_cuda_card_t* card = rn_cuda_card(ctx);
  // The first run loads code.
  RN_RETURN_IF_ERROR(issue(ctx, cudnn, plan, *data, filter, workspace));
  for (int i = 0; i < TIMED_RUNS; ++i) {
    float time = 0;
    RN_RETURN_IF_ERROR(RN_CARD(card, cuEventRecord, timing->begin, rn_cuda_stream(card)));
    RN_RETURN_IF_ERROR(issue(ctx, cudnn, plan, *data, filter, workspace));
    RN_RETURN_IF_ERROR(RN_CARD(card, cuEventRecord, timing->end, rn_cuda_stream(card)));
    RN_RETURN_IF_ERROR(rn_cuda_await(card, timing->end));
    RN_RETURN_IF_ERROR(RN_CARD(card, cuEventElapsedTime, &time, timing->begin, timing->end));
    if (i == 0 || time < timing->time) timing->time = time;
    if (timing->time > 2 * timing->best) break;
  }
  return RN_OK;
}

// Floats in full precision: no TF32, and no transform, whose error grows with the image.
#define ROUGH_NOTES                                                                            \
  (1 << CUDNN_NUMERICAL_NOTE_TENSOR_CORE | 1 << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS |     \
   1 << CUDNN_NUMERICAL_NOTE_FFT | 1 << CUDNN_NUMERICAL_NOTE_WINOGRAD |                        \
   1 << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4 | 1 << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6 | \
   1 << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13)

// The notes of engines that may not compute |conv|, as bits.
static int64_t refused_notes(const rn_cudnn_t* cudnn, const rn_cuda_conv_t* conv) {
  int64_t notes = 1 << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
  if (conv->dtype == RN_FLOAT && !cudnn->allows_tf32) notes |= ROUGH_NOTES;
  if (cudnn->is_deterministic) notes |= 1 << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
  return notes;
}

// Whether the numbers that the engine of |config| computes are good enough.
static bool is_allowed(const rn_cudnn_t* cudnn, const rn_cuda_conv_t* conv,
                       cudnnBackendDescriptor_t config) {
  const rn_cudnn_api_t* api = &cudnn->api;
  cudnnBackendDescriptor_t engine = NULL;
  int notes[MOST_NOTES];
  int64_t count = 0, one = 0;
  cudnnStatus_t status =
      api->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine);
  if (status == CUDNN_STATUS_SUCCESS)
    status = api->cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &one, &engine);
  if (status == CUDNN_STATUS_SUCCESS)
    status = api->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                           CUDNN_TYPE_NUMERICAL_NOTE, MOST_NOTES, &count, notes);
  drop(cudnn, &engine);
  const int64_t refused = refused_notes(cudnn, conv);
  if (status != CUDNN_STATUS_SUCCESS)
    return refused == 1 << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
  bool is_ok = true;
  for (int64_t i = 0; i < count && i < MOST_NOTES; ++i) is_ok &= !(refused >> notes[i] & 1);
  return is_ok;
}

// Asks a heuristic for configs of |graph|; the caller owns them.
static int64_t ask(const rn_cudnn_t* cudnn, const rn_cudnn_graph_t* graph, int mode,
                   cudnnBackendDescriptor_t configs[MOST_CONFIGS]) {
  rn_cudnn_graph_t query = {.cudnn = cudnn};
  cudnnBackendDescriptor_t made = rn_cudnn_make(&query, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  rn_cudnn_set(&query, made, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR,
               1, &graph->graph);
  rn_cudnn_set(&query, made, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  rn_cudnn_finish(&query, made);
  int64_t count = 0, room = 0;
  while (query.status == CUDNN_STATUS_SUCCESS && room < MOST_CONFIGS) {
    query.status =
        cudnn->api.cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[room]);
    if (query.status == CUDNN_STATUS_SUCCESS) ++room;
  }
  if (query.status == CUDNN_STATUS_SUCCESS)
    query.status = cudnn->api.cudnnBackendGetAttribute(
        made, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, room, &count, configs);
  if (query.status != CUDNN_STATUS_SUCCESS) count = 0;
  if (count > room) count = room;
  for (int64_t i = count; i < room; ++i) drop(cudnn, &configs[i]);
  rn_cudnn_graph_drop(&query);
  return count;
}

// Makes the plan of |config|, or of |text| if that is NULL; false if the engine refuses.
static bool make_plan(const rn_cudnn_t* cudnn, cudnnBackendDescriptor_t config, rn_str_t text,
                      conv_plan_t* plan) {
  const rn_cudnn_api_t* api = &cudnn->api;
  int64_t one = 0;
  rn_cudnn_graph_t made = {.cudnn = cudnn};
  cudnnBackendDescriptor_t out = rn_cudnn_make(&made, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  if (config)
    rn_cudnn_set(&made, out, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                 1, &config);
  else
    rn_cudnn_set(&made, out, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                 (int64_t)text.size, text.data);
  rn_cudnn_set(&made, out, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &cudnn->handle);
  rn_cudnn_finish(&made, out);
  if (made.status == CUDNN_STATUS_SUCCESS)
    made.status = api->cudnnBackendGetAttribute(out, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                CUDNN_TYPE_INT64, 1, &one, &plan->workspace);
  if (made.status != CUDNN_STATUS_SUCCESS || plan->workspace > MOST_WORKSPACE) {
    rn_cudnn_graph_drop(&made);
    return false;
  }
  plan->config = config;
  plan->plan = out;
  return true;
}

typedef struct search_t {
  rn_kernel_ctx_t* ctx;
  rn_cudnn_t* cudnn;
  const rn_cuda_conv_data_t* data;
  timing_t timing;
  bool is_timed;      // false: the first plan is taken
  bool is_checked;    // results are compared with ours
  rn_tensor_t exact;  // ours, once there is a plan to compare with
  int64_t mode;       // what another process has found; -1: all are tried
  int64_t place;
  int64_t most_workspace;
  conv_plan_t* best;  // without its graph
} search_t;

// Where |conv| writes to.
static void* result_of(const rn_cuda_conv_t* conv, const rn_cuda_conv_data_t* data) {
  return conv->kind == RN_CONV_FORWARD ? data->y : conv->kind == RN_CONV_INPUT ? data->x : data->w;
}

static int64_t result_size(const rn_cuda_conv_t* conv) {
  int64_t size = conv->batch;
  if (conv->kind == RN_CONV_FILTER) return rn_cuda_conv_filter_size(conv);
  for (int a = 0; a < 3; ++a)
    size *= conv->kind == RN_CONV_FORWARD ? conv->axes[a].out : conv->axes[a].in;
  return size * (conv->kind == RN_CONV_FORWARD ? conv->out_depth : conv->in_depth);
}

// Bytes of x, w and y.
static int64_t tensor_bytes(const rn_cuda_conv_t* conv) {
  int64_t x = conv->batch * conv->in_depth, y = conv->batch * conv->out_depth;
  for (int a = 0; a < 3; ++a) x *= conv->axes[a].in, y *= conv->axes[a].out;
  return (x + y + rn_cuda_conv_filter_size(conv)) * (int64_t)rn_dtype_size((rn_dtype_t)conv->dtype);
}

// Runs |plan| and compares: not every engine that transforms has a note of it.
static rn_status_t check(search_t* search, const conv_plan_t* plan) {
  const rn_cuda_conv_t* conv = &plan->conv;
  const int64_t size = result_size(conv);
  float error = 0;
  if (!search->exact.data) {
    RN_RETURN_IF_ERROR(
        rn_temp(search->ctx, (rn_dtype_t)conv->dtype, (rn_shape_t){1, &size}, &search->exact));
    RN_RETURN_IF_ERROR(rn_cuda_conv_plain(search->ctx, conv, search->data, &search->exact));
  }
  RN_RETURN_IF_ERROR(with_memory(search->ctx, search->cudnn, plan, search->data, use_once, NULL));
  RN_RETURN_IF_ERROR(
      rn_cuda_conv_compare(search->ctx, result_of(conv, search->data), &search->exact, &error));
  return error <= MOST_ERROR ? RN_OK : rn_internal("An engine is off by %g", (double)error);
}

// Tries |config|, which it takes over; returns whether it gave a plan.
static bool try_config(search_t* search, cudnnBackendDescriptor_t config, int mode, int64_t place) {
  conv_plan_t* best = search->best;
  conv_plan_t plan = {.conv = best->conv};
  if (!is_allowed(search->cudnn, &best->conv, config) ||
      !make_plan(search->cudnn, config, RN_STR(""), &plan)) {
    drop(search->cudnn, &config);
    return false;
  }
  if (plan.workspace > search->most_workspace) {
    drop(search->cudnn, &plan.plan);
    drop(search->cudnn, &plan.config);
    return false;
  }
  rn_status_t status = RN_OK;
  search->timing.time = 0;
  if (search->is_checked) status = check(search, &plan);
  if (rn_ok(status) && search->is_timed)
    status =
        with_memory(search->ctx, search->cudnn, &plan, search->data, use_timed, &search->timing);
  search->timing.time *= 1 + (float)plan.workspace / COSTLY_WORKSPACE;
  bool works = rn_ok(status);
  rn_status_free(status);  // too little memory for this one, or it does not run
  if (works && (!best->plan || search->timing.time < search->timing.best)) {
    conv_plan_t before = *best;
    search->timing.best = search->timing.time;
    best->workspace = plan.workspace;
    best->mode = mode, best->place = place;
    best->config = plan.config, best->plan = plan.plan;
    plan.plan = before.plan, plan.config = before.config;
  }
  drop(search->cudnn, &plan.plan);
  drop(search->cudnn, &plan.config);
  return works;
}

// Tries the engines that |mode| names for |graph|, at most |most|; returns how many worked.
static int try_mode(search_t* search, const rn_cudnn_graph_t* graph, int mode, int most) {
  cudnnBackendDescriptor_t configs[MOST_CONFIGS];
  int64_t count = ask(search->cudnn, graph, mode, configs);
  int worked = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (worked < most && (search->place < 0 || search->place == i))
      worked += try_config(search, configs[i], mode, i);
    else
      drop(search->cudnn, &configs[i]);
  }
  return worked;
}

static int try_modes(search_t* search, const rn_cudnn_graph_t* graph, int most) {
  int worked = try_mode(search, graph, CUDNN_HEUR_MODE_A, most);
  return worked ? worked : try_mode(search, graph, CUDNN_HEUR_MODE_FALLBACK, most);
}

// Keeps the graph if there is a plan.
static void try_engines(search_t* search) {
  conv_plan_t* best = search->best;
  rn_cudnn_graph_t graph = {0};
  int most = search->is_timed ? MOST_TIMED : 1;
  bool is_made = rn_cudnn_graph_make(search->cudnn, &best->conv, &graph);
  if (is_made && search->place >= 0)
    try_mode(search, &graph, (int)search->mode, 1);
  else if (is_made && try_modes(search, &graph, most) == 0) {
    search->most_workspace = MOST_WORKSPACE;
    try_modes(search, &graph, most);
  }
  if (best->plan)
    best->graph = graph;
  else
    rn_cudnn_graph_drop(&graph);
}

// Floats in full precision are compared with ours, if nothing follows the convolution.
static bool wants_check(const rn_cudnn_t* cudnn, const rn_cuda_conv_t* conv) {
  return conv->dtype == RN_FLOAT && !cudnn->allows_tf32 && !conv->has_residual && !conv->has_bias &&
         !conv->has_relu;
}

// What is stored of a choice, before the text of the plan, which may be empty.
typedef struct conv_choice_t {
  int64_t mode, place;
} conv_choice_t;

// What the choice depends on.
typedef struct conv_problem_t {
  rn_cuda_conv_t conv;
  int64_t refused_notes;
  int64_t is_checked;
} conv_problem_t;

static conv_problem_t problem_of(const rn_cudnn_t* cudnn, const conv_plan_t* plan) {
  return (conv_problem_t){plan->conv, refused_notes(cudnn, &plan->conv),
                          wants_check(cudnn, &plan->conv)};
}

static void store_choice(const rn_kernel_ctx_t* ctx, const rn_cudnn_t* cudnn,
                         const conv_plan_t* plan) {
  const rn_cudnn_api_t* api = &cudnn->api;
  conv_choice_t stored = {plan->mode, plan->place};
  conv_problem_t problem = problem_of(cudnn, plan);
  rn_measured_t choice = {"cuDNN", api->cudnnGetVersion(), &problem, sizeof problem};
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_system());
  rn_strbuf_append(&text, rn_str_n((const char*)&stored, sizeof stored));
  int64_t size = 0, read = 0;
  cudnnStatus_t status = api->cudnnBackendGetAttribute(
      plan->plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0, &size, NULL);
  if (status == CUDNN_STATUS_SUCCESS && size > 0 && size < MOST_TEXT &&
      rn_strbuf_reserve(&text, (size_t)size)) {
    status =
        api->cudnnBackendGetAttribute(plan->plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                      CUDNN_TYPE_CHAR, size, &read, text.data + text.size);
    if (status == CUDNN_STATUS_SUCCESS && read <= size) text.size += (size_t)read;
  }
  if (!text.failed)
    rn_choice_store(ctx->step->env, rn_cuda_card(ctx), &choice, rn_str_n(text.data, text.size));
  rn_strbuf_clear(&text);
}

// Makes the plan that another process has found. |best| has none if there is no such, or if this
// cuDNN does not take it.
static void recall_choice(search_t* search) {
  conv_plan_t* best = search->best;
  conv_problem_t problem = problem_of(search->cudnn, best);
  rn_measured_t choice = {"cuDNN", search->cudnn->api.cudnnGetVersion(), &problem, sizeof problem};
  conv_choice_t stored;
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_system());
  if (rn_choice_find(search->ctx->step->env, rn_cuda_card(search->ctx), &choice, &text) &&
      text.size >= sizeof stored) {
    memcpy(&stored, text.data, sizeof stored);
    rn_str_t json = {text.data + sizeof stored, text.size - sizeof stored};
    if ((!json.size || !make_plan(search->cudnn, NULL, json, best)) && stored.place >= 0) {
      search_t only = *search;
      only.is_timed = false;
      only.most_workspace = MOST_WORKSPACE;
      only.mode = stored.mode, only.place = stored.place;
      try_engines(&only);
    }
    best->is_remembered = best->plan != NULL;
  }
  rn_strbuf_clear(&text);
}

static rn_status_t choose(rn_kernel_ctx_t* ctx, rn_cudnn_t* cudnn, const rn_cuda_conv_data_t* data,
                          bool recalls, conv_plan_t* best) {
  rn_cuda_card_t* card = rn_cuda_card(ctx);
  search_t search = {.ctx = ctx,
                     .cudnn = cudnn,
                     .data = data,
                     .best = best,
                     .mode = -1,
                     .place = -1,
                     .most_workspace = tensor_bytes(&best->conv) + SMALL_WORKSPACE,
                     .timing = {.best = 1e30f}};
  int is_capturing = 0;
  if (recalls && !cudnn->is_deterministic) recall_choice(&search);
  if (best->plan) return RN_OK;
  RN_RETURN_IF_ERROR(RN_CARD(card, cuStreamIsCapturing, rn_cuda_stream(card), &is_capturing));
  search.is_timed = !is_capturing && !cudnn->is_deterministic;
  search.is_checked = !is_capturing && wants_check(cudnn, &best->conv);
  RN_RETURN_IF_ERROR(RN_CARD(card, cuEventCreate, &search.timing.begin, CU_EVENT_DEFAULT));
  rn_status_t status = RN_CARD(card, cuEventCreate, &search.timing.end, CU_EVENT_DEFAULT);
  if (rn_ok(status)) {
    try_engines(&search);
    rn_tensor_clear(&search.exact);
    if (best->plan && search.is_timed) store_choice(ctx, cudnn, best);
    card->driver.cuEventDestroy_v2(search.timing.end);
  }
  card->driver.cuEventDestroy_v2(search.timing.begin);
  return status;
}

// The plan for |conv|, made if there is none yet. Borrowed.
static rn_status_t plan_locked(rn_kernel_ctx_t* ctx, rn_cudnn_t* cudnn, const rn_cuda_conv_t* conv,
                               const rn_cuda_conv_data_t* data, conv_plan_t** out) {
  *out = rn_map_get(&cudnn->plans, rn_str_n((const char*)conv, sizeof *conv));
  if (*out) return RN_OK;
  conv_plan_t* plan = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), &plan));
  plan->conv = *conv;
  rn_status_t status = choose(ctx, cudnn, data, true, plan);
  if (rn_ok(status))
    status = rn_map_put(&cudnn->plans, rn_str_n((const char*)&plan->conv, sizeof plan->conv), plan);
  if (!rn_ok(status)) {
    drop_plan(cudnn, plan);
    RN_FREE(rn_allocator_system(), plan);
    return status;
  }
  if (!plan->plan)
    rn_log(ctx->step->env, RN_LOG_WARNING, "cuDNN has no engine for the convolution %.*s",
           RN_STR_ARGS(ctx->kernel->node));
  *out = plan;
  return RN_OK;
}

rn_status_t rn_cudnn_conv_temp(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int64_t count,
                               rn_tensor_t* out) {
  rn_cudnn_t* cudnn = NULL;
  rn_tensor_t workspace = {0};
  RN_RETURN_IF_ERROR(rn_cudnn(ctx, &cudnn));
  if (cudnn && rn_cuda_is_recording(rn_cuda_card(ctx))) {
    rn_mutex_lock(&cudnn->mutex);
    const int64_t most = cudnn->workspace;
    rn_mutex_unlock(&cudnn->mutex);
    if (most) RN_RETURN_IF_ERROR(rn_temp(ctx, RN_UINT8, (rn_shape_t){1, &most}, &workspace));
  }
  rn_status_t status = rn_temp(ctx, dtype, (rn_shape_t){1, &count}, out);
  rn_tensor_clear(&workspace);  // the convolution finds it there
  return status;
}

rn_status_t rn_cudnn_conv(rn_kernel_ctx_t* ctx, const rn_cuda_conv_t* conv,
                          const rn_cuda_conv_data_t* data, bool* out_done) {
  *out_done = false;
  rn_cudnn_t* cudnn = NULL;
  RN_RETURN_IF_ERROR(rn_cudnn(ctx, &cudnn));
  if (!cudnn) return RN_OK;
  RN_RETURN_IF_ERROR(rn_cuda_enter(rn_cuda_card(ctx)));
  rn_cuda_conv_t key = *conv;
  uintptr_t addresses = (uintptr_t)data->x | (uintptr_t)data->w | (uintptr_t)data->y |
                        (uintptr_t)data->bias | (uintptr_t)data->residual;
  key.alignment = addresses % 16 ? (int64_t)rn_dtype_size((rn_dtype_t)conv->dtype) : 16;
  conv_plan_t* plan = NULL;
  rn_mutex_lock(&cudnn->mutex);
  rn_status_t status = plan_locked(ctx, cudnn, &key, data, &plan);
  if (rn_ok(status) && plan->plan) {
    if (plan->workspace > cudnn->workspace) cudnn->workspace = plan->workspace;
    status = with_memory(ctx, cudnn, plan, data, use_once, NULL);
    if (!rn_ok(status) && plan->is_remembered &&
        rn_status_code(status) != RN_CODE_RESOURCE_EXHAUSTED) {
      rn_status_free(status);  // what another process has found does not work here
      drop_plan(cudnn, plan);
      status = choose(ctx, cudnn, data, false, plan);
      if (rn_ok(status) && plan->plan) status = with_memory(ctx, cudnn, plan, data, use_once, NULL);
    }
    *out_done = rn_ok(status) && plan->plan;
  }
  rn_mutex_unlock(&cudnn->mutex);
  return status;
}
