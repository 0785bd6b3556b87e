// Operations of the emulated NCCL, by one thread per rank. Ranks wait for each other while they run.
#include <sched.h>
#include <string.h>

#include "prelude.cuh"

#include "nccl_args.h"

RN_DEVICE char* area(const emulated_nccl_args& args, int rank) {
  return (char*)args.shared + sizeof *args.shared + (u64)rank * EMULATED_AREA;
}

// False if the communicator is aborted.
RN_DEVICE bool meet(const emulated_nccl_args& args, u64 barrier) {
  const u64 all = barrier * (u64)args.size;
  if (!args.stalls) __atomic_fetch_add(&args.shared->arrived, 1, __ATOMIC_SEQ_CST);
  while (args.stalls || __atomic_load_n(&args.shared->arrived, __ATOMIC_SEQ_CST) < all) {
    if (__atomic_load_n(args.is_aborted, __ATOMIC_SEQ_CST)) return false;
    sched_yield();
  }
  return true;
}

RN_DEVICE u64 size_of(int type) {
  return type == 0 ? 1 : type == 6 || type == 9 ? 2 : type == 2 || type == 7 ? 4 : 8;
}

template <typename T>
RN_DEVICE T join(int op, T a, T b) {
  if (op == 1) return a * b;
  if (op == 2) return a > b ? a : b;
  if (op == 3) return a < b ? a : b;
  return a + b;
}

// Elements |first| to |first| + |n| of all ranks.
template <typename T>
RN_DEVICE void reduce(const emulated_nccl_args& args, u64 first, u64 n) {
  for (u64 i = 0; i < n; ++i) {
    T sum = ((const T*)area(args, 0))[first + i];
    for (int r = 1; r < args.size; ++r)
      sum = join<T>(args.op, sum, ((const T*)area(args, r))[first + i]);
    ((T*)args.to)[i] = args.op == 4 ? (T)(sum / (T)args.size) : sum;
  }
}

RN_DEVICE float widen(int type, u16 bits) {
  return type == 6 ? rn_half_to_float(bits) : rn_float_from_bits((u32)bits << 16);
}
RN_DEVICE u16 narrow(int type, float value) {
  return type == 6 ? rn_half_from_float(value) : rn_bfloat16_from_float(value);
}

RN_DEVICE void reduce_short(const emulated_nccl_args& args, u64 first, u64 n) {
  for (u64 i = 0; i < n; ++i) {
    float sum = widen(args.type, ((const u16*)area(args, 0))[first + i]);
    for (int r = 1; r < args.size; ++r) {
      const float next = widen(args.type, ((const u16*)area(args, r))[first + i]);
      sum = widen(args.type, narrow(args.type, join<float>(args.op, sum, next)));
    }
    ((u16*)args.to)[i] = narrow(args.type, args.op == 4 ? sum / (float)args.size : sum);
  }
}

RN_DEVICE void reduce_any(const emulated_nccl_args& args, u64 first, u64 n) {
  if (args.type == 2) reduce<i32>(args, first, n);
  if (args.type == 4) reduce<i64>(args, first, n);
  if (args.type == 7) reduce<float>(args, first, n);
  if (args.type == 8) reduce<double>(args, first, n);
  if (size_of(args.type) == 2) reduce_short(args, first, n);
}

RN_KERNEL(emulated_nccl, emulated_nccl_args) {
  const u64 bytes = args.count * size_of(args.type);
  char* own = area(args, args.rank);
  if (args.kind == EMULATED_MOVE)
    for (int r = 0; r < args.size; ++r) memcpy(own + (u64)r * bytes, args.sent[r], bytes);
  else if (args.kind != EMULATED_BROADCAST || args.rank == args.root)
    memcpy(own, args.from, bytes);
  if (!meet(args, args.barrier)) return;
  const u64 share = args.count / (u64)args.size;
  if (args.kind == EMULATED_REDUCE) reduce_any(args, 0, args.count);
  if (args.kind == EMULATED_SCATTER) reduce_any(args, (u64)args.rank * share, share);
  if (args.kind == EMULATED_BROADCAST) memcpy(args.to, area(args, args.root), bytes);
  for (int r = 0; r < args.size; ++r) {
    if (args.kind == EMULATED_GATHER) memcpy((char*)args.to + (u64)r * bytes, area(args, r), bytes);
    if (args.kind == EMULATED_MOVE)
      memcpy(args.received[r], area(args, r) + (u64)args.rank * bytes, bytes);
  }
  meet(args, args.barrier + 1);
}
