// The bench client's harness: what a case is, and how a step is timed.
//
// The client is one program on the plain TensorFlow C API. It is built against stock TensorFlow and
// against Runnel from the same source, so a ratio of two figures compares the libraries and nothing
// else. Every case checks its answer: a library that computes a wrong result gets no figure.
#ifndef BENCH_BENCH_H_
#define BENCH_BENCH_H_

#include <stddef.h>

// How long to measure. Shared read-only by every case.
typedef struct {
  double seconds;  // Length of one timed batch.
  int batches;     // Batches; the best one counts.
} bench_options_t;

// A case measures one figure. |a| and |b| are the parameters of its row.
typedef struct {
  const char* name;
  const char* unit;
  double (*run)(const bench_options_t* options, int a, int b);
  int a;
  int b;
} bench_case_t;

// The rows of each theme; a row without a name ends the list.
extern const bench_case_t bench_dispatch_cases[];
extern const bench_case_t bench_dense_cases[];
extern const bench_case_t bench_train_cases[];
extern const bench_case_t bench_model_cases[];
extern const bench_case_t bench_saved_model_cases[];
extern const bench_case_t bench_graph_cases[];
extern const bench_case_t bench_data_cases[];
extern const bench_case_t bench_parse_cases[];
extern const bench_case_t bench_files_cases[];
extern const bench_case_t bench_process_cases[];
extern const bench_case_t bench_machine_cases[];

// Monotonic seconds.
double bench_now(void);

// Calls of |step| per second: warms up, then times batches and takes the best.
double bench_rate(const bench_options_t* options, void (*step)(void* context), void* context);

// Calls |sample| at least three times and until the time of the batches is used up; returns the
// shortest time in seconds. For work whose set-up must not be timed.
double bench_shortest(const bench_options_t* options, double (*sample)(void* context),
                      void* context);

// A size from /proc/self/status, such as VmRSS, in megabytes.
double bench_status_megabytes(const char* field);

// The memory bandwidth of two threads in GB/s: a = b * s + c over arrays larger than the caches.
double bench_memory_rate(const bench_options_t* options);

// Prints |format| to stderr and exits with status 1: a case that fails has no figure.
__attribute__((noreturn, format(printf, 1, 2))) void bench_fail(const char* format, ...);

// Fails the case unless |actual| is within |relative| of |expected| (a NaN never is).
void bench_expect(const char* what, double actual, double expected, double relative);

#endif  // BENCH_BENCH_H_
