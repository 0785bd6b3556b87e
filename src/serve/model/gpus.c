// See gpus.h.
#include "serve/model/gpus.h"

#include <stdio.h>

static rn_status_t malformed(rn_str_t list) {
  return rn_invalid_argument(
      "GPUs of models must be NAME=GPU,... where GPU is a number below %d, several with + between "
      "them, or 'none': '%.*s'",
      RN_MAX_GPUS, RN_STR_ARGS(list));
}

// The |turn|-th of |gpus|, again from the first after the last. False if it is no list of numbers.
static bool pick(rn_str_t gpus, int turn, int64_t* out) {
  int count = 0;
  for (rn_str_t rest = gpus; rest.size; ++count) {
    int64_t gpu;
    if (!rn_str_to_i64(rn_str_trim(rn_str_split(&rest, '+')), &gpu)) return false;
    if (gpu < 0 || gpu >= RN_MAX_GPUS) return false;
  }
  turn = count ? turn % count : 0;
  for (rn_str_t rest = gpus; turn >= 0; --turn)
    if (!rn_str_to_i64(rn_str_trim(rn_str_split(&rest, '+')), out)) return false;
  return count > 0;
}

static void see_only(rn_gpu_options_t* options, int64_t gpu) {
  snprintf(options->visible_devices, sizeof options->visible_devices, "%lld", (long long)gpu);
}

rn_status_t rn_gpus_choose(rn_str_t list, rn_str_t model, int replica, int count,
                           rn_gpu_options_t* inout) {
  bool is_listed = false;
  for (rn_str_t rest = list; rest.size;) {
    rn_str_t value = rn_str_trim(rn_str_split(&rest, ','));
    rn_str_t name = rn_str_trim(rn_str_split(&value, '='));
    bool is_none = rn_str_is(rn_str_trim(value), "none");
    int64_t gpu = 0;
    if (!name.size || (!is_none && !pick(rn_str_trim(value), replica, &gpu)))
      return malformed(list);
    if (!rn_str_eq(name, model)) continue;
    is_listed = true;
    if (is_none)
      inout->max_count = 0;
    else
      see_only(inout, gpu);
  }
  if (!is_listed && replica > 0 && count > 1) see_only(inout, replica % count);
  return RN_OK;
}
