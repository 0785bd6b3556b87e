// How a container is run or reached: container.pbtxt of a version, checked, with its defaults.
#ifndef RUNNEL_SERVE_MODEL_CONTAINER_CONFIG_H_
#define RUNNEL_SERVE_MODEL_CONTAINER_CONFIG_H_

#include "base/arena.h"
#include "base/env.h"

#define RN_CONTAINER_FILE "container.pbtxt"

// One model version's containers. Everything is in |arena|; texts are NUL-terminated.
typedef struct rn_container_config_t {
  rn_arena_t arena;
  rn_str_t model;
  int64_t number;
  const char* folder;
  const char** argv;  // ends with NULL; NULL: the server connects to |address|
  const char** envp;  // of the process; ends with NULL
  size_t env_count;
  const char* address;                // NULL: the server starts the process
  int replicas;                       // >= 1
  int64_t start_ns, run_ns, stop_ns;  // how long it may take to start, to run a batch, to stop
  int64_t beat_ns, beat_timeout_ns;   // between beats; silence after which it counts as hung
  int64_t restart_min_ns, restart_max_ns;
  int64_t memory_bytes;         // 0: no limit
  bool copies;                  // no shared memory
  bool isolates;                // a SavedModel, by this command
  const char *cert, *key, *ca;  // of TLS; NULL: none
  rn_str_t token;               // "": none
} rn_container_config_t;

// Whether |folder| is that of a container.
bool rn_container_is_in(const rn_env_t* env, const char* folder);

// Reads container.pbtxt of |folder|. If |program| is not NULL, a folder without the file is served
// by `|program| container .`, and so is one whose file says `isolate: true`. Initializes
// |out|; rn_container_config_clear frees it, also after a failure. INVALID_ARGUMENT names the file.
RN_MUST_USE rn_status_t rn_container_config_read(const rn_env_t* env, rn_str_t model,
                                                 int64_t number, const char* folder,
                                                 const char* program, rn_allocator_t allocator,
                                                 rn_container_config_t* out);
void rn_container_config_clear(rn_container_config_t* config);

// How long to wait before start number |failures| + 1 after as many failures in a row: doubles from
// the least to the most, then less a random part of up to a half.
int64_t rn_container_back_off(const rn_container_config_t* config, int failures, uint64_t random);

#endif  // RUNNEL_SERVE_MODEL_CONTAINER_CONFIG_H_
