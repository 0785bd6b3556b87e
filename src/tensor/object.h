// Counted objects: what the elements of resource and variant tensors point to.
//
// An object begins with this record; its maker sets refs to 1 and says how it goes. References are
// counted from any thread; what else the object allows is its own affair.
#ifndef RUNNEL_TENSOR_OBJECT_H_
#define RUNNEL_TENSOR_OBJECT_H_

#include <stdint.h>

typedef struct rn_object_t {
  _Atomic int32_t refs;
  void (*destroy)(struct rn_object_t* object);  // called once, when the last reference goes
} rn_object_t;

// Another reference to |object|; NULL is fine. Returns it.
rn_object_t* rn_object_retain(rn_object_t* object);
// Gives a reference back; NULL is fine.
void rn_object_release(rn_object_t* object);

#endif  // RUNNEL_TENSOR_OBJECT_H_
