// RecordInput: batches of records from files, in a new order every round, without end.
//
// A round covers all records of all files once. Files are shuffled, several are read in turn, and
// records are drawn from a buffer of what was read.
#include "base/fs.h"
#include "base/random.h"
#include "base/vec.h"
#include "io/record.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

#define MAX_OPEN 64  // files open at once

typedef struct record_input_t {
  rn_allocator_t allocator;
  char* pattern;  // Owned
  size_t pattern_size;
  rn_compression_t compression;
  int64_t seed, buffer_size, batch_size, open_limit;
  float shift;
  rn_mutex_t mutex;  // guards what follows
  bool has_mutex;
  rn_names_t files;
  int64_t* order;  // Owned; order of the files in this round
  size_t next_file;
  int64_t round, given;  // rounds begun; records given in this one
  rn_record_reader_t* open[MAX_OPEN];
  int64_t open_count, turn;
  RN_VEC(rn_tstring_t) waiting;  // Owned, each
  uint64_t random;
} record_input_t;

static rn_status_t input_init(const rn_kernel_init_t* init, void* state) {
  record_input_t* input = state;
  rn_str_t pattern = rn_init_string(init, "file_pattern");
  input->allocator = init->allocator;
  input->seed = rn_init_int(init, "file_random_seed");
  input->shift = rn_init_float(init, "file_shuffle_shift_ratio");
  input->buffer_size = rn_init_int(init, "file_buffer_size");
  input->open_limit = rn_init_int(init, "file_parallelism");
  input->batch_size = rn_init_int(init, "batch_size");
  rn_names_init(&input->files, init->allocator);
  rn_mutex_init(&input->mutex);
  input->has_mutex = true;
  if (input->buffer_size < 1 || input->open_limit < 1 || input->batch_size < 0)
    return rn_invalid_argument(
        "file_buffer_size and file_parallelism must be positive, and batch_size must not be "
        "negative: %lld, %lld and %lld",
        (long long)input->buffer_size, (long long)input->open_limit, (long long)input->batch_size);
  if (input->open_limit > MAX_OPEN) input->open_limit = MAX_OPEN;
  // As in stock, an unknown name means no compression.
  if (!rn_record_compression_from_name(rn_init_string(init, "compression_type"),
                                       &input->compression))
    input->compression = RN_COMPRESSION_NONE;
  RN_RETURN_IF_ERROR(rn_fs_check_name(pattern));
  input->pattern_size = pattern.size + 1;
  return rn_str_dup(init->allocator, pattern, &input->pattern);
}

static void close_files(record_input_t* input) {
  while (input->open_count > 0) rn_record_reader_close(input->open[--input->open_count]);
}

static void input_destroy(void* state) {
  record_input_t* input = state;
  close_files(input);
  for (size_t i = 0; i < input->waiting.count; ++i) rn_tstring_clear(&input->waiting.items[i]);
  rn_vec_free(&input->waiting, input->allocator);
  if (input->order) RN_FREE_ARRAY(input->allocator, input->order, input->files.list.count);
  rn_names_clear(&input->files);
  if (input->pattern) rn_free(input->allocator, input->pattern, input->pattern_size);
  if (input->has_mutex) rn_mutex_destroy(&input->mutex);
}

static rn_status_t find_files(record_input_t* input, const rn_env_t* env) {
  if (input->order) return RN_OK;
  rn_names_clear(&input->files);
  RN_RETURN_IF_ERROR(rn_fs_glob(env, input->pattern, &input->files));
  size_t count = input->files.list.count;
  if (count == 0) return rn_not_found("Found no files at %s", input->pattern);
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(input->allocator, count, &input->order));
  input->next_file = count;
  input->random = (uint64_t)input->seed;
  return RN_OK;
}

