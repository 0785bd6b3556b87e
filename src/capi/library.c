// Plug-in libraries: shared objects that register ops and kernels through ops.h and kernels.h, and
// devices and graph optimizers through stream_executor.h and grappler.h.
//
// A plug-in registers from its constructors, while dlopen runs, or from TF_InitKernel, which is
// called once after it. SE_InitPlugin and TF_InitGraph are called only by
// TF_LoadPluggableDeviceLibrary. Both happen on the loading thread, so whatever that thread
// registers meanwhile belongs to the library. The table of libraries is process-wide, like the op
// registry that it is part of: a library and its ops stay loaded forever.
#include <dlfcn.h>

#include "base/sync.h"
#include "base/vec.h"
#include "capi/internal.h"
#include "capi/plugin/optimizer.h"
#include "capi/plugin/platform.h"
#include "framework/op_proto.h"
#include "proto/op_def.pb.h"
#include "tensorflow/c/c_api_experimental.h"
#include "wire/writer.h"

typedef struct loaded_t {
  struct loaded_t* next;
  void* handle;  // from dlopen, which returns the same one for the same library
  // Its devices, its graph optimizer were registered; guarded by |devices_mutex|.
  bool has_devices, has_optimizer;
  RN_VEC(const rn_op_def_t*) ops;
} loaded_t;

static struct {
  rn_mutex_t mutex;
  loaded_t* first;
  rn_mutex_t devices_mutex;  // held while a plug-in registers its devices
} libraries = {.mutex = RN_MUTEX_INIT, .devices_mutex = RN_MUTEX_INIT};

// The library that is being loaded on this thread.
static _Thread_local loaded_t* loading;

struct TF_Library {
  TF_Buffer op_list;
};

rn_status_t rn_capi_note_room(void) {
  if (!loading) return RN_OK;
  return rn_vec_reserve(&loading->ops, rn_allocator_system(), loading->ops.count + 1);
}

void rn_capi_note_op(const rn_op_def_t* def) {
  if (loading) loading->ops.items[loading->ops.count++] = def;
}

static loaded_t* find_locked(void* handle) {
  loaded_t* loaded = libraries.first;
  while (loaded && loaded->handle != handle) loaded = loaded->next;
  return loaded;
}

static void loaded_free(loaded_t* loaded) {
  if (!loaded) return;
  rn_vec_free(&loaded->ops, rn_allocator_system());
  RN_FREE(rn_allocator_system(), loaded);
}

static void* symbol(void* handle, const char* name) { return dlsym(handle, name); }

// The devices of the library that is open as |handle|, before its kernels are registered.
static rn_status_t add_devices(void* handle) {
  rn_plugin_init_t init = NULL;
  *(void**)&init = symbol(handle, "SE_InitPlugin");
  if (init) return rn_plugin_platform_load(init);
  if (symbol(handle, "TFNPD_InitPlugin"))
    return rn_unimplemented("Plug-ins over PJRT (TFNPD_InitPlugin) are not supported");
  return RN_OK;
}

static rn_status_t add_optimizer(void* handle) {
  rn_plugin_graph_init_t init = NULL;
  *(void**)&init = symbol(handle, "TF_InitGraph");
  return init ? rn_plugin_optimizer_load(init) : RN_OK;
}

static void add_kernels(void* handle) {
  void (*init)(void) = NULL;
  *(void**)&init = symbol(handle, "TF_InitKernel");
  if (init) init();
}

// The entry of |own->handle| in the list, where |own| becomes it if there is none.
static loaded_t* keep(loaded_t* own) {
  rn_mutex_lock(&libraries.mutex);
  loaded_t* known = find_locked(own->handle);
  if (!known) {
    own->next = libraries.first;
    libraries.first = known = own;
  }
  rn_mutex_unlock(&libraries.mutex);
  return known;
}

