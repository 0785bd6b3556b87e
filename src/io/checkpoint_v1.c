// Reads checkpoints in the V1 format. See checkpoint_v1.h.
#include "io/checkpoint_v1.h"

#include <stdlib.h>

#include "base/map.h"
#include "io/table.h"
#include "proto/saved_tensor_slice.pb.h"
#include "tensor/tensor_proto.h"
#include "wire/decode.h"

typedef struct stored_slice_t {
  rn_slice_t slice;
  size_t file;
} stored_slice_t;

typedef struct stored_tensor_t {
  rn_v1_tensor_t tensor;  // first
  RN_VEC(stored_slice_t) slices;
} stored_tensor_t;

struct rn_v1_reader_t {
  const rn_env_t* env;  // Borrowed
  rn_arena_t arena;
  RN_VEC(rn_table_t*) tables;  // Owned
  rn_map_t names;              // to the tensors
  RN_VEC(stored_tensor_t*) tensors;
  uint64_t size;  // of all files
};

static rn_status_t damaged(const rn_table_t* table, rn_str_t name, const char* what) {
  return rn_data_loss("%s: tensor %.*s %s", rn_table_path(table), RN_STR_ARGS(name), what);
}

static rn_status_t new_tensor(rn_v1_reader_t* reader, const rn_table_t* table,
                              const rn_pb_SavedSliceMeta_t* meta, stored_tensor_t** out) {
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&reader->arena, out));
  rn_v1_tensor_t* tensor = &(*out)->tensor;
  tensor->dtype = meta->type;
  tensor->shape = RN_SHAPE_SCALAR;
  RN_RETURN_IF_ERROR(rn_arena_str(&reader->arena, meta->name, &tensor->name));
  rn_status_t status = RN_OK;
  if (meta->shape) status = rn_shape_from_proto(meta->shape, &reader->arena, &tensor->shape);
  bool is_good = rn_ok(status) && rn_shape_is_full(tensor->shape) &&
                 rn_dtype_is_valid(tensor->dtype) && tensor->dtype < RN_REF_OFFSET;
  rn_status_free(status);
  if (!is_good) return damaged(table, meta->name, "has an invalid type or shape");
  RN_RETURN_IF_ERROR(rn_vec_push(&reader->tensors, reader->env->allocator, *out));
  return rn_map_put(&reader->names, tensor->name, *out);
}

static rn_status_t add_meta(rn_v1_reader_t* reader, size_t file,
                            const rn_pb_SavedSliceMeta_t* meta) {
  const rn_table_t* table = reader->tables.items[file];
  stored_tensor_t* tensor = rn_map_get(&reader->names, meta->name);
  if (!tensor) RN_RETURN_IF_ERROR(new_tensor(reader, table, meta, &tensor));
  rn_shape_t shape = RN_SHAPE_SCALAR, unused;
  if (meta->shape) RN_RETURN_IF_ERROR(rn_shape_from_proto(meta->shape, &reader->arena, &shape));
  if (tensor->tensor.dtype != meta->type || !rn_shape_eq(shape, tensor->tensor.shape))
    return damaged(table, meta->name, "has two different types or shapes");
  for (uint32_t i = 0; i < meta->slice.count; ++i) {
    stored_slice_t stored = {.file = file};
    rn_status_t status = rn_slice_from_proto(&meta->slice.items[i], &reader->arena, &stored.slice);
    if (rn_ok(status)) status = rn_slice_shape(stored.slice, shape, &reader->arena, &unused);
    if (!rn_ok(status)) return rn_status_annotate(status, "; in %s", rn_table_path(table));
    RN_RETURN_IF_ERROR(rn_vec_push(&tensor->slices, reader->env->allocator, stored));
  }
  return RN_OK;
}

static rn_status_t read_meta(rn_v1_reader_t* reader, size_t file) {
  const rn_table_t* table = reader->tables.items[file];
  rn_table_iter_t iter;
  rn_table_iter_init(&iter, table);
  rn_arena_t scratch;
  rn_arena_init(&scratch, reader->env->allocator);
  rn_pb_SavedTensorSlices_t* slices = NULL;
  rn_status_t status = rn_table_iter_seek(&iter, RN_STR(""));
  if (rn_ok(status) && (!iter.is_valid || iter.key.size))
    status = rn_data_loss("Failed to find the saved tensor slices at the checkpoint file %s",
                          rn_table_path(table));
  if (rn_ok(status)) {
    status = RN_PB_DECODE(SavedTensorSlices, iter.value, NULL, &scratch, &slices);
    if (!rn_ok(status)) status = rn_status_annotate(status, "; in %s", rn_table_path(table));
  }
  const rn_pb_SavedTensorSliceMeta_t* meta = rn_ok(status) ? slices->meta : NULL;
  for (uint32_t i = 0; meta && rn_ok(status) && i < meta->tensor.count; ++i)
    status = add_meta(reader, file, &meta->tensor.items[i]);
  rn_arena_clear(&scratch);
  rn_table_iter_clear(&iter);
  return status;
}

