// Connecting to a container at an address: name lookup, connect and the TLS handshake may block, so
// that each attempt has a thread of its own.
#include "base/container.h"
#include "serve/model/container_internal.h"

#define MOST_NS INT64_C(5000000000)  // for one attempt

typedef struct rn_container_dial_t {
  rn_container_t* container;
  rn_loop_job_t job;
  pthread_t thread;
  rn_socket_t* socket;
  rn_status_t status;
  void (*dialled)(rn_container_t* container, rn_status_t status, rn_socket_t* socket);
} rn_container_dial_t;

static rn_status_t connect_to(const rn_container_t* container, rn_socket_t** out) {
  const rn_env_t* env = container->containers->env;
  const char* address = container->config->address;
  int64_t most = container->config->start_ns < MOST_NS ? container->config->start_ns : MOST_NS;
  int64_t deadline = rn_container_now(container) + most;
  rn_socket_t* plain;
  RN_RETURN_IF_ERROR(
      env->net->connect(env->net_self, address, deadline, container->allocator, &plain));
  if (!container->shared->tls) {
    *out = plain;
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_tls_connect(container->shared->tls, plain, address, NULL, out));
  bool wants_write;
  rn_status_t status = rn_tls_handshake(*out, deadline, &wants_write);
  if (!rn_ok(status)) {
    (*out)->vtable->close(*out);
    *out = NULL;
  }
  return status;
}

static void* dial_main(void* arg) {
  rn_container_dial_t* dial = arg;
  dial->status = connect_to(dial->container, &dial->socket);
  rn_loop_post(dial->container->loop, &dial->job);
  return NULL;
}

static void dial_ended(rn_loop_job_t* job) {
  rn_container_dial_t* dial = RN_CONTAINER_OF(job, rn_container_dial_t, job);
  rn_container_t* container = dial->container;
  rn_container_dial_t ended = *dial;
  pthread_join(ended.thread, NULL);
  container->dial = NULL;
  RN_FREE(container->allocator, dial);
  ended.dialled(container, ended.status, ended.socket);
}

rn_status_t rn_container_dial(rn_container_t* container,
                              void (*dialled)(rn_container_t* container, rn_status_t status,
                                              rn_socket_t* socket)) {
  rn_container_dial_t* dial = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(container->allocator, &dial));
  *dial =
      (rn_container_dial_t){.container = container, .job = {.run = dial_ended}, .dialled = dialled};
  container->dial = dial;
  if (pthread_create(&dial->thread, NULL, dial_main, dial) == 0) return RN_OK;
  container->dial = NULL;
  RN_FREE(container->allocator, dial);
  return rn_resource_exhausted("could not be called: there is no thread to connect");
}
