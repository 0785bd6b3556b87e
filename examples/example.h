// What the examples share, so that each is about its model alone: the command line, one graph with
// one session, feeding and fetching arrays of C, the progress line, random numbers.
//
//   example_t e = example_open(argc, argv, "Learns the exclusive or.", 500);
//   … build in e.scope …
//   example_start(&e);
//   example_run(&e, train, FEEDS(FEED(x, points, 4, 2)), FETCHES(FETCH(loss, &value)));
//   return example_close(&e, value < 0.01f, "loss %.4f", value);
//
// What goes wrong ends the program with a message and 1.
#ifndef RUNNEL_EXAMPLES_EXAMPLE_H_
#define RUNNEL_EXAMPLES_EXAMPLE_H_

#include "runnel/runnel.h"

typedef struct example_t {
  const char* name;
  int steps;      // of training, as the command line says
  uint64_t seed;  // of everything that is random: the same seed, the same run
  TF_Graph* graph;
  rn_scope_t* scope;
  TF_Session* session;
  TF_Status* status;
  uint64_t random;  // the generator's state
  double start, last;
  int first, goal;    // the steps that were done before this run; where it ends if not at |steps|
  bool is_line_open;  // the progress line waits to be written over
} example_t;

// Reads "--steps N" and "--seed N"; "--help" says what the program does, and ends it.
example_t example_open(int argc, char** argv, const char* about, int steps);
// The graph is built: opens the session and gives all variables their first values.
void example_start(example_t* e);
// Says whether the example |reached| its bound, and by which numbers. Frees all; the exit code.
int example_close(example_t* e, bool reached, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
// "step N  numbers  steps/s", the steps of this run: on a terminal over the last such line, a few
// times a second; in a pipe or file a line per second.
void example_progress(example_t* e, int step, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
_Noreturn void example_fail(const char* what, const char* message);

// An array that is fed for an edge, and one that an edge is fetched into.
typedef struct feed_t {
  rn_edge_t edge;
  TF_DataType type;
  const void* data;
  int rank;
  int64_t dims[4];
} feed_t;
typedef struct fetch_t {
  rn_edge_t edge;
  void* data;
  size_t size;
} fetch_t;
#define COUNT_(...) (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
#define TYPE_(data) \
  _Generic((data)[0], float : TF_FLOAT, int32_t : TF_INT32, int64_t : TF_INT64, bool : TF_BOOL)
// FEED(edge, array, dimensions…), none of a scalar; FETCH(edge, pointer to what it exactly gives).
#define FEED(edge, data, ...) \
  ((feed_t){(edge), TYPE_(data), (data), COUNT_(__VA_ARGS__), {__VA_ARGS__}})
#define FETCH(edge, out) ((fetch_t){(edge), (out), sizeof *(out)})
#define FEEDS(...) ((const feed_t[]){__VA_ARGS__, {.type = 0}})
#define FETCHES(...) ((const fetch_t[]){__VA_ARGS__, {.size = 0}})

// One step: runs |target| and what the fetches need. Each of the three may be NULL.
void example_run(example_t* e, rn_node_t* target, const feed_t* feeds, const fetch_t* fetches);

// PLACEHOLDER(scope, type, dimensions…): of an array, or of a scalar; -1: any size.
#define PLACEHOLDER(scope, type, ...) \
  example_placeholder((scope), (type), (const int64_t[]){__VA_ARGS__}, COUNT_(__VA_ARGS__))
rn_edge_t example_placeholder(rn_scope_t* scope, TF_DataType type, const int64_t* dims, int rank);

// Random numbers: 0 … |below| - 1, evenly over 0 … 1, and of a bell curve.
uint32_t example_draw(example_t* e, uint32_t below);
float example_uniform(example_t* e);
float example_normal(example_t* e);
// Seed |i| of the graph's random nodes: never 0, which would mean chance.
int64_t example_seed(const example_t* e, int i);

#endif  // RUNNEL_EXAMPLES_EXAMPLE_H_
