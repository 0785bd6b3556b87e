// MaxPool3D, AvgPool3D and their gradients: windows over volumes, channels last.
#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/pooling.h"
#include "kernels/cpu/nn/pooling3d.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

// Elements read per piece of work: about 50 us.
#define PIECE_ELEMENTS (1 << 18)

rn_status_t rn_pooling3d_init(const rn_kernel_init_t* init, void* state_) {
  rn_pooling3d_attrs_t* state = state_;
  const rn_attr_value_t *ksize = rn_init_attr(init, "ksize"),
                        *strides = rn_init_attr(init, "strides");
  state->is_ncdhw = !rn_str_is(rn_init_string(init, "data_format"), "NDHWC");
  if (state->is_ncdhw && init->is_host)
    return rn_invalid_argument("Default Pooling3DOp only supports NDHWC on device type CPU");
  if (ksize->count != 5)
    return rn_invalid_argument("Sliding window ksize field must specify 5 dimensions");
  for (int i = 0; i < 5; ++i)
    if (ksize->list_i[i] <= 0)
      return rn_invalid_argument("Sliding window ksize field must have non-negative dimensions");
  if (strides->count != 5)
    return rn_invalid_argument("Sliding window stride field must specify 5 dimensions");
  if (ksize->list_i[0] != 1 || strides->list_i[0] != 1)
    return rn_unimplemented("Pooling is not yet supported on the batch dimension.");
  int channels = state->is_ncdhw ? 1 : 4, first = state->is_ncdhw ? 2 : 1;
  if (ksize->list_i[channels] != 1 || strides->list_i[channels] != 1)
    return rn_unimplemented("Pooling is not yet supported on the depth dimension.");
  for (int i = 0; i < 3; ++i) {
    state->ksize[i] = ksize->list_i[first + i];
    state->strides[i] = strides->list_i[first + i];
    if (state->strides[i] <= 0)
      return rn_invalid_argument("Stride must be > 0, but got %" PRId64, state->strides[i]);
  }
  state->padding =
      rn_str_is(rn_init_string(init, "padding"), "SAME") ? RN_PADDING_SAME : RN_PADDING_VALID;
  return RN_OK;
}

typedef enum pooling3d_work_t {
  MAX,
  AVERAGE,
  MAX_GRADIENT,
  AVERAGE_GRADIENT,
  MAX_SECOND
} pooling3d_work_t;

typedef struct pooling3d_pool_t {
  pooling3d_work_t work;
  rn_pooling3d_t sizes;
  const float *x, *pooled, *dy;  // MAX_SECOND: |dy| has the shape of x
  float* to;
} pooling3d_pool_t;

// The window of one output position: [begin, end) along each axis.
typedef struct pooling3d_box_t {
  int64_t begin[3], end[3];
} pooling3d_box_t;

static bool find_box(const pooling3d_pool_t* pool, const int64_t at[3], pooling3d_box_t* box,
                     int64_t* out_count) {
  *out_count = 1;
  for (int i = 0; i < 3; ++i) {
    int64_t first = 0;
    if (!rn_mul_i64_ok(at[i], pool->sizes.axes[i].stride, &first) ||
        first > pool->sizes.axes[i].in + INT32_MAX)
      return false;
    rn_window_at(&pool->sizes.axes[i], at[i], &box->begin[i], &box->end[i]);
    if (box->end[i] <= box->begin[i]) return false;
    *out_count *= box->end[i] - box->begin[i];
  }
  return true;
}

static void visit(const pooling3d_pool_t* pool, const float* x, int64_t place, int64_t out,
                  int64_t count, float* dx) {
  int64_t depth = pool->sizes.depth;
  const float* dy = pool->dy ? pool->dy + out : NULL;
  switch (pool->work) {
    case MAX:  // a NaN wins
      rn_vector_run(RN_VECTOR_MAXIMUM, RN_FLOAT, x + place, 1, pool->to + out, 1, pool->to + out,
                    depth);
      break;
    case MAX_GRADIENT:  // every element equal to the maximum gets it
      for (int64_t c = 0; c < depth; ++c)
        if (x[place + c] == pool->pooled[out + c]) dx[place + c] += dy[c];
      break;
    case AVERAGE_GRADIENT:
      for (int64_t c = 0; c < depth; ++c) dx[place + c] += dy[c] / (float)count;
      break;
    case AVERAGE:
    case MAX_SECOND:
      break;
  }
}

