// Einsum: sums of products over named axes.
//
// An axis of the equation is a letter, or one of the dimensions of an ellipsis. An axis that
// appears in only one operand and not in the result is summed first. What remains is a batched
// matmul: [shared, own of a, summed] times [shared, summed, own of b].
#include "kernels/cpu/linalg/einsum.h"

#include <inttypes.h>

#include "kernels/cpu/array.h"

enum { LETTERS = 52, AXES = LETTERS + RN_MAX_RANK };

static rn_status_t parse_term(rn_str_t text, rn_einsum_term_t* term) {
  for (size_t i = 0; i < text.size; ++i) {
    char c = text.data[i];
    bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    bool is_ellipsis = i + 2 < text.size && memcmp(text.data + i, "...", 3) == 0;
    if ((!is_letter && (!is_ellipsis || term->has_ellipsis)) || term->count == RN_MAX_RANK)
      return rn_invalid_argument("Invalid character in einsum equation term: %.*s",
                                 RN_STR_ARGS(text));
    if (is_ellipsis) i += 2, term->has_ellipsis = true;
    term->axes[term->count++] = is_ellipsis ? -1 : c >= 'a' ? c - 'a' : c - 'A' + 26;
  }
  return RN_OK;
}

rn_status_t rn_einsum_init(const rn_kernel_init_t* init, void* state_) {
  rn_einsum_t* state = state_;
  rn_str_t equation = rn_init_string(init, "equation");
  size_t arrow = 0;
  while (arrow + 1 < equation.size && memcmp(equation.data + arrow, "->", 2) != 0) arrow++;
  if (arrow + 1 >= equation.size)
    return rn_invalid_argument("Expecting exactly one '->' in einsum equation: %.*s",
                               RN_STR_ARGS(equation));
  rn_str_t left = rn_str_n(equation.data, arrow);
  rn_str_t right = rn_str_n(equation.data + arrow + 2, equation.size - arrow - 2);
  int terms = 1;
  for (size_t i = 0; i < left.size; ++i) terms += left.data[i] == ',';
  if (terms != init->input_count)
    return rn_invalid_argument("Expected %d inputs but got: %d", terms, init->input_count);
  if (terms > 2)
    return rn_invalid_argument("Expected 1 or 2 inputs in equation %.*s, but got %d",
                               RN_STR_ARGS(equation), terms);
  state->input_count = terms;
  for (int i = 0; i < terms; ++i)
    RN_RETURN_IF_ERROR(parse_term(rn_str_split(&left, ','), &state->inputs[i]));
  return parse_term(right, &state->output);
}

// An operand with its axes.
typedef struct einsum_operand_t {
  const void* data;
  int64_t strides[AXES];  // for a repeated axis their sum: the diagonal
  bool has[AXES];
} einsum_operand_t;

typedef struct einsum_sum_t {
  rn_kernel_ctx_t* ctx;
  const rn_einsum_device_t* device;
  rn_dtype_t dtype;
  int ellipsis;  // its dimensions: axes LETTERS .. LETTERS + ellipsis, last one first
  int64_t sizes[AXES];
  einsum_operand_t in[2];
  int input_count;
  bool in_output[AXES];
} einsum_sum_t;

// The axis of dimension |d| of a tensor of |rank|.
static int axis_of(const rn_einsum_term_t* term, int rank, int d) {
  int extra = rank - (term->count - 1), seen = 0;
  for (int k = 0; k < term->count; ++k) {
    int width = term->axes[k] >= 0 ? 1 : extra;
    if (d < seen + width)
      return term->axes[k] >= 0 ? term->axes[k] : LETTERS + seen + extra - 1 - d;
    seen += width;
  }
  return -1;
}

