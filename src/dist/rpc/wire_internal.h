// What wire.c and wire_thread.c share.
#ifndef RUNNEL_DIST_RPC_WIRE_INTERNAL_H_
#define RUNNEL_DIST_RPC_WIRE_INTERNAL_H_

#include "base/map.h"
#include "base/sync.h"
#include "dist/rpc/ucx.h"
#include "dist/rpc/wire.h"

#define RN_WIRE_MAX_ENDS 4096

// What precedes an address of UCX, which aborts the process over one that is not whole.
typedef struct wire_seal_t {
  char magic[4];          // "RNUX"
  uint16_t major, minor;  // of UCX: other versions may write addresses in another way
  uint32_t crc;           // of the address
} wire_seal_t;

// One end of a line.
typedef struct wire_end_t {
  struct wire_end_t* next;
  rn_loan_name_t name;
  rn_wire_t* wire;
  bool is_ours;     // dialed here
  bool is_over;     // failed, or hung up
  void* ep;         // of UCX and the thread; NULL: not opened yet
  bool was_opened;  // of the thread, like what follows
  bool can_fail;    // UCX notices if the peer dies, and ends requests on demand
  int holds;        // of the list, and of requests that UCX has
  // UCX reads an address without knowing its size: what follows it is 0.
  char address[RN_WIRE_MAX_ADDRESS + 64];  // without its seal
} wire_end_t;

// A value that UCX sends. It outlives its put, which ends without UCX if the line does.
typedef struct wire_sending_t {
  struct wire_sending_t* next;
  rn_wire_t* wire;
  rn_wire_put_t* put;  // of the thread; NULL: it has ended
  rn_loan_name_t line;
  rn_buffer_t* buffer;  // Retained
  const void* data;
  size_t size;
  int64_t deadline_ns;  // under the mutex
  size_t head_size;
  uint64_t head[2 + RN_WIRE_MAX_RANK];
} wire_sending_t;

// Memory that UCX fills. It outlives its take if that is settled before.
typedef struct wire_landing_t {
  struct wire_landing_t* next;
  rn_wire_t* wire;
  rn_wire_take_t* take;  // under the mutex; NULL: nobody waits any more
  rn_tensor_t value;
} wire_landing_t;

struct rn_wire_t {
  rn_wire_options_t options;
  rn_ucx_t ucx;
  void* context;
  int event_fd;
  struct {
    char* items;
    size_t count, capacity;
  } address;  // with its seal
  wire_seal_t seal;
  pthread_t thread;
  bool has_thread;
  struct wire_exit_t* exit;  // see wire.c; NULL: memory was short
  // Of the thread.
  wire_landing_t* landings;
  wire_sending_t* started;
  int flushing;      // ends
  rn_mutex_t mutex;  // guards what follows, and the ends' names and |is_over|
  rn_cond_t changed;
  void* worker;  // of UCX; the thread sets it, and alone uses it, except for waking it
  wire_end_t* ends;
  int end_count;
  wire_sending_t *puts, **put_end;  // not started yet
  size_t bytes;                     // of all puts
  rn_map_t takes;                   // number -> rn_wire_take_t*
  int awaited;                      // of them
  bool has_news;                    // in the list of ends, or in |puts|
  bool is_ready, is_stopped;
  rn_status_t status;  // of the start
};

void* rn_wire_serve(void* arg);  // the thread

// On the thread (wire_takes.c). A handler of messages:
rn_ucx_message_fn_t rn_wire_on_value;
// UCX has filled |landing| with |size| bytes, or never will. Frees it.
void rn_wire_landed(wire_landing_t* landing, rn_ucx_status_t result, size_t size);
// Ends the takes that are awaited on |line|, or, if that is NULL, until before |limit_ns|.
void rn_wire_fail_takes(rn_wire_t* wire, const rn_loan_name_t* line, int64_t limit_ns,
                        const char* why);
// UNAVAILABLE, unless |status| is that of a success.
RN_MUST_USE rn_status_t rn_wire_check(const rn_wire_t* wire, const char* what,
                                      rn_ucx_status_t status);

// Under the mutex, or of no thread (wire.c).
wire_end_t* rn_wire_find_locked(rn_wire_t* wire, rn_loan_name_t name);
RN_MUST_USE rn_status_t rn_wire_add_end_locked(rn_wire_t* wire, rn_loan_name_t name,
                                               rn_str_t address, bool is_ours);
void rn_wire_free_sending(wire_sending_t* sending);
rn_str_t rn_wire_take_key(const uint64_t* number);

#endif  // RUNNEL_DIST_RPC_WIRE_INTERNAL_H_
