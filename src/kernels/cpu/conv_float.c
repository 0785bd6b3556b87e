// Convolutions of floats through oneDNN.
//
// Images stay as they are, channels last; the filter is copied into the blocks that oneDNN's loops
// read, which is a small part of the work. The batch is cut into pieces by sizes alone; each runs
// in one thread. The pieces of a filter's gradient are added up in their order.
#include "kernels/cpu/conv.h"
#include "kernels/cpu/dnnl.h"
#include "kernels/cpu/vector.h"

// Least work of a piece: some 100 us.
#define PIECE_FLOPS 16e6
// A filter's gradient is cut only as far as adding the parts up stays a small part of the work:
// operations for each of its elements in a piece.
#define PIECE_FLOPS_PER_WEIGHT 1600
#define MOST_PIECES 16
// Shapes that a kernel keeps compiled; beyond them the one not used for longest goes.
#define MOST_PLANS 64

// Memory objects for one run of a plan; kept for the next.
typedef struct slot_t {
  dnnl_stream_t stream;
  dnnl_memory_t x, w, y, scratch;
  struct slot_t* next;
} slot_t;

// A convolution compiled for one shape.
typedef struct plan_t {
  rn_conv_t conv;  // batch: the images of a piece
  dnnl_primitive_desc_t desc;
  dnnl_primitive_t primitive;  // NULL: oneDNN does not do it
  dnnl_primitive_t reorder;    // between the filter's own layout and the blocks; NULL: the same
  dnnl_memory_desc_t x, w, y, scratch, plain_w;
  size_t w_bytes, scratch_bytes;
  // The rest is guarded by the cache's mutex.
  slot_t* slots;       // free ones
  int32_t users;       // calls under way
  uint64_t last_used;  // by the engine's count of calls
  struct plan_t* next;
} plan_t;

struct rn_conv_engine_t {
  const rn_dnnl_t* dnnl;
  dnnl_engine_t engine;
  dnnl_primitive_attr_t attr;
  plan_t* plans;
  int32_t plan_count;
  uint64_t calls;
};

static rn_status_t check(dnnl_status_t status) {
  if (status == dnnl_success) return RN_OK;
  if (status == dnnl_out_of_memory) return rn_out_of_memory();
  return rn_internal("oneDNN failed with status %d", (int)status);
}

void rn_conv_cache_init(rn_conv_cache_t* cache) {
  *cache = (rn_conv_cache_t){0};
  rn_mutex_init(&cache->mutex);
}

static void slot_destroy(const rn_dnnl_t* dnnl, slot_t* slot) {
  dnnl_memory_t memories[] = {slot->x, slot->w, slot->y, slot->scratch};
  for (size_t i = 0; i < sizeof memories / sizeof *memories; ++i)
    if (memories[i]) dnnl->memory_destroy(memories[i]);
  if (slot->stream) dnnl->stream_destroy(slot->stream);
  RN_FREE(rn_allocator_default(), slot);
}

static void plan_destroy(const rn_dnnl_t* dnnl, plan_t* plan) {
  while (plan->slots) {
    slot_t* slot = plan->slots;
    plan->slots = slot->next;
    slot_destroy(dnnl, slot);
  }
  if (plan->primitive) dnnl->primitive_destroy(plan->primitive);
  if (plan->reorder) dnnl->primitive_destroy(plan->reorder);
  if (plan->desc) dnnl->primitive_desc_destroy(plan->desc);
  RN_FREE(rn_allocator_default(), plan);
}

static void engine_destroy(struct rn_conv_engine_t* engine) {
  while (engine->plans) {
    plan_t* plan = engine->plans;
    engine->plans = plan->next;
    plan_destroy(engine->dnnl, plan);
  }
  if (engine->attr) engine->dnnl->primitive_attr_destroy(engine->attr);
  if (engine->engine) engine->dnnl->engine_destroy(engine->engine);
  RN_FREE(rn_allocator_default(), engine);
}

void rn_conv_cache_clear(rn_conv_cache_t* cache) {
  if (cache->engine) engine_destroy(cache->engine);
  cache->engine = NULL;
  rn_mutex_destroy(&cache->mutex);
}

