// Ops that only old graphs contain, ImmutableConst, which reads a file, and ops whose kernels the
// client registers.
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "tensorflow/c/kernels.h"
#include "util.h"

static void attr(pb_t* def, const char* name, int kind, uint64_t value) {
  pb_t entry = {0}, number = {0};
  pb_string(&entry, 1, name);
  pb_varint(&number, kind, value);
  pb_message(&entry, 2, &number);
  pb_message(def, 5, &entry);
}

static void float_attr(pb_t* def, const char* name, float value) {
  pb_t entry = {0}, number = {0};
  pb_string(&entry, 1, name);
  pb_float(&number, 4, value);
  pb_message(&entry, 2, &number);
  pb_message(def, 5, &entry);
}

enum { ATTR_INT = 3, ATTR_BOOL = 5, ATTR_TYPE = 6 };

// Begins a node "y" of |op| with placeholders of these types as inputs.
static pb_t begin(pb_t* graph, const char* op, int inputs, const TF_DataType* types) {
  pb_t y = {0};
  pb_string(&y, 1, "y");
  pb_string(&y, 2, op);
  for (int i = 0; i < inputs; ++i) {
    char name[] = {'x', (char)('0' + i), '\0'};
    pb_t x = {0};
    pb_string(&x, 1, name);
    pb_string(&x, 2, "Placeholder");
    attr(&x, "dtype", ATTR_TYPE, types[i]);
    pb_message(graph, 1, &x);
    pb_string(&y, 3, name);
  }
  return y;
}

// Ends node and graph, imports it as written by an old producer, and runs "y" on |values|.
static TF_Tensor* finish(ct_t* t, pb_t* graph, pb_t* y, int producer, int inputs,
                         TF_Tensor* const* values, int output) {
  pb_t versions = {0};
  pb_message(graph, 1, y);
  pb_varint(&versions, 1, (uint64_t)producer);
  pb_message(graph, 4, &versions);
  TF_Buffer* bytes = TF_NewBufferFromString(graph->data, graph->length);
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(t->graph, bytes, options, t->status);
  CT_OK(t->status);
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(bytes);
  pb_free(graph);
  TF_Output feeds[8];
  for (int i = 0; i < inputs; ++i) {
    char name[] = {'x', (char)('0' + i), '\0'};
    feeds[i] = ct_out(TF_GraphOperationByName(t->graph, name), 0);
  }
  return ct_run(t, inputs, feeds, values, ct_out(TF_GraphOperationByName(t->graph, "y"), output));
}

static TF_Tensor* floats(int rank, const int64_t* dims, const float* values) {
  size_t count = 1;
  for (int i = 0; i < rank; ++i) count *= (size_t)dims[i];
  return ct_tensor(TF_FLOAT, dims, rank, values, count * sizeof *values);
}

static void check(TF_Tensor* tensor, int count, const double* wanted) {
  CT_INT(TF_TensorByteSize(tensor), (size_t)count * sizeof(float));
  for (int i = 0; i < count; ++i) {
    double found = ((float*)TF_TensorData(tensor))[i];
    cr_assert(fabs(found - wanted[i]) < 1e-5, "[%d] is %g, not %g", i, found, wanted[i]);
  }
  TF_DeleteTensor(tensor);
}

static const float image[] = {1, 2, 3, 4, 5, 7}, mean[] = {0.5f, 1}, variance[] = {0.99f, 3.99f},
                   beta[] = {1, -1}, gamma_[] = {2, 3}, dy[] = {1, 2, -1, 0.5f, 2, 1};
static const int64_t image_dims[] = {1, 3, 1, 2}, two[] = {2};
static const TF_DataType five[] = {TF_FLOAT, TF_FLOAT, TF_FLOAT, TF_FLOAT, TF_FLOAT};

static pb_t norm(pb_t* graph, const char* op, bool scales) {
  pb_t y = begin(graph, op, 5, five);
  attr(&y, "T", ATTR_TYPE, TF_FLOAT);
  float_attr(&y, "variance_epsilon", 0.01f);
  attr(&y, "scale_after_normalization", ATTR_BOOL, scales);
  return y;
}

