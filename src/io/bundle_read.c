// Reads the bytes of a bundle's tensors, in pieces that several threads process. See bundle.h.
#include "base/crc32c.h"
#include "io/bundle_internal.h"
#include "tensor/tensor_proto.h"
#include "tensor/tstring.h"
#include "wire/decode.h"
#include "wire/scan.h"

// Bytes are read and checked in pieces that fit into the second-level cache; a thread takes several
// at a time.
#define PIECE ((size_t)256 << 10)
#define SHARE ((size_t)4 << 20)
// Overlaps are not checked among more slices than this, because the check takes quadratic time.
#define MAX_COMPARED 2048

static rn_status_t damaged(const rn_bundle_reader_t* reader, const rn_bundle_entry_t* entry,
                           const char* what) {
  return rn_data_loss("TensorBundle at %s shard %d: tensor %.*s (%lld bytes at offset %lld): %s",
                      reader->prefix, entry->shard, RN_STR_ARGS(entry->name),
                      (long long)entry->size, (long long)entry->offset, what);
}

rn_status_t rn_bundle_shard(rn_bundle_reader_t* reader, int32_t number, rn_bundle_shard_t* out) {
  const rn_env_t* env = reader->env;
  rn_mutex_lock(&reader->mutex);
  for (size_t i = 0; i < reader->open.count; ++i) {
    if (reader->open.items[i].number != number) continue;
    *out = reader->open.items[i];
    rn_mutex_unlock(&reader->mutex);
    return RN_OK;
  }
  rn_strbuf_t name;
  rn_strbuf_init(&name, env->allocator);
  rn_bundle_data_name(&name, reader->prefix, number, reader->shards);
  rn_bundle_shard_t shard = {.number = number};
  rn_file_stat_t stat = {0};
  rn_status_t status = rn_strbuf_status(&name);
  if (rn_ok(status)) status = rn_fs_open(env, name.data, RN_OPEN_READ, &shard.file);
  if (rn_ok(status)) status = shard.file->vtable->stat(shard.file, &stat);
  shard.size = stat.size;
  if (rn_ok(status)) status = rn_vec_push(&reader->open, env->allocator, shard);
  rn_mutex_unlock(&reader->mutex);
  if (!rn_ok(status) && shard.file) rn_status_free(shard.file->vtable->close(shard.file));
  rn_strbuf_clear(&name);
  *out = shard;
  return status;
}

rn_status_t rn_bundle_part(const rn_bundle_reader_t* reader, const rn_bundle_entry_t* entry,
                           size_t i, const rn_bundle_entry_t** out) {
  rn_strbuf_t key;
  rn_strbuf_init(&key, reader->env->allocator);
  rn_slice_key(&key, entry->name, entry->slices[i]);
  rn_status_t status = rn_strbuf_status(&key);
  if (rn_ok(status)) {
    *out = rn_bundle_find_any(reader, rn_strbuf_view(&key));
    bool fits = *out && (*out)->dtype == entry->dtype && (*out)->slice_count == 0 &&
                (*out)->shape.rank == entry->shape.rank;
    for (int32_t k = 0; fits && k < entry->shape.rank; ++k) {
      int64_t length = entry->slices[i].lengths[k];
      fits = (*out)->shape.dims[k] == (length == RN_SLICE_WHOLE ? entry->shape.dims[k] : length);
    }
    if (!fits) status = damaged(reader, entry, "a slice is missing, or has another type or shape");
  }
  rn_strbuf_clear(&key);
  return status;
}

// Checks that the file can hold the bytes of an entry that is stored whole.
static rn_status_t check_bytes(rn_bundle_reader_t* reader, const rn_bundle_entry_t* entry) {
  rn_bundle_shard_t shard;
  int64_t count = 0, end = 0, bytes = 0;
  if (!rn_shape_count(entry->shape, &count))
    return damaged(reader, entry, "its shape is too large");
  if (entry->dtype == RN_RESOURCE) return damaged(reader, entry, "resources cannot be restored");
  if (rn_dtype_is_plain(entry->dtype)) {
    if (!rn_mul_i64_ok(count, (int64_t)rn_dtype_size(entry->dtype), &bytes) || bytes != entry->size)
      return damaged(reader, entry, "its size does not match its shape");
    if (count == 0) return RN_OK;
  } else if (count > entry->size) {
    return damaged(reader, entry, "it has more elements than bytes");
  }
  RN_RETURN_IF_ERROR(rn_bundle_shard(reader, entry->shard, &shard));
  if (!rn_add_i64_ok(entry->offset, entry->size, &end) || end > shard.size)
    return rn_out_of_range(
        "Read less bytes than requested: TensorBundle at %s shard %d: tensor %.*s ends at %lld, "
        "the file at %lld",
        reader->prefix, entry->shard, RN_STR_ARGS(entry->name), (long long)end,
        (long long)shard.size);
  return RN_OK;
}

