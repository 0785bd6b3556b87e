// Reference-counted objects, to which elements of resource and variant tensors point.
//
// Every object begins with this record; its creator sets refs to 1 and |destroy|. Any thread may
// retain and release it; other thread safety is up to the object.
#ifndef RUNNEL_TENSOR_OBJECT_H_
#define RUNNEL_TENSOR_OBJECT_H_

#include <stdint.h>

typedef struct rn_object_t {
  _Atomic int32_t refs;
  void (*destroy)(struct rn_object_t* object);  // called once, when the last reference is released
  // NULL, or a name by which libraries that have the code of the type twice (device/part.h)
  // recognize it. Borrowed.
  const char* kind;
} rn_object_t;

// Adds a reference and returns |object|; NULL is fine.
rn_object_t* rn_object_retain(rn_object_t* object);
// Releases a reference; NULL is fine.
void rn_object_release(rn_object_t* object);

#endif  // RUNNEL_TENSOR_OBJECT_H_
