// Runs a collective op with a member on each of several devices, all in one step.
#ifndef TESTS_GPU_COLLECTIVES_H_
#define TESTS_GPU_COLLECTIVES_H_

#include "numbers.h"
#include "tensor/float16.h"
#include "util.h"

#define MEMBERS 3
#define BIT(type) (UINT64_C(1) << RN_##type)
#define REDUCED (BIT(BFLOAT16) | BIT(FLOAT) | BIT(HALF) | BIT(DOUBLE) | BIT(INT32) | BIT(INT64))
#define GATHERED (REDUCED & ~BIT(BFLOAT16))
#define BROADCAST (GATHERED | BIT(BOOL))

// How many rows an input has: one, or one per member.
typedef enum collective_rows_t { COLLECTIVE_ONE_ROW, COLLECTIVE_ROW_PER_MEMBER } collective_rows_t;

typedef struct collective_op_t {
  const char* name;
  int version;
  collective_rows_t rows;
  bool merges;
  const char* recv;  // of a broadcast: what all but member 0 run
  uint64_t types;
} collective_op_t;

static const collective_op_t collective_ops[] = {
    {"CollectiveReduce", 1, COLLECTIVE_ONE_ROW, true, NULL, REDUCED},
    {"CollectiveGather", 1, COLLECTIVE_ONE_ROW, false, NULL, GATHERED},
    {"CollectiveBcastSend", 1, COLLECTIVE_ONE_ROW, false, "CollectiveBcastRecv", BROADCAST},
    {"CollectiveReduceV2", 2, COLLECTIVE_ONE_ROW, true, NULL, REDUCED},
    {"CollectiveReduceScatterV2", 2, COLLECTIVE_ROW_PER_MEMBER, true, NULL, REDUCED},
    {"CollectiveGatherV2", 2, COLLECTIVE_ONE_ROW, false, NULL, GATHERED},
    {"CollectiveAllToAllV2", 2, COLLECTIVE_ROW_PER_MEMBER, false, NULL, REDUCED},
    {"CollectiveBcastSendV2", 2, COLLECTIVE_ONE_ROW, false, "CollectiveBcastRecvV2", BROADCAST},
    {"CollectiveReduceV3", 3, COLLECTIVE_ONE_ROW, true, NULL, REDUCED},
    {"CollectiveAllToAllV3", 3, COLLECTIVE_ROW_PER_MEMBER, false, NULL, REDUCED},
    {NULL, 0, COLLECTIVE_ONE_ROW, false, NULL, 0},
};

static const rn_dtype_t collective_types[] = {RN_BFLOAT16, RN_HALF,  RN_FLOAT, RN_DOUBLE,
                                              RN_INT32,    RN_INT64, RN_BOOL,  RN_INVALID};

typedef struct collective_t {
  const collective_op_t* op;
  rn_dtype_t dtype;
  int64_t columns;
  const char* merge;  // NULL: Add
  bool divides;
  float timeout_seconds;
  const char* hint;  // NULL: auto
} collective_t;

typedef struct collective_run_t {
  rt_t rt;
  rt_step_t step;  // a feed and a fetch per member; of a broadcast, one feed
  rn_tensor_t values[MEMBERS];
} collective_run_t;

static RT_UNUSED const collective_op_t* collective_find(const char* name) {
  const collective_op_t* op = collective_ops;
  while (op->name && strcmp(op->name, name) != 0) op++;
  return op;
}

static RT_UNUSED bool collective_has(const collective_op_t* op, rn_dtype_t dtype) {
  return op->types >> dtype & 1;
}

static void collective_set(rn_tensor_t* tensor, int64_t i, int value) {
  switch (tensor->dtype) {
    case RN_HALF:
      RN_DATA(tensor, uint16_t)[i] = rn_float_to_half((float)value / 8);
      break;
    case RN_BFLOAT16:
      RN_DATA(tensor, uint16_t)[i] = rn_float_to_bfloat16((float)value / 8);
      break;
    case RN_FLOAT:
      RN_DATA(tensor, float)[i] = (float)value / 7;
      break;
    case RN_DOUBLE:
      RN_DATA(tensor, double)[i] = (double)value / 7;
      break;
    case RN_INT32:
      RN_DATA(tensor, int32_t)[i] = value;
      break;
    case RN_INT64:
      RN_DATA(tensor, int64_t)[i] = value * ((int64_t)1 << 33);
      break;
    default:
      RN_DATA(tensor, bool)[i] = value & 1;
  }
}

