// Features of Example and SequenceExample messages, parsed directly from their bytes.
//
// Example { Features features = 1 }; Features { map<string, Feature> feature = 1 }; Feature {
// BytesList = 1 | FloatList = 2 | Int64List = 3 }, each { repeated value = 1 }. SequenceExample {
// Features context = 1; FeatureLists feature_lists = 2 }; FeatureLists { map<string, FeatureList> =
// 1 }; FeatureList { repeated Feature feature = 1 }.
#ifndef RUNNEL_KERNELS_CPU_PARSING_EXAMPLE_H_
#define RUNNEL_KERNELS_CPU_PARSING_EXAMPLE_H_

#include "framework/kernel.h"
#include "wire/scan.h"

// A list of values; the bytes are borrowed from the message.
typedef struct rn_feature_t {
  rn_str_t list;
  int64_t count;     // number of values, once counted
  int64_t start;     // index of the first value in the column
  rn_dtype_t dtype;  // float, int64 or string; RN_INVALID if absent
} rn_feature_t;

// Finds the list in a serialized Feature; a Feature without a kind leaves |out| unchanged. False if
// the bytes are not a valid message.
bool rn_feature_read(rn_str_t bytes, rn_feature_t* out);
// Counts the values, packed or not; false if the list is malformed.
bool rn_feature_count(rn_feature_t* feature);
// Writes the values, which must have been counted, to |out|: float, int64_t or initialized
// rn_tstring_t. False if out of memory.
bool rn_feature_values(const rn_feature_t* feature, void* out);
// "float_list" etc., or "float" etc. with |is_short|.
const char* rn_feature_kind(rn_dtype_t dtype, bool is_short);

// Iterates over the entries of a map<string, message> in field |field| of a message; the field may
// occur several times.
typedef struct rn_entry_scan_t {
  rn_pb_scan_t message, map;
  uint32_t field;
  bool is_bad;
} rn_entry_scan_t;
static inline rn_entry_scan_t rn_entry_scan(rn_str_t message, uint32_t field) {
  return (rn_entry_scan_t){
      .message = rn_pb_scan(message), .map = rn_pb_scan(RN_STR("")), .field = field};
}
// False at the end; sets is_bad if the bytes are not a valid message.
bool rn_entry_next(rn_entry_scan_t* scan, rn_str_t* out_key, rn_str_t* out_value);

// Lookup of keys by name. Messages of one kind mostly have their keys in the same order, so callers
// pass the index that the key at the same position of the previous message had.
typedef struct rn_key_set_t {
  int32_t count;
  const rn_str_t* keys;  // Borrowed
  int32_t* table;        // from an arena; index + 1, 0 if empty
  size_t mask;
} rn_key_set_t;
RN_MUST_USE rn_status_t rn_key_set_init(rn_key_set_t* set, rn_arena_t* arena, const rn_str_t* keys,
                                        int32_t count);
int32_t rn_key_set_search(const rn_key_set_t* set, rn_str_t key);  // -1 if not found
static inline int32_t rn_key_set_find(const rn_key_set_t* set, rn_str_t key, int32_t guess) {
  if (guess >= 0 && guess < set->count && rn_str_eq(set->keys[guess], key)) return guess;
  return rn_key_set_search(set, key);
}

// For kernels whose state starts with an arena that holds the rest of it.
static inline void rn_example_state_destroy(void* state) {
  rn_arena_t* arena = state;
  if (arena->allocator.fn) rn_arena_clear(arena);
}
#define RN_EXAMPLE_ROW(name, state_type, init_, function)                                        \
  {                                                                                              \
    .op = name, .device = "CPU", .flags = RN_KERNEL_EXPENSIVE, .state_size = sizeof(state_type), \
    .init = init_, .destroy = rn_example_state_destroy, .compute = function                      \
  }

#endif  // RUNNEL_KERNELS_CPU_PARSING_EXAMPLE_H_
