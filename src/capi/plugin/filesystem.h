// A plug-in's file system. Private to capi/.
#ifndef RUNNEL_CAPI_PLUGIN_FILESYSTEM_H_
#define RUNNEL_CAPI_PLUGIN_FILESYSTEM_H_

#include "base/fs.h"
#include "capi/internal.h"
#include "tensorflow/c/experimental/filesystem/filesystem_interface.h"

// Never freed once registered. Functions that the plug-in lacks are NULL.
typedef struct rn_plugin_fs_t {
  TF_Filesystem filesystem;
  TF_FilesystemOps ops;
  TF_RandomAccessFileOps read_ops;
  TF_WritableFileOps write_ops;
  void (*memory_free)(void* memory);
  char* scheme;  // Owned
} rn_plugin_fs_t;

// The functions of such a file system; their self is a rn_plugin_fs_t.
extern const rn_fs_t rn_plugin_fs_functions;

#endif  // RUNNEL_CAPI_PLUGIN_FILESYSTEM_H_
