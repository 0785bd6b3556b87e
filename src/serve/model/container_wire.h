// The frames between the server and a container, byte by byte: doc/containers.md.
//
// This end writes WELCOME, REGION, PREDICT, CANCEL and DRAIN, and reads HELLO, REPLY and ERROR;
// BEAT goes both ways. What a container sends is untrusted: every length, count, type and shape is
// checked before memory is taken for it. Numbers are little-endian on the wire and in memory.
#ifndef RUNNEL_SERVE_MODEL_CONTAINER_WIRE_H_
#define RUNNEL_SERVE_MODEL_CONTAINER_WIRE_H_

#include "base/arena.h"
#include "serve/model/backend.h"
#include "serve/model/container_region.h"

#define RN_CONTAINER_MAGIC UINT32_C(0x54434e52)  // "RNCT"
#define RN_CONTAINER_VERSION 1
#define RN_CONTAINER_HEADER 16
#define RN_CONTAINER_MAX_HELLO ((size_t)1 << 20)  // bytes of a HELLO
#define RN_CONTAINER_MAX_FRAME ((size_t)1 << 31)  // bytes of any payload
#define RN_CONTAINER_MAX_LANES 64
#define RN_CONTAINER_ALIGN 8  // of inline tensors in a payload

typedef enum rn_container_kind_t {
  RN_CONTAINER_HELLO = 1,
  RN_CONTAINER_WELCOME = 2,
  RN_CONTAINER_REGION = 3,
  RN_CONTAINER_PREDICT = 4,
  RN_CONTAINER_REPLY = 5,
  RN_CONTAINER_ERROR = 6,
  RN_CONTAINER_BEAT = 7,
  RN_CONTAINER_CANCEL = 8,
  RN_CONTAINER_DRAIN = 9,
} rn_container_kind_t;

typedef struct rn_container_frame_t {
  uint16_t kind;
  uint64_t id;
  rn_str_t payload;
} rn_container_frame_t;

// Reads the frame at the start of |bytes|. |*out_size| is the size of the whole frame, header
// included, or of the header alone as long as that is not complete; it is there if it is at most
// |bytes.size|. INVALID_ARGUMENT for a kind that no container sends, or a payload that is too
// large for its kind.
RN_MUST_USE rn_status_t rn_container_frame_read(rn_str_t bytes, rn_container_frame_t* out,
                                                size_t* out_size);

// What a container says of itself. Everything is in the arena.
typedef struct rn_container_hello_t {
  int lanes;
  int64_t max_rows;
  bool takes_regions;                // it can map shared memory
  rn_str_t model;                    // "": any
  rn_serve_signature_t* signatures;  // by ascending name
  int signature_count;
} rn_container_hello_t;
// INVALID_ARGUMENT says what is wrong: what the container does, without its name.
RN_MUST_USE rn_status_t rn_container_hello_read(rn_str_t payload, rn_arena_t* arena,
                                                rn_container_hello_t* out);
// Whether two containers serve the same: names, types and shapes.
bool rn_container_hello_same(const rn_container_hello_t* a, const rn_container_hello_t* b);

// Appends whole frames.
void rn_container_write_welcome(rn_strbuf_t* out, rn_str_t model, int64_t number, rn_str_t token,
                                int64_t beat_ms, int64_t beat_timeout_ms, bool has_regions);
void rn_container_write_region(rn_strbuf_t* out, uint32_t lane, size_t size);
void rn_container_write_empty(rn_strbuf_t* out, rn_container_kind_t kind, uint64_t id);

// The bytes of a tensor on the wire: its own, or the lengths of strings, then their bytes.
// INVALID_ARGUMENT for a type that cannot be sent.
RN_MUST_USE rn_status_t rn_container_tensor_size(const rn_tensor_t* tensor, size_t* out);
void rn_container_tensor_write(const rn_tensor_t* tensor, char* to);
// Reads the strings of |out|, which has its shape, from exactly |size| bytes.
RN_MUST_USE rn_status_t rn_container_strings_read(const char* bytes, size_t size, rn_tensor_t* out);

// The inputs have other shapes than the signature's: the outputs may, too.
#define RN_CONTAINER_ANY_ROWS (-2)

// How a batch travels: what is in the payload and what in the region.
typedef struct rn_container_batch_t {
  const rn_serve_signature_t* signature;
  uint32_t signature_index;
  uint32_t lane;
  uint64_t id;
  const rn_tensor_t* inputs;
  const bool* wanted;   // NULL: all
  int64_t deadline_us;  // from now; -1: none
  // Set by _measure.
  int64_t rows;         // dimension 0 of a batched run, -1 of another, or RN_CONTAINER_ANY_ROWS
  size_t input_bytes;   // of all inputs in the region, each aligned
  size_t output_bytes;  // of all outputs, as far as the signature tells
} rn_container_batch_t;
// Sets |rows|, |input_bytes| and |output_bytes|. RESOURCE_EXHAUSTED if the sizes overflow,
// INVALID_ARGUMENT for a type that cannot be sent.
RN_MUST_USE rn_status_t rn_container_batch_measure(rn_container_batch_t* batch);
// Writes the inputs into |region| and appends the PREDICT frame; without a region, or if it is too
// small for the inputs, they are appended to the frame. The rest of the region is offered for the
// outputs.
RN_MUST_USE rn_status_t rn_container_batch_write(const rn_container_batch_t* batch,
                                                 const rn_container_region_t* region,
                                                 rn_strbuf_t* out);

// Reads a REPLY to a batch of |signature| into new tensors: one per output that was wanted.
// |rows| is that of the batch. INTERNAL if it is malformed, or if an output is
// missing or has another type or shape than the signature or the batch demand. On failure no output
// is set.
// |*out_bytes| is the size of those that came in the payload.
RN_MUST_USE rn_status_t rn_container_reply_read(rn_str_t payload,
                                                const rn_serve_signature_t* signature,
                                                const bool* wanted, int64_t rows,
                                                const rn_container_region_t* region,
                                                rn_allocator_t allocator, rn_tensor_t* outputs,
                                                size_t* out_bytes);
// The error that an ERROR frame reports; INTERNAL if the frame is malformed. Never RN_OK.
RN_MUST_USE rn_status_t rn_container_error_read(rn_str_t payload);

#endif  // RUNNEL_SERVE_MODEL_CONTAINER_WIRE_H_
