// Prints tensors the way NumPy prints arrays: see value.h.
#include <math.h>
#include <stdio.h>

#include "cli/value.h"
#include "tensor/float16.h"
#include "tensor/print.h"
#include "tensor/tstring.h"

// NumPy's own settings.
#define LINE_WIDTH 75
#define THRESHOLD 1000  // with more elements, the middle of each axis is left out
#define EDGE 3          // elements kept at either end
#define DECIMALS 8

typedef struct show_t {
  rn_strbuf_t* buf;
  const rn_tensor_t* tensor;
  bool is_long;
  // The first pass measures the width of a cell; the second prints.
  bool is_printing;
  bool is_scientific;
  double largest, smallest;  // absolute values, ignoring zeros
  int digits;                // after the point, in scientific notation
  int before, behind;        // characters before the point; characters from the point on
  int special;               // characters of "nan" or "-inf", if there is one
  int column;
} show_t;

typedef struct cell_t {
  char text[64];
} cell_t;

static bool is_float(rn_dtype_t dtype) {
  return dtype == RN_FLOAT || dtype == RN_DOUBLE || dtype == RN_HALF || dtype == RN_BFLOAT16;
}

// Whether |text| reads back as |value| in the precision of |dtype|.
static bool reads_back(rn_dtype_t dtype, const char* text, double value) {
  if (dtype == RN_DOUBLE) return strtod(text, NULL) == value;
  float read = strtof(text, NULL);
  if (dtype == RN_HALF) read = rn_half_to_float(rn_float_to_half(read));
  if (dtype == RN_BFLOAT16) read = rn_bfloat16_to_float(rn_float_to_bfloat16(read));
  return read == (float)value;
}

// The fewest digits after the first that distinguish |value| from its neighbors; and its power of
// ten.
static int shortest(rn_dtype_t dtype, double value, int* out_exponent) {
  char text[40];
  int digits = 0;
  for (; digits < 17; ++digits) {
    snprintf(text, sizeof text, "%.*e", digits, value);
    if (reads_back(dtype, text, value)) break;
  }
  const char* e = strchr(text, 'e');
  *out_exponent = e ? (int)strtol(e + 1, NULL, 10) : 0;
  return digits;
}

