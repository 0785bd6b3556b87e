// Tables and bundles: round trips, slices, damaged and missing files, crashes at every call.
#include "io/bundle.h"

#include <errno.h>
#include <stdio.h>

#include "../support/memory_place.h"
#include "io/checkpoint.h"
#include "io/snappy.h"
#include "io/table.h"
#include "tensor/tstring.h"

static void expect_no_index(const rn_env_t* env, const char* prefix) {
  bool is_there = true;
  OK(rn_bundle_find_index(env, prefix, &is_there));
  cr_assert_not(is_there);
}

static rn_tensor_t floats(const int64_t* dims, int rank, float first) {
  rn_tensor_t tensor;
  OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, (rn_shape_t){rank, dims}, &tensor));
  for (int64_t i = 0; i < tensor.count; ++i) RN_DATA(&tensor, float)[i] = first + (float)i;
  return tensor;
}

static rn_tensor_t vector(int64_t count, float first) { return floats(&count, 1, first); }

// A checkpoint with two tensors that start with |first|.
static rn_status_t save(const rn_env_t* env, const char* prefix, float first) {
  rn_bundle_writer_t* writer = NULL;
  RN_RETURN_IF_ERROR(rn_bundle_writer_create(env, prefix, NULL, &writer));
  rn_tensor_t a = vector(7, first), b = vector(300, first + 100);
  rn_status_t status = rn_bundle_writer_add(writer, RN_STR("a"), &a);
  if (rn_ok(status)) status = rn_bundle_writer_add(writer, RN_STR("b"), &b);
  if (rn_ok(status)) status = rn_bundle_writer_finish(writer, NULL);
  rn_bundle_writer_destroy(writer);
  rn_tensor_clear(&a);
  rn_tensor_clear(&b);
  return status;
}

// What the checkpoint under |prefix| starts with, after everything in it was checked.
static rn_status_t first_of(const rn_env_t* env, const char* prefix, float* out) {
  rn_bundle_reader_t* reader = NULL;
  RN_RETURN_IF_ERROR(rn_bundle_reader_open(env, prefix, &reader));
  const rn_bundle_entry_t* entry = NULL;
  rn_tensor_t a = {0}, b = {0};
  int64_t bytes = 0;
  rn_status_t status = rn_bundle_verify(reader, NULL, &bytes);
  if (rn_ok(status)) status = rn_bundle_lookup(reader, RN_STR("a"), &entry);
  if (rn_ok(status)) status = rn_bundle_read_new(reader, entry, NULL, env->allocator, &a);
  if (rn_ok(status)) status = rn_bundle_lookup(reader, RN_STR("b"), &entry);
  if (rn_ok(status)) status = rn_bundle_read_new(reader, entry, NULL, env->allocator, &b);
  if (rn_ok(status)) {
    *out = RN_DATA(&a, float)[0];
    cr_assert_eq(RN_DATA(&b, float)[299], *out + 100 + 299);  // all of one time
  }
  rn_tensor_clear(&a);
  rn_tensor_clear(&b);
  rn_bundle_reader_close(reader);
  return status;
}

Test(table, keys_and_values_come_back) {
  place_t place;
  open_place(&place);
  rn_file_t* file = NULL;
  OK(rn_fs_open(&place.env, "t", RN_OPEN_WRITE, &file));
  rn_table_writer_t* writer = NULL;
  OK(rn_table_writer_create(place.env.allocator, file, &writer));
  char key[64], value[2000];
  memset(value, 'v', sizeof value);
  for (int i = 0; i < 3000; ++i) {  // several blocks
    int size = snprintf(key, sizeof key, "some/long/prefix/%06d", i * 3);
    OK(rn_table_writer_add(writer, rn_str_n(key, (size_t)size),
                           rn_str_n(value, (size_t)i % sizeof value)));
  }
  FAILS_CODE(rn_table_writer_add(writer, RN_STR("some"), RN_STR("")), RN_CODE_INVALID_ARGUMENT,
             "ascend");
  OK(rn_table_writer_finish(writer));
  rn_table_writer_destroy(writer);
  OK(file->vtable->close(file));
  rn_table_t* table = NULL;
  OK(rn_table_open(&place.env, "t", &table));
  rn_table_iter_t iter;
  rn_table_iter_init(&iter, table);
  OK(rn_table_iter_seek(&iter, RN_STR("")));
  for (int i = 0; i < 3000; ++i) {
    cr_assert(iter.is_valid);
    snprintf(key, sizeof key, "some/long/prefix/%06d", i * 3);
    cr_assert(rn_str_is(iter.key, key));
    cr_assert_eq(iter.value.size, (size_t)i % sizeof value);
    OK(rn_table_iter_next(&iter));
  }
  cr_assert_not(iter.is_valid);
  OK(rn_table_iter_seek(&iter, RN_STR("some/long/prefix/004000")));
  cr_assert(rn_str_is(iter.key, "some/long/prefix/004002"));
  OK(rn_table_iter_seek(&iter, RN_STR("zzz")));
  cr_assert_not(iter.is_valid);
  rn_table_iter_clear(&iter);
  rn_table_close(table);
  rn_memory_fs_destroy(place.fs);
}

