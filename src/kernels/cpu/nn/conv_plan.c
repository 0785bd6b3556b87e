// See conv_plan.h.
#include "kernels/cpu/nn/conv_plan.h"

// Maximum number of shapes that a kernel keeps compiled; beyond it the least recently used is
// dropped.
#define MOST_PLANS 64

// Memory objects for one run of a plan; reused by the next.
typedef struct conv_plan_slot_t {
  dnnl_stream_t stream;
  dnnl_memory_t x, w, y, scratch;
  dnnl_memory_t operands[RN_CONV_MOST_STEPS];  // NULL if the step has none
  struct conv_plan_slot_t* next;
} conv_plan_slot_t;

struct rn_conv_engine_t {
  const rn_dnnl_t* dnnl;
  dnnl_engine_t engine;
  dnnl_primitive_attr_t attr;
  rn_conv_plan_t* plans;
  int32_t plan_count;
  uint64_t calls;
  rn_tensor_t filter;  // the original of the copies in |kept|
  struct {
    rn_tensor_t blocks;  // unset if there is no copy
    dnnl_memory_desc_t layout;
  } kept[RN_CONV_MOST_LAYOUTS];
  int32_t next_kept;  // the one to replace when another layout is needed
};

static rn_status_t check(dnnl_status_t status) {
  if (status == dnnl_success) return RN_OK;
  if (status == dnnl_out_of_memory) return rn_out_of_memory();
  return rn_internal("oneDNN failed with status %d", (int)status);
}

void rn_conv_cache_init(rn_conv_cache_t* cache) {
  *cache = (rn_conv_cache_t){0};
  rn_mutex_init(&cache->mutex);
  rn_keeper_init(&cache->kept);
}

static void slot_destroy(const rn_dnnl_t* dnnl, conv_plan_slot_t* slot) {
  dnnl_memory_t memories[] = {slot->x, slot->w, slot->y, slot->scratch};
  for (size_t i = 0; i < sizeof memories / sizeof *memories; ++i)
    if (memories[i]) dnnl->memory_destroy(memories[i]);
  for (int i = 0; i < RN_CONV_MOST_STEPS; ++i)
    if (slot->operands[i]) dnnl->memory_destroy(slot->operands[i]);
  if (slot->stream) dnnl->stream_destroy(slot->stream);
  RN_FREE(rn_allocator_default(), slot);
}

static void plan_destroy(const rn_dnnl_t* dnnl, rn_conv_plan_t* plan) {
  while (plan->slots) {
    conv_plan_slot_t* slot = plan->slots;
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
    rn_conv_plan_t* plan = engine->plans;
    engine->plans = plan->next;
    plan_destroy(engine->dnnl, plan);
  }
  rn_tensor_clear(&engine->filter);
  for (int i = 0; i < RN_CONV_MOST_LAYOUTS; ++i) rn_tensor_clear(&engine->kept[i].blocks);
  if (engine->attr) engine->dnnl->primitive_attr_destroy(engine->attr);
  if (engine->engine) engine->dnnl->engine_destroy(engine->engine);
  RN_FREE(rn_allocator_default(), engine);
}

