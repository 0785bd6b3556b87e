// Readers: read files named by a queue as a sequence of records with keys.
//
// A reader works on one item at a time. Calls form one line, served strictly in order. A call that
// needs the next item dequeues it without holding a thread, and later calls wait for it.
#ifndef RUNNEL_KERNELS_CPU_IO_READER_H_
#define RUNNEL_KERNELS_CPU_IO_READER_H_

#include "io/record.h"
#include "kernels/cpu/data_flow/queue.h"

#define RN_READER_TYPE "Reader"

// How a kind of reader splits an item into records. Called with the reader's lock held.
typedef struct rn_reader_t rn_reader_t;
typedef struct rn_reader_kind_t {
  const char* name;  // "TextLineReader", for messages
  bool has_state;    // the state between items can be saved
  // Starts on the item reader->work.
  rn_status_t (*open)(rn_reader_t* reader);
  // Reads the next record and appends its key to |key|. Sets |*out_end| instead when the item is
  // finished. The view is valid until the next call.
  rn_status_t (*next)(rn_reader_t* reader, rn_strbuf_t* key, rn_str_t* out_value, bool* out_end);
} rn_reader_kind_t;

extern const rn_reader_kind_t rn_reader_identity, rn_reader_whole_file, rn_reader_text_line,
    rn_reader_fixed_length, rn_reader_tf_record;

typedef struct rn_reader_options_t {
  rn_compression_t compression;
  int64_t skipped_lines;                // for text lines
  int64_t header, record, footer, hop;  // in bytes, for fixed-length records
} rn_reader_options_t;

struct rn_reader_t {
  rn_resource_t resource;
  rn_allocator_t allocator;
  rn_env_t env;
  const rn_reader_kind_t* kind;
  rn_reader_options_t options;
  rn_strbuf_t node;  // name of the node that created it, for messages
  rn_mutex_t mutex;  // guards what follows
  rn_wait_line_t line;
  bool is_serving;   // a thread serves the line, or waits for an item
  rn_strbuf_t work;  // the current item
  int64_t started, finished, produced;
  // For the kind, about the current item:
  rn_input_t* input;
  rn_record_reader_t* records;
  int64_t number;  // index of the next record
  bool is_used;    // the item has given its only record
};

RN_MUST_USE rn_status_t rn_reader_create(rn_allocator_t allocator, const rn_env_t* env,
                                         const rn_reader_kind_t* kind,
                                         const rn_reader_options_t* options, rn_str_t node,
                                         rn_reader_t** out);

// Reads up to |count| records of one item, dequeuing items from |queue| until one gives a record,
// and ends |ctx| with vectors of keys and values, or scalars if |is_single|.
void rn_reader_read(rn_reader_t* reader, rn_kernel_ctx_t* ctx, rn_queue_t* queue, int64_t count,
                    bool is_single);

int64_t rn_reader_produced(rn_reader_t* reader);
int64_t rn_reader_finished(rn_reader_t* reader);
// Drops the current item and restarts counting from 0.
void rn_reader_reset(rn_reader_t* reader);
// Appends the serialized state to |out|, and restores it. UNIMPLEMENTED for kinds without state.
RN_MUST_USE rn_status_t rn_reader_save(rn_reader_t* reader, rn_strbuf_t* out);
RN_MUST_USE rn_status_t rn_reader_restore(rn_reader_t* reader, rn_str_t state);

#endif  // RUNNEL_KERNELS_CPU_IO_READER_H_
