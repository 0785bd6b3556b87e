// Modules and launches of the emulated driver. An image is a shared object of the host (image.h),
// loaded from memory; RN_EMULATED_IMAGES names a folder to keep images in, for debuggers and for
// symbols in the sanitizers' reports.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // memfd_create
#endif
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver.h"

#define MAX_IMAGE ((size_t)1 << 30)
#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_NONE
#endif

// The size of an ELF file, which its tables tell, or 0.
static size_t size_of(const void* image) {
  Elf64_Ehdr header;
  memcpy(&header, image, sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr)) return 0;
  if (header.e_shoff > MAX_IMAGE) return 0;
  size_t size = header.e_shoff + (size_t)header.e_shnum * sizeof(Elf64_Shdr);
  for (int i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    memcpy(&section, (const char*)image + header.e_shoff + (size_t)i * sizeof section,
           sizeof section);
    if (section.sh_type == SHT_NOBITS) continue;
    if (section.sh_offset > MAX_IMAGE || section.sh_size > MAX_IMAGE) return 0;
    if (section.sh_offset + section.sh_size > size) size = section.sh_offset + section.sh_size;
  }
  return size;
}

static bool write_all(int file, const char* bytes, size_t size) {
  while (size) {
    ssize_t written = write(file, bytes, size);
    if (written <= 0) return false;
    bytes += written;
    size -= (size_t)written;
  }
  return true;
}

// Opens a file for the image; |path| is where dlopen finds it.
static int create_file(char* path, size_t size) {
  const char* folder = getenv("RN_EMULATED_IMAGES");
  if (folder && *folder) {
    snprintf(path, size, "%s/image-XXXXXX", folder);
    return mkstemp(path);
  }
  int file = memfd_create("emulated GPU image", MFD_CLOEXEC);
  snprintf(path, size, "/proc/self/fd/%d", file);
  return file;
}

static CUresult load(CUmodule module, const void* image) {
  size_t size = size_of(image);
  if (!size) return EMU_INVALID_IMAGE;
  char path[4096];
  module->file = create_file(path, sizeof path);
  if (module->file < 0 || !write_all(module->file, image, size)) return EMU_OUT_OF_MEMORY;
  module->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!module->library) {
    fprintf(stderr, "emulated GPU: %s\n", dlerror());
    return EMU_INVALID_IMAGE;
  }
  rn_emulated_image_t* (*find)(void);
  *(void**)&find = dlsym(module->library, "rn_emulated_image");
  if (!find) return EMU_INVALID_IMAGE;
  module->image = find();
  return CUDA_SUCCESS;
}

static void module_destroy(CUmodule module) {
  while (module->functions) {
    CUfunction function = module->functions;
    module->functions = function->next;
    free(function->name);
    free(function);
  }
  if (module->library) dlclose(module->library);
  if (module->file >= 0) close(module->file);
  free(module);
}

CUresult cuModuleLoadData(CUmodule* out_module, const void* image) {
  EMU_CALL(cuModuleLoadData);
  emu_device_t* device;
  EMU_RETURN_IF_ERROR(emu_current(&device));
  EMU_RETURN_IF_ERROR(emu_may_be_unsafe());
  EMU_RETURN_IF(!image, EMU_INVALID_VALUE);
  EMU_RETURN_IF(memcmp(image, ELFMAG, SELFMAG) != 0, EMU_INVALID_IMAGE);
  Elf64_Half machine;
  memcpy(&machine, (const char*)image + offsetof(Elf64_Ehdr, e_machine), sizeof machine);
  EMU_RETURN_IF(MACHINE != EM_NONE && machine != MACHINE, EMU_NO_BINARY_FOR_GPU);
  CUmodule module = calloc(1, sizeof *module);
  EMU_RETURN_IF(!module, EMU_OUT_OF_MEMORY);
  module->device = device;
  module->file = -1;
  CUresult result = load(module, image);
  if (result) {
    module_destroy(module);
    return result;
  }
  emu_lock();
  ++emu.modules;
  emu_unlock();
  *out_module = module;
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) {
  EMU_CALL(cuModuleUnload);
  EMU_RETURN_IF(!module, EMU_INVALID_HANDLE);
  emu_lock();
  emu_wait_idle_locked(module->device);
  --emu.modules;
  emu_unlock();
  module_destroy(module);
  return CUDA_SUCCESS;
}

