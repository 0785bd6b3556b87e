// The planner's passes over a step's graph.
//
// One table has their order. It also drives what people see of them: times and node counts
// (runnel graph --passes), the graph before and after a pass (RUNNEL_DUMP), the verifier that runs
// after each (RUNNEL_VERIFY), and doc/passes.md.
#ifndef RUNNEL_SESSION_PASSES_H_
#define RUNNEL_SESSION_PASSES_H_

#include "session/planner.h"
#include "step/verify.h"

typedef struct rn_pass_t {
  const char* name;
  const char* summary;  // one line for people
  rn_status_t (*run)(const rn_planner_t* planner, rn_ir_t* ir);
  rn_ir_stage_t stage;   // what must hold afterwards
  bool is_optimization;  // left out if the session does not optimize
  uint32_t kind;         // left out if the planner turns this off: RN_PASS_*
  bool adds_clients;     // brings in nodes of the client's: the bodies of functions
} rn_pass_t;

extern const rn_pass_t rn_passes[];
extern const int rn_pass_count;

// What one pass did, for a watcher. The counts compare nodes by number: the ones that went, the
// ones that came, and those whose op, inputs or control inputs changed.
typedef struct rn_pass_report_t {
  const rn_pass_t* pass;
  int64_t nanoseconds;
  int32_t nodes;  // afterwards
  int32_t removed, added, changed;
} rn_pass_report_t;

// Told of every pass of every plan; the planner borrows it.
typedef struct rn_pass_watch_t {
  void* self;
  void (*report)(void* self, const rn_pass_report_t* report);
} rn_pass_watch_t;

// Runs |count| passes over |ir| in order, as the planner's settings say. The planner itself runs
// rn_passes; tests run lists of their own.
RN_MUST_USE rn_status_t rn_passes_run(const rn_planner_t* planner, const rn_pass_t* passes,
                                      int count, rn_ir_t* ir);

// How plans are watched while they are made, from the environment: RUNNEL_VERIFY=1 or 0 (debug and
// sanitizer builds verify without being asked), RUNNEL_DUMP=WORD,… and RUNNEL_DUMP_DIR=FOLDER.
rn_plan_debug_t rn_plan_debug_from_env(void);

#endif  // RUNNEL_SESSION_PASSES_H_
