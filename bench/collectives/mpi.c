// MPI_Allreduce of COUNT floats: mpi COUNT CHAIN TURNS prints the seconds of one, in the quickest
// of TURNS chains of CHAIN, and the processor time of one over all ranks.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static double processor_time(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4) return fprintf(stderr, "mpi COUNT CHAIN TURNS\n"), 2;
  long count = atol(argv[1]), chain = atol(argv[2]), turns = atol(argv[3]);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  float* in = malloc((size_t)count * sizeof *in);
  float* out = malloc((size_t)count * sizeof *out);
  for (long i = 0; i < count; ++i) in[i] = 1, out[i] = 0;
  double best = 1e9, used = processor_time(), all = 0;
  for (long t = 0; t < turns; ++t) {
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (long k = 0; k < chain; ++k)
      MPI_Allreduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    double took = MPI_Wtime() - start;
    if (took < best) best = took;
  }
  used = processor_time() - used;
  MPI_Reduce(&used, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%.9f %.9f\n", best / (double)chain, all / (double)(chain * turns));
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
