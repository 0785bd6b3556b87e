// The iterator ops: create, get next, handles as strings, save and restore.
#include <stdio.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/expected.h"
#include "kernels/cpu/dataset/to_graph.h"
#include "kernels/cpu/state/handle.h"
#include "tensor/tensor_proto.h"
#include "tensor/tstring.h"
#include "wire/decode.h"
#include "wire/encode.h"

static rn_status_t create_root(const rn_kernel_init_t* init, rn_data_root_t** out) {
  const rn_attr_value_t* types = rn_init_attr(init, "output_types");
  const rn_attr_value_t* shapes = rn_init_attr(init, "output_shapes");
  if (shapes->count != types->count && shapes->count != 0)
    return rn_invalid_argument(
        "`output_shapes` must be the same length as `output_types` (%d vs. %d)", shapes->count,
        types->count);
  return rn_data_root_create(init->allocator, types->count, types->list_type,
                             shapes->count ? shapes->list_shape : NULL, out);
}

static rn_status_t make_root(void* arg, rn_str_t name, rn_resource_t** out) {
  (void)name;
  return create_root(arg, (rn_data_root_t**)out);
}

// Named iterators.
static rn_status_t named_init(const rn_kernel_init_t* init, void* state) {
  rn_handle_state_t* holder = state;
  RN_RETURN_IF_ERROR(
      rn_handle_state_init(holder, init, RN_DATA_ITERATOR_TYPE, make_root, (void*)(uintptr_t)init));
  // A shared iterator must have the same element signature.
  const rn_data_root_t* root = (const rn_data_root_t*)holder->resource;
  const rn_attr_value_t* types = rn_init_attr(init, "output_types");
  const rn_attr_value_t* shapes = rn_init_attr(init, "output_shapes");
  RN_RETURN_IF_ERROR(
      rn_data_check_types(types->count, types->list_type, root->component_count, root->types));
  if (!shapes->count) return RN_OK;
  return rn_data_check_shapes(shapes->count, shapes->list_shape, root->component_count,
                              root->shapes);
}

// Anonymous iterators: a new one per call. The kernel's state is the element signature.
typedef struct iterator_ops_nameless_t {
  rn_data_root_t* like;
  rn_str_t device;
  char* device_text;
  rn_allocator_t allocator;
  _Atomic int64_t made;
} iterator_ops_nameless_t;

static rn_status_t nameless_init(const rn_kernel_init_t* init, void* state) {
  iterator_ops_nameless_t* own = state;
  own->allocator = init->allocator;
  RN_RETURN_IF_ERROR(rn_str_dup(init->allocator, init->device_name, &own->device_text));
  own->device = rn_str_n(own->device_text, init->device_name.size);
  return create_root(init, &own->like);
}

static void nameless_destroy(void* state) {
  iterator_ops_nameless_t* own = state;
  if (own->like) rn_object_release(&own->like->resource.object);
  if (own->device_text) rn_free(own->allocator, own->device_text, own->device.size + 1);
}

static rn_status_t make_nameless(void* arg, rn_resource_t** out) {
  const rn_data_root_t* like = arg;
  return rn_data_root_create(like->allocator, like->component_count, like->types, like->shapes,
                             (rn_data_root_t**)out);
}

// With a deleter, the table keeps the iterator until it is deleted. Without one it lives as long as
// its handles, so nothing leaks.
static rn_status_t nameless_compute(rn_kernel_ctx_t* ctx) {
  iterator_ops_nameless_t* own = ctx->state;
  bool has_deleter = ctx->kernel->output_count == 2;
  char name[64];
  snprintf(name, sizeof name, "AnonymousIterator_%p_%lld", (void*)own, (long long)own->made++);
  rn_resource_t* root = NULL;
  RN_RETURN_IF_ERROR(has_deleter
                         ? rn_resources_get(ctx->kernel->resources, RN_STR("AnonymousIterator"),
                                            rn_str(name), RN_DATA_ITERATOR_TYPE, make_nameless,
                                            own->like, &root)
                         : make_nameless(own->like, &root));
  rn_handle_t* handle = NULL;
  rn_status_t status =
      rn_handle_create(ctx->kernel->allocator, own->device, RN_STR("AnonymousIterator"),
                       rn_str(name), RN_INVALID, RN_SHAPE_UNKNOWN, root, &handle);
  rn_object_release(&root->object);
  RN_RETURN_IF_ERROR(status);
  return rn_data_give_handle(ctx, handle);
}

static rn_status_t root_of(const rn_kernel_ctx_t* ctx, int i, rn_data_root_t** out) {
  rn_resource_t* resource = NULL;
  RN_RETURN_IF_ERROR(
      rn_handle_resource(rn_in(ctx, i), ctx->kernel->resources, RN_DATA_ITERATOR_TYPE, &resource));
  *out = (rn_data_root_t*)resource;
  return RN_OK;
}

