// Loads a library of ops, and prints how many bytes their definitions take. It knows nothing of
// C++.
#include <stdio.h>
#include <tensorflow/c/c_api.h>

int main(int argc, char** argv) {
  TF_Status* status = TF_NewStatus();
  TF_Library* library = argc == 2 ? TF_LoadLibrary(argv[1], status) : NULL;
  if (!library) return fprintf(stderr, "%s\n", TF_Message(status)), 1;
  printf("%d\n", TF_GetOpList(library).length > 0);
  TF_DeleteLibraryHandle(library);
  TF_DeleteStatus(status);
}
