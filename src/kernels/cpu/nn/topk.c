// TopK, ApproxTopK and InTopK.
#include <math.h>

#include "kernels/cpu/move.h"
#include "kernels/cpu/nn/topk.h"
#include "kernels/cpu/spans.h"
#include "kernels/kernel_rows.h"
#include "tensor/float16.h"

// Elements per piece of work.
#define PIECE_ELEMENTS (1 << 14)

// The k best of a row: values descending, ties by position. If most of them are wanted, they are
// sorted. Otherwise |best|, of k + 1, holds positions: a
// heap with the worst on top, then sorted. If no order is requested it stays a heap in stock's
// order: that of C++'s <algorithm>, which pops the worst of the k before it pushes a better one.
typedef void (*topk_row_fn_t)(const void* row, int64_t n, int64_t k, bool is_sorted, int64_t* best);

#define TOPK(T, S, VALUE)                                                                     \
  static inline bool better_##S(const T* x, int64_t a, int64_t b) {                           \
    return VALUE(x[a]) > VALUE(x[b]) || (VALUE(x[a]) == VALUE(x[b]) && a < b);                \
  }                                                                                           \
  static void lift_##S(const T* x, int64_t* heap, int64_t at, int64_t top, int64_t place) {   \
    for (; at > top && better_##S(x, heap[(at - 1) / 2], place); at = (at - 1) / 2)           \
      heap[at] = heap[(at - 1) / 2];                                                          \
    heap[at] = place;                                                                         \
  }                                                                                           \
  /* Moves the hole at |at| down to a leaf, then |place| up from there. */                    \
  static void sink_##S(const T* x, int64_t* heap, int64_t at, int64_t size, int64_t place) {  \
    int64_t top = at, child = at;                                                             \
    while (child < (size - 1) / 2) {                                                          \
      child = 2 * (child + 1);                                                                \
      if (better_##S(x, heap[child], heap[child - 1])) --child;                               \
      heap[at] = heap[child];                                                                 \
      at = child;                                                                             \
    }                                                                                         \
    if (size % 2 == 0 && child == (size - 2) / 2) {                                           \
      child = 2 * child + 1;                                                                  \
      heap[at] = heap[child];                                                                 \
      at = child;                                                                             \
    }                                                                                         \
    lift_##S(x, heap, at, top, place);                                                        \
  }                                                                                           \
  static void drop_##S(const T* x, int64_t* heap, int64_t size) { /* the worst goes last */   \
    int64_t last = heap[size - 1];                                                            \
    heap[size - 1] = heap[0];                                                                 \
    if (size > 1) sink_##S(x, heap, 0, size - 1, last);                                       \
  }                                                                                           \
  /* The first of the largest: without branches, so that any order costs the same. */         \
  static int64_t first_largest_##S(const T* x, int64_t n) {                                   \
    int64_t at = 0;                                                                           \
    __typeof__(0 + VALUE(x[0])) most = VALUE(x[0]);                                           \
    for (int64_t i = 1; i < n; ++i) {                                                         \
      const __typeof__(0 + VALUE(x[0])) value = VALUE(x[i]);                                  \
      const bool is_more = value > most;                                                      \
      at = is_more ? i : at;                                                                  \
      most = is_more ? value : most;                                                          \
    }                                                                                         \
    return at;                                                                                \
  }                                                                                           \
  /* Merges runs of growing length. |places| has room for 2 n positions, and ends with k. */  \
  static void sort_##S(const T* x, int64_t n, int64_t k, int64_t* places) {                   \
    int64_t *from = places, *to = places + n;                                                 \
    for (int64_t i = 0; i < n; ++i) from[i] = i;                                              \
    for (int64_t run = 1; run < n; run *= 2) {                                                \
      for (int64_t begin = 0; begin < n; begin += 2 * run) {                                  \
        const int64_t middle = begin + run < n ? begin + run : n;                             \
        const int64_t end = middle + run < n ? middle + run : n;                              \
        int64_t a = begin, b = middle, out = begin;                                           \
        while (a < middle && b < end) {                                                       \
          const int64_t left = from[a], right = from[b];                                      \
          const bool is_right = VALUE(x[right]) > VALUE(x[left]);                             \
          to[out++] = is_right ? right : left;                                                \
          a += !is_right, b += is_right;                                                      \
        }                                                                                     \
        while (a < middle) to[out++] = from[a++];                                             \
        while (b < end) to[out++] = from[b++];                                                \
      }                                                                                       \
      int64_t* kept = from;                                                                   \
      from = to, to = kept;                                                                   \
    }                                                                                         \
    if (from != places) memcpy(places, from, (size_t)k * sizeof *places);                     \
  }                                                                                           \
  static void row_##S(const void* row, int64_t n, int64_t k, bool is_sorted, int64_t* best) { \
    const T* x = row;                                                                         \
    if (k == 1) {                                                                             \
      best[0] = first_largest_##S(x, n);                                                      \
      return;                                                                                 \
    }                                                                                         \
    if (2 * k >= n && (is_sorted || k == n)) {                                                \
      sort_##S(x, n, k, best);                                                                \
      return;                                                                                 \
    }                                                                                         \
    int64_t size = k < n ? k + 1 : k;                                                         \
    for (int64_t i = 0; i < size; ++i) best[i] = i;                                           \
    for (int64_t i = size / 2 - 1; i >= 0; --i) sink_##S(x, best, i, size, best[i]);          \
    if (k < n) drop_##S(x, best, size);                                                       \
    for (int64_t i = size; i < n; ++i)                                                        \
      if (better_##S(x, i, best[0])) {                                                        \
        drop_##S(x, best, k);                                                                 \
        lift_##S(x, best, k - 1, 0, i);                                                       \
      }                                                                                       \
    if (!is_sorted && k < n) return;                                                          \
    for (int64_t last = k; last > 1; --last) drop_##S(x, best, last);                         \
  }

