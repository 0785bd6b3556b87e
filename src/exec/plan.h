// A plan: one device's part of a step's graph, compiled for repeated execution.
//
// Flat arrays, no strings, no pointers to chase: instructions in the order they run, the slots
// their values live in, and a memory plan that gives every value of known shape its place in one
// block. Built once by rn_plan_create, shared read-only by any number of concurrent steps. A plan
// keeps its kernels alive and borrows nothing from the graph it was made of, so the graph may grow
// meanwhile.
//
// Instructions are grouped into tasks: a task runs from its first instruction to its last without
// synchronization. A plan that gains nothing from threads and never waits is one task, and a step
// of it is one loop over one array. A plan with loops or conditionals (|has_frames|) runs
// instruction by instruction with frames and dead values: see frames.c. Loops in it whose body is a
// plain sequence run as such: see rn_straight_loop_t.
#ifndef RUNNEL_EXEC_PLAN_H_
#define RUNNEL_EXEC_PLAN_H_

#include "device/device.h"
#include "framework/kernel.h"
#include "step/ir.h"

typedef struct rn_plan_t rn_plan_t;

// Kernels of stateful nodes, one per node name, shared by all plans of a session: a random
// generator continues where the last step left it, whatever that step fetched.
typedef struct rn_kernel_cache_t {
  rn_mutex_t mutex;
  rn_map_t kernels;  // node name -> rn_kernel_t*, owned
  rn_allocator_t allocator;
  // Set if the cache outlives graphs: it then retains the tables of functions that its kernels
  // call.
  bool holds_functions;
  RN_VEC(rn_functions_t*) functions;  // Retained, by kernel
} rn_kernel_cache_t;
void rn_kernel_cache_init(rn_kernel_cache_t* cache, rn_allocator_t allocator);
void rn_kernel_cache_clear(rn_kernel_cache_t* cache);

typedef struct rn_plan_options_t {
  rn_device_t* device;
  rn_device_t* host;  // the CPU device, for host arguments' memory
  const rn_env_t* env;
  rn_kernel_cache_t* kernels;
  rn_functions_t* functions;  // runs functions for kernels; NULL: there are none
  int threads;                // that the step may use; with 1, a plan that never waits is one task
} rn_plan_options_t;

// Compiles the nodes of |ir| that are placed on |options->device|. On success the caller owns
// |*out_plan|; on failure it is NULL and the status names the node. Kernels of the cache must
// outlive the plan.
RN_MUST_USE rn_status_t rn_plan_create(rn_ir_t* ir, const rn_plan_options_t* options,
                                       rn_allocator_t allocator, rn_plan_t** out_plan);
void rn_plan_destroy(rn_plan_t* plan);

// What follows is for the files of exec/ only.

enum { RN_NO_SLOT = -1 };

// The lifetime of a slot's tensor.
typedef enum rn_slot_kind_t {
  RN_SLOT_DYNAMIC,   // set by its instruction, cleared after its last use
  RN_SLOT_PLANNED,   // type, shape and place in the block are fixed
  RN_SLOT_CONSTANT,  // set when the state is made
  RN_SLOT_FEED,      // borrowed from the caller for the step
} rn_slot_kind_t;

typedef struct rn_slot_t {
  uint8_t kind;  // rn_slot_kind_t
  rn_dtype_t dtype;
  size_t offset;     // in the block, PLANNED
  int32_t feed;      // FEED
  int32_t producer;  // the instruction that makes it; -1: none
  int32_t counter;   // DYNAMIC with readers in several tasks: which counter holds their number; -1:
                     // cleared by the last in order
  int32_t readers;
  bool is_kept;  // FEED: something may keep its bytes beyond the step, or beyond its task
} rn_slot_t;

typedef struct rn_instr_t {
  rn_status_t (*compute)(rn_kernel_ctx_t* ctx);  // NULL: nothing to compute, or asynchronous
  const rn_kernel_t* kernel;                     // NULL: a no-op, or control flow
  int32_t first_input, input_count;              // into plan->inputs
  int32_t first_output, output_count;            // slots
  int32_t first_release,
      release_count;  // into plan->releases: slots to clear, or count down, afterwards
  int32_t first_deref,
      deref_count;  // into plan->derefs: inputs that need a variable's value, not the reference
  uint64_t dying, planned;
  int32_t async;  // number among the asynchronous instructions; -1: it is not
  int32_t node;   // for messages and statistics: into plan->names
  // For frames.c:
  uint8_t role;  // rn_op_role_t
  uint8_t is_expensive;
  bool is_constant_enter;
  int32_t frame;                   // the static frame it runs in
  int32_t out_frame;               // the one its outputs belong to: another for Enter and Exit
  int32_t local;                   // its number within |frame|
  int32_t local_output;            // its first output's number within |out_frame|
  bool has_unread;                 // some output has no reader
  bool has_loop_fetch;             // some output is fetched, and belongs to a loop
  int32_t first_edge, edge_count;  // into plan->edges: its consumers
  int32_t pending;                 // edges it waits for; of a Merge, control edges only
} rn_instr_t;

// The flags of the instruction's kernel; 0 if it has none.
static inline uint32_t rn_instr_flags(const rn_instr_t* instr) {
  return instr->kernel ? instr->kernel->def->flags : 0;
}

// A value or control edge from an instruction, for the dataflow loop.
typedef struct rn_edge_out_t {
  int32_t instr;  // the consumer
  int32_t local;  // its number within the frame
  int32_t slot;   // the output's number within the frame; -1: control
  uint8_t role;   // rn_op_role_t of the consumer
} rn_edge_out_t;

