// Collectives by MPI: another way to run the instances of groups whose members are the ranks of an
// MPI job, one task per rank.
//
// All calls of MPI are made on one thread. Ranks may come to instances in different orders, but MPI
// wants one: each rank tells rank 0 what it has come to, and rank 0 starts what all have come to.
#ifndef RUNNEL_DIST_COLLECTIVE_MPI_H_
#define RUNNEL_DIST_COLLECTIVE_MPI_H_

#include "dist/collective/cluster.h"

typedef struct rn_mpi_t rn_mpi_t;

// Starts MPI and learns the names of all ranks' tasks; waits until all ranks have called it. |task|
// is this one. UNIMPLEMENTED without Open MPI. Once per process.
RN_MUST_USE rn_status_t rn_mpi_create(rn_str_t task, rn_allocator_t allocator, rn_mpi_t** out);
// No instance may be left. Stops MPI, which waits for all ranks. NULL is fine.
void rn_mpi_destroy(rn_mpi_t* mpi);

// It takes groups that have a member per rank, in the order of ranks.
rn_exchanger_t rn_mpi_exchanger(rn_mpi_t* mpi);  // NULL is fine

#endif  // RUNNEL_DIST_COLLECTIVE_MPI_H_
