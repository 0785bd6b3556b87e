// Debugging ops: Assert, Print, CheckNumerics and others.
#include <math.h>
#include <stdio.h>

#include "base/fs.h"
#include "kernels/cpu/array.h"
#include "kernels/kernel_rows.h"
#include "tensor/float16.h"
#include "tensor/print.h"
#include "tensor/tstring.h"

// A copied string attribute, and the numbers beside it.
typedef struct debug_text_t {
  rn_allocator_t allocator;
  char* text;  // Owned; NUL-terminated
  size_t size;
  int64_t limit;         // elements to show; < 0 for all
  _Atomic int64_t left;  // times left to print; < 0 if unlimited
  bool is_quiet;
} debug_text_t;

static rn_status_t keep_text(const rn_kernel_init_t* init, debug_text_t* state, const char* attr) {
  rn_str_t text = rn_init_string(init, attr);
  state->allocator = init->allocator;
  state->size = text.size;
  return rn_str_dup(init->allocator, text, &state->text);
}

static void text_destroy(void* state) {
  debug_text_t* kept = state;
  if (kept->text) rn_free(kept->allocator, kept->text, kept->size + 1);
}

// " [1 2 3...]" per input, from |first| on.
static void print_inputs(const rn_kernel_ctx_t* ctx, int first, int64_t limit, const char* before,
                         rn_strbuf_t* out) {
  for (int i = first; i < ctx->kernel->input_count; ++i) {
    const rn_tensor_t* input = rn_in(ctx, i);
    rn_strbuf_append(out, rn_str(before));
    rn_print_values(out, input, limit < 0 ? input->count : limit);
    rn_strbuf_append(out, RN_STR("]"));
  }
}

static rn_status_t assert_init(const rn_kernel_init_t* init, void* state) {
  *(int64_t*)state = rn_init_int(init, "summarize");
  return RN_OK;
}