static rn_status_t learn_sizes(einsum_sum_t* sum, const rn_einsum_term_t* term, int index) {
  const rn_tensor_t* in = rn_in(sum->ctx, index);
  int letters = term->count - term->has_ellipsis;
  if (term->has_ellipsis ? in->rank < letters : in->rank != letters)
    return rn_invalid_argument("Expected input %d to have rank %s%d but got: %d", index,
                               term->has_ellipsis ? "at least " : "", letters, in->rank);
  if (term->has_ellipsis && in->rank - letters > sum->ellipsis) sum->ellipsis = in->rank - letters;
  for (int d = 0; d < in->rank; ++d) {
    int axis = axis_of(term, in->rank, d);
    int64_t size = rn_tensor_dim(in, d), *known = &sum->sizes[axis];
    bool broadcasts = axis >= LETTERS;
    if (*known < 0 || (broadcasts && *known == 1))
      *known = size;
    else if (broadcasts && *known != size && size != 1 && index > 0)
      return rn_invalid_argument("Invalid broadcasting dimensions: %s vs. %s",
                                 rn_text_of(rn_in(sum->ctx, 0)).text, rn_text_of(in).text);
    else if (*known != size && !(broadcasts && size == 1))
      return rn_invalid_argument("Expected dimension %" PRId64
                                 " at axis %d of the input shaped %s but got dimension "
                                 "%" PRId64,
                                 *known, d, rn_text_of(in).text, size);
  }
  return RN_OK;
}

static void learn_strides(einsum_sum_t* sum, const rn_einsum_term_t* term, int index) {
  const rn_tensor_t* in = rn_in(sum->ctx, index);
  einsum_operand_t* operand = &sum->in[index];
  operand->data = in->data;
  int64_t stride = 1;
  for (int d = in->rank - 1; d >= 0; --d) {
    int axis = axis_of(term, in->rank, d);
    bool is_repeated = rn_tensor_dim(in, d) == 1 && sum->sizes[axis] != 1;
    if (!is_repeated) {
      operand->has[axis] = true;
      operand->strides[axis] += stride;
    }
    stride *= rn_tensor_dim(in, d);
  }
}

// A list of axes, outermost first, with their sizes.
typedef struct einsum_axes_t {
  int axes[AXES];
  int count;
  int64_t size;
} einsum_axes_t;

static void add_axis(const einsum_sum_t* sum, einsum_axes_t* axes, int axis) {
  if (!axes->count) axes->size = 1;
  axes->axes[axes->count++] = axis;
  axes->size *= sum->sizes[axis];
}

static void add_axes(const einsum_sum_t* sum, einsum_axes_t* axes, const einsum_axes_t* more) {
  for (int i = 0; i < more->count; ++i) add_axis(sum, axes, more->axes[i]);
}

static int64_t size_of(const einsum_axes_t* axes) { return axes->count ? axes->size : 1; }

// Copies over |axes|, with a stride per axis on either side.
static rn_status_t copy_axes(const einsum_sum_t* sum, const einsum_axes_t* axes, const void* from,
                             const int64_t* from_strides, void* to, const int64_t* to_strides) {
  if (size_of(axes) == 0) return RN_OK;
  rn_einsum_copy_t copy;
  copy.dtype = sum->dtype;
  copy.from = from;
  copy.to = to;
  copy.rank = 0;
  for (int k = 0; k < axes->count; ++k) {
    const int axis = axes->axes[k], last = copy.rank - 1;
    const int64_t size = sum->sizes[axis];
    if (size == 1) continue;
    // Axes that follow each other on both sides are copied as one.
    const bool joins = copy.rank && copy.from_strides[last] == from_strides[axis] * size &&
                       copy.to_strides[last] == to_strides[axis] * size;
    const int at = joins ? last : copy.rank++;
    copy.sizes[at] = joins ? copy.sizes[at] * size : size;
    copy.from_strides[at] = from_strides[axis];
    copy.to_strides[at] = to_strides[axis];
  }
  return sum->device->copy(sum->ctx, &copy);
}

static void dense_strides(const einsum_sum_t* sum, const einsum_axes_t* axes, int64_t* strides) {
  int64_t stride = 1;
  for (int k = axes->count - 1; k >= 0; --k) {
    strides[axes->axes[k]] = stride;
    stride *= sum->sizes[axes->axes[k]];
  }
}

static bool is_dense(const einsum_sum_t* sum, const einsum_axes_t* axes, const int64_t* strides) {
  int64_t stride = 1;
  for (int k = axes->count - 1; k >= 0; --k) {
    int64_t size = sum->sizes[axes->axes[k]];
    if (size != 1 && strides[axes->axes[k]] != stride) return false;
    stride *= size;
  }
  return true;
}

