// Kernels that the tests of the emulator launch. nvcc compiles them, too.
#include "prelude.cuh"

#include "emulator_test.h"

RN_KERNEL(add_f32, add_args) { RN_EACH(i, args.n) args.z[i] = args.x[i] + args.y[i]; }

// Sums in a warp by shuffles, then over the warps through shared memory.
RN_KERNEL(sum_i32, sum_args) {
  __shared__ int partial[32];
  int sum = 0;
  RN_EACH(i, args.n) sum += args.x[i];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (threadIdx.x == 0) args.sums[blockIdx.x] = sum;
}

// A sum over dynamic shared memory, with a barrier per halving.
RN_KERNEL(tree_i32, sum_args) {
  RN_SHARED(int, values);
  i64 i = rn_thread();
  values[threadIdx.x] = i < args.n ? args.x[i] : 0;
  for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) values[threadIdx.x] += values[threadIdx.x + half];
  }
  if (threadIdx.x == 0) args.sums[blockIdx.x] = values[0];
}

// Threads beyond n end at once; the others meet at barriers without them.
RN_KERNEL(early_exit, out_args) {
  if (rn_thread() >= args.n) return;
  atomicAdd(&args.out[0], 1u);
  __syncthreads();
  args.out[1 + rn_thread()] = args.out[0] + (u32)__syncthreads_count(threadIdx.x % 2 == 0);
}

// What each lane of a warp of 32 gets from every kind of exchange: 12 numbers per lane.
RN_KERNEL(exchanges, out_args) {
  u32 lane = threadIdx.x, full = 0xffffffffu;
  u32* out = args.out + 12 * lane;
  out[0] = __shfl_sync(full, lane, 5);
  out[1] = __shfl_sync(full, lane, 9, 8);
  out[2] = __shfl_up_sync(full, lane, 3, 16);
  out[3] = __shfl_down_sync(full, lane, 3, 16);
  out[4] = __shfl_xor_sync(full, lane, 17);
  out[5] = __ballot_sync(full, lane % 3 == 0);
  out[6] = (u32)__any_sync(full, lane == 7) + 2 * (u32)__all_sync(full, lane != 7);
  out[7] = __reduce_add_sync(full, lane);
  out[8] = (u32)__reduce_min_sync(full, (int)lane - 16);
  out[9] = __match_any_sync(full, lane / 4);
  // Two halves of the warp go their own ways.
  if (lane < 16) {
    out[10] = (u32)__shfl_sync(0xffffu, (double)lane, 15);
  } else {
    out[10] = (u32)__shfl_sync(0xffff0000u, (i64)lane << 32, 16) + (u32)(__activemask() != 0);
  }
  __syncwarp();
  out[11] = args.out[12 * (31 - lane) + 10];
}

// Half of the threads wait for the others, which wait for somebody else.
RN_KERNEL(stuck, out_args) {
  if (threadIdx.x % 2 == 0) {
    __syncthreads();
  } else {
    __syncwarp(0xffffffffu);
  }
  args.out[threadIdx.x] = 1;
}

RN_KERNEL(traps, out_args) {
  __syncthreads();
  if (threadIdx.x == 3) __trap();
  args.out[threadIdx.x] = 1;
}

// Indexes of three dimensions.
RN_KERNEL(indexes, out_args) {
  u32 block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  u32 thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  u32 i = block * blockDim.x * blockDim.y * blockDim.z + thread;
  if (i < args.n) args.out[i] = i + 1;
}

// Writes one element too many.
RN_KERNEL(overrun, out_args) {
  RN_EACH(i, args.n + 1) args.out[i] = 1;
}

RN_KERNEL(convert, convert_args) {
  RN_EACH(i, args.n) {
    float x = args.x[i];
    args.half[i] = rn_half(x).bits;
    args.bfloat16[i] = rn_bfloat16(x).bits;
    args.from_half[i] = rn_half(x);
    args.math[i] = erfinv(erff(exp(-x * x))) + rsqrtf(1 + fabsf(x)) + max(x, -x) + __expf(0.0f);
  }
}

// Intrinsics and atomics, one number each.
RN_KERNEL(intrinsics, out_args) {
  u32* out = args.out;
  out[0] = (u32)__popc(0xf0f0u) + (u32)__popcll(~0ull) * 100;
  out[1] = (u32)__clz(1) + (u32)__clz(0) * 100 + (u32)__clzll(1) * 10000;
  out[2] = (u32)__ffs(8) + (u32)__ffs(0) * 100 + (u32)__ffsll(1ll << 40) * 10000;
  out[3] = __brev(1);
  out[4] = __umulhi(0x80000000u, 6);
  out[5] = __byte_perm(0x33221100u, 0x77665544u, 0x7430);
  out[6] = __funnelshift_l(0x80000000u, 1, 1);
  out[7] = (u32)__float2int_rn(2.5f) + (u32)(__float2int_rz(1e20f) == 2147483647);
  out[8] = __float_as_uint(__uint_as_float(0x40490fdbu));
  out[9] = 5;
  out[10] = atomicMax(&out[9], 9u);
  out[10] += atomicCAS(&out[9], 9u, 4u) * 10;
  out[10] += atomicExch(&out[9], 8u) * 100;
  out[11] = atomicInc(&out[9], 8u);
  float4 four = make_float4(1, 2, 3, 4);
  out[12] = (u32)(four.x + four.w) + (u32)sizeof(double2) * 100;
  out[13] = (u32)(u64)__umul64hi(1ull << 63, 6);
  out[14] = (u32)min(3, 7) + (u32)max(2.5f, 1.0f) * 10 + (u32)abs(-4) * 100;
}
