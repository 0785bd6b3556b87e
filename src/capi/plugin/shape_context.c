// Shape functions of plug-ins: what runnel/shape_context.h adds to TensorFlow's API.
#include "runnel/shape_context.h"

#include "capi/internal.h"
#include "framework/shape_fn.h"

static rn_shape_ctx_t* own(TF_ShapeInferenceContext* ctx) { return (rn_shape_ctx_t*)ctx; }

RN_API const char* rn_shape_context_op(TF_ShapeInferenceContext* ctx) {
  return ctx ? own(ctx)->op->name : "";
}

RN_API int rn_shape_context_output_count(TF_ShapeInferenceContext* ctx) {
  return ctx ? own(ctx)->output_count : 0;
}

RN_API TF_DataType rn_shape_context_input_type(TF_ShapeInferenceContext* ctx, int i) {
  if (!ctx || i < 0 || i >= own(ctx)->input_count) return (TF_DataType)0;
  return (TF_DataType)rn_shape_in_type(own(ctx), i);
}

static rn_status_t set_output(TF_ShapeInferenceContext* ctx, int i, const int64_t* dims, int rank) {
  if (!ctx) return RN_CAPI_NULL("ctx");
  if (i < 0 || i >= own(ctx)->output_count) return rn_invalid_argument("output index out of range");
  if (rank > 0 && !dims) return RN_CAPI_NULL("dims");
  if (rank < 0) {
    *rn_shape_out(own(ctx), i) = RN_SHAPE_UNKNOWN;
    return RN_OK;
  }
  for (int d = 0; d < rank; ++d) {
    if (dims[d] < -1) return rn_invalid_argument("Dimension %d is %lld", d, (long long)dims[d]);
  }
  rn_shape_t shape;
  RN_RETURN_IF_ERROR(rn_shape_make(own(ctx), rank, dims, &shape));
  *rn_shape_out(own(ctx), i) = shape;
  return RN_OK;
}

RN_API void rn_shape_context_set_output(TF_ShapeInferenceContext* ctx, int i, const int64_t* dims,
                                        int rank, TF_Status* status) {
  rn_capi_set(status, set_output(ctx, i, dims, rank));
}

static rn_status_t write_attr(TF_ShapeInferenceContext* ctx, const char* name, TF_Buffer* out) {
  if (!ctx || !name || !out) return RN_CAPI_NULL(!ctx ? "ctx" : name ? "out" : "name");
  int index = rn_op_attr_index(own(ctx)->op, rn_str(name));
  if (index < 0) return rn_not_found("No attr named '%s' in NodeDef:", name);
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_capi_allocator());
  rn_status_t status = rn_capi_write_attr(&buf, &own(ctx)->attrs[index]);
  if (rn_ok(status)) status = rn_capi_buffer_take(&buf, out);
  rn_strbuf_clear(&buf);
  return status;
}

RN_API void rn_shape_context_attr(TF_ShapeInferenceContext* ctx, const char* name, TF_Buffer* out,
                                  TF_Status* status) {
  rn_capi_set(status, write_attr(ctx, name, out));
}

RN_API TF_Tensor* rn_shape_context_input_value(TF_ShapeInferenceContext* ctx, int i) {
  if (!ctx || i < 0 || i >= own(ctx)->input_count) return NULL;
  const rn_tensor_t* value = rn_shape_input_value(own(ctx), i);
  TF_Tensor* kept = NULL;
  if (value) rn_status_free(rn_capi_tensor_keep(value, &kept));
  return kept;
}
