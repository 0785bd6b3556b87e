// Compiled kernels on disk, one file per key.
//
// A file is a header of 48 bytes, little-endian, and the code:
//
//   0   8  "RNKERNEL"
//   8   4  version of this format, 1
//   12  4  architecture (90 for sm_90)
//   16  16 key, its two halves
//   32  8  size of the code
//   40  4  masked CRC-32C of the code
//   44  4  0
//
// Files are written under a temporary name and renamed, so readers see whole files. A file that
// does not match its name or its checksum is ignored with one line in the log and replaced by the
// next store. Nothing is ever removed: delete the folder at any time.
#ifndef RUNNEL_KERNELS_CUDA_JIT_CACHE_H_
#define RUNNEL_KERNELS_CUDA_JIT_CACHE_H_

#include "base/env.h"
#include "kernels/cuda/jit/emit.h"

// Appends the folder: $RUNNEL_CACHE_DIR, else $XDG_CACHE_HOME/runnel/kernels, else
// $HOME/.cache/runnel/kernels. Appends nothing if none of them is set: there is no cache.
void rn_jit_cache_folder(rn_strbuf_t* out);

// Appends the code of |key| to |out| and returns true, or returns false. |folder| "" has no files.
bool rn_jit_cache_find(const rn_env_t* env, const char* folder, rn_jit_key_t key, int architecture,
                       rn_strbuf_t* out);

// Stores the code. Creates the folder; does nothing if that or the writing fails.
void rn_jit_cache_store(const rn_env_t* env, const char* folder, rn_jit_key_t key, int architecture,
                        rn_str_t code);

#endif  // RUNNEL_KERNELS_CUDA_JIT_CACHE_H_
