// Mutexes of a graph: MutexLock returns a value, and the lock is held as long as the value lives.
#include "kernels/cpu/data_flow/parking.h"
#include "kernels/cpu/state/handle.h"
#include "kernels/kernel_rows.h"

#define MUTEX_TYPE "Mutex"

typedef struct lock_resource_t {
  rn_resource_t resource;
  rn_parking_t parking;
  bool is_locked;
} lock_resource_t;

static void mutex_destroy(rn_object_t* object) {
  lock_resource_t* mutex = (lock_resource_t*)object;
  rn_allocator_t allocator = mutex->parking.allocator;
  rn_parking_destroy(&mutex->parking);
  RN_FREE(allocator, mutex);
}

static rn_status_t mutex_create(void* arg, rn_str_t name, rn_resource_t** out) {
  (void)name;
  const rn_kernel_init_t* init = arg;
  lock_resource_t* mutex = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(init->allocator, &mutex));
  mutex->resource = (rn_resource_t){{.refs = 1, .destroy = mutex_destroy}, MUTEX_TYPE};
  rn_parking_init(&mutex->parking, init->allocator);
  *out = &mutex->resource;
  return RN_OK;
}

static rn_status_t mutex_init(const rn_kernel_init_t* init, void* state) {
  return rn_handle_state_init(state, init, MUTEX_TYPE, mutex_create, (void*)(uintptr_t)init);
}

// The content of the variant. Its holder may release the lock early.
typedef struct mutex_held_t {
  rn_object_t object;
  rn_allocator_t allocator;
  lock_resource_t* mutex;  // Retained
  _Atomic bool is_given_back;
} mutex_held_t;

static void give_back(mutex_held_t* held) {
  if (held->is_given_back) return;
  held->is_given_back = true;
  rn_mutex_lock(&held->mutex->parking.mutex);
  held->mutex->is_locked = false;
  rn_mutex_unlock(&held->mutex->parking.mutex);
  rn_parking_retry(&held->mutex->parking);
}

static void held_destroy(rn_object_t* object) {
  mutex_held_t* held = (mutex_held_t*)object;
  give_back(held);
  rn_object_release(&held->mutex->resource.object);
  RN_FREE(held->allocator, held);
}

static bool try_lock(rn_resource_t* owner, rn_kernel_ctx_t* ctx, rn_status_t* out_status) {
  lock_resource_t* mutex = (lock_resource_t*)owner;
  if (mutex->is_locked) return false;
  rn_tensor_t* out = NULL;
  mutex_held_t* held = NULL;
  *out_status = rn_output(ctx, 0, RN_SHAPE_SCALAR, &out);
  if (rn_ok(*out_status)) *out_status = RN_NEW(ctx->kernel->allocator, &held);
  if (!rn_ok(*out_status)) return true;
  *held = (mutex_held_t){.object = {.refs = 1, .destroy = held_destroy},
                         .allocator = ctx->kernel->allocator,
                         .mutex = mutex};
  rn_object_retain(&owner->object);
  mutex->is_locked = true;
  *RN_DATA(out, rn_object_t*) = &held->object;
  return true;
}

static void lock(rn_kernel_ctx_t* ctx) {
  rn_resource_t* resource = NULL;
  rn_status_t status = rn_handle_input(ctx, 0, MUTEX_TYPE, &resource);
  if (!rn_ok(status)) {
    rn_done(ctx, status);
    return;
  }
  lock_resource_t* mutex = (lock_resource_t*)resource;
  rn_parking_call(&mutex->parking, resource, ctx, try_lock, "Lock acquisition cancelled.");
  rn_object_release(&resource->object);
}

// The value remains, but no longer holds the lock.
static rn_status_t consume(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  rn_object_t* object = in->count == 1 ? *RN_DATA(in, rn_object_t*) : NULL;
  if (!object || object->destroy != held_destroy)
    return rn_invalid_argument("Expected input to contain a SharedLockReleaser object");
  give_back((mutex_held_t*)object);
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "MutexV2",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS,
     .state_size = sizeof(rn_handle_state_t),
     .init = mutex_init,
     .destroy = rn_handle_state_destroy,
     .compute = rn_handle_state_compute},
    {.op = "MutexLock", .device = "CPU", .compute_async = lock},
    {.op = "ConsumeMutexLock", .device = "CPU", .compute = consume},
};
RN_KERNEL_FAMILY(cpu_mutex, rows);
