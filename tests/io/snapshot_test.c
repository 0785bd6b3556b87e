// Snapshots of datasets: round trips, damaged and missing files, crashes at every call.
#include "io/snapshot.h"

#include <errno.h>
#include <stdio.h>

#include "../support/memory_place.h"
#include "io/snappy.h"
#include "io/snapshot_run.h"
#include "tensor/tstring.h"

static const rn_dtype_t types[2] = {RN_INT64, RN_STRING};

// Element |i|: the number, and a text of so many letters.
static void make_row(int64_t i, rn_tensor_t* row) {
  char text[64];
  OK(rn_tensor_create(rn_allocator_system(), RN_INT64, RN_SHAPE_SCALAR, &row[0]));
  OK(rn_tensor_create(rn_allocator_system(), RN_STRING, RN_SHAPE_SCALAR, &row[1]));
  *RN_DATA(&row[0], int64_t) = i;
  int size = snprintf(text, sizeof text, "%.*s", (int)(i % 40),
                      "abcabcabcabcabcabcabcabcabcabcabcabcabcabcabc");
  cr_assert(rn_tstring_assign(RN_DATA(&row[1], rn_tstring_t), text, (size_t)size));
}

static void clear_row(rn_tensor_t* row) {
  rn_tensor_clear(&row[0]);
  rn_tensor_clear(&row[1]);
}

// A run of |count| elements from |first| on in |shards| shards, and the metadata.
static rn_status_t save(const rn_env_t* env, const char* run, int64_t first, int64_t count,
                        int shards, rn_compression_t compression) {
  char path[64];
  snprintf(path, sizeof path, "dir/%s", run);
  rn_snapshot_writer_t* writer = NULL;
  RN_RETURN_IF_ERROR(rn_snapshot_writer_open(env, path, 0, compression, &writer));
  rn_status_t status = RN_OK;
  for (int64_t i = 0; rn_ok(status) && i < count; ++i) {
    rn_tensor_t row[2];
    make_row(first + i, row);
    status = rn_snapshot_writer_put(writer, i % shards, row, 2);
    clear_row(row);
  }
  if (rn_ok(status))
    status = rn_snapshot_writer_close(writer);
  else
    rn_snapshot_writer_drop(writer);
  if (!rn_ok(status)) return status;
  rn_snapshot_meta_t meta = {
      .run = rn_str(run), .created_us = 1, .version = 2, .element_count = count, .is_final = true};
  return rn_snapshot_meta_write(env, "dir", &meta, 2, types);
}

// Reads what the metadata names; the first element and how many there are.
static rn_status_t load(const rn_env_t* env, rn_compression_t compression, int64_t* out_first,
                        int64_t* out_count) {
  rn_snapshot_meta_t meta = {0};
  rn_names_t names;
  rn_strbuf_init(&meta.text, rn_allocator_system());
  rn_names_init(&names, rn_allocator_system());
  char path[64] = "";
  rn_status_t status = rn_snapshot_meta_read(env, "dir", &meta);
  if (rn_ok(status)) {
    cr_assert(meta.is_final && meta.version == 2);
    snprintf(path, sizeof path, "dir/%.*s", RN_STR_ARGS(meta.run));
    status = rn_snapshot_shards(env, path, &names);
  }
  *out_count = 0;
  *out_first = INT64_MAX;
  for (size_t s = 0; rn_ok(status) && s < names.list.count; ++s) {
    rn_snapshot_reader_t* reader = NULL;
    OK(rn_snapshot_reader_open(env, names.list.items[s].data, compression, 2, &reader));
    for (bool is_end = false; rn_ok(status) && !is_end;) {
      rn_tensor_t row[2] = {0};
      status = rn_snapshot_reader_next(reader, 2, types, rn_allocator_system(), row, &is_end);
      if (!rn_ok(status) || is_end) break;
      int64_t i = *RN_DATA(&row[0], int64_t);
      if (i < *out_first) *out_first = i;
      cr_assert_eq(rn_tstring_view(RN_DATA(&row[1], rn_tstring_t)).size, (size_t)(i % 40));
      ++*out_count;
      clear_row(row);
    }
    rn_snapshot_reader_close(reader);
  }
  if (rn_ok(status)) cr_assert_eq(*out_count, meta.element_count);
  rn_names_clear(&names);
  rn_strbuf_clear(&meta.text);
  return status;
}

