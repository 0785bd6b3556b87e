// ApiDef maps: how ops are presented to users, laid over their definitions piece by piece.
//
// Any thread may call. Once a map has been read it cannot be written any more, as in stock.
#ifndef RUNNEL_FRAMEWORK_API_DEF_H_
#define RUNNEL_FRAMEWORK_API_DEF_H_

#include "base/alloc.h"
#include "base/str.h"

typedef struct rn_api_def_map_t rn_api_def_map_t;

// |op_list| is a serialised OpList. The caller owns |*out|.
RN_MUST_USE rn_status_t rn_api_def_map_create(rn_str_t op_list, rn_allocator_t allocator,
                                              rn_api_def_map_t** out);
void rn_api_def_map_destroy(rn_api_def_map_t* map);  // NULL is fine

// Lays |text|, ApiDefs in text format, over the map; ops that the map does not have are skipped.
// FAILED_PRECONDITION for arguments and attributes that the op does not have, and once the map has
// been read.
RN_MUST_USE rn_status_t rn_api_def_map_put(rn_api_def_map_t* map, rn_str_t text);
// Appends the serialised ApiDef of |op|, whose texts use the names that users see. |*out_has_op| is
// false, and nothing is appended, if the map does not have it.
RN_MUST_USE rn_status_t rn_api_def_map_get(rn_api_def_map_t* map, rn_str_t op, rn_strbuf_t* out,
                                           bool* out_has_op);

#endif  // RUNNEL_FRAMEWORK_API_DEF_H_
