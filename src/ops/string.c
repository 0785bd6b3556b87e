// Shape functions of string ops.
#include "ops/shapes.h"

rn_status_t rn_shape_fn_reduce(rn_shape_ctx_t* ctx);

rn_status_t rn_shape_fn_reduce_join(rn_shape_ctx_t* ctx) { return rn_shape_fn_reduce(ctx); }

rn_status_t rn_shape_fn_regex_full_match(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 1, 0));
  return rn_shape_fn_unchanged(ctx);
}

rn_status_t rn_shape_fn_regex_replace(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_scalars(ctx, 1, 2));
  return rn_shape_fn_unchanged(ctx);
}

rn_status_t rn_shape_fn_string_format(rn_shape_ctx_t* ctx) {
  rn_str_t text = rn_shape_attr(ctx, "template")->s, mark = rn_shape_attr(ctx, "placeholder")->s;
  int found = 0;
  for (size_t i = 0; mark.size && i + mark.size <= text.size;) {
    bool here = !memcmp(text.data + i, mark.data, mark.size);
    found += here;
    i += here ? mark.size : 1;
  }
  if (found != ctx->input_count) {
    return rn_invalid_argument("num placeholders in template and num inputs must match: %d vs. %d",
                               found, ctx->input_count);
  }
  return rn_shape_fn_scalar(ctx);
}

// Scalars broadcast; all other inputs must have the same shape.
rn_status_t rn_shape_fn_string_join(rn_shape_ctx_t* ctx) {
  rn_shape_t merged = RN_SHAPE_UNKNOWN;
  bool all_scalar = true;
  for (int i = 0; i < ctx->input_count; i++) {
    if (rn_shape_in(ctx, i).rank == 0) continue;
    all_scalar = false;
    RN_TRY(rn_shape_merge(ctx, merged, rn_shape_in(ctx, i), &merged));
  }
  *rn_shape_out(ctx, 0) = all_scalar ? RN_SHAPE_SCALAR : merged;
  return RN_OK;
}

static rn_status_t sparse_rows(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_shape_matrix(ctx, RN_UNKNOWN, 2, rn_shape_out(ctx, 0)));
  RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 1)));
  return rn_shape_vector(ctx, 2, rn_shape_out(ctx, 2));
}

rn_status_t rn_shape_fn_string_split(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 1));
  RN_TRY(rn_ops_check_rank(ctx, 1, 0));
  return sparse_rows(ctx);
}

rn_status_t rn_shape_fn_string_split_v2(rn_shape_ctx_t* ctx) {
  return rn_shape_fn_string_split(ctx);
}

rn_status_t rn_shape_fn_substr(rn_shape_ctx_t* ctx) {
  rn_shape_t in = rn_shape_in(ctx, 0), at = rn_shape_in(ctx, 1), length = rn_shape_in(ctx, 2);
  if (!rn_shape_has_rank(at) || !rn_shape_has_rank(length)) return RN_OK;
  RN_TRY(rn_shape_with_rank(ctx, at, length.rank, &at));
  if (!rn_shape_compatible(at, length)) {
    rn_strbuf_t text;
    rn_strbuf_init(&text, rn_allocator_default());
    rn_strbuf_append(&text, RN_STR("pos and len shapes must match: "));
    rn_shape_print(&text, at);
    rn_strbuf_append(&text, RN_STR(" vs. "));
    rn_shape_print(&text, length);
    return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
  }
  return rn_shape_broadcast(ctx, in, at, true, rn_shape_out(ctx, 0));
}

// Row splits: the number of strings plus one.
rn_status_t rn_shape_fn_unicode_decode(rn_shape_ctx_t* ctx) {
  int64_t count = 1;
  if (!rn_shape_has_rank(rn_shape_in(ctx, 0))) count = RN_UNKNOWN;
  for (int d = 0; d < rn_shape_in(ctx, 0).rank; d++)
    RN_TRY(rn_ops_multiply(count, rn_shape_in(ctx, 0).dims[d], &count));
  RN_TRY(rn_ops_add(count, 1, &count));
  RN_TRY(rn_shape_vector(ctx, count, rn_shape_out(ctx, 0)));
  for (int i = 1; i < ctx->output_count; i++)
    RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, i)));
  return RN_OK;
}

rn_status_t rn_shape_fn_unicode_encode(rn_shape_ctx_t* ctx) {
  rn_shape_t splits;
  RN_TRY(rn_ops_check_rank(ctx, 0, 1));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &splits));
  int64_t count = splits.dims[0];
  if (count == 0)
    return rn_invalid_argument("Negative dimension size caused by subtracting 1 from 0");
  return rn_shape_vector(ctx, count == RN_UNKNOWN ? count : count - 1, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_string_ngrams(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 1));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, rn_shape_out(ctx, 1)));
  return rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 0));
}
