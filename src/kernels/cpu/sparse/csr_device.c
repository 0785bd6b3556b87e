// CSR matrices in the memory of devices. A matrix goes to kernels of other devices as it is; the
// first of them that uses it makes a copy, which stays with the matrix.
#include <stdatomic.h>

#include "device/device.h"
#include "kernels/cpu/sparse/csr.h"

// One of the two memories is the host's.
static rn_status_t copy_part(const rn_tensor_t* part, rn_device_t* from, rn_device_t* to,
                             rn_allocator_t host, rn_tensor_t* out) {
  rn_allocator_t memory = to ? to->allocator : host;
  RN_RETURN_IF_ERROR(rn_tensor_create(memory, part->dtype, rn_tensor_shape(part), out));
  if (part->count == 0) return RN_OK;
  if (from)
    from->vtable->copy_to_host(from, part, out, NULL, NULL);
  else
    to->vtable->copy_from_host(to, part, out, NULL, NULL);
  return RN_OK;
}

static rn_status_t copy_parts(const rn_csr_t* csr, rn_device_t* device, rn_csr_parts_t* to,
                              rn_tensor_t* starts) {
  rn_status_t status = RN_OK;
  for (int p = 0; rn_ok(status) && p < RN_CSR_PARTS; ++p)
    status = p <= RN_CSR_BATCH
                 ? rn_tensor_share(&csr->part[p], &to->part[p])
                 : copy_part(&csr->part[p], csr->device, device, csr->allocator, &to->part[p]);
  if (rn_ok(status) && device)
    status = copy_part(&csr->part[RN_CSR_BATCH], NULL, device, csr->allocator, starts);
  // The copies need both matrices until they have ended.
  rn_status_t copied = rn_device_wait(csr->device ? csr->device : device);
  if (!rn_ok(status)) {
    rn_status_free(copied);
    return status;
  }
  return copied;
}

static rn_status_t copy_to(const rn_csr_t* csr, rn_device_t* device, rn_csr_t** out) {
  rn_csr_parts_t parts = {0};
  rn_tensor_t starts = {0};
  rn_status_t status = copy_parts(csr, device, &parts, &starts);
  if (rn_ok(status)) return rn_csr_create_on(csr->allocator, device, parts.part, &starts, out);
  rn_csr_parts_clear(&parts);
  rn_tensor_clear(&starts);
  return status;
}

// From one device to another through the host's memory.
rn_status_t rn_csr_on(rn_csr_t* csr, rn_device_t* device, rn_csr_t** out) {
  *out = csr;
  if (csr->device == device) return RN_OK;
  rn_csr_t *there = atomic_load(&csr->elsewhere), *none = NULL;
  if (!there) {
    RN_RETURN_IF_ERROR(copy_to(csr, csr->device ? NULL : device, &there));
    if (!atomic_compare_exchange_strong(&csr->elsewhere, &none, there)) {
      rn_object_release(&there->object);  // another thread was first
      there = none;
    }
  }
  return rn_csr_on(there, device, out);
}
