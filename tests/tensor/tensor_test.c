// Tensors and buffers: ownership, and when memory is freed.
#include "tensor/tensor.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>

#include "../support/status.h"
#include "base/cache_alloc.h"
#include "tensor/object.h"
#include "tensor/tstring.h"

#define SHAPE(...) \
  ((rn_shape_t){sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]){__VA_ARGS__}})

static rn_counting_allocator_t counting;

static rn_allocator_t counted(void) {
  counting = (rn_counting_allocator_t){.base = rn_allocator_system()};
  return rn_allocator_counting(&counting);
}

Test(tensor, create_and_clear) {
  rn_allocator_t allocator = counted();
  rn_tensor_t tensor;
  OK(rn_tensor_create(allocator, RN_FLOAT, SHAPE(2, 3), &tensor));
  cr_assert_eq(tensor.count, 6);
  cr_assert_eq(tensor.rank, 2);
  cr_assert_eq(rn_tensor_dim(&tensor, 1), 3);
  cr_assert_eq(rn_tensor_bytes(&tensor), 24);
  cr_assert_eq((uintptr_t)tensor.data % RN_ALIGN, 0);
  cr_assert(rn_tensor_is_set(&tensor) && rn_tensor_is_exclusive(&tensor));
  cr_assert(rn_shape_eq(rn_tensor_shape(&tensor), SHAPE(2, 3)));
  memset(tensor.data, 1, 24);
  cr_assert_eq(counting.allocations, 1);
  rn_tensor_clear(&tensor);
  cr_assert(!rn_tensor_is_set(&tensor));
  rn_tensor_clear(&tensor);
  cr_assert_eq(counting.live_bytes, 0);
}

Test(tensor, a_scalar_costs_one_small_block) {
  rn_allocator_t allocator = counted();
  rn_tensor_t tensor;
  OK(rn_tensor_create(allocator, RN_FLOAT, RN_SHAPE_SCALAR, &tensor));
  cr_assert_eq(tensor.count, 1);
  cr_assert_eq(counting.live_blocks, 1);
  cr_assert_leq(counting.live_bytes, 128);
  rn_tensor_clear(&tensor);
}

// A base whose blocks have every alignment that the contract allows.
static void* shifted_realloc(void* self, void* ptr, size_t old_size, size_t new_size) {
  (void)old_size;
  if (!new_size) {
    free((char*)ptr - *(size_t*)self);
    return NULL;
  }
  char* block = aligned_alloc(64, (new_size + *(size_t*)self + 63) & ~(size_t)63);
  return block + *(size_t*)self;
}

Test(buffer, bytes_are_aligned_and_inside_the_block) {
  for (size_t shift = 0; shift < 64; shift += 16) {
    for (size_t size = 0; size < 300; size++) {
      rn_buffer_t* buffer = NULL;
      rn_allocator_t allocator = {.fn = shifted_realloc, .self = &shift};
      OK(rn_buffer_create(allocator, RN_UINT8, size, &buffer));
      cr_assert_eq((uintptr_t)buffer->data % RN_ALIGN, 0);
      cr_assert_eq(buffer->size, size);
      memset(buffer->data, 0xff, size);
      rn_buffer_release(buffer);
    }
  }
  rn_buffer_release(NULL);
  rn_buffer_retain(NULL);
}

Test(tensor, share_counts) {
  rn_allocator_t allocator = counted();
  rn_tensor_t a, b;
  OK(rn_tensor_create(allocator, RN_INT32, SHAPE(4), &a));
  RN_DATA(&a, int32_t)[3] = 7;
  OK(rn_tensor_share(&a, &b));
  cr_assert_eq(b.data, a.data);
  cr_assert(!rn_tensor_is_exclusive(&a));
  rn_tensor_clear(&a);
  cr_assert(rn_tensor_is_exclusive(&b));
  cr_assert_eq(RN_DATA(&b, int32_t)[3], 7);
  cr_assert_eq(counting.live_blocks, 1);
  rn_tensor_clear(&b);
  cr_assert_eq(counting.live_blocks, 0);
}

