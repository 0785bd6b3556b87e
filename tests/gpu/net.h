// A small net that is trained: for tests of what happens around steps.
#ifndef TESTS_GPU_NET_H_
#define TESTS_GPU_NET_H_

#include "runnel/gradients.h"
#include "util.h"

#define NET_STEPS 5  // computed, recorded, replayed

// A net with a convolution, two products, momentum, and a sparse update of its embedding.
typedef struct net_t {
  rt_t rt;
  rn_edge_t x, ids, loss;
  rn_node_t *first[8], *train;
  int first_count;
  rn_edge_t on_cpu;
} net_t;

static rn_edge_t numbers(rn_scope_t* s, const int64_t* dims, int rank, float scale) {
  float data[600];
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) count *= dims[i];
  for (int64_t i = 0; i < count; ++i) data[i] = scale * (float)((i * 7919) % 23 - 11) / 11;
  return rn_const(s, RN_FLOAT, dims, rank, data);
}

// A variable and its value; the net sets it first.
static rn_edge_t variable(net_t* net, const int64_t* dims, int rank, float scale, rn_edge_t* out) {
  rn_scope_t* s = net->rt.s;
  rn_edge_t handle = rn_VarHandleOp(s, RN_FLOAT, dims, rank);
  net->first[net->first_count++] = rn_AssignVariableOp(s, handle, numbers(s, dims, rank, scale));
  *out = rn_ReadVariableOp(s, handle, RN_FLOAT);
  return handle;
}

#define NET_DIMS(...) ((int64_t[]){__VA_ARGS__}), sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

static rn_edge_t placeholder(rn_scope_t* s, int dtype, const int64_t* dims, int rank) {
  rn_op_begin(s, "Placeholder");
  rn_op_attr_type(s, "dtype", dtype);
  rn_op_attr_shape(s, "shape", dims, rank);
  return (rn_edge_t){rn_op_finish(s), 0};
}

static void train(net_t* net, const rn_edge_t* handles, const rn_edge_t* values, int count) {
  rn_scope_t* s = net->rt.s;
  rn_gradient_t gradients[4];
  rn_edge_t rate = rn_const_float(s, 0.1f), momentum = rn_const_float(s, 0.9f);
  cr_assert(rn_gradients_of(s, &net->loss, 1, values, count, NULL, gradients), "%s",
            rn_scope_message(s));
  rn_node_t* updates[4];
  for (int i = 0; i < count; ++i) {
    rn_edge_t dense = rn_gradient_to_dense(s, gradients[i]);
    rn_op_begin(s, i % 2 ? "ResourceApplyGradientDescent" : "ResourceApplyMomentum");
    rn_op_input(s, handles[i]);
    if (i % 2 == 0) rn_op_input(s, handles[count + i / 2]);
    rn_op_input(s, rate);
    rn_op_input(s, dense);
    if (i % 2 == 0) rn_op_input(s, momentum);
    updates[i] = rn_op_finish(s);
  }
  for (int i = 0; i < count; ++i) rn_scope_add_control(s, updates[i]);
  net->train = rn_NoOp(s);
  rn_scope_clear_controls(s);
}

