// Arguments of attention.cu.
#ifndef RUNNEL_KERNELS_CUDA_NN_ATTENTION_ARGS_H_
#define RUNNEL_KERNELS_CUDA_NN_ATTENTION_ARGS_H_

#define RN_ATTENTION_THREADS 128

// What a mask does to a score.
#define RN_MASK_NONE 0
#define RN_MASK_CAUSAL 1  // keys after the query are left out
#define RN_MASK_BOOL 2    // where it is false, the score is -infinity
#define RN_MASK_ADD 3     // it is added, of the operands' type

// One matrix per head: element (row, d) of head z is at z / heads * batch + z % heads * head +
// row * row_step + d.
struct rn_attention_side {
  void* data;
  i64 batch, head, row_step;
};

// y = softmax(scale q k^T, masked) v, for every head.
struct attention_args {
  struct rn_attention_side q, k, v, y, dy, dq, dk, dv;
  float* sums;    // per query: the logarithm to base 2 of the sum of its exponentials
  float* deltas;  // per query: the product of y and dy
  const void* mask;
  i64 mask_batch, mask_query, mask_key;  // steps of the mask; head z has matrix z / mask_heads
  i32 mask_heads, mask_kind;
  i32 heads;          // per batch
  i32 queries, keys;  // rows of q and of k
  i32 depth;
  i32 tiles;  // per head
  float scale;
  i32 is_vector;  // all rows can be read by four elements at a time
};

#endif  // RUNNEL_KERNELS_CUDA_NN_ATTENTION_ARGS_H_
