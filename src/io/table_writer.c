// Writes tables. See table.h.
#include "base/crc32c.h"
#include "io/table.h"
#include "wire/writer.h"

#define BLOCK_SIZE 262144
#define RESTART_INTERVAL 16
#define MAGIC UINT64_C(0xdb4775248b80fb57)
#define FOOTER_HANDLES 40
// Blocks are buffered up to this size, so that a small table takes one write.
#define GATHER ((size_t)1 << 20)

typedef struct table_writer_block_t {
  rn_strbuf_t bytes;
  rn_strbuf_t last_key;
  RN_VEC(uint32_t) restarts;
  int interval, since_restart;
} table_writer_block_t;

struct rn_table_writer_t {
  rn_allocator_t allocator;
  rn_file_t* file;  // Borrowed
  rn_strbuf_t pending;
  uint64_t offset;  // in the file, including pending bytes
  table_writer_block_t data, index;
  // The index entry of the last closed block is not written yet, because its key depends on the
  // next block.
  bool owes_index;
  uint64_t owed_offset, owed_size;
  rn_strbuf_t scratch;
};

static void block_init(table_writer_block_t* block, rn_allocator_t allocator, int interval) {
  rn_strbuf_init(&block->bytes, allocator);
  rn_strbuf_init(&block->last_key, allocator);
  block->interval = interval;
}

static void block_clear(table_writer_block_t* block, rn_allocator_t allocator) {
  rn_strbuf_clear(&block->bytes);
  rn_strbuf_clear(&block->last_key);
  rn_vec_free(&block->restarts, allocator);
}

static rn_status_t block_add(table_writer_block_t* block, rn_allocator_t allocator, rn_str_t key,
                             rn_str_t value) {
  size_t shared = 0;
  if (block->since_restart == 0) {
    if (block->bytes.size > UINT32_MAX) return rn_out_of_range("A block of a table is too large");
    RN_RETURN_IF_ERROR(rn_vec_push(&block->restarts, allocator, (uint32_t)block->bytes.size));
  } else {
    const char* last = block->last_key.data;
    while (shared < key.size && shared < block->last_key.size && key.data[shared] == last[shared])
      ++shared;
  }
  rn_pb_put_varint(&block->bytes, shared);
  rn_pb_put_varint(&block->bytes, key.size - shared);
  rn_pb_put_varint(&block->bytes, value.size);
  rn_strbuf_append_n(&block->bytes, key.data + shared, key.size - shared);
  rn_strbuf_append(&block->bytes, value);
  block->last_key.size = 0;
  rn_strbuf_append(&block->last_key, key);
  block->since_restart = (block->since_restart + 1) % block->interval;
  RN_RETURN_IF_ERROR(rn_strbuf_status(&block->last_key));
  return rn_strbuf_status(&block->bytes);
}

static rn_status_t flush(rn_table_writer_t* writer) {
  RN_RETURN_IF_ERROR(rn_strbuf_status(&writer->pending));
  if (!writer->pending.size) return RN_OK;
  RN_RETURN_IF_ERROR(writer->file->vtable->append(writer->file, rn_strbuf_view(&writer->pending)));
  writer->pending.size = 0;
  return RN_OK;
}

// Closes |block| and appends it.
static rn_status_t write_block(rn_table_writer_t* writer, table_writer_block_t* block,
                               uint64_t* out_offset, uint64_t* out_size) {
  if (block->restarts.count == 0)
    RN_RETURN_IF_ERROR(rn_vec_push(&block->restarts, writer->allocator, 0));
  uint32_t count = (uint32_t)block->restarts.count;
  rn_strbuf_append_n(&block->bytes, block->restarts.items, count * sizeof(uint32_t));
  rn_strbuf_append_n(&block->bytes, &count, sizeof count);
  RN_RETURN_IF_ERROR(rn_strbuf_status(&block->bytes));
  uint8_t trailer[5] = {0};
  uint32_t crc = rn_crc32c(rn_crc32c(0, block->bytes.data, block->bytes.size), trailer, 1);
  crc = rn_crc32c_mask(crc);
  memcpy(trailer + 1, &crc, sizeof crc);
  *out_offset = writer->offset;
  *out_size = block->bytes.size;
  rn_strbuf_append(&writer->pending, rn_strbuf_view(&block->bytes));
  rn_strbuf_append_n(&writer->pending, trailer, sizeof trailer);
  writer->offset += block->bytes.size + sizeof trailer;
  block->bytes.size = block->last_key.size = block->restarts.count = 0;
  block->since_restart = 0;
  return writer->pending.size >= GATHER ? flush(writer) : rn_strbuf_status(&writer->pending);
}

