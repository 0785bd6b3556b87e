// Kernels that walk over a whole dataset.
#ifndef RUNNEL_KERNELS_CPU_DATASET_DRIVE_H_
#define RUNNEL_KERNELS_CPU_DATASET_DRIVE_H_

#include "kernels/cpu/dataset/data.h"

// A complete walk over a dataset on behalf of a kernel.
typedef struct rn_data_drive_t {
  rn_data_request_t request;  // first
  rn_kernel_ctx_t* ctx;
  rn_dataset_t* dataset;         // Retained
  rn_data_run_t* run;            // Retained
  rn_data_iterator_t* iterator;  // Owned
  rn_tensor_t* row;              // Owned; a state precedes it
  int32_t row_count;
  bool (*step)(struct rn_data_drive_t* drive);  // handles a reply; false if it completes later
  int phase;
  // For a reduction.
  rn_data_func_t func;
  rn_data_call_t call;
  int32_t state_count;
  bool has_element;
  void* own;  // of the kernel; |end| frees it
  rn_status_t (*end)(struct rn_data_drive_t* drive, rn_status_t status);  // NULL if nothing to do
} rn_data_drive_t;

// Starts a walk over |dataset|, with |state_count| tensors in front of the element. On failure ends
// the call and returns NULL.
rn_data_drive_t* rn_data_drive_over(rn_kernel_ctx_t* ctx, rn_dataset_t* dataset,
                                    int32_t state_count, bool (*step)(rn_data_drive_t* drive));
// The same over the dataset in input |i|.
rn_data_drive_t* rn_data_drive_begin(rn_kernel_ctx_t* ctx, int i, int32_t state_count,
                                     bool (*step)(rn_data_drive_t* drive));
// Takes steps until one has to wait or ends the walk.
void rn_data_drive_go(rn_data_drive_t* drive);
// Requests the next element into the row; for use as a step's first line. False if it comes later.
bool rn_data_drive_ask(rn_data_drive_t* drive);
// Ends the kernel's call.
void rn_data_drive_end(rn_data_drive_t* drive, rn_status_t status);

#endif  // RUNNEL_KERNELS_CPU_DATASET_DRIVE_H_
