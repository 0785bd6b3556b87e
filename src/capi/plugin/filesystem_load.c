// Loading the file systems of a plug-in. Checks and messages are stock's.
#include <dlfcn.h>

#include "capi/plugin/call.h"
#include "capi/plugin/filesystem.h"

static rn_status_t check_abi(int found, int expected, const char* where) {
  if (found == expected) return RN_OK;
  return rn_failed_precondition(
      "Plugin ABI (%d) for %s operations doesn't match expected core ABI (%d). Plugin cannot be "
      "loaded.",
      found, where, expected);
}

static rn_status_t check_abis(const TF_FilesystemPluginOps* from) {
  RN_RETURN_IF_ERROR(check_abi(from->filesystem_ops_abi, TF_FILESYSTEM_OPS_ABI, "filesystem"));
  if (from->random_access_file_ops)
    RN_RETURN_IF_ERROR(check_abi(from->random_access_file_ops_abi, TF_RANDOM_ACCESS_FILE_OPS_ABI,
                                 "random access file"));
  if (from->writable_file_ops)
    RN_RETURN_IF_ERROR(
        check_abi(from->writable_file_ops_abi, TF_WRITABLE_FILE_OPS_ABI, "writable file"));
  if (!from->read_only_memory_region_ops) return RN_OK;
  return check_abi(from->read_only_memory_region_ops_abi, TF_READ_ONLY_MEMORY_REGION_OPS_ABI,
                   "read only memory region");
}

// A table of |found| bytes at |from|, in the space of one of |size|.
static void copy_table(void* to, size_t size, const void* from, size_t found) {
  if (from) memcpy(to, from, found < size ? found : size);
}

static rn_status_t lacks(const char* what) {
  return rn_failed_precondition("Trying to register filesystem without %s", what);
}

static rn_status_t check_tables(const TF_FilesystemPluginOps* from, const rn_plugin_fs_t* fs) {
  TF_ReadOnlyMemoryRegionOps region = {0};
  copy_table(&region, sizeof region, from->read_only_memory_region_ops,
             from->read_only_memory_region_ops_size);
  if (!from->filesystem_ops) return lacks("operations");
  if (!fs->ops.init) return lacks("`init` operation");
  if (!fs->ops.cleanup) return lacks("`cleanup` operation");
  if (from->random_access_file_ops && !fs->read_ops.cleanup)
    return lacks("`cleanup` operation on random access files");
  if (from->writable_file_ops && !fs->write_ops.cleanup)
    return lacks("`cleanup` operation on writable files");
  if (from->read_only_memory_region_ops && !region.cleanup)
    return lacks("`cleanup` operation on read only memory regions");
  if (from->read_only_memory_region_ops && !region.data)
    return lacks("`data` operation on read only memory regions");
  if (from->read_only_memory_region_ops && !region.length)
    return lacks("`length` operation on read only memory regions");
  const char* made = NULL;
  if (fs->ops.new_random_access_file && !from->random_access_file_ops)
    made = "random access files";
  else if ((fs->ops.new_writable_file || fs->ops.new_appendable_file) && !from->writable_file_ops)
    made = "writable files";
  else if (fs->ops.new_read_only_memory_region_from_file && !from->read_only_memory_region_ops)
    made = "readonly memory regions";
  if (!made) return RN_OK;
  return rn_failed_precondition(
      "Filesystem allows creation of %s but no operations on them have been supplied.", made);
}

static rn_status_t fill(const TF_FilesystemPluginInfo* info, const TF_FilesystemPluginOps* from,
                        rn_plugin_fs_t* fs) {
  if (!from->scheme)
    return rn_invalid_argument("Attempted to register filesystem with `nullptr` URI scheme");
  RN_RETURN_IF_ERROR(check_abis(from));
  copy_table(&fs->ops, sizeof fs->ops, from->filesystem_ops, from->filesystem_ops_size);
  copy_table(&fs->read_ops, sizeof fs->read_ops, from->random_access_file_ops,
             from->random_access_file_ops_size);
  copy_table(&fs->write_ops, sizeof fs->write_ops, from->writable_file_ops,
             from->writable_file_ops_size);
  fs->memory_free = info->plugin_memory_free;
  RN_RETURN_IF_ERROR(check_tables(from, fs));
  return rn_str_dup(rn_allocator_system(), rn_str(from->scheme), &fs->scheme);
}

static rn_status_t add_scheme(const TF_FilesystemPluginInfo* info,
                              const TF_FilesystemPluginOps* from) {
  rn_plugin_fs_t* fs = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), &fs));
  rn_status_t status = fill(info, from, fs);
  bool has_init = false;
  if (rn_ok(status)) {
    status = RN_PLUGIN_CALL(fs->ops.init, &fs->filesystem);
    has_init = rn_ok(status);
  }
  if (rn_ok(status)) status = rn_fs_register(fs->scheme, &rn_plugin_fs_functions, fs);
  if (rn_ok(status)) return RN_OK;
  if (has_init) fs->ops.cleanup(&fs->filesystem);
  if (fs->scheme) rn_free(rn_allocator_system(), fs->scheme, strlen(fs->scheme) + 1);
  RN_FREE(rn_allocator_system(), fs);
  return status;
}

static void free_tables(const TF_FilesystemPluginInfo* info, const TF_FilesystemPluginOps* ops) {
  void* const memory[] = {ops->scheme, ops->filesystem_ops, ops->random_access_file_ops,
                          ops->writable_file_ops, ops->read_only_memory_region_ops};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; ++i)
    if (memory[i]) info->plugin_memory_free(memory[i]);
}

static rn_status_t register_all(const TF_FilesystemPluginInfo* info) {
  static const char* const message =
      "Cannot load filesystem plugin which does not provide `plugin_memory_%s`";
  if (!info->plugin_memory_allocate) return rn_failed_precondition(message, "allocate");
  if (!info->plugin_memory_free) return rn_failed_precondition(message, "free");
  // One scheme that fails does not keep the others out.
  rn_status_t status = RN_OK;
  for (size_t i = 0; info->ops && i < info->num_schemes; ++i) {
    status = rn_status_join(status, add_scheme(info, &info->ops[i]));
    free_tables(info, &info->ops[i]);
  }
  if (info->ops) info->plugin_memory_free(info->ops);
  return status;
}

static rn_status_t load(const char* filename) {
  void* handle = NULL;
  RN_RETURN_IF_ERROR(rn_plugin_open(filename, &handle));
  void (*init)(TF_FilesystemPluginInfo*) = NULL;
  *(void**)&init = dlsym(handle, "TF_InitPlugin");
  if (!init) {
    rn_status_t status = rn_not_found("%s", dlerror());
    dlclose(handle);
    return status;
  }
  TF_FilesystemPluginInfo info = {0};
  init(&info);
  return register_all(&info);  // the library stays open, because files may be
}

void TF_RegisterFilesystemPlugin(const char* plugin_filename, TF_Status* status) {
  rn_capi_set(status, plugin_filename ? load(plugin_filename) : RN_CAPI_NULL("plugin_filename"));
}