static CUfunction function_create(CUmodule module, const char* name) {
  char size_name[512];
  snprintf(size_name, sizeof size_name, "%s_args_size", name);
  void* kernel = dlsym(module->library, name);
  const unsigned* args_size = dlsym(module->library, size_name);
  if (!kernel || !args_size) return NULL;
  CUfunction function = calloc(1, sizeof *function);
  if (!function) return NULL;
  function->module = module;
  function->name = strdup(name);
  *(void**)&function->kernel = kernel;
  function->args_size = *args_size;
  function->max_shared = EMU_SHARED;
  return function;
}

CUresult cuModuleGetFunction(CUfunction* out_function, CUmodule module, const char* name) {
  EMU_CALL(cuModuleGetFunction);
  emu_device_t* device;
  EMU_RETURN_IF_ERROR(emu_current(&device));
  EMU_RETURN_IF(!module, EMU_INVALID_HANDLE);
  emu_lock();
  CUfunction function = module->functions;
  while (function && strcmp(function->name, name) != 0) function = function->next;
  emu_unlock();
  if (!function) {
    function = function_create(module, name);
    EMU_RETURN_IF(!function, EMU_NOT_FOUND);
    emu_lock();
    function->next = module->functions;
    module->functions = function;
    emu_unlock();
  }
  *out_function = function;
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value) {
  EMU_CALL(cuFuncSetAttribute);
  EMU_RETURN_IF(!function, EMU_INVALID_HANDLE);
  bool is_shared = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  EMU_RETURN_IF(is_shared && (value < 0 || value > EMU_MOST_SHARED), EMU_INVALID_VALUE);
  if (is_shared) function->max_shared = (unsigned)value;
  return CUDA_SUCCESS;
}

// The kernel's struct of arguments, given by |args| or |extra|; NULL if it is not of the right
// size.
static const void* find_args(CUfunction function, void** args, void** extra) {
  if (args && !extra) return args[0];
  const void* bytes = NULL;
  size_t size = 0;
  for (; !args && extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) bytes = extra[1];
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *(size_t*)extra[1];
  }
  return size == function->args_size ? bytes : NULL;
}

static bool is_launchable(CUfunction function, rn_emulated_dim3 grid, rn_emulated_dim3 block,
                          unsigned shared) {
  uint64_t threads = (uint64_t)block.x * block.y * block.z;
  if (!grid.x || !grid.y || !grid.z || !threads || threads > EMU_MAX_THREADS) return false;
  if (block.x > EMU_MAX_THREADS || block.y > EMU_MAX_THREADS || block.z > 64) return false;
  return grid.x <= INT32_MAX && grid.y <= 65535 && grid.z <= 65535 &&
         shared <= function->max_shared;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream, void** args, void** extra) {
  EMU_CALL(cuLaunchKernel);
  EMU_RETURN_IF_ERROR(emu_stream_of(stream, &stream));
  EMU_RETURN_IF(!function || function->module->device != stream->device, EMU_INVALID_HANDLE);
  rn_emulated_dim3 grid = {grid_x, grid_y, grid_z}, block = {block_x, block_y, block_z};
  const void* bytes = find_args(function, args, extra);
  EMU_RETURN_IF(!bytes || !is_launchable(function, grid, block, shared), EMU_INVALID_VALUE);
  emu_item_t* item = emu_item_create(EMU_KERNEL);
  void* copy = NULL;
  if (!item || posix_memalign(&copy, 64, function->args_size) != 0) {
    free(item);
    return EMU_OUT_OF_MEMORY;
  }
  memcpy(copy, bytes, function->args_size);
  item->kernel.function = function;
  item->kernel.grid = grid;
  item->kernel.block = block;
  item->kernel.shared = shared;
  item->kernel.args = copy;
  return emu_issue(stream, item);
}