Test(table, snappy_unfolds) {
  // "abcdabcdabcdX": a literal, a copy that overlaps what it writes, a literal.
  static const char folded[] =
      "\x0d\x0c"
      "abcd"
      "\x11\x04"
      "\x00"
      "X";
  char out[13];
  uint64_t size = 0;
  rn_str_t input = rn_str_n(folded, sizeof folded - 1);
  cr_assert(rn_snappy_size(input, &size));
  cr_assert_eq(size, 13);
  cr_assert(rn_snappy_unfold(input, out, 13));
  cr_assert_eq(memcmp(out, "abcdabcdabcdX", 13), 0);
  for (size_t cut = 0; cut < input.size; ++cut)
    cr_assert_not(rn_snappy_unfold(rn_str_n(folded, cut), out, 13));
  cr_assert_not(rn_snappy_unfold(RN_STR("\x04\x01\x09"), out, 4));  // from before the start
}

Test(bundle, all_types_come_back) {
  place_t place;
  open_place(&place);
  rn_bundle_writer_t* writer = NULL;
  OK(rn_bundle_writer_create(&place.env, "d/e/c", NULL, &writer));
  int64_t dims[2] = {3, 5};
  for (rn_dtype_t dtype = 1; dtype < RN_DTYPE_COUNT; ++dtype) {
    if (!rn_dtype_is_plain(dtype)) continue;
    rn_tensor_t tensor;
    OK(rn_tensor_create(place.env.allocator, dtype, (rn_shape_t){2, dims}, &tensor));
    for (size_t i = 0; i < rn_tensor_bytes(&tensor); ++i)
      ((uint8_t*)tensor.data)[i] = (uint8_t)(i * 7 + (size_t)dtype);
    OK(rn_bundle_writer_add(writer, rn_str(rn_dtype_name(dtype)), &tensor));
    rn_tensor_clear(&tensor);
  }
  rn_tensor_t text;
  OK(rn_tensor_create(place.env.allocator, RN_STRING, (rn_shape_t){1, dims}, &text));
  static const char* const words[] = {"", "one", "a string that is too long to lie inline"};
  for (int i = 0; i < 3; ++i)
    rn_tstring_assign(&RN_DATA(&text, rn_tstring_t)[i], words[i], strlen(words[i]));
  OK(rn_bundle_writer_add(writer, RN_STR("string"), &text));
  rn_tensor_clear(&text);
  OK(rn_bundle_writer_finish(writer, NULL));
  rn_bundle_writer_destroy(writer);

  rn_bundle_reader_t* reader = NULL;
  OK(rn_bundle_reader_open(&place.env, "d/e/c", &reader));
  cr_assert_eq(rn_bundle_count(reader), RN_DTYPE_COUNT - 3);
  for (size_t k = 0; k < rn_bundle_count(reader); ++k) {
    const rn_bundle_entry_t* entry = rn_bundle_entry(reader, k);
    rn_tensor_t tensor;
    OK(rn_bundle_read_new(reader, entry, NULL, place.env.allocator, &tensor));
    cr_assert(rn_str_is(entry->name, rn_dtype_name(tensor.dtype)));
    if (tensor.dtype == RN_STRING) {
      for (int i = 0; i < 3; ++i)
        cr_assert(rn_str_is(rn_tstring_view(&RN_DATA(&tensor, rn_tstring_t)[i]), words[i]));
    } else {
      for (size_t i = 0; i < rn_tensor_bytes(&tensor); ++i)
        cr_assert_eq(((uint8_t*)tensor.data)[i], (uint8_t)(i * 7 + (size_t)entry->dtype));
    }
    rn_tensor_clear(&tensor);
  }
  rn_bundle_reader_close(reader);
  rn_memory_fs_destroy(place.fs);
}

