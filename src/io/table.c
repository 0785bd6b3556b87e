// Reads tables. See table.h.
#include "io/table.h"

#include "base/crc32c.h"
#include "io/snappy.h"
#include "wire/scan.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tables and checkpoints are little-endian, and so must be the machine"
#endif

#define MAGIC UINT64_C(0xdb4775248b80fb57)
#define FOOTER_SIZE 48
#define TRAILER_SIZE 5
#define MAX_UNFOLDING 64  // a snappy element of 3 bytes yields at most 64

typedef struct handle_t {
  uint64_t offset, size;
} handle_t;

typedef struct block_line_t {
  rn_str_t last;  // not below any key of the block
  handle_t handle;
} block_line_t;

struct rn_table_t {
  rn_allocator_t allocator;
  rn_arena_t arena;
  rn_file_t* file;  // Owned
  const char* path;
  uint64_t size;
  RN_VEC(block_line_t) blocks;
};

static rn_status_t damaged(const rn_table_t* table, uint64_t offset, const char* what) {
  return rn_data_loss("%s: %s at offset %llu", table->path, what, (unsigned long long)offset);
}

static rn_status_t read_exactly(const rn_table_t* table, uint64_t offset, void* out, size_t size) {
  size_t got = 0;
  RN_RETURN_IF_ERROR(table->file->vtable->read_at(table->file, offset, out, size, &got));
  return got == size ? RN_OK : damaged(table, offset + got, "the file ends");
}

static bool read_handle(rn_pb_scan_t* scan, handle_t* out) {
  return rn_pb_scan_varint(scan, &out->offset) && rn_pb_scan_varint(scan, &out->size);
}

// A buffer for the decompressed bytes of a block; grows as needed.
typedef struct table_bytes_t {
  char* data;  // Owned
  size_t capacity, size;
} table_bytes_t;

static rn_status_t make_room(const rn_table_t* table, table_bytes_t* bytes, size_t size) {
  if (size <= bytes->capacity) return RN_OK;
  rn_free(table->allocator, bytes->data, bytes->capacity);
  *bytes = (table_bytes_t){0};
  RN_RETURN_IF_ERROR(rn_alloc(table->allocator, size, (void**)&bytes->data));
  bytes->capacity = size;
  return RN_OK;
}

static rn_status_t unfold(const rn_table_t* table, handle_t handle, table_bytes_t* bytes) {
  uint64_t size = 0;
  rn_str_t folded = rn_str_n(bytes->data, (size_t)handle.size);
  if (!rn_snappy_size(folded, &size) || size / MAX_UNFOLDING > handle.size)
    return damaged(table, handle.offset, "a block with an invalid size");
  table_bytes_t plain = {0};
  RN_RETURN_IF_ERROR(make_room(table, &plain, (size_t)size + 1));
  bool is_good = rn_snappy_unfold(folded, plain.data, (size_t)size);
  rn_free(table->allocator, bytes->data, bytes->capacity);
  *bytes = plain;
  bytes->size = (size_t)size;
  return is_good ? RN_OK : damaged(table, handle.offset, "a block that cannot be decompressed");
}

static rn_status_t read_block(const rn_table_t* table, handle_t handle, table_bytes_t* bytes) {
  uint64_t end = 0;
  bool fits = !__builtin_add_overflow(handle.offset, handle.size, &end) &&
              !__builtin_add_overflow(end, TRAILER_SIZE, &end) && end <= table->size;
  if (!fits) return damaged(table, handle.offset, "a block that extends past the end of the file");
  size_t size = (size_t)handle.size;
  RN_RETURN_IF_ERROR(make_room(table, bytes, size + TRAILER_SIZE));
  RN_RETURN_IF_ERROR(read_exactly(table, handle.offset, bytes->data, size + TRAILER_SIZE));
  uint32_t stored;
  memcpy(&stored, bytes->data + size + 1, sizeof stored);
  if (rn_crc32c_unmask(stored) != rn_crc32c(0, bytes->data, size + 1))
    return damaged(table, handle.offset, "block checksum mismatch");
  bytes->size = size;
  switch (bytes->data[size]) {
    case 0:
      return RN_OK;
    case 1:
      return unfold(table, handle, bytes);
    default:
      return damaged(table, handle.offset, "a block of unknown compression");
  }
}

