// Kernels: the implementation of an op on a device. This is the interface that the files in
// kernels/ implement.
//
// A kernel is a row in its family's table. A plan creates one kernel per node: |init| reads the
// attributes once into private state; |compute| then runs once per step (or iteration), from any
// thread and concurrently, so state is read-only after init unless the kernel guards it itself.
#ifndef RUNNEL_FRAMEWORK_KERNEL_H_
#define RUNNEL_FRAMEWORK_KERNEL_H_

#include "base/env.h"
#include "framework/cancel.h"
#include "framework/collective.h"
#include "framework/op_def.h"
#include "framework/rendezvous.h"
#include "framework/resource.h"

typedef struct rn_device_t rn_device_t;
typedef struct rn_kernel_t rn_kernel_t;
typedef struct rn_kernel_ctx_t rn_kernel_ctx_t;
typedef struct rn_step_t rn_step_t;
typedef struct rn_functions_t rn_functions_t;  // see framework/function.h

enum {
  // Output i is input i: same bytes, perhaps another shape. Such a kernel only calls rn_forward.
  RN_KERNEL_FORWARDS = 1 << 0,
  // Computes element by element: output 0 may overwrite any input of the same byte size whose last
  // use this is; or the outputs may overwrite what |overwrites| says.
  RN_KERNEL_IN_PLACE = 1 << 1,
  // Keeps inputs beyond the call (with rn_tensor_keep), so the planner gives them buffers that can
  // be kept without a copy.
  RN_KERNEL_KEEPS_INPUTS = 1 << 2,
  // Takes long, or its cost does not follow from the size of its tensors: worth its own thread.
  RN_KERNEL_EXPENSIVE = 1 << 3,
  // Sets its outputs from its own state (variables, constants, queues): no memory is planned for
  // them.
  RN_KERNEL_OWN_OUTPUTS = 1 << 4,
  // On an asynchronous device: makes its outputs with rn_output and touches their bytes only by the
  // work that it issues, so that their memory may be planned.
  RN_KERNEL_ISSUES = 1 << 5,
  // As above, and what it issues follows from its attributes and from the addresses and shapes of
  // its arguments, so that the device may record the work once and replay it.
  RN_KERNEL_REPLAYS = 1 << 6 | RN_KERNEL_ISSUES,
  // All arguments are in host memory on any device.
  RN_KERNEL_ON_HOST = 1 << 7,
  // Touches no bytes of the device but by copies that it issues. What it does follows from the
  // values of its arguments in host memory, from the shapes of the others, and from earlier calls
  // of the step: it may keep values in containers that end with the step. So a step that the device
  // replays as a whole leaves it out.
  RN_KERNEL_REPEATS = 1 << 8,
};

// Identifies an elementwise operation that can be fused; see kernels/cpu/vector.h.
typedef uint16_t rn_vector_op_t;

typedef struct rn_kernel_type_t {
  const char* attr;   // name of a type attribute; NULL ends the list
  rn_dtypes_t types;  // its allowed values
} rn_kernel_type_t;

// Where an input of a node comes from.
typedef struct rn_kernel_source_t {
  rn_str_t node;
  int32_t output;
} rn_kernel_source_t;

// Arguments of |init|. Everything is borrowed for the call.
typedef struct rn_kernel_init_t {
  const struct rn_kernel_def_t* def;  // the row itself; set by rn_kernel_create
  const rn_op_def_t* op;
  rn_str_t node;                 // its name
  const rn_attr_value_t* attrs;  // in the order of the definition
  int32_t extra_count;
  const rn_attr_t* extras;
  int32_t input_count;
  const rn_dtype_t* input_types;
  int32_t output_count;
  const rn_dtype_t* output_types;
  const rn_shape_t* input_shapes;  // as inferred; may be unknown
  const rn_shape_t* output_shapes;
  const rn_kernel_source_t* sources;  // where inputs come from
  int32_t producer;                   // GraphDef version of the graph
  rn_device_t* device;
  rn_resources_t* resources;  // of the device
  rn_str_t device_name;
  rn_allocator_t allocator;      // for the kernel's own memory
  rn_allocator_t device_memory;  // for tensors
  rn_allocator_t host_memory;    // for tensors of host arguments
  bool is_host;                  // the device's memory is host memory
  const rn_env_t* env;
  rn_functions_t* functions;  // for calling functions; outlives the kernel. NULL if there are none
} rn_kernel_init_t;

// A list of names for rn_kernel_def_t, ended by NULL.
#define RN_HOST_ARGS(...) ((const char* const[]){__VA_ARGS__, NULL})

