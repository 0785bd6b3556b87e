// ArgMax and ArgMin.
#include "kernels/cpu/isa/argmax.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/math/axes.h"
#include "kernels/kernel_rows.h"

// Elements per piece of work.
#define PIECE 65536

typedef struct arg_t {
  bool is_min;
} arg_t;

static rn_status_t arg_init(const rn_kernel_init_t* init, void* state) {
  ((arg_t*)state)->is_min = rn_str_is(rn_str(init->op->name), "ArgMin");
  return RN_OK;
}

typedef struct argmax_work_t {
  rn_argmax_fn_t fn;
  const char* in;
  rn_tensor_t* out;
  size_t size;
  rn_axis_view_t view;
} argmax_work_t;

static void run(void* arg, int64_t begin, int64_t end) {
  const argmax_work_t* w = arg;
  int64_t found[RN_ARGMAX_COLUMNS];
  for (int64_t o = begin; o < end; ++o) {
    const char* in = w->in + (size_t)(o * w->view.size * w->view.inner) * w->size;
    for (int64_t c = 0; c < w->view.inner; c += RN_ARGMAX_COLUMNS) {
      int64_t width = w->view.inner - c < RN_ARGMAX_COLUMNS ? w->view.inner - c : RN_ARGMAX_COLUMNS;
      w->fn(in + (size_t)c * w->size, w->view.size, w->view.inner, width, found);
      int64_t at = o * w->view.inner + c;
      for (int64_t j = 0; j < width; ++j, ++at) {
        switch (w->out->dtype) {
          case RN_INT64:
            RN_DATA(w->out, int64_t)[at] = found[j];
            break;
          case RN_INT32:
            RN_DATA(w->out, int32_t)[at] = (int32_t)found[j];
            break;
          default:
            RN_DATA(w->out, uint16_t)[at] = (uint16_t)found[j];
        }
      }
    }
  }
}

static rn_status_t arg_extreme(rn_kernel_ctx_t* ctx) {
  const arg_t* state = ctx->state;
  const rn_tensor_t* input = rn_in(ctx, 0);
  int axis = 0;
  RN_RETURN_IF_ERROR(rn_read_arg_axis(input, rn_in(ctx, 1), &axis));
  const int rank = input->rank;
  int64_t dims[RN_MAX_RANK];
  for (int d = 0, to = 0; d < rank; ++d)
    if (d != axis) dims[to++] = rn_tensor_dim(input, d);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){rank - 1, dims}, &out));
  if (out->count == 0) return RN_OK;
  argmax_work_t work = {
      .fn = RN_ISA_PICK_NARROW(&rn_argmax_table_)->fn[state->is_min][input->dtype],
      .in = input->data,
      .out = out,
      .size = rn_dtype_size(input->dtype),
      .view = rn_axis_view(input, axis)};
  int64_t each = work.view.size * work.view.inner, grain = PIECE / each;
  rn_pool_for(rn_ctx_pool(ctx), work.view.outer, grain < 1 ? 1 : grain, run, &work);
  return RN_OK;
}

#define ROW(name, outputs)                                                  \
  {                                                                         \
    .op = name, .device = "CPU",                                            \
    .types = {{"T", RN_TYPES_REAL | RN_T(BOOL)}, {"output_type", outputs}}, \
    .state_size = sizeof(arg_t), .init = arg_init, .compute = arg_extreme   \
  }

static const rn_kernel_def_t rows[] = {
    ROW("ArgMax", RN_TYPES_INDEX | RN_T(INT16) | RN_T(UINT16)),
    ROW("ArgMin", RN_TYPES_INDEX),
};
RN_KERNEL_FAMILY(cpu_argmax, rows);
