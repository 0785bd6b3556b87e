// TFRecord files: written and read with every compression; truncated and damaged files.
#include "io/record.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "../support/memory_place.h"
#include "base/crc32c.h"

static place_t place;

static void set_up(void) { open_counted_place(&place); }

static void tear_down(void) { close_counted_place(&place); }

TestSuite(record, .init = set_up, .fini = tear_down);

static void fill(char* data, size_t size, uint32_t seed) {
  for (size_t i = 0; i < size; ++i) data[i] = (char)((seed = seed * 1664525u + 1013904223u) >> 24);
}

static const size_t sizes[] = {0, 1, 7, 60, 1000, 4095, 4096, 4097, 100000, 3, 0};
#define COUNT (sizeof sizes / sizeof *sizes)

static void write_all(const char* path, const rn_sink_options_t* options) {
  static char data[100000];
  rn_record_writer_t* writer;
  uint64_t offset = 0;
  OK(rn_record_writer_open(&place.env, path, options, &writer));
  for (size_t i = 0; i < COUNT; ++i) {
    fill(data, sizes[i], (uint32_t)i);
    OK(rn_record_writer_write(writer, rn_str_n(data, sizes[i])));
    offset += 16 + sizes[i];
    cr_assert_eq(rn_record_writer_offset(writer), offset);
    if (i == 4) OK(rn_record_writer_flush(writer, true));
  }
  OK(rn_record_writer_close(writer));
}

static void expect_next(rn_record_reader_t* reader, size_t i) {
  static char data[100000];
  rn_str_t record;
  bool is_end = true;
  fill(data, sizes[i], (uint32_t)i);
  OK(rn_record_reader_next(reader, &record, &is_end));
  cr_assert(!is_end);
  cr_assert_eq(record.size, sizes[i]);
  cr_assert(record.size == 0 || memcmp(record.data, data, record.size) == 0);
}

static void expect_end(rn_record_reader_t* reader) {
  rn_str_t record;
  bool is_end = false;
  for (int i = 0; i < 2; ++i) {
    OK(rn_record_reader_next(reader, &record, &is_end));
    cr_assert(is_end);
  }
}

Test(record, round_trip) {
  static const size_t buffers[] = {0, 1, 13, 4096};
  for (int compression = 0; compression < 4; ++compression) {
    for (int b = 0; b < 4; ++b) {
      rn_sink_options_t options = {.compression = (rn_compression_t)compression,
                                   .buffer_size = buffers[b]};
      rn_record_reader_t* reader;
      uint64_t offsets[COUNT];
      int64_t skipped;
      write_all("/r", &options);
      OK(rn_record_reader_open(&place.env, "/r", options.compression, buffers[b], &reader));
      for (size_t i = 0; i < COUNT; ++i) {
        offsets[i] = rn_record_reader_offset(reader);
        expect_next(reader, i);
      }
      expect_end(reader);
      for (size_t i = COUNT; i-- > 0;) {
        OK(rn_record_reader_seek(reader, offsets[i]));
        expect_next(reader, i);
      }
      OK(rn_record_reader_skip(reader, 5, &skipped));
      cr_assert_eq(skipped, 5);
      expect_next(reader, 6);
      OK(rn_record_reader_skip(reader, 100, &skipped));
      cr_assert_eq(skipped, (int64_t)COUNT - 7);
      expect_end(reader);
      rn_record_reader_close(reader);
    }
  }
}

Test(record, appended) {
  for (int compression = 0; compression < 4; ++compression) {
    if (compression == RN_COMPRESSION_ZLIB) continue;
    rn_sink_options_t options = {.compression = (rn_compression_t)compression};
    rn_record_reader_t* reader;
    write_all("/a", &options);
    options.appends = true;
    write_all("/a", &options);
    OK(rn_record_reader_open(&place.env, "/a", options.compression, 0, &reader));
    for (size_t i = 0; i < 2 * COUNT; ++i) expect_next(reader, i % COUNT);
    expect_end(reader);
    rn_record_reader_close(reader);
  }
}