typedef struct rn_kernel_def_t {
  const char* op;
  const char* device;         // "CPU", "GPU", "NULL"
  rn_kernel_type_t types[4];  // all must hold; unused rows are zero
  // Input and output arguments that are in host memory on any device: RN_HOST_ARGS, or NULL.
  const char* const* host_args;
  const char* label;  // selected by the attribute "_kernel"; NULL for the default kernel
  int32_t priority;   // among several that match, the highest wins
  uint32_t flags;
  uint32_t state_size;       // bytes of private state, zeroed before init
  rn_vector_op_t vector_op;  // 0 if it cannot be fused
  // NULL if there is nothing to read.
  rn_status_t (*init)(const rn_kernel_init_t* init, void* state);
  // NULL if there is nothing to free; must accept half-initialized state.
  void (*destroy)(void* state);
  rn_status_t (*compute)(rn_kernel_ctx_t* ctx);
  // Instead of compute, for kernels that wait: returns at once, and rn_done is called exactly once,
  // from any thread, before or after that.
  void (*compute_async)(rn_kernel_ctx_t* ctx);
  // The inputs that output |o| may overwrite if they have as many elements of the same size and
  // nothing else needs them, as bits; |shapes| are those of the first |count| inputs, as far as
  // they are known. For kernels with RN_KERNEL_IN_PLACE; NULL: all for output 0, none for others.
  uint64_t (*overwrites)(const rn_kernel_t* kernel, int o, const rn_shape_t* shapes, int count);
} rn_kernel_def_t;

// A kernel made for one node.
struct rn_kernel_t {
  const rn_kernel_def_t* def;
  const rn_op_def_t* op;
  rn_str_t node;  // NUL-terminated
  rn_device_t* device;
  rn_resources_t* resources;
  rn_allocator_t allocator, device_memory, host_memory;
  int32_t input_count, output_count;
  const rn_dtype_t* input_types;
  const rn_dtype_t* output_types;
  const bool* input_is_host;  // by flat index; all true on the CPU
  const bool* output_is_host;
  void* state;
  size_t block_size;  // of the one block that holds all of this
};

// State of a step that its kernels see.
struct rn_step_t {
  int64_t id;
  rn_cancel_t* cancel;
  rn_rendezvous_t* rendezvous;     // NULL if the plan sends nothing
  rn_resources_t* step_resources;  // resources that are destroyed with the step (stacks,
                                   // TensorArrays); made on first use
  const rn_env_t* env;
  rn_pool_t* pool;                // for parallel work inside a kernel; NULL for one thread
  rn_collectives_t* collectives;  // NULL if the step cannot take part in any
  rn_str_t config;                // the session's serialized ConfigProto; empty for all defaults
  int64_t deadline_ns;            // on the environment's clock; 0 for none
  // Owned by exec, for calls that kernels make; NULL if no statistics are wanted.
  struct rn_step_stats_t* stats;
  int32_t call_depth;  // nesting depth of function calls
};

// CANCELLED or DEADLINE_EXCEEDED if |step| is over. Kernels whose time depends on the values of
// their inputs ask now and then: while a kernel runs, nothing else watches the deadline of a step
// on one thread.
RN_MUST_USE rn_status_t rn_step_stopped(const rn_step_t* step);

// The resources that are destroyed with |step|, made on first use. Borrowed.
RN_MUST_USE rn_status_t rn_step_get_resources(rn_step_t* step, rn_resources_t** out);

// One call of a kernel. The executor fills it in; kernels use the functions below and only the
// fields marked "for kernels".
struct rn_kernel_ctx_t {
  const rn_kernel_t* kernel;
  void* state;             // kernel->state; for kernels
  rn_tensor_t* const* in;  // for kernels, read-only: see rn_in
  rn_tensor_t* out;        // array of outputs; planned ones have type, shape and data set already
  rn_step_t* step;         // for kernels
  uint64_t dying;  // bit i: this call is the last use of input i (never set for inputs from 64 on)
  uint64_t planned;  // bit i: output i has memory from the plan
  bool is_dead;      // a Send on an untaken branch, which must tell the receiver
  // The execution of a loop and its iteration: part of rendezvous keys and of names of step
  // resources. The same in all partitions of a step; both 0 outside of loops.
  uint64_t frame;
  int64_t iteration;
  void (*done)(rn_kernel_ctx_t* ctx, rn_status_t status);  // set by the executor; see rn_done
};

static inline const rn_tensor_t* rn_in(const rn_kernel_ctx_t* ctx, int i) { return ctx->in[i]; }
static inline rn_pool_t* rn_ctx_pool(const rn_kernel_ctx_t* ctx) { return ctx->step->pool; }

