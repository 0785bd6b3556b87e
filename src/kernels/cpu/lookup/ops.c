// The ops on lookup tables; make.c makes them.
#include "kernels/cpu/array.h"
#include "kernels/cpu/lookup/table.h"
#include "kernels/cpu/state/handle.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

// The table, which the caller releases; inputs 1 and 2 must have its key and value types. The error
// lists both signatures.
static rn_status_t table_of(const rn_kernel_ctx_t* ctx, rn_lookup_table_t** out) {
  RN_RETURN_IF_ERROR(rn_handle_input(ctx, 0, RN_LOOKUP_TABLE_TYPE, (rn_resource_t**)out));
  const rn_kernel_t* kernel = ctx->kernel;
  rn_dtype_t key = rn_lookup_table_key(*out), value = rn_lookup_table_value(*out);
  bool has_keys = kernel->input_count > 1, has_values = kernel->input_count > 2;
  bool gives = kernel->output_count > 0 && has_values;
  if ((!has_keys || kernel->input_types[1] == key) &&
      (!has_values || kernel->input_types[2] == value))
    return RN_OK;
  rn_strbuf_t text;
  rn_strbuf_init(&text, kernel->allocator);
  for (int expected = 0; expected < 2; ++expected) {
    rn_strbuf_printf(&text, "%s%s, %s", expected ? " expected: " : "Signature mismatch, have: ",
                     rn_dtype_name(kernel->input_types[0]),
                     rn_dtype_name(expected ? key : kernel->input_types[1]));
    rn_dtype_t second = expected || !has_values ? value : kernel->input_types[2];
    if (has_values) rn_strbuf_printf(&text, ", %s", rn_dtype_name(second));
    rn_strbuf_printf(&text, "->%s", gives ? rn_dtype_name(second) : "");
  }
  rn_object_release(&rn_lookup_table_resource(*out)->object);
  *out = NULL;
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

static rn_status_t done(rn_lookup_table_t* table, rn_status_t status) {
  rn_object_release(&rn_lookup_table_resource(table)->object);
  return status;
}

// The shape of the values for |keys|, in |dims|.
static rn_status_t values_shape(const rn_lookup_table_t* table, const rn_tensor_t* keys,
                                int64_t* dims, rn_shape_t* out) {
  rn_shape_t one = rn_lookup_table_key_shape(table), shape = rn_lookup_table_shape(table);
  int rank = 0, keys_rank = keys->rank - one.rank;
  for (int i = 0; i < one.rank; ++i)
    if (keys_rank < 0 || rn_tensor_dim(keys, keys_rank + i) != one.dims[i])
      return rn_invalid_argument("Input key shape %s must end with the table's key shape %s",
                                 rn_text_of(keys).text, rn_shape_text(one).text);
  for (int i = 0; i < keys_rank; ++i) dims[rank++] = rn_tensor_dim(keys, i);
  for (int i = 0; i < shape.rank; ++i) dims[rank++] = shape.dims[i];
  *out = (rn_shape_t){rank, dims};
  return RN_OK;
}

static rn_status_t find_in(rn_kernel_ctx_t* ctx, rn_lookup_table_t* table) {
  const rn_tensor_t *keys = rn_in(ctx, 1), *fallback = rn_in(ctx, 2);
  int64_t dims[2 * RN_MAX_RANK];
  rn_shape_t one = rn_lookup_table_shape(table), given = rn_tensor_shape(fallback), all;
  RN_RETURN_IF_ERROR(values_shape(table, keys, dims, &all));
  if (!rn_shape_eq(given, one) && !rn_shape_eq(given, all))
    return rn_invalid_argument("Expected shape %s or %s for default value, got %s",
                               rn_shape_text(one).text, rn_shape_text(all).text,
                               rn_text_of(fallback).text);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, all, &out));
  return rn_lookup_table_find(table, keys, fallback, out);
}

static rn_status_t find(rn_kernel_ctx_t* ctx) {
  rn_lookup_table_t* table = NULL;
  RN_RETURN_IF_ERROR(table_of(ctx, &table));
  return done(table, find_in(ctx, table));
}

static rn_status_t check_counts(const rn_kernel_ctx_t* ctx, const rn_lookup_table_t* table) {
  const rn_tensor_t *keys = rn_in(ctx, 1), *values = rn_in(ctx, 2);
  int64_t dims[2 * RN_MAX_RANK];
  rn_shape_t wanted;
  RN_RETURN_IF_ERROR(values_shape(table, keys, dims, &wanted));
  if (rn_shape_eq(wanted, rn_tensor_shape(values))) return RN_OK;
  return rn_invalid_argument("Expected shape %s for value, got %s", rn_shape_text(wanted).text,
                             rn_text_of(values).text);
}

static rn_status_t insert(rn_kernel_ctx_t* ctx) {
  rn_lookup_table_t* table = NULL;
  RN_RETURN_IF_ERROR(table_of(ctx, &table));
  rn_status_t status = RN_OK;
  if (rn_lookup_table_is_fixed(table))
    status = rn_unimplemented("Insert not supported by InitializableLookupTable implementations");
  if (rn_ok(status)) status = check_counts(ctx, table);
  if (rn_ok(status)) status = rn_lookup_table_insert(table, rn_in(ctx, 1), rn_in(ctx, 2));
  return done(table, status);
}

