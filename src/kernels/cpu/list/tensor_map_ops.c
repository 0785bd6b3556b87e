// Tensor map ops.
#include <stdatomic.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/cpu/list/tensor_map.h"
#include "kernels/cpu/list/variant_text.h"
#include "kernels/cpu/move.h"
#include "kernels/kernel_rows.h"
#include "tensor/print.h"

static rn_status_t not_a_map(const rn_kernel_ctx_t* ctx, rn_object_t* object) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, ctx->kernel->allocator);
  rn_strbuf_append(&text, RN_STR("Input handle is not a map. Saw: '"));
  rn_variant_print(&text, object);
  rn_strbuf_append(&text, RN_STR("'"));
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

// The map in input 0, borrowed.
static rn_status_t map_in(const rn_kernel_ctx_t* ctx, rn_tensor_map_t** out) {
  const rn_tensor_t* handle = rn_in(ctx, 0);
  if (handle->rank != 0)
    return rn_invalid_argument("Input map must be a scalar. Saw: %s", rn_text_of(handle).text);
  rn_object_t* object = *RN_DATA(handle, rn_object_t*);
  *out = rn_tensor_map_from(object);
  return *out ? RN_OK : not_a_map(ctx, object);
}

// Makes output 0 a map equal to |*map|, which came from map_in, that may be changed: the same one
// if nothing else refers to it, otherwise a copy. |*map| is then borrowed from the output.
static rn_status_t to_change(rn_kernel_ctx_t* ctx, rn_tensor_map_t** map) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output_in_place(ctx, 0, 1, RN_SHAPE_SCALAR, &out));
  rn_object_t** element = RN_DATA(out, rn_object_t*);
  if (out->data == rn_in(ctx, 0)->data &&
      atomic_load_explicit(&(*map)->object.refs, memory_order_acquire) == 1)
    return RN_OK;
  rn_tensor_map_t* copy = NULL;
  RN_RETURN_IF_ERROR(rn_tensor_map_copy(*map, &copy));
  rn_object_release(*element);
  *element = &copy->object;
  *map = copy;
  return RN_OK;
}

static rn_status_t empty_map(rn_kernel_ctx_t* ctx) {
  rn_tensor_map_t* map = NULL;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  RN_RETURN_IF_ERROR(rn_tensor_map_create(ctx->kernel->allocator, &map));
  *RN_DATA(out, rn_object_t*) = &map->object;
  return RN_OK;
}

static rn_status_t size(rn_kernel_ctx_t* ctx) {
  rn_tensor_map_t* map = NULL;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(map_in(ctx, &map));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  *RN_DATA(out, int32_t) = (int32_t)map->entries.count;
  return RN_OK;
}

static rn_status_t has_key(rn_kernel_ctx_t* ctx) {
  rn_tensor_map_t* map = NULL;
  rn_tensor_map_entry_t* entry = NULL;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(map_in(ctx, &map));
  RN_RETURN_IF_ERROR(rn_tensor_map_find(map, rn_in(ctx, 1), &entry));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  *RN_DATA(out, bool) = entry != NULL;
  return RN_OK;
}

