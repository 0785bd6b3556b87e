// See default_rows.h.
#include "kernels/default_rows.h"

#include "base/sync.h"
#include "device/part.h"

static const rn_part_row_t rows[] = {
#define X(op_, ...) {.op = #op_, .host_args = {__VA_ARGS__}},
#define PLAIN(op_, ...) {.op = #op_, .is_plain = true, .host_args = {__VA_ARGS__}},
#define INT32(op_, attr) {.op = #op_, .int32_attr = attr},
#include "kernels/default_rows.def"
#undef INT32
#undef PLAIN
#undef X
    {.op = NULL},
};

// The registry of kernels, which the rows go to, is one per process as well.
static struct {
  rn_mutex_t mutex;
  bool is_done;
} registered = {.mutex = RN_MUTEX_INIT};

rn_status_t rn_default_rows_register(void) {
  const rn_device_part_t part = {.type = "DEFAULT", .shared = rows};
  rn_mutex_lock(&registered.mutex);
  rn_status_t status = registered.is_done ? RN_OK : rn_device_part_share(&part);
  if (rn_ok(status)) registered.is_done = true;
  rn_mutex_unlock(&registered.mutex);
  return status;
}
