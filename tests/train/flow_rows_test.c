// Maps, folds and scans: values, shapes and gradients, over TensorArrays and lists, as nodes and as
// functions.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "util.h"

static rn_edge_t number(rn_scope_t* s, double value) {
  return rn_const_scalar(s, TF_DOUBLE, value);
}
static TF_Tensor* double_of(double x) { return tensor_of(TF_DOUBLE, NULL, 0, &x); }

// Rows.
enum { ROWS = 4, COLUMNS = 2 };

static void row_square(rn_scope_t* s, const rn_edge_t* in, rn_edge_t* out, void* arg) {
  const rn_edge_t* factor = arg;
  out[0] = rn_Mul(s, rn_Mul(s, in[0], in[0]), *factor);
}

// state · x + sin(state)
static void row_step(rn_scope_t* s, const rn_edge_t* in, rn_edge_t* out, void* arg) {
  const rn_edge_t* factor = arg;
  out[0] = rn_AddV2(s, rn_Mul(s, in[0], in[1]), rn_Mul(s, *factor, rn_Sin(s, in[0])));
}

typedef enum kind_t { MAP, FOLD, SCAN, KINDS } kind_t;

static bool build_rows(rn_scope_t* s, kind_t kind, const rn_edge_t* x, rn_edge_t* factor,
                       const rn_edge_t* initial, int form, bool reverse, rn_edge_t* y) {
  bool functional = form & 1, lists = form >> 1;
  if (kind == MAP)
    return rn_map(s, row_square, factor, x, 1, y, 1, .functional = functional, .lists = lists);
  if (kind == FOLD)
    return rn_fold(s, row_step, factor, x, 1, initial, y, 1, .functional = functional,
                   .lists = lists, .reverse = reverse);
  return rn_scan(s, row_step, factor, x, 1, initial, y, 1, .functional = functional, .lists = lists,
                 .reverse = reverse);
}

// What it should be, column by column; how many rows that is.
static int true_rows(kind_t kind, const double* x, double factor, const double* initial,
                     bool reverse, double* out) {
  if (kind == MAP) {
    for (int i = 0; i < ROWS * COLUMNS; ++i) out[i] = x[i] * x[i] * factor;
    return ROWS;
  }
  for (int c = 0; c < COLUMNS; ++c) {
    double state = initial ? initial[c] : x[(reverse ? ROWS - 1 : 0) * COLUMNS + c];
    for (int k = 0; k < ROWS; ++k) {
      int row = reverse ? ROWS - 1 - k : k;
      if (initial || k > 0) state = state * x[row * COLUMNS + c] + factor * sin(state);
      out[(kind == SCAN ? row : 0) * COLUMNS + c] = state;
    }
  }
  return kind == SCAN ? ROWS : 1;
}

static void try_rows(kind_t kind, int form, bool reverse, bool with_initial, bool is_open) {
  char what[64];
  snprintf(what, sizeof what, "kind %d, form %d, reverse %d, initial %d, open %d", kind, form,
           reverse, with_initial, is_open);
  trial_t t = trial_open();
  double data[ROWS * COLUMNS], start[COLUMNS] = {0.3, -0.6}, factor = 0.8;
  for (int i = 0; i < ROWS * COLUMNS; ++i) data[i] = sin(0.9 * (i + 1));
  const int64_t dims[2] = {is_open ? -1 : ROWS, COLUMNS}, sizes[2] = {ROWS, COLUMNS};
  rn_edge_t xs[3] = {rn_Placeholder(t.s, TF_DOUBLE, .shape = RN_SET_SHAPE(dims, 2)),
                     rn_Placeholder(t.s, TF_DOUBLE, .shape = RN_SET_SHAPE(NULL, 0)),
                     rn_Placeholder(t.s, TF_DOUBLE, .shape = RN_SET_SHAPE(dims + 1, 1))};
  TF_Tensor* values[3] = {tensor_of(TF_DOUBLE, sizes, 2, data), double_of(factor),
                          tensor_of(TF_DOUBLE, sizes + 1, 1, start)};
  int feeds = with_initial ? 3 : 2;
  rn_edge_t y = RN_NO_EDGE;
  cr_assert(build_rows(t.s, kind, xs, &xs[1], with_initial ? &xs[2] : NULL, form, reverse, &y),
            "%s: %s", what, rn_scope_message(t.s));
  double want[ROWS * COLUMNS], got[ROWS * COLUMNS];
  int count = COLUMNS * true_rows(kind, data, factor, with_initial ? start : NULL, reverse, want);
  cr_assert(trial_fetch(&t, y, xs, values, feeds, got, ROWS * COLUMNS) == count, "%s", what);
  for (int i = 0; i < count; ++i) expect_close(what, i, got[i], want[i], 1e-12);
  int64_t known[2] = {0, 0};
  int rank = TF_GraphGetTensorNumDims(t.graph, rn_output_of(y), t.status);
  TF_GraphGetTensorShape(t.graph, rn_output_of(y), known, 2, t.status);
  cr_expect(rank == (kind == FOLD ? 1 : 2), "%s: rank %d", what, rank);
  cr_expect(kind == FOLD || known[0] == dims[0], "%s: %d rows", what, (int)known[0]);
  bool fits = rn_check_gradient(t.s, &y, 1, xs, values, feeds,
                                &(rn_check_options_t){.tolerance = 1e-5}, NULL);
  cr_expect(fits, "%s: %s", what, rn_scope_message(t.s));
  for (int i = 0; i < 3; ++i) TF_DeleteTensor(values[i]);
  trial_close(&t);
}

