// ApiDef maps: how ops are presented to users. ApiDefs override parts of the op definitions.
//
// Any thread may call. As in TensorFlow, a map cannot be written once it has been read.
#ifndef RUNNEL_FRAMEWORK_API_DEF_H_
#define RUNNEL_FRAMEWORK_API_DEF_H_

#include "base/alloc.h"
#include "base/str.h"

typedef struct rn_api_def_map_t rn_api_def_map_t;

// |op_list| is a serialised OpList. The caller owns |*out|.
RN_MUST_USE rn_status_t rn_api_def_map_create(rn_str_t op_list, rn_allocator_t allocator,
                                              rn_api_def_map_t** out);
void rn_api_def_map_destroy(rn_api_def_map_t* map);  // NULL is fine

// Merges |text|, ApiDefs in text format, into the map; skips ops that the map does not have.
// FAILED_PRECONDITION for arguments and attributes that the op does not have, and once the map has
// been read.
RN_MUST_USE rn_status_t rn_api_def_map_put(rn_api_def_map_t* map, rn_str_t text);
// Appends the serialised ApiDef of |op|, whose descriptions use the names that users see. If the
// map does not have |op|, sets |*out_has_op| to false and appends nothing.
RN_MUST_USE rn_status_t rn_api_def_map_get(rn_api_def_map_t* map, rn_str_t op, rn_strbuf_t* out,
                                           bool* out_has_op);

#endif  // RUNNEL_FRAMEWORK_API_DEF_H_