CT_TEST(Outdated, batch_norm) {
  for (int scales = 0; scales < 2; ++scales) {
    ct_t t = ct_open();
    pb_t graph = {0}, y = norm(&graph, "BatchNormWithGlobalNormalization", scales);
    TF_Tensor* in[5] = {floats(4, image_dims, image), floats(1, two, mean),
                        floats(1, two, variance), floats(1, two, beta), floats(1, two, gamma_)};
    double wanted[6];
    for (int i = 0; i < 6; ++i) {
      int c = i % 2;
      double scale = (scales ? gamma_[c] : 1) / sqrt(variance[c] + 0.01);
      wanted[i] = (image[i] - mean[c]) * scale + beta[c];
    }
    check(finish(&t, &graph, &y, 8, 5, in, 0), 6, wanted);
    ct_close(&t);
  }
}

CT_TEST(Outdated, batch_norm_gradient) {
  for (int scales = 0; scales < 2; ++scales) {
    double dx[6], d[4][2] = {{0}};
    for (int i = 0; i < 6; ++i) {
      int c = i % 2;
      double inverse = 1 / sqrt(variance[c] + 0.01), scale = scales ? gamma_[c] * inverse : inverse;
      dx[i] = dy[i] * scale;
      d[0][c] -= dy[i] * scale;
      d[1][c] -= 0.5 * scale * inverse * inverse * dy[i] * (image[i] - mean[c]);
      d[2][c] += dy[i];
      d[3][c] += scales ? dy[i] * (image[i] - mean[c]) * inverse : 0;
    }
    for (int output = 0; output < 5; ++output) {
      ct_t t = ct_open();
      pb_t graph = {0}, y = norm(&graph, "BatchNormWithGlobalNormalizationGrad", scales);
      TF_Tensor* in[5] = {floats(4, image_dims, image), floats(1, two, mean),
                          floats(1, two, variance), floats(1, two, gamma_),
                          floats(4, image_dims, dy)};
      check(finish(&t, &graph, &y, 8, 5, in, output), output ? 2 : 6, output ? d[output - 1] : dx);
      ct_close(&t);
    }
  }
}

// The gradient of the sum of the result: what the gradient's op gives for ones. Stock has this rule
// in Python only.
#ifndef CT_STOCK
CT_TEST(Outdated, gradient_of_batch_norm) {
  static const float ones[] = {1, 1, 1, 1, 1, 1};
  ct_t t = ct_open();
  pb_t graph = {0}, y = norm(&graph, "BatchNormWithGlobalNormalization", true);
  TF_Tensor* in[5] = {floats(4, image_dims, image), floats(1, two, mean), floats(1, two, variance),
                      floats(1, two, beta), floats(1, two, gamma_)};
  TF_DeleteTensor(finish(&t, &graph, &y, 8, 5, in, 0));
  TF_Output xs[5], dxs[5], out = ct_out(TF_GraphOperationByName(t.graph, "y"), 0);
  for (int i = 0; i < 5; ++i) {
    char name[] = {'x', (char)('0' + i), '\0'};
    xs[i] = ct_out(TF_GraphOperationByName(t.graph, name), 0);
  }
  TF_AddGradients(t.graph, &out, 1, xs, 5, NULL, t.status, dxs);
  CT_OK(t.status);
  double wanted[5][2] = {{0}};
  for (int i = 0; i < 6; ++i) {
    int c = i % 2;
    double inverse = 1 / sqrt(variance[c] + 0.01), centred = ones[i] * (image[i] - mean[c]);
    wanted[1][c] -= gamma_[c] * inverse;
    wanted[2][c] -= 0.5 * gamma_[c] * inverse * inverse * inverse * centred;
    wanted[3][c] += 1;
    wanted[4][c] += centred * inverse;
  }
  for (int i = 1; i < 5; ++i) {
    TF_Tensor* values[5] = {floats(4, image_dims, image), floats(1, two, mean),
                            floats(1, two, variance), floats(1, two, beta), floats(1, two, gamma_)};
    check(ct_run(&t, 5, xs, values, dxs[i]), 2, wanted[i]);
  }
  ct_close(&t);
}
#endif

