// Indices out of range on a GPU: nothing is read or written outside of the tensors, which the
// emulated driver watches. TensorFlow documents what comes out: a gather gives zeros, a scatter
// leaves the update out, a segment id out of range drops the row, and a label gives a NaN.
#include <math.h>

#include "util.h"

#define ROWS 4
#define COLUMNS 3
#define WILD 8

// Numbers of rows, every second of which there is.
static const int64_t wild[WILD] = {-1, 2, 4, 0, INT32_MAX, 3, INT32_MIN, 1};

static bool is_good(int i) { return wild[i] >= 0 && wild[i] < ROWS; }

// An edge that the step is fed with, so that no pass sees the indices.
typedef struct indices_t {
  rt_t rt;
  rn_edge_t ids, table;
  rn_tensor_t fed;
  float rows[ROWS * COLUMNS];
} indices_t;

static void begin(indices_t* t, rn_dtype_t type, int rank) {
  int64_t dims[2] = {WILD, 1}, table[2] = {ROWS, COLUMNS};
  *t = (indices_t){.rt = rt_begin(1)};
  t->rt.options.gpu.max_count = 1;
  t->ids = rn_Placeholder(t->rt.s, type, .shape = {true, dims, rank});
  OK(rn_tensor_create(t->rt.allocator, type, (rn_shape_t){rank, dims}, &t->fed));
  for (int i = 0; i < WILD; ++i) {
    if (type == RN_INT32)
      RN_DATA(&t->fed, int32_t)[i] = (int32_t)wild[i];
    else  // far beyond the address space, too
      RN_DATA(&t->fed, int64_t)[i] = is_good(i) ? wild[i] : wild[i] * (INT64_C(1) << 31);
  }
  for (int i = 0; i < ROWS * COLUMNS; ++i) t->rows[i] = (float)(i + 1);
  t->table = rn_const(t->rt.s, RN_FLOAT, table, 2, t->rows);
}

// Runs |fetch| as it is, recorded and replayed; the values must be |wanted|.
static void gives(indices_t* t, rn_edge_t fetch, const float* wanted, int count, const char* what) {
  rn_session_t* session = rt_session(&t->rt);
  cr_assert_eq(rn_session_device_count(session), 2);
  for (int turn = 0; turn < 3; ++turn) {
    rt_step_t step = {0};
    rt_feed(&step, t->ids, &t->fed);
    rt_fetch(&step, fetch);
    OK(rt_run_in(session, &step));
    cr_assert_eq(step.out[0].count, count, "%s", what);
    for (int i = 0; i < count; ++i) {
      float got = RN_DATA(&step.out[0], float)[i];
      cr_assert(isnan(wanted[i]) ? isnan(got) : got == wanted[i], "%s: element %d is %g, not %g",
                what, i, (double)got, (double)wanted[i]);
    }
    rt_clear(&step);
  }
}

static void end(indices_t* t) {
  rn_tensor_clear(&t->fed);
  rt_end(&t->rt);
}

// The rows that |wild| names, zeros for those that there are not.
static void gathered(const indices_t* t, float* out) {
  for (int i = 0; i < WILD; ++i)
    for (int k = 0; k < COLUMNS; ++k)
      out[i * COLUMNS + k] = is_good(i) ? t->rows[wild[i] * COLUMNS + k] : 0;
}

// |first| + what update i (of all ones, times i + 1) adds to the row that it names.
static void scattered(const float* first, float* out) {
  for (int i = 0; i < ROWS * COLUMNS; ++i) out[i] = first ? first[i] : 0;
  for (int i = 0; i < WILD; ++i)
    for (int k = 0; k < COLUMNS && is_good(i); ++k) out[wild[i] * COLUMNS + k] += (float)(i + 1);
}

static rn_edge_t updates(rn_scope_t* s) {
  float values[WILD * COLUMNS];
  for (int i = 0; i < WILD * COLUMNS; ++i) values[i] = (float)(i / COLUMNS + 1);
  return rn_const(s, RN_FLOAT, (int64_t[]){WILD, COLUMNS}, 2, values);
}

