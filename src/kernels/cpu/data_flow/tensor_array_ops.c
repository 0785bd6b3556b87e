// The TensorArray ops: create, write, read, scatter, gather, split, concat.
#include <inttypes.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/data_flow/tensor_array.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/state/handle.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

// Creation.
typedef struct tensor_array_ops_maker_t {
  rn_arena_t arena;  // holds the name and the shape
  rn_str_t name;
  rn_tensor_array_spec_t spec;
} tensor_array_ops_maker_t;

#define IDENTICAL "identical_element_shapes"  // absent in older versions

static rn_status_t maker_init(const rn_kernel_init_t* init, void* state) {
  tensor_array_ops_maker_t* maker = state;
  rn_arena_init(&maker->arena, init->allocator);
  rn_str_t name = rn_init_string(init, "tensor_array_name");
  RN_RETURN_IF_ERROR(rn_arena_str(&maker->arena, name.size ? name : init->node, &maker->name));
  bool is_third = rn_op_attr_index(init->op, RN_STR(IDENTICAL)) >= 0;
  maker->spec = (rn_tensor_array_spec_t){.dtype = rn_init_type(init, "dtype"),
                                         .is_dynamic = rn_init_bool(init, "dynamic_size"),
                                         .clears = rn_init_bool(init, "clear_after_read"),
                                         .is_uniform = is_third && rn_init_bool(init, IDENTICAL)};
  return rn_shape_copy(&maker->arena, rn_init_attr(init, "element_shape")->shape,
                       &maker->spec.element_shape);
}

static void maker_destroy(void* state) {
  rn_arena_clear(&((tensor_array_ops_maker_t*)state)->arena);
}

#define CONTAINER RN_STR("_tensor_arrays")

static rn_status_t share_array(void* arg, rn_resource_t** out) {
  *out = arg;
  rn_object_retain(&(*out)->object);
  return RN_OK;
}

// Keeps |resource|, which belongs to |array|, as long as the step.
static rn_status_t keep(rn_kernel_ctx_t* ctx, rn_str_t container, const rn_tensor_array_t* array,
                        rn_resource_t* resource) {
  rn_resources_t* table = NULL;
  rn_resource_t* kept = NULL;
  RN_RETURN_IF_ERROR(rn_step_get_resources(ctx->step, &table));
  RN_RETURN_IF_ERROR(rn_resources_get(table, container, rn_tensor_array_name(array), resource->type,
                                      share_array, resource, &kept));
  rn_object_release(&kept->object);
  return RN_OK;
}

// The first version: a reference to the pair [container, name].
static rn_status_t output_ref(rn_kernel_ctx_t* ctx, rn_tensor_array_t* array) {
  rn_variable_t* ref = NULL;
  RN_RETURN_IF_ERROR(rn_handle_ref_create(ctx->kernel->allocator, CONTAINER,
                                          rn_tensor_array_name(array),
                                          rn_tensor_array_resource(array), &ref));
  rn_status_t status = keep(ctx, CONTAINER, array, rn_tensor_array_resource(array));
  if (rn_ok(status)) status = keep(ctx, RN_STR("_tensor_array_refs"), array, &ref->resource);
  if (rn_ok(status)) rn_set_output_ref(ctx, 0, ref);
  rn_object_release(&ref->resource.object);
  return status;
}

// The second version: the pair itself; the step's table holds the array.
static rn_status_t output_name(rn_kernel_ctx_t* ctx, rn_tensor_array_t* array) {
  rn_tensor_t* out = NULL;
  rn_str_t name = rn_tensor_array_name(array);
  int64_t two = 2;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &two}, &out));
  rn_tstring_t* text = RN_DATA(out, rn_tstring_t);
  if (!rn_tstring_assign(&text[0], CONTAINER.data, CONTAINER.size) ||
      !rn_tstring_assign(&text[1], name.data, name.size))
    return rn_out_of_memory();
  return keep(ctx, CONTAINER, array, rn_tensor_array_resource(array));
}