// The part that stock's generator takes for these seeds.
CT_TEST(Outdated, random_crop) {
  float values[40];
  for (int i = 0; i < 40; ++i) values[i] = (float)i;
  static const struct {
    uint64_t seed;
    int top, left;
  } cases[] = {{7, 2, 3}, {11, 2, 0}, {12, 0, 3}, {13, 3, 1}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
    ct_t t = ct_open();
    pb_t graph = {0};
    pb_t y = begin(&graph, "RandomCrop", 2, (TF_DataType[]){TF_FLOAT, TF_INT64});
    attr(&y, "T", ATTR_TYPE, TF_FLOAT);
    attr(&y, "seed", ATTR_INT, cases[k].seed);
    attr(&y, "seed2", ATTR_INT, 3);
    TF_Tensor* in[2] = {floats(3, (int64_t[]){5, 8, 1}, values),
                        ct_tensor(TF_INT64, two, 1, (int64_t[]){2, 3}, 2 * sizeof(int64_t))};
    double wanted[6];
    for (int i = 0; i < 6; ++i) wanted[i] = (cases[k].top + i / 3) * 8 + cases[k].left + i % 3;
    check(finish(&t, &graph, &y, 7, 2, in, 0), 6, wanted);
    ct_close(&t);
  }
}

CT_TEST(Outdated, quantize_and_dequantize) {
  ct_t t = ct_open();
  pb_t graph = {0}, y = begin(&graph, "QuantizeAndDequantize", 1, five);
  attr(&y, "T", ATTR_TYPE, TF_FLOAT);
  attr(&y, "num_bits", ATTR_INT, 4);
  attr(&y, "range_given", ATTR_BOOL, 1);
  float_attr(&y, "input_min", -2);
  float_attr(&y, "input_max", 1.5f);
  TF_Tensor* in = floats(1, (int64_t[]){5}, (float[]){-3, -1.2f, 0, 0.33f, 2.7f});
  check(finish(&t, &graph, &y, 20, 1, &in, 0), 5, (double[]){-2, -1.25, 0, 0.25, 1.75});
  ct_close(&t);
}

// Linear algebra under its first names, for a matrix A = {4, 2, 2, 3} or the values given.
typedef struct old_name_t {
  const char* op;
  int inputs;
  float in[2][4];
  int rank;  // of the inputs
  int output, count;
  double wanted[6];
} old_name_t;

#define A \
  { 4, 2, 2, 3 }
#define UNIT \
  { 1, 0, 0, 1 }
#define LOW 1.4384471871911697  // eigenvalues of A
#define HIGH 5.5615528128088303
static const old_name_t old_names[] = {
    {"BatchCholesky", 1, {A}, 2, 0, 4, {2, 0, 1, 1.4142135623730951}},
    {"BatchCholeskyGrad", 2, {UNIT, {2, 0, 3, 4}}, 2, 0, 4, {1, 1.5, 1.5, 2}},
    {"BatchMatrixDeterminant", 1, {A}, 2, 0, 1, {8}},
    {"BatchMatrixInverse", 1, {A}, 2, 0, 4, {0.375, -0.25, -0.25, 0.5}},
    {"BatchMatrixSolve", 2, {A, UNIT}, 2, 0, 4, {0.375, -0.25, -0.25, 0.5}},
    {"BatchMatrixTriangularSolve", 2, {A, UNIT}, 2, 0, 4, {0.25, 0, -1 / 6., 1 / 3.}},
    {"BatchSelfAdjointEigV2", 1, {A}, 2, 0, 2, {LOW, HIGH}},
    {"BatchSvd", 1, {A}, 2, 0, 2, {HIGH, LOW}},
    {"BatchSelfAdjointEig", 1, {{3, 0, 0, 2}}, 2, 0, 6, {2, 3, 0, 1, 1, 0}},
    {"SelfAdjointEig", 1, {{3, 0, 0, 2}}, 2, 0, 6, {2, 3, 0, 1, 1, 0}},
    {"MatrixExponential",
     1,
     {{1, 1, 0, 1}},
     2,
     0,
     4,
     {2.718281828459045, 2.718281828459045, 0, 2.718281828459045}},
    {"BatchMatrixDiag", 1, {{5, 7}}, 1, 0, 4, {5, 0, 0, 7}},
    {"BatchMatrixDiagPart", 1, {A}, 2, 0, 2, {4, 3}},
};
#undef A
#undef UNIT