static RT_UNUSED void net_begin(net_t* net) {
  *net = (net_t){.rt = rt_begin(2)};
  rn_scope_t* s = net->rt.s;
  rn_edge_t values[4], handles[6], unused;
  net->x = placeholder(s, RN_FLOAT, NET_DIMS(4, 6, 6, 2));
  net->ids = placeholder(s, RN_INT32, NET_DIMS(4));
  handles[0] = variable(net, NET_DIMS(3, 3, 2, 4), 0.3f, &values[0]);
  handles[1] = variable(net, NET_DIMS(64, 8), 0.2f, &values[1]);
  handles[2] = variable(net, NET_DIMS(8, 3), 0.5f, &values[2]);
  handles[3] = variable(net, NET_DIMS(7, 3), 0.5f, &values[3]);
  handles[4] = variable(net, NET_DIMS(3, 3, 2, 4), 0, &unused);
  handles[5] = variable(net, NET_DIMS(8, 3), 0, &unused);
  rn_op_begin(s, "Conv2D");
  rn_op_input(s, net->x);
  rn_op_input(s, values[0]);
  rn_op_attr_int_list(s, "strides", NET_DIMS(1, 1, 1, 1));
  rn_op_attr_string(s, "padding", "VALID");
  rn_edge_t image = {rn_op_finish(s), 0};
  int32_t flat[] = {4, 64};
  rn_edge_t row = rn_Reshape(s, rn_Relu(s, image), rn_const_int32_list(s, flat, 2));
  rn_edge_t hidden = rn_Tanh(s, rn_MatMul(s, row, values[1]));
  rn_edge_t words = rn_GatherV2(s, values[3], net->ids, rn_const_int32(s, 0));
  rn_edge_t out = rn_AddV2(s, rn_MatMul(s, hidden, values[2]), words);
  int32_t all[] = {0, 1};
  net->loss = rn_Mean(s, rn_Square(s, out), rn_const_int32_list(s, all, 2));
  train(net, handles, values, 4);
  rn_scope_set_device(s, "/cpu:0");
  net->on_cpu = rn_Sum(s, rn_Abs(s, net->x), rn_const_int32_list(s, all, 2));
  rn_scope_set_device(s, NULL);
  cr_assert(rn_scope_ok(s), "%s", rn_scope_message(s));
}

// The feeds of step |turn|.
static void net_feed(const net_t* net, int turn, rt_step_t* step, rn_tensor_t* fed) {
  const int64_t dims[] = {4, 6, 6, 2};
  OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, (rn_shape_t){4, dims}, &fed[0]));
  OK(rn_tensor_create(rn_allocator_system(), RN_INT32, (rn_shape_t){1, dims}, &fed[1]));
  for (int64_t i = 0; i < fed[0].count; ++i)
    RN_DATA(&fed[0], float)[i] = (float)((i * 31 + turn * 17) % 29 - 14) / 14;
  for (int64_t i = 0; i < 4; ++i) RN_DATA(&fed[1], int32_t)[i] = (int32_t)((i * 3 + turn) % 7);
  rt_feed(step, net->x, &fed[0]);
  rt_feed(step, net->ids, &fed[1]);
}

// A step that fetches |what| and runs |target| (may be NULL).
static RT_UNUSED rn_status_t net_run(net_t* net, int turn, rn_edge_t what, rn_node_t* target,
                                     const rn_step_options_t* options, float* out) {
  rt_step_t step = {0};
  rn_tensor_t fed[2];
  net_feed(net, turn, &step, fed);
  rt_fetch(&step, what);
  if (target) rt_target(&step, target);
  if (options) step.options = *options;
  rn_status_t status = rt_run_in(net->rt.session, &step);
  if (rn_ok(status)) *out = *RN_DATA(&step.out[0], float);
  if (rn_ok(status)) rt_clear(&step);
  for (int i = 0; i < 2; ++i) rn_tensor_clear(&fed[i]);
  return status;
}

static RT_UNUSED rn_status_t net_reset(net_t* net) {
  rt_step_t step = {0};
  for (int i = 0; i < net->first_count; ++i) rt_target(&step, net->first[i]);
  return rt_run_in(net->rt.session, &step);
}

// Trains from the start; |losses| are those of each step. The first error, if any.
static RT_UNUSED rn_status_t net_train(net_t* net, float* losses) {
  rn_status_t status = net_reset(net);
  for (int turn = 0; rn_ok(status) && turn < NET_STEPS; ++turn)
    status = net_run(net, turn, net->loss, net->train, NULL, &losses[turn]);
  return status;
}

static RT_UNUSED rn_status_t net_open(net_t* net) {
  return rn_session_create(net->rt.graph, &net->rt.options, rn_env_system(), net->rt.allocator,
                           &net->rt.session);
}

#endif  // TESTS_GPU_NET_H_