static rn_status_t engine_create(const rn_dnnl_t* dnnl, struct rn_conv_engine_t** out) {
  struct rn_conv_engine_t* engine = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_default(), &engine));
  engine->dnnl = dnnl;
  rn_status_t status = check(dnnl->engine_create(&engine->engine, dnnl_cpu, 0));
  if (rn_ok(status)) status = check(dnnl->primitive_attr_create(&engine->attr));
  if (rn_ok(status))
    status =
        check(dnnl->primitive_attr_set_scratchpad_mode(engine->attr, dnnl_scratchpad_mode_user));
  if (!rn_ok(status)) {
    engine_destroy(engine);
    return status;
  }
  *out = engine;
  return RN_OK;
}

// The descriptions of the operands: the filter in |w_layout|, or in what oneDNN likes best if that
// is NULL.
static dnnl_status_t describe(const rn_dnnl_t* dnnl, plan_t* plan,
                              const dnnl_memory_desc_t* w_layout) {
  const rn_conv_t* c = &plan->conv;
  dnnl_dims_t x = {c->batch, c->in_depth, c->rows.in, c->columns.in};
  dnnl_dims_t y = {c->batch, c->out_depth, c->rows.out, c->columns.out};
  dnnl_dims_t w = {c->out_depth, c->in_depth, c->rows.filter, c->columns.filter};
  dnnl_dims_t grouped_w = {c->groups, c->out_depth / c->groups, c->in_depth / c->groups,
                           c->rows.filter, c->columns.filter};
  bool grouped = c->groups > 1;
  dnnl_status_t status = dnnl->memory_desc_init_by_tag(&plan->x, 4, x, dnnl_f32, dnnl_nhwc);
  if (!status) status = dnnl->memory_desc_init_by_tag(&plan->y, 4, y, dnnl_f32, dnnl_nhwc);
  if (!status)
    status = dnnl->memory_desc_init_by_tag(&plan->plain_w, grouped ? 5 : 4, grouped ? grouped_w : w,
                                           dnnl_f32, grouped ? dnnl_hwigo : dnnl_hwio);
  if (!status && !w_layout)
    status = dnnl->memory_desc_init_by_tag(&plan->w, grouped ? 5 : 4, grouped ? grouped_w : w,
                                           dnnl_f32, dnnl_format_tag_any);
  if (w_layout) plan->w = *w_layout;
  return status;
}

static dnnl_status_t compile(struct rn_conv_engine_t* engine, plan_t* plan) {
  const rn_dnnl_t* dnnl = engine->dnnl;
  const rn_conv_t* c = &plan->conv;
  dnnl_dims_t strides = {c->rows.stride, c->columns.stride};
  dnnl_dims_t dilations = {c->rows.dilation - 1, c->columns.dilation - 1};
  dnnl_dims_t before = {c->rows.before, c->columns.before};
  dnnl_dims_t after = {c->rows.after, c->columns.after};
  dnnl_convolution_desc_t forward, desc;
  dnnl_status_t status = dnnl->dilated_convolution_forward_desc_init(
      &forward, dnnl_forward_training, dnnl_convolution_direct, &plan->x, &plan->w, NULL, &plan->y,
      strides, dilations, before, after);
  if (status) return status;
  if (c->kind == RN_CONV_FORWARD)
    return dnnl->primitive_desc_create(&plan->desc, &forward, engine->attr, engine->engine, NULL);
  // A gradient is compiled with the forward convolution as a hint; the layouts are its own.
  dnnl_memory_desc_t w = plan->w;
  dnnl_primitive_desc_t hint = NULL;
  status = dnnl->primitive_desc_create(&hint, &forward, engine->attr, engine->engine, NULL);
  if (status) return status;
  if (c->kind == RN_CONV_INPUT)
    status = dnnl->dilated_convolution_backward_data_desc_init(
        &desc, dnnl_convolution_direct, &plan->x, &w, &plan->y, strides, dilations, before, after);
  else
    status = dnnl->dilated_convolution_backward_weights_desc_init(
        &desc, dnnl_convolution_direct, &plan->x, &w, NULL, &plan->y, strides, dilations, before,
        after);
  if (!status)
    status = dnnl->primitive_desc_create(&plan->desc, &desc, engine->attr, engine->engine, hint);
  dnnl->primitive_desc_destroy(hint);
  return status;
}

