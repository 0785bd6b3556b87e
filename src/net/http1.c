// HTTP/1 requests and responses: see http1.h.
#include "net/http1.h"

#define MAX_METHOD 16
#define MAX_HEADERS 64

static bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
static bool is_visible(char c) { return c > 0x20 && c < 0x7f; }
static char lower(char c) { return is_upper(c) ? (char)(c + 32) : c; }

static bool equals_lower(rn_str_t name, const char* wanted) {
  if (name.size != strlen(wanted)) return false;
  for (size_t i = 0; i < name.size; ++i)
    if (lower(name.data[i]) != wanted[i]) return false;
  return true;
}

static bool all(rn_str_t text, bool (*is_fine)(char c)) {
  for (size_t i = 0; i < text.size; ++i)
    if (!is_fine(text.data[i])) return false;
  return true;
}

static bool is_token(char c) { return is_visible(c) && !strchr("\"(),/:;<=>?@[\\]{}", c); }
static bool is_value(char c) { return c == '\t' || ((unsigned char)c >= 0x20 && c != 0x7f); }

// GET /path?query HTTP/1.1
static bool take_line(rn_str_t line, rn_http1_request_t* out) {
  rn_str_t rest = line;
  out->method = rn_str_split(&rest, ' ');
  rn_str_t target = rn_str_split(&rest, ' ');
  if (!out->method.size || out->method.size > MAX_METHOD || !all(out->method, is_upper))
    return false;
  if (!target.size || target.data[0] != '/' || !all(target, is_visible)) return false;
  if (!rn_str_is(rest, "HTTP/1.1") && !rn_str_is(rest, "HTTP/1.0")) return false;
  out->query = target;
  out->path = rn_str_split(&out->query, '?');
  return true;
}

static rn_http1_state_t take_header(rn_str_t line, rn_http1_request_t* out) {
  rn_str_t value = line, name = rn_str_split(&value, ':');
  if (name.size == line.size || !name.size || !all(name, is_token) || !all(value, is_value))
    return RN_HTTP1_BAD;
  value = rn_str_trim(value);
  if (equals_lower(name, "x-runnel")) out->token = value;
  if (equals_lower(name, "authorization")) out->authorization = value;
  if (equals_lower(name, "transfer-encoding")) return RN_HTTP1_HAS_BODY;
  if (equals_lower(name, "content-length")) {
    int64_t length;
    if (!rn_str_to_i64(value, &length) || length < 0) return RN_HTTP1_BAD;
    if (length) return RN_HTTP1_HAS_BODY;
  }
  return RN_HTTP1_MORE;
}

// The next line up to "\r\n"; false if it is incomplete.
static bool next_line(rn_str_t* rest, rn_str_t* out) {
  const char* end = rest->size ? memchr(rest->data, '\n', rest->size) : NULL;
  if (!end) return false;
  size_t size = (size_t)(end - rest->data);
  *out = rn_str_n(rest->data, size);
  *rest = rn_str_n(end + 1, rest->size - size - 1);
  return true;
}

// A line end without "\r" is malformed.
static bool drop_return(rn_str_t* line) {
  if (!line->size || line->data[line->size - 1] != '\r') return false;
  line->size--;
  return true;
}

// Whether an incomplete line can begin with a method.
static bool may_begin(rn_str_t bytes) {
  size_t i = 0;
  while (i < bytes.size && is_upper(bytes.data[i])) ++i;
  return i <= MAX_METHOD && (i == bytes.size || (i && bytes.data[i] == ' '));
}

rn_http1_state_t rn_http1_parse(rn_str_t bytes, rn_http1_request_t* out) {
  *out = (rn_http1_request_t){0};
  if (!may_begin(bytes)) return RN_HTTP1_BAD;
  bool is_long = bytes.size > RN_HTTP1_MAX;
  if (is_long) bytes.size = RN_HTTP1_MAX;
  rn_http1_state_t unfinished = is_long ? RN_HTTP1_TOO_LARGE : RN_HTTP1_MORE;
  rn_str_t rest = bytes, line;
  if (!next_line(&rest, &line)) return unfinished;
  if (!drop_return(&line) || !take_line(line, out)) return RN_HTTP1_BAD;
  rn_http1_state_t body = RN_HTTP1_MORE;
  for (int i = 0; next_line(&rest, &line); ++i) {
    if (!drop_return(&line)) return RN_HTTP1_BAD;
    if (!line.size) return body == RN_HTTP1_MORE ? RN_HTTP1_WHOLE : body;
    if (i == MAX_HEADERS) return RN_HTTP1_TOO_LARGE;
    rn_http1_state_t state = take_header(line, out);
    if (state == RN_HTTP1_BAD) return state;
    if (state == RN_HTTP1_HAS_BODY) body = state;
  }
  return unfinished;
}

bool rn_http1_query_has(rn_str_t query, const char* name, const char* value) {
  while (query.size) {
    rn_str_t part = rn_str_split(&query, '&'), key = rn_str_split(&part, '=');
    if (rn_str_is(key, name) && rn_str_is(part, value)) return true;
  }
  return false;
}

static const char* reason_of(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 202:
      return "Accepted";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Internal Server Error";
  }
}

void rn_http1_print(const rn_http1_answer_t* answer, bool is_head, rn_strbuf_t* out) {
  rn_strbuf_printf(out,
                   "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                   "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
                   "%sConnection: close\r\n\r\n",
                   answer->code, reason_of(answer->code),
                   answer->type ? answer->type : "text/plain; charset=utf-8", answer->body.size,
                   answer->code == 401 ? "WWW-Authenticate: Bearer\r\n" : "");
  if (!is_head) rn_strbuf_append(out, rn_strbuf_view(&answer->body));
}
