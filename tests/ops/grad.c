// Gradients: TF_AddGradients against the recorded ones and against central differences.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

// Elements of one input that are moved; more of them are taken at even distances.
enum { MAX_MOVED = 24 };

typedef struct {
  build_t build;
  TF_Session* session;
  size_t y_count;
  TF_Output ys[MAX_OUTPUTS];   // the outputs with a gradient
  TF_Output dys[MAX_OUTPUTS];  // placeholders of the incoming gradients
  TF_Tensor* dy_values[MAX_OUTPUTS];
  size_t dx_count;  // those that exist
  TF_Output dxs[MAX_NODES];
  size_t dx_leaf[MAX_NODES];  // which leaf each belongs to
  TF_Tensor* dx_values[MAX_NODES];
} grad_t;

static bool ok(const grad_t* g) { return TF_GetCode(g->build.status) == TF_OK; }

static bool is_wanted(const json_t* row, int output) {
  const json_t* wanted = json_object_get(row, "grad_outputs");
  for (size_t i = 0; i < json_array_size(wanted); i++) {
    if (json_integer_value(json_array_get(wanted, i)) == output) return true;
  }
  return !wanted;
}

static void find_outputs(grad_t* g, const json_t* row) {
  TF_Output all[MAX_OUTPUTS];
  const size_t n = build_fetchable(g->build.node, all);
  for (size_t i = 0; i < n; i++) {
    const dtype_t* dtype = dtype_by_type(TF_OperationOutputType(all[i]));
    if (dtype && build_has_gradient(row, dtype) && is_wanted(row, all[i].index))
      g->ys[g->y_count++] = all[i];
  }
}

static bool add_incoming(grad_t* g) {
  for (size_t i = 0; i < g->y_count; i++) {
    int64_t dims[MAX_RANK];
    char name[32];
    const int rank = TF_GraphGetTensorNumDims(g->build.graph, g->ys[i], g->build.status);
    if (rank > 0) {
      TF_GraphGetTensorShape(g->build.graph, g->ys[i], dims, rank, g->build.status);
    }
    snprintf(name, sizeof name, "dy%zu", i);
    const TF_DataType type = dtype_by_type(TF_OperationOutputType(g->ys[i]))->type;
    g->dys[i] = build_placeholder(&g->build, name, type, dims, rank);
    if (!g->dys[i].oper) return false;
  }
  return true;
}

static bool add_gradients(grad_t* g) {
  TF_Output xs[MAX_NODES], dxs[MAX_NODES];
  for (size_t i = 0; i < g->build.leaf_count; i++) xs[i] = g->build.feeds[g->build.leaves[i]];
  memset(dxs, 0, sizeof dxs);
  TF_AddGradients(g->build.graph, g->ys, (int)g->y_count, xs, (int)g->build.leaf_count, g->dys,
                  g->build.status, dxs);
  for (size_t i = 0; ok(g) && i < g->build.leaf_count; i++) {
    if (!dxs[i].oper) continue;
    g->dx_leaf[g->dx_count] = i;
    g->dxs[g->dx_count++] = dxs[i];
  }
  return ok(g);
}

// The recorded gradients in place of computed ones: judges the row where stock's C API cannot.
static bool take_recorded(const check_t* check, grad_t* g) {
  const json_t* grads = json_object_get(check->golden, "grads");
  char why[128];
  for (size_t i = 0; i < json_array_size(grads); i++) {
    if (json_is_null(json_array_get(grads, i))) continue;
    g->dx_leaf[g->dx_count] = i;
    g->dx_values[g->dx_count] = value_create(json_array_get(grads, i), why, sizeof why);
    if (!g->dx_values[g->dx_count++]) return false;
  }
  return true;
}

// Draws the incoming gradients for the shapes that the outputs really have.
static bool feed_gradients(grad_t* g) {
  TF_Tensor* y[MAX_OUTPUTS];
  if (!check_run(&g->build, g->session, g->ys, g->y_count, NULL, y)) return false;
  for (size_t i = 0; i < g->y_count; i++) {
    int64_t dims[MAX_RANK];
    for (int d = 0; d < TF_NumDims(y[i]); d++) dims[d] = TF_Dim(y[i], d);
    g->dy_values[i] = value_draw(TF_TensorType(y[i]), dims, TF_NumDims(y[i]), 1000 + i);
    g->build.feeds[g->build.feed_count] = g->dys[i];
    g->build.feed_values[g->build.feed_count++] = g->dy_values[i];
  }
  check_release(y, g->y_count);
  return true;
}

