// Bundles: checkpoints in the V2 format. |prefix|.index is a table (table.h) of entries;
// |prefix|.data-00000-of-00002 and so on hold the bytes of the tensors.
//
// The index, keys in the order of their bytes:
//
//   ""          a BundleHeaderProto: number of data files, byte order (ours is little-endian, and
//               nothing else is read), version (producer 1)
//   name        a BundleEntryProto: type, shape, data file, offset, size, masked CRC-32C
//   name        of a tensor stored in parts: type, shape and the slices; each of them has an entry
//               under a key of its own (rn_slice_key)
//
// A tensor's bytes, one tensor behind the other without gaps:
//
//   numbers     the elements, row-major, little-endian; the checksum is theirs
//   strings     varint length …, u32 masked CRC-32C of the lengths, then all bytes; the lengths
//               count in checksums as u32 (as u64 from 2^32 on), and the tensor's checksum goes on
//               from theirs over the stored u32 and the bytes
//   variants    for each: varint length, a VariantTensorDataProto, u32 masked CRC-32C of all so
//               far, which the checksum then covers too; lengths count as u64
//
// The reader checks the sizes in an entry against the size of its file before it allocates memory.
#ifndef RUNNEL_IO_BUNDLE_H_
#define RUNNEL_IO_BUNDLE_H_

#include "base/fs.h"
#include "base/pool.h"
#include "io/slice.h"
#include "tensor/tensor.h"

// The names of the files of a checkpoint.
void rn_bundle_index_name(rn_strbuf_t* buf, const char* prefix);
void rn_bundle_data_name(rn_strbuf_t* buf, const char* prefix, int32_t shard, int32_t shards);
// Whether there is an index for |prefix|.
RN_MUST_USE rn_status_t rn_bundle_find_index(const rn_env_t* env, const char* prefix,
                                             bool* out_exists);

// Describes a tensor in a checkpoint.
typedef struct rn_bundle_entry_t {
  rn_str_t name;  // NUL-terminated
  rn_dtype_t dtype;
  rn_shape_t shape;
  int32_t shard;
  int64_t offset, size;
  uint32_t checksum;   // masked
  size_t slice_count;  // 0 if stored whole
  rn_slice_t* slices;  // fit the shape
  bool is_part;        // the entry is itself a slice of a tensor
} rn_bundle_entry_t;

// Reading. A reader is immutable; any number of threads may use it.
typedef struct rn_bundle_reader_t rn_bundle_reader_t;

// Reads the index. NOT_FOUND if there is none; DATA_LOSS, with path and offset, if it is damaged;
// UNIMPLEMENTED for a checkpoint of a big-endian machine.
RN_MUST_USE rn_status_t rn_bundle_reader_open(const rn_env_t* env, const char* prefix,
                                              rn_bundle_reader_t** out);
void rn_bundle_reader_close(rn_bundle_reader_t* reader);  // NULL is fine
const char* rn_bundle_reader_prefix(const rn_bundle_reader_t* reader);

// The tensors, in the order of their names; |i| < count. Borrowed from the reader.
size_t rn_bundle_count(const rn_bundle_reader_t* reader);
const rn_bundle_entry_t* rn_bundle_entry(const rn_bundle_reader_t* reader, size_t i);
// The tensor |name|, or NULL.
const rn_bundle_entry_t* rn_bundle_find(const rn_bundle_reader_t* reader, rn_str_t name);
// The same, but fails with NOT_FOUND and TensorFlow's message.
RN_MUST_USE rn_status_t rn_bundle_lookup(const rn_bundle_reader_t* reader, rn_str_t name,
                                         const rn_bundle_entry_t** out);

// Checks, by sizes only, that the files hold the bytes of |slice| of the tensor (NULL for all of
// it). Call this before allocating memory for it.
RN_MUST_USE rn_status_t rn_bundle_check(rn_bundle_reader_t* reader, const rn_bundle_entry_t* entry,
                                        const rn_slice_t* slice);
