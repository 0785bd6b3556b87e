// See renewal.h.
#include "cli/renewal.h"

#include "base/fs.h"
#include "base/hash.h"

uint64_t rn_cli_stamp(const rn_env_t* env, const char* const* paths, int count) {
  uint64_t stamp = 0;
  for (int i = 0; i < count && paths[i]; ++i) {
    rn_file_stat_t stat = {0};
    rn_status_free(env->fs->stat(env->fs_self, paths[i], &stat));
    stamp = rn_fingerprint_cat64(stamp, (uint64_t)stat.modified_ns);
    stamp = rn_fingerprint_cat64(stamp, (uint64_t)stat.size);
  }
  return stamp;
}

void rn_cli_log_renewal(const rn_env_t* env, const char* what, rn_status_t status) {
  if (rn_ok(status))
    rn_log(env, RN_LOG_INFO, "%s: renewed, for connections and calls from now on", what);
  else
    rn_log(env, RN_LOG_ERROR, "%s: not renewed, the old content stays in force: %s", what,
           rn_status_message(status));
  rn_status_free(status);
}
