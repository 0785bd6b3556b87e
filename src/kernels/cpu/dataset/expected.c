// See expected.h.
#include "kernels/cpu/dataset/expected.h"

#include "kernels/cpu/array.h"

rn_status_t rn_data_expected_init(const rn_kernel_init_t* init, void* state) {
  const rn_attr_value_t* types = rn_init_attr(init, "output_types");
  const rn_attr_value_t* shapes = rn_init_attr(init, "output_shapes");
  if (types->count && shapes->count && types->count != shapes->count)
    return rn_invalid_argument(
        "If both 'output_types' and 'output_shapes' are set, they must have the same length.");
  return rn_data_root_create(init->allocator, types->count, types->list_type,
                             shapes->count ? shapes->list_shape : NULL,
                             &((rn_data_expected_t*)state)->like);
}

void rn_data_expected_destroy(void* state) {
  rn_data_expected_t* expected = state;
  if (expected->like) rn_object_release(&expected->like->resource.object);
}

rn_status_t rn_data_expected_check(const rn_data_expected_t* expected, const rn_tensor_t* row,
                                   int32_t count) {
  const rn_data_root_t* like = expected->like;
  if (like->component_count != count)
    return rn_data_check_types(like->component_count, NULL, count, NULL);
  for (int32_t i = 0; i < count; ++i)
    if (row[i].dtype != like->types[i])
      return rn_invalid_argument("Data type mismatch at component %d: expected %s but got %s.", i,
                                 rn_dtype_name(like->types[i]), rn_dtype_name(row[i].dtype));
  for (int32_t i = 0; i < count; ++i)
    if (!rn_shape_compatible(like->shapes[i], rn_tensor_shape(&row[i])))
      return rn_invalid_argument("Incompatible shapes at component %d: expected %s but got %s.", i,
                                 rn_shape_text(like->shapes[i]).text, rn_text_of(&row[i]).text);
  return RN_OK;
}

rn_status_t rn_data_expected_check_optional(const rn_data_expected_t* expected,
                                            const rn_tensor_t* row, int32_t count) {
  const rn_data_root_t* like = expected->like;
  if (like->component_count != count)
    return rn_invalid_argument("The given optional has %d components, expected %d", count,
                               like->component_count);
  for (int32_t i = 0; i < count; ++i) {
    if (row[i].dtype != like->types[i])
      return rn_invalid_argument(
          "The given optional does not match the expected type for component %d. Expected: %s. "
          "Actual: %s.",
          i, rn_dtype_name(like->types[i]), rn_dtype_name(row[i].dtype));
    if (!rn_shape_compatible(like->shapes[i], rn_tensor_shape(&row[i])))
      return rn_invalid_argument(
          "The given optional does not match the expected shape for component %d. Expected: %s. "
          "Actual: %s.",
          i, rn_shape_text(like->shapes[i]).text, rn_text_of(&row[i]).text);
  }
  return RN_OK;
}
