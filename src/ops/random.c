// Shape functions of random numbers and candidate samplers.
#include "ops/shapes.h"

rn_status_t rn_shape_fn_random(rn_shape_ctx_t* ctx) {
  return rn_shape_from_input(ctx, 0, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_random_int(rn_shape_ctx_t* ctx) {
  static const char* const names[] = {"", "minval", "maxval"};
  for (int i = 1; i <= 2; i++) {
    if (!rn_shape_has_rank(rn_shape_in(ctx, i)) || rn_shape_in(ctx, i).rank == 0) continue;
    rn_strbuf_t text;
    rn_strbuf_init(&text, rn_allocator_default());
    rn_shape_print(&text, rn_shape_in(ctx, i));
    rn_status_t status = rn_invalid_argument("%s must be a scalar; got a tensor of shape %s",
                                             names[i], text.data ? text.data : "");
    rn_strbuf_clear(&text);
    return status;
  }
  return rn_shape_fn_random(ctx);
}

rn_status_t rn_shape_fn_random_gamma(rn_shape_ctx_t* ctx) {
  rn_shape_t sample;
  RN_TRY(rn_shape_from_input(ctx, 0, &sample));
  return rn_shape_concat(ctx, sample, rn_shape_in(ctx, 1), rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_parameterized_normal(rn_shape_ctx_t* ctx) {
  for (int i = 1; i <= 4; i++) {
    rn_shape_t unused;
    RN_TRY(rn_shape_with_rank_at_most(ctx, rn_shape_in(ctx, i), 1, &unused));
  }
  return rn_shape_fn_random(ctx);
}

rn_status_t rn_shape_fn_multinomial(rn_shape_ctx_t* ctx) {
  rn_shape_t logits;
  int64_t samples;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 2, &logits));
  RN_TRY(rn_ops_check_rank(ctx, 1, 0));
  RN_TRY(rn_ops_size_from_input(ctx, 1, &samples));
  return rn_shape_matrix(ctx, logits.dims[0], samples, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_candidate_sampler(rn_shape_ctx_t* ctx) {
  rn_shape_t classes;
  int64_t sampled = rn_ops_int(ctx, "num_sampled"), true_count = rn_ops_int(ctx, "num_true");
  if (sampled < 1) {
    return rn_invalid_argument("num_sampled must be >= 1, got %" PRId64, sampled);
  }
  if (true_count < 1) {
    return rn_invalid_argument("num_true must be >= 1, got %" PRId64, true_count);
  }
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 2, &classes));
  RN_TRY(rn_shape_vector(ctx, sampled, rn_shape_out(ctx, 0)));
  RN_TRY(rn_shape_matrix(ctx, classes.dims[0], true_count, rn_shape_out(ctx, 1)));
  *rn_shape_out(ctx, 2) = *rn_shape_out(ctx, 0);
  return RN_OK;
}

rn_status_t rn_shape_fn_accidental_hits(rn_shape_ctx_t* ctx) {
  rn_shape_t classes;
  int64_t unused;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 2, &classes));
  RN_TRY(rn_dim_with_value(classes.dims[1], rn_ops_int(ctx, "num_true"), &unused));
  RN_TRY(rn_ops_check_rank(ctx, 1, 1));
  RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 0)));
  *rn_shape_out(ctx, 1) = *rn_shape_out(ctx, 2) = *rn_shape_out(ctx, 0);
  return RN_OK;
}

// Generators whose state is in a variable.

rn_status_t rn_shape_fn_stateful(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 1, 0));
  return rn_shape_from_input(ctx, 2, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_stateful_first(rn_shape_ctx_t* ctx) {
  return rn_shape_from_input(ctx, 1, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_stateful_int(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 1, 0));
  RN_TRY(rn_ops_check_scalars(ctx, 3, 4));
  return rn_shape_from_input(ctx, 2, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_rng_read(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_scalars(ctx, 1, 2));
  return rn_shape_vector(ctx, 3, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_rng_skip(rn_shape_ctx_t* ctx) { return rn_ops_check_scalars(ctx, 1, 2); }

rn_status_t rn_shape_fn_random_index_shuffle(rn_shape_ctx_t* ctx) {
  rn_shape_t index, seed, most;
  RN_TRY(rn_shape_with_rank_at_most(ctx, rn_shape_in(ctx, 0), 1, &index));
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 1), 1, &seed));
  RN_TRY(rn_shape_with_rank_at_most(ctx, seed, 2, &seed));
  RN_TRY(rn_shape_with_rank_at_most(ctx, rn_shape_in(ctx, 2), 1, &most));
  int64_t width = rn_shape_dim(seed, -1);
  if (seed.rank == 1 && width >= 0 && width != 3)
    return rn_invalid_argument("Seed must have shape [3] or [n, 3] but got [%" PRId64 "].", width);
  if (index.rank == 0 && seed.rank == 1 && most.rank == 0) {
    *rn_shape_out(ctx, 0) = RN_SHAPE_SCALAR;
    return RN_OK;
  }
  if (index.rank == 0 && (seed.rank < 0 || most.rank < 0)) return RN_OK;
  int64_t count = RN_UNKNOWN;
  if (index.rank == 1)
    count = index.dims[0];
  else if (seed.rank == 2)
    count = seed.dims[0];
  else if (most.rank == 1)
    count = most.dims[0];
  if (seed.rank == 2 && count >= 0 && seed.dims[0] >= 0 && seed.dims[0] != count)
    return rn_invalid_argument("Seed has shape [%" PRId64 ", %" PRId64
                               "] but must have shape [%" PRId64
                               ", 3]. since index had shape [%" PRId64 "].",
                               seed.dims[0], width, count, count);
  if (most.rank == 1 && count >= 0 && most.dims[0] >= 0 && most.dims[0] != count)
    return rn_invalid_argument("Max index has shape [%" PRId64 "] but must have shape [%" PRId64
                               "].",
                               most.dims[0], count);
  return rn_shape_vector(ctx, count, rn_shape_out(ctx, 0));
}