static dnnl_status_t compile_reorder(struct rn_conv_engine_t* engine, plan_t* plan) {
  const rn_dnnl_t* dnnl = engine->dnnl;
  if (dnnl->memory_desc_equal(&plan->w, &plan->plain_w)) return dnnl_success;
  bool to_plain = plan->conv.kind == RN_CONV_FILTER;
  dnnl_primitive_desc_t desc = NULL;
  dnnl_status_t status = dnnl->reorder_primitive_desc_create(
      &desc, to_plain ? &plan->w : &plan->plain_w, engine->engine,
      to_plain ? &plan->plain_w : &plan->w, engine->engine, NULL);
  if (!status) status = dnnl->primitive_create(&plan->reorder, desc);
  if (desc) dnnl->primitive_desc_destroy(desc);
  return status;
}

static dnnl_status_t plan_make(struct rn_conv_engine_t* engine, plan_t* plan,
                               const dnnl_memory_desc_t* w_layout) {
  const rn_dnnl_t* dnnl = engine->dnnl;
  dnnl_status_t status = describe(dnnl, plan, w_layout);
  if (!status) status = compile(engine, plan);
  if (status) return status;
  plan->w = *dnnl->primitive_desc_query_md(
      plan->desc,
      plan->conv.kind == RN_CONV_FILTER ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
  plan->scratch = *dnnl->primitive_desc_query_md(plan->desc, dnnl_query_scratchpad_md, 0);
  plan->w_bytes = dnnl->memory_desc_get_size(&plan->w);
  plan->scratch_bytes = dnnl->memory_desc_get_size(&plan->scratch);
  status = compile_reorder(engine, plan);
  if (!status) status = dnnl->primitive_create(&plan->primitive, plan->desc);
  return status;
}

static bool same_conv(const rn_conv_t* a, const rn_conv_t* b) {
  return a->kind == b->kind &&
         memcmp(&a->batch, &b->batch, sizeof *a - offsetof(rn_conv_t, batch)) == 0;
}

// Destroys the plan that was not used for longest, if one is idle.
static void plan_evict(struct rn_conv_engine_t* engine) {
  plan_t** oldest = NULL;
  for (plan_t** link = &engine->plans; *link; link = &(*link)->next)
    if (!(*link)->users && (!oldest || (*link)->last_used < (*oldest)->last_used)) oldest = link;
  if (!oldest) return;
  plan_t* plan = *oldest;
  *oldest = plan->next;
  --engine->plan_count;
  plan_destroy(engine->dnnl, plan);
}

static rn_status_t plan_add(struct rn_conv_engine_t* engine, const rn_conv_t* conv,
                            const dnnl_memory_desc_t* w_layout, plan_t** out) {
  const rn_dnnl_t* dnnl = engine->dnnl;
  plan_t* plan = NULL;
  if (engine->plan_count >= MOST_PLANS) plan_evict(engine);
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_default(), &plan));
  plan->conv = *conv;
  dnnl_status_t made = plan_make(engine, plan, w_layout);
  if (made == dnnl_out_of_memory) {
    plan_destroy(dnnl, plan);
    return rn_out_of_memory();
  }
  if (made && plan->primitive) {
    dnnl->primitive_destroy(plan->primitive);
    plan->primitive = NULL;
  }
  plan->next = engine->plans;
  engine->plans = plan;
  ++engine->plan_count;
  *out = plan;
  return RN_OK;
}

