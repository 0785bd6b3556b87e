// A scenario: what a client does, written so that any allocation in it may fail.
//
// A scenario makes each call with FT: a call that fails must return RESOURCE_EXHAUSTED (or NULL or
// 0, if that means the same), and only if an allocation failed. If memory is available again, the
// same call is repeated with the same objects and must succeed; otherwise the scenario returns. Its
// ft_t owns all objects, and frees them in the same way in every case.
#ifndef RUNNEL_TESTS_FAULTS_SWEEP_H_
#define RUNNEL_TESTS_FAULTS_SWEEP_H_

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runnel/nn.h"
#include "runnel/runnel.h"
#include "runnel/tape.h"
#include "runnel/train.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/eager/c_api_experimental.h"

#define FT_MAX 64

typedef struct ft_t {
  TF_Status* status;
  TF_Graph* graph;
  TF_Graph* other;  // a second one
  TF_Session* session;
  TF_SessionOptions* options;
  rn_scope_t* scope;
  rn_scope_t* child;
  TF_ImportGraphDefOptions* import;
  TF_ImportGraphDefResults* results;
  TF_ApiDefMap* api_defs;
  TF_DeviceList* devices;
  TF_Library* library;
  TF_DeprecatedSession* deprecated;
  rn_model_t* model;
  TFE_Context* eager;
  TFE_TensorHandle* handles[8];
  rn_tape_t* tape;
  TF_Function* function;
  const char* handle;          // of a partial run
  TF_Tensor* tensors[FT_MAX];  // a scenario numbers its own
  TF_Buffer* buffers[FT_MAX];
  TF_Operation* ops[FT_MAX];  // the graph's
  bool for_good;              // memory does not come back
  bool is_over;               // it ran out, for good
  bool had_fault;             // a step has answered for the failure
  const char* step;           // what is being tried
  int line;
} ft_t;

typedef void (*ft_scenario_t)(ft_t* t);

// Set by a scenario that has kept less for good than it would have with memory enough.
extern bool ft_kept_less;

// Ends the process: the promise is broken.
#define FT_FAIL(t, ...) ft_fail(t, __LINE__, __VA_ARGS__)
__attribute__((noreturn, format(printf, 3, 4))) void ft_fail(const ft_t* t, int line,
                                                             const char* format, ...);
#define FT_CHECK(t, condition) ((condition) ? (void)0 : FT_FAIL(t, "not so: %s", #condition))

// Tries |call| (true: it worked) until it is settled.
#define FT(call)                      \
  do {                                \
    t->step = #call;                  \
    t->line = __LINE__;               \
    while (!ft_is_settled(t, (call))) \
      if (t->is_over) return;         \
  } while (0)
bool ft_is_settled(ft_t* t, bool worked);

// Whether the last call left OK in the status.
static inline bool ft_ok(const ft_t* t) { return TF_GetCode(t->status) == TF_OK; }

// What most steps are made of; true: it worked. Each leaves |*slot| NULL when it fails.
bool ft_start(ft_t* t);  // status and graph
bool ft_tensor(TF_Tensor** slot, TF_DataType dtype, const int64_t* dims, int rank,
               const void* values);
bool ft_scalar(TF_Tensor** slot, float value);
// Finishes |desc|; one that could not be made (NULL) is a failure too.
bool ft_finish(ft_t* t, TF_OperationDescription* desc, TF_Operation** slot);
// Lets go of |desc|, whose last attribute could not be set; false. Finishing is the only way, and
// must fail.
bool ft_abandon(ft_t* t, TF_OperationDescription* desc);
bool ft_placeholder(ft_t* t, TF_Operation** slot, const char* name, TF_DataType dtype);
bool ft_const(ft_t* t, TF_Operation** slot, const char* name, TF_Tensor* value);
bool ft_op(ft_t* t, TF_Operation** slot, const char* type, const char* name, TF_Operation* a,
           TF_Operation* b);
// A session of one thread over the graph, or of |threads|.
bool ft_session(ft_t* t, int threads);
// One run; the fetched tensor replaces |*out|.
bool ft_run(ft_t* t, TF_Operation* feed, TF_Tensor* value, TF_Operation* fetch, TF_Tensor** out);
bool ft_target(ft_t* t, TF_Operation* target);
// A new, empty buffer in |*slot|; an older one is deleted.
bool ft_buffer(TF_Buffer** slot);
static inline TF_Output ft_out(TF_Operation* oper) { return (TF_Output){oper, 0}; }
// A folder for the files of all runs, which goes with the last.
const char* ft_folder(void);
static inline float ft_float(const TF_Tensor* tensor) { return *(float*)TF_TensorData(tensor); }

// The scenarios, each with the name it is asked for by.
#define FT_SCENARIOS(X) \
  X(attributes)         \
  X(edit)               \
  X(import)             \
  X(objects)            \
  X(lists)              \
  X(plugin)             \
  X(run)                \
  X(partial)            \
  X(state)              \
  X(strings)            \
  X(queues)             \
  X(loop)               \
  X(gradients)          \
  X(builders)           \
  X(flow)               \
  X(data)               \
  X(data_threads)       \
  X(threads)            \
  X(deprecated)         \
  X(eager)              \
  X(tape)               \
  X(custom)             \
  X(function)           \
  X(training)           \
  X(models)             \
  X(summaries)          \
  X(replicas)
#define FT_DECLARE(name) void scenario_##name(ft_t* t);
FT_SCENARIOS(FT_DECLARE)
#undef FT_DECLARE

#endif  // RUNNEL_TESTS_FAULTS_SWEEP_H_
