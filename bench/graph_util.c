// Graph building: nodes, constants, variables, gradients.
#include "graph_util.h"

#include <stdio.h>
#include <string.h>

#include "bench.h"

void check_ok(const TF_Status* status, const char* doing) {
  if (TF_GetCode(status) != TF_OK) bench_fail("%s: %s", doing, TF_Message(status));
}

void net_open(net_t* net) {
  memset(net, 0, sizeof *net);
  net->graph = TF_NewGraph();
  net->status = TF_NewStatus();
}

void net_close(net_t* net) {
  TF_DeleteGraph(net->graph);
  TF_DeleteStatus(net->status);
  memset(net, 0, sizeof *net);
}

TF_OperationDescription* net_begin(net_t* net, const char* op) {
  char name[24];
  snprintf(name, sizeof name, "n%d", net->next_id++);
  return TF_NewOperation(net->graph, op, name);
}

TF_Operation* net_finish(net_t* net, TF_OperationDescription* desc) {
  TF_Operation* operation = TF_FinishOperation(desc, net->status);
  check_ok(net->status, "adding a node");
  return operation;
}

TF_Output net_output(net_t* net, TF_OperationDescription* desc) {
  return (TF_Output){net_finish(net, desc), 0};
}

TF_Output net_unary(net_t* net, const char* op, TF_Output a) {
  TF_OperationDescription* desc = net_begin(net, op);
  TF_AddInput(desc, a);
  return net_output(net, desc);
}

TF_Output net_binary(net_t* net, const char* op, TF_Output a, TF_Output b) {
  TF_OperationDescription* desc = net_begin(net, op);
  TF_AddInput(desc, a);
  TF_AddInput(desc, b);
  return net_output(net, desc);
}

TF_Output net_add_n(net_t* net, const TF_Output* inputs, int count) {
  TF_OperationDescription* desc = net_begin(net, "AddN");
  TF_AddInputList(desc, inputs, count);
  return net_output(net, desc);
}

TF_Output net_placeholder(net_t* net, TF_DataType dtype, shape_t shape) {
  TF_OperationDescription* desc = net_begin(net, "Placeholder");
  TF_SetAttrType(desc, "dtype", dtype);
  TF_SetAttrShape(desc, "shape", shape.dims, shape.rank);
  return net_output(net, desc);
}

TF_Output net_const(net_t* net, TF_Tensor* tensor) {
  TF_OperationDescription* desc = net_begin(net, "Const");
  TF_SetAttrType(desc, "dtype", TF_TensorType(tensor));
  TF_SetAttrTensor(desc, "value", tensor, net->status);
  check_ok(net->status, "setting a constant");
  TF_DeleteTensor(tensor);
  return net_output(net, desc);
}

TF_Output net_const_float(net_t* net, float value) { return net_const(net, tensor_float(value)); }

TF_Output net_const_int(net_t* net, int32_t value) { return net_const(net, tensor_int(value)); }

TF_Output net_const_ints(net_t* net, const int32_t* values, int count) {
  int64_t dim = count;
  size_t bytes = (size_t)count * sizeof *values;
  TF_Tensor* tensor = TF_AllocateTensor(TF_INT32, &dim, 1, bytes);
  memcpy(TF_TensorData(tensor), values, bytes);
  return net_const(net, tensor);
}

TF_Operation* net_group(net_t* net, TF_Operation* const* operations, int count) {
  TF_OperationDescription* desc = net_begin(net, "NoOp");
  for (int i = 0; i < count; ++i) TF_AddControlInput(desc, operations[i]);
  return net_finish(net, desc);
}

