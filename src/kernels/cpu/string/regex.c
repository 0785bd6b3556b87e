// Regular expressions: RE2's language and semantics, matched by PCRE2 under limits.
//
// What RE2 does not have (back references, lookaround, control verbs) is rejected when the pattern
// is compiled. The rest means the same in both. Matching time is limited: a pattern that backtracks
// too much ends with a status.
//
// As in RE2, an invalid byte matches nothing, and no match crosses one: a text is searched in
// fragments of valid UTF-8.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/string/text.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

#define MATCH_LIMIT 2000000
#define HEAP_LIMIT_KIB (64 * 1024)

typedef struct regex_t {
  pcre2_code* code;
  pcre2_match_data* match;
  pcre2_match_context* limits;
} regex_t;

static void regex_clear(regex_t* regex) {
  pcre2_match_context_free(regex->limits);
  pcre2_match_data_free(regex->match);
  pcre2_code_free(regex->code);
  *regex = (regex_t){0};
}

static rn_status_t bad_pattern(rn_str_t pattern, const char* what, rn_str_t where) {
  return rn_invalid_argument("Invalid pattern: %.*s, error: %s: %.*s", RN_STR_ARGS(pattern), what,
                             RN_STR_ARGS(where));
}

// Rejects what only PCRE2 understands.
static rn_status_t check_language(rn_str_t pattern) {
  bool in_class = false;
  for (size_t i = 0; i < pattern.size; ++i) {
    rn_str_t rest = rn_str_n(pattern.data + i, pattern.size - i);
    char c = rest.data[0];
    if (c == '\\' && rest.size > 1) {
      char next = rest.data[1];
      if (next == 'Q') {
        while (i + 1 < pattern.size && !rn_str_starts_with(rest, RN_STR("\\E"))) {
          ++i;
          rest = rn_str_n(pattern.data + i, pattern.size - i);
        }
      } else if (strchr(in_class ? "KRXZGhHNgkoceu" : "KRXZGhHNgkoceu123456789", next)) {
        return bad_pattern(pattern, "invalid escape sequence", rn_str_n(rest.data, 2));
      }
      ++i;
    } else if (in_class) {
      // "[:" opens a named class, which has its own "]".
      if (rn_str_starts_with(rest, RN_STR("[:"))) {
        while (i + 1 < pattern.size && pattern.data[i + 1] != ']') ++i;
        ++i;
      } else if (c == ']') {
        in_class = false;
      }
    } else if (c == '[') {
      in_class = true;
      // A leading bracket is a member of the class.
      if (i + 1 < pattern.size && pattern.data[i + 1] == '^') ++i;
      if (i + 1 < pattern.size && pattern.data[i + 1] == ']') ++i;
    } else if (rn_str_starts_with(rest, RN_STR("(*"))) {
      return bad_pattern(pattern, "no argument for repetition operator", RN_STR("*"));
    } else if (rn_str_starts_with(rest, RN_STR("(?"))) {
      char kind = rest.size > 2 ? rest.data[2] : '\0';
      bool is_named = kind == 'P' && rest.size > 3 && rest.data[3] == '<';
      bool looks_behind =
          kind == '<' && rest.size > 3 && (rest.data[3] == '=' || rest.data[3] == '!');
      if (!is_named && (looks_behind || !kind || !strchr(":imsU-<", kind)))
        return bad_pattern(pattern, "invalid perl operator",
                           rn_str_n(rest.data, rest.size < 3 ? rest.size : 3));
    }
  }
  return RN_OK;
}

static rn_status_t compile_error(rn_str_t pattern, int error, size_t offset) {
  if (offset > pattern.size) offset = pattern.size;
  switch (error) {
    case PCRE2_ERROR_MISSING_CLOSING_PARENTHESIS:
      return bad_pattern(pattern, "missing )", pattern);
    case PCRE2_ERROR_UNMATCHED_CLOSING_PARENTHESIS:
      return bad_pattern(pattern, "unexpected )", pattern);
    case PCRE2_ERROR_MISSING_SQUARE_BRACKET: {
      size_t open = pattern.size;
      while (open > 0 && pattern.data[open - 1] != '[') --open;
      open = open ? open - 1 : 0;
      return bad_pattern(pattern, "missing ]", rn_str_n(pattern.data + open, pattern.size - open));
    }
    case PCRE2_ERROR_QUANTIFIER_INVALID: {
      size_t at = offset ? offset - 1 : 0;
      return bad_pattern(pattern, "no argument for repetition operator",
                         rn_str_n(pattern.data + at, at < pattern.size));
    }
    case PCRE2_ERROR_END_BACKSLASH:
      return bad_pattern(pattern, "trailing \\", RN_STR(""));
    case PCRE2_ERROR_HEAP_FAILED:
      return rn_out_of_memory();
    default: {
      PCRE2_UCHAR text[120];
      pcre2_get_error_message(error, text, sizeof text);
      return bad_pattern(pattern, (const char*)text, pattern);
    }
  }
}

