// Process-wide functions: versions, XLA switches, predefined configurations.
#include "capi/internal.h"
#include "proto/config.pb.h"
#include "runnel/version.h"
#include "tensorflow/c/c_api_experimental.h"

// The release whose interface this is; our own version is rn_version().
const char* TF_Version(void) { return "2.21.0"; }

RN_API const char* rn_version(void) { return RN_VERSION_STRING; }

void TF_InitMain(const char* usage, int* argc, char*** argv) {
  (void)usage;
  (void)argc;
  (void)argv;
}

// There is no XLA here. The switches below are accepted because many clients set them.

void TF_EnableXLACompilation(TF_SessionOptions* options, unsigned char enable) {
  (void)options;
  (void)enable;
}

unsigned char TF_SetXlaEnableLazyCompilation(unsigned char enable) {
  (void)enable;
  return 0;
}

unsigned char TF_SetTfXlaCpuGlobalJit(unsigned char enable) {
  (void)enable;
  return 0;
}

void TF_SetXlaAutoJitMode(const char* mode) { (void)mode; }

unsigned char TF_GetXlaAutoJitEnabled(void) { return 0; }

void TF_SetXlaMinClusterSize(int size) { (void)size; }

unsigned char TF_GetXlaConstantFoldingDisabled(void) { return 0; }

void TF_SetXlaConstantFoldingDisabled(unsigned char should_enable) { (void)should_enable; }

static TF_Buffer* encode(const rn_pb_message_desc_t* desc, const void* message) {
  rn_strbuf_t buf;
  TF_Buffer* buffer = NULL;
  rn_strbuf_init(&buf, rn_capi_allocator());
  rn_status_t status = rn_capi_encode(desc, message, &buf);
  if (rn_ok(status)) status = rn_capi_buffer_make(&buf, &buffer);
  rn_strbuf_clear(&buf);
  if (!rn_ok(status)) rn_status_free(status);
  return buffer;
}

TF_Buffer* TF_CreateConfig(unsigned char enable_xla_compilation,
                           unsigned char gpu_memory_allow_growth, unsigned int num_cpu_devices) {
  rn_pb_ConfigProto_DeviceCountEntry_t cpus = {RN_STR("CPU"), (int32_t)num_cpu_devices};
  rn_pb_GPUOptions_t gpu = {.allow_growth = gpu_memory_allow_growth != 0};
  rn_pb_OptimizerOptions_t optimizer = {.global_jit_level = enable_xla_compilation
                                                                ? rn_pb_OptimizerOptions_ON_1
                                                                : rn_pb_OptimizerOptions_OFF};
  rn_pb_GraphOptions_t graph = {.optimizer_options = &optimizer};
  rn_pb_ConfigProto_t config = {
      .device_count = {&cpus, 1, 0},
      .inter_op_parallelism_threads = 1,  // stock's choice: steps of such sessions run in order
      .gpu_options = &gpu,
      .graph_options = &graph,
  };
  return encode(&rn_pb_ConfigProto_desc, &config);
}

TF_Buffer* TF_CreateRunOptions(unsigned char enable_full_trace) {
  rn_pb_RunOptions_t options = {.trace_level = enable_full_trace ? rn_pb_RunOptions_FULL_TRACE
                                                                 : rn_pb_RunOptions_NO_TRACE};
  return encode(&rn_pb_RunOptions_desc, &options);
}
