// Event files: the log of a training run, as TensorBoard reads it.
//
// An event file is a TFRecord file of Event messages called
// "events.out.tfevents.<seconds>.<host>.<process>.<nnnn><suffix>"; its first event says
// "brain.Event:2". A folder may hold any number of them, which are one log; the name keeps their
// order. doc/formats.md has the fields.
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
  rn_str_t suffix;    // of the files' names
  int64_t max_queue;  // events that may wait to be written; 0: 10
  int64_t flush_ms;   // how long the oldest of them may wait, as far as a later one notices; 0: two
                      // minutes
  uint64_t max_bytes;  // a file that has more is followed by another; 0: one file for all
} rn_event_options_t;

typedef struct rn_event_writer_t rn_event_writer_t;

// Begins a log in |folder|, which is made if it is not there. |options| may be NULL. The file is
// made with the first event.
RN_MUST_USE rn_status_t rn_event_writer_open(const rn_env_t* env, rn_str_t folder,
                                             const rn_event_options_t* options,
                                             rn_event_writer_t** out);
// Any thread may call the functions below, but for close.

// Makes the file now if there is none: a log without events is seen, too.
RN_MUST_USE rn_status_t rn_event_writer_begin(rn_event_writer_t* writer);
// Adds a serialised Event.
RN_MUST_USE rn_status_t rn_event_writer_add(rn_event_writer_t* writer, rn_str_t event);
// Adds an event of this moment with one field: |number| is RN_EVENT_SUMMARY, RN_EVENT_GRAPH or
// RN_EVENT_RUN_METADATA, |bytes| its serialised content.
RN_MUST_USE rn_status_t rn_event_writer_put(rn_event_writer_t* writer, int64_t step,
                                            uint32_t number, rn_str_t bytes);
// Back when all events are on the disk.
RN_MUST_USE rn_status_t rn_event_writer_flush(rn_event_writer_t* writer);
// Flushes and frees |writer|; NULL is fine.
RN_MUST_USE rn_status_t rn_event_writer_close(rn_event_writer_t* writer);
// Closes the file, without asking the disk, and frees |writer|: for those who come when folders and
// clocks may be gone. NULL is fine.
void rn_event_writer_drop(rn_event_writer_t* writer);

// Reading: what an event holds, as views into its bytes.
typedef struct rn_event_t {
  double wall_time;
  int64_t step;
  uint32_t kind;   // the field number of |bytes|; 0: none of those above
  rn_str_t bytes;  // graph, summary, run metadata, or the version's text
} rn_event_t;

// DATA_LOSS for bytes that are no Event.
RN_MUST_USE rn_status_t rn_event_parse(rn_str_t bytes, rn_event_t* out);

#endif  // RUNNEL_IO_EVENT_FILE_H_
