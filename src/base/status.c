// Statuses: one block each, code and message together, payloads in a list behind it.
#include "base/status.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

typedef struct rn_payload_t {
  struct rn_payload_t* next;  // Owned
  size_t key_size;            // with its NUL
  size_t value_size;          // with its NUL
  char text[];                // key, then value
} rn_payload_t;

struct rn_status_rep_t {
  rn_allocator_t allocator;  // the default one may be another by the time this is freed
  rn_payload_t* payloads;    // Owned; in the order they were set
  size_t length;             // of the message, which may hold NULs of its own
  rn_code_t code;
  const char* message;  // |text|, or static storage
  char text[];
};

// Read-only, never freed or changed. It has no allocator, which tells it apart from the others: a
// part of the library (device/part.h) has one of its own, at another address.
static const struct rn_status_rep_t out_of_memory = {
    .code = RN_CODE_RESOURCE_EXHAUSTED, .length = 13, .message = "Out of memory"};

rn_status_t rn_out_of_memory(void) { return (rn_status_t)(uintptr_t)&out_of_memory; }

static bool is_static(rn_status_t status) { return !status->allocator.fn; }

static size_t rep_size(size_t length) { return sizeof(struct rn_status_rep_t) + length + 1; }

// The message is the two parts, concatenated.
static rn_status_t make_rep(rn_code_t code, const char* first, size_t first_length,
                            const char* second, size_t second_length) {
  size_t length, size;
  if (!rn_add_ok(first_length, second_length, &length) ||
      !rn_add_ok(length, sizeof(struct rn_status_rep_t) + 1, &size)) {
    return rn_out_of_memory();
  }
  rn_allocator_t allocator = rn_allocator_default();
  struct rn_status_rep_t* rep = allocator.fn(allocator.self, NULL, 0, size);
  if (!rep) return rn_out_of_memory();
  *rep = (struct rn_status_rep_t){
      .allocator = allocator,
      .length = length,
      .code = code == RN_CODE_OK ? RN_CODE_UNKNOWN : code,
      .message = rep->text,
  };
  if (first_length) memcpy(rep->text, first, first_length);
  if (second_length) memcpy(rep->text + first_length, second, second_length);
  rep->text[length] = '\0';
  return rep;
}

// |prefix|, then the formatted text. If formatting fails, the message is the format itself.
static rn_status_t make_formatted(rn_code_t code, const char* prefix, size_t prefix_length,
                                  const char* format, va_list args) {
  char buffer[512];
  va_list again;
  va_copy(again, args);
  int length = vsnprintf(buffer, sizeof buffer, format, args);
  rn_status_t status;
  if (length < 0) {
    status = make_rep(code, prefix, prefix_length, format, strlen(format));
  } else if ((size_t)length < sizeof buffer) {
    status = make_rep(code, prefix, prefix_length, buffer, (size_t)length);
  } else {
    rn_allocator_t allocator = rn_allocator_default();
    size_t size = (size_t)length + 1;
    char* text = allocator.fn(allocator.self, NULL, 0, size);
    if (text) {
      vsnprintf(text, size, format, again);
      status = make_rep(code, prefix, prefix_length, text, (size_t)length);
      rn_free(allocator, text, size);
    } else {
      status = rn_out_of_memory();
    }
  }
  va_end(again);
  return status;
}

rn_status_t rn_status_make(rn_code_t code, const char* format, ...) {
  va_list args;
  va_start(args, format);
  rn_status_t status = make_formatted(code, NULL, 0, format, args);
  va_end(args);
  return status;
}

rn_status_t rn_status_make_v(rn_code_t code, const char* format, va_list args) {
  return make_formatted(code, NULL, 0, format, args);
}

rn_status_t rn_status_make_n(rn_code_t code, const char* message, size_t length) {
  return make_rep(code, message, message ? length : 0, NULL, 0);
}

static void free_payload(rn_allocator_t allocator, rn_payload_t* payload) {
  rn_free(allocator, payload, sizeof *payload + payload->key_size + payload->value_size);
}

