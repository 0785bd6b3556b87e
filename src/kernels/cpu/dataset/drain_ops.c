// Ops that consume a dataset: DatasetToTFRecord and InitializeTableFromDataset.
#include "io/record.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/batch.h"
#include "kernels/cpu/dataset/drive.h"
#include "kernels/cpu/lookup/table.h"
#include "kernels/cpu/state/handle.h"
#include "tensor/tstring.h"

// Takes one step of a walk whose elements go to |take|.
static bool drain_step(rn_data_drive_t* drive,
                       rn_status_t (*take)(rn_data_drive_t* drive, rn_tensor_t* row)) {
  if (!rn_data_drive_ask(drive)) return false;
  rn_status_t status = drive->request.status;
  bool is_end = drive->request.is_end;
  if (rn_ok(status) && !is_end) status = take(drive, drive->row);
  if (rn_ok(status) && !is_end) {
    rn_data_row_clear(drive->row, drive->row_count);
    drive->phase = 0;
    return true;
  }
  rn_data_drive_end(drive, status);
  return false;
}

// DatasetToTFRecord.
static rn_status_t text_of(const rn_kernel_ctx_t* ctx, int i, const char* name, rn_str_t* out) {
  const rn_tensor_t* tensor = rn_in(ctx, i);
  if (tensor->rank != 0) return rn_invalid_argument("%s must be a scalar", name);
  *out = rn_tstring_view(RN_DATA(tensor, const rn_tstring_t));
  return RN_OK;
}

static rn_status_t open_writer(rn_kernel_ctx_t* ctx, rn_record_writer_t** out) {
  rn_str_t name, compression;
  rn_sink_options_t options = {.compression = RN_COMPRESSION_NONE};
  RN_RETURN_IF_ERROR(text_of(ctx, 1, "filename", &name));
  RN_RETURN_IF_ERROR(text_of(ctx, 2, "compression_type", &compression));
  // As in stock, an unknown name means no compression.
  if (!rn_record_compression_from_name(compression, &options.compression))
    options.compression = RN_COMPRESSION_NONE;
  char* path = NULL;
  RN_RETURN_IF_ERROR(rn_fs_check_name(name));
  RN_RETURN_IF_ERROR(rn_str_dup(ctx->kernel->allocator, name, &path));
  rn_status_t status = rn_record_writer_open(ctx->step->env, path, &options, out);
  rn_free(ctx->kernel->allocator, path, name.size + 1);
  return status;
}

static rn_status_t write_element(rn_data_drive_t* drive, rn_tensor_t* row) {
  if (row[0].dtype != RN_STRING)
    return rn_invalid_argument(
        "ToTFRecordOp currently only supports DT_STRING dataypes, but got %s",
        rn_dtype_name(row[0].dtype));
  for (int64_t i = 0; i < row[0].count; ++i)
    RN_RETURN_IF_ERROR(rn_record_writer_write(
        drive->own, rn_tstring_view(&RN_DATA(&row[0], const rn_tstring_t)[i])));
  return RN_OK;
}

static bool write_step(rn_data_drive_t* drive) { return drain_step(drive, write_element); }

static rn_status_t write_end(rn_data_drive_t* drive, rn_status_t status) {
  rn_status_t closed = rn_record_writer_close(drive->own);
  return rn_status_join(status, closed);
}

static rn_status_t check_strings(rn_kernel_ctx_t* ctx, rn_dataset_t** out) {
  RN_RETURN_IF_ERROR(rn_dataset_of(rn_in(ctx, 0), out));
  if ((*out)->component_count != 1)
    return rn_invalid_argument(
        "ToTFRecordOp currently only support datasets of 1 single column, but got %d",
        (*out)->component_count);
  if ((*out)->types[0] == RN_STRING) return RN_OK;
  return rn_invalid_argument("ToTFRecordOp currently only supports DT_STRING dataypes, but got %s",
                             rn_dtype_name((*out)->types[0]));
}

static void write_compute(rn_kernel_ctx_t* ctx) {
  rn_dataset_t* dataset = NULL;
  rn_record_writer_t* writer = NULL;
  rn_status_t status = check_strings(ctx, &dataset);
  if (rn_ok(status)) status = open_writer(ctx, &writer);
  if (!rn_ok(status)) {
    rn_done(ctx, status);
    return;
  }
  rn_data_drive_t* drive = rn_data_drive_over(ctx, dataset, 0, write_step);
  if (!drive) {
    rn_status_free(rn_record_writer_close(writer));
    return;
  }
  drive->own = writer;
  drive->end = write_end;
  rn_data_drive_go(drive);
}

