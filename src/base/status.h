// Status: the result of everything that can fail.
//
// A status is one pointer. RN_OK (NULL) means success and costs nothing; anything else owns a code,
// a message and payloads and must be returned, annotated or freed exactly once. Without memory for
// a status, a static RESOURCE_EXHAUSTED status takes its place, so making a status never fails.
#ifndef RUNNEL_BASE_STATUS_H_
#define RUNNEL_BASE_STATUS_H_

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#define RN_MUST_USE __attribute__((warn_unused_result))
#define RN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

// Codes as in TensorFlow (and gRPC): the numbers are part of every protocol that we speak.
typedef enum rn_code_t {
  RN_CODE_OK = 0,
  RN_CODE_CANCELLED = 1,
  RN_CODE_UNKNOWN = 2,
  RN_CODE_INVALID_ARGUMENT = 3,
  RN_CODE_DEADLINE_EXCEEDED = 4,
  RN_CODE_NOT_FOUND = 5,
  RN_CODE_ALREADY_EXISTS = 6,
  RN_CODE_PERMISSION_DENIED = 7,
  RN_CODE_RESOURCE_EXHAUSTED = 8,
  RN_CODE_FAILED_PRECONDITION = 9,
  RN_CODE_ABORTED = 10,
  RN_CODE_OUT_OF_RANGE = 11,
  RN_CODE_UNIMPLEMENTED = 12,
  RN_CODE_INTERNAL = 13,
  RN_CODE_UNAVAILABLE = 14,
  RN_CODE_DATA_LOSS = 15,
  RN_CODE_UNAUTHENTICATED = 16,
} rn_code_t;

typedef struct rn_status_rep_t* rn_status_t;

#define RN_OK ((rn_status_t)NULL)

static inline bool rn_ok(rn_status_t status) { return __builtin_expect(status == RN_OK, 1); }

// Makes a status with a printf-style message. |code| must not be OK.
RN_MUST_USE rn_status_t rn_status_make(rn_code_t code, const char* format, ...) RN_PRINTF(2, 3);
RN_MUST_USE rn_status_t rn_status_make_v(rn_code_t code, const char* format, va_list args);
// Makes a status whose message is the |length| bytes at |message|, which may hold any bytes.
RN_MUST_USE rn_status_t rn_status_make_n(rn_code_t code, const char* message, size_t length);

#define rn_cancelled(...) rn_status_make(RN_CODE_CANCELLED, __VA_ARGS__)
#define rn_invalid_argument(...) rn_status_make(RN_CODE_INVALID_ARGUMENT, __VA_ARGS__)
#define rn_deadline_exceeded(...) rn_status_make(RN_CODE_DEADLINE_EXCEEDED, __VA_ARGS__)
#define rn_not_found(...) rn_status_make(RN_CODE_NOT_FOUND, __VA_ARGS__)
#define rn_already_exists(...) rn_status_make(RN_CODE_ALREADY_EXISTS, __VA_ARGS__)
#define rn_resource_exhausted(...) rn_status_make(RN_CODE_RESOURCE_EXHAUSTED, __VA_ARGS__)
#define rn_failed_precondition(...) rn_status_make(RN_CODE_FAILED_PRECONDITION, __VA_ARGS__)
#define rn_aborted(...) rn_status_make(RN_CODE_ABORTED, __VA_ARGS__)
#define rn_out_of_range(...) rn_status_make(RN_CODE_OUT_OF_RANGE, __VA_ARGS__)
#define rn_unimplemented(...) rn_status_make(RN_CODE_UNIMPLEMENTED, __VA_ARGS__)
#define rn_internal(...) rn_status_make(RN_CODE_INTERNAL, __VA_ARGS__)
#define rn_unavailable(...) rn_status_make(RN_CODE_UNAVAILABLE, __VA_ARGS__)
#define rn_data_loss(...) rn_status_make(RN_CODE_DATA_LOSS, __VA_ARGS__)

// The static status for "no memory"; needs no freeing, may be freed.
RN_MUST_USE rn_status_t rn_out_of_memory(void);

// Frees |status|; RN_OK is fine.
void rn_status_free(rn_status_t status);

// A copy that the caller owns.
RN_MUST_USE rn_status_t rn_status_copy(rn_status_t status);

// Keeps the first error: returns |first| if it is an error (freeing |second|), else |second|.
RN_MUST_USE rn_status_t rn_status_join(rn_status_t first, rn_status_t second);

// Appends to the message of an error; RN_OK stays RN_OK. Takes |status|, returns its successor.
RN_MUST_USE rn_status_t rn_status_annotate(rn_status_t status, const char* format, ...)
    RN_PRINTF(2, 3);

rn_code_t rn_status_code(rn_status_t status);
// NUL-terminated, "" for RN_OK; lives as long as |status|.
const char* rn_status_message(rn_status_t status);

// Attaches |value| under |key|, replacing an earlier one. Does nothing on RN_OK or when memory is
// short.
void rn_status_set_payload(rn_status_t status, const char* key, const char* value);
// Calls |visit| once for each payload.
void rn_status_each_payload(rn_status_t status,
                            void (*visit)(const char* key, const char* value, void* arg),
                            void* arg);

// "INVALID_ARGUMENT" and so on; "UNKNOWN" for a number that is no code.
const char* rn_code_name(rn_code_t code);

#define RN_RETURN_IF_ERROR(expression)         \
  do {                                         \
    rn_status_t rn_status_ = (expression);     \
    if (!rn_ok(rn_status_)) return rn_status_; \
  } while (0)

#endif  // RUNNEL_BASE_STATUS_H_
