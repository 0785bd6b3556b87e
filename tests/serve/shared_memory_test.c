// Regions of shared memory: what may be registered, and objects that change behind our back.
#include "serve/front/shared_memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../support/status.h"

static rn_allocator_t memory(void) { return rn_allocator_system(); }

// An object of |size| bytes 0, 1, 2 ...
typedef struct object_t {
  char key[64];
  int descriptor;
} object_t;

static void object_open(object_t* object, size_t size) {
  snprintf(object->key, sizeof object->key, "/runnel_shm_test_%d", (int)getpid());
  object->descriptor = shm_open(object->key, O_CREAT | O_EXCL | O_RDWR, 0600);
  cr_assert_geq(object->descriptor, 0);
  for (size_t i = 0; i < size; ++i) {
    char byte = (char)i;
    cr_assert_eq(write(object->descriptor, &byte, 1), 1);
  }
}

static void object_close(object_t* object) {
  shm_unlink(object->key);
  close(object->descriptor);
}

Test(shared_memory, reads_and_writes_within_a_region) {
  object_t object;
  object_open(&object, 100);
  rn_shared_memory_t* regions = NULL;
  OK(rn_shared_memory_create(memory(), &regions));
  OK(rn_shared_memory_add(regions, RN_STR("in"), rn_str(object.key), 10, 50));
  FAILS(rn_shared_memory_add(regions, RN_STR("in"), rn_str(object.key), 0, 1), ALREADY_EXISTS);
  rn_buffer_t* buffer = NULL;
  OK(rn_shared_memory_read(regions, RN_STR("in"), 5, 3, &buffer));
  cr_assert_eq(memcmp(buffer->data, "\x0f\x10\x11", 3), 0);
  rn_buffer_release(buffer);
  OK(rn_shared_memory_write(regions, RN_STR("in"), 48, RN_STR("ab")));
  char bytes[3];
  cr_assert_eq(pread(object.descriptor, bytes, 3, 58), 3);
  cr_assert_eq(memcmp(bytes, "ab\x3c", 3), 0);
  FAILS(rn_shared_memory_read(regions, RN_STR("in"), 48, 3, &buffer), INVALID_ARGUMENT);
  FAILS(rn_shared_memory_read(regions, RN_STR("in"), UINT64_MAX, 3, &buffer), INVALID_ARGUMENT);
  FAILS(rn_shared_memory_write(regions, RN_STR("in"), 49, RN_STR("ab")), INVALID_ARGUMENT);
  FAILS(rn_shared_memory_read(regions, RN_STR("out"), 0, 3, &buffer), NOT_FOUND);
  rn_shared_memory_remove(regions, RN_REGION_SYSTEM, RN_STR("in"));
  rn_shared_memory_remove(regions, RN_REGION_SYSTEM, RN_STR("in"));
  FAILS(rn_shared_memory_read(regions, RN_STR("in"), 0, 3, &buffer), NOT_FOUND);
  rn_shared_memory_destroy(regions);
  object_close(&object);
}

// The region of a client that crashes or cheats: an error, not a SIGBUS, and no larger object.
Test(shared_memory, survives_an_object_that_shrinks) {
  object_t object;
  object_open(&object, 200);
  rn_shared_memory_t* regions = NULL;
  OK(rn_shared_memory_create(memory(), &regions));
  OK(rn_shared_memory_add(regions, RN_STR("r"), rn_str(object.key), 0, 200));
  cr_assert_eq(ftruncate(object.descriptor, 100), 0);
  rn_buffer_t* buffer = NULL;
  FAILS(rn_shared_memory_read(regions, RN_STR("r"), 50, 100, &buffer), INVALID_ARGUMENT);
  FAILS(rn_shared_memory_write(regions, RN_STR("r"), 99, RN_STR("ab")), INVALID_ARGUMENT);
  cr_assert_eq(lseek(object.descriptor, 0, SEEK_END), 100);
  OK(rn_shared_memory_read(regions, RN_STR("r"), 0, 100, &buffer));
  rn_buffer_release(buffer);
  rn_shared_memory_destroy(regions);
  object_close(&object);
}

Test(shared_memory, refuses_what_is_not_there) {
  object_t object;
  object_open(&object, 10);
  rn_shared_memory_t* regions = NULL;
  OK(rn_shared_memory_create(memory(), &regions));
  rn_str_t r = RN_STR("r"), key = rn_str(object.key);
  FAILS(rn_shared_memory_add(regions, r, RN_STR("/runnel_no_such"), 0, 1), INVALID_ARGUMENT);
  FAILS(rn_shared_memory_add(regions, r, RN_STR("/../etc/passwd"), 0, 1), INVALID_ARGUMENT);
  FAILS(rn_shared_memory_add(regions, r, RN_STR("a\0b"), 0, 1), INVALID_ARGUMENT);
  FAILS(rn_shared_memory_add(regions, r, key, 0, 11), INVALID_ARGUMENT);
  FAILS(rn_shared_memory_add(regions, r, key, UINT64_MAX, 2), INVALID_ARGUMENT);
  FAILS(rn_shared_memory_add(regions, r, key, 0, 0), INVALID_ARGUMENT);
  FAILS(rn_shared_memory_add(regions, RN_STR(""), key, 0, 1), INVALID_ARGUMENT);
  rn_shared_memory_destroy(regions);
  object_close(&object);
}

Test(shared_memory, lists_regions_up_to_a_limit) {
  object_t object;
  object_open(&object, 10);
  rn_shared_memory_t* regions = NULL;
  OK(rn_shared_memory_create(memory(), &regions));
  rn_arena_t arena;
  rn_arena_init(&arena, memory());
  int added = 0;
  for (int i = 0; i <= RN_SHARED_MEMORY_MAX_REGIONS; ++i) {
    char name[16];
    snprintf(name, sizeof name, "%d", i);
    rn_status_t status = rn_shared_memory_add(regions, rn_str(name), rn_str(object.key), 1, 9);
    added += rn_ok(status);
    rn_status_free(status);
  }
  cr_assert_leq(added, RN_SHARED_MEMORY_MAX_REGIONS);
  rn_region_info_t* list = NULL;
  size_t count = 0;
  OK(rn_shared_memory_list(regions, RN_REGION_SYSTEM, RN_STR(""), &arena, &list, &count));
  cr_assert_eq(count, (size_t)added);
  OK(rn_shared_memory_list(regions, RN_REGION_SYSTEM, RN_STR("7"), &arena, &list, &count));
  cr_assert_eq(count, 1);
  cr_assert(rn_str_is(list->key, object.key) && list->offset == 1 && list->size == 9);
  FAILS(rn_shared_memory_list(regions, RN_REGION_SYSTEM, RN_STR("x"), &arena, &list, &count),
        NOT_FOUND);
  rn_shared_memory_remove(regions, RN_REGION_SYSTEM, RN_STR(""));
  OK(rn_shared_memory_list(regions, RN_REGION_SYSTEM, RN_STR(""), &arena, &list, &count));
  cr_assert_eq(count, 0);
  rn_arena_clear(&arena);
  rn_shared_memory_destroy(regions);
  object_close(&object);
}