static void print_float(const show_t* show, double value, cell_t* out) {
  int exponent, digits, size = (int)sizeof out->text;
  if (!isfinite(value)) {
    snprintf(out->text, (size_t)size, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
    return;
  }
  // NumPy's numbers always have a point; "%.0e" and "%.0f" give none.
  if (show->is_scientific) {
    int length = snprintf(out->text, (size_t)size, "%.*e", show->digits, value);
    char* e = strchr(out->text, 'e');
    if (show->digits == 0 && e && length + 2 < size) {
      memmove(e + 1, e, strlen(e) + 1);
      *e = '.';
    }
    return;
  }
  digits = shortest(show->tensor->dtype, value, &exponent);
  int decimals = digits - exponent;
  decimals = decimals < 0 ? 0 : decimals > DECIMALS ? DECIMALS : decimals;
  int length = snprintf(out->text, (size_t)size, "%.*f%s", decimals, value, decimals ? "" : ".");
  // Only the first pass gets here with values beyond 1e8; the second prints those in scientific
  // notation.
  if (length >= size) length = size - 1;
  while (decimals && length > 0 && out->text[length - 1] == '0') out->text[--length] = '\0';
}

static void print_short(rn_dtype_t dtype, double value, cell_t* out) {
  int exponent, digits = isfinite(value) ? shortest(dtype, value, &exponent) + 1 : 1;
  int length = snprintf(out->text, sizeof out->text, "%.*g", digits, value);
  if (isfinite(value) && !strpbrk(out->text, ".e"))
    snprintf(out->text + length, sizeof out->text - (size_t)length, ".0");
}

static void print_complex(const rn_tensor_t* t, int64_t i, cell_t* out) {
  bool is_small = t->dtype == RN_COMPLEX64;
  rn_dtype_t part = is_small ? RN_FLOAT : RN_DOUBLE;
  double re = is_small ? RN_DATA(t, float)[2 * i] : RN_DATA(t, double)[2 * i];
  double im = is_small ? RN_DATA(t, float)[2 * i + 1] : RN_DATA(t, double)[2 * i + 1];
  cell_t a, b;
  print_short(part, re, &a);
  print_short(part, im, &b);
  snprintf(out->text, sizeof out->text, "%.28s%s%.28sj", a.text, b.text[0] == '-' ? "" : "+",
           b.text);
}

static void print_integer(const rn_tensor_t* t, int64_t i, cell_t* out) {
  size_t size = rn_dtype_size(t->dtype);
  uint64_t bits = 0;
  memcpy(&bits, (const char*)t->data + (size_t)i * size, size);
  bool is_unsigned = t->dtype == RN_UINT8 || t->dtype == RN_UINT16 || t->dtype == RN_UINT32 ||
                     t->dtype == RN_UINT64 || t->dtype == RN_QUINT8 || t->dtype == RN_QUINT16;
  int shift = 64 - 8 * (int)size;
  if (is_unsigned)
    snprintf(out->text, sizeof out->text, "%llu", (unsigned long long)bits);
  else
    snprintf(out->text, sizeof out->text, "%lld", (long long)((int64_t)(bits << shift) >> shift));
}

// Everything but strings, which may be of any length.
static void print_cell(const show_t* show, int64_t i, cell_t* out) {
  const rn_tensor_t* t = show->tensor;
  rn_dtype_t dtype = t->dtype;
  if (is_float(dtype) && t->rank == 0)
    print_short(dtype, rn_cli_number_at(t, i), out);
  else if (is_float(dtype))
    print_float(show, rn_cli_number_at(t, i), out);
  else if (dtype == RN_BOOL)
    snprintf(out->text, sizeof out->text, "%s", RN_DATA(t, uint8_t)[i] ? "True" : "False");
  else if (rn_dtype_is_complex(dtype))
    print_complex(t, i, out);
  else if ((dtype > 0 && dtype <= RN_HALF) || dtype == RN_UINT32 || dtype == RN_UINT64)
    print_integer(t, i, out);
  else
    snprintf(out->text, sizeof out->text, "<%s>", rn_dtype_name(dtype));
}

static void put_string(show_t* show, int64_t i) {
  size_t start = show->buf->size;
  rn_strbuf_append(show->buf, RN_STR("\""));
  rn_print_escaped(show->buf, rn_tstring_view(&RN_DATA(show->tensor, rn_tstring_t)[i]), true);
  rn_strbuf_append(show->buf, RN_STR("\""));
  show->column += (int)(show->buf->size - start);
}

static int length_before_point(const char* text) {
  const char* point = strchr(text, '.');
  return point ? (int)(point - text) : (int)strlen(text);
}

static void measure(show_t* show, int64_t i) {
  if (is_float(show->tensor->dtype)) {
    double size = fabs(rn_cli_number_at(show->tensor, i));
    if (isfinite(size) && size > 0) {
      if (size > show->largest) show->largest = size;
      if (show->smallest == 0 || size < show->smallest) show->smallest = size;
      int exponent, digits = shortest(show->tensor->dtype, size, &exponent);
      if (digits > DECIMALS) digits = DECIMALS;
      if (digits > show->digits) show->digits = digits;
    }
  }
  cell_t cell;
  print_cell(show, i, &cell);
  int length = (int)strlen(cell.text);
  if (!isfinite(rn_cli_number_at(show->tensor, i))) {
    if (length > show->special) show->special = length;
    return;
  }
  int before = length_before_point(cell.text);
  if (before > show->before) show->before = before;
  if (length - before > show->behind) show->behind = length - before;
}

static void put_cell(show_t* show, int64_t i) {
  if (show->tensor->dtype == RN_STRING) {
    put_string(show, i);
    return;
  }
  cell_t cell;
  print_cell(show, i, &cell);
  if (show->tensor->rank == 0) {
    rn_strbuf_printf(show->buf, "%s", cell.text);
    return;
  }
  // Cells without a point (nan) are right-aligned.
  bool is_whole = isfinite(rn_cli_number_at(show->tensor, i));
  int before = is_whole ? length_before_point(cell.text) : (int)strlen(cell.text);
  int left = is_whole ? show->before - before : show->before + show->behind - before;
  int right = is_whole ? show->behind - ((int)strlen(cell.text) - before) : 0;
  if (left < 0) left = 0;
  rn_strbuf_printf(show->buf, "%*s%s%*s", left, "", cell.text, right, "");
  show->column += show->before + show->behind;
}

static void new_line(show_t* show, int axis) {
  while (show->buf->size && show->buf->data[show->buf->size - 1] == ' ') show->buf->size--;
  rn_strbuf_printf(show->buf, "\n%*s", axis, "");
  show->column = axis;
}

static void put_gap(show_t* show, int axis, int next) {
  int rank = show->tensor->rank;
  if (axis + 1 < rank) {
    for (int a = axis + 1; a < rank - 1; ++a) rn_strbuf_append(show->buf, RN_STR("\n"));
    new_line(show, axis + 1);
  } else if (show->column + 1 + next >= LINE_WIDTH) {
    new_line(show, axis + 1);
  } else {
    rn_strbuf_append(show->buf, RN_STR(" "));
    show->column++;
  }
}

static void walk(show_t* show, int axis, int64_t offset) {
  const rn_tensor_t* t = show->tensor;
  if (axis == t->rank) {
    if (show->is_printing)
      put_cell(show, offset);
    else if (t->dtype != RN_STRING)
      measure(show, offset);
    return;
  }
  int64_t dim = rn_tensor_dim(t, axis), step = 1;
  for (int a = axis + 1; a < t->rank; ++a) step *= rn_tensor_dim(t, a);
  bool is_cut = show->is_long && dim > 2 * EDGE;
  if (show->is_printing) rn_strbuf_append(show->buf, RN_STR("["));
  if (show->is_printing) show->column++;
  for (int64_t i = 0; i < dim; ++i) {
    if (is_cut && i == EDGE) {
      i = dim - EDGE;
      if (show->is_printing) put_gap(show, axis, 3);
      if (show->is_printing) rn_strbuf_append(show->buf, RN_STR("..."));
      show->column += 3;
    }
    if (show->is_printing && i > 0) put_gap(show, axis, show->before + show->behind);
    walk(show, axis + 1, offset + i * step);
  }
  if (show->is_printing) rn_strbuf_append(show->buf, RN_STR("]"));
}

void rn_cli_show(rn_strbuf_t* buf, const rn_tensor_t* tensor) {
  if (tensor->count == 0) {
    rn_strbuf_append(buf, RN_STR("[]\n"));
    return;
  }
  show_t show = {.buf = buf, .tensor = tensor, .is_long = tensor->count > THRESHOLD};
  if (tensor->dtype == RN_BOOL) show.before = 5;  // always as wide as "False"
  walk(&show, 0, 0);
  show.is_scientific =
      show.largest >= 1e8 ||
      (show.largest > 0 && (show.smallest < 1e-4 || show.largest / show.smallest > 1000));
  if (show.is_scientific) {
    show.before = show.behind = 0;
    walk(&show, 0, 0);
  }
  if (show.special > show.before + show.behind) show.before = show.special - show.behind;
  show.column = 0;
  show.is_printing = true;
  walk(&show, 0, 0);
  rn_strbuf_append(buf, RN_STR("\n"));
}