static rn_status_t make_compute(rn_kernel_ctx_t* ctx) {
  rn_dataset_t* dataset = NULL;
  rn_data_root_t* root = NULL;
  RN_RETURN_IF_ERROR(rn_dataset_of(rn_in(ctx, 0), &dataset));
  RN_RETURN_IF_ERROR(root_of(ctx, 1, &root));
  return rn_data_root_make(root, dataset, ctx->step->call_depth);
}

static void serve(rn_kernel_ctx_t* ctx, rn_data_verb_t verb) {
  rn_data_root_t* root = NULL;
  rn_status_t status = root_of(ctx, 0, &root);
  if (rn_ok(status))
    rn_data_root_serve(root, ctx, verb);
  else
    rn_done(ctx, status);
}

static void next_compute(rn_kernel_ctx_t* ctx) { serve(ctx, RN_DATA_NEXT); }
static void optional_compute(rn_kernel_ctx_t* ctx) { serve(ctx, RN_DATA_OPTIONAL); }

// Whether state outside of the iterator is an error, as the kernel's state says.
static rn_status_t save_init(const rn_kernel_init_t* init, void* state) {
  *(bool*)state = rn_init_attr(init, "external_state_policy")->i == RN_DATA_STATE_FAIL;
  return RN_OK;
}

static rn_status_t check_saved(const rn_kernel_ctx_t* ctx) {
  rn_data_root_t* root = NULL;
  RN_RETURN_IF_ERROR(root_of(ctx, 0, &root));
  rn_dataset_t* dataset = rn_data_root_dataset(root);
  rn_status_t status = dataset ? rn_data_check_stateless(dataset) : RN_OK;
  rn_dataset_release(dataset);
  return status;
}

static void save_compute(rn_kernel_ctx_t* ctx) {
  rn_status_t status = *(const bool*)ctx->state ? check_saved(ctx) : RN_OK;
  if (rn_ok(status))
    serve(ctx, RN_DATA_SAVE);
  else
    rn_done(ctx, status);
}

static rn_status_t restore_compute(rn_kernel_ctx_t* ctx) {
  rn_data_root_t* root = NULL;
  rn_str_t state;
  RN_RETURN_IF_ERROR(root_of(ctx, 0, &root));
  RN_RETURN_IF_ERROR(rn_data_state_of(rn_in(ctx, 1), &state));
  return rn_data_root_restore(root, state, ctx->step->call_depth);
}

// Handles as strings.
static const char* type_of(const rn_kernel_ctx_t* ctx) {
  return strncmp(ctx->kernel->op->name, "MultiDevice", 11) == 0 ? RN_DATA_MULTI_TYPE
                                                                : RN_DATA_ITERATOR_TYPE;
}

static rn_status_t to_text_compute(rn_kernel_ctx_t* ctx) {
  rn_resource_t* resource = NULL;
  RN_RETURN_IF_ERROR(
      rn_handle_resource(rn_in(ctx, 0), ctx->kernel->resources, type_of(ctx), &resource));
  const rn_handle_t* handle = *RN_DATA(rn_in(ctx, 0), rn_handle_t*);
  rn_arena_t arena;
  rn_strbuf_t text;
  rn_arena_init(&arena, ctx->kernel->allocator);
  rn_strbuf_init(&text, ctx->kernel->allocator);
  rn_pb_ResourceHandleProto_t proto;
  rn_tensor_t* out = NULL;
  rn_status_t status = rn_handle_to_proto(handle, &arena, &proto);
  if (rn_ok(status)) status = RN_PB_ENCODE(ResourceHandleProto, &proto, NULL, &text);
  if (rn_ok(status)) status = rn_output(ctx, 0, RN_SHAPE_SCALAR, &out);
  if (rn_ok(status) && !rn_tstring_assign(RN_DATA(out, rn_tstring_t), text.data, text.size))
    status = rn_out_of_memory();
  rn_strbuf_clear(&text);
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t parse_handle(const rn_kernel_ctx_t* ctx, rn_str_t text, rn_handle_t** out) {
  rn_arena_t arena;
  rn_arena_init(&arena, ctx->kernel->allocator);
  rn_pb_ResourceHandleProto_t* proto = NULL;
  rn_status_t status = RN_PB_DECODE(ResourceHandleProto, text, NULL, &arena, &proto);
  if (!rn_ok(status)) {
    rn_status_free(status);
    status = rn_invalid_argument("Could not parse string_handle as a valid ResourceHandle");
  } else {
    status = rn_handle_from_proto(proto, ctx->kernel->allocator, out);
  }
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t from_text_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* text = rn_in(ctx, 0);
  if (text->rank != 0) return rn_invalid_argument("string_handle must be a scalar");
  rn_handle_t* handle = NULL;
  RN_RETURN_IF_ERROR(
      parse_handle(ctx, rn_tstring_view(RN_DATA(text, const rn_tstring_t)), &handle));
  rn_tensor_t out = {0};
  RN_RETURN_IF_ERROR(rn_handle_tensor(ctx->kernel->host_memory, handle, &out));
  rn_resource_t* resource = NULL;
  const char* type = type_of(ctx);
  rn_status_t status = rn_handle_resource(&out, ctx->kernel->resources, type, &resource);
  const rn_data_root_t* like = ((const rn_data_expected_t*)ctx->state)->like;
  const rn_data_root_t* root = (const rn_data_root_t*)resource;
  bool is_root = strcmp(type, RN_DATA_ITERATOR_TYPE) == 0;
  if (rn_ok(status) && like->component_count && is_root) {
    status =
        rn_data_check_types(like->component_count, like->types, root->component_count, root->types);
    if (rn_ok(status))
      status = rn_data_check_shapes(like->component_count, like->shapes, root->component_count,
                                    root->shapes);
  }
  if (rn_ok(status))
    rn_set_output(ctx, 0, &out);
  else
    rn_tensor_clear(&out);
  return status;
}

// Deletion. Deleting twice is fine, because handles may outlive the resource.
static rn_status_t delete_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* tensor = rn_in(ctx, 0);
  if (tensor->rank != 0 || tensor->count != 1)
    return rn_invalid_argument("A handle must be a scalar");
  const rn_handle_t* handle = *RN_DATA(tensor, rn_handle_t*);
  if (!handle) return rn_invalid_argument("The input must be a handle");
  rn_status_free(
      rn_resources_remove(ctx->kernel->resources, handle->container, handle->name, NULL));
  return RN_OK;
}

