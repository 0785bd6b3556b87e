// Dataset objects, and the single kernel that creates all of them. See data.h.
#include <stdatomic.h>

#include "kernels/cpu/dataset/data.h"

#include "kernels/cpu/array.h"
#include "kernels/cpu/string/text.h"
#include "tensor/tstring.h"
#include "wire/scan.h"

// Nodes.
static void node_destroy(rn_object_t* object) {
  rn_data_node_t* node = (rn_data_node_t*)object;
  for (int i = 0; node->attrs && i < node->op->attr_count; ++i)
    rn_attr_value_clear(&node->attrs[i]);
  rn_arena_clear(&node->arena);
  RN_FREE(node->allocator, node);
}

static rn_status_t read_components(rn_data_node_t* node) {
  const rn_data_kind_t* kind = node->kind;
  node->component_count = kind->fixed_count;
  node->types = kind->fixed_types;
  int types = rn_op_attr_index(node->op, RN_STR("output_types"));
  if (types < 0) types = rn_op_attr_index(node->op, RN_STR("Toutput_types"));
  if (types >= 0) {
    node->component_count = node->attrs[types].count;
    node->types = node->attrs[types].list_type;
  }
  int values = rn_op_attr_index(node->op, RN_STR("Tvalues"));
  if (values >= 0) {  // indices, values, shape
    rn_dtype_t* sparse = NULL;
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&node->arena, 3, &sparse));
    sparse[0] = sparse[2] = RN_INT64;
    sparse[1] = node->attrs[values].type;
    node->types = sparse;
  }
  int shapes = rn_op_attr_index(node->op, RN_STR("output_shapes"));
  if (shapes >= 0 && node->attrs[shapes].count == node->component_count) {
    node->shapes = node->attrs[shapes].list_shape;
    return RN_OK;
  }
  if (shapes >= 0 && node->attrs[shapes].count > 0)
    return rn_invalid_argument(
        "`output_shapes` must be the same length as `output_types` (%d vs. %d)",
        node->attrs[shapes].count, node->component_count);
  rn_shape_t* unknown = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&node->arena, (size_t)node->component_count, &unknown));
  for (int32_t i = 0; i < node->component_count; ++i) unknown[i] = RN_SHAPE_UNKNOWN;
  node->shapes = unknown;
  return RN_OK;
}

static rn_status_t node_fill(rn_data_node_t* node, const rn_kernel_init_t* init) {
  RN_RETURN_IF_ERROR(rn_arena_str(&node->arena, init->node, &node->name));
  RN_RETURN_IF_ERROR(rn_arena_str(&node->arena, init->device_name, &node->device));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&node->arena, (size_t)init->op->attr_count, &node->attrs));
  for (int i = 0; i < init->op->attr_count; ++i)
    RN_RETURN_IF_ERROR(rn_attr_value_copy(&node->arena, &init->attrs[i], &node->attrs[i]));
  return read_components(node);
}

rn_status_t rn_data_node_create(const rn_kernel_init_t* init, const rn_data_kind_t* kind,
                                rn_data_node_t** out) {
  *out = NULL;
  rn_data_node_t* node = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(init->allocator, &node));
  node->object = (rn_object_t){.refs = 1, .destroy = node_destroy};
  node->allocator = init->allocator;
  node->memory = init->host_memory;
  node->kind = kind;
  node->op = init->op;
  node->input_count = init->input_count;
  node->functions = init->functions;
  rn_arena_init(&node->arena, init->allocator);
  rn_status_t status = node_fill(node, init);
  if (!rn_ok(status)) {
    rn_object_release(&node->object);
    return status;
  }
  *out = node;
  return RN_OK;
}

// Datasets.
static void dataset_destroy(rn_object_t* object) {
  rn_dataset_t* dataset = (rn_dataset_t*)object;
  rn_data_node_t* node = dataset->node;
  if (dataset->kind->close) dataset->kind->close(dataset);
  for (int32_t i = 0; dataset->inputs && i < node->input_count; ++i)
    rn_tensor_clear(&dataset->inputs[i]);
  RN_FREE_ARRAY(node->allocator, dataset->inputs, node->input_count);
  rn_object_release(&dataset->host->object);
  rn_functions_release(dataset->functions);
  rn_free(node->allocator, dataset, dataset->kind->dataset_size);
  rn_object_release(&node->object);
}

static rn_status_t create_closed(rn_data_node_t* node, const rn_data_kind_t* kind,
                                 rn_data_host_t* host, rn_dataset_t** out) {
  *out = NULL;
  rn_dataset_t* dataset = NULL;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(node->allocator, kind->dataset_size, (void**)&dataset));
  dataset->object = (rn_object_t){.refs = 1, .destroy = dataset_destroy};
  dataset->node = node;
  rn_object_retain(&node->object);
  dataset->kind = kind;
  dataset->host = host;
  rn_object_retain(&host->object);
  dataset->functions = node->functions;
  rn_functions_retain(dataset->functions);
  dataset->component_count = node->component_count;
  dataset->types = node->types;
  dataset->shapes = node->shapes;
  *out = dataset;
  return RN_OK;
}

