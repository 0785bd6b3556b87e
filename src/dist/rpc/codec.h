// Encodes and decodes the messages of the two services, from and to the records of dist/iface.h
// (codec.c; those of collectives in collective_codec.c).
//
// Large tensors are not copied: they are sent from their own buffers, and received ones stay in the
// message's buffer.
#ifndef RUNNEL_DIST_RPC_CODEC_H_
#define RUNNEL_DIST_RPC_CODEC_H_

#include "base/arena.h"
#include "dist/iface.h"
#include "dist/rpc/loan.h"
#include "net/tensor_codec.h"
#include "wire/scan.h"

// The path of a service's methods: RN_PATH_worker "RunGraph".
#define RN_PATH_worker "/tensorflow.WorkerService/"
#define RN_PATH_master "/tensorflow.MasterService/"

// Requests and responses of the larger calls; small ones are encoded where they are used. Strings
// are borrowed from the bytes, arrays are in |arena|.
typedef struct rn_in_t {
  rn_str_t bytes;
  rn_buffer_t* buffer;  // Borrowed: holds the bytes
  rn_arena_t* arena;
  rn_allocator_t allocator;  // of tensors
} rn_in_t;

void rn_encode_devices(rn_encoder_t* encoder, uint32_t number, const rn_device_info_t* devices,
                       size_t count);
// Appends the devices of field |number|.
RN_MUST_USE rn_status_t rn_decode_devices(const rn_in_t* in, uint32_t number,
                                          rn_device_info_t** out, size_t* out_count);

void rn_encode_status(rn_encoder_t* encoder, const rn_get_status_t* call);
// The response is in the call's own arena.
RN_MUST_USE rn_status_t rn_decode_status(const rn_in_t* in, rn_get_status_t* call);

void rn_encode_complete_group(rn_encoder_t* encoder, const rn_complete_group_t* call);
RN_MUST_USE rn_status_t rn_decode_complete_group(const rn_in_t* in, rn_complete_group_t* call);
void rn_encode_group(rn_encoder_t* encoder, const rn_complete_group_t* call);
// The response is in the call's own arena.
RN_MUST_USE rn_status_t rn_decode_group(const rn_in_t* in, rn_complete_group_t* call);

void rn_encode_complete_instance(rn_encoder_t* encoder, const rn_complete_instance_t* call);
void rn_decode_complete_instance(rn_str_t bytes, rn_complete_instance_t* call);

void rn_encode_recv_buf(rn_encoder_t* encoder, const rn_recv_buf_t* call);
void rn_decode_recv_buf(rn_str_t bytes, rn_recv_buf_t* call);
void rn_encode_buf(rn_encoder_t* encoder, const rn_recv_buf_t* call, int64_t now_us);
// INTERNAL if it has another size than the call expects.
RN_MUST_USE rn_status_t rn_decode_buf(const rn_in_t* in, rn_recv_buf_t* call);

void rn_encode_run_graph(rn_encoder_t* encoder, const rn_run_graph_t* call);
RN_MUST_USE rn_status_t rn_decode_run_graph(const rn_in_t* in, rn_run_graph_t* call);
// Errors are in the body; |status| is borrowed.
void rn_encode_run_graph_response(rn_encoder_t* encoder, const rn_run_graph_t* call,
                                  rn_status_t status);
RN_MUST_USE rn_status_t rn_decode_run_graph_response(const rn_in_t* in, rn_run_graph_t* call);

void rn_encode_received(rn_encoder_t* encoder, const rn_recv_tensor_t* call, int64_t now_us);
RN_MUST_USE rn_status_t rn_decode_received(const rn_in_t* in, rn_recv_tensor_t* call);

// Our own tasks' extension of RecvTensor for loans (loan.h). First the receiver names its machine,
// and the sender its socket. Then the receiver names the line that it opened there, and the sender
// greets it on the line. After that the receiver asks for loans on the line.
typedef struct rn_loan_ask_t {
  char machine[40];     // of the receiver; "": no loans
  rn_loan_name_t line;  // valid if |has_line|
  bool has_line, wants_loan;
} rn_loan_ask_t;
// Likewise for wires (wire.h). A receiver that has one asks for the sender's address, then names
// the line that it has dialed there and the number under which it expects the value.
typedef struct rn_wire_ask_t {
  bool is_there, has_line;
  rn_loan_name_t line;  // valid if |has_line|, like the next
  uint64_t number;
} rn_wire_ask_t;
typedef struct rn_wire_answer_t {
  bool is_sent;      // the value went over the wire
  rn_str_t address;  // of a sender that does not know the line; "": none
} rn_wire_answer_t;
void rn_encode_recv_tensor(rn_encoder_t* encoder, const rn_recv_tensor_t* call,
                           const rn_loan_ask_t* ask, const rn_wire_ask_t* wire);
void rn_decode_wire_ask(rn_str_t request, rn_wire_ask_t* out);
void rn_encode_wire_answer(rn_encoder_t* encoder, const rn_wire_answer_t* answer);
void rn_decode_wire_answer(rn_str_t response, rn_wire_answer_t* out);
void rn_decode_loan_ask(rn_str_t request, rn_loan_ask_t* out);
void rn_encode_reach(rn_encoder_t* encoder, const rn_reach_t* reach);
bool rn_decode_reach(rn_str_t response, rn_reach_t* out);
// Our own field in MarkRecvFinishedResponse: the loan existed, and ends now.
#define RN_MARKED_FIELD 1000
// Encodes a loan instead of the value itself.
void rn_encode_loan(rn_encoder_t* encoder, const rn_tensor_t* value, uint64_t id);
// False if |response| holds none. The tensor has a type and a shape, but no bytes yet.
RN_MUST_USE rn_status_t rn_decode_loan(rn_str_t response, uint64_t* out_id, rn_tensor_t* out_value,
                                       bool* out_is_there);

void rn_encode_run_step(rn_encoder_t* encoder, const rn_run_step_t* call);
RN_MUST_USE rn_status_t rn_decode_run_step(const rn_in_t* in, rn_run_step_t* call,
                                           bool* out_errors_in_body);
void rn_encode_run_step_response(rn_encoder_t* encoder, const rn_run_step_t* call,
                                 rn_status_t status);
RN_MUST_USE rn_status_t rn_decode_run_step_response(const rn_in_t* in, rn_run_step_t* call);

RN_MUST_USE rn_status_t rn_decode_run_callable(const rn_in_t* in, rn_run_callable_t* call);
RN_MUST_USE rn_status_t rn_decode_run_callable_response(const rn_in_t* in, rn_run_callable_t* call);

// The names of the repeated string field |number|.
RN_MUST_USE rn_status_t rn_decode_names(const rn_in_t* in, uint32_t number, const rn_str_t** out,
                                        size_t* out_count);

#endif  // RUNNEL_DIST_RPC_CODEC_H_
