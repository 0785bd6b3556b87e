// Parsing of HTTP/1 requests.
#include "net/http1.h"

#include <criterion/criterion.h>

static rn_http1_state_t parse(const char* text, rn_http1_request_t* out) {
  return rn_http1_parse(rn_str(text), RN_HTTP1_MAX, out);
}

Test(http1, requests_are_read, .timeout = 60) {
  rn_http1_request_t request;
  cr_assert_eq(parse("GET /statusz?a=b&format=json HTTP/1.1\r\nHost: x\r\nX-Runnel:  stop \r\n\r\n",
                     &request),
               RN_HTTP1_WHOLE);
  cr_assert(rn_str_is(request.method, "GET"));
  cr_assert(rn_str_is(request.path, "/statusz"));
  cr_assert(rn_str_is(rn_http1_header(&request, "x-runnel"), "stop"));
  cr_assert(rn_http1_query_has(request.query, "format", "json"));
  cr_assert(!rn_http1_query_has(request.query, "format", "js"));
  cr_assert(!rn_http1_query_has(request.query, "json", ""));
  cr_assert_eq(parse("GET / HTTP/1.0\r\n\r\n", &request), RN_HTTP1_WHOLE);
  cr_assert_eq(parse("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", &request), RN_HTTP1_WHOLE);
}

Test(http1, every_beginning_of_a_request_waits_for_more, .timeout = 60) {
  const char text[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n";
  rn_http1_request_t request;
  for (size_t size = 0; size + 1 < sizeof text; ++size)
    cr_assert_eq(rn_http1_parse(rn_str_n(text, size), RN_HTTP1_MAX, &request), RN_HTTP1_MORE, "%zu",
                 size);
  cr_assert_eq(rn_http1_parse(rn_str_n(text, sizeof text - 1), RN_HTTP1_MAX, &request),
               RN_HTTP1_WHOLE);
}

Test(http1, what_is_no_request_is_refused, .timeout = 60) {
  static const char* const bad[] = {
      "\x16\x03\x01",
      "get / HTTP/1.1\r\n",
      "GET  HTTP/1.1\r\n",
      "GET / HTTP/2.0\r\n",
      "GET / HTTP/1.1\n",
      "GET /a b HTTP/1.1\r\n",
      "GET x HTTP/1.1\r\n",
      "GET / HTTP/1.1\r\nA\r\n",
      "GET / HTTP/1.1\r\n: b\r\n",
      "GET / HTTP/1.1\r\nA b: c\r\n",
      "GET / HTTP/1.1\r\nA: \x01\r\n",
      "GET /\x7f HTTP/1.1\r\n",
      "GETGETGETGETGETGETGET",
      "\r\n",
      "GET\r\n",
      "GET / HTTP/1.1\r\nContent-Length: -1\r\n",
  };
  rn_http1_request_t request;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i)
    cr_assert_eq(parse(bad[i], &request), RN_HTTP1_BAD, "%s", bad[i]);
  cr_assert_eq(parse("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n", &request), RN_HTTP1_HAS_BODY);
  cr_assert_eq(parse("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", &request),
               RN_HTTP1_HAS_BODY);
  static char large[RN_HTTP1_MAX + 2] = "GET /";
  memset(large + 5, 'a', sizeof large - 6);
  cr_assert_eq(parse(large, &request), RN_HTTP1_TOO_LARGE);
}
