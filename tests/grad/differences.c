// Central differences, computed with a session.
#include "differences.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/env.h"
#include "grad/grad.h"
#include "session/session.h"

rn_edge_t int_list(rn_scope_t* s, int count, const int32_t* values) {
  return rn_const_int32_list(s, values, count);
}

rn_edge_t int_matrix(rn_scope_t* s, int columns, int count, const int32_t* values) {
  int64_t dims[2] = {count / columns, columns};
  return rn_const(s, RN_INT32, dims, 2, values);
}

// Everything of one check: a graph with inputs x, outputs y, incoming gradients dy and results dx.
typedef struct check_t {
  const differences_t* options;
  rn_graph_t* graph;
  rn_scope_t* scope;
  rn_session_t* session;
  int x_count, y_count;
  rn_edge_t x[MAX_INPUTS], y[MAX_OUTPUTS], dy[MAX_OUTPUTS];
  rn_tensor_t values[MAX_INPUTS];
  rn_tensor_t weights[MAX_OUTPUTS];
  int fixed_count;  // fed besides, and not moved
  rn_edge_t fixed[2 * MAX_OUTPUTS];
  rn_tensor_t fixed_values[2 * MAX_OUTPUTS];
  uint32_t seed;
} check_t;

static void must(rn_status_t status, const char* what) {
  if (rn_ok(status)) return;
  const char* message = rn_status_message(status);
  if (strstr(message, "No OpKernel was registered") || strstr(message, "no kernel")) {
    fprintf(stderr, "skipped: %s\n", message);
    cr_skip_test("%s", message);
  }
  cr_assert_fail("%s: %s", what, message);
}

static void must_build(check_t* check, const char* what) {
  cr_assert(rn_scope_ok(check->scope), "%s: %s", what, rn_scope_message(check->scope));
}

static double draw(check_t* check) {
  check->seed = check->seed * 1664525u + 1013904223u;
  return (check->seed >> 8) / (double)(1 << 24);
}

static double get(const rn_tensor_t* tensor, int64_t i) {
  return tensor->dtype == RN_FLOAT ? RN_DATA(tensor, float)[i] : RN_DATA(tensor, double)[i];
}

static void set(rn_tensor_t* tensor, int64_t i, double value) {
  if (tensor->dtype == RN_FLOAT) {
    RN_DATA(tensor, float)[i] = (float)value;
  } else {
    RN_DATA(tensor, double)[i] = value;
  }
}

static int parse_shape(const char* text, int64_t* dims) {
  int rank = 0;
  while (*text) {
    char* end;
    dims[rank++] = strtol(text, &end, 10);
    text = *end ? end + 1 : end;
  }
  return rank;
}

static void add_inputs(check_t* check, bool is_known) {
  const differences_t* options = check->options;
  int dtype = options->is_float ? RN_FLOAT : RN_DOUBLE;
  double low = options->low, high = options->high;
  if (low == 0 && high == 0) low = -1, high = 1;
  while (check->x_count < MAX_INPUTS && options->shapes[check->x_count]) {
    int64_t dims[8];
    int i = check->x_count++, rank = parse_shape(options->shapes[i], dims);
    check->x[i] = is_known ? rn_Placeholder(check->scope, dtype, .shape = RN_SET_SHAPE(dims, rank))
                           : rn_Placeholder(check->scope, dtype);
    rn_tensor_t* value = &check->values[i];
    must(rn_tensor_create(rn_allocator_system(), dtype, (rn_shape_t){rank, dims}, value), "tensor");
    for (int64_t k = 0; k < value->count; ++k) set(value, k, low + (high - low) * draw(check));
  }
}

// Runs |fetches| at the current inputs. With |has_weights| the incoming gradients are fed too.
static void run(check_t* check, const rn_edge_t* fetches, int count, bool has_weights,
                rn_tensor_t* out) {
  rn_edge_t feeds[MAX_INPUTS + 3 * MAX_OUTPUTS];
  const rn_tensor_t* values[MAX_INPUTS + 3 * MAX_OUTPUTS];
  int n = 0;
  for (int i = 0; i < check->x_count; ++i, ++n) {
    feeds[n] = check->x[i];
    values[n] = &check->values[i];
  }
  for (int i = 0; i < check->fixed_count; ++i, ++n) {
    feeds[n] = check->fixed[i];
    values[n] = &check->fixed_values[i];
  }
  for (int i = 0; has_weights && i < check->y_count; ++i, ++n) {
    feeds[n] = check->dy[i];
    values[n] = &check->weights[i];
  }
  rn_signature_t signature = {
      .feeds = feeds, .feed_count = n, .fetches = fetches, .fetch_count = count};
  must(rn_session_run(check->session, &signature, values, out, NULL), "run");
}

static void clear(rn_tensor_t* tensors, int count) {
  for (int i = 0; i < count; ++i) rn_tensor_clear(&tensors[i]);
}

// Draws the incoming gradients for the shapes that the outputs really have.
static void draw_weights(check_t* check) {
  rn_tensor_t y[MAX_OUTPUTS];
  run(check, check->y, check->y_count, false, y);
  for (int i = 0; i < check->y_count; ++i) {
    must(rn_tensor_create(rn_allocator_system(), y[i].dtype, rn_tensor_shape(&y[i]),
                          &check->weights[i]),
         "tensor");
    for (int64_t k = 0; k < y[i].count; ++k) set(&check->weights[i], k, 2 * draw(check) - 1);
  }
  clear(y, check->y_count);
}

