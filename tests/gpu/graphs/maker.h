// Random graphs: what is being built, and the pieces that the makers of ops share.
//
// A graph is drawn from a seed. Drawn twice, once for the CPU alone, the same numbers give the same
// nodes on other devices.
//
// Two right results of floats differ in their last bits. Every value has a bound on its elements
// and one on that difference, and an op computes both from those of its operands. Ops with jumps
// (comparisons, indices, conditions) take integers only, which are exact.
#ifndef RUNNEL_TESTS_GPU_GRAPHS_MAKER_H_
#define RUNNEL_TESTS_GPU_GRAPHS_MAKER_H_

#include "graph/graph.h"
#include "runnel/ops.h"

#define BATCH (-7)  // a dimension that differs from step to step
enum {
  MOST_BATCH = 9,
  MOST_RANK = 4,
  MOST_VALUES = 128,
  MOST_FEEDS = 8,
  MOST_VARIABLES = 4,
  MOST_ELEMENTS = 2000,
  STEPS = 9,
};

typedef struct value_t {
  rn_edge_t edge;
  rn_dtype_t dtype;
  int rank;
  int64_t dims[MOST_RANK];
  double most;      // no element is larger
  double error;     // how far two right results may be apart
  bool is_changed;  // depends on a variable
} value_t;

typedef struct variable_t {
  rn_edge_t handle;
  rn_edge_t slots[2];  // variables of optimizers
  rn_node_t* slot_firsts[2];
  value_t value;
  rn_node_t *first, *update;  // sets the first value; what each step does to it, or NULL
} variable_t;

typedef struct maker_t {
  rn_scope_t* s;
  uint64_t random;
  bool on_cpu;     // every node is on the CPU
  int depth;       // of conditionals, loops and functions
  int made;        // functions, frames: for their names
  int feed_count;  // the first values are feeds
  int count;
  value_t values[MOST_VALUES];
  int variable_count;
  variable_t variables[MOST_VARIABLES];
} maker_t;

// Random numbers.
uint32_t draw(maker_t* m, uint32_t below);
bool chance(maker_t* m, uint32_t percent);

// The next nodes get a random device.
void place(maker_t* m);

// Begins a node with these inputs, which the next lines may give attributes.
void start_node(maker_t* m, const char* op, const rn_edge_t* inputs, size_t count);
#define NODE(m, op, ...)                            \
  start_node((m), (op), (rn_edge_t[]){__VA_ARGS__}, \
             sizeof((rn_edge_t[]){__VA_ARGS__}) / sizeof(rn_edge_t))
rn_edge_t end_node(maker_t* m);  // its first output
// Nodes with one output.
rn_edge_t node1(maker_t* m, const char* op, rn_edge_t a);
rn_edge_t node2(maker_t* m, const char* op, rn_edge_t a, rn_edge_t b);
// Constants.
rn_edge_t number(maker_t* m, rn_dtype_t dtype, double value);
rn_edge_t ints(maker_t* m, const int64_t* values, int count);  // int32
// Random elements: floats between -1 and 1, integers from -9 to 9.
value_t constant(maker_t* m, rn_dtype_t dtype, int rank, const int64_t* dims);

// Types.
enum { FLOATS = 1, DOUBLES = 2, HALVES = 4, INTS = 8, BOOLS = 16, REALS = 3, NUMBERS = 15 };
bool is_of(rn_dtype_t dtype, int kinds);
double unit_of(rn_dtype_t dtype);  // the error of one operation on 1; 0 for integers

// A random value of one of |kinds| with a rank in [least, most]; NULL if there is none.
const value_t* pick(maker_t* m, int kinds, int least_rank, int most_rank);
int64_t size_at(const value_t* v, int axis);  // at most
int64_t elements(const value_t* v);           // at most
bool is_same_shape(const value_t* a, const value_t* b);
// |a| and |b| broadcast to |out|'s shape.
bool broadcasts(const value_t* a, const value_t* b, value_t* out);
// The integers of |v| in [0, below).
rn_edge_t in_range(maker_t* m, const value_t* v, int64_t below);

// Adds a value; scales floats that would grow too large, and takes large integers' remainders.
// False if it has too many elements: then it is not added.
bool put(maker_t* m, value_t v);
// |v| with |edge| and bounds: one result of an op.
value_t result(const value_t* v, rn_edge_t edge, double most, double error);

// Ops. A maker adds nodes and a value or more; false if there are no operands for it.
typedef bool (*make_t)(maker_t* m);
typedef struct choice_t {
  int weight;
  make_t make;
} choice_t;
bool make_one(maker_t* m, const choice_t* choices, int count);
extern const choice_t element_choices[], array_choices[], dense_choices[], net_choices[],
    flow_choices[];
extern const int element_choice_count, array_choice_count, dense_choice_count, net_choice_count,
    flow_choice_count;
// Ops that keep shape and type: |v| after one of them.
value_t keep_shape(maker_t* m, value_t v);
// Makes variables, and later their updates.
void make_variables(maker_t* m);
void make_updates(maker_t* m);

// The whole graph of |seed|.
void make_graph(maker_t* m, rn_scope_t* s, uint64_t seed, bool on_cpu);

#endif  // RUNNEL_TESTS_GPU_GRAPHS_MAKER_H_