#define SAME(x) (x)
TOPK(float, f32, SAME)
TOPK(double, f64, SAME)
TOPK(int8_t, i8, SAME)
TOPK(int16_t, i16, SAME)
TOPK(int32_t, i32, SAME)
TOPK(int64_t, i64, SAME)
TOPK(uint8_t, u8, SAME)
TOPK(uint16_t, u16, SAME)
TOPK(uint32_t, u32, SAME)
TOPK(uint64_t, u64, SAME)
TOPK(uint16_t, half, rn_half_to_float)
TOPK(uint16_t, bfloat16, rn_bfloat16_to_float)

static const topk_row_fn_t row_fns[RN_DTYPE_COUNT] = {
    [RN_FLOAT] = row_f32,  [RN_DOUBLE] = row_f64, [RN_INT8] = row_i8,
    [RN_INT16] = row_i16,  [RN_INT32] = row_i32,  [RN_INT64] = row_i64,
    [RN_UINT8] = row_u8,   [RN_UINT16] = row_u16, [RN_UINT32] = row_u32,
    [RN_UINT64] = row_u64, [RN_HALF] = row_half,  [RN_BFLOAT16] = row_bfloat16,
};

typedef struct topk_job_t {
  topk_row_fn_t fn;
  const char* x;
  char* values;
  void* places;
  int64_t* best;  // one set per row
  rn_dtype_t index_type;
  int64_t n, k, room;  // places per row of |best|
  size_t item;
  bool is_sorted;
} topk_job_t;

static void put_place(const topk_job_t* job, int64_t at, int64_t place) {
  if (job->index_type == RN_INT32)
    ((int32_t*)job->places)[at] = (int32_t)place;
  else if (job->index_type == RN_INT16)
    ((int16_t*)job->places)[at] = (int16_t)place;
  else
    ((int64_t*)job->places)[at] = place;
}

static void run_piece(void* arg, int64_t begin, int64_t end) {
  const topk_job_t* job = arg;
  for (int64_t r = begin; r < end; ++r) {
    const char* row = job->x + (size_t)(r * job->n) * job->item;
    int64_t* best = job->best + r * job->room;
    job->fn(row, job->n, job->k, job->is_sorted, best);
    for (int64_t i = 0; i < job->k; ++i) {
      memcpy(job->values + (size_t)(r * job->k + i) * job->item, row + (size_t)best[i] * job->item,
             job->item);
      put_place(job, r * job->k + i, best[i]);
    }
  }
}