// sum(dy * y), the number whose gradient is taken.
static double weighted_sum(check_t* check) {
  rn_tensor_t y[MAX_OUTPUTS];
  double sum = 0;
  run(check, check->y, check->y_count, false, y);
  for (int i = 0; i < check->y_count; ++i)
    for (int64_t k = 0; k < y[i].count; ++k) sum += get(&y[i], k) * get(&check->weights[i], k);
  clear(y, check->y_count);
  return sum;
}

static double difference(check_t* check, rn_tensor_t* x, int64_t k) {
  double step = x->dtype == RN_FLOAT ? 4e-3 : 4e-6, old = get(x, k);
  set(x, k, old + step);
  double above = get(x, k), high = weighted_sum(check);
  set(x, k, old - step);
  double below = get(x, k), low = weighted_sum(check);
  set(x, k, old);
  return (high - low) / (above - below);
}

static void compare(check_t* check, int input, const rn_tensor_t* dx, const char* round) {
  rn_tensor_t* x = &check->values[input];
  double tolerance = check->options->tolerance, scale = 1;
  if (tolerance == 0) tolerance = x->dtype == RN_FLOAT ? 5e-3 : 2e-8;
  cr_assert(rn_tensor_same_shape(x, dx), "%s: the gradient of input %d has another shape", round,
            input);
  for (int64_t k = 0; k < dx->count; ++k) scale = fmax(scale, fabs(get(dx, k)));
  for (int64_t k = 0; k < dx->count; ++k) {
    double wanted = difference(check, x, k), found = get(dx, k);
    cr_expect(fabs(wanted - found) <= tolerance * scale,
              "%s: d/dx%d[%d] is %.10g, differences give %.10g", round, input, (int)k, found,
              wanted);
  }
}

// The gradients of the y by the x that count, left in |dx| for the next order.
static int differentiate(check_t* check, rn_edge_t* xs, rn_edge_t* dxs) {
  int count = 0;
  for (int i = 0; i < check->x_count; ++i)
    if (!(check->options->skipped >> i & 1)) xs[count++] = check->x[i];
  for (int i = 0; i < check->y_count; ++i) {
    rn_shape_t shape = check->y[i].node->outputs[check->y[i].index].shape;
    check->dy[i] = rn_Placeholder(check->scope, rn_edge_dtype(check->y[i]),
                                  .shape = RN_SET_SHAPE(shape.dims, shape.rank));
  }
  must_build(check, "dy");
  must(rn_add_gradients(check->graph, RN_STR(""), check->y, check->y_count, xs, count, check->dy,
                        dxs),
       "gradients");
  return count;
}

static void check_order(check_t* check, const char* round) {
  rn_edge_t xs[MAX_INPUTS], dxs[MAX_INPUTS];
  rn_tensor_t values[MAX_INPUTS];
  int count = differentiate(check, xs, dxs);
  for (int i = 0; i < count; ++i)
    cr_assert_not_null(dxs[i].node, "%s: input %d has no gradient", round, i);
  draw_weights(check);
  run(check, dxs, count, true, values);
  for (int i = 0, k = 0; i < check->x_count; ++i)
    if (!(check->options->skipped >> i & 1)) compare(check, i, &values[k++], round);
  clear(values, count);
  // The next order: the gradients, at fixed weights, are what is differentiated.
  for (int i = 0; i < check->y_count; ++i) {
    check->fixed[check->fixed_count] = check->dy[i];
    check->fixed_values[check->fixed_count++] = check->weights[i];
  }
  for (int i = 0; i < count; ++i) check->y[i] = dxs[i];
  check->y_count = count;
}

static void check_round(differences_build_t build, const differences_t* options, bool is_known) {
  check_t check = {.options = options, .seed = 1};
  must(rn_graph_create(rn_allocator_system(), &check.graph), "graph");
  check.scope = rn_scope_create(check.graph);
  add_inputs(&check, is_known);
  rn_edges_t y = build(check.scope, check.x);
  must_build(&check, is_known ? "build" : "build, unknown shapes");
  for (; check.y_count < y.count; ++check.y_count)
    check.y[check.y_count] = rn_edge_at(y, check.y_count);
  rn_session_options_t session_options;
  rn_session_options_init(&session_options);
  session_options.intra_threads = session_options.inter_threads = 1;
  must(rn_session_create(check.graph, &session_options, rn_env_system(), rn_allocator_system(),
                         &check.session),
       "session");
  check_order(&check, is_known ? "known shapes" : "unknown shapes");
  if (options->is_twice) check_order(&check, is_known ? "twice" : "twice, unknown shapes");
  clear(check.values, check.x_count);
  clear(check.fixed_values, check.fixed_count);
  rn_session_destroy(check.session);
  rn_scope_destroy(check.scope);
  rn_graph_release(check.graph);
}

void differences_check(differences_build_t build, const differences_t* options) {
  check_round(build, options, true);
  if (!options->is_static) check_round(build, options, false);
}
