// Patches of images and volumes as vectors; Roll; conversion of data formats.
#include "kernels/cpu/array.h"
#include "kernels/cpu/array/begin.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/cpu/nn/window.h"
#include "kernels/kernel_rows.h"

// The three spatial numbers of a list attribute; the others must be 1.
static rn_status_t read_list(const rn_kernel_init_t* init, const char* name, int rank,
                             int64_t* out) {
  const rn_attr_value_t* list = rn_init_attr(init, name);
  if (list->count != rank)
    return rn_invalid_argument("%s must have %d elements, got %d", name, rank, list->count);
  const int64_t* values = list->list_i;
  if (values[0] != 1 || values[rank - 1] != 1)
    return rn_unimplemented("Only support %s across space.", name);
  out[0] = 1;
  for (int i = 1; i < rank - 1; ++i) {
    if (values[i] < 1) return rn_out_of_range("%s is out of range.", name);
    out[i + 4 - rank] = values[i];
  }
  return RN_OK;
}

rn_status_t rn_patches_init(const rn_kernel_init_t* init, void* state) {
  rn_patches_t* patches = state;
  bool is_image = strcmp(init->op->name, "ExtractImagePatches") == 0;
  patches->rank = is_image ? 4 : 5;
  for (int i = 0; i < 3; ++i) patches->rates[i] = 1;
  RN_RETURN_IF_ERROR(read_list(init, "ksizes", patches->rank, patches->sizes));
  RN_RETURN_IF_ERROR(read_list(init, "strides", patches->rank, patches->strides));
  if (is_image) RN_RETURN_IF_ERROR(read_list(init, "rates", patches->rank, patches->rates));
  patches->is_same = rn_str_is(rn_init_string(init, "padding"), "SAME");
  return RN_OK;
}

typedef struct patches_job_t {
  const rn_patches_t* patches;
  const char* from;
  char* to;
  int64_t in[3], out[3], before[3];
  int64_t pixel;  // bytes of all channels
} patches_job_t;

// One line of a window: sizes[2] pixels of |line|, starting at |first|; |line| is NULL outside the
// image.
static void take_line(const patches_job_t* job, const char* line, int64_t first, char* to) {
  const int64_t count = job->patches->sizes[2], rate = job->patches->rates[2], pixel = job->pixel;
  if (!line) {
    memset(to, 0, (size_t)(count * pixel));
    return;
  }
  int64_t begin = first < 0 ? (-first + rate - 1) / rate : 0;
  int64_t end = first >= job->in[2] ? 0 : (job->in[2] - first + rate - 1) / rate;
  if (begin > count) begin = count;
  if (end > count) end = count;
  if (end < begin) end = begin;
  memset(to, 0, (size_t)(begin * pixel));
  if (rate == 1) {
    memcpy(to + begin * pixel, line + (first + begin) * pixel, (size_t)((end - begin) * pixel));
  } else {
    for (int64_t i = begin; i < end; ++i)
      memcpy(to + i * pixel, line + (first + i * rate) * pixel, (size_t)pixel);
  }
  memset(to + end * pixel, 0, (size_t)((count - end) * pixel));
}

// Lines [begin, end) of the output: all windows at one plane and row of one image.
static void take_rows(void* arg, int64_t begin, int64_t end) {
  const patches_job_t* job = arg;
  const rn_patches_t* p = job->patches;
  const int64_t window_line = p->sizes[2] * job->pixel;
  const int64_t window = p->sizes[0] * p->sizes[1] * window_line;
  for (int64_t at = begin; at < end; ++at) {
    int64_t row = at % job->out[1], plane = at / job->out[1] % job->out[0];
    const char* image = job->from + at / job->out[1] / job->out[0] * job->in[0] * job->in[1] *
                                        job->in[2] * job->pixel;
    char* to = job->to + at * job->out[2] * window;
    for (int64_t column = 0; column < job->out[2]; ++column) {
      int64_t first = column * p->strides[2] - job->before[2];
      for (int64_t d = 0; d < p->sizes[0]; ++d) {
        int64_t z = plane * p->strides[0] - job->before[0] + d * p->rates[0];
        for (int64_t h = 0; h < p->sizes[1]; ++h, to += window_line) {
          int64_t y = row * p->strides[1] - job->before[1] + h * p->rates[1];
          bool is_inside = z >= 0 && z < job->in[0] && y >= 0 && y < job->in[1];
          const char* line = image + (z * job->in[1] + y) * job->in[2] * job->pixel;
          take_line(job, is_inside ? line : NULL, first, to);
        }
      }
    }
  }
}

