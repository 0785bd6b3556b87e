// Shape functions of ops that take or return the rows of ragged tensors.
#include "ops/shapes.h"
#include "tensor/tstring.h"

// Fails unless inputs 0 … |count| - 1 can be vectors of row splits, and the next one values.
static rn_status_t check_ragged(rn_shape_ctx_t* ctx, int64_t count, rn_shape_t* out_values) {
  rn_shape_t unused;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, count), 1, out_values));
  for (int64_t i = 0; i < count; ++i)
    RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, i), 1, &unused));
  return RN_OK;
}

// Outputs 0 … |count| - 1 are vectors.
static rn_status_t output_splits(rn_shape_ctx_t* ctx, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, i)));
  return RN_OK;
}

rn_status_t rn_shape_fn_ragged_to_sparse(rn_shape_ctx_t* ctx) {
  int64_t partitions = rn_ops_int(ctx, "RAGGED_RANK"), rank = RN_UNKNOWN, count;
  rn_shape_t values;
  RN_TRY(check_ragged(ctx, partitions, &values));
  if (!rn_shape_count(values, &count)) return rn_invalid_argument("The values are too many");
  if (rn_shape_has_rank(values)) rank = values.rank + partitions;
  RN_TRY(rn_shape_matrix(ctx, count, rank, rn_shape_out(ctx, 0)));
  RN_TRY(rn_shape_vector(ctx, count, rn_shape_out(ctx, 1)));
  return rn_shape_vector(ctx, rank, rn_shape_out(ctx, 2));
}

rn_status_t rn_shape_fn_ragged_to_variant(rn_shape_ctx_t* ctx) {
  int64_t partitions = rn_ops_int(ctx, "RAGGED_RANK");
  rn_shape_t values;
  RN_TRY(check_ragged(ctx, partitions, &values));
  if (!rn_ops_bool(ctx, "batched_input")) {
    *rn_shape_out(ctx, 0) = RN_SHAPE_SCALAR;
    return RN_OK;
  }
  int64_t splits = rn_shape_dim(rn_shape_in(ctx, 0), 0);
  if (partitions == 0) return rn_shape_vector(ctx, splits, rn_shape_out(ctx, 0));
  if (splits == 0)
    return rn_invalid_argument("Negative dimension size caused by subtracting 1 from 0");
  return rn_shape_vector(ctx, splits < 0 ? RN_UNKNOWN : splits - 1, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_ragged_to_variant_gradient(rn_shape_ctx_t* ctx) {
  return rn_shape_from_input(ctx, 2, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_ragged_from_variant(rn_shape_ctx_t* ctx) {
  int64_t in = rn_ops_int(ctx, "input_ragged_rank"), out = rn_ops_int(ctx, "output_ragged_rank");
  rn_shape_t variants = rn_shape_in(ctx, 0);
  if (rn_shape_has_rank(variants) && in >= 0) {
    int64_t rank = out - in;
    bool fits = rank >= -RN_MAX_RANK && rank <= RN_MAX_RANK;
    RN_TRY(rn_shape_with_rank(ctx, variants, fits ? (int)rank : RN_MAX_RANK + 1, &variants));
  }
  return output_splits(ctx, out);
}

rn_status_t rn_shape_fn_ragged_gather(rn_shape_ctx_t* ctx) {
  int64_t params = rn_ops_int(ctx, "PARAMS_RAGGED_RANK");
  int64_t splits = rn_ops_int(ctx, "OUTPUT_RAGGED_RANK"), rank = splits - params + 1;
  rn_shape_t values, row, rows;
  bool fits = rank >= -RN_MAX_RANK && rank <= RN_MAX_RANK;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, params + 1), fits ? (int)rank : RN_MAX_RANK + 1,
                            &rows));
  RN_TRY(check_ragged(ctx, params, &values));
  RN_TRY(output_splits(ctx, splits));
  RN_TRY(rn_shape_slice(ctx, values, 1, INT_MAX, &row));
  RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, &rows));
  return rn_shape_concat(ctx, rows, row, rn_shape_out(ctx, splits));
}

rn_status_t rn_shape_fn_ragged_range(rn_shape_ctx_t* ctx) {
  int64_t rows = RN_UNKNOWN;
  int scalars = 0;
  for (int i = 0; i < 3; ++i) {
    rn_shape_t in;
    RN_TRY(rn_shape_with_rank_at_most(ctx, rn_shape_in(ctx, i), 1, &in));
    scalars += in.rank == 0;
    if (in.rank == 1) RN_TRY(rn_dim_merge(in.dims[0], rows, &rows));
  }
  if (scalars == 3) rows = 1;
  RN_TRY(rn_shape_vector(ctx, rows < 0 ? RN_UNKNOWN : rows + 1, rn_shape_out(ctx, 0)));
  return rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 1));
}

rn_status_t rn_shape_fn_ragged_fill_empty_rows(rn_shape_ctx_t* ctx) {
  rn_shape_t ids, values;
  int64_t count;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 1, &ids));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &values));
  RN_TRY(rn_ops_check_scalars(ctx, 2, 3));
  RN_TRY(rn_dim_merge(ids.dims[0], values.dims[0], &count));
  RN_TRY(output_splits(ctx, 3));
  return rn_shape_vector(ctx, count, rn_shape_out(ctx, 3));
}

// All inputs have the same number of rows, which is one less than that of row splits.
rn_status_t rn_shape_fn_ragged_cross(rn_shape_ctx_t* ctx) {
  int32_t ragged = rn_shape_attr(ctx, "ragged_values_types")->count;
  int32_t splits = rn_shape_attr(ctx, "ragged_splits_types")->count;
  int32_t dense = rn_shape_attr(ctx, "dense_types")->count;
  int64_t first_dense = 2 * (int64_t)ragged + 3 * rn_ops_int(ctx, "Nsparse");
  if (ragged != splits)
    return rn_invalid_argument("Parameters `values` and `row_splits` must be the same length");
  rn_shape_t out;
  RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, &out));
  for (int64_t i = 0; i < splits + dense; ++i) {
    rn_shape_t in = rn_shape_in(ctx, i < splits ? ragged + i : first_dense + i - splits);
    if (i >= splits) {
      if (rn_shape_has_rank(in) && in.rank != 2)
        return rn_invalid_argument("tf.ragged.cross only supports inputs with rank=2");
      int64_t rows = rn_shape_dim(in, 0);
      RN_TRY(rn_shape_vector(ctx, rows < 0 ? RN_UNKNOWN : rows + 1, &in));
    }
    if (!rn_shape_compatible(out, in))
      return rn_invalid_argument("inputs must all have the same batch dimension size.");
    RN_TRY(rn_shape_merge(ctx, out, in, &out));
  }
  *rn_shape_out(ctx, 1) = out;
  return rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_fingerprint(rn_shape_ctx_t* ctx) {
  rn_shape_t data;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, &data));
  RN_TRY(rn_ops_check_rank(ctx, 1, 0));
  const rn_tensor_t* method = rn_shape_input_value(ctx, 1);
  if (method && method->count == 1) {
    rn_str_t name = rn_tstring_view(RN_DATA(method, const rn_tstring_t));
    if (!rn_str_is(name, "farmhash64"))
      return rn_invalid_argument("Unsupported method: %.*s", RN_STR_ARGS(name));
  }
  return rn_shape_matrix(ctx, rn_shape_dim(data, 0), method ? 8 : RN_UNKNOWN, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_parallel_concat_start(rn_shape_ctx_t* ctx) {
  return rn_ops_attr_shape(ctx, "shape", rn_shape_out(ctx, 0));
}
