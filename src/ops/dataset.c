// Shape functions of datasets and iterators.
#include "ops/shapes.h"

rn_status_t rn_shape_fn_iterator_get_next(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 0));
  const rn_attr_value_t* shapes = rn_shape_attr(ctx, "output_shapes");
  if (shapes->count != ctx->output_count) {
    return rn_invalid_argument(
        "`output_shapes` must be the same length as `output_types` (%d vs. %d)", shapes->count,
        ctx->output_count);
  }
  for (int i = 0; i < ctx->output_count; i++) {
    rn_shape_t shape = shapes->list_shape[i];
    RN_TRY(rn_shape_with_rank_at_most(ctx, shape, RN_MAX_RANK, rn_shape_out(ctx, i)));
  }
  return RN_OK;
}

// The inputs of dataset ops that must be scalars.
static const char* const scalars[] = {
    "batch_size",   "buffer_size",    "cardinality", "compression_type",
    "count",        "drop_remainder", "filename",    "footer_bytes",
    "header_bytes", "index",          "num_shards",  "path",
    "record_bytes", "seed",           "seed2",       "shift",
    "size",         "start",          "step",        "stop",
    "stride"};

static bool is_scalar(const char* name) {
  for (size_t i = 0; i < sizeof scalars / sizeof *scalars; ++i)
    if (rn_ops_is(scalars[i], name)) return true;
  return false;
}

rn_status_t rn_shape_fn_dataset(rn_shape_ctx_t* ctx) {
  int32_t at = 0;
  for (int i = 0; i < ctx->op->input_count; ++i) {
    const char* name = ctx->op->inputs[i].name;
    if (is_scalar(name)) RN_TRY(rn_ops_check_rank(ctx, at, 0));
    rn_shape_t unused;
    if (rn_ops_is(name, "filenames"))
      RN_TRY(rn_shape_with_rank_at_most(ctx, rn_shape_in(ctx, at), 1, &unused));
    at += rn_arg_length(&ctx->op->inputs[i], ctx->attrs);
  }
  return ctx->op->output_count ? rn_shape_fn_scalar(ctx) : RN_OK;
}

rn_status_t rn_shape_fn_iterator_state(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 0));
  return rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 0));
}
