// Wires: see wire.h. Here is what any thread may do; wire_thread.c is the thread.
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE  // on_exit
#endif
#include "dist/rpc/wire.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "dist/rpc/wire_internal.h"

// A put may take this long per byte that is under way, besides the lease: 4 MB/s.
#define SLOWEST_NS 250

// The thread owns the worker: it is NULL before its start and after its end. The thread itself
// looks at what is new before it sleeps.
static void wake_locked(rn_wire_t* wire) {
  if (wire->worker && !pthread_equal(pthread_self(), wire->thread))
    wire->ucx.ucp_worker_signal(wire->worker);
}

// What the end of the process finds of a wire. It outlives the wire: exit() forgets no handler.
typedef struct wire_exit_t {
  rn_mutex_t mutex;
  rn_wire_t* wire;  // NULL: destroyed
  pid_t process;
} wire_exit_t;

// UCX takes its memory apart at the end of the process, which the thread must not live to see. A
// child of fork has no such thread.
static void on_process_exit(int code, void* arg) {
  wire_exit_t* at_exit = arg;
  (void)code;
  if (at_exit->process != getpid()) return;
  rn_mutex_lock(&at_exit->mutex);
  rn_wire_stop(at_exit->wire);
  rn_mutex_unlock(&at_exit->mutex);
}

static void stop_at_exit(rn_wire_t* wire) {
  wire_exit_t* at_exit = NULL;
  rn_status_t status = RN_NEW(rn_allocator_system(), &at_exit);
  rn_status_free(status);
  if (!at_exit) return;
  rn_mutex_init(&at_exit->mutex);
  at_exit->process = getpid();
  at_exit->wire = wire;
  if (on_exit(on_process_exit, at_exit) == 0) {
    wire->exit = at_exit;
    return;
  }
  rn_mutex_destroy(&at_exit->mutex);
  RN_FREE(rn_allocator_system(), at_exit);
}

rn_status_t rn_wire_create(const rn_wire_options_t* options, rn_wire_t** out) {
  *out = NULL;
  rn_wire_t* wire = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &wire));
  wire->options = *options;
  rn_mutex_init(&wire->mutex);
  rn_cond_init(&wire->changed);
  rn_map_init(&wire->takes, options->allocator);
  wire->put_end = &wire->puts;
  wire->has_thread = pthread_create(&wire->thread, NULL, rn_wire_serve, wire) == 0;
  rn_mutex_lock(&wire->mutex);
  while (wire->has_thread && !wire->is_ready) rn_cond_wait(&wire->changed, &wire->mutex);
  rn_mutex_unlock(&wire->mutex);
  rn_status_t status =
      wire->has_thread ? rn_status_copy(wire->status) : rn_resource_exhausted("No thread for UCX");
  if (!rn_ok(status)) {
    rn_wire_destroy(wire);
    return status;
  }
  stop_at_exit(wire);
  *out = wire;
  return RN_OK;
}

void rn_wire_stop(rn_wire_t* wire) {
  if (!wire) return;
  rn_mutex_lock(&wire->mutex);
  bool is_first = wire->has_thread && !wire->is_stopped;
  wire->is_stopped = true;
  wake_locked(wire);
  rn_mutex_unlock(&wire->mutex);
  if (is_first) pthread_join(wire->thread, NULL);
}

void rn_wire_destroy(rn_wire_t* wire) {
  if (!wire) return;
  if (wire->exit) {
    rn_mutex_lock(&wire->exit->mutex);
    wire->exit->wire = NULL;
    rn_mutex_unlock(&wire->exit->mutex);
  }
  rn_wire_stop(wire);
  rn_map_clear(&wire->takes);
  rn_free(wire->options.allocator, wire->address.items, wire->address.capacity);
  rn_status_free(wire->status);
  rn_cond_destroy(&wire->changed);
  rn_mutex_destroy(&wire->mutex);
  RN_FREE(wire->options.allocator, wire);
}

rn_str_t rn_wire_address(const rn_wire_t* wire) {
  return rn_str_n(wire->address.items, wire->address.count);
}

