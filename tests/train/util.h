// Helpers of the training library's tests: a graph with a session, and values as doubles.
#ifndef RUNNEL_TESTS_TRAIN_UTIL_H_
#define RUNNEL_TESTS_TRAIN_UTIL_H_

#include "runnel/runnel.h"

typedef struct trial_t {
  TF_Graph* graph;
  TF_Status* status;
  TF_Session* session;  // made at the first run
  rn_scope_t* s;
} trial_t;

trial_t trial_open(void);
void trial_close(trial_t* t);
// Fails the test, with the message, if the scope has an error.
void trial_built(trial_t* t);

TF_Tensor* tensor_of(TF_DataType dtype, const int64_t* dims, int rank, const void* data);
TF_Tensor* tensor_floats(const float* data, int64_t rows, int64_t columns);  // columns 0: a vector

// Runs |target| (NULL: nothing) with |feeds| fed; fails the test on an error.
void trial_run(trial_t* t, rn_node_t* target, const rn_edge_t* feeds, TF_Tensor* const* values,
               int feed_count);
// Fetches |edge| as doubles: at most |max|; how many there are.
int trial_fetch(trial_t* t, rn_edge_t edge, const rn_edge_t* feeds, TF_Tensor* const* values,
                int feed_count, double* out, int max);
double trial_scalar(trial_t* t, rn_edge_t edge);
// Gives all variables their first values.
void trial_init(trial_t* t);

// |got| is |want| up to |tolerance| times the larger of 1 and |want|.
void expect_close(const char* what, int i, double got, double want, double tolerance);

// sin(k (n + 1)) as a constant of floats; |columns| 0: a vector.
rn_edge_t wave(rn_scope_t* s, int rows, int columns, double k);
void wave_into(float* out, int count, double k);
// What stock computed (values.txt, recorded by record_values.py) for |name|.
int recorded(const char* name, double* out, int max);
// The value of |edge| is the recorded one.
void expect_recorded(trial_t* t, const char* name, rn_edge_t edge, double tolerance);

#endif  // RUNNEL_TESTS_TRAIN_UTIL_H_
