// Kernels of the toy device. They issue work to the stream of their context and never touch device
// bytes themselves.
#include <stdio.h>
#include <stdlib.h>

#include "tensorflow/c/kernels.h"
#include "tensorflow/c/kernels_experimental.h"
#include "toy_stream.h"

// Stock's wheel does not export these; the kernels that need them are registered where they exist.
#pragma weak TF_AssignVariable
#pragma weak TF_AssignUpdateVariable
#pragma weak TF_MaybeLockVariableInputMutexesInOrder
#pragma weak TF_GetInputTensorFromVariable
#pragma weak TF_ReleaseVariableInputLockHolder
#pragma weak TF_TemporaryVariable
#pragma weak TF_DestroyTemporaryVariable

static void fail(TF_OpKernelContext* ctx, TF_Code code, const char* message) {
  TF_Status* status = TF_NewStatus();
  TF_SetStatus(status, code, message);
  TF_OpKernelContext_Failure(ctx, status);
  TF_DeleteStatus(status);
}

// What a kernel has open: all of it is closed by leave().
#define MAX_TENSORS 6
typedef struct call_t {
  TF_OpKernelContext* ctx;
  TF_Status* status;
  TF_Tensor* tensors[MAX_TENSORS];
  int count;
} call_t;

static call_t enter(TF_OpKernelContext* ctx) { return (call_t){ctx, TF_NewStatus(), {0}, 0}; }

static bool leave(call_t* call) {
  bool ok = TF_GetCode(call->status) == TF_OK;
  if (!ok) TF_OpKernelContext_Failure(call->ctx, call->status);
  for (int i = 0; i < call->count; ++i) TF_DeleteTensor(call->tensors[i]);
  TF_DeleteStatus(call->status);
  return ok;
}

static bool is_ok(const call_t* call) { return TF_GetCode(call->status) == TF_OK; }

static TF_Tensor* keep(call_t* call, TF_Tensor* tensor) {
  if (tensor) call->tensors[call->count++] = tensor;
  return tensor;
}

static TF_Tensor* input(call_t* call, int i) {
  TF_Tensor* tensor = NULL;
  if (is_ok(call)) TF_GetInput(call->ctx, i, &tensor, call->status);
  return keep(call, tensor);
}

static int dims_of(const TF_Tensor* tensor, int64_t* dims) {
  for (int d = 0; d < TF_NumDims(tensor); ++d) dims[d] = TF_Dim(tensor, d);
  return TF_NumDims(tensor);
}

static uintptr_t address(const TF_Tensor* tensor) { return (uintptr_t)TF_TensorData(tensor); }
static uintptr_t elements(const TF_Tensor* tensor) {
  return (uintptr_t)TF_TensorElementCount(tensor);
}

static void issue(call_t* call, toy_work_t work, toy_args_t args) {
  SP_Stream stream = is_ok(call) ? TF_GetStream(call->ctx, call->status) : NULL;
  if (is_ok(call)) toy_stream_issue((toy_stream_t*)stream, work, &args);
}

// --- Elementwise ops with a scalar on either side

