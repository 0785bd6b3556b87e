// HTTP/1 requests and responses: see http1.h.
#include "net/http1.h"

#define MAX_METHOD 16

static bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
static bool is_visible(char c) { return c > 0x20 && c < 0x7f; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static char lower(char c) { return is_upper(c) ? (char)(c + 32) : c; }

static bool equals_lower(rn_str_t name, const char* wanted) {
  size_t i = 0;
  for (; i < name.size && wanted[i]; ++i)
    if (lower(name.data[i]) != wanted[i]) return false;
  return i == name.size && !wanted[i];
}

static bool all(rn_str_t text, bool (*is_fine)(char c)) {
  for (size_t i = 0; i < text.size; ++i)
    if (!is_fine(text.data[i])) return false;
  return true;
}

static bool is_token(char c) { return is_visible(c) && !strchr("\"(),/:;<=>?@[\\]{}", c); }
static bool is_value(char c) { return c == '\t' || ((unsigned char)c >= 0x20 && c != 0x7f); }

// The path and query of "/path?query", "http://host/path?query" or, for OPTIONS, "*".
static bool take_target(rn_str_t target, rn_http1_request_t* out) {
  if (!all(target, is_visible)) return false;
  if (rn_str_starts_with(target, RN_STR("http://")) ||
      rn_str_starts_with(target, RN_STR("https://"))) {
    rn_str_split(&target, ':');
    target = rn_str_n(target.data + 2, target.size - 2);
    const char* path = target.size ? memchr(target.data, '/', target.size) : NULL;
    if (!path || path == target.data) return false;
    target = rn_str_n(path, target.size - (size_t)(path - target.data));
  }
  bool is_all = rn_str_is(target, "*") && rn_str_is(out->method, "OPTIONS");
  if (!target.size || (target.data[0] != '/' && !is_all)) return false;
  out->query = target;
  out->path = rn_str_split(&out->query, '?');
  return true;
}

// GET /path?query HTTP/1.1
static bool take_line(rn_str_t line, rn_http1_request_t* out) {
  rn_str_t rest = line;
  out->method = rn_str_split(&rest, ' ');
  rn_str_t target = rn_str_split(&rest, ' ');
  if (!out->method.size || out->method.size > MAX_METHOD || !all(out->method, is_upper))
    return false;
  if (!take_target(target, out)) return false;
  if (!rn_str_is(rest, "HTTP/1.1") && !rn_str_is(rest, "HTTP/1.0")) return false;
  out->minor = rest.data[7] - '0';
  out->keeps_open = out->minor == 1;
  return true;
}

// Different lengths are an attempt to make two servers see two requests.
static bool take_length(rn_str_t value, rn_http1_request_t* out) {
  uint64_t length = 0;
  if (!value.size || value.size > 18 || !all(value, is_digit)) return false;
  for (size_t i = 0; i < value.size; ++i) length = 10 * length + (uint64_t)(value.data[i] - '0');
  if (out->has_length && out->length != length) return false;
  out->has_length = true;
  out->length = length;
  return true;
}

static void take_connection(rn_str_t value, rn_http1_request_t* out) {
  while (value.size) {
    rn_str_t word = rn_str_trim(rn_str_split(&value, ','));
    if (equals_lower(word, "close")) out->keeps_open = false;
    if (equals_lower(word, "keep-alive") && out->minor == 0) out->keeps_open = true;
  }
}

// Headers that say where the request ends, and what becomes of the connection.
static rn_http1_state_t take_framing(rn_str_t name, rn_str_t value, bool* inout_has_coding,
                                     rn_http1_request_t* out) {
  switch (name.size) {
    case 4:
      if (equals_lower(name, "host")) out->host_count++;
      break;
    case 6:
      if (!equals_lower(name, "expect")) break;
      out->is_waiting = equals_lower(value, "100-continue");
      out->is_demanding |= !out->is_waiting;
      break;
    case 10:
      if (equals_lower(name, "connection")) take_connection(value, out);
      break;
    case 14:
      if (equals_lower(name, "content-length") && !take_length(value, out)) return RN_HTTP1_BAD;
      break;
    case 17:
      if (!equals_lower(name, "transfer-encoding")) break;
      if (*inout_has_coding) return RN_HTTP1_BAD;
      *inout_has_coding = true;
      out->is_chunked = equals_lower(value, "chunked");
      break;
  }
  return RN_HTTP1_MORE;
}

static rn_http1_state_t take_header(rn_str_t line, bool* inout_has_coding,
                                    rn_http1_request_t* out) {
  rn_str_t value = line, name = rn_str_split(&value, ':');
  if (name.size == line.size || !name.size || !all(name, is_token) || !all(value, is_value))
    return RN_HTTP1_BAD;
  if (out->header_count == RN_HTTP1_MAX_HEADERS) return RN_HTTP1_TOO_LARGE;
  value = rn_str_trim(value);
  out->headers[out->header_count++] = (rn_http_header_t){.name = name, .value = value};
  return take_framing(name, value, inout_has_coding, out);
}

// A length beside a transfer coding, or a coding in HTTP/1.0: servers along the way may disagree on
// where the request ends.
static rn_http1_state_t end_of(const rn_http1_request_t* request, bool has_coding) {
  if (has_coding && (request->has_length || request->minor == 0)) return RN_HTTP1_BAD;
  if (has_coding) return request->is_chunked ? RN_HTTP1_HAS_BODY : RN_HTTP1_UNKNOWN;
  return request->length ? RN_HTTP1_HAS_BODY : RN_HTTP1_WHOLE;
}

// The next line, with its "\r"; false if it is incomplete.
static bool next_line(rn_str_t* rest, rn_str_t* out) {
  const char* end = rest->size ? memchr(rest->data, '\n', rest->size) : NULL;
  if (!end) return false;
  size_t size = (size_t)(end - rest->data);
  *out = rn_str_n(rest->data, size);
  *rest = rn_str_n(end + 1, rest->size - size - 1);
  return true;
}

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

rn_http1_state_t rn_http1_parse(rn_str_t bytes, size_t max, rn_http1_request_t* out) {
  memset(out, 0, __builtin_offsetof(rn_http1_request_t, headers));
  if (!may_begin(bytes)) return RN_HTTP1_BAD;
  bool is_long = bytes.size > max, has_coding = false;
  if (is_long) bytes.size = max;
  rn_http1_state_t unfinished = is_long ? RN_HTTP1_TOO_LARGE : RN_HTTP1_MORE;
  rn_str_t rest = bytes, line;
  if (!next_line(&rest, &line)) return unfinished;
  if (!drop_return(&line) || !take_line(line, out)) return RN_HTTP1_BAD;
  while (next_line(&rest, &line)) {
    if (!drop_return(&line)) return RN_HTTP1_BAD;
    if (!line.size) {
      out->size = bytes.size - rest.size;
      return end_of(out, has_coding);
    }
    rn_http1_state_t state = take_header(line, &has_coding, out);
    if (state != RN_HTTP1_MORE) return state;
  }
  return unfinished;
}

rn_str_t rn_http1_header(const rn_http1_request_t* request, const char* name) {
  for (int i = 0; i < request->header_count; ++i)
    if (equals_lower(request->headers[i].name, name)) return request->headers[i].value;
  return RN_STR("");
}

bool rn_http1_query_has(rn_str_t query, const char* name, const char* value) {
  while (query.size) {
    rn_str_t part = rn_str_split(&query, '&'), key = rn_str_split(&part, '=');
    if (rn_str_is(key, name) && rn_str_is(part, value)) return true;
  }
  return false;
}

// Responses.

#define REASONS(X)                          \
  X(100, "Continue")                        \
  X(200, "OK")                              \
  X(201, "Created")                         \
  X(202, "Accepted")                        \
  X(204, "No Content")                      \
  X(304, "Not Modified")                    \
  X(400, "Bad Request")                     \
  X(401, "Unauthorized")                    \
  X(403, "Forbidden")                       \
  X(404, "Not Found")                       \
  X(405, "Method Not Allowed")              \
  X(408, "Request Timeout")                 \
  X(409, "Conflict")                        \
  X(412, "Precondition Failed")             \
  X(413, "Content Too Large")               \
  X(415, "Unsupported Media Type")          \
  X(417, "Expectation Failed")              \
  X(422, "Unprocessable Content")           \
  X(429, "Too Many Requests")               \
  X(431, "Request Header Fields Too Large") \
  X(499, "Client Closed Request")           \
  X(501, "Not Implemented")                 \
  X(503, "Service Unavailable")             \
  X(504, "Gateway Timeout")

static rn_str_t status_line_of(int code) {
  switch (code) {
#define STATUS_LINE(number, reason) \
  case number:                      \
    return RN_STR("HTTP/1.1 " #number " " reason "\r\n");
    REASONS(STATUS_LINE)
#undef STATUS_LINE
    default:
      return RN_STR("HTTP/1.1 500 Internal Server Error\r\n");
  }
}

static void print_header(rn_str_t name, rn_str_t value, rn_strbuf_t* out) {
  rn_strbuf_append(out, name);
  rn_strbuf_append(out, RN_STR(": "));
  rn_strbuf_append(out, value);
  rn_strbuf_append(out, RN_STR("\r\n"));
}

static void print_length(size_t size, rn_strbuf_t* out) {
  char digits[24], *at = digits + sizeof digits;
  do {
    *--at = (char)('0' + size % 10);
    size /= 10;
  } while (size);
  print_header(RN_STR("Content-Length"), rn_str_n(at, (size_t)(digits + sizeof digits - at)), out);
}

void rn_http1_print_head(const rn_http1_response_t* response, rn_strbuf_t* out) {
  rn_strbuf_append(out, status_line_of(response->code));
  if (response->type) print_header(RN_STR("Content-Type"), rn_str(response->type), out);
  bool has_body = response->code >= 200 && response->code != 204 && response->code != 304;
  if (has_body) print_length(response->size, out);
  if (response->date.size) print_header(RN_STR("Date"), response->date, out);
  for (int i = 0; i < response->header_count; ++i) {
    const rn_http_header_t* header = &response->headers[i];
    if (header->name.size && all(header->name, is_token) && all(header->value, is_value))
      print_header(header->name, header->value, out);
  }
  if (response->code == 401) print_header(RN_STR("WWW-Authenticate"), RN_STR("Bearer"), out);
  if (response->connection) print_header(RN_STR("Connection"), rn_str(response->connection), out);
  rn_strbuf_append(out, RN_STR("\r\n"));
}

void rn_http1_print(const rn_http1_answer_t* answer, bool is_head, rn_strbuf_t* out) {
  static const rn_http_header_t headers[] = {
      {{"Cache-Control", 13}, {"no-store", 8}},
      {{"X-Content-Type-Options", 22}, {"nosniff", 7}},
  };
  rn_http1_response_t response = {.code = answer->code,
                                  .type = answer->type ? answer->type : "text/plain; charset=utf-8",
                                  .size = answer->body.size,
                                  .headers = headers,
                                  .header_count = 2,
                                  .connection = "close"};
  rn_http1_print_head(&response, out);
  if (!is_head) rn_strbuf_append(out, rn_strbuf_view(&answer->body));
}
