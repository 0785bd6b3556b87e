// Makers of conditionals, loops, functions, variables and gradients: see maker.h.
#include <math.h>
#include <stdio.h>

#include "maker.h"
#include "runnel/control_flow.h"
#include "runnel/function.h"
#include "runnel/gradients.h"

// What the builder of a branch or a body gets.
typedef struct inner_t {
  maker_t* m;
  value_t in[2];  // from outside
  value_t out[2];
  int count;
} inner_t;

// Two or three ops on each value.
static void build_inner(inner_t* inner, rn_scope_t* s) {
  maker_t* m = inner->m;
  rn_scope_t* outer = m->s;
  m->s = s;
  for (int i = 0; i < inner->count; ++i) {
    value_t v = inner->in[i];
    for (uint32_t k = 2 + draw(m, 2); k > 0; --k) {
      value_t next = keep_shape(m, v);
      if (next.most < 1e3) v = next;
    }
    inner->out[i] = v;
  }
  rn_scope_set_device(s, NULL);
  m->s = outer;
}

static int build_branch(rn_scope_t* s, rn_edge_t* out, void* arg) {
  inner_t* inner = arg;
  build_inner(inner, s);
  for (int i = 0; i < inner->count; ++i) out[i] = inner->out[i].edge;
  return inner->count;
}

static void widen(value_t* v, const value_t* other) {
  v->most = fmax(v->most, other->most);
  v->error = fmax(v->error, other->error);
}

// Two values for a branch or a body.
static bool inner_begin(maker_t* m, inner_t* inner) {
  *inner = (inner_t){.m = m, .count = 1 + (int)draw(m, 2)};
  for (int i = 0; i < inner->count; ++i) {
    const value_t* v = pick(m, NUMBERS, 0, MOST_RANK);
    if (!v) return false;
    inner->in[i] = *v;
  }
  return m->depth == 0;
}

static bool make_conditional(maker_t* m) {
  inner_t yes, no;
  const value_t* predicate = pick(m, BOOLS, 0, 0);
  if (!predicate || !inner_begin(m, &yes)) return false;
  no = yes;
  rn_edge_t out[2];
  ++m->depth;
  rn_cond(m->s, predicate->edge, rn_branch(build_branch, &yes), rn_branch(build_branch, &no), out,
          yes.count, .functional = chance(m, 40));
  --m->depth;
  for (int i = 0; i < yes.count; ++i) {
    value_t v = yes.out[i];
    widen(&v, &no.out[i]);
    v.edge = out[i];
    v.is_changed |= predicate->is_changed;
    if (!put(m, v)) return false;
  }
  return true;
}

// x = tanh(x * number + other), n times.
static rn_edge_t loop_condition(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  const inner_t* inner = arg;
  return rn_Less(s, values[0], inner->in[1].edge);
}

static void loop_body(rn_scope_t* s, const rn_edge_t* in, rn_edge_t* out, void* arg) {
  inner_t* inner = arg;
  maker_t* m = inner->m;
  rn_scope_t* outer = m->s;
  m->s = s;
  place(m);
  out[0] = rn_AddV2(s, in[0], rn_const_int32(s, 1));
  place(m);
  rn_edge_t scaled = node2(m, "Mul", in[1], number(m, inner->in[0].dtype, 0.75));
  place(m);
  out[1] = node1(m, "Tanh", node2(m, "AddV2", scaled, inner->in[0].edge));
  rn_scope_set_device(s, NULL);
  m->s = outer;
}

static bool make_loop(maker_t* m) {
  const value_t *v = pick(m, REALS | HALVES, 0, 3), *times = pick(m, INTS, 0, 0);
  if (!v || m->depth) return false;
  inner_t inner = {.m = m, .in = {*v}};
  inner.in[1].edge = rn_const_int32(m->s, 1 + (int32_t)draw(m, 4));
  if (times && times->dtype == RN_INT32 && chance(m, 50)) inner.in[1].edge = in_range(m, times, 4);
  rn_edge_t starts[2] = {rn_const_int32(m->s, 0), v->edge}, out[2];
  ++m->depth;
  rn_while(m->s, loop_condition, loop_body, &inner, starts, out, 2, .functional = chance(m, 40));
  --m->depth;
  value_t made = *v;
  made.edge = out[1];
  made.is_changed |= times && times->is_changed;
  double step = v->error + (v->most + 2) * 4 * unit_of(v->dtype);
  made.most = fmax(v->most, 1);
  made.error = v->error + 4 * step;
  return put(m, made);
}