#define BINARY(name, formula)                                                 \
  static void name##_work(const toy_args_t* args) {                           \
    const float *a = toy_view(args->at[0]), *b = toy_view(args->at[1]);       \
    float* out = toy_view(args->at[2]);                                       \
    for (uintptr_t i = 0; i < args->at[3]; ++i) {                             \
      float x = a[args->at[4] == 1 ? 0 : i], y = b[args->at[5] == 1 ? 0 : i]; \
      out[i] = formula;                                                       \
    }                                                                         \
  }                                                                           \
  static void name(void* kernel, TF_OpKernelContext* ctx) {                   \
    (void)kernel;                                                             \
    binary(ctx, name##_work);                                                 \
  }

static void binary(TF_OpKernelContext* ctx, toy_work_t work) {
  call_t call = enter(ctx);
  TF_Tensor *a = input(&call, 0), *b = input(&call, 1), *out = NULL;
  if (is_ok(&call)) {
    uintptr_t n = elements(a), m = elements(b);
    const TF_Tensor* larger = n == 1 ? b : a;
    int64_t dims[8];
    int rank = dims_of(larger, dims);
    if (n != m && n != 1 && m != 1) {
      TF_SetStatus(call.status, TF_INVALID_ARGUMENT, "toys add arrays of one size");
    } else {
      out = keep(&call, TF_AllocateOutput(ctx, 0, TF_FLOAT, dims, rank,
                                          elements(larger) * sizeof(float), call.status));
    }
    if (is_ok(&call))
      issue(&call, work, (toy_args_t){{address(a), address(b), address(out), elements(out), n, m}});
  }
  leave(&call);
}
BINARY(add, x + y)
BINARY(sub, x - y)
BINARY(mul, x* y)

// --- In place if possible

static void negate_work(const toy_args_t* args) {
  const float* in = toy_view(args->at[0]);
  float* out = toy_view(args->at[1]);
  for (uintptr_t i = 0; i < args->at[2]; ++i) out[i] = -in[i];
}
static void absolute_work(const toy_args_t* args) {
  const float* in = toy_view(args->at[0]);
  float* out = toy_view(args->at[1]);
  for (uintptr_t i = 0; i < args->at[2]; ++i) out[i] = in[i] < 0 ? -in[i] : in[i];
}
static void unary(TF_OpKernelContext* ctx, toy_work_t work) {
  call_t call = enter(ctx);
  TF_Tensor *in = input(&call, 0), *out = NULL;
  if (is_ok(&call)) {
    int64_t dims[8];
    int rank = dims_of(in, dims), candidate = 0, forwarded;
    out = keep(&call, TF_ForwardInputOrAllocateOutput(ctx, &candidate, 1, 0, dims, rank, &forwarded,
                                                      call.status));
    if (is_ok(&call)) issue(&call, work, (toy_args_t){{address(in), address(out), elements(in)}});
  }
  leave(&call);
}
static void negate(void* kernel, TF_OpKernelContext* ctx) {
  (void)kernel;
  unary(ctx, negate_work);
}
static void absolute(void* kernel, TF_OpKernelContext* ctx) {
  (void)kernel;
  unary(ctx, absolute_work);
}

// --- Fill: its dims are in host memory; a temporary tensor holds the value on the way

static void fill_work(const toy_args_t* args) {
  const float* value = toy_view(args->at[0]);
  float* between = toy_view(args->at[1]);
  float* out = toy_view(args->at[2]);
  *between = *value;
  for (uintptr_t i = 0; i < args->at[3]; ++i) out[i] = *between;
}
static void fill(void* kernel, TF_OpKernelContext* ctx) {
  (void)kernel;
  call_t call = enter(ctx);
  TF_Tensor *dims = input(&call, 0), *value = input(&call, 1), *out = NULL, *between = NULL;
  if (is_ok(&call) && !TF_IsHostMemoryInput(ctx, 0, call.status))
    TF_SetStatus(call.status, TF_INTERNAL, "dims are not in host memory");
  if (is_ok(&call) && TF_IsHostMemoryInput(ctx, 1, call.status))
    TF_SetStatus(call.status, TF_INTERNAL, "value is in host memory");
  int64_t shape[8];
  int rank = 0;
  size_t count = 1;
  for (; is_ok(&call) && rank < (int)elements(dims); ++rank) {
    shape[rank] = ((const int32_t*)TF_TensorData(dims))[rank];
    count *= (size_t)shape[rank];
  }
  if (is_ok(&call))
    out = keep(&call, TF_AllocateOutput(ctx, 0, TF_FLOAT, shape, rank, count * sizeof(float),
                                        call.status));
  TF_AllocatorAttributes where = {.struct_size = TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE};
  int64_t one = 1;
  if (is_ok(&call))
    between = keep(&call, TF_AllocateTemp(ctx, TF_FLOAT, &one, 1, &where, call.status));
  if (is_ok(&call))
    issue(&call, fill_work,
          (toy_args_t){{address(value), address(between), address(out), elements(out)}});
  leave(&call);
}

// --- MatMul, with its attributes read when the kernel is made

typedef struct matmul_t {
  unsigned char transpose_a, transpose_b;
} matmul_t;

static void* matmul_create(TF_OpKernelConstruction* ctx) {
  matmul_t* matmul = calloc(1, sizeof *matmul);
  TF_Status* status = TF_NewStatus();
  TF_OpKernelConstruction_GetAttrBool(ctx, "transpose_a", &matmul->transpose_a, status);
  if (TF_GetCode(status) == TF_OK)
    TF_OpKernelConstruction_GetAttrBool(ctx, "transpose_b", &matmul->transpose_b, status);
  if (TF_GetCode(status) != TF_OK) TF_OpKernelConstruction_Failure(ctx, status);
  TF_DeleteStatus(status);
  return matmul;
}
static void matmul_work(const toy_args_t* args) {
  const float *a = toy_view(args->at[0]), *b = toy_view(args->at[1]);
  float* out = toy_view(args->at[2]);
  size_t m = args->at[3], k = args->at[4], n = args->at[5], flags = args->at[6];
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) {
      float sum = 0;
      for (size_t l = 0; l < k; ++l)
        sum += a[flags & 1 ? l * m + i : i * k + l] * b[flags & 2 ? j * k + l : l * n + j];
      out[i * n + j] = sum;
    }
}
static void matmul(void* kernel, TF_OpKernelContext* ctx) {
  const matmul_t* own = kernel;
  call_t call = enter(ctx);
  TF_Tensor *a = input(&call, 0), *b = input(&call, 1), *out = NULL;
  if (is_ok(&call)) {
    int64_t m = TF_Dim(a, own->transpose_a ? 1 : 0), k = TF_Dim(a, own->transpose_a ? 0 : 1);
    int64_t n = TF_Dim(b, own->transpose_b ? 0 : 1);
    int64_t shape[] = {m, n};
    out = keep(&call, TF_AllocateOutput(ctx, 0, TF_FLOAT, shape, 2, (size_t)(m * n) * sizeof(float),
                                        call.status));
    if (is_ok(&call))
      issue(&call, matmul_work,
            (toy_args_t){{address(a), address(b), address(out), (uintptr_t)m, (uintptr_t)k,
                          (uintptr_t)n, (uintptr_t)(own->transpose_a | own->transpose_b << 1)}});
  }
  leave(&call);
}

