// Arguments of cast_many.cu.
#ifndef RUNNEL_KERNELS_CUDA_MATH_CAST_MANY_ARGS_H_
#define RUNNEL_KERNELS_CUDA_MATH_CAST_MANY_ARGS_H_

#define RN_CAST_ENTRIES 120  // so that the struct stays below the 4 KB that a kernel may be given
#define RN_CAST_CHUNK 4096   // elements that a block casts at a time

typedef struct cast_entry {
  i64 chunk;  // its first one
  i64 count;  // elements
  const float* from;
  void* to;
} cast_entry;

typedef struct cast_many_args {
  i32 count;   // entries
  i32 chunks;  // of all
  cast_entry entries[RN_CAST_ENTRIES];
} cast_many_args;

#endif  // RUNNEL_KERNELS_CUDA_MATH_CAST_MANY_ARGS_H_