// The plan for |conv|, and for a filter in |w_layout| unless that is NULL, made if there is none
// yet; it stays until plan_put. Its primitive is NULL if oneDNN cannot.
static rn_status_t plan_get(rn_conv_cache_t* cache, const rn_dnnl_t* dnnl, const rn_conv_t* conv,
                            const dnnl_memory_desc_t* w_layout, plan_t** out) {
  rn_mutex_lock(&cache->mutex);
  rn_status_t status = RN_OK;
  if (!cache->engine) status = engine_create(dnnl, &cache->engine);
  plan_t* plan = rn_ok(status) ? cache->engine->plans : NULL;
  while (plan && !(same_conv(&plan->conv, conv) &&
                   (!w_layout || dnnl->memory_desc_equal(&plan->w, w_layout))))
    plan = plan->next;
  if (rn_ok(status) && !plan) status = plan_add(cache->engine, conv, w_layout, &plan);
  if (rn_ok(status)) {
    ++plan->users;
    plan->last_used = ++cache->engine->calls;
  }
  rn_mutex_unlock(&cache->mutex);
  *out = rn_ok(status) ? plan : NULL;
  return status;
}

static void plan_put(rn_conv_cache_t* cache, plan_t* plan) {
  if (!plan) return;
  rn_mutex_lock(&cache->mutex);
  --plan->users;
  rn_mutex_unlock(&cache->mutex);
}

static rn_status_t slot_create(struct rn_conv_engine_t* engine, const plan_t* plan, slot_t** out) {
  const rn_dnnl_t* dnnl = engine->dnnl;
  slot_t* slot = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_default(), &slot));
  const dnnl_memory_desc_t* descs[] = {&plan->x, &plan->w, &plan->y, &plan->scratch};
  dnnl_memory_t* memories[] = {&slot->x, &slot->w, &slot->y, &slot->scratch};
  dnnl_status_t status =
      dnnl->stream_create(&slot->stream, engine->engine, dnnl_stream_default_flags);
  for (int i = 0; i < 4 && !status; ++i)
    status = dnnl->memory_create(memories[i], descs[i], engine->engine, DNNL_MEMORY_NONE);
  if (status) {
    slot_destroy(dnnl, slot);
    return check(status);
  }
  *out = slot;
  return RN_OK;
}

static rn_status_t slot_take(rn_conv_cache_t* cache, plan_t* plan, slot_t** out) {
  rn_mutex_lock(&cache->mutex);
  *out = plan->slots;
  if (*out) plan->slots = (*out)->next;
  rn_mutex_unlock(&cache->mutex);
  return *out ? RN_OK : slot_create(cache->engine, plan, out);
}

static void slot_give(rn_conv_cache_t* cache, plan_t* plan, slot_t* slot) {
  rn_mutex_lock(&cache->mutex);
  slot->next = plan->slots;
  plan->slots = slot;
  rn_mutex_unlock(&cache->mutex);
}

// Runs the primitive of |plan| in this thread.
static rn_status_t plan_run(rn_conv_cache_t* cache, plan_t* plan, rn_conv_data_t data,
                            void* scratch) {
  const rn_dnnl_t* dnnl = cache->engine->dnnl;
  slot_t* slot = NULL;
  RN_RETURN_IF_ERROR(slot_take(cache, plan, &slot));
  rn_conv_kind_t kind = plan->conv.kind;
  dnnl_exec_arg_t args[] = {
      {kind == RN_CONV_INPUT ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, slot->x},
      {kind == RN_CONV_FILTER ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, slot->w},
      {kind == RN_CONV_FORWARD ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, slot->y},
      {DNNL_ARG_SCRATCHPAD, slot->scratch},
  };
  int threads = rn_dnnl_enter(dnnl);
  dnnl_status_t status = dnnl->memory_set_data_handle(slot->x, data.x);
  if (!status) status = dnnl->memory_set_data_handle(slot->w, data.w);
  if (!status) status = dnnl->memory_set_data_handle(slot->y, data.y);
  if (!status) status = dnnl->memory_set_data_handle(slot->scratch, scratch);
  if (!status) status = dnnl->primitive_execute(plan->primitive, slot->stream, 4, args);
  if (!status) status = dnnl->stream_wait(slot->stream);
  rn_dnnl_leave(dnnl, threads);
  slot_give(cache, plan, slot);
  return check(status);
}

