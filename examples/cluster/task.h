// Shared by the examples on clusters, like example.h for those on one machine. A program is started
// once per task, or once for all of them and then starts the tasks itself.
//
//   task_t t = task_open(argc, argv, "Learns digits on a cluster.", 1000, 1, 2);
//   … build in t.e.scope: variables go to the parameter servers …
//   task_train(&t, rn_adam(.learning_rate = 0.005f), loss);
//   while (task_step(&t, RN_FEED(…), RN_FETCH(…))) …
//   return task_close(&t, accuracy >= 0.95f, "%.1f %%", 100 * accuracy);
//
// Any failure ends the program with a message and exit code 1.
#ifndef RUNNEL_EXAMPLES_CLUSTER_TASK_H_
#define RUNNEL_EXAMPLES_CLUSTER_TASK_H_

#include "example.h"

typedef struct task_t {
  example_t e;  // the command line, the graph, random numbers; not its session
  rn_cluster_t* cluster;
  int index;  // of this worker; 0 is the chief
  int servers, workers;
  int counted;            // gradients per update; 0 if replicas do not wait for each other
  const char* directory;  // for checkpoints, or NULL
  bool colocates;         // gradients are computed on the devices of their forward nodes
  const char* summary;    // the option --dump, for tests: where to write the result, or NULL
  TF_Server* server;      // NULL if it is a separate process
  char target[256];
  rn_saver_t* saver;
  rn_supervisor_t* supervisor;
  rn_sync_replicas_t sync;
  rn_node_t* train;
} task_t;

// Reads the command line. If it names a task, starts the server of that task: a parameter server
// stays in this function until it is told to end; a worker returns with a graph. Otherwise starts
// all tasks (by default |servers| and |workers| of them) as processes, and the program ends with
// the exit code of the first that failed. In the environment of `runnel cluster up`, starts one
// client per worker.
task_t task_open(int argc, char** argv, const char* about, int steps, int servers, int workers);
// Builds the training step, asynchronous unless the command line says otherwise, and the supervisor
// that runs it.
void task_train(task_t* t, rn_optimizer_t optimizer, rn_edge_t loss);
// task_step(t, arguments of rn_run…) runs one step of training; false when all steps have been run.
#define task_step(t, ...)                                \
  (rn_supervisor_step((t)->supervisor) < (t)->e.steps && \
   task_look((t), RN_TARGET((t)->train), __VA_ARGS__))
// The same without training, in the same session.
#define task_look(t, ...) task_ran((t), rn_supervise((t)->supervisor, (t)->e.status, __VA_ARGS__))
// Handles the result of a step; false at the end of training.
bool task_ran(const task_t* t, bool is_good);
// What ends the name of a device where workers compute, as the command line says: "/cpu:0", or ""
// for the task's best.
const char* task_device(const task_t* t);
static inline bool task_is_chief(const task_t* t) { return t->index == 0; }
// The chief prints whether the goal was reached; other workers only end. Returns the exit code.
int task_close(task_t* t, bool reached, const char* format, ...)
    __attribute__((format(printf, 3, 4)));

#endif  // RUNNEL_EXAMPLES_CLUSTER_TASK_H_
