// Scenarios for eager execution (ops, functions, tapes, custom devices), functions of graphs, and
// the training library.
#include "sweep.h"

static bool open_context(ft_t* t) {
  TFE_ContextOptions* options = TFE_NewContextOptions();
  if (!options) return false;
  t->eager = TFE_NewContext(options, t->status);
  TFE_DeleteContextOptions(options);
  return t->eager != NULL;
}

static bool new_handle(ft_t* t, TFE_TensorHandle** slot, TF_Tensor* tensor) {
  *slot = TFE_NewTensorHandle(tensor, t->status);
  return *slot != NULL;
}

// One call of an op with up to three inputs; the result replaces |*slot|.
static bool call(ft_t* t, TFE_TensorHandle** slot, const char* name, TFE_TensorHandle* a,
                 TFE_TensorHandle* b, TFE_TensorHandle* c) {
  TFE_TensorHandle* inputs[] = {a, b, c};
  TFE_Op* op = TFE_NewOp(t->eager, name, t->status);
  if (!op) return false;
  for (int i = 0; i < 3 && inputs[i] && ft_ok(t); ++i) TFE_OpAddInput(op, inputs[i], t->status);
  if (!strcmp(name, "VarHandleOp") || !strcmp(name, "ResourceGather"))
    TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  if (!strcmp(name, "VarHandleOp") && ft_ok(t)) {
    TFE_OpSetAttrString(op, "shared_name", "v", 1);
    TFE_OpSetAttrShape(op, "shape", (int64_t[]){2, 2}, 2, t->status);
  }
  TFE_TensorHandle* result = NULL;
  int count = slot ? 1 : 0;
  if (ft_ok(t)) TFE_Execute(op, &result, &count, t->status);
  TFE_DeleteOp(op);
  if (!ft_ok(t)) return false;
  if (!slot) return true;
  TFE_DeleteTensorHandle(*slot);
  *slot = result;
  return true;
}

static bool resolve(ft_t* t, TFE_TensorHandle* handle, TF_Tensor** slot) {
  TF_DeleteTensor(*slot);
  *slot = TFE_TensorHandleResolve(handle, t->status);
  return *slot != NULL;
}

// x * x, as a function of the graph.
static bool make_function(ft_t* t) {
  TF_Output x = ft_out(t->ops[0]), y = ft_out(t->ops[1]);
  t->function = TF_GraphToFunction(t->graph, "squared", 0, -1, NULL, 1, &x, 1, &y, NULL, NULL, NULL,
                                   t->status);
  return t->function != NULL;
}

// The same under a name that tells what it does.
static bool hash_function(ft_t* t) {
  TF_Output x = ft_out(t->ops[0]), y = ft_out(t->ops[1]);
  TF_Function* made = TF_GraphToFunction(t->graph, "squared", 1, -1, NULL, 1, &x, 1, &y, NULL, NULL,
                                         NULL, t->status);
  TF_DeleteFunction(made);
  return made != NULL;
}

static bool add_function(ft_t* t) {
  TFE_ContextAddFunction(t->eager, t->function, t->status);
  return ft_ok(t);
}

static const float four[] = {1, 2, 3, 4};

void scenario_eager(ft_t* t) {
  FT(ft_start(t));
  FT(open_context(t));
  FT(ft_tensor(&t->tensors[0], TF_FLOAT, (int64_t[]){2, 2}, 2, four));
  FT(new_handle(t, &t->handles[0], t->tensors[0]));
  FT(call(t, &t->handles[1], "MatMul", t->handles[0], t->handles[0], NULL));
  FT(call(t, &t->handles[1], "AddV2", t->handles[1], t->handles[0], NULL));
  FT(resolve(t, t->handles[1], &t->tensors[1]));
  FT_CHECK(t, ft_float(t->tensors[1]) == 8);
  FT(ft_placeholder(t, &t->ops[0], "x", TF_FLOAT));
  FT(ft_op(t, &t->ops[1], "Mul", "y", t->ops[0], t->ops[0]));
  FT(make_function(t));
  FT(hash_function(t));
  FT(add_function(t));
  FT(call(t, &t->handles[2], "squared", t->handles[1], NULL, NULL));
  FT(resolve(t, t->handles[2], &t->tensors[1]));
  FT_CHECK(t, ft_float(t->tensors[1]) == 64);
  FT(call(t, &t->handles[3], "VarHandleOp", NULL, NULL, NULL));
  FT(call(t, NULL, "AssignVariableOp", t->handles[3], t->handles[0], NULL));
  FT(ft_buffer(&t->buffers[0]));
  FT((TFE_ContextSetLogDevicePlacement(t->eager, 1, t->status), ft_ok(t)));
  FT(call(t, &t->handles[2], "Neg", t->handles[0], NULL, NULL));
  FT((TFE_GetExecutedOpNames(t->eager, t->buffers[0], t->status), ft_ok(t)));
}

