// Imports the function library of a GraphDef.
#include "graph/import_state.h"
#include "graph/library.h"

static rn_status_t add_function(rn_import_t* import, const rn_pb_FunctionDef_t* def) {
  if (!def->signature || !def->signature->name.size) {
    return rn_invalid_argument("A function of the library has no name");
  }
  rn_function_t* function = NULL;
  RN_RETURN_IF_ERROR(rn_function_from_def(import->graph->allocator, def, &function));
  bool is_new;
  rn_status_t status = rn_library_add(import->graph->library, function, &is_new);
  if (is_new) import->new_functions[import->new_function_count++] = function->name;
  rn_function_release(function);
  return status;
}

static rn_status_t set_gradient(rn_import_t* import, const rn_pb_GradientDef_t* def) {
  bool is_new;
  rn_status_t status = rn_library_set_gradient(import->graph->library, def->function_name,
                                               def->gradient_func, &is_new);
  if (is_new) import->new_gradients[import->new_gradient_count++] = def->function_name;
  return status;
}

rn_status_t rn_import_functions(rn_import_t* import) {
  const rn_pb_FunctionDefLibrary_t* library = import->def->library;
  if (!library) return RN_OK;
  rn_arena_t* scratch = &import->scratch;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(scratch, library->function.count, &import->new_functions));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(scratch, library->gradient.count, &import->new_gradients));
  for (uint32_t i = 0; i < library->function.count; i++) {
    RN_RETURN_IF_ERROR(add_function(import, &library->function.items[i]));
  }
  for (uint32_t i = 0; i < library->gradient.count; i++) {
    RN_RETURN_IF_ERROR(set_gradient(import, &library->gradient.items[i]));
  }
  return RN_OK;
}

void rn_import_undo_functions(rn_import_t* import) {
  rn_library_t* library = import->graph->library;
  while (import->new_gradient_count > 0) {
    rn_library_undo_gradient(library, import->new_gradients[--import->new_gradient_count]);
  }
  while (import->new_function_count > 0) {
    rn_library_undo_add(library, import->new_functions[--import->new_function_count]);
  }
}