// [4, 6] in four slices that meet at (1, 2); every slice of it that there is, read back.
Test(bundle, slices_of_slices) {
  place_t place;
  open_place(&place);
  rn_arena_t arena;
  rn_arena_init(&arena, place.env.allocator);
  int64_t dims[2] = {4, 6};
  rn_shape_t shape = {2, dims}, part_shape;
  static const char* const parts[] = {"0,1:0,2", "0,1:2,4", "1,3:0,2", "1,3:2,4"};
  rn_bundle_writer_t* writer = NULL;
  OK(rn_bundle_writer_create(&place.env, "c", NULL, &writer));
  for (int k = 0; k < 4; ++k) {
    rn_slice_t slice;
    OK(rn_slice_parse(rn_str(parts[k]), &arena, &slice));
    OK(rn_slice_shape(slice, shape, &arena, &part_shape));
    rn_tensor_t tensor = floats(part_shape.dims, 2, 0);
    for (int64_t i = 0; i < tensor.count; ++i) {
      int64_t row = slice.starts[0] + i / slice.lengths[1];
      RN_DATA(&tensor, float)[i] = (float)(row * 6 + slice.starts[1] + i % slice.lengths[1]);
    }
    OK(rn_bundle_writer_add_slice(writer, RN_STR("v"), shape, slice, &tensor));
    rn_tensor_clear(&tensor);
  }
  OK(rn_bundle_writer_finish(writer, NULL));
  rn_bundle_writer_destroy(writer);
  rn_bundle_reader_t* reader = NULL;
  OK(rn_bundle_reader_open(&place.env, "c", &reader));
  cr_assert_eq(rn_bundle_count(reader), 1);
  const rn_bundle_entry_t* entry = rn_bundle_entry(reader, 0);
  cr_assert_eq(entry->slice_count, 4);
  for (int64_t at = 0; at < 4 * 6 * 4 * 6; ++at) {
    int64_t starts[2] = {at % 4, at / 4 % 6};
    int64_t lengths[2] = {at / 24 % 4 + 1, at / 96 + 1};
    rn_slice_t wanted = {2, starts, lengths};
    if (starts[0] + lengths[0] > 4 || starts[1] + lengths[1] > 6) continue;
    rn_tensor_t tensor = floats(lengths, 2, -1);
    OK(rn_bundle_check(reader, entry, &wanted));
    OK(rn_bundle_read(reader, entry, &wanted, NULL, &tensor));
    for (int64_t i = 0; i < tensor.count; ++i) {
      int64_t row = starts[0] + i / lengths[1], column = starts[1] + i % lengths[1];
      cr_assert_eq(RN_DATA(&tensor, float)[i], (float)(row * 6 + column));
    }
    rn_tensor_clear(&tensor);
  }
  rn_bundle_reader_close(reader);
  rn_arena_clear(&arena);
  rn_memory_fs_destroy(place.fs);
}

Test(bundle, what_is_wrong_is_said) {
  place_t place;
  open_place(&place);
  rn_bundle_reader_t* reader = NULL;
  FAILS_CODE(rn_bundle_reader_open(&place.env, "c", &reader), RN_CODE_NOT_FOUND, "c.index");
  OK(save(&place.env, "c", 1));
  const rn_bundle_entry_t* entry = NULL;
  OK(rn_bundle_reader_open(&place.env, "c", &reader));
  FAILS_CODE(rn_bundle_lookup(reader, RN_STR("zz"), &entry), RN_CODE_NOT_FOUND,
             "Key zz not found in checkpoint c");
  rn_bundle_reader_close(reader);
  rn_bundle_writer_t* writer = NULL;
  OK(rn_bundle_writer_create(&place.env, "e", NULL, &writer));
  rn_tensor_t tensor = vector(2, 0);
  OK(rn_bundle_writer_add(writer, RN_STR("a"), &tensor));
  FAILS_CODE(rn_bundle_writer_add(writer, RN_STR("a"), &tensor), RN_CODE_INVALID_ARGUMENT,
             "Adding duplicate key: a");
  FAILS_CODE(rn_bundle_writer_add(writer, RN_STR(""), &tensor), RN_CODE_INVALID_ARGUMENT, "name");
  rn_tensor_clear(&tensor);
  rn_bundle_writer_destroy(writer);
  expect_no_index(&place.env, "e");
  rn_memory_fs_destroy(place.fs);
}

