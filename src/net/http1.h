// The part of HTTP/1 that a status page needs: parses requests without a body, formats responses.
// No sockets here; see door.h.
#ifndef RUNNEL_NET_HTTP1_H_
#define RUNNEL_NET_HTTP1_H_

#include "base/str.h"

// The maximum size of a request with its headers, in bytes.
#define RN_HTTP1_MAX 8192

// Borrowed from the bytes.
typedef struct rn_http1_request_t {
  rn_str_t method, path, query;  // "GET", "/statusz", "format=json"
  rn_str_t token;                // of the header x-runnel, "": none
  rn_str_t authorization;        // of the header of this name, likewise
} rn_http1_request_t;

typedef struct rn_http1_answer_t {
  int code;  // 200
  const char* type;
  rn_strbuf_t body;  // Owned by the caller
  int64_t again_ns;  // > 0: there is no response yet; generate the page again after this time
} rn_http1_answer_t;

typedef enum rn_http1_state_t {
  RN_HTTP1_MORE,       // incomplete
  RN_HTTP1_WHOLE,      // |out| is set
  RN_HTTP1_BAD,        // not HTTP/1
  RN_HTTP1_TOO_LARGE,  // longer than RN_HTTP1_MAX
  RN_HTTP1_HAS_BODY,   // which is not supported
} rn_http1_state_t;

// Reports malformed bytes as early as possible.
rn_http1_state_t rn_http1_parse(rn_str_t bytes, rn_http1_request_t* out);

// Whether |query| has |name|=|value| among its parts.
bool rn_http1_query_has(rn_str_t query, const char* name, const char* value);

// Appends the response, without its body if |is_head|. The connection is closed after it.
void rn_http1_print(const rn_http1_answer_t* answer, bool is_head, rn_strbuf_t* out);

#endif  // RUNNEL_NET_HTTP1_H_
