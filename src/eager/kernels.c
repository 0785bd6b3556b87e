// The cache of kernels of a context, keyed by what an op is given; a miss makes the kernel.
#include "eager/internal.h"

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value * UINT64_C(0x9E3779B97F4A7C15);
  return (hash << 29 | hash >> 35) * UINT64_C(0xBF58476D1CE4E5B9);
}

static uint64_t hash_bytes(uint64_t hash, const void* data, size_t size) {
  return mix(hash, rn_str_hash(rn_str_n(data, size)));
}

// Values that differ only in parts that the hash leaves out share a bucket.
static uint64_t hash_value(uint64_t hash, const rn_attr_value_t* value) {
  hash = mix(hash, (uint64_t)value->kind << 33 | (uint64_t)value->is_list << 32 |
                       (uint32_t)(value->is_list ? value->count : 0));
  if (value->is_list) {
    if (value->kind == RN_ATTR_INT)
      return hash_bytes(hash, value->list_i, (size_t)value->count * sizeof *value->list_i);
    if (value->kind == RN_ATTR_TYPE)
      return hash_bytes(hash, value->list_type, (size_t)value->count * sizeof *value->list_type);
    return hash;
  }
  switch (value->kind) {
    case RN_ATTR_STRING:
    case RN_ATTR_PLACEHOLDER:
      return mix(hash, rn_str_hash(value->s));
    case RN_ATTR_INT:
      return mix(hash, (uint64_t)value->i);
    case RN_ATTR_FLOAT: {
      uint32_t bits;
      memcpy(&bits, &value->f, sizeof bits);
      return mix(hash, bits);
    }
    case RN_ATTR_BOOL:
      return mix(hash, value->b);
    case RN_ATTR_TYPE:
      return mix(hash, (uint64_t)value->type);
    case RN_ATTR_SHAPE:
      hash = mix(hash, (uint64_t)(int64_t)value->shape.rank);
      return value->shape.rank > 0
                 ? hash_bytes(hash, value->shape.dims, (size_t)value->shape.rank * sizeof(int64_t))
                 : hash;
    case RN_ATTR_TENSOR:
      return rn_dtype_is_plain(value->tensor->dtype)
                 ? hash_bytes(hash, value->tensor->data, rn_tensor_bytes(value->tensor))
                 : hash;
    case RN_ATTR_FUNC:
      return mix(hash, rn_str_hash(value->func->name));
    default:
      return hash;
  }
}

static uint64_t hash_op(const rn_eager_op_t* op, const rn_device_t* device) {
  uint64_t hash = mix((uintptr_t)op->def, (uintptr_t)device);
  uint64_t types = (uint64_t)op->input_count << 1 | op->knows_lengths;
  for (int32_t i = 0; i < op->input_count; ++i) types = types * 131 + op->inputs[i]->dtype;
  for (int32_t i = 0; i < op->arg_count; ++i) types = types * 131 + (uint32_t)op->lengths[i];
  hash = mix(hash, types);
  for (int i = 0; i < op->def->attr_count; ++i)
    if (op->attrs[i].kind != RN_EAGER_UNSET)
      hash = hash_value(mix(hash, (uint64_t)i), &op->attrs[i]);
  for (size_t i = 0; i < op->extras.count; ++i)
    hash = hash_value(mix(hash, rn_str_hash(op->extras.items[i].name)), &op->extras.items[i].value);
  if (__builtin_expect(op->eager->has_far, 0) && !rn_eager_has_kernel(op->def))
    for (int32_t i = 0; i < op->input_count; ++i)
      hash = mix(hash, (uintptr_t)rn_eager_input_device(op, i));
  return hash ^ hash >> 31;
}

static bool same_attrs(const rn_eager_kernel_t* kernel, const rn_eager_op_t* op) {
  for (int i = 0; i < op->def->attr_count; ++i) {
    const rn_attr_value_t *a = &kernel->given[i], *b = &op->attrs[i];
    if (a->kind != b->kind) return false;
    if (a->kind != RN_EAGER_UNSET && !rn_attr_value_eq(a, b)) return false;
  }
  if (kernel->extra_count != (int32_t)op->extras.count) return false;
  for (int32_t i = 0; i < kernel->extra_count; ++i) {
    const rn_attr_t *a = &kernel->extras[i], *b = &op->extras.items[i];
    if (!rn_str_eq(a->name, b->name) || !rn_attr_value_eq(&a->value, &b->value)) return false;
  }
  return true;
}