static rn_status_t not_covered(const rn_bundle_reader_t* reader, const rn_bundle_entry_t* entry,
                               rn_slice_t slice) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, reader->env->allocator);
  rn_slice_print(&text, slice);
  rn_status_t status = rn_invalid_argument(
      "Does not have sufficient slices for partitioned tensor %.*s to restore in slice_spec: %.*s",
      RN_STR_ARGS(entry->name), RN_STR_ARGS(rn_strbuf_view(&text)));
  rn_strbuf_clear(&text);
  return status;
}

// The slices that overlap |wanted| must cover all of it exactly once.
static rn_status_t check_slices(rn_bundle_reader_t* reader, const rn_bundle_entry_t* entry,
                                rn_slice_t wanted) {
  int64_t covered = 0, needed = rn_slice_overlap(wanted, wanted, entry->shape);
  for (size_t i = 0; i < entry->slice_count; ++i) {
    int64_t shared = rn_slice_overlap(entry->slices[i], wanted, entry->shape);
    if (!shared) continue;
    const rn_bundle_entry_t* part = NULL;
    RN_RETURN_IF_ERROR(rn_bundle_part(reader, entry, i, &part));
    RN_RETURN_IF_ERROR(check_bytes(reader, part));
    for (size_t k = 0; k < i && entry->slice_count <= MAX_COMPARED; ++k)
      if (rn_slice_overlap(entry->slices[i], entry->slices[k], entry->shape))
        return damaged(reader, entry, "Overlapping slices");
    if (!rn_add_i64_ok(covered, shared, &covered))
      return damaged(reader, entry, "Overlapping slices");
  }
  return covered == needed ? RN_OK : not_covered(reader, entry, wanted);
}

rn_status_t rn_bundle_check(rn_bundle_reader_t* reader, const rn_bundle_entry_t* entry,
                            const rn_slice_t* slice) {
  if (!entry->slice_count) return check_bytes(reader, entry);
  if (slice) return check_slices(reader, entry, *slice);
  rn_arena_t arena;
  rn_arena_init(&arena, reader->env->allocator);
  rn_slice_t whole;
  rn_status_t status = rn_slice_whole(&arena, entry->shape.rank, &whole);
  if (rn_ok(status)) status = check_slices(reader, entry, whole);
  rn_arena_clear(&arena);
  return status;
}

// Reads and checks one range of a file.

typedef struct transfer_t {
  rn_file_t* file;
  uint64_t offset;
  char* out;  // NULL to only check the bytes
  size_t size;
  uint32_t* checksums;  // one per share
  rn_allocator_t allocator;
  rn_mutex_t mutex;
  rn_status_t status;  // the first failure; guarded by the mutex
} transfer_t;

static rn_status_t read_share(const transfer_t* transfer, size_t begin, size_t end, char* piece,
                              uint32_t* out_checksum) {
  uint32_t checksum = 0;
  for (size_t at = begin; at < end; at += PIECE) {
    size_t size = end - at < PIECE ? end - at : PIECE, got = 0;
    char* to = transfer->out ? transfer->out + at : piece;
    rn_file_t* file = transfer->file;
    RN_RETURN_IF_ERROR(file->vtable->read_at(file, transfer->offset + at, to, size, &got));
    if (got != size) return rn_out_of_range("Read less bytes than requested");
    checksum = rn_crc32c(checksum, to, size);
  }
  *out_checksum = checksum;
  return RN_OK;
}

static void read_shares(void* arg, int64_t begin, int64_t end) {
  transfer_t* transfer = arg;
  char* piece = NULL;
  rn_status_t status = RN_OK;
  if (!transfer->out) status = rn_alloc(transfer->allocator, PIECE, (void**)&piece);
  for (int64_t i = begin; rn_ok(status) && i < end; ++i) {
    size_t from = (size_t)i * SHARE;
    size_t to = transfer->size - from < SHARE ? transfer->size : from + SHARE;
    status = read_share(transfer, from, to, piece, &transfer->checksums[i]);
  }
  rn_free(transfer->allocator, piece, PIECE);
  if (rn_ok(status)) return;
  rn_mutex_lock(&transfer->mutex);
  transfer->status = rn_status_join(transfer->status, status);
  rn_mutex_unlock(&transfer->mutex);
}

