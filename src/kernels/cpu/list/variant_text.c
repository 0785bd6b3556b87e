// See variant_text.h.
#include "kernels/cpu/list/variant_text.h"

#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/optional.h"
#include "kernels/cpu/list/number_variant.h"
#include "kernels/cpu/list/tensor_list.h"
#include "tensor/print.h"

#define MOST_VALUES 3  // shown per tensor

static void print_optional(rn_strbuf_t* buf, const rn_optional_t* optional) {
  if (optional->count < 0) {
    rn_strbuf_append(buf, RN_STR("OptionalVariant<None>"));
    return;
  }
  rn_strbuf_append(buf, RN_STR("OptionalVariant<values: ("));
  for (int32_t i = 0; i < optional->count; ++i) {
    const rn_tensor_t* value = &optional->values[i];
    rn_strbuf_printf(buf, "%sTensor<type: %s shape: %s values: ", i ? ", " : "",
                     rn_dtype_name(value->dtype), rn_text_of(value).text);
    rn_print_values(buf, value, MOST_VALUES);
    rn_strbuf_append(buf, RN_STR(">"));
  }
  rn_strbuf_append(buf, RN_STR(")>"));
}

static const char* type_name(const rn_object_t* object) {
  for (const rn_variant_kind_t* const* kind = rn_variant_kinds; object && *kind; ++kind)
    if ((*kind)->holds(object)) return (*kind)->type_name;
  return "";
}

void rn_variant_print(rn_strbuf_t* buf, rn_object_t* object) {
  rn_tensor_t one = {.data = &object, .count = 1};
  const rn_number_variant_t* number = rn_number_variant_from(object);
  const rn_optional_t* optional = object ? rn_optional_from(object) : NULL;
  rn_strbuf_printf(
      buf, "Variant<type: %s value: ", optional ? "tensorflow::data::Optional" : type_name(object));
  if (number)
    rn_number_variant_print(number, buf);
  else if (optional)
    print_optional(buf, optional);
  else if (object && rn_tensor_list_at(&one, 0))
    rn_strbuf_append(buf, RN_STR("TensorList"));
  else
    rn_strbuf_printf(buf, "%s", type_name(object));
  rn_strbuf_append(buf, RN_STR(">"));
}
