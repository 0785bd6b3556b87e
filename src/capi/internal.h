// Shared by the files of this folder: the structs behind the public handles, and the conversions.
//
// A TF_Graph is a rn_graph_t, a TF_Operation a rn_node_t, a TF_Output has the layout of a rn_edge_t
// and a TF_Tensor begins with a rn_tensor_t: those are casts. All other handles are wrappers.
#ifndef RUNNEL_CAPI_INTERNAL_H_
#define RUNNEL_CAPI_INTERNAL_H_

#include "base/env.h"
#include "framework/attr.h"
#include "graph/graph.h"
#include "tensor/tensor.h"
#include "tensorflow/c/c_api.h"
#include "wire/decode.h"
#include "wire/encode.h"

// Limit for tensors that arrive as messages: that of a message itself.
#define RN_CAPI_MAX_TENSOR_BYTES ((size_t)INT32_MAX)

struct TSL_Status {
  rn_status_t rep;  // Owned
};

struct TF_Tensor {
  rn_tensor_t tensor;
  size_t length;  // bytes of the buffer; may be more than the shape needs
  // Owned; |length| bytes that the client may write after it allocated a tensor of resources or
  // variants. They are never read, and the elements are empty. NULL if the client sees the
  // elements.
  void* scratch;
};
_Static_assert(offsetof(struct TF_Tensor, tensor) == 0, "arrays of TF_Tensor* are cast");
_Static_assert(sizeof(TF_Output) == sizeof(rn_edge_t), "TF_Output is a rn_edge_t");

// Zeroes |count| elements of an array of results, which may be NULL, because clients read and free
// the results of a failed call.
#define RN_CAPI_CLEAR(array, count)                                                              \
  do {                                                                                           \
    int clear_count_ = (count);                                                                  \
    if ((array) && clear_count_ > 0) memset((array), 0, (size_t)clear_count_ * sizeof *(array)); \
  } while (0)

// The allocator of everything that the API returns.
static inline rn_allocator_t rn_capi_allocator(void) { return rn_allocator_default(); }

// The environment of sessions; its log goes to the registered listeners.
const rn_env_t* rn_capi_env(void);

// Moves |status| to |to|, which may be NULL.
static inline void rn_capi_set(TF_Status* to, rn_status_t status) {
  if (!to) {
    rn_status_free(status);
    return;
  }
  if (!rn_ok(to->rep)) rn_status_free(to->rep);
  to->rep = status;
}
// The same; returns whether |status| is OK.
static inline bool rn_capi_ok(TF_Status* to, rn_status_t status) {
  bool ok = rn_ok(status);
  rn_capi_set(to, status);
  return ok;
}
// An rn_status_t copied from the client's status; NULL means OK.
static inline rn_status_t rn_capi_status_of(const TF_Status* status) {
  return status ? rn_status_copy(status->rep) : RN_OK;
}
// The INVALID_ARGUMENT status for a NULL |argument| of |function|.
RN_MUST_USE rn_status_t rn_capi_null(const char* function, const char* argument);
#define RN_CAPI_NULL(argument) rn_capi_null(__func__, argument)

static inline rn_graph_t* rn_capi_graph(TF_Graph* graph) { return (rn_graph_t*)graph; }
static inline rn_node_t* rn_capi_node(const TF_Operation* oper) {
  return (rn_node_t*)(uintptr_t)oper;
}
static inline TF_Operation* rn_capi_oper(rn_node_t* node) { return (TF_Operation*)node; }
static inline rn_edge_t rn_capi_edge(TF_Output output) {
  return (rn_edge_t){rn_capi_node(output.oper), output.index};
}
static inline TF_Output rn_capi_output(rn_edge_t edge) {
  return (TF_Output){rn_capi_oper(edge.node), edge.index};
}
// Whether |edge| names an output of a node.
static inline bool rn_capi_has_output(rn_edge_t edge) {
  return edge.node && edge.index >= 0 && edge.index < edge.node->output_count;
}
// INVALID_ARGUMENT, with the reason, unless |edge| is an output of |graph|.
RN_MUST_USE rn_status_t rn_capi_check_edge(const rn_graph_t* graph, rn_edge_t edge);

// Makes a tensor handle and moves |tensor| into it. On failure, clears |tensor|.
RN_MUST_USE rn_status_t rn_capi_tensor_wrap(rn_tensor_t* tensor, TF_Tensor** out);
// A handle that shares |tensor|, or copies it if its bytes are borrowed.
RN_MUST_USE rn_status_t rn_capi_tensor_keep(const rn_tensor_t* tensor, TF_Tensor** out);
// A shape of |num_dims| dims (-1: unknown rank) from outside, which it borrows. INVALID_ARGUMENT
// for an invalid shape; every negative dim must be -1.
RN_MUST_USE rn_status_t rn_capi_shape(const int64_t* dims, int num_dims, rn_shape_t* out);

// Moves the text of |buf| into |out|, an empty buffer; |buf| is always cleared. INVALID_ARGUMENT if
// |out| is NULL or not empty.
RN_MUST_USE rn_status_t rn_capi_buffer_take(rn_strbuf_t* buf, TF_Buffer* out);
RN_MUST_USE rn_status_t rn_capi_buffer_check(const TF_Buffer* out);
// A new buffer with the text of |buf|, which is cleared.
RN_MUST_USE rn_status_t rn_capi_buffer_make(rn_strbuf_t* buf, TF_Buffer** out);

// Appends |message| of type |desc|.
RN_MUST_USE rn_status_t rn_capi_encode(const rn_pb_message_desc_t* desc, const void* message,
                                       rn_strbuf_t* out);

// Decodes the TensorShapeProto in |bytes|; the dims are in |arena|. INVALID_ARGUMENT "Unparseable
// …".
RN_MUST_USE rn_status_t rn_capi_parse_shape(rn_str_t bytes, rn_arena_t* arena, rn_shape_t* out);
void rn_capi_write_shape(rn_strbuf_t* buf, rn_shape_t shape);
// Decodes an AttrValue; release its tensors with rn_attr_value_clear.
RN_MUST_USE rn_status_t rn_capi_parse_attr(rn_str_t bytes, rn_arena_t* arena, rn_attr_value_t* out);
RN_MUST_USE rn_status_t rn_capi_write_attr(rn_strbuf_t* buf, const rn_attr_value_t* value);

// Records an op that a plug-in registered with the library that this thread is loading, if any. The
// space for it is allocated before the registration, so that recording cannot fail.
RN_MUST_USE rn_status_t rn_capi_note_room(void);
void rn_capi_note_op(const rn_op_def_t* def);

#endif  // RUNNEL_CAPI_INTERNAL_H_