// Sets output 0 to a handle of |array| and output 1 to a number for the flow.
static rn_status_t output_handle(rn_kernel_ctx_t* ctx, rn_tensor_array_t* array) {
  if (rn_dtype_is_ref(ctx->kernel->output_types[0])) return output_ref(ctx, array);
  if (ctx->kernel->output_types[0] == RN_STRING) return output_name(ctx, array);
  rn_tensor_t *out = NULL, *flow = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, RN_SHAPE_SCALAR, &flow));
  RN_RETURN_IF_ERROR(rn_ctx_zero(ctx, flow));
  rn_handle_t* handle = NULL;
  RN_RETURN_IF_ERROR(rn_handle_create(ctx->kernel->allocator, ctx->kernel->device->name, CONTAINER,
                                      rn_tensor_array_name(array), RN_INVALID, RN_SHAPE_UNKNOWN,
                                      rn_tensor_array_resource(array), &handle));
  *RN_DATA(out, rn_handle_t*) = handle;
  return RN_OK;
}

static rn_status_t make_array(rn_kernel_ctx_t* ctx) {
  tensor_array_ops_maker_t* maker = ctx->state;
  const rn_tensor_t* size = rn_in(ctx, 0);
  if (size->rank != 0)
    return rn_invalid_argument("TensorArray size must be scalar, but had shape: %s",
                               rn_text_of(size).text);
  int64_t count = rn_int_at(size, 0);
  if (count < 0) return rn_invalid_argument("Size should be >= 0.");
  rn_strbuf_t name;
  rn_strbuf_init(&name, ctx->kernel->allocator);
  rn_strbuf_printf(&name, "%.*s_%lld", RN_STR_ARGS(maker->name),
                   (long long)rn_resources_new_number(ctx->kernel->resources));
  rn_tensor_array_t* array = NULL;
  rn_status_t status = rn_strbuf_status(&name);
  if (rn_ok(status))
    status = rn_tensor_array_create(ctx->kernel->allocator, rn_strbuf_view(&name), &maker->spec,
                                    count, &array);
  rn_strbuf_clear(&name);
  if (rn_ok(status)) status = output_handle(ctx, array);
  if (array) rn_object_release(&rn_tensor_array_resource(array)->object);
  return status;
}

// The gradient array. |source| distinguishes one gradient computation from another.
typedef struct tensor_array_ops_source_t {
  rn_allocator_t allocator;
  char* text;  // Owned
  size_t size;
} tensor_array_ops_source_t;

static rn_status_t source_init(const rn_kernel_init_t* init, void* state) {
  tensor_array_ops_source_t* source = state;
  rn_str_t text = rn_init_string(init, "source");
  source->allocator = init->allocator;
  source->size = text.size;
  return rn_str_dup(init->allocator, text, &source->text);
}

static void source_destroy(void* state) {
  tensor_array_ops_source_t* source = state;
  if (source->text) rn_free(source->allocator, source->text, source->size + 1);
}

// Stock's error for a step that has not created its container yet.
static rn_status_t no_container(int64_t step, rn_str_t container, rn_str_t name) {
  return rn_not_found("Container __per_step_%" PRId64
                      " does not exist. (Could not find resource: __per_step_%" PRId64 "/%.*s%.*s)",
                      step, step, RN_STR_ARGS(container), RN_STR_ARGS(name));
}

// The array named by a pair of strings; the step retains it.
static rn_status_t array_called(const rn_kernel_ctx_t* ctx, rn_tensor_array_t** out) {
  const rn_tensor_t* pair = rn_in(ctx, 0);
  if (pair->count != 2)
    return rn_invalid_argument("Tensor array handle must be 2-element vector, but had shape: %s",
                               rn_text_of(pair).text);
  const rn_tstring_t* text = RN_DATA(pair, const rn_tstring_t);
  rn_str_t container = rn_tstring_view(&text[0]), name = rn_tstring_view(&text[1]);
  rn_resources_t* table = __atomic_load_n(&ctx->step->step_resources, __ATOMIC_ACQUIRE);
  if (!table) return no_container(ctx->step->id, container, name);
  rn_resource_t* resource = NULL;
  RN_RETURN_IF_ERROR(
      rn_resources_get(table, container, name, RN_TENSOR_ARRAY_TYPE, NULL, NULL, &resource));
  rn_object_release(&resource->object);
  *out = (rn_tensor_array_t*)resource;
  return RN_OK;
}

