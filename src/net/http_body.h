// The body of an HTTP/1 request as it arrives: of a given length or in chunks, and possibly
// compressed. No sockets here.
//
// Memory grows with what has arrived, so that an announced length costs nothing. Functions that can
// refuse the request return 0 or the HTTP code of the refusal: 400 malformed, 413 beyond the limit
// of one request, 415 an unknown encoding, 503 no memory or beyond the limit of all requests.
#ifndef RUNNEL_NET_HTTP_BODY_H_
#define RUNNEL_NET_HTTP_BODY_H_

#include "net/http1.h"
#include "tensor/tensor.h"

// Bytes of the requests in memory, of all connections of a server.
typedef struct rn_http_budget_t {
  _Atomic size_t used;
  size_t max;  // 0: any
} rn_http_budget_t;

typedef struct rn_http_body_t {
  rn_allocator_t allocator, landing;  // |landing|: of the buffers
  rn_http_budget_t* budget;           // Borrowed
  size_t max;                         // bytes, also when decompressed
  bool is_chunked, is_packed, is_whole;
  rn_buffer_t* buffer;  // Owned; NULL: nothing has arrived
  size_t size;          // of what has arrived, with |pad|
  size_t pad;           // bytes before the body, so that a part of it is aligned
  size_t left;          // bytes of the body, or of the chunk, that are missing
  size_t held;          // counted in |budget|
  int state;            // of the chunks
  size_t line;          // bytes so far of chunk extensions and trailers
  void* inflater;       // Owned
} rn_http_body_t;

// Begins the body of |request|. |body| has its allocators, budget and limit; the rest is zero. The
// bytes from |aligned| on will be aligned, unless they come in chunks or compressed.
int rn_http_body_begin(rn_http_body_t* body, const rn_http1_request_t* request, size_t aligned);
// Takes bytes from the front of |*inout_bytes|, up to the end of the body.
int rn_http_body_take(rn_http_body_t* body, rn_str_t* inout_bytes);
// Where at most |*out_room| of the next bytes can be read to without a copy; NULL if they must be
// taken. rn_http_body_landed follows.
char* rn_http_body_place(const rn_http_body_t* body, size_t* out_room);
int rn_http_body_landed(rn_http_body_t* body, size_t size);

// For a body that is whole and packed: decompresses up to |most| bytes. More is left to do as long
// as |is_packed| stays true.
int rn_http_body_unpack(rn_http_body_t* body, size_t most);

void rn_http_body_clear(rn_http_body_t* body);

#endif  // RUNNEL_NET_HTTP_BODY_H_
