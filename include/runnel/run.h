// Running steps on C arrays: what is fed, what is fetched and what is run, in one call.
//
//   TF_Session* session = rn_session_start(scope, NULL, status);
//   float points[4][2] = {…}, loss;
//   rn_run(session, status, RN_FEED(x, points[0], 4, 2), RN_FETCH(loss_edge, &loss),
//          RN_TARGET(train));
//   if (TF_GetCode(status) != TF_OK) fprintf(stderr, "%s\n", TF_Message(status));
//   TF_DeleteSession(session, status);
//
// Arrays stay the caller's: rn_run copies feeds before the step and results after it. The element
// type follows from the pointer (float, double, bool or an integer of <stdint.h>) and must be that
// of the tensor; the dimensions follow the pointer, none for a scalar.
#ifndef RUNNEL_RUN_H_
#define RUNNEL_RUN_H_

#include "runnel/graph.h"
#include "tensorflow/c/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

// A session over the graph of |scope|. |options| NULL: the defaults. NULL after an error, which may
// be the scope's: a program that builds a graph and runs it needs one check, at its end. The caller
// deletes the session with TF_DeleteSession.
RN_API TF_Session* rn_session_start(rn_scope_t* scope, const TF_SessionOptions* options,
                                    TF_Status* status);

enum { RN_RUN_MAX_RANK = 8 };  // of an array; tensors may have more dimensions
#define RN_RUN_END INT64_MIN   // ends the dimensions

typedef enum rn_run_kind_t { RN_RUN_FEED, RN_RUN_FETCH, RN_RUN_TARGET } rn_run_kind_t;

// Which tensor or node: |name| if it is not NULL ("x" is output 0 of node x, "x:1" output 1), or
// else |edge|.
typedef struct rn_run_key_t {
  rn_edge_t edge;
  const char* name;
} rn_run_key_t;

// One argument of rn_run. Use the macros below.
typedef struct rn_run_arg_t {
  rn_run_kind_t kind;
  rn_run_key_t key;
  TF_DataType dtype;                  // of the array's elements
  const void* from;                   // array to feed
  void* to;                           // array to fetch into
  const TF_Tensor* tensor;            // tensor to feed
  TF_Tensor** out_tensor;             // where the fetched tensor goes
  int64_t dims[RN_RUN_MAX_RANK + 1];  // of the array, then RN_RUN_END
} rn_run_arg_t;

// RN_FEED(x, array, dimensions…) feeds a C array. |x| is an edge or a name.
#define RN_FEED(x, ...) RN_FEED_(x, __VA_ARGS__, RN_RUN_END)
// RN_FETCH(y, array, dimensions…) copies the result into a C array of exactly its shape.
#define RN_FETCH(y, ...) RN_FETCH_(y, __VA_ARGS__, RN_RUN_END)
// RN_TARGET(node) runs a node, named by itself or by its name, for its side effects.
#define RN_TARGET(node) \
  (RN_LITERAL(rn_run_arg_t){RN_RUN_TARGET, RN_RUN_NODE_(node), (TF_DataType)0, 0, 0, 0, 0, {0}})
// The same for tensors, of any type and shape. A fed tensor stays the caller's, a fetched one
// becomes the caller's.
#define RN_FEED_TENSOR(x, tensor) \
  (RN_LITERAL(rn_run_arg_t){RN_RUN_FEED, RN_RUN_KEY_(x), (TF_DataType)0, 0, 0, (tensor), 0, {0}})
#define RN_FETCH_TENSOR(y, out) \
  (RN_LITERAL(rn_run_arg_t){RN_RUN_FETCH, RN_RUN_KEY_(y), (TF_DataType)0, 0, 0, 0, (out), {0}})

// rn_run(session, status, arguments…) runs one step: any number of feeds, fetches and targets, at
// least one of which is a fetch or a target. True if it succeeded. Otherwise |status| says why and
// nothing was fetched: TF_NOT_FOUND for a name that the graph does not have, TF_INVALID_ARGUMENT
// for an array whose type or shape is not that of the tensor (the shape of a result is known after
// the step, so its side effects have happened then). If |session| is NULL, |status| keeps the error
// that it has. Any number of threads may run steps of one session at once.
#define rn_run(session, status, ...) RN_RUN_CALL_(rn_run_args, session, status, __VA_ARGS__)
RN_API bool rn_run_args(TF_Session* session, const rn_run_arg_t* args, size_t count,
                        TF_Status* status);

