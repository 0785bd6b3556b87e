// Matrix products on a GPU against the CPU: sizes around the edges of tiles, every type,
// transpositions and broadcast batches.
//
// The elements are small multiples of 1/4, so that every product and sum is exact in float and in
// TF32: both devices must give the same bits, whatever order and algorithm they use.
//
// Runs on the emulated GPU in the ordinary test command. To run it on a real one, leave
// RUNNEL_CUDA_PATH unset and let RUNNEL_CUDA_PART name the part that nvcc compiled.
#include "tensor/float16.h"
#include "util.h"

static void set_element(rn_tensor_t* tensor, int64_t i, float re, float im) {
  switch (tensor->dtype) {
    case RN_HALF:
      RN_DATA(tensor, uint16_t)[i] = rn_float_to_half(re);
      break;
    case RN_BFLOAT16:
      RN_DATA(tensor, uint16_t)[i] = rn_float_to_bfloat16(re);
      break;
    case RN_FLOAT:
      RN_DATA(tensor, float)[i] = re;
      break;
    case RN_DOUBLE:
      RN_DATA(tensor, double)[i] = (double)re;
      break;
    case RN_COMPLEX64:
      RN_DATA(tensor, float)[2 * i] = re;
      RN_DATA(tensor, float)[2 * i + 1] = im;
      break;
    default:
      RN_DATA(tensor, double)[2 * i] = (double)re;
      RN_DATA(tensor, double)[2 * i + 1] = (double)im;
  }
}

static float quarter(uint32_t* random) {
  *random = *random * 1664525u + 1013904223u;
  return (float)((int)(*random >> 28) - 8) / 4;
}

static rn_tensor_t operand(rn_dtype_t dtype, int rank, const int64_t* dims, uint32_t* random) {
  rn_tensor_t tensor;
  OK(rn_tensor_create(rn_allocator_system(), dtype, (rn_shape_t){rank, dims}, &tensor));
  for (int64_t i = 0; i < tensor.count; ++i) {
    float re = quarter(random), im = quarter(random);
    set_element(&tensor, i, re, im);
  }
  return tensor;
}

// Whether all numbers are the same; zeros of either sign are.
static bool is_same(const rn_tensor_t* x, const rn_tensor_t* y) {
  const size_t part = rn_dtype_size(x->dtype) / (rn_dtype_is_complex(x->dtype) ? 2 : 1);
  for (size_t at = 0; at < rn_tensor_bytes(x); at += part) {
    uint64_t bits[2] = {0};
    memcpy(&bits[0], (const char*)x->data + at, part);
    memcpy(&bits[1], (const char*)y->data + at, part);
    const uint64_t sign = UINT64_C(1) << (8 * part - 1);
    if (bits[0] != bits[1] && ((bits[0] | bits[1]) & ~sign)) return false;
  }
  return true;
}

// One product per device, of the same fed operands.
typedef struct both_t {
  rt_t rt;
  rn_dtype_t dtype;
  rn_edge_t a, b, on_cpu, on_gpu;
  bool transpose_a, transpose_b;
  uint32_t random;
} both_t;

static rn_edge_t product(both_t* both, const char* op, const char* device) {
  const bool is_batch = strcmp(op, "MatMul") != 0;
  rn_scope_set_device(both->rt.s, device);
  rn_op_begin(both->rt.s, op);
  rn_op_input(both->rt.s, both->a);
  rn_op_input(both->rt.s, both->b);
  rn_op_attr_bool(both->rt.s, is_batch ? "adj_x" : "transpose_a", both->transpose_a);
  rn_op_attr_bool(both->rt.s, is_batch ? "adj_y" : "transpose_b", both->transpose_b);
  rn_edge_t edge = {rn_op_finish(both->rt.s), 0};
  rn_scope_set_device(both->rt.s, NULL);
  return edge;
}

static both_t begin(const char* op, rn_dtype_t dtype, int transposes) {
  both_t both = {.rt = rt_begin(1),
                 .dtype = dtype,
                 .transpose_a = transposes & 1,
                 .transpose_b = transposes & 2,
                 .random = 7};
  both.a = rn_Placeholder(both.rt.s, dtype);
  both.b = rn_Placeholder(both.rt.s, dtype);
  both.on_cpu = product(&both, op, "/cpu:0");
  both.on_gpu = product(&both, op, "/gpu:0");
  return both;
}

