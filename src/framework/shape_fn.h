// Shape functions: infer an op's output shapes from its inputs and attributes.
//
// The .ops file names an op's shape function, and ops/<family>.c defines it; several ops may share
// one. It is called when a node is added to a graph and whenever shapes are refined. It sets the
// output shapes it can infer (the others stay unknown) and fails, with TensorFlow's message, for a
// node that can never run; the caller appends the node's summary and input shapes. It runs on any
// thread and allocates only from the context's arena.
//
// doc/invariants.md: invariant 18b.
#ifndef RUNNEL_FRAMEWORK_SHAPE_FN_H_
#define RUNNEL_FRAMEWORK_SHAPE_FN_H_

#include "framework/op_def.h"

// What is known of the value of a small integer tensor, element by element; other shapes depend on
// such sizes and axes.
typedef struct rn_partial_t {
  bool is_known;          // whether at least the rank is known
  bool is_scalar;         // one element, rank 0
  int32_t count;          // elements of the vector (1 for a scalar)
  const int64_t* values;  // Borrowed; RN_UNKNOWN_VALUE where not known
} rn_partial_t;
#define RN_UNKNOWN_VALUE INT64_MIN

static inline bool rn_tensor_has_ints(const rn_tensor_t* value) {
  return value->dtype == RN_INT32 || value->dtype == RN_INT64;
}
// Element |i| of |value|, an int32 or int64 tensor.
static inline int64_t rn_tensor_int(const rn_tensor_t* value, int64_t i) {
  return value->dtype == RN_INT32 ? RN_DATA(value, const int32_t)[i]
                                  : RN_DATA(value, const int64_t)[i];
}
// Sets |*out| to the value of a small integer tensor, copied into |arena|; leaves it alone if
// |value| is another tensor.
RN_MUST_USE rn_status_t rn_partial_of_tensor(rn_arena_t* arena, const rn_tensor_t* value,
                                             rn_partial_t* out);

// What is known of the resource behind a handle.
typedef struct rn_handle_data_t {
  bool is_set;
  rn_dtype_t dtype;
  rn_shape_t shape;
  int key_rank;  // of a table: the number of trailing dimensions that form one key
} rn_handle_data_t;

// The inputs whose values a shape function read (bit i: input i), as whole values or as sizes of a
// shape. Used in error messages.
typedef struct rn_shape_asked_t {
  uint64_t values;
  uint64_t shapes;
} rn_shape_asked_t;

struct rn_shape_ctx_t {
  const rn_op_def_t* op;
  // Borrowed; one per attribute of the definition, defaults filled in.
  const rn_attr_value_t* attrs;
  rn_arena_t* arena;      // for the dims of the outputs
  int32_t graph_version;  // GraphDef producer version

  // Read these through the accessors below.
  int32_t input_count;
  const rn_shape_t* inputs;
  const rn_dtype_t* input_types;
  // Whole constant values, NULL where not constant.
  const rn_tensor_t* const* input_values;
  const rn_partial_t* input_partials;  // never NULL; is_known is false where nothing is known
  const rn_handle_data_t* input_handles;

  int32_t output_count;
  rn_shape_t* outputs;  // start as RN_SHAPE_UNKNOWN
  rn_handle_data_t* output_handles;
  rn_partial_t output_partial;  // of output 0; ops that compute shapes set it

  rn_shape_asked_t* asked;  // Borrowed; may be NULL

  // The first input or output that the function accessed although the node does not have it; set by
  // the accessors below. |overrun_kind| is "input" or "output", or NULL if there was none.
  const char* overrun_kind;
  int overrun_index;
  rn_shape_t spare_output;  // stands in for outputs that do not exist
  rn_handle_data_t spare_handle;
};

// The arrays of a context, which the caller of a shape function fills in.
typedef struct rn_shape_arrays_t {
  rn_shape_t* inputs;
  rn_dtype_t* types;
  const rn_tensor_t** values;
  rn_partial_t* partials;
  rn_handle_data_t* handles;
  rn_shape_t* outputs;
  rn_handle_data_t* output_handles;
} rn_shape_arrays_t;
// Allocates zeroed arrays for a node with these numbers of inputs and outputs.
RN_MUST_USE rn_status_t rn_shape_arrays_init(rn_arena_t* arena, int32_t input_count,
                                             int32_t output_count, rn_shape_arrays_t* out);
// Points |ctx|, whose counts are set, to |arrays|; nothing is known of its outputs.
void rn_shape_set_arrays(rn_shape_ctx_t* ctx, const rn_shape_arrays_t* arrays);

// Runs the op's shape function. INVALID_ARGUMENT if it fails, or if it accessed an input or output
// that the node does not have, since attributes from a file may be inconsistent.
RN_MUST_USE rn_status_t rn_shape_infer(rn_shape_ctx_t* ctx);

// Inputs and outputs by number. Shape functions use these, never the arrays: an index may come from
// an attribute, and a file may hold any attribute. Past the end, a read returns "unknown" and a
// write goes to a spare output; then the next function that makes a shape fails, and so does
// rn_shape_infer.
rn_shape_t rn_shape_in(rn_shape_ctx_t* ctx, int64_t i);
rn_dtype_t rn_shape_in_type(rn_shape_ctx_t* ctx, int64_t i);
const rn_partial_t* rn_shape_in_partial(rn_shape_ctx_t* ctx, int64_t i);
const rn_handle_data_t* rn_shape_in_handle(rn_shape_ctx_t* ctx, int64_t i);
rn_shape_t* rn_shape_out(rn_shape_ctx_t* ctx, int64_t i);
rn_handle_data_t* rn_shape_out_handle(rn_shape_ctx_t* ctx, int64_t i);