static rn_status_t measure(const rn_patches_t* p, int i, int64_t in, rn_patches_view_t* view) {
  int64_t reach;
  if (!rn_mul_i64_ok(p->sizes[i] - 1, p->rates[i], &reach) || reach == INT64_MAX)
    return rn_invalid_argument("The window is too large");
  int64_t window = reach + 1, stride = p->strides[i], out, padding = 0;
  if (p->is_same) {
    out = in == 0 ? 0 : (in - 1) / stride + 1;
    // The part of the last window beyond the end; (out - 1) * stride < in.
    padding = out == 0 ? 0 : (out - 1) * stride - in;
    padding = padding > INT64_MAX - window ? INT64_MAX : padding + window;
    if (padding < 0) padding = 0;
  } else {
    if (window > INT64_MAX / 4 || stride > INT64_MAX / 4)
      return rn_invalid_argument("The window is too large");
    out = (in - window + stride) / stride;
    if (out < 0)
      return rn_invalid_argument(
          "Computed output size would be negative: %lld [input_size: %lld, effective_filter_size: "
          "%lld, stride: %lld]",
          (long long)out, (long long)in, (long long)window, (long long)stride);
  }
  view->in[i] = in;
  view->windows[i] = out;
  view->before[i] = padding / 2;
  return RN_OK;
}

rn_status_t rn_patches_begin(rn_kernel_ctx_t* ctx, rn_patches_view_t* out) {
  const rn_patches_t* p = ctx->state;
  const rn_tensor_t* x = rn_in(ctx, 0);
  if (x->rank != p->rank)
    return rn_invalid_argument("input must be %d-dimensional%s", p->rank, rn_text_of(x).text);
  int64_t channels = rn_tensor_dim(x, p->rank - 1), depth = channels;
  int64_t dims[5] = {rn_tensor_dim(x, 0)};
  *out = (rn_patches_view_t){
      .patches = p, .x = x, .in = {1, 1, 1}, .windows = {1, 1, 1}, .channels = channels};
  for (int i = 5 - p->rank; i < 3; ++i) {
    int axis = i - (5 - p->rank) + 1;
    RN_RETURN_IF_ERROR(measure(p, i, rn_tensor_dim(x, axis), out));
    dims[axis] = out->windows[i];
    if (!rn_mul_i64_ok(depth, p->sizes[i], &depth))
      return rn_invalid_argument("The windows are too large");
  }
  dims[p->rank - 1] = depth;
  return rn_output(ctx, 0, (rn_shape_t){p->rank, dims}, &out->out);
}

static rn_status_t extract(rn_kernel_ctx_t* ctx) {
  rn_patches_view_t view;
  RN_RETURN_IF_ERROR(rn_patches_begin(ctx, &view));
  if (view.out->count == 0) return RN_OK;
  patches_job_t job = {.patches = view.patches,
                       .from = view.x->data,
                       .to = view.out->data,
                       .pixel = view.channels * (int64_t)rn_dtype_size(view.x->dtype)};
  memcpy(job.in, view.in, sizeof job.in);
  memcpy(job.out, view.windows, sizeof job.out);
  memcpy(job.before, view.before, sizeof job.before);
  int64_t lines = rn_tensor_dim(view.out, 0) * job.out[0] * job.out[1];
  int64_t bytes = (int64_t)rn_tensor_bytes(view.out) / lines;
  rn_pool_for(rn_ctx_pool(ctx), lines, bytes >= 65536 ? 1 : 65536 / bytes, take_rows, &job);
  return RN_OK;
}