static rn_status_t take_out(rn_kernel_ctx_t* ctx) {
  rn_lookup_table_t* table = NULL;
  RN_RETURN_IF_ERROR(table_of(ctx, &table));
  int64_t dims[2 * RN_MAX_RANK];
  rn_shape_t unused;
  rn_status_t status = RN_OK;
  if (rn_lookup_table_is_fixed(table))
    status = rn_unimplemented("Remove not supported by InitializableLookupTable implementations");
  if (rn_ok(status)) status = values_shape(table, rn_in(ctx, 1), dims, &unused);
  if (rn_ok(status)) status = rn_lookup_table_remove(table, rn_in(ctx, 1));
  return done(table, status);
}

static rn_status_t check_vectors(const rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *keys = rn_in(ctx, 1), *values = rn_in(ctx, 2);
  if (keys->rank != 1)
    return rn_invalid_argument("Keys must be a vector, but received shape%s",
                               rn_text_of(keys).text);
  if (values->rank != 1)
    return rn_invalid_argument("Values must be a vector, but received shape%s",
                               rn_text_of(values).text);
  if (keys->count != values->count)
    return rn_invalid_argument("Keys and values must have the same size %lld vs %lld",
                               (long long)keys->count, (long long)values->count);
  return RN_OK;
}

// Checks the entries for a fixed table.
static rn_status_t check_entries(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(check_vectors(ctx));
  if (rn_in(ctx, 1)->count > 0) return RN_OK;
  return rn_invalid_argument("keys and values cannot be empty tensors.");
}

static rn_status_t initialize(rn_kernel_ctx_t* ctx) {
  rn_lookup_table_t* table = NULL;
  RN_RETURN_IF_ERROR(table_of(ctx, &table));
  rn_status_t status = RN_OK;
  if (!rn_lookup_table_is_fixed(table))
    status = rn_invalid_argument("The table of node '%.*s' is not initializable",
                                 RN_STR_ARGS(ctx->kernel->node));
  if (rn_ok(status)) status = check_entries(ctx);
  if (rn_ok(status)) status = rn_lookup_table_import(table, rn_in(ctx, 1), rn_in(ctx, 2));
  return done(table, status);
}

// Also fills fixed tables for the first time; for a dense table imports the buckets.
static rn_status_t import(rn_kernel_ctx_t* ctx) {
  rn_lookup_table_t* table = NULL;
  RN_RETURN_IF_ERROR(table_of(ctx, &table));
  rn_status_t status = RN_OK;
  if (rn_lookup_table_is_fixed(table))
    status = check_entries(ctx);
  else if (!rn_lookup_table_is_dense(table))
    status = check_counts(ctx, table);
  if (rn_ok(status)) status = rn_lookup_table_import(table, rn_in(ctx, 1), rn_in(ctx, 2));
  return done(table, status);
}

static rn_status_t size(rn_kernel_ctx_t* ctx) {
  rn_lookup_table_t* table = NULL;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(table_of(ctx, &table));
  rn_status_t status = rn_output(ctx, 0, RN_SHAPE_SCALAR, &out);
  if (rn_ok(status)) *RN_DATA(out, int64_t) = rn_lookup_table_size(table);
  return done(table, status);
}

static rn_status_t export(rn_kernel_ctx_t* ctx) {
  rn_lookup_table_t* table = NULL;
  RN_RETURN_IF_ERROR(table_of(ctx, &table));
  rn_tensor_t keys = {0}, values = {0};
  rn_status_t status = RN_OK;
  if (rn_lookup_table_key(table) != ctx->kernel->output_types[0] ||
      rn_lookup_table_value(table) != ctx->kernel->output_types[1])
    status = rn_invalid_argument("The table has keys of %s and values of %s",
                                 rn_dtype_name(rn_lookup_table_key(table)),
                                 rn_dtype_name(rn_lookup_table_value(table)));
  if (rn_ok(status))
    status = rn_lookup_table_export(table, ctx->kernel->device_memory, &keys, &values);
  if (rn_ok(status)) {
    rn_set_output(ctx, 0, &keys);
    rn_set_output(ctx, 1, &values);
  }
  rn_tensor_clear(&keys);
  rn_tensor_clear(&values);
  return done(table, status);
}

#define BOTH(name, flags_, function)                                       \
  {.op = name, .device = "CPU", .flags = flags_, .compute = function}, {   \
    .op = name "V2", .device = "CPU", .flags = flags_, .compute = function \
  }

static const rn_kernel_def_t rows[] = {
    BOTH("LookupTableFind", 0, find),
    BOTH("LookupTableInsert", 0, insert),
    BOTH("LookupTableImport", 0, import),
    BOTH("LookupTableSize", 0, size),
    BOTH("LookupTableExport", RN_KERNEL_OWN_OUTPUTS, export),
    BOTH("InitializeTable", 0, initialize),
    {.op = "LookupTableRemoveV2", .device = "CPU", .compute = take_out},
};
RN_KERNEL_FAMILY(cpu_lookup, rows);