static void row_body(rn_scope_t* s, const rn_edge_t* in, rn_edge_t* out, void* arg) {
  inner_t* inner = arg;
  inner->in[0].edge = in[0];
  build_inner(inner, s);
  out[0] = inner->out[0].edge;
}

static bool make_map(maker_t* m) {
  const value_t* v = pick(m, REALS | INTS, 1, 3);
  if (!v || m->depth) return false;
  inner_t inner = {.m = m, .in = {*v}, .count = 1};
  inner.in[0].rank--;
  for (int i = 0; i < inner.in[0].rank; ++i) inner.in[0].dims[i] = v->dims[i + 1];
  rn_edge_t out;
  ++m->depth;
  rn_map(m->s, row_body, &inner, &v->edge, 1, &out, 1, .functional = chance(m, 40),
         .lists = chance(m, 50));
  --m->depth;
  value_t made = *v;
  widen(&made, &inner.out[0]);
  made.edge = out;
  return put(m, made);
}

static bool make_call(maker_t* m) {
  inner_t inner;
  if (!inner_begin(m, &inner)) return false;
  rn_scope_t* body = rn_scope_with_graph();
  char name[32];
  rn_edge_t args[2], in[2], out[2];
  ++m->depth;
  snprintf(name, sizeof name, "function_%d", m->made++);
  for (int i = 0; i < inner.count; ++i) {
    args[i] = inner.in[i].edge;
    in[i] = inner.in[i].edge = rn_Placeholder(body, (int)inner.in[i].dtype);
  }
  build_inner(&inner, body);
  for (int i = 0; i < inner.count; ++i) out[i] = inner.out[i].edge;
  rn_define_function(m->s, name, body, in, inner.count, out, inner.count);
  rn_scope_destroy(body);
  place(m);
  rn_edges_t made = rn_call(m->s, name, args, inner.count);
  --m->depth;
  for (int i = 0; i < inner.count; ++i) {
    inner.out[i].edge = rn_edge_at(made, i);
    if (!put(m, inner.out[i])) return false;
  }
  return true;
}

// The gradient of a mean by a feed. Its error is only estimated.
static bool make_gradient(maker_t* m) {
  const value_t* y = pick(m, FLOATS, 0, MOST_RANK);
  const value_t* x = &m->values[0];
  if (!y || m->depth || y->error > 2e-5 || y->edge.node == x->edge.node) return false;
  rn_gradient_t gradient;
  rn_gradient_options_t options = {.unconnected = RN_UNCONNECTED_ZERO, .dense = true};
  rn_edge_t scaled = node1(m, "Tanh", y->edge);
  if (!rn_gradients_of(m->s, &scaled, 1, &x->edge, 1, &options, &gradient)) return false;
  value_t made = result(x, node1(m, "Tanh", gradient.dense), 1, 2e-3);
  made.is_changed |= y->is_changed;
  return put(m, made);
}

// ---- variables

#define MOST_UPDATE 1.0
static double update_error(rn_dtype_t dtype) { return dtype == RN_DOUBLE ? 1e-10 : 1e-5; }

static rn_edge_t read_variable(maker_t* m, const variable_t* variable, rn_node_t* after) {
  rn_op_begin(m->s, "ReadVariableOp");
  rn_op_input(m->s, variable->handle);
  rn_op_attr_type(m->s, "dtype", (int)variable->value.dtype);
  if (after) rn_op_control(m->s, after);
  return end_node(m);
}

static rn_edge_t make_handle(maker_t* m, rn_dtype_t dtype, const int64_t* dims, const char* name) {
  rn_op_begin(m->s, "VarHandleOp");
  rn_op_attr_type(m->s, "dtype", (int)dtype);
  rn_op_attr_shape(m->s, "shape", dims, 2);
  rn_op_attr_string(m->s, "shared_name", name);
  return end_node(m);
}

// What optimizers keep with a variable: zeros at first.
static void make_slots(maker_t* m, variable_t* variable, int number_of) {
  const value_t* v = &variable->value;
  for (int i = 0; i < 2; ++i) {
    char name[32];
    snprintf(name, sizeof name, "slot_%d_%d", number_of, i);
    variable->slots[i] = make_handle(m, v->dtype, v->dims, name);
    rn_edge_t zeros = node2(m, "Fill", ints(m, v->dims, 2), number(m, v->dtype, 0));
    NODE(m, "AssignVariableOp", variable->slots[i], zeros);
    variable->slot_firsts[i] = rn_op_finish(m->s);
  }
}

