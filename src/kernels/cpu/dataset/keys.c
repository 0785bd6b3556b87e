// Groups by key: see keys.h.
#include "kernels/cpu/dataset/keys.h"

size_t rn_data_find_key(const void* groups, size_t count, size_t size, int64_t key,
                        bool* out_found) {
  const char* first = groups;
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (*(const int64_t*)(first + middle * size) < key)
      low = middle + 1;
    else
      high = middle;
  }
  *out_found = low < count && *(const int64_t*)(first + low * size) == key;
  return low;
}

rn_status_t rn_data_read_number(const rn_tensor_t* result, const char* function, int64_t* out) {
  if (result->dtype != RN_INT64 || result->rank != 0)
    return rn_invalid_argument("`%s` must return a scalar int64.", function);
  *out = *RN_DATA(result, const int64_t);
  return RN_OK;
}
