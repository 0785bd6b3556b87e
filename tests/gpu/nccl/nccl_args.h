// Arguments of nccl.cu, and what the ranks of a communicator share: a file in /dev/shm, so that
// they may be in several processes.
#ifndef RUNNEL_TESTS_GPU_NCCL_NCCL_ARGS_H_
#define RUNNEL_TESTS_GPU_NCCL_NCCL_ARGS_H_

#define EMULATED_RANKS 8
#define EMULATED_AREA ((u64)64 << 20)  // bytes for the values of a rank; the file has holes

typedef struct emulated_shared {
  u64 joined;   // ranks
  u64 arrived;  // at barriers, all together
  char cards[EMULATED_RANKS][16];
  char pad[4096 - 16 - EMULATED_RANKS * 16];
} emulated_shared;

enum { EMULATED_REDUCE, EMULATED_SCATTER, EMULATED_GATHER, EMULATED_BROADCAST, EMULATED_MOVE };

typedef struct emulated_nccl_args {
  emulated_shared* shared;
  const i32* is_aborted;
  u64 barrier;  // of this operation: the first of two
  i32 rank, size;
  i32 kind, type, op, root;
  i32 stalls;  // never arrives
  u64 count;   // elements that a rank gives
  const void* from;
  void* to;
  const void* sent[EMULATED_RANKS];  // of EMULATED_MOVE, by rank
  void* received[EMULATED_RANKS];
} emulated_nccl_args;

#endif  // RUNNEL_TESTS_GPU_NCCL_NCCL_ARGS_H_
