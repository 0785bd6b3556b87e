// Savers over the C API's sessions.
#include "train/saver.h"

#include "capi/session.h"
#include "io/checkpoint_state.h"

static bool has_all(const rn_saver_t* saver, const TF_Session* session, TF_Status* status) {
  if (saver && session) return true;
  rn_capi_set(status,
              rn_invalid_argument("The %s of a saver's call is NULL", saver ? "session" : "saver"));
  return false;
}

RN_API const char* rn_saver_save(rn_saver_t* saver, TF_Session* session, const char* path,
                                 int64_t step, TF_Status* status) {
  const char* saved = NULL;
  if (has_all(saver, session, status))
    rn_capi_set(status, rn_saver_run_save(saver, session->session, path, step, NULL, &saved));
  return saved;
}

RN_API const char* rn_saver_save_best(rn_saver_t* saver, TF_Session* session, const char* path,
                                      int64_t step, double metric, TF_Status* status) {
  const char* saved = NULL;
  if (has_all(saver, session, status))
    rn_capi_set(status, rn_saver_run_save(saver, session->session, path, step, &metric, &saved));
  return saved;
}

RN_API bool rn_saver_save_async(rn_saver_t* saver, TF_Session* session, const char* path,
                                int64_t step, TF_Status* status) {
  return has_all(saver, session, status) &&
         rn_capi_ok(status, rn_saver_run_async(saver, session->session, path, step, NULL));
}

RN_API bool rn_saver_save_best_async(rn_saver_t* saver, TF_Session* session, const char* path,
                                     int64_t step, double metric, TF_Status* status) {
  return has_all(saver, session, status) &&
         rn_capi_ok(status, rn_saver_run_async(saver, session->session, path, step, &metric));
}

RN_API bool rn_saver_wait(rn_saver_t* saver, TF_Status* status) {
  return rn_capi_ok(status, saver ? rn_saver_join(saver) : RN_CAPI_NULL("saver"));
}

RN_API bool rn_saver_restore(rn_saver_t* saver, TF_Session* session, const char* path,
                             TF_Status* status) {
  return has_all(saver, session, status) &&
         rn_capi_ok(status, rn_saver_run_restore(saver, session->session, path));
}

RN_API int rn_saver_restore_some(rn_saver_t* saver, TF_Session* session, const char* path,
                                 TF_Status* status) {
  int count = 0;
  if (!has_all(saver, session, status)) return -1;
  bool is_good =
      rn_capi_ok(status, rn_saver_run_restore_some(saver, session->session, path, &count));
  return is_good ? count : -1;
}

RN_API bool rn_saver_recover(rn_saver_t* saver, const char* directory, TF_Status* status) {
  if (!saver || !directory) {
    rn_capi_set(status, RN_CAPI_NULL(saver ? "directory" : "saver"));
    return false;
  }
  rn_status_t done = rn_saver_join(saver);
  if (rn_ok(done)) done = rn_saver_take_up(saver, rn_capi_env(), directory);
  return rn_capi_ok(status, done);
}

RN_API char* rn_latest_checkpoint(const char* directory, const char* state_file, char** out_note,
                                  TF_Status* status) {
  if (out_note) *out_note = NULL;
  if (!directory) {
    rn_capi_set(status, RN_CAPI_NULL("directory"));
    return NULL;
  }
  rn_strbuf_t path, note;
  rn_strbuf_init(&path, rn_capi_allocator());
  rn_strbuf_init(&note, rn_capi_allocator());
  rn_status_t found = rn_checkpoint_latest(
      rn_capi_env(), directory, state_file ? state_file : RN_CHECKPOINT_STATE, NULL, &path, &note);
  char* result = rn_ok(found) ? strdup(path.data) : NULL;
  if (rn_ok(found) && !result) found = rn_out_of_memory();
  if (note.size && rn_ok(found)) rn_log(rn_capi_env(), RN_LOG_WARNING, "%s", note.data);
  if (note.size && out_note) *out_note = strdup(note.data);
  rn_strbuf_clear(&note);
  rn_strbuf_clear(&path);
  rn_capi_set(status, found);
  return result;
}
