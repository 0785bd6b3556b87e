// Tables: sorted keys with values in one file. The index of a V2 checkpoint is a table, and so is a
// whole V1 checkpoint.
//
// The file, numbers little-endian, varints as in protocol buffers:
//
//   data block … , metaindex block (no entries), index block, footer
//   block    entry … , u32 restart … , u32 number of restarts; then a trailer of five bytes:
//            u8 compression (0 none, 1 snappy), u32 masked CRC-32C of the block and that byte
//   entry    varint bytes shared with the key before, varint further bytes of the key,
//            varint bytes of the value; the further bytes; the value
//   restart  where in the block an entry starts that shares nothing: the first and every 16th
//            (in the index block every one)
//   index    one entry a data block: a key not below the block's last and below the next block's
//            first; the value is a handle
//   handle   varint offset, varint size without the trailer
//   footer   48 bytes: handle of the metaindex, handle of the index, zeros up to 40,
//            u64 0xdb4775248b80fb57
//
// A data block is closed once it has 262,144 bytes. The writer's output equals TensorFlow's byte by
// byte; the reader supports both compressions. Limits: a key has at most 1 MiB, a compressed block
// expands at most 64 times, and everything is checked against the size of the file before memory is
// allocated. A malformed file is DATA_LOSS, with its path and the offset.
#ifndef RUNNEL_IO_TABLE_H_
#define RUNNEL_IO_TABLE_H_

#include "base/arena.h"
#include "base/fs.h"
#include "base/str.h"

#define RN_TABLE_MAX_KEY ((size_t)1 << 20)

// Writing. One thread.
typedef struct rn_table_writer_t rn_table_writer_t;

// Writes to |file|, which is borrowed and must be empty; the caller syncs and closes it.
RN_MUST_USE rn_status_t rn_table_writer_create(rn_allocator_t allocator, rn_file_t* file,
                                               rn_table_writer_t** out);
void rn_table_writer_destroy(rn_table_writer_t* writer);  // NULL is fine
// Keys must ascend: INVALID_ARGUMENT if |key| is not greater than the one before. After a failure
// only destroy may be called.
RN_MUST_USE rn_status_t rn_table_writer_add(rn_table_writer_t* writer, rn_str_t key,
                                            rn_str_t value);
// Writes the last blocks, the index and the footer.
RN_MUST_USE rn_status_t rn_table_writer_finish(rn_table_writer_t* writer);

// Reading. A table is immutable and any number of threads may use it; an iterator belongs to one
// thread.
typedef struct rn_table_t rn_table_t;

RN_MUST_USE rn_status_t rn_table_open(const rn_env_t* env, const char* path, rn_table_t** out);
void rn_table_close(rn_table_t* table);  // NULL is fine
uint64_t rn_table_file_size(const rn_table_t* table);
const char* rn_table_path(const rn_table_t* table);

typedef struct rn_table_iter_t {
  const rn_table_t* table;
  bool is_valid;          // the iterator is at an entry
  rn_str_t key, value;    // of that entry; valid until the iterator moves
  uint64_t block_offset;  // of its block in the file
  // Private to the iterator.
  size_t next_block;
  char* block;  // Owned
  size_t block_capacity, entries_end, next;
  rn_strbuf_t key_buffer;
} rn_table_iter_t;

// Initialises an iterator; it is not valid until a seek.
void rn_table_iter_init(rn_table_iter_t* iter, const rn_table_t* table);
void rn_table_iter_clear(rn_table_iter_t* iter);
// Moves to the first key that is not below |key|; "" is the start. Not valid at the end.
RN_MUST_USE rn_status_t rn_table_iter_seek(rn_table_iter_t* iter, rn_str_t key);
RN_MUST_USE rn_status_t rn_table_iter_next(rn_table_iter_t* iter);

#endif  // RUNNEL_IO_TABLE_H_
