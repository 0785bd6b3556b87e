// UCX 1.10 or later, opened when it is asked for: the functions and records that a wire needs,
// without its headers.
//
// Every record begins with a mask of the fields that are set, so that UCX may append others; ours
// end where we have nothing more to say.
#ifndef RUNNEL_DIST_RPC_UCX_H_
#define RUNNEL_DIST_RPC_UCX_H_

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef signed char rn_ucx_status_t;  // a packed enumeration; 0: OK, 1: in progress, else an error
#define RN_UCX_OK 0
#define RN_UCX_INPROGRESS 1
#define RN_UCX_BUSY (-15)

// A request: NULL if it is over already, an error, or the address of one that is under way.
typedef void* rn_ucx_request_t;
static inline bool rn_ucx_is_error(rn_ucx_request_t request) {
  return (uintptr_t)request >= (uintptr_t)-100;
}
static inline rn_ucx_status_t rn_ucx_error(rn_ucx_request_t request) {
  return (rn_ucx_status_t)(intptr_t)request;
}

typedef struct rn_ucx_params_t {
  uint64_t fields;
  uint64_t features;  // 0x1
  size_t more[3];
  uint64_t mask;
  int is_shared;
  size_t ends, near_ends;
  const char* name;
} rn_ucx_params_t;
#define RN_UCX_HAS_FEATURES UINT64_C(1)
#define RN_UCX_WAKEUP UINT64_C(0x10)  // features
#define RN_UCX_MESSAGES UINT64_C(0x40)

typedef struct rn_ucx_worker_params_t {
  uint64_t fields;
  int thread_mode;
  unsigned long cpus[1024 / (8 * sizeof(unsigned long))];
  unsigned events;
  void* user_data;
  int event_fd;
  uint64_t flags;
  const char* name;
  size_t alignment;  // 0x80: of messages
  uint64_t client;
} rn_ucx_worker_params_t;
#define RN_UCX_HAS_WORKER_FLAGS UINT64_C(0x20)
#define RN_UCX_IGNORES_LEAKS UINT64_C(1)

// What is told of an end that has failed.
typedef void rn_ucx_failed_fn_t(void* arg, void* ep, rn_ucx_status_t status);
typedef struct rn_ucx_ep_params_t {
  uint64_t fields;
  const void* address;  // 0x1
  int error_mode;       // 0x2
  struct {
    rn_ucx_failed_fn_t* fn;
    void* arg;
  } failed;  // 0x4
  void* user_data;
  unsigned flags;
  struct {
    const void* data;
    unsigned size;
  } socket;
  void* connection;
  const char* name;
  struct {
    const void* data;
    unsigned size;
  } own_socket;
} rn_ucx_ep_params_t;
#define RN_UCX_ENDS_REQUESTS 1          // error_mode: those of a dead peer fail
#define RN_UCX_PEER_FIELDS UINT64_C(7)  // address, error_mode and failed

typedef struct rn_ucx_request_params_t {
  uint32_t fields, flags;
  void* request;
  union {
    void (*sent)(void* request, rn_ucx_status_t status, void* user_data);
    void (*received)(void* request, rn_ucx_status_t status, size_t size, void* user_data);
  } done;
  uint64_t type;
  void* user_data;
  void* reply;
  int memory_type;
  void* info;
  void* memory;
} rn_ucx_request_params_t;
#define RN_UCX_HAS_DONE 2u  // fields
#define RN_UCX_HAS_USER_DATA 4u
#define RN_UCX_HAS_FLAGS 0x10u
#define RN_UCX_NEVER_AT_ONCE 0x10000u  // |done| is always called
#define RN_UCX_RENDEZVOUS 4u           // flags: the receiver fetches the data
#define RN_UCX_FORCE 1u                // of ucp_ep_close_nbx: ends what is under way

// A message that has come: |attributes| say whether |data| is to be fetched.
typedef struct rn_ucx_message_t {
  uint64_t attributes;
  void* from;
} rn_ucx_message_t;
#define RN_UCX_IS_RENDEZVOUS UINT64_C(0x20000)

