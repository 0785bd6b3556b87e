// One op over images or volumes on the CPU and on a GPU, with the same values: the CPU has channels
// last, the GPU last or first.
//
// The elements are small multiples of 1/8, so that products and most sums are exact in every type
// and in TF32.
#ifndef TESTS_GPU_ON_BOTH_H_
#define TESTS_GPU_ON_BOTH_H_

#include <math.h>
#include <stdlib.h>

#include "numbers.h"
#include "tensor/float16.h"
#include "util.h"

// Compiling kernels for many shapes takes a while on a real card.
#define BOTH_TEST(suite, name) Test(suite, name, .timeout = 600)

// Whether the GPU is a real one, for which larger sizes are worth their time.
static RT_UNUSED bool is_real(void) { return !getenv("RUNNEL_CUDA_PATH"); }

#define BOTH_MAX 6

typedef struct both_t {
  const char* op;
  int rank;            // of the images: 4, or 5 for volumes
  bool is_first;       // the GPU's images have channels first
  bool has_no_format;  // the op has no attribute data_format
  int input_count, output_count;
  rn_tensor_t in[BOTH_MAX];        // with channels last
  uint32_t image_ins, image_outs;  // bits: which are images, or sizes of one
  // Attributes, channels last; left out if NULL.
  const int64_t *strides, *dilations, *ksize, *pads;
  const char* padding;
  void (*more)(rn_scope_t* scope);  // sets further attributes
  double tolerance;                 // of the largest element; 0: that of the type
  rn_tensor_t out[BOTH_MAX];        // the CPU's results; the caller clears them
} both_t;

static RT_UNUSED void both_set(rn_tensor_t* tensor, int64_t i, double value) {
  switch (tensor->dtype) {
    case RN_HALF:
      RN_DATA(tensor, uint16_t)[i] = rn_float_to_half((float)value);
      break;
    case RN_BFLOAT16:
      RN_DATA(tensor, uint16_t)[i] = rn_float_to_bfloat16((float)value);
      break;
    case RN_FLOAT:
      RN_DATA(tensor, float)[i] = (float)value;
      break;
    case RN_DOUBLE:
      RN_DATA(tensor, double)[i] = value;
      break;
    default:
      RN_DATA(tensor, int32_t)[i] = (int32_t)value;
  }
}

static RT_UNUSED rn_tensor_t both_tensor(rn_dtype_t dtype, int rank, const int64_t* dims) {
  static uint32_t random = 7;
  rn_tensor_t tensor;
  OK(rn_tensor_create(rn_allocator_system(), dtype, (rn_shape_t){rank, dims}, &tensor));
  for (int64_t i = 0; i < tensor.count; ++i) {
    random = random * 1664525u + 1013904223u;
    both_set(&tensor, i, (double)((int)(random >> 28) - 8) / 8);
  }
  return tensor;
}

static RT_UNUSED rn_tensor_t both_sizes(int rank, const int64_t* dims) {
  rn_tensor_t tensor;
  OK(rn_tensor_create(rn_allocator_system(), RN_INT32, (rn_shape_t){1, &(int64_t){rank}}, &tensor));
  for (int i = 0; i < rank; ++i) both_set(&tensor, i, (double)dims[i]);
  return tensor;
}

// |image| with its channels moved; sizes of an image likewise.
static RT_UNUSED rn_tensor_t both_turned(const rn_tensor_t* image, bool to_first) {
  const bool is_sizes = image->dtype == RN_INT32 && image->rank == 1;
  const int rank = is_sizes ? (int)image->count : image->rank;
  int64_t dims[8], out[8];
  for (int i = 0; i < rank; ++i)
    dims[i] = is_sizes ? (int64_t)number_at(image, i) : rn_tensor_dim(image, i);
  memcpy(out, dims, sizeof out);
  const int64_t channels = to_first ? dims[rank - 1] : dims[1];
  int64_t pixels = 1;
  for (int i = 1; i < rank - 1; ++i) {
    const int64_t size = dims[to_first ? i : i + 1];
    out[to_first ? i + 1 : i] = size;
    pixels *= size;
  }
  out[to_first ? 1 : rank - 1] = channels;
  if (is_sizes) return both_sizes(rank, out);
  rn_tensor_t turned = both_tensor(image->dtype, rank, out);
  for (int64_t n = 0; n < dims[0]; ++n)
    for (int64_t p = 0; p < pixels; ++p)
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t last = (n * pixels + p) * channels + c,
                      first = (n * channels + c) * pixels + p;
        both_set(&turned, to_first ? first : last, number_at(image, to_first ? last : first));
      }
  return turned;
}

static void both_list(rn_scope_t* scope, const both_t* both, const char* name,
                      const int64_t* values, int per_axis, bool is_first) {
  int64_t ordered[10];
  if (!values) return;
  for (int i = 0; i < both->rank; ++i) {
    const int from = !is_first || i == 0 ? i : i == 1 ? both->rank - 1 : i - 1;
    for (int k = 0; k < per_axis; ++k) ordered[i * per_axis + k] = values[from * per_axis + k];
  }
  rn_op_attr_int_list(scope, name, ordered, both->rank * per_axis);
}

