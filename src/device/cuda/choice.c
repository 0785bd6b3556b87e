// Which cards, or parts of cards, a session's options ask for: see card.h.
#include <errno.h>
#include <stdlib.h>

#include "device/cuda/card.h"

// The number in |text|, which may have spaces around it; false if there is something else.
static bool read_number(rn_str_t text, long* out) {
  char copy[32], *rest = NULL;
  if (text.size == 0 || text.size >= sizeof copy) return false;
  memcpy(copy, text.data, text.size);
  copy[text.size] = 0;
  errno = 0;
  *out = strtol(copy, &rest, 10);
  if (rest == copy || errno) return false;
  while (*rest == ' ') ++rest;
  return *rest == 0 && *out >= INT32_MIN && *out <= INT32_MAX;
}

// The next entry of |list|, which then starts behind it.
static rn_str_t next_entry(const char** list) {
  const char* start = *list;
  size_t size = strcspn(start, ",");
  *list = start[size] ? start + size + 1 : NULL;
  return rn_str_n(start, size);
}

// The numbers of the cards in |list|. |*out_count| is at most RN_MAX_GPUS.
static rn_status_t read_list(const char* list, int card_count, int* out, int* out_count) {
  bool is_repeated = false;
  *out_count = 0;
  for (const char* rest = list; rest && *out_count < RN_MAX_GPUS;) {
    rn_str_t entry = next_entry(&rest);
    long number;
    if (!read_number(entry, &number))
      return rn_invalid_argument(
          "Could not parse entry in 'visible_device_list': '%.*s'. visible_device_list = %s",
          RN_STR_ARGS(entry), list);
    if (number < 0 || number >= card_count)
      return rn_invalid_argument(
          "'visible_device_list' listed an invalid Device id '%ld' but visible device count is %d",
          number, card_count);
    for (int i = 0; i < *out_count; ++i) is_repeated |= out[i] == number;
    out[(*out_count)++] = (int)number;
  }
  if (!is_repeated) return RN_OK;
  return rn_invalid_argument("visible_device_list contained a duplicate entry: %s", list);
}

static rn_status_t check_virtual(const rn_gpu_options_t* options, int visible, int used) {
  if (options->memory_fraction > 0)
    return rn_invalid_argument(
        "It's invalid to set per_process_gpu_memory_fraction when virtual_devices is set.");
  if (used < options->split_count)
    return rn_status_make(RN_CODE_UNKNOWN,
                          "Not enough GPUs to create virtual devices. num_gpus_to_use: %d "
                          "#virtual_devices: %d",
                          used, options->split_count);
  if (*options->visible_devices && visible != options->split_count)
    return rn_invalid_argument(
        "The number of GPUs in visible_device_list doesn't match the number of elements in the "
        "virtual_devices list.");
  return RN_OK;
}

// The parts of a card are numbered from 1, whichever session asks.
static void split(const rn_gpu_options_t* options, const int* cards, rn_cuda_choice_t* out,
                  int* out_count) {
  int part = 0;
  for (int i = 0; i < options->virtual_count; ++i) {
    const struct rn_virtual_gpu_t* wanted = &options->virtuals[i];
    part = i && wanted->card == options->virtuals[i - 1].card ? part + 1 : 1;
    out[i] = (rn_cuda_choice_t){.ordinal = cards[wanted->card],
                                .part = wanted->memory ? part : 0,
                                .memory = (size_t)wanted->memory};
  }
  *out_count = options->virtual_count;
}

rn_status_t rn_cuda_choose(const rn_gpu_options_t* options, int card_count, rn_cuda_choice_t* out,
                           int* out_count) {
  int cards[RN_MAX_GPUS], visible = 0;
  *out_count = 0;
  if (*options->visible_devices)
    RN_RETURN_IF_ERROR(read_list(options->visible_devices, card_count, cards, &visible));
  else
    for (; visible < card_count && visible < RN_MAX_GPUS; ++visible) cards[visible] = visible;
  int used = options->max_count >= 0 && options->max_count < visible ? options->max_count : visible;
  if (options->split_count) {
    RN_RETURN_IF_ERROR(check_virtual(options, visible, used));
    split(options, cards, out, out_count);
    return RN_OK;
  }
  for (int i = 0; i < used; ++i)
    out[i] = (rn_cuda_choice_t){.ordinal = cards[i], .fraction = options->memory_fraction};
  *out_count = used;
  return RN_OK;
}