static outcome_t compare_recorded(check_t* check, const grad_t* g) {
  const json_t* want = json_object_get(check->golden, "grads");
  tolerance_t store;
  char why[512];
  const json_t* tol = json_object_get(check->row, "grad_tol");
  const tolerance_t* tolerance = check_tolerance(check, &store);
  if (tol) {
    store = (tolerance_t){json_number_value(tol), json_number_value(tol), 0};
    tolerance = &store;
  }
  for (size_t leaf = 0, k = 0; leaf < json_array_size(want); leaf++) {
    const json_t* one = json_array_get(want, leaf);
    const bool has = k < g->dx_count && g->dx_leaf[k] == leaf;
    if (has != !json_is_null(one)) {
      return check_fail(check, "input %zu has %s gradient", leaf, has ? "a" : "no");
    }
    if (!has) continue;
    if (!tol && !json_object_get(check->row, "tol")) {  // a chain of ops, each with its error
      store = tolerance_of(TF_TensorType(g->dx_values[k]));
      store.absolute *= 4;
      store.relative *= 4;
      tolerance = &store;
    }
    if (!value_matches(g->dx_values[k], one, tolerance, why, sizeof why)) {
      return check_fail(check, "gradient of input %zu %s", leaf, why);
    }
    k++;
  }
  return OUTCOME_PASSED;
}

// sum(dy * y) at the current feeds, the number whose gradient is taken.
static bool weighted_sum(const grad_t* g, double* out) {
  TF_Tensor* y[MAX_OUTPUTS];
  if (!check_run(&g->build, g->session, g->ys, g->y_count, NULL, y)) return false;
  *out = 0;
  for (size_t i = 0; i < g->y_count; i++) {
    for (size_t j = 0; j < value_parts(y[i]); j++) {
      *out += value_get(y[i], j) * value_get(g->dy_values[i], j);
    }
  }
  check_release(y, g->y_count);
  return true;
}

// (f(x + h) - f(x - h)) / 2h for one element, with the step that was really taken.
static bool central_difference(const grad_t* g, TF_Tensor* x, size_t i, double step, double* out) {
  const double old = value_get(x, i);
  double high = 0, low = 0;
  value_set(x, i, old + step);
  const double above = value_get(x, i);
  bool done = weighted_sum(g, &high);
  value_set(x, i, old - step);
  const double below = value_get(x, i);
  done = done && weighted_sum(g, &low);
  value_set(x, i, old);
  *out = (high - low) / (above - below);
  return done;
}

// Steps balance the cubic error of the formula against rounding of the sum: eps^(1/3) and, for
// float, a little more. Half types are too coarse to differentiate.
static outcome_t compare_differences(check_t* check, const grad_t* g) {
  const json_t* fd = json_object_get(check->row, "fd");
  const json_t* fd_tol = json_object_get(check->row, "fd_tol");
  if (json_is_false(fd) || g->build.var_count || g->build.before_count) return OUTCOME_PASSED;
  for (size_t k = 0; k < g->dx_count; k++) {
    TF_Tensor* x = g->build.feed_values[g->build.leaves[g->dx_leaf[k]]];
    const TF_DataType type = TF_TensorType(x);
    const bool is_double = type == TF_DOUBLE || type == TF_COMPLEX128;
    if (type != TF_FLOAT && type != TF_COMPLEX64 && !is_double) continue;
    const double step = is_double ? 6e-6 : 8e-3;
    const double tol = fd_tol ? json_number_value(fd_tol) : is_double ? 2e-7 : 8e-3;
    const size_t n = value_parts(x), stride = n > MAX_MOVED ? n / MAX_MOVED : 1;
    double scale = 1;
    for (size_t i = 0; i < n; i++) scale = fmax(scale, fabs(value_get(g->dx_values[k], i)));
    for (size_t i = 0; i < n; i += stride) {
      const double got = value_get(g->dx_values[k], i);
      double want = 0;
      if (!central_difference(g, x, i, step, &want)) {
        return check_fail(check, "central difference: %s", TF_Message(g->build.status));
      }
      if (!(fabs(got - want) <= tol * scale)) {
        return check_fail(check, "gradient of input %zu [%zu] is %.9g, differences give %.9g",
                          g->dx_leaf[k], i, got, want);
      }
    }
  }
  return OUTCOME_PASSED;
}