// Reads |slice| of the tensor (NULL for all of it) into |tensor|, which must have the matching type
// and shape and writable bytes. Verifies checksums; DATA_LOSS names file and offset. |pool| may be
// NULL.
RN_MUST_USE rn_status_t rn_bundle_read(rn_bundle_reader_t* reader, const rn_bundle_entry_t* entry,
                                       const rn_slice_t* slice, rn_pool_t* pool,
                                       rn_tensor_t* tensor);
// Checks, makes the tensor and reads all of it.
RN_MUST_USE rn_status_t rn_bundle_read_new(rn_bundle_reader_t* reader,
                                           const rn_bundle_entry_t* entry, rn_pool_t* pool,
                                           rn_allocator_t allocator, rn_tensor_t* out);
// Reads every tensor and slice and verifies its checksum. |*out_bytes| gets the number of bytes
// read.
RN_MUST_USE rn_status_t rn_bundle_verify(rn_bundle_reader_t* reader, rn_pool_t* pool,
                                         int64_t* out_bytes);
// The same one entry at a time, for callers that show progress; |*inout_at| starts at 0.
RN_MUST_USE rn_status_t rn_bundle_verify_next(rn_bundle_reader_t* reader, rn_pool_t* pool,
                                              size_t* inout_at, int64_t* inout_bytes,
                                              bool* out_is_over);

// Writing. One thread at a time.
//
// Bytes go to a temporary file as tensors are added. Finish makes the checkpoint: syncs the data,
// then the index, then renames the files, the index last, and syncs the directories in between.
// After a crash or failure at any point, |prefix| refers to the complete old checkpoint or the
// complete new one: the data files of the old checkpoint stay, under other numbers than the new
// ones, until the new index is durable.
typedef struct rn_bundle_writer_t rn_bundle_writer_t;

// Makes the directories above |prefix|. |pool| (may be NULL) is used for checksums.
RN_MUST_USE rn_status_t rn_bundle_writer_create(const rn_env_t* env, const char* prefix,
                                                rn_pool_t* pool, rn_bundle_writer_t** out);
// Removes the files of an unfinished checkpoint. NULL is fine.
void rn_bundle_writer_destroy(rn_bundle_writer_t* writer);
// Adds a tensor; the writer keeps no reference to it. INVALID_ARGUMENT for an empty or repeated
// name. After a failure only destroy may be called.
RN_MUST_USE rn_status_t rn_bundle_writer_add(rn_bundle_writer_t* writer, rn_str_t name,
                                             const rn_tensor_t* tensor);
// Adds |tensor| as |slice| of the tensor |name| of |shape|.
RN_MUST_USE rn_status_t rn_bundle_writer_add_slice(rn_bundle_writer_t* writer, rn_str_t name,
                                                   rn_shape_t shape, rn_slice_t slice,
                                                   const rn_tensor_t* tensor);
// Writes the index and puts the checkpoint in place. |*out_bytes|, unless NULL, gets the size of
// the data file.
RN_MUST_USE rn_status_t rn_bundle_writer_finish(rn_bundle_writer_t* writer, int64_t* out_bytes);

// Merges the checkpoints under |prefixes| into |destination| by moving their data files and merging
// their indexes, which are then removed. As crash-safe as the writer, except that a failure may
// leave unreferenced data files under the destination's name.
RN_MUST_USE rn_status_t rn_bundle_merge(const rn_env_t* env, const rn_str_t* prefixes, size_t count,
                                        bool allow_missing, const char* destination);

// Removes the checkpoint under |prefix|: first the index, then every data file of that name, even
// if the index is unreadable. Missing files are fine.
RN_MUST_USE rn_status_t rn_bundle_remove(const rn_env_t* env, const char* prefix);

#endif  // RUNNEL_IO_BUNDLE_H_