void make_variables(maker_t* m) {
  static const rn_dtype_t types[] = {RN_FLOAT, RN_FLOAT, RN_DOUBLE, RN_INT64};
  for (int i = 0; i < MOST_VARIABLES - 1; ++i) {
    const int64_t dims[2] = {m->values[0].dims[1], 2 + draw(m, 4)};
    variable_t* variable = &m->variables[m->variable_count++];
    rn_dtype_t dtype = types[draw(m, 4)];
    place(m);
    char name[32];
    snprintf(name, sizeof name, "variable_%d", i);
    variable->handle = make_handle(m, dtype, dims, name);
    variable->value = constant(m, dtype, 2, dims);
    NODE(m, "AssignVariableOp", variable->handle, variable->value.edge);
    variable->first = rn_op_finish(m->s);
    variable->value.most = is_of(dtype, INTS) ? 1e5 : 1 + STEPS * MOST_UPDATE;
    if (!is_of(dtype, INTS)) variable->value.error = (STEPS + 2) * 4 * update_error(dtype);
    variable->value.is_changed = true;
    variable->value.edge = read_variable(m, variable, NULL);
    if (!is_of(dtype, INTS)) make_slots(m, variable, i);
    put(m, variable->value);
  }
}

// A value with the shape of the variable that no variable changes.
static rn_edge_t update_value(maker_t* m, const variable_t* variable) {
  const value_t* v = &variable->value;
  for (int i = m->count - 1; i >= 0; --i) {
    const value_t* other = &m->values[i];
    if (other->dtype != v->dtype || other->is_changed || !is_same_shape(other, v)) continue;
    if (is_of(v->dtype, INTS)) return in_range(m, other, 7);
    if (other->error < update_error(v->dtype)) return node1(m, "Tanh", other->edge);
  }
  // The rows of a feed: their sums, turned into a column.
  const value_t* x = &m->values[0];
  rn_edge_t sums = node2(m, "Mean", x->edge, rn_const_int32(m->s, 0));
  NODE(m, "Cast", node2(m, "ExpandDims", sums, rn_const_int32(m->s, 1)));
  rn_op_attr_type(m->s, "DstT", (int)(is_of(v->dtype, INTS) ? RN_FLOAT : v->dtype));
  rn_edge_t column = end_node(m);
  if (is_of(v->dtype, INTS)) return constant(m, v->dtype, 2, v->dims).edge;
  return node2(m, "Mul", column, constant(m, v->dtype, 2, v->dims).edge);
}

static rn_node_t* update(maker_t* m, const variable_t* variable, rn_edge_t value) {
  const value_t* v = &variable->value;
  const rn_dtype_t dtype = v->dtype;
  uint32_t how = draw(m, is_of(dtype, INTS) ? 3 : 7);
  if (how < 3) {
    const char* const ops[] = {"AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"};
    NODE(m, ops[how], variable->handle, value);
  } else if (how < 5) {
    NODE(m, "ResourceApplyGradientDescent", variable->handle, number(m, dtype, 0.5), value);
  } else if (how == 5) {  // the sum of all steps' sums is below 1
    NODE(m, "ResourceApplyMomentum", variable->handle, variable->slots[0], number(m, dtype, 0.1),
         value, number(m, dtype, 0.5));
  } else {  // with this epsilon, differences do not grow
    NODE(m, "ResourceApplyAdam", variable->handle, variable->slots[0], variable->slots[1],
         number(m, dtype, 0.9), number(m, dtype, 0.999), number(m, dtype, 0.1),
         number(m, dtype, 0.9), number(m, dtype, 0.999), number(m, dtype, 1));
    rn_op_input(m->s, value);
  }
  rn_op_control(m->s, v->edge.node);
  return rn_op_finish(m->s);
}

// Each variable is changed once per step, after it was read; what was read keeps its value. Some
// are read again.
void make_updates(maker_t* m) {
  for (int i = 0; i < m->variable_count; ++i) {
    variable_t* variable = &m->variables[i];
    if (chance(m, 20)) continue;
    place(m);
    rn_edge_t value = update_value(m, variable);
    variable->update = update(m, variable, value);
    value_t again = variable->value;
    again.edge = read_variable(m, variable, variable->update);
    if (put(m, again)) put(m, keep_shape(m, again));
  }
}

const choice_t flow_choices[] = {
    {10, make_conditional}, {8, make_loop}, {6, make_map}, {8, make_call}, {8, make_gradient},
};
const int flow_choice_count = sizeof flow_choices / sizeof *flow_choices;