// The gradients of the library, computed; |*out_outcome| says how it ended when they are not.
static bool compute(check_t* check, grad_t* g, outcome_t* out_outcome) {
  if (!add_gradients(g)) {
    // Without recorded gradients a library that has none either is not blamed.
    const bool may_lack = json_object_get(check->golden, "grad_error") != NULL;
    *out_outcome = check_fail(check, "TF_AddGradients: %s", TF_Message(g->build.status));
    if (may_lack) *out_outcome = OUTCOME_SKIPPED;
    return false;
  }
  // The session was open before: it must see the nodes that were added.
  if (g->dx_count && !check_run(&g->build, g->session, g->dxs, g->dx_count, NULL, g->dx_values)) {
    *out_outcome = check_fail(check, "running the gradients: %s", TF_Message(g->build.status));
    return false;
  }
  return true;
}

static bool is_unregistered(const grad_t* g) {
  return strstr(TF_Message(g->build.status), "No gradient defined for op") != NULL;
}

static outcome_t run_gradients(check_t* check, grad_t* g) {
  const bool is_recorded = json_object_get(check->golden, "grads") != NULL;
  const bool is_wrong_in_stock = json_is_false(json_object_get(check->row, "stock_grad"));
  outcome_t outcome = OUTCOME_PASSED;
  if (!build_case(&g->build, check->row, true, check_device(check))) {
    return check_fail(check, "build: %s%s", g->build.why, TF_Message(g->build.status));
  }
  find_outputs(g, check->row);
  g->session = check_open(check, g->build.graph, g->build.status);
  if (!g->session || !add_incoming(g) || !check_prepare(&g->build, g->session) ||
      !feed_gradients(g)) {
    if (check_lacks_gpu_kernel(check, g->build.status)) return OUTCOME_SKIPPED;
    return check_fail(check, "before the gradients: %s", TF_Message(g->build.status));
  }
  if (check->options.is_stock && is_wrong_in_stock) {
    if (!take_recorded(check, g)) return check_fail(check, "bad golden row");
  } else if (!compute(check, g, &outcome)) {
    if (!check->options.is_stock || !is_unregistered(g)) return outcome;
    if (!take_recorded(check, g)) return check_fail(check, "bad golden row");
    outcome = OUTCOME_PASSED;
  }
  if (is_recorded) outcome = compare_recorded(check, g);
  return outcome == OUTCOME_PASSED ? compare_differences(check, g) : outcome;
}

// The second order: the gradients, weighted once more, by every x and every incoming gradient.

typedef struct {
  size_t count;  // of what is differentiated: the gradients of the first order
  TF_Output weights[MAX_NODES];
  TF_Tensor* weight_values[MAX_NODES];
} second_t;

static bool add_weights(grad_t* g, second_t* second) {
  for (size_t k = 0; k < g->dx_count; k++) {
    int64_t dims[MAX_RANK];
    char name[32];
    for (int d = 0; d < TF_NumDims(g->dx_values[k]); d++) dims[d] = TF_Dim(g->dx_values[k], d);
    snprintf(name, sizeof name, "ddx%zu", k);
    const TF_DataType type = TF_TensorType(g->dx_values[k]);
    second->weights[k] =
        build_placeholder(&g->build, name, type, dims, TF_NumDims(g->dx_values[k]));
    if (!second->weights[k].oper) return false;
    second->weight_values[k] = value_draw(type, dims, TF_NumDims(g->dx_values[k]), 2000 + k);
    second->count++;
  }
  return true;
}

// sum(weight * dx) at the current feeds.
static bool weighted_gradients(const grad_t* g, const second_t* second, double* out) {
  TF_Tensor* dx[MAX_NODES];
  if (!check_run(&g->build, g->session, g->dxs, g->dx_count, NULL, dx)) return false;
  *out = 0;
  for (size_t k = 0; k < g->dx_count; k++) {
    for (size_t j = 0; j < value_parts(dx[k]); j++)
      *out += value_get(dx[k], j) * value_get(second->weight_values[k], j);
  }
  check_release(dx, g->dx_count);
  return true;
}

// The gradient of the gradients by feed |feed|; none where nothing of it is left in them.
static bool second_gradient(grad_t* g, const second_t* second, size_t feed, TF_Tensor** out) {
  TF_Output dx = {NULL, -1};
  TF_Output weights[MAX_NODES];
  *out = NULL;
  memcpy(weights, second->weights, sizeof weights);
  TF_AddGradients(g->build.graph, g->dxs, (int)g->dx_count, &g->build.feeds[feed], 1, weights,
                  g->build.status, &dx);
  if (!ok(g)) return strstr(TF_Message(g->build.status), "unreachable") != NULL;
  if (!dx.oper) return true;
  // The weights are fed in this run alone.
  const size_t fed = g->build.feed_count;
  for (size_t k = 0; k < second->count; k++) {
    g->build.feeds[g->build.feed_count] = second->weights[k];
    g->build.feed_values[g->build.feed_count++] = second->weight_values[k];
  }
  const bool done = check_run(&g->build, g->session, &dx, 1, NULL, out);
  g->build.feed_count = fed;
  return done;
}