// Makes output |i| with the given full shape and uninitialized bytes, in planned memory if it fits,
// else in new device memory (host memory for host arguments).
RN_MUST_USE rn_status_t rn_output(rn_kernel_ctx_t* ctx, int i, rn_shape_t shape, rn_tensor_t** out);
// Makes output |i| with the shape of input |j|. It may reuse input j's memory if this is its last
// use and the byte sizes agree, so the kernel must read element k of every input before it writes
// element k.
RN_MUST_USE rn_status_t rn_output_like(rn_kernel_ctx_t* ctx, int i, int j, rn_tensor_t** out);
// Makes output |i| of |shape|, reusing the memory of one of the inputs in the bit set |candidates|
// if this is its last use and it fits.
RN_MUST_USE rn_status_t rn_output_in_place(rn_kernel_ctx_t* ctx, int i, uint64_t candidates,
                                           rn_shape_t shape, rn_tensor_t** out);
// Makes output |i| share input |j|; the second form gives it another shape with the same number of
// elements.
RN_MUST_USE rn_status_t rn_forward(rn_kernel_ctx_t* ctx, int i, int j);
RN_MUST_USE rn_status_t rn_forward_reshaped(rn_kernel_ctx_t* ctx, int i, int j, rn_shape_t shape);
// Moves |tensor| to output |i| and zeroes it.
void rn_set_output(rn_kernel_ctx_t* ctx, int i, rn_tensor_t* tensor);
// Allocates a scratch tensor on the device; the kernel must clear it.
RN_MUST_USE rn_status_t rn_temp(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, rn_shape_t shape,
                                rn_tensor_t* out);
// The variable behind reference input |i|.
rn_variable_t* rn_in_variable(const rn_kernel_ctx_t* ctx, int i);
// Makes output |i| a reference to |variable|, which the kernel's state must keep alive.
void rn_set_output_ref(rn_kernel_ctx_t* ctx, int i, rn_variable_t* variable);
// Ends an asynchronous call and takes ownership of |status|. The context must not be used
// afterwards.
static inline void rn_done(rn_kernel_ctx_t* ctx, rn_status_t status) { ctx->done(ctx, status); }

// Attributes in init. The definition guarantees that they exist and have the kind asked for.
const rn_attr_value_t* rn_init_attr(const rn_kernel_init_t* init, const char* name);
static inline int64_t rn_init_int(const rn_kernel_init_t* init, const char* name) {
  return rn_init_attr(init, name)->i;
}
static inline bool rn_init_bool(const rn_kernel_init_t* init, const char* name) {
  return rn_init_attr(init, name)->b;
}
static inline float rn_init_float(const rn_kernel_init_t* init, const char* name) {
  return rn_init_attr(init, name)->f;
}
static inline rn_dtype_t rn_init_type(const rn_kernel_init_t* init, const char* name) {
  return rn_init_attr(init, name)->type;
}
static inline rn_str_t rn_init_string(const rn_kernel_init_t* init, const char* name) {
  return rn_init_attr(init, name)->s;
}

// The kernel registry. The built-in rows come from kernels/ through its registrar; plug-ins add
// theirs at run time. Finds the row for a node of |op| with these attributes on a device of type
// |device|; NULL if there is none.
const rn_kernel_def_t* rn_kernel_find(const rn_op_def_t* op, const rn_attr_value_t* attrs,
                                      const char* label, const char* device);
// Whether values of |arg|, of type |dtype|, are in host memory on a device other than the CPU.
bool rn_kernel_arg_is_host(const rn_kernel_def_t* def, const rn_arg_def_t* arg, rn_dtype_t dtype);
// Adds a plug-in's row, which must never be freed.
RN_MUST_USE rn_status_t rn_kernel_register(const rn_kernel_def_t* def);
// Visits every row, in the order of op names.
RN_MUST_USE rn_status_t rn_kernel_each(rn_status_t (*visit)(const rn_kernel_def_t* def, void* arg),
                                       void* arg);

// A family's rows; the registrar lists the families.
typedef struct rn_kernel_family_t {
  const rn_kernel_def_t* rows;
  size_t count;
} rn_kernel_family_t;
extern const rn_kernel_family_t* const rn_builtin_kernels[];  // NULL-terminated

// Makes the kernel |def| for a node. The kernel owns copies of what it needs of |init|.
RN_MUST_USE rn_status_t rn_kernel_create(const rn_kernel_def_t* def, const rn_kernel_init_t* init,
                                         rn_kernel_t** out);
void rn_kernel_destroy(rn_kernel_t* kernel);

#endif  // RUNNEL_FRAMEWORK_KERNEL_H_