// Lets the library register what it brings, each the first time: devices, kernels, and the graph
// optimizer, in stock's order.
static rn_status_t initialize(loaded_t* own, bool wants_devices, loaded_t** out) {
  rn_mutex_lock(&libraries.mutex);
  loaded_t* known = find_locked(own->handle);
  rn_mutex_unlock(&libraries.mutex);
  if (wants_devices && !(known && known->has_devices)) {
    RN_RETURN_IF_ERROR(add_devices(own->handle));
    (known ? known : own)->has_devices = true;
  }
  if (!known) {
    add_kernels(own->handle);
    known = keep(own);  // another thread may have loaded it first
  }
  *out = known;
  if (!wants_devices || known->has_optimizer) return RN_OK;
  RN_RETURN_IF_ERROR(add_optimizer(own->handle));
  known->has_optimizer = true;
  return RN_OK;
}

// Opens the file; its devices and optimizer are registered if |wants_devices|.
static rn_status_t load(const char* filename, bool wants_devices, loaded_t** out) {
  loaded_t* own = NULL;
  loaded_t* outer = loading;  // a plug-in may load another one
  *out = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), &own));
  loading = own;
  rn_status_t status = rn_plugin_open(filename, &own->handle);
  if (rn_ok(status)) status = initialize(own, wants_devices, out);
  loading = outer;
  if (*out != own) loaded_free(own);
  return status;
}

static rn_status_t write_ops(const loaded_t* loaded, TF_Buffer* out) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_capi_allocator());
  for (size_t i = 0; i < loaded->ops.count; ++i) {
    size_t mark = rn_pb_begin(&buf, rn_pb_OpList_op_field);
    rn_op_write_proto(&buf, loaded->ops.items[i]);
    rn_pb_end(&buf, mark);
  }
  return rn_capi_buffer_take(&buf, out);
}

TF_Library* TF_LoadLibrary(const char* library_filename, TF_Status* status) {
  if (!library_filename) {
    rn_capi_set(status, RN_CAPI_NULL("library_filename"));
    return NULL;
  }
  loaded_t* loaded = NULL;
  TF_Library* library = NULL;
  rn_status_t outcome = RN_NEW(rn_capi_allocator(), &library);
  if (rn_ok(outcome)) outcome = load(library_filename, false, &loaded);
  if (rn_ok(outcome)) outcome = write_ops(loaded, &library->op_list);
  if (rn_capi_ok(status, outcome)) return library;
  TF_DeleteLibraryHandle(library);
  return NULL;
}

TF_Library* TF_LoadPluggableDeviceLibrary(const char* library_filename, TF_Status* status) {
  if (!library_filename) {
    rn_capi_set(status, RN_CAPI_NULL("library_filename"));
    return NULL;
  }
  loaded_t* loaded = NULL;
  TF_Library* library = NULL;
  rn_mutex_lock(&libraries.devices_mutex);
  rn_status_t outcome = RN_NEW(rn_capi_allocator(), &library);
  if (rn_ok(outcome)) outcome = load(library_filename, true, &loaded);
  rn_mutex_unlock(&libraries.devices_mutex);
  if (rn_ok(outcome)) outcome = write_ops(loaded, &library->op_list);
  if (rn_capi_ok(status, outcome)) return library;
  TF_DeleteLibraryHandle(library);
  return NULL;
}

void TF_DeletePluggableDeviceLibraryHandle(TF_Library* lib_handle) {
  TF_DeleteLibraryHandle(lib_handle);
}

TF_Buffer TF_GetOpList(TF_Library* lib_handle) {
  TF_Buffer list = {0};
  if (!lib_handle) return list;
  // The handle owns the bytes.
  list.data = lib_handle->op_list.data;
  list.length = lib_handle->op_list.length;
  return list;
}

void TF_DeleteLibraryHandle(TF_Library* lib_handle) {
  if (!lib_handle) return;
  TF_Buffer* list = &lib_handle->op_list;
  if (list->data_deallocator) {
    list->data_deallocator((void*)(uintptr_t)list->data, list->length);
  }
  RN_FREE(rn_capi_allocator(), lib_handle);
}
