// Converts JSON specs to tensors, and compares tensors with recorded ones.
#include "value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const dtype_t dtypes[] = {
    {"float", TF_FLOAT, 4, KIND_FLOAT},
    {"double", TF_DOUBLE, 8, KIND_FLOAT},
    {"half", TF_HALF, 2, KIND_FLOAT},
    {"bfloat16", TF_BFLOAT16, 2, KIND_FLOAT},
    {"float8_e5m2", TF_FLOAT8_E5M2, 1, KIND_FLOAT},
    {"float8_e4m3fn", TF_FLOAT8_E4M3FN, 1, KIND_FLOAT},
    {"complex64", TF_COMPLEX64, 8, KIND_COMPLEX},
    {"complex128", TF_COMPLEX128, 16, KIND_COMPLEX},
    {"int4", TF_INT4, 1, KIND_SIGNED},
    {"int8", TF_INT8, 1, KIND_SIGNED},
    {"int16", TF_INT16, 2, KIND_SIGNED},
    {"int32", TF_INT32, 4, KIND_SIGNED},
    {"int64", TF_INT64, 8, KIND_SIGNED},
    {"qint8", TF_QINT8, 1, KIND_SIGNED},
    {"qint16", TF_QINT16, 2, KIND_SIGNED},
    {"qint32", TF_QINT32, 4, KIND_SIGNED},
    {"uint4", TF_UINT4, 1, KIND_UNSIGNED},
    {"uint8", TF_UINT8, 1, KIND_UNSIGNED},
    {"uint16", TF_UINT16, 2, KIND_UNSIGNED},
    {"uint32", TF_UINT32, 4, KIND_UNSIGNED},
    {"uint64", TF_UINT64, 8, KIND_UNSIGNED},
    {"quint8", TF_QUINT8, 1, KIND_UNSIGNED},
    {"quint16", TF_QUINT16, 2, KIND_UNSIGNED},
    {"bool", TF_BOOL, 1, KIND_BOOL},
    {"string", TF_STRING, sizeof(TF_TString), KIND_STRING},
    {"resource", TF_RESOURCE, 0, KIND_HANDLE},
    {"variant", TF_VARIANT, 0, KIND_HANDLE},
};

const dtype_t* dtype_by_name(const char* name) {
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    if (strcmp(dtypes[i].name, name) == 0) return &dtypes[i];
  }
  return NULL;
}

const dtype_t* dtype_by_type(TF_DataType type) {
  const int base = type > 100 ? (int)type - 100 : (int)type;
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    if ((int)dtypes[i].type == base) return &dtypes[i];
  }
  return NULL;
}

// A few units in the last place: elementary functions are not rounded correctly in either library.
// Stock's own errors on these tables are a quarter of this at most. Sums need a "tol" of their own.
tolerance_t tolerance_of(TF_DataType type) {
  switch (type) {
    case TF_FLOAT:
    case TF_COMPLEX64:
      return (tolerance_t){5e-7, 2e-6, 0};
    case TF_DOUBLE:
    case TF_COMPLEX128:
      return (tolerance_t){4e-15, 2e-14, 0};
    case TF_HALF:
      return (tolerance_t){2e-4, 2e-3, 0};
    case TF_BFLOAT16:
      return (tolerance_t){1e-3, 1.6e-2, 0};
    default:
      return (tolerance_t){0, 0, 0};
  }
}

// |ulps| as the other two.
static tolerance_t spelled_out(const tolerance_t* t, TF_DataType type) {
  switch (type) {
    case TF_FLOAT:
    case TF_COMPLEX64:
      return (tolerance_t){0x1p-126, t->ulps * 0x1p-23, 0};
    case TF_DOUBLE:
    case TF_COMPLEX128:
      return (tolerance_t){0x1p-1022, t->ulps * 0x1p-52, 0};
    case TF_HALF:
      return (tolerance_t){t->ulps * 0x1p-24, t->ulps * 0x1p-10, 0};
    case TF_BFLOAT16:
      return (tolerance_t){0x1p-126, t->ulps * 0x1p-7, 0};
    default:
      return (tolerance_t){0, 0, 0};
  }
}