static TF_Output initial_value(net_t* net, shape_t shape, float stddev) {
  int32_t dims[kMaxRank];
  for (int i = 0; i < shape.rank; ++i) dims[i] = (int32_t)shape.dims[i];
  TF_Output shape_node = net_const_ints(net, dims, shape.rank);
  if (stddev == 0) return net_binary(net, "Fill", shape_node, net_const_float(net, 0));
  TF_OperationDescription* desc = net_begin(net, "RandomStandardNormal");
  TF_AddInput(desc, shape_node);
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_SetAttrInt(desc, "seed", 87);
  TF_SetAttrInt(desc, "seed2", net->variable_count + 1);
  return net_binary(net, "Mul", net_output(net, desc), net_const_float(net, stddev));
}

TF_Output net_variable_handle(net_t* net, shape_t shape) {
  char name[24];
  // In stock TensorFlow, all handles without a shared name are the same variable.
  int length = snprintf(name, sizeof name, "variable%d", net->next_id);
  TF_OperationDescription* desc = net_begin(net, "VarHandleOp");
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_SetAttrShape(desc, "shape", shape.dims, shape.rank);
  TF_SetAttrString(desc, "shared_name", name, (size_t)length);
  return net_output(net, desc);
}

TF_Output net_variable(net_t* net, shape_t shape, float stddev) {
  if (net->variable_count == kMaxVariables) bench_fail("too many variables");
  TF_Output handle = net_variable_handle(net, shape);
  TF_OperationDescription* desc = net_begin(net, "AssignVariableOp");
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_AddInput(desc, handle);
  TF_AddInput(desc, initial_value(net, shape, stddev));
  net->inits[net->variable_count] = net_finish(net, desc);

  desc = net_begin(net, "ReadVariableOp");
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_AddInput(desc, handle);
  TF_Output value = net_output(net, desc);
  net->variables[net->variable_count++] = (variable_t){handle, value};
  return value;
}

TF_Operation* net_descend(net_t* net, TF_Output loss, float rate) {
  TF_Output values[kMaxVariables], gradients[kMaxVariables];
  TF_Operation* updates[kMaxVariables];
  for (int i = 0; i < net->variable_count; ++i) values[i] = net->variables[i].value;
  TF_AddGradients(net->graph, &loss, 1, values, net->variable_count, NULL, net->status, gradients);
  check_ok(net->status, "adding gradients");
  TF_Output rate_node = net_const_float(net, rate);
  for (int i = 0; i < net->variable_count; ++i) {
    TF_OperationDescription* desc = net_begin(net, "ResourceApplyGradientDescent");
    TF_AddInput(desc, net->variables[i].handle);
    TF_AddInput(desc, rate_node);
    TF_AddInput(desc, gradients[i]);
    updates[i] = net_finish(net, desc);
  }
  return net_group(net, updates, net->variable_count);
}

int64_t shape_size(shape_t shape) {
  int64_t size = 1;
  for (int i = 0; i < shape.rank; ++i) size *= shape.dims[i];
  return size;
}

TF_Tensor* tensor_floats(shape_t shape) {
  size_t bytes = (size_t)shape_size(shape) * sizeof(float);
  return TF_AllocateTensor(TF_FLOAT, shape.dims, shape.rank, bytes);
}

TF_Tensor* tensor_float(float value) {
  TF_Tensor* tensor = tensor_floats(SCALAR);
  memcpy(TF_TensorData(tensor), &value, sizeof value);
  return tensor;
}

TF_Tensor* tensor_int(int32_t value) {
  TF_Tensor* tensor = TF_AllocateTensor(TF_INT32, NULL, 0, sizeof value);
  memcpy(TF_TensorData(tensor), &value, sizeof value);
  return tensor;
}

uint32_t next_random(uint32_t* state) {
  uint32_t x = *state;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  return *state = x;
}

TF_Tensor* tensor_random(shape_t shape, float low, float high, uint32_t seed) {
  TF_Tensor* tensor = tensor_floats(shape);
  float* data = TF_TensorData(tensor);
  uint32_t state = seed * 2654435761u + 1;
  for (int64_t i = 0; i < shape_size(shape); ++i) {
    data[i] = low + (high - low) * (float)(next_random(&state) >> 8) / 16777216.0f;
  }
  return tensor;
}