// Every byte of either file changed, and every length of it: an error or the same values, never
// other ones.
Test(bundle, damage_is_noticed, .timeout = 60) {
  place_t place;
  open_place(&place);
  OK(save(&place.env, "c", 5));
  static const char* const files[] = {"c.index", "c.data-00000-of-00001"};
  for (int f = 0; f < 2; ++f) {
    rn_strbuf_t whole;
    rn_strbuf_init(&whole, place.env.allocator);
    OK(rn_fs_read(&place.env, files[f], SIZE_MAX, &whole));
    for (size_t i = 0; i < whole.size; ++i) {
      for (int cut = 0; cut < 2; ++cut) {
        char old = whole.data[i];
        if (!cut) whole.data[i] ^= 0x10;
        OK(rn_fs_write(&place.env, files[f], rn_str_n(whole.data, cut ? i : whole.size)));
        whole.data[i] = old;
        float first = 0;
        rn_status_t status = first_of(&place.env, "c", &first);
        cr_assert(!rn_ok(status) || first == 5);
        bool is_padding = f == 0 && !cut && rn_ok(status);  // of the footer, or an unread block
        cr_assert(!rn_ok(status) || is_padding, "%s, byte %zu", files[f], i);
        rn_status_free(status);
      }
    }
    OK(rn_fs_write(&place.env, files[f], rn_strbuf_view(&whole)));
    rn_strbuf_clear(&whole);
  }
  rn_memory_fs_destroy(place.fs);
}

// The |n|-th call and all after it fail and then the power goes: the old or the new checkpoint is
// there, whole. The same where only the |n|-th call fails and nothing goes: then, if an error came
// back, the old one is as it was and no file is left over. How many calls a save takes.
static int64_t sweep_save(int64_t torn, bool crashes, int error) {
  for (int64_t n = 1;; ++n) {
    place_t place;
    open_place(&place);
    OK(save(&place.env, "dir/c", 1));
    OK(save(&place.env, "dir/c", 2));  // over the first, so that numbers of data files change
    int64_t before = rn_memory_fs_calls(place.fs);
    rn_memory_fs_fail(place.fs, n, crashes ? INT64_MAX / 2 : 1, error);
    rn_status_t status = save(&place.env, "dir/c", 3);
    int64_t calls = rn_memory_fs_calls(place.fs) - before;
    bool is_saved = rn_ok(status);
    if (!is_saved) cr_assert(strstr(rn_status_message(status), "dir"), "no path in the message");
    rn_status_free(status);
    rn_memory_fs_fail(place.fs, 0, 0, 0);
    if (crashes) rn_memory_fs_crash(place.fs, torn);
    float first = 0;
    OK(first_of(&place.env, "dir/c", &first));
    cr_assert(first == 2 || first == 3, "after call %lld: %f", (long long)n, first);
    if (is_saved) cr_assert_eq(first, 3);
    if (!crashes) {
      rn_names_t names;
      rn_names_init(&names, place.env.allocator);
      OK(place.env.fs->list(place.env.fs_self, "dir", &names));
      cr_assert(is_saved || names.list.count <= 3, "call %lld leaves files", (long long)n);
      rn_names_clear(&names);
    }
    // And it can be saved again.
    OK(save(&place.env, "dir/c", 4));
    OK(first_of(&place.env, "dir/c", &first));
    cr_assert_eq(first, 4);
    rn_memory_fs_destroy(place.fs);
    if (n > calls) return n;
  }
}