// The k best of each row of |x|.
static rn_status_t run_topk(rn_kernel_ctx_t* ctx, const void* x, rn_dtype_t dtype, int64_t n,
                            int64_t k, bool is_sorted, rn_tensor_t* values, rn_tensor_t* places) {
  rn_tensor_t best = {0};
  if (values->count == 0) return RN_OK;
  int64_t sizes[2] = {values->count / k, 0};
  sizes[1] = 2 * k >= n ? 2 * n : k + 1;  // what sorting needs
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT64, (rn_shape_t){2, sizes}, &best));
  topk_job_t job = {.fn = row_fns[dtype],
                    .x = x,
                    .values = values->data,
                    .places = places->data,
                    .best = best.data,
                    .index_type = places->dtype,
                    .n = n,
                    .k = k,
                    .room = sizes[1],
                    .item = rn_dtype_size(dtype),
                    .is_sorted = is_sorted};
  rn_pool_for(rn_ctx_pool(ctx), sizes[0], PIECE_ELEMENTS / (n + 4 * k) + 1, run_piece, &job);
  rn_tensor_clear(&best);
  return RN_OK;
}

static rn_status_t topk_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* x = rn_in(ctx, 0);
  int64_t k = 0;
  rn_tensor_t *values = NULL, *places = NULL;
  RN_RETURN_IF_ERROR(rn_topk_outputs(ctx, &k, &values, &places));
  return run_topk(ctx, x->data, x->dtype, rn_tensor_dim(x, x->rank - 1), k,
                  ((const rn_topk_t*)ctx->state)->is_sorted, values, places);
}

// ApproxTopK: exact, along any axis, largest or smallest first.

typedef struct approx_state_t {
  int64_t k, axis;
  bool is_max;
} approx_state_t;

static rn_status_t approx_init(const rn_kernel_init_t* init, void* state) {
  approx_state_t* approx = state;
  approx->k = rn_init_int(init, "k");
  approx->axis = rn_init_int(init, "reduction_dimension");
  approx->is_max = rn_init_bool(init, "is_max_k");
  return RN_OK;
}

// Exchanges the last two axes of [outer, rows, columns].
static rn_status_t swap_axes(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int64_t outer, int64_t rows,
                             int64_t columns, const void* from, void* to) {
  rn_move_t move;
  rn_move_begin(&move);
  rn_move_add(&move, outer, rows * columns, rows * columns);
  rn_move_add(&move, rows, columns, 1);
  rn_move_add(&move, columns, 1, rows);
  return rn_move_run(&move, rn_ctx_pool(ctx), dtype, from, to);
}

// Changes the signs of floats.
static void negate(rn_tensor_t* x) {
  for (int64_t i = 0; x->dtype == RN_FLOAT && i < x->count; ++i)
    RN_DATA(x, uint32_t)[i] ^= UINT32_C(1) << 31;
  for (int64_t i = 0; x->dtype != RN_FLOAT && i < x->count; ++i)
    RN_DATA(x, uint16_t)[i] ^= UINT16_C(1) << 15;
}

// |view| is the input as [outer, size, inner]. Works on a copy with the axis last and the best
// largest.
static rn_status_t approx_run(rn_kernel_ctx_t* ctx, rn_axis_view_t view, rn_tensor_t* values,
                              rn_tensor_t* places) {
  const approx_state_t* state = ctx->state;
  const rn_tensor_t* x = rn_in(ctx, 0);
  int64_t k = state->k, dims[2] = {view.outer * view.inner, k};
  rn_tensor_t turned = {0}, best = {0}, at = {0};
  rn_status_t status = rn_temp(ctx, x->dtype, rn_tensor_shape(x), &turned);
  if (rn_ok(status)) status = rn_temp(ctx, x->dtype, (rn_shape_t){2, dims}, &best);
  if (rn_ok(status)) status = rn_temp(ctx, RN_INT32, (rn_shape_t){2, dims}, &at);
  if (rn_ok(status))
    status = swap_axes(ctx, x->dtype, view.outer, view.size, view.inner, x->data, turned.data);
  if (rn_ok(status) && !state->is_max) negate(&turned);
  if (rn_ok(status)) status = run_topk(ctx, turned.data, x->dtype, view.size, k, true, &best, &at);
  if (rn_ok(status) && !state->is_max) negate(&best);
  if (rn_ok(status))
    status = swap_axes(ctx, x->dtype, view.outer, view.inner, k, best.data, values->data);
  if (rn_ok(status))
    status = swap_axes(ctx, RN_INT32, view.outer, view.inner, k, at.data, places->data);
  rn_tensor_clear(&turned);
  rn_tensor_clear(&best);
  rn_tensor_clear(&at);
  return status;
}