Test(snapshot, round_trip) {
  for (int compression = 0; compression < 4; ++compression) {
    place_t place;
    int64_t first, count;
    open_place(&place);
    OK(save(&place.env, "1", 5, 1000, 3, (rn_compression_t)compression));
    OK(load(&place.env, (rn_compression_t)compression, &first, &count));
    cr_assert(first == 5 && count == 1000);
    rn_memory_fs_destroy(place.fs);
  }
}

// Files of a shard follow each other; what was written after a state was saved can be cut off.
Test(snapshot, parts) {
  place_t place;
  open_place(&place);
  for (int part = 0; part < 3; ++part) {
    rn_snapshot_writer_t* writer = NULL;
    rn_tensor_t row[2];
    OK(rn_snapshot_writer_open(&place.env, "r", part, RN_COMPRESSION_NONE, &writer));
    make_row(part, row);
    OK(rn_snapshot_writer_put(writer, 0, row, 2));
    clear_row(row);
    OK(rn_snapshot_writer_close(writer));
  }
  for (int parts = 3; parts > 0; --parts) {
    OK(rn_snapshot_cut(&place.env, "r", parts));
    rn_snapshot_reader_t* reader = NULL;
    OK(rn_snapshot_reader_open(&place.env, "r/00000000.shard", RN_COMPRESSION_NONE, 2, &reader));
    bool is_end = false;
    int count = 0;
    for (;; ++count) {
      rn_tensor_t row[2] = {0};
      OK(rn_snapshot_reader_next(reader, 2, types, rn_allocator_system(), row, &is_end));
      if (is_end) break;
      cr_assert_eq(*RN_DATA(&row[0], int64_t), count);
      clear_row(row);
    }
    cr_assert_eq(count, parts);
    rn_snapshot_reader_close(reader);
  }
  rn_memory_fs_destroy(place.fs);
}

// The |n|-th call and all after it fail, then the power goes: the old or the new elements are
// there, all of them.
Test(snapshot, crash_at_every_call, .timeout = 60) {
  static const int64_t torn[] = {0, 1, 100, INT64_MAX / 2};
  for (int t = 0; t < 4; ++t) {
    for (int64_t n = 1;; ++n) {
      place_t place;
      int64_t first, count;
      open_place(&place);
      OK(save(&place.env, "1", 1, 10, 2, RN_COMPRESSION_NONE));
      int64_t before = rn_memory_fs_calls(place.fs);
      rn_memory_fs_fail(place.fs, n, INT64_MAX / 2, EIO);
      rn_status_t status = save(&place.env, "2", 2, 10, 2, RN_COMPRESSION_NONE);
      int64_t calls = rn_memory_fs_calls(place.fs) - before;
      bool is_saved = rn_ok(status);
      if (!is_saved) cr_assert(strstr(rn_status_message(status), "dir"), "no path in the message");
      rn_status_free(status);
      rn_memory_fs_fail(place.fs, 0, 0, 0);
      rn_memory_fs_crash(place.fs, torn[t]);
      OK(load(&place.env, RN_COMPRESSION_NONE, &first, &count));
      cr_assert(count == 10 && (first == 2 || (first == 1 && !is_saved)), "call %lld: %lld",
                (long long)n, (long long)first);
      rn_memory_fs_destroy(place.fs);
      if (n > calls) break;
    }
  }
}

Test(snapshot, full_disk) {
  place_t place;
  int64_t first, count;
  open_place(&place);
  OK(save(&place.env, "1", 1, 10, 1, RN_COMPRESSION_NONE));
  rn_memory_fs_limit(place.fs, 4096);
  FAILS_CODE(save(&place.env, "2", 2, 10000, 1, RN_COMPRESSION_NONE), RN_CODE_RESOURCE_EXHAUSTED,
             "dir/2/00000000.shard/00000000.snapshot; No space left");
  OK(load(&place.env, RN_COMPRESSION_NONE, &first, &count));
  cr_assert_eq(first, 1);
  rn_memory_fs_destroy(place.fs);
}

// A byte that changed is found, or was of no matter; never is something else read.
Test(snapshot, flipped) {
  static const char path[] = "dir/1/00000000.shard/00000000.snapshot";
  for (int compression = 0; compression < 4; ++compression) {
    place_t place;
    int64_t first, count;
    open_place(&place);
    OK(save(&place.env, "1", 0, 45, 1, (rn_compression_t)compression));
    rn_strbuf_t bytes;
    rn_strbuf_init(&bytes, rn_allocator_system());
    OK(rn_fs_read(&place.env, path, SIZE_MAX, &bytes));
    for (size_t i = 0; i < bytes.size; i += 1 + i / 64) {
      bytes.data[i] ^= 0x10;
      OK(rn_fs_write(&place.env, path, rn_strbuf_view(&bytes)));
      rn_status_t status = load(&place.env, (rn_compression_t)compression, &first, &count);
      if (!rn_ok(status))
        FAILS_CODE(status, RN_CODE_DATA_LOSS, "snapshot");
      else
        cr_assert_eq(count, 45);
      bytes.data[i] ^= 0x10;
    }
    rn_strbuf_clear(&bytes);
    rn_memory_fs_destroy(place.fs);
  }
}