Test(bundle, crash_at_every_call, .timeout = 60) {
  int64_t calls = sweep_save(0, true, EIO);
  cr_assert_gt(calls, 12);
  sweep_save(1, true, EIO);
  sweep_save(100, true, EIO);
  sweep_save(INT64_MAX / 2, true, EIO);
}

Test(bundle, failure_of_every_call, .timeout = 60) {
  sweep_save(0, false, EIO);
  sweep_save(0, false, ENOSPC);
}

Test(bundle, full_disk) {
  place_t place;
  open_place(&place);
  OK(save(&place.env, "c", 1));
  for (int64_t room = 0; room < 3000; room += 97) {
    rn_memory_fs_limit(place.fs, 1600 + room);
    rn_status_t status = save(&place.env, "c", 2);
    float first = 0;
    OK(first_of(&place.env, "c", &first));
    cr_assert_eq(first, rn_ok(status) ? 2 : 1);
    if (!rn_ok(status)) {
      cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
      cr_assert(strstr(rn_status_message(status), "No space left"));
    } else {
      rn_memory_fs_limit(place.fs, INT64_MAX);
      OK(save(&place.env, "c", 1));
    }
    rn_status_free(status);
  }
  rn_memory_fs_destroy(place.fs);
}

// The same for several made one, over an older one.
Test(bundle, merge_crashes_at_every_call, .timeout = 60) {
  for (int64_t n = 1, calls = 1; n <= calls + 1; ++n) {
    place_t place;
    open_place(&place);
    OK(save(&place.env, "c", 1));
    OK(save(&place.env, "part/0", 2));
    rn_bundle_writer_t* writer = NULL;
    OK(rn_bundle_writer_create(&place.env, "part/1", NULL, &writer));
    rn_tensor_t tensor = vector(3, 9);
    OK(rn_bundle_writer_add(writer, RN_STR("x"), &tensor));
    rn_tensor_clear(&tensor);
    OK(rn_bundle_writer_finish(writer, NULL));
    rn_bundle_writer_destroy(writer);
    int64_t before = rn_memory_fs_calls(place.fs);
    rn_memory_fs_fail(place.fs, n, INT64_MAX / 2, EIO);
    rn_str_t parts[2] = {RN_STR("part/0"), RN_STR("part/1")};
    rn_status_t status = rn_bundle_merge(&place.env, parts, 2, false, "c");
    calls = rn_memory_fs_calls(place.fs) - before;
    bool is_merged = rn_ok(status);
    rn_status_free(status);
    rn_memory_fs_crash(place.fs, 0);
    float first = 0;
    OK(first_of(&place.env, "c", &first));
    cr_assert(first == 2 || (first == 1 && !is_merged), "after call %lld", (long long)n);
    rn_memory_fs_destroy(place.fs);
  }
}

Test(bundle, merge_refuses_what_is_twice) {
  place_t place;
  open_place(&place);
  OK(save(&place.env, "p0", 1));
  OK(save(&place.env, "p1", 2));
  rn_str_t parts[2] = {RN_STR("p0"), RN_STR("p1")};
  FAILS_CODE(rn_bundle_merge(&place.env, parts, 2, false, "m"), RN_CODE_INVALID_ARGUMENT,
             "Duplicate tensor keyed by a encountered, when merging prefix: p1");
  float first = 0;
  OK(first_of(&place.env, "p0", &first));  // nothing was moved
  parts[1] = RN_STR("none");
  FAILS_CODE(rn_bundle_merge(&place.env, parts, 2, false, "m"), RN_CODE_INVALID_ARGUMENT,
             "allow_missing_files was set to false and none did not exist.");
  OK(rn_bundle_merge(&place.env, parts, 2, true, "m"));
  OK(first_of(&place.env, "m", &first));
  cr_assert_eq(first, 1);
  expect_no_index(&place.env, "p0");
  OK(rn_bundle_remove(&place.env, "m"));
  rn_names_t names;
  rn_names_init(&names, place.env.allocator);
  OK(place.env.fs->list(place.env.fs_self, ".", &names));
  cr_assert_eq(names.list.count, 2);  // what was refused
  rn_names_clear(&names);
  rn_memory_fs_destroy(place.fs);
}