static outcome_t compare_second(check_t* check, grad_t* g, const second_t* second, size_t feed) {
  TF_Tensor *x = g->build.feed_values[feed], *found = NULL;
  if (!second_gradient(g, second, feed, &found))
    return check_fail(check, "second order by feed %zu: %s", feed, TF_Message(g->build.status));
  const double step = 1e-5, tol = 2e-6;
  const size_t n = value_parts(x), stride = n > MAX_MOVED ? n / MAX_MOVED : 1;
  double scale = 1;
  outcome_t outcome = OUTCOME_PASSED;
  for (size_t i = 0; found && i < n; i++) scale = fmax(scale, fabs(value_get(found, i)));
  for (size_t i = 0; i < n && outcome == OUTCOME_PASSED; i += stride) {
    const double old = value_get(x, i), got = found ? value_get(found, i) : 0;
    double high = 0, low = 0;
    value_set(x, i, old + step);
    bool done = weighted_gradients(g, second, &high);
    value_set(x, i, old - step);
    done = done && weighted_gradients(g, second, &low);
    value_set(x, i, old);
    const double want = (high - low) / (2 * step);
    if (!done) {
      outcome = check_fail(check, "central difference: %s", TF_Message(g->build.status));
    } else if (!(fabs(got - want) <= tol * scale)) {
      outcome = check_fail(check, "second order by feed %zu [%zu] is %.9g, differences give %.9g",
                           feed, i, got, want);
    }
  }
  if (found) TF_DeleteTensor(found);
  return outcome;
}

static bool is_wide(const TF_Tensor* tensor) {
  const TF_DataType type = TF_TensorType(tensor);
  return type == TF_DOUBLE || type == TF_COMPLEX128;
}

static bool all_double(const grad_t* g) {
  for (size_t k = 0; k < g->dx_count; k++)
    if (!is_wide(g->dx_values[k])) return false;
  for (size_t i = 0; i < g->y_count; i++)
    if (!is_wide(g->dy_values[i])) return false;
  return g->dx_count > 0;
}

static outcome_t run_second(check_t* check, grad_t* g, second_t* second) {
  outcome_t outcome = run_gradients(check, g);
  if (outcome != OUTCOME_PASSED || !all_double(g))
    return OUTCOME_SKIPPED;  // the first order's affair
  if (g->build.feed_count + g->dx_count > MAX_NODES) return OUTCOME_SKIPPED;
  if (!add_weights(g, second)) return check_fail(check, "weights: %s", TF_Message(g->build.status));
  for (size_t i = 0; i < g->build.leaf_count && outcome == OUTCOME_PASSED; i++)
    outcome = compare_second(check, g, second, g->build.leaves[i]);
  for (size_t i = 0; i < g->y_count && outcome == OUTCOME_PASSED; i++)
    outcome = compare_second(check, g, second, g->build.feed_count - g->y_count + i);
  return outcome;
}

outcome_t check_grad2(check_t* check) {
  const bool is_rough = json_is_false(json_object_get(check->row, "fd"));
  if (!json_object_get(check->golden, "grads") || is_rough) return OUTCOME_SKIPPED;
  grad_t* g = calloc(1, sizeof *g);
  second_t* second = calloc(1, sizeof *second);
  if (!g || !second) abort();
  const outcome_t outcome = run_second(check, g, second);
  check_release(g->dx_values, g->dx_count);
  check_release(second->weight_values, second->count);
  check_close(g->session);
  build_destroy(&g->build);
  free(second);
  free(g);
  return outcome;
}

outcome_t check_grad(check_t* check) {
  const bool is_recorded = json_object_get(check->golden, "grads") != NULL;
  if (!is_recorded && !json_object_get(check->golden, "grad_error")) return OUTCOME_SKIPPED;
  if (!is_recorded && check->options.is_stock) return OUTCOME_SKIPPED;
  grad_t* g = calloc(1, sizeof *g);
  if (!g) abort();
  const outcome_t outcome = run_gradients(check, g);
  check_release(g->dx_values, g->dx_count);
  check_close(g->session);
  build_destroy(&g->build);
  free(g);
  return outcome;
}
