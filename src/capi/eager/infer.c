// Lists of shapes, and shape inference for an op's outputs.
#include "capi/eager/eager.h"
#include "tensorflow/c/c_api_experimental.h"

// Dims are allocated with malloc, because clients may replace them.

TF_ShapeAndTypeList* TF_NewShapeAndTypeList(int num_shapes) {
  if (num_shapes < 0) return NULL;
  TF_ShapeAndTypeList* list = calloc(1, sizeof *list);
  if (!list) return NULL;
  list->num_items = num_shapes;
  list->items = calloc((size_t)num_shapes + 1, sizeof *list->items);
  if (!list->items) {
    free(list);
    return NULL;
  }
  for (int i = 0; i < num_shapes; ++i) list->items[i].num_dims = -1;
  return list;
}

static TF_ShapeAndType* item_of(TF_ShapeAndTypeList* list, int index) {
  return list && index >= 0 && index < list->num_items ? &list->items[index] : NULL;
}

void TF_ShapeAndTypeListSetUnknownShape(TF_ShapeAndTypeList* shape_list, int index) {
  TF_ShapeAndType* item = item_of(shape_list, index);
  if (!item) return;
  free(item->dims);
  item->dims = NULL;
  item->num_dims = -1;
}

// The shape is unknown if memory runs out.
static bool set_shape(TF_ShapeAndType* item, const int64_t* dims, int count) {
  int64_t* copy = NULL;
  if (count > 0) {
    copy = malloc((size_t)count * sizeof *copy);
    if (copy) memcpy(copy, dims, (size_t)count * sizeof *copy);
  }
  free(item->dims);
  item->dims = copy;
  item->num_dims = count > 0 && !copy ? -1 : count;
  return item->num_dims == count;
}

void TF_ShapeAndTypeListSetShape(TF_ShapeAndTypeList* shape_list, int index, const int64_t* dims,
                                 int num_dims) {
  TF_ShapeAndType* item = item_of(shape_list, index);
  if (item && num_dims >= 0 && (dims || num_dims == 0)) set_shape(item, dims, num_dims);
}

void TF_ShapeAndTypeListSetDtype(TF_ShapeAndTypeList* shape_list, int index, TF_DataType dtype) {
  TF_ShapeAndType* item = item_of(shape_list, index);
  if (item) item->dtype = dtype;
}

void TF_DeleteShapeAndTypeList(TF_ShapeAndTypeList* shape_list) {
  if (!shape_list) return;
  for (int i = 0; i < shape_list->num_items; ++i) free(shape_list->items[i].dims);
  free(shape_list->items);
  free(shape_list);
}

void TF_DeleteShapeAndTypeListArray(TF_ShapeAndTypeList** shape_list_array, int num_items) {
  if (!shape_list_array) return;
  for (int i = 0; i < num_items; ++i) TF_DeleteShapeAndTypeList(shape_list_array[i]);
  free(shape_list_array);
}

static rn_status_t read_inputs(const TF_ShapeAndTypeList* shapes, TF_Tensor* const* values,
                               rn_eager_shape_t* out) {
  for (int i = 0; i < shapes->num_items; ++i) {
    const TF_ShapeAndType* item = &shapes->items[i];
    if (item->num_dims > RN_MAX_RANK)
      return rn_invalid_argument("Input %d has %d dimensions", i, item->num_dims);
    for (int d = 0; d < item->num_dims; ++d)
      if (item->dims[d] < -1)
        return rn_invalid_argument("Dimension %d of input %d is %lld", d, i,
                                   (long long)item->dims[d]);
    out[i] = (rn_eager_shape_t){.dtype = (rn_dtype_t)item->dtype, .shape = RN_SHAPE_UNKNOWN};
    if (item->num_dims >= 0) out[i].shape = (rn_shape_t){item->num_dims, item->dims};
    if (values && values[i]) out[i].value = &values[i]->tensor;
  }
  return RN_OK;
}

static rn_status_t write_outputs(const rn_eager_shape_t* shapes, int32_t count,
                                 TF_ShapeAndTypeList** out) {
  TF_ShapeAndTypeList* list = TF_NewShapeAndTypeList(count);
  bool ok = list != NULL;
  for (int32_t i = 0; ok && i < count; ++i) {
    list->items[i].dtype = (TF_DataType)shapes[i].dtype;
    if (rn_shape_has_rank(shapes[i].shape))
      ok = set_shape(&list->items[i], shapes[i].shape.dims, shapes[i].shape.rank);
  }
  if (!ok) {
    TF_DeleteShapeAndTypeList(list);
    return rn_out_of_memory();
  }
  *out = list;
  return RN_OK;
}

static rn_status_t infer(TFE_Op* op, const TF_ShapeAndTypeList* shapes, TF_Tensor* const* values,
                         rn_arena_t* arena, TF_ShapeAndTypeList** out) {
  rn_eager_shape_t *inputs = NULL, *outputs = NULL;
  int32_t count = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)shapes->num_items, &inputs));
  RN_RETURN_IF_ERROR(read_inputs(shapes, values, inputs));
  RN_RETURN_IF_ERROR(
      rn_eager_op_infer(rn_capi_eager_op(op), inputs, shapes->num_items, arena, &outputs, &count));
  return write_outputs(outputs, count, out);
}

// As in stock, ignores input tensors as shapes and the shapes behind resources.
void TFE_InferShapes(TFE_Op* op, TF_ShapeAndTypeList* input_shapes, TF_Tensor** input_tensors,
                     TF_ShapeAndTypeList* input_tensor_as_shapes,
                     TF_ShapeAndTypeList** input_resource_shapes_and_types,
                     TF_ShapeAndTypeList** output_shapes,
                     TF_ShapeAndTypeList*** output_resource_shapes_and_types, TF_Status* status) {
  (void)input_tensor_as_shapes;
  (void)input_resource_shapes_and_types;
  if (output_shapes) *output_shapes = NULL;
  if (output_resource_shapes_and_types) *output_resource_shapes_and_types = NULL;
  rn_status_t outcome = !op              ? RN_CAPI_NULL("op")
                        : !input_shapes  ? RN_CAPI_NULL("input_shapes")
                        : !output_shapes ? RN_CAPI_NULL("output_shapes")
                                         : RN_OK;
  if (rn_ok(outcome)) {
    rn_arena_t arena;
    rn_arena_init(&arena, rn_capi_allocator());
    outcome = infer(op, input_shapes, input_tensors, &arena, output_shapes);
    rn_arena_clear(&arena);
  }
  rn_capi_set(status, outcome);
}
