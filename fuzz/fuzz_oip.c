// Fuzzes requests of the Open Inference Protocol: the first byte picks the form. For REST, two more
// bytes are the size of the JSON text, and tensors in binary form follow it. What was read is sent
// back as outputs in both forms, which must read as the same tensors.
#include "fuzz/util.h"
#include "proto/oip.pb.h"
#include "serve/front/oip_rest.h"
#include "serve/front/oip_rpc.h"
#include "tensor/tstring.h"
#include "wire/decode.h"

#define MAX_MEMORY (64 << 20)

static rn_status_t read_bytes(rn_oip_infer_t* infer, fuzz_bytes_t* in, rn_buffer_t** out) {
  bool is_rest = fuzz_pick(in, 2);
  size_t json = is_rest ? fuzz_u32(in) >> 16 : 0;
  RN_RETURN_IF_ERROR(rn_buffer_create(infer->front->allocator, RN_UINT8, in->left + 1, out));
  if (in->left) memcpy((*out)->data, in->at, in->left);
  rn_str_t bytes = rn_str_n((*out)->data, in->left);
  if (is_rest) return rn_oip_rest_read(infer, bytes, json ? json : SIZE_MAX, *out);
  rn_message_t message;
  rn_message_init(&message, infer->front->allocator);
  rn_status_t status = rn_message_lend(&message, *out, bytes);
  if (rn_ok(status)) status = rn_oip_rpc_read(infer, &message);
  rn_message_clear(&message);
  return status;
}

// Makes the inputs the outputs, which go to no shared memory.
static rn_status_t echo(rn_oip_infer_t* infer) {
  rn_predict_t* predict = &infer->predict;
  size_t count = (size_t)infer->input_count;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(predict->allocator, count, &predict->outputs));
  predict->output_count = (int)count;
  for (int i = 0; i < infer->output_count; ++i) infer->outputs[i].place.region = RN_STR("");
  for (size_t i = 0; i < count; ++i) {
    predict->outputs[i].name = infer->inputs[i].name;
    RN_RETURN_IF_ERROR(rn_tensor_share(&predict->inputs[i].value, &predict->outputs[i].value));
  }
  return RN_OK;
}

static void flatten(const rn_message_t* message, rn_strbuf_t* out) {
  for (size_t i = 0; i < message->pieces.count; ++i)
    rn_strbuf_append(out, message->pieces.items[i].bytes);
}

static bool is_same(const rn_tensor_t* a, const rn_tensor_t* b) {
  if (a->dtype != b->dtype || !rn_tensor_same_shape(a, b)) return false;
  if (a->dtype != RN_STRING) return !a->count || memcmp(a->data, b->data, rn_tensor_bytes(a)) == 0;
  for (int64_t i = 0; i < a->count; ++i)
    if (!rn_str_eq(rn_tstring_view(&RN_DATA(a, rn_tstring_t)[i]),
                   rn_tstring_view(&RN_DATA(b, rn_tstring_t)[i])))
      return false;
  return true;
}

// Reads the outputs of a response as inputs of another request.
static void check_response(rn_front_t* front, const rn_oip_infer_t* sent, rn_str_t bytes) {
  rn_oip_infer_t back;
  rn_oip_infer_init(&back, front);
  rn_pb_inference_ModelInferResponse_t* response = NULL;
  rn_status_t status =
      RN_PB_DECODE(inference_ModelInferResponse, bytes, NULL, &back.arena, &response);
  if (rn_ok(status)) {
    fuzz_check(response->outputs.count == (uint32_t)sent->input_count);
    fuzz_check(response->raw_output_contents.count == response->outputs.count);
  }
  for (uint32_t i = 0; rn_ok(status) && i < response->outputs.count; ++i) {
    rn_oip_input_t* input = NULL;
    status = rn_oip_add_input(&back, &input);
    if (!rn_ok(status)) break;
    input->dtype = rn_oip_type_parse(response->outputs.items[i].datatype);
    input->shape = (rn_shape_t){(int32_t)response->outputs.items[i].shape.count,
                                response->outputs.items[i].shape.items};
    status = rn_oip_input_raw(&back, (int)i, response->raw_output_contents.items[i], NULL);
    if (rn_ok(status))
      fuzz_check(is_same(&back.predict.inputs[i].value, &sent->predict.inputs[i].value));
  }
  fuzz_check(rn_ok(status) || rn_status_code(status) == RN_CODE_RESOURCE_EXHAUSTED);
  rn_status_free(status);
  rn_oip_infer_clear(&back);
}

static void write_both(rn_front_t* front, const rn_oip_infer_t* infer) {
  rn_message_t message;
  size_t json = 0;
  rn_status_t status = rn_oip_rest_write(infer, &message, &json);
  if (rn_ok(status)) {
    fuzz_check(json <= message.size);
    rn_message_clear(&message);
  }
  rn_status_free(status);
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, rn_allocator_system());
  rn_message_init(&message, front->allocator);
  status = rn_oip_rpc_write(infer, true, &message);
  if (rn_ok(status)) {
    flatten(&message, &bytes);
    check_response(front, infer, rn_strbuf_view(&bytes));
  }
  rn_status_free(status);
  rn_message_clear(&message);
  rn_strbuf_clear(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_memory_t memory;
  rn_front_t front = {.env = rn_env_system(), .allocator = fuzz_memory_init(&memory, MAX_MEMORY)};
  fuzz_must(rn_metrics_create(front.allocator, &front.metrics));
  rn_oip_infer_t infer;
  rn_oip_infer_init(&infer, &front);
  infer.is_local = true;
  fuzz_bytes_t in = {data, size};
  rn_buffer_t* body = NULL;
  rn_status_t status = read_bytes(&infer, &in, &body);
  if (rn_ok(status)) status = echo(&infer);
  if (rn_ok(status)) write_both(&front, &infer);
  rn_status_free(status);
  rn_oip_infer_clear(&infer);
  rn_buffer_release(body);
  rn_metrics_destroy(front.metrics);
  fuzz_check(memory.counting.live_blocks == 0);
  return 0;
}
