// Reference counting of objects.
#include "tensor/object.h"

#include <stdatomic.h>
#include <stddef.h>

rn_object_t* rn_object_retain(rn_object_t* object) {
  // Relaxed: who retains already holds a reference, so nothing is published by this.
  if (object) atomic_fetch_add_explicit(&object->refs, 1, memory_order_relaxed);
  return object;
}

void rn_object_release(rn_object_t* object) {
  if (!object) return;
  // A count of one is ours: nobody else can retain, so it needs no read-modify-write.
  if (atomic_load_explicit(&object->refs, memory_order_acquire) == 1 ||
      atomic_fetch_sub_explicit(&object->refs, 1, memory_order_acq_rel) == 1) {
    object->destroy(object);
  }
}
