// Shared by recording (tape.c), the reverse walk and the gradient functions.
#ifndef RUNNEL_EAGER_TAPE_INTERNAL_H_
#define RUNNEL_EAGER_TAPE_INTERNAL_H_

#include "eager/internal.h"
#include "eager/tape.h"

// Identifies a value: its handle, or the variable behind it.
typedef const void* rn_tape_key_t;

// A map from keys to numbers.
typedef struct rn_tape_map_t {
  rn_allocator_t allocator;
  rn_tape_key_t* keys;  // Owned; NULL in a free slot
  int32_t* values;      // Owned
  size_t capacity, count;
} rn_tape_map_t;
void rn_tape_map_clear(rn_tape_map_t* map);
int32_t rn_tape_map_get(const rn_tape_map_t* map, rn_tape_key_t key);  // -1 if absent
RN_MUST_USE rn_status_t rn_tape_map_put(rn_tape_map_t* map, rn_tape_key_t key, int32_t value);

typedef struct rn_tape_custom_t {
  _Atomic int32_t refs;
  rn_allocator_t allocator;
  rn_eager_custom_t custom;
} rn_tape_custom_t;

// One op that ran.
typedef struct rn_tape_record_t {
  rn_eager_kernel_t* kernel;  // Retained; NULL for a custom step
  rn_tape_custom_t* custom;   // Retained
  int32_t input_count, output_count;
  rn_eager_handle_t** handles;  // Retained, in one block: inputs, then outputs
} rn_tape_record_t;

typedef RN_VEC(rn_tape_record_t) rn_tape_records_t;

struct rn_eager_tape_t {
  rn_eager_tape_t* next;  // in the context's list
  rn_eager_t* eager;      // Retained
  uint64_t thread;
  bool is_persistent, watches_variables, is_used;
  bool is_recording;
  rn_tape_map_t tracked;  // values computed from something watched
  rn_tape_records_t records;
  RN_VEC(rn_eager_handle_t*) watched;  // Retained
};

RN_MUST_USE rn_status_t rn_tape_key(rn_eager_handle_t* handle, rn_tape_key_t* out);
bool rn_tape_is_variable(rn_eager_handle_t* handle);  // call rn_tape_key on it first
void rn_tape_clear_records(rn_eager_tape_t* tape);
// Inserts |before| in front of the tape's records; the tape owns them, also on failure.
RN_MUST_USE rn_status_t rn_tape_join_records(rn_eager_tape_t* tape, rn_tape_records_t* before);

// A segment: a run of recorded ops without custom steps, in the form that its gradient's graph is
// built from. Values are numbered: leaves (read but not made by the segment) and results.
typedef struct rn_tape_value_t {
  rn_tape_key_t key;
  rn_eager_handle_t* handle;  // Borrowed from the tape
  bool is_leaf;
  bool is_setting;  // a leaf that configures an op: an axis, the size of a window
} rn_tape_value_t;

// A gradient: a dense value, or rows with their indices and the dense shape (runnel/gradients.h).
// NULL for no gradient.
typedef struct rn_tape_gradient_t {
  rn_eager_handle_t *dense, *values, *indices, *shape;
} rn_tape_gradient_t;
void rn_tape_gradient_clear(rn_tape_gradient_t* gradient);

typedef struct rn_tape_segment_t {
  rn_allocator_t allocator;
  bool keeps_slices;      // otherwise all results are dense
  rn_tape_map_t numbers;  // key -> number
  RN_VEC(rn_tape_value_t) values;
  RN_VEC(const rn_tape_record_t*) records;
  RN_VEC(int32_t) edges;           // per record: numbers of inputs, then of outputs
  RN_VEC(int32_t) ys;              // values whose gradient has arrived
  RN_VEC(rn_eager_handle_t*) dys;  // Borrowed: those gradients
  RN_VEC(int32_t) xs;              // values whose gradient is wanted
} rn_tape_segment_t;

// Computes the gradients with respect to |xs| from the gradients |dys| of the ys. |out| has
// xs.count zeroed entries; the caller owns the handles.
RN_MUST_USE rn_status_t rn_tape_run_segment(rn_eager_t* eager, const rn_tape_segment_t* segment,
                                            rn_tape_gradient_t* out);

#endif  // RUNNEL_EAGER_TAPE_INTERNAL_H_