Test(snapshot, bad_metadata) {
  place_t place;
  int64_t first, count;
  open_place(&place);
  FAILS_CODE(load(&place.env, RN_COMPRESSION_NONE, &first, &count), RN_CODE_NOT_FOUND,
             "dir/snapshot.metadata");
  OK(rn_fs_make_directories(&place.env, "dir"));
  static const char* const texts[] = {"\x12\x05",  "\x12\x02..", "\x12\003a/b",
                                      "\x12\x01.", "x",          ""};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
    OK(rn_fs_write(&place.env, "dir/snapshot.metadata", rn_str(texts[i])));
    FAILS_CODE(load(&place.env, RN_COMPRESSION_NONE, &first, &count), RN_CODE_DATA_LOSS,
               "dir/snapshot.metadata");
  }
  rn_memory_fs_destroy(place.fs);
}

// Files of the first version.
static void save_run(const rn_env_t* env, int64_t files, int64_t file_size, int64_t count,
                     rn_compression_t compression) {
  rn_snapshot_run_options_t options = {
      .compression = compression, .files = files, .file_size = file_size};
  rn_snapshot_run_writer_t* writer = NULL;
  OK(rn_snapshot_run_writer_open(env, "run", &options, &writer));
  for (int64_t i = 0; i < count; ++i) {
    rn_tensor_t row[2];
    make_row(i, row);
    OK(rn_snapshot_run_writer_put(writer, row, 2));
    clear_row(row);
  }
  OK(rn_snapshot_run_writer_finish(writer));
  rn_snapshot_run_writer_drop(writer);
}

// Reads all elements; the sum of their numbers.
static rn_status_t load_run(const rn_env_t* env, rn_compression_t compression, int64_t version,
                            int64_t* out_count, int64_t* out_sum) {
  rn_snapshot_run_reader_t* reader = NULL;
  *out_count = *out_sum = 0;
  RN_RETURN_IF_ERROR(
      rn_snapshot_run_reader_open(env, "run", RN_STR(""), compression, version, &reader));
  rn_status_t status = RN_OK;
  for (bool is_end = false; rn_ok(status);) {
    rn_tensor_t row[2] = {0};
    status = rn_snapshot_run_reader_next(reader, 2, types, rn_allocator_system(), row, &is_end);
    if (!rn_ok(status) || is_end) break;
    ++*out_count;
    *out_sum += *RN_DATA(&row[0], int64_t);
    clear_row(row);
  }
  if (rn_ok(status)) cr_assert_eq(rn_snapshot_run_reader_position(reader), *out_count);
  rn_snapshot_run_reader_close(reader);
  return status;
}

Test(snapshot, runs) {
  static const rn_compression_t kinds[] = {RN_COMPRESSION_NONE, RN_COMPRESSION_GZIP,
                                           RN_COMPRESSION_SNAPPY};
  for (size_t k = 0; k < 3; ++k)
    for (int64_t files = 1; files <= 3; ++files) {
      place_t place;
      int64_t count, sum;
      rn_names_t names;
      open_place(&place);
      save_run(&place.env, files, 200, 100, kinds[k]);
      OK(load_run(&place.env, kinds[k], 1, &count, &sum));
      cr_assert(count == 100 && sum == 4950, "%lld %lld", (long long)count, (long long)sum);
      rn_names_init(&names, rn_allocator_system());
      OK(rn_fs_glob(&place.env, "run/*.snapshot", &names));
      cr_assert_gt(names.list.count, (size_t)files);
      rn_names_clear(&names);
      FAILS_CODE(load_run(&place.env, kinds[k], 3, &count, &sum), RN_CODE_INVALID_ARGUMENT,
                 "Snapshot reader version: 3 is not supported.");
      rn_memory_fs_destroy(place.fs);
    }
}