// --- Variables

static void copy_work(const toy_args_t* args) {
  const char* from = toy_view(args->at[0]);
  char* to = toy_view(args->at[1]);
  for (uintptr_t i = 0; i < args->at[2]; ++i) to[i] = from[i];
}
static void copy_tensor(TF_OpKernelContext* ctx, TF_Tensor* from, TF_Tensor* to) {
  call_t call = enter(ctx);
  issue(&call, copy_work, (toy_args_t){{address(from), address(to), TF_TensorByteSize(from)}});
  leave(&call);
}
static void update_work(const toy_args_t* args) {
  float* sum = toy_view(args->at[0]);
  const float* value = toy_view(args->at[1]);
  for (uintptr_t i = 0; i < args->at[2]; ++i)
    sum[i] = args->at[3] ? sum[i] - value[i] : sum[i] + value[i];
}
static void update_tensor(TF_OpKernelContext* ctx, TF_Tensor* tensor, TF_Tensor* value, int op) {
  call_t call = enter(ctx);
  issue(&call, update_work,
        (toy_args_t){{address(tensor), address(value), elements(value), (uintptr_t)op}});
  leave(&call);
}
static void update(TF_OpKernelContext* ctx, int op) {
  TF_Status* status = TF_NewStatus();
  TF_AssignUpdateVariable(ctx, 0, 1, op, 0, copy_tensor, update_tensor, status);
  if (TF_GetCode(status) != TF_OK) TF_OpKernelContext_Failure(ctx, status);
  TF_DeleteStatus(status);
}
static void assign_add(void* kernel, TF_OpKernelContext* ctx) {
  (void)kernel;
  update(ctx, 0);
}
static void assign_sub(void* kernel, TF_OpKernelContext* ctx) {
  (void)kernel;
  update(ctx, 1);
}
static void assign(void* kernel, TF_OpKernelContext* ctx) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  TF_AssignVariable(ctx, 0, 1, true, copy_tensor, status);
  if (TF_GetCode(status) != TF_OK) TF_OpKernelContext_Failure(ctx, status);
  TF_DeleteStatus(status);
}

