// The Open Inference Protocol, version 2, with Triton's extensions: what its REST and its gRPC form
// share.
//
// Both forms read a request into a record, call rn_oip_infer_run, and write the outputs when the
// record is done. What the server reports about itself and its models (oip_info.h) is built as
// messages of the gRPC form, which the REST form prints as JSON.
#ifndef RUNNEL_SERVE_FRONT_OIP_H_
#define RUNNEL_SERVE_FRONT_OIP_H_

#include "base/arena.h"
#include "serve/front/front.h"

// The protocol's types: X(our type, its name, its value in Triton's model configuration).
#define RN_OIP_TYPES(X)            \
  X(BOOL, "BOOL", TYPE_BOOL)       \
  X(UINT8, "UINT8", TYPE_UINT8)    \
  X(UINT16, "UINT16", TYPE_UINT16) \
  X(UINT32, "UINT32", TYPE_UINT32) \
  X(UINT64, "UINT64", TYPE_UINT64) \
  X(INT8, "INT8", TYPE_INT8)       \
  X(INT16, "INT16", TYPE_INT16)    \
  X(INT32, "INT32", TYPE_INT32)    \
  X(INT64, "INT64", TYPE_INT64)    \
  X(HALF, "FP16", TYPE_FP16)       \
  X(BFLOAT16, "BF16", TYPE_BF16)   \
  X(FLOAT, "FP32", TYPE_FP32)      \
  X(DOUBLE, "FP64", TYPE_FP64)     \
  X(STRING, "BYTES", TYPE_STRING)

// "FP32", "BYTES"; NULL for a type that the protocol lacks.
const char* rn_oip_type_name(rn_dtype_t dtype);
// RN_INVALID if |name| is no type.
rn_dtype_t rn_oip_type_parse(rn_str_t name);

// The value of a request's parameter.
typedef enum rn_oip_kind_t { RN_OIP_BOOL, RN_OIP_INT, RN_OIP_DOUBLE, RN_OIP_STRING } rn_oip_kind_t;
typedef struct rn_oip_value_t {
  rn_oip_kind_t kind;
  int64_t number;  // of a bool or an int
  rn_str_t text;
} rn_oip_value_t;

// A tensor's place in shared memory.
typedef struct rn_oip_place_t {
  rn_str_t region;  // "": it is in none
  uint64_t offset, size;
  bool has_size;
} rn_oip_place_t;

typedef struct rn_oip_input_t {
  rn_str_t name;
  rn_dtype_t dtype;
  rn_shape_t shape;
  rn_oip_place_t place;
  int64_t binary_size;  // REST: bytes behind the JSON text; -1: none
} rn_oip_input_t;

typedef struct rn_oip_output_t {
  rn_str_t name;
  rn_oip_place_t place;
  bool has_binary, is_binary;  // REST: whether it says so, and what
  int64_t class_count;         // how many of its largest elements are wanted; 0: itself
} rn_oip_output_t;

// One inference. The protocol's form embeds it, sets the first part and calls rn_oip_infer_run.
typedef struct rn_oip_infer_t rn_oip_infer_t;
struct rn_oip_infer_t {
  rn_front_t* front;
  rn_arena_t arena;             // of what follows
  rn_str_t model, version, id;  // Borrowed from the request
  rn_oip_input_t* inputs;
  int input_count, input_room;
  rn_oip_output_t* outputs;
  int output_count;  // 0: all
  int output_room;
  bool is_local;       // may use shared memory
  bool is_binary;      // REST: of outputs that do not say
  int64_t timeout_us;  // 0: none
  rn_str_t user;       // of an application; "": none
  const char* entry;   // "REST" or "GRPC"
  // The values and the conditions: one input value per input, |cancel|, |times.begun_ns| and
  // |deadline_ns|, which the request's timeout can only shorten.
  rn_predict_t predict;
  // Called once, from any thread. Owns |status|. On success the outputs are in |predict|, and those
  // that go to shared memory have been written there.
  void (*done)(rn_oip_infer_t* infer, rn_status_t status);
  rn_strbuf_t sample;  // the request as a PredictRequest, if it is to be logged
  bool is_found;
  int64_t number;                         // of the version that was found
  const rn_serve_signature_t* signature;  // of it, until |done|; NULL: of an application
};

