// Event files on a failing disk: every call fails once, and the power fails after every call.
#include "io/event_file.h"

#include <errno.h>

#include "../support/memory_place.h"

enum { EVENTS = 12 };

// Writes events of growing steps and flushes after the eighth.
static rn_status_t write_log(const rn_env_t* env, uint64_t max_bytes) {
  rn_event_options_t options = {.max_queue = 2, .max_bytes = max_bytes};
  rn_event_writer_t* writer = NULL;
  RN_RETURN_IF_ERROR(rn_event_writer_open(env, RN_STR("/log"), &options, &writer));
  rn_status_t status = RN_OK;
  for (int i = 0; i < EVENTS && rn_ok(status); ++i) {
    status = rn_event_writer_put(writer, i + 1, RN_EVENT_SUMMARY, RN_STR("\n\0"));
    if (rn_ok(status) && i == 7) status = rn_event_writer_flush(writer);
  }
  return rn_status_join(status, rn_event_writer_close(writer));
}

// How many events are there, in order, before the first damage; -1 if one is out of order.
static int count_events(const rn_env_t* env) {
  rn_names_t names;
  rn_names_init(&names, rn_allocator_system());
  rn_status_free(rn_fs_glob(env, "/log/events.out.tfevents.*", &names));
  int64_t last = 0;
  int count = 0;
  for (size_t i = 0; i < names.list.count; ++i) {
    rn_record_reader_t* reader = NULL;
    rn_status_t status =
        rn_record_reader_open(env, names.list.items[i].data, RN_COMPRESSION_NONE, 0, &reader);
    for (bool is_end = false; rn_ok(status) && !is_end;) {
      rn_str_t record;
      rn_event_t event;
      status = rn_record_reader_next(reader, &record, &is_end);
      if (!rn_ok(status) || is_end) break;
      status = rn_event_parse(record, &event);
      if (!rn_ok(status) || event.kind == RN_EVENT_FILE_VERSION) continue;
      if (event.step != last + 1) count = -EVENTS * 2;
      last = event.step;
      ++count;
    }
    rn_status_free(status);
    rn_record_reader_close(reader);
  }
  rn_names_clear(&names);
  return count < 0 ? -1 : count;
}

Test(event_file, keeps_what_was_flushed) {
  place_t disk;
  open_place(&disk);
  rn_event_writer_t* writer = NULL;
  OK(rn_event_writer_open(&disk.env, RN_STR("/log"), NULL, &writer));
  for (int i = 0; i < 5; ++i)
    OK(rn_event_writer_put(writer, i + 1, RN_EVENT_SUMMARY, RN_STR("\n\0")));
  OK(rn_event_writer_flush(writer));
  OK(rn_event_writer_put(writer, 6, RN_EVENT_SUMMARY, RN_STR("\n\0")));
  rn_memory_fs_crash(disk.fs, 3);
  cr_expect(count_events(&disk.env) == 5, "%d events", count_events(&disk.env));
  rn_status_free(rn_event_writer_close(writer));
  rn_memory_fs_destroy(disk.fs);
}

Test(event_file, begins_another_file) {
  place_t disk;
  open_place(&disk);
  OK(write_log(&disk.env, 100));
  rn_names_t names;
  rn_names_init(&names, rn_allocator_system());
  OK(rn_fs_glob(&disk.env, "/log/events.out.tfevents.*", &names));
  cr_expect(names.list.count > 3, "%zu files", names.list.count);
  rn_names_clear(&names);
  cr_expect(count_events(&disk.env) == EVENTS);
  rn_memory_fs_destroy(disk.fs);
}

Test(event_file, says_when_a_call_fails) {
  for (int64_t n = 1;; ++n) {
    place_t disk;
    open_place(&disk);
    rn_memory_fs_fail(disk.fs, n, 1, n % 2 ? EIO : ENOSPC);
    rn_status_t status = write_log(&disk.env, n % 3 ? 0 : 150);
    bool is_over = rn_memory_fs_calls(disk.fs) < n;
    cr_expect(is_over || !rn_ok(status) || count_events(&disk.env) == EVENTS,
              "call %d failed and nobody said so", (int)n);
    cr_expect(count_events(&disk.env) >= 0, "call %d: events out of order", (int)n);
    rn_status_free(status);
    rn_memory_fs_destroy(disk.fs);
    if (is_over) break;
  }
}

Test(event_file, parses_only_events) {
  rn_event_t event;
  OK(rn_event_parse(RN_STR("\x10\x05*\x02\n\0"), &event));
  cr_expect(event.step == 5 && event.kind == RN_EVENT_SUMMARY && event.bytes.size == 2);
  rn_status_t status = rn_event_parse(RN_STR("\x10"), &event);
  cr_expect(rn_status_code(status) == RN_CODE_DATA_LOSS);
  rn_status_free(status);
}

static rn_status_t refuse_stat(void* self, const char* path, rn_file_stat_t* out) {
  (void)self, (void)out;
  return rn_status_of_errno(path, EACCES);
}
static rn_status_t refuse_path(void* self, const char* path) {
  (void)self;
  return rn_status_of_errno(path, EACCES);
}

// Where not even "/" can be read, looking for a folder that exists ends all the same.
Test(event_file, gives_up_where_nothing_can_be_read, .timeout = 10) {
  rn_env_t env = *rn_env_system();
  rn_fs_t fs = *env.fs;
  fs.stat = refuse_stat;
  fs.make_directory = refuse_path;
  env.fs = &fs;
  const rn_str_t folders[] = {RN_STR("/a/b/c"), RN_STR("/"),   RN_STR("//"),      RN_STR("a"),
                              RN_STR("a/b/"),   RN_STR("./a"), RN_STR("//a//b//")};
  for (size_t i = 0; i < sizeof folders / sizeof folders[0]; ++i) {
    rn_event_writer_t* writer = NULL;
    rn_status_t status = rn_event_writer_open(&env, folders[i], NULL, &writer);
    bool has_parts = !rn_str_is(folders[i], "/") && !rn_str_is(folders[i], "//");
    cr_expect_eq(rn_status_code(status), has_parts ? RN_CODE_PERMISSION_DENIED : RN_CODE_OK);
    rn_status_free(status);
    if (writer) rn_status_free(rn_event_writer_close(writer));
  }
}
