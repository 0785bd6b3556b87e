// Automatic placement of a session: how a ConfigProto asks for it, and where costs come from.
//
// A ConfigProto asks for it by a graph optimizer of the name "runnel_placement" in
// graph_options.rewrite_options.custom_optimizers; doc/placement.md lists its parameters.
#ifndef RUNNEL_SESSION_PLACEMENT_H_
#define RUNNEL_SESSION_PLACEMENT_H_

#include "place/auto/wishes.h"

// The name of the optimizer.
#define RN_PLACEMENT_OPTIMIZER "runnel_placement"

// |*out| is NULL if |config|, the bytes of a ConfigProto, does not ask for a placement. Reads the
// files of costs that it names. INVALID_ARGUMENT for an unknown parameter.
RN_MUST_USE rn_status_t rn_placement_create(rn_str_t config, const rn_env_t* env,
                                            rn_allocator_t allocator, rn_auto_place_t** out);

// Adds a file: one of costs, or a RunMetadata, which is learned from when the step is known. The
// status names the file.
RN_MUST_USE rn_status_t rn_placement_add_file(rn_auto_place_t* automatic, const rn_env_t* env,
                                              const char* path);
// Adds the trace of a step: the bytes of a RunMetadata.
RN_MUST_USE rn_status_t rn_placement_add_trace(rn_auto_place_t* automatic, rn_str_t run_metadata);

#endif  // RUNNEL_SESSION_PLACEMENT_H_