// The entry of input 1, which must exist.
static rn_status_t entry_in(rn_kernel_ctx_t* ctx, const rn_tensor_map_t* map, const char* attempt,
                            rn_tensor_map_entry_t** out) {
  RN_RETURN_IF_ERROR(rn_tensor_map_find(map, rn_in(ctx, 1), out));
  if (*out) return RN_OK;
  rn_strbuf_t text;
  rn_strbuf_init(&text, ctx->kernel->allocator);
  rn_strbuf_printf(&text, "Trying to %s. Could not find key \"", attempt);
  rn_print_values(&text, rn_in(ctx, 1), 100);
  rn_strbuf_append(&text, RN_STR("\"."));
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

static rn_status_t look_up(rn_kernel_ctx_t* ctx) {
  rn_tensor_map_t* map = NULL;
  rn_tensor_map_entry_t* entry = NULL;
  RN_RETURN_IF_ERROR(map_in(ctx, &map));
  RN_RETURN_IF_ERROR(entry_in(ctx, map, "lookup non-existent key", &entry));
  rn_dtype_t wanted = rn_dtype_base(ctx->kernel->output_types[0]);
  if (entry->value.dtype != wanted)
    return rn_invalid_argument("The value is of type %s, not %s", rn_dtype_name(entry->value.dtype),
                               rn_dtype_name(wanted));
  rn_tensor_t value = {0};
  RN_RETURN_IF_ERROR(rn_tensor_share(&entry->value, &value));
  rn_set_output(ctx, 0, &value);
  return RN_OK;
}

static rn_status_t insert(rn_kernel_ctx_t* ctx) {
  rn_tensor_map_t* map = NULL;
  rn_tensor_t key = {0}, value = {0};
  RN_RETURN_IF_ERROR(map_in(ctx, &map));
  RN_RETURN_IF_ERROR(rn_ctx_keep(ctx, rn_in(ctx, 1), &key));
  rn_status_t status = rn_ctx_keep(ctx, rn_in(ctx, 2), &value);
  if (rn_ok(status)) status = to_change(ctx, &map);
  if (rn_ok(status)) status = rn_tensor_map_put(map, &key, &value);
  rn_tensor_clear(&key);
  rn_tensor_clear(&value);
  return status;
}

static rn_status_t erase(rn_kernel_ctx_t* ctx) {
  rn_tensor_map_t* map = NULL;
  rn_tensor_map_entry_t* entry = NULL;
  RN_RETURN_IF_ERROR(map_in(ctx, &map));
  RN_RETURN_IF_ERROR(entry_in(ctx, map, "erase non-existent item", &entry));
  RN_RETURN_IF_ERROR(to_change(ctx, &map));
  RN_RETURN_IF_ERROR(rn_tensor_map_find(map, rn_in(ctx, 1), &entry));
  rn_tensor_map_remove(map, entry);
  return RN_OK;
}

static rn_status_t stack_keys(rn_kernel_ctx_t* ctx) {
  rn_tensor_map_t* map = NULL;
  size_t at = 0;
  RN_RETURN_IF_ERROR(map_in(ctx, &map));
  const rn_tensor_map_entry_t* entry = rn_tensor_map_next(map, &at);
  if (!entry) return rn_invalid_argument("TensorMapStackKeys cannot be called on empty map.");
  const rn_tensor_t* first = &entry->key;
  int64_t dims[RN_MAX_RANK] = {(int64_t)map->entries.count};
  if (first->rank >= RN_MAX_RANK) return rn_invalid_argument("The rank of the keys is too large");
  for (int d = 0; d < first->rank; ++d) dims[d + 1] = rn_tensor_dim(first, d);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){first->rank + 1, dims}, &out));
  char* to = out->data;
  for (; entry; entry = rn_tensor_map_next(map, &at)) {
    const rn_tensor_t* key = &entry->key;
    if (key->dtype != out->dtype) return rn_invalid_argument("Key does not match requested dtype.");
    if (!rn_tensor_same_shape(key, first))
      return rn_invalid_argument("Keys must all have the same shape.");
    RN_RETURN_IF_ERROR(rn_move_row(key->dtype, key->data, to, key->count));
    to += rn_tensor_bytes(key);
  }
  return RN_OK;
}

#define MAP(name, flags_, function) \
  { .op = name, .device = "CPU", .flags = flags_, .compute = function }

static const rn_kernel_def_t rows[] = {
    MAP("EmptyTensorMap", 0, empty_map),
    MAP("TensorMapSize", 0, size),
    MAP("TensorMapHasKey", 0, has_key),
    MAP("TensorMapLookup", RN_KERNEL_OWN_OUTPUTS, look_up),
    MAP("TensorMapInsert", RN_KERNEL_KEEPS_INPUTS, insert),
    MAP("TensorMapErase", 0, erase),
    MAP("TensorMapStackKeys", 0, stack_keys),
};
RN_KERNEL_FAMILY(cpu_tensor_map, rows);
