// Optionals (see optional.h), and iterator states, which are variants too.
#include "kernels/cpu/dataset/optional.h"

#include "kernels/cpu/dataset/expected.h"
#include "tensor/tensor_proto.h"
#include "tensor/variant.h"

static size_t optional_size(int32_t count) {
  return sizeof(rn_optional_t) + (size_t)(count < 0 ? 0 : count) * sizeof(rn_tensor_t);
}

static void optional_destroy(rn_object_t* object) {
  rn_optional_t* optional = (rn_optional_t*)object;
  rn_data_row_clear(optional->values, optional->count);
  rn_free(optional->allocator, optional, optional_size(optional->count));
}

rn_status_t rn_optional_create(int32_t count, rn_optional_t** out) {
  rn_allocator_t allocator = rn_allocator_default();
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(allocator, optional_size(count), (void**)out));
  (*out)->object = (rn_object_t){.refs = 1, .destroy = optional_destroy};
  (*out)->allocator = allocator;
  (*out)->count = count;
  return RN_OK;
}

rn_optional_t* rn_optional_from(rn_object_t* object) {
  return object && object->destroy == optional_destroy ? (rn_optional_t*)object : NULL;
}

rn_status_t rn_data_optional_create(rn_allocator_t memory, rn_tensor_t* values, int32_t count,
                                    rn_tensor_t* out) {
  rn_optional_t* optional = NULL;
  RN_RETURN_IF_ERROR(rn_optional_create(count, &optional));
  if (count > 0) rn_data_row_move(values, optional->values, count);
  return rn_data_variant(memory, &optional->object, out);
}

static rn_status_t optional_of(const rn_tensor_t* tensor, rn_optional_t** out) {
  *out = tensor->rank == 0 ? rn_optional_from(*RN_DATA(tensor, rn_object_t*)) : NULL;
  if (*out) return RN_OK;
  return rn_invalid_argument(
      "OptionalHasValue requires input to be a scalar variant that holds an optional.");
}

static rn_status_t from_value(rn_kernel_ctx_t* ctx) {
  int32_t count = ctx->kernel->input_count;
  rn_tensor_t *values = NULL, out = {0};
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(ctx->kernel->allocator, (size_t)count, &values));
  rn_status_t status = RN_OK;
  for (int32_t i = 0; rn_ok(status) && i < count; ++i)
    status = rn_tensor_keep(rn_in(ctx, i), ctx->kernel->host_memory, &values[i]);
  if (rn_ok(status))
    status = rn_data_optional_create(ctx->kernel->host_memory, values, count, &out);
  rn_data_row_clear(values, count);
  RN_FREE_ARRAY(ctx->kernel->allocator, values, count);
  if (rn_ok(status)) rn_set_output(ctx, 0, &out);
  return status;
}

static rn_status_t from_nothing(rn_kernel_ctx_t* ctx) {
  rn_tensor_t out = {0};
  RN_RETURN_IF_ERROR(rn_data_optional_create(ctx->kernel->host_memory, NULL, -1, &out));
  rn_set_output(ctx, 0, &out);
  return RN_OK;
}

static rn_status_t has_value(rn_kernel_ctx_t* ctx) {
  rn_optional_t* optional = NULL;
  RN_RETURN_IF_ERROR(optional_of(rn_in(ctx, 0), &optional));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  *RN_DATA(out, bool) = optional->count >= 0;
  return RN_OK;
}

static rn_status_t get_value(rn_kernel_ctx_t* ctx) {
  rn_optional_t* optional = NULL;
  RN_RETURN_IF_ERROR(optional_of(rn_in(ctx, 0), &optional));
  if (optional->count < 0) return rn_invalid_argument("The given optional does not have a value.");
  RN_RETURN_IF_ERROR(
      rn_data_expected_check_optional(ctx->state, optional->values, optional->count));
  for (int32_t i = 0; i < optional->count; ++i) {
    rn_tensor_t out = {0};
    RN_RETURN_IF_ERROR(rn_tensor_share(&optional->values[i], &out));
    rn_set_output(ctx, i, &out);
  }
  return RN_OK;
}

