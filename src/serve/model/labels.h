// Names of the classes that a model tells apart, for clients that ask for an output's largest
// elements: assets.extra/labels/OUTPUT.txt in a version's folder, a line per element of a row.
#ifndef RUNNEL_SERVE_MODEL_LABELS_H_
#define RUNNEL_SERVE_MODEL_LABELS_H_

#include "base/arena.h"
#include "serve/model/backend.h"

#define RN_LABELS_FOLDER "assets.extra/labels"

// Reads the labels of |port|, if there are any, into |arena|.
RN_MUST_USE rn_status_t rn_labels_read(const rn_env_t* env, const char* folder, rn_arena_t* arena,
                                       rn_serve_port_t* port);

#endif  // RUNNEL_SERVE_MODEL_LABELS_H_