// A gradient, with the rows of a variable kept apart.
static bool take_gradient(ft_t* t) {
  rn_tape_slices_t slices = {0};
  rn_tape_gradient_options_t options = {.slices = &slices};
  rn_tape_delete(t->tape);
  t->tape = rn_tape_start(t->eager, NULL, t->status);
  if (!t->tape) return false;
  bool ok = call(t, &t->handles[4], "ResourceGather", t->handles[3], t->handles[2], NULL) &&
            call(t, &t->handles[5], "Square", t->handles[4], NULL, NULL);
  TFE_TensorHandle* dense = NULL;
  ok = ok &&
       rn_tape_gradient(t->tape, &t->handles[5], 1, &t->handles[3], 1, &options, &dense, t->status);
  if (ok) FT_CHECK(t, !dense && slices.values && slices.indices && slices.shape);
  TFE_DeleteTensorHandle(slices.values);
  TFE_DeleteTensorHandle(slices.indices);
  TFE_DeleteTensorHandle(slices.shape);
  return ok;
}

// A gradient, and with a persistent tape that of it.
static bool take_dense(ft_t* t, bool is_persistent) {
  rn_tape_options_t options = {.is_persistent = is_persistent};
  rn_tape_delete(t->tape);
  t->tape = rn_tape_start(t->eager, &options, t->status);
  if (!t->tape) return false;
  rn_tape_watch(t->tape, t->handles[0], t->status);
  bool ok = ft_ok(t) && call(t, &t->handles[5], "Tanh", t->handles[0], NULL, NULL);
  TFE_TensorHandle* dense = NULL;
  ok = ok &&
       rn_tape_gradient(t->tape, &t->handles[5], 1, &t->handles[0], 1, NULL, &dense, t->status);
  if (ok) FT_CHECK(t, dense != NULL);
  TFE_TensorHandle* second = NULL;
  if (ok && is_persistent) {
    ok = rn_tape_gradient(t->tape, &dense, 1, &t->handles[0], 1, NULL, &second, t->status);
    if (ok) FT_CHECK(t, second != NULL);
  }
  TFE_DeleteTensorHandle(second);
  TFE_DeleteTensorHandle(dense);
  return ok;
}

void scenario_tape(ft_t* t) {
  static const int32_t rows[] = {1, 0, 1};
  FT(ft_start(t));
  FT(open_context(t));
  FT(ft_tensor(&t->tensors[0], TF_FLOAT, (int64_t[]){2, 2}, 2, four));
  FT(new_handle(t, &t->handles[0], t->tensors[0]));
  FT(ft_tensor(&t->tensors[1], TF_INT32, (int64_t[]){3}, 1, rows));
  FT(new_handle(t, &t->handles[2], t->tensors[1]));
  FT(call(t, &t->handles[3], "VarHandleOp", NULL, NULL, NULL));
  FT(call(t, NULL, "AssignVariableOp", t->handles[3], t->handles[0], NULL));
  FT(take_dense(t, false));
  FT(take_dense(t, true));
  FT(take_gradient(t));
  FT(take_gradient(t));
}

// --- Custom devices, and what has no tensors

#define CUSTOM "/job:localhost/replica:0/task:0/device:CUSTOM:0"

static int num_dims(void* data, TF_Status* status) { return TFE_TensorHandleNumDims(data, status); }
static int64_t dim(void* data, int index, TF_Status* status) {
  return TFE_TensorHandleDim(data, index, status);
}
static void free_value(void* data) { TFE_DeleteTensorHandle(data); }

static TFE_TensorHandle* copy_to(TFE_Context* context, TFE_TensorHandle* tensor, TF_Status* status,
                                 void* info) {
  (void)info;
  TFE_CustomDeviceTensorHandle methods = {.version = TFE_CUSTOM_DEVICE_VERSION,
                                          .num_dims = num_dims,
                                          .dim = dim,
                                          .deallocator = free_value};
  TFE_TensorHandle* inner = TFE_TensorHandleCopySharingTensor(tensor, status);
  return TFE_NewCustomDeviceTensorHandle(context, CUSTOM, TF_FLOAT, inner, methods, status);
}

static TFE_TensorHandle* copy_from(TFE_Context* context, TFE_TensorHandle* tensor, const char* name,
                                   TF_Status* status, void* info) {
  (void)context;
  (void)name;
  (void)info;
  return TFE_TensorHandleCopySharingTensor(TFE_TensorHandleDevicePointer(tensor, status), status);
}

// Gives its input back.
static void execute(const TFE_Op* op, int* count, TFE_TensorHandle** outputs, TF_Status* status,
                    void* info) {
  (void)info;
  outputs[0] = TFE_TensorHandleCopySharingTensor(TFE_OpGetFlatInput(op, 0, status), status);
  *count = 1;
}