Test(tensor, high_ranks_have_their_dims_on_the_heap) {
  int64_t dims[RN_MAX_RANK + 1];
  for (int i = 0; i <= RN_MAX_RANK; i++) dims[i] = 1;
  dims[5] = 3;
  rn_tensor_t a, b, c;
  cr_assert(
      rn_ok(rn_tensor_create(rn_allocator_system(), RN_INT8, (rn_shape_t){RN_MAX_RANK, dims}, &a)));
  cr_assert_eq(a.count, 3);
  OK(rn_tensor_share(&a, &b));
  OK(rn_tensor_copy(&a, rn_allocator_system(), &c));
  cr_assert_neq(a.heap_dims, b.heap_dims);
  cr_assert(rn_tensor_same_shape(&a, &b) && rn_tensor_same_shape(&a, &c));
  rn_tensor_clear(&a);
  cr_assert_eq(rn_tensor_dim(&b, 5), 3);
  OK(rn_tensor_reshape(&b, RN_INT8, SHAPE(3), &a));
  cr_assert(!rn_tensor_same_shape(&a, &b));
  rn_tensor_clear(&a);
  rn_tensor_clear(&b);
  rn_tensor_clear(&c);
  rn_tensor_t bad;
  FAILS(rn_tensor_init(&bad, RN_INT8, (rn_shape_t){RN_MAX_RANK + 1, dims}), INVALID_ARGUMENT);
  cr_assert(!rn_tensor_is_set(&bad));
  rn_tensor_clear(&bad);
}

Test(tensor, sizes_that_overflow_are_a_status) {
  rn_tensor_t t;
  int64_t big = INT64_C(1) << 32;
  FAILS(rn_tensor_init(&t, RN_INT8, SHAPE(big, big)), INVALID_ARGUMENT);
  FAILS(rn_tensor_init(&t, RN_INT8, SHAPE(big, big, 0)), INVALID_ARGUMENT);
  FAILS(rn_tensor_init(&t, RN_FLOAT, SHAPE(INT64_MAX)), RESOURCE_EXHAUSTED);
  FAILS(rn_tensor_init(&t, RN_INT8, SHAPE(INT64_MAX)), RESOURCE_EXHAUSTED);
  FAILS(rn_tensor_init(&t, RN_STRING, SHAPE(INT64_MAX / 20)), RESOURCE_EXHAUSTED);
  FAILS(rn_tensor_init(&t, RN_FLOAT, SHAPE(2, -1)), INVALID_ARGUMENT);
  FAILS(rn_tensor_init(&t, RN_FLOAT, RN_SHAPE_UNKNOWN), INVALID_ARGUMENT);
  FAILS(rn_tensor_init(&t, RN_INVALID, SHAPE(1)), INVALID_ARGUMENT);
  FAILS(rn_tensor_init(&t, RN_FLOAT + RN_REF_OFFSET, SHAPE(1)), INVALID_ARGUMENT);
  FAILS(rn_tensor_init(&t, -1, SHAPE(1)), INVALID_ARGUMENT);
  FAILS(rn_tensor_create(rn_allocator_system(), RN_FLOAT, SHAPE(INT64_MAX), &t),
        RESOURCE_EXHAUSTED);
  rn_status_t status =
      rn_tensor_create(rn_allocator_system(), RN_INT8, SHAPE(INT64_C(1) << 61, 1, 1, 1, 1), &t);
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  cr_assert(!rn_tensor_is_set(&t));
  OK(rn_tensor_init(&t, RN_INT8, SHAPE(0, big, big)));
  cr_assert_eq(t.count, 0);
}

Test(tensor, keep_copies_what_is_borrowed) {
  rn_allocator_t allocator = counted();
  static const float lent[] = {1, 2, 3};
  rn_tensor_t borrowed, kept, shared;
  OK(rn_tensor_init(&borrowed, RN_FLOAT, SHAPE(3)));
  borrowed.data = (void*)lent;
  cr_assert(!rn_tensor_is_exclusive(&borrowed));
  OK(rn_tensor_share(&borrowed, &shared));
  cr_assert_eq(shared.data, lent);
  cr_assert_eq(counting.allocations, 0);
  OK(rn_tensor_keep(&borrowed, allocator, &kept));
  cr_assert_neq(kept.data, lent);
  cr_assert_eq(memcmp(kept.data, lent, sizeof lent), 0);
  rn_tensor_clear(&shared);
  OK(rn_tensor_keep(&kept, allocator, &shared));
  cr_assert_eq(shared.data, kept.data);
  cr_assert_eq(counting.allocations, 1);
  rn_tensor_clear(&shared);
  rn_tensor_clear(&kept);
  rn_tensor_clear(&borrowed);
  cr_assert_eq(counting.live_bytes, 0);
  rn_tensor_t none = {0};
  OK(rn_tensor_keep(&none, allocator, &kept));
  cr_assert(!rn_tensor_is_set(&kept));
  OK(rn_tensor_copy(&none, allocator, &kept));
  cr_assert(!rn_tensor_is_set(&kept));
}