// Iterator states.
typedef struct optional_state_t {
  rn_object_t object;
  rn_allocator_t allocator;
  size_t size;
  char bytes[];
} optional_state_t;

static void state_destroy(rn_object_t* object) {
  optional_state_t* state = (optional_state_t*)object;
  rn_free(state->allocator, state, sizeof *state + state->size);
}

static rn_status_t state_make(rn_allocator_t allocator, rn_str_t bytes, rn_object_t** out) {
  optional_state_t* state = NULL;
  size_t size = 0;
  *out = NULL;
  if (!rn_add_ok(sizeof *state, bytes.size, &size)) return rn_out_of_memory();
  RN_RETURN_IF_ERROR(rn_alloc(allocator, size, (void**)&state));
  state->object = (rn_object_t){.refs = 1, .destroy = state_destroy};
  state->allocator = allocator;
  state->size = bytes.size;
  if (bytes.size) memcpy(state->bytes, bytes.data, bytes.size);
  *out = &state->object;
  return RN_OK;
}

rn_status_t rn_data_state_create(rn_allocator_t memory, rn_str_t bytes, rn_tensor_t* out) {
  int64_t one = 1;
  rn_object_t* state = NULL;
  RN_RETURN_IF_ERROR(state_make(rn_allocator_default(), bytes, &state));
  rn_status_t status = rn_tensor_create(memory, RN_VARIANT, (rn_shape_t){1, &one}, out);
  if (rn_ok(status))
    *RN_DATA(out, rn_object_t*) = state;
  else
    rn_object_release(state);
  return status;
}

// TensorFlow's states start with the name of an iterator of the pipeline as TensorFlow rewrote it.
#define STOCK_STATE "Iterator::"

rn_status_t rn_data_state_of(const rn_tensor_t* tensor, rn_str_t* out) {
  rn_object_t* object =
      tensor->rank == 1 && tensor->count > 0 ? *RN_DATA(tensor, rn_object_t*) : NULL;
  bool is_state = object && object->destroy == state_destroy;
  const optional_state_t* state = (const optional_state_t*)object;
  if (is_state && state->size >= strlen(STOCK_STATE) &&
      memcmp(state->bytes, STOCK_STATE, strlen(STOCK_STATE)) == 0)
    return rn_unimplemented(
        "The state of this iterator was saved by another implementation of TensorFlow for its own "
        "form of the pipeline, and cannot be restored here");
  if (!is_state || tensor->count != 1)
    return rn_invalid_argument("The input must be the serialized state of an iterator");
  *out = rn_str_n(state->bytes, state->size);
  return RN_OK;
}

static bool state_holds(const rn_object_t* object) { return object->destroy == state_destroy; }

static rn_status_t state_to_proto(const rn_object_t* object, rn_arena_t* arena,
                                  rn_pb_VariantTensorDataProto_t* out) {
  (void)arena;
  const optional_state_t* state = (const optional_state_t*)object;
  out->metadata = rn_str_n(state->bytes, state->size);
  return RN_OK;
}

static rn_status_t state_from_proto(const rn_pb_VariantTensorDataProto_t* proto, size_t max_bytes,
                                    rn_allocator_t allocator, rn_object_t** out) {
  (void)max_bytes;  // no larger than the message
  return state_make(allocator, proto->metadata, out);
}

extern const rn_variant_kind_t rn_variant_iterator_state;
const rn_variant_kind_t rn_variant_iterator_state = {"tensorflow::Iterator", state_holds,
                                                     state_to_proto, state_from_proto, NULL};

static const rn_kernel_def_t rows[] = {
    {.op = "OptionalFromValue",
     .device = "CPU",
     .flags = RN_KERNEL_KEEPS_INPUTS | RN_KERNEL_OWN_OUTPUTS,
     .compute = from_value},
    {.op = "OptionalNone",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS,
     .compute = from_nothing},
    {.op = "OptionalHasValue", .device = "CPU", .compute = has_value},
    {.op = "OptionalGetValue",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS,
     .state_size = sizeof(rn_data_expected_t),
     .init = rn_data_expected_init,
     .destroy = rn_data_expected_destroy,
     .compute = get_value},
};
RN_KERNEL_FAMILY(cpu_data_optional, rows);
