// runnel data-server: a dispatcher or a worker of the tf.data service.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "base/machine.h"
#include "cli/cli.h"
#include "cli/log.h"
#include "data_service/server.h"
#include "proto/service_config.pb.h"
#include "wire/encode.h"

static rn_status_t write_config(rn_cli_t* cli, const char* dispatcher, rn_strbuf_t* out) {
  const char* text = rn_cli_text(cli, "--address");
  rn_str_t tag = rn_str(rn_cli_text(cli, "--tag"));
  int64_t port = rn_cli_number(cli, "--port", 0);
  rn_pb_data_experimental_WorkerConfig_t worker = {
      .port = port,
      .protocol = RN_STR("grpc"),
      .dispatcher_address = rn_str(dispatcher),
      .worker_address = rn_str(text),
      .heartbeat_interval_ms = rn_cli_number(cli, "--heartbeat", 0)};
  worker.worker_tags.items = &tag;
  worker.worker_tags.count = tag.size > 0;
  rn_pb_data_experimental_DispatcherConfig_t config = {
      .port = port,
      .protocol = RN_STR("grpc"),
      .work_dir = rn_str(rn_cli_text(cli, "--work-dir")),
      .fault_tolerant_mode = rn_cli_has(cli, "--fault-tolerant")};
  return dispatcher ? RN_PB_ENCODE(data_experimental_WorkerConfig, &worker, NULL, out)
                    : RN_PB_ENCODE(data_experimental_DispatcherConfig, &config, NULL, out);
}

static rn_status_t run_until_signal(rn_cli_t* cli, rn_str_t config, bool is_dispatcher,
                                    const char* host, const rn_env_t* env) {
  sigset_t signals;
  rn_ds_server_t* server = NULL;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, NULL);  // also in the threads of the server
  RN_RETURN_IF_ERROR(
      rn_ds_server_create(is_dispatcher, config, host, env, cli->allocator, &server));
  printf("%s:%d\n", host, rn_ds_server_port(server));
  fflush(stdout);
  rn_status_t status = rn_ds_server_start(server);
  int signal = 0;
  if (rn_ok(status)) sigwait(&signals, &signal);
  rn_ds_server_destroy(server);
  return status;
}

static rn_status_t data_server(rn_cli_t* cli) {
  rn_machine_map_large_blocks();
  const char* dispatcher = rn_cli_text(cli, "--dispatcher");
  const char* host = rn_cli_text(cli, "--host");
  bool is_open = host && strcmp(host, "127.0.0.1") != 0 && strcmp(host, "localhost") != 0;
  if (is_open && !rn_cli_has(cli, "--insecure"))
    return rn_cli_usage(cli,
                        "other machines can reach this address, and the service has no access "
                        "control: add --insecure if all of them are trusted");
  if (dispatcher && (rn_cli_text(cli, "--work-dir") || rn_cli_has(cli, "--fault-tolerant")))
    return rn_cli_usage(cli, "--work-dir and --fault-tolerant are for dispatchers");
  rn_env_t env = *cli->env;
  env.log = rn_cli_log_text;
  rn_strbuf_t config;
  rn_strbuf_init(&config, cli->allocator);
  rn_status_t status = write_config(cli, dispatcher, &config);
  if (rn_ok(status))
    status = run_until_signal(cli, rn_strbuf_view(&config), !dispatcher, host ? host : "127.0.0.1",
                              &env);
  rn_strbuf_clear(&config);
  return status;
}

static const rn_cli_option_t options[] = {
    RN_OPTION(TEXT, "--dispatcher", "HOST:PORT",
              "be a worker of this dispatcher; without it, be a dispatcher"),
    RN_OPTION(NUMBER, "--port", "N", "the port (default a free one)", .least = 0, .most = 65535),
    RN_OPTION(TEXT, "--host", "ADDRESS",
              "listen on this address of the machine, 0.0.0.0 for all (default 127.0.0.1)"),
    RN_OPTION(FLAG, "--insecure", NULL, "allow an address that other machines can reach"),
    RN_OPTION(TEXT, "--address", "HOST:PORT",
              "a worker's address as clients see it (default localhost:%port%)"),
    RN_OPTION(TEXT, "--tag", "TAG", "a worker's tag, for example COLOCATED"),
    RN_OPTION(NUMBER, "--heartbeat", "MS", "between a worker's heartbeats (default 30000)",
              .least = 1, .most = 3600000),
    RN_OPTION(FOLDER, "--work-dir", "DIR", "where a dispatcher keeps datasets and its journal"),
    RN_OPTION(FLAG, "--fault-tolerant", NULL,
              "keep a journal in --work-dir, and go on from it after a restart"),
    {0},
};

const rn_cli_command_t rn_cli_data_server_command = {
    .name = "data-server",
    .summary = "prepare input data for other machines",
    .about =
        "Runs a dispatcher or a worker of the tf.data service, which TensorFlow's and Runnel's "
        "programs use by tf.data.experimental.service.distribute. Prints the address when the port "
        "is open, and ends on SIGTERM or Ctrl-C. Anyone who reaches the port can run any pipeline.",
    .run = data_server,
    .options = options,
    .examples =
        "runnel data-server --port 5050 --work-dir journal --fault-tolerant\n"
        "runnel data-server --dispatcher localhost:5050",
};
