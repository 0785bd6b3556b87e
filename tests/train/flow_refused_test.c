// Errors of the builders of conditionals and loops: their messages, and the state of the graph
// afterwards.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "util.h"

static rn_edge_t below_four(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Less(s, values[0], rn_const_int32(s, 4));
}

static void append(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  (void)arg;
  rn_edge_t both[2] = {values[1], values[1]};
  next[0] = rn_AddV2(s, values[0], rn_const_int32(s, 1));
  next[1] = rn_ConcatV2(s, both, 2, rn_const_int32(s, 0));
}

// What is refused, and what stays.
typedef struct refusal_t {
  const char* what;
  bool (*build)(rn_scope_t* s, bool functional);
  const char *first, *second;  // parts of the message
} refusal_t;

static int one_int(rn_scope_t* s, rn_edge_t* out, void* arg) {
  (void)arg;
  out[0] = rn_Neg(s, rn_const_int32(s, 1));
  return 1;
}
static int one_float(rn_scope_t* s, rn_edge_t* out, void* arg) {
  (void)arg;
  out[0] = rn_Exp(s, rn_const_float(s, 1));
  return 1;
}
static int nothing(rn_scope_t* s, rn_edge_t* out, void* arg) {
  (void)s;
  (void)out;
  (void)arg;
  return 0;
}
static int bad_op(rn_scope_t* s, rn_edge_t* out, void* arg) {
  (void)arg;
  out[0] = rn_MatMul(s, rn_const_float(s, 1), rn_const_float(s, 1));
  return 1;
}
static rn_edge_t yes(rn_scope_t* s) { return rn_const(s, TF_BOOL, NULL, 0, &(bool){true}); }

static bool int_predicate(rn_scope_t* s, bool functional) {
  rn_edge_t y;
  return rn_cond(s, rn_const_int32(s, 1), rn_branch(one_int, NULL), rn_branch(one_int, NULL), &y, 1,
                 .functional = functional);
}
static bool long_predicate(rn_scope_t* s, bool functional) {
  const bool both[2] = {true, false};
  rn_edge_t y, p = rn_const(s, TF_BOOL, (const int64_t[]){2}, 1, both);
  return rn_cond(s, p, rn_branch(one_int, NULL), rn_branch(one_int, NULL), &y, 1,
                 .functional = functional);
}
static bool two_types(rn_scope_t* s, bool functional) {
  rn_edge_t y;
  return rn_cond(s, yes(s), rn_branch(one_int, NULL), rn_branch(one_float, NULL), &y, 1,
                 .functional = functional);
}
static bool two_counts(rn_scope_t* s, bool functional) {
  rn_edge_t y;
  return rn_cond(s, yes(s), rn_branch(one_int, NULL), rn_branch(nothing, NULL), &y, 1,
                 .functional = functional);
}
static bool no_branch(rn_scope_t* s, bool functional) {
  rn_edge_t y;
  return rn_cond(s, yes(s), rn_branch(NULL, NULL), rn_branch(one_int, NULL), &y, 1,
                 .functional = functional);
}
static bool no_predicate(rn_scope_t* s, bool functional) {
  rn_edge_t y;
  return rn_cond(s, RN_NO_EDGE, rn_branch(one_int, NULL), rn_branch(one_int, NULL), &y, 1,
                 .functional = functional);
}
static bool bad_branch(rn_scope_t* s, bool functional) {
  rn_edge_t y;
  return rn_cond(s, yes(s), rn_branch(one_float, NULL), rn_branch(bad_op, NULL), &y, 1,
                 .functional = functional);
}
static bool growing(rn_scope_t* s, bool functional) {
  rn_edge_t starts[2] = {rn_const_int32(s, 0), wave(s, 3, 0, 0.7)}, ends[2];
  return rn_while(s, below_four, append, NULL, starts, ends, 2, .functional = functional);
}
static bool bad_start(rn_scope_t* s, bool functional) {
  rn_edge_t starts[2] = {rn_const_int32(s, 0), wave(s, 3, 0, 0.7)}, ends[2];
  rn_opt_shape_t invariants[2] = {{0}, RN_SET_SHAPE(((const int64_t[]){4}), 1)};
  return rn_while(s, below_four, append, NULL, starts, ends, 2, .functional = functional,
                  .invariants = invariants);
}
static void to_float(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  (void)arg;
  next[0] = rn_Cast(s, values[0], TF_FLOAT);
}
static bool other_type(rn_scope_t* s, bool functional) {
  rn_edge_t start = rn_const_int32(s, 0), end;
  return rn_while(s, below_four, to_float, NULL, &start, &end, 1, .functional = functional);
}
static void forget(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  (void)s;
  (void)values;
  (void)arg;
  next[0] = RN_NO_EDGE;
}
static bool nothing_next(rn_scope_t* s, bool functional) {
  rn_edge_t start = rn_const_int32(s, 0), end;
  return rn_while(s, below_four, forget, NULL, &start, &end, 1, .functional = functional);
}
static rn_edge_t counts_down(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Neg(s, values[0]);
}
static bool int_condition(rn_scope_t* s, bool functional) {
  rn_edge_t start = rn_const_int32(s, 0), end;
  return rn_while(s, counts_down, to_float, NULL, &start, &end, 1, .functional = functional);
}
static bool no_values(rn_scope_t* s, bool functional) {
  rn_edge_t end;
  return rn_while(s, counts_down, to_float, NULL, NULL, &end, 1, .functional = functional);
}
static bool map_of_scalar(rn_scope_t* s, bool functional) {
  rn_edge_t x = rn_const_float(s, 1), y;
  return rn_map(s, to_float, NULL, &x, 1, &y, 1, .functional = functional);
}
static bool map_of_other_type(rn_scope_t* s, bool functional) {
  rn_edge_t x = rn_const_int32_list(s, (const int32_t[]){1, 2}, 2), y;
  return rn_map(s, to_float, NULL, &x, 1, &y, 1, .functional = functional);
}
static bool scan_without_states(rn_scope_t* s, bool functional) {
  rn_edge_t x = rn_const_int32_list(s, (const int32_t[]){1, 2}, 2), y[2];
  return rn_scan(s, to_float, NULL, &x, 1, NULL, y, 2, .functional = functional);
}
static bool float_index(rn_scope_t* s, bool functional) {
  rn_edge_t y;
  rn_branch_t branch = rn_branch(one_int, NULL);
  return rn_switch_case(s, rn_const_float(s, 0), &branch, 1, NULL, &y, 1, .functional = functional);
}
static bool case_of_two_types(rn_scope_t* s, bool functional) {
  rn_edge_t y;
  rn_branch_t branches[3] = {rn_branch(one_int, NULL), rn_branch(one_int, NULL),
                             rn_branch(one_float, NULL)};
  return rn_switch_case(s, rn_const_int32(s, 0), branches, 3, NULL, &y, 1,
                        .functional = functional);
}