static const rn_dtype_t types[] = {RN_INT32, RN_INT64};

RT_TEST(indices, gathers_give_zeros) {
  float wanted[WILD * COLUMNS];
  for (int i = 0; i < 2; ++i) {
    indices_t t;
    begin(&t, types[i], 1);
    gathered(&t, wanted);
    gives(&t, rn_GatherV2(t.rt.s, t.table, t.ids, rn_const_int32(t.rt.s, 0)), wanted,
          WILD * COLUMNS, "GatherV2");
    end(&t);
    begin(&t, types[i], 2);
    gives(&t, rn_GatherNd(t.rt.s, t.table, t.ids), wanted, WILD * COLUMNS, "GatherNd");
    end(&t);
  }
}

RT_TEST(indices, scatters_leave_updates_out) {
  float wanted[ROWS * COLUMNS];
  for (int i = 0; i < 2; ++i) {
    indices_t t;
    begin(&t, types[i], 2);
    rn_scope_t* s = t.rt.s;
    rn_edge_t shape = rn_Cast(s, rn_const_int32_list(s, (int32_t[]){ROWS, COLUMNS}, 2), types[i]);
    scattered(NULL, wanted);
    gives(&t, rn_ScatterNd(s, t.ids, updates(s), shape), wanted, ROWS * COLUMNS, "ScatterNd");
    end(&t);
    begin(&t, types[i], 2);
    scattered(t.rows, wanted);
    gives(&t, rn_TensorScatterAdd(t.rt.s, t.table, t.ids, updates(t.rt.s)), wanted, ROWS * COLUMNS,
          "TensorScatterAdd");
    end(&t);
  }
}

RT_TEST(indices, segments_drop_rows) {
  float wanted[ROWS * COLUMNS];
  for (int i = 0; i < 2; ++i) {
    indices_t t;
    begin(&t, types[i], 1);
    scattered(NULL, wanted);
    gives(&t, rn_UnsortedSegmentSum(t.rt.s, updates(t.rt.s), t.ids, rn_const_int32(t.rt.s, ROWS)),
          wanted, ROWS * COLUMNS, "UnsortedSegmentSum");
    end(&t);
  }
}

RT_TEST(indices, one_hot_gives_rows_of_off_values) {
  float wanted[WILD * ROWS];
  for (int i = 0; i < 2; ++i) {
    indices_t t;
    begin(&t, types[i], 1);
    rn_scope_t* s = t.rt.s;
    for (int k = 0; k < WILD * ROWS; ++k) wanted[k] = wild[k / ROWS] == k % ROWS ? 5 : 2;
    gives(&t,
          rn_OneHot(s, t.ids, rn_const_int32(s, ROWS), rn_const_float(s, 5), rn_const_float(s, 2)),
          wanted, WILD * ROWS, "OneHot");
    end(&t);
  }
}

RT_TEST(indices, labels_give_nan) {
  float wanted[WILD], zeros[WILD * ROWS] = {0};
  for (int i = 0; i < 2; ++i) {
    indices_t t;
    begin(&t, types[i], 1);
    rn_edge_t logits = rn_const(t.rt.s, RN_FLOAT, (int64_t[]){WILD, ROWS}, 2, zeros);
    rn_edge_t loss = rn_SparseSoftmaxCrossEntropyWithLogits(t.rt.s, logits, t.ids).loss;
    // Rounded, because logarithms of the emulated GPU differ in the last bits.
    loss = rn_Round(t.rt.s, rn_Mul(t.rt.s, loss, rn_const_float(t.rt.s, 1e4f)));
    for (int k = 0; k < WILD; ++k) wanted[k] = is_good(k) ? 13863 : NAN;  // log 4
    gives(&t, loss, wanted, WILD, "SparseSoftmaxCrossEntropyWithLogits");
    end(&t);
  }
}