// InitializeTableFromDataset: collects all keys and values, then fills the table.
typedef struct filling_t {
  rn_lookup_table_t* table;  // Retained
  rn_data_batch_t entries;
} filling_t;

static rn_status_t take_entry(rn_data_drive_t* drive, rn_tensor_t* row) {
  filling_t* filling = drive->own;
  if (row[0].rank != 0 || row[1].rank != 0)
    return rn_invalid_argument("Keys and values must be scalars, got shapes %s and %s",
                               rn_text_of(&row[0]).text, rn_text_of(&row[1]).text);
  return rn_data_batch_add(&filling->entries, row);
}

static bool fill_step(rn_data_drive_t* drive) { return drain_step(drive, take_entry); }

static rn_status_t fill_end(rn_data_drive_t* drive, rn_status_t status) {
  filling_t* filling = drive->own;
  rn_tensor_t parts[2] = {{0}};
  bool is_empty = filling->entries.count == 0;
  if (rn_ok(status) && !is_empty) status = rn_data_batch_take(&filling->entries, parts);
  if (rn_ok(status) && !is_empty)
    status = rn_lookup_table_import(filling->table, &parts[0], &parts[1]);
  rn_data_row_clear(parts, 2);
  rn_data_batch_clear(&filling->entries);
  rn_object_release(&rn_lookup_table_resource(filling->table)->object);
  RN_FREE(drive->ctx->kernel->allocator, filling);
  return status;
}

static rn_status_t check_entries(const rn_dataset_t* dataset, const rn_lookup_table_t* table) {
  if (dataset->component_count != 2)
    return rn_invalid_argument("Dataset should have two output types only");
  if (dataset->types[0] != rn_lookup_table_key(table))
    return rn_invalid_argument("Key dtype expected: %s but obtained: %s from the dataset",
                               rn_dtype_name(rn_lookup_table_key(table)),
                               rn_dtype_name(dataset->types[0]));
  if (dataset->types[1] != rn_lookup_table_value(table))
    return rn_invalid_argument("Value dtype expected: %s but obtained: %s from the dataset",
                               rn_dtype_name(rn_lookup_table_value(table)),
                               rn_dtype_name(dataset->types[1]));
  if (!rn_lookup_table_is_fixed(table))
    return rn_invalid_argument("Table is not initializable from a dataset");
  return RN_OK;
}

static void fill_compute(rn_kernel_ctx_t* ctx) {
  rn_dataset_t* dataset = NULL;
  filling_t* filling = NULL;
  rn_lookup_table_t* table = NULL;
  rn_status_t status = rn_dataset_of(rn_in(ctx, 1), &dataset);
  if (rn_ok(status))
    status = rn_handle_input(ctx, 0, RN_LOOKUP_TABLE_TYPE, (rn_resource_t**)&table);
  if (rn_ok(status)) status = check_entries(dataset, table);
  if (rn_ok(status)) status = RN_NEW(ctx->kernel->allocator, &filling);
  rn_data_drive_t* drive = NULL;
  if (rn_ok(status))
    drive = rn_data_drive_over(ctx, dataset, 0, fill_step);
  else
    rn_done(ctx, status);
  if (!drive) {
    if (table) rn_object_release(&rn_lookup_table_resource(table)->object);
    if (filling) RN_FREE(ctx->kernel->allocator, filling);
    return;
  }
  filling->table = table;
  drive->own = filling;
  drive->end = fill_end;
  status = rn_data_batch_init(&filling->entries, drive->iterator, 2, INT64_MAX);
  if (rn_ok(status))
    rn_data_drive_go(drive);
  else
    rn_data_drive_end(drive, status);
}

static const rn_kernel_def_t rows[] = {
    {.op = "DatasetToTFRecord",
     .device = "CPU",
     .flags = RN_KERNEL_KEEPS_INPUTS | RN_KERNEL_EXPENSIVE,
     .compute_async = write_compute},
    {.op = "InitializeTableFromDataset",
     .device = "CPU",
     .flags = RN_KERNEL_KEEPS_INPUTS | RN_KERNEL_EXPENSIVE,
     .compute_async = fill_compute},
};
RN_KERNEL_FAMILY(cpu_data_drain, rows);
