// Streams of the toy device: queues of work, each run by a thread of its own.
#ifndef RUNNEL_TESTS_PLUGINS_TOY_STREAM_H_
#define RUNNEL_TESTS_PLUGINS_TOY_STREAM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct toy_stream_t toy_stream_t;
typedef struct toy_event_t toy_event_t;

// One piece of work. |args| are copied; device addresses among them are the host's, which only
// toy_view makes readable.
#define TOY_ARGS 8
typedef struct toy_args_t {
  uintptr_t at[TOY_ARGS];
} toy_args_t;
typedef void (*toy_work_t)(const toy_args_t* args);

toy_stream_t* toy_stream_create(void);
void toy_stream_destroy(toy_stream_t* stream);  // runs what is queued first
void toy_stream_issue(toy_stream_t* stream, toy_work_t work, const toy_args_t* args);
void toy_stream_wait(toy_stream_t* stream);

toy_event_t* toy_event_create(void);
void toy_event_destroy(toy_event_t* event);
void toy_event_record(toy_event_t* event, toy_stream_t* stream);
bool toy_event_is_done(toy_event_t* event);
void toy_event_wait(toy_event_t* event);                           // by the host
void toy_event_wait_on(toy_event_t* event, toy_stream_t* stream);  // by a stream

// The device's memory. The addresses that the host gets cannot be read or written: touching one
// ends the process. The device's own work sees the same bytes through toy_view.
uintptr_t toy_memory_alloc(uint64_t size);  // 0 if there is none
void toy_memory_free(uintptr_t address);
void* toy_view(uintptr_t address);
uint64_t toy_memory_size(void);
uint64_t toy_memory_in_use(void);

#endif  // RUNNEL_TESTS_PLUGINS_TOY_STREAM_H_