// An IEEE-like format of |eb| exponent and |mb| mantissa bits; |top| is what overflow becomes.
static uint32_t narrow(double v, int eb, int mb, uint32_t top, uint32_t nan) {
  const uint32_t sign = signbit(v) ? 1u << (eb + mb) : 0;
  if (isnan(v)) return sign | nan;
  if (isinf(v)) return sign | top;
  const int bias = (1 << (eb - 1)) - 1;
  int e = 0;
  frexp(v, &e);
  e = v == 0 || e - 1 < 1 - bias ? 1 - bias : e - 1;
  const uint64_t q = (uint64_t)nearbyint(ldexp(fabs(v), mb - e));
  const uint64_t bits = ((uint64_t)(e + bias - 1) << mb) + q;
  return sign | (bits > top ? top : (uint32_t)bits);
}

static double widen(uint32_t bits, int eb, int mb) {
  const int bias = (1 << (eb - 1)) - 1, e = (int)(bits >> mb) & ((1 << eb) - 1);
  const uint32_t m = bits & ((1u << mb) - 1);
  const double s = bits >> (eb + mb) & 1 ? -1 : 1;
  if (e == (1 << eb) - 1) return m ? NAN : s * INFINITY;
  return s * ldexp(e ? m + (1u << mb) : m, (e ? e : 1) - bias - mb);
}

static double real_get(TF_DataType type, const void* p) {
  uint16_t h;
  float f;
  double d;
  switch (type) {
    case TF_FLOAT:
    case TF_COMPLEX64:
      memcpy(&f, p, sizeof f);
      return f;
    case TF_DOUBLE:
    case TF_COMPLEX128:
      memcpy(&d, p, sizeof d);
      return d;
    case TF_HALF:
      memcpy(&h, p, sizeof h);
      return widen(h, 5, 10);
    case TF_BFLOAT16:
      memcpy(&h, p, sizeof h);
      return widen(h, 8, 7);
    case TF_FLOAT8_E5M2:
      return widen(*(const uint8_t*)p, 5, 2);
    case TF_FLOAT8_E4M3FN:
      if ((*(const uint8_t*)p & 0x7f) == 0x7f) return NAN;
      if ((*(const uint8_t*)p & 0x78) != 0x78) return widen(*(const uint8_t*)p, 4, 3);
      return (*(const uint8_t*)p & 0x80 ? -1 : 1) * (8 + (*(const uint8_t*)p & 7)) * 32.0;
    default:
      return NAN;
  }
}

static void real_set(TF_DataType type, void* p, double v) {
  const float f = (float)v;
  uint16_t h;
  switch (type) {
    case TF_FLOAT:
    case TF_COMPLEX64:
      memcpy(p, &f, sizeof f);
      break;
    case TF_DOUBLE:
    case TF_COMPLEX128:
      memcpy(p, &v, sizeof v);
      break;
    case TF_HALF:
      h = (uint16_t)narrow(v, 5, 10, 0x7c00, 0x7e00);
      memcpy(p, &h, sizeof h);
      break;
    case TF_BFLOAT16:  // by way of float, as NumPy's extension type goes
      h = (uint16_t)narrow(f, 8, 7, 0x7f80, 0x7fc0);
      memcpy(p, &h, sizeof h);
      break;
    case TF_FLOAT8_E5M2:
      *(uint8_t*)p = (uint8_t)narrow(v, 5, 2, 0x7c, 0x7e);
      break;
    case TF_FLOAT8_E4M3FN:
      *(uint8_t*)p = (uint8_t)narrow(v, 4, 3, 0x7f, 0x7f);
      break;
    default:
      break;
  }
}

size_t value_count(const TF_Tensor* tensor) { return (size_t)TF_TensorElementCount(tensor); }

static const dtype_t* part_type(const TF_Tensor* tensor) {
  const TF_DataType type = TF_TensorType(tensor);
  return dtype_by_type(type == TF_COMPLEX64 ? TF_FLOAT : type == TF_COMPLEX128 ? TF_DOUBLE : type);
}

size_t value_parts(const TF_Tensor* tensor) {
  const bool is_complex = dtype_by_type(TF_TensorType(tensor))->kind == KIND_COMPLEX;
  return value_count(tensor) * (is_complex ? 2 : 1);
}

double value_get(const TF_Tensor* tensor, size_t i) {
  const dtype_t* dtype = part_type(tensor);
  return real_get(dtype->type, (const char*)TF_TensorData(tensor) + i * dtype->size);
}

void value_set(TF_Tensor* tensor, size_t i, double v) {
  const dtype_t* dtype = part_type(tensor);
  real_set(dtype->type, (char*)TF_TensorData(tensor) + i * dtype->size, v);
}