// Appends a short key in [last, next): the common prefix and the next byte of |last| plus one, if
// that is below |next|. Without |next|, a short key that is not below |last|.
static void separator(rn_strbuf_t* out, rn_str_t last, const rn_str_t* next) {
  size_t at = 0;
  if (next) {
    while (at < last.size && at < next->size && last.data[at] == next->data[at]) ++at;
    bool is_apart = at < last.size && at < next->size && (uint8_t)last.data[at] < 0xff &&
                    (uint8_t)last.data[at] + 1 < (uint8_t)next->data[at];
    if (!is_apart) at = last.size;
  } else {
    while (at < last.size && (uint8_t)last.data[at] == 0xff) ++at;
  }
  out->size = 0;
  rn_strbuf_append_n(out, last.data, at < last.size ? at + 1 : last.size);
  if (at < last.size && !out->failed) out->data[at]++;
}

static rn_status_t pay_index(rn_table_writer_t* writer, const rn_str_t* next) {
  if (!writer->owes_index) return RN_OK;
  rn_strbuf_t* key = &writer->scratch;
  separator(key, rn_strbuf_view(&writer->data.last_key), next);
  RN_RETURN_IF_ERROR(rn_strbuf_status(key));
  char handle[2 * RN_PB_MAX_VARINT];
  char* end = rn_pb_varint_to(rn_pb_varint_to(handle, writer->owed_offset), writer->owed_size);
  writer->owes_index = false;
  return block_add(&writer->index, writer->allocator, rn_strbuf_view(key),
                   rn_str_n(handle, (size_t)(end - handle)));
}

static rn_status_t close_data(rn_table_writer_t* writer) {
  if (writer->data.bytes.size == 0) return RN_OK;
  // The index needs the last key, which closing the block clears.
  rn_strbuf_t* key = &writer->data.last_key;
  size_t size = key->size;
  RN_RETURN_IF_ERROR(write_block(writer, &writer->data, &writer->owed_offset, &writer->owed_size));
  key->size = size;
  writer->owes_index = true;
  return RN_OK;
}

rn_status_t rn_table_writer_create(rn_allocator_t allocator, rn_file_t* file,
                                   rn_table_writer_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(allocator, out));
  rn_table_writer_t* writer = *out;
  writer->allocator = allocator;
  writer->file = file;
  rn_strbuf_init(&writer->pending, allocator);
  rn_strbuf_init(&writer->scratch, allocator);
  block_init(&writer->data, allocator, RESTART_INTERVAL);
  block_init(&writer->index, allocator, 1);
  return RN_OK;
}

void rn_table_writer_destroy(rn_table_writer_t* writer) {
  if (!writer) return;
  rn_strbuf_clear(&writer->pending);
  rn_strbuf_clear(&writer->scratch);
  block_clear(&writer->data, writer->allocator);
  block_clear(&writer->index, writer->allocator);
  RN_FREE(writer->allocator, writer);
}

rn_status_t rn_table_writer_add(rn_table_writer_t* writer, rn_str_t key, rn_str_t value) {
  bool is_first = writer->offset == 0 && writer->data.bytes.size == 0;
  if (!is_first && rn_str_compare(key, rn_strbuf_view(&writer->data.last_key)) <= 0)
    return rn_invalid_argument("The keys of a table must be ascending: %.*s", RN_STR_ARGS(key));
  if (key.size > RN_TABLE_MAX_KEY)
    return rn_invalid_argument("A key of a table may have at most %zu bytes; this one has %zu",
                               RN_TABLE_MAX_KEY, key.size);
  RN_RETURN_IF_ERROR(pay_index(writer, &key));
  table_writer_block_t* data = &writer->data;
  RN_RETURN_IF_ERROR(block_add(data, writer->allocator, key, value));
  size_t size = data->bytes.size + (data->restarts.count + 1) * sizeof(uint32_t);
  return size >= BLOCK_SIZE ? close_data(writer) : RN_OK;
}

rn_status_t rn_table_writer_finish(rn_table_writer_t* writer) {
  RN_RETURN_IF_ERROR(close_data(writer));
  table_writer_block_t meta = {0};
  block_init(&meta, writer->allocator, RESTART_INTERVAL);
  uint64_t meta_offset = 0, meta_size = 0, index_offset = 0, index_size = 0;
  rn_status_t status = write_block(writer, &meta, &meta_offset, &meta_size);
  block_clear(&meta, writer->allocator);
  RN_RETURN_IF_ERROR(status);
  RN_RETURN_IF_ERROR(pay_index(writer, NULL));
  RN_RETURN_IF_ERROR(write_block(writer, &writer->index, &index_offset, &index_size));
  char footer[FOOTER_HANDLES + sizeof(uint64_t)] = {0};
  char* end = rn_pb_varint_to(rn_pb_varint_to(footer, meta_offset), meta_size);
  rn_pb_varint_to(rn_pb_varint_to(end, index_offset), index_size);
  uint64_t magic = MAGIC;
  memcpy(footer + FOOTER_HANDLES, &magic, sizeof magic);
  rn_strbuf_append_n(&writer->pending, footer, sizeof footer);
  return flush(writer);
}