static rn_status_t approx_compute(rn_kernel_ctx_t* ctx) {
  const approx_state_t* state = ctx->state;
  const rn_tensor_t* x = rn_in(ctx, 0);
  if (x->rank < 1) return rn_invalid_argument("input must be >= 1-D, got shape []");
  int64_t axis = state->axis < 0 ? state->axis + x->rank : state->axis, dims[RN_MAX_RANK];
  if (axis < 0 || axis >= x->rank)
    return rn_invalid_argument("Invalid reduction dimension: %" PRId64
                               ". Must be within the range of [%d, %d]",
                               state->axis, -x->rank, x->rank - 1);
  memcpy(dims, rn_tensor_dims(x), x->rank * sizeof *dims);
  if (dims[axis] < state->k)
    return rn_invalid_argument("input must have at least k columns. Had %" PRId64
                               ", needed %" PRId64,
                               dims[axis], state->k);
  rn_axis_view_t view = rn_axis_view(x, (int)axis);
  dims[axis] = state->k;
  rn_tensor_t *values = NULL, *places = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){x->rank, dims}, &values));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){x->rank, dims}, &places));
  if (values->count == 0) return RN_OK;
  if (state->is_max && view.inner == 1)
    return run_topk(ctx, x->data, x->dtype, view.size, state->k, true, values, places);
  return approx_run(ctx, view, values, places);
}

// InTopK: whether the target is among the k best of its row. False if that is undefined: the target
// is not a class, or a value is not finite.

static bool is_in_top(const float* row, int64_t classes, int64_t target, int64_t k) {
  if (target < 0 || target >= classes || !isfinite(row[target])) return false;
  int64_t larger = rn_spans()->count_larger(row, classes, row[target], k);
  return larger >= 0 && larger < k;
}

typedef struct in_topk_state_t {
  int64_t k;
} in_topk_state_t;

static rn_status_t in_topk_init(const rn_kernel_init_t* init, void* state) {
  ((in_topk_state_t*)state)->k = rn_init_int(init, "k");
  return RN_OK;
}

static int64_t index_at(const rn_tensor_t* tensor, int64_t i) {
  return tensor->dtype == RN_INT32 ? RN_DATA(tensor, const int32_t)[i]
                                   : RN_DATA(tensor, const int64_t)[i];
}

static rn_status_t in_topk_run(rn_kernel_ctx_t* ctx, int64_t k) {
  const rn_tensor_t *predictions = rn_in(ctx, 0), *targets = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(rn_in_topk_check(predictions, targets));
  int64_t rows = rn_tensor_dim(predictions, 0), classes = rn_tensor_dim(predictions, 1);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(targets), &out));
  for (int64_t r = 0; r < rows; ++r) RN_DATA(out, bool)
  [r] =
      is_in_top(RN_DATA(predictions, const float) + r * classes, classes, index_at(targets, r), k);
  return RN_OK;
}

static rn_status_t in_topk_compute(rn_kernel_ctx_t* ctx) {
  return in_topk_run(ctx, ((const in_topk_state_t*)ctx->state)->k);
}

static rn_status_t in_topk_v2_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* k = rn_in(ctx, 2);
  if (k->rank != 0) return rn_invalid_argument("k must be 0-D, got shape %s", rn_text_of(k).text);
  return in_topk_run(ctx, index_at(k, 0));
}

static const rn_kernel_def_t rows[] = {
    {.op = "TopK",
     .device = "CPU",
     .types = {{"T", RN_TYPES_REAL}},
     .state_size = sizeof(rn_topk_t),
     .init = rn_topk_init,
     .compute = topk_compute},
    {.op = "TopKV2",
     .device = "CPU",
     .types = {{"T", RN_TYPES_REAL}, {"index_type", RN_T(INT16) | RN_TYPES_INDEX}},
     .host_args = RN_HOST_ARGS("k"),
     .state_size = sizeof(rn_topk_t),
     .init = rn_topk_init,
     .compute = topk_compute},
    {.op = "ApproxTopK",
     .device = "CPU",
     .types = {{"T", RN_TYPES_FLOATS}},
     .state_size = sizeof(approx_state_t),
     .init = approx_init,
     .compute = approx_compute},
    {.op = "InTopK",
     .device = "CPU",
     .types = {{"T", RN_TYPES_INDEX}},
     .state_size = sizeof(in_topk_state_t),
     .init = in_topk_init,
     .compute = in_topk_compute},
    {.op = "InTopKV2",
     .device = "CPU",
     .types = {{"T", RN_TYPES_INDEX}},
     .compute = in_topk_v2_compute},
};
RN_KERNEL_FAMILY(cpu_topk, rows);