// Attributes by name. The definition guarantees that they exist and have the kind asked for.
const rn_attr_value_t* rn_shape_attr(const rn_shape_ctx_t* ctx, const char* name);

// Shapes. All results live in the context's arena.
RN_MUST_USE rn_status_t rn_shape_make(rn_shape_ctx_t* ctx, int rank, const int64_t* dims,
                                      rn_shape_t* out);
RN_MUST_USE rn_status_t rn_shape_vector(rn_shape_ctx_t* ctx, int64_t dim, rn_shape_t* out);
RN_MUST_USE rn_status_t rn_shape_matrix(rn_shape_ctx_t* ctx, int64_t rows, int64_t columns,
                                        rn_shape_t* out);
RN_MUST_USE rn_status_t rn_shape_of_rank(rn_shape_ctx_t* ctx, int rank,
                                         rn_shape_t* out);  // all dims unknown
// |shape| with the given rank; fails with "Shape must be rank 2 but is rank 3" otherwise. The
// at-least and at-most forms work likewise.
RN_MUST_USE rn_status_t rn_shape_with_rank(rn_shape_ctx_t* ctx, rn_shape_t shape, int rank,
                                           rn_shape_t* out);
RN_MUST_USE rn_status_t rn_shape_with_rank_at_least(rn_shape_ctx_t* ctx, rn_shape_t shape, int rank,
                                                    rn_shape_t* out);
RN_MUST_USE rn_status_t rn_shape_with_rank_at_most(rn_shape_ctx_t* ctx, rn_shape_t shape, int rank,
                                                   rn_shape_t* out);
// Merges what is known of one shape; fails with "Dimension 0 in both shapes must be equal, but are
// 2 and 3. Shapes are [2] and [3]." if they contradict each other.
RN_MUST_USE rn_status_t rn_shape_merge(rn_shape_ctx_t* ctx, rn_shape_t a, rn_shape_t b,
                                       rn_shape_t* out);
// "Dimensions must be equal, but are 2 and 3".
RN_MUST_USE rn_status_t rn_dim_merge(int64_t a, int64_t b, int64_t* out);
// "Dimension must be 3 but is 2".
RN_MUST_USE rn_status_t rn_dim_with_value(int64_t dim, int64_t value, int64_t* out);
// Dimension |axis| (negative: from the end), RN_UNKNOWN if the rank is not known.
int64_t rn_shape_dim(rn_shape_t shape, int axis);
// Dims [start, end) as a shape; negative positions count from the end; end INT_MAX: to the end.
RN_MUST_USE rn_status_t rn_shape_slice(rn_shape_ctx_t* ctx, rn_shape_t shape, int64_t start,
                                       int64_t end, rn_shape_t* out);
RN_MUST_USE rn_status_t rn_shape_concat(rn_shape_ctx_t* ctx, rn_shape_t a, rn_shape_t b,
                                        rn_shape_t* out);
RN_MUST_USE rn_status_t rn_shape_replace_dim(rn_shape_ctx_t* ctx, rn_shape_t shape, int axis,
                                             int64_t dim, rn_shape_t* out);
// The shape whose sizes (-1 if unknown) input |i|, a vector, holds; as much as is known of it.
RN_MUST_USE rn_status_t rn_shape_from_input(rn_shape_ctx_t* ctx, int i, rn_shape_t* out);
// Numpy broadcasting. |incompatible_error| false: unknown shape instead of an error.
RN_MUST_USE rn_status_t rn_shape_broadcast(rn_shape_ctx_t* ctx, rn_shape_t a, rn_shape_t b,
                                           bool incompatible_error, rn_shape_t* out);

// The constant value of input |i|; NULL if it is not known.
const rn_tensor_t* rn_shape_input_value(rn_shape_ctx_t* ctx, int i);
// Whether the scalar input |i| is known, and its value.
bool rn_shape_input_scalar(rn_shape_ctx_t* ctx, int i, int64_t* out_value);
// Sets what is known of output 0's value; |values| are copied.
RN_MUST_USE rn_status_t rn_shape_set_partial(rn_shape_ctx_t* ctx, bool is_scalar, int count,
                                             const int64_t* values);

// Shape functions that many ops share.
rn_status_t rn_shape_fn_unknown(rn_shape_ctx_t* ctx);  // all outputs unknown
// The same, for an op without a shape function.
rn_status_t rn_shape_fn_missing(rn_shape_ctx_t* ctx);
rn_status_t rn_shape_fn_unchanged(rn_shape_ctx_t* ctx);  // output 0 = input 0
rn_status_t rn_shape_fn_scalar(rn_shape_ctx_t* ctx);     // all outputs scalar
rn_status_t rn_shape_fn_none(rn_shape_ctx_t* ctx);       // no outputs
rn_status_t rn_shape_fn_broadcast2(rn_shape_ctx_t* ctx);

#endif  // RUNNEL_FRAMEWORK_SHAPE_FN_H_
