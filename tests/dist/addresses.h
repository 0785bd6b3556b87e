// Addresses for the tasks of a test.
#ifndef RUNNEL_TESTS_DIST_ADDRESSES_H_
#define RUNNEL_TESTS_DIST_ADDRESSES_H_

#include <stdio.h>

#include "base/net.h"

// |count| addresses of this machine whose ports are free: found by listening on any.
static inline rn_status_t free_addresses(char (*addresses)[64], int count) {
  const rn_env_t* env = rn_env_system();
  rn_socket_t* socket = NULL;
  RN_RETURN_IF_ERROR(
      env->net->listen(env->net_self, "127.0.0.1:0", rn_allocator_system(), &socket));
  rn_strbuf_t address;
  rn_strbuf_init(&address, rn_allocator_system());
  rn_status_t status = socket->vtable->address(socket, &address);
  if (rn_ok(status)) snprintf(*addresses, sizeof *addresses, "%s", address.data);
  rn_strbuf_clear(&address);
  // The next one is found while this one is taken.
  if (rn_ok(status) && count > 1) status = free_addresses(addresses + 1, count - 1);
  socket->vtable->close(socket);
  return status;
}

#endif  // RUNNEL_TESTS_DIST_ADDRESSES_H_