static void descend_work(const toy_args_t* args) {
  float* var = toy_view(args->at[0]);
  const float *alpha = toy_view(args->at[1]), *delta = toy_view(args->at[2]);
  for (uintptr_t i = 0; i < args->at[3]; ++i) var[i] -= *alpha * delta[i];
}
// The variable is locked, then changed in place.
static void descend(void* kernel, TF_OpKernelContext* ctx) {
  (void)kernel;
  call_t call = enter(ctx);
  TF_VariableInputLockHolder* lock = NULL;
  int variable = 0;
  TF_MaybeLockVariableInputMutexesInOrder(ctx, true, false, &variable, 1, copy_tensor, &lock,
                                          call.status);
  TF_Tensor *var = NULL, *alpha = input(&call, 1), *delta = input(&call, 2);
  if (is_ok(&call))
    TF_GetInputTensorFromVariable(ctx, 0, true, false, false, copy_tensor, &var, call.status);
  keep(&call, var);
  if (is_ok(&call))
    issue(&call, descend_work,
          (toy_args_t){{address(var), address(alpha), address(delta), elements(delta)}});
  if (lock) TF_ReleaseVariableInputLockHolder(lock);
  leave(&call);
}

// --- Temporary variables

static void temporary(void* kernel, TF_OpKernelContext* ctx) {
  (void)kernel;
  call_t call = enter(ctx);
  int64_t dims[] = {2};
  TF_StringView name = {"temp", 4};
  TF_TemporaryVariable(ctx, TF_FLOAT, dims, 1, &name, NULL, call.status);
  leave(&call);
}
static void destroy_temporary(void* kernel, TF_OpKernelContext* ctx) {
  (void)kernel;
  call_t call = enter(ctx);
  TF_StringView name = {"temp", 4};
  TF_DestroyTemporaryVariable(ctx, 0, &name, call.status);
  leave(&call);
}

// --- An op that always fails here

static void sign(void* kernel, TF_OpKernelContext* ctx) {
  (void)kernel;
  fail(ctx, TF_DATA_LOSS, "toys have no sign");
}

static void delete_kernel(void* kernel) { free(kernel); }

typedef void (*compute_t)(void*, TF_OpKernelContext*);
typedef void* (*create_t)(TF_OpKernelConstruction*);

static void add_kernel(const char* op, const char* attr, const char* host, create_t create,
                       compute_t compute) {
  TF_Status* status = TF_NewStatus();
  const char* type = getenv("TOY_TYPE");
  TF_KernelBuilder* builder =
      TF_NewKernelBuilder(op, type ? type : "TOY", create, compute, create ? delete_kernel : NULL);
  TF_KernelBuilder_TypeConstraint(builder, attr, TF_FLOAT, status);
  if (host) TF_KernelBuilder_HostMemory(builder, host);
  if (type) TF_KernelBuilder_Priority(builder, 1);  // over built-in kernels of that type
  if (TF_GetCode(status) == TF_OK) TF_RegisterKernelBuilder(op, builder, status);
  if (TF_GetCode(status) != TF_OK) fprintf(stderr, "toy: %s: %s\n", op, TF_Message(status));
  TF_DeleteStatus(status);
}

// Kernels of stock's DEFAULT device serve what is not here: Identity, Reshape, Shape, Const,
// variables, control flow.
void TF_InitKernel(void) {
  add_kernel("AddV2", "T", NULL, NULL, add);
  add_kernel("Sub", "T", NULL, NULL, sub);
  add_kernel("Mul", "T", NULL, NULL, mul);
  add_kernel("Neg", "T", NULL, NULL, negate);
  add_kernel("Abs", "T", NULL, NULL, absolute);
  add_kernel("Sign", "T", NULL, NULL, sign);
  add_kernel("Fill", "T", "dims", NULL, fill);
  add_kernel("MatMul", "T", NULL, matmul_create, matmul);
  if (!TF_AssignUpdateVariable) return;
  add_kernel("AssignVariableOp", "dtype", "resource", NULL, assign);
  add_kernel("AssignAddVariableOp", "dtype", "resource", NULL, assign_add);
  add_kernel("AssignSubVariableOp", "dtype", "resource", NULL, assign_sub);
  if (getenv("TOY_TEMPORARY")) {
    add_kernel("TemporaryVariable", "dtype", NULL, NULL, temporary);
    add_kernel("DestroyTemporaryVariable", "T", NULL, NULL, destroy_temporary);
  }
  add_kernel("ResourceApplyGradientDescent", "T", "var", NULL, descend);
}
