#include "util.h"

#include <stdio.h>

rn_graph_t* gt_graph(void) {
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(rn_allocator_default(), &graph));
  return graph;
}

static int count_attrs(const rn_attr_t* attrs) {
  int count = 0;
  while (attrs && attrs[count].name.size) count++;
  return count;
}

rn_status_t gt_add(rn_graph_t* graph, const char* op, const char* name, const rn_edge_t* inputs,
                   int count, const rn_attr_t* attrs, rn_node_t** out) {
  int32_t lengths[16];
  for (int i = 0; i < count && i < 16; i++) lengths[i] = RN_ARG_SINGLE;
  rn_node_t* node = NULL;
  rn_node_spec_t spec = {
      .op = rn_str(op),
      .name = rn_str(name),
      .inputs = inputs,
      .input_count = count,
      .attrs = attrs,
      .attr_count = count_attrs(attrs),
      .arg_lengths = lengths,
      .arg_count = count,
  };
  return rn_graph_add(graph, &spec, out ? out : &node);
}

rn_status_t gt_add_list(rn_graph_t* graph, const char* op, const char* name,
                        const rn_edge_t* inputs, int count, rn_node_t** out) {
  rn_node_t* node = NULL;
  rn_node_spec_t spec = {
      .op = rn_str(op),
      .name = rn_str(name),
      .inputs = inputs,
      .input_count = count,
      .arg_lengths = &(int32_t){count},
      .arg_count = 1,
  };
  return rn_graph_add(graph, &spec, out ? out : &node);
}

rn_node_t* gt_placeholder(rn_graph_t* graph, const char* name, rn_dtype_t dtype, rn_shape_t shape) {
  const rn_attr_t attrs[] = {GT_ATTR_TYPE("dtype", dtype),
                             GT_ATTR("shape", .kind = RN_ATTR_SHAPE, .shape = shape), GT_NONE};
  rn_node_t* node = NULL;
  OK(gt_add(graph, "Placeholder", name, NULL, 0, attrs, &node));
  return node;
}

rn_node_t* gt_const_int32(rn_graph_t* graph, const char* name, int rank, const int64_t* dims,
                          const int32_t* values) {
  rn_tensor_t tensor;
  OK(rn_tensor_create(rn_allocator_default(), RN_INT32, (rn_shape_t){rank, dims}, &tensor));
  memcpy(tensor.data, values, rn_tensor_bytes(&tensor));
  const rn_attr_t attrs[] = {GT_ATTR_TYPE("dtype", RN_INT32),
                             GT_ATTR("value", .kind = RN_ATTR_TENSOR, .tensor = &tensor), GT_NONE};
  rn_node_t* node = NULL;
  OK(gt_add(graph, "Const", name, NULL, 0, attrs, &node));
  rn_tensor_clear(&tensor);
  return node;
}

const char* gt_shape(rn_edge_t edge) {
  static char text[256];
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_allocator_default());
  rn_shape_print(&buf, edge.node->outputs[edge.index].shape);
  snprintf(text, sizeof text, "%s", rn_strbuf_view(&buf).data);
  rn_strbuf_clear(&buf);
  return text;
}

rn_strbuf_t gt_read_file(const char* name) {
  char path[1024];
  snprintf(path, sizeof path, RN_GRAPH_DATA "/%s", name);
  FILE* file = fopen(path, "rb");
  cr_assert(file, "%s cannot be read", path);
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_allocator_default());
  char block[4096];
  for (size_t size; (size = fread(block, 1, sizeof block, file)) > 0;) {
    rn_strbuf_append_n(&buf, block, size);
  }
  fclose(file);
  OK(rn_strbuf_status(&buf));
  return buf;
}

rn_strbuf_t gt_export(rn_graph_t* graph) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_allocator_default());
  OK(rn_graph_export(graph, &buf));
  return buf;
}
