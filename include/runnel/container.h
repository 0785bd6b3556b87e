// Models in C behind `runnel serve`: the container's end of the protocol of doc/containers.md.
//
// Everything is in this file, and needs the C library and threads only: copy it into any program,
// in C or C++. A container describes its signatures and gives a function that computes a batch:
//
//   static int twice(void* self, rn_guest_call_t* call) {
//     const rn_guest_tensor_t* x = &call->inputs[0];
//     float* y = (float*)rn_guest_output(call, 0, x->rank, x->dims, x->size);
//     if (!y) return RN_GUEST_NO_MEMORY;
//     for (size_t i = 0; i < x->size / sizeof(float); ++i) y[i] = 2 * ((const float*)x->data)[i];
//     return 0;
//   }
//
//   int main(void) {
//     const int64_t dims[] = {-1};
//     const rn_guest_port_t x = {"x", RN_GUEST_FLOAT, 1, dims}, y = {"y", RN_GUEST_FLOAT, 1, dims};
//     const rn_guest_signature_t signature = {"serving_default", &x, 1, &y, 1, RN_GUEST_BATCHED,
//     NULL}; const rn_guest_options_t options = {&signature, 1, twice, NULL, 0}; return
//     rn_guest_serve(&options);
//   }
#ifndef RUNNEL_CONTAINER_H_
#define RUNNEL_CONTAINER_H_

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

// Numbers of TensorFlow's types; others may be used by their numbers.
enum {
  RN_GUEST_FLOAT = 1,
  RN_GUEST_DOUBLE = 2,
  RN_GUEST_INT32 = 3,
  RN_GUEST_UINT8 = 4,
  RN_GUEST_STRING = 7,
  RN_GUEST_INT64 = 9,
  RN_GUEST_BOOL = 10,
};

// Codes of gRPC, for errors.
enum {
  RN_GUEST_INVALID_ARGUMENT = 3,
  RN_GUEST_NO_MEMORY = 8,  // RESOURCE_EXHAUSTED
  RN_GUEST_INTERNAL = 13,
};

enum {
  RN_GUEST_BATCHED = 1,  // dimension 0 of everything is the rows of several requests
  RN_GUEST_PURE = 2,     // equal inputs give equal outputs: the server may answer from its cache
};

enum { RN_GUEST_MAX_LANES = 64, RN_GUEST_MAX_PORTS = 64, RN_GUEST_MAX_RANK = 254 };

// An input or output. |rank| -1: any shape; a dimension of -1: any size.
typedef struct rn_guest_port_t {
  const char* name;
  int dtype;
  int rank;
  const int64_t* dims;
} rn_guest_port_t;

// Signatures, and the ports of each, come by ascending name.
typedef struct rn_guest_signature_t {
  const char* name;
  const rn_guest_port_t* inputs;
  int input_count;
  const rn_guest_port_t* outputs;
  int output_count;  // inputs and outputs: at most RN_GUEST_MAX_PORTS
  int flags;
  const char* method;  // NULL: "tensorflow/serving/predict"
} rn_guest_signature_t;

// |size| bytes at |data|. Strings are their lengths, as uint64_t, then their bytes.
typedef struct rn_guest_tensor_t {
  int dtype;
  int rank;
  const int64_t* dims;
  const void* data;
  size_t size;
} rn_guest_tensor_t;

// A batch. Everything is valid until the function returns.
typedef struct rn_guest_call_t {
  int signature;
  int input_count, output_count;
  int64_t deadline_us;    // how long the server waits; -1: without limit
  const uint8_t* wanted;  // one per output: whether it must be set
  rn_guest_tensor_t inputs[RN_GUEST_MAX_PORTS];
  // For the functions below.
  rn_guest_tensor_t outputs[RN_GUEST_MAX_PORTS];
  int64_t* output_dims[RN_GUEST_MAX_PORTS];
  uint8_t is_shared[RN_GUEST_MAX_PORTS];
  const rn_guest_signature_t* described;
  char *room, *room_end, *region;
  char error[512];
} rn_guest_call_t;

typedef struct rn_guest_options_t {
  const rn_guest_signature_t* signatures;
  int signature_count;
  // Computes a batch: 0, or the code of an error (rn_guest_fail).
  int (*run)(void* self, rn_guest_call_t* call);
  void* self;
  uint64_t max_rows;  // of a batch; 0: any
} rn_guest_options_t;

