// Cumsum, Cumprod and CumulativeLogsumexp.
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/combine.h"
#include "kernels/cpu/math/axes.h"
#include "kernels/kernel_rows.h"
#include "tensor/float16.h"

// Elements per piece of work.
#define PIECE 16384

enum { SUM, PROD, LOG_SUM_EXP };

typedef struct scan_t {
  int kind;
  bool exclusive, reverse;
} scan_t;

static rn_status_t scan_init(const rn_kernel_init_t* init, void* state) {
  rn_str_t name = rn_str(init->op->name);
  *(scan_t*)state = (scan_t){rn_str_is(name, "Cumsum")    ? SUM
                             : rn_str_is(name, "Cumprod") ? PROD
                                                          : LOG_SUM_EXP,
                             rn_init_bool(init, "exclusive"), rn_init_bool(init, "reverse")};
  return RN_OK;
}

typedef struct scan_work_t {
  const scan_t* scan;
  rn_dtype_t dtype;
  const char* in;
  char* out;
  int64_t size;  // bytes per element
  rn_axis_view_t view;
} scan_work_t;

// log(exp(a) + exp(b)) without overflow.
static inline double log_add(double a, double b) {
  double high = a > b ? a : b, low = a > b ? b : a;
  if (high == -INFINITY || high != high || low != low) return a + b == a + b ? high : a + b;
  if (high == INFINITY) return high;
  return high + log1p(exp(low - high));
}

// One line of |n| elements, |step| apart (negative for reverse).
#define LINE(T, A, LOAD, STORE, START, OP)                \
  do {                                                    \
    const T* in = in_;                                    \
    T* out = out_;                                        \
    A x = START;                                          \
    for (int64_t i = 0, at = 0; i < n; ++i, at += step) { \
      const A y = LOAD(in[at]);                           \
      if (exclusive) out[at] = STORE(x);                  \
      x = OP;                                             \
      if (!exclusive) out[at] = STORE(x);                 \
    }                                                     \
  } while (0)
#define SAME(v) (v)
#define KINDS(T, A, U, LOAD, STORE)               \
  if (kind == SUM)                                \
    LINE(T, A, LOAD, STORE, 0, (A)((U)x + (U)y)); \
  else                                            \
    LINE(T, A, LOAD, STORE, 1, (A)((U)x * (U)y)); \
  break

static void scan_line(int kind, bool exclusive, rn_dtype_t dtype, const void* in_, void* out_,
                      int64_t n, int64_t step) {
  if (kind == LOG_SUM_EXP) {
    switch (dtype) {
      case RN_FLOAT:
        LINE(float, double, SAME, (float), -INFINITY, log_add(x, y));
        break;
      case RN_DOUBLE:
        LINE(double, double, SAME, SAME, -INFINITY, log_add(x, y));
        break;
      case RN_HALF:
        LINE(uint16_t, float, rn_half_to_float, rn_float_to_half, -INFINITY, (float)log_add(x, y));
        break;
      default:
        LINE(uint16_t, float, rn_bfloat16_to_float, rn_float_to_bfloat16, -INFINITY,
             (float)log_add(x, y));
    }
    return;
  }
  switch (dtype) {
    case RN_FLOAT:
      KINDS(float, float, float, SAME, SAME);
    case RN_DOUBLE:
      KINDS(double, double, double, SAME, SAME);
    case RN_HALF:
      KINDS(uint16_t, float, float, rn_half_to_float, rn_float_to_half);
    case RN_BFLOAT16:
      KINDS(uint16_t, float, float, rn_bfloat16_to_float, rn_float_to_bfloat16);
    case RN_COMPLEX64:
      KINDS(_Complex float, _Complex float, _Complex float, SAME, SAME);
    case RN_COMPLEX128:
      KINDS(_Complex double, _Complex double, _Complex double, SAME, SAME);
    case RN_INT8:
    case RN_UINT8:
      KINDS(uint8_t, uint8_t, uint32_t, SAME, SAME);
    case RN_INT16:
    case RN_UINT16:
      KINDS(uint16_t, uint16_t, uint32_t, SAME, SAME);
    case RN_INT32:
    case RN_UINT32:
      KINDS(uint32_t, uint32_t, uint32_t, SAME, SAME);
    default:
      KINDS(uint64_t, uint64_t, uint64_t, SAME, SAME);
  }
}

