// Fuzzes the HTTP/1 request parser. A refused request must stay refused with any bytes appended, a
// complete one must stay complete, and all parts of a request must lie within its bytes.
#include "fuzz/util.h"
#include "net/http1.h"

static void check_within(rn_str_t part, rn_str_t all) {
  fuzz_check(part.size == 0 ||
             (part.data >= all.data && part.data + part.size <= all.data + all.size));
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rn_str_t bytes = rn_str_n((const char*)data, size);
  rn_http1_request_t request, shorter;
  rn_http1_state_t state = rn_http1_parse(bytes, RN_HTTP1_MAX, &request);
  if (state == RN_HTTP1_WHOLE || state == RN_HTTP1_HAS_BODY) {
    fuzz_check(request.size <= size);
    check_within(request.method, bytes);
    check_within(request.path, bytes);
    check_within(request.query, bytes);
    for (int i = 0; i < request.header_count; ++i) {
      check_within(request.headers[i].name, bytes);
      check_within(request.headers[i].value, bytes);
    }
    fuzz_check(request.path.size && (request.path.data[0] == '/' || request.path.data[0] == '*'));
    rn_http1_query_has(request.query, "format", "json");
  }
  size_t step = size / 64 + 1;
  for (size_t part = 0; part < size; part += step) {
    rn_http1_state_t before = rn_http1_parse(rn_str_n(bytes.data, part), RN_HTTP1_MAX, &shorter);
    if (before != RN_HTTP1_MORE) fuzz_check(state == before);
  }
  rn_strbuf_t out;
  rn_strbuf_init(&out, rn_allocator_system());
  rn_http1_answer_t answer = {.code = 200};
  rn_strbuf_init(&answer.body, rn_allocator_system());
  rn_strbuf_append(&answer.body, request.path);
  rn_http1_print(&answer, false, &out);
  fuzz_check(!out.failed &&
             rn_str_starts_with(rn_strbuf_view(&out), RN_STR("HTTP/1.1 200 OK\r\n")));
  rn_strbuf_clear(&answer.body);
  rn_strbuf_clear(&out);
  return 0;
}