// |*infer| is zeroed but for what is needed to read a request into it.
void rn_oip_infer_init(rn_oip_infer_t* infer, rn_front_t* front);
// Appends an input, whose value is not set yet, or an output; |*out| is valid until the next one.
RN_MUST_USE rn_status_t rn_oip_add_input(rn_oip_infer_t* infer, rn_oip_input_t** out);
RN_MUST_USE rn_status_t rn_oip_add_output(rn_oip_infer_t* infer, rn_oip_output_t** out);
void rn_oip_infer_clear(rn_oip_infer_t* infer);

// Read a parameter of a request, an input or an output; those that are not known are ignored.
RN_MUST_USE rn_status_t rn_oip_infer_set(rn_oip_infer_t* infer, rn_str_t key,
                                         const rn_oip_value_t* value);
RN_MUST_USE rn_status_t rn_oip_input_set(rn_oip_input_t* input, rn_str_t key,
                                         const rn_oip_value_t* value);
RN_MUST_USE rn_status_t rn_oip_output_set(rn_oip_output_t* output, rn_str_t key,
                                          const rn_oip_value_t* value);
// Checks type, shape and place of an input that has been read.
RN_MUST_USE rn_status_t rn_oip_input_check(const rn_oip_infer_t* infer,
                                           const rn_oip_input_t* input);

// Sets the value of input |i| from raw bytes, without a copy where |buffer| (NULL: none) holds them
// and they are aligned and many, or from its place in shared memory.
RN_MUST_USE rn_status_t rn_oip_input_raw(rn_oip_infer_t* infer, int i, rn_str_t bytes,
                                         rn_buffer_t* buffer);
RN_MUST_USE rn_status_t rn_oip_input_shared(rn_oip_infer_t* infer, int i);

// Makes |bytes| the only input of the model, whose shape follows from their number; a string input
// has one element, without its length. INVALID_ARGUMENT if the model has several inputs, or a shape
// that the number does not tell.
RN_MUST_USE rn_status_t rn_oip_input_whole(rn_oip_infer_t* infer, rn_str_t bytes,
                                           rn_buffer_t* buffer);

// Bytes of the raw form of |tensor|; false if they are too many.
bool rn_oip_raw_size(const rn_tensor_t* tensor, size_t* out);
// Appends the raw form of strings.
void rn_oip_raw_strings(const rn_tensor_t* tensor, rn_strbuf_t* out);
// Writes |output| to its place in shared memory.
RN_MUST_USE rn_status_t rn_oip_output_share(rn_oip_infer_t* infer, const rn_oip_place_t* place,
                                            const rn_predict_value_t* output);

// Replaces the output |name| by its |count| largest elements per row, as strings "SCORE:INDEX", or
// "SCORE:INDEX:LABEL" where the model has labels. INVALID_ARGUMENT, in Triton's words, if they are
// no numbers.
RN_MUST_USE rn_status_t rn_oip_classes(const rn_oip_infer_t* infer, rn_str_t name, int64_t count,
                                       rn_tensor_t* inout);

// Finds the model and runs it. Calls |done|, perhaps before it returns.
void rn_oip_infer_run(rn_oip_infer_t* infer);
// Counts a finished inference, and logs it if it is a sample, once its reply is written or has
// failed.
void rn_oip_infer_count(const rn_oip_infer_t* infer, rn_code_t code);
// The output as the request named it; NULL if it named none.
const rn_oip_output_t* rn_oip_output_of(const rn_oip_infer_t* infer, rn_str_t name);

// The version that a request means: by number, by label, or the latest if |version| is "".
// NOT_FOUND in Triton's words.
RN_MUST_USE rn_status_t rn_oip_find(rn_front_t* front, rn_str_t name, rn_str_t version,
                                    rn_version_t** out);
// The signature that a request means by |name|: if it is "", serving_default or else the only one.
// -1 if there is none.
int rn_oip_signature(const rn_backend_t* backend, rn_str_t name);

#endif  // RUNNEL_SERVE_FRONT_OIP_H_
