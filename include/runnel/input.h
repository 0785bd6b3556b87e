// Input through queues in the graph: file names, readers and batches, filled by threads beside the
// training loop.
//
//   const char* files[] = {"a.tfrecord", "b.tfrecord"};
//   rn_edge_t names = rn_string_input_producer(s, files, 2, .num_epochs = 3);
//   rn_ReaderReadV2_out_t record = rn_ReaderReadV2(s, rn_TFRecordReaderV2(s), names);
//   … rn_ParseSingleExample or rn_DecodeRaw of record.value …
//   rn_edges_t batch = rn_shuffle_batch(s, features, 2, 32, .min_after_dequeue = 1000);
//   … a model over rn_edge_at(batch, 0) …
//   … run the initialiser of RN_LOCAL_VARIABLES, which hold the epochs …
//   rn_start_queue_runners(session, graph, coordinator);   (runnel/coordinator.h)
//
// The builders add queue runners to the graph. When the epochs are used up, the last dequeue gets
// the rest and the next one OUT_OF_RANGE, which ends the loop. The scope keeps errors.
#ifndef RUNNEL_INPUT_H_
#define RUNNEL_INPUT_H_

#include "runnel/coordinator.h"
#include "runnel/variables.h"

#ifdef __cplusplus
extern "C" {
#endif

// A constant vector of strings; a scalar if |count| is negative.
RN_API rn_edge_t rn_const_strings(rn_scope_t* scope, const char* const* values, int count);

// |tensor|, which can be read |epochs| times; after that, OUT_OF_RANGE. Counts in a variable of
// RN_LOCAL_VARIABLES called "epochs".
RN_API rn_edge_t rn_limit_epochs(rn_scope_t* scope, rn_edge_t tensor, int64_t epochs);

typedef struct rn_producer_options_t {
  const char* name;
  int64_t num_epochs;  // 0: unlimited
  bool in_order;       // do not shuffle in every epoch
  int64_t seed;        // of the order; 0: random
  int64_t capacity;    // of the queue; 0: 32
  const char* shared_name;
  char unused_;  // last, for initializers in C++
} rn_producer_options_t;

// A queue of the rows of |tensor|, filled by a queue runner.
RN_API rn_edge_t rn_input_producer_(rn_scope_t* scope, rn_edge_t tensor,
                                    rn_producer_options_t options);
#define rn_input_producer(scope, ...) \
  rn_input_producer_((scope), RN_OPTIONS_(rn_producer_options_t, __VA_ARGS__, .unused_ = 0))
// A queue of strings, such as file names for readers.
RN_API rn_edge_t rn_string_input_producer_(rn_scope_t* scope, const char* const* strings, int count,
                                           rn_producer_options_t options);
#define rn_string_input_producer(scope, strings, ...) \
  rn_string_input_producer_((scope), (strings),       \
                            RN_OPTIONS_(rn_producer_options_t, __VA_ARGS__, .unused_ = 0))
// A queue of the int32 numbers below |limit|.
RN_API rn_edge_t rn_range_input_producer_(rn_scope_t* scope, int32_t limit,
                                          rn_producer_options_t options);
#define rn_range_input_producer(scope, ...) \
  rn_range_input_producer_((scope), RN_OPTIONS_(rn_producer_options_t, __VA_ARGS__, .unused_ = 0))

typedef struct rn_batch_options_t {
  const char* name;
  int threads;                     // that fill the queue; 0: 1. Joins have one per list
  int64_t capacity;                // of the queue; 0: 32, for shuffles 3 batches and the reserve
  int64_t min_after_dequeue;       // the reserve of a shuffle
  int64_t seed;                    // of a shuffle; 0: random
  bool enqueue_many;               // tensors have several elements along their first dimension
  bool dynamic_pad;                // pad elements to the longest of a batch
  bool allow_smaller_final_batch;  // the rest is a smaller batch
  const char* shared_name;
  char unused_;  // last, for initializers in C++
} rn_batch_options_t;

// Batches of |batch_size| elements of the |count| tensors, in order of arrival: the outputs of one
// dequeue. Shapes must be known, unless dynamic_pad is set.
RN_API rn_edges_t rn_batch_(rn_scope_t* scope, const rn_edge_t* tensors, int count, int batch_size,
                            rn_batch_options_t options);
#define rn_batch(scope, tensors, count, ...) \
  rn_batch_((scope), (tensors), (count), RN_OPTIONS_(rn_batch_options_t, __VA_ARGS__, .unused_ = 0))
// The same in random order.
RN_API rn_edges_t rn_shuffle_batch_(rn_scope_t* scope, const rn_edge_t* tensors, int count,
                                    int batch_size, rn_batch_options_t options);
#define rn_shuffle_batch(scope, tensors, count, ...) \
  rn_shuffle_batch_((scope), (tensors), (count),     \
                    RN_OPTIONS_(rn_batch_options_t, __VA_ARGS__, .unused_ = 0))
// The same for several lists of tensors, one after the other in |tensors|, each with its own
// thread, so that several readers work at the same time.
RN_API rn_edges_t rn_batch_join_(rn_scope_t* scope, const rn_edge_t* tensors, int lists, int count,
                                 int batch_size, rn_batch_options_t options);
#define rn_batch_join(scope, tensors, lists, count, ...) \
  rn_batch_join_((scope), (tensors), (lists), (count),   \
                 RN_OPTIONS_(rn_batch_options_t, __VA_ARGS__, .unused_ = 0))
RN_API rn_edges_t rn_shuffle_batch_join_(rn_scope_t* scope, const rn_edge_t* tensors, int lists,
                                         int count, int batch_size, rn_batch_options_t options);
#define rn_shuffle_batch_join(scope, tensors, lists, count, ...) \
  rn_shuffle_batch_join_((scope), (tensors), (lists), (count),   \
                         RN_OPTIONS_(rn_batch_options_t, __VA_ARGS__, .unused_ = 0))

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // RUNNEL_INPUT_H_