static rn_status_t regex_compile(rn_str_t pattern, bool is_full, regex_t* out) {
  *out = (regex_t){0};
  RN_RETURN_IF_ERROR(check_language(pattern));
  int error = 0;
  PCRE2_SIZE offset = 0;
  uint32_t options = PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C;
  if (is_full) options |= PCRE2_ANCHORED | PCRE2_ENDANCHORED;
  out->code = pcre2_compile((PCRE2_SPTR)(pattern.data ? pattern.data : ""), pattern.size, options,
                            &error, &offset, NULL);
  if (!out->code) return compile_error(pattern, error, offset);
  out->match = pcre2_match_data_create_from_pattern(out->code, NULL);
  out->limits = pcre2_match_context_create(NULL);
  if (!out->match || !out->limits) {
    regex_clear(out);
    return rn_out_of_memory();
  }
  // Where the system allows no code to be made at run time, the interpreter matches.
  (void)pcre2_jit_compile(out->code, PCRE2_JIT_COMPLETE);
  pcre2_set_match_limit(out->limits, MATCH_LIMIT);
  pcre2_set_heap_limit(out->limits, HEAP_LIMIT_KIB);
  return RN_OK;
}

// Bytes [begin, end) of a text, delimited by invalid bytes or the text's ends. May be empty.
typedef struct fragment_t {
  size_t begin, end;
} fragment_t;

static fragment_t fragment_from(rn_str_t text, size_t begin) {
  size_t end = begin;
  while (end < text.size) {
    uint64_t eight;
    if (end + sizeof eight <= text.size) {
      memcpy(&eight, text.data + end, sizeof eight);
      if (!(eight & UINT64_C(0x8080808080808080))) {  // ASCII
        end += sizeof eight;
        continue;
      }
    }
    uint32_t code;
    size_t size = rn_utf8_decode(rn_str_n(text.data + end, text.size - end), &code);
    if (code == RN_UTF8_BAD) break;
    end += size;
  }
  return (fragment_t){begin, end};
}

// Searches one fragment. |*out_count| is the number of groups that were set, 0 without a match;
// groups are relative to the fragment's start.
static rn_status_t regex_match(const regex_t* regex, rn_str_t text, fragment_t fragment,
                               size_t from, int* out_count) {
  uint32_t options = PCRE2_NO_UTF_CHECK | (fragment.begin > 0 ? PCRE2_NOTBOL : 0) |
                     (fragment.end < text.size ? PCRE2_NOTEOL : 0);
  const char* data = text.data ? text.data + fragment.begin : "";
  int count = pcre2_match(regex->code, (PCRE2_SPTR)data, fragment.end - fragment.begin,
                          from - fragment.begin, options, regex->match, regex->limits);
  if (count == PCRE2_ERROR_JIT_STACKLIMIT)
    count = pcre2_match(regex->code, (PCRE2_SPTR)data, fragment.end - fragment.begin,
                        from - fragment.begin, options | PCRE2_NO_JIT, regex->match, regex->limits);
  *out_count = count > 0 ? count : 0;
  if (count >= 0 || count == PCRE2_ERROR_NOMATCH) return RN_OK;
  PCRE2_UCHAR message[120];
  pcre2_get_error_message(count, message, sizeof message);
  return rn_resource_exhausted("Matching a regular expression exceeded a limit: %s",
                               (const char*)message);
}

// Searches from |at| on, which is in |*inout_fragment|; sets that to the fragment of the match.
static rn_status_t regex_find(const regex_t* regex, rn_str_t text, size_t at,
                              fragment_t* inout_fragment, int* out_count) {
  for (;;) {
    RN_RETURN_IF_ERROR(regex_match(regex, text, *inout_fragment, at, out_count));
    if (*out_count > 0 || inout_fragment->end == text.size) return RN_OK;
    at = inout_fragment->end + 1;
    *inout_fragment = fragment_from(text, at);
  }
}