// Lines.

wire_end_t* rn_wire_find_locked(rn_wire_t* wire, rn_loan_name_t name) {
  wire_end_t* end = wire->ends;
  while (end && !rn_loan_name_eq(end->name, name)) end = end->next;
  return end;
}

// Takes the seal off |address|.
static rn_status_t open_seal(const rn_wire_t* wire, rn_str_t* address) {
  wire_seal_t seal;
  if (address->size <= sizeof seal || address->size > sizeof seal + RN_WIRE_MAX_ADDRESS)
    return rn_invalid_argument("An address for UCX has %zu bytes", address->size);
  memcpy(&seal, address->data, sizeof seal);
  *address = rn_str_n(address->data + sizeof seal, address->size - sizeof seal);
  if (memcmp(seal.magic, wire->seal.magic, sizeof seal.magic) != 0 ||
      seal.crc != rn_crc32c(0, address->data, address->size))
    return rn_invalid_argument("An address for UCX is not whole");
  if (seal.major != wire->seal.major || seal.minor != wire->seal.minor)
    return rn_invalid_argument("An address is of UCX %d.%d, and this is %d.%d", seal.major,
                               seal.minor, wire->seal.major, wire->seal.minor);
  return RN_OK;
}

rn_status_t rn_wire_add_end_locked(rn_wire_t* wire, rn_loan_name_t name, rn_str_t address,
                                   bool is_ours) {
  wire_end_t* end = NULL;
  if (wire->is_stopped) return rn_unavailable("The wire is closing");
  RN_RETURN_IF_ERROR(open_seal(wire, &address));
  if (wire->end_count == RN_WIRE_MAX_ENDS)
    return rn_resource_exhausted("There are more than %d lines by UCX", RN_WIRE_MAX_ENDS);
  RN_RETURN_IF_ERROR(RN_NEW(wire->options.allocator, &end));
  memcpy(end->address, address.data, address.size);
  end->name = name;
  end->wire = wire;
  end->is_ours = is_ours;
  end->holds = 1;
  end->next = wire->ends;
  wire->ends = end;
  wire->end_count++;
  wire->has_news = true;
  return RN_OK;
}

rn_status_t rn_wire_dial(rn_wire_t* wire, rn_str_t address, rn_loan_name_t* out_line) {
  const rn_env_t* env = wire->options.env;
  *out_line = (rn_loan_name_t){{env->random(env->self) | 1, env->random(env->self) | 1}};
  rn_mutex_lock(&wire->mutex);
  rn_status_t status = rn_wire_add_end_locked(wire, *out_line, address, true);
  if (rn_ok(status)) wake_locked(wire);
  rn_mutex_unlock(&wire->mutex);
  return status;
}

bool rn_wire_has(rn_wire_t* wire, rn_loan_name_t line) {
  rn_mutex_lock(&wire->mutex);
  const wire_end_t* end = rn_wire_find_locked(wire, line);
  bool has = end && !end->is_over && !wire->is_stopped;
  rn_mutex_unlock(&wire->mutex);
  return has;
}

void rn_wire_hang_up(rn_wire_t* wire, rn_loan_name_t line) {
  rn_mutex_lock(&wire->mutex);
  wire_end_t* end = rn_wire_find_locked(wire, line);
  if (end) {
    end->is_over = wire->has_news = true;
    wake_locked(wire);
  }
  rn_mutex_unlock(&wire->mutex);
}

// Puts.

bool rn_wire_may_put(const rn_tensor_t* value) {
  return rn_tensor_is_set(value) && rn_dtype_is_plain(value->dtype) && value->buffer &&
         value->rank <= RN_WIRE_MAX_RANK;
}

