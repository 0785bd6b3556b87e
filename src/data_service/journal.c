// The dispatcher's journal: see journal.h.
#include "data_service/journal.h"

#include <stdio.h>

#include "io/record.h"
#include "wire/decode.h"
#include "wire/encode.h"

#define FOLDER "tf_data_dispatcher_journal"

struct rn_ds_journal_t {
  rn_allocator_t allocator;
  rn_record_writer_t* writer;
  rn_strbuf_t bytes;  // of one record, kept for its memory
};

static rn_status_t apply_record(rn_ds_state_t* state, rn_str_t record) {
  rn_arena_t arena;
  rn_pb_data_Update_t* update = NULL;
  rn_arena_init(&arena, state->allocator);
  rn_status_t status = RN_PB_DECODE(data_Update, record, NULL, &arena, &update);
  if (rn_ok(status)) status = rn_ds_apply(state, update);
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t replay(const rn_env_t* env, const char* path, rn_ds_state_t* state) {
  rn_record_reader_t* reader = NULL;
  RN_RETURN_IF_ERROR(rn_record_reader_open(env, path, RN_COMPRESSION_NONE, 0, &reader));
  rn_status_t status = RN_OK;
  bool is_end = false;
  while (rn_ok(status) && !is_end) {
    rn_str_t record;
    status = rn_record_reader_next(reader, &record, &is_end);
    if (rn_status_code(status) == RN_CODE_DATA_LOSS) {
      rn_log(env, RN_LOG_WARNING, "The journal %s ends with a record that is cut off", path);
      rn_status_free(status);
      status = RN_OK;
      is_end = true;
    } else if (rn_ok(status) && !is_end) {
      status = apply_record(state, record);
    }
  }
  rn_record_reader_close(reader);
  return status;
}

static rn_status_t open_files(const rn_env_t* env, rn_str_t work_dir, rn_ds_state_t* state,
                              rn_arena_t* arena, rn_ds_journal_t* journal) {
  rn_str_t path;
  RN_RETURN_IF_ERROR(rn_arena_printf(arena, &path, "%.*s/" FOLDER, RN_STR_ARGS(work_dir)));
  RN_RETURN_IF_ERROR(rn_fs_make_directories(env, path.data));
  for (int64_t number = 0;; ++number) {
    RN_RETURN_IF_ERROR(rn_arena_printf(arena, &path, "%.*s/" FOLDER "/journal_%lld",
                                       RN_STR_ARGS(work_dir), (long long)number));
    bool is_there = false;
    RN_RETURN_IF_ERROR(rn_fs_find(env, path.data, &is_there));
    if (!is_there) break;
    RN_RETURN_IF_ERROR(replay(env, path.data, state));
  }
  return rn_record_writer_open(env, path.data, NULL, &journal->writer);
}

rn_status_t rn_ds_journal_open(const rn_env_t* env, rn_allocator_t allocator, rn_str_t work_dir,
                               rn_ds_state_t* state, rn_ds_journal_t** out) {
  *out = NULL;
  rn_ds_journal_t* journal = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &journal));
  journal->allocator = allocator;
  rn_strbuf_init(&journal->bytes, allocator);
  rn_arena_t arena;
  rn_arena_init(&arena, allocator);
  rn_status_t status = open_files(env, work_dir, state, &arena, journal);
  rn_arena_clear(&arena);
  if (!rn_ok(status)) {
    rn_ds_journal_close(journal);
    return status;
  }
  *out = journal;
  return RN_OK;
}

rn_status_t rn_ds_journal_write(rn_ds_journal_t* journal, const rn_pb_data_Update_t* update) {
  journal->bytes.size = 0;
  RN_RETURN_IF_ERROR(rn_pb_encode(&rn_pb_data_Update_desc, update, NULL, &journal->bytes));
  RN_RETURN_IF_ERROR(rn_record_writer_write(journal->writer, rn_strbuf_view(&journal->bytes)));
  return rn_record_writer_flush(journal->writer, false);
}

void rn_ds_journal_close(rn_ds_journal_t* journal) {
  if (!journal) return;
  rn_status_free(rn_record_writer_close(journal->writer));
  rn_strbuf_clear(&journal->bytes);
  RN_FREE(journal->allocator, journal);
}
