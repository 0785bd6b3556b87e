// Bad device plug-ins. The messages are stock's, which ends the process with them.
#include "plugins.h"

typedef struct row_t {
  const char* fault;  // TOY_FAULT
  TF_Code code;
  const char* message;
} row_t;

#define SIZE(type, size)                                                            \
  "Expected initialized `" type "` structure with `struct_size` field set to " size \
  ". Found "                                                                        \
  "`struct_size` = 0."
#define MEMBER(type, member) "'" member "' field in " type " must be set."

static const row_t on_load[] = {
    {"init", TF_FAILED_PRECONDITION, "the toy is broken"},
    {"params_size", TF_FAILED_PRECONDITION,
     SIZE("SE_PlatformRegistrationParams", "SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE")},
    {"destroy_platform", TF_FAILED_PRECONDITION,
     MEMBER("SE_PlatformRegistrationParams", "destroy_platform")},
    {"platform_size", TF_FAILED_PRECONDITION, SIZE("SP_Platform", "SP_PLATFORM_STRUCT_SIZE")},
    {"name", TF_FAILED_PRECONDITION, MEMBER("SP_Platform", "name")},
    {"type", TF_FAILED_PRECONDITION, MEMBER("SP_Platform", "type")},
    {"bad_name", TF_FAILED_PRECONDITION, "Device name/type 'my-toy' must match [A-Z][A-Z_]*."},
    {"bad_type", TF_FAILED_PRECONDITION, "Device name/type 'Toy/1' must match [A-Z][A-Z_]*."},
    {"unified", TF_FAILED_PRECONDITION, MEMBER("SP_StreamExecutor", "unified_memory_allocate")},
    {"fns_size", TF_FAILED_PRECONDITION, SIZE("SP_PlatformFns", "SP_PLATFORM_FNS_STRUCT_SIZE")},
    {"no_create_device", TF_FAILED_PRECONDITION, MEMBER("SP_PlatformFns", "create_device")},
    {"device_fns_size", TF_FAILED_PRECONDITION, SIZE("SP_DeviceFns", "SP_DEVICE_FNS_STRUCT_SIZE")},
    {"executor", TF_RESOURCE_EXHAUSTED, "no executor left"},
    {"executor_size", TF_FAILED_PRECONDITION,
     SIZE("SP_StreamExecutor", "SP_STREAM_EXECUTOR_STRUCT_SIZE")},
    {"allocate", TF_FAILED_PRECONDITION, MEMBER("SP_StreamExecutor", "allocate")},
    {"host_callback", TF_FAILED_PRECONDITION, MEMBER("SP_StreamExecutor", "host_callback")},
    {"mem_zero", TF_FAILED_PRECONDITION, MEMBER("SP_StreamExecutor", "mem_zero")},
    {"memset", TF_FAILED_PRECONDITION, MEMBER("SP_StreamExecutor", "memset")},
    {"memset32", TF_FAILED_PRECONDITION, MEMBER("SP_StreamExecutor", "memset32")},
};

// A plug-in that failed can be loaded again, when what was wrong is gone.
CT_TEST(plugins_bad_device, refused_by_load) {
  ct_t t = ct_open();
  for (size_t i = 0; i < sizeof on_load / sizeof *on_load; ++i) {
    setenv("TOY_FAULT", on_load[i].fault, 1);
    cr_assert_null(TF_LoadPluggableDeviceLibrary(PT_TOY_PATH, t.status), "%s", on_load[i].fault);
    CT_ERROR(t.status, on_load[i].code, on_load[i].message);
  }
  unsetenv("TOY_FAULT");
  pt_load(&t);
  ct_close(&t);
}

// The devices and kernels of a plug-in with a bad graph optimizer are registered already.
static const row_t on_graph[] = {
    {"init_graph", TF_FAILED_PRECONDITION, "graphs are too hard"},
    {"graph_params_size", TF_FAILED_PRECONDITION,
     "struct_size field in TP_OptimizerRegistrationParams must be set to "
     "TP_OPTIMIZER_REGISTRATION_PARAMS_STRUCT_SIZE."},
    {"graph_type", TF_FAILED_PRECONDITION,
     "'device_type' field in TP_OptimizerRegistrationParams must be set."},
    {"optimizer_size", TF_FAILED_PRECONDITION,
     "struct_size field in TP_Optimizer must be set to TP_OPTIMIZER_STRUCT_SIZE."},
    {"no_optimize", TF_FAILED_PRECONDITION, "'optimize_func' field in TP_Optimizer must be set."},
    {"configs_size", TF_FAILED_PRECONDITION,
     "struct_size field in TP_OptimizerConfigs must be set to TP_OPTIMIZER_CONFIGS_STRUCT_SIZE."},
};