static rn_status_t array_of(const rn_kernel_ctx_t* ctx, rn_tensor_array_t** out) {
  rn_resource_t* resource = NULL;
  if (rn_in_variable(ctx, 0)) {
    RN_RETURN_IF_ERROR(rn_handle_input(ctx, 0, RN_TENSOR_ARRAY_TYPE, &resource));
    rn_object_release(&resource->object);  // the step retains it
    *out = (rn_tensor_array_t*)resource;
    return RN_OK;
  }
  if (rn_in(ctx, 0)->dtype == RN_STRING) return array_called(ctx, out);
  RN_RETURN_IF_ERROR(rn_handle_resource(rn_in(ctx, 0), NULL, RN_TENSOR_ARRAY_TYPE, &resource));
  RN_RETURN_IF_ERROR(rn_handle_check_device(ctx, 0));
  *out = (rn_tensor_array_t*)resource;
  return RN_OK;
}

static rn_status_t make_gradient(rn_kernel_ctx_t* ctx) {
  const tensor_array_ops_source_t* source = ctx->state;
  rn_tensor_array_t *array = NULL, *gradient = NULL;
  int64_t dims[RN_MAX_RANK];
  rn_shape_t prefix = RN_SHAPE_SCALAR;
  RN_RETURN_IF_ERROR(array_of(ctx, &array));
  if (ctx->kernel->input_count > 2) RN_RETURN_IF_ERROR(rn_read_shape(rn_in(ctx, 2), dims, &prefix));
  RN_RETURN_IF_ERROR(
      rn_tensor_array_gradient(array, rn_str_n(source->text, source->size), prefix, &gradient));
  rn_status_t status = output_handle(ctx, gradient);
  rn_object_release(&rn_tensor_array_resource(gradient)->object);
  return status;
}

// Writing.
static rn_status_t output_flow(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* flow = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &flow));
  return rn_ctx_zero(ctx, flow);
}

static rn_status_t check_write_type(const rn_tensor_array_t* array, const rn_tensor_t* value) {
  rn_dtype_t dtype = rn_tensor_array_spec(array)->dtype;
  if (value->dtype == dtype) return RN_OK;
  return rn_invalid_argument("TensorArray dtype is %s but Op is trying to write dtype %s.",
                             rn_dtype_name(dtype), rn_dtype_name(value->dtype));
}

static rn_status_t check_read_type(const rn_kernel_ctx_t* ctx, const rn_tensor_array_t* array) {
  rn_dtype_t dtype = rn_tensor_array_spec(array)->dtype;
  rn_dtype_t wanted = rn_dtype_base(ctx->kernel->output_types[0]);
  if (wanted == dtype) return RN_OK;
  return rn_invalid_argument("TensorArray dtype is %s but Op requested dtype %s.",
                             rn_dtype_name(dtype), rn_dtype_name(wanted));
}

static rn_status_t scalar_index(const rn_tensor_t* index, int64_t* out) {
  if (index->rank != 0)
    return rn_invalid_argument("TensorArray index must be scalar, but had shape: %s",
                               rn_text_of(index).text);
  *out = rn_int_at(index, 0);
  return RN_OK;
}

static rn_status_t write_one(rn_kernel_ctx_t* ctx) {
  rn_tensor_array_t* array = NULL;
  int64_t index;
  RN_RETURN_IF_ERROR(array_of(ctx, &array));
  RN_RETURN_IF_ERROR(scalar_index(rn_in(ctx, 1), &index));
  RN_RETURN_IF_ERROR(check_write_type(array, rn_in(ctx, 2)));
  rn_tensor_t kept = {0};
  RN_RETURN_IF_ERROR(rn_ctx_keep(ctx, rn_in(ctx, 2), &kept));
  rn_status_t status = rn_tensor_array_write(ctx, array, index, &kept);
  rn_tensor_clear(&kept);
  RN_RETURN_IF_ERROR(status);
  return output_flow(ctx);
}

// Writes rows [begin, begin + count) of |value| to element |index|.
static rn_status_t write_rows(rn_kernel_ctx_t* ctx, rn_tensor_array_t* array, int64_t index,
                              const rn_tensor_t* value, int64_t begin, int64_t count,
                              bool drops_dim) {
  rn_tensor_t rows = {0};
  RN_RETURN_IF_ERROR(rn_ctx_rows(ctx, value, begin, count, drops_dim, &rows));
  rn_status_t status = rn_tensor_array_write(ctx, array, index, &rows);
  rn_tensor_clear(&rows);
  return status;
}