static void forget(void* info) { (void)info; }

static bool add_device(ft_t* t) {
  TFE_CustomDevice device = {.version = TFE_CUSTOM_DEVICE_VERSION,
                             .copy_tensor_to_device = copy_to,
                             .copy_tensor_from_device = copy_from,
                             .execute = execute,
                             .delete_device = forget};
  TFE_RegisterCustomDevice(t->eager, device, CUSTOM, NULL, t->status);
  return ft_ok(t);
}

static bool move(ft_t* t, TFE_TensorHandle** slot, TFE_TensorHandle* from, const char* name) {
  *slot = TFE_TensorHandleCopyToDevice(from, t->eager, name, t->status);
  return *slot != NULL;
}

static bool pack(ft_t* t) {
  int count = 1;
  t->handles[4] = TFE_CreatePackedTensorHandle(t->eager, t->handles, &count, t->status);
  return t->handles[4] != NULL;
}

static bool infer(ft_t* t) {
  TF_ShapeAndTypeList *in = TF_NewShapeAndTypeList(2), *out = NULL;
  TFE_Op* op = in ? TFE_NewOp(t->eager, "MatMul", t->status) : NULL;
  bool ok = op != NULL;
  if (ok) {
    TFE_OpSetAttrType(op, "T", TF_FLOAT);
    TF_ShapeAndTypeListSetUnknownShape(in, 0);
    TF_ShapeAndTypeListSetUnknownShape(in, 1);
    TFE_InferShapes(op, in, NULL, NULL, NULL, &out, NULL, t->status);
    ok = out != NULL;
  }
  TF_DeleteShapeAndTypeList(out);
  TF_DeleteShapeAndTypeList(in);
  TFE_DeleteOp(op);
  return ok;
}

// Attributes that follow from more inputs than an op has room for.
static bool copy_attributes(ft_t* t) {
  TFE_TensorHandle* inputs[12];
  for (int i = 0; i < 12; ++i) inputs[i] = t->handles[0];
  TFE_Op* op = TFE_NewOp(t->eager, "IdentityN", t->status);
  TFE_Op* copy = op ? TFE_NewOp(t->eager, "IdentityN", t->status) : NULL;
  if (copy) TFE_OpAddInputList(op, inputs, 12, t->status);
  TF_Buffer* bytes = copy && ft_ok(t) ? TF_NewBuffer() : NULL;
  if (bytes) TFE_OpAddAttrs(copy, TFE_OpGetAttrs(op));
  if (bytes) TFE_OpAttrsSerialize(TFE_OpGetAttrs(op), bytes, t->status);
  bool ok = bytes && ft_ok(t) && bytes->length > 12;
  TF_DeleteBuffer(bytes);
  TFE_DeleteOp(copy);
  TFE_DeleteOp(op);
  return ok;
}

static bool store(ft_t* t) {
  TFE_InsertConfigKeyValue(t->eager, "key", "value", t->status);
  if (!ft_ok(t)) return false;
  TFE_GetConfigKeyValue(t->eager, "key", 0, t->buffers[0], t->status);
  bool ok = ft_ok(t);
  TF_Status* outcome = t->status;
  TFE_DeleteConfigKeyValue(t->eager, "key", ok ? outcome : NULL);
  return ok;
}

static bool count(ft_t* t) {
  TFE_MonitoringBuckets* buckets = TFE_MonitoringNewExponentialBuckets(1, 2, 3);
  if (!buckets) return false;
  TFE_MonitoringSampler1* sampler =
      TFE_MonitoringNewSampler1("/faults", buckets, t->status, "", "label");
  TFE_MonitoringDeleteBuckets(buckets);
  if (!sampler) return false;
  TFE_MonitoringSamplerCell* cell = TFE_MonitoringGetCellSampler1(sampler, "x");
  TFE_MonitoringSamplerCellAdd(cell, 1);
  TFE_MonitoringDeleteSampler1(sampler);
  return cell != NULL;
}

void scenario_custom(ft_t* t) {
  FT(ft_start(t));
  FT(open_context(t));
  FT(ft_scalar(&t->tensors[0], 3));
  FT(new_handle(t, &t->handles[0], t->tensors[0]));
  FT(ft_buffer(&t->buffers[0]));
  FT(add_device(t));
  FT(move(t, &t->handles[1], t->handles[0], CUSTOM));
  FT(call(t, &t->handles[2], "Neg", t->handles[1], NULL, NULL));
  FT(move(t, &t->handles[3], t->handles[2], "/device:CPU:0"));
  FT(resolve(t, t->handles[2], &t->tensors[1]));
  FT_CHECK(t, ft_float(t->tensors[1]) == 3);
  FT(pack(t));
  FT(call(t, &t->handles[5], "Neg", t->handles[4], NULL, NULL));
  FT(infer(t));
  FT(copy_attributes(t));
  FT(store(t));
  FT(count(t));
}