// Where the entries of a block end.
static rn_status_t entries_of(const rn_table_t* table, uint64_t offset, const table_bytes_t* bytes,
                              size_t* out_end) {
  uint32_t restarts = 0;
  if (bytes->size >= sizeof restarts)
    memcpy(&restarts, bytes->data + bytes->size - sizeof restarts, sizeof restarts);
  uint64_t tail = ((uint64_t)restarts + 1) * sizeof restarts;
  if (tail > bytes->size) return damaged(table, offset, "a block without a list of restarts");
  *out_end = bytes->size - (size_t)tail;
  return RN_OK;
}

// Reads the entry at |*inout_next| and advances past it.
static bool parse_entry(const char* data, size_t end, size_t* inout_next, rn_strbuf_t* key,
                        rn_str_t* out_value) {
  rn_pb_scan_t scan = rn_pb_scan(rn_str_n(data + *inout_next, end - *inout_next));
  uint64_t shared = 0, further = 0, size = 0;
  if (!rn_pb_scan_varint(&scan, &shared) || !rn_pb_scan_varint(&scan, &further) ||
      !rn_pb_scan_varint(&scan, &size))
    return false;
  uint64_t left = (uint64_t)(scan.end - scan.next);
  if (shared > key->size || further > left || size > left - further) return false;
  if (shared + further > RN_TABLE_MAX_KEY) return false;
  key->size = (size_t)shared;
  rn_strbuf_append_n(key, scan.next, (size_t)further);
  *out_value = rn_str_n(scan.next + further, (size_t)size);
  *inout_next = (size_t)(scan.next + further + size - data);
  return true;
}

static rn_status_t parse_index(rn_table_t* table, handle_t index, const table_bytes_t* bytes,
                               rn_strbuf_t* key) {
  size_t end = 0;
  RN_RETURN_IF_ERROR(entries_of(table, index.offset, bytes, &end));
  for (size_t next = 0; next < end;) {
    block_line_t line;
    rn_str_t value;
    if (!parse_entry(bytes->data, end, &next, key, &value))
      return damaged(table, index.offset, "a bad entry in the index");
    rn_pb_scan_t scan = rn_pb_scan(value);
    RN_RETURN_IF_ERROR(rn_strbuf_status(key));
    if (!read_handle(&scan, &line.handle))
      return damaged(table, index.offset, "a bad handle in the index");
    RN_RETURN_IF_ERROR(rn_arena_str(&table->arena, rn_strbuf_view(key), &line.last));
    RN_RETURN_IF_ERROR(rn_vec_push(&table->blocks, table->allocator, line));
  }
  return RN_OK;
}

static rn_status_t read_index(rn_table_t* table) {
  rn_file_stat_t stat;
  RN_RETURN_IF_ERROR(table->file->vtable->stat(table->file, &stat));
  table->size = stat.size < 0 || stat.is_directory ? 0 : (uint64_t)stat.size;
  if (table->size < FOOTER_SIZE)
    return rn_data_loss("%s: file is too short to be an sstable", table->path);
  // Keys with shared prefixes expand; 64 times the size of the file is more than names ever need.
  table->arena.limit = table->size < SIZE_MAX / 64 - 65536 ? table->size * 64 + 65536 : SIZE_MAX;
  char footer[FOOTER_SIZE];
  RN_RETURN_IF_ERROR(read_exactly(table, table->size - FOOTER_SIZE, footer, FOOTER_SIZE));
  uint64_t magic;
  memcpy(&magic, footer + FOOTER_SIZE - sizeof magic, sizeof magic);
  if (magic != MAGIC)
    return rn_data_loss(
        "%s: not an sstable (bad magic number): perhaps your file is in a different file format "
        "and you need to use a different restore operator?",
        table->path);
  rn_pb_scan_t scan = rn_pb_scan(rn_str_n(footer, FOOTER_SIZE - sizeof magic));
  handle_t meta, index;
  if (!read_handle(&scan, &meta) || !read_handle(&scan, &index))
    return damaged(table, table->size - FOOTER_SIZE, "a bad handle");
  table_bytes_t bytes = {0};
  rn_strbuf_t key;
  rn_strbuf_init(&key, table->allocator);
  rn_status_t status = read_block(table, index, &bytes);
  if (rn_ok(status)) status = parse_index(table, index, &bytes, &key);
  rn_strbuf_clear(&key);
  rn_free(table->allocator, bytes.data, bytes.capacity);
  return status;
}

