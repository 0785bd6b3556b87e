// What an emulated image (a kernel file compiled for the host) and the emulated driver know of each
// other. C for the driver, C++ for the image.
//
// An image is a shared object that exports:
//   rn_emulated_image_t* rn_emulated_image(void)   where the driver says which thread runs
//   void NAME(const void* args)                    one thread of the kernel NAME
//   const unsigned NAME_args_size                  size of the kernel's struct of arguments
#ifndef RUNNEL_TESTS_GPU_EMULATOR_IMAGE_H_
#define RUNNEL_TESTS_GPU_EMULATOR_IMAGE_H_

#define RN_EMULATED_WARP 32

typedef struct rn_emulated_dim3 {
  unsigned x, y, z;
} rn_emulated_dim3;

// What the lanes of a warp do together. |operand| is the lane, distance or mask of a shuffle.
typedef enum rn_emulated_op_t {
  RN_EMULATED_SYNC,
  RN_EMULATED_SHUFFLE,
  RN_EMULATED_SHUFFLE_UP,
  RN_EMULATED_SHUFFLE_DOWN,
  RN_EMULATED_SHUFFLE_XOR,
  RN_EMULATED_BALLOT,
  RN_EMULATED_MATCH,
  RN_EMULATED_ADD,
  RN_EMULATED_AND,
  RN_EMULATED_OR,
  RN_EMULATED_XOR,
  RN_EMULATED_MIN,
  RN_EMULATED_MAX,
  RN_EMULATED_MIN_SIGNED,
  RN_EMULATED_MAX_SIGNED,
} rn_emulated_op_t;

typedef struct rn_emulated_image_t {
  // Of the thread that runs.
  rn_emulated_dim3 thread, block, block_dim, grid_dim;
  void* shared;  // the block's dynamic shared memory
  // Waits for all threads of the block that have not ended. Returns how many of them came with
  // |predicate|, and in |*out_waited| how many came.
  int (*barrier)(int predicate, int* out_waited);
  // Waits for the lanes of |mask| that have not ended, and returns the lane's own result.
  unsigned long long (*exchange)(rn_emulated_op_t op, unsigned mask, unsigned long long value,
                                 unsigned operand, unsigned width);
  unsigned (*lane)(void);
  void (*trap)(void);  // ends the launch with an error; does not return
} rn_emulated_image_t;

#endif  // RUNNEL_TESTS_GPU_EMULATOR_IMAGE_H_