// Copies a filter between its own layout and the plan's.
static rn_status_t reorder_run(rn_conv_cache_t* cache, plan_t* plan, void* from, void* to) {
  const rn_dnnl_t* dnnl = cache->engine->dnnl;
  bool to_plain = plan->conv.kind == RN_CONV_FILTER;
  dnnl_memory_t source = NULL, target = NULL;
  dnnl_stream_t stream = NULL;
  dnnl_engine_t engine = cache->engine->engine;
  int threads = rn_dnnl_enter(dnnl);
  dnnl_status_t status = dnnl->stream_create(&stream, engine, dnnl_stream_default_flags);
  if (!status)
    status = dnnl->memory_create(&source, to_plain ? &plan->w : &plan->plain_w, engine, from);
  if (!status)
    status = dnnl->memory_create(&target, to_plain ? &plan->plain_w : &plan->w, engine, to);
  dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}};
  if (!status) status = dnnl->primitive_execute(plan->reorder, stream, 2, args);
  if (!status) status = dnnl->stream_wait(stream);
  if (source) dnnl->memory_destroy(source);
  if (target) dnnl->memory_destroy(target);
  if (stream) dnnl->stream_destroy(stream);
  rn_dnnl_leave(dnnl, threads);
  return check(status);
}

typedef struct job_t {
  rn_conv_cache_t* cache;
  plan_t *plan, *last;   // for whole pieces, and for the shorter one at the end
  rn_conv_data_t data;   // the filter in the plan's layout, or the parts of its gradient
  char* scratch;         // for each piece, one after the other
  size_t scratch_bytes;  // of one
  bool failed;           // the first to set it owns |status|
  rn_status_t status;
} job_t;

static void run_piece(void* arg, int64_t begin, int64_t end) {
  job_t* job = arg;
  const rn_conv_t* conv = &job->plan->conv;
  plan_t* plan = end - begin == conv->batch ? job->plan : job->last;
  int64_t piece = begin / conv->batch;
  rn_conv_data_t data = {
      .x = (float*)job->data.x + begin * rn_conv_x_size(conv),
      .w = (char*)job->data.w +
           (conv->kind == RN_CONV_FILTER ? (size_t)piece * job->plan->w_bytes : 0),
      .y = (float*)job->data.y + begin * rn_conv_y_size(conv),
  };
  rn_status_t status =
      plan_run(job->cache, plan, data, job->scratch + (size_t)piece * job->scratch_bytes);
  if (!rn_ok(status) && !__atomic_exchange_n(&job->failed, true, __ATOMIC_RELAXED))
    job->status = status;
  else
    rn_status_free(status);
}

// Images in a piece: a power of two, so that pieces come out even for the usual batches.
static int64_t images_of_piece(const rn_conv_t* conv) {
  double least = PIECE_FLOPS;
  if (conv->kind == RN_CONV_FILTER) {
    double sums = PIECE_FLOPS_PER_WEIGHT * (double)rn_conv_w_size(conv);
    double half = rn_conv_flops(conv) * (double)conv->batch / 2;
    if (sums > half) sums = half;  // two at least, if they are worth a thread
    if (sums > least) least = sums;
  }
  int64_t images = 1;
  while (images < conv->batch &&
         ((double)images * rn_conv_flops(conv) < least || images * MOST_PIECES < conv->batch))
    images *= 2;
  return images < conv->batch ? images : conv->batch;
}

typedef struct sum_t {
  float* parts;
  int64_t stride;  // from one part to the next
  int64_t count;
} sum_t;

static void sum_piece(void* arg, int64_t begin, int64_t end) {
  const sum_t* sum = arg;
  for (int64_t i = 1; i < sum->count; ++i)
    rn_vector_run(RN_VECTOR_ADD, RN_FLOAT, sum->parts + begin, 1,
                  sum->parts + i * sum->stride + begin, 1, sum->parts + begin, end - begin);
}

static size_t round_up(size_t bytes) { return (bytes + RN_ALIGN - 1) / RN_ALIGN * RN_ALIGN; }