// Shuffles the files; the shift separates the rounds of machines that use the same seed.
static rn_status_t begin_round(record_input_t* input) {
  size_t count = input->files.list.count;
  if (input->round > 0 && input->given == 0)
    return rn_out_of_range("The files at %s contain no records", input->pattern);
  for (size_t i = 0; i < count; ++i) input->order[i] = (int64_t)i;
  for (size_t i = count; i > 1; --i) {
    size_t other = rn_random_next(&input->random) % i;
    int64_t file = input->order[i - 1];
    input->order[i - 1] = input->order[other];
    input->order[other] = file;
  }
  input->next_file = 0;
  input->given = 0;
  ++input->round;
  return RN_OK;
}

static rn_status_t open_next(record_input_t* input, const rn_env_t* env) {
  size_t count = input->files.list.count;
  double shifted = (double)input->shift * (double)count;
  size_t shift = shifted > 0 && shifted < (double)count ? (size_t)shifted : 0;
  int64_t file = input->order[(input->next_file + shift) % count];
  RN_RETURN_IF_ERROR(rn_record_reader_open(env, input->files.list.items[file].data,
                                           input->compression, 0, &input->open[input->open_count]));
  ++input->next_file;
  ++input->open_count;
  return RN_OK;
}

static rn_status_t keep(record_input_t* input, rn_str_t record) {
  rn_tstring_t string;
  rn_tstring_init(&string);
  if (!rn_tstring_assign(&string, record.data, record.size)) return rn_out_of_memory();
  rn_status_t status = rn_vec_push(&input->waiting, input->allocator, string);
  if (!rn_ok(status)) rn_tstring_clear(&string);
  return status;
}

// Fills the buffer from the files of this round in turn. Gives up on a damaged file.
static rn_status_t fill(record_input_t* input, const rn_env_t* env) {
  while ((int64_t)input->waiting.count < input->buffer_size) {
    while (input->open_count < input->open_limit && input->next_file < input->files.list.count)
      RN_RETURN_IF_ERROR(open_next(input, env));
    if (input->open_count == 0) return RN_OK;
    int64_t turn = input->turn++ % input->open_count;
    bool is_end = false;
    rn_str_t record;
    rn_status_t status = rn_record_reader_next(input->open[turn], &record, &is_end);
    if (rn_ok(status) && !is_end) {
      RN_RETURN_IF_ERROR(keep(input, record));
      continue;
    }
    rn_record_reader_close(input->open[turn]);
    input->open[turn] = input->open[--input->open_count];
    RN_RETURN_IF_ERROR(status);
  }
  return RN_OK;
}

static rn_status_t draw(record_input_t* input, const rn_env_t* env, rn_tstring_t* out) {
  while (input->waiting.count == 0) {
    if (input->open_count == 0 && input->next_file == input->files.list.count)
      RN_RETURN_IF_ERROR(begin_round(input));
    RN_RETURN_IF_ERROR(fill(input, env));
  }
  // Refill before each draw, so that the draw covers a full buffer.
  RN_RETURN_IF_ERROR(fill(input, env));
  size_t chosen = rn_random_next(&input->random) % input->waiting.count;
  *out = input->waiting.items[chosen];
  input->waiting.items[chosen] = input->waiting.items[--input->waiting.count];
  ++input->given;
  return RN_OK;
}

static rn_status_t record_input(rn_kernel_ctx_t* ctx) {
  record_input_t* input = ctx->state;
  const rn_env_t* env = ctx->step->env;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &input->batch_size}, &out));
  rn_mutex_lock(&input->mutex);
  rn_status_t status = find_files(input, env);
  for (int64_t i = 0; i < out->count && rn_ok(status); ++i)
    status = draw(input, env, &RN_DATA(out, rn_tstring_t)[i]);
  rn_mutex_unlock(&input->mutex);
  return status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "RecordInput",
     .device = "CPU",
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(record_input_t),
     .init = input_init,
     .destroy = input_destroy,
     .compute = record_input},
};
RN_KERNEL_FAMILY(cpu_record_input, rows);