// Reads the bytes of |entry| into |out| (unless NULL) and computes their checksum.
static rn_status_t read_bytes(rn_bundle_reader_t* reader, const rn_bundle_entry_t* entry,
                              rn_pool_t* pool, void* out, uint32_t* out_checksum) {
  *out_checksum = 0;
  size_t size = (size_t)entry->size, shares = (size + SHARE - 1) / SHARE;
  if (!size) return RN_OK;
  rn_bundle_shard_t shard;
  RN_RETURN_IF_ERROR(rn_bundle_shard(reader, entry->shard, &shard));
  transfer_t transfer = {.file = shard.file,
                         .offset = (uint64_t)entry->offset,
                         .out = out,
                         .size = size,
                         .allocator = reader->env->allocator};
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(transfer.allocator, shares, &transfer.checksums));
  rn_mutex_init(&transfer.mutex);
  rn_pool_for(pool, (int64_t)shares, 1, read_shares, &transfer);
  rn_mutex_destroy(&transfer.mutex);
  for (size_t i = 0; i < shares; ++i) {
    size_t from = i * SHARE;
    size_t length = size - from < SHARE ? size - from : SHARE;
    *out_checksum = rn_crc32c_combine(*out_checksum, transfer.checksums[i], length);
  }
  RN_FREE_ARRAY(transfer.allocator, transfer.checksums, shares);
  return transfer.status;
}

static rn_status_t compare_checksum(const rn_bundle_reader_t* reader,
                                    const rn_bundle_entry_t* entry, uint32_t found) {
  uint32_t stored = rn_crc32c_unmask(entry->checksum);
  if (stored == found) return RN_OK;
  return rn_data_loss(
      "TensorBundle at %s shard %d (%lld bytes): Checksum does not match: stored %u vs. calculated "
      "on the restored bytes %u; tensor %.*s at offset %lld",
      reader->prefix, entry->shard, (long long)entry->size, stored, found, RN_STR_ARGS(entry->name),
      (long long)entry->offset);
}

uint32_t rn_bundle_length_checksum(uint32_t checksum, uint64_t length) {
  return rn_crc32c(checksum, &length, length <= UINT32_MAX ? sizeof(uint32_t) : sizeof length);
}

static rn_status_t take_strings(const rn_bundle_reader_t* reader, const rn_bundle_entry_t* entry,
                                rn_str_t bytes, rn_tensor_t* tensor) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  uint32_t checksum = 0;
  uint64_t length = 0, total = 0, stored = 0;
  for (int64_t i = 0; i < tensor->count; ++i) {
    if (!rn_pb_scan_varint(&scan, &length) || length > bytes.size - total)
      return damaged(reader, entry, "the length of a string is out of range");
    total += length;
    checksum = rn_bundle_length_checksum(checksum, length);
  }
  if (!rn_pb_scan_fixed(&scan, sizeof(uint32_t), &stored))
    return damaged(reader, entry, "the lengths of its strings are incomplete");
  if (rn_crc32c_unmask((uint32_t)stored) != checksum)
    return rn_data_loss(
        "The length checksum does not match: expected %u but actual is %u; tensor %.*s of %s",
        rn_crc32c_unmask((uint32_t)stored), checksum, RN_STR_ARGS(entry->name), reader->prefix);
  if (total != (uint64_t)(scan.end - scan.next))
    return damaged(reader, entry, "its size does not match the lengths of its strings");
  uint32_t stored32 = (uint32_t)stored;
  checksum = rn_crc32c(checksum, &stored32, sizeof stored32);
  checksum = rn_crc32c(checksum, scan.next, (size_t)total);
  RN_RETURN_IF_ERROR(compare_checksum(reader, entry, checksum));
  rn_pb_scan_t lengths = rn_pb_scan(bytes);
  const char* text = scan.next;
  rn_tstring_t* strings = RN_DATA(tensor, rn_tstring_t);
  for (int64_t i = 0; i < tensor->count; ++i) {
    rn_pb_scan_varint(&lengths, &length);
    if (!rn_tstring_assign(&strings[i], text, (size_t)length)) return rn_out_of_memory();
    text += length;
  }
  return RN_OK;
}