// Everything after the plans are there. |pieces| of the batch run; |blocks| is memory for the
// filter in its blocks (for each piece, if it is its gradient), or NULL if none is needed.
static rn_status_t run_pieces(rn_kernel_ctx_t* ctx, job_t* job, const rn_conv_t* conv,
                              int64_t pieces, void* blocks) {
  plan_t* plan = job->plan;
  void* w = job->data.w;
  if (blocks) job->data.w = blocks;
  if (blocks && conv->kind != RN_CONV_FILTER)
    RN_RETURN_IF_ERROR(reorder_run(job->cache, plan, w, blocks));
  rn_pool_for(rn_ctx_pool(ctx), conv->batch, plan->conv.batch, run_piece, job);
  RN_RETURN_IF_ERROR(job->status);
  if (conv->kind != RN_CONV_FILTER || !blocks) return RN_OK;
  int64_t length = (int64_t)(plan->w_bytes / sizeof(float));
  sum_t sum = {.parts = blocks, .stride = length, .count = pieces};
  if (pieces > 1) rn_pool_for(rn_ctx_pool(ctx), length, 1 << 15, sum_piece, &sum);
  if (plan->reorder) return reorder_run(job->cache, plan, blocks, w);
  memcpy(w, blocks, plan->w_bytes);
  return RN_OK;
}

// With the plans in |job|; the memory they need comes from the device's allocator.
static rn_status_t run_planned(rn_kernel_ctx_t* ctx, job_t* job, const rn_conv_t* conv) {
  int64_t images = job->plan->conv.batch, pieces = (conv->batch + images - 1) / images;
  job->scratch_bytes = round_up(job->plan->scratch_bytes);
  if (job->last && round_up(job->last->scratch_bytes) > job->scratch_bytes)
    job->scratch_bytes = round_up(job->last->scratch_bytes);
  bool is_filter = conv->kind == RN_CONV_FILTER;
  bool needs_blocks = job->plan->reorder || (is_filter && pieces > 1);
  size_t blocks = needs_blocks ? job->plan->w_bytes * (size_t)(is_filter ? pieces : 1) : 0;
  size_t total = 0;
  if (!rn_mul_ok(job->scratch_bytes, (size_t)pieces, &total) ||
      !rn_add_ok(total, round_up(blocks), &total))
    return rn_out_of_memory();
  rn_tensor_t temp = {0};
  int64_t bytes = (int64_t)total;
  if (total) RN_RETURN_IF_ERROR(rn_temp(ctx, RN_UINT8, (rn_shape_t){1, &bytes}, &temp));
  job->scratch = (char*)temp.data + round_up(blocks);
  rn_status_t status = run_pieces(ctx, job, conv, pieces, needs_blocks ? temp.data : NULL);
  rn_tensor_clear(&temp);
  return status;
}

rn_status_t rn_conv_float(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache, const rn_conv_t* conv,
                          rn_conv_data_t data, bool* out_done) {
  *out_done = false;
  job_t job = {.cache = cache, .data = data};
  const rn_dnnl_t* dnnl = NULL;
  rn_status_t status = rn_dnnl(&dnnl);
  if (!rn_ok(status)) {
    rn_status_free(status);  // the plain loops do it
    return RN_OK;
  }
  rn_conv_t whole = *conv, last = *conv;
  whole.batch = images_of_piece(conv);
  last.batch = conv->batch % whole.batch;
  int threads = rn_dnnl_enter(dnnl);
  status = plan_get(cache, dnnl, &whole, NULL, &job.plan);
  if (rn_ok(status) && job.plan->primitive && last.batch)
    status = plan_get(cache, dnnl, &last, &job.plan->w, &job.last);
  rn_dnnl_leave(dnnl, threads);
  if (rn_ok(status)) *out_done = job.plan->primitive && (!job.last || job.last->primitive);
  if (*out_done) status = run_planned(ctx, &job, conv);
  plan_put(cache, job.plan);
  plan_put(cache, job.last);
  return status;
}
