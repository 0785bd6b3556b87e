// Streaming calls: many messages in both directions on one stream, in order, and errors that end
// it. The client uses nghttp2 directly, on its own socket.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "../support/status.h"
#include "../support/stream_client.h"
#include "dist/eager/peers.h"
#include "dist/server.h"
#include "proto/eager_service.pb.h"
#include "wire/writer.h"

#define STREAM_TEST(name) Test(stream, name, .timeout = 60)

static rn_allocator_t memory(void) { return rn_allocator_system(); }

static rn_server_t* start_server(int* out_port) {
  const rn_server_task_t task = {.job = RN_STR("worker"), .address = RN_STR("127.0.0.1:0")};
  rn_server_options_t options = {.env = rn_env_system(),
                                 .allocator = memory(),
                                 .tasks = &task,
                                 .task_count = 1,
                                 .job = task.job,
                                 .lease_ns = 1000000000};
  rn_server_t* server = NULL;
  OK(rn_server_create(&options, &server));
  OK(rn_server_start(server));
  *out_port = atoi(strrchr(rn_server_target(server), ':') + 1);
  return server;
}

static size_t begin(rn_strbuf_t* out, uint64_t context) {
  rn_strbuf_init(out, memory());
  rn_pb_put_fixed64(out, rn_pb_eager_EnqueueRequest_context_id_field, context);
  return rn_pb_begin(out, rn_pb_eager_EnqueueRequest_queue_field);
}

// A vector of |count| floats as value |id|.
static void put_vector(stream_client_t* client, int64_t id, int64_t count) {
  rn_strbuf_t out;
  float* values = calloc((size_t)count, sizeof *values);
  size_t item = begin(&out, 7), send = rn_pb_begin(&out, rn_pb_eager_QueueItem_send_tensor_field);
  rn_pb_put_uint(&out, rn_pb_eager_SendTensorOp_op_id_field, (uint64_t)id);
  size_t tensor = rn_pb_begin(&out, rn_pb_eager_SendTensorOp_tensors_field);
  rn_pb_put_uint(&out, rn_pb_TensorProto_dtype_field, RN_FLOAT);
  size_t shape = rn_pb_begin(&out, rn_pb_TensorProto_tensor_shape_field);
  size_t dim = rn_pb_begin(&out, rn_pb_TensorShapeProto_dim_field);
  rn_pb_put_uint(&out, rn_pb_TensorShapeProto_Dim_size_field, (uint64_t)count);
  rn_pb_end(&out, dim);
  rn_pb_end(&out, shape);
  rn_pb_put_str(&out, rn_pb_TensorProto_tensor_content_field,
                rn_str_n((char*)values, (size_t)count * sizeof *values));
  rn_pb_end(&out, tensor);
  rn_pb_end(&out, send);
  rn_pb_end(&out, item);
  stream_put(client, &out);
  rn_strbuf_clear(&out);
  free(values);
}

static void put_op(stream_client_t* client, int64_t id, const char* name, int64_t input) {
  rn_strbuf_t out;
  size_t item = begin(&out, 7), op = rn_pb_begin(&out, rn_pb_eager_QueueItem_operation_field);
  rn_pb_put_uint(&out, rn_pb_eager_Operation_id_field, (uint64_t)id);
  rn_pb_put_str(&out, rn_pb_eager_Operation_name_field, rn_str(name));
  size_t at = rn_pb_begin(&out, rn_pb_eager_Operation_op_inputs_field);
  size_t handle = rn_pb_begin(&out, rn_pb_eager_Operation_Input_remote_handle_field);
  rn_pb_put_uint(&out, rn_pb_eager_RemoteTensorHandle_op_id_field, (uint64_t)input);
  rn_pb_end(&out, handle);
  rn_pb_end(&out, at);
  rn_pb_end(&out, op);
  rn_pb_end(&out, item);
  stream_put(client, &out);
  rn_strbuf_clear(&out);
}