// --- Functions of graphs

static bool copy_function(ft_t* t) {
  TF_GraphCopyFunction(t->graph, t->function, NULL, t->status);
  return ft_ok(t);
}

static bool call_function(ft_t* t) {
  TF_OperationDescription* desc = TF_NewOperation(t->graph, "squared", "called");
  if (desc) TF_AddInput(desc, ft_out(t->ops[2]));
  return ft_finish(t, desc, &t->ops[3]);
}

static bool derive(ft_t* t, TF_Output* out) {
  TF_Output y = ft_out(t->ops[3]), x = ft_out(t->ops[2]);
  TF_AddGradients(t->graph, &y, 1, &x, 1, NULL, t->status, out);
  return ft_ok(t);
}

static bool write_function(ft_t* t) {
  TF_FunctionToFunctionDef(t->function, t->buffers[0], t->status);
  return ft_ok(t);
}

void scenario_function(ft_t* t) {
  TF_Output slope = {0};
  FT(ft_start(t));
  FT(ft_placeholder(t, &t->ops[0], "x", TF_FLOAT));
  FT(ft_op(t, &t->ops[1], "Mul", "y", t->ops[0], t->ops[0]));
  FT(make_function(t));
  FT(ft_buffer(&t->buffers[0]));
  FT(write_function(t));
  FT(copy_function(t));
  FT(ft_placeholder(t, &t->ops[2], "z", TF_FLOAT));
  FT(call_function(t));
  FT(derive(t, &slope));
  FT(ft_scalar(&t->tensors[0], 3));
  FT(ft_session(t, 1));
  FT(ft_run(t, t->ops[2], t->tensors[0], t->ops[3], &t->tensors[1]));
  FT_CHECK(t, ft_float(t->tensors[1]) == 9);
  FT(ft_run(t, t->ops[2], t->tensors[0], slope.oper, &t->tensors[1]));
  FT_CHECK(t, ft_float(t->tensors[1]) == 6);
}

// --- The training library

typedef struct model_t {
  rn_edge_t x, loss;
  rn_node_t *init, *train;
} model_t;

// In a new graph: variables have names, and after an error one builds no more.
static bool build(ft_t* t, model_t* model) {
  rn_scope_destroy(t->scope);
  t->scope = NULL;
  TF_DeleteGraph(t->graph);
  t->graph = TF_NewGraph();
  t->scope = t->graph ? rn_scope_create(rn_graph_of(t->graph)) : NULL;
  if (!t->scope) return false;
  rn_scope_t* s = t->scope;
  model->x = rn_Placeholder(s, TF_FLOAT, .shape = RN_SET_SHAPE(((int64_t[]){-1, 2}), 2));
  rn_edge_t hidden = rn_dense(s, model->x, 3, .activation = rn_tanh, .name = "hidden");
  rn_edge_t out = rn_dense(s, hidden, 1, .name = "out");
  rn_edge_t axes = rn_const_int32_list(s, (int32_t[]){0, 1}, 2);
  model->loss = rn_Mean(s, rn_Square(s, out), axes);
  const rn_var_t* step = rn_global_step(s);
  model->train = step ? rn_minimize(s, rn_adam(.learning_rate = 0.05f), model->loss,
                                    .global_step = step, .clip = {RN_CLIP_GLOBAL_NORM, 5})
                      : NULL;
  model->init = rn_initialize_variables(s, RN_GLOBAL_VARIABLES);
  TF_SetStatus(t->status, (TF_Code)rn_scope_code(s), rn_scope_message(s));
  if (rn_scope_ok(s)) FT_CHECK(t, model->train && model->init);
  return rn_scope_ok(s);
}

static bool step(ft_t* t, const model_t* model) {
  TF_Output feed = ft_out(rn_operation_of(model->x.node));
  TF_Output fetch = ft_out(rn_operation_of(model->loss.node));
  const TF_Operation* target = rn_operation_of(model->train);
  TF_DeleteTensor(t->tensors[1]);
  t->tensors[1] = NULL;
  TF_SessionRun(t->session, NULL, &feed, &t->tensors[0], 1, &fetch, &t->tensors[1], 1, &target, 1,
                NULL, t->status);
  return ft_ok(t);
}

void scenario_training(ft_t* t) {
  model_t model = {0};
  FT(ft_start(t));
  FT(build(t, &model));
  FT(ft_tensor(&t->tensors[0], TF_FLOAT, (int64_t[]){2, 2}, 2, four));
  FT(ft_session(t, 1));
  FT(ft_target(t, rn_operation_of(model.init)));
  FT(step(t, &model));
  FT(step(t, &model));
}