// The gradient of the gradient: the value at the first maximum of each window.
static void visit_second(const pooling3d_pool_t* pool, const float* x, const float* dx,
                         int64_t place, int64_t out) {
  for (int64_t c = 0; c < pool->sizes.depth; ++c)
    if (x[place + c] == pool->pooled[out + c]) pool->to[out + c] = dx[place + c];
}

static void run_position(const pooling3d_pool_t* pool, int64_t volume, const int64_t at[3],
                         int64_t out) {
  pooling3d_box_t box;
  int64_t count = 0, depth = pool->sizes.depth;
  int64_t size = pool->sizes.axes[0].in * pool->sizes.axes[1].in * pool->sizes.axes[2].in * depth;
  const float* x = pool->x ? pool->x + volume * size : NULL;
  bool is_empty = !find_box(pool, at, &box, &count);
  float start = pool->work != MAX ? 0 : is_empty ? -FLT_MAX : -INFINITY;
  bool makes_y = pool->work == MAX || pool->work == AVERAGE || pool->work == MAX_SECOND;
  for (int64_t c = 0; makes_y && c < depth; ++c) pool->to[out + c] = start;
  if (is_empty) return;
  const int64_t rows = pool->sizes.axes[1].in, columns = pool->sizes.axes[2].in;
  if (pool->work == AVERAGE) {
    const int64_t counts[3] = {box.end[0] - box.begin[0], box.end[1] - box.begin[1],
                               box.end[2] - box.begin[2]};
    const int64_t steps[3] = {rows * columns * depth, columns * depth, depth};
    const float* first =
        x + box.begin[0] * steps[0] + box.begin[1] * steps[1] + box.begin[2] * steps[2];
    RN_ISA_PICK(rn_pooling_)[RN_FLOAT].average_box(first, counts, steps, depth, pool->to + out);
    return;
  }
  // Backwards for the second gradient, so that the first maximum writes last.
  if (pool->work == MAX_SECOND) {
    for (int64_t p = box.end[0] - 1; p >= box.begin[0]; --p)
      for (int64_t r = box.end[1] - 1; r >= box.begin[1]; --r)
        for (int64_t c = box.end[2] - 1; c >= box.begin[2]; --c)
          visit_second(pool, x, pool->dy + volume * size, ((p * rows + r) * columns + c) * depth,
                       out);
    return;
  }
  float* dx = makes_y ? NULL : pool->to + volume * size;
  for (int64_t p = box.begin[0]; p < box.end[0]; ++p)
    for (int64_t r = box.begin[1]; r < box.end[1]; ++r)
      for (int64_t c = box.begin[2]; c < box.end[2]; ++c)
        visit(pool, x, ((p * rows + r) * columns + c) * depth, out, count, dx);
}

// Volumes [begin, end).
static void run_piece(void* arg, int64_t begin, int64_t end) {
  const pooling3d_pool_t* pool = arg;
  for (int64_t volume = begin; volume < end; ++volume) {
    int64_t out = volume * pool->sizes.outs[0] * pool->sizes.outs[1] * pool->sizes.outs[2] *
                  pool->sizes.depth,
            at[3];
    for (at[0] = 0; at[0] < pool->sizes.outs[0]; ++at[0])
      for (at[1] = 0; at[1] < pool->sizes.outs[1]; ++at[1])
        for (at[2] = 0; at[2] < pool->sizes.outs[2]; ++at[2], out += pool->sizes.depth)
          run_position(pool, volume, at, out);
  }
}

// Runs in float; converts bfloat16 to float and back. |in| are x, pooled and dy, NULL where the
// work has none.
static rn_status_t run(rn_kernel_ctx_t* ctx, pooling3d_pool_t* pool, const rn_tensor_t* const in[3],
                       rn_tensor_t* out, int64_t batch) {
  const rn_vector_table_t* table = rn_vector_table();
  const float** slots[3] = {&pool->x, &pool->pooled, &pool->dy};
  bool is_narrow = out->dtype == RN_BFLOAT16;
  int64_t total = is_narrow ? out->count : 0;
  for (int i = 0; i < 3; ++i) total += in[i] && in[i]->dtype != RN_FLOAT ? in[i]->count : 0;
  rn_tensor_t temp = {0};
  if (total) RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &total}, &temp));
  float* next = temp.data;
  for (int i = 0; i < 3; ++i) {
    if (!in[i]) continue;
    *slots[i] = in[i]->data;
    if (in[i]->dtype == RN_FLOAT) continue;
    table->widen_bfloat16(in[i]->data, next, in[i]->count);
    *slots[i] = next;
    next += in[i]->count;
  }
  pool->to = is_narrow ? next : out->data;
  if (pool->work == MAX_GRADIENT || pool->work == AVERAGE_GRADIENT)
    memset(pool->to, 0, (size_t)out->count * sizeof(float));
  double each =
      (double)(pool->sizes.outs[0] * pool->sizes.outs[1] * pool->sizes.outs[2] * pool->sizes.depth);
  for (int i = 0; i < 3; ++i) each *= (double)pool->sizes.axes[i].filter;
  rn_pool_for(rn_ctx_pool(ctx), batch,
              each >= PIECE_ELEMENTS ? 1 : (int64_t)(PIECE_ELEMENTS / (each + 1)) + 1, run_piece,
              pool);
  if (is_narrow) table->narrow_bfloat16(pool->to, out->data, out->count);
  rn_tensor_clear(&temp);
  return RN_OK;
}

