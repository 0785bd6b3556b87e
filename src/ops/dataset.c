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
static const char* const scalars[] = {"batch_size",
                                      "buffer_size",
                                      "cardinality",
                                      "chunk_file",
                                      "compression_type",
                                      "count",
                                      "data_source_name",
                                      "driver_name",
                                      "drop_remainder",
                                      "field_delim",
                                      "filename",
                                      "footer_bytes",
                                      "header",
                                      "header_bytes",
                                      "index",
                                      "na_value",
                                      "num_shards",
                                      "path",
                                      "query",
                                      "rate",
                                      "record_bytes",
                                      "seed",
                                      "seed2",
                                      "shard_dir",
                                      "shift",
                                      "size",
                                      "sleep_microseconds",
                                      "snapshot_path",
                                      "start",
                                      "start_index",
                                      "step",
                                      "stop",
                                      "stride",
                                      "tag",
                                      "use_quote_delim",
                                      "window_shift",
                                      "window_size",
                                      "window_stride"};
static const char* const vectors[] = {"row_shape", "select_cols", "transformations"};
static const char* const lists[] = {"filenames", "patterns"};  // scalars or vectors

static bool is_one_of(const char* name, const char* const* names, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (rn_ops_is(names[i], name)) return true;
  return false;
}
#define IS_ONE_OF(name, names) is_one_of(name, names, sizeof(names) / sizeof *(names))

rn_status_t rn_shape_fn_dataset(rn_shape_ctx_t* ctx) {
  int32_t at = 0;
  for (int i = 0; i < ctx->op->input_count; ++i) {
    const char* name = ctx->op->inputs[i].name;
    if (IS_ONE_OF(name, scalars)) RN_TRY(rn_ops_check_rank(ctx, at, 0));
    if (IS_ONE_OF(name, vectors)) RN_TRY(rn_ops_check_rank(ctx, at, 1));
    rn_shape_t unused;
    if (IS_ONE_OF(name, lists))
      RN_TRY(rn_shape_with_rank_at_most(ctx, rn_shape_in(ctx, at), 1, &unused));
    at += rn_arg_length(&ctx->op->inputs[i], ctx->attrs);
  }
  return ctx->op->output_count ? rn_shape_fn_scalar(ctx) : RN_OK;
}

rn_status_t rn_shape_fn_iterator_state(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 0));
  return rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_table_from_dataset(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 0));
  return rn_ops_check_rank(ctx, 1, 0);
}

// The rows of the results: as many as the arguments have.
rn_status_t rn_shape_fn_map_defun(rn_shape_ctx_t* ctx) {
  const rn_attr_value_t* shapes = rn_shape_attr(ctx, "output_shapes");
  int32_t args = rn_shape_attr(ctx, "Targuments")->count;
  rn_shape_t rows = RN_SHAPE_UNKNOWN, unused;
  if (shapes->count != ctx->output_count)
    return rn_invalid_argument(
        "`output_shapes` must be the same length as `output_types` (%d vs. %d)", shapes->count,
        ctx->output_count);
  RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, &rows));
  for (int32_t i = 0; i < args; ++i) {
    RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, i), 1, &unused));
    if (!rn_shape_has_rank(unused)) continue;
    rn_shape_t first = {1, unused.dims};
    RN_TRY(rn_shape_merge(ctx, rows, first, &rows));
  }
  for (int i = 0; i < ctx->output_count; ++i)
    RN_TRY(rn_shape_concat(ctx, rows, shapes->list_shape[i], rn_shape_out(ctx, i)));
  return RN_OK;
}
