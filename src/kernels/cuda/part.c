// What the CUDA part exports: see device/part.h.
#include "device/cuda/cuda_device.h"
#include "device/cuda/peer.h"
#include "kernels/cuda/jit/program.h"
#include "kernels/cuda/libs/nccl.h"
#include "runnel/version.h"

#define X(name) extern const rn_kernel_family_t rn_kernels_##name;
#include "kernels/cuda/families.def"
#undef X

static const rn_kernel_family_t* const families[] = {
#define X(name) &rn_kernels_##name,
#include "kernels/cuda/families.def"
#undef X
    NULL,
};

static const rn_part_row_t shared[] = {
#define X(op_, ...) {.op = #op_, .host_args = {__VA_ARGS__}},
#define MOVES(op_, ...) {.op = #op_, .moves = true, .host_args = {__VA_ARGS__}},
#define ASSIGNS(op_, ...) {.op = #op_, .assigns = true, .host_args = {__VA_ARGS__}},
#define PLAIN(op_, ...) {.op = #op_, .is_plain = true, .host_args = {__VA_ARGS__}},
#define SCRATCH(op_, ...) \
  {.op = #op_, .is_plain = true, .allocates = true, .of_step = true, .host_args = {__VA_ARGS__}},
#define LISTS(op_, ...) \
  {.op = #op_, .allocates = true, .of_step = true, .host_args = {__VA_ARGS__}},
#define HOLDS(op_, ...) {.op = #op_, .allocates = true, .host_args = {__VA_ARGS__}},
#define VARIANT(op_) {.op = #op_, .is_variant = true, .allocates = true, .of_step = true},
#define HOST(op_) {.op = #op_, .on_host = true},
#define ON_REQUEST(op_) {.op = #op_, .on_host = true, .on_request = true},
#define INT32(op_, attr) {.op = #op_, .int32_attr = attr},
#define INT32_SCRATCH(op_, attr) {.op = #op_, .int32_attr = attr, .of_step = true},
#include "kernels/cuda/shared_rows.def"
#undef INT32_SCRATCH
#undef INT32
#undef ON_REQUEST
#undef HOST
#undef VARIANT
#undef HOLDS
#undef LISTS
#undef SCRATCH
#undef PLAIN
#undef ASSIGNS
#undef MOVES
#undef X
    {.op = NULL},
};

// Ops that loops know by other means than a scalar operation of the same name.
static const struct {
  const char* op;
  rn_vector_op_t code;
} loop_codes[] = {
    {"BiasAdd", 1 + RN_SCALAR_ADD},
    {"AddN", RN_LOOP_FOLDS | (1 + RN_SCALAR_ADD)},
    {"Cast", RN_LOOP_CASTS},
    {"BroadcastTo", RN_LOOP_REPEATS},
    {"BiasAddGrad", RN_LOOP_REDUCES | RN_JIT_SUM},
    {"Sum", RN_LOOP_REDUCES | RN_JIT_SUM},
    {"Mean", RN_LOOP_REDUCES | RN_JIT_MEAN},
    {"Max", RN_LOOP_REDUCES | RN_JIT_MAX},
    {"Min", RN_LOOP_REDUCES | RN_JIT_MIN},
};

// An op is one operation of a loop if its inputs are the operands, broadcast by NumPy's rules.
// Select has rules of its own, and the last operand of some is an attribute.
static rn_vector_op_t loop_code(const char* op) {
  for (size_t i = 0; i < sizeof loop_codes / sizeof *loop_codes; ++i)
    if (strcmp(op, loop_codes[i].op) == 0) return loop_codes[i].code;
  rn_scalar_code_t code = rn_scalar_find(op);
  bool has_number = code == RN_SCALAR_LEAKY_RELU || code == RN_SCALAR_LEAKY_RELU_GRAD ||
                    code == RN_SCALAR_APPROXIMATE_EQUAL;
  if (code == RN_SCALAR_COUNT || has_number || strcmp(op, "Select") == 0) return 0;
  return (rn_vector_op_t)(1 + code);
}

static const rn_device_part_t part = {.version = RN_VERSION_STRING,
                                      .sizes = RN_PART_SIZES,
                                      .type = "GPU",
                                      .kernels = families,
                                      .shared = shared,
                                      .loop_code = loop_code,
                                      .create_devices = rn_cuda_create_devices,
                                      .report = rn_cuda_report,
                                      .transfer_memory = rn_cuda_transfer_memory,
                                      .peers = &rn_cuda_peers,
                                      .comms = &rn_nccl_library};

__attribute__((visibility("default"))) const rn_device_part_t* rn_device_part(void);
const rn_device_part_t* rn_device_part(void) { return &part; }
