// Ops of plug-ins, and the API for their shape functions.
#include "tensorflow/c/ops.h"
#include "base/vec.h"
#include "capi/internal.h"
#include "framework/op_spec.h"
#include "framework/shape_fn.h"

typedef void (*client_shape_fn_t)(TF_ShapeInferenceContext* ctx, TF_Status* status);

// Registered definitions are never freed; the definition leads to the shape function.
typedef struct plugin_op_t {
  rn_op_def_t def;
  client_shape_fn_t shape;
  rn_arena_t arena;  // holds what |def| points to
} plugin_op_t;

struct TF_OpDefinitionBuilder {
  plugin_op_t* op;  // Owned until registered
  rn_status_t error;
  RN_VEC(rn_attr_def_t) attrs;
  RN_VEC(rn_str_t) inputs;  // parsed at the end, when all attributes are known
  RN_VEC(rn_str_t) outputs;
};

static void op_destroy(plugin_op_t* op) {
  if (!op) return;
  rn_arena_clear(&op->arena);
  RN_FREE(rn_capi_allocator(), op);
}

void TF_DeleteOpDefinitionBuilder(TF_OpDefinitionBuilder* builder) {
  if (!builder) return;
  // Defaults may hold tensors; a registered op owns its own.
  for (size_t i = 0; builder->op && i < builder->attrs.count; ++i) {
    if (builder->attrs.items[i].has_default) {
      rn_attr_value_clear(&builder->attrs.items[i].default_value);
    }
  }
  rn_vec_free(&builder->attrs, rn_capi_allocator());
  rn_vec_free(&builder->inputs, rn_capi_allocator());
  rn_vec_free(&builder->outputs, rn_capi_allocator());
  rn_status_free(builder->error);
  op_destroy(builder->op);
  RN_FREE(rn_capi_allocator(), builder);
}

static void fail(TF_OpDefinitionBuilder* builder, rn_status_t status) {
  if (!rn_ok(status)) builder->error = rn_status_join(builder->error, status);
}

static rn_status_t builder_create(const char* name, TF_OpDefinitionBuilder** out) {
  RN_RETURN_IF_ERROR(RN_NEW(rn_capi_allocator(), out));
  TF_OpDefinitionBuilder* builder = *out;
  RN_RETURN_IF_ERROR(RN_NEW(rn_capi_allocator(), &builder->op));
  rn_arena_init(&builder->op->arena, rn_capi_allocator());
  rn_str_t copy;
  RN_RETURN_IF_ERROR(rn_arena_str(&builder->op->arena, rn_str(name), &copy));
  builder->op->def.name = copy.data;
  builder->op->def.summary = "";
  if (!rn_op_spec_is_op_name(copy)) {
    fail(builder,
         rn_invalid_argument("'%s' is no name for an op: it must be in CamelCase", copy.data));
  }
  return RN_OK;
}

TF_OpDefinitionBuilder* TF_NewOpDefinitionBuilder(const char* op_name) {
  TF_OpDefinitionBuilder* builder = NULL;
  if (!op_name) return NULL;
  rn_status_t status = builder_create(op_name, &builder);
  if (rn_ok(status)) return builder;
  rn_status_free(status);
  TF_DeleteOpDefinitionBuilder(builder);
  return NULL;
}

void TF_OpDefinitionBuilderAddAttr(TF_OpDefinitionBuilder* builder, const char* attr_spec) {
  if (!builder) return;
  rn_attr_def_t attr;
  rn_status_t status = attr_spec ? rn_op_spec_attr(&builder->op->arena, rn_str(attr_spec), &attr)
                                 : RN_CAPI_NULL("attr_spec");
  if (rn_ok(status)) {
    status = rn_vec_push(&builder->attrs, rn_capi_allocator(), attr);
    if (!rn_ok(status) && attr.has_default) rn_attr_value_clear(&attr.default_value);
  }
  fail(builder, status);
}

void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder* builder, const char* input_spec) {
  if (!builder) return;
  rn_str_t copy;
  rn_status_t status = input_spec ? rn_arena_str(&builder->op->arena, rn_str(input_spec), &copy)
                                  : RN_CAPI_NULL("input_spec");
  if (rn_ok(status)) status = rn_vec_push(&builder->inputs, rn_capi_allocator(), copy);
  fail(builder, status);
}

void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder* builder, const char* output_spec) {
  if (!builder) return;
  rn_str_t copy;
  rn_status_t status = output_spec ? rn_arena_str(&builder->op->arena, rn_str(output_spec), &copy)
                                   : RN_CAPI_NULL("output_spec");
  if (rn_ok(status)) status = rn_vec_push(&builder->outputs, rn_capi_allocator(), copy);
  fail(builder, status);
}