static rn_status_t parse_variants(const rn_bundle_reader_t* reader, const rn_bundle_entry_t* entry,
                                  rn_str_t bytes, rn_arena_t* arena, rn_pb_TensorProto_t* proto) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  uint32_t checksum = 0;
  for (uint32_t i = 0; i < proto->variant_val.count; ++i) {
    uint64_t length = 0, stored = 0;
    if (!rn_pb_scan_varint(&scan, &length) || length > (uint64_t)(scan.end - scan.next))
      return damaged(reader, entry, "the length of a variant is out of range");
    rn_str_t message = rn_str_n(scan.next, (size_t)length);
    scan.next += length;
    checksum = rn_crc32c(checksum, &length, sizeof length);
    checksum = rn_crc32c(checksum, message.data, message.size);
    if (!rn_pb_scan_fixed(&scan, sizeof(uint32_t), &stored) ||
        rn_crc32c_unmask((uint32_t)stored) != checksum)
      return damaged(reader, entry, "the checksum of a variant does not match");
    uint32_t stored32 = (uint32_t)stored;
    checksum = rn_crc32c(checksum, &stored32, sizeof stored32);
    rn_pb_VariantTensorDataProto_t* variant = NULL;
    RN_RETURN_IF_ERROR(RN_PB_DECODE(VariantTensorDataProto, message, NULL, arena, &variant));
    proto->variant_val.items[i] = *variant;
  }
  return compare_checksum(reader, entry, checksum);
}

static rn_status_t take_variants(const rn_bundle_reader_t* reader, const rn_bundle_entry_t* entry,
                                 rn_str_t bytes, rn_tensor_t* tensor) {
  rn_arena_t arena;
  rn_arena_init(&arena, reader->env->allocator);
  rn_pb_TensorProto_t proto = {.dtype = RN_VARIANT};
  rn_pb_TensorShapeProto_t shape;
  proto.tensor_shape = &shape;
  proto.variant_val.count = (uint32_t)tensor->count;
  rn_status_t status = RN_ARENA_ARRAY(&arena, (size_t)tensor->count, &proto.variant_val.items);
  if (rn_ok(status)) status = rn_shape_to_proto(rn_tensor_shape(tensor), &arena, &shape);
  if (rn_ok(status)) status = parse_variants(reader, entry, bytes, &arena, &proto);
  rn_tensor_t made = {0};
  if (rn_ok(status)) {
    status = rn_tensor_from_proto(&proto, SIZE_MAX / 2, reader->env->allocator, &made);
    // Moves the objects: |tensor| takes over the references of |made|.
    for (int64_t i = 0; rn_ok(status) && i < tensor->count; ++i) {
      void** from = RN_DATA(&made, void*);
      void** to = RN_DATA(tensor, void*);
      void* old = to[i];
      to[i] = from[i];
      from[i] = old;
    }
  }
  rn_tensor_clear(&made);
  rn_arena_clear(&arena);
  return status;
}

// Reads a tensor or slice that is stored whole into |tensor|; only checks it if that is NULL.
static rn_status_t read_whole(rn_bundle_reader_t* reader, const rn_bundle_entry_t* entry,
                              rn_pool_t* pool, rn_tensor_t* tensor) {
  RN_RETURN_IF_ERROR(check_bytes(reader, entry));
  uint32_t checksum = 0;
  if (rn_dtype_is_plain(entry->dtype)) {
    RN_RETURN_IF_ERROR(read_bytes(reader, entry, pool, tensor ? tensor->data : NULL, &checksum));
    return compare_checksum(reader, entry, checksum);
  }
  rn_allocator_t allocator = reader->env->allocator;
  rn_tensor_t made = {0};
  if (!tensor) {
    RN_RETURN_IF_ERROR(rn_tensor_create(allocator, entry->dtype, entry->shape, &made));
    tensor = &made;
  }
  char* bytes = NULL;
  rn_status_t status = rn_alloc(allocator, (size_t)entry->size, (void**)&bytes);
  if (rn_ok(status)) status = read_bytes(reader, entry, pool, bytes, &checksum);
  rn_str_t view = rn_str_n(bytes, (size_t)entry->size);
  if (rn_ok(status))
    status = entry->dtype == RN_STRING ? take_strings(reader, entry, view, tensor)
                                       : take_variants(reader, entry, view, tensor);
  rn_free(allocator, bytes, (size_t)entry->size);
  rn_tensor_clear(&made);
  return status;
}

