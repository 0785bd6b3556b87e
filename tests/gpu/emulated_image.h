// How the emulated libraries of NVIDIA's load their device code.
#ifndef RUNNEL_TESTS_GPU_EMULATED_IMAGE_H_
#define RUNNEL_TESTS_GPU_EMULATED_IMAGE_H_

#include <stdio.h>
#include <stdlib.h>

// The bytes of the file, for cuModuleLoadData and free; NULL if it cannot be read.
static inline char* read_emulated_image(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  const long size = ftell(file);
  rewind(file);
  char* bytes = malloc((size_t)size);
  if (bytes && fread(bytes, 1, (size_t)size, file) != (size_t)size) {
    free(bytes);
    bytes = NULL;
  }
  fclose(file);
  return bytes;
}

#endif  // RUNNEL_TESTS_GPU_EMULATED_IMAGE_H_
