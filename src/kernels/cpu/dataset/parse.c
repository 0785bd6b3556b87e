// ParseExampleDataset: parses batches of Example messages with the kernel of ParseExampleV2. The
// features follow each other in the order of their keys: dense ones as they are, sparse ones as
// three variants (indices, values, shape), ragged ones as one.
#include <stdlib.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/data.h"
#include "kernels/cpu/list/tensor_variant.h"
#include "kernels/cpu/list/tensors_variant.h"
#include "tensor/tstring.h"

enum { SPARSE, DENSE, RAGGED, FORMS };

// One component of an element: the |index|-th feature of its form.
typedef struct parse_slot_t {
  rn_str_t key;
  int form;
  int32_t index;
} parse_slot_t;

typedef struct parse_t {
  rn_dataset_t base;
  rn_dataset_t* input;
  rn_arena_t arena;      // holds what follows
  int32_t count[FORMS];  // features by form
  parse_slot_t* slots;   // by key
  rn_tensor_t fixed[4];  // names (empty), and the keys by form
  const rn_tensor_t** in;
  int32_t out_count;
  rn_kernel_t* kernel;  // Owned
} parse_t;

typedef struct parse_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t source;
  rn_tensor_t* row;
  const rn_tensor_t** in;
  rn_tensor_t* out;
} parse_iterator_t;

static const char* const key_attrs[FORMS] = {"sparse_keys", "dense_keys", "ragged_keys"};

static int compare_slots(const void* a, const void* b) {
  return rn_str_compare(((const parse_slot_t*)a)->key, ((const parse_slot_t*)b)->key);
}

static rn_status_t open_keys(parse_t* parse) {
  const rn_dataset_t* dataset = &parse->base;
  int32_t total = 0, at = 0;
  for (int form = 0; form < FORMS; ++form) {
    const rn_attr_value_t* keys = rn_data_attr(dataset, key_attrs[form]);
    parse->count[form] = keys ? keys->count : 0;  // the oldest op has no ragged ones
    total += parse->count[form];
  }
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&parse->arena, (size_t)total, &parse->slots));
  const int64_t none = 0;
  rn_allocator_t memory = dataset->node->memory;
  RN_RETURN_IF_ERROR(rn_tensor_create(memory, RN_STRING, (rn_shape_t){1, &none}, &parse->fixed[0]));
  for (int form = 0; form < FORMS; ++form) {
    const int64_t count = parse->count[form];
    rn_tensor_t* keys = &parse->fixed[1 + form];
    RN_RETURN_IF_ERROR(rn_tensor_create(memory, RN_STRING, (rn_shape_t){1, &count}, keys));
    for (int32_t i = 0; i < count; ++i) {
      rn_str_t key = rn_data_attr(dataset, key_attrs[form])->list_s[i];
      if (!rn_tstring_assign(&RN_DATA(keys, rn_tstring_t)[i], key.data, key.size))
        return rn_out_of_memory();
      parse->slots[at++] = (parse_slot_t){key, form, i};
    }
  }
  qsort(parse->slots, (size_t)total, sizeof *parse->slots, compare_slots);
  if (total == dataset->component_count) return RN_OK;
  return rn_invalid_argument("There are %d features, but %d components", total,
                             dataset->component_count);
}

// The type of the attribute |name|'s element |i|.
static rn_dtype_t type_at(const parse_t* parse, const char* name, int32_t i) {
  return rn_data_attr(&parse->base, name)->list_type[i];
}

static rn_status_t check_list(const parse_t* parse, int form, const char* name) {
  const rn_attr_value_t* types = rn_data_attr(&parse->base, name);
  int32_t count = types ? types->count : 0;
  if (count == parse->count[form]) return RN_OK;
  return rn_invalid_argument("Expected len(%s) == len(%s) but got: %d vs. %d", name,
                             key_attrs[form], count, parse->count[form]);
}

// The types of the inputs and outputs of the kernel.
static rn_status_t list_types(parse_t* parse, rn_kernel_init_t* init) {
  int32_t sparse = parse->count[SPARSE], dense = parse->count[DENSE], ragged = parse->count[RAGGED],
          at = 0;
  rn_dtype_t *inputs = NULL, *outputs = NULL;
  init->input_count = 5 + dense;
  init->output_count = parse->out_count = 3 * sparse + dense + 2 * ragged;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&parse->arena, (size_t)init->input_count, &inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&parse->arena, (size_t)parse->out_count, &outputs));
  for (int32_t i = 0; i < init->input_count; ++i)
    inputs[i] = i < 5 ? RN_STRING : type_at(parse, "Tdense", i - 5);
  for (int32_t i = 0; i < sparse; ++i) outputs[at++] = RN_INT64;
  for (int32_t i = 0; i < sparse; ++i) outputs[at++] = type_at(parse, "sparse_types", i);
  for (int32_t i = 0; i < sparse; ++i) outputs[at++] = RN_INT64;
  for (int32_t i = 0; i < dense; ++i) outputs[at++] = type_at(parse, "Tdense", i);
  for (int32_t i = 0; i < ragged; ++i) outputs[at++] = type_at(parse, "ragged_value_types", i);
  for (int32_t i = 0; i < ragged; ++i) outputs[at++] = type_at(parse, "ragged_split_types", i);
  init->input_types = inputs;
  init->output_types = outputs;
  return RN_OK;
}

