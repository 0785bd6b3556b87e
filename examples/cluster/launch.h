// Tasks of a cluster as processes on this machine.
#ifndef RUNNEL_EXAMPLES_CLUSTER_LAUNCH_H_
#define RUNNEL_EXAMPLES_CLUSTER_LAUNCH_H_

// Finds free ports, and keeps them for the tasks until this process ends.
void find_ports(int* ports, int count);
// Starts |argv| once per task, with "--cluster C --job J --task N" appended, waits for the workers,
// then ends the parameter servers. Returns 0, or the exit code of the first worker that failed.
int launch(char** argv, int servers, int workers);
// The same for a running cluster: starts one client per worker, with "--client --job worker --task
// N".
int launch_clients(char** argv, int workers);

#endif  // RUNNEL_EXAMPLES_CLUSTER_LAUNCH_H_
