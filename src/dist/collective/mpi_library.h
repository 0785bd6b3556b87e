// Open MPI 4, opened when it is asked for: its functions and handles, without its headers.
//
// Handles are addresses of objects in the library, as its mpi.h has them.
#ifndef RUNNEL_DIST_COLLECTIVE_MPI_LIBRARY_H_
#define RUNNEL_DIST_COLLECTIVE_MPI_LIBRARY_H_

#include "base/status.h"

typedef void* rn_mpi_handle_t;

// X(result is an int) name, arguments
#define RN_MPI_FUNCTIONS(X)                                                                     \
  X(MPI_Init_thread, (int* argc, char*** argv, int wanted, int* got))                           \
  X(MPI_Finalize, (void))                                                                       \
  X(MPI_Comm_rank, (rn_mpi_handle_t comm, int* rank))                                           \
  X(MPI_Comm_size, (rn_mpi_handle_t comm, int* size))                                           \
  X(MPI_Send,                                                                                   \
    (const void* data, int count, rn_mpi_handle_t type, int to, int tag, rn_mpi_handle_t comm)) \
  X(MPI_Recv, (void* data, int count, rn_mpi_handle_t type, int from, int tag,                  \
               rn_mpi_handle_t comm, void* status))                                             \
  X(MPI_Iprobe, (int from, int tag, rn_mpi_handle_t comm, int* flag, void* status))             \
  X(MPI_Allreduce, (const void* in, void* out, int count, rn_mpi_handle_t type,                 \
                    rn_mpi_handle_t op, rn_mpi_handle_t comm))                                  \
  X(MPI_Reduce_scatter_block, (const void* in, void* out, int count, rn_mpi_handle_t type,      \
                               rn_mpi_handle_t op, rn_mpi_handle_t comm))                       \
  X(MPI_Allgather, (const void* in, int count, rn_mpi_handle_t type, void* out, int out_count,  \
                    rn_mpi_handle_t out_type, rn_mpi_handle_t comm))                            \
  X(MPI_Alltoall, (const void* in, int count, rn_mpi_handle_t type, void* out, int out_count,   \
                   rn_mpi_handle_t out_type, rn_mpi_handle_t comm))                             \
  X(MPI_Bcast, (void* data, int count, rn_mpi_handle_t type, int root, rn_mpi_handle_t comm))

#define RN_MPI_HANDLES(X) \
  X(ompi_mpi_comm_world)  \
  X(ompi_mpi_byte)        \
  X(ompi_mpi_float)       \
  X(ompi_mpi_double)      \
  X(ompi_mpi_int32_t)     \
  X(ompi_mpi_int64_t)     \
  X(ompi_mpi_op_sum)      \
  X(ompi_mpi_op_prod)     \
  X(ompi_mpi_op_max)      \
  X(ompi_mpi_op_min)

typedef struct rn_mpi_library_t {
#define RN_MPI_FUNCTION(name, arguments) int(*name) arguments;
  RN_MPI_FUNCTIONS(RN_MPI_FUNCTION)
#undef RN_MPI_FUNCTION
#define RN_MPI_HANDLE(name) rn_mpi_handle_t name;
  RN_MPI_HANDLES(RN_MPI_HANDLE)
#undef RN_MPI_HANDLE
} rn_mpi_library_t;

// UNIMPLEMENTED if Open MPI 4 is not installed.
RN_MUST_USE rn_status_t rn_mpi_library_open(rn_mpi_library_t* out);

#endif  // RUNNEL_DIST_COLLECTIVE_MPI_LIBRARY_H_
