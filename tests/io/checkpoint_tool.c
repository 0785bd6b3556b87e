// Checkpoints from the command line, for the tests with stock TensorFlow and the benchmark.
//
//   copy FROM TO                       reads every tensor and slice, and writes them in file order
//   copy_v1 FROM TO                    converts a V1 checkpoint to V2
//   write_v1 FROM TO                   converts a V2 checkpoint to V1
//   part FROM TO NAME SHAPE_AND_SLICE  writes one slice of a tensor as a checkpoint of its own
//   merge TO PART...                   merges several checkpoints into one
//   digest PREFIX                      prints name, type, shape and checksum of every tensor
//   save PREFIX COUNT BYTES THREADS    writes COUNT tensors of BYTES; prints seconds
//   restore PREFIX THREADS             reads all tensors; prints seconds
//   plain PATH COUNT BYTES             writes as many bytes with write and fsync; prints seconds
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "io/bundle.h"
#include "io/checkpoint_v1.h"
#include "tensor/tstring.h"

static const rn_env_t* env(void) { return rn_env_system(); }

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int compare_offsets(const void* a, const void* b) {
  const rn_bundle_entry_t* x = *(const rn_bundle_entry_t* const*)a;
  const rn_bundle_entry_t* y = *(const rn_bundle_entry_t* const*)b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  if (x->size != y->size) return x->size < y->size ? -1 : 1;
  return rn_str_compare(x->name, y->name);
}

