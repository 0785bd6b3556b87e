// Updates of many variables: the values of the CPU, in few launches; and what must not be grouped.
#include <math.h>

#include "counts.h"
#include "util.h"

enum { VARIABLES = 150, LARGE = 7, EMPTY = 11 };

static const char* const rules[][2] = {{"GradientDescent", "gradient_descent"},
                                       {"Momentum", "momentum"},
                                       {"KerasMomentum", "keras_momentum"},
                                       {"Adam", "adam"},
                                       {"AdamWithAmsgrad", "adam_amsgrad"},
                                       {"AdaMax", "ada_max"},
                                       {"Adagrad", "adagrad"},
                                       {"AdagradV2", "adagrad_v2"},
                                       {"AdagradDA", "adagrad_da"},
                                       {"Adadelta", "adadelta"},
                                       {"RMSProp", "rms_prop"},
                                       {"CenteredRMSProp", "centered_rms_prop"},
                                       {"Ftrl", "ftrl"},
                                       {"FtrlV2", "ftrl_v2"},
                                       {"AddSign", "add_sign"},
                                       {"PowerSign", "power_sign"},
                                       {"ProximalGradientDescent", "proximal_gradient_descent"},
                                       {"ProximalAdagrad", "proximal_adagrad"}};
enum { RULES = sizeof rules / sizeof *rules };

static int64_t size_of(int i) { return i == LARGE ? 9001 : i == EMPTY ? 0 : (i * 37) % 90 + 1; }

static rn_edge_t filled(rn_scope_t* s, int64_t count, float value) {
  float* values = malloc((size_t)(count + 1) * sizeof *values);
  for (int64_t i = 0; i < count; ++i) values[i] = value + 0.01f * (float)(i % 13);
  rn_edge_t edge = rn_const(s, RN_FLOAT, &count, 1, values);
  free(values);
  return edge;
}

// A node that runs all others.
static rn_node_t* all_of(rn_scope_t* s, rn_node_t* const* nodes, int count) {
  rn_op_begin(s, "NoOp");
  for (int i = 0; i < count; ++i) rn_op_control(s, nodes[i]);
  return rn_op_finish(s);
}

// Makes a variable and adds its assignment to |inits|.
static rn_edge_t variable(rn_scope_t* s, bool is_ref, int64_t count, float value, rn_node_t** inits,
                          int* init_count) {
  rn_edge_t initial = filled(s, count, value);
  rn_op_begin(s, is_ref ? "VariableV2" : "VarHandleOp");
  rn_op_attr_type(s, "dtype", RN_FLOAT);
  rn_op_attr_shape(s, "shape", &count, 1);
  if (!is_ref) {
    char name[32];
    snprintf(name, sizeof name, "v%d", *init_count);
    rn_op_attr_string(s, "shared_name", name);
  }
  rn_edge_t var = {rn_op_finish(s), 0};
  rn_op_begin(s, is_ref ? "Assign" : "AssignVariableOp");
  rn_op_input(s, var);
  rn_op_input(s, initial);
  inits[(*init_count)++] = rn_op_finish(s);
  return var;
}

static rn_edge_t value_of(rn_scope_t* s, bool is_ref, rn_edge_t variable) {
  return is_ref ? rn_Identity(s, variable) : rn_ReadVariableOp(s, variable, RN_FLOAT);
}

typedef struct updates_net_t {
  rn_edge_t x;  // fed: a factor of all gradients
  rn_node_t *init, *update;
  rn_edge_t values;  // of all variables, joined
} updates_net_t;

// Makes 16 bits of some gradients, and floats of these again.
static rn_edge_t cast(rn_scope_t* s, rn_edge_t gradient, int i) {
  if (i % 3 == 0) return gradient;
  gradient = rn_Cast(s, gradient, i % 3 == 1 ? RN_HALF : RN_BFLOAT16);
  return rn_Cast(s, rn_ReverseV2(s, gradient, rn_const_int32_list(s, (int32_t[]){0}, 1)), RN_FLOAT);
}