static rn_tensor_t collective_value(const collective_t* like, int member) {
  rn_tensor_t value;
  const int64_t dims[] = {MEMBERS, like->columns};
  rn_shape_t shape =
      like->op->rows == COLLECTIVE_ONE_ROW ? (rn_shape_t){1, dims + 1} : (rn_shape_t){2, dims};
  OK(rn_tensor_create(rn_allocator_system(), like->dtype, shape, &value));
  uint32_t random = 77 + (uint32_t)member;
  for (int64_t i = 0; i < value.count; ++i) {
    random = random * 1664525u + 1013904223u;
    collective_set(&value, i, (int)(random >> 26) - 31);
  }
  return value;
}

static void collective_attrs(rn_scope_t* s, const collective_t* like) {
  static const int64_t zero = 0;
  const collective_op_t* op = like->op;
  if (op->merges) {
    const char* merge = like->merge ? like->merge : "Add";
    rn_op_attr_string(s, op->version == 3 ? "reduction" : "merge_op", merge);
    if (op->version < 3) rn_op_attr_string(s, "final_op", like->divides ? "Div" : "Id");
    if (op->version == 1) rn_op_attr_int_list(s, "subdiv_offsets", &zero, 1);
  }
  if (like->timeout_seconds > 0) rn_op_attr_float(s, "timeout_seconds", like->timeout_seconds);
  if (op->version == 3) return;
  if (like->hint) rn_op_attr_string(s, "communication_hint", like->hint);
  if (op->version == 2) return;
  rn_op_attr_int(s, "group_size", MEMBERS);
  rn_op_attr_int(s, "group_key", 5);
  rn_op_attr_int(s, "instance_key", 9);
}

static rn_edge_t collective_communicator(rn_scope_t* s, const collective_t* like, int member) {
  const rn_edge_t inputs[] = {rn_const_int32(s, 5), rn_const_int32(s, member),
                              rn_const_int32(s, MEMBERS)};
  rn_op_begin(s, "CollectiveInitializeCommunicator");
  for (int i = 0; i < 3; ++i) rn_op_input(s, inputs[i]);
  if (like->hint) rn_op_attr_string(s, "communication_hint", like->hint);
  return (rn_edge_t){rn_op_finish(s), 0};
}

// The member on the scope's device.
static rn_edge_t collective_member(rn_scope_t* s, const collective_t* like, int member,
                                   rn_edge_t value) {
  const collective_op_t* op = like->op;
  bool receives = op->recv && member > 0;
  rn_edge_t communicator = op->version == 3 ? collective_communicator(s, like, member) : value;
  rn_edge_t size = rn_const_int32(s, MEMBERS), key = rn_const_int32(s, 5);
  rn_edge_t instance = rn_const_int32(s, 9), none = {NULL, 0};
  static const int64_t no_dims[] = {0};
  if (op->version == 3) {
    rn_op_begin(s, "Const");
    rn_op_attr_type(s, "dtype", RN_INT32);
    rn_op_attr_tensor(s, "value", RN_INT32, no_dims, 1, no_dims);
    none = (rn_edge_t){rn_op_finish(s), 0};
  }
  rn_edge_t shape = rn_Pack(s, ((rn_edge_t[]){rn_const_int32(s, (int32_t)like->columns)}), 1);
  rn_op_begin(s, receives ? op->recv : op->name);
  if (!receives) rn_op_input(s, value);
  if (op->version == 2) {
    rn_op_input(s, size);
    rn_op_input(s, key);
    rn_op_input(s, instance);
    if (receives) rn_op_input(s, shape);
    if (!op->recv) rn_op_input_list(s, NULL, 0);  // ordering tokens
  }
  if (op->version == 3) {
    rn_op_input(s, communicator);
    rn_op_input(s, none);
  }
  if (receives) rn_op_attr_type(s, "T", (int)like->dtype);
  collective_attrs(s, like);
  if (op->version == 1 && !op->merges) {
    int64_t dims[] = {like->columns * (strcmp(op->name, "CollectiveGather") == 0 ? MEMBERS : 1)};
    rn_op_attr_shape(s, "shape", dims, 1);
  }
  return (rn_edge_t){rn_op_finish(s), 0};
}

