// Scenarios for sessions: steps, partial runs, variables, strings, queues, loops, threads.
#include "sweep.h"

static bool traced_run(ft_t* t, TF_Operation* feed, TF_Tensor* value, TF_Operation* fetch) {
  static const char full_trace[] = {0x08, 0x03};
  TF_Buffer options = {full_trace, sizeof full_trace, NULL};
  TF_Output from = ft_out(feed), to = ft_out(fetch);
  if (!ft_buffer(&t->buffers[0])) return false;
  TF_DeleteTensor(t->tensors[9]);
  t->tensors[9] = NULL;
  TF_SessionRun(t->session, &options, &from, &value, 1, &to, &t->tensors[9], 1, NULL, 0,
                t->buffers[0], t->status);
  FT_CHECK(t, ft_ok(t) == (t->tensors[9] != NULL));
  if (ft_ok(t)) FT_CHECK(t, t->buffers[0]->length > 0);
  return ft_ok(t);
}

static bool list_devices(ft_t* t) {
  t->devices = TF_SessionListDevices(t->session, t->status);
  if (!ft_ok(t)) return false;
  FT_CHECK(t, TF_DeviceListCount(t->devices) >= 1);
  return true;
}

static bool close_session(ft_t* t) {
  TF_CloseSession(t->session, t->status);
  return ft_ok(t);
}

static void run_twice(ft_t* t, TF_Operation* fetch, TF_Tensor* value, float wanted) {
  for (int i = 0; i < 2; ++i) {
    FT(ft_run(t, t->ops[0], value, fetch, &t->tensors[10]));
    FT_CHECK(t, ft_float(t->tensors[10]) == wanted);
  }
}

