// Compares gradients with central differences. A test is one line: an op with the shapes of its
// inputs.
//
//   GRAD(MatMul, SHAPES("2,3", "3,4"), rn_MatMul(s, x[0], x[1]))
//
// This builds the expression over placeholders x of type double, once with known and once with
// unknown shapes, computes the gradients of all x, weighted by fixed numbers, and compares them
// with (f(x + h) - f(x - h)) / 2h. If the op has no kernel, the test is skipped with a message.
#ifndef TESTS_GRAD_DIFFERENCES_H_
#define TESTS_GRAD_DIFFERENCES_H_

#include <criterion/criterion.h>

#include "graph/graph.h"
#include "runnel/ops.h"

enum { MAX_INPUTS = 6, MAX_OUTPUTS = 8, MAX_ELEMENTS = 512 };

typedef struct differences_t {
  const char* shapes[MAX_INPUTS];  // "2,3"; "" is a scalar
  double low, high;                // where the inputs lie; both 0: -1 … 1
  bool is_float;                   // float instead of double, with what that costs in accuracy
  bool is_static;                  // no second round with unknown shapes
  bool is_twice;                   // the gradients of the gradients too
  int skipped;                     // bit i: input i is not differentiated
  double tolerance;                // relative to the largest gradient; 0: the type's
} differences_t;

typedef rn_edges_t (*differences_build_t)(rn_scope_t* s, const rn_edge_t* x);

void differences_check(differences_build_t build, const differences_t* options);

static inline rn_edges_t differences_one(rn_edge_t edge) {
  rn_edges_t edges = {edge.node, edge.index, 1};
  return edges;
}

// Constants in tests.
rn_edge_t int_list(rn_scope_t* s, int count, const int32_t* values);
#define INTS(...)                                                        \
  int_list(s, (int)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)), \
           (const int32_t[]){__VA_ARGS__})
rn_edge_t int_matrix(rn_scope_t* s, int columns, int count, const int32_t* values);
#define MATRIX(columns, ...)                                                        \
  int_matrix(s, columns, (int)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)), \
             (const int32_t[]){__VA_ARGS__})
#define INT(value) rn_const_int32(s, value)
#define REAL(value) rn_const_scalar(s, RN_DOUBLE, value)

#define SHAPES(...) .shapes = {__VA_ARGS__}
#define OPTIONS(...) __VA_ARGS__
// |options| is SHAPES(…), or OPTIONS(SHAPES(…), .low = 1 …). The rest is the expression.
#define GRAD(name, options, ...)                                      \
  static rn_edges_t build_##name(rn_scope_t* s, const rn_edge_t* x) { \
    (void)x;                                                          \
    return differences_one(__VA_ARGS__);                              \
  }                                                                   \
  Test(GRAD_SUITE, name, .timeout = 60) {                             \
    differences_check(build_##name, &(differences_t){options});       \
  }
// The same for an op with a list of outputs.
#define GRAD_LIST(name, options, ...)                                                       \
  static rn_edges_t build_##name(rn_scope_t* s, const rn_edge_t* x) { return __VA_ARGS__; } \
  Test(GRAD_SUITE, name, .timeout = 60) {                                                   \
    differences_check(build_##name, &(differences_t){options});                             \
  }

#endif  // TESTS_GRAD_DIFFERENCES_H_