rn_status_t rn_dataset_create(rn_data_node_t* node, const rn_data_kind_t* kind,
                              rn_data_host_t* host, const rn_tensor_t* const* inputs,
                              rn_dataset_t** out) {
  rn_dataset_t* dataset = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(create_closed(node, kind, host, &dataset));
  rn_status_t status = RN_NEW_ARRAY(node->allocator, (size_t)node->input_count, &dataset->inputs);
  for (int32_t i = 0; rn_ok(status) && i < node->input_count; ++i)
    status = rn_tensor_keep(inputs[i], node->memory, &dataset->inputs[i]);
  if (rn_ok(status)) status = kind->open(dataset);
  if (!rn_ok(status)) {
    rn_dataset_release(dataset);
    return status;
  }
  *out = dataset;
  return RN_OK;
}

rn_status_t rn_dataset_create_inner(rn_data_node_t* node, rn_data_host_t* host,
                                    rn_dataset_t** out) {
  return create_closed(node, node->kind, host, out);
}

static rn_status_t inner_fill(rn_data_node_t* node, const rn_data_node_t* like, int32_t count,
                              const rn_dtype_t* types, const rn_shape_t* shapes) {
  rn_dtype_t* own_types = NULL;
  rn_shape_t* own_shapes = NULL;
  RN_RETURN_IF_ERROR(rn_arena_str(&node->arena, like->name, &node->name));
  RN_RETURN_IF_ERROR(rn_arena_str(&node->arena, like->device, &node->device));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&node->arena, (size_t)count, &own_types));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&node->arena, (size_t)count, &own_shapes));
  for (int32_t i = 0; i < count; ++i) {
    own_types[i] = types[i];
    RN_RETURN_IF_ERROR(rn_shape_copy(&node->arena, shapes[i], &own_shapes[i]));
  }
  node->component_count = count;
  node->types = own_types;
  node->shapes = own_shapes;
  return RN_OK;
}

rn_status_t rn_data_inner_node(const rn_data_node_t* like, const rn_data_kind_t* kind,
                               int32_t component_count, const rn_dtype_t* types,
                               const rn_shape_t* shapes, rn_data_node_t** out) {
  *out = NULL;
  rn_data_node_t* node = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(like->allocator, &node));
  node->object = (rn_object_t){.refs = 1, .destroy = node_destroy};
  node->allocator = like->allocator;
  node->memory = like->memory;
  node->kind = kind;
  node->op = like->op;
  rn_arena_init(&node->arena, like->allocator);
  rn_status_t status = inner_fill(node, like, component_count, types, shapes);
  if (!rn_ok(status)) {
    rn_object_release(&node->object);
    return status;
  }
  *out = node;
  return RN_OK;
}

rn_status_t rn_dataset_of(const rn_tensor_t* tensor, rn_dataset_t** out) {
  *out = NULL;
  if (tensor->dtype != RN_VARIANT || tensor->rank != 0)
    return rn_invalid_argument("Dataset tensor must be a scalar of dtype DT_VARIANT.");
  rn_object_t* object = *RN_DATA(tensor, rn_object_t*);
  if (!object || object->destroy != dataset_destroy)
    return rn_invalid_argument("Tensor must be a Dataset object.");
  *out = (rn_dataset_t*)object;
  return RN_OK;
}

// Kept, because kinds ask their inputs: several may read one of these, and so on up the pipeline.
int64_t rn_dataset_cardinality(const rn_dataset_t* dataset) {
  const int64_t least = RN_DATA_UNKNOWN - 1;  // of what is kept, 0
  _Atomic int64_t* counted = &((rn_dataset_t*)(uintptr_t)dataset)->counted;
  int64_t known = atomic_load_explicit(counted, memory_order_relaxed);
  if (known) return known + least;
  int64_t count =
      dataset->kind->cardinality ? dataset->kind->cardinality(dataset) : RN_DATA_UNKNOWN;
  if (count <= INT64_MAX + least)
    atomic_store_explicit(counted, count - least, memory_order_relaxed);
  return count;
}

rn_status_t rn_data_variant(rn_allocator_t memory, rn_object_t* object, rn_tensor_t* out) {
  rn_status_t status = rn_tensor_create(memory, RN_VARIANT, RN_SHAPE_SCALAR, out);
  if (rn_ok(status))
    *RN_DATA(out, rn_object_t*) = object;
  else
    rn_object_release(object);
  return status;
}

rn_status_t rn_dataset_tensor(rn_dataset_t* dataset, rn_tensor_t* out) {
  rn_object_retain(&dataset->object);
  return rn_data_variant(dataset->node->memory, &dataset->object, out);
}

// Inputs and attributes.
const rn_tensor_t* rn_data_input(const rn_dataset_t* dataset, const char* name,
                                 int32_t* out_count) {
  const rn_op_def_t* op = dataset->node->op;
  int32_t first = 0;
  for (int i = 0; i < op->input_count; ++i) {
    int32_t length = rn_arg_length(&op->inputs[i], dataset->node->attrs);
    if (strcmp(op->inputs[i].name, name) == 0) {
      if (out_count) *out_count = length;
      return &dataset->inputs[first];
    }
    first += length;
  }
  if (out_count) *out_count = 0;
  return NULL;
}

