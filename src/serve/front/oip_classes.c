// Triton's classification extension: instead of an output, its largest elements as strings
// "SCORE:INDEX" or "SCORE:INDEX:LABEL", the largest first. See oip.h.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "serve/front/oip.h"
#include "tensor/tstring.h"

// One element of an output. Integers keep all their digits.
typedef struct oip_class_t {
  int64_t index;
  bool is_whole, is_unsigned;
  double score;
  int64_t whole;  // the same as an integer
} oip_class_t;

static bool read_class(const rn_tensor_t* tensor, int64_t at, oip_class_t* out) {
  switch (tensor->dtype) {
#define FRACTION(dtype, type)               \
  case dtype:                               \
    out->score = RN_DATA(tensor, type)[at]; \
    return true;
#define WHOLE(dtype, type, sign)                     \
  case dtype:                                        \
    out->whole = (int64_t)RN_DATA(tensor, type)[at]; \
    out->is_whole = true;                            \
    out->is_unsigned = sign;                         \
    return true;
    FRACTION(RN_FLOAT, float)
    FRACTION(RN_DOUBLE, double)
    WHOLE(RN_INT8, int8_t, false)
    WHOLE(RN_INT16, int16_t, false)
    WHOLE(RN_INT32, int32_t, false)
    WHOLE(RN_INT64, int64_t, false)
    WHOLE(RN_UINT8, uint8_t, true)
    WHOLE(RN_UINT16, uint16_t, true)
    WHOLE(RN_UINT32, uint32_t, true)
    WHOLE(RN_UINT64, uint64_t, true)
#undef FRACTION
#undef WHOLE
    default:
      return false;
  }
}

// For qsort: the larger score first, then the lower index. NaN comes last.
static int by_score(const void* x, const void* y) {
  const oip_class_t *a = x, *b = y;
  bool above, below;
  if (!a->is_whole) {
    above = a->score > b->score || (isnan(b->score) && !isnan(a->score));
    below = a->score < b->score || (isnan(a->score) && !isnan(b->score));
  } else {
    above = a->is_unsigned ? (uint64_t)a->whole > (uint64_t)b->whole : a->whole > b->whole;
    below = !above && a->whole != b->whole;
  }
  return above ? -1 : below ? 1 : a->index < b->index ? -1 : 1;
}

static rn_status_t append_label(rn_str_t label, rn_tstring_t* inout) {
  size_t size = rn_tstring_view(inout).size;
  char* text = rn_tstring_resize(inout, size + 1 + label.size);
  if (!text) return rn_out_of_memory();
  text[size] = ':';
  memcpy(text + size + 1, label.data, label.size);
  return RN_OK;
}

// |port| is NULL if nothing is known of the output.
static rn_status_t write_class(const oip_class_t* element, const rn_serve_port_t* port,
                               rn_tstring_t* out) {
  char text[400];  // the largest double has 309 digits before its point
  int size;
  if (!element->is_whole)
    size = snprintf(text, sizeof text, "%f:%" PRId64, element->score, element->index);
  else if (element->is_unsigned)
    size = snprintf(text, sizeof text, "%" PRIu64 ":%" PRId64, (uint64_t)element->whole,
                    element->index);
  else
    size = snprintf(text, sizeof text, "%" PRId64 ":%" PRId64, element->whole, element->index);
  if (!rn_tstring_assign(out, text, (size_t)size)) return rn_out_of_memory();
  bool has_label = port && element->index < port->label_count && port->labels[element->index].size;
  return has_label ? append_label(port->labels[element->index], out) : RN_OK;
}

// Writes the first |count| classes of each row of |tensor| to |*out|. |room| has a row's elements.
static rn_status_t write_rows(const rn_tensor_t* tensor, int64_t size, int64_t count,
                              const rn_serve_port_t* port, oip_class_t* room, rn_tensor_t* out) {
  rn_tstring_t* texts = RN_DATA(out, rn_tstring_t);
  for (int64_t begin = 0; begin < tensor->count; begin += size) {
    for (int64_t i = 0; i < size; ++i) {
      room[i] = (oip_class_t){.index = i};
      read_class(tensor, begin + i, &room[i]);
    }
    qsort(room, (size_t)size, sizeof *room, by_score);
    for (int64_t i = 0; i < count; ++i) RN_RETURN_IF_ERROR(write_class(&room[i], port, texts++));
  }
  return RN_OK;
}

rn_status_t rn_oip_classes(const rn_oip_infer_t* infer, rn_str_t name, int64_t count,
                           rn_tensor_t* inout) {
  rn_allocator_t allocator = infer->front->allocator;
  const rn_serve_signature_t* signature = infer->signature;
  bool has_rows = signature && signature->is_batched && inout->rank > 0;
  int output = signature ? rn_serve_port(signature->outputs, signature->output_count, name) : -1;
  const rn_serve_port_t* port = output < 0 ? NULL : &signature->outputs[output];
  int64_t rows = has_rows ? rn_tensor_dim(inout, 0) : 1, size = rows ? inout->count / rows : 0;
  oip_class_t first = {0}, *room = NULL;
  if (inout->count && !read_class(inout, 0, &first))
    return rn_invalid_argument("class result not available for output due to unsupported type '%s'",
                               rn_oip_type_name(inout->dtype));
  if (count > size) count = size;
  int64_t dims[] = {rows, count};
  rn_shape_t shape = has_rows ? (rn_shape_t){2, dims} : (rn_shape_t){1, dims + 1};
  rn_tensor_t classes;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, (size_t)size, &room));
  rn_status_t status = rn_tensor_create(allocator, RN_STRING, shape, &classes);
  if (rn_ok(status)) {
    status = size ? write_rows(inout, size, count, port, room, &classes) : RN_OK;
    rn_tensor_clear(rn_ok(status) ? inout : &classes);
    if (rn_ok(status)) *inout = classes;
  }
  RN_FREE_ARRAY(allocator, room, (size_t)size);
  return status;
}
