// Convolutions of the Uniform ops: see uniform_conv.h.
#include "framework/uniform_conv.h"

#include <inttypes.h>
#include <stdio.h>

#include "wire/scan.h"

static void read_list(const rn_attr_value_t* attr, rn_uniform_list_t* out) {
  out->count = attr->count;
  for (int i = 0; i < attr->count && i < 2 * RN_UNIFORM_SPACE; ++i)
    out->values[i] = attr->list_i[i];
}

static rn_status_t read_padding(rn_str_t name, rn_uniform_conv_t* out) {
  static const char* const names[] = {"VALID", "SAME", "EXPLICIT"};
  for (int i = 0; i < 3; ++i) {
    if (!rn_str_is(name, names[i])) continue;
    out->padding = (rn_uniform_padding_t)i;
    return RN_OK;
  }
  return rn_invalid_argument(
      "padding Attr must be one of [EXPLICIT | SAME | VALID], but given: %.*s", RN_STR_ARGS(name));
}

static void add_number(rn_uniform_list_t* list, uint64_t value) {
  if (list->count < 2 * RN_UNIFORM_SPACE) list->values[list->count] = (int64_t)value;
  if (list->count < INT32_MAX) ++list->count;
}

static bool add_packed(rn_uniform_list_t* list, rn_str_t bytes) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  uint64_t value;
  while (scan.next != scan.end && rn_pb_scan_varint(&scan, &value)) add_number(list, value);
  return !scan.is_bad;
}

// A UniformQuantizedConvolutionDimensionNumbersAttr: per tensor three fields, of which filters have
// those of the inputs before those of the outputs.
static bool read_orders(rn_str_t bytes, rn_uniform_conv_t* out) {
  rn_uniform_order_t* orders[] = {&out->lhs, &out->rhs, &out->output};
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  bool is_good = true;
  while (is_good && rn_pb_scan_next(&scan, &field)) {
    if (field.number < 1 || field.number > 9) continue;
    rn_uniform_order_t* order = orders[(field.number - 1) / 3];
    int which = (int)(field.number - 1) % 3;
    bool is_first = which == (order == &out->rhs ? 1 : 0);
    if (which == 2 && field.wire == RN_PB_WIRE_LENGTH)
      is_good = add_packed(&order->space, field.bytes);
    else if (field.wire != RN_PB_WIRE_VARINT)
      continue;
    else if (which == 2)
      add_number(&order->space, field.value);
    else
      *(is_first ? &order->first : &order->second) = (int64_t)field.value;
  }
  return is_good && !scan.is_bad;
}

rn_status_t rn_uniform_conv_read(const void* from, rn_uniform_attr_fn_t attr,
                                 rn_uniform_conv_t* out) {
  *out = (rn_uniform_conv_t){0};
  read_list(attr(from, "window_strides"), &out->strides);
  read_list(attr(from, "explicit_padding"), &out->explicit_padding);
  read_list(attr(from, "lhs_dilation"), &out->lhs_dilation);
  read_list(attr(from, "rhs_dilation"), &out->rhs_dilation);
  out->batch_groups = attr(from, "batch_group_count")->i;
  out->feature_groups = attr(from, "feature_group_count")->i;
  rn_str_t numbers = attr(from, "dimension_numbers")->s;
  out->has_orders = numbers.size > 0;
  if (out->has_orders && !read_orders(numbers, out))
    return rn_invalid_argument("Error parsing dimension_numbers Attr.");
  RN_RETURN_IF_ERROR(read_padding(attr(from, "padding")->s, out));
  if (out->padding != RN_UNIFORM_EXPLICIT && out->explicit_padding.count)
    return rn_invalid_argument(
        "If padding Attr is not 'EXPLICIT', explicit_padding Attr must be empty. Given padding %s "
        "and explicit_padding of size %d",
        out->padding == RN_UNIFORM_SAME ? "SAME" : "VALID", out->explicit_padding.count);
  if (out->feature_groups < 1)
    return rn_invalid_argument("feature_group_count must be a positive integer, given: %" PRId64,
                               out->feature_groups);
  if (out->batch_groups < 1)
    return rn_invalid_argument("batch_group_count Attr must be a positive integer. Given: %" PRId64,
                               out->batch_groups);
  return RN_OK;
}

// |list| as "1, 2", for messages.
static void print_list(const rn_uniform_list_t* list, char* out, size_t size) {
  size_t at = 0;
  out[0] = '\0';
  for (int i = 0; i < list->count && i < 2 * RN_UNIFORM_SPACE && at < size; ++i)
    at += (size_t)snprintf(out + at, size - at, "%s%" PRId64, i ? ", " : "", list->values[i]);
}

