// What the files of TensorFlow Serving's REST share.
#ifndef RUNNEL_SERVE_FRONT_REST_H_
#define RUNNEL_SERVE_FRONT_REST_H_

#include "serve/front/front.h"

// What a path asks for.
typedef enum rn_rest_verb_t {
  RN_REST_STATUS,    // GET /v1/models/NAME[V]
  RN_REST_METADATA,  // GET /v1/models/NAME[V]/metadata
  RN_REST_PREDICT,   // POST /v1/models/NAME[V]:predict
  RN_REST_CLASSIFY,
  RN_REST_REGRESS,
} rn_rest_verb_t;

typedef struct rn_rest_path_t {
  rn_rest_verb_t verb;
  rn_model_spec_t spec;  // names are decoded, in the arena
} rn_rest_path_t;

// Reads a path, in which V is /versions/NUMBER or /labels/LABEL. Letters match in either case.
// INVALID_ARGUMENT for all others.
RN_MUST_USE rn_status_t rn_rest_path_read(rn_str_t method, rn_str_t path, rn_arena_t* arena,
                                          rn_rest_path_t* out);

// The reply to a GET: states or signatures.
RN_MUST_USE rn_status_t rn_rest_write_info(const rn_front_t* front, const rn_rest_path_t* path,
                                           rn_arena_t* arena, rn_strbuf_t* out);

#endif  // RUNNEL_SERVE_FRONT_REST_H_