static void set_flag(TF_OpDefinitionBuilder* builder, uint16_t flag, bool on) {
  if (!builder) return;
  uint16_t flags = builder->op->def.flags;
  builder->op->def.flags = (uint16_t)(on ? flags | flag : flags & ~flag);
}

void TF_OpDefinitionBuilderSetIsCommutative(TF_OpDefinitionBuilder* builder, bool is_commutative) {
  set_flag(builder, RN_OP_COMMUTATIVE, is_commutative);
}

void TF_OpDefinitionBuilderSetIsAggregate(TF_OpDefinitionBuilder* builder, bool is_aggregate) {
  set_flag(builder, RN_OP_AGGREGATE, is_aggregate);
}

void TF_OpDefinitionBuilderSetIsStateful(TF_OpDefinitionBuilder* builder, bool is_stateful) {
  set_flag(builder, RN_OP_STATEFUL, is_stateful);
}

void TF_OpDefinitionBuilderSetAllowsUninitializedInput(TF_OpDefinitionBuilder* builder,
                                                       bool allows_uninitialized_input) {
  set_flag(builder, RN_OP_ALLOWS_UNINITIALIZED, allows_uninitialized_input);
}

void TF_OpDefinitionBuilderDeprecated(TF_OpDefinitionBuilder* builder, int version,
                                      const char* explanation) {
  if (!builder) return;
  rn_str_t copy;
  rn_status_t status = rn_arena_str(&builder->op->arena, rn_str(explanation), &copy);
  if (rn_ok(status)) {
    builder->op->def.deprecated_at = version;
    builder->op->def.deprecation = copy.data;
  }
  fail(builder, status);
}

// Calls the plug-in's function.
static rn_status_t infer(rn_shape_ctx_t* ctx) {
  const plugin_op_t* op = (const plugin_op_t*)ctx->op;
  TF_Status status = {RN_OK};
  op->shape((TF_ShapeInferenceContext*)ctx, &status);
  return status.rep;
}

void TF_OpDefinitionBuilderSetShapeInferenceFunction(
    TF_OpDefinitionBuilder* builder,
    void (*shape_inference_func)(TF_ShapeInferenceContext* ctx, TF_Status* status)) {
  if (builder) builder->op->shape = shape_inference_func;
}

static rn_status_t parse_args(TF_OpDefinitionBuilder* builder, const rn_str_t* specs, size_t count,
                              const rn_arg_def_t** out, int16_t* out_count) {
  rn_arg_def_t* args = NULL;
  if (count > INT16_MAX) return rn_invalid_argument("An op may not have %zu arguments", count);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&builder->op->arena, count, &args));
  for (size_t i = 0; i < count; ++i) {
    RN_RETURN_IF_ERROR(rn_op_spec_arg(&builder->op->arena, specs[i], builder->attrs.items,
                                      (int)builder->attrs.count, &args[i]));
    // As in stock: what uses a resource depends on more than its inputs.
    if (args[i].type == RN_RESOURCE) set_flag(builder, RN_OP_STATEFUL, true);
  }
  *out = args;
  *out_count = (int16_t)count;
  return RN_OK;
}

static rn_status_t complete(TF_OpDefinitionBuilder* builder) {
  rn_op_def_t* def = &builder->op->def;
  rn_attr_def_t* attrs = NULL;
  if (builder->attrs.count > INT16_MAX) return rn_invalid_argument("Too many attributes");
  RN_RETURN_IF_ERROR(parse_args(builder, builder->inputs.items, builder->inputs.count, &def->inputs,
                                &def->input_count));
  RN_RETURN_IF_ERROR(parse_args(builder, builder->outputs.items, builder->outputs.count,
                                &def->outputs, &def->output_count));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&builder->op->arena, builder->attrs.count, &attrs));
  for (size_t i = 0; i < builder->attrs.count; ++i) attrs[i] = builder->attrs.items[i];
  def->attrs = attrs;
  def->attr_count = (int16_t)builder->attrs.count;
  def->shape = builder->op->shape ? infer : rn_shape_fn_missing;
  return RN_OK;
}

