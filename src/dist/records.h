// A description of every call's record, for code that carries calls without knowing which they are.
#ifndef RUNNEL_DIST_RECORDS_H_
#define RUNNEL_DIST_RECORDS_H_

#include "dist/iface.h"

// Room for the record of any call.
typedef union rn_record_t {
  rn_call_t call;
#define RN_RECORD_MEMBER(side, name, ...) rn_##name##_t name;
  RN_WORKER_CALLS(RN_RECORD_MEMBER)
  RN_MASTER_CALLS(RN_RECORD_MEMBER)
#undef RN_RECORD_MEMBER
} rn_record_t;

// What a field holds. The callee's record owns the tensors of the request and of the response.
typedef enum rn_record_field_kind_t {
  RN_FIELD_END,  // after the last field
  // The request. Fields that are not listed are plain values.
  RN_FIELD_STR,
  RN_FIELD_STRS,     // const rn_str_t* and a count
  RN_FIELD_INTS,     // const int64_t* and a count
  RN_FIELD_NAMED,    // const rn_named_tensor_t* and a count
  RN_FIELD_TENSORS,  // const rn_tensor_t* and a count
  RN_FIELD_LOCAL,    // a pointer that is valid in the caller's process only
  // The response.
  RN_FIELD_PLAIN,     // |more| bytes
  RN_FIELD_BUFFER,    // rn_strbuf_t
  RN_FIELD_VALUE,     // rn_tensor_t
  RN_FIELD_VALUES,    // rn_tensor_t* and a count, which the request has set
  RN_FIELD_RETURNED,  // rn_tensor_t* from the callee's allocator and a count
  RN_FIELD_DEVICES,   // rn_device_info_t* and a count, in the arena of the next field
  RN_FIELD_ARENA,
} rn_record_field_kind_t;

typedef struct rn_record_field_t {
  uint16_t kind;  // rn_record_field_kind_t
  uint16_t at;    // offset in the record
  uint16_t more;  // offset of the count, or a size
} rn_record_field_t;

// The two services of a task.
typedef struct rn_callees_t {
  rn_worker_t* worker;
  rn_master_t* master;
} rn_callees_t;

typedef struct rn_record_kind_t {
  const char* name;
  size_t size;                                                // of the record
  const rn_record_field_t* fields;                            // ends with RN_FIELD_END
  void (*call)(const rn_callees_t* to, rn_record_t* record);  // makes the call
} rn_record_kind_t;

#define RN_RECORD_KIND(side, name, ...) extern const rn_record_kind_t rn_record_##name;
RN_WORKER_CALLS(RN_RECORD_KIND)
RN_MASTER_CALLS(RN_RECORD_KIND)
#undef RN_RECORD_KIND

static inline void* rn_record_at(const void* record, size_t offset) {
  return (char*)record + offset;
}

// Prepares the callee's |record|, which is zeroed, for a response.
void rn_record_open(const rn_record_kind_t* kind, rn_record_t* record, rn_allocator_t allocator);
// Frees what the callee's |record| owns.
void rn_record_clear(const rn_record_kind_t* kind, rn_record_t* record, rn_allocator_t allocator);

#endif  // RUNNEL_DIST_RECORDS_H_