// |a| and |b| end with [m, k] and [k, n]; they are stored as the transpositions want.
static void compare(both_t* both, int a_rank, const int64_t* a, int b_rank, const int64_t* b) {
  int64_t a_dims[8], b_dims[8];
  memcpy(a_dims, a, (size_t)a_rank * sizeof *a);
  memcpy(b_dims, b, (size_t)b_rank * sizeof *b);
  if (both->transpose_a) a_dims[a_rank - 2] = a[a_rank - 1], a_dims[a_rank - 1] = a[a_rank - 2];
  if (both->transpose_b) b_dims[b_rank - 2] = b[b_rank - 1], b_dims[b_rank - 1] = b[b_rank - 2];
  for (int turn = 0; turn < 2; ++turn) {
    rt_step_t step = {0};
    rn_tensor_t x = operand(both->dtype, a_rank, a_dims, &both->random);
    rn_tensor_t y = operand(both->dtype, b_rank, b_dims, &both->random);
    rt_feed(&step, both->a, &x);
    rt_feed(&step, both->b, &y);
    rt_fetch(&step, both->on_cpu);
    rt_fetch(&step, both->on_gpu);
    OK(rt_run(&both->rt, &step));
    cr_assert_eq(step.out[0].count, step.out[1].count);
    cr_assert(is_same(&step.out[0], &step.out[1]), "type %d, transposed %d %d, m %d, k %d, n %d",
              (int)both->dtype, both->transpose_a, both->transpose_b, (int)a[a_rank - 2],
              (int)a[a_rank - 1], (int)b[b_rank - 1]);
    rt_clear(&step);
    rn_tensor_clear(&x);
    rn_tensor_clear(&y);
  }
}

static const rn_dtype_t types[] = {RN_FLOAT,  RN_HALF,      RN_BFLOAT16,
                                   RN_DOUBLE, RN_COMPLEX64, RN_COMPLEX128};
enum { TYPES = sizeof types / sizeof *types };

static void matrices(rn_dtype_t dtype, int transposes) {
  static const int64_t sizes[][3] = {{1, 1, 1},   {1, 17, 3},    {5, 1, 7},      {64, 16, 64},
                                     {65, 33, 1}, {63, 15, 2},   {70, 100, 130}, {3, 300, 66},
                                     {8, 8, 8},   {128, 64, 32}, {4, 0, 5},      {0, 3, 4}};
  both_t both = begin("MatMul", dtype, transposes);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    const int64_t a[] = {sizes[i][0], sizes[i][1]}, b[] = {sizes[i][1], sizes[i][2]};
    compare(&both, 2, a, 2, b);
  }
  rt_end(&both.rt);
}

RT_TEST(gpu_matmul, matrices_of_every_type) {
  for (int t = 0; t < TYPES; ++t)
    for (int transposes = 0; transposes < 4; ++transposes) matrices(types[t], transposes);
}

static void batches(rn_dtype_t dtype, int transposes) {
  both_t both = begin("BatchMatMulV2", dtype, transposes);
#define PAIR(...) compare(&both, __VA_ARGS__)
#define DIMS(...) sizeof(((int64_t[]){__VA_ARGS__})) / 8, ((int64_t[]){__VA_ARGS__})
  PAIR(DIMS(3, 4, 5), DIMS(3, 5, 6));        // a batch
  PAIR(DIMS(3, 4, 5), DIMS(5, 6));           // the same b for all
  PAIR(DIMS(4, 5), DIMS(3, 5, 6));           // the same a for all
  PAIR(DIMS(2, 3, 4, 5), DIMS(2, 3, 5, 6));  // two dimensions like one
  PAIR(DIMS(2, 1, 4, 5), DIMS(1, 3, 5, 6));  // each repeats along one
  PAIR(DIMS(2, 3, 4, 5), DIMS(3, 5, 6));
  PAIR(DIMS(2, 3, 4, 5), DIMS(2, 1, 5, 6));
  PAIR(DIMS(2, 1, 3, 70, 5), DIMS(1, 2, 1, 5, 3));
  PAIR(DIMS(70, 2, 3), DIMS(70, 3, 2));  // many small ones
  PAIR(DIMS(0, 2, 3), DIMS(0, 3, 2));
  PAIR(DIMS(1, 2, 3), DIMS(1, 3, 2));
#undef PAIR
#undef DIMS
  rt_end(&both.rt);
}

RT_TEST(gpu_matmul, batches_of_every_type) {
  for (int t = 0; t < TYPES; ++t)
    for (int transposes = 0; transposes < 4; ++transposes) batches(types[t], transposes);
}