// The attributes of the kernel: ours by the same names, and the number of sparse features.
static rn_status_t list_attrs(parse_t* parse, const rn_op_def_t* op, rn_kernel_init_t* init) {
  rn_attr_value_t* attrs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&parse->arena, (size_t)op->attr_count, &attrs));
  for (int i = 0; i < op->attr_count; ++i) {
    const rn_attr_value_t* own = rn_data_attr(&parse->base, op->attrs[i].name);
    attrs[i] = (rn_attr_value_t){.kind = op->attrs[i].kind, .is_list = op->attrs[i].is_list};
    if (own)
      attrs[i] = *own;
    else if (!attrs[i].is_list)
      attrs[i].i = parse->count[SPARSE];
  }
  init->attrs = attrs;
  return RN_OK;
}

static rn_status_t open_kernel(parse_t* parse) {
  const rn_data_node_t* node = parse->base.node;
  const rn_op_def_t* op = rn_op_find(RN_STR("ParseExampleV2"));
  rn_kernel_init_t init = {.op = op,
                           .node = node->name,
                           .device_name = node->device,
                           .allocator = node->allocator,
                           .device_memory = node->memory,
                           .host_memory = node->memory,
                           .is_host = true,
                           .env = parse->base.host->env};
  if (!op) return rn_unimplemented("There is no op ParseExampleV2");
  RN_RETURN_IF_ERROR(list_types(parse, &init));
  RN_RETURN_IF_ERROR(list_attrs(parse, op, &init));
  const rn_kernel_def_t* def = rn_kernel_find(op, init.attrs, NULL, "CPU");
  if (!def || !def->compute) return rn_unimplemented("ParseExampleV2 has no kernel");
  return rn_kernel_create(def, &init, &parse->kernel);
}

static rn_status_t open_inputs(parse_t* parse) {
  int32_t defaults = 0;
  const rn_tensor_t* values = rn_data_input(&parse->base, "dense_defaults", &defaults);
  if (defaults != parse->count[DENSE])
    return rn_invalid_argument("Expected len(dense_defaults) == len(dense_keys) but got: %d vs. %d",
                               defaults, parse->count[DENSE]);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&parse->arena, (size_t)(5 + defaults), &parse->in));
  for (int i = 0; i < 4; ++i) parse->in[1 + i] = &parse->fixed[i];
  for (int32_t i = 0; i < defaults; ++i) parse->in[5 + i] = &values[i];
  return RN_OK;
}

static rn_status_t parse_open(rn_dataset_t* dataset) {
  parse_t* parse = (parse_t*)dataset;
  int64_t calls = 0;
  rn_arena_init(&parse->arena, dataset->node->allocator);
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &parse->input));
  if (parse->input->component_count != 1 || parse->input->types[0] != RN_STRING)
    return rn_invalid_argument("The input of %s must be a dataset of strings",
                               dataset->node->op->name);
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "num_parallel_calls", &calls));
  if (calls <= 0 && calls != RN_DATA_AUTOTUNE)
    return rn_invalid_argument("num_parallel_calls must be greater than zero.");
  RN_RETURN_IF_ERROR(open_keys(parse));
  RN_RETURN_IF_ERROR(open_inputs(parse));
  RN_RETURN_IF_ERROR(check_list(parse, SPARSE, "sparse_types"));
  RN_RETURN_IF_ERROR(check_list(parse, DENSE, "dense_shapes"));
  RN_RETURN_IF_ERROR(check_list(parse, RAGGED, "ragged_value_types"));
  RN_RETURN_IF_ERROR(check_list(parse, RAGGED, "ragged_split_types"));
  return open_kernel(parse);
}

static void parse_close(rn_dataset_t* dataset) {
  parse_t* parse = (parse_t*)dataset;
  if (!parse->arena.allocator.fn) return;
  rn_kernel_destroy(parse->kernel);
  rn_data_row_clear(parse->fixed, 4);
  rn_arena_clear(&parse->arena);
}

static int64_t parse_cardinality(const rn_dataset_t* dataset) {
  return rn_dataset_cardinality(((const parse_t*)dataset)->input);
}

static rn_status_t parse_start(rn_data_iterator_t* iterator) {
  parse_iterator_t* own = (parse_iterator_t*)iterator;
  const parse_t* parse = (const parse_t*)iterator->dataset;
  size_t inputs = 5 + (size_t)parse->count[DENSE];
  RN_RETURN_IF_ERROR(rn_data_row(iterator, 1, &own->row));
  RN_RETURN_IF_ERROR(rn_data_row(iterator, parse->out_count, &own->out));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&iterator->arena, inputs, &own->in));
  memcpy(own->in, parse->in, inputs * sizeof *own->in);
  own->in[0] = own->row;
  return rn_data_source_start(&own->source, iterator, parse->input);
}

