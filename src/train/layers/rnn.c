// Recurrent networks: unrolled, dynamic (a loop) and bidirectional.
#include "runnel/control_flow.h"
#include "train/layers/layer.h"

static bool check_cell(rn_scope_t* scope, const rn_cell_t* cell) {
  if (!rn_scope_ok(scope)) return false;
  if (!cell || !cell->step || cell->units <= 0 || cell->state_count < 0 ||
      cell->state_count > RN_MAX_STATES)
    rn_refuse(scope, "A cell needs a step function, units, and at most %d states", RN_MAX_STATES);
  return rn_scope_ok(scope);
}

// The rows of a batch, as a scalar.
static rn_edge_t batch_of(rn_scope_t* s, rn_edge_t x, int axis) {
  return rn_element(s, rn_run_shape(s, x), axis);
}

static void first_states(rn_scope_t* s, const rn_cell_t* cell, const rn_rnn_options_t* options,
                         rn_edge_t batch, int dtype, rn_edge_t* states) {
  if (!options->initial_states) rn_zero_states(s, cell, batch, dtype, states);
  for (int i = 0; options->initial_states && i < cell->state_count; ++i)
    states[i] = options->initial_states[i];
}

// One step at |time|. Rows whose sequence has ended output zeros and keep their states.
static rn_edge_t step_at(rn_scope_t* s, const rn_cell_t* cell, rn_edge_t x, rn_edge_t time,
                         rn_edge_t lengths, const rn_edge_t* states, rn_edge_t* next) {
  rn_edge_t y = cell->step(s, cell, x, states, next);
  if (!lengths.node || !rn_scope_ok(s)) return y;
  rn_edge_t goes_on = rn_Greater(s, lengths, rn_as(s, time, rn_edge_dtype(lengths)));
  goes_on = rn_ExpandDims(s, goes_on, rn_const_int32(s, 1));
  for (int i = 0; i < cell->state_count; ++i) next[i] = rn_SelectV2(s, goes_on, next[i], states[i]);
  return rn_SelectV2(s, goes_on, y, rn_ZerosLike(s, y));
}

RN_API bool rn_static_rnn_(rn_scope_t* scope, const rn_cell_t* cell, const rn_edge_t* inputs,
                           int count, rn_edge_t* out_outputs, rn_edge_t* out_states,
                           rn_rnn_options_t options) {
  if (!check_cell(scope, cell)) return false;
  if (count <= 0 || !inputs || !out_outputs ||
      !rn_is_edge(scope, inputs[0], "rnn", "the first input")) {
    rn_refuse(scope, "rnn: inputs or outputs are missing");
    return false;
  }
  const char* name = options.name ? options.name : "rnn";
  rn_scope_t* s = rn_variable_scope(scope, name);
  rn_edge_t states[RN_MAX_STATES] = {{0}}, next[RN_MAX_STATES] = {{0}};
  if (rn_scope_ok(s))
    first_states(s, cell, &options, batch_of(s, inputs[0], 0), rn_edge_dtype(inputs[0]), states);
  for (int i = 0; i < count && rn_scope_ok(s); ++i) {
    // The first step creates the variables, the others reuse them.
    rn_scope_t* later = i ? rn_variable_scope(scope, name, .reuse = RN_REUSE_ALWAYS) : NULL;
    rn_scope_t* here = i ? later : s;
    rn_edge_t time = rn_const_int32(here, i);
    out_outputs[i] = step_at(here, cell, inputs[i], time, options.lengths, states, next);
    memcpy(states, next, sizeof states);
    rn_scope_destroy(later);
  }
  for (int i = 0; out_states && i < cell->state_count; ++i) out_states[i] = states[i];
  rn_scope_destroy(s);
  return rn_scope_ok(scope);
}

// A dynamic network under construction.
typedef struct dynamic_t {
  const rn_cell_t* cell;
  rn_edge_t steps, lengths;
  rn_edge_t in_handle, in_flow, out_handle;
  int dtype;
  int64_t batch, depth;
} dynamic_t;

// The loop variables: time, the flow of the outputs, the states.
static rn_edge_t goes_on(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  dynamic_t* d = arg;
  return rn_Less(s, values[0], d->steps);
}

static void turn(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  dynamic_t* d = arg;
  rn_edge_t time = values[0];
  rn_edge_t x = rn_TensorArrayReadV3(s, d->in_handle, time, d->in_flow, d->dtype);
  rn_shape_t shape = {2, (const int64_t[]){d->batch, d->depth}};
  rn_status_t status = x.node ? rn_graph_set_shape(rn_scope_graph(s), x, shape) : RN_OK;
  if (!rn_ok(status)) rn_scope_fail(s, status);
  if (!rn_scope_ok(s)) return;
  rn_edge_t y = step_at(s, d->cell, x, time, d->lengths, values + 2, next + 2);
  next[0] = rn_AddV2(s, time, rn_const_int32(s, 1));
  next[1] = rn_TensorArrayWriteV3(s, d->out_handle, time, y, values[1]);
}

// Swaps [batch, time, …] and [time, batch, …].
static rn_edge_t swapped(rn_scope_t* s, rn_edge_t x) {
  int rank = rn_shape_of_edge(x).rank;
  int32_t order[RN_MAX_RANK] = {1, 0};
  for (int i = 2; i < rank; ++i) order[i] = i;
  return rn_Transpose(s, x, rn_axes(s, order, rank));
}