CT_TEST(Outdated, linear_algebra) {
  static const int64_t dims[] = {2, 2};
  for (size_t k = 0; k < sizeof old_names / sizeof *old_names; ++k) {
    const old_name_t* row = &old_names[k];
    ct_t t = ct_open();
    pb_t graph = {0}, y = begin(&graph, row->op, row->inputs, five);
    attr(&y, "T", ATTR_TYPE, TF_FLOAT);
    TF_Tensor* in[2];
    for (int i = 0; i < row->inputs; ++i) in[i] = floats(row->rank, dims, row->in[i]);
    TF_Tensor* out = finish(&t, &graph, &y, 10, row->inputs, in, row->output);
    float* values = TF_TensorData(out);
    // Vectors are determined up to their signs.
    bool has_vectors = row->count == 6;
    for (int i = 2; has_vectors && i < 6; ++i) values[i] = fabsf(values[i]);
    check(out, row->count, row->wanted);
    ct_close(&t);
  }
}

CT_TEST(Outdated, linear_algebra_with_numbers) {
  static const int64_t dims[] = {2, 2};
  static const float a[] = {4, 2, 2, 3}, unit[] = {1, 0, 0, 1}, diagonal[] = {5, 7};
  ct_t t = ct_open();
  pb_t graph = {0};
  pb_t y = begin(&graph, "BatchMatrixSolveLs", 3, (TF_DataType[]){TF_FLOAT, TF_FLOAT, TF_DOUBLE});
  attr(&y, "T", ATTR_TYPE, TF_FLOAT);
  double none = 0;
  TF_Tensor* in[3] = {floats(2, dims, a), floats(2, dims, unit),
                      ct_tensor(TF_DOUBLE, NULL, 0, &none, sizeof none)};
  check(finish(&t, &graph, &y, 10, 3, in, 0), 4, (double[]){0.375, -0.25, -0.25, 0.5});
  ct_close(&t);
  t = ct_open();
  graph = (pb_t){0};
  y = begin(&graph, "BatchMatrixBandPart", 3, (TF_DataType[]){TF_FLOAT, TF_INT64, TF_INT64});
  attr(&y, "T", ATTR_TYPE, TF_FLOAT);
  int64_t lower = 0, upper = 1;
  in[0] = floats(2, dims, a);
  in[1] = ct_tensor(TF_INT64, NULL, 0, &lower, sizeof lower);
  in[2] = ct_tensor(TF_INT64, NULL, 0, &upper, sizeof upper);
  check(finish(&t, &graph, &y, 10, 3, in, 0), 4, (double[]){4, 2, 0, 3});
  ct_close(&t);
  t = ct_open();
  graph = (pb_t){0};
  y = begin(&graph, "BatchMatrixSetDiag", 2, five);
  attr(&y, "T", ATTR_TYPE, TF_FLOAT);
  in[0] = floats(2, dims, a);
  in[1] = floats(1, two, diagonal);
  check(finish(&t, &graph, &y, 10, 2, in, 0), 4, (double[]){5, 2, 2, 7});
  ct_close(&t);
}

CT_TEST(Outdated, adjust_contrast) {
  ct_t t = ct_open();
  pb_t graph = {0}, y = begin(&graph, "AdjustContrast", 4, five);
  attr(&y, "T", ATTR_TYPE, TF_FLOAT);
  TF_Tensor* in[4] = {floats(4, image_dims, image), ct_float(2), ct_float(0), ct_float(8)};
  // The means are 3 and 13 / 3.
  check(finish(&t, &graph, &y, 1, 4, in, 0), 6, (double[]){0, 0, 3, 11 / 3., 7, 8});
  ct_close(&t);
}