// Roll: shifting an axis by s moves two boxes.
static rn_status_t roll_axis(rn_moves_t* moves, const rn_tensor_t* x, const int64_t* shifts,
                             int axis, rn_move_t* move, int64_t from, int64_t to,
                             rn_tensor_t* out) {
  if (axis == x->rank) {
    const int64_t size = (int64_t)rn_dtype_size(x->dtype);
    return rn_moves_add(moves, move, (const char*)x->data + from * size,
                        (char*)out->data + to * size);
  }
  rn_axis_view_t view = rn_axis_view(x, axis);
  int64_t shift = shifts[axis];
  const int64_t parts[2][2] = {{0, view.size - shift}, {view.size - shift, shift}};
  for (int i = 0; i < 2; ++i) {
    if (parts[i][1] == 0) continue;
    rn_move_t inner = *move;
    rn_move_add(&inner, parts[i][1], view.inner, view.inner);
    int64_t lands = i == 0 ? shift : 0;
    RN_RETURN_IF_ERROR(roll_axis(moves, x, shifts, axis + 1, &inner,
                                 from + parts[i][0] * view.inner, to + lands * view.inner, out));
  }
  return RN_OK;
}

static rn_status_t roll(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *x = rn_in(ctx, 0), *shift = rn_in(ctx, 1), *axis = rn_in(ctx, 2);
  if (x->rank < 1) return rn_invalid_argument("input must be 1-D or higher");
  if (shift->rank > 1)
    return rn_invalid_argument("shift must be a scalar or a 1-D vector. Found: %s",
                               rn_text_of(shift).text);
  if (axis->rank > 1)
    return rn_invalid_argument("axis must be a scalar or a 1-D vector. Found: %s",
                               rn_text_of(axis).text);
  if (shift->count != axis->count || shift->rank != axis->rank)
    return rn_invalid_argument("shift and axis must have the same size");
  int64_t shifts[RN_MAX_RANK] = {0};
  for (int64_t i = 0; i < axis->count; ++i) {
    int64_t at = rn_int_at(axis, i);
    if (at < 0) at += x->rank;
    if (at < 0 || at >= x->rank)
      return rn_invalid_argument("axis %lld is out of range", (long long)at);
    int64_t size = rn_tensor_dim(x, (int)at) > 0 ? rn_tensor_dim(x, (int)at) : 1;
    int64_t by = rn_int_at(shift, i) % size;
    shifts[at] = (shifts[at] + by % size + size) % size;
  }
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &out));
  if (x->count == 0) return RN_OK;
  rn_move_t move;
  rn_move_begin(&move);
  rn_moves_t moves;
  rn_moves_begin(&moves, ctx, x->dtype);
  RN_RETURN_IF_ERROR(roll_axis(&moves, x, shifts, 0, &move, 0, 0, out));
  return rn_moves_end(&moves);
}

// Data formats: the position of each axis of one format in the other.
typedef struct formats_t {
  int count;     // letters of a format
  int place[5];  // source axis to destination axis
  int space_count;
  int space[5];  // the same, counting spatial axes only
} formats_t;