// Appends the rewrite of a match. False if the rewrite ends in a backslash or has an invalid
// escape; then |out| has what came before it.
static bool rewrite_match(const regex_t* regex, const char* fragment, rn_str_t rewrite, int groups,
                          rn_strbuf_t* out) {
  const PCRE2_SIZE* spans = pcre2_get_ovector_pointer(regex->match);
  for (size_t i = 0; i < rewrite.size; ++i) {
    char c = rewrite.data[i];
    if (c != '\\') {
      rn_strbuf_append_n(out, &c, 1);
      continue;
    }
    if (++i == rewrite.size) return false;
    char next = rewrite.data[i];
    int group = next - '0';
    if (next != '\\' && (next < '0' || next > '9')) return false;
    if (next == '\\')
      rn_strbuf_append_n(out, "\\", 1);
    else if (group < groups && spans[2 * group] != PCRE2_UNSET)
      rn_strbuf_append_n(out, fragment + spans[2 * group], spans[2 * group + 1] - spans[2 * group]);
  }
  return true;
}

// A rewrite that refers to a missing group changes nothing.
static bool rewrite_fits(const regex_t* regex, rn_str_t rewrite) {
  uint32_t groups = 0;
  pcre2_pattern_info(regex->code, PCRE2_INFO_CAPTURECOUNT, &groups);
  for (size_t i = 0; i + 1 < rewrite.size; ++i) {
    if (rewrite.data[i] != '\\') continue;
    char next = rewrite.data[++i];
    if (next >= '0' && next <= '9' && (uint32_t)(next - '0') > groups) return false;
  }
  return true;
}

static rn_status_t replace_one(const regex_t* regex, rn_str_t text, rn_str_t rewrite,
                               bool is_global, rn_strbuf_t* out) {
  size_t at = 0, last_end = SIZE_MAX;
  fragment_t fragment = fragment_from(text, 0);
  while (at <= text.size) {
    int groups;
    RN_RETURN_IF_ERROR(regex_find(regex, text, at, &fragment, &groups));
    if (groups == 0) break;
    const PCRE2_SIZE* spans = pcre2_get_ovector_pointer(regex->match);
    size_t begin = fragment.begin + spans[0], end = fragment.begin + spans[1];
    if (begin > at) rn_strbuf_append_n(out, text.data + at, begin - at);
    if (begin == end && begin == last_end) {
      // An empty match right after the last one: continue with the next character or invalid byte.
      at = begin;
      if (at == text.size) break;
      uint32_t code;
      size_t size = rn_utf8_decode(rn_str_n(text.data + at, text.size - at), &code);
      rn_strbuf_append_n(out, text.data + at, size);
      at += size;
      if (at > fragment.end) fragment = fragment_from(text, at);
      continue;
    }
    bool is_whole = rewrite_match(regex, text.data + fragment.begin, rewrite, groups, out);
    if (!is_whole &&
        !is_global) {  // as in RE2, a single replacement fails, a global one does what it can
      out->size = 0;
      at = 0;
      break;
    }
    at = last_end = end;
    if (!is_global) break;
  }
  if (at < text.size) rn_strbuf_append_n(out, text.data + at, text.size - at);
  return rn_strbuf_status(out);
}

// The kernels. Static ops have the pattern in their attributes and compile it once; |mutex| then
// guards what a match writes.
typedef struct pattern_t {
  rn_allocator_t allocator;
  rn_mutex_t mutex;
  regex_t regex;  // for static ops
  bool is_static, is_global;
  char* rewrite;  // Owned
  size_t rewrite_size;
} pattern_t;

static rn_status_t pattern_init(const rn_kernel_init_t* init, void* state) {
  pattern_t* pattern = state;
  pattern->allocator = init->allocator;
  rn_mutex_init(&pattern->mutex);
  pattern->is_static = strncmp(init->op->name, "Static", 6) == 0;
  pattern->is_global = rn_init_attr(init, "replace_global")->b;
  if (!pattern->is_static) return RN_OK;
  bool is_full = rn_op_attr_index(init->op, RN_STR("rewrite")) < 0;
  if (!is_full) {
    rn_str_t rewrite = rn_init_string(init, "rewrite");
    RN_RETURN_IF_ERROR(rn_str_dup(init->allocator, rewrite, &pattern->rewrite));
    pattern->rewrite_size = rewrite.size;
  }
  return regex_compile(rn_init_string(init, "pattern"), is_full, &pattern->regex);
}