static bool is_for(const rn_eager_kernel_t* kernel, const rn_eager_op_t* op,
                   const rn_device_t* device) {
  if (kernel->def != op->def || kernel->asked != device || kernel->input_count != op->input_count)
    return false;
  for (int32_t i = 0; i < op->input_count; ++i)
    if (kernel->input_types[i] != op->inputs[i]->dtype) return false;
  if ((kernel->lengths != NULL) != op->knows_lengths) return false;
  for (int32_t i = 0; kernel->lengths && i < op->arg_count; ++i)
    if (kernel->lengths[i] != op->lengths[i]) return false;
  if (kernel->input_devices && kernel->is_anywhere != (op->device_name.size == 0)) return false;
  for (int32_t i = 0; kernel->input_devices && i < op->input_count; ++i)
    if (kernel->input_devices[i] != rn_eager_input_device(op, i)) return false;
  return same_attrs(kernel, op);
}

static rn_eager_kernel_t* find(const rn_eager_op_t* op, const rn_device_t* device, uint64_t hash) {
  rn_eager_kernel_t* kernel = op->eager->buckets[hash & (RN_EAGER_BUCKETS - 1)];
  while (kernel && (kernel->hash != hash || !is_for(kernel, op, device)))
    kernel = __atomic_load_n(&kernel->next, __ATOMIC_RELAXED);
  return kernel;
}

rn_status_t rn_eager_kernel_get(const rn_eager_op_t* op, rn_device_t* device,
                                rn_eager_kernel_t** out) {
  rn_eager_t* eager = op->eager;
  uint64_t hash = hash_op(op, device);
  if (op->is_anonymous) return rn_eager_kernel_create(op, device, hash, out);
  *out = find(op, device, hash);
  if (__builtin_expect(*out != NULL, 1)) return RN_OK;
  rn_eager_kernel_t* made = NULL;
  RN_RETURN_IF_ERROR(rn_eager_kernel_create(op, device, hash, &made));
  rn_mutex_lock(&eager->mutex);
  *out = find(op, device, hash);  // another thread may have made it first
  if (!*out) {
    made->next = eager->buckets[hash & (RN_EAGER_BUCKETS - 1)];
    eager->buckets[hash & (RN_EAGER_BUCKETS - 1)] = made;
    *out = made;
    made = NULL;
  }
  rn_mutex_unlock(&eager->mutex);
  rn_eager_kernel_release(made);
  return RN_OK;
}

static void release_all(rn_eager_kernel_t* kernels) {
  while (kernels) {
    rn_eager_kernel_t* next = kernels->next;
    rn_eager_kernel_release(kernels);
    kernels = next;
  }
}

// Every thread that looks at a kernel counts as running. If none runs after the buckets are
// emptied, no thread can see the retired kernels, and they are freed; otherwise they wait for the
// next call.
void rn_eager_clear_caches(rn_eager_t* eager) {
  rn_eager_kernel_t* idle = NULL;
  rn_mutex_lock(&eager->mutex);
  for (int b = 0; b < RN_EAGER_BUCKETS; ++b) {
    rn_eager_kernel_t* kernel = atomic_exchange(&eager->buckets[b], NULL);
    while (kernel) {
      // A reader may still follow |next|; it then sees retired kernels, which are still valid.
      rn_eager_kernel_t* next = kernel->next;
      __atomic_store_n(&kernel->next, eager->retired, __ATOMIC_RELAXED);
      eager->retired = kernel;
      kernel = next;
    }
  }
  if (atomic_load(&eager->running) == 0) {
    idle = eager->retired;
    eager->retired = NULL;
  }
  rn_mutex_unlock(&eager->mutex);
  release_all(idle);
}