static rn_status_t scatter(rn_kernel_ctx_t* ctx) {
  rn_tensor_array_t* array = NULL;
  RN_RETURN_IF_ERROR(array_of(ctx, &array));
  const rn_tensor_t *indices = rn_in(ctx, 1), *value = rn_in(ctx, 2);
  RN_RETURN_IF_ERROR(check_write_type(array, value));
  if (indices->rank != 1)
    return rn_invalid_argument("Expected indices to be a vector, but received shape: %s",
                               rn_text_of(indices).text);
  if (value->rank < 1)
    return rn_invalid_argument(
        "Input value for unpack must be at least a vector but received shape: %s",
        rn_text_of(value).text);
  if (indices->count != rn_tensor_dim(value, 0))
    return rn_invalid_argument("Expected len(indices) == values.shape[0], but saw: %lld vs. %lld",
                               (long long)indices->count, (long long)rn_tensor_dim(value, 0));
  int64_t size, largest = 0;
  RN_RETURN_IF_ERROR(rn_tensor_array_size(array, &size));
  for (int64_t i = 0; i < indices->count; ++i)
    if (rn_int_at(indices, i) > largest) largest = rn_int_at(indices, i);
  if (indices->count && largest >= size && !rn_tensor_array_spec(array)->is_dynamic)
    return rn_invalid_argument("Max scatter index must be < array size (%lld vs. %lld)",
                               (long long)largest, (long long)size);
  for (int64_t i = 0; i < indices->count; ++i)
    RN_RETURN_IF_ERROR(write_rows(ctx, array, rn_int_at(indices, i), value, i, 1, true));
  return output_flow(ctx);
}

// A scatter to all elements, in order.
static rn_status_t unpack(rn_kernel_ctx_t* ctx) {
  rn_tensor_array_t* array = NULL;
  const rn_tensor_t* value = rn_in(ctx, 1);
  int64_t size;
  RN_RETURN_IF_ERROR(array_of(ctx, &array));
  RN_RETURN_IF_ERROR(check_write_type(array, value));
  if (value->rank < 1)
    return rn_invalid_argument(
        "Input value for unpack must be at least a vector but received shape: %s",
        rn_text_of(value).text);
  RN_RETURN_IF_ERROR(rn_tensor_array_size(array, &size));
  int64_t rows = rn_tensor_dim(value, 0);
  if (rows != size && !(rows > size && rn_tensor_array_spec(array)->is_dynamic))
    return rn_invalid_argument(
        "Input value must have first dimension equal to the array size (%lld vs. %lld)",
        (long long)rows, (long long)size);
  for (int64_t i = 0; i < rows; ++i)
    RN_RETURN_IF_ERROR(write_rows(ctx, array, i, value, i, 1, true));
  return output_flow(ctx);
}

static rn_status_t split(rn_kernel_ctx_t* ctx) {
  rn_tensor_array_t* array = NULL;
  RN_RETURN_IF_ERROR(array_of(ctx, &array));
  const rn_tensor_t *value = rn_in(ctx, 1), *lengths = rn_in(ctx, 2);
  RN_RETURN_IF_ERROR(check_write_type(array, value));
  if (lengths->rank != 1)
    return rn_invalid_argument("Expected lengths to be a vector, received shape: %s",
                               rn_text_of(lengths).text);
  if (value->rank < 1)
    return rn_invalid_argument("Expected value to be at least a vector, but received shape: %s",
                               rn_text_of(value).text);
  int64_t total = 0, size;
  for (int64_t i = 0; i < lengths->count; ++i) {
    int64_t length = rn_int_at(lengths, i);
    if (length < 0 || !rn_add_i64_ok(total, length, &total))
      return rn_invalid_argument("Length %lld at %lld is out of range", (long long)length,
                                 (long long)i);
  }
  if (total != rn_tensor_dim(value, 0))
    return rn_invalid_argument(
        "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is %lld and "
        "value's shape is: %s",
        (long long)total, rn_text_of(value).text);
  RN_RETURN_IF_ERROR(rn_tensor_array_size(array, &size));
  if (size != lengths->count && !rn_tensor_array_spec(array)->is_dynamic)
    return rn_invalid_argument(
        "TensorArray's size is not equal to the size of lengths (%lld vs. %lld), and the "
        "TensorArray is not marked as dynamically resizeable",
        (long long)size, (long long)lengths->count);
  int64_t begin = 0;
  for (int64_t i = 0; i < lengths->count; ++i) {
    int64_t length = rn_int_at(lengths, i);
    RN_RETURN_IF_ERROR(write_rows(ctx, array, i, value, begin, length, false));
    begin += length;
  }
  rn_tensor_array_was_split(array);
  return output_flow(ctx);
}

