// Reference-counted objects.
#include "tensor/object.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>

static _Atomic int destroyed;

static void count_destroy(rn_object_t* object) {
  (void)object;
  atomic_fetch_add(&destroyed, 1);
}

Test(object, goes_with_the_last_reference) {
  rn_object_t object = {.refs = 1, .destroy = count_destroy};
  cr_assert_eq(rn_object_retain(&object), &object);
  rn_object_release(&object);
  cr_assert_eq(destroyed, 0);
  rn_object_release(&object);
  cr_assert_eq(destroyed, 1);
  cr_assert_null(rn_object_retain(NULL));
  rn_object_release(NULL);
}

static void* retain_and_release(void* object) {
  for (int i = 0; i < 10000; i++) rn_object_release(rn_object_retain(object));
  rn_object_release(object);
  return NULL;
}

Test(object, from_many_threads, .timeout = 60) {
  rn_object_t object = {.refs = 4, .destroy = count_destroy};
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, retain_and_release, &object);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  cr_assert_eq(destroyed, 1);
}