static updates_net_t build(rn_scope_t* s, const char* op, bool is_ref, bool is_mixed) {
  static rn_node_t *inits[4 * VARIABLES], *updates[VARIABLES];
  static rn_edge_t values[4 * VARIABLES];
  const rn_op_def_t* def = rn_op_find(rn_str(op));
  int init_count = 0, value_count = 0;
  updates_net_t net = {.x = rn_Placeholder(s, RN_FLOAT, .shape = {true, NULL, 0})};
  rn_edge_t inputs[16];
  int64_t one = 1;
  for (int k = 0; k < def->input_count; ++k) {
    if (def->inputs[k].type == RN_INT64)
      inputs[k] = rn_const(s, RN_INT64, NULL, 0, &one);
    else
      inputs[k] = rn_const_float(s, 0.1f + 0.05f * (float)k);
    if (strcmp(def->inputs[k].name, "lr_power") == 0) inputs[k] = rn_const_float(s, -0.5f);
  }
  for (int i = 0; i < VARIABLES; ++i) {
    for (int k = 0; k < def->input_count; ++k) {
      bool is_variable = def->inputs[k].is_ref || def->inputs[k].type == RN_RESOURCE;
      if (is_variable) {
        inputs[k] = variable(s, is_ref, size_of(i), 0.5f + 0.1f * (float)k, inits, &init_count);
        values[value_count++] = inputs[k];
      }
      if (strcmp(def->inputs[k].name, "grad") == 0 || strcmp(def->inputs[k].name, "delta") == 0)
        inputs[k] = cast(s, rn_Mul(s, net.x, filled(s, size_of(i), 0.02f * (float)i - 1)),
                         is_mixed ? i : 0);
    }
    rn_op_begin(s, op);
    for (int k = 0; k < def->input_count; ++k) rn_op_input(s, inputs[k]);
    updates[i] = rn_op_finish(s);
  }
  net.init = all_of(s, inits, init_count);
  net.update = all_of(s, updates, VARIABLES);
  for (int i = 0; i < value_count; ++i) values[i] = value_of(s, is_ref, values[i]);
  int32_t axis = 0;
  net.values = rn_ConcatV2(s, values, value_count, rn_const(s, RN_INT32, NULL, 0, &axis));
  return net;
}

// Trains four steps, that is plain, recorded and replayed twice, and returns the variables.
static rn_tensor_t train(rt_t* rt, const updates_net_t* net, bool gpu) {
  rn_session_options_t options = rt->options;
  options.gpu.max_count = gpu ? -1 : 0;
  rn_session_t* session = NULL;
  cr_assert(rn_scope_ok(rt->s), "%s", rn_scope_message(rt->s));
  OK(rn_session_create(rt->graph, &options, rn_env_system(), rt->allocator, &session));
  rt_step_t init = {0};
  rt_target(&init, net->init);
  OK(rt_run_in(session, &init));
  for (int turn = 0; turn < 4; ++turn) {
    rn_tensor_t x = rt_scalar(1.5f - 0.5f * (float)turn);
    rt_step_t step = {0};
    rt_feed(&step, net->x, &x);
    rt_target(&step, net->update);
    OK(rt_run_in(session, &step));
    rn_tensor_clear(&x);
  }
  rt_step_t read = {0};
  rt_fetch(&read, net->values);
  OK(rt_run_in(session, &read));
  rn_session_destroy(session);
  return read.out[0];
}

static void check(const char* rule, const char* kernel, bool is_ref, bool is_mixed) {
  char op[64], counter[64];
  snprintf(op, sizeof op, "%sApply%s", is_ref ? "" : "Resource", rule);
  snprintf(counter, sizeof counter, "kernel:%s_f32", kernel);
  if (!rn_op_find(rn_str(op))) return;  // only one kind of variable has it
  rt_t rt = rt_begin(1);
  updates_net_t net = build(rt.s, op, is_ref, is_mixed);
  rn_tensor_t cpu = train(&rt, &net, false);
  uint64_t before = emulated_count(counter);
  rn_tensor_t gpu = train(&rt, &net, true);
  uint64_t kernels = emulated_count(counter) - before;
  cr_assert_leq(kernels, 4 * 4, "%s: %d kernels in four steps", op, (int)kernels);
  cr_assert_eq(cpu.count, gpu.count);
  for (int64_t i = 0; i < cpu.count; ++i) {
    float want = RN_DATA(&cpu, float)[i], got = RN_DATA(&gpu, float)[i];
    cr_assert(fabsf(got - want) <= 2e-5f * (1 + fabsf(want)) || (isnan(got) && isnan(want)),
              "%s, element %d: %g, not %g", op, (int)i, got, want);
  }
  rn_tensor_clear(&cpu), rn_tensor_clear(&gpu);
  rt_end(&rt);
}