// Reading.
static rn_status_t read_one(rn_kernel_ctx_t* ctx) {
  rn_tensor_array_t* array = NULL;
  int64_t index;
  RN_RETURN_IF_ERROR(array_of(ctx, &array));
  RN_RETURN_IF_ERROR(scalar_index(rn_in(ctx, 1), &index));
  RN_RETURN_IF_ERROR(check_read_type(ctx, array));
  rn_tensor_t value = {0};
  RN_RETURN_IF_ERROR(rn_tensor_array_read(ctx, array, index, &value));
  rn_set_output(ctx, 0, &value);
  return RN_OK;
}

// Several elements, retained while they are joined.
typedef struct taken_t {
  rn_allocator_t allocator;
  rn_tensor_t* values;  // Owned
  int64_t count;
} taken_t;

static void drop(taken_t* taken) {
  for (int64_t i = 0; i < taken->count && taken->values; ++i) rn_tensor_clear(&taken->values[i]);
  RN_FREE_ARRAY(taken->allocator, taken->values, taken->count);
}

// Takes the elements |indices|, or all that a concatenation takes if |indices| is NULL.
static rn_status_t take(rn_kernel_ctx_t* ctx, rn_tensor_array_t* array, const rn_tensor_t* indices,
                        taken_t* out) {
  *out = (taken_t){.allocator = ctx->kernel->allocator};
  int64_t count;
  RN_RETURN_IF_ERROR(rn_tensor_array_concat_size(array, &count));
  if (indices) count = indices->count;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(out->allocator, (size_t)count, &out->values));
  out->count = count;
  for (int64_t i = 0; i < count; ++i)
    RN_RETURN_IF_ERROR(
        rn_tensor_array_read(ctx, array, indices ? rn_int_at(indices, i) : i, &out->values[i]));
  return RN_OK;
}

// Copies the elements, one after the other, to |out|.
static rn_status_t lay_out(rn_kernel_ctx_t* ctx, const taken_t* taken, rn_tensor_t* out) {
  char* to = out->data;
  rn_moves_t moves;
  rn_moves_begin(&moves, ctx, out->dtype);
  for (int64_t i = 0; i < taken->count; ++i) {
    const rn_tensor_t* value = &taken->values[i];
    RN_RETURN_IF_ERROR(rn_moves_add_row(&moves, value->data, to, value->count));
    to += rn_tensor_bytes(value);
  }
  return rn_moves_end(&moves);
}

static rn_status_t stack_up(rn_kernel_ctx_t* ctx, const taken_t* taken, rn_shape_t element) {
  int64_t dims[RN_MAX_RANK + 1] = {taken->count};
  if (taken->count) element = rn_tensor_shape(&taken->values[0]);
  if (element.rank >= RN_MAX_RANK) return rn_invalid_argument("The elements' rank is too large");
  for (int32_t d = 0; d < element.rank; ++d) dims[d + 1] = element.dims[d];
  for (int64_t i = 1; i < taken->count; ++i)
    if (!rn_tensor_same_shape(&taken->values[0], &taken->values[i]))
      return rn_invalid_argument(
          "TensorArray has inconsistent shapes.  Index 0 has shape: %s but index %lld has shape: "
          "%s",
          rn_text_of(&taken->values[0]).text, (long long)i, rn_text_of(&taken->values[i]).text);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){element.rank + 1, dims}, &out));
  return lay_out(ctx, taken, out);
}

// The attribute's element shape, for arrays that are empty and declare none.
typedef struct gatherer_t {
  rn_arena_t arena;
  rn_shape_t element;
} gatherer_t;

static rn_status_t gatherer_init(const rn_kernel_init_t* init, void* state) {
  gatherer_t* gatherer = state;
  rn_arena_init(&gatherer->arena, init->allocator);
  return rn_shape_copy(&gatherer->arena, rn_init_attr(init, "element_shape")->shape,
                       &gatherer->element);
}

static rn_status_t joiner_init(const rn_kernel_init_t* init, void* state) {
  gatherer_t* joiner = state;
  rn_arena_init(&joiner->arena, init->allocator);
  return rn_shape_copy(&joiner->arena, rn_init_attr(init, "element_shape_except0")->shape,
                       &joiner->element);
}

static void gatherer_destroy(void* state) { rn_arena_clear(&((gatherer_t*)state)->arena); }

