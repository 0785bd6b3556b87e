// A request of an HTTP server: made of its parsed head, which it keeps in one block with itself.
#include "net/http_internal.h"

// Moves a part of |from| to its copy at |to|.
static rn_str_t moved(rn_str_t part, const char* from, const char* to) {
  return part.size ? rn_str_n(to + (part.data - from), part.size) : RN_STR("");
}

static void lower_in_place(rn_str_t name) {
  char* at = (char*)name.data;
  for (size_t i = 0; i < name.size; ++i)
    if (at[i] >= 'A' && at[i] <= 'Z') at[i] = (char)(at[i] + 32);
}

rn_status_t rn_http_request_create(rn_http_connection_t* connection, const rn_http1_request_t* head,
                                   const char* bytes, rn_http_request_t** out) {
  rn_http_server_t* server = connection->lane->server;
  size_t count = (size_t)head->header_count, table = count * sizeof(rn_http_header_t);
  size_t block = sizeof(rn_http_request_t) + table + head->size;
  rn_http_request_t* request = NULL;
  RN_RETURN_IF_ERROR(rn_alloc(server->options.allocator, block, (void**)&request));
  memset(request, 0, sizeof *request);
  char* copy = (char*)&request->headers[count];
  memcpy(copy, bytes, head->size);
  for (size_t i = 0; i < count; ++i) {
    request->headers[i].name = moved(head->headers[i].name, bytes, copy);
    request->headers[i].value = moved(head->headers[i].value, bytes, copy);
    lower_in_place(request->headers[i].name);
  }
  request->block_size = block;
  request->holds = 1;
  request->is_old = head->minor == 0;
  request->is_head = rn_str_is(head->method, "HEAD");
  request->keeps_open = head->keeps_open;
  request->connection = connection;
  rn_http_connection_retain(connection);
  rn_cancel_init(&request->in.cancel);
  request->in.method = moved(head->method, bytes, copy);
  request->in.path = moved(head->path, bytes, copy);
  request->in.query = moved(head->query, bytes, copy);
  request->in.headers = request->headers;
  request->in.header_count = head->header_count;
  request->in.peer = rn_str(connection->peer);
  request->in.is_local = connection->is_local;
  request->body = (rn_http_body_t){.allocator = server->options.allocator,
                                   .landing = rn_loop_landing(connection->lane->base.loop),
                                   .budget = &server->budget,
                                   .max = server->options.max_body};
  *out = request;
  return RN_OK;
}

void rn_http_request_release(rn_http_request_t* request) {
  if (--request->holds) return;
  rn_http_connection_t* connection = request->connection;
  rn_cancel_destroy(&request->in.cancel);
  rn_http_body_clear(&request->body);
  rn_free(connection->lane->server->options.allocator, request, request->block_size);
  rn_http_connection_release(connection);
}

rn_str_t rn_http_header(const rn_http_in_t* request, const char* name) {
  for (int i = 0; i < request->header_count; ++i)
    if (rn_str_is(request->headers[i].name, name)) return request->headers[i].value;
  return RN_STR("");
}
