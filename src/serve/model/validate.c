// See validate.h.
#include "serve/model/validate.h"

// Appends the names of |inputs| or |ports| that |skip| does not hold, separated by commas.
typedef struct names_t {
  const rn_predict_value_t* values;  // or
  const rn_serve_port_t* ports;
  int count;
} names_t;

static rn_str_t name_at(const names_t* names, int i) {
  return names->values ? names->values[i].name : names->ports[i].name;
}

static bool has_name(const names_t* names, rn_str_t name) {
  for (int i = 0; names && i < names->count; ++i)
    if (rn_str_eq(name_at(names, i), name)) return true;
  return false;
}

// The smallest name after |last| (NULL: the smallest) that |skip| lacks; -1 at the end. Messages
// list names in this order, and a request may have them in any.
static int next_name(const names_t* names, const names_t* skip, const rn_str_t* last) {
  int best = -1;
  for (int i = 0; i < names->count; ++i) {
    rn_str_t name = name_at(names, i);
    if (has_name(skip, name) || (last && rn_str_compare(name, *last) <= 0)) continue;
    if (best < 0 || rn_str_compare(name, name_at(names, best)) < 0) best = i;
  }
  return best;
}

static void print_names(rn_strbuf_t* text, const names_t* names, const names_t* skip) {
  rn_str_t last = {0};
  bool is_first = true;
  for (int i; (i = next_name(names, skip, is_first ? NULL : &last)) >= 0; is_first = false) {
    last = name_at(names, i);
    if (!is_first) rn_strbuf_append(text, RN_STR(","));
    rn_strbuf_append(text, last);
  }
}

static names_t names_sent(const rn_predict_t* predict) {
  return (names_t){.values = predict->inputs, .count = predict->input_count};
}

