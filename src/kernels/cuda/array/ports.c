// Issues the copies of a recording's ports: see device/cuda/recording.h.
#include "kernels/cuda/array/ports_args.h"

#include "device/cuda/recording.h"

#define THREADS 512

_Static_assert(RN_CUDA_PORTS_ARGS == RN_CUDA_MOST_PORTS, "all ports of a kernel fit");

rn_status_t rn_cuda_copy_ports(rn_cuda_card_t* card, CUstream stream, const rn_cuda_port_t* ports,
                               int count, uint32_t* flag) {
  CUfunction function = NULL;
  RN_RETURN_IF_ERROR(rn_cuda_kernel(card, "array/ports/copy", &function));
  rn_cuda_ports_args args = {.count = count, .has_flag = flag != NULL, .flag = flag};
  for (int i = 0; i < count; ++i) {
    args.copies[i].from = ports[i].from;
    args.copies[i].to = ports[i].to;
    args.copies[i].size = (i64)ports[i].size;
  }
  size_t size = sizeof args;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  return RN_CARD(card, cuLaunchKernel, function, flag ? 1 : (unsigned)count, 1, 1, THREADS, 1, 1, 0,
                 stream, NULL, extra);
}
