// Helpers of all C API tests: checked statuses, small graphs, tensors, and a session runner. They
// use only public headers, so the same sources run against any library that exports this API.
#ifndef TESTS_CAPI_UTIL_H_
#define TESTS_CAPI_UTIL_H_

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "proto.h"
#include "tensorflow/c/c_api.h"

// Seconds a test may take before it counts as hung. The slowest library tried needs about one.
#define CT_TIMEOUT 60

#define CT_TEST(suite, name, ...) Test(suite, name, .timeout = CT_TIMEOUT, ##__VA_ARGS__)

#define CT_OK(status)                                                               \
  cr_assert_eq(TF_GetCode(status), TF_OK, "%s:%d: code %d: %s", __FILE__, __LINE__, \
               (int)TF_GetCode(status), TF_Message(status))

#define CT_CODE(status, code)                                                             \
  cr_assert_eq((int)TF_GetCode(status), (int)(code), "%s:%d: code %d, expected %d: '%s'", \
               __FILE__, __LINE__, (int)TF_GetCode(status), (int)(code), TF_Message(status))

// The whole message, for those that clients compare.
#define CT_ERROR(status, code, message)                                                          \
  do {                                                                                           \
    CT_CODE(status, code);                                                                       \
    cr_assert_str_eq(TF_Message(status), message, "%s:%d: '%s' is not '%s'", __FILE__, __LINE__, \
                     TF_Message(status), message);                                               \
  } while (0)

// Part of the message: what a person needs to find the fault.
#define CT_ERROR_HAS(status, code, part)                                                    \
  do {                                                                                      \
    CT_CODE(status, code);                                                                  \
    cr_assert(strstr(TF_Message(status), part) != NULL, "%s:%d: '%s' lacks '%s'", __FILE__, \
              __LINE__, TF_Message(status), part);                                          \
  } while (0)

#define CT_STR(actual, expected)                                                            \
  cr_assert_str_eq(actual, expected, "%s:%d: '%s' is not '%s'", __FILE__, __LINE__, actual, \
                   expected)

