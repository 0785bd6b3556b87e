// Shared by the examples, so that each shows only its model: the command line, one graph with one
// session, the progress line, random numbers.
//
//   example_t e = example_open(argc, argv, "Learns the exclusive or.", 500);
//   … build in e.scope …
//   example_start(&e);
//   example_run(&e, RN_TARGET(train), RN_FEED(x, points, 4, 2), RN_FETCH(loss, &value));
//   return example_close(&e, value < 0.01f, "loss %.4f", value);
//
// Any failure ends the program with a message and exit code 1.
#ifndef RUNNEL_EXAMPLES_EXAMPLE_H_
#define RUNNEL_EXAMPLES_EXAMPLE_H_

#include "runnel/runnel.h"

typedef struct example_t {
  const char* name;
  int steps;           // of training, from the command line
  uint64_t seed;       // of all random numbers: the same seed gives the same run
  const char* device;  // "cpu", "gpu", or NULL: a GPU if there is one
  rn_scope_t* scope;
  TF_Session* session;
  TF_Status* status;
  uint64_t random;  // the generator's state
  double start, last;
  int first, goal;    // steps done before this run; the last step if not |steps|
  bool is_line_open;  // the progress line will be overwritten
} example_t;

// Reads "--steps N", "--seed N" and "--device D"; "--help" prints what the program does and exits.
example_t example_open(int argc, char** argv, const char* about, int steps);
// For an option of one program, before example_open: the word after |option|, which is then taken
// out of the arguments; |standard| if it is not given.
const char* example_option(int* argc, char** argv, const char* option, const char* standard);
// Call when the graph is built: opens the session and initializes all variables.
void example_start(example_t* e);
// Prints whether the example |reached| its goal, with the numbers. Frees everything; returns the
// exit code.
int example_close(example_t* e, bool reached, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
// "step N  numbers  steps/s", for the steps of this run. On a terminal, overwrites the line a few
// times per second; in a pipe or file, prints one line per second.
void example_progress(example_t* e, int step, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
_Noreturn void example_fail(const char* what, const char* message);
// Fails if |e->status| is an error.
void example_check(const example_t* e, const char* what);

// One step with the arguments of rn_run (runnel/run.h).
#define example_run(e, ...) \
  (rn_run((e)->session, (e)->status, __VA_ARGS__) ? (void)0 : example_check((e), "a step"))

// Random numbers: integers 0 … |below| - 1, uniform in 0 … 1, and normal.
uint32_t example_draw(example_t* e, uint32_t below);
float example_uniform(example_t* e);
float example_normal(example_t* e);
// Seed |i| for the graph's random nodes; never 0, which would mean a random seed.
int64_t example_seed(const example_t* e, int i);

#endif  // RUNNEL_EXAMPLES_EXAMPLE_H_