static rn_status_t assert_true(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* condition = rn_in(ctx, 0);
  if (condition->rank != 0)
    return rn_invalid_argument("In[0] should be a scalar: %s", rn_text_of(condition).text);
  if (*RN_DATA(condition, const bool)) return RN_OK;
  rn_strbuf_t text;
  rn_strbuf_init(&text, ctx->kernel->allocator);
  rn_strbuf_append(&text, RN_STR("assertion failed:"));
  print_inputs(ctx, 1, *(const int64_t*)ctx->state, " [", &text);
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

static void write_to(FILE* stream, rn_str_t text) {
  fwrite(text.data, 1, text.size, stream);
  fflush(stream);
}

static rn_status_t print_init(const rn_kernel_init_t* init, void* state) {
  debug_text_t* print = state;
  print->limit = rn_init_int(init, "summarize");
  print->left = rn_init_int(init, "first_n");
  return keep_text(init, print, "message");
}

static rn_status_t print(rn_kernel_ctx_t* ctx) {
  debug_text_t* kept = ctx->state;
  RN_RETURN_IF_ERROR(rn_forward(ctx, 0, 0));
  int64_t left = kept->left;
  while (left > 0 && !__atomic_compare_exchange_n((int64_t*)&kept->left, &left, left - 1, false,
                                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  if (left == 0) return RN_OK;
  rn_strbuf_t text;
  rn_strbuf_init(&text, ctx->kernel->allocator);
  rn_strbuf_append_n(&text, kept->text, kept->size);
  print_inputs(ctx, 1, kept->limit, "[", &text);
  rn_strbuf_append(&text, RN_STR("\n"));
  rn_status_t status = rn_strbuf_status(&text);
  if (rn_ok(status)) write_to(stderr, rn_strbuf_view(&text));
  rn_strbuf_clear(&text);
  return status;
}

// PrintV2: the destination, and the line ending.
typedef enum where_t {
  TO_STDOUT,
  TO_STDERR,
  TO_LOG_INFO,
  TO_LOG_WARNING,
  TO_LOG_ERROR,
  TO_FILE
} where_t;
static const char* const places[] = {"stdout", "stderr", "log(info)", "log(warning)", "log(error)"};

typedef struct print_v2_t {
  debug_text_t end;  // first
  where_t where;
  debug_text_t path;  // of the file to append to
} print_v2_t;

static void print_v2_destroy(void* state) {
  print_v2_t* print = state;
  text_destroy(&print->end);
  text_destroy(&print->path);
}

static rn_status_t print_v2_init(const rn_kernel_init_t* init, void* state) {
  print_v2_t* print = state;
  RN_RETURN_IF_ERROR(keep_text(init, &print->end, "end"));
  rn_str_t name = rn_init_string(init, "output_stream");
  for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
    if (!rn_str_is(name, places[i])) continue;
    print->where = (where_t)i;
    return RN_OK;
  }
  rn_str_t prefix = RN_STR("file://");
  if (rn_str_starts_with(name, prefix)) {
    print->where = TO_FILE;
    print->path = (debug_text_t){.allocator = init->allocator, .size = name.size - prefix.size};
    return rn_str_dup(init->allocator, (rn_str_t){name.data + prefix.size, name.size - prefix.size},
                      &print->path.text);
  }
  return rn_invalid_argument(
      "Unknown output stream: %.*s, Valid streams are: stdout stderr log(info) log(warning) "
      "log(error)",
      RN_STR_ARGS(name));
}

static rn_status_t add_to_file(const rn_env_t* env, const char* path, rn_allocator_t allocator,
                               rn_str_t text) {
  rn_file_t* file = NULL;
  RN_RETURN_IF_ERROR(env->fs->open(env->fs_self, path, RN_OPEN_APPEND, allocator, &file));
  rn_status_t status = file->vtable->append(file, text);
  return rn_status_join(status, file->vtable->close(file));
}

static rn_status_t print_v2(rn_kernel_ctx_t* ctx) {
  const print_v2_t* kept = ctx->state;
  const rn_tensor_t* input = rn_in(ctx, 0);
  if (input->rank != 0)
    return rn_invalid_argument("Input is expected to be scalar, but got %s",
                               rn_text_of(input).text);
  rn_strbuf_t text;
  rn_strbuf_init(&text, ctx->kernel->allocator);
  rn_strbuf_append(&text, rn_tstring_view(RN_DATA(input, const rn_tstring_t)));
  rn_strbuf_append_n(&text, kept->end.text, kept->end.size);
  rn_status_t status = rn_strbuf_status(&text);
  if (rn_ok(status)) {
    const rn_env_t* env = ctx->step->env;
    if (kept->where == TO_FILE)
      status = add_to_file(env, kept->path.text, ctx->kernel->allocator, rn_strbuf_view(&text));
    else if (kept->where <= TO_STDERR)
      write_to(kept->where == TO_STDOUT ? stdout : stderr, rn_strbuf_view(&text));
    else
      env->log(env->self, (rn_log_level_t)(kept->where - TO_LOG_INFO), rn_strbuf_view(&text).data);
  }
  rn_strbuf_clear(&text);
  return status;
}

static rn_status_t timestamp(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  const rn_env_t* env = ctx->step->env;
  *RN_DATA(out, double) = (double)env->wall_us(env->self) * 1e-6;
  return RN_OK;
}

// Stock aborts the process; here only the step fails.
static rn_status_t abort_init(const rn_kernel_init_t* init, void* state) {
  ((debug_text_t*)state)->is_quiet = rn_init_bool(init, "exit_without_error");
  return keep_text(init, state, "error_msg");
}

static rn_status_t abort_step(rn_kernel_ctx_t* ctx) {
  const debug_text_t* kept = ctx->state;
  if (kept->is_quiet) return rn_aborted("Abort_op asked for the process to exit");
  return rn_aborted("Abort_op intentional failure; %s", kept->text);
}

// StringFormat: prints tensors into a template, with each row on its own line.
typedef struct debug_format_t {
  debug_text_t template;  // first
  char* placeholder;      // Owned
  size_t placeholder_size;
} debug_format_t;

static rn_status_t format_init(const rn_kernel_init_t* init, void* state) {
  debug_format_t* format = state;
  RN_RETURN_IF_ERROR(keep_text(init, &format->template, "template"));
  format->template.limit = rn_init_int(init, "summarize");
  rn_str_t placeholder = rn_init_string(init, "placeholder");
  format->placeholder_size = placeholder.size;
  return rn_str_dup(init->allocator, placeholder, &format->placeholder);
}

static void format_destroy(void* state) {
  debug_format_t* format = state;
  if (format->placeholder)
    rn_free(format->template.allocator, format->placeholder, format->placeholder_size + 1);
  text_destroy(&format->template);
}

static void print_element(rn_strbuf_t* out, const rn_tensor_t* tensor, int64_t i) {
  if (tensor->dtype == RN_STRING) {
    rn_strbuf_append(out, RN_STR("\""));
    rn_print_escaped(out, rn_tstring_view(&RN_DATA(tensor, const rn_tstring_t)[i]), true);
    rn_strbuf_append(out, RN_STR("\""));
    return;
  }
  rn_tensor_t one = {.data = RN_DATA(tensor, char) + (size_t)i * rn_dtype_size(tensor->dtype),
                     .count = 1,
                     .dtype = tensor->dtype};
  rn_print_values(out, &one, 1);
}

static void print_gap(rn_strbuf_t* out, int axis, int rank) {
  if (axis == rank - 1) {
    rn_strbuf_append(out, RN_STR(" "));
    return;
  }
  for (int d = axis; d < rank - 1; ++d) rn_strbuf_append(out, RN_STR("\n"));
  for (int d = 0; d <= axis; ++d) rn_strbuf_append(out, RN_STR(" "));
}

// Prints |ends| elements at either end of each dimension.
static void print_nested(rn_strbuf_t* out, const rn_tensor_t* tensor, int axis, int64_t first,
                         int64_t step, int64_t ends) {
  if (axis == tensor->rank) {
    print_element(out, tensor, first);
    return;
  }
  int64_t size = rn_tensor_dim(tensor, axis);
  int64_t inner = size ? step / size : 0;
  rn_strbuf_append(out, RN_STR("["));
  bool is_cut = size > 2 * ends || 2 * ends < ends;
  for (int64_t i = 0; i < size; ++i) {
    if (i) print_gap(out, axis, tensor->rank);
    if (is_cut && i == ends) {
      if (i == 0) print_gap(out, axis, tensor->rank);
      rn_strbuf_append(out, RN_STR("..."));
      i = size - ends - 1;
      continue;
    }
    print_nested(out, tensor, axis + 1, first + i * inner, inner, ends);
  }
  rn_strbuf_append(out, RN_STR("]"));
}

static rn_status_t string_format(rn_kernel_ctx_t* ctx) {
  const debug_format_t* format = ctx->state;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  rn_strbuf_t text;
  rn_strbuf_init(&text, ctx->kernel->allocator);
  const char* at = format->template.text;
  for (int i = 0; i < ctx->kernel->input_count; ++i) {
    const rn_tensor_t* input = rn_in(ctx, i);
    const char* found = format->placeholder_size ? strstr(at, format->placeholder) : NULL;
    if (!found) break;
    rn_strbuf_append_n(&text, at, (size_t)(found - at));
    int64_t limit = format->template.limit;
    int64_t ends = limit < 0 || limit > input->count ? input->count : limit;
    print_nested(&text, input, 0, 0, input->count, ends);
    at = found + format->placeholder_size;
  }
  rn_strbuf_append(&text, rn_str(at));
  rn_status_t status = rn_strbuf_status(&text);
  rn_str_t view = rn_strbuf_view(&text);
  if (rn_ok(status) && !rn_tstring_assign(RN_DATA(out, rn_tstring_t), view.data, view.size))
    status = rn_out_of_memory();
  rn_strbuf_clear(&text);
  return status;
}

#define TEXT(name, flags_, init_, function)                                           \
  {                                                                                   \
    .op = name, .device = "CPU", .flags = flags_, .state_size = sizeof(debug_text_t), \
    .init = init_, .destroy = text_destroy, .compute = function                       \
  }

static const rn_kernel_def_t rows[] = {
    {.op = "Assert",
     .device = "CPU",
     .state_size = sizeof(int64_t),
     .init = assert_init,
     .compute = assert_true},
    TEXT("Print", RN_KERNEL_FORWARDS, print_init, print),
    {.op = "PrintV2",
     .device = "CPU",
     .state_size = sizeof(print_v2_t),
     .init = print_v2_init,
     .destroy = print_v2_destroy,
     .compute = print_v2},
    {.op = "Timestamp", .device = "CPU", .compute = timestamp},
    TEXT("Abort", 0, abort_init, abort_step),
    {.op = "StringFormat",
     .device = "CPU",
     .state_size = sizeof(debug_format_t),
     .init = format_init,
     .destroy = format_destroy,
     .compute = string_format},
};
RN_KERNEL_FAMILY(cpu_debug, rows);