typedef rn_ucx_status_t rn_ucx_message_fn_t(void* arg, const void* head, size_t head_size,
                                            void* data, size_t size,
                                            const rn_ucx_message_t* message);
typedef struct rn_ucx_handler_t {
  uint64_t fields;  // 0xf: all
  unsigned id;
  uint32_t flags;  // 1: whole messages only
  rn_ucx_message_fn_t* fn;
  void* arg;
} rn_ucx_handler_t;

// X(library, result, name, arguments)
#define RN_UCX_FUNCTIONS(X)                                                                       \
  X(ucp, void, ucp_get_version, (unsigned* major, unsigned* minor, unsigned* release))            \
  X(ucp, rn_ucx_status_t, ucp_init_version,                                                       \
    (unsigned major, unsigned minor, const rn_ucx_params_t* params, const void* config,           \
     void** out))                                                                                 \
  X(ucp, void, ucp_cleanup, (void* context))                                                      \
  X(ucp, rn_ucx_status_t, ucp_config_read, (const char* prefix, const char* file, void** out))    \
  X(ucp, rn_ucx_status_t, ucp_config_modify, (void* config, const char* name, const char* value)) \
  X(ucp, void, ucp_config_release, (void* config))                                                \
  X(ucp, rn_ucx_status_t, ucp_worker_create,                                                      \
    (void* context, const rn_ucx_worker_params_t* params, void** out))                            \
  X(ucp, void, ucp_worker_destroy, (void* worker))                                                \
  X(ucp, rn_ucx_status_t, ucp_worker_get_address, (void* worker, void** out, size_t* out_size))   \
  X(ucp, void, ucp_worker_release_address, (void* worker, void* address))                         \
  X(ucp, rn_ucx_status_t, ucp_worker_get_efd, (void* worker, int* out))                           \
  X(ucp, rn_ucx_status_t, ucp_worker_arm, (void* worker))                                         \
  X(ucp, rn_ucx_status_t, ucp_worker_signal, (void* worker))                                      \
  X(ucp, unsigned, ucp_worker_progress, (void* worker))                                           \
  X(ucp, rn_ucx_status_t, ucp_worker_set_am_recv_handler,                                         \
    (void* worker, const rn_ucx_handler_t* handler))                                              \
  X(ucp, rn_ucx_status_t, ucp_ep_create,                                                          \
    (void* worker, const rn_ucx_ep_params_t* params, void** out))                                 \
  X(ucp, rn_ucx_request_t, ucp_ep_close_nbx, (void* ep, const rn_ucx_request_params_t* params))   \
  X(ucp, rn_ucx_request_t, ucp_ep_flush_nbx, (void* ep, const rn_ucx_request_params_t* params))   \
  X(ucp, rn_ucx_request_t, ucp_am_send_nbx,                                                       \
    (void* ep, unsigned id, const void* head, size_t head_size, const void* data, size_t size,    \
     const rn_ucx_request_params_t* params))                                                      \
  X(ucp, rn_ucx_request_t, ucp_am_recv_data_nbx,                                                  \
    (void* worker, void* message, void* to, size_t size, const rn_ucx_request_params_t* params))  \
  X(ucp, void, ucp_request_free, (void* request))                                                 \
  X(ucs, const char*, ucs_status_string, (rn_ucx_status_t status))

typedef struct rn_ucx_t {
#define RN_UCX_FUNCTION(library, result, name, arguments) result(*name) arguments;
  RN_UCX_FUNCTIONS(RN_UCX_FUNCTION)
#undef RN_UCX_FUNCTION
} rn_ucx_t;

// UNIMPLEMENTED if UCX is not installed. Its messages go to stderr from then on.
RN_MUST_USE rn_status_t rn_ucx_open(rn_ucx_t* out);

#endif  // RUNNEL_DIST_RPC_UCX_H_