Test(tensor, strings_are_their_own) {
  rn_allocator_t allocator = counted();
  rn_tensor_t a, b;
  OK(rn_tensor_create(allocator, RN_STRING, SHAPE(3), &a));
  rn_tstring_t* strings = a.data;
  cr_assert_eq(rn_tstring_view(&strings[2]).size, 0);
  char text[] = "a string of more than twenty-two bytes";
  cr_assert(rn_tstring_assign(&strings[0], "short", 5));
  cr_assert(rn_tstring_assign(&strings[1], text, sizeof text - 1));
  strings[2] = (rn_tstring_t){.view = {30 << 2 | 3, text, 0}};
  OK(rn_tensor_copy(&a, allocator, &b));
  rn_tensor_clear(&a);
  memset(text, 'x', 10);
  strings = b.data;
  cr_assert(rn_str_is(rn_tstring_view(&strings[0]), "short"));
  cr_assert(rn_str_is(rn_tstring_view(&strings[1]), "a string of more than twenty-two bytes"));
  cr_assert(rn_str_is(rn_tstring_view(&strings[2]), "a string of more than twenty-t"));
  rn_tensor_clear(&b);
  cr_assert_eq(counting.live_bytes, 0);
}

static int destroyed;
static void count_destroy(rn_object_t* object) {
  (void)object;
  destroyed++;
}

Test(tensor, objects_are_counted) {
  static const rn_dtype_t types[] = {RN_RESOURCE, RN_VARIANT};
  for (int i = 0; i < 2; i++) {
    destroyed = 0;
    rn_object_t object = {.refs = 1, .destroy = count_destroy};
    rn_tensor_t a, b;
    OK(rn_tensor_create(rn_allocator_system(), types[i], SHAPE(2), &a));
    cr_assert_null(RN_DATA(&a, rn_object_t*)[0]);
    RN_DATA(&a, rn_object_t*)[1] = &object;
    OK(rn_tensor_copy(&a, rn_allocator_system(), &b));
    cr_assert_eq(object.refs, 2);
    rn_tensor_clear(&a);
    cr_assert_eq(destroyed, 0);
    rn_tensor_clear(&b);
    cr_assert_eq(destroyed, 1);
  }
}

Test(tensor, reshape) {
  rn_tensor_t a, b;
  OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, SHAPE(2, 3), &a));
  OK(rn_tensor_reshape(&a, RN_FLOAT, SHAPE(1, 1, 1, 3, 2), &b));
  cr_assert_eq(b.data, a.data);
  cr_assert_eq(a.buffer->refs, 2);
  rn_tensor_clear(&b);
  OK(rn_tensor_reshape(&a, RN_INT32, SHAPE(6), &b));
  cr_assert_eq(b.dtype, RN_INT32);
  rn_tensor_clear(&b);
  OK(rn_tensor_reshape(&a, RN_UINT8, SHAPE(6, 4), &b));
  rn_tensor_t c;
  OK(rn_tensor_reshape(&b, RN_DOUBLE, SHAPE(3), &c));
  rn_tensor_clear(&c);
  rn_tensor_clear(&b);
  FAILS(rn_tensor_reshape(&a, RN_FLOAT, SHAPE(5), &b), INVALID_ARGUMENT);
  FAILS(rn_tensor_reshape(&a, RN_DOUBLE, SHAPE(6), &b), INVALID_ARGUMENT);
  FAILS(rn_tensor_reshape(&a, RN_STRING, SHAPE(1), &b), INVALID_ARGUMENT);
  FAILS(rn_tensor_reshape(&a, RN_FLOAT, SHAPE(6, -1), &b), INVALID_ARGUMENT);
  cr_assert(!rn_tensor_is_set(&b));
  cr_assert_eq(a.buffer->refs, 1);
  // Bytes from the middle of a buffer are not where a wider type may be.
  rn_tensor_t part;
  OK(rn_tensor_init(&part, RN_UINT8, SHAPE(8)));
  part.data = (char*)a.data + 1;
  FAILS(rn_tensor_reshape(&part, RN_DOUBLE, SHAPE(1), &b), INVALID_ARGUMENT);
  rn_tensor_clear(&a);
  OK(rn_tensor_create(rn_allocator_system(), RN_STRING, SHAPE(2), &a));
  FAILS(rn_tensor_reshape(&a, RN_UINT8, SHAPE(48), &b), INVALID_ARGUMENT);
  OK(rn_tensor_reshape(&a, RN_STRING, SHAPE(2, 1), &b));
  rn_tensor_clear(&a);
  rn_tensor_clear(&b);
}