void rn_status_free(rn_status_t status) {
  if (rn_ok(status) || is_static(status)) return;
  rn_allocator_t allocator = status->allocator;
  rn_payload_t* payload = status->payloads;
  while (payload) {
    rn_payload_t* next = payload->next;
    free_payload(allocator, payload);
    payload = next;
  }
  rn_free(allocator, status, rep_size(status->length));
}

rn_status_t rn_status_copy(rn_status_t status) {
  if (rn_ok(status) || is_static(status)) return status;
  rn_status_t copy = make_rep(status->code, status->message, status->length, NULL, 0);
  for (const rn_payload_t* payload = status->payloads; payload; payload = payload->next) {
    rn_status_set_payload(copy, payload->text, payload->text + payload->key_size);
  }
  return copy;
}

rn_status_t rn_status_join(rn_status_t first, rn_status_t second) {
  if (rn_ok(first)) return second;
  rn_status_free(second);
  return first;
}

rn_status_t rn_status_annotate(rn_status_t status, const char* format, ...) {
  if (rn_ok(status)) return status;
  va_list args;
  va_start(args, format);
  rn_status_t longer = make_formatted(status->code, status->message, status->length, format, args);
  va_end(args);
  if (is_static(longer)) return status;  // without memory, keep the error without the note
  if (!is_static(status)) {
    longer->payloads = status->payloads;
    status->payloads = NULL;
    // Payloads are freed by the code that made them.
    if (longer->payloads && (longer->allocator.fn != status->allocator.fn ||
                             longer->allocator.self != status->allocator.self)) {
      status->payloads = longer->payloads;
      longer->payloads = NULL;
      for (const rn_payload_t* p = status->payloads; p; p = p->next) {
        rn_status_set_payload(longer, p->text, p->text + p->key_size);
      }
    }
  }
  rn_status_free(status);
  return longer;
}

rn_code_t rn_status_code(rn_status_t status) { return rn_ok(status) ? RN_CODE_OK : status->code; }

const char* rn_status_message(rn_status_t status) { return rn_ok(status) ? "" : status->message; }

void rn_status_set_payload(rn_status_t status, const char* key, const char* value) {
  if (rn_ok(status) || is_static(status)) return;
  size_t key_size = strlen(key) + 1, value_size = strlen(value) + 1;
  rn_payload_t* payload = status->allocator.fn(status->allocator.self, NULL, 0,
                                               sizeof *payload + key_size + value_size);
  if (!payload) return;
  payload->key_size = key_size;
  payload->value_size = value_size;
  memcpy(payload->text, key, key_size);
  memcpy(payload->text + key_size, value, value_size);
  rn_payload_t** link = &status->payloads;
  while (*link && strcmp((*link)->text, key) != 0) link = &(*link)->next;
  rn_payload_t* replaced = *link;
  payload->next = replaced ? replaced->next : NULL;
  *link = payload;
  if (replaced) free_payload(status->allocator, replaced);
}

void rn_status_each_payload(rn_status_t status,
                            void (*visit)(const char* key, const char* value, void* arg),
                            void* arg) {
  if (rn_ok(status)) return;
  for (const rn_payload_t* payload = status->payloads; payload; payload = payload->next) {
    visit(payload->text, payload->text + payload->key_size, arg);
  }
}

const char* rn_code_name(rn_code_t code) {
  static const char* const names[] = {
      "OK",
      "CANCELLED",
      "UNKNOWN",
      "INVALID_ARGUMENT",
      "DEADLINE_EXCEEDED",
      "NOT_FOUND",
      "ALREADY_EXISTS",
      "PERMISSION_DENIED",
      "RESOURCE_EXHAUSTED",
      "FAILED_PRECONDITION",
      "ABORTED",
      "OUT_OF_RANGE",
      "UNIMPLEMENTED",
      "INTERNAL",
      "UNAVAILABLE",
      "DATA_LOSS",
      "UNAUTHENTICATED",
  };
  return (size_t)code < sizeof names / sizeof *names ? names[code] : "UNKNOWN";
}