static rn_edge_t run(rn_scope_t* s, dynamic_t* d, rn_edge_t inputs, rn_edge_t* states,
                     const rn_rnn_options_t* options) {
  rn_edge_t zero = rn_const_int32(s, 0);
  rn_edge_t order = rn_Range(s, zero, d->steps, rn_const_int32(s, 1));
  rn_TensorArrayV3_out_t in = rn_TensorArrayV3(s, d->steps, d->dtype);
  rn_TensorArrayV3_out_t out = rn_TensorArrayV3(s, d->steps, d->dtype);
  d->in_handle = in.handle;
  d->in_flow = rn_TensorArrayScatterV3(s, in.handle, order, inputs, in.flow);
  d->out_handle = out.handle;
  rn_edge_t starts[RN_MAX_STATES + 2] = {zero, out.flow}, ends[RN_MAX_STATES + 2];
  memcpy(starts + 2, states, (size_t)d->cell->state_count * sizeof *states);
  int parallel = options->parallel_iterations > 0 ? options->parallel_iterations : 32;
  if (!rn_while(s, goes_on, turn, d, starts, ends, d->cell->state_count + 2,
                .parallel_iterations = parallel, .swap_memory = options->swap_memory))
    return RN_NO_EDGE;
  memcpy(states, ends + 2, (size_t)d->cell->state_count * sizeof *states);
  rn_edge_t outputs = rn_TensorArrayGatherV3(s, out.handle, order, ends[1], d->dtype);
  rn_shape_t shape = {3, (const int64_t[]){rn_dim_of_edge(inputs, 0), d->batch, d->cell->units}};
  rn_status_t status = outputs.node ? rn_graph_set_shape(rn_scope_graph(s), outputs, shape) : RN_OK;
  if (!rn_ok(status)) rn_scope_fail(s, status);
  return outputs;
}

RN_API rn_edge_t rn_dynamic_rnn_(rn_scope_t* scope, const rn_cell_t* cell, rn_edge_t inputs,
                                 rn_edge_t* out_states, rn_rnn_options_t options) {
  if (!check_cell(scope, cell) || !rn_is_edge(scope, inputs, "rnn", "the input")) return RN_NO_EDGE;
  if (rn_shape_of_edge(inputs).rank != 3) {
    rn_refuse(scope, "rnn: the input '%s' must have three dimensions", inputs.node->name.data);
    return RN_NO_EDGE;
  }
  rn_scope_t* s = rn_variable_scope(scope, options.name ? options.name : "rnn");
  rn_edge_t states[RN_MAX_STATES] = {{0}}, outputs = RN_NO_EDGE;
  if (rn_scope_ok(s)) {
    if (!options.time_major) inputs = swapped(s, inputs);
    rn_edge_t shape = rn_run_shape(s, inputs);
    dynamic_t d = {.cell = cell,
                   .steps = rn_element(s, shape, 0),
                   .lengths = options.lengths,
                   .dtype = rn_edge_dtype(inputs),
                   .batch = rn_dim_of_edge(inputs, 1),
                   .depth = rn_dim_of_edge(inputs, 2)};
    first_states(s, cell, &options, rn_element(s, shape, 1), d.dtype, states);
    outputs = run(s, &d, inputs, states, &options);
    if (!options.time_major && rn_scope_ok(s)) outputs = swapped(s, outputs);
  }
  for (int i = 0; out_states && i < cell->state_count; ++i) out_states[i] = states[i];
  rn_scope_destroy(s);
  return rn_scope_ok(scope) ? outputs : RN_NO_EDGE;
}

// Reverses time, in each row up to its length.
static rn_edge_t reversed(rn_scope_t* s, rn_edge_t x, const rn_rnn_options_t* options) {
  int time = options->time_major ? 0 : 1, batch = 1 - time;
  if (options->lengths.node)
    return rn_ReverseSequence(s, x, options->lengths, time, .batch_dim = batch);
  return rn_ReverseV2(s, x, rn_axis(s, time));
}

RN_API rn_edge_t rn_bidirectional_rnn_(rn_scope_t* scope, const rn_cell_t* forward,
                                       const rn_cell_t* backward, rn_edge_t inputs,
                                       rn_edge_t* out_states, rn_rnn_options_t options) {
  if (!check_cell(scope, forward) || !check_cell(scope, backward) ||
      !rn_is_edge(scope, inputs, "bidirectional_rnn", "the input"))
    return RN_NO_EDGE;
  rn_scope_t* s = rn_variable_scope(scope, options.name ? options.name : "bidirectional_rnn");
  if (!s) return RN_NO_EDGE;
  rn_rnn_options_t way = options;
  way.name = "fw";
  rn_edge_t there = rn_dynamic_rnn_(s, forward, inputs, out_states, way);
  way.name = "bw";
  if (way.initial_states) way.initial_states += forward->state_count;
  rn_edge_t back = rn_dynamic_rnn_(s, backward, reversed(s, inputs, &options),
                                   out_states ? out_states + forward->state_count : NULL, way);
  rn_edge_t both[2] = {there, rn_scope_ok(s) ? reversed(s, back, &options) : RN_NO_EDGE};
  rn_edge_t joined = rn_ConcatV2(s, both, 2, rn_const_int32(s, 2));
  rn_scope_destroy(s);
  return joined;
}