// Takes |operand| in the order of |axes|, with the axes |summed| summed up. |*out_data| points into
// the operand itself if possible, otherwise into |temp|, which the caller clears.
static rn_status_t take(const einsum_sum_t* sum, const einsum_operand_t* operand,
                        const einsum_axes_t* summed, const einsum_axes_t* axes, rn_tensor_t* temp,
                        const void** out_data) {
  *out_data = operand->data;
  if (summed->count == 0 && is_dense(sum, axes, operand->strides)) return RN_OK;
  einsum_axes_t all = *summed;
  add_axes(sum, &all, axes);
  int64_t strides[AXES] = {0}, count = size_of(&all);
  dense_strides(sum, &all, strides);
  RN_RETURN_IF_ERROR(rn_temp(sum->ctx, sum->dtype, (rn_shape_t){1, &count}, temp));
  RN_RETURN_IF_ERROR(copy_axes(sum, &all, operand->data, operand->strides, temp->data, strides));
  if (size_of(summed) > 1)
    RN_RETURN_IF_ERROR(sum->device->add_up(sum->ctx, temp, size_of(summed), size_of(axes)));
  *out_data = temp->data;
  return RN_OK;
}

// Allocates the output and computes the strides of its axes; |*out_diagonal|: some axis appears
// twice.
static rn_status_t make_output(einsum_sum_t* sum, const rn_einsum_term_t* term, rn_tensor_t** out,
                               int64_t* strides, bool* out_diagonal) {
  int rank = term->count - term->has_ellipsis + (term->has_ellipsis ? sum->ellipsis : 0);
  int64_t dims[RN_MAX_RANK], stride = 1;
  if (rank > RN_MAX_RANK) return rn_invalid_argument("The result has too many dimensions");
  if (sum->ellipsis > 0 && !term->has_ellipsis)
    return rn_invalid_argument(
        "Output contains %d broadcasting dimension(s) but no ellipsis (...) was found in the "
        "output subscripts.",
        sum->ellipsis);
  for (int d = 0; d < rank; ++d) dims[d] = sum->sizes[axis_of(term, rank, d)];
  RN_RETURN_IF_ERROR(rn_output(sum->ctx, 0, (rn_shape_t){rank, dims}, out));
  for (int d = rank - 1; d >= 0; --d) {
    int axis = axis_of(term, rank, d);
    *out_diagonal |= sum->in_output[axis];
    sum->in_output[axis] = true;
    strides[axis] += stride;
    stride *= dims[d];
  }
  return RN_OK;
}

// The axes of the result in order, each once.
static void output_order(const einsum_sum_t* sum, const rn_einsum_term_t* term, int rank,
                         einsum_axes_t* out) {
  bool seen[AXES] = {false};
  for (int d = 0; d < rank; ++d) {
    int axis = axis_of(term, rank, d);
    if (!seen[axis]) add_axis(sum, out, axis);
    seen[axis] = true;
  }
}

typedef struct einsum_plan_t {
  einsum_axes_t order;         // of the result
  einsum_axes_t summed_in[2];  // before the matmul
  einsum_axes_t shared, contracted, own[2];
} einsum_plan_t;

static void make_plan(const einsum_sum_t* sum, einsum_plan_t* plan) {
  for (int k = 0; k < plan->order.count; ++k) {
    int axis = plan->order.axes[k];
    bool a = sum->in[0].has[axis], b = sum->in[1].has[axis];
    add_axis(sum, a && b ? &plan->shared : &plan->own[b], axis);
  }
  for (int axis = 0; axis < AXES; ++axis) {
    bool a = sum->in[0].has[axis], b = sum->in[1].has[axis];
    if (sum->in_output[axis] || (!a && !b)) continue;
    add_axis(sum, a && b ? &plan->contracted : &plan->summed_in[b], axis);
  }
}

// Takes an operand as [shared, rows, columns], or transposed if it is stored that way.
static rn_status_t take_matrix(const einsum_sum_t* sum, const einsum_plan_t* plan, int index,
                               const einsum_axes_t* rows, const einsum_axes_t* columns,
                               rn_tensor_t* temp, const void** out_data, bool* out_transposed) {
  einsum_axes_t straight = plan->shared, turned = plan->shared;
  add_axes(sum, &straight, rows);
  add_axes(sum, &straight, columns);
  add_axes(sum, &turned, columns);
  add_axes(sum, &turned, rows);
  const einsum_operand_t* in = &sum->in[index];
  *out_transposed = plan->summed_in[index].count == 0 && !is_dense(sum, &straight, in->strides) &&
                    is_dense(sum, &turned, in->strides);
  return take(sum, in, &plan->summed_in[index], *out_transposed ? &turned : &straight, temp,
              out_data);
}

