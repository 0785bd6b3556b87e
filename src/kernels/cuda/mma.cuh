// Products of small matrices by tensor cores: C += A B with A 16 x 8, B 8 x 8, C 16 x 8, by one
// warp, in TF32.
//
// Which elements a lane holds, with g = lane / 4 and t = lane % 4:
//   A: (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)
//   B: (t, g), (t + 4, g)
//   C: (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1)
// All lanes of the warp must call.
#ifndef RUNNEL_KERNELS_CUDA_MMA_CUH_
#define RUNNEL_KERNELS_CUDA_MMA_CUH_

#ifdef RN_EMULATED
// The lanes show each other what they hold. Floats keep their precision.
RN_DEVICE float rn_tf32(float x) { return x; }

RN_DEVICE void rn_mma(float (&c)[4], const float (&a)[4], const float (&b)[2]) {
  __shared__ float held[32][32][6];
  const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
  const int g = lane / 4, t = lane % 4;
  for (int i = 0; i < 4; ++i) held[warp][lane][i] = a[i];
  for (int i = 0; i < 2; ++i) held[warp][lane][4 + i] = b[i];
  __syncwarp();
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 8; ++k)
      c[i] += held[warp][g * 4 + k % 4][i / 2 + k / 4 * 2] *
              held[warp][(2 * t + i % 2) * 4 + k % 4][4 + k / 4];
  __syncwarp();
}
#else
// Rounded to the nearest number with 10 bits behind the point.
RN_DEVICE float rn_tf32(float x) {
  u32 bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return rn_float_from_bits(bits);
}

RN_DEVICE void rn_mma(float (&c)[4], const float (&a)[4], const float (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(rn_float_bits(a[0])), "r"(rn_float_bits(a[1])), "r"(rn_float_bits(a[2])),
        "r"(rn_float_bits(a[3])), "r"(rn_float_bits(b[0])), "r"(rn_float_bits(b[1])));
}
#endif

// The same with nearly the precision of floats: each operand is the sum of two numbers.
RN_DEVICE void rn_mma_exact(float (&c)[4], const float (&a)[4], const float (&b)[2]) {
  float a_high[4], a_low[4], b_high[2], b_low[2];
  for (int i = 0; i < 4; ++i) {
    a_high[i] = rn_tf32(a[i]);
    a_low[i] = rn_tf32(a[i] - a_high[i]);
  }
  for (int i = 0; i < 2; ++i) {
    b_high[i] = rn_tf32(b[i]);
    b_low[i] = rn_tf32(b[i] - b_high[i]);
  }
  rn_mma(c, a_low, b_high);
  rn_mma(c, a_high, b_low);
  rn_mma(c, a_high, b_high);
}

#endif  // RUNNEL_KERNELS_CUDA_MMA_CUH_
