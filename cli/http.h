// Asking a task over HTTP/1 how it is.
#ifndef RUNNEL_CLI_HTTP_H_
#define RUNNEL_CLI_HTTP_H_

#include "cli/cli.h"
#include "dist/rpc/tls.h"

typedef struct rn_cli_http_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_tls_t* tls;        // Borrowed; NULL: plain
  const char* address;  // "host:port"
  const char *method, *path;
  const char* token;       // of the header x-runnel; NULL: none
  const char* token_file;  // of the header authorization; NULL: the one that RUNNEL_TOKEN names
  int64_t timeout_ns;
} rn_cli_http_t;

// One request, one answer. A status only where no answer came: FAILED_PRECONDITION if one side
// speaks TLS and the other does not. |out_body| is appended to.
RN_MUST_USE rn_status_t rn_cli_http(const rn_cli_http_t* request, int* out_code,
                                    rn_strbuf_t* out_body);

// TLS as --tls-cert, --tls-key and --tls-ca say, or where they were not given, RUNNEL_TLS_CERT,
// RUNNEL_TLS_KEY and RUNNEL_TLS_CA. NULL where nothing says anything.
RN_MUST_USE rn_status_t rn_cli_tls(rn_cli_t* cli, rn_tls_t** out);
// The same from the variables alone, for commands without these options.
RN_MUST_USE rn_status_t rn_cli_tls_of_env(rn_cli_t* cli, rn_tls_t** out);

#endif  // RUNNEL_CLI_HTTP_H_