static void open_context(int port) {
  rn_loop_t* loop = NULL;
  rn_channel_t* channel = NULL;
  rn_eager_question_t question;
  rn_message_t request, response;
  char address[64];
  rn_strbuf_t bytes;
  snprintf(address, sizeof address, "127.0.0.1:%d", port);
  OK(rn_loop_create(rn_env_system(), memory(), &loop));
  rn_channel_options_t way = {.loop = loop, .allocator = memory(), .address = address};
  OK(rn_channel_create(&way, &channel));
  rn_strbuf_init(&bytes, memory());
  rn_message_init(&request, memory());
  rn_pb_put_fixed64(&bytes, rn_pb_eager_CreateContextRequest_context_id_field, 7);
  OK(rn_message_add(&request, rn_strbuf_view(&bytes)));
  rn_strbuf_clear(&bytes);
  rn_eager_question_start(&question, channel, RN_EAGER_PATH "CreateContext", &request, INT64_MAX,
                          true);
  OK(rn_eager_question_wait(&question, &response));
  rn_message_clear(&response);
  rn_channel_destroy(channel);
  rn_loop_destroy(loop);
}

// The answer to an op with one vector of three: a prefix, the queue's answer, its shape.
static const char three[] = "\0\0\0\0\x08\x0a\x06\x0a\x04\x12\x02\x08\x03";
static const char none[] = "\0\0\0\0\x02\x0a\x00";
enum { kThree = sizeof three - 1, kNone = sizeof none - 1 };

STREAM_TEST(answers_come_in_order) {
  int port;
  rn_server_t* server = start_server(&port);
  open_context(port);
  stream_client_t client;
  stream_open(&client, port, RN_EAGER_PATH "StreamingEnqueue");
  put_vector(&client, 1, 3);
  stream_pump(&client, kNone);
  cr_assert(client.in.size == kNone && memcmp(client.in.data, none, kNone) == 0);
  client.in.size = 0;
  for (int i = 0; i < 300; ++i) put_op(&client, i + 2, "Neg", i + 1);  // many in one go
  stream_pump(&client, 300 * kThree);
  cr_assert_eq(client.in.size, 300 * kThree);
  for (int i = 0; i < 300; ++i)
    cr_assert_eq(memcmp(client.in.data + i * kThree, three, kThree), 0, "answer %d", i);
  client.in.size = 0;
  put_vector(&client, 1000, 1 << 20);  // a message of many frames, and one behind it
  put_op(&client, 1001, "Neg", 2);
  client.is_ended = true;
  stream_pump(&client, SIZE_MAX);
  cr_assert_eq(client.in.size, kNone + kThree);
  cr_assert_eq(client.status, 0);
  stream_close(&client);
  rn_server_destroy(server);
}

STREAM_TEST(an_error_ends_it) {
  int port;
  rn_server_t* server = start_server(&port);
  open_context(port);
  stream_client_t client;
  stream_open(&client, port, RN_EAGER_PATH "StreamingEnqueue");
  put_vector(&client, 1, 3);
  put_op(&client, 2, "NoSuchOp", 1);
  put_op(&client, 3, "Neg", 1);  // is not run any more
  stream_pump(&client, SIZE_MAX);
  cr_assert_eq(client.status, RN_CODE_NOT_FOUND);
  cr_assert_eq(client.in.size, kNone);
  stream_close(&client);
  stream_open(&client, port, RN_EAGER_PATH "StreamingEnqueue");  // the context goes on
  put_op(&client, 3, "Neg", 1);
  stream_pump(&client, kThree);
  cr_assert_eq(client.in.size, kThree);
  stream_close(&client);  // without a word
  rn_server_destroy(server);
}

// Nothing that a client leaves open keeps a server from ending.
STREAM_TEST(the_server_ends_with_streams_open) {
  int port;
  rn_server_t* server = start_server(&port);
  open_context(port);
  stream_client_t clients[3];
  for (int i = 0; i < 3; ++i) stream_open(&clients[i], port, RN_EAGER_PATH "StreamingEnqueue");
  put_vector(&clients[0], 1, 3);
  stream_pump(&clients[0], kNone);
  put_op(&clients[1], 9, "_Recv", 1);  // lacks all that it needs
  stream_pump(&clients[1], SIZE_MAX);
  cr_assert_eq(clients[1].status, RN_CODE_INVALID_ARGUMENT);
  stream_pump(&clients[2], 0);  // says nothing
  rn_server_destroy(server);
  for (int i = 0; i < 3; ++i) stream_close(&clients[i]);
}