// Numbers of at least 1, one per dimension in space; none stands for ones.
static rn_status_t check_list(const rn_uniform_list_t* list, const char* name, int space) {
  char text[256];
  if (list->count && list->count != space)
    return rn_invalid_argument("Size of %s Attr must be dims - 2.", name);
  for (int i = 0; i < list->count; ++i) {
    if (list->values[i] >= 1) continue;
    print_list(list, text, sizeof text);
    return rn_invalid_argument("All elements of %s must be >= 1. Given %s", name, text);
  }
  return RN_OK;
}

static rn_status_t check_padding(const rn_uniform_conv_t* conv, int space) {
  char text[256];
  if (conv->padding != RN_UNIFORM_EXPLICIT) return RN_OK;
  if (conv->explicit_padding.count != 2 * space)
    return rn_invalid_argument(
        "Size of explicit_padding Attr must be 2 * (rank - 2). Given rank %d and explicit_padding "
        "of size %d",
        space + 2, conv->explicit_padding.count);
  for (int i = 0; i < 2 * space; ++i) {
    if (conv->explicit_padding.values[i] >= 0) continue;
    print_list(&conv->explicit_padding, text, sizeof text);
    return rn_invalid_argument("All explicit_padding elems must be >= 0, Given %s", text);
  }
  return RN_OK;
}

static rn_status_t check_dimension(int64_t dimension, int rank, uint32_t* inout_seen) {
  if (dimension >= 0 && dimension < rank) {
    if (*inout_seen >> dimension & 1)
      return rn_invalid_argument("Dimension number %" PRId64 " is given twice", dimension);
    *inout_seen |= UINT32_C(1) << dimension;
    return RN_OK;
  }
  return rn_invalid_argument(
      "Each dimension number must be in region [0, rank). Given rank %d and "
      "dimension number value %" PRId64,
      rank, dimension);
}

static rn_status_t check_order(const rn_uniform_order_t* order, int rank) {
  if (order->space.count != rank - 2)
    return rn_invalid_argument(
        "Spatial dimensions size must be rank - 2. Given rank %d and spatial dimensions size %d",
        rank, order->space.count);
  uint32_t seen = 0;
  RN_RETURN_IF_ERROR(check_dimension(order->first, rank, &seen));
  RN_RETURN_IF_ERROR(check_dimension(order->second, rank, &seen));
  for (int i = 0; i < rank - 2; ++i)
    RN_RETURN_IF_ERROR(check_dimension(order->space.values[i], rank, &seen));
  return RN_OK;
}

static rn_uniform_order_t default_order(int rank) {
  rn_uniform_order_t order = {.second = 1, .space = {.count = rank - 2}};
  for (int i = 0; i < rank - 2; ++i) order.space.values[i] = i + 2;
  return order;
}

static rn_status_t choose_orders(const rn_uniform_conv_t* conv, int rank,
                                 rn_uniform_geometry_t* out) {
  out->lhs = conv->has_orders ? conv->lhs : default_order(rank);
  out->rhs = conv->has_orders ? conv->rhs : default_order(rank);
  out->output = conv->has_orders ? conv->output : default_order(rank);
  RN_RETURN_IF_ERROR(check_order(&out->lhs, rank));
  RN_RETURN_IF_ERROR(check_order(&out->rhs, rank));
  return check_order(&out->output, rank);
}

static rn_status_t check_features(const rn_uniform_conv_t* conv, int64_t batch, int64_t features,
                                  int64_t inputs, int64_t outputs) {
  int64_t groups = conv->feature_groups;
  if (features % groups)
    return rn_invalid_argument(
        "feature_group_count must divide lhs feature dimension size, but "
        "%" PRId64 " does not divide %" PRId64,
        groups, features);
  if (inputs == 0 ? features != 0 : features % inputs != 0)
    return rn_invalid_argument(
        "rhs input feature dimension must divide lhs feature dimension size, "
        "but %" PRId64 " does not divide %" PRId64,
        inputs, features);
  if (features / groups != inputs)
    return rn_invalid_argument(
        "lhs feature dimension size divided by feature_group_count must equal the rhs input "
        "feature "
        "dimension size, but %" PRId64 " / %" PRId64 " != %" PRId64,
        features, groups, inputs);
  if (outputs % groups)
    return rn_invalid_argument(
        "rhs output dimension size must be a multiple of "
        "feature_group_count, but %" PRId64 " is not a multiple of %" PRId64,
        outputs, groups);
  if (batch % conv->batch_groups)
    return rn_invalid_argument(
        "batch_group_count must divide lhs batch dimension size, but "
        "%" PRId64 " does not divide %" PRId64,
        conv->batch_groups, batch);
  if (outputs % conv->batch_groups)
    return rn_invalid_argument(
        "rhs output dimension size must be a multiple of batch_group_count, "
        "but %" PRId64 " is not a multiple of %" PRId64,
        outputs, conv->batch_groups);
  return RN_OK;
}