static void parse_stop(rn_data_iterator_t* iterator) {
  parse_iterator_t* own = (parse_iterator_t*)iterator;
  rn_data_source_stop(&own->source);
  rn_data_row_clear(own->row, 1);
}

// The three parts of a sparse tensor as variants.
static rn_status_t give_sparse(const parse_t* parse, rn_tensor_t* made, int32_t i,
                               rn_tensor_t* out) {
  const int64_t three = 3;
  const rn_data_node_t* node = parse->base.node;
  RN_RETURN_IF_ERROR(rn_tensor_create(node->memory, RN_VARIANT, (rn_shape_t){1, &three}, out));
  for (int p = 0; p < 3; ++p)
    RN_RETURN_IF_ERROR(rn_tensor_variant_create(
        node->allocator, &made[p * parse->count[SPARSE] + i], &RN_DATA(out, rn_object_t*)[p]));
  return RN_OK;
}

static rn_status_t give_ragged(const parse_t* parse, rn_tensor_t* made, int32_t i,
                               rn_tensor_t* out) {
  rn_tensors_variant_t* ragged = NULL;
  rn_tensor_t* values = made + 3 * parse->count[SPARSE] + parse->count[DENSE] + i;
  RN_RETURN_IF_ERROR(rn_tensors_variant_create(parse->base.node->allocator, RN_TENSORS_RAGGED,
                                               RN_STR(""), 2, &ragged));
  rn_data_row_move(values + parse->count[RAGGED], &ragged->values[0], 1);
  rn_data_row_move(values, &ragged->values[1], 1);
  return rn_data_variant(parse->base.node->memory, &ragged->object, out);
}

static rn_status_t give(parse_iterator_t* own, rn_tensor_t* out) {
  const parse_t* parse = (const parse_t*)own->base.dataset;
  for (int32_t c = 0; c < parse->base.component_count; ++c) {
    const parse_slot_t* slot = &parse->slots[c];
    rn_status_t status = RN_OK;
    if (slot->form == SPARSE)
      status = give_sparse(parse, own->out, slot->index, &out[c]);
    else if (slot->form == RAGGED)
      status = give_ragged(parse, own->out, slot->index, &out[c]);
    else
      rn_data_row_move(own->out + 3 * parse->count[SPARSE] + slot->index, &out[c], 1);
    RN_RETURN_IF_ERROR(status);
  }
  return RN_OK;
}

// A single message is a batch of one.
static rn_status_t as_batch(rn_tensor_t* row) {
  const int64_t one = 1;
  if (row->rank > 1)
    return rn_invalid_argument("Expected serialized to be a scalar or vector, got shape: %s",
                               rn_text_of(row).text);
  if (row->rank == 1) return RN_OK;
  rn_tensor_t batch = {0};
  RN_RETURN_IF_ERROR(rn_tensor_reshape(row, RN_STRING, (rn_shape_t){1, &one}, &batch));
  rn_tensor_clear(row);
  *row = batch;
  return RN_OK;
}

static rn_status_t parse_row(parse_iterator_t* own) {
  const parse_t* parse = (const parse_t*)own->base.dataset;
  RN_RETURN_IF_ERROR(as_batch(own->row));
  rn_kernel_ctx_t ctx = {.kernel = parse->kernel,
                         .state = parse->kernel->state,
                         .in = (rn_tensor_t* const*)own->in,
                         .out = own->out,
                         .step = own->base.asked->step};
  rn_status_t status = parse->kernel->def->compute(&ctx);
  if (rn_ok(status)) status = give(own, own->base.asked->out);
  if (!rn_ok(status)) rn_data_row_clear(own->base.asked->out, parse->base.component_count);
  rn_data_row_clear(own->out, parse->out_count);
  rn_data_row_clear(own->row, 1);
  return status;
}

static bool parse_next(rn_data_iterator_t* iterator) {
  parse_iterator_t* own = (parse_iterator_t*)iterator;
  if (iterator->phase++ == 0 && !rn_data_ask(&own->source, own->row)) return false;
  if (own->source.request.is_end) return rn_data_end(iterator);
  rn_status_t status = own->source.request.status;
  return rn_data_finish(iterator, rn_ok(status) ? parse_row(own) : status);
}

static rn_status_t parse_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  return rn_data_put_iterator(writer, ((parse_iterator_t*)iterator)->source.iterator);
}

static rn_status_t parse_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  return rn_data_restore_source(reader, &((parse_iterator_t*)iterator)->source, iterator,
                                ((const parse_t*)iterator->dataset)->input);
}

const rn_data_kind_t rn_data_kind_parse = {.dataset_size = sizeof(parse_t),
                                           .iterator_size = sizeof(parse_iterator_t),
                                           .open = parse_open,
                                           .close = parse_close,
                                           .cardinality = parse_cardinality,
                                           .start = parse_start,
                                           .stop = parse_stop,
                                           .next = parse_next,
                                           .save = parse_save,
                                           .restore = parse_restore};