static rn_status_t open_file(rn_v1_reader_t* reader, const char* path) {
  rn_table_t* table = NULL;
  RN_RETURN_IF_ERROR(rn_table_open(reader->env, path, &table));
  rn_status_t status = rn_vec_push(&reader->tables, reader->env->allocator, table);
  if (!rn_ok(status)) {
    rn_table_close(table);
    return status;
  }
  reader->size += rn_table_file_size(table);
  return read_meta(reader, reader->tables.count - 1);
}

static int compare_tensors(const void* a, const void* b) {
  stored_tensor_t* const* x = a;
  stored_tensor_t* const* y = b;
  return rn_str_compare((*x)->tensor.name, (*y)->tensor.name);
}

static rn_status_t open_files(rn_v1_reader_t* reader, const char* pattern) {
  rn_names_t files;
  rn_names_init(&files, reader->env->allocator);
  rn_status_t status = rn_fs_glob(reader->env, pattern, &files);
  if (rn_ok(status) && files.list.count == 0)
    status = rn_not_found(
        "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for %s",
        pattern);
  for (size_t i = 0; rn_ok(status) && i < files.list.count; ++i) {
    const char* path = files.list.items[i].data;
    status = open_file(reader, path);
    if (rn_status_code(status) == RN_CODE_DATA_LOSS) {
      rn_status_t told = rn_data_loss("Unable to open table file %s: DATA_LOSS: %s", path,
                                      rn_status_message(status));
      rn_status_free(status);
      status = told;
    }
  }
  rn_names_clear(&files);
  if (rn_ok(status) && reader->tensors.count)
    qsort(reader->tensors.items, reader->tensors.count, sizeof *reader->tensors.items,
          compare_tensors);
  return status;
}

rn_status_t rn_v1_reader_open(const rn_env_t* env, const char* pattern, rn_v1_reader_t** out) {
  *out = NULL;
  rn_v1_reader_t* reader = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(env->allocator, &reader));
  reader->env = env;
  rn_arena_init(&reader->arena, env->allocator);
  rn_map_init(&reader->names, env->allocator);
  rn_status_t status = open_files(reader, pattern);
  if (!rn_ok(status)) {
    rn_v1_reader_close(reader);
    return status;
  }
  *out = reader;
  return RN_OK;
}

void rn_v1_reader_close(rn_v1_reader_t* reader) {
  if (!reader) return;
  rn_allocator_t allocator = reader->env->allocator;
  for (size_t i = 0; i < reader->tables.count; ++i) rn_table_close(reader->tables.items[i]);
  for (size_t i = 0; i < reader->tensors.count; ++i)
    rn_vec_free(&reader->tensors.items[i]->slices, allocator);
  rn_vec_free(&reader->tables, allocator);
  rn_vec_free(&reader->tensors, allocator);
  rn_map_clear(&reader->names);
  rn_arena_clear(&reader->arena);
  RN_FREE(allocator, reader);
}

size_t rn_v1_count(const rn_v1_reader_t* reader) { return reader->tensors.count; }
const rn_v1_tensor_t* rn_v1_tensor(const rn_v1_reader_t* reader, size_t i) {
  return &reader->tensors.items[i]->tensor;
}
const rn_v1_tensor_t* rn_v1_find(const rn_v1_reader_t* reader, rn_str_t name) {
  return rn_map_get(&reader->names, name);
}

// The number of values in the list of |dtype|.
static uint64_t value_count(const rn_pb_TensorProto_t* proto, rn_dtype_t dtype) {
  switch (dtype) {
    case RN_FLOAT:
      return proto->float_val.count;
    case RN_DOUBLE:
      return proto->double_val.count;
    case RN_STRING:
      return proto->string_val.count;
    case RN_INT64:
      return proto->int64_val.count;
    case RN_BOOL:
      return proto->bool_val.count;
    case RN_COMPLEX64:
      return proto->scomplex_val.count / 2;
    case RN_COMPLEX128:
      return proto->dcomplex_val.count / 2;
    case RN_HALF:
      return proto->half_val.count;
    default:
      return proto->int_val.count;
  }
}