// The finaliser of splitmix64 at seed * 2^32 + i + 1, as the recorder draws.
static uint64_t splitmix64(uint64_t seed, uint64_t i) {
  uint64_t x = ((seed << 32) + i + 1) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

static double draw_real(uint64_t z, double lo, double hi) {
  return lo + (hi - lo) * ((double)(z >> 40) / 16777216.0);
}

static void draw_element(const dtype_t* dtype, void* p, uint64_t seed, uint64_t i, double lo,
                         double hi) {
  const uint64_t z = splitmix64(seed, i);
  switch (dtype->kind) {
    case KIND_FLOAT:
      real_set(dtype->type, p, draw_real(z, lo, hi));
      break;
    case KIND_COMPLEX:
      real_set(dtype->type, p, draw_real(splitmix64(seed, 2 * i), lo, hi));
      real_set(dtype->type, (char*)p + dtype->size / 2,
               draw_real(splitmix64(seed, 2 * i + 1), lo, hi));
      break;
    case KIND_BOOL:
      *(uint8_t*)p = z & 1;
      break;
    case KIND_STRING: {
      char text[8];
      const int n = snprintf(text, sizeof text, "s%u", (unsigned)(z % 100));
      TF_StringCopy(p, text, (size_t)n);
      break;
    }
    default: {  // little-endian: the low bytes are the narrower integer
      const int64_t v = (int64_t)lo + (int64_t)(z % (uint64_t)((int64_t)hi - (int64_t)lo));
      memcpy(p, &v, dtype->size);
    }
  }
}

static TF_Tensor* allocate(const dtype_t* dtype, const int64_t* dims, int rank) {
  size_t n = dtype->size;
  for (int i = 0; i < rank; i++) n *= (size_t)dims[i];
  TF_Tensor* tensor = TF_AllocateTensor(dtype->type, dims, rank, n);
  if (!tensor) abort();
  if (dtype->kind == KIND_STRING) {
    TF_TString* s = TF_TensorData(tensor);
    for (size_t i = 0; i < value_count(tensor); i++) TF_StringInit(&s[i]);
  }
  return tensor;
}

static void draw_all(TF_Tensor* tensor, const dtype_t* dtype, uint64_t seed, double lo, double hi) {
  char* p = TF_TensorData(tensor);
  for (size_t i = 0; i < value_count(tensor); i++) {
    draw_element(dtype, p + i * dtype->size, seed, i, lo, hi);
  }
}

TF_Tensor* value_draw(TF_DataType type, const int64_t* dims, int rank, uint64_t seed) {
  const dtype_t* dtype = dtype_by_type(type);
  TF_Tensor* tensor = allocate(dtype, dims, rank);
  draw_all(tensor, dtype, seed, -1, 1);
  return tensor;
}

TF_Tensor* value_copy(const TF_Tensor* tensor) {
  int64_t dims[MAX_RANK];
  const int rank = TF_NumDims(tensor);
  for (int i = 0; i < rank; i++) dims[i] = TF_Dim(tensor, i);
  TF_Tensor* copy = allocate(dtype_by_type(TF_TensorType(tensor)), dims, rank);
  if (TF_TensorByteSize(tensor)) {
    memcpy(TF_TensorData(copy), TF_TensorData(tensor), TF_TensorByteSize(tensor));
  }
  return copy;
}

static size_t base64_decode(const char* text, unsigned char* out) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  size_t n = 0;
  unsigned bits = 0;
  int have = 0;
  for (; *text && *text != '='; text++) {
    const char* d = strchr(digits, *text);
    bits = bits << 6 | (unsigned)(d ? d - digits : 0);
    have += 6;
    if (have >= 8) out[n++] = (unsigned char)(bits >> (have -= 8));
  }
  return n;
}

static void set_string(TF_TString* s, const json_t* v) {
  const char* b64 = json_string_value(json_object_get(v, "b64"));
  if (!b64) {
    TF_StringCopy(s, json_string_value(v), json_string_length(v));
    return;
  }
  unsigned char* bytes = malloc(strlen(b64) + 1);
  if (!bytes) abort();
  TF_StringCopy(s, (char*)bytes, base64_decode(b64, bytes));
  free(bytes);
}

static double real_of(const json_t* v) {
  return json_is_string(v) ? strtod(json_string_value(v), NULL) : json_number_value(v);
}