// Reads the part of |wanted| that |from|, which holds slice |held| of the tensor, contains.
static rn_status_t read_part(rn_bundle_reader_t* reader, const rn_bundle_entry_t* from,
                             rn_shape_t shape, rn_slice_t held, rn_slice_t wanted, rn_pool_t* pool,
                             rn_tensor_t* tensor) {
  int64_t place = rn_slice_place(held, wanted, shape);
  if (place >= 0 && rn_dtype_is_plain(from->dtype)) {
    rn_tensor_t within = *tensor;  // a view; not cleared
    within.data = (char*)tensor->data + (size_t)place * rn_dtype_size(from->dtype);
    return read_whole(reader, from, pool, &within);
  }
  RN_RETURN_IF_ERROR(check_bytes(reader, from));
  rn_tensor_t whole = {0};
  rn_status_t status = rn_tensor_create(reader->env->allocator, from->dtype, from->shape, &whole);
  if (rn_ok(status)) status = read_whole(reader, from, pool, &whole);
  if (rn_ok(status) && !rn_slice_copy(shape, held, &whole, wanted, tensor))
    status = rn_out_of_memory();
  rn_tensor_clear(&whole);
  return status;
}

static rn_status_t read_slices(rn_bundle_reader_t* reader, const rn_bundle_entry_t* entry,
                               rn_slice_t wanted, rn_pool_t* pool, rn_tensor_t* tensor) {
  RN_RETURN_IF_ERROR(check_slices(reader, entry, wanted));
  if (entry->dtype == RN_VARIANT)
    return rn_unimplemented("Variants in slices cannot be restored: %.*s of %s",
                            RN_STR_ARGS(entry->name), reader->prefix);
  if (entry->slice_count > MAX_COMPARED && rn_dtype_is_plain(entry->dtype))
    memset(tensor->data, 0, rn_tensor_bytes(tensor));
  for (size_t i = 0; i < entry->slice_count; ++i) {
    if (!rn_slice_overlap(entry->slices[i], wanted, entry->shape)) continue;
    const rn_bundle_entry_t* part = NULL;
    RN_RETURN_IF_ERROR(rn_bundle_part(reader, entry, i, &part));
    RN_RETURN_IF_ERROR(
        read_part(reader, part, entry->shape, entry->slices[i], wanted, pool, tensor));
  }
  return RN_OK;
}

rn_status_t rn_bundle_read(rn_bundle_reader_t* reader, const rn_bundle_entry_t* entry,
                           const rn_slice_t* slice, rn_pool_t* pool, rn_tensor_t* tensor) {
  bool is_whole = !slice || rn_slice_is_whole(*slice, entry->shape);
  if (is_whole && !entry->slice_count) return read_whole(reader, entry, pool, tensor);
  rn_arena_t arena;
  rn_arena_init(&arena, reader->env->allocator);
  rn_slice_t whole;
  rn_status_t status = rn_slice_whole(&arena, entry->shape.rank, &whole);
  if (rn_ok(status))
    status = entry->slice_count
                 ? read_slices(reader, entry, slice ? *slice : whole, pool, tensor)
                 : read_part(reader, entry, entry->shape, whole, *slice, pool, tensor);
  rn_arena_clear(&arena);
  return status;
}

rn_status_t rn_bundle_read_new(rn_bundle_reader_t* reader, const rn_bundle_entry_t* entry,
                               rn_pool_t* pool, rn_allocator_t allocator, rn_tensor_t* out) {
  *out = (rn_tensor_t){0};
  RN_RETURN_IF_ERROR(rn_bundle_check(reader, entry, NULL));
  RN_RETURN_IF_ERROR(rn_tensor_create(allocator, entry->dtype, entry->shape, out));
  rn_status_t status = rn_bundle_read(reader, entry, NULL, pool, out);
  if (!rn_ok(status)) rn_tensor_clear(out);
  return status;
}

rn_status_t rn_bundle_verify_next(rn_bundle_reader_t* reader, rn_pool_t* pool, size_t* inout_at,
                                  int64_t* inout_bytes, bool* out_is_over) {
  *out_is_over = *inout_at >= reader->entries.count;
  if (*out_is_over) return RN_OK;
  const rn_bundle_entry_t* entry = &reader->entries.items[(*inout_at)++];
  const rn_bundle_entry_t* part = NULL;
  for (size_t k = 0; k < entry->slice_count; ++k)
    RN_RETURN_IF_ERROR(rn_bundle_part(reader, entry, k, &part));
  if (entry->slice_count) return RN_OK;  // its slices have entries of their own
  RN_RETURN_IF_ERROR(read_whole(reader, entry, pool, NULL));
  *inout_bytes += entry->size;
  return RN_OK;
}

rn_status_t rn_bundle_verify(rn_bundle_reader_t* reader, rn_pool_t* pool, int64_t* out_bytes) {
  size_t at = 0;
  *out_bytes = 0;
  for (bool is_over = false; !is_over;)
    RN_RETURN_IF_ERROR(rn_bundle_verify_next(reader, pool, &at, out_bytes, &is_over));
  return RN_OK;
}