static rn_status_t copy_entry(rn_bundle_reader_t* reader, const rn_bundle_entry_t* entry,
                              rn_bundle_writer_t* writer) {
  rn_allocator_t allocator = env()->allocator;
  rn_tensor_t tensor;
  if (!entry->slice_count) {
    RN_RETURN_IF_ERROR(rn_bundle_read_new(reader, entry, NULL, allocator, &tensor));
    rn_status_t status = rn_bundle_writer_add(writer, entry->name, &tensor);
    rn_tensor_clear(&tensor);
    return status;
  }
  rn_arena_t arena;
  rn_arena_init(&arena, allocator);
  rn_status_t status = RN_OK;
  for (size_t i = 0; rn_ok(status) && i < entry->slice_count; ++i) {
    rn_shape_t shape;
    tensor = (rn_tensor_t){0};
    status = rn_slice_shape(entry->slices[i], entry->shape, &arena, &shape);
    if (rn_ok(status)) status = rn_bundle_check(reader, entry, &entry->slices[i]);
    if (rn_ok(status)) status = rn_tensor_create(allocator, entry->dtype, shape, &tensor);
    if (rn_ok(status)) status = rn_bundle_read(reader, entry, &entry->slices[i], NULL, &tensor);
    if (rn_ok(status))
      status =
          rn_bundle_writer_add_slice(writer, entry->name, entry->shape, entry->slices[i], &tensor);
    rn_tensor_clear(&tensor);
  }
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t copy(char** args) {
  rn_bundle_reader_t* reader = NULL;
  RN_RETURN_IF_ERROR(rn_bundle_reader_open(env(), args[0], &reader));
  size_t count = rn_bundle_count(reader);
  const rn_bundle_entry_t** order = calloc(count + 1, sizeof *order);
  if (!order) return rn_out_of_memory();
  for (size_t i = 0; i < count; ++i) order[i] = rn_bundle_entry(reader, i);
  qsort(order, count, sizeof *order, compare_offsets);
  rn_bundle_writer_t* writer = NULL;
  rn_status_t status = rn_bundle_writer_create(env(), args[1], NULL, &writer);
  for (size_t i = 0; rn_ok(status) && i < count; ++i) status = copy_entry(reader, order[i], writer);
  if (rn_ok(status)) status = rn_bundle_writer_finish(writer, NULL);
  rn_bundle_writer_destroy(writer);
  rn_bundle_reader_close(reader);
  free(order);
  return status;
}

static rn_status_t copy_v1(char** args) {
  rn_v1_reader_t* reader = NULL;
  rn_bundle_writer_t* writer = NULL;
  rn_status_t status = rn_v1_reader_open(env(), args[0], &reader);
  if (rn_ok(status)) status = rn_bundle_writer_create(env(), args[1], NULL, &writer);
  for (size_t i = 0; rn_ok(status) && i < rn_v1_count(reader); ++i) {
    rn_tensor_t tensor = {0};
    const rn_v1_tensor_t* found = rn_v1_tensor(reader, i);
    status = rn_v1_read(reader, found, NULL, env()->allocator, &tensor);
    if (rn_ok(status)) status = rn_bundle_writer_add(writer, found->name, &tensor);
    rn_tensor_clear(&tensor);
  }
  if (rn_ok(status)) status = rn_bundle_writer_finish(writer, NULL);
  rn_bundle_writer_destroy(writer);
  rn_v1_reader_close(reader);
  return status;
}

static rn_status_t write_v1(char** args) {
  rn_bundle_reader_t* reader = NULL;
  rn_v1_writer_t* writer = NULL;
  rn_arena_t arena;
  rn_arena_init(&arena, env()->allocator);
  rn_status_t status = rn_bundle_reader_open(env(), args[0], &reader);
  if (rn_ok(status)) status = rn_v1_writer_create(env(), args[1], &writer);
  for (size_t i = 0; rn_ok(status) && i < rn_bundle_count(reader); ++i) {
    const rn_bundle_entry_t* entry = rn_bundle_entry(reader, i);
    rn_tensor_t tensor = {0};
    rn_slice_t whole;
    status = rn_bundle_read_new(reader, entry, NULL, env()->allocator, &tensor);
    if (rn_ok(status)) status = rn_slice_whole(&arena, entry->shape.rank, &whole);
    if (rn_ok(status)) status = rn_v1_writer_add(writer, entry->name, entry->shape, whole, &tensor);
    rn_tensor_clear(&tensor);
  }
  if (rn_ok(status)) status = rn_v1_writer_finish(writer);
  rn_v1_writer_destroy(writer);
  rn_bundle_reader_close(reader);
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t part(char** args) {
  rn_bundle_reader_t* reader = NULL;
  rn_bundle_writer_t* writer = NULL;
  const rn_bundle_entry_t* entry = NULL;
  rn_arena_t arena;
  rn_arena_init(&arena, env()->allocator);
  rn_shape_t shape, slice_shape;
  rn_slice_t slice;
  rn_tensor_t tensor = {0};
  rn_status_t status = rn_bundle_reader_open(env(), args[0], &reader);
  if (rn_ok(status))
    status = rn_shape_and_slice_parse(rn_str(args[3]), &arena, &shape, &slice, &slice_shape);
  if (rn_ok(status)) status = rn_bundle_lookup(reader, rn_str(args[2]), &entry);
  if (rn_ok(status)) status = rn_bundle_check(reader, entry, &slice);
  if (rn_ok(status))
    status = rn_tensor_create(env()->allocator, entry->dtype, slice_shape, &tensor);
  if (rn_ok(status)) status = rn_bundle_read(reader, entry, &slice, NULL, &tensor);
  if (rn_ok(status)) status = rn_bundle_writer_create(env(), args[1], NULL, &writer);
  if (rn_ok(status))
    status = rn_bundle_writer_add_slice(writer, entry->name, entry->shape, slice, &tensor);
  if (rn_ok(status)) status = rn_bundle_writer_finish(writer, NULL);
  rn_bundle_writer_destroy(writer);
  rn_tensor_clear(&tensor);
  rn_bundle_reader_close(reader);
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t merge(char** args) {
  rn_str_t parts[64];
  size_t count = 0;
  for (; args[1 + count] && count < 64; ++count) parts[count] = rn_str(args[1 + count]);
  return rn_bundle_merge(env(), parts, count, false, args[0]);
}

static uint32_t checksum_of(const rn_tensor_t* tensor) {
  if (tensor->dtype != RN_STRING) return rn_crc32c(0, tensor->data, rn_tensor_bytes(tensor));
  uint32_t checksum = 0;
  for (int64_t i = 0; i < tensor->count; ++i) {
    rn_str_t text = rn_tstring_view(&RN_DATA(tensor, const rn_tstring_t)[i]);
    checksum = rn_crc32c(checksum, &text.size, sizeof text.size);
    checksum = rn_crc32c(checksum, text.data, text.size);
  }
  return checksum;
}

static rn_status_t digest(char** args) {
  rn_bundle_reader_t* reader = NULL;
  RN_RETURN_IF_ERROR(rn_bundle_reader_open(env(), args[0], &reader));
  rn_status_t status = RN_OK;
  for (size_t i = 0; rn_ok(status) && i < rn_bundle_count(reader); ++i) {
    const rn_bundle_entry_t* entry = rn_bundle_entry(reader, i);
    rn_tensor_t tensor = {0};
    status = rn_bundle_read_new(reader, entry, NULL, env()->allocator, &tensor);
    if (!rn_ok(status)) break;
    rn_strbuf_t shape;
    rn_strbuf_init(&shape, env()->allocator);
    rn_shape_print(&shape, entry->shape);
    printf("%s %s %s %08x\n", entry->name.data, rn_dtype_name(entry->dtype), shape.data,
           checksum_of(&tensor));
    rn_strbuf_clear(&shape);
    rn_tensor_clear(&tensor);
  }
  rn_bundle_reader_close(reader);
  return status;
}

// Bytes that do not compress.
static void fill(char* data, size_t size) {
  uint64_t x = 88172645463325252u;
  for (size_t i = 0; i + 8 <= size; i += 8) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    memcpy(data + i, &x, 8);
  }
}

static rn_status_t save(char** args) {
  int64_t count = atoll(args[1]), size = atoll(args[2]) / 4;
  rn_pool_t* pool = NULL;
  RN_RETURN_IF_ERROR(rn_pool_create(env()->allocator, atoi(args[3]), &pool));
  rn_tensor_t tensors[64];
  if (count > 64) return rn_invalid_argument("at most 64 tensors");
  rn_status_t status = RN_OK;
  for (int64_t i = 0; i < count; ++i) {
    RN_RETURN_IF_ERROR(
        rn_tensor_create(env()->allocator, RN_FLOAT, (rn_shape_t){1, &size}, &tensors[i]));
    fill(tensors[i].data, rn_tensor_bytes(&tensors[i]));
  }
  double start = seconds();
  rn_bundle_writer_t* writer = NULL;
  status = rn_bundle_writer_create(env(), args[0], pool, &writer);
  for (int64_t i = 0; rn_ok(status) && i < count; ++i) {
    char name[32];
    snprintf(name, sizeof name, "tensor%02d", (int)i);
    status = rn_bundle_writer_add(writer, rn_str(name), &tensors[i]);
  }
  if (rn_ok(status)) status = rn_bundle_writer_finish(writer, NULL);
  printf("%.6f\n", seconds() - start);
  rn_bundle_writer_destroy(writer);
  for (int64_t i = 0; i < count; ++i) rn_tensor_clear(&tensors[i]);
  rn_pool_destroy(pool);
  return status;
}

static rn_status_t restore(char** args) {
  rn_pool_t* pool = NULL;
  RN_RETURN_IF_ERROR(rn_pool_create(env()->allocator, atoi(args[1]), &pool));
  rn_bundle_reader_t* reader = NULL;
  double start = seconds();
  rn_status_t status = rn_bundle_reader_open(env(), args[0], &reader);
  rn_tensor_t tensors[64];
  size_t count = 0;
  for (; rn_ok(status) && count < rn_bundle_count(reader) && count < 64; ++count)
    status = rn_bundle_read_new(reader, rn_bundle_entry(reader, count), pool, env()->allocator,
                                &tensors[count]);
  printf("%.6f\n", seconds() - start);
  for (size_t i = 0; i < count; ++i) rn_tensor_clear(&tensors[i]);
  rn_bundle_reader_close(reader);
  rn_pool_destroy(pool);
  return status;
}

static rn_status_t plain(char** args) {
  size_t count = (size_t)atoll(args[1]), size = (size_t)atoll(args[2]);
  char* data = malloc(count * size);
  if (!data) return rn_out_of_memory();
  fill(data, count * size);
  double start = seconds();
  int fd = open(args[0], O_WRONLY | O_CREAT | O_TRUNC, 0666);
  bool is_good = fd >= 0;
  for (size_t i = 0; is_good && i < count; ++i)
    is_good = write(fd, data + i * size, size) == (ssize_t)size;
  is_good = is_good && fsync(fd) == 0;
  printf("%.6f\n", seconds() - start);
  if (fd >= 0) close(fd);
  free(data);
  return is_good ? RN_OK : rn_internal("%s cannot be written", args[0]);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    int args;
    rn_status_t (*run)(char** args);
  } commands[] = {{"copy", 2, copy}, {"copy_v1", 2, copy_v1}, {"write_v1", 2, write_v1},
                  {"part", 4, part}, {"merge", 2, merge},     {"digest", 1, digest},
                  {"save", 4, save}, {"restore", 2, restore}, {"plain", 3, plain}};
  for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; ++i) {
    if (strcmp(argv[1], commands[i].name) != 0 || argc - 2 < commands[i].args) continue;
    rn_status_t status = commands[i].run(argv + 2);
    if (rn_ok(status)) return 0;
    fprintf(stderr, "%s: %s\n", rn_code_name(rn_status_code(status)), rn_status_message(status));
    rn_status_free(status);
    return 1;
  }
  fprintf(stderr, "usage: see the first lines of this program\n");
  return 2;
}