// Stacks the elements |indices|, or all of them if that is NULL.
static rn_status_t gather_from(rn_kernel_ctx_t* ctx, rn_tensor_array_t* array,
                               const rn_tensor_t* indices) {
  const gatherer_t* gatherer = ctx->state;
  int64_t count;
  RN_RETURN_IF_ERROR(rn_tensor_array_size(array, &count));
  if (indices) count = indices->count;
  rn_shape_t element = rn_tensor_array_element_shape(array);
  if (!rn_shape_is_full(element) && rn_shape_is_full(gatherer->element) &&
      rn_shape_compatible(element, gatherer->element))
    element = gatherer->element;
  if (count == 0 && !rn_shape_is_full(element))
    return rn_unimplemented(
        "TensorArray has size zero, but element shape %s is not fully defined. Currently only "
        "static shapes are supported when packing zero-size TensorArrays.",
        rn_shape_has_rank(element) ? rn_shape_text(element).text : "<unknown>");
  taken_t taken;
  rn_status_t status = take(ctx, array, indices, &taken);
  if (rn_ok(status) && taken.count &&
      !rn_shape_compatible(gatherer->element, rn_tensor_shape(&taken.values[0])))
    status = rn_invalid_argument(
        "TensorArray was passed element_shape %s which does not match the Tensor at index 0: %s",
        rn_shape_text(gatherer->element).text, rn_text_of(&taken.values[0]).text);
  if (rn_ok(status)) status = stack_up(ctx, &taken, element);
  drop(&taken);
  return status;
}

static rn_status_t gather(rn_kernel_ctx_t* ctx) {
  rn_tensor_array_t* array = NULL;
  RN_RETURN_IF_ERROR(array_of(ctx, &array));
  RN_RETURN_IF_ERROR(check_read_type(ctx, array));
  const rn_tensor_t* indices = rn_in(ctx, 1);
  if (indices->rank != 1)
    return rn_invalid_argument("Expected indices to be a vector, but received shape: %s",
                               rn_text_of(indices).text);
  return gather_from(ctx, array, indices);
}

static rn_status_t pack(rn_kernel_ctx_t* ctx) {
  rn_tensor_array_t* array = NULL;
  RN_RETURN_IF_ERROR(array_of(ctx, &array));
  RN_RETURN_IF_ERROR(check_read_type(ctx, array));
  return gather_from(ctx, array, NULL);
}

static rn_status_t join(rn_kernel_ctx_t* ctx, const taken_t* taken, rn_shape_t element) {
  int64_t dims[RN_MAX_RANK], rows = 0;
  for (int64_t i = 0; i < taken->count; ++i) {
    const rn_tensor_t *value = &taken->values[i], *first = &taken->values[0];
    if (value->rank == 0)
      return rn_invalid_argument(
          "Concat saw a scalar shape at index %lld but requires at least vectors.  Did you mean to "
          "call pack?",
          (long long)i);
    bool fits = value->rank == first->rank;
    for (int d = 1; fits && d < value->rank; ++d)
      fits = rn_tensor_dim(value, d) == rn_tensor_dim(first, d);
    if (!fits)
      return rn_invalid_argument(
          "TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) shape: %s but "
          "index %lld has (excepting dimension 0) shape: %s",
          rn_shape_text((rn_shape_t){first->rank - 1, rn_tensor_dims(first) + 1}).text,
          (long long)i,
          rn_shape_text((rn_shape_t){value->rank - 1, rn_tensor_dims(value) + 1}).text);
    if (!rn_add_i64_ok(rows, rn_tensor_dim(value, 0), &rows))
      return rn_invalid_argument("The elements have too many rows in total");
  }
  rn_shape_t shape = taken->count ? rn_tensor_shape(&taken->values[0]) : element;
  for (int32_t d = 0; d < shape.rank; ++d) dims[d] = d ? shape.dims[d] : rows;
  rn_tensor_t *out = NULL, *lengths = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){shape.rank, dims}, &out));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){1, &taken->count}, &lengths));
  for (int64_t i = 0; i < taken->count; ++i)
    RN_DATA(lengths, int64_t)[i] = rn_tensor_dim(&taken->values[i], 0);
  return lay_out(ctx, taken, out);
}