// Also where the index cannot be read any more, and nothing of neighbours with longer names.
Test(bundle, removal_takes_all_data_files) {
  place_t place;
  open_place(&place);
  OK(save(&place.env, "d/m-1", 1));
  OK(save(&place.env, "d/m-1", 2));
  OK(save(&place.env, "d/m-10", 3));
  OK(rn_fs_write(&place.env, "d/m-1.index", RN_STR("damaged")));
  OK(rn_bundle_remove(&place.env, "d/m-1"));
  OK(rn_bundle_remove(&place.env, "d/m-1"));
  rn_names_t names;
  rn_names_init(&names, place.env.allocator);
  OK(place.env.fs->list(place.env.fs_self, "d", &names));
  cr_assert_eq(names.list.count, 2);
  float first = 0;
  OK(first_of(&place.env, "d/m-10", &first));
  cr_assert_eq(first, 3);
  rn_names_clear(&names);
  rn_memory_fs_destroy(place.fs);
}

Test(bundle, large_tensors_by_several_threads) {
  place_t place;
  open_place(&place);
  rn_pool_t* pool = NULL;
  OK(rn_pool_create(place.env.allocator, 3, &pool));
  rn_tensor_t tensor = vector((9 << 20) / 4 + 5, 1), back;
  rn_bundle_writer_t* writer = NULL;
  OK(rn_bundle_writer_create(&place.env, "c", pool, &writer));
  OK(rn_bundle_writer_add(writer, RN_STR("a"), &tensor));
  OK(rn_bundle_writer_finish(writer, NULL));
  rn_bundle_writer_destroy(writer);
  rn_bundle_reader_t* reader = NULL;
  OK(rn_bundle_reader_open(&place.env, "c", &reader));
  const rn_bundle_entry_t* entry = rn_bundle_entry(reader, 0);
  OK(rn_bundle_read_new(reader, entry, pool, place.env.allocator, &back));
  cr_assert_eq(memcmp(back.data, tensor.data, rn_tensor_bytes(&tensor)), 0);
  rn_tensor_clear(&back);
  rn_tensor_clear(&tensor);
  rn_bundle_reader_close(reader);
  rn_pool_destroy(pool);
  rn_memory_fs_destroy(place.fs);
}

Test(v1, comes_back_in_slices_and_files) {
  place_t place;
  open_place(&place);
  rn_arena_t arena;
  rn_arena_init(&arena, place.env.allocator);
  int64_t dims[2] = {4, 3}, half[2] = {2, 3};
  for (int k = 0; k < 2; ++k) {
    rn_v1_writer_t* writer = NULL;
    rn_slice_t slice;
    OK(rn_v1_writer_create(&place.env, k ? "old-1" : "old-0", &writer));
    rn_tensor_t tensor = floats(half, 2, (float)k * 6);
    OK(rn_slice_parse(rn_str(k ? "2,2:-" : "0,2:-"), &arena, &slice));
    OK(rn_v1_writer_add(writer, RN_STR("v"), (rn_shape_t){2, dims}, slice, &tensor));
    rn_tensor_clear(&tensor);
    OK(rn_v1_writer_finish(writer));
    rn_v1_writer_destroy(writer);
  }
  rn_checkpoint_t* checkpoint = NULL;
  rn_tensor_t tensor;
  OK(rn_checkpoint_open(&place.env, "old-?", &checkpoint));
  cr_assert_eq(rn_checkpoint_count(checkpoint), 1);
  OK(rn_checkpoint_read(checkpoint, RN_STR("v"), NULL, place.env.allocator, &tensor));
  for (int i = 0; i < 12; ++i) cr_assert_eq(RN_DATA(&tensor, float)[i], (float)i);
  rn_tensor_clear(&tensor);
  rn_checkpoint_close(checkpoint);
  OK(rn_checkpoint_open(&place.env, "old-1", &checkpoint));
  FAILS_CODE(rn_checkpoint_read(checkpoint, RN_STR("v"), NULL, place.env.allocator, &tensor),
             RN_CODE_INVALID_ARGUMENT, "sufficient slices");
  rn_checkpoint_close(checkpoint);
  FAILS_CODE(rn_checkpoint_open(&place.env, "older", &checkpoint), RN_CODE_NOT_FOUND,
             "Failed to find any matching files for older");
  rn_arena_clear(&arena);
  rn_memory_fs_destroy(place.fs);
}
