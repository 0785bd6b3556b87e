// Conventions of gRPC: see grpc.h.
#include "net/grpc.h"

#include <stdio.h>

#include "base/alloc.h"

static int64_t unit_ns(char unit) {
  switch (unit) {
    case 'H':
      return INT64_C(3600000000000);
    case 'M':
      return INT64_C(60000000000);
    case 'S':
      return INT64_C(1000000000);
    case 'm':
      return 1000000;
    case 'u':
      return 1000;
    case 'n':
      return 1;
    default:
      return 0;
  }
}

bool rn_grpc_timeout_parse(rn_str_t text, int64_t* out_ns) {
  int64_t number;
  if (text.size < 2 || text.size > 9 || text.data[0] < '0' || text.data[0] > '9') return false;
  int64_t unit = unit_ns(text.data[text.size - 1]);
  return unit && rn_str_to_i64(rn_str_n(text.data, text.size - 1), &number) &&
         rn_mul_i64_ok(number, unit, out_ns);
}

// At most eight digits, in the finest unit that fits.
size_t rn_grpc_timeout_print(int64_t ns, char* out, size_t room) {
  static const char units[] = "numSMH";
  if (ns < 0) ns = 0;
  const char* unit = units;
  int64_t number = ns;
  while (number > 99999999 && unit[1]) {
    int64_t size = unit_ns(*++unit);
    number = ns / size + (ns % size != 0);
  }
  return (size_t)snprintf(out, room, "%lld%c", (long long)number, *unit);
}

void rn_grpc_escape(rn_str_t message, rn_strbuf_t* out) {
  size_t plain = 0;  // from here on nothing needed an escape yet
  rn_strbuf_reserve(out, message.size);
  for (size_t i = 0; i < message.size; ++i) {
    unsigned char c = (unsigned char)message.data[i];
    // A header's value may not begin or end with a blank.
    bool is_edge = i == 0 || i == message.size - 1;
    if (c >= ' ' && c <= '~' && c != '%' && !(c == ' ' && is_edge)) continue;
    rn_strbuf_append_n(out, message.data + plain, i - plain);
    rn_strbuf_printf(out, "%%%02X", c);
    plain = i + 1;
  }
  rn_strbuf_append_n(out, message.data + plain, message.size - plain);
}

static int hex(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                : -1;
}

rn_status_t rn_grpc_status(int code, const rn_strbuf_t* escaped) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, escaped->allocator);
  for (size_t i = 0; i < escaped->size; ++i) {
    const char* p = escaped->data + i;
    int high = i + 2 < escaped->size && *p == '%' ? hex(p[1]) : -1, low = high < 0 ? -1 : hex(p[2]);
    if (low < 0) {
      rn_strbuf_append_n(&text, p, 1);
    } else {
      rn_strbuf_append_n(&text, &(char){(char)(high * 16 + low)}, 1);
      i += 2;
    }
  }
  rn_str_t message = rn_strbuf_view(&text);
  rn_status_t status = rn_status_make_n((rn_code_t)code, message.data, message.size);
  rn_strbuf_clear(&text);
  return status;
}