// Reads to the end or the first error, which must name the file.
static rn_code_t read_all(const char* path, rn_compression_t compression, char* message,
                          int64_t* out_count) {
  rn_record_reader_t* reader;
  rn_str_t record;
  bool is_end = false;
  OK(rn_record_reader_open(&place.env, path, compression, 512, &reader));
  rn_status_t status = RN_OK;
  for (*out_count = 0; rn_ok(status) && !is_end; *out_count += rn_ok(status) && !is_end)
    status = rn_record_reader_next(reader, &record, &is_end);
  rn_code_t code = rn_status_code(status);
  snprintf(message, 200, "%s", rn_status_message(status));
  if (!rn_ok(status)) cr_assert_not_null(strstr(message, path), "%s", message);
  rn_status_free(status);
  rn_record_reader_close(reader);
  return code;
}

static rn_strbuf_t contents(const char* path) {
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, rn_allocator_system());
  OK(rn_fs_read(&place.env, path, SIZE_MAX, &bytes));
  return bytes;
}

// Cut anywhere but between records, or in any compressed stream, is an error; nothing is made up.
Test(record, cut) {
  for (int compression = 0; compression < 4; ++compression) {
    rn_sink_options_t options = {.compression = (rn_compression_t)compression};
    char message[200];
    int64_t count;
    write_all("/c", &options);
    rn_strbuf_t bytes = contents("/c");
    for (size_t size = 0; size < bytes.size; size += size < 1300 ? 1 : 971) {
      OK(rn_fs_write(&place.env, "/cut", rn_str_n(bytes.data, size)));
      rn_code_t code = read_all("/cut", options.compression, message, &count);
      bool is_whole = size == 0;
      size_t end = 0;
      for (size_t i = 0; compression == 0 && i < COUNT; ++i)
        is_whole |= (end += 16 + sizes[i]) == size;
      // Blocks of snappy end with the flush, between records.
      if (compression == RN_COMPRESSION_SNAPPY)
        is_whole |= size == 4 + ((size_t)(uint8_t)bytes.data[2] << 8 | (uint8_t)bytes.data[3]);
      cr_assert_eq(code, is_whole ? RN_CODE_OK : RN_CODE_DATA_LOSS, "%d %zu: %s", compression, size,
                   message);
    }
    rn_strbuf_clear(&bytes);
  }
}

Test(record, flipped) {
  char message[200];
  int64_t count;
  write_all("/f", NULL);
  rn_strbuf_t bytes = contents("/f");
  for (size_t at = 0; at < bytes.size; at += at < 1300 ? 1 : 971) {
    bytes.data[at] ^= 0x10;
    OK(rn_fs_write(&place.env, "/flipped", rn_strbuf_view(&bytes)));
    bytes.data[at] ^= 0x10;
    cr_assert_eq(read_all("/flipped", RN_COMPRESSION_NONE, message, &count), RN_CODE_DATA_LOSS);
  }
  bytes.data[16 + 17 + 12 + 2] ^= 1;
  OK(rn_fs_write(&place.env, "/one", rn_strbuf_view(&bytes)));
  cr_assert_eq(read_all("/one", RN_COMPRESSION_NONE, message, &count), RN_CODE_DATA_LOSS);
  cr_assert_str_eq(message, "corrupted record at 45; /one");
  cr_assert_eq(count, 2);
  OK(rn_fs_write(&place.env, "/text", RN_STR("a text, not records")));
  read_all("/text", RN_COMPRESSION_NONE, message, &count);
  cr_assert_str_eq(message, "corrupted record at 0 (Is this even a TFRecord file?); /text");
  rn_strbuf_clear(&bytes);
}

// A length of 2^40 with a right checksum costs no more memory than the file has bytes.
Test(record, lying_length) {
  char bytes[22] = {[5] = 1}, message[200];
  int64_t count;
  uint32_t masked = rn_crc32c_mask(rn_crc32c(0, bytes, 8));
  memcpy(bytes + 8, &masked, 4);
  OK(rn_fs_write(&place.env, "/l", rn_str_n(bytes, sizeof bytes)));
  place.counting.peak_bytes = 0;
  cr_assert_eq(read_all("/l", RN_COMPRESSION_NONE, message, &count), RN_CODE_DATA_LOSS);
  cr_assert_lt(place.counting.peak_bytes, 4096);
}

