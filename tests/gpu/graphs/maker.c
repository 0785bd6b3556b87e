// Drawing values, devices and shapes: see maker.h.
#include "maker.h"

#include <math.h>
#include <stdlib.h>

#include "tensor/float16.h"

// Larger floats are scaled down, so that errors stay comparable; larger integers wrap around.
#define MOST_FLOAT 32.0
#define MOST_INT 1e6

uint32_t draw(maker_t* m, uint32_t below) {
  m->random = m->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(m->random >> 33) % below;
}

bool chance(maker_t* m, uint32_t percent) { return draw(m, 100) < percent; }

void place(maker_t* m) {
  uint32_t which = draw(m, 10);
  const char* device = which < 5 ? "/gpu:0" : which < 8 ? NULL : "/cpu:0";
  rn_scope_set_device(m->s, m->on_cpu ? "/cpu:0" : device);
}

void start_node(maker_t* m, const char* op, const rn_edge_t* inputs, size_t count) {
  rn_op_begin(m->s, op);
  for (size_t i = 0; i < count; ++i) rn_op_input(m->s, inputs[i]);
}

rn_edge_t end_node(maker_t* m) { return (rn_edge_t){rn_op_finish(m->s), 0}; }

rn_edge_t node1(maker_t* m, const char* op, rn_edge_t a) {
  NODE(m, op, a);
  return end_node(m);
}

rn_edge_t node2(maker_t* m, const char* op, rn_edge_t a, rn_edge_t b) {
  NODE(m, op, a, b);
  return end_node(m);
}

rn_edge_t number(maker_t* m, rn_dtype_t dtype, double value) {
  return rn_const_scalar(m->s, (int)dtype, value);
}

rn_edge_t ints(maker_t* m, const int64_t* values, int count) {
  int32_t list[16];
  for (int i = 0; i < count; ++i) list[i] = (int32_t)values[i];
  return rn_const_int32_list(m->s, list, count);
}

bool is_of(rn_dtype_t dtype, int kinds) {
  int kind = dtype == RN_FLOAT    ? FLOATS
             : dtype == RN_DOUBLE ? DOUBLES
             : dtype == RN_BOOL   ? BOOLS
             : dtype == RN_HALF   ? HALVES
                                  : INTS;
  return kinds & kind;
}

double unit_of(rn_dtype_t dtype) {
  return dtype == RN_FLOAT ? 6e-7 : dtype == RN_DOUBLE ? 2e-15 : dtype == RN_HALF ? 2e-3 : 0;
}

static void set_element(void* data, rn_dtype_t dtype, int64_t i, uint32_t random) {
  double fraction = ((double)random - 1000) / 1000;
  if (dtype == RN_FLOAT) ((float*)data)[i] = (float)fraction;
  if (dtype == RN_DOUBLE) ((double*)data)[i] = fraction;
  if (dtype == RN_HALF) ((uint16_t*)data)[i] = rn_float_to_half((float)fraction);
  if (dtype == RN_INT32) ((int32_t*)data)[i] = (int32_t)(random % 19) - 9;
  if (dtype == RN_INT64) ((int64_t*)data)[i] = (int64_t)(random % 19) - 9;
  if (dtype == RN_BOOL) ((bool*)data)[i] = random % 2;
}

value_t constant(maker_t* m, rn_dtype_t dtype, int rank, const int64_t* dims) {
  value_t v = {.dtype = dtype, .rank = rank, .most = is_of(dtype, INTS) ? 9 : 1};
  for (int i = 0; i < rank; ++i) v.dims[i] = dims[i];
  int64_t count = elements(&v);
  void* data = calloc((size_t)count + 1, rn_dtype_size(dtype));
  if (!data) abort();
  for (int64_t i = 0; i < count; ++i) set_element(data, dtype, i, draw(m, 2001));
  v.edge = rn_const(m->s, (int)dtype, v.dims, rank, data);
  free(data);
  return v;
}

int64_t size_at(const value_t* v, int axis) {
  return v->dims[axis] == BATCH ? MOST_BATCH : v->dims[axis];
}

int64_t elements(const value_t* v) {
  int64_t count = 1;
  for (int i = 0; i < v->rank; ++i) count *= size_at(v, i);
  return count;
}

bool is_same_shape(const value_t* a, const value_t* b) {
  bool is_same = a->rank == b->rank;
  for (int i = 0; is_same && i < a->rank; ++i) is_same = a->dims[i] == b->dims[i];
  return is_same;
}

bool broadcasts(const value_t* a, const value_t* b, value_t* out) {
  const value_t *longer = a->rank >= b->rank ? a : b, *shorter = longer == a ? b : a;
  *out = *longer;
  int shift = longer->rank - shorter->rank;
  for (int i = 0; i < shorter->rank; ++i) {
    int64_t x = longer->dims[i + shift], y = shorter->dims[i];
    if (x != y && x != 1 && y != 1) return false;
    out->dims[i + shift] = x == 1 ? y : x;
  }
  out->is_changed = a->is_changed || b->is_changed;
  return elements(out) <= MOST_ELEMENTS;
}