static rn_status_t concat(rn_kernel_ctx_t* ctx) {
  rn_tensor_array_t* array = NULL;
  int64_t size;
  RN_RETURN_IF_ERROR(array_of(ctx, &array));
  RN_RETURN_IF_ERROR(check_read_type(ctx, array));
  RN_RETURN_IF_ERROR(rn_tensor_array_size(array, &size));
  rn_shape_t element = rn_tensor_array_element_shape(array);
  const rn_shape_t except0 = ((const gatherer_t*)ctx->state)->element;
  int64_t dims[RN_MAX_RANK + 1] = {0};
  if (size == 0 && rn_shape_is_full(except0) && except0.rank < RN_MAX_RANK) {
    if (except0.rank) memcpy(dims + 1, except0.dims, (size_t)except0.rank * sizeof *dims);
    element = (rn_shape_t){except0.rank + 1, dims};
  }
  if (size == 0 && (!rn_shape_is_full(element) || element.rank == 0))
    return rn_unimplemented(
        "TensorArray has size zero, but element_shape_except0 is not fully defined. Currently only "
        "static shapes are supported when concatenating zero-size TensorArrays.");
  taken_t taken;
  rn_status_t status = take(ctx, array, NULL, &taken);
  if (rn_ok(status)) status = join(ctx, &taken, element);
  drop(&taken);
  return status;
}

static rn_status_t array_size(rn_kernel_ctx_t* ctx) {
  rn_tensor_array_t* array = NULL;
  int64_t size;
  RN_RETURN_IF_ERROR(array_of(ctx, &array));
  RN_RETURN_IF_ERROR(rn_tensor_array_size(array, &size));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  *RN_DATA(out, int32_t) = (int32_t)size;
  return RN_OK;
}

static rn_status_t close_array(rn_kernel_ctx_t* ctx) {
  rn_tensor_array_t* array = NULL;
  RN_RETURN_IF_ERROR(array_of(ctx, &array));
  rn_tensor_array_close(array);
  return RN_OK;
}

#define ANY(attr) .types = {{attr, RN_TYPES_ALL}}
#define USE(name, flags_, function, ...) \
  { .op = name, .device = "CPU", .flags = flags_, .compute = function, __VA_ARGS__ }

#define WITH(name, flags_, type, init_, destroy_, function, ...)                             \
  {                                                                                          \
    .op = name, .device = "CPU", .flags = flags_, .state_size = sizeof(type), .init = init_, \
    .destroy = destroy_, .compute = function, __VA_ARGS__                                    \
  }
#define EACH(row, name, ...) \
  row(name "V3", __VA_ARGS__), row(name "V2", __VA_ARGS__), row(name, __VA_ARGS__)

static const rn_kernel_def_t rows[] = {
    EACH(WITH, "TensorArray", 0, tensor_array_ops_maker_t, maker_init, maker_destroy, make_array,
         ANY("dtype")),
    EACH(WITH, "TensorArrayGrad", 0, tensor_array_ops_source_t, source_init, source_destroy,
         make_gradient, .label = NULL),
    EACH(USE, "TensorArrayWrite", RN_KERNEL_KEEPS_INPUTS, write_one, ANY("T")),
    EACH(USE, "TensorArrayScatter", RN_KERNEL_KEEPS_INPUTS, scatter, ANY("T")),
    EACH(USE, "TensorArraySplit", RN_KERNEL_KEEPS_INPUTS, split, ANY("T")),
    EACH(USE, "TensorArrayRead", RN_KERNEL_OWN_OUTPUTS, read_one, ANY("dtype")),
    EACH(WITH, "TensorArrayGather", RN_KERNEL_OWN_OUTPUTS, gatherer_t, gatherer_init,
         gatherer_destroy, gather, ANY("dtype")),
    EACH(WITH, "TensorArrayConcat", RN_KERNEL_OWN_OUTPUTS, gatherer_t, joiner_init,
         gatherer_destroy, concat, ANY("dtype")),
    WITH("TensorArrayGradWithShape", 0, tensor_array_ops_source_t, source_init, source_destroy,
         make_gradient, .host_args = RN_HOST_ARGS("shape_to_prepend")),
    WITH("TensorArrayPack", RN_KERNEL_OWN_OUTPUTS, gatherer_t, gatherer_init, gatherer_destroy,
         pack, ANY("dtype")),
    USE("TensorArrayUnpack", RN_KERNEL_KEEPS_INPUTS, unpack, ANY("T")),
    EACH(USE, "TensorArraySize", 0, array_size, .label = NULL),
    EACH(USE, "TensorArrayClose", 0, close_array, .label = NULL),
};
RN_KERNEL_FAMILY(cpu_tensor_array, rows);