// What the macros are made of.
#define RN_FEED_(x, data, ...) \
  (RN_LITERAL(rn_run_arg_t){   \
      RN_RUN_FEED, RN_RUN_KEY_(x), RN_RUN_DTYPE_(data), (data), 0, 0, 0, {__VA_ARGS__}})
#define RN_FETCH_(y, data, ...) \
  (RN_LITERAL(rn_run_arg_t){    \
      RN_RUN_FETCH, RN_RUN_KEY_(y), RN_RUN_DTYPE_(data), 0, (data), 0, 0, {__VA_ARGS__}})

static inline rn_run_key_t rn_run_key_of_edge_(rn_edge_t edge) {
  rn_run_key_t key = {edge, NULL};
  return key;
}
static inline rn_run_key_t rn_run_key_of_node_(rn_node_t* node) {
  rn_run_key_t key = {{node, 0}, NULL};
  return key;
}
static inline rn_run_key_t rn_run_key_of_name_(const char* name) {
  rn_run_key_t key = {{NULL, 0}, name};
  return key;
}

#ifdef __cplusplus
extern "C++" {
static inline rn_run_key_t rn_run_key_(rn_edge_t edge) { return rn_run_key_of_edge_(edge); }
static inline rn_run_key_t rn_run_key_(rn_node_t* node) { return rn_run_key_of_node_(node); }
static inline rn_run_key_t rn_run_key_(const char* name) { return rn_run_key_of_name_(name); }
static inline TF_DataType rn_run_dtype_(const float*) { return TF_FLOAT; }
static inline TF_DataType rn_run_dtype_(const double*) { return TF_DOUBLE; }
static inline TF_DataType rn_run_dtype_(const bool*) { return TF_BOOL; }
static inline TF_DataType rn_run_dtype_(const int8_t*) { return TF_INT8; }
static inline TF_DataType rn_run_dtype_(const int16_t*) { return TF_INT16; }
static inline TF_DataType rn_run_dtype_(const int32_t*) { return TF_INT32; }
static inline TF_DataType rn_run_dtype_(const int64_t*) { return TF_INT64; }
static inline TF_DataType rn_run_dtype_(const uint8_t*) { return TF_UINT8; }
static inline TF_DataType rn_run_dtype_(const uint16_t*) { return TF_UINT16; }
static inline TF_DataType rn_run_dtype_(const uint32_t*) { return TF_UINT32; }
static inline TF_DataType rn_run_dtype_(const uint64_t*) { return TF_UINT64; }
}
#define RN_RUN_CALL_(function, self, status, ...)                           \
  ([&] {                                                                    \
    const rn_run_arg_t args_[] = {__VA_ARGS__};                             \
    return function((self), args_, sizeof args_ / sizeof *args_, (status)); \
  }())
#define RN_RUN_KEY_(key) rn_run_key_(key)
#define RN_RUN_NODE_(key) rn_run_key_(key)
#define RN_RUN_DTYPE_(data) rn_run_dtype_(data)
#else
#define RN_RUN_ARGS_(...) ((const rn_run_arg_t[]){__VA_ARGS__})
#define RN_RUN_CALL_(function, self, status, ...) \
  function((self), RN_RUN_ARGS_(__VA_ARGS__),     \
           sizeof RN_RUN_ARGS_(__VA_ARGS__) / sizeof(rn_run_arg_t), (status))
// clang-format off
#define RN_RUN_KEY_(key) \
  _Generic((key), rn_edge_t: rn_run_key_of_edge_, default: rn_run_key_of_name_)(key)
#define RN_RUN_NODE_(key) \
  _Generic((key), rn_node_t*: rn_run_key_of_node_, default: rn_run_key_of_name_)(key)
#define RN_RUN_DTYPE_(data)                                                         \
  _Generic(*(data),                                                                 \
           float: TF_FLOAT,      double: TF_DOUBLE,    bool: TF_BOOL,               \
           int8_t: TF_INT8,      int16_t: TF_INT16,    int32_t: TF_INT32,           \
           int64_t: TF_INT64,    uint8_t: TF_UINT8,    uint16_t: TF_UINT16,         \
           uint32_t: TF_UINT32,  uint64_t: TF_UINT64)
// clang-format on
#endif

#ifdef __cplusplus
}
#endif

#endif  // RUNNEL_RUN_H_
