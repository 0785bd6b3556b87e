// Versions on disk: the folders of a model's base path whose names are numbers.
#ifndef RUNNEL_SERVE_MODEL_SOURCE_H_
#define RUNNEL_SERVE_MODEL_SOURCE_H_

#include "base/fs.h"
#include "proto/model_server_config.pb.h"

typedef struct rn_source_version_t {
  int64_t number;
  rn_str_t folder;  // NUL-terminated
} rn_source_version_t;

// The versions that the model's policy wants of those that are there, by descending number, in
// |arena|: the latest |num_versions|, all, or those it lists. Of several folders with the same
// number ("1", "001"), the last in the order of names counts. INVALID_ARGUMENT, in TensorFlow
// Serving's words, if there is no base path.
RN_MUST_USE rn_status_t rn_source_list(const rn_env_t* env,
                                       const rn_pb_serving_ModelConfig_t* model, rn_arena_t* arena,
                                       rn_source_version_t** out, int* out_count);

// A hash of the names, sizes and times of all files in |folder|: another one if a file was added,
// removed or written. A folder that cannot be read has one, too.
uint64_t rn_source_fingerprint(const rn_env_t* env, const char* folder, rn_allocator_t allocator);

#endif  // RUNNEL_SERVE_MODEL_SOURCE_H_