rn_status_t rn_table_open(const rn_env_t* env, const char* path, rn_table_t** out) {
  *out = NULL;
  rn_table_t* table = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(env->allocator, &table));
  table->allocator = env->allocator;
  rn_arena_init(&table->arena, env->allocator);
  rn_str_t copy = {0};
  rn_status_t status = rn_arena_str(&table->arena, rn_str(path), &copy);
  table->path = copy.data;
  if (rn_ok(status)) status = rn_fs_open(env, path, RN_OPEN_READ, &table->file);
  if (rn_ok(status)) status = read_index(table);
  if (!rn_ok(status)) {
    rn_table_close(table);
    return status;
  }
  *out = table;
  return RN_OK;
}

void rn_table_close(rn_table_t* table) {
  if (!table) return;
  if (table->file) rn_status_free(table->file->vtable->close(table->file));
  rn_vec_free(&table->blocks, table->allocator);
  rn_arena_clear(&table->arena);
  RN_FREE(table->allocator, table);
}

uint64_t rn_table_file_size(const rn_table_t* table) { return table->size; }
const char* rn_table_path(const rn_table_t* table) { return table->path; }

void rn_table_iter_init(rn_table_iter_t* iter, const rn_table_t* table) {
  *iter = (rn_table_iter_t){.table = table};
  rn_strbuf_init(&iter->key_buffer, table->allocator);
}

void rn_table_iter_clear(rn_table_iter_t* iter) {
  if (!iter->table) return;
  rn_free(iter->table->allocator, iter->block, iter->block_capacity);
  rn_strbuf_clear(&iter->key_buffer);
  *iter = (rn_table_iter_t){0};
}

static rn_status_t enter_block(rn_table_iter_t* iter, size_t i) {
  const rn_table_t* table = iter->table;
  handle_t handle = table->blocks.items[i].handle;
  table_bytes_t bytes = {iter->block, iter->block_capacity, 0};
  rn_status_t status = read_block(table, handle, &bytes);
  if (rn_ok(status)) status = entries_of(table, handle.offset, &bytes, &iter->entries_end);
  iter->block = bytes.data;
  iter->block_capacity = bytes.capacity;
  iter->block_offset = handle.offset;
  iter->next_block = i + 1;
  iter->next = 0;
  iter->key_buffer.size = 0;
  return status;
}

rn_status_t rn_table_iter_next(rn_table_iter_t* iter) {
  const rn_table_t* table = iter->table;
  iter->is_valid = false;
  while (iter->next >= iter->entries_end) {
    if (iter->next_block >= table->blocks.count) return RN_OK;
    rn_status_t status = enter_block(iter, iter->next_block);
    if (!rn_ok(status)) {
      iter->next = iter->entries_end = 0;
      return status;
    }
  }
  if (!parse_entry(iter->block, iter->entries_end, &iter->next, &iter->key_buffer, &iter->value)) {
    iter->next = iter->entries_end;
    return damaged(table, iter->block_offset, "a bad entry in the block");
  }
  RN_RETURN_IF_ERROR(rn_strbuf_status(&iter->key_buffer));
  iter->key = rn_strbuf_view(&iter->key_buffer);
  iter->is_valid = true;
  return RN_OK;
}

rn_status_t rn_table_iter_seek(rn_table_iter_t* iter, rn_str_t key) {
  const rn_table_t* table = iter->table;
  size_t low = 0, high = table->blocks.count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (rn_str_compare(table->blocks.items[middle].last, key) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  iter->next = iter->entries_end = 0;
  iter->next_block = low;
  do {
    RN_RETURN_IF_ERROR(rn_table_iter_next(iter));
  } while (iter->is_valid && rn_str_compare(iter->key, key) < 0);
  return RN_OK;
}