bool rn_data_has_input(const rn_dataset_t* dataset, const char* name) {
  return rn_data_input(dataset, name, NULL) != NULL;
}

const rn_attr_value_t* rn_data_attr(const rn_dataset_t* dataset, const char* name) {
  int i = rn_op_attr_index(dataset->node->op, rn_str(name));
  return i < 0 ? NULL : &dataset->node->attrs[i];
}

bool rn_data_flag(const rn_dataset_t* dataset, const char* name) {
  const rn_attr_value_t* value = rn_data_attr(dataset, name);
  return value && value->kind == RN_ATTR_BOOL && value->b;
}

rn_status_t rn_data_scalar(const rn_dataset_t* dataset, const char* name, int64_t* out) {
  const rn_tensor_t* tensor = rn_data_input(dataset, name, NULL);
  if (!tensor || tensor->rank != 0) return rn_invalid_argument("%s must be a scalar", name);
  *out = tensor->dtype == RN_BOOL ? *RN_DATA(tensor, const bool) : rn_int_at(tensor, 0);
  return RN_OK;
}

rn_status_t rn_data_text(const rn_dataset_t* dataset, const char* name, rn_str_t* out) {
  const rn_tensor_t* tensor = rn_data_input(dataset, name, NULL);
  *out = RN_STR("");
  if (!tensor) return RN_OK;
  if (tensor->rank != 0) return rn_invalid_argument("%s must be a scalar", name);
  *out = rn_tstring_view(RN_DATA(tensor, const rn_tstring_t));
  return RN_OK;
}

rn_status_t rn_data_upstream(const rn_dataset_t* dataset, const char* name, rn_dataset_t** out) {
  const rn_tensor_t* tensor = rn_data_input(dataset, name, NULL);
  *out = NULL;
  if (!tensor) return rn_internal("%s has no input '%s'", dataset->node->op->name, name);
  return rn_dataset_of(tensor, out);
}

// The kernel: one for all kinds.
typedef struct dataset_maker_t {
  rn_data_node_t* node;
  rn_data_host_t* host;
} dataset_maker_t;

static const rn_data_kind_t* const kinds[] = {
#define X(op, kind) &rn_data_kind_##kind,
#include "kernels/cpu/dataset/kinds.def"
#undef X
};

extern const rn_kernel_family_t rn_kernels_cpu_dataset;

// Nothing of it is used; what is no message is an error nevertheless.
static rn_status_t check_metadata(const rn_kernel_init_t* init) {
  int i = rn_op_attr_index(init->op, RN_STR("metadata"));
  if (i < 0) return RN_OK;
  rn_pb_scan_t scan = rn_pb_scan(init->attrs[i].s);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field))
    if (field.number == 1 && field.wire == RN_PB_WIRE_LENGTH && !rn_utf8_is_valid(field.bytes))
      scan.is_bad = true;
  return scan.is_bad ? rn_invalid_argument("Could not parse the 'metadata' attribute.") : RN_OK;
}

static rn_status_t maker_init(const rn_kernel_init_t* init, void* state) {
  dataset_maker_t* maker = state;
  size_t row = (size_t)(init->def - rn_kernels_cpu_dataset.rows);
  if (!init->env) return rn_failed_precondition("Datasets need an environment");
  RN_RETURN_IF_ERROR(check_metadata(init));
  RN_RETURN_IF_ERROR(rn_data_node_create(init, kinds[row], &maker->node));
  return rn_data_host_get(init->resources, init, &maker->host);
}

static void maker_destroy(void* state) {
  dataset_maker_t* maker = state;
  if (maker->node) rn_object_release(&maker->node->object);
  if (maker->host) rn_object_release(&maker->host->object);
}

static rn_status_t maker_compute(rn_kernel_ctx_t* ctx) {
  const dataset_maker_t* maker = ctx->state;
  rn_dataset_t* dataset = NULL;
  RN_RETURN_IF_ERROR(rn_dataset_create(maker->node, maker->node->kind, maker->host,
                                       (const rn_tensor_t* const*)ctx->in, &dataset));
  rn_tensor_t out = {0};
  RN_RETURN_IF_ERROR(rn_data_variant(maker->node->memory, &dataset->object, &out));
  rn_set_output(ctx, 0, &out);
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
#define X(op_, kind)                                        \
  {.op = #op_,                                              \
   .device = "CPU",                                         \
   .flags = RN_KERNEL_KEEPS_INPUTS | RN_KERNEL_OWN_OUTPUTS, \
   .state_size = sizeof(dataset_maker_t),                   \
   .init = maker_init,                                      \
   .destroy = maker_destroy,                                \
   .compute = maker_compute},
#include "kernels/cpu/dataset/kinds.def"
#undef X
};
RN_KERNEL_FAMILY(cpu_dataset, rows);

const rn_data_kind_t* rn_data_kind_of(const char* op) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
    if (strcmp(rows[i].op, op) == 0) return kinds[i];
  return NULL;
}
