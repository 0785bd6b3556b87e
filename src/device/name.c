// Device names: "/job:worker/replica:0/task:1/device:GPU:0", whole or in part.
#include <ctype.h>

#include "device/device.h"

rn_status_t rn_device_name(rn_allocator_t allocator, rn_str_t prefix, const char* type, int index,
                           rn_str_t* out) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, allocator);
  rn_strbuf_printf(&buf, "%.*s/device:%s:%d", RN_STR_ARGS(prefix), type, index);
  rn_status_t status = rn_strbuf_status(&buf);
  char* copy = NULL;
  if (rn_ok(status)) status = rn_str_dup(allocator, rn_strbuf_view(&buf), &copy);
  if (rn_ok(status)) *out = rn_str_n(copy, buf.size);
  rn_strbuf_clear(&buf);
  return status;
}

static bool parse_index(rn_str_t text, int32_t* out) {
  if (text.size == 1 && text.data[0] == '*') return true;
  int64_t value;
  if (!rn_str_to_i64(text, &value) || value < 0 || value > INT32_MAX) return false;
  *out = (int32_t)value;
  return true;
}

static bool equal_ignoring_case(rn_str_t a, rn_str_t b) {
  if (a.size != b.size) return false;
  for (size_t i = 0; i < a.size; ++i)
    if (tolower((unsigned char)a.data[i]) != tolower((unsigned char)b.data[i])) return false;
  return true;
}

// "GPU", "GPU:0", "GPU:*".
static bool parse_type(rn_str_t text, rn_device_spec_t* out) {
  rn_str_t rest = text;
  rn_str_t type = rn_str_split(&rest, ':');
  if (type.size == 0) return false;
  if (!(type.size == 1 && type.data[0] == '*')) out->type = type;
  return type.size == text.size || parse_index(rest, &out->index);
}

static bool parse_part(rn_str_t part, rn_device_spec_t* out) {
  rn_str_t value = part;
  rn_str_t key = rn_str_split(&value, ':');
  if (rn_str_is(key, "job")) {
    if (!value.size) return false;
    if (!rn_str_is(value, "*")) out->job = value;
    return true;
  }
  if (rn_str_is(key, "replica")) return parse_index(value, &out->replica);
  if (rn_str_is(key, "task")) return parse_index(value, &out->task);
  if (rn_str_is(key, "device")) return parse_type(value, out);
  // Legacy short forms: "/cpu:0", "/gpu:1".
  if (equal_ignoring_case(key, RN_STR("cpu"))) {
    out->type = RN_STR("CPU");
  } else if (equal_ignoring_case(key, RN_STR("gpu"))) {
    out->type = RN_STR("GPU");
  } else {
    return false;
  }
  return key.size == part.size || parse_index(value, &out->index);
}

bool rn_device_spec_parse(rn_str_t name, rn_device_spec_t* out) {
  *out = (rn_device_spec_t){.replica = -1, .task = -1, .index = -1};
  if (name.size && name.data[0] != '/') return parse_type(name, out);
  while (name.size) {
    rn_str_t rest = rn_str_n(name.data + 1, name.size - 1);
    rn_str_t part = rn_str_split(&rest, '/');
    if (part.size == 0 || !parse_part(part, out))
      return part.size == 0 && rest.size == 0 && name.size == 1;
    name = rest.size ? rn_str_n(rest.data - 1, rest.size + 1) : RN_STR("");
  }
  return true;
}

bool rn_device_spec_matches(const rn_device_spec_t* spec, const rn_device_spec_t* device) {
  return (!spec->job.size || rn_str_eq(spec->job, device->job)) &&
         (spec->replica < 0 || spec->replica == device->replica) &&
         (spec->task < 0 || spec->task == device->task) &&
         (!spec->type.size || equal_ignoring_case(spec->type, device->type)) &&
         (spec->index < 0 || spec->index == device->index);
}