const value_t* pick(maker_t* m, int kinds, int least_rank, int most_rank) {
  const value_t* found = NULL;
  int first = chance(m, 60) && m->count > 12 ? m->count - 12 : 0;  // most often a new one
  uint32_t seen = 0;
  for (int i = first; i < m->count; ++i) {
    const value_t* v = &m->values[i];
    if (!is_of(v->dtype, kinds) || v->rank < least_rank || v->rank > most_rank) continue;
    if (draw(m, ++seen) == 0) found = v;
  }
  return found;
}

rn_edge_t in_range(maker_t* m, const value_t* v, int64_t below) {
  return node2(m, "FloorMod", v->edge, number(m, v->dtype, (double)below));
}

value_t result(const value_t* v, rn_edge_t edge, double most, double error) {
  value_t made = *v;
  made.edge = edge;
  made.most = most;
  made.error = error + most * unit_of(v->dtype);
  return made;
}

bool put(maker_t* m, value_t v) {
  if (elements(&v) > MOST_ELEMENTS || elements(&v) == 0 || m->count == MOST_VALUES) return false;
  if (is_of(v.dtype, REALS | HALVES) && v.most > MOST_FLOAT) {
    v = result(&v, node2(m, "Mul", v.edge, number(m, v.dtype, 1 / v.most)), 1, v.error / v.most);
  } else if (is_of(v.dtype, INTS) && v.most > MOST_INT) {
    v.edge = node2(m, "FloorMod", v.edge, number(m, v.dtype, 1009));
    v.most = 1009;
  }
  m->values[m->count++] = v;
  return true;
}

bool make_one(maker_t* m, const choice_t* choices, int count) {
  uint32_t sum = 0;
  for (int i = 0; i < count; ++i) sum += (uint32_t)choices[i].weight;
  uint32_t at = draw(m, sum);
  int i = 0;
  for (; at >= (uint32_t)choices[i].weight; ++i) at -= (uint32_t)choices[i].weight;
  place(m);
  return choices[i].make(m);
}

static void add_feed(maker_t* m, rn_dtype_t dtype, int rank, const int64_t* dims, bool is_known) {
  value_t v = {.dtype = dtype, .rank = rank, .most = is_of(dtype, INTS) ? 9 : 1};
  int64_t declared[MOST_RANK];
  for (int i = 0; i < rank; ++i) {
    v.dims[i] = dims[i];
    declared[i] = is_known && dims[i] != BATCH ? dims[i] : -1;
  }
  place(m);
  rn_op_begin(m->s, "Placeholder");
  rn_op_attr_type(m->s, "dtype", (int)dtype);
  rn_op_attr_shape(m->s, "shape", declared, rank);
  v.edge = (rn_edge_t){rn_op_finish(m->s), 0};
  m->values[m->count++] = v;
  m->feed_count++;
}

static void add_feeds(maker_t* m) {
  static const rn_dtype_t types[] = {RN_FLOAT, RN_FLOAT, RN_DOUBLE, RN_HALF, RN_INT32, RN_INT64};
  const int64_t rows = chance(m, 40) ? BATCH : 2 + (int64_t)draw(m, 4), columns = 3 + draw(m, 5);
  const bool is_known = chance(m, 70);
  add_feed(m, RN_FLOAT, 2, (int64_t[]){rows, columns}, is_known);
  add_feed(m, RN_INT32, 1, (int64_t[]){rows}, is_known);
  add_feed(m, RN_BOOL, 0, NULL, is_known);
  add_feed(m, RN_INT64, 2, (int64_t[]){rows, columns}, is_known);
  add_feed(m, RN_FLOAT, 4, (int64_t[]){rows, 4 + draw(m, 3), 5, 1 + draw(m, 3)}, is_known);
  add_feed(m, types[draw(m, 6)], 1, (int64_t[]){columns}, is_known);
  add_feed(m, types[draw(m, 6)], 3, (int64_t[]){2, columns, 1 + draw(m, 4)}, is_known);
}

void make_graph(maker_t* m, rn_scope_t* s, uint64_t seed, bool on_cpu) {
  *m = (maker_t){.s = s, .random = seed * UINT64_C(0x9e3779b97f4a7c15), .on_cpu = on_cpu};
  add_feeds(m);
  make_variables(m);
  int wanted = 6 + (int)draw(m, 40);
  for (int i = 0; i < 4 * wanted && m->count < wanted + m->feed_count && rn_scope_ok(s); ++i) {
    uint32_t family = draw(m, 11);
    if (family < 3)
      make_one(m, element_choices, element_choice_count);
    else if (family < 6)
      make_one(m, array_choices, array_choice_count);
    else if (family < 8)
      make_one(m, dense_choices, dense_choice_count);
    else if (family < 10)
      make_one(m, net_choices, net_choice_count);
    else
      make_one(m, flow_choices, flow_choice_count);
  }
  make_updates(m);
}