void TF_RegisterOpDefinition(TF_OpDefinitionBuilder* builder, TF_Status* status) {
  if (!builder) {
    rn_capi_set(status, RN_CAPI_NULL("builder"));
    return;
  }
  rn_status_t outcome = builder->error;
  builder->error = RN_OK;
  if (rn_ok(outcome)) outcome = complete(builder);
  if (rn_ok(outcome)) outcome = rn_capi_note_room();
  if (rn_ok(outcome)) outcome = rn_op_register(&builder->op->def);
  if (rn_ok(outcome)) {
    // The same definition may already have been registered.
    const rn_op_def_t* registered = rn_op_find(rn_str(builder->op->def.name));
    rn_capi_note_op(registered);
    if (registered == &builder->op->def) builder->op = NULL;
  } else {
    outcome = rn_status_annotate(outcome, " for Op %s", builder->op->def.name);
  }
  TF_DeleteOpDefinitionBuilder(builder);
  rn_capi_set(status, outcome);
}

struct TF_ShapeHandle {
  rn_shape_t shape;  // dims are in the arena of the call that made them
};

struct TF_DimensionHandle {
  int64_t value;
};

static rn_shape_ctx_t* own(TF_ShapeInferenceContext* ctx) { return (rn_shape_ctx_t*)ctx; }

static TF_ShapeHandle* new_handle(rn_shape_t shape) {
  TF_ShapeHandle* handle = NULL;
  rn_status_t status = RN_NEW(rn_capi_allocator(), &handle);
  if (!rn_ok(status)) {
    rn_status_free(status);
    return NULL;
  }
  handle->shape = shape;
  return handle;
}

TF_ShapeHandle* TF_NewShapeHandle(void) { return new_handle(RN_SHAPE_UNKNOWN); }

void TF_DeleteShapeHandle(TF_ShapeHandle* handle) {
  if (handle) RN_FREE(rn_capi_allocator(), handle);
}

TF_DimensionHandle* TF_NewDimensionHandle(void) {
  TF_DimensionHandle* handle = NULL;
  rn_status_t status = RN_NEW(rn_capi_allocator(), &handle);
  if (!rn_ok(status)) {
    rn_status_free(status);
    return NULL;
  }
  handle->value = RN_UNKNOWN;
  return handle;
}

void TF_DeleteDimensionHandle(TF_DimensionHandle* handle) {
  if (handle) RN_FREE(rn_capi_allocator(), handle);
}

int TF_DimensionHandleValueKnown(TF_DimensionHandle* dim_handle) {
  return dim_handle && dim_handle->value != RN_UNKNOWN;
}

int64_t TF_DimensionHandleValue(TF_DimensionHandle* dim_handle) {
  return dim_handle ? dim_handle->value : RN_UNKNOWN;
}

int64_t TF_ShapeInferenceContextNumInputs(TF_ShapeInferenceContext* ctx) {
  return ctx ? own(ctx)->input_count : 0;
}

// INVALID_ARGUMENT if a pointer is missing.
static rn_status_t check(const void* ctx, const void* a, const void* b, const char* function) {
  if (!ctx) return rn_capi_null(function, "ctx");
  return a && b ? RN_OK : rn_capi_null(function, "handle");
}

void TF_ShapeInferenceContextGetInput(TF_ShapeInferenceContext* ctx, int i, TF_ShapeHandle* handle,
                                      TF_Status* status) {
  rn_status_t outcome = check(ctx, handle, handle, __func__);
  if (rn_ok(outcome) && (i < 0 || i >= own(ctx)->input_count)) {
    outcome = rn_invalid_argument("input index out of range");
  }
  if (rn_ok(outcome)) handle->shape = own(ctx)->inputs[i];
  rn_capi_set(status, outcome);
}

void TF_ShapeInferenceContextSetOutput(TF_ShapeInferenceContext* ctx, int i, TF_ShapeHandle* handle,
                                       TF_Status* status) {
  rn_status_t outcome = check(ctx, handle, handle, __func__);
  if (rn_ok(outcome) && (i < 0 || i >= own(ctx)->output_count)) {
    outcome = rn_invalid_argument("output index out of range");
  }
  if (rn_ok(outcome)) own(ctx)->outputs[i] = handle->shape;
  rn_capi_set(status, outcome);
}

void TF_ShapeInferenceContextSetUnknownShape(TF_ShapeInferenceContext* ctx, TF_Status* status) {
  rn_capi_set(status, ctx ? rn_shape_fn_unknown(own(ctx)) : RN_CAPI_NULL("ctx"));
}

TF_ShapeHandle* TF_ShapeInferenceContextScalar(TF_ShapeInferenceContext* ctx) {
  return ctx ? new_handle(RN_SHAPE_SCALAR) : NULL;
}

