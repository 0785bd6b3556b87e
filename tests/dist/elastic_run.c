// Tasks that join and leave while others work: elastic_run RUNNEL
//
// Every task is a process of its own that was started knowing no other. A thread of the client adds
// to a variable on task 0 all the time; none of its calls may fail, and none may be lost.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "eager_client.h"

#define TASKS 3
#define W2 "/job:worker/replica:0/task:2/device:CPU:0"

typedef struct task_t {
  pid_t pid;  // 0: not running
  int port;
} task_t;

static task_t tasks[TASKS];
static const char* const names[TASKS] = {W0, W1, W2};
static const char* runnel;

// Starts task |i| and waits until it says that it is ready.
static void begin(int i) {
  char cluster[128], number[16], line[256] = "";
  int out[2];
  tasks[i].port = free_port();
  snprintf(cluster, sizeof cluster, "{\"worker\": {\"%d\": \"127.0.0.1:%d\"}}", i, tasks[i].port);
  snprintf(number, sizeof number, "%d", i);
  CHECK(pipe(out) == 0, "pipe");
  tasks[i].pid = fork();
  if (tasks[i].pid == 0) {
    dup2(out[1], 1);
    close(out[0]);
    execl(runnel, runnel, "server", "--cluster", cluster, "--job", "worker", "--task", number,
          "--allow", "all", (char*)NULL);
    _exit(127);
  }
  close(out[1]);
  FILE* ready = fdopen(out[0], "r");
  CHECK(ready && fgets(line, sizeof line, ready) && strstr(line, "grpc://"), "task %d: %s", i,
        line);
  fclose(ready);
}

static void end(int i) {
  kill(tasks[i].pid, SIGKILL);
  waitpid(tasks[i].pid, NULL, 0);
  tasks[i].pid = 0;
}

// Shows the context the tasks that are running.
static void show(bool is_update) {
  char text[1000];
  size_t at = (size_t)snprintf(text, sizeof text, "cluster { job { name: \"worker\" ");
  for (int i = 0; i < TASKS; ++i)
    if (tasks[i].pid)
      at += (size_t)snprintf(text + at, sizeof text - at,
                             "tasks { key: %d value: \"127.0.0.1:%d\" } ", i, tasks[i].port);
  snprintf(text + at, sizeof text - at,
           "} job { name: \"localhost\" tasks { key: 0 value: \"127.0.0.1:%d\" } } } "
           "job_name: \"localhost\" task_index: 0 protocol: \"grpc\"",
           own_port());
  TF_Buffer* def = TFE_GetServerDef(text, s);
  OK();
  if (is_update)
    TFE_ContextUpdateServerDef(context, 60, def->data, def->length, s);
  else
    TFE_ContextSetServerDef(context, 60, def->data, def->length, s);
  OK();
  TF_DeleteBuffer(def);
}

// --- The work that goes on

static TFE_TensorHandle *total, *one;
static _Atomic bool is_over;
static _Atomic int added;

static void* work(void* arg) {
  TF_Status* status = TF_NewStatus();
  (void)arg;
  while (!is_over) {
    int count = 0;
    TFE_Op* op = TFE_NewOp(context, "AssignAddVariableOp", status);
    TFE_OpAddInput(op, total, status);
    TFE_OpAddInput(op, one, status);
    TFE_Execute(op, NULL, &count, status);
    TFE_DeleteOp(op);
    if (TF_GetCode(status) != TF_OK) {
      fprintf(stderr, "after %d additions: %s\n", added, TF_Message(status));
      exit(1);
    }
    added++;
  }
  TF_DeleteStatus(status);
  return NULL;
}

// Until the other thread has added |count| times more.
static void wait_for(int count) {
  for (int until = added + count; added < until;) usleep(1000);
}

// --- Functions over the tasks that are there

static void expect_sum(const char* name, int count, const int* which) {
  TF_Graph* graph = TF_NewGraph();
  TF_OperationDescription* d = TF_NewOperation(graph, "Placeholder", "x");
  TF_SetAttrType(d, "dtype", TF_FLOAT);
  TF_Output x = {TF_FinishOperation(d, s), 0}, y = x;
  for (int i = 0; i < count; ++i) {
    char node[16];
    snprintf(node, sizeof node, "n%d", i);
    d = TF_NewOperation(graph, "AddV2", node);
    TF_AddInput(d, y);
    TF_AddInput(d, x);
    TF_SetDevice(d, names[which[i]]);
    y = (TF_Output){TF_FinishOperation(d, s), 0};
    OK();
  }
  TF_Function* function =
      TF_GraphToFunction(graph, name, 0, -1, NULL, 1, &x, 1, &y, NULL, NULL, NULL, s);
  OK();
  TFE_ContextAddFunction(context, function, s);
  OK();
  TFE_TensorHandle* in = scalar(2);
  TFE_TensorHandle* out = run(name, in, NULL, NULL);
  expect_on(out, names[which[count - 1]]);
  CHECK(value_of(out, 0) == (float)(2 * (count + 1)), "%s", name);
  TFE_DeleteTensorHandle(in);
  TFE_DeleteTensorHandle(out);
  TF_DeleteFunction(function);
  TF_DeleteGraph(graph);
}

int main(int argc, char** argv) {
  pthread_t thread;
  s = TF_NewStatus();
  CHECK(argc == 2, "usage: elastic_run RUNNEL");
  runnel = argv[1];
  begin(0);
  begin(1);
  TFE_ContextOptions* options = TFE_NewContextOptions();
  context = TFE_NewContext(options, s);
  TFE_DeleteContextOptions(options);
  OK();
  show(false);
  total = variable("total", W0);
  one = scalar(1);
  TFE_TensorHandle* zero = scalar(0);
  run("AssignVariableOp", total, zero, NULL);
  pthread_create(&thread, NULL, work, NULL);
  wait_for(20);
  expect_sum("of_two", 2, (const int[]){0, 1});
  begin(2);  // one joins
  show(true);
  wait_for(20);
  expect_sum("of_three", 3, (const int[]){0, 1, 2});
  TFE_TensorHandle* kept = run("Neg", one, NULL, W2);
  end(1);  // one leaves without a word
  show(true);
  wait_for(20);
  expect_sum("of_the_rest", 2, (const int[]){2, 0});
  CHECK(value_of(kept, 0) == -1, "a value of a task that stayed");
  TFE_TensorHandle* gone = try_run(op_of("Neg", one, NULL), W1);
  CHECK(TF_GetCode(s) != TF_OK && !gone, "a task that has left");
  begin(1);  // it comes back, elsewhere
  show(true);
  wait_for(20);
  expect_sum("of_all", 3, (const int[]){1, 2, 0});
  is_over = true;
  pthread_join(thread, NULL);
  TFE_Op* op = op_of("ReadVariableOp", total, NULL);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  TFE_TensorHandle* sum = try_run(op, NULL);
  OK();
  CHECK(value_of(sum, 0) == (float)added, "%d additions, %f", added, (double)value_of(sum, 0));
  TFE_TensorHandle* const all[] = {zero, kept, sum, total, one};
  for (int i = 0; i < 5; ++i) TFE_DeleteTensorHandle(all[i]);
  TFE_DeleteContext(context);
  for (int i = 0; i < TASKS; ++i)
    if (tasks[i].pid) end(i);
  TF_DeleteStatus(s);
  printf("ok\n");
  return 0;
}
