// Arguments of the kernels of nms.cu.
#ifndef RUNNEL_KERNELS_CUDA_IMAGE_NMS_ARGS_H_
#define RUNNEL_KERNELS_CUDA_IMAGE_NMS_ARGS_H_

#include "kernels/cuda/state/rows_args.h"

#define RN_NMS_THREADS 512
#define RN_NMS_KEYS (1ll << 32)  // keys of scores are below this

typedef struct rn_cuda_nms_args {
  struct rn_rows_args rows;  // the boxes by falling score
  const float *boxes, *scores;
  i64* keys;              // of the scores; -1: too low
  unsigned char* is_out;  // by place in |rows|: overlaps a selected box
  i32 *out, *found;       // the selected boxes, and how many
  i64 count, most;
  float threshold, least;
} rn_cuda_nms_args;

#endif  // RUNNEL_KERNELS_CUDA_IMAGE_NMS_ARGS_H_