Test(flow, map) {
  for (int form = 0; form < 4; ++form)
    for (int is_open = 0; is_open < 2; ++is_open) try_rows(MAP, form, false, false, is_open);
}

Test(flow, fold) {
  for (int form = 0; form < 4; ++form)
    for (int way = 0; way < 4; ++way) try_rows(FOLD, form, way & 1, way >> 1, way == 1);
}

Test(flow, scan) {
  for (int form = 0; form < 4; ++form)
    for (int way = 0; way < 4; ++way) try_rows(SCAN, form, way & 1, way >> 1, way == 2);
}

// Several tensors, other types, and a map within a map.
static void inner_row(rn_scope_t* s, const rn_edge_t* in, rn_edge_t* out, void* arg) {
  const rn_edge_t* offset = arg;
  out[0] = rn_AddV2(s, rn_Mul(s, in[0], in[0]), *offset);
}

static void outer_row(rn_scope_t* s, const rn_edge_t* in, rn_edge_t* out, void* arg) {
  const int* form = arg;
  rn_edge_t offset = rn_Cast(s, in[1], TF_FLOAT);
  rn_map(s, inner_row, &offset, in, 1, out, 1, .functional = *form & 1, .lists = *form >> 1);
  out[1] = rn_AddV2(s, in[1], in[1]);
  out[2] = rn_Greater(s, in[1], rn_const_int32(s, 2));
}

Test(flow, map_in_map) {
  for (int form = 0; form < 4; ++form) {
    trial_t t = trial_open();
    rn_edge_t in[2] = {wave(t.s, 3, 2, 0.7),
                       rn_const_int32_list(t.s, (const int32_t[]){1, 2, 3}, 3)};
    rn_edge_t out[3];
    const int types[3] = {TF_FLOAT, TF_INT32, TF_BOOL};
    cr_assert(rn_map(t.s, outer_row, &form, in, 2, out, 3, .types = types, .functional = form & 1,
                     .lists = form >> 1),
              "form %d: %s", form, rn_scope_message(t.s));
    double got[6];
    cr_assert(trial_fetch(&t, out[0], NULL, NULL, 0, got, 6) == 6);
    for (int i = 0; i < 6; ++i)
      expect_close("map", i, got[i], pow(sin(0.7 * (i + 1)), 2) + i / 2 + 1, 1e-6);
    trial_fetch(&t, out[1], NULL, NULL, 0, got, 6);
    cr_expect(got[0] == 2 && got[2] == 6);
    trial_fetch(&t, out[2], NULL, NULL, 0, got, 6);
    cr_expect(got[1] == 0 && got[2] == 1);
    rn_edge_t loss = rn_L2Loss(t.s, out[0]), d;
    cr_assert(rn_gradients(t.s, loss, in, 1, &d), "form %d: %s", form, rn_scope_message(t.s));
    trial_fetch(&t, d, NULL, NULL, 0, got, 6);
    for (int i = 0; i < 6; ++i) {
      double x = sin(0.7 * (i + 1));
      expect_close("gradient", i, got[i], (x * x + i / 2 + 1) * 2 * x, 1e-5);
    }
    trial_close(&t);
  }
}

Test(flow, no_rows) {
  for (int form = 0; form < 4; ++form) {
    trial_t t = trial_open();
    rn_edge_t x = rn_Placeholder(t.s, TF_DOUBLE, .shape = RN_SET_SHAPE(((int64_t[]){-1, 2}), 2));
    rn_edge_t factor = number(t.s, 2), y;
    TF_Tensor* empty = TF_AllocateTensor(TF_DOUBLE, (const int64_t[]){0, 2}, 2, 0);
    double got;
    build_rows(t.s, MAP, &x, &factor, NULL, form, false, &y);
    trial_built(&t);
    cr_expect(trial_fetch(&t, y, &x, &empty, 1, &got, 1) == 0, "form %d", form);
    TF_DeleteTensor(empty);
    trial_close(&t);
  }
}