CT_TEST(plugins_bad_device, bad_optimizer) {
  ct_t t = ct_open();
  for (size_t i = 0; i < sizeof on_graph / sizeof *on_graph; ++i) {
    setenv("TOY_FAULT", on_graph[i].fault, 1);
    cr_assert_null(TF_LoadPluggableDeviceLibrary(PT_TOY_PATH, t.status), "%s", on_graph[i].fault);
    CT_ERROR(t.status, on_graph[i].code, on_graph[i].message);
  }
  unsetenv("TOY_FAULT");
  pt_load(&t);
  ct_close(&t);
}

static const row_t on_session[] = {
    {"create_device", TF_UNAVAILABLE, "the device is not plugged in"},
    {"device_size", TF_FAILED_PRECONDITION, SIZE("SP_Device", "SP_DEVICE_STRUCT_SIZE")},
    {"create_stream", TF_INTERNAL, "no streams today"},
    {"memory_usage", TF_UNKNOWN, "Failed to query available memory for PluggableDevice 0"},
};

CT_TEST(plugins_bad_device, refused_by_session) {
  ct_t t = pt_open();
  TF_SessionOptions* options = TF_NewSessionOptions();
  for (size_t i = 0; i < sizeof on_session / sizeof *on_session; ++i) {
    setenv("TOY_FAULT", on_session[i].fault, 1);
    cr_assert_null(TF_NewSession(t.graph, options, t.status));
    CT_ERROR(t.status, on_session[i].code, on_session[i].message);
  }
  unsetenv("TOY_FAULT");
  TF_DeleteSession(TF_NewSession(t.graph, options, t.status), t.status);
  CT_OK(t.status);
  TF_DeleteSessionOptions(options);
  ct_close(&t);
}

// Stock accepts these.
#define HARMLESS(fault)                                                  \
  CT_TEST(plugins_bad_device, harmless_##fault) {                        \
    setenv("TOY_FAULT", #fault, 1);                                      \
    ct_t t = pt_open();                                                  \
    TF_Output x = ct_out(ct_placeholder(&t, t.graph, "x", TF_FLOAT), 0); \
    TF_Output sum = pt_node(&t, "AddV2", "sum", PT_TOY, x, x);           \
    PT_EXPECT(ct_run1(&t, x.oper, ct_float(4), sum.oper), 8);            \
    ct_close(&t);                                                        \
  }
HARMLESS(major)
HARMLESS(timer)
HARMLESS(params_small)
HARMLESS(no_block_until_done)

static void expect_failure(const char* fault, TF_Code code, const char* message) {
  ct_t t = pt_open();
  TF_Output x = ct_out(ct_placeholder(&t, t.graph, "x", TF_FLOAT), 0);
  TF_Output sum = pt_node(&t, "AddV2", "sum", PT_TOY, x, x);
  TF_Tensor* value = ct_float(4);
  ct_session(&t, NULL);
  setenv("TOY_FAULT", fault, 1);
  cr_assert_null(ct_try_run(&t, 1, &x, &value, sum));
  CT_ERROR_HAS(t.status, code, message);
  unsetenv("TOY_FAULT");
  PT_EXPECT(ct_run1(&t, x.oper, ct_float(4), sum.oper), 8);
  ct_close(&t);
}

CT_TEST(plugins_bad_device, failing_copies) {
  expect_failure("copy", TF_INTERNAL, "the bus is down");
}

CT_TEST(plugins_bad_device, no_memory) { expect_failure("oom", TF_RESOURCE_EXHAUSTED, ""); }

// A library without the entry points is an ordinary one, and one that is no plug-in is refused.
CT_TEST(plugins_bad_device, no_entry_points) {
  ct_t t = ct_open();
  TF_Library* library = TF_LoadPluggableDeviceLibrary("libm.so.6", t.status);
  CT_OK(t.status);
  TF_DeletePluggableDeviceLibraryHandle(library);
  cr_assert_null(TF_LoadPluggableDeviceLibrary("/etc/passwd", t.status));
  CT_CODE(t.status, TF_NOT_FOUND);
  ct_close(&t);
}
