// HTTP/1 as text: parses the heads of requests, prints those of responses. No sockets here; see
// door.h and http_server.h.
//
// Lines end with CR LF: a bare LF is malformed, and so is a header that continues on the next line,
// since proxies disagree on what they mean.
#ifndef RUNNEL_NET_HTTP1_H_
#define RUNNEL_NET_HTTP1_H_

#include "base/str.h"

// The maximum size of a request for a status page, and of a request's headers in number.
#define RN_HTTP1_MAX 8192
#define RN_HTTP1_MAX_HEADERS 100

typedef struct rn_http_header_t {
  rn_str_t name, value;
} rn_http_header_t;

// The head of a request, borrowed from the bytes.
typedef struct rn_http1_request_t {
  rn_str_t method, path, query;  // not decoded: "GET", "/statusz", "format=json"
  int minor;                     // HTTP/1.|minor|
  size_t size;                   // of the head, in bytes
  uint64_t length;               // of the body, if it is not chunked
  bool has_length, is_chunked;
  bool keeps_open;    // the connection stays open after the response
  bool is_waiting;    // the client sends the body after "100 Continue"
  bool is_demanding;  // it has another expectation, which must be refused
  int host_count;     // of headers "Host"
  int header_count;
  rn_http_header_t headers[RN_HTTP1_MAX_HEADERS];  // names as they were sent
} rn_http1_request_t;

typedef struct rn_http1_answer_t {
  int code;  // 200
  const char* type;
  rn_strbuf_t body;  // Owned by the caller
  int64_t again_ns;  // > 0: there is no response yet; generate the page again after this time
} rn_http1_answer_t;

typedef enum rn_http1_state_t {
  RN_HTTP1_MORE,       // incomplete
  RN_HTTP1_WHOLE,      // |out| is set, and the request has no body
  RN_HTTP1_HAS_BODY,   // |out| is set, and a body follows
  RN_HTTP1_BAD,        // not HTTP/1
  RN_HTTP1_TOO_LARGE,  // longer than the limit, or too many headers
  RN_HTTP1_UNKNOWN,    // a transfer coding other than "chunked"
} rn_http1_state_t;

// Parses the head of a request, of at most |max| bytes. Reports malformed bytes as early as
// possible.
rn_http1_state_t rn_http1_parse(rn_str_t bytes, size_t max, rn_http1_request_t* out);

// The value of the first header |name| (in lower case), "": none.
rn_str_t rn_http1_header(const rn_http1_request_t* request, const char* name);
// Whether |query| has |name|=|value| among its parts.
bool rn_http1_query_has(rn_str_t query, const char* name, const char* value);

// The head of a response.
typedef struct rn_http1_response_t {
  int code;
  const char* type;                 // Content-Type; NULL: none
  size_t size;                      // of the body
  const rn_http_header_t* headers;  // further ones; one that cannot be sent is left out
  int header_count;
  rn_str_t date;           // "": none
  const char* connection;  // "close" or "keep-alive"; NULL: as the version has it
} rn_http1_response_t;
void rn_http1_print_head(const rn_http1_response_t* response, rn_strbuf_t* out);

// Appends the response with a page, without its body if |is_head|. The connection is closed after
// it.
void rn_http1_print(const rn_http1_answer_t* answer, bool is_head, rn_strbuf_t* out);

#endif  // RUNNEL_NET_HTTP1_H_