static rn_node_t* both_node(rt_t* rt, const both_t* both, const rn_edge_t* feeds, bool on_gpu) {
  rn_scope_t* s = rt->s;
  const bool is_first = on_gpu && both->is_first;
  rn_scope_set_device(s, on_gpu ? "/gpu:0" : "/cpu:0");
  rn_op_begin(s, both->op);
  for (int i = 0; i < both->input_count; ++i) rn_op_input(s, feeds[i]);
  both_list(s, both, "strides", both->strides, 1, is_first);
  both_list(s, both, "dilations", both->dilations, 1, is_first);
  both_list(s, both, "ksize", both->ksize, 1, is_first);
  both_list(s, both, "explicit_paddings", both->pads, 2, is_first);
  if (both->padding) rn_op_attr_string(s, "padding", both->padding);
  if (!both->has_no_format)
    rn_op_attr_string(
        s, "data_format",
        both->rank == 4 ? (is_first ? "NCHW" : "NHWC") : (is_first ? "NCDHW" : "NDHWC"));
  if (both->more) both->more(s);
  rn_node_t* node = rn_op_finish(s);
  rn_scope_set_device(s, NULL);
  return node;
}

static void both_compare(const both_t* both, int o, const rn_tensor_t* want,
                         const rn_tensor_t* got) {
  double most = 0, worst = 0;
  cr_assert_eq(want->count, got->count, "%s output %d: %d and %d elements", both->op, o,
               (int)want->count, (int)got->count);
  for (int64_t i = 0; i < want->count; ++i) {
    const double a = number_at(want, i), b = number_at(got, i);
    if (isnan(a) && isnan(b)) continue;
    if (fabs(a) > most) most = fabs(a);
    if (!(fabs(a - b) <= worst)) worst = isnan(a - b) ? INFINITY : fabs(a - b);
  }
  const double tolerance = both->tolerance              ? both->tolerance
                           : want->dtype == RN_DOUBLE   ? 1e-9
                           : want->dtype == RN_FLOAT    ? 1e-3
                           : want->dtype == RN_HALF     ? 2e-3
                           : want->dtype == RN_BFLOAT16 ? 1e-2
                                                        : 0;
  cr_assert(worst <= tolerance * (most + 1),
            "%s output %d, type %d, rank %d, channels %s: differs by %g of %g", both->op, o,
            (int)want->dtype, both->rank, both->is_first ? "first" : "last", worst, most);
}

// Runs the op three times on both: plans are made in the first step and used in the others.
static RT_UNUSED void both_run(both_t* both) {
  rt_t rt = rt_begin(1);
  rn_edge_t feeds[2][BOTH_MAX];
  rn_tensor_t turned[BOTH_MAX] = {0};
  for (int i = 0; i < both->input_count; ++i) {
    const bool is_turned = both->is_first && both->image_ins >> i & 1;
    for (int g = 0; g < 2; ++g) feeds[g][i] = rn_Placeholder(rt.s, (int)both->in[i].dtype);
    if (is_turned) turned[i] = both_turned(&both->in[i], true);
  }
  rn_node_t* nodes[2] = {both_node(&rt, both, feeds[0], false),
                         both_node(&rt, both, feeds[1], true)};
  for (int turn = 0; turn < 3; ++turn) {
    rt_step_t step = {0};
    for (int i = 0; i < both->input_count; ++i) {
      rt_feed(&step, feeds[0][i], &both->in[i]);
      rt_feed(&step, feeds[1][i], turned[i].data ? &turned[i] : &both->in[i]);
    }
    for (int g = 0; g < 2; ++g)
      for (int o = 0; o < both->output_count; ++o) rt_fetch(&step, (rn_edge_t){nodes[g], o});
    OK(rt_run(&rt, &step));
    for (int o = 0; o < both->output_count; ++o) {
      rn_tensor_t* got = &step.out[both->output_count + o];
      const bool is_turned = both->is_first && both->image_outs >> o & 1;
      rn_tensor_t last = is_turned ? both_turned(got, false) : (rn_tensor_t){0};
      both_compare(both, o, &step.out[o], is_turned ? &last : got);
      rn_tensor_clear(&last);
      if (turn == 0) OK(rn_tensor_share(&step.out[o], &both->out[o]));
    }
    rt_clear(&step);
  }
  for (int i = 0; i < both->input_count; ++i) rn_tensor_clear(&turned[i]);
  rt_end(&rt);
}

static RT_UNUSED void both_clear(both_t* both) {
  for (int i = 0; i < both->input_count; ++i) rn_tensor_clear(&both->in[i]);
  for (int o = 0; o < both->output_count; ++o) rn_tensor_clear(&both->out[o]);
}

#endif  // TESTS_GPU_ON_BOTH_H_
