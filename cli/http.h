// A client for the HTTP/1 status pages of tasks.
#ifndef RUNNEL_CLI_HTTP_H_
#define RUNNEL_CLI_HTTP_H_

#include "cli/cli.h"
#include "net/tls.h"

typedef struct rn_cli_http_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_tls_t* tls;        // Borrowed; NULL for plain connections
  const char* address;  // "host:port"
  const char *method, *path;
  const char* token;  // for the header x-runnel, or NULL
  const char*
      token_file;  // for the header authorization; NULL for the file that RUNNEL_TOKEN names
  int64_t timeout_ns;
} rn_cli_http_t;

// Sends one request and reads the response. Fails only if no response came; FAILED_PRECONDITION if
// one side uses TLS and the other does not. |out_body| is appended to.
RN_MUST_USE rn_status_t rn_cli_http(const rn_cli_http_t* request, int* out_code,
                                    rn_strbuf_t* out_body);

// TLS from --tls-cert, --tls-key and --tls-ca or, if they are not given, from RUNNEL_TLS_CERT,
// RUNNEL_TLS_KEY and RUNNEL_TLS_CA. NULL if none of them is set.
RN_MUST_USE rn_status_t rn_cli_tls(rn_cli_t* cli, rn_tls_t** out);
// The files of rn_cli_tls; none of them if there are no certificates.
RN_MUST_USE rn_status_t rn_cli_tls_files(rn_cli_t* cli, rn_tls_options_t* out);
// The same from the variables alone, for commands without these options.
RN_MUST_USE rn_status_t rn_cli_tls_of_env(rn_cli_t* cli, rn_tls_t** out);

#endif  // RUNNEL_CLI_HTTP_H_