// GPUs are parts of one card.
static void collective_open_on(collective_run_t* run, const collective_t* like,
                               const char* const* devices) {
  *run = (collective_run_t){.rt = rt_begin(4)};
  rn_session_options_t* options = &run->rt.options;
  options->cpu_devices = MEMBERS;
  options->gpu.split_count = 1;
  options->gpu.virtual_count = MEMBERS;
  for (int m = 0; m < MEMBERS; ++m) options->gpu.virtuals[m].memory = (int64_t)200 << 20;
  rn_scope_t* s = run->rt.s;
  for (int m = 0; m < MEMBERS; ++m) {
    rn_scope_set_device(s, devices[m]);
    run->values[m] = collective_value(like, m);
    rn_edge_t x = {NULL, 0};
    if (!like->op->recv || m == 0) {
      rn_op_begin(s, "Placeholder");
      rn_op_attr_type(s, "dtype", (int)like->dtype);
      x = (rn_edge_t){rn_op_finish(s), 0};
      rt_feed(&run->step, x, &run->values[m]);
    }
    rt_fetch(&run->step, collective_member(s, like, m, x));
  }
  rn_scope_set_device(s, NULL);
}

// On the first devices of |type|.
static RT_UNUSED void collective_open(collective_run_t* run, const collective_t* like,
                                      const char* type) {
  char names[MEMBERS][16];
  const char* devices[MEMBERS];
  for (int m = 0; m < MEMBERS; ++m) {
    snprintf(names[m], sizeof names[m], "/%s:%d", type, m);
    devices[m] = names[m];
  }
  collective_open_on(run, like, devices);
}

static RT_UNUSED rn_status_t collective_run(collective_run_t* run) {
  rt_clear(&run->step);
  return rt_run(&run->rt, &run->step);
}

static RT_UNUSED void collective_close(collective_run_t* run) {
  rt_clear(&run->step);
  for (int m = 0; m < MEMBERS; ++m) rn_tensor_clear(&run->values[m]);
  rt_end(&run->rt);
}

// Equal but for the order of sums: values are up to 32.
static RT_UNUSED bool collective_is_close(const rn_tensor_t* want, const rn_tensor_t* got) {
  bool is_short = want->dtype == RN_HALF || want->dtype == RN_BFLOAT16;
  double room = is_short ? 0.25 : want->dtype == RN_FLOAT ? 1e-4 : 1e-11;
  for (int64_t i = 0; i < want->count; ++i) {
    double difference = number_at(want, i) - number_at(got, i);
    if (!(difference <= room && difference >= -room)) return false;
  }
  return true;
}

// The same bits on CPUs and GPUs, more than once.
static RT_UNUSED void collective_compare(const collective_t* like) {
  collective_run_t cpu, gpu;
  collective_open(&cpu, like, "CPU");
  collective_open(&gpu, like, "GPU");
  OK(collective_run(&cpu));
  for (int turn = 0; turn < (like->op->version == 3 ? 1 : 3); ++turn) {
    OK(collective_run(&gpu));
    for (int m = 0; m < MEMBERS; ++m) {
      const rn_tensor_t *want = &cpu.step.out[m], *got = &gpu.step.out[m];
      cr_assert(rn_tensor_same_shape(want, got), "%s, member %d", like->op->name, m);
      cr_assert(!want->count || memcmp(want->data, got->data, rn_tensor_bytes(want)) == 0,
                "%s of type %d, %lld columns, member %d", like->op->name, (int)like->dtype,
                (long long)like->columns, m);
    }
  }
  collective_close(&cpu);
  collective_close(&gpu);
}

#endif  // TESTS_GPU_COLLECTIVES_H_