// |dims| with channels last, or the other way: in the order of the data format.
static void order(const rn_pooling3d_attrs_t* state, const int64_t* dims, int64_t out[5]) {
  static const int places[2][5] = {{0, 1, 2, 3, 4}, {0, 2, 3, 4, 1}};
  for (int i = 0; i < 5; ++i) out[i] = dims[places[state->is_ncdhw][i]];
}
static void native(const rn_pooling3d_attrs_t* state, const int64_t* dims, int64_t out[5]) {
  static const int places[2][5] = {{0, 1, 2, 3, 4}, {0, 4, 1, 2, 3}};
  for (int i = 0; i < 5; ++i) out[i] = dims[places[state->is_ncdhw][i]];
}

// |given| are dims in the order of the data format; so are |y_dims|, those of the pooled volume.
static rn_status_t measure(const rn_pooling3d_attrs_t* state, const int64_t* given,
                           rn_pooling3d_t* out, int64_t y_dims[5]) {
  int64_t dims[5], pooled[5];
  order(state, given, dims);
  memcpy(pooled, dims, sizeof pooled);
  for (int i = 0; i < 3; ++i) {
    rn_window_attrs_t attrs = {.padding = state->padding};
    attrs.strides[1] = state->strides[i];
    attrs.dilations[1] = 1;
    RN_RETURN_IF_ERROR(rn_window_axis(&attrs, 1, dims[i + 1], state->ksize[i], &out->axes[i]));
    pooled[i + 1] = out->outs[i] = out->axes[i].out;
  }
  out->batch = dims[0];
  out->depth = dims[4];
  native(state, pooled, y_dims);
  return RN_OK;
}

rn_status_t rn_pooling3d_sizes(const rn_kernel_ctx_t* ctx, rn_pooling3d_t* out, int64_t y_dims[5]) {
  const rn_tensor_t* x = rn_in(ctx, 0);
  if (x->rank != 5) return rn_invalid_argument("tensor_in must be 5-dimensional");
  return measure(ctx->state, rn_tensor_dims(x), out, y_dims);
}

static rn_status_t forward(rn_kernel_ctx_t* ctx, pooling3d_work_t work) {
  const rn_tensor_t* x = rn_in(ctx, 0);
  pooling3d_pool_t pool = {.work = work};
  int64_t dims[5];
  RN_RETURN_IF_ERROR(rn_pooling3d_sizes(ctx, &pool.sizes, dims));
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){5, dims}, &y));
  if (y->count == 0) return RN_OK;
  return run(ctx, &pool, (const rn_tensor_t* const[3]){x, NULL, NULL}, y, dims[0]);
}

static rn_status_t max_compute(rn_kernel_ctx_t* ctx) { return forward(ctx, MAX); }
static rn_status_t average_compute(rn_kernel_ctx_t* ctx) { return forward(ctx, AVERAGE); }

static rn_status_t expect_shape(const char* what, const rn_tensor_t* tensor, rn_shape_t shape) {
  if (rn_shape_eq(rn_tensor_shape(tensor), shape)) return RN_OK;
  return rn_invalid_argument("Expected %s shape to be %s, but got %s", what,
                             rn_shape_text(shape).text, rn_text_of(tensor).text);
}

rn_status_t rn_pooling3d_gradient_sizes(const rn_kernel_ctx_t* ctx, bool second,
                                        rn_pooling3d_t* out) {
  static const char* const names[3] = {"tensor_in", "tensor_out", "out_backprop"};
  const rn_tensor_t* x = rn_in(ctx, 0);
  for (int i = 0; i < 3; ++i)
    if (rn_in(ctx, i)->rank != 5) return rn_invalid_argument("%s must be 5-dimensional", names[i]);
  int64_t dims[5];
  RN_RETURN_IF_ERROR(measure(ctx->state, rn_tensor_dims(x), out, dims));
  rn_shape_t pooled = {5, dims};
  RN_RETURN_IF_ERROR(expect_shape("orig_output", rn_in(ctx, 1), pooled));
  return expect_shape("grad", rn_in(ctx, 2), second ? rn_tensor_shape(x) : pooled);
}

