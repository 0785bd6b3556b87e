// NVIDIA's libraries are only opened with a driver that has this function. The others come from
// the emulated driver, which this library is linked to.
__attribute__((visibility("default"))) int cuGetProcAddress(const char* name, void** function,
                                                            int version, unsigned long long flags);
int cuGetProcAddress(const char* name, void** function, int version, unsigned long long flags) {
  (void)name, (void)version, (void)flags;
  *function = (void*)0;
  return 500;  // CUDA_ERROR_NOT_FOUND
}