static void set_element(const dtype_t* dtype, void* p, const json_t* v) {
  switch (dtype->kind) {
    case KIND_FLOAT:
      real_set(dtype->type, p, real_of(v));
      break;
    case KIND_COMPLEX:
      real_set(dtype->type, p, real_of(json_is_array(v) ? json_array_get(v, 0) : v));
      real_set(dtype->type, (char*)p + dtype->size / 2,
               json_is_array(v) ? real_of(json_array_get(v, 1)) : 0);
      break;
    case KIND_BOOL:
      *(uint8_t*)p = json_is_boolean(v) ? json_is_true(v) : real_of(v) != 0;
      break;
    case KIND_STRING:
      set_string(p, v);
      break;
    default: {
      uint64_t n = json_is_string(v) ? strtoull(json_string_value(v), NULL, 10)
                                     : (uint64_t)json_integer_value(v);
      memcpy(p, &n, dtype->size);
    }
  }
}

static double bound(const json_t* spec, const char* name, const dtype_t* dtype) {
  const json_t* v = json_object_get(spec, name);
  if (v) return json_number_value(v);
  const bool is_lo = name[0] == 'l';
  if (dtype->kind == KIND_FLOAT || dtype->kind == KIND_COMPLEX) return is_lo ? -1 : 1;
  if (dtype->kind == KIND_UNSIGNED) return is_lo ? 0 : 16;
  return is_lo ? -8 : 8;
}

TF_Tensor* value_create(const json_t* spec, char* why, size_t why_size) {
  const char* name = json_string_value(json_object_get(spec, "dtype"));
  const dtype_t* dtype = name ? dtype_by_name(name) : NULL;
  if (!dtype || !dtype->size) {
    snprintf(why, why_size, "no such dtype: %s", name ? name : "(none)");
    return NULL;
  }
  const json_t* shape = json_object_get(spec, "shape");
  const size_t rank = json_array_size(shape);
  int64_t dims[MAX_RANK];
  if (rank > MAX_RANK) {
    snprintf(why, why_size, "rank %zu", rank);
    return NULL;
  }
  for (size_t i = 0; i < rank; i++) dims[i] = json_integer_value(json_array_get(shape, i));
  TF_Tensor* tensor = allocate(dtype, dims, (int)rank);
  const json_t* seed = json_object_get(spec, "seed");
  if (seed) {
    draw_all(tensor, dtype, (uint64_t)json_integer_value(seed), bound(spec, "lo", dtype),
             bound(spec, "hi", dtype));
    return tensor;
  }
  const json_t* values = json_object_get(spec, "values");
  const size_t n = value_count(tensor), given = json_array_size(values);
  if (given != n && given != 1) {
    snprintf(why, why_size, "%zu values for %zu elements", given, n);
    TF_DeleteTensor(tensor);
    return NULL;
  }
  char* p = TF_TensorData(tensor);
  for (size_t i = 0; i < n; i++) {
    set_element(dtype, p + i * dtype->size, json_array_get(values, given == 1 ? 0 : i));
  }
  return tensor;
}

static void print_string(const TF_TString* s, char* out, size_t size) {
  const char* p = TF_StringGetDataPointer(s);
  size_t n = (size_t)snprintf(out, size, "%zu bytes \"", TF_StringGetSize(s));
  for (size_t i = 0; i < TF_StringGetSize(s) && n + 6 < size; i++) {
    const unsigned char c = (unsigned char)p[i];
    n += (size_t)snprintf(out + n, size - n, c < 32 || c > 126 ? "\\x%02x" : "%c", c);
  }
  snprintf(out + n, size - n, "\"");
}

static void print_element(const dtype_t* dtype, const void* p, char* out, size_t size) {
  int64_t n = 0;
  switch (dtype->kind) {
    case KIND_FLOAT:
      snprintf(out, size, "%.17g", real_get(dtype->type, p));
      break;
    case KIND_COMPLEX:
      snprintf(out, size, "%.17g%+.17gi", real_get(dtype->type, p),
               real_get(dtype->type, (const char*)p + dtype->size / 2));
      break;
    case KIND_STRING:
      print_string(p, out, size);
      break;
    case KIND_SIGNED:
      memcpy((char*)&n + 8 - dtype->size, p, dtype->size);
      snprintf(out, size, "%lld", (long long)(n >> (64 - 8 * dtype->size)));
      break;
    default:
      memcpy(&n, p, dtype->size);
      snprintf(out, size, "%llu", (unsigned long long)n);
  }
}

static bool real_matches(double got, double want, double scale, const tolerance_t* t) {
  if (isnan(want) || isnan(got)) return isnan(want) && isnan(got);
  if (isinf(want) || isinf(got)) return want == got;
  return fabs(got - want) <= t->absolute + t->relative * scale;
}