typedef struct rn_task_t {
  int32_t first_instr, instr_count;
  int32_t first_successor, successor_count;  // into plan->successors
  int32_t pending;                           // tasks it waits for
} rn_task_t;

// Instructions whose work the device may record and replay. A plan with loops or conditionals has
// none, or several with all instructions, of which each is recorded for other feeds. See record.h.
typedef struct rn_segment_t {
  int32_t first_instr, instr_count;
} rn_segment_t;

typedef struct rn_deref_t {
  int32_t input;  // position in plan->inputs
  bool allows_uninitialized;
} rn_deref_t;

// A straight loop: its body is a sequence of instructions that all run in every iteration, without
// conditionals, inner loops, transfers and asynchronous kernels. frames_loop.c runs it in one
// iteration that it uses again and again; compile_loops.c finds such loops. Merge, Switch, LoopCond
// and Identity share the slot of their input here, and slots are numbers within the frame.
typedef struct rn_loop_step_t {
  int32_t instr;
  int32_t first_input;  // into rn_straight_loop_t.inputs
  int32_t first_release,
      release_count;  // into rn_straight_loop_t.releases: slots to clear afterwards
  uint64_t dying;
} rn_loop_step_t;

typedef struct rn_loop_var_t {
  int32_t enter, next;  // instructions
  int32_t slot;         // its value in the iteration
  int32_t source;       // the slot of its value for the next iteration
  bool is_last;         // nothing else needs the value of |source| afterwards
} rn_loop_var_t;

typedef struct rn_straight_loop_t {
  int32_t step_count;
  int32_t condition_count;  // steps that run before |condition| is known
  int32_t condition;        // slot
  int32_t fork;             // a Switch, for messages
  rn_loop_step_t* steps;
  int32_t input_total;
  int32_t* inputs;    // slot of each input of each step
  int32_t* releases;  // slots
  int32_t constant_count;
  int32_t* constants;  // instructions that only give a constant
  int32_t var_count;
  rn_loop_var_t* vars;
  int32_t exit_count;
  int32_t* exits;  // instructions, and in |exit_sources| the slots that they take out of the loop
  int32_t* exit_sources;
  int32_t late_count;
  int32_t* late;  // slots to clear at the end of an iteration
} rn_straight_loop_t;

// The static part of a loop, one per frame name; frame 0 is the step itself. Slots and instructions
// are numbered within their frame, so that an iteration is a few dense arrays, copied from here.
typedef struct rn_frame_def_t {
  rn_str_t name;
  uint64_t name_hash;
  int32_t parent;
  int32_t parallel_iterations;
  int32_t enter_count;  // Enter instructions that lead into it
  int32_t instr_count;
  int32_t* pending;  // by local instruction
  // In a loop shared with other parts of the step, these must run in every iteration: its Sends and
  // NextIterations.
  int32_t send_count;
  int32_t* sends;  // instructions
  int32_t next_count;
  int32_t* nexts;  // instructions
  int32_t slot_count;
  int32_t* slots;    // plan slot of each local slot
  int32_t* readers;  // by local slot
  rn_tensor_t*
      templates;  // by local slot: those with their own memory in the iteration have type and shape
  size_t* offsets;                 // by local slot: place of that memory; SIZE_MAX: none
  size_t memory;                   // bytes of it in an iteration
  const rn_straight_loop_t* loop;  // NULL if it is not straight
} rn_frame_def_t;

struct rn_plan_t {
  rn_allocator_t allocator;
  rn_arena_t arena;
  rn_device_t* device;  // Borrowed from the session
  rn_device_t* host;    // Borrowed likewise: the CPU
  const rn_env_t* env;
  int32_t instr_count;
  rn_instr_t* instrs;
  int32_t slot_count;
  rn_slot_t* slots;
  int32_t input_total;
  int32_t* inputs;  // slot of each input of each instruction
  int32_t release_total;
  int32_t* releases;
  int32_t deref_total;
  rn_deref_t* derefs;
  int32_t task_count;
  rn_task_t* tasks;
  int32_t* successors;
  int32_t segment_count;
  bool has_loose_fetches;  // values go to the client outside of segments, maybe beside other work
  rn_segment_t* segments;  // in order
  int32_t counter_count;
  int32_t async_count;
  int32_t* async_tasks;  // the task of each asynchronous instruction
  int32_t feed_count;
  int32_t* feed_slots;  // slot of each feed; RN_NO_SLOT: this part does not need it
  uint8_t* feed_uses;   // by feed, in a recorded plan with frames: see record_step.c
  int32_t fetch_count;
  int32_t* fetch_slots;          // slot of each fetch; RN_NO_SLOT: another part has it
  rn_str_t* names;               // by instruction
  rn_str_t* labels;              // by instruction: name, op and inputs, for timelines
  size_t block_size;             // bytes of planned memory
  rn_tensor_t* templates;        // one per slot: constants shared, planned ones with type and shape
  RN_VEC(rn_kernel_t*) kernels;  // Owned; those of stateful nodes are the cache's
  bool has_frames;
  int32_t frame_count;
  rn_frame_def_t* frames;
  int32_t* slot_local;    // by slot: its number in its frame
  int32_t* input_locals;  // by input of each instruction: its slot's number in the frame; an
                          // instruction's |releases| are these, each once
  rn_edge_out_t* edges;
  rn_mutex_t mutex;                // guards what follows
  struct rn_state_t* free_states;  // Owned; states of earlier steps, ready for the next
  rn_idle_memory_t idle;           // these states, which the device may ask for
  int32_t free_count;
  int32_t steps;  // that have ended; 2 stands for more
};

#endif  // RUNNEL_EXEC_PLAN_H_
