// Mixed precision: which floats of a step's graph are computed in 16 bits.
//
// TensorFlow's auto_mixed_precision, after its published rules. Each op is on one of four lists, or
// on none (step/precision_lists.c):
//   allow: worth the conversion, and safe
//   infer: safe, unless a value comes from an op on the deny list
//   deny:  not safe, and neither is what follows
//   clear: moves or compares values without computing
// Nodes that are converted get another type attribute, and Casts stand where 16 and 32 bits meet.
// Variables stay floats; feeds, fetched nodes and targets keep their types.
#ifndef RUNNEL_STEP_PRECISION_H_
#define RUNNEL_STEP_PRECISION_H_

#include "step/ir.h"

// What a session asks for.
typedef struct rn_precision_t {
  rn_dtype_t gpu;     // for nodes on GPUs: RN_HALF or RN_BFLOAT16; 0: as they are
  rn_dtype_t cpu;     // for nodes on the CPU
  bool emulates_cpu;  // on the CPU: compute in floats, and round every value as |cpu| would
} rn_precision_t;

// Sets |*out| to what |name| means: "float16" (on GPUs), "bfloat16" (on GPUs and the CPU) or
// "float32" (everything as it is). INVALID_ARGUMENT for other names.
RN_MUST_USE rn_status_t rn_precision_parse(rn_str_t name, rn_precision_t* out);

// After placement: converts nodes as |precision| says. Lists that contradict each other (see below)
// leave the graph as it is, with a line in the log.
RN_MUST_USE rn_status_t rn_pass_mixed_precision(rn_ir_t* ir, const rn_precision_t* precision,
                                                const rn_env_t* env);

// How the pass treats an op.
typedef enum rn_paint_t {
  RN_PAINT_NONE = 0,
  RN_PAINT_ALLOW,
  RN_PAINT_INFER,
  RN_PAINT_DENY,
  RN_PAINT_CLEAR,
} rn_paint_t;

// The lists, with the changes that the environment asks for, as in TensorFlow:
// TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_<LIST>_ADD and _REMOVE with names and commas between them,
// where LIST is ALLOWLIST, INFERLIST, DENYLIST or CLEARLIST, and ..._LEVEL.
typedef struct rn_paint_lists_t {
  bool is_bfloat16_cpu;  // the lists of bfloat16 on CPUs; else those of half on GPUs
  bool is_allow_only;    // level TENSOR_CORES_ONLY: the other lists are empty
  bool infer_is_deny;    // level TREAT_INFER_AS_DENY
  bool forces_all;       // level UNSAFE_FORCE_ALL
} rn_paint_lists_t;

// Reads the level. INVALID_ARGUMENT, with stock's message, if an op is on two lists, or if the
// level is not for these lists.
RN_MUST_USE rn_status_t rn_paint_lists_init(bool is_bfloat16_cpu, rn_paint_lists_t* out);
rn_paint_t rn_paint_of(const rn_paint_lists_t* lists, const char* op);

#endif  // RUNNEL_STEP_PRECISION_H_
