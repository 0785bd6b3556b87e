// Tasks of a cluster as processes on this machine.
#ifndef RUNNEL_EXAMPLES_CLUSTER_LAUNCH_H_
#define RUNNEL_EXAMPLES_CLUSTER_LAUNCH_H_

// Ports that are free now.
void find_ports(int* ports, int count);
// Starts |argv| once for each task, with "--cluster C --job J --task N" behind it, waits for the
// workers, then ends the parameter servers. 0, or what the first worker that failed ended with.
int launch(char** argv, int servers, int workers);
// The same for a cluster whose servers are there: a client, "--client --job worker --task N", for
// each of its workers.
int launch_clients(char** argv, int workers);

#endif  // RUNNEL_EXAMPLES_CLUSTER_LAUNCH_H_
