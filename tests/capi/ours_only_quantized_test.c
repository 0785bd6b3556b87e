// Quantized ops for which stock has no working kernel, compared with loops over integers.
#include "eager_util.h"

static uint32_t next(uint32_t* state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static TFE_TensorHandle* bytes(ce_t* t, TF_DataType type, int rank, const int64_t* dims,
                               uint8_t* values, uint32_t* seed) {
  size_t count = 1;
  for (int i = 0; i < rank; ++i) count *= (size_t)dims[i];
  for (size_t i = 0; i < count; ++i) values[i] = (uint8_t)next(seed);
  return ce_handle(t, ct_tensor(type, dims, rank, values, count));
}

// Runs an op of three outputs and copies the first one's |count| elements of |size| bytes.
static void run(ce_t* t, TFE_Op* op, void* out, size_t size) {
  TFE_TensorHandle* results[3] = {0};
  int count = 3;
  TFE_Execute(op, results, &count, t->status);
  CT_OK(t->status);
  TFE_DeleteOp(op);
  CT_INT(count, 3);
  TF_Tensor* tensor = TFE_TensorHandleResolve(results[0], t->status);
  CT_OK(t->status);
  CT_INT(TF_TensorByteSize(tensor), size);
  memcpy(out, TF_TensorData(tensor), size);
  TF_DeleteTensor(tensor);
  for (int i = 0; i < 3; ++i) TFE_DeleteTensorHandle(results[i]);
}

// The level of zero between -1 and 2, of 256.
#define ZERO 85

static void check_product(ce_t* t, int64_t m, int64_t n, int64_t k, uint32_t* seed) {
  uint8_t *a = malloc((size_t)(m * k)), *b = malloc((size_t)(k * n));
  int32_t* c = malloc((size_t)(m * n) * sizeof *c);
  TFE_TensorHandle* in[6] = {bytes(t, TF_QUINT8, 2, (int64_t[]){m, k}, a, seed),
                             bytes(t, TF_QUINT8, 2, (int64_t[]){k, n}, b, seed),
                             ce_float(t, -1),
                             ce_float(t, 2),
                             ce_float(t, -1),
                             ce_float(t, 2)};
  TFE_Op* op = ce_op(t, "QuantizedMatMul", 6, in);
  TFE_OpSetAttrType(op, "Toutput", TF_QINT32);
  run(t, op, c, (size_t)(m * n) * sizeof *c);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      int32_t sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += (a[i * k + l] - ZERO) * (b[l * n + j] - ZERO);
      cr_assert_eq(c[i * n + j], sum, "[%lld, %lld] of %lld x %lld x %lld", (long long)i,
                   (long long)j, (long long)m, (long long)n, (long long)k);
    }
  for (int i = 0; i < 6; ++i) TFE_DeleteTensorHandle(in[i]);
  free(a);
  free(b);
  free(c);
}