static rn_status_t formats_init(const rn_kernel_init_t* init, void* state) {
  formats_t* f = state;
  rn_str_t from = rn_init_string(init, "src_format"), to = rn_init_string(init, "dst_format");
  if (from.size != 4 && from.size != 5)
    return rn_invalid_argument("Source format must be of length 4 or 5, received src_format = %.*s",
                               RN_STR_ARGS(from));
  if (to.size != 4 && to.size != 5)
    return rn_invalid_argument(
        "Destination format must be of length 4 or 5, received dst_format = %.*s", RN_STR_ARGS(to));
  bool is_permutation = from.size == to.size;
  uint32_t taken = 0;
  f->count = (int)from.size;
  for (size_t i = 0; is_permutation && i < from.size; ++i) {
    const char* found = memchr(to.data, from.data[i], to.size);
    is_permutation = found && !(taken & 1u << (found - to.data));
    if (is_permutation) f->place[i] = (int)(found - to.data);
    if (is_permutation) taken |= 1u << f->place[i];
  }
  if (!is_permutation)
    return rn_invalid_argument(
        "Destination and source format must determine a permutation, got %.*s and %.*s",
        RN_STR_ARGS(from), RN_STR_ARGS(to));
  for (size_t i = 0; i < from.size; ++i) {
    if (from.data[i] == 'N' || from.data[i] == 'C') continue;
    int place = 0;
    for (int k = 0; k < f->place[i]; ++k) place += to.data[k] != 'N' && to.data[k] != 'C';
    f->space[f->space_count++] = place;
  }
  return RN_OK;
}

static rn_status_t dim_map(rn_kernel_ctx_t* ctx) {
  const formats_t* f = ctx->state;
  const rn_tensor_t* x = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &out));
  for (int64_t i = 0; i < x->count; ++i) {
    int64_t axis = rn_int_at(x, i) % f->count;
    rn_int_set(out, i, f->place[axis < 0 ? axis + f->count : axis]);
  }
  return RN_OK;
}

static rn_status_t vec_permute(rn_kernel_ctx_t* ctx) {
  const formats_t* f = ctx->state;
  const rn_tensor_t* x = rn_in(ctx, 0);
  if (x->rank != 1 && x->rank != 2)
    return rn_invalid_argument("input must be a vector or 2D tensor, but got shape %s",
                               rn_text_of(x).text);
  int64_t rows = rn_tensor_dim(x, 0), columns = x->rank == 2 ? rn_tensor_dim(x, 1) : 1;
  int space = f->count - 2;
  if (rows != f->count && rows != space)
    return rn_invalid_argument("%s must be of size %d or %d, but got shape %s",
                               x->rank == 1 ? "1D input" : "First dimension of 2D input", space,
                               f->count, rn_text_of(x).text);
  if (x->rank == 2 && columns != 2)
    return rn_invalid_argument("Second dimension of 2D input must be of size 2, but got shape %s",
                               rn_text_of(x).text);
  if (rows == space && f->space_count != space)
    return rn_invalid_argument("Format specifier must contain %sH and W for 2D case",
                               space == 3 ? "D, " : "");
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &out));
  for (int64_t i = 0; i < rows; ++i) {
    int64_t to = rows == f->count ? f->place[i] : f->space[i];
    for (int64_t k = 0; k < columns; ++k)
      rn_int_set(out, to * columns + k, rn_int_at(x, i * columns + k));
  }
  return RN_OK;
}

#define PATCHES(name, types_)                                                                  \
  {                                                                                            \
    .op = name, .device = "CPU", .types = {{"T", types_}}, .state_size = sizeof(rn_patches_t), \
    .init = rn_patches_init, .compute = extract                                                \
  }
#define FORMATS(name, function)                                                \
  {                                                                            \
    .op = name, .device = "CPU", .types = {{"T", RN_TYPES_INDEX}},             \
    .state_size = sizeof(formats_t), .init = formats_init, .compute = function \
  }

#define ROLL_TYPES (RN_TYPES_NUMBERS | RN_T(BOOL) | RN_T(STRING) | RN_T(RESOURCE) | RN_T(VARIANT))

static const rn_kernel_def_t rows[] = {
    PATCHES("ExtractImagePatches", RN_TYPES_NUMBERS | RN_T(BOOL)),
    PATCHES("ExtractVolumePatches", RN_TYPES_REAL),
    {.op = "Roll", .device = "CPU", .types = {{"T", ROLL_TYPES}}, .compute = roll},
    FORMATS("DataFormatDimMap", dim_map),
    FORMATS("DataFormatVecPermute", vec_permute),
};
RN_KERNEL_FAMILY(cpu_patches, rows);
