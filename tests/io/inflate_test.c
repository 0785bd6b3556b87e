// Compressed bytes that expand to far more than their size: the expansion is limited, in memory and
// in record files.
#include "io/inflate.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <zlib.h>

#include "../support/memory_place.h"
#include "base/crc32c.h"
#include "io/record.h"

#define MIB ((size_t)1 << 20)

// |size| zeros, compressed as gzip does, behind |head|. The caller clears |*out|.
static void pack_zeros(rn_str_t head, size_t size, rn_strbuf_t* out) {
  static char zeros[1 << 16];
  unsigned char piece[1 << 14];
  z_stream z = {0};
  rn_strbuf_init(out, rn_allocator_system());
  cr_assert_eq(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  int result = Z_OK;
  z.next_in = (unsigned char*)head.data;
  z.avail_in = (unsigned)head.size;
  while (result != Z_STREAM_END) {
    if (!z.avail_in && size) {
      z.avail_in = (unsigned)(size < sizeof zeros ? size : sizeof zeros);
      z.next_in = (unsigned char*)zeros;
      size -= z.avail_in;
    }
    z.next_out = piece;
    z.avail_out = sizeof piece;
    result = deflate(&z, size || z.avail_in ? Z_NO_FLUSH : Z_FINISH);
    cr_assert(result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR);
    rn_strbuf_append_n(out, piece, sizeof piece - z.avail_out);
  }
  deflateEnd(&z);
  cr_assert(!out->failed);
}

static rn_code_t inflated(rn_str_t packed, size_t* out_size, int64_t* out_peak) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  rn_strbuf_t out;
  rn_strbuf_init(&out, rn_allocator_counting(&counting));
  rn_status_t status =
      rn_inflate(packed, RN_COMPRESSION_GZIP, rn_unpacked_limit(packed.size), &out);
  rn_code_t code = rn_status_code(status);
  *out_size = out.size;
  *out_peak = counting.peak_bytes;
  rn_status_free(status);
  rn_strbuf_clear(&out);
  return code;
}

Test(inflate, has_limits) {
  unsetenv("RUNNEL_MAX_UNPACKED");
  cr_expect_eq(rn_unpacked_limit(0), 64 * MIB);
  cr_expect_eq(rn_unpacked_limit(MIB / 8), 64 * MIB);
  cr_expect_eq(rn_unpacked_limit(MIB), 256 * MIB);
  cr_expect_eq(rn_unpacked_limit(MIB * 4), 1024 * MIB);
  cr_expect_eq(rn_unpacked_limit(UINT64_MAX), 1024 * MIB);
  setenv("RUNNEL_MAX_UNPACKED", "12345", 1);
  cr_expect_eq(rn_unpacked_limit(UINT64_MAX), 12345);
  setenv("RUNNEL_MAX_UNPACKED", "much", 1);
  cr_expect_eq(rn_unpacked_limit(0), 64 * MIB);
}

Test(inflate, a_bomb_does_not_go_off) {
  rn_strbuf_t small, bomb;
  size_t size = 0;
  int64_t peak = 0;
  unsetenv("RUNNEL_MAX_UNPACKED");
  pack_zeros(RN_STR(""), 60 * MIB, &small);
  cr_expect_eq(inflated(rn_strbuf_view(&small), &size, &peak), RN_CODE_OK);
  cr_expect_eq(size, 60 * MIB);
  pack_zeros(RN_STR(""), 200 * MIB, &bomb);
  cr_expect_lt(bomb.size, MIB / 4);
  cr_expect_eq(inflated(rn_strbuf_view(&bomb), &size, &peak), RN_CODE_RESOURCE_EXHAUSTED);
  cr_expect_leq(size, 64 * MIB);
  cr_expect_leq(peak, (int64_t)(200 * MIB));  // twice 64, and a copy as it grows
  setenv("RUNNEL_MAX_UNPACKED", "1000000000", 1);
  cr_expect_eq(inflated(rn_strbuf_view(&bomb), &size, &peak), RN_CODE_OK);
  cr_expect_eq(size, 200 * MIB);
  rn_strbuf_clear(&small);
  rn_strbuf_clear(&bomb);
}

// A record that claims 200 MiB, in a file of a few hundred kilobytes.
Test(inflate, a_record_does_not_either) {
  place_t disk;
  open_place(&disk);
  unsetenv("RUNNEL_MAX_UNPACKED");
  const uint64_t length = 200 * MIB;
  char head[12];
  for (int i = 0; i < 8; ++i) head[i] = (char)(length >> (8 * i));
  uint32_t sum = rn_crc32c_mask(rn_crc32c(0, head, 8));
  for (int i = 0; i < 4; ++i) head[8 + i] = (char)(sum >> (8 * i));
  rn_strbuf_t packed;
  pack_zeros(rn_str_n(head, 12), (size_t)length + 4, &packed);
  rn_status_t status = rn_fs_write(&disk.env, "/records", rn_strbuf_view(&packed));
  OK(status);
  rn_record_reader_t* reader = NULL;
  status = rn_record_reader_open(&disk.env, "/records", RN_COMPRESSION_GZIP, 0, &reader);
  OK(status);
  rn_str_t record;
  bool is_end = false;
  status = rn_record_reader_next(reader, &record, &is_end);
  cr_expect_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED, "%s", rn_status_message(status));
  rn_status_free(status);
  rn_record_reader_close(reader);
  rn_strbuf_clear(&packed);
  rn_memory_fs_destroy(disk.fs);
}