Test(record, disk_that_fails) {
  rn_record_writer_t* writer;
  static char data[5000];
  rn_memory_fs_limit(place.fs, 10000);
  OK(rn_record_writer_open(&place.env, "/full", &(rn_sink_options_t){.buffer_size = 100}, &writer));
  OK(rn_record_writer_write(writer, rn_str_n(data, sizeof data)));
  rn_status_t status = rn_record_writer_write(writer, rn_str_n(data, sizeof data));
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  cr_assert_not_null(strstr(rn_status_message(status), "/full"));
  rn_status_free(status);
  status = rn_record_writer_flush(writer, false);
  cr_assert_eq(rn_status_code(status), RN_CODE_FAILED_PRECONDITION);
  rn_status_free(status);
  rn_status_free(rn_record_writer_close(writer));
  rn_record_reader_t* reader;
  status = rn_record_reader_open(&place.env, "/none", RN_COMPRESSION_NONE, 0, &reader);
  cr_assert_eq(rn_status_code(status), RN_CODE_NOT_FOUND);
  rn_status_free(status);
}

// Memory that runs out at any moment is an error and leaves nothing behind.
Test(record, no_memory) {
  write_all("/m", NULL);
  for (int64_t at = 1; at < 40; ++at) {
    rn_record_reader_t* reader;
    rn_str_t record;
    bool is_end = false;
    place.counting.allocations = 0;
    place.counting.fail_at = at;
    rn_status_t status = rn_record_reader_open(&place.env, "/m", RN_COMPRESSION_NONE, 64, &reader);
    while (rn_ok(status) && !is_end) status = rn_record_reader_next(reader, &record, &is_end);
    if (!rn_ok(status)) cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
    rn_status_free(status);
    rn_record_reader_close(reader);
  }
  place.counting.fail_at = 0;
}

Test(record, lines) {
  static const char text[] = "one\r\ntwo\n\nlast line, with no end";
  static const char* lines[] = {"one", "two", "", "last line, with no end"};
  OK(rn_fs_write(&place.env, "/t", rn_str(text)));
  for (size_t buffer = 1; buffer < 40; ++buffer) {
    rn_input_t* input;
    rn_str_t line;
    bool is_end;
    OK(rn_input_open(&place.env, "/t", RN_COMPRESSION_NONE, buffer, &input));
    for (int i = 0; i < 4; ++i) {
      OK(rn_input_line(input, true, &line, &is_end));
      cr_assert(!is_end && rn_str_is(line, lines[i]), "%.*s", RN_STR_ARGS(line));
    }
    OK(rn_input_line(input, true, &line, &is_end));
    cr_assert(is_end);
    rn_input_close(input);
  }
}

// A pipe has no size and no way back.
Test(record, pipe) {
  rn_env_t system = *rn_env_system();
  rn_env_t before = place.env;
  char path[64];
  int ends[2];
  cr_assert_eq(pipe(ends), 0);
  place.env = system;
  snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
  rn_input_t* input;
  rn_str_t view;
  OK(rn_input_open(&place.env, path, RN_COMPRESSION_NONE, 4, &input));
  cr_assert_eq(write(ends[1], "0123456789", 10), 10);
  close(ends[1]);
  OK(rn_input_peek(input, 6, &view));
  cr_assert(view.size >= 6 && memcmp(view.data, "012345", 6) == 0);
  rn_input_take(input, 6);
  rn_status_t status = rn_input_seek(input, 2);
  cr_assert_eq(rn_status_code(status), RN_CODE_INVALID_ARGUMENT);
  rn_status_free(status);
  OK(rn_input_seek(input, 8));
  OK(rn_input_peek(input, 100, &view));
  cr_assert(view.size == 2 && memcmp(view.data, "89", 2) == 0);
  rn_input_close(input);
  close(ends[0]);
  place.env = before;
}
