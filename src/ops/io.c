// Shape functions of file, reader and checkpoint ops.
#include "io/slice.h"
#include "ops/shapes.h"
#include "tensor/tstring.h"

rn_status_t rn_shape_fn_matching_files(rn_shape_ctx_t* ctx) {
  rn_shape_t unused;
  RN_TRY(rn_shape_with_rank_at_most(ctx, rn_shape_in(ctx, 0), 1, &unused));
  return rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_write_file(rn_shape_ctx_t* ctx) { return rn_ops_check_scalars(ctx, 0, 1); }

rn_status_t rn_shape_fn_sharded_filename(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_scalars(ctx, 0, 2));
  return rn_shape_fn_scalar(ctx);
}

rn_status_t rn_shape_fn_sharded_filespec(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_scalars(ctx, 0, 1));
  return rn_shape_fn_scalar(ctx);
}

// Readers. The handles of the first generation are vectors of two strings.

rn_status_t rn_shape_fn_reader_info(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_vector(ctx, 0, 2));
  return rn_shape_fn_scalar(ctx);
}

rn_status_t rn_shape_fn_reader_read(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_vector(ctx, 0, 2));
  RN_TRY(rn_ops_check_vector(ctx, 1, 2));
  return rn_shape_fn_scalar(ctx);
}

rn_status_t rn_shape_fn_reader_read_v2(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_scalars(ctx, 0, 1));
  return rn_shape_fn_scalar(ctx);
}

rn_status_t rn_shape_fn_reader_read_up_to(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_vector(ctx, 0, 2));
  RN_TRY(rn_ops_check_vector(ctx, 1, 2));
  RN_TRY(rn_ops_check_rank(ctx, 2, 0));
  return rn_ops_two_vectors(ctx);
}

rn_status_t rn_shape_fn_reader_read_up_to_v2(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_scalars(ctx, 0, 2));
  return rn_ops_two_vectors(ctx);
}

rn_status_t rn_shape_fn_reader_restore(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_vector(ctx, 0, 2));
  return rn_ops_check_rank(ctx, 1, 0);
}

rn_status_t rn_shape_fn_reader_restore_v2(rn_shape_ctx_t* ctx) {
  return rn_ops_check_scalars(ctx, 0, 1);
}

// Checkpoints.

// Checks that inputs are vectors of |count| names.
static rn_status_t check_names(rn_shape_ctx_t* ctx, int first, int last, int64_t count) {
  for (int i = first; i <= last; i++) RN_TRY(rn_ops_check_vector(ctx, i, count));
  return RN_OK;
}

rn_status_t rn_shape_fn_save_v2(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 0));
  return check_names(ctx, 1, 2, ctx->input_count - 3);
}

rn_status_t rn_shape_fn_save(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 0));
  return check_names(ctx, 1, 1, ctx->input_count - 2);
}

rn_status_t rn_shape_fn_save_slices(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 0));
  return check_names(ctx, 1, 2, ctx->input_count - 3);
}

// The shape of the slice that |text| specifies. If it is empty, the whole tensor is restored, whose
// shape is not known.
static rn_status_t slice_shape(rn_shape_ctx_t* ctx, const rn_tstring_t* text, rn_shape_t* out) {
  rn_shape_t whole;
  rn_slice_t slice;
  if (rn_tstring_view(text).size == 0) return RN_OK;
  return rn_shape_and_slice_parse(rn_tstring_view(text), ctx->arena, &whole, &slice, out);
}

rn_status_t rn_shape_fn_restore_v2(rn_shape_ctx_t* ctx) {
  rn_shape_t names, slices;
  RN_TRY(rn_ops_check_rank(ctx, 0, 0));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &names));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 2), 1, &slices));
  RN_TRY(rn_shape_merge(ctx, names, slices, &names));
  const rn_tensor_t* texts = rn_shape_input_value(ctx, 2);
  if (!texts || texts->count != ctx->output_count) return rn_shape_fn_unknown(ctx);
  for (int i = 0; i < ctx->output_count; i++) {
    RN_TRY(slice_shape(ctx, &RN_DATA(texts, const rn_tstring_t)[i], rn_shape_out(ctx, i)));
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_restore(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_scalars(ctx, 0, 1));
  return rn_shape_fn_unknown(ctx);
}

rn_status_t rn_shape_fn_restore_slice(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_scalars(ctx, 0, 2));
  const rn_tensor_t* text = rn_shape_input_value(ctx, 2);
  return text ? slice_shape(ctx, text->data, rn_shape_out(ctx, 0)) : rn_shape_fn_unknown(ctx);
}

rn_status_t rn_shape_fn_merge_v2_checkpoints(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 1));
  return rn_ops_check_rank(ctx, 1, 0);
}

rn_status_t rn_shape_fn_vocab_remapping(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_scalars(ctx, 0, 1));
  *rn_shape_out(ctx, 1) = RN_SHAPE_SCALAR;
  return rn_shape_vector(ctx, rn_ops_int(ctx, "num_new_vocab"), rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_load_and_remap(rn_shape_ctx_t* ctx) {
  return rn_shape_matrix(ctx, rn_ops_int(ctx, "num_rows"), rn_ops_int(ctx, "num_cols"),
                         rn_shape_out(ctx, 0));
}