Test(tensor, references_are_shared_not_copied) {
  rn_tensor_t ref = {0}, out;
  int cell;
  OK(rn_tensor_init(&ref, RN_FLOAT, SHAPE(2)));
  ref.is_ref = 1;
  ref.data = &cell;
  OK(rn_tensor_share(&ref, &out));
  cr_assert(out.is_ref && out.data == &cell);
  OK(rn_tensor_keep(&ref, rn_allocator_system(), &out));
  cr_assert(out.is_ref && out.data == &cell);
  rn_status_t status = rn_tensor_copy(&ref, rn_allocator_system(), &out);
  cr_assert_eq(rn_status_code(status), RN_CODE_INTERNAL);
  rn_status_free(status);
  FAILS(rn_tensor_reshape(&ref, RN_FLOAT, SHAPE(2), &out), INVALID_ARGUMENT);
}

Test(tensor, outlives_its_caching_allocator) {
  rn_cache_alloc_t* cache = NULL;
  OK(rn_cache_alloc_create(counted(), 1 << 20, &cache));
  rn_tensor_t small, large;
  OK(rn_tensor_create(rn_cache_allocator(cache), RN_FLOAT, SHAPE(1), &small));
  OK(rn_tensor_create(rn_cache_allocator(cache), RN_FLOAT, SHAPE(4096), &large));
  cr_assert_eq((uintptr_t)large.data % RN_ALIGN, 0);
  rn_cache_alloc_release(cache);
  memset(large.data, 0, rn_tensor_bytes(&large));
  rn_tensor_clear(&large);
  rn_tensor_clear(&small);
  cr_assert_eq(counting.live_blocks, 0);
}

Test(tensor, every_failed_allocation_is_survived) {
  for (int64_t n = 1; n < 4; n++) {
    rn_allocator_t allocator = counted();
    counting.fail_at = n;
    rn_tensor_t a = {0}, b = {0};
    rn_status_t status = rn_tensor_create(allocator, RN_STRING, SHAPE(1, 2, 1, 1, 1), &a);
    if (rn_ok(status)) status = rn_tensor_copy(&a, allocator, &b);
    cr_assert_eq(rn_ok(status), n == 3);
    rn_status_free(status);
    rn_tensor_clear(&a);
    rn_tensor_clear(&b);
    cr_assert_eq(counting.live_blocks, 0);
  }
}

static void* share_and_clear(void* arg) {
  for (int i = 0; i < 10000; i++) {
    rn_tensor_t mine;
    OK(rn_tensor_share(arg, &mine));
    rn_tensor_clear(&mine);
  }
  rn_tensor_clear(arg);
  return NULL;
}

Test(tensor, shared_by_many_threads, .timeout = 60) {
  rn_allocator_t allocator = counted();
  rn_tensor_t tensors[4];
  OK(rn_tensor_create(allocator, RN_INT64, SHAPE(8), &tensors[0]));
  for (int i = 1; i < 4; i++) OK(rn_tensor_share(&tensors[0], &tensors[i]));
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, share_and_clear, &tensors[i]);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  cr_assert_eq(counting.live_blocks, 0);
}