static const refusal_t refusals[] = {
    {"int predicate", int_predicate, "predicate 'Const:0'", "int32"},
    {"vector predicate", long_predicate, "predicate 'Const:0'", "scalar"},
    {"types", two_types, "Neg:0", "Exp:0"},
    {"counts", two_counts, "cond/false_fn", "0 results"},
    {"no branch", no_branch, "cond", "missing"},
    {"no predicate", no_predicate, "predicate", "missing"},
    {"bad branch", bad_branch, "MatMul", "rank 2"},
    {"growing", growing, "[3]", "[6]"},
    {"start", bad_start, "[3]", "[4]"},
    {"other type", other_type, "int32", "Cast:0"},
    {"nothing next", nothing_next, "while", "does not return value 0"},
    {"int condition", int_condition, "Neg:0", "int32"},
    {"no values", no_values, "while", "missing"},
    {"scalar", map_of_scalar, "map", "'Const:0'"},
    {"map's type", map_of_other_type, "Cast:0", "int32"},
    {"no states", scan_without_states, "scan", "2 states"},
    {"float index", float_index, "'Const:0'", "int32"},
    {"case", case_of_two_types, "Neg:0", "Exp:0"},
};

static int count_nodes(TF_Graph* graph) {
  int count = 0;
  size_t position = 0;
  while (TF_GraphNextOperation(graph, &position)) ++count;
  return count;
}

Test(flow, refused) {
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; ++i) {
    for (int functional = 0; functional < 2; ++functional) {
      const refusal_t* row = &refusals[i];
      trial_t t = trial_open();
      cr_expect(!row->build(t.s, functional), "%s was built", row->what);
      const char* message = rn_scope_message(t.s);
      cr_expect(rn_scope_code(t.s) == TF_INVALID_ARGUMENT && strstr(message, row->first) &&
                    strstr(message, row->second),
                "%s, functional %d: '%s'", row->what, functional, message);
      // Only what came before is left, and the graph takes more.
      int left = count_nodes(t.graph);
      cr_expect(left <= 3, "%s: %d nodes are left", row->what, left);
      rn_scope_destroy(t.s);
      t.s = rn_scope_create(rn_graph_of(t.graph));
      rn_edge_t y;
      rn_cond(t.s, yes(t.s), rn_branch(one_float, NULL), rn_branch(one_float, NULL), &y, 1,
              .functional = functional);
      expect_close(row->what, 0, trial_scalar(&t, y), exp(1), 1e-6);
      trial_close(&t);
    }
  }
  cr_expect(!rn_cond(NULL, RN_NO_EDGE, rn_branch(one_int, NULL), rn_branch(one_int, NULL),
                     &(rn_edge_t){0}, 1));
}