RT_TEST(updates, of_resources) {
  for (int r = 0; r < RULES; ++r) check(rules[r][0], rules[r][1], false, false);
}

RT_TEST(updates, of_references) {
  for (int r = 0; r < RULES; ++r) check(rules[r][0], rules[r][1], true, false);
}

// Gradients in 16 bits are read as they are, also where another variable's are floats.
RT_TEST(updates, by_gradients_of_16_bits) {
  for (int r = 0; r < RULES; ++r) check(rules[r][0], rules[r][1], r % 2, true);
}

// Weights that are cast to 16 bits, as in mixed precision, are cast by few kernels.
RT_TEST(updates, casts_of_many_variables) {
  rt_t rt = rt_begin(1);
  rn_scope_t* s = rt.s;
  static rn_node_t* inits[VARIABLES];
  static rn_edge_t values[VARIABLES];
  int count = 0;
  updates_net_t net = {.x = rn_Placeholder(s, RN_FLOAT, .shape = {true, NULL, 0})};
  for (int i = 0; i < VARIABLES; ++i) {
    rn_edge_t var = variable(s, false, size_of(i), 0.1f * (float)i, inits, &count);
    values[i] = cast(s, value_of(s, false, var), 1 + i % 2);
  }
  net.init = all_of(s, inits, count);
  net.update = all_of(s, NULL, 0);
  net.values = rn_ConcatV2(s, values, VARIABLES, rn_const_int32(s, 0));
  rn_tensor_t cpu = train(&rt, &net, false);
  uint64_t before = emulated_count("kernel:cast_many_f16");
  rn_tensor_t gpu = train(&rt, &net, true);
  if (counts_calls()) cr_assert_eq(emulated_count("kernel:cast_many_f16") - before, 1);
  cr_assert_eq(cpu.count, gpu.count);
  cr_assert_eq(memcmp(cpu.data, gpu.data, rn_tensor_bytes(&cpu)), 0);
  rn_tensor_clear(&cpu), rn_tensor_clear(&gpu);
  rt_end(&rt);
}

static rn_node_t* descend(rn_scope_t* s, bool is_ref, rn_edge_t variable, rn_edge_t rate,
                          rn_edge_t gradient) {
  rn_op_begin(s, is_ref ? "ApplyGradientDescent" : "ResourceApplyGradientDescent");
  rn_op_input(s, variable);
  rn_op_input(s, rate);
  rn_op_input(s, gradient);
  return rn_op_finish(s);
}

static float first_value(rt_t* rt, rn_edge_t edge) {
  rt_step_t step = {0};
  rt_fetch(&step, edge);
  OK(rt_run(rt, &step));
  float value = *RN_DATA(&step.out[0], float);
  rt_clear(&step);
  return value;
}

// Two updates of one variable without an order between them are both applied.
RT_TEST(updates, of_one_variable_add_up) {
  for (int is_ref = 0; is_ref < 2; ++is_ref) {
    rt_t rt = rt_begin(1);
    rn_node_t* nodes[4];
    int count = 0;
    rn_edge_t a = variable(rt.s, is_ref, 3, 1, nodes, &count);
    rn_edge_t b = variable(rt.s, is_ref, 3, 1, nodes, &count);
    rn_node_t* init = all_of(rt.s, nodes, count);
    rn_edge_t rate = rn_const_float(rt.s, 0.5f);
    nodes[0] = descend(rt.s, is_ref, a, rate, filled(rt.s, 3, 1));
    nodes[1] = descend(rt.s, is_ref, b, rate, filled(rt.s, 3, 2));
    nodes[2] = descend(rt.s, is_ref, a, rate, filled(rt.s, 3, 4));
    rn_node_t* update = all_of(rt.s, nodes, 3);
    rt_do(&rt, init);
    rt_do(&rt, update);
    cr_assert_float_eq(first_value(&rt, value_of(rt.s, is_ref, a)), 1 - 0.5f - 2, 1e-6f);
    cr_assert_float_eq(first_value(&rt, value_of(rt.s, is_ref, b)), 1 - 1, 1e-6f);
    rt_end(&rt);
  }
}