// Number, type and rank, dimensions: tasks of one cluster have one byte order.
static wire_sending_t* make_sending(rn_wire_t* wire, rn_wire_put_t* put) {
  const rn_tensor_t* value = put->value;
  wire_sending_t* sending = NULL;
  rn_status_t status = RN_NEW(wire->options.allocator, &sending);
  bool ok = rn_ok(status);
  rn_status_free(status);
  if (!ok) return NULL;
  *sending = (wire_sending_t){.wire = wire,
                              .put = put,
                              .line = put->line,
                              .buffer = value->buffer,
                              .data = value->data,
                              .size = rn_tensor_bytes(value),
                              .head = {put->number, value->dtype | (uint64_t)value->rank << 32},
                              .head_size = (2 + (size_t)value->rank) * sizeof *sending->head};
  for (int i = 0; i < value->rank; ++i) sending->head[2 + i] = (uint64_t)rn_tensor_dim(value, i);
  rn_buffer_retain(sending->buffer);
  return sending;
}

bool rn_wire_put(rn_wire_t* wire, rn_wire_put_t* put) {
  wire_sending_t* sending = make_sending(wire, put);
  if (!sending) return false;
  const rn_env_t* env = wire->options.env;
  int64_t at = env->now_ns(env->self);
  rn_mutex_lock(&wire->mutex);
  const wire_end_t* end = rn_wire_find_locked(wire, put->line);
  bool ok = end && !end->is_over && !wire->is_stopped;
  if (ok) {
    put->sending = sending;
    wire->bytes += sending->size;
    sending->deadline_ns = at + wire->options.lease_ns + (int64_t)wire->bytes * SLOWEST_NS;
    *wire->put_end = sending;
    wire->put_end = &sending->next;
    wire->has_news = true;
    wake_locked(wire);
  }
  rn_mutex_unlock(&wire->mutex);
  if (!ok) rn_wire_free_sending(sending);
  return ok;
}

void rn_wire_free_sending(wire_sending_t* sending) {
  rn_buffer_release(sending->buffer);
  RN_FREE(sending->wire->options.allocator, sending);
}

void rn_wire_give_up(rn_wire_t* wire, rn_wire_put_t* put) {
  const rn_env_t* env = wire->options.env;
  int64_t latest = env->now_ns(env->self) + wire->options.lease_ns;
  rn_mutex_lock(&wire->mutex);
  if (put->sending && put->sending->deadline_ns > latest) put->sending->deadline_ns = latest;
  rn_mutex_unlock(&wire->mutex);
}

// Takes.

rn_str_t rn_wire_take_key(const uint64_t* number) {
  return rn_str_n((const char*)number, sizeof *number);
}

rn_status_t rn_wire_expect(rn_wire_t* wire, rn_wire_take_t* take) {
  const rn_env_t* env = wire->options.env;
  take->number = env->random(env->self) | 1;
  rn_mutex_lock(&wire->mutex);
  rn_status_t status = wire->is_stopped || rn_map_get(&wire->takes, rn_wire_take_key(&take->number))
                           ? rn_unavailable("The wire is closing")
                           : rn_map_put(&wire->takes, rn_wire_take_key(&take->number), take);
  rn_mutex_unlock(&wire->mutex);
  return status;
}

bool rn_wire_settle(rn_wire_t* wire, rn_wire_take_t* take, bool is_sent, rn_status_t* out) {
  const rn_env_t* env = wire->options.env;
  *out = RN_OK;
  rn_mutex_lock(&wire->mutex);
  const wire_end_t* end = rn_wire_find_locked(wire, take->line);
  bool is_cut = wire->is_stopped || !end || end->is_over;
  if (is_sent && !take->has_come && !is_cut) {
    take->is_awaited = true;
    wire->awaited++;
    take->deadline_ns = env->now_ns(env->self) + wire->options.lease_ns;
    wake_locked(wire);  // it looks for what takes too long
    rn_mutex_unlock(&wire->mutex);
    return false;
  }
  rn_map_remove(&wire->takes, rn_wire_take_key(&take->number));
  if (take->landing) take->landing->take = NULL;
  take->landing = NULL;
  rn_mutex_unlock(&wire->mutex);
  rn_status_t status = take->status;
  if (!take->has_come) status = rn_unavailable("The connection by UCX has failed");
  if (!is_sent || !rn_ok(status)) rn_tensor_clear(&take->value);
  if (is_sent)
    *out = status;
  else
    rn_status_free(status);
  return true;
}