void scenario_run(ft_t* t) {
  static const float values[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  FT(ft_start(t));
  FT(ft_placeholder(t, &t->ops[0], "x", TF_FLOAT));
  FT(ft_tensor(&t->tensors[0], TF_FLOAT, (int64_t[]){3, 4}, 2, values));
  FT(ft_tensor(&t->tensors[1], TF_FLOAT, (int64_t[]){4, 3}, 2, values));
  FT(ft_const(t, &t->ops[1], "w", t->tensors[0]));
  FT(ft_op(t, &t->ops[2], "MatMul", "mm", t->ops[0], t->ops[1]));
  FT(ft_op(t, &t->ops[3], "Relu", "relu", t->ops[2], NULL));
  FT(ft_op(t, &t->ops[4], "Neg", "neg", t->ops[3], NULL));
  FT(ft_op(t, &t->ops[5], "AddV2", "sum", t->ops[4], t->ops[3]));
  FT(ft_session(t, 1));
  FT(list_devices(t));
  run_twice(t, t->ops[5], t->tensors[1], 0);
  if (t->is_over) return;
  FT(traced_run(t, t->ops[0], t->tensors[1], t->ops[4]));
  FT_CHECK(t, ft_float(t->tensors[9]) == -38);  // 1*1 + 2*5 + 3*9
  // The graph grows, and the session knows.
  FT(ft_op(t, &t->ops[6], "Softmax", "softmax", t->ops[5], NULL));
  FT(ft_run(t, t->ops[0], t->tensors[1], t->ops[6], &t->tensors[2]));
  FT_CHECK(t, ft_float(t->tensors[2]) == 0.25f);
  FT(close_session(t));
}

// A partial run from its setup to its end: a failed one is over, the next one starts anew.
static bool partial_run(ft_t* t) {
  TF_Output feeds[] = {ft_out(t->ops[0]), ft_out(t->ops[1])};
  TF_Output fetches[] = {ft_out(t->ops[2]), ft_out(t->ops[3])};
  if (t->handle) TF_DeletePRunHandle(t->handle);
  t->handle = NULL;
  TF_SessionPRunSetup(t->session, feeds, 2, fetches, 2, NULL, 0, &t->handle, t->status);
  FT_CHECK(t, ft_ok(t) == (t->handle != NULL));
  if (!ft_ok(t)) return false;
  for (int i = 0; i < 2; ++i) {
    TF_DeleteTensor(t->tensors[3 + i]);
    t->tensors[3 + i] = NULL;
    TF_SessionPRun(t->session, t->handle, &feeds[i], &t->tensors[i], 1, &fetches[i],
                   &t->tensors[3 + i], 1, NULL, 0, t->status);
    FT_CHECK(t, ft_ok(t) == (t->tensors[3 + i] != NULL));
    if (!ft_ok(t)) return false;
  }
  return true;
}

void scenario_partial(ft_t* t) {
  FT(ft_start(t));
  FT(ft_placeholder(t, &t->ops[0], "a", TF_FLOAT));
  FT(ft_placeholder(t, &t->ops[1], "b", TF_FLOAT));
  FT(ft_op(t, &t->ops[2], "Neg", "minus_a", t->ops[0], NULL));
  FT(ft_op(t, &t->ops[3], "Mul", "product", t->ops[2], t->ops[1]));
  FT(ft_scalar(&t->tensors[0], 2));
  FT(ft_scalar(&t->tensors[1], 3));
  FT(ft_session(t, 1));
  for (int i = 0; i < 2; ++i) {
    FT(partial_run(t));
    FT_CHECK(t, ft_float(t->tensors[3]) == -2 && ft_float(t->tensors[4]) == -6);
  }
}

static bool variable(ft_t* t, TF_Operation** slot) {
  TF_OperationDescription* desc = TF_NewOperation(t->graph, "VariableV2", "v");
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_SetAttrShape(desc, "shape", NULL, 0);
  return ft_finish(t, desc, slot);
}

static bool handle_op(ft_t* t, TF_Operation** slot, const char* name) {
  TF_OperationDescription* desc = TF_NewOperation(t->graph, "VarHandleOp", name);
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_SetAttrShape(desc, "shape", NULL, 0);
  TF_SetAttrString(desc, "shared_name", name, strlen(name));
  return ft_finish(t, desc, slot);
}

static bool read_op(ft_t* t, TF_Operation** slot) {
  TF_OperationDescription* desc = TF_NewOperation(t->graph, "ReadVariableOp", "read");
  TF_AddInput(desc, ft_out(t->ops[4]));
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  return ft_finish(t, desc, slot);
}

void scenario_state(ft_t* t) {
  FT(ft_start(t));
  FT(ft_placeholder(t, &t->ops[0], "x", TF_FLOAT));
  FT(variable(t, &t->ops[1]));
  FT(ft_op(t, &t->ops[2], "Assign", "assign", t->ops[1], t->ops[0]));
  FT(ft_op(t, &t->ops[3], "Neg", "neg", t->ops[1], NULL));
  FT(handle_op(t, &t->ops[4], "resource"));
  FT(ft_op(t, &t->ops[5], "AssignVariableOp", "assign_resource", t->ops[4], t->ops[2]));
  FT(read_op(t, &t->ops[6]));
  FT(ft_scalar(&t->tensors[0], 7));
  FT(ft_scalar(&t->tensors[1], 8));
  FT(ft_session(t, 1));
  for (int i = 0; i < 2; ++i) {
    TF_Output feed = ft_out(t->ops[0]);
    const TF_Operation* targets[] = {t->ops[5]};
    FT((TF_SessionRun(t->session, NULL, &feed, &t->tensors[i], 1, NULL, NULL, 0, targets, 1, NULL,
                      t->status),
        ft_ok(t)));
    FT(ft_run(t, NULL, NULL, t->ops[3], &t->tensors[2]));
    FT_CHECK(t, ft_float(t->tensors[2]) == (float)(-7 - i));
    FT(ft_run(t, NULL, NULL, t->ops[6], &t->tensors[3]));
    FT_CHECK(t, ft_float(t->tensors[3]) == (float)(7 + i));
  }
}

static bool make_strings(TF_Tensor** slot) {
  static const char* const texts[] = {
      "short", "longer than the bytes that a string has inside",
      "0000000000000000000000000000000000000000000000000000000000000000000000000012.5"};
  TF_DeleteTensor(*slot);
  *slot = TF_AllocateTensor(TF_STRING, (int64_t[]){3}, 1, 3 * sizeof(TF_TString));
  if (!*slot) return false;
  TF_TString* strings = TF_TensorData(*slot);
  for (int i = 0; i < 3; ++i) TF_StringInit(&strings[i]);
  for (int i = 0; i < 3; ++i) {
    TF_StringCopy(&strings[i], texts[i], strlen(texts[i]));
    if (TF_StringGetSize(&strings[i]) != strlen(texts[i])) return false;
  }
  return true;
}

static bool join(ft_t* t, TF_Operation** slot) {
  TF_OperationDescription* desc = TF_NewOperation(t->graph, "StringJoin", "join");
  TF_AddInputList(desc, (TF_Output[]){ft_out(t->ops[0]), ft_out(t->ops[0])}, 2);
  TF_SetAttrString(desc, "separator", ", ", 2);
  return ft_finish(t, desc, slot);
}

static bool make_number(TF_Tensor** slot) {
  static const char text[] =
      "  00000000000000000000000000000000000000000000000000000000000000000012.5";
  TF_DeleteTensor(*slot);
  *slot = TF_AllocateTensor(TF_STRING, NULL, 0, sizeof(TF_TString));
  if (!*slot) return false;
  TF_StringInit(TF_TensorData(*slot));
  TF_StringCopy(TF_TensorData(*slot), text, sizeof text - 1);
  return TF_StringGetSize(TF_TensorData(*slot)) == sizeof text - 1;
}

void scenario_strings(ft_t* t) {
  static const char* const unary[] = {"StringUpper", "StringLower", "StringStrip", "EncodeBase64",
                                      "StringLength"};
  FT(ft_start(t));
  FT(ft_placeholder(t, &t->ops[0], "x", TF_STRING));
  FT(make_strings(&t->tensors[0]));
  FT(make_number(&t->tensors[1]));
  FT(join(t, &t->ops[1]));
  FT(ft_op(t, &t->ops[2], "StringToNumber", "number", t->ops[0], NULL));
  FT(ft_session(t, 1));
  FT(ft_run(t, t->ops[0], t->tensors[0], t->ops[1], &t->tensors[2]));
  const TF_TString* joined = TF_TensorData(t->tensors[2]);
  FT_CHECK(t, memcmp(TF_StringGetDataPointer(joined), "short, short", 12) == 0);
  FT(ft_run(t, t->ops[0], t->tensors[1], t->ops[2], &t->tensors[3]));
  FT_CHECK(t, ft_float(t->tensors[3]) == 12.5f);
  for (size_t i = 0; i < sizeof unary / sizeof *unary; ++i) {
    FT(ft_op(t, &t->ops[3], unary[i], unary[i], t->ops[0], NULL));
    FT(ft_run(t, t->ops[0], t->tensors[0], t->ops[3], &t->tensors[4]));
    FT_CHECK(t, TF_TensorElementCount(t->tensors[4]) == 3);
  }
  FT(ft_const(t, &t->ops[4], "texts", t->tensors[0]));
  FT(ft_run(t, NULL, NULL, t->ops[4], &t->tensors[5]));
}

static bool queue(ft_t* t, TF_Operation** slot) {
  TF_OperationDescription* desc = TF_NewOperation(t->graph, "FIFOQueueV2", "queue");
  TF_SetAttrTypeList(desc, "component_types", (TF_DataType[]){TF_FLOAT, TF_STRING}, 2);
  TF_SetAttrInt(desc, "capacity", 8);
  return ft_finish(t, desc, slot);
}

static bool enqueue(ft_t* t, TF_Operation** slot) {
  TF_OperationDescription* desc = TF_NewOperation(t->graph, "QueueEnqueueV2", "put");
  TF_AddInput(desc, ft_out(t->ops[2]));
  TF_AddInputList(desc, (TF_Output[]){ft_out(t->ops[0]), ft_out(t->ops[1])}, 2);
  return ft_finish(t, desc, slot);
}

static bool dequeue(ft_t* t, TF_Operation** slot) {
  TF_OperationDescription* desc = TF_NewOperation(t->graph, "QueueDequeueV2", "get");
  TF_AddInput(desc, ft_out(t->ops[2]));
  TF_SetAttrTypeList(desc, "component_types", (TF_DataType[]){TF_FLOAT, TF_STRING}, 2);
  return ft_finish(t, desc, slot);
}

static bool put(ft_t* t) {
  TF_Output feeds[] = {ft_out(t->ops[0]), ft_out(t->ops[1])};
  const TF_Operation* targets[] = {t->ops[3]};
  TF_SessionRun(t->session, NULL, feeds, t->tensors, 2, NULL, NULL, 0, targets, 1, NULL, t->status);
  return ft_ok(t);
}

static bool get(ft_t* t) {
  TF_Output fetches[] = {{t->ops[4], 0}, {t->ops[4], 1}};
  for (int i = 2; i < 4; ++i) {
    TF_DeleteTensor(t->tensors[i]);
    t->tensors[i] = NULL;
  }
  TF_SessionRun(t->session, NULL, NULL, NULL, 0, fetches, &t->tensors[2], 2, NULL, 0, NULL,
                t->status);
  FT_CHECK(t, ft_ok(t) == (t->tensors[2] && t->tensors[3]));
  return ft_ok(t);
}

void scenario_queues(ft_t* t) {
  FT(ft_start(t));
  FT(ft_placeholder(t, &t->ops[0], "a", TF_FLOAT));
  FT(ft_placeholder(t, &t->ops[1], "b", TF_STRING));
  FT(queue(t, &t->ops[2]));
  FT(enqueue(t, &t->ops[3]));
  FT(dequeue(t, &t->ops[4]));
  FT(ft_op(t, &t->ops[5], "QueueSizeV2", "size", t->ops[2], NULL));
  FT(ft_op(t, &t->ops[6], "QueueCloseV2", "close", t->ops[2], NULL));
  FT(ft_scalar(&t->tensors[0], 5));
  FT(make_number(&t->tensors[1]));
  FT(ft_session(t, 1));
  for (int i = 0; i < 3; ++i) {
    // A put or get that failed has put or got nothing: else the numbers would not come out.
    FT(put(t));
    FT(put(t));
    FT(get(t));
    FT(ft_run(t, NULL, NULL, t->ops[5], &t->tensors[4]));
    FT_CHECK(t, *(int32_t*)TF_TensorData(t->tensors[4]) == i + 1);
    FT_CHECK(t, ft_float(t->tensors[2]) == 5);
  }
  FT(ft_target(t, t->ops[6]));
}

// A loop that adds 1 while its first value is less than its second.
static bool add_to(ft_t* t, TF_Graph* graph, const char* type, const char* name, TF_Output a,
                   TF_Output b, TF_Output* out) {
  TF_OperationDescription* desc = TF_NewOperation(graph, type, name);
  TF_AddInput(desc, a);
  TF_AddInput(desc, b);
  out->index = 0;
  return ft_finish(t, desc, &out->oper);
}

static bool one_in(ft_t* t, TF_Graph* graph, TF_Output* out) {
  TF_OperationDescription* desc = TF_NewOperation(graph, "Const", "one");
  if (!desc) return false;
  TF_SetAttrTensor(desc, "value", t->tensors[0], t->status);
  if (!ft_ok(t)) return ft_abandon(t, desc);
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  out->index = 0;
  return ft_finish(t, desc, &out->oper);
}

static bool build_loop(ft_t* t, TF_Output* outputs) {
  TF_Output inputs[] = {ft_out(t->ops[0]), ft_out(t->ops[1])}, one;
  TF_WhileParams params = TF_NewWhile(t->graph, inputs, 2, t->status);
  if (!ft_ok(t)) return false;
  params.name = "loop";
  if (!add_to(t, params.cond_graph, "Less", "less", params.cond_inputs[0], params.cond_inputs[1],
              &params.cond_output) ||
      !one_in(t, params.body_graph, &one) ||
      !add_to(t, params.body_graph, "AddV2", "add", params.body_inputs[0], one,
              &params.body_outputs[0])) {
    TF_AbortWhile(&params);
    return false;
  }
  params.body_outputs[1] = params.body_inputs[1];
  TF_FinishWhile(&params, t->status, outputs);
  return ft_ok(t);
}

static bool run_loop(ft_t* t, TF_Output fetch) {
  TF_Output feeds[] = {ft_out(t->ops[0]), ft_out(t->ops[1])};
  TF_DeleteTensor(t->tensors[3]);
  t->tensors[3] = NULL;
  TF_SessionRun(t->session, NULL, feeds, &t->tensors[1], 2, &fetch, &t->tensors[3], 1, NULL, 0,
                NULL, t->status);
  FT_CHECK(t, ft_ok(t) == (t->tensors[3] != NULL));
  return ft_ok(t);
}

static bool loop_gradient(ft_t* t, TF_Output* y, TF_Output* out_dx) {
  TF_Output x = ft_out(t->ops[0]);
  TF_AddGradients(t->graph, y, 1, &x, 1, NULL, t->status, out_dx);
  return ft_ok(t);
}

void scenario_loop(ft_t* t) {
  TF_Output outputs[2], dx;
  FT(ft_start(t));
  FT(ft_scalar(&t->tensors[0], 1));
  FT(ft_scalar(&t->tensors[1], -3));
  FT(ft_scalar(&t->tensors[2], 4));
  FT(ft_placeholder(t, &t->ops[0], "a", TF_FLOAT));
  FT(ft_placeholder(t, &t->ops[1], "b", TF_FLOAT));
  FT(build_loop(t, outputs));
  FT(ft_session(t, 1));
  FT(run_loop(t, outputs[0]));
  FT_CHECK(t, ft_float(t->tensors[3]) == 4);
  FT(run_loop(t, outputs[0]));
  FT(loop_gradient(t, &outputs[0], &dx));
  FT(run_loop(t, dx));
  FT_CHECK(t, ft_float(t->tensors[3]) == 1);
}

void scenario_threads(ft_t* t) {
  static float values[64 * 64];
  for (int i = 0; i < 64 * 64; ++i) values[i] = (float)(i % 7);
  char name[16];
  FT(ft_start(t));
  FT(ft_placeholder(t, &t->ops[0], "x", TF_FLOAT));
  FT(ft_tensor(&t->tensors[0], TF_FLOAT, (int64_t[]){64, 64}, 2, values));
  for (int i = 1; i < 6; ++i) {
    snprintf(name, sizeof name, "m%d", i);
    FT(ft_op(t, &t->ops[i], "MatMul", name, t->ops[0], t->ops[0]));
    snprintf(name, sizeof name, "r%d", i);
    FT(ft_op(t, &t->ops[i + 5], "Exp", name, t->ops[i], NULL));
  }
  FT(ft_op(t, &t->ops[11], "AddV2", "a", t->ops[6], t->ops[7]));
  FT(ft_op(t, &t->ops[12], "AddV2", "b", t->ops[8], t->ops[9]));
  FT(ft_op(t, &t->ops[13], "Sub", "c", t->ops[11], t->ops[12]));
  FT(ft_session(t, 2));
  for (int i = 0; i < 3; ++i) FT(ft_run(t, t->ops[0], t->tensors[0], t->ops[13], &t->tensors[1]));
}

static bool extend(ft_t* t) {
  TF_ExtendGraph(t->deprecated, t->buffers[0]->data, t->buffers[0]->length, t->status);
  return ft_ok(t);
}

static bool run_named(ft_t* t) {
  const char* feed = "x:0";
  const char* fetch = "neg:0";
  TF_DeleteTensor(t->tensors[1]);
  t->tensors[1] = NULL;
  TF_Run(t->deprecated, NULL, &feed, &t->tensors[0], 1, &fetch, &t->tensors[1], 1, NULL, 0, NULL,
         t->status);
  FT_CHECK(t, ft_ok(t) == (t->tensors[1] != NULL));
  return ft_ok(t);
}

static bool export(ft_t* t) {
  if (!ft_buffer(&t->buffers[0])) return false;
  TF_GraphToGraphDef(t->graph, t->buffers[0], t->status);
  return ft_ok(t);
}

static bool deprecated_session(ft_t* t) {
  if (!t->options) t->options = TF_NewSessionOptions();
  if (!t->options) return false;
  TF_SetConfig(t->options, "\x10\x01\x28\x01", 4, t->status);
  if (!ft_ok(t)) return false;
  t->deprecated = TF_NewDeprecatedSession(t->options, t->status);
  return t->deprecated != NULL;
}

void scenario_deprecated(ft_t* t) {
  FT(ft_start(t));
  FT(ft_placeholder(t, &t->ops[0], "x", TF_FLOAT));
  FT(ft_op(t, &t->ops[1], "Neg", "neg", t->ops[0], NULL));
  FT(export(t));
  FT(ft_scalar(&t->tensors[0], 3));
  FT(deprecated_session(t));
  FT(extend(t));
  FT(run_named(t));
  FT_CHECK(t, ft_float(t->tensors[1]) == -3);
  FT(run_named(t));
}
