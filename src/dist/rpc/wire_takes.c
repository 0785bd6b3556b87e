// Values that a wire receives, on its thread: see wire_internal.h.
//
// A value is taken only if somebody expects its number and its head says what was sent; memory is
// allocated after that. What nobody expects is dropped.
#include "dist/rpc/wire_internal.h"

rn_status_t rn_wire_check(const rn_wire_t* wire, const char* what, rn_ucx_status_t status) {
  return status == RN_UCX_OK
             ? RN_OK
             : rn_unavailable("UCX: %s failed: %s", what, wire->ucx.ucs_status_string(status));
}

// Forgets a take that is awaited, before its owner is told.
static void forget_locked(rn_wire_t* wire, rn_wire_take_t* take) {
  rn_map_remove(&wire->takes, rn_wire_take_key(&take->number));
  if (take->landing) take->landing->take = NULL;
  take->landing = NULL;
  wire->awaited--;
}

void rn_wire_fail_takes(rn_wire_t* wire, const rn_loan_name_t* name, int64_t limit_ns,
                        const char* why) {
  for (;;) {
    rn_wire_take_t* found = NULL;
    size_t position = 0;
    const rn_map_entry_t* entry;
    rn_mutex_lock(&wire->mutex);
    while (!found && (entry = rn_map_next(&wire->takes, &position))) {
      rn_wire_take_t* take = entry->value;
      bool is_it = name ? rn_loan_name_eq(take->line, *name) : take->deadline_ns < limit_ns;
      if (take->is_awaited && is_it) found = take;
    }
    if (found) forget_locked(wire, found);
    rn_mutex_unlock(&wire->mutex);
    if (!found) return;
    found->done(found, rn_unavailable("%s", why));
  }
}

void rn_wire_landed(wire_landing_t* landing, rn_ucx_status_t result, size_t size) {
  rn_wire_t* wire = landing->wire;
  rn_status_t status = rn_wire_check(wire, "receiving a tensor", result);
  if (rn_ok(status) && size != rn_tensor_bytes(&landing->value))
    status =
        rn_internal("%zu bytes came for a tensor of %zu", size, rn_tensor_bytes(&landing->value));
  rn_mutex_lock(&wire->mutex);
  rn_wire_take_t* take = landing->take;
  bool is_awaited = take && take->is_awaited;
  if (take) {
    take->landing = NULL;
    take->has_come = true;
    if (rn_ok(status)) take->value = landing->value;
    if (rn_ok(status)) landing->value = (rn_tensor_t){0};
    if (!is_awaited) take->status = status;
    if (is_awaited) forget_locked(wire, take);
  }
  rn_mutex_unlock(&wire->mutex);
  if (is_awaited)
    take->done(take, status);
  else if (!take)
    rn_status_free(status);
  rn_tensor_clear(&landing->value);
  wire_landing_t** at = &wire->landings;
  while (*at != landing) at = &(*at)->next;
  *at = landing->next;
  RN_FREE(wire->options.allocator, landing);
}

static void on_received(void* request, rn_ucx_status_t status, size_t size, void* user_data) {
  wire_landing_t* landing = user_data;
  landing->wire->ucx.ucp_request_free(request);
  rn_wire_landed(landing, status, size);
}

// What a head says: a tensor without bytes yet, of |size| bytes.
static rn_status_t read_head(const rn_wire_t* wire, const uint64_t* head, size_t head_size,
                             size_t size, rn_tensor_t* out) {
  uint64_t dtype = head[1] & UINT32_MAX, rank = head[1] >> 32;
  int64_t dims[RN_WIRE_MAX_RANK];
  *out = (rn_tensor_t){0};
  if (dtype >= RN_DTYPE_COUNT || !rn_dtype_is_plain((rn_dtype_t)dtype) || rank > RN_WIRE_MAX_RANK ||
      head_size != (2 + rank) * sizeof *head)
    return rn_internal("The head of a tensor is malformed");
  for (uint64_t i = 0; i < rank; ++i) {
    if (head[2 + i] > INT64_MAX) return rn_internal("The head of a tensor is malformed");
    dims[i] = (int64_t)head[2 + i];
  }
  RN_RETURN_IF_ERROR(rn_tensor_init(out, (rn_dtype_t)dtype, (rn_shape_t){(int)rank, dims}));
  if (rn_tensor_bytes(out) != size)
    return rn_internal("A tensor of %zu bytes was announced with %zu", rn_tensor_bytes(out), size);
  if (wire->options.max_value && size > wire->options.max_value)
    return rn_resource_exhausted("A tensor of %zu bytes is larger than the limit of %zu", size,
                                 wire->options.max_value);
  return RN_OK;
}

// Makes room for the value that |head| describes. NULL: nobody expects it, or it cannot be taken.
static wire_landing_t* make_landing(rn_wire_t* wire, const uint64_t* head, size_t head_size,
                                    size_t size) {
  wire_landing_t* landing = NULL;
  rn_mutex_lock(&wire->mutex);
  rn_wire_take_t* take = rn_map_get(&wire->takes, rn_wire_take_key(head));
  if (!take || take->landing || take->has_come) {
    rn_mutex_unlock(&wire->mutex);
    return NULL;
  }
  rn_status_t status = RN_NEW(wire->options.allocator, &landing);
  if (rn_ok(status)) status = read_head(wire, head, head_size, size, &landing->value);
  rn_tensor_t* value = landing ? &landing->value : NULL;
  if (rn_ok(status))
    status = rn_buffer_create(wire->options.landing, value->dtype, size, &value->buffer);
  if (rn_ok(status)) {
    value->data = value->buffer->data;
    landing->wire = wire;
    landing->take = take;
    take->landing = landing;
  }
  bool is_awaited = take->is_awaited;
  if (!rn_ok(status)) {
    take->has_come = true;
    if (is_awaited) forget_locked(wire, take);
    if (!is_awaited) take->status = status;
  }
  rn_mutex_unlock(&wire->mutex);
  if (!rn_ok(status)) {
    if (value) rn_tensor_clear(value);
    if (landing) RN_FREE(wire->options.allocator, landing);
    if (is_awaited) take->done(take, status);
    return NULL;
  }
  landing->next = wire->landings;
  wire->landings = landing;
  return landing;
}

rn_ucx_status_t rn_wire_on_value(void* arg, const void* head, size_t head_size, void* data,
                                 size_t size, const rn_ucx_message_t* message) {
  rn_wire_t* wire = arg;
  uint64_t words[2 + RN_WIRE_MAX_RANK];
  if (head_size < 2 * sizeof *words || head_size > sizeof words) return RN_UCX_OK;
  memcpy(words, head, head_size);
  wire_landing_t* landing = make_landing(wire, words, head_size, size);
  if (!landing) return RN_UCX_OK;
  if (!(message->attributes & RN_UCX_IS_RENDEZVOUS)) {
    if (size) memcpy(landing->value.data, data, size);
    rn_wire_landed(landing, RN_UCX_OK, size);
    return RN_UCX_OK;
  }
  const rn_ucx_request_params_t params = {.fields = RN_UCX_HAS_DONE | RN_UCX_HAS_USER_DATA,
                                          .done.received = on_received,
                                          .user_data = landing};
  rn_ucx_request_t request =
      wire->ucx.ucp_am_recv_data_nbx(wire->worker, data, landing->value.data, size, &params);
  if (!request || rn_ucx_is_error(request))
    rn_wire_landed(landing, request ? rn_ucx_error(request) : RN_UCX_OK, size);
  return RN_UCX_INPROGRESS;
}
