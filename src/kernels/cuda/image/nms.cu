// Non-maximum suppression: boxes by falling score, without those that overlap one before.
#include "prelude.cuh"

#include "kernels/cuda/image/nms_args.h"

// Smaller keys for higher scores. Zeros are equal, whatever their sign.
RN_KERNEL(nms_keys, rn_cuda_nms_args) {
  RN_EACH(i, args.count) {
    const float score = args.scores[i];
    u32 bits = score == 0 ? 0 : __float_as_uint(score);
    bits = bits >> 31 ? ~bits : bits | 0x80000000u;  // in the order of the scores
    args.keys[i] = score > args.least ? (i64)~bits : -1;
  }
}

// The smaller and the larger of two numbers; the first if they are unordered.
RN_DEVICE float lower(float a, float b) { return b < a ? b : a; }
RN_DEVICE float higher(float a, float b) { return a < b ? b : a; }

RN_DEVICE float overlap(const float* a, const float* b) {
  float ay0 = lower(a[0], a[2]), ay1 = higher(a[0], a[2]);
  float ax0 = lower(a[1], a[3]), ax1 = higher(a[1], a[3]);
  float by0 = lower(b[0], b[2]), by1 = higher(b[0], b[2]);
  float bx0 = lower(b[1], b[3]), bx1 = higher(b[1], b[3]);
  float area_a = (ay1 - ay0) * (ax1 - ax0), area_b = (by1 - by0) * (bx1 - bx0);
  if (area_a <= 0 || area_b <= 0) return 0;
  float height = higher(lower(ay1, by1) - higher(ay0, by0), 0);
  float width = higher(lower(ax1, bx1) - higher(ax0, bx0), 0);
  return height * width / (area_a + area_b - height * width);
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
      if (overlap(args.boxes + 4 * other, args.boxes + 4 * best) > args.threshold)
        args.is_out[j] = 1;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) *args.found = (i32)found;
}