#define NAMELESS(name)                                                    \
  {                                                                       \
    .op = name, .device = "CPU", .flags = RN_KERNEL_OWN_OUTPUTS,          \
    .state_size = sizeof(iterator_ops_nameless_t), .init = nameless_init, \
    .destroy = nameless_destroy, .compute = nameless_compute              \
  }
#define NAMED(name)                                                        \
  {                                                                        \
    .op = name, .device = "CPU", .flags = RN_KERNEL_OWN_OUTPUTS,           \
    .state_size = sizeof(rn_handle_state_t), .init = named_init,           \
    .destroy = rn_handle_state_destroy, .compute = rn_handle_state_compute \
  }
#define ASK(name, function)                                                            \
  {                                                                                    \
    .op = name, .device = "CPU", .flags = RN_KERNEL_OWN_OUTPUTS | RN_KERNEL_EXPENSIVE, \
    .state_size = sizeof(rn_data_expected_t), .init = rn_data_expected_init,           \
    .destroy = rn_data_expected_destroy, .compute_async = function                     \
  }
#define FROM_TEXT(name)                                                      \
  {                                                                          \
    .op = name, .device = "CPU", .flags = RN_KERNEL_OWN_OUTPUTS,             \
    .state_size = sizeof(rn_data_expected_t), .init = rn_data_expected_init, \
    .destroy = rn_data_expected_destroy, .compute = from_text_compute        \
  }
#define DELETE(name) \
  { .op = name, .device = "CPU", .compute = delete_compute }

static const rn_kernel_def_t rows[] = {
    NAMED("Iterator"),
    NAMED("IteratorV2"),
    NAMELESS("AnonymousIterator"),
    NAMELESS("AnonymousIteratorV2"),
    NAMELESS("AnonymousIteratorV3"),
    {.op = "MakeIterator",
     .device = "CPU",
     .flags = RN_KERNEL_KEEPS_INPUTS,
     .compute = make_compute},
    ASK("IteratorGetNext", next_compute),
    ASK("IteratorGetNextSync", next_compute),
    ASK("IteratorGetNextAsOptional", optional_compute),
    {.op = "SerializeIterator",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS | RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(bool),
     .init = save_init,
     .compute_async = save_compute},
    {.op = "DeserializeIterator",
     .device = "CPU",
     .flags = RN_KERNEL_EXPENSIVE,
     .compute = restore_compute},
    {.op = "IteratorToStringHandle", .device = "CPU", .compute = to_text_compute},
    FROM_TEXT("IteratorFromStringHandle"),
    FROM_TEXT("IteratorFromStringHandleV2"),
    {.op = "MultiDeviceIteratorToStringHandle", .device = "CPU", .compute = to_text_compute},
    FROM_TEXT("MultiDeviceIteratorFromStringHandle"),
    DELETE("DeleteMultiDeviceIterator"),
    DELETE("DeleteIterator"),
    DELETE("DeleteMemoryCache"),
    DELETE("DeleteSeedGenerator"),
    DELETE("DeleteRandomSeedGenerator"),
};
RN_KERNEL_FAMILY(cpu_data_iterator, rows);