static void pattern_destroy(void* state) {
  pattern_t* pattern = state;
  regex_clear(&pattern->regex);
  if (pattern->rewrite) rn_free(pattern->allocator, pattern->rewrite, pattern->rewrite_size + 1);
  rn_mutex_destroy(&pattern->mutex);
}

static rn_status_t scalar_text(const rn_kernel_ctx_t* ctx, int i, const char* name, rn_str_t* out) {
  const rn_tensor_t* input = rn_in(ctx, i);
  if (input->rank != 0)
    return rn_invalid_argument("%s must be scalar, but received %s", name, rn_text_of(input).text);
  *out = rn_tstring_view(RN_DATA(input, const rn_tstring_t));
  return RN_OK;
}

static rn_status_t match_all(rn_kernel_ctx_t* ctx, const regex_t* regex) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(input), &out));
  for (int64_t i = 0; i < input->count; ++i) {
    int groups = 0;
    rn_str_t text = rn_tstring_view(&RN_DATA(input, const rn_tstring_t)[i]);
    fragment_t all = fragment_from(text, 0);
    if (all.end == text.size) RN_RETURN_IF_ERROR(regex_match(regex, text, all, 0, &groups));
    RN_DATA(out, bool)[i] = groups > 0;
  }
  return RN_OK;
}

static rn_status_t replace_all(rn_kernel_ctx_t* ctx, const regex_t* regex, rn_str_t rewrite,
                               bool is_global) {
  if (!rewrite_fits(regex, rewrite)) return rn_forward(ctx, 0, 0);
  const rn_tensor_t* input = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(input), &out));
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  rn_status_t status = RN_OK;
  for (int64_t i = 0; rn_ok(status) && i < input->count; ++i) {
    buf.size = 0;
    status = replace_one(regex, rn_tstring_view(&RN_DATA(input, const rn_tstring_t)[i]), rewrite,
                         is_global, &buf);
    if (rn_ok(status) &&
        !rn_tstring_assign(&RN_DATA(out, rn_tstring_t)[i], rn_strbuf_view(&buf).data, buf.size))
      status = rn_out_of_memory();
  }
  rn_strbuf_clear(&buf);
  return status;
}

static rn_status_t full_match(rn_kernel_ctx_t* ctx) {
  pattern_t* pattern = ctx->state;
  rn_status_t status;
  if (pattern->is_static) {
    rn_mutex_lock(&pattern->mutex);
    status = match_all(ctx, &pattern->regex);
    rn_mutex_unlock(&pattern->mutex);
    return status;
  }
  rn_str_t text;
  RN_RETURN_IF_ERROR(scalar_text(ctx, 1, "Pattern", &text));
  regex_t regex;
  RN_RETURN_IF_ERROR(regex_compile(text, true, &regex));
  status = match_all(ctx, &regex);
  regex_clear(&regex);
  return status;
}

static rn_status_t replace(rn_kernel_ctx_t* ctx) {
  pattern_t* pattern = ctx->state;
  rn_status_t status;
  if (pattern->is_static) {
    rn_mutex_lock(&pattern->mutex);
    status = replace_all(ctx, &pattern->regex, rn_str_n(pattern->rewrite, pattern->rewrite_size),
                         pattern->is_global);
    rn_mutex_unlock(&pattern->mutex);
    return status;
  }
  rn_str_t text, rewrite;
  RN_RETURN_IF_ERROR(scalar_text(ctx, 1, "Pattern", &text));
  RN_RETURN_IF_ERROR(scalar_text(ctx, 2, "Rewrite", &rewrite));
  regex_t regex;
  RN_RETURN_IF_ERROR(regex_compile(text, false, &regex));
  status = replace_all(ctx, &regex, rewrite, pattern->is_global);
  regex_clear(&regex);
  return status;
}

#define REGEX(name, function)                                                           \
  {                                                                                     \
    .op = name, .device = "CPU", .state_size = sizeof(pattern_t), .init = pattern_init, \
    .destroy = pattern_destroy, .compute = function                                     \
  }

static const rn_kernel_def_t rows[] = {
    REGEX("RegexFullMatch", full_match), REGEX("StaticRegexFullMatch", full_match),
    REGEX("RegexReplace", replace), REGEX("StaticRegexReplace", replace)};
RN_KERNEL_FAMILY(cpu_regex, rows);