// Memory for an output: |size| bytes, in the server's shared memory if there is room. NULL without
// memory. Every wanted output must be set, others may be.
static inline void* rn_guest_output(rn_guest_call_t* call, int index, int rank, const int64_t* dims,
                                    size_t size);
// Says why a batch failed. Returns |code|.
static inline int rn_guest_fail(rn_guest_call_t* call, int code, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
// Serves the server that started this process, until it wants no more: 0. Otherwise 1, after a
// message on stderr. Batches run on the calling thread, one at a time; another thread sends beats.
static inline int rn_guest_serve(const rn_guest_options_t* options);

// The rest is how.

typedef struct rn_guest_buffer_t {
  char* data;
  size_t size, capacity;
  int failed;
} rn_guest_buffer_t;

typedef struct rn_guest_state_t {
  int fd;
  const rn_guest_options_t* options;
  pthread_mutex_t mutex;  // of writes
  uint32_t beat_ms;
  rn_guest_buffer_t in, out;
  struct {
    char* data;
    size_t size;
  } regions[RN_GUEST_MAX_LANES];
  int passed;  // a descriptor that has come; -1: none
} rn_guest_state_t;

// Appends |size| bytes, zeros if |data| is NULL. Without memory the buffer fails, and stays so.
static inline void rn_guest_put(rn_guest_buffer_t* buffer, const void* data, size_t size) {
  if (buffer->size + size > buffer->capacity) {
    size_t capacity = (buffer->size + size) * 2;
    char* grown = buffer->failed ? NULL : (char*)realloc(buffer->data, capacity);
    if (!grown) {
      buffer->failed = 1;
      return;
    }
    buffer->data = grown;
    buffer->capacity = capacity;
  }
  if (size && data) memcpy(buffer->data + buffer->size, data, size);
  if (size && !data) memset(buffer->data + buffer->size, 0, size);
  buffer->size += size;
}
// Append a number, or a text with its size before it.
static inline void rn_guest_put_u32(rn_guest_buffer_t* buffer, uint32_t value) {
  rn_guest_put(buffer, &value, sizeof value);
}
static inline void rn_guest_put_u64(rn_guest_buffer_t* buffer, uint64_t value) {
  rn_guest_put(buffer, &value, sizeof value);
}
static inline void rn_guest_put_text(rn_guest_buffer_t* buffer, const char* text) {
  rn_guest_put_u32(buffer, (uint32_t)strlen(text));
  rn_guest_put(buffer, text, strlen(text));
}

// Begins a frame; rn_guest_send sets its size and sends it.
static inline void rn_guest_begin(rn_guest_buffer_t* buffer, uint32_t kind, uint64_t id) {
  buffer->size = 0;
  rn_guest_put_u32(buffer, 0);
  rn_guest_put_u32(buffer, kind);
  rn_guest_put_u64(buffer, id);
}

// Sets the size of the frame in |buffer| and sends it: 0, or -1 on failure. Any thread.
static inline int rn_guest_send(rn_guest_state_t* state, rn_guest_buffer_t* buffer) {
  if (buffer->failed || buffer->size < 16) return -1;
  uint32_t size = (uint32_t)(buffer->size - 16);
  memcpy(buffer->data, &size, sizeof size);
  size_t sent = 0;
  pthread_mutex_lock(&state->mutex);
  while (sent < buffer->size) {
    ssize_t put = send(state->fd, buffer->data + sent, buffer->size - sent, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) break;
    sent += (size_t)put;
  }
  pthread_mutex_unlock(&state->mutex);
  return sent == buffer->size ? 0 : -1;
}

// Keeps the descriptor that came with |message|, if one did.
static inline void rn_guest_keep(rn_guest_state_t* state, struct msghdr* message) {
  for (struct cmsghdr* header = CMSG_FIRSTHDR(message); header;
       header = CMSG_NXTHDR(message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    if (state->passed >= 0) close(state->passed);
    memcpy(&state->passed, CMSG_DATA(header), sizeof state->passed);
  }
}

// Reads |size| bytes: 1. 0 at the end of the stream, -1 on failure.
static inline int rn_guest_read(rn_guest_state_t* state, char* to, size_t size) {
  for (size_t at = 0; at < size;) {
    union {
      struct cmsghdr align;
      char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec piece = {to + at, size - at};
    struct msghdr message;
    memset(&message, 0, sizeof message);
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    ssize_t got = recvmsg(state->fd, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0 || errno == ECONNRESET ? 0 : -1;
    rn_guest_keep(state, &message);
    at += (size_t)got;
  }
  return 1;
}

// The thread that sends beats, so that the server sees that this process lives.
static inline void* rn_guest_beat(void* arg) {
  rn_guest_state_t* state = (rn_guest_state_t*)arg;
  rn_guest_buffer_t frame;
  memset(&frame, 0, sizeof frame);
  rn_guest_begin(&frame, 7, 0);
  while (rn_guest_send(state, &frame) == 0) poll(NULL, 0, (int)state->beat_ms);
  free(frame.data);
  return NULL;
}

// Appends the descriptions of |count| inputs or outputs.
static inline void rn_guest_put_ports(rn_guest_buffer_t* out, const rn_guest_port_t* ports,
                                      int count) {
  for (int i = 0; i < count; ++i) {
    rn_guest_put_text(out, ports[i].name);
    rn_guest_put_u32(out, (uint32_t)ports[i].dtype);
    rn_guest_put_u32(out, (uint32_t)ports[i].rank);
    if (ports[i].rank > 0)
      rn_guest_put(out, ports[i].dims, (size_t)ports[i].rank * sizeof(int64_t));
  }
}

// Sends the first frame: what this container serves.
static inline int rn_guest_hello(rn_guest_state_t* state) {
  const rn_guest_options_t* options = state->options;
  rn_guest_buffer_t* out = &state->out;
  rn_guest_begin(out, 1, 0);
  rn_guest_put_u32(out, UINT32_C(0x54434e52));
  rn_guest_put_u32(out, 1);
  rn_guest_put_u32(out, 1);
  rn_guest_put_u32(out, 1);
  rn_guest_put_u64(out, options->max_rows);
  rn_guest_put_text(out, "");
  rn_guest_put_u32(out, (uint32_t)options->signature_count);
  for (int i = 0; i < options->signature_count; ++i) {
    const rn_guest_signature_t* signature = &options->signatures[i];
    rn_guest_put_text(out, signature->name);
    rn_guest_put_text(out, signature->method ? signature->method : "");
    rn_guest_put_u32(out, (uint32_t)signature->flags);
    rn_guest_put_u32(out, (uint32_t)signature->input_count);
    rn_guest_put_u32(out, (uint32_t)signature->output_count);
    rn_guest_put_ports(out, signature->inputs, signature->input_count);
    rn_guest_put_ports(out, signature->outputs, signature->output_count);
  }
  return rn_guest_send(state, out);
}

// Maps the shared memory of a lane, whose descriptor came with the frame: 0, or -1.
static inline int rn_guest_map(rn_guest_state_t* state, const char* payload, size_t size) {
  uint32_t lane;
  uint64_t bytes;
  if (size != 16 || state->passed < 0) return -1;
  memcpy(&lane, payload, sizeof lane);
  memcpy(&bytes, payload + 8, sizeof bytes);
  if (lane >= RN_GUEST_MAX_LANES) return -1;
  if (state->regions[lane].data) munmap(state->regions[lane].data, state->regions[lane].size);
  void* data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, state->passed, 0);
  close(state->passed);
  state->passed = -1;
  state->regions[lane].data = data == MAP_FAILED ? NULL : (char*)data;
  state->regions[lane].size = bytes;
  return data == MAP_FAILED ? -1 : 0;
}

// As declared above: in shared memory while there is room, else in memory of its own.
static inline void* rn_guest_output(rn_guest_call_t* call, int index, int rank, const int64_t* dims,
                                    size_t size) {
  if (index < 0 || index >= call->output_count || rank < 0 || rank > RN_GUEST_MAX_RANK ||
      call->output_dims[index])
    return NULL;
  rn_guest_tensor_t* output = &call->outputs[index];
  size_t room = (size_t)(call->room_end - call->room);
  size_t needed = (size + 63) / 64 * 64;
  int64_t* copy = (int64_t*)calloc((size_t)rank + 1, sizeof *copy);
  void* data = NULL;
  if (copy && needed <= room && size) {
    data = call->room;
    call->room += needed;
    call->is_shared[index] = 1;
  } else if (copy) {
    data = malloc(size ? size : 1);
  }
  if (!data) {
    free(copy);
    return NULL;
  }
  if (rank) memcpy(copy, dims, (size_t)rank * sizeof *copy);
  call->output_dims[index] = copy;
  output->dtype = call->described->outputs[index].dtype;
  output->rank = rank;
  output->dims = copy;
  output->data = data;
  output->size = size;
  return data;
}

// As declared above.
static inline int rn_guest_fail(rn_guest_call_t* call, int code, const char* format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(call->error, sizeof call->error, format, args);
  va_end(args);
  return code;
}

// Takes apart a PREDICT. The server is trusted as far as it goes; what would break this process is
// checked all the same.
static inline int rn_guest_take(rn_guest_state_t* state, rn_guest_call_t* call, char* payload,
                                size_t size) {
  uint32_t head[4];  // signature, lane, inputs, outputs
  uint64_t room[2];  // offset, size
  if (size < 40) return -1;
  memcpy(head, payload, sizeof head);
  memcpy(&call->deadline_us, payload + 16, sizeof call->deadline_us);
  memcpy(room, payload + 24, sizeof room);
  if (head[0] >= (uint32_t)state->options->signature_count || head[1] >= RN_GUEST_MAX_LANES)
    return -1;
  call->described = &state->options->signatures[head[0]];
  if (head[2] != (uint32_t)call->described->input_count ||
      head[3] != (uint32_t)call->described->output_count)
    return -1;
  call->signature = (int)head[0];
  call->input_count = (int)head[2];
  call->output_count = (int)head[3];
  call->wanted = (const uint8_t*)payload + 40;
  char* region = state->regions[head[1]].data;
  size_t region_size = region ? state->regions[head[1]].size : 0;
  if (room[0] > region_size || room[1] > region_size - room[0]) return -1;
  call->region = region;
  call->room = region + room[0];
  call->room_end = call->room + room[1];
  size_t at = 40 + (head[3] + 7) / 8 * 8;
  for (uint32_t i = 0; i < head[2]; ++i) {
    struct {
      int32_t dtype;
      uint16_t rank, place;
      uint64_t offset, size;
    } entry;
    if (at + sizeof entry > size) return -1;
    memcpy(&entry, payload + at, sizeof entry);
    at += sizeof entry;
    const char* base = entry.place == 1 ? payload : region;
    size_t limit = entry.place == 1 ? size : region_size;
    if (at + entry.rank * sizeof(int64_t) > size || entry.offset > limit ||
        entry.size > limit - entry.offset)
      return -1;
    rn_guest_tensor_t* input = &call->inputs[i];
    input->dtype = entry.dtype;
    input->rank = entry.rank;
    input->dims = (const int64_t*)(payload + at);
    input->data = base + entry.offset;
    input->size = entry.size;
    at += entry.rank * sizeof(int64_t);
  }
  return 0;
}

// Appends the outputs of |call|.
static inline void rn_guest_put_outputs(rn_guest_buffer_t* out, const rn_guest_call_t* call) {
  size_t offset = 8;
  for (int i = 0; i < call->output_count; ++i)
    offset += 24 + (size_t)call->outputs[i].rank * sizeof(int64_t);
  rn_guest_put_u32(out, (uint32_t)call->output_count);
  rn_guest_put_u32(out, 0);
  for (int i = 0; i < call->output_count; ++i) {
    const rn_guest_tensor_t* output = &call->outputs[i];
    uint32_t place = !call->output_dims[i] ? 0 : call->is_shared[i] ? 2 : 1;
    if (place == 1) offset = (offset + 7) / 8 * 8;
    rn_guest_put_u32(out, (uint32_t)call->described->outputs[i].dtype);
    rn_guest_put_u32(out, (uint32_t)output->rank | place << 16);
    rn_guest_put_u64(out, place == 2   ? (uint64_t)((const char*)output->data - call->region)
                          : place == 1 ? offset
                                       : 0);
    rn_guest_put_u64(out, output->size);
    rn_guest_put(out, output->dims, (size_t)output->rank * sizeof(int64_t));
    if (place == 1) offset += output->size;
  }
  for (int i = 0; i < call->output_count; ++i) {
    if (!call->output_dims[i] || call->is_shared[i]) continue;
    rn_guest_put(out, NULL, (8 - (out->size - 16) % 8) % 8);
    rn_guest_put(out, call->outputs[i].data, call->outputs[i].size);
  }
}

// Runs one batch and sends its reply: 0, or -1 if the connection is over.
static inline int rn_guest_predict(rn_guest_state_t* state, uint64_t id, char* payload,
                                   size_t size) {
  rn_guest_call_t* call = (rn_guest_call_t*)calloc(1, sizeof *call);
  if (!call || rn_guest_take(state, call, payload, size) != 0) {
    free(call);
    return -1;
  }
  int code = state->options->run(state->options->self, call);
  if (code) {
    rn_guest_begin(&state->out, 6, id);
    rn_guest_put_u32(&state->out, (uint32_t)code);
    rn_guest_put_text(&state->out, call->error[0] ? call->error : "the model failed");
  } else {
    rn_guest_begin(&state->out, 5, id);
    rn_guest_put_outputs(&state->out, call);
  }
  for (int i = 0; i < call->output_count; ++i) {
    if (call->output_dims[i] && !call->is_shared[i]) free((void*)call->outputs[i].data);
    free(call->output_dims[i]);
  }
  free(call);
  return rn_guest_send(state, &state->out);
}

// Reads the server's answer to the first frame and starts the beats: 0, or -1 on failure.
static inline int rn_guest_welcome(rn_guest_state_t* state, const char* payload, size_t size) {
  pthread_t thread;
  if (size < 24) return -1;
  memcpy(&state->beat_ms, payload + 4, sizeof state->beat_ms);
  if (!state->beat_ms) state->beat_ms = 1000;
  if (pthread_create(&thread, NULL, rn_guest_beat, state) != 0) return -1;
  pthread_detach(thread);
  return 0;
}

// Handles the next frame: 1. 0 when the server wants no more, -1 on failure.
static inline int rn_guest_turn(rn_guest_state_t* state) {
  char header[16];
  uint32_t size;
  uint16_t kind;
  uint64_t id;
  int got = rn_guest_read(state, header, sizeof header);
  if (got <= 0) return got;
  memcpy(&size, header, sizeof size);
  memcpy(&kind, header + 4, sizeof kind);
  memcpy(&id, header + 8, sizeof id);
  state->in.size = 0;
  if (size > state->in.capacity) rn_guest_put(&state->in, NULL, size);
  if (state->in.failed) return -1;
  if (size && (got = rn_guest_read(state, state->in.data, size)) <= 0) return got;
  switch (kind) {
    case 2:
      return rn_guest_welcome(state, state->in.data, size) == 0 ? 1 : -1;
    case 3:
      return rn_guest_map(state, state->in.data, size) == 0 ? 1 : -1;
    case 4:
      return rn_guest_predict(state, id, state->in.data, size) == 0 ? 1 : -1;
    case 9:
      return 0;
    default:  // beats, and cancellations, which come too late for one batch at a time
      return 1;
  }
}

static inline int rn_guest_serve(const rn_guest_options_t* options) {
  const char* place = getenv("RUNNEL_CONTAINER");
  // Never freed: the thread of beats may use it until the process ends.
  rn_guest_state_t* state = (rn_guest_state_t*)calloc(1, sizeof *state);
  if (!place || strncmp(place, "fd:", 3) != 0 || !state) {
    fputs("This is a container: start it through `runnel serve`\n", stderr);
    free(state);
    return 1;
  }
  state->fd = atoi(place + 3);
  state->passed = -1;
  state->options = options;
  pthread_mutex_init(&state->mutex, NULL);
  int result = rn_guest_hello(state) == 0 ? 1 : -1;
  while (result > 0) result = rn_guest_turn(state);
  if (result < 0) fprintf(stderr, "container: the connection failed (errno %d)\n", errno);
  return result < 0;
}

#ifdef __cplusplus
}
#endif

#endif  // RUNNEL_CONTAINER_H_
