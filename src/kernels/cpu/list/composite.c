// Composite tensors in variants: their components and, as metadata, what they are.
#include "tensor/composite.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/cpu/list/tensors_variant.h"
#include "kernels/cpu/list/variant_text.h"
#include "kernels/kernel_rows.h"

typedef struct composite_t {
  rn_allocator_t allocator;
  char* metadata;  // Owned
  size_t size;
  int32_t type;  // its class
} composite_t;

static rn_status_t composite_init(const rn_kernel_init_t* init, void* state) {
  composite_t* composite = state;
  rn_str_t metadata = rn_init_string(init, "metadata");
  bool is_reader = rn_str_ends_with(rn_str(init->op->name), RN_STR("ToComponents"));
  composite->allocator = init->allocator;
  composite->size = metadata.size;
  RN_RETURN_IF_ERROR(rn_str_dup(init->allocator, metadata, &composite->metadata));
  rn_status_t status = rn_composite_class(init->allocator, metadata, &composite->type);
  if (rn_ok(status) || rn_status_code(status) == RN_CODE_RESOURCE_EXHAUSTED) return status;
  rn_status_free(status);
  return rn_invalid_argument("Error parsing %s", is_reader ? "`metadata`" : "metadata");
}

static void composite_destroy(void* state) {
  composite_t* composite = state;
  if (composite->metadata) rn_free(composite->allocator, composite->metadata, composite->size + 1);
}

static rn_status_t from_components(rn_kernel_ctx_t* ctx) {
  const composite_t* composite = ctx->state;
  rn_tensors_variant_t* variant = NULL;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  RN_RETURN_IF_ERROR(rn_tensors_variant_create(ctx->kernel->allocator, RN_TENSORS_COMPOSITE,
                                               rn_str_n(composite->metadata, composite->size),
                                               ctx->kernel->input_count, &variant));
  *RN_DATA(out, rn_object_t*) = &variant->object;
  for (int i = 0; i < ctx->kernel->input_count; ++i)
    RN_RETURN_IF_ERROR(rn_ctx_keep(ctx, rn_in(ctx, i), &variant->values[i]));
  return RN_OK;
}

static rn_status_t not_composite(const rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* encoded = rn_in(ctx, 0);
  rn_strbuf_t text;
  rn_strbuf_init(&text, ctx->kernel->allocator);
  rn_strbuf_printf(&text,
                   "The input `encoded` is not a valid CompositeTensorVariant tensor, got "
                   "Tensor<type: variant shape: %s values: ",
                   rn_text_of(encoded).text);
  rn_variant_print(&text, *RN_DATA(encoded, rn_object_t*));
  rn_strbuf_append(&text, RN_STR(">"));
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

static rn_status_t check_class(const rn_kernel_ctx_t* ctx, const rn_tensors_variant_t* variant) {
  const composite_t* composite = ctx->state;
  int32_t type = 0;
  RN_RETURN_IF_ERROR(rn_composite_class(
      ctx->kernel->allocator, rn_str_n(variant->metadata, variant->metadata_size), &type));
  if (type == composite->type) return RN_OK;
  return rn_invalid_argument("Expected a %s (based on `type_spec`), but `encoded` contains a %s",
                             rn_composite_class_name(composite->type),
                             rn_composite_class_name(type));
}

static rn_status_t to_components(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* encoded = rn_in(ctx, 0);
  if (encoded->count == 0)
    return rn_invalid_argument(
        "Input `encoded` must not be an empty variant tensor, but got Tensor<type: variant shape: "
        "%s values: >",
        rn_text_of(encoded).text);
  const rn_tensors_variant_t* variant =
      rn_tensors_variant_from(*RN_DATA(encoded, rn_object_t*), RN_TENSORS_COMPOSITE);
  if (!variant) return not_composite(ctx);
  RN_RETURN_IF_ERROR(check_class(ctx, variant));
  if (variant->count != ctx->kernel->output_count)
    return rn_invalid_argument(
        "Encoded value has %d tensor components; expected %d components based on type_spec",
        variant->count, ctx->kernel->output_count);
  for (int i = 0; i < variant->count; ++i) {
    rn_dtype_t wanted = rn_dtype_base(ctx->kernel->output_types[i]);
    if (variant->values[i].dtype != wanted)
      return rn_invalid_argument("Tensor component %d had dtype %s; expected dtype %s", i,
                                 rn_dtype_proto_name(variant->values[i].dtype),
                                 rn_dtype_proto_name(wanted));
    rn_tensor_t value = {0};
    RN_RETURN_IF_ERROR(rn_tensor_share(&variant->values[i], &value));
    rn_set_output(ctx, i, &value);
  }
  return RN_OK;
}

#define ROW(name, flags_, function)                                                  \
  {                                                                                  \
    .op = name, .device = "CPU", .flags = flags_, .state_size = sizeof(composite_t), \
    .init = composite_init, .destroy = composite_destroy, .compute = function        \
  }

static const rn_kernel_def_t rows[] = {
    ROW("CompositeTensorVariantFromComponents", RN_KERNEL_KEEPS_INPUTS, from_components),
    ROW("CompositeTensorVariantToComponents", RN_KERNEL_OWN_OUTPUTS, to_components),
};
RN_KERNEL_FAMILY(cpu_composite, rows);