static rn_status_t run_two(const einsum_sum_t* sum, const einsum_plan_t* plan, char* out,
                           const int64_t* out_strides, bool is_diagonal) {
  rn_tensor_t temps[3] = {{0}};
  rn_gemm_t gemm = {.dtype = sum->dtype,
                    .m = size_of(&plan->own[0]),
                    .n = size_of(&plan->own[1]),
                    .k = size_of(&plan->contracted)};
  einsum_axes_t all = plan->shared;
  add_axes(sum, &all, &plan->own[0]);
  add_axes(sum, &all, &plan->own[1]);
  bool is_direct = !is_diagonal && is_dense(sum, &all, out_strides);
  int64_t count = size_of(&all), strides[AXES] = {0};
  rn_status_t status = take_matrix(sum, plan, 0, &plan->own[0], &plan->contracted, &temps[0],
                                   &gemm.a, &gemm.transpose_a);
  if (rn_ok(status))
    status = take_matrix(sum, plan, 1, &plan->contracted, &plan->own[1], &temps[1], &gemm.b,
                         &gemm.transpose_b);
  if (rn_ok(status) && !is_direct)
    status = rn_temp(sum->ctx, sum->dtype, (rn_shape_t){1, &count}, &temps[2]);
  gemm.c = is_direct ? out : temps[2].data;
  if (rn_ok(status)) status = sum->device->multiply(sum->ctx, &gemm, size_of(&plan->shared));
  if (rn_ok(status) && !is_direct) {
    dense_strides(sum, &all, strides);
    status = copy_axes(sum, &all, temps[2].data, strides, out, out_strides);
  }
  for (int i = 0; i < 3; ++i) rn_tensor_clear(&temps[i]);
  return status;
}

static rn_status_t run_one(const einsum_sum_t* sum, const einsum_plan_t* plan, char* out,
                           const int64_t* out_strides) {
  rn_tensor_t temp = {0};
  const void* data = NULL;
  int64_t strides[AXES] = {0};
  rn_status_t status = take(sum, &sum->in[0], &plan->summed_in[0], &plan->order, &temp, &data);
  dense_strides(sum, &plan->order, strides);
  if (rn_ok(status)) status = copy_axes(sum, &plan->order, data, strides, out, out_strides);
  rn_tensor_clear(&temp);
  return status;
}

static rn_status_t run(einsum_sum_t* sum, einsum_plan_t* plan, const rn_einsum_t* state) {
  for (int axis = 0; axis < AXES; ++axis) sum->sizes[axis] = -1;
  for (int i = 0; i < sum->input_count; ++i)
    RN_RETURN_IF_ERROR(learn_sizes(sum, &state->inputs[i], i));
  for (int i = 0; i < sum->input_count; ++i) learn_strides(sum, &state->inputs[i], i);
  rn_tensor_t* out = NULL;
  int64_t strides[AXES] = {0};
  bool is_diagonal = false;
  RN_RETURN_IF_ERROR(make_output(sum, &state->output, &out, strides, &is_diagonal));
  if (out->count == 0) return RN_OK;
  bool is_empty = is_diagonal;
  for (int i = 0; i < sum->input_count; ++i) is_empty |= rn_in(sum->ctx, i)->count == 0;
  if (is_empty) RN_RETURN_IF_ERROR(sum->device->zero(sum->ctx, out));
  for (int i = 0; i < sum->input_count; ++i)
    if (rn_in(sum->ctx, i)->count == 0) return RN_OK;
  output_order(sum, &state->output, out->rank, &plan->order);
  make_plan(sum, plan);
  return sum->input_count == 1 ? run_one(sum, plan, out->data, strides)
                               : run_two(sum, plan, out->data, strides, is_diagonal);
}

rn_status_t rn_einsum_run(rn_kernel_ctx_t* ctx, const rn_einsum_device_t* device) {
  const rn_einsum_t* state = ctx->state;
  struct {
    einsum_sum_t sum;
    einsum_plan_t plan;
  }* work = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(ctx->kernel->allocator, &work));
  work->sum.ctx = ctx;
  work->sum.device = device;
  work->sum.dtype = rn_in(ctx, 0)->dtype;
  work->sum.input_count = state->input_count;
  rn_status_t status = run(&work->sum, &work->plan, state);
  RN_FREE(ctx->kernel->allocator, work);
  return status;
}
