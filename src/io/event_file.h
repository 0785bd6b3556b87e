// Event files: the log of a training run, as TensorBoard reads it.
//
// An event file is a TFRecord file of Event messages called
// "events.out.tfevents.<seconds>.<host>.<process>.<nnnn><suffix>"; its first event holds the
// version "brain.Event:2". A folder may hold any number of them, which form one log; their names
// sort in order. doc/formats.md has the fields.
#ifndef RUNNEL_IO_EVENT_FILE_H_
#define RUNNEL_IO_EVENT_FILE_H_

#include "io/record.h"

// Field numbers of event.proto.
enum {
  RN_EVENT_WALL_TIME = 1,
  RN_EVENT_STEP = 2,
  RN_EVENT_FILE_VERSION = 3,
  RN_EVENT_GRAPH = 4,
  RN_EVENT_SUMMARY = 5,
  RN_EVENT_RUN_METADATA = 8,
  RN_EVENT_SOURCE = 10,
  RN_RUN_METADATA_TAG = 1,
  RN_RUN_METADATA_BYTES = 2,
};

typedef struct rn_event_options_t {
  rn_str_t suffix;     // of the file names
  int64_t max_queue;   // the most events that wait to be written; 0 for 10
  int64_t flush_ms;    // how long the oldest of them may wait, checked when another is added; 0 for
                       // two minutes
  uint64_t max_bytes;  // start a new file after this many bytes; 0 for a single file
} rn_event_options_t;

typedef struct rn_event_writer_t rn_event_writer_t;

// Opens a log in |folder|, which is made if needed. |options| may be NULL. The first event makes
// the file.
RN_MUST_USE rn_status_t rn_event_writer_open(const rn_env_t* env, rn_str_t folder,
                                             const rn_event_options_t* options,
                                             rn_event_writer_t** out);
// Any thread may call the functions below except close and drop.

// Makes the file now, if there is none yet, so that readers see a log without events, too.
RN_MUST_USE rn_status_t rn_event_writer_begin(rn_event_writer_t* writer);
// Adds a serialised Event.
RN_MUST_USE rn_status_t rn_event_writer_add(rn_event_writer_t* writer, rn_str_t event);
// Adds an event with the current time and one field: |number| is RN_EVENT_SUMMARY, RN_EVENT_GRAPH
// or RN_EVENT_RUN_METADATA, |bytes| its serialised content.
RN_MUST_USE rn_status_t rn_event_writer_put(rn_event_writer_t* writer, int64_t step,
                                            uint32_t number, rn_str_t bytes);
// Returns when all events are on disk.
RN_MUST_USE rn_status_t rn_event_writer_flush(rn_event_writer_t* writer);
// Flushes and frees |writer|; NULL is fine.
RN_MUST_USE rn_status_t rn_event_writer_close(rn_event_writer_t* writer);
// Closes the file without syncing and frees |writer|, for callers that run when the environment may
// be gone. NULL is fine.
void rn_event_writer_drop(rn_event_writer_t* writer);

// Reading: the content of an event, as views into its bytes.
typedef struct rn_event_t {
  double wall_time;
  int64_t step;
  uint32_t kind;   // the field number of |bytes|; 0 if none of those above
  rn_str_t bytes;  // graph, summary, run metadata, or the version string
} rn_event_t;

// DATA_LOSS for bytes that are not an Event.
RN_MUST_USE rn_status_t rn_event_parse(rn_str_t bytes, rn_event_t* out);

#endif  // RUNNEL_IO_EVENT_FILE_H_