static TF_Operation* region(ct_t* t, const char* path, int64_t count, TF_DataType dtype) {
  TF_OperationDescription* d = TF_NewOperation(t->graph, "ImmutableConst", "c");
  TF_SetAttrType(d, "dtype", dtype);
  TF_SetAttrShape(d, "shape", &count, 1);
  TF_SetAttrString(d, "memory_region_name", path, strlen(path));
  TF_Operation* op = TF_FinishOperation(d, t->status);
  CT_OK(t->status);
  return op;
}

// Runs |op|, which fails.
static void fail(ct_t* t, TF_Operation* op) {
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(t->graph, options, t->status);
  CT_OK(t->status);
  TF_DeleteSessionOptions(options);
  TF_Output fetch = ct_out(op, 0);
  TF_Tensor* out = NULL;
  TF_SessionRun(session, NULL, NULL, NULL, 0, &fetch, &out, 1, NULL, 0, NULL, t->status);
  cr_assert_null(out);
  TF_Status* status = TF_NewStatus();
  TF_DeleteSession(session, status);
  TF_DeleteStatus(status);
}

CT_TEST(Outdated, a_constant_in_a_file) {
  char path[] = "/tmp/immutable_const_XXXXXX";
  int file = mkstemp(path);
  cr_assert(file >= 0);
  static const float values[] = {1, 2, 3, 4};
  cr_assert_eq(write(file, values, sizeof values), (ssize_t)sizeof values);
  close(file);
  ct_t t = ct_open();
  check(ct_run0(&t, region(&t, path, 3, TF_FLOAT)), 3, (double[]){1, 2, 3});
  ct_close(&t);
  t = ct_open();
  fail(&t, region(&t, path, 5, TF_FLOAT));
  CT_ERROR(t.status, TF_INTERNAL,
           "Readonly memory region has wrong length (16) when allocating 20\n\t [[{{node c}}]]");
  ct_close(&t);
  t = ct_open();
  fail(&t, region(&t, path, 1, TF_STRING));
  CT_CODE(t.status, TF_UNIMPLEMENTED);
  ct_close(&t);
  unlink(path);
  t = ct_open();
  fail(&t, region(&t, path, 3, TF_FLOAT));
  CT_CODE(t.status, TF_NOT_FOUND);
  ct_close(&t);
}

// PyFunc and its kin are definitions: a client in that language registers the kernel.
static void twice(void* state, TF_OpKernelContext* context) {
  (void)state;
  TF_Status* s = TF_NewStatus();
  TF_Tensor* x = NULL;
  TF_GetInput(context, 0, &x, s);
  TF_Tensor* y = TF_AllocateOutput(context, 0, TF_FLOAT, NULL, 0, sizeof(float), s);
  *(float*)TF_TensorData(y) = 2 * *(float*)TF_TensorData(x);
  TF_DeleteTensor(x);
  TF_DeleteTensor(y);
  TF_DeleteStatus(s);
}

static void call(const char* op_name) {
  ct_t t = ct_open();
  TF_RegisterKernelBuilder(op_name, TF_NewKernelBuilder(op_name, "CPU", NULL, twice, NULL),
                           t.status);
  CT_OK(t.status);
  TF_Operation* x = ct_placeholder(&t, t.graph, "x", TF_FLOAT);
  TF_OperationDescription* d = TF_NewOperation(t.graph, op_name, "y");
  TF_Output in = ct_out(x, 0);
  TF_DataType type = TF_FLOAT;
  TF_AddInputList(d, &in, 1);
  TF_SetAttrString(d, "token", "f", 1);
  TF_SetAttrTypeList(d, "Tout", &type, 1);
  TF_Operation* y = TF_FinishOperation(d, t.status);
  CT_OK(t.status);
  check(ct_run1(&t, x, ct_float(4), y), 1, (double[]){8});
  ct_close(&t);
}

CT_TEST(Outdated, functions_of_the_clients_language) {
  call("PyFunc");
  call("PyFuncStateless");
  call("EagerPyFunc");
}