TF_ShapeHandle* TF_ShapeInferenceContextVectorFromSize(TF_ShapeInferenceContext* ctx, size_t size) {
  if (!ctx || size > INT64_MAX) return NULL;
  rn_shape_t shape;
  rn_status_t status = rn_shape_vector(own(ctx), (int64_t)size, &shape);
  if (rn_ok(status)) return new_handle(shape);
  rn_status_free(status);
  return NULL;
}

void TF_ShapeInferenceContext_GetAttrType(TF_ShapeInferenceContext* ctx, const char* attr_name,
                                          TF_DataType* val, TF_Status* status) {
  if (!ctx || !attr_name || !val) {
    rn_capi_set(status, RN_CAPI_NULL(!ctx ? "ctx" : attr_name ? "val" : "attr_name"));
    return;
  }
  rn_status_t outcome = RN_OK;
  int index = rn_op_attr_index(own(ctx)->op, rn_str(attr_name));
  if (index < 0) {
    outcome = rn_not_found("No attr named '%s' in NodeDef:", attr_name);
  } else if (own(ctx)->attrs[index].kind != RN_ATTR_TYPE || own(ctx)->attrs[index].is_list) {
    const rn_attr_value_t* value = &own(ctx)->attrs[index];
    outcome = rn_invalid_argument("AttrValue had value with type '%s' when 'type' expected",
                                  rn_attr_kind_name(value->kind, value->is_list));
  } else {
    *val = (TF_DataType)own(ctx)->attrs[index].type;
  }
  rn_capi_set(status, outcome);
}

int64_t TF_ShapeInferenceContextRank(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle) {
  return ctx && handle ? handle->shape.rank : RN_UNKNOWN;
}

int TF_ShapeInferenceContextRankKnown(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle) {
  return ctx && handle && rn_shape_has_rank(handle->shape);
}

typedef rn_status_t (*rank_fn_t)(rn_shape_ctx_t*, rn_shape_t, int, rn_shape_t*);

static void with_rank(rank_fn_t fn, TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle,
                      int64_t rank, TF_ShapeHandle* result, const char* function,
                      TF_Status* status) {
  rn_status_t outcome = check(ctx, handle, result, function);
  if (rn_ok(outcome) && (rank < 0 || rank > INT32_MAX)) {
    outcome = rn_invalid_argument("Rank cannot be %lld", (long long)rank);
  }
  if (rn_ok(outcome)) outcome = fn(own(ctx), handle->shape, (int)rank, &result->shape);
  rn_capi_set(status, outcome);
}

void TF_ShapeInferenceContextWithRank(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle,
                                      int64_t rank, TF_ShapeHandle* result, TF_Status* status) {
  with_rank(rn_shape_with_rank, ctx, handle, rank, result, __func__, status);
}

void TF_ShapeInferenceContextWithRankAtLeast(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle,
                                             int64_t rank, TF_ShapeHandle* result,
                                             TF_Status* status) {
  with_rank(rn_shape_with_rank_at_least, ctx, handle, rank, result, __func__, status);
}

void TF_ShapeInferenceContextWithRankAtMost(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle,
                                            int64_t rank, TF_ShapeHandle* result,
                                            TF_Status* status) {
  with_rank(rn_shape_with_rank_at_most, ctx, handle, rank, result, __func__, status);
}

void TF_ShapeInferenceContextDim(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* shape_handle,
                                 int64_t i, TF_DimensionHandle* result) {
  if (!result) return;
  result->value = RN_UNKNOWN;
  if (!ctx || !shape_handle) return;
  int64_t rank = shape_handle->shape.rank;
  if (rank > 0 && i >= -rank && i < rank) {
    result->value = rn_shape_dim(shape_handle->shape, (int)i);
  }
}

void TF_ShapeInferenceContextSubshape(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* shape_handle,
                                      int64_t start, int64_t end, TF_ShapeHandle* result,
                                      TF_Status* status) {
  rn_status_t outcome = check(ctx, shape_handle, result, __func__);
  if (end > INT32_MAX) end = INT32_MAX;  // to the end
  if (rn_ok(outcome)) {
    outcome = rn_shape_slice(own(ctx), shape_handle->shape, start, end, &result->shape);
  }
  rn_capi_set(status, outcome);
}

void TF_ShapeInferenceContextConcatenateShapes(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* first,
                                               TF_ShapeHandle* second, TF_ShapeHandle* result,
                                               TF_Status* status) {
  rn_status_t outcome = check(ctx, first, second, __func__);
  if (rn_ok(outcome)) outcome = check(ctx, result, result, __func__);
  if (rn_ok(outcome)) {
    outcome = rn_shape_concat(own(ctx), first->shape, second->shape, &result->shape);
  }
  rn_capi_set(status, outcome);
}