// (size - 1) * dilation + 1; 0 if there is nothing. False on overflow.
static bool dilated(int64_t size, int64_t dilation, int64_t* out) {
  *out = 0;
  return size == 0 || (rn_mul_i64_ok(size - 1, dilation, out) && rn_add_i64_ok(*out, 1, out));
}

static rn_status_t make_window(const rn_uniform_conv_t* conv, int i, rn_uniform_window_t* w) {
  int64_t size, kernel, after = 0;
  if (!dilated(w->in, w->in_dilation, &size) || !dilated(w->kernel, w->kernel_dilation, &kernel))
    return rn_invalid_argument("A dilated operand is too large");
  if (conv->padding == RN_UNIFORM_SAME) {
    w->out = size / w->stride + (size % w->stride != 0);
    int64_t all = (w->out - 1) * w->stride + kernel - size;
    w->before = all > 0 ? all / 2 : 0;
    return RN_OK;
  }
  if (conv->padding == RN_UNIFORM_EXPLICIT) {
    w->before = conv->explicit_padding.values[2 * i];
    after = conv->explicit_padding.values[2 * i + 1];
  }
  if (!rn_add_i64_ok(size, w->before, &size) || !rn_add_i64_ok(size, after, &size))
    return rn_invalid_argument("The padding is too large");
  // The formula is stock's, which refuses a window that is larger than the operand by a stride.
  if (!rn_add_i64_ok(size - kernel, w->stride, &size))
    return rn_invalid_argument("The stride is too large");
  w->out = size / w->stride;
  if (w->out < 0)
    return rn_invalid_argument("Expected shape dimensions to be non-negative, got %" PRId64,
                               w->out);
  return RN_OK;
}

static int64_t item(const rn_uniform_list_t* list, int i) {
  return list->count ? list->values[i] : 1;
}

static rn_status_t check_attrs(const rn_uniform_conv_t* conv, int rank) {
  RN_RETURN_IF_ERROR(check_list(&conv->strides, "window_strides", rank - 2));
  RN_RETURN_IF_ERROR(check_list(&conv->lhs_dilation, "lhs_dilation", rank - 2));
  RN_RETURN_IF_ERROR(check_list(&conv->rhs_dilation, "rhs_dilation", rank - 2));
  return check_padding(conv, rank - 2);
}

rn_status_t rn_uniform_conv_geometry(const rn_uniform_conv_t* conv, rn_shape_t lhs, rn_shape_t rhs,
                                     rn_uniform_geometry_t* out) {
  *out = (rn_uniform_geometry_t){.space = lhs.rank - 2};
  if (lhs.rank < 3)
    return rn_invalid_argument("lhs and rhs shape dims must be at least 3. Given: %d", lhs.rank);
  if (lhs.rank > RN_UNIFORM_RANK)
    return rn_unimplemented("Convolutions of more than %d dimensions", RN_UNIFORM_RANK);
  RN_RETURN_IF_ERROR(check_attrs(conv, lhs.rank));
  RN_RETURN_IF_ERROR(choose_orders(conv, lhs.rank, out));
  int64_t batch = lhs.dims[out->lhs.first], outputs = rhs.dims[out->rhs.first];
  RN_RETURN_IF_ERROR(
      check_features(conv, batch, lhs.dims[out->lhs.second], rhs.dims[out->rhs.second], outputs));
  for (int i = 0; i < out->space; ++i) {
    rn_uniform_window_t* window = &out->windows[i];
    *window = (rn_uniform_window_t){.in = lhs.dims[out->lhs.space.values[i]],
                                    .kernel = rhs.dims[out->rhs.space.values[i]],
                                    .stride = item(&conv->strides, i),
                                    .in_dilation = item(&conv->lhs_dilation, i),
                                    .kernel_dilation = item(&conv->rhs_dilation, i)};
    RN_RETURN_IF_ERROR(make_window(conv, i, window));
    out->dims[out->output.space.values[i]] = window->out;
  }
  out->dims[out->output.first] = batch / conv->batch_groups;
  out->dims[out->output.second] = outputs;
  return RN_OK;
}