// Updates that wait for each other stay apart: b's gradient is what a has become.
RT_TEST(updates, in_order_stay_in_order) {
  rt_t rt = rt_begin(1);
  rn_node_t* nodes[6];
  int count = 0;
  rn_edge_t vars[4];
  for (int i = 0; i < 4; ++i) vars[i] = variable(rt.s, false, 3, 1, nodes, &count);
  rn_node_t* init = all_of(rt.s, nodes, count);
  rn_edge_t rate = rn_const_float(rt.s, 0.5f);
  nodes[0] = descend(rt.s, false, vars[0], rate, filled(rt.s, 3, 1));  // 0.5
  nodes[1] = descend(rt.s, false, vars[1], rate, filled(rt.s, 3, 3));  // -0.5
  rn_scope_add_control(rt.s, nodes[0]);
  rn_scope_add_control(rt.s, nodes[1]);
  rn_edge_t now = rn_Mul(rt.s, value_of(rt.s, false, vars[0]), rn_const_float(rt.s, 4));
  rn_scope_clear_controls(rt.s);
  nodes[2] = descend(rt.s, false, vars[2], rate, now);                 // 1 - 1
  nodes[3] = descend(rt.s, false, vars[3], rate, filled(rt.s, 3, 5));  // -1.5
  rn_scope_add_control(rt.s, nodes[2]);
  nodes[4] = descend(rt.s, false, vars[0], rate, filled(rt.s, 3, 1));  // 0
  rn_scope_clear_controls(rt.s);
  rn_node_t* update = all_of(rt.s, nodes, 5);
  rt_do(&rt, init);
  rt_do(&rt, update);
  float want[4] = {0, -0.5f, 0, -1.5f};
  for (int i = 0; i < 4; ++i)
    cr_assert_float_eq(first_value(&rt, value_of(rt.s, false, vars[i])), want[i], 1e-6f, "%d", i);
  rt_end(&rt);
}

// The output of an update is the variable, as in 1.x, also if others are updated with it.
RT_TEST(updates, give_references_on) {
  rt_t rt = rt_begin(1);
  rn_node_t* nodes[4];
  int count = 0;
  rn_edge_t a = variable(rt.s, true, 3, 1, nodes, &count);
  rn_edge_t b = variable(rt.s, true, 2, 2, nodes, &count);
  rn_node_t* init = all_of(rt.s, nodes, count);
  rn_edge_t rate = rn_const_float(rt.s, 0.5f);
  rn_edge_t new_a = {descend(rt.s, true, a, rate, filled(rt.s, 3, 1)), 0};
  rn_edge_t new_b = {descend(rt.s, true, b, rate, filled(rt.s, 2, 1)), 0};
  rt_do(&rt, init);
  for (int turn = 1; turn < 4; ++turn) {
    rt_step_t step = {0};
    rt_fetch(&step, new_b);
    rt_fetch(&step, rn_Neg(rt.s, new_a));
    OK(rt_run(&rt, &step));
    cr_assert_float_eq(*RN_DATA(&step.out[0], float), 2 - 0.5f * (float)turn, 1e-6f);
    cr_assert_float_eq(*RN_DATA(&step.out[1], float), 0.5f * (float)turn - 1, 1e-6f);
    rt_clear(&step);
  }
  rt_end(&rt);
}

// An error names the node that would have failed alone.
RT_TEST(updates, errors_name_the_node) {
  rt_t rt = rt_begin(1);
  rn_node_t* nodes[4];
  int count = 0;
  rn_edge_t vars[3], rate = rn_const_float(rt.s, 0.5f);
  for (int i = 0; i < 3; ++i) vars[i] = variable(rt.s, false, 3, 1, nodes, &count);
  rn_node_t* init = all_of(rt.s, nodes, 2);  // not the last one
  for (int i = 0; i < 3; ++i) {
    char name[16];
    rn_edge_t gradient = filled(rt.s, 3, 1);
    snprintf(name, sizeof name, "update%d", i);
    rn_scope_name_next(rt.s, name);
    nodes[i] = descend(rt.s, false, vars[i], rate, gradient);
  }
  rn_node_t* update = all_of(rt.s, nodes, 3);
  rt_do(&rt, init);
  rt_step_t step = {0};
  rt_target(&step, update);
  rn_status_t status = rt_run(&rt, &step);
  cr_assert(!rn_ok(status));
  cr_assert(strstr(rn_status_message(status), "{{node update2}}"), "%s", rn_status_message(status));
  rn_status_free(status);
  rt_end(&rt);
}
