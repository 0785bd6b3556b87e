// Keys and values that the tasks of a cluster share. The owner's lock guards it.
#ifndef RUNNEL_DIST_COORDINATION_VALUES_H_
#define RUNNEL_DIST_COORDINATION_VALUES_H_

#include "base/map.h"
#include "base/str.h"

typedef struct rn_values_t {
  rn_allocator_t allocator;
  rn_map_t map;
  size_t bytes;  // of all keys and values
} rn_values_t;

void rn_values_init(rn_values_t* values, rn_allocator_t allocator);
void rn_values_clear(rn_values_t* values);

// |key| as it is stored: without slashes at its ends, and with single ones between its parts.
RN_MUST_USE rn_status_t rn_values_key(rn_str_t key, rn_strbuf_t* out);
// ALREADY_EXISTS if it has a value that may not be replaced.
RN_MUST_USE rn_status_t rn_values_put(rn_values_t* values, rn_str_t key, rn_str_t value,
                                      bool may_replace);
// False if there is none. Borrowed.
bool rn_values_get(const rn_values_t* values, rn_str_t key, rn_str_t* out);
// Removes |key|, and all below it if it |is_directory|.
void rn_values_remove(rn_values_t* values, rn_str_t key, bool is_directory);
// Calls |visit| for each entry below |directory|.
void rn_values_list(const rn_values_t* values, rn_str_t directory,
                    void (*visit)(void* self, rn_str_t key, rn_str_t value), void* self);

#endif  // RUNNEL_DIST_COORDINATION_VALUES_H_