// Inputs: x, its pooled output, and a gradient of either.
static rn_status_t max_gradients(rn_kernel_ctx_t* ctx, pooling3d_work_t work) {
  const rn_tensor_t *x = rn_in(ctx, 0), *y = rn_in(ctx, 1), *dy = rn_in(ctx, 2);
  pooling3d_pool_t pool = {.work = work};
  RN_RETURN_IF_ERROR(rn_pooling3d_gradient_sizes(ctx, work == MAX_SECOND, &pool.sizes));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(work == MAX_SECOND ? y : x), &out));
  if (out->count == 0) return RN_OK;
  return run(ctx, &pool, (const rn_tensor_t* const[3]){x, y, dy}, out, pool.sizes.batch);
}

static rn_status_t max_gradient(rn_kernel_ctx_t* ctx) { return max_gradients(ctx, MAX_GRADIENT); }
static rn_status_t max_second(rn_kernel_ctx_t* ctx) { return max_gradients(ctx, MAX_SECOND); }

rn_status_t rn_pooling3d_average_gradient_sizes(const rn_kernel_ctx_t* ctx, int64_t dims[5],
                                                rn_pooling3d_t* out) {
  const rn_pooling3d_attrs_t* state = ctx->state;
  const rn_tensor_t *sizes = rn_in(ctx, 0), *dy = rn_in(ctx, 1);
  if (sizes->rank != 1 || sizes->count != 5)
    return rn_invalid_argument("tensor_in must be 1-dimensional and 5 elements");
  if (dy->rank != 5) return rn_invalid_argument("out_backprop must be 5-dimensional");
  for (int i = 0; i < 5; ++i) {
    dims[i] = RN_DATA(sizes, const int32_t)[i];
    if (dims[i] < 0) return rn_invalid_argument("Dimension %" PRId64 " must be >= 0", dims[i]);
  }
  int64_t pooled[5], y[5];
  RN_RETURN_IF_ERROR(measure(state, dims, out, pooled));
  order(state, rn_tensor_dims(dy), y);
  if (y[4] != out->depth || y[0] != out->batch)
    return rn_invalid_argument("out_backprop must have the batch and the depth of the input");
  for (int i = 0; i < 3; ++i) {
    out->outs[i] = y[i + 1];
    if (dy->count && y[i + 1] - 1 > out->axes[i].in / state->strides[i])
      return rn_invalid_argument("index * stride must be less than or equal to input size");
  }
  return RN_OK;
}

static rn_status_t average_gradient(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* dy = rn_in(ctx, 1);
  pooling3d_pool_t pool = {.work = AVERAGE_GRADIENT};
  int64_t dims[5];
  RN_RETURN_IF_ERROR(rn_pooling3d_average_gradient_sizes(ctx, dims, &pool.sizes));
  rn_tensor_t* dx = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){5, dims}, &dx));
  if (dx->count == 0) return RN_OK;
  return run(ctx, &pool, (const rn_tensor_t* const[3]){NULL, NULL, dy}, dx, dims[0]);
}

#define ROW(op_, compute_)                                                                     \
  {                                                                                            \
    .op = op_, .device = "CPU", .types = {{"T", RN_T(BFLOAT16) | RN_T(FLOAT)}},                \
    .host_args = RN_HOST_ARGS("orig_input_shape"), .flags = RN_KERNEL_EXPENSIVE,               \
    .state_size = sizeof(rn_pooling3d_attrs_t), .init = rn_pooling3d_init, .compute = compute_ \
  }
static const rn_kernel_def_t rows[] = {
    ROW("MaxPool3D", max_compute),
    ROW("AvgPool3D", average_compute),
    {.op = "MaxPool3DGrad",
     .device = "CPU",
     .types = {{"T", RN_T(BFLOAT16) | RN_T(FLOAT)}, {"TInput", RN_T(BFLOAT16) | RN_T(FLOAT)}},
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(rn_pooling3d_attrs_t),
     .init = rn_pooling3d_init,
     .compute = max_gradient},
    ROW("MaxPool3DGradGrad", max_second),
    ROW("AvgPool3DGrad", average_gradient),
};
RN_KERNEL_FAMILY(cpu_pooling3d, rows);