static rn_status_t take_slice(const rn_v1_reader_t* reader, const stored_tensor_t* tensor,
                              const stored_slice_t* stored, rn_str_t bytes, rn_arena_t* arena,
                              rn_slice_t wanted, rn_tensor_t* out) {
  const rn_table_t* table = reader->tables.items[stored->file];
  rn_pb_SavedTensorSlices_t* slices = NULL;
  rn_status_t status = RN_PB_DECODE(SavedTensorSlices, bytes, NULL, arena, &slices);
  if (!rn_ok(status)) return rn_status_annotate(status, "; in %s", rn_table_path(table));
  rn_shape_t shape;
  RN_RETURN_IF_ERROR(rn_slice_shape(stored->slice, tensor->tensor.shape, arena, &shape));
  int64_t count = 0;
  rn_pb_TensorProto_t* proto = slices->data ? slices->data->data : NULL;
  if (!proto || !rn_shape_count(shape, &count) ||
      value_count(proto, tensor->tensor.dtype) != (uint64_t)count)
    return damaged(table, tensor->tensor.name, "has a slice without its values");
  rn_pb_TensorShapeProto_t shape_proto;
  RN_RETURN_IF_ERROR(rn_shape_to_proto(shape, arena, &shape_proto));
  proto->dtype = tensor->tensor.dtype;
  proto->tensor_shape = &shape_proto;
  proto->tensor_content = (rn_str_t){0};
  rn_tensor_t part = {0};
  RN_RETURN_IF_ERROR(rn_tensor_from_proto(proto, SIZE_MAX / 2, reader->env->allocator, &part));
  if (!rn_slice_copy(tensor->tensor.shape, stored->slice, &part, wanted, out))
    status = rn_out_of_memory();
  rn_tensor_clear(&part);
  return status;
}

static rn_status_t read_slice(const rn_v1_reader_t* reader, const stored_tensor_t* tensor,
                              const stored_slice_t* stored, rn_slice_t wanted, rn_tensor_t* out) {
  const rn_table_t* table = reader->tables.items[stored->file];
  rn_table_iter_t iter;
  rn_table_iter_init(&iter, table);
  rn_arena_t arena;
  rn_arena_init(&arena, reader->env->allocator);
  rn_strbuf_t key;
  rn_strbuf_init(&key, reader->env->allocator);
  rn_slice_key(&key, tensor->tensor.name, stored->slice);
  rn_status_t status = rn_strbuf_status(&key);
  if (rn_ok(status)) status = rn_table_iter_seek(&iter, rn_strbuf_view(&key));
  if (rn_ok(status) && (!iter.is_valid || !rn_str_eq(iter.key, rn_strbuf_view(&key))))
    status = damaged(table, tensor->tensor.name, "lacks one of its slices");
  if (rn_ok(status)) status = take_slice(reader, tensor, stored, iter.value, &arena, wanted, out);
  rn_strbuf_clear(&key);
  rn_arena_clear(&arena);
  rn_table_iter_clear(&iter);
  return status;
}

// Checks, before memory is allocated, that the slices cover |wanted| and that the files are large
// enough: a value takes at least one byte.
static rn_status_t check_cover(const rn_v1_reader_t* reader, const stored_tensor_t* tensor,
                               rn_slice_t wanted) {
  rn_shape_t shape = tensor->tensor.shape;
  int64_t needed = rn_slice_overlap(wanted, wanted, shape), covered = 0;
  for (size_t i = 0; i < tensor->slices.count; ++i) {
    int64_t shared = rn_slice_overlap(tensor->slices.items[i].slice, wanted, shape);
    if (!rn_add_i64_ok(covered, shared, &covered)) covered = -1;
    if (covered < 0) break;
  }
  if (covered == needed && (uint64_t)needed <= reader->size) return RN_OK;
  rn_strbuf_t text;
  rn_strbuf_init(&text, reader->env->allocator);
  rn_slice_print(&text, wanted);
  rn_status_t status =
      rn_invalid_argument("Does not have sufficient slices for tensor %.*s to restore %.*s in %s",
                          RN_STR_ARGS(tensor->tensor.name), RN_STR_ARGS(rn_strbuf_view(&text)),
                          rn_table_path(reader->tables.items[0]));
  rn_strbuf_clear(&text);
  return status;
}

rn_status_t rn_v1_read(const rn_v1_reader_t* reader, const rn_v1_tensor_t* tensor,
                       const rn_slice_t* slice, rn_allocator_t allocator, rn_tensor_t* out) {
  *out = (rn_tensor_t){0};
  const stored_tensor_t* stored = (const stored_tensor_t*)tensor;
  rn_arena_t arena;
  rn_arena_init(&arena, reader->env->allocator);
  rn_slice_t wanted;
  rn_shape_t shape;
  rn_status_t status = rn_slice_whole(&arena, tensor->shape.rank, &wanted);
  if (rn_ok(status) && slice) wanted = *slice;
  if (rn_ok(status)) status = rn_slice_shape(wanted, tensor->shape, &arena, &shape);
  if (rn_ok(status)) status = check_cover(reader, stored, wanted);
  if (rn_ok(status)) status = rn_tensor_create(allocator, tensor->dtype, shape, out);
  // Overlapping slices may leave elements unset.
  if (rn_ok(status) && stored->slices.count > 1 && rn_dtype_is_plain(tensor->dtype))
    memset(out->data, 0, rn_tensor_bytes(out));
  for (size_t i = 0; rn_ok(status) && i < stored->slices.count; ++i) {
    const stored_slice_t* part = &stored->slices.items[i];
    if (rn_slice_overlap(part->slice, wanted, tensor->shape))
      status = read_slice(reader, stored, part, wanted, out);
  }
  if (!rn_ok(status)) rn_tensor_clear(out);
  rn_arena_clear(&arena);
  return status;
}
