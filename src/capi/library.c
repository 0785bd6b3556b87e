// Plug-in libraries: shared objects that register ops and kernels through ops.h and kernels.h.
//
// A plug-in registers from its constructors, while dlopen runs, or from TF_InitKernel, which is
// called once after it. Both happen on the loading thread, so whatever that thread registers
// meanwhile belongs to the library. The table of libraries is process-wide, like the op registry
// that it is part of: a library and its ops stay loaded forever.
#include <dlfcn.h>

#include "base/sync.h"
#include "base/vec.h"
#include "capi/internal.h"
#include "framework/op_proto.h"
#include "proto/op_def.pb.h"
#include "wire/writer.h"

typedef struct loaded_t {
  struct loaded_t* next;
  void* handle;  // from dlopen, which returns the same one for the same library
  RN_VEC(const rn_op_def_t*) ops;
} loaded_t;

static struct {
  rn_mutex_t mutex;
  loaded_t* first;
} libraries = {.mutex = RN_MUTEX_INIT};

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

// Opens the file and, the first time, lets it register its ops and kernels.
static rn_status_t load(const char* filename, const loaded_t** out) {
  loaded_t* own = NULL;
  loaded_t* outer = loading;  // a plug-in may load another one
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), &own));
  loading = own;
  own->handle = dlopen(filename, RTLD_NOW | RTLD_LOCAL);
  const char* error = own->handle ? NULL : dlerror();
  rn_mutex_lock(&libraries.mutex);
  loaded_t* known = own->handle ? find_locked(own->handle) : NULL;
  rn_mutex_unlock(&libraries.mutex);
  if (own->handle && !known) {
    void (*init)(void) = NULL;
    *(void**)&init = dlsym(own->handle, "TF_InitKernel");
    if (init) init();
    rn_mutex_lock(&libraries.mutex);
    known = find_locked(own->handle);  // another thread may have loaded it first
    if (!known) {
      own->next = libraries.first;
      libraries.first = known = own;
    }
    rn_mutex_unlock(&libraries.mutex);
  }
  loading = outer;
  rn_status_t status =
      known ? RN_OK : rn_not_found("%s", error ? error : "The library cannot be opened");
  if (known != own) loaded_free(own);
  *out = known;
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
  const loaded_t* loaded = NULL;
  TF_Library* library = NULL;
  rn_status_t outcome = RN_NEW(rn_capi_allocator(), &library);
  if (rn_ok(outcome)) outcome = load(library_filename, &loaded);
  if (rn_ok(outcome)) outcome = write_ops(loaded, &library->op_list);
  if (rn_capi_ok(status, outcome)) return library;
  TF_DeleteLibraryHandle(library);
  return NULL;
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
