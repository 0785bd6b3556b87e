// See backend.h.
#include "serve/model/backend.h"

int rn_backend_signature(const rn_backend_t* backend, rn_str_t name) {
  if (!name.size) name = RN_STR("serving_default");
  for (int i = 0; i < backend->signature_count; ++i)
    if (rn_str_eq(backend->signatures[i].name, name)) return i;
  return -1;
}

int rn_serve_port(const rn_serve_port_t* ports, int count, rn_str_t name) {
  for (int low = 0, high = count; low < high;) {
    int middle = low + (high - low) / 2;
    int order = rn_str_compare(name, ports[middle].name);
    if (!order) return middle;
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return -1;
}
