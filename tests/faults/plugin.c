// Scenarios for ops and kernels of plug-ins.
#include <dlfcn.h>

#include "inject.h"
#include "sweep.h"

static bool was_short;  // when the plug-in was loaded, which happens once a process

static bool load(ft_t* t) {
  TF_DeleteLibraryHandle(t->library);
  t->library = TF_LoadLibrary(FT_PLUGIN_PATH, t->status);
  was_short |= inject_fired();
  FT_CHECK(t, ft_ok(t) == (t->library != NULL));
  return ft_ok(t);
}

// What the plug-in could not register when it was loaded it registers now.
static bool plugin_is_ready(void) {
  void* handle = dlopen(FT_PLUGIN_PATH, RTLD_NOW | RTLD_NOLOAD);
  bool (*again)(void) = handle ? (bool (*)(void))dlsym(handle, "fault_plugin_register") : NULL;
  bool is_ready = again && again();
  if (handle) dlclose(handle);
  return is_ready;
}

static bool add_plus(ft_t* t) {
  TF_OperationDescription* desc = TF_NewOperation(t->graph, "FaultPlus", "plus");
  TF_AddInput(desc, ft_out(t->ops[0]));
  TF_SetAttrInt(desc, "k", 7);
  return ft_finish(t, desc, &t->ops[1]);
}

void scenario_plugin(ft_t* t) {
  FT(ft_start(t));
  FT(load(t));
  FT(plugin_is_ready());
  ft_kept_less = was_short;  // what is registered later is not on the library's list
  FT_CHECK(t, was_short || TF_GetOpList(t->library).length > 0);
  FT((t->buffers[0] = TF_GetAllOpList()) != NULL);
  const int32_t values[] = {1, 2, 3};
  FT(ft_tensor(&t->tensors[0], TF_INT32, (int64_t[]){3}, 1, values));
  FT(ft_placeholder(t, &t->ops[0], "x", TF_INT32));
  FT(add_plus(t));
  FT(ft_session(t, 1));
  for (int i = 0; i < 2; ++i) {
    FT(ft_run(t, t->ops[0], t->tensors[0], t->ops[1], &t->tensors[1]));
    FT_CHECK(t, ((int32_t*)TF_TensorData(t->tensors[1]))[2] == 10);
  }
}
