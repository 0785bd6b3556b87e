// From a member to the struct that contains it.
#ifndef RUNNEL_BASE_CONTAINER_H_
#define RUNNEL_BASE_CONTAINER_H_

// The |type| whose |member| is at |pointer|. A pointer to something else does not compile.
#define RN_CONTAINER_OF(pointer, type, member) \
  ((type*)((char*)(1 ? (pointer) : &((type*)0)->member) - __builtin_offsetof(type, member)))

#endif  // RUNNEL_BASE_CONTAINER_H_