#define CT_INT(actual, expected)                                                          \
  cr_assert_eq((long long)(actual), (long long)(expected), "%s:%d: %s is %lld, not %lld", \
               __FILE__, __LINE__, #actual, (long long)(actual), (long long)(expected))

// Graph, status and (when first run) session of one test.
typedef struct ct_t {
  TF_Graph* graph;
  TF_Status* status;
  TF_Session* session;
} ct_t;

ct_t ct_open(void);
void ct_close(ct_t* t);

// A tensor deallocator that only counts its calls in the int at |arg|.
void ct_count_call(void* data, size_t length, void* arg);

// Tensors. The caller deletes them.
TF_Tensor* ct_int32(int32_t value);
TF_Tensor* ct_float(float value);
TF_Tensor* ct_bool(bool value);
TF_Tensor* ct_tensor(TF_DataType dtype, const int64_t* dims, int num_dims, const void* values,
                     size_t bytes);
TF_Tensor* ct_int32_vector(int count, const int32_t* values);
TF_Tensor* ct_float_matrix(int rows, int columns, const float* values);
TF_Tensor* ct_string(const char* text);
TF_Tensor* ct_string_vector(int count, const char* const* texts);
// Reads and deletes a scalar, which must have the dtype asked for.
int32_t ct_take_int32(TF_Tensor* tensor);
float ct_take_float(TF_Tensor* tensor);

// Operations. These assert success; those ending in _try leave the outcome in |status| and may
// return NULL.
TF_Operation* ct_placeholder(ct_t* t, TF_Graph* graph, const char* name, TF_DataType dtype);
TF_Operation* ct_placeholder_shaped(ct_t* t, TF_Graph* graph, const char* name, TF_DataType dtype,
                                    const int64_t* dims, int num_dims);
// Takes |value| over and deletes it.
TF_Operation* ct_const(ct_t* t, TF_Graph* graph, const char* name, TF_Tensor* value);
TF_Operation* ct_scalar(ct_t* t, TF_Graph* graph, const char* name, int32_t value);
TF_Operation* ct_scalar_float(ct_t* t, TF_Graph* graph, const char* name, float value);
TF_Operation* ct_unary(ct_t* t, TF_Graph* graph, const char* type, const char* name, TF_Output x);
TF_Operation* ct_binary(ct_t* t, TF_Graph* graph, const char* type, const char* name, TF_Output x,
                        TF_Output y);
TF_Operation* ct_binary_try(TF_Graph* graph, const char* type, const char* name, TF_Output x,
                            TF_Output y, TF_Status* status);
// AddN of two outputs.
TF_Operation* ct_add(ct_t* t, TF_Graph* graph, const char* name, TF_Output x, TF_Output y);
TF_Operation* ct_add_try(TF_Graph* graph, const char* name, TF_Output x, TF_Output y,
                         TF_Status* status);
// AddN of two operations that waits for |control|.
TF_Operation* ct_add_after(ct_t* t, TF_Graph* graph, const char* name, TF_Operation* x,
                           TF_Operation* y, TF_Operation* control);
TF_Operation* ct_neg(ct_t* t, TF_Graph* graph, const char* name, TF_Operation* x);
TF_Operation* ct_less(ct_t* t, TF_Graph* graph, const char* name, TF_Output x, TF_Output y);
TF_Operation* ct_split3(ct_t* t, TF_Graph* graph, const char* name, TF_Operation* value);
TF_Operation* ct_min(ct_t* t, TF_Graph* graph, const char* name, TF_Operation* input,
                     TF_Operation* axes, const char* device);
TF_Operation* ct_random_uniform(ct_t* t, TF_Graph* graph, const char* name, TF_Operation* shape,
                                TF_DataType dtype);

// Output |index| of |oper|.
static inline TF_Output ct_out(TF_Operation* oper, int index) {
  return (TF_Output){.oper = oper, .index = index};
}

// A session over |t->graph|, made at the first call; |config| bytes may be NULL.
TF_Session* ct_session(ct_t* t, const pb_t* config);
// One fetch, |count| feeds; feeds are deleted. On failure returns NULL with |t->status| set.
TF_Tensor* ct_try_run(ct_t* t, int count, const TF_Output* feeds, TF_Tensor* const* values,
                      TF_Output fetch);
// The same, asserting success.
TF_Tensor* ct_run(ct_t* t, int count, const TF_Output* feeds, TF_Tensor* const* values,
                  TF_Output fetch);
TF_Tensor* ct_run1(ct_t* t, TF_Operation* feed, TF_Tensor* value, TF_Operation* fetch);
TF_Tensor* ct_run0(ct_t* t, TF_Operation* fetch);

// The graph as text, one node a line in GraphDef order: "name = Op(input, input:1, ^control)
// @device". malloc'ed.
char* ct_graph_text(TF_Graph* graph);
// Its GraphDef / the operation's NodeDef / an attribute's AttrValue; the caller deletes the buffer.
TF_Buffer* ct_graph_def(TF_Graph* graph);
TF_Buffer* ct_node_def(TF_Operation* oper);

// Asserts the attribute's metadata in one line.
#define CT_META(oper, name, list, size, attr_type, total)                        \
  do {                                                                           \
    TF_Status* meta_status = TF_NewStatus();                                     \
    TF_AttrMetadata meta = TF_OperationGetAttrMetadata(oper, name, meta_status); \
    CT_OK(meta_status);                                                          \
    CT_INT(meta.is_list, list);                                                  \
    CT_INT(meta.list_size, size);                                                \
    CT_INT(meta.type, attr_type);                                                \
    CT_INT(meta.total_size, total);                                              \
    TF_DeleteStatus(meta_status);                                                \
  } while (0)

#endif  // TESTS_CAPI_UTIL_H_
