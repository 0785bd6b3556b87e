// Shape functions of stateless random numbers, whose key and counter are inputs.
#include "ops/shapes.h"

// A seed is two numbers.
static rn_status_t check_seed(rn_shape_ctx_t* ctx, int i) { return rn_ops_check_vector(ctx, i, 2); }

// Checks key, counter and algorithm, inputs |i| to |i| + 2.
static rn_status_t check_key(rn_shape_ctx_t* ctx, int i) {
  rn_shape_t key;
  int64_t unused;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, i), 1, &key));
  RN_TRY(rn_ops_check_rank(ctx, i + 1, 1));
  RN_TRY(rn_ops_check_rank(ctx, i + 2, 0));
  return rn_dim_with_value(key.dims[0], 1, &unused);
}

rn_status_t rn_shape_fn_stateless(rn_shape_ctx_t* ctx) {
  RN_TRY(check_seed(ctx, 1));
  return rn_shape_from_input(ctx, 0, rn_shape_out(ctx, 0));
}

// Checks that minval and maxval, inputs |i| and |i| + 1, are scalars.
static rn_status_t check_bounds(rn_shape_ctx_t* ctx, int i) {
  for (int k = 0; k < 2; k++) {
    if (!rn_shape_has_rank(rn_shape_in(ctx, i + k)) || rn_shape_in(ctx, i + k).rank == 0) continue;
    rn_strbuf_t text;
    rn_strbuf_init(&text, rn_allocator_default());
    rn_shape_print(&text, rn_shape_in(ctx, i + k));
    rn_status_t status = rn_invalid_argument("%s must be a scalar; got a tensor of shape %s",
                                             k ? "maxval" : "minval", text.data ? text.data : "");
    rn_strbuf_clear(&text);
    return status;
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_stateless_int(rn_shape_ctx_t* ctx) {
  RN_TRY(check_bounds(ctx, 2));
  return rn_shape_fn_stateless(ctx);
}

rn_status_t rn_shape_fn_stateless_key(rn_shape_ctx_t* ctx) {
  RN_TRY(check_key(ctx, 1));
  return rn_shape_from_input(ctx, 0, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_stateless_key_int(rn_shape_ctx_t* ctx) {
  RN_TRY(check_bounds(ctx, 4));
  return rn_shape_fn_stateless_key(ctx);
}

rn_status_t rn_shape_fn_stateless_multinomial(rn_shape_ctx_t* ctx) {
  rn_shape_t logits;
  int64_t samples;
  RN_TRY(check_seed(ctx, 2));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 2, &logits));
  RN_TRY(rn_ops_check_rank(ctx, 1, 0));
  RN_TRY(rn_ops_size_from_input(ctx, 1, &samples));
  return rn_shape_matrix(ctx, logits.dims[0], samples, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_stateless_shuffle(rn_shape_ctx_t* ctx) {
  RN_TRY(check_key(ctx, 1));
  *rn_shape_out(ctx, 0) = rn_shape_in(ctx, 0);
  return RN_OK;
}

rn_status_t rn_shape_fn_stochastic_cast(rn_shape_ctx_t* ctx) {
  return rn_shape_fn_stateless_shuffle(ctx);
}

rn_status_t rn_shape_fn_key_counter(rn_shape_ctx_t* ctx) {
  RN_TRY(check_seed(ctx, 0));
  RN_TRY(rn_shape_vector(ctx, 1, rn_shape_out(ctx, 0)));
  RN_TRY(rn_shape_vector(ctx, 2, rn_shape_out(ctx, 1)));
  if (ctx->output_count > 2) *rn_shape_out(ctx, 2) = RN_SHAPE_SCALAR;
  return RN_OK;
}
