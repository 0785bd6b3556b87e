// Reference counting of objects.
#include "tensor/object.h"

#include <stdatomic.h>
#include <stddef.h>

rn_object_t* rn_object_retain(rn_object_t* object) {
  // Relaxed: the caller already holds a reference, so this publishes nothing.
  if (object) atomic_fetch_add_explicit(&object->refs, 1, memory_order_relaxed);
  return object;
}

void rn_object_release(rn_object_t* object) {
  if (!object) return;
  // With a count of one no other thread can retain, so no read-modify-write is needed.
  if (atomic_load_explicit(&object->refs, memory_order_acquire) == 1 ||
      atomic_fetch_sub_explicit(&object->refs, 1, memory_order_acq_rel) == 1) {
    object->destroy(object);
  }
}