// Version 0 is as version 1, but for its compression.
Test(snapshot, oldest_version) {
  place_t place;
  int64_t count, sum;
  rn_strbuf_t bytes;
  rn_sink_t* output = NULL;
  open_place(&place);
  save_run(&place.env, 1, INT64_MAX, 45, RN_COMPRESSION_NONE);
  rn_strbuf_init(&bytes, rn_allocator_system());
  OK(rn_fs_read(&place.env, "run/00000000.snapshot", SIZE_MAX, &bytes));
  rn_sink_options_t options = {.compression = RN_COMPRESSION_SNAPPY};
  OK(rn_sink_open(&place.env, "run/00000000.snapshot", &options, &output));
  OK(rn_sink_put(output, rn_strbuf_view(&bytes)));
  OK(rn_sink_close(output));
  OK(load_run(&place.env, RN_COMPRESSION_SNAPPY, 0, &count, &sum));
  cr_assert(count == 45 && sum == 990);
  rn_strbuf_clear(&bytes);
  rn_memory_fs_destroy(place.fs);
}

// The format has no checksums, so a changed byte may go unnoticed, but it never costs more than an
// error. A file that ends early is always noticed.
Test(snapshot, damaged_runs) {
  static const char path[] = "run/00000000.snapshot";
  static const rn_compression_t kinds[] = {RN_COMPRESSION_NONE, RN_COMPRESSION_GZIP,
                                           RN_COMPRESSION_SNAPPY};
  for (size_t k = 0; k < 3; ++k) {
    place_t place;
    int64_t count, sum, whole = 45;
    rn_strbuf_t bytes;
    open_place(&place);
    save_run(&place.env, 1, INT64_MAX, whole, kinds[k]);
    rn_strbuf_init(&bytes, rn_allocator_system());
    OK(rn_fs_read(&place.env, path, SIZE_MAX, &bytes));
    for (size_t i = 0; i < bytes.size; i += 1 + i / 64) {
      bytes.data[i] ^= 0x10;
      OK(rn_fs_write(&place.env, path, rn_strbuf_view(&bytes)));
      rn_status_t status = load_run(&place.env, kinds[k], 1, &count, &sum);
      if (!rn_ok(status))
        cr_assert(rn_status_code(status) == RN_CODE_DATA_LOSS ||
                      rn_status_code(status) == RN_CODE_RESOURCE_EXHAUSTED,
                  "%s", rn_status_message(status));
      rn_status_free(status);
      bytes.data[i] ^= 0x10;
    }
    for (size_t size = 1; size < bytes.size; size += 1 + size / 32) {
      OK(rn_fs_write(&place.env, path, rn_str_n(bytes.data, size)));
      rn_status_t status = load_run(&place.env, kinds[k], 1, &count, &sum);
      cr_assert(rn_ok(status) ? count < whole : rn_status_code(status) == RN_CODE_DATA_LOSS);
      rn_status_free(status);
    }
    rn_strbuf_clear(&bytes);
    rn_memory_fs_destroy(place.fs);
  }
}

// What is folded unfolds to the same, and does not grow much.
Test(snapshot, snappy) {
  rn_strbuf_t folded;
  rn_strbuf_init(&folded, rn_allocator_system());
  static char data[300000], back[300000];
  for (int kind = 0; kind < 5; ++kind) {
    uint32_t seed = 7;
    for (size_t i = 0; i < sizeof data; ++i) {
      seed = seed * 1664525u + 1013904223u;
      uint32_t noise = seed >> 24;
      data[i] = (char)(kind == 0   ? 0
                       : kind == 1 ? noise
                       : kind == 2 ? i % 251
                       : kind == 3 ? (noise < 20 ? noise : i / 1000)
                                   : (size_t)(unsigned char)"abcdefgh"[noise & 7]);
    }
    static const size_t sizes[] = {0,  1,   3,   4,   5,     59,    60,    61,
                                   64, 255, 256, 257, 65535, 65536, 65537, 300000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
      folded.size = 0;
      rn_snappy_fold(rn_str_n(data, sizes[s]), &folded);
      OK(rn_strbuf_status(&folded));
      cr_assert_leq(folded.size, sizes[s] + sizes[s] / 1000 + 20);
      uint64_t size = 0;
      cr_assert(rn_snappy_size(rn_strbuf_view(&folded), &size) && size == sizes[s]);
      cr_assert(rn_snappy_unfold(rn_strbuf_view(&folded), back, sizes[s]), "%d %zu", kind,
                sizes[s]);
      cr_assert(memcmp(back, data, sizes[s]) == 0);
    }
    if (kind == 0 || kind == 2) cr_assert_lt(folded.size, 20000);
  }
  rn_strbuf_clear(&folded);
}