static bool element_matches(const dtype_t* dtype, const void* got, const void* want,
                            const tolerance_t* t) {
  const bool exact = t->absolute == 0 && t->relative == 0;
  if (dtype->kind == KIND_STRING) {
    const size_t n = TF_StringGetSize(got);
    return n == TF_StringGetSize(want) &&
           (n == 0 || memcmp(TF_StringGetDataPointer(got), TF_StringGetDataPointer(want), n) == 0);
  }
  if (memcmp(got, want, dtype->size) == 0) return true;
  if (dtype->kind == KIND_FLOAT) {
    const double a = real_get(dtype->type, got), b = real_get(dtype->type, want);
    return exact ? isnan(a) && isnan(b) : real_matches(a, b, fabs(b), t);
  }
  if (dtype->kind == KIND_COMPLEX) {
    const char *g = got, *w = want;
    const size_t half = dtype->size / 2;
    const double re = real_get(dtype->type, w), im = real_get(dtype->type, w + half);
    const double scale = isfinite(re) && isfinite(im) ? hypot(re, im) : 0;
    return real_matches(real_get(dtype->type, g), re, scale, t) &&
           real_matches(real_get(dtype->type, g + half), im, scale, t);
  }
  return false;
}

static void print_shape(const TF_Tensor* tensor, char* out, size_t size) {
  size_t n = (size_t)snprintf(out, size, "%s[", dtype_by_type(TF_TensorType(tensor))->name);
  for (int i = 0; i < TF_NumDims(tensor) && n < size; i++) {
    n += (size_t)snprintf(out + n, size - n, "%s%lld", i ? "," : "", (long long)TF_Dim(tensor, i));
  }
  if (n < size) snprintf(out + n, size - n, "]");
}

static bool same_form(const TF_Tensor* got, const TF_Tensor* want, char* why, size_t why_size) {
  bool same = TF_TensorType(got) == TF_TensorType(want) && TF_NumDims(got) == TF_NumDims(want);
  for (int i = 0; same && i < TF_NumDims(got); i++) same = TF_Dim(got, i) == TF_Dim(want, i);
  if (same) return true;
  char a[128], b[128];
  print_shape(got, a, sizeof a);
  print_shape(want, b, sizeof b);
  snprintf(why, why_size, "is %s, should be %s", a, b);
  return false;
}

bool value_matches(const TF_Tensor* got, const json_t* want_json, const tolerance_t* tolerance,
                   char* why, size_t why_size) {
  const dtype_t* dtype = dtype_by_type(TF_TensorType(got));
  if (!dtype || !dtype->size) {
    snprintf(why, why_size, "has dtype %d", (int)TF_TensorType(got));
    return false;
  }
  // An output whose values mean nothing is recorded without them, one that may have any shape
  // without that, too.
  if (!json_object_get(want_json, "shape")) {
    const char* name = json_string_value(json_object_get(want_json, "dtype"));
    const dtype_t* want = name ? dtype_by_name(name) : NULL;
    if (want != dtype) snprintf(why, why_size, "is %s, should be %s", dtype->name, name);
    return want == dtype;
  }
  json_t* form = json_object_get(want_json, "values") ? NULL : json_copy((json_t*)want_json);
  if (form) json_object_set_new(form, "seed", json_integer(0));
  TF_Tensor* want = value_create(form ? form : want_json, why, why_size);
  const bool is_undefined = form != NULL;
  json_decref(form);
  if (!want) return false;
  tolerance_t t = tolerance ? *tolerance : tolerance_of(dtype->type);
  if (t.ulps > 0) t = spelled_out(&t, dtype->type);
  bool same = same_form(got, want, why, why_size);
  size_t wrong = 0;
  for (size_t i = 0; same && !is_undefined && i < value_count(want); i++) {
    const char* g = (const char*)TF_TensorData(got) + i * dtype->size;
    const char* w = (const char*)TF_TensorData(want) + i * dtype->size;
    if (element_matches(dtype, g, w, &t)) continue;
    char a[96], b[96];
    print_element(dtype, g, a, sizeof a);
    print_element(dtype, w, b, sizeof b);
    if (!wrong++) snprintf(why, why_size, "[%zu] is %s, should be %s", i, a, b);
  }
  if (wrong > 1) {
    const size_t n = strlen(why);
    snprintf(why + n, why_size - n, " (%zu of %zu elements differ)", wrong, value_count(want));
  }
  TF_DeleteTensor(want);
  return same && !wrong;
}
