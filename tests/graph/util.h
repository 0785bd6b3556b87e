// Helpers of the graph tests: graphs in one line.
#ifndef TESTS_GRAPH_UTIL_H_
#define TESTS_GRAPH_UTIL_H_

#include <criterion/criterion.h>

#include "../support/status.h"
#include "graph/graph.h"
#include "graph/import.h"

#define GT_TEST(suite, name) Test(suite, name, .timeout = 60)

rn_graph_t* gt_graph(void);

// Adds a node whose inputs are each a single tensor. |attrs| ends with an empty name.
rn_status_t gt_add(rn_graph_t* graph, const char* op, const char* name, const rn_edge_t* inputs,
                   int count, const rn_attr_t* attrs, rn_node_t** out);
// The same for one list of inputs.
rn_status_t gt_add_list(rn_graph_t* graph, const char* op, const char* name,
                        const rn_edge_t* inputs, int count, rn_node_t** out);

rn_node_t* gt_placeholder(rn_graph_t* graph, const char* name, rn_dtype_t dtype, rn_shape_t shape);
rn_node_t* gt_const_int32(rn_graph_t* graph, const char* name, int rank, const int64_t* dims,
                          const int32_t* values);

#define GT_SHAPE(...) \
  ((rn_shape_t){sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__}})
#define GT_EDGES(...) \
  (rn_edge_t[]){__VA_ARGS__}, (int)(sizeof((rn_edge_t[]){__VA_ARGS__}) / sizeof(rn_edge_t))
#define GT_OUT(node) ((rn_edge_t){(node), 0})
// Elements of a list of attributes, which ends with GT_NONE.
#define GT_ATTR(text, ...)                    \
  {                                           \
    {text, sizeof(text) - 1}, { __VA_ARGS__ } \
  }
#define GT_NONE                        \
  {                                    \
    {NULL, 0}, { .kind = RN_ATTR_INT } \
  }
#define GT_ATTR_INT(text, number) GT_ATTR(text, .kind = RN_ATTR_INT, .i = (number))
#define GT_ATTR_BOOL(text, truth) GT_ATTR(text, .kind = RN_ATTR_BOOL, .b = (truth))
#define GT_ATTR_TYPE(text, dtype) GT_ATTR(text, .kind = RN_ATTR_TYPE, .type = (dtype))
#define GT_ATTR_STR(text, str) GT_ATTR(text, .kind = RN_ATTR_STRING, .s = {str, sizeof(str) - 1})
#define GT_ATTRS(...) \
  (const rn_attr_t[]) { __VA_ARGS__, GT_NONE }

// "[2,?]", in static storage.
const char* gt_shape(rn_edge_t edge);
// The whole file, owned by the caller.
rn_strbuf_t gt_read_file(const char* name);
rn_strbuf_t gt_export(rn_graph_t* graph);

#endif  // TESTS_GRAPH_UTIL_H_