CT_TEST(OursOnlyQuantized, products_of_all_sizes) {
  ce_t t = ce_open();
  uint32_t seed = 7;
  static const int64_t sizes[][3] = {{1, 1, 1},   {6, 32, 2},    {7, 33, 3},      {5, 31, 1},
                                     {48, 64, 9}, {49, 65, 130}, {100, 17, 1030}, {1, 300, 64},
                                     {400, 5, 8}, {97, 290, 77}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
    check_product(&t, sizes[i][0], sizes[i][1], sizes[i][2], &seed);
  ce_close(&t);
}

// A signed filter, over the borders of an image.
CT_TEST(OursOnlyQuantized, a_signed_filter) {
  enum { SIDE = 9, DEPTH = 5, OUT = 7, STRIDE = 2, PLACES = 5 };
  ce_t t = ce_open();
  uint32_t seed = 11;
  static uint8_t x[SIDE * SIDE * DEPTH], w[3 * 3 * DEPTH * OUT];
  static int32_t y[PLACES * PLACES * OUT];
  TFE_TensorHandle* in[6] = {bytes(&t, TF_QUINT8, 4, (int64_t[]){1, SIDE, SIDE, DEPTH}, x, &seed),
                             bytes(&t, TF_QINT8, 4, (int64_t[]){3, 3, DEPTH, OUT}, w, &seed),
                             ce_float(&t, -1),
                             ce_float(&t, 2),
                             ce_float(&t, -128),
                             ce_float(&t, 127)};
  TFE_Op* op = ce_op(&t, "QuantizedConv2D", 6, in);
  TFE_OpSetAttrIntList(op, "strides", (int64_t[]){1, STRIDE, STRIDE, 1}, 4);
  TFE_OpSetAttrString(op, "padding", "SAME", 4);
  TFE_OpSetAttrType(op, "out_type", TF_QINT32);
  run(&t, op, y, sizeof y);
  for (int r = 0; r < PLACES; ++r)
    for (int c = 0; c < PLACES; ++c)
      for (int o = 0; o < OUT; ++o) {
        int32_t sum = 0;
        for (int i = 0; i < 3; ++i)
          for (int j = 0; j < 3; ++j)
            for (int d = 0; d < DEPTH; ++d) {
              int row = r * STRIDE + i - 1, column = c * STRIDE + j - 1;
              if (row < 0 || row >= SIDE || column < 0 || column >= SIDE) continue;
              sum += (x[(row * SIDE + column) * DEPTH + d] - ZERO) *
                     (int8_t)w[((i * 3 + j) * DEPTH + d) * OUT + o];
            }
        cr_assert_eq(y[(r * PLACES + c) * OUT + o], sum, "[%d, %d, %d]", r, c, o);
      }
  for (int i = 0; i < 6; ++i) TFE_DeleteTensorHandle(in[i]);
  ce_close(&t);
}

// An axis in the middle is repeated.
CT_TEST(OursOnlyQuantized, shapes_that_stock_does_not_broadcast) {
  ce_t t = ce_open();
  uint32_t seed = 3;
  uint8_t x[12], y[3];
  int32_t z[12];
  TFE_TensorHandle* in[6] = {bytes(&t, TF_QUINT8, 3, (int64_t[]){2, 3, 2}, x, &seed),
                             bytes(&t, TF_QUINT8, 2, (int64_t[]){3, 1}, y, &seed),
                             ce_float(&t, -1),
                             ce_float(&t, 2),
                             ce_float(&t, -1),
                             ce_float(&t, 2)};
  run(&t, ce_op(&t, "QuantizedMul", 6, in), z, sizeof z);
  for (int i = 0; i < 12; ++i) CT_INT(z[i], (x[i] - ZERO) * (y[i / 2 % 3] - ZERO));
  run(&t, ce_op(&t, "QuantizedAdd", 6, in), z, sizeof z);
  // One level of an operand is 3 / 255; one of the sum 2 * 2^15 / 2^32.
  for (int i = 0; i < 12; ++i) {
    double want = (x[i] - ZERO + y[i / 2 % 3] - ZERO) * (3 / 255.0) / (65536 / 4294967295.0);
    cr_assert(z[i] > want - 300 && z[i] < want + 300, "[%d] is %d, not %g", i, z[i], want);
  }
  for (int i = 0; i < 6; ++i) TFE_DeleteTensorHandle(in[i]);
  ce_close(&t);
}

CT_TEST(OursOnlyQuantized, relu_up_to_a_maximum) {
  ce_t t = ce_open();
  uint32_t seed = 5;
  uint8_t x[300], six[300], max[300];
  int64_t dims[] = {300};
  TFE_TensorHandle* in[4] = {bytes(&t, TF_QUINT8, 1, dims, x, &seed), ce_float(&t, 6),
                             ce_float(&t, -3), ce_float(&t, 9)};
  run(&t, ce_op(&t, "QuantizedReluX", 4, in), max, sizeof max);
  run(&t, ce_op(&t, "QuantizedRelu6", 3, (TFE_TensorHandle*[]){in[0], in[2], in[3]}), six,
      sizeof six);
  cr_assert(memcmp(max, six, sizeof six) == 0);
  for (int i = 0; i < 4; ++i) TFE_DeleteTensorHandle(in[i]);
  ce_close(&t);
}
