// Room for any call's record: whoever carries calls without knowing which they are.
#ifndef RUNNEL_DIST_RECORDS_H_
#define RUNNEL_DIST_RECORDS_H_

#include "dist/iface.h"

typedef union rn_record_t {
  rn_call_t call;
  rn_get_status_t get_status;
  rn_create_worker_session_t create_worker_session;
  rn_delete_worker_session_t delete_worker_session;
  rn_register_graph_t register_graph;
  rn_deregister_graph_t deregister_graph;
  rn_run_graph_t run_graph;
  rn_cleanup_graph_t cleanup_graph;
  rn_recv_tensor_t recv_tensor;
  rn_cleanup_all_t cleanup_all;
  rn_logging_t logging;
  rn_create_session_t create_session;
  rn_extend_session_t extend_session;
  rn_partial_setup_t partial_setup;
  rn_run_step_t run_step;
  rn_close_session_t close_session;
  rn_list_devices_t list_devices;
  rn_reset_t reset;
  rn_make_callable_t make_callable;
  rn_run_callable_t run_callable;
  rn_release_callable_t release_callable;
} rn_record_t;

#endif  // RUNNEL_DIST_RECORDS_H_