// Rows of |inner| elements, each computed from the previous one.
static void scan_rows(const scan_work_t* w, const char* in, char* out) {
  const scan_t* scan = w->scan;
  rn_combine_op_t op = scan->kind == SUM ? RN_COMBINE_ADD : RN_COMBINE_MUL;
  rn_combine_fn_t fn = rn_combine(op, w->dtype), assign = rn_combine(RN_COMBINE_ASSIGN, w->dtype);
  const int64_t row = w->view.inner * w->size, last = w->view.size - 1;
  _Alignas(16) char one[16];
  rn_combine_identity(op, w->dtype, one);
  for (int64_t i = 0; i <= last; ++i) {
    int64_t at = scan->reverse ? last - i : i, before = scan->reverse ? at + 1 : at - 1;
    char* to = out + at * row;
    if (i == 0 && scan->exclusive)
      assign(to, one, 0, to, w->view.inner);
    else if (i == 0)
      memcpy(to, in + at * row, (size_t)row);
    else
      fn(out + before * row, in + (scan->exclusive ? before : at) * row, 1, to, w->view.inner);
  }
}

static void run(void* arg, int64_t begin, int64_t end) {
  const scan_work_t* w = arg;
  const int64_t block = w->view.size * w->view.inner * w->size;
  const bool is_short =
      w->dtype == RN_HALF || w->dtype == RN_BFLOAT16 || w->scan->kind == LOG_SUM_EXP;
  for (int64_t o = begin; o < end; ++o) {
    const char* in = w->in + o * block;
    char* out = w->out + o * block;
    if (w->view.inner > 1 && !is_short) {
      scan_rows(w, in, out);
      continue;
    }
    int64_t step = w->scan->reverse ? -w->view.inner : w->view.inner;
    int64_t first = w->scan->reverse ? (w->view.size - 1) * w->view.inner : 0;
    for (int64_t j = 0; j < w->view.inner; ++j)
      scan_line(w->scan->kind, w->scan->exclusive, w->dtype, in + (first + j) * w->size,
                out + (first + j) * w->size, w->view.size, step);
  }
}

static rn_status_t scan(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  int axis = 0;
  RN_RETURN_IF_ERROR(rn_read_scan_axis(input, rn_in(ctx, 1), &axis));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(input), &out));
  if (input->count == 0) return RN_OK;
  scan_work_t work = {.scan = ctx->state,
                      .dtype = input->dtype,
                      .in = input->data,
                      .out = out->data,
                      .size = (int64_t)rn_dtype_size(input->dtype),
                      .view = rn_axis_view(input, axis)};
  int64_t grain = PIECE / (work.view.size * work.view.inner);
  rn_pool_for(rn_ctx_pool(ctx), work.view.outer, grain < 1 ? 1 : grain, run, &work);
  return RN_OK;
}

#define ROW(name, types_)                                                           \
  {                                                                                 \
    .op = name, .device = "CPU", .types = {{types_}}, .state_size = sizeof(scan_t), \
    .init = scan_init, .compute = scan                                              \
  }
#define TYPES(set) "T", set

static const rn_kernel_def_t rows[] = {
    ROW("Cumsum", TYPES(RN_TYPES_NUMBERS)),
    ROW("Cumprod", TYPES(RN_TYPES_NUMBERS)),
    ROW("CumulativeLogsumexp", TYPES(RN_TYPES_FLOATS)),
};
RN_KERNEL_FAMILY(cpu_scan, rows);