void rn_conv_cache_clear(rn_conv_cache_t* cache) {
  if (cache->engine) engine_destroy(cache->engine);
  cache->engine = NULL;
  rn_keeper_clear(&cache->kept);
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

// Describes the operands: the filter in |w_layout|, or in the layout that oneDNN prefers if that is
// NULL.
static dnnl_status_t describe(const rn_dnnl_t* dnnl, rn_conv_plan_t* plan,
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

// Adds step |i| to |steps|.
static dnnl_status_t append_step(const rn_dnnl_t* dnnl, rn_conv_plan_t* plan, dnnl_post_ops_t steps,
                                 int i) {
  static const dnnl_alg_kind_t kinds[] = {[RN_CONV_ADD] = dnnl_binary_add,
                                          [RN_CONV_SUB] = dnnl_binary_sub,
                                          [RN_CONV_MUL] = dnnl_binary_mul};
  const rn_conv_t* c = &plan->conv;
  int form = rn_conv_step_form(c, i);
  bool is_full = form == RN_CONV_FULL;
  dnnl_dims_t dims = {is_full ? c->batch : 1, form == RN_CONV_ONE ? 1 : c->out_depth,
                      is_full ? c->rows.out : 1, is_full ? c->columns.out : 1};
  dnnl_status_t status =
      dnnl->memory_desc_init_by_tag(&plan->operands[i], 4, dims, dnnl_f32, dnnl_nhwc);
  if (status) return status;
  return dnnl->post_ops_append_binary(steps, kinds[rn_conv_step_code(c, i)], &plan->operands[i]);
}

// The attributes of a plan with following steps; the caller destroys them.
static dnnl_status_t attr_with_steps(const rn_dnnl_t* dnnl, rn_conv_plan_t* plan,
                                     dnnl_primitive_attr_t* out) {
  dnnl_post_ops_t steps = NULL;
  dnnl_status_t status = dnnl->primitive_attr_create(out);
  if (!status) status = dnnl->primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
  if (!status) status = dnnl->post_ops_create(&steps);
  for (int i = 0; !status && i < RN_CONV_MOST_STEPS && rn_conv_step_code(&plan->conv, i); ++i)
    status = append_step(dnnl, plan, steps, i);
  if (!status) status = dnnl->primitive_attr_set_post_ops(*out, steps);
  if (steps) dnnl->post_ops_destroy(steps);
  return status;
}

static dnnl_status_t compile_forward(struct rn_conv_engine_t* engine, rn_conv_plan_t* plan,
                                     dnnl_convolution_desc_t* desc) {
  const rn_dnnl_t* dnnl = engine->dnnl;
  if (!plan->conv.then)
    return dnnl->primitive_desc_create(&plan->desc, desc, engine->attr, engine->engine, NULL);
  dnnl_primitive_attr_t attr = NULL;
  dnnl_status_t status = attr_with_steps(dnnl, plan, &attr);
  if (!status) status = dnnl->primitive_desc_create(&plan->desc, desc, attr, engine->engine, NULL);
  if (attr) dnnl->primitive_attr_destroy(attr);
  return status;
}

static dnnl_status_t compile(struct rn_conv_engine_t* engine, rn_conv_plan_t* plan) {
  const rn_dnnl_t* dnnl = engine->dnnl;
  const rn_conv_t* c = &plan->conv;
  dnnl_dims_t strides = {c->rows.stride, c->columns.stride};
  dnnl_dims_t dilations = {c->rows.dilation - 1, c->columns.dilation - 1};
  dnnl_dims_t before = {c->rows.before, c->columns.before};
  dnnl_dims_t after = {c->rows.after, c->columns.after};
  dnnl_convolution_desc_t forward, desc;
  dnnl_status_t status = dnnl->dilated_convolution_forward_desc_init(
      &forward, c->then ? dnnl_forward_inference : dnnl_forward_training, dnnl_convolution_direct,
      &plan->x, &plan->w, NULL, &plan->y, strides, dilations, before, after);
  if (status) return status;
  if (c->kind == RN_CONV_FORWARD) return compile_forward(engine, plan, &forward);
  // A gradient is compiled with the forward convolution as a hint but has its own layouts.
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

static dnnl_status_t compile_reorder(struct rn_conv_engine_t* engine, rn_conv_plan_t* plan) {
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

// "ref:any", "gemm:ref": oneDNN's reference loops.
static bool is_reference(const char* name) {
  const char* colon = strrchr(name, ':');
  return strstr(name, "ref") || (colon && strcmp(colon, ":any") == 0);
}

static dnnl_status_t plan_make(struct rn_conv_engine_t* engine, rn_conv_plan_t* plan,
                               const dnnl_memory_desc_t* w_layout) {
  const rn_dnnl_t* dnnl = engine->dnnl;
  dnnl_status_t status = describe(dnnl, plan, w_layout);
  if (!status) status = compile(engine, plan);
  if (!status)
    status = dnnl->primitive_desc_query(plan->desc, dnnl_query_impl_info_str, 0, &plan->name);
  if (!status && is_reference(plan->name)) status = dnnl_unimplemented;
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

// Destroys the least recently used idle plan, if there is one.
static void plan_evict(struct rn_conv_engine_t* engine) {
  rn_conv_plan_t** oldest = NULL;
  for (rn_conv_plan_t** link = &engine->plans; *link; link = &(*link)->next)
    if (!(*link)->users && (!oldest || (*link)->last_used < (*oldest)->last_used)) oldest = link;
  if (!oldest) return;
  rn_conv_plan_t* plan = *oldest;
  *oldest = plan->next;
  --engine->plan_count;
  plan_destroy(engine->dnnl, plan);
}

static rn_status_t plan_add(struct rn_conv_engine_t* engine, const rn_conv_t* conv,
                            const dnnl_memory_desc_t* w_layout, rn_conv_plan_t** out) {
  const rn_dnnl_t* dnnl = engine->dnnl;
  rn_conv_plan_t* plan = NULL;
  if (engine->plan_count >= MOST_PLANS) plan_evict(engine);
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_default(), &plan));
  plan->conv = *conv;
  plan->is_own = !w_layout;
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

rn_status_t rn_conv_plan_get(rn_conv_cache_t* cache, const rn_dnnl_t* dnnl, const rn_conv_t* conv,
                             const dnnl_memory_desc_t* w_layout, rn_conv_plan_t** out) {
  rn_mutex_lock(&cache->mutex);
  rn_status_t status = RN_OK;
  if (!cache->engine) status = engine_create(dnnl, &cache->engine);
  rn_conv_plan_t* plan = rn_ok(status) ? cache->engine->plans : NULL;
  // The plan found must not depend on what other calls have left in the cache.
  while (plan && !(same_conv(&plan->conv, conv) && plan->is_own == !w_layout &&
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

void rn_conv_plan_put(rn_conv_cache_t* cache, rn_conv_plan_t* plan) {
  if (!plan) return;
  rn_mutex_lock(&cache->mutex);
  --plan->users;
  rn_mutex_unlock(&cache->mutex);
}

static rn_status_t slot_create(struct rn_conv_engine_t* engine, const rn_conv_plan_t* plan,
                               conv_plan_slot_t** out) {
  const rn_dnnl_t* dnnl = engine->dnnl;
  conv_plan_slot_t* slot = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_default(), &slot));
  const dnnl_memory_desc_t* descs[] = {&plan->x, &plan->w, &plan->y, &plan->scratch};
  dnnl_memory_t* memories[] = {&slot->x, &slot->w, &slot->y, &slot->scratch};
  dnnl_status_t status =
      dnnl->stream_create(&slot->stream, engine->engine, dnnl_stream_default_flags);
  for (int i = 0; i < 4 && !status; ++i)
    status = dnnl->memory_create(memories[i], descs[i], engine->engine, DNNL_MEMORY_NONE);
  for (int i = 0; !status && i < RN_CONV_MOST_STEPS; ++i)
    if (rn_conv_step_code(&plan->conv, i))
      status = dnnl->memory_create(&slot->operands[i], &plan->operands[i], engine->engine,
                                   DNNL_MEMORY_NONE);
  if (status) {
    slot_destroy(dnnl, slot);
    return check(status);
  }
  *out = slot;
  return RN_OK;
}

static rn_status_t slot_take(rn_conv_cache_t* cache, rn_conv_plan_t* plan, conv_plan_slot_t** out) {
  rn_mutex_lock(&cache->mutex);
  *out = plan->slots;
  if (*out) plan->slots = (*out)->next;
  rn_mutex_unlock(&cache->mutex);
  return *out ? RN_OK : slot_create(cache->engine, plan, out);
}

static void slot_give(rn_conv_cache_t* cache, rn_conv_plan_t* plan, conv_plan_slot_t* slot) {
  rn_mutex_lock(&cache->mutex);
  slot->next = plan->slots;
  plan->slots = slot;
  rn_mutex_unlock(&cache->mutex);
}

rn_status_t rn_conv_plan_run(rn_conv_cache_t* cache, rn_conv_plan_t* plan, rn_conv_data_t data,
                             void* const* operands, void* scratch) {
  const rn_dnnl_t* dnnl = cache->engine->dnnl;
  conv_plan_slot_t* slot = NULL;
  RN_RETURN_IF_ERROR(slot_take(cache, plan, &slot));
  rn_conv_kind_t kind = plan->conv.kind;
  dnnl_exec_arg_t args[4 + RN_CONV_MOST_STEPS] = {
      {kind == RN_CONV_INPUT ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, slot->x},
      {kind == RN_CONV_FILTER ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, slot->w},
      {kind == RN_CONV_FORWARD ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, slot->y},
      {DNNL_ARG_SCRATCHPAD, slot->scratch},
  };
  int count = 4, threads = rn_dnnl_enter(dnnl);
  dnnl_status_t status = dnnl->memory_set_data_handle(slot->x, data.x);
  if (!status) status = dnnl->memory_set_data_handle(slot->w, data.w);
  if (!status) status = dnnl->memory_set_data_handle(slot->y, data.y);
  if (!status) status = dnnl->memory_set_data_handle(slot->scratch, scratch);
  for (int i = 0; !status && i < RN_CONV_MOST_STEPS; ++i) {
    if (!slot->operands[i]) continue;
    status = dnnl->memory_set_data_handle(slot->operands[i], operands[i]);
    args[count++] =
        (dnnl_exec_arg_t){DNNL_ARG_ATTR_MULTIPLE_POST_OP(i) | DNNL_ARG_SRC_1, slot->operands[i]};
  }
  if (!status) status = dnnl->primitive_execute(plan->primitive, slot->stream, count, args);
  if (!status) status = dnnl->stream_wait(slot->stream);
  rn_dnnl_leave(dnnl, threads);
  slot_give(cache, plan, slot);
  return check(status);
}

rn_status_t rn_conv_reorder(rn_conv_cache_t* cache, rn_conv_plan_t* plan, void* from, void* to) {
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

// The index of the cached copy of |filter| in |layout|; -1 if there is none.
static int find_kept(const struct rn_conv_engine_t* engine, const rn_tensor_t* filter,
                     const dnnl_memory_desc_t* layout) {
  if (engine->filter.data != filter->data || engine->filter.buffer != filter->buffer) return -1;
  for (int i = 0; i < RN_CONV_MOST_LAYOUTS; ++i)
    if (rn_tensor_is_set(&engine->kept[i].blocks) &&
        engine->dnnl->memory_desc_equal(&engine->kept[i].layout, layout))
      return i;
  return -1;
}

// Stores |blocks| as a cached copy; drops all copies if they are of another filter. What is dropped
// goes to the caller, to be cleared outside the lock.
static void keep_blocks(struct rn_conv_engine_t* engine, rn_tensor_t* filter, rn_tensor_t* blocks,
                        const dnnl_memory_desc_t* layout,
                        rn_tensor_t out_old[RN_CONV_MOST_LAYOUTS]) {
  bool is_same = engine->filter.data == filter->data && engine->filter.buffer == filter->buffer;
  for (int i = 0; i < RN_CONV_MOST_LAYOUTS; ++i) {
    if (is_same && i != engine->next_kept) continue;
    out_old[i] = engine->kept[i].blocks;
    engine->kept[i].blocks = (rn_tensor_t){0};
  }
  engine->kept[engine->next_kept].blocks = *blocks;
  engine->kept[engine->next_kept].layout = *layout;
  engine->next_kept = (engine->next_kept + 1) % RN_CONV_MOST_LAYOUTS;
  rn_tensor_t old = engine->filter;
  engine->filter = *filter;
  *filter = old;
}

rn_status_t rn_conv_kept_blocks(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache, rn_conv_plan_t* plan,
                                const rn_tensor_t* filter, rn_tensor_t* out) {
  struct rn_conv_engine_t* engine = cache->engine;
  rn_mutex_lock(&cache->mutex);
  int kept = find_kept(engine, filter, &plan->w);
  rn_status_t status = kept >= 0 ? rn_tensor_share(&engine->kept[kept].blocks, out) : RN_OK;
  rn_mutex_unlock(&cache->mutex);
  if (kept >= 0) return status;
  int64_t bytes = (int64_t)plan->w_bytes;
  rn_tensor_t made = {0}, shared = {0}, old[RN_CONV_MOST_LAYOUTS] = {0};
  RN_RETURN_IF_ERROR(
      rn_tensor_create(ctx->kernel->device_memory, RN_UINT8, (rn_shape_t){1, &bytes}, &made));
  status = rn_conv_reorder(cache, plan, filter->data, made.data);
  if (rn_ok(status)) status = rn_tensor_share(filter, &shared);
  if (rn_ok(status)) status = rn_tensor_share(&made, out);
  if (!rn_ok(status)) {
    rn_tensor_clear(&made);
    rn_tensor_clear(&shared);
    return status;
  }
  rn_mutex_lock(&cache->mutex);
  keep_blocks(engine, &shared, &made, &plan->w, old);
  rn_mutex_unlock(&cache->mutex);
  rn_tensor_clear(&shared);
  for (int i = 0; i < RN_CONV_MOST_LAYOUTS; ++i) rn_tensor_clear(&old[i]);
  return RN_OK;
}
