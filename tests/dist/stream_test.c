// Streaming calls: many messages in both directions on one stream, in order, and errors that end
// it. The client uses nghttp2 directly, on its own socket.
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../support/status.h"
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

// One call, and what came of it.
typedef struct client_t {
  int socket;
  nghttp2_session* session;
  int32_t stream;
  rn_strbuf_t out, in;  // bytes to send; bytes that came
  bool is_ended;        // nothing more will be sent
  bool is_closed;
  int status;  // grpc-status; -1: none came
} client_t;

static ssize_t on_send(nghttp2_session* session, const uint8_t* data, size_t size, int flags,
                       void* arg) {
  (void)session, (void)flags;
  ssize_t n = write(((client_t*)arg)->socket, data, size);
  return n > 0 ? n : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_data(nghttp2_session* session, uint8_t flags, int32_t id, const uint8_t* data,
                   size_t size, void* arg) {
  (void)session, (void)flags, (void)id;
  rn_strbuf_append_n(&((client_t*)arg)->in, (const char*)data, size);
  return 0;
}

static int on_header(nghttp2_session* session, const nghttp2_frame* frame, const uint8_t* name,
                     size_t name_size, const uint8_t* value, size_t value_size, uint8_t flags,
                     void* arg) {
  (void)session, (void)frame, (void)value_size, (void)flags;
  if (rn_str_is(rn_str_n((const char*)name, name_size), "grpc-status"))
    ((client_t*)arg)->status = atoi((const char*)value);
  return 0;
}

static int on_close(nghttp2_session* session, int32_t id, uint32_t code, void* arg) {
  (void)session, (void)id, (void)code;
  ((client_t*)arg)->is_closed = true;
  return 0;
}

static ssize_t on_read(nghttp2_session* session, int32_t id, uint8_t* buffer, size_t size,
                       uint32_t* flags, nghttp2_data_source* source, void* arg) {
  (void)session, (void)id, (void)source;
  client_t* client = arg;
  size_t n = client->out.size < size ? client->out.size : size;
  memcpy(buffer, client->out.data, n);
  memmove(client->out.data, client->out.data + n, client->out.size - n);
  client->out.size -= n;
  if (n == 0 && !client->is_ended) return NGHTTP2_ERR_DEFERRED;
  if (client->out.size == 0 && client->is_ended) *flags |= NGHTTP2_DATA_FLAG_EOF;
  return (ssize_t)n;
}

#define PAIR(n, v) \
  { (uint8_t*)(n), (uint8_t*)(v), sizeof(n) - 1, sizeof(v) - 1, NGHTTP2_NV_FLAG_NONE }

static void client_open(client_t* client, int port) {
  *client = (client_t){.status = -1};
  rn_strbuf_init(&client->out, memory());
  rn_strbuf_init(&client->in, memory());
  rn_strbuf_printf(&client->out, " ");  // it has memory
  client->out.size = 0;
  struct sockaddr_in at = {.sin_family = AF_INET,
                           .sin_port = htons((uint16_t)port),
                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  client->socket = socket(AF_INET, SOCK_STREAM, 0);
  cr_assert_eq(connect(client->socket, (struct sockaddr*)&at, sizeof at), 0);
  nghttp2_session_callbacks* callbacks = NULL;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
  nghttp2_session_client_new(&client->session, callbacks, client);
  nghttp2_session_callbacks_del(callbacks);
  nghttp2_submit_settings(client->session, NGHTTP2_FLAG_NONE, NULL, 0);
  const nghttp2_nv headers[] = {PAIR(":method", "POST"),
                                PAIR(":scheme", "http"),
                                PAIR(":path", RN_EAGER_PATH "StreamingEnqueue"),
                                PAIR(":authority", "here"),
                                PAIR("content-type", "application/grpc"),
                                PAIR("te", "trailers")};
  nghttp2_data_provider provider = {.read_callback = on_read};
  client->stream = nghttp2_submit_request(client->session, NULL, headers,
                                          sizeof headers / sizeof *headers, &provider, NULL);
}

static void client_close(client_t* client) {
  nghttp2_session_del(client->session);
  close(client->socket);
  rn_strbuf_clear(&client->out);
  rn_strbuf_clear(&client->in);
}

static void put_message(client_t* client, const rn_strbuf_t* message) {
  size_t n = message->size;
  const char prefix[5] = {0, (char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};
  rn_strbuf_append_n(&client->out, prefix, sizeof prefix);
  rn_strbuf_append_n(&client->out, message->data, n);
}

// Writes what waits; then reads until |bytes| have come, or the call is over.
static void pump(client_t* client, size_t bytes) {
  char buffer[65536];
  nghttp2_session_resume_data(client->session, client->stream);
  cr_assert_eq(nghttp2_session_send(client->session), 0);
  while (client->in.size < bytes && !client->is_closed) {
    ssize_t n = read(client->socket, buffer, sizeof buffer);
    cr_assert_gt(n, 0, "the server has gone");
    cr_assert_eq(nghttp2_session_mem_recv(client->session, (uint8_t*)buffer, (size_t)n), n);
    cr_assert_eq(nghttp2_session_send(client->session), 0);
  }
}

static size_t begin(rn_strbuf_t* out, uint64_t context) {
  rn_strbuf_init(out, memory());
  rn_pb_put_fixed64(out, rn_pb_eager_EnqueueRequest_context_id_field, context);
  return rn_pb_begin(out, rn_pb_eager_EnqueueRequest_queue_field);
}

// A vector of |count| floats as value |id|.
static void put_vector(client_t* client, int64_t id, int64_t count) {
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
  put_message(client, &out);
  rn_strbuf_clear(&out);
  free(values);
}

static void put_op(client_t* client, int64_t id, const char* name, int64_t input) {
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
  put_message(client, &out);
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
  client_t client;
  client_open(&client, port);
  put_vector(&client, 1, 3);
  pump(&client, kNone);
  cr_assert(client.in.size == kNone && memcmp(client.in.data, none, kNone) == 0);
  client.in.size = 0;
  for (int i = 0; i < 300; ++i) put_op(&client, i + 2, "Neg", i + 1);  // many in one go
  pump(&client, 300 * kThree);
  cr_assert_eq(client.in.size, 300 * kThree);
  for (int i = 0; i < 300; ++i)
    cr_assert_eq(memcmp(client.in.data + i * kThree, three, kThree), 0, "answer %d", i);
  client.in.size = 0;
  put_vector(&client, 1000, 1 << 20);  // a message of many frames, and one behind it
  put_op(&client, 1001, "Neg", 2);
  client.is_ended = true;
  pump(&client, SIZE_MAX);
  cr_assert_eq(client.in.size, kNone + kThree);
  cr_assert_eq(client.status, 0);
  client_close(&client);
  rn_server_destroy(server);
}

STREAM_TEST(an_error_ends_it) {
  int port;
  rn_server_t* server = start_server(&port);
  open_context(port);
  client_t client;
  client_open(&client, port);
  put_vector(&client, 1, 3);
  put_op(&client, 2, "NoSuchOp", 1);
  put_op(&client, 3, "Neg", 1);  // is not run any more
  pump(&client, SIZE_MAX);
  cr_assert_eq(client.status, RN_CODE_NOT_FOUND);
  cr_assert_eq(client.in.size, kNone);
  client_close(&client);
  client_open(&client, port);  // the context goes on
  put_op(&client, 3, "Neg", 1);
  pump(&client, kThree);
  cr_assert_eq(client.in.size, kThree);
  client_close(&client);  // without a word
  rn_server_destroy(server);
}

// Nothing that a client leaves open keeps a server from ending.
STREAM_TEST(the_server_ends_with_streams_open) {
  int port;
  rn_server_t* server = start_server(&port);
  open_context(port);
  client_t clients[3];
  for (int i = 0; i < 3; ++i) client_open(&clients[i], port);
  put_vector(&clients[0], 1, 3);
  pump(&clients[0], kNone);
  put_op(&clients[1], 9, "_Recv", 1);  // lacks all that it needs
  pump(&clients[1], SIZE_MAX);
  cr_assert_eq(clients[1].status, RN_CODE_INVALID_ARGUMENT);
  pump(&clients[2], 0);  // says nothing
  rn_server_destroy(server);
  for (int i = 0; i < 3; ++i) client_close(&clients[i]);
}
