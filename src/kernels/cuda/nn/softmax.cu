// SparseSoftmaxCrossEntropyWithLogits. Rows are shifted by their maximum, so that exp cannot
// overflow. 16-bit floats are computed as float.
#include "prelude.cuh"

#include "nn/softmax_args.h"

template <typename S>
RN_DEVICE S over_warp(S value, bool is_max) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) {
    S other = __shfl_xor_sync(0xffffffffu, value, mask);
    value = is_max ? (other > value ? other : value) : value + other;
  }
  return value;
}

// The same over a block of up to 1024 threads; |shared| has a place per warp.
template <typename S>
RN_DEVICE S over_block(S value, bool is_max, S start, S* shared) {
  value = over_warp(value, is_max);
  __syncthreads();  // the last use of |shared| is over
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  u32 lane = threadIdx.x % 32;
  return over_warp(lane < blockDim.x / 32 ? shared[lane] : start, is_max);
}

RN_DEVICE i64 label_of(const softmax_args& args, i64 row) {
  return args.has_wide_labels ? static_cast<const i64*>(args.labels)[row]
                              : static_cast<const i32*>(args.labels)[row];
}

template <typename S>
RN_DEVICE S not_a_number() {
  return S(rn_float_from_bits(0x7fc00000u));
}
template <typename S>
RN_DEVICE S least() {
  return S(rn_float_from_bits(0xff800000u));
}

// One warp per row, whose logits stay in registers.
template <typename T>
RN_DEVICE void by_warps(const softmax_args& args) {
  typedef typename rn_sum_of<T>::type S;
  const i64 warps = (i64)gridDim.x * (blockDim.x / 32), columns = args.columns;
  const i64 lane = threadIdx.x % 32;
  for (i64 row = rn_thread() / 32; row < args.rows; row += warps) {
    const T* x = static_cast<const T*>(args.logits) + row * columns;
    T* gradient = static_cast<T*>(args.gradient) + row * columns;
    const i64 label = label_of(args, row);
    const bool is_class = label >= 0 && label < columns;
    S kept[SOFTMAX_KEPT], top = least<S>(), sum = 0, chosen = 0;
#pragma unroll
    for (int k = 0; k < SOFTMAX_KEPT; ++k) {
      const i64 c = lane + 32 * k;
      if (c >= columns) break;
      kept[k] = S(x[c]);
      top = kept[k] > top ? kept[k] : top;
    }
    top = over_warp(top, true);
#pragma unroll
    for (int k = 0; k < SOFTMAX_KEPT; ++k) {
      const i64 c = lane + 32 * k;
      if (c >= columns) break;
      if (c == label) chosen = kept[k] - top;
      kept[k] = exp(kept[k] - top);
      sum += kept[k];
    }
    sum = over_warp(sum, false);
    chosen = over_warp(chosen, false);
    const S scale = 1 / sum;
#pragma unroll
    for (int k = 0; k < SOFTMAX_KEPT; ++k) {
      const i64 c = lane + 32 * k;
      if (c >= columns) break;
      gradient[c] = T(is_class ? kept[k] * scale - S(c == label) : not_a_number<S>());
    }
    if (lane == 0)
      static_cast<T*>(args.loss)[row] = T(is_class ? log(sum) - chosen : not_a_number<S>());
  }
}

// One block per row, which is read three times.
template <typename T>
RN_DEVICE void by_blocks(const softmax_args& args) {
  typedef typename rn_sum_of<T>::type S;
  __shared__ S shared[32];
  const i64 columns = args.columns;
  for (i64 row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const T* x = static_cast<const T*>(args.logits) + row * columns;
    T* gradient = static_cast<T*>(args.gradient) + row * columns;
    const i64 label = label_of(args, row);
    const bool is_class = label >= 0 && label < columns;
    S top = least<S>(), sum = 0;
    for (i64 c = threadIdx.x; c < columns; c += blockDim.x) top = S(x[c]) > top ? S(x[c]) : top;
    top = over_block(top, true, least<S>(), shared);
    for (i64 c = threadIdx.x; c < columns; c += blockDim.x) sum += exp(S(x[c]) - top);
    sum = over_block(sum, false, S(0), shared);
    const S scale = 1 / sum;
    for (i64 c = threadIdx.x; c < columns; c += blockDim.x)
      gradient[c] = T(is_class ? exp(S(x[c]) - top) * scale - S(c == label) : not_a_number<S>());
    if (threadIdx.x == 0)
      static_cast<T*>(args.loss)[row] =
          T(is_class ? log(sum) - (S(x[label]) - top) : not_a_number<S>());
  }
}

// Logits that a thread has under way at a time, to keep the memory busy.
#define SOFTMAX_BATCH 8

// One block per row, which is read once: each thread keeps the largest logit that it has seen and
// the sum of exponentials less that. The block then brings all sums to one maximum.
template <typename T>
RN_DEVICE void rows(const softmax_rows_args& rows_args) {
  __shared__ float shared[32];
  const softmax_args& args = rows_args.of;
  const i64 columns = args.columns;
  for (i64 row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const T* x = static_cast<const T*>(args.logits) + row * columns;
    float own = least<float>(), sum = 0;
    for (i64 c = threadIdx.x; c < columns; c += SOFTMAX_BATCH * (i64)blockDim.x) {
      float batch[SOFTMAX_BATCH], before = own;
#pragma unroll
      for (int k = 0; k < SOFTMAX_BATCH; ++k) {
        const i64 at = c + k * (i64)blockDim.x;
        batch[k] = at < columns ? float(x[at]) : least<float>();
      }
#pragma unroll
      for (int k = 0; k < SOFTMAX_BATCH; ++k) own = batch[k] > own ? batch[k] : own;
      if (own > before) sum *= exp(before - own);
      // Where all were minus infinity so far, the difference has no meaning, unless one is NaN.
#pragma unroll
      for (int k = 0; k < SOFTMAX_BATCH; ++k)
        if (own > least<float>() || batch[k] != batch[k]) sum += exp(batch[k] - own);
    }
    const float top = over_block(own, true, least<float>(), shared);
    if (own > least<float>()) sum *= exp(own - top);
    sum = over_block(sum, false, 0.0f, shared);
    if (threadIdx.x != 0) continue;
    const i64 label = label_of(args, row);
    const bool is_fine = label >= 0 && label < columns && top < -least<float>();
    const float log_sum = is_fine ? top + log(sum) : not_a_number<float>();
    static_cast<float*>(args.loss)[row] = is_fine ? log_sum - float(x[label]) : log_sum;
    rows_args.log_sum[row] = log_sum;
    rows_args.label[row] = float(label);
  }
}

#define ROWS(T, name) \
  RN_KERNEL(sparse_rows_##name, softmax_rows_args) { rows<T>(args); }
ROWS(float, f32)
ROWS(rn_half, f16)
ROWS(rn_bfloat16, bf16)

#define KERNELS(T, name)                                                  \
  RN_KERNEL(sparse_by_warps_##name, softmax_args) { by_warps<T>(args); } \
  RN_KERNEL(sparse_by_blocks_##name, softmax_args) { by_blocks<T>(args); }
KERNELS(float, f32)
KERNELS(double, f64)
KERNELS(rn_half, f16)
KERNELS(rn_bfloat16, bf16)
