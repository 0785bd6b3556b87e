// Non-maximum suppression: boxes by falling score, without those that overlap one before.
#include "prelude.cuh"

#include "kernels/cuda/image/nms_args.h"
#include "kernels/image_geometry.h"

// Smaller keys for higher scores. Zeros are equal, whatever their sign.
RN_KERNEL(nms_keys, rn_cuda_nms_args) {
  RN_EACH(i, args.count) {
    const float score = args.scores[i];
    u32 bits = score == 0 ? 0 : __float_as_uint(score);
    bits = bits >> 31 ? ~bits : bits | 0x80000000u;  // in the order of the scores
    args.keys[i] = score > args.least ? (i64)~bits : -1;
  }
}

// One block. It takes the best box that is left and drops those that overlap it.
RN_KERNEL(nms_select, rn_cuda_nms_args) {
  const u64 mask = ((u64)1 << args.rows.bits) - 1;
  i64 found = 0;
  for (i64 k = 0; k < args.count && found < args.most; ++k) {
    if (args.rows.keys[k] == RN_ROWS_BAD) break;
    if (args.is_out[k]) continue;
    const i64 best = (i64)(args.rows.keys[k] & mask);
    if (threadIdx.x == 0) args.out[found] = (i32)best;
    ++found;
    for (i64 j = k + 1 + threadIdx.x; j < args.count; j += RN_NMS_THREADS) {
      if (args.rows.keys[j] == RN_ROWS_BAD) break;
      const i64 other = (i64)(args.rows.keys[j] & mask);
      if (rn_boxes_overlap(args.boxes + 4 * other, args.boxes + 4 * best) > args.threshold)
        args.is_out[j] = 1;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) *args.found = (i32)found;
}
