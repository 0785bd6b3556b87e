// See window.h.
#include "kernels/cpu/nn/window.h"

#include <inttypes.h>

void rn_window_order(bool is_nchw, const int64_t* list, int64_t* out) {
  static const int places[2][4] = {{0, 1, 2, 3}, {0, 2, 3, 1}};
  for (int i = 0; i < 4; ++i) out[i] = list[places[is_nchw][i]];
}

static bool has_attr(const rn_kernel_init_t* init, const char* name) {
  return rn_op_attr_index(init->op, rn_str(name)) >= 0;
}

static rn_status_t read_pads(const rn_kernel_init_t* init, rn_window_attrs_t* out) {
  const rn_attr_value_t* pads = rn_init_attr(init, "explicit_paddings");
  if (pads->count != 8)
    return rn_invalid_argument("explicit_paddings attribute must contain 8 values, but got: %d",
                               pads->count);
  int64_t before[4], after[4], ordered[2][4];
  for (int i = 0; i < 4; ++i) {
    before[i] = pads->list_i[2 * i];
    after[i] = pads->list_i[2 * i + 1];
    if (before[i] < 0 || after[i] < 0)
      return rn_invalid_argument("All elements of explicit_paddings must be nonnegative");
    if (before[i] > INT32_MAX || after[i] > INT32_MAX)
      return rn_invalid_argument("explicit_paddings: %" PRId64 " is too large",
                                 before[i] > after[i] ? before[i] : after[i]);
  }
  rn_window_order(out->is_nchw, before, ordered[0]);
  rn_window_order(out->is_nchw, after, ordered[1]);
  for (int i = 0; i < 4; ++i)
    for (int side = 0; side < 2; ++side) out->pads[i][side] = ordered[side][i];
  return RN_OK;
}

static rn_status_t read_list(const rn_kernel_init_t* init, const char* name, bool is_nchw,
                             int64_t* out) {
  const rn_attr_value_t* list = rn_init_attr(init, name);
  if (list->count != 4)
    return rn_invalid_argument("Sliding window %s field must specify 4 dimensions", name);
  rn_window_order(is_nchw, list->list_i, out);
  return RN_OK;
}

rn_status_t rn_window_init(const rn_kernel_init_t* init, const char* strides,
                           rn_window_attrs_t* out) {
  rn_str_t format =
      has_attr(init, "data_format") ? rn_init_string(init, "data_format") : RN_STR("NHWC");
  rn_str_t padding = rn_init_string(init, "padding");
  out->is_nchw = format.size > 1 && format.data[1] == 'C';
  out->padding = rn_str_is(padding, "SAME")       ? RN_PADDING_SAME
                 : rn_str_is(padding, "EXPLICIT") ? RN_PADDING_EXPLICIT
                                                  : RN_PADDING_VALID;
  for (int i = 0; i < 4; ++i) out->strides[i] = out->dilations[i] = 1;
  if (strides) RN_RETURN_IF_ERROR(read_list(init, strides, out->is_nchw, out->strides));
  if (has_attr(init, "dilations"))
    RN_RETURN_IF_ERROR(read_list(init, "dilations", out->is_nchw, out->dilations));
  return out->padding == RN_PADDING_EXPLICIT ? read_pads(init, out) : RN_OK;
}

rn_status_t rn_window_check_strides(const rn_window_attrs_t* attrs) {
  if (attrs->strides[1] != attrs->strides[2])
    return rn_invalid_argument(
        "Current implementation only supports equal length strides in the row and column "
        "dimensions.");
  if (attrs->strides[0] != 1 || attrs->strides[3] != 1)
    return rn_invalid_argument(
        "Current implementation does not yet support strides in the batch and depth dimensions.");
  return RN_OK;
}

rn_status_t rn_window_axis(const rn_window_attrs_t* attrs, int axis, int64_t in, int64_t filter,
                           rn_window_axis_t* out) {
  int64_t stride = attrs->strides[axis], dilation = attrs->dilations[axis];
  *out = (rn_window_axis_t){.in = in, .filter = filter, .stride = stride, .dilation = dilation};
  int64_t effective = 0, total = 0;
  if (stride <= 0) return rn_invalid_argument("Stride must be > 0, but got %" PRId64, stride);
  if (dilation < 1)
    return rn_invalid_argument("Dilation rate must be >= 1, but got %" PRId64, dilation);
  if (!rn_mul_i64_ok(filter - 1, dilation, &effective) ||
      !rn_add_i64_ok(effective, 1, &effective) || !rn_add_i64_ok(in, effective, &total) ||
      !rn_add_i64_ok(total, stride, &total))
    return rn_invalid_argument("A window of %" PRId64 " elements, %" PRId64 " apart, is too large",
                               filter, dilation);
  if (attrs->padding == RN_PADDING_SAME) {
    out->out = (in + stride - 1) / stride;
    int64_t needed = (out->out - 1) * stride + effective - in;
    if (needed < 0) needed = 0;
    out->before = needed / 2;
    out->after = needed - out->before;
    return RN_OK;
  }
  if (attrs->padding == RN_PADDING_EXPLICIT) {
    out->before = attrs->pads[axis][0];
    out->after = attrs->pads[axis][1];
  }
  int64_t room = in + out->before + out->after - effective + stride;
  out->out = room / stride;
  if (out->out < 0)
    return rn_invalid_argument("Computed output size would be negative: %" PRId64
                               " [input_size: %" PRId64 ", effective_filter_size: %" PRId64
                               ", stride: %" PRId64 "]",
                               out->out, in, effective, stride);
  return RN_OK;
}