static rn_status_t count_error(const rn_predict_t* predict, const rn_serve_signature_t* signature) {
  names_t sent = names_sent(predict);
  names_t wanted = {.ports = signature->inputs, .count = signature->input_count};
  rn_strbuf_t text;
  rn_strbuf_init(&text, predict->allocator);
  rn_strbuf_printf(&text, "input size does not match signature: %d!=%d len({", sent.count,
                   wanted.count);
  print_names(&text, &sent, NULL);
  rn_strbuf_append(&text, RN_STR("}) != len({"));
  print_names(&text, &wanted, NULL);
  rn_strbuf_append(&text, RN_STR("}). Sent extra: {"));
  print_names(&text, &sent, &wanted);
  rn_strbuf_append(&text, RN_STR("}. Missing but required: {"));
  print_names(&text, &wanted, &sent);
  rn_strbuf_append(&text, RN_STR("}."));
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

static rn_status_t missing_error(const rn_predict_t* predict, const rn_serve_port_t* port) {
  names_t sent = names_sent(predict);
  rn_strbuf_t text;
  rn_strbuf_init(&text, predict->allocator);
  rn_strbuf_printf(&text,
                   "Signature input alias: %.*s(feed name: %.*s) not found in request and no "
                   "default value provided. Inputs expected to be in the request {",
                   RN_STR_ARGS(port->name), RN_STR_ARGS(port->tensor));
  print_names(&text, &sent, NULL);
  rn_strbuf_append(&text, RN_STR("}, or default input alias set: "));
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

static rn_status_t shape_error(const rn_predict_t* predict, const rn_serve_port_t* port,
                               const rn_tensor_t* value) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, predict->allocator);
  rn_strbuf_printf(&text, "input tensor %.*s has shape ", RN_STR_ARGS(port->name));
  rn_shape_print(&text, rn_tensor_shape(value));
  rn_strbuf_append(&text, RN_STR(", which does not fit the signature's "));
  rn_shape_print(&text, port->shape);
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

// Brings the inputs into the order of the signature.
static rn_status_t sort_inputs(rn_predict_t* predict, const rn_serve_signature_t* signature) {
  rn_predict_value_t* inputs = predict->inputs;
  for (int i = 0; i < signature->input_count; ++i) {
    if (rn_str_eq(inputs[i].name, signature->inputs[i].name)) continue;
    int at = i + 1;
    while (at < predict->input_count && !rn_str_eq(inputs[at].name, signature->inputs[i].name))
      ++at;
    if (at == predict->input_count) return missing_error(predict, &signature->inputs[i]);
    rn_predict_value_t moved = inputs[at];
    inputs[at] = inputs[i];
    inputs[i] = moved;
  }
  return RN_OK;
}

static bool fits(const rn_serve_port_t* port, const rn_tensor_t* value) {
  if (!rn_shape_has_rank(port->shape)) return true;
  bool is_equal = value->rank == port->shape.rank;
  const int64_t* dims = rn_tensor_dims(value);
  for (int axis = 0; is_equal && axis < value->rank; ++axis)
    is_equal = port->shape.dims[axis] < 0 || port->shape.dims[axis] == dims[axis];
  return is_equal;
}

// Clears |*inout_fit| if the shape is not the signature's but the backend may take it.
static rn_status_t check_input(const rn_predict_t* predict, const rn_backend_t* backend,
                               const rn_serve_port_t* port, int i, bool* inout_fit) {
  const rn_tensor_t* value = &predict->inputs[i].value;
  if (value->dtype != port->dtype)
    return rn_invalid_argument("Expects arg[%d] to be %s but %s is provided", i,
                               rn_dtype_name(port->dtype), rn_dtype_name(value->dtype));
  if (fits(port, value)) return RN_OK;
  *inout_fit = false;
  return backend->takes_any_shape ? RN_OK : shape_error(predict, port, value);
}

// Sets |rows|. Without |joins|, a request whose inputs have no common dimension 0 runs alone.
static rn_status_t count_rows(rn_predict_t* predict, const rn_serve_signature_t* signature,
                              bool joins) {
  predict->rows = -1;
  if (!signature->is_batched || !predict->input_count) return RN_OK;
  int64_t rows = -1;
  for (int i = 0; i < predict->input_count; ++i) {
    const rn_tensor_t* value = &predict->inputs[i].value;
    if (value->dtype == RN_RESOURCE || value->dtype == RN_VARIANT) return RN_OK;
    if (!value->rank) {
      return joins ? rn_invalid_argument(
                         "Batching session Run() input tensors must have at least "
                         "one dimension")
                   : RN_OK;
    }
    if (i && rn_tensor_dim(value, 0) != rows) {
      return joins ? rn_invalid_argument(
                         "Batching session Run() input tensors must have equal "
                         "0th-dimension size")
                   : RN_OK;
    }
    rows = rn_tensor_dim(value, 0);
  }
  predict->rows = rows;
  return RN_OK;
}

static rn_status_t output_error(const rn_predict_t* predict, const rn_serve_signature_t* signature,
                                rn_str_t name) {
  names_t known = {.ports = signature->outputs, .count = signature->output_count};
  rn_strbuf_t text;
  rn_strbuf_init(&text, predict->allocator);
  rn_strbuf_printf(&text,
                   "output tensor alias not found in signature: %.*s Outputs expected to be in "
                   "the set {",
                   RN_STR_ARGS(name));
  print_names(&text, &known, NULL);
  rn_strbuf_append(&text, RN_STR("}."));
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

static rn_status_t name_outputs(rn_predict_t* predict, const rn_serve_signature_t* signature) {
  int count = predict->filter_count ? predict->filter_count : signature->output_count;
  if (predict->filter_count > signature->output_count) {
    // One of them is unknown or comes twice; there is no need to allocate for it.
    for (int i = 0; i < predict->filter_count; ++i)
      if (rn_serve_port(signature->outputs, signature->output_count, predict->filter[i]) < 0)
        return output_error(predict, signature, predict->filter[i]);
    count = signature->output_count + 1;
  }
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(predict->allocator, (size_t)count, &predict->outputs));
  predict->output_count = count;
  for (int i = 0; i < count; ++i) {
    if (!predict->filter_count) {
      predict->outputs[i].name = signature->outputs[i].name;
      continue;
    }
    int port = rn_serve_port(signature->outputs, signature->output_count, predict->filter[i]);
    if (port < 0) return output_error(predict, signature, predict->filter[i]);
    for (int j = 0; j < i; ++j)
      if (rn_str_eq(predict->filter[j], predict->filter[i]))
        return rn_invalid_argument("duplicate output tensor alias: %.*s",
                                   RN_STR_ARGS(predict->filter[i]));
    predict->outputs[i].name = signature->outputs[port].name;
  }
  return RN_OK;
}

rn_status_t rn_predict_validate(rn_predict_t* predict, const rn_backend_t* backend, bool joins) {
  int index = rn_backend_signature(backend, predict->signature);
  if (index < 0) {
    rn_str_t name = predict->signature.size ? predict->signature : RN_STR("serving_default");
    return rn_failed_precondition("Serving signature key \"%.*s\" not found.", RN_STR_ARGS(name));
  }
  const rn_serve_signature_t* signature = &backend->signatures[index];
  predict->signature_index = index;
  if (predict->input_count != signature->input_count) return count_error(predict, signature);
  RN_RETURN_IF_ERROR(sort_inputs(predict, signature));
  bool fit = true;
  for (int i = 0; i < predict->input_count; ++i)
    RN_RETURN_IF_ERROR(check_input(predict, backend, &signature->inputs[i], i, &fit));
  predict->rows = -1;
  if (fit) RN_RETURN_IF_ERROR(count_rows(predict, signature, joins));
  return name_outputs(predict, signature);
}
