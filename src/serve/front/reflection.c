// gRPC's reflection, v1 and v1alpha: clients without the .proto files ask which services there are
// and how their messages look. Answers come from descriptors that the build made.
#include "proto/reflection.pb.h"
#include "proto/services.pb.h"
#include "serve/front/rpc.h"
#include "wire/scan.h"
#include "wire/writer.h"

static int file_by_name(rn_str_t name) {
  for (size_t i = 0; i < rn_pb_file_count; ++i)
    if (rn_str_is(name, rn_pb_files[i].name)) return (int)i;
  return -1;
}

static int file_by_symbol(rn_str_t symbol) {
  if (symbol.size && symbol.data[0] == '.') symbol = rn_str_n(symbol.data + 1, symbol.size - 1);
  for (size_t i = 0; i < rn_pb_file_count; ++i)
    for (const char* const* name = rn_pb_files[i].names; *name; ++name)
      if (rn_str_is(symbol, *name)) return (int)i;
  return -1;
}

// A file and everything that it imports. Imports come first in the list of files, so that one pass
// from the end finds them all.
static rn_status_t put_files(const rn_front_t* front, rn_strbuf_t* out, int wanted) {
  bool* marks = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(front->allocator, rn_pb_file_count, &marks));
  marks[wanted] = true;
  for (int i = wanted; i >= 0; --i)
    for (const int16_t* import = rn_pb_files[i].imports; marks[i] && *import >= 0; ++import)
      marks[*import] = true;
  size_t response = rn_pb_begin(
      out, rn_pb_grpc_reflection_v1_ServerReflectionResponse_file_descriptor_response_field);
  for (int i = wanted; i >= 0; --i) {
    if (!marks[i]) continue;
    rn_str_t bytes = rn_str_n((const char*)rn_pb_files[i].bytes, rn_pb_files[i].size);
    rn_pb_put_str(out, rn_pb_grpc_reflection_v1_FileDescriptorResponse_file_descriptor_proto_field,
                  bytes);
  }
  rn_pb_end(out, response);
  RN_FREE_ARRAY(front->allocator, marks, rn_pb_file_count);
  return RN_OK;
}

static void put_services(rn_strbuf_t* out) {
  size_t list = rn_pb_begin(
      out, rn_pb_grpc_reflection_v1_ServerReflectionResponse_list_services_response_field);
  for (size_t i = 0; i < rn_pb_service_count; ++i) {
    size_t service = rn_pb_begin(out, rn_pb_grpc_reflection_v1_ListServiceResponse_service_field);
    rn_pb_put_str(out, rn_pb_grpc_reflection_v1_ServiceResponse_name_field,
                  rn_str(rn_pb_services[i]));
    rn_pb_end(out, service);
  }
  rn_pb_end(out, list);
}

static void put_error(rn_strbuf_t* out, rn_code_t code, const char* message) {
  size_t error =
      rn_pb_begin(out, rn_pb_grpc_reflection_v1_ServerReflectionResponse_error_response_field);
  rn_pb_put_uint(out, rn_pb_grpc_reflection_v1_ErrorResponse_error_code_field, (uint64_t)code);
  rn_pb_put_str(out, rn_pb_grpc_reflection_v1_ErrorResponse_error_message_field, rn_str(message));
  rn_pb_end(out, error);
}

static rn_status_t answer(const rn_front_t* front, rn_str_t request, rn_strbuf_t* out) {
  rn_pb_put_str(out, rn_pb_grpc_reflection_v1_ServerReflectionResponse_original_request_field,
                request);
  rn_pb_scan_t scan = rn_pb_scan(request);
  rn_pb_field_t field, question = {0};
  while (rn_pb_scan_next(&scan, &field))
    if (field.wire == RN_PB_WIRE_LENGTH &&
        field.number >= rn_pb_grpc_reflection_v1_ServerReflectionRequest_file_by_filename_field)
      question = field;
  if (scan.is_bad) return rn_invalid_argument("Malformed ServerReflectionRequest");
  int file = -1;
  switch (question.number) {
    case rn_pb_grpc_reflection_v1_ServerReflectionRequest_list_services_field:
      put_services(out);
      return RN_OK;
    case rn_pb_grpc_reflection_v1_ServerReflectionRequest_file_by_filename_field:
      file = file_by_name(question.bytes);
      break;
    case rn_pb_grpc_reflection_v1_ServerReflectionRequest_file_containing_symbol_field:
      file = file_by_symbol(question.bytes);
      break;
    default:  // proto3 has no extensions
      break;
  }
  if (file >= 0) return put_files(front, out, file);
  put_error(out, RN_CODE_NOT_FOUND, "Not found.");
  return RN_OK;
}

static void on_request(rn_rpc_in_t* call, rn_message_t* message) {
  const rn_front_t* front = call->owner;
  rn_status_t status = RN_OK;
  if (message) {
    rn_strbuf_t body;
    rn_strbuf_init(&body, front->allocator);
    status = answer(front, rn_message_view(message), &body);
    if (rn_ok(status)) rn_rpc_stream(call, &body);
    rn_strbuf_clear(&body);
    rn_message_clear(message);
    if (rn_ok(status)) return;
  }
  call->message = NULL;
  call->gone = NULL;
  rn_rpc_fail(front, call, status);
}

static void on_gone(rn_rpc_in_t* call) {
  rn_rpc_fail(call->owner, call, rn_cancelled("The client is gone"));
}

static void server_reflection_info(rn_front_t* front, rn_rpc_in_t* call) {
  call->owner = front;
  call->message = on_request;
  call->gone = on_gone;
}

static const rn_rpc_method_t methods[] = {
    {"ServerReflectionInfo", RN_ROLE_READ, server_reflection_info},
};

bool rn_reflection_route(rn_front_t* front, rn_rpc_in_t* call, rn_role_t role) {
  static const char* const services[] = {"/grpc.reflection.v1.ServerReflection/",
                                         "/grpc.reflection.v1alpha.ServerReflection/"};
  for (int i = 0; i < 2; ++i)
    if (rn_rpc_dispatch(front, call, role, services[i], methods, 1)) return true;
  return false;
}
