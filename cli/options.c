// Parses the arguments of a sub-command and makes usage errors: see cli.h.
#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "cli/cli.h"

const rn_cli_option_t rn_cli_common_options[] = {
    RN_OPTION(CHOICE, "--color", "WHEN",
              "auto, always or never; auto (the default) is on terminals, unless NO_COLOR is set",
              .choices = "auto always never"),
    RN_OPTION(FLAG, "--help", NULL, "print this", .also = "-h"),
    {0},
};

rn_status_t rn_cli_usage(const rn_cli_t* cli, const char* format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  const char* name = cli->command ? cli->command->name : NULL;
  size_t size = strlen(text);
  const char* next = size && text[size - 1] == '?' ? " Try" : "; try";
  rn_status_t status =
      name ? rn_invalid_argument("%s%s%s: %s%s 'runnel help %s'", name, cli->verb ? " " : "",
                                 cli->verb ? cli->verb->name : "", text, next, name)
           : rn_invalid_argument("%s%s 'runnel help'", text, next);
  rn_status_set_payload(status, "runnel/usage", name ? name : "");
  return status;
}

static void copy_payload(const char* key, const char* value, void* arg) {
  rn_status_set_payload(arg, key, value);
}

rn_status_t rn_cli_prefix(rn_status_t status, const char* format, ...) {
  if (rn_ok(status)) return RN_OK;
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  rn_status_t longer =
      rn_status_make(rn_status_code(status), "%s%s", text, rn_status_message(status));
  rn_status_each_payload(status, copy_payload, longer);
  rn_status_free(status);
  return longer;
}

rn_status_t rn_cli_at(rn_status_t status, const char* path) {
  if (rn_ok(status)) return RN_OK;
  const char *message = rn_status_message(status), *found = *path ? strstr(message, path) : NULL;
  if (!found) return rn_cli_prefix(status, "'%s': ", path);
  if (found > message && strchr("'\"", found[-1])) return status;
  // If the path begins a longer name, quotes the whole name. File systems report "name; reason".
  int size = (int)strlen(path) + (int)strcspn(found + strlen(path), " :;,'\"");
  while (size > (int)strlen(path) && found[size - 1] == '.') --size;
  const char* rest = found + size;
  rn_status_t quoted =
      rn_status_make(rn_status_code(status), "%.*s'%.*s'%s%s", (int)(found - message), message,
                     size, found, *rest == ';' ? ":" : "", *rest == ';' ? rest + 1 : rest);
  rn_status_each_payload(status, copy_payload, quoted);
  rn_status_free(status);
  return quoted;
}

// The edit distance: letters changed, added, left out or swapped with their neighbor; ignores case.
static int distance(const char* a, const char* b) {
  enum { LONGEST = 64 };
  int rows[3][LONGEST + 1];  // row i is rows[i % 3]
  int n = (int)strlen(a), m = (int)strlen(b);
  if (n > LONGEST || m > LONGEST) return LONGEST;
  for (int i = 0; i <= n; ++i) {
    const int *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
    int* row = rows[i % 3];
    for (int j = 0; j <= m; ++j) {
      int cost = i == 0 ? j : above[j] + 1;
      if (j > 0 && row[j - 1] + 1 < cost) cost = row[j - 1] + 1;
      if (i > 0 && j > 0) {
        int changed =
            above[j - 1] + (tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]));
        if (changed < cost) cost = changed;
      }
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
          two_above[j - 2] + 1 < cost)
        cost = two_above[j - 2] + 1;
      row[j] = cost;
    }
  }
  return rows[n % 3][m];
}

void rn_cli_near_try(rn_cli_near_t* near, const char* candidate) {
  size_t size = strlen(near->wanted), dashes = strspn(near->wanted, "-");
  int limit = size - dashes <= 4 ? 1 : size - dashes <= 7 ? 2 : 3;
  int found = distance(candidate, near->wanted);
  // A correct prefix ranks just behind any typo.
  if (found > limit && size - dashes > 1 && strncmp(candidate, near->wanted, size) == 0)
    found = limit = 4;
  if (found > limit || (near->best && found >= near->distance)) return;
  near->best = candidate;
  near->distance = found;
}

// Compares |size| characters of |text|; '_' and '-' are equal.
static bool is_called(const char* name, const char* text, size_t size) {
  if (!name || strlen(name) != size) return false;
  for (size_t i = 0; i < size; ++i)
    if ((name[i] == '_' ? '-' : name[i]) != (text[i] == '_' ? '-' : text[i])) return false;
  return true;
}

// Whether |word| is in |list|, which is separated by spaces.
static bool is_listed(const char* list, const char* word) {
  for (rn_str_t rest = rn_str(list); rest.size;)
    if (rn_str_is(rn_str_split(&rest, ' '), word)) return true;
  return false;
}

bool rn_cli_takes(const rn_cli_option_t* option, const rn_cli_verb_t* verb) {
  return !option->verbs || (verb && is_listed(option->verbs, verb->name));
}

// The lists of options that apply.
enum { LISTS = 3 };
static void find_lists(const rn_cli_t* cli, const rn_cli_option_t* out[LISTS]) {
  static const rn_cli_option_t none[] = {{0}};
  const rn_cli_command_t* like = cli->verb ? cli->verb->like : NULL;
  out[0] = cli->command && cli->command->options ? cli->command->options : none;
  out[1] = like ? like->options : none;
  out[2] = rn_cli_common_options;
}

static const rn_cli_option_t* find_option(const rn_cli_t* cli, const char* word, size_t size,
                                          rn_cli_near_t* near) {
  const rn_cli_option_t* lists[LISTS];
  find_lists(cli, lists);
  for (int l = 0; l < LISTS; ++l)
    for (const rn_cli_option_t* option = lists[l]; option->name; ++option) {
      if (is_called(option->name, word, size) || is_called(option->also, word, size)) return option;
      if (near && rn_cli_takes(option, cli->verb)) rn_cli_near_try(near, option->name);
    }
  return NULL;
}

static rn_status_t no_option(const rn_cli_t* cli, const char* word, size_t size) {
  char name[128];
  snprintf(name, sizeof name, "%.*s", (int)size, word);
  rn_cli_near_t near = {.wanted = name};
  find_option(cli, name, strlen(name), &near);
  if (near.best)
    return rn_cli_usage(cli, "there is no option '%s'; did you mean '%s'?", name, near.best);
  return rn_cli_usage(cli, "there is no option '%s'", name);
}

static rn_status_t check_number(const rn_cli_t* cli, const rn_cli_option_t* option,
                                const char* text) {
  int64_t number, most = option->most ? option->most : INT32_MAX;
  if (rn_str_to_i64(rn_str(text), &number) && number >= option->least && number <= most)
    return RN_OK;
  if (!option->most)
    return rn_cli_usage(cli, "%s needs a whole number of at least %lld, not '%s'", option->name,
                        (long long)option->least, text);
  return rn_cli_usage(cli, "%s needs a whole number from %lld to %lld, not '%s'", option->name,
                      (long long)option->least, (long long)most, text);
}

static rn_status_t check_value(const rn_cli_t* cli, const rn_cli_option_t* option,
                               const char* text) {
  if (option->kind == RN_CLI_NUMBER) return check_number(cli, option, text);
  if (option->kind == RN_CLI_CHOICE && !is_listed(option->choices, text))
    return rn_cli_usage(cli, "%s must be one of: %s; not '%s'", option->name, option->choices,
                        text);
  return RN_OK;
}

// |*inout_value| is NULL for a flag that is set, and "false" for one that is not.
static rn_status_t check_flag(const rn_cli_t* cli, const rn_cli_option_t* option,
                              const char** inout_value) {
  bool is_true = is_listed("true 1 yes", *inout_value);
  if (!is_true && !is_listed("false 0 no", *inout_value))
    return rn_cli_usage(cli, "%s takes no value, or true or false; not '%s'", option->name,
                        *inout_value);
  *inout_value = is_true ? NULL : "false";
  return RN_OK;
}

static rn_status_t put_word(rn_cli_t* cli, const char* word, size_t at) {
  RN_RETURN_IF_ERROR(rn_vec_push(&cli->words, cli->allocator, word));
  for (size_t i = cli->words.count - 1; i > at; --i) cli->words.items[i] = cli->words.items[i - 1];
  cli->words.items[at] = word;
  return RN_OK;
}

// Reads one option at |argv[*inout_at]|, with its value.
static rn_status_t take_option(rn_cli_t* cli, int argc, char** argv, int* inout_at) {
  const char* word = argv[(*inout_at)++];
  size_t size = strcspn(word, "=");
  const rn_cli_option_t* option = find_option(cli, word, size, NULL);
  if (!option) return no_option(cli, word, size);
  if (!rn_cli_takes(option, cli->verb))
    return rn_cli_usage(cli, "%s goes with '%s', not with '%s'", option->name, option->verbs,
                        cli->verb->name);
  const char* value = word[size] == '=' ? word + size + 1 : NULL;
  if (option->kind == RN_CLI_FLAG && value) RN_RETURN_IF_ERROR(check_flag(cli, option, &value));
  if (option->kind != RN_CLI_FLAG && !value) {
    if (*inout_at >= argc) return rn_cli_usage(cli, "%s needs a value", option->name);
    value = argv[(*inout_at)++];
  }
  if (value && option->kind != RN_CLI_FLAG) RN_RETURN_IF_ERROR(check_value(cli, option, value));
  if (option->is_word) return put_word(cli, value, 0);
  rn_cli_given_t given = {.option = option, .value = value};
  return rn_vec_push(&cli->given, cli->allocator, given);
}

// Checks the words against the table: "IN OUT", "[NAME]", "PREFIX ...". Words in brackets are
// optional.
static rn_status_t check_words(const rn_cli_t* cli) {
  rn_str_t rest = rn_str(cli->verb ? cli->verb->words : cli->command->words);
  bool is_open = false;
  size_t most = 0;
  for (int depth = 0; rest.size;) {
    rn_str_t word = rn_str_split(&rest, ' ');
    bool is_dots = rn_str_starts_with(word, RN_STR("..."));
    is_open |= is_dots;
    depth += rn_str_starts_with(word, RN_STR("["));
    if (!is_dots && depth == 0 && most >= cli->words.count)
      return rn_cli_usage(cli, "%.*s is missing", RN_STR_ARGS(word));
    most += !is_dots;
    while (rn_str_ends_with(word, RN_STR("]"))) word.size--, depth--;
  }
  if (is_open || cli->words.count <= most) return RN_OK;
  return rn_cli_usage(cli, "'%s' is one argument too many", cli->words.items[most]);
}

static void append_verbs(const rn_cli_command_t* command, char* out, size_t room) {
  size_t at = 0;
  out[0] = '\0';
  for (const rn_cli_verb_t* verb = command->verbs; verb->name && at < room; ++verb)
    at += (size_t)snprintf(out + at, room - at, "%s%s",
                           verb == command->verbs ? ""
                           : verb[1].name         ? ", "
                                                  : " or ",
                           verb->name);
}

// The verb is the first argument that is not an option.
static rn_status_t find_verb(rn_cli_t* cli, const char* word) {
  const rn_cli_command_t* command = cli->command;
  char names[256];
  append_verbs(command, names, sizeof names);
  if (!word) return rn_cli_usage(cli, "%s?", names);
  rn_cli_near_t near = {.wanted = word};
  for (const rn_cli_verb_t* verb = command->verbs; verb->name; ++verb) {
    if (is_called(verb->name, word, strlen(word))) {
      cli->verb = verb;
      return RN_OK;
    }
    rn_cli_near_try(&near, verb->name);
  }
  if (near.best) return rn_cli_usage(cli, "there is no '%s'; did you mean '%s'?", word, near.best);
  return rn_cli_usage(cli, "%s, not '%s'", names, word);
}

rn_status_t rn_cli_parse(rn_cli_t* cli, int argc, char** argv) {
  bool is_over = false;
  int first = 0;
  if (cli->command->verbs) {
    // Options may precede the verb only if they take no value or have it attached with '='.
    while (first < argc && argv[first][0] == '-' && strcmp(argv[first], "--") != 0) ++first;
    RN_RETURN_IF_ERROR(find_verb(cli, first < argc ? argv[first] : NULL));
  } else {
    first = -1;
  }
  for (int i = 0; i < argc;) {
    if (i == first) {
      ++i;
    } else if (!is_over && strcmp(argv[i], "--") == 0) {
      is_over = true;
      cli->rest = cli->words.count;
      ++i;
    } else if (!is_over && argv[i][0] == '-' && argv[i][1]) {
      RN_RETURN_IF_ERROR(take_option(cli, argc, argv, &i));
    } else {
      RN_RETURN_IF_ERROR(put_word(cli, argv[i++], cli->words.count));
    }
  }
  if (!is_over) cli->rest = cli->words.count;
  return check_words(cli);
}

void rn_cli_clear(rn_cli_t* cli) {
  rn_vec_free(&cli->words, cli->allocator);
  rn_vec_free(&cli->given, cli->allocator);
}

bool rn_cli_is(const rn_cli_given_t* given, const char* option) {
  return strcmp(given->option->name, option) == 0;
}

const char* rn_cli_each(const rn_cli_t* cli, const char* option, size_t* inout_at) {
  assert(find_option(cli, option, strlen(option), NULL));
  while (*inout_at < cli->given.count) {
    const rn_cli_given_t* given = &cli->given.items[(*inout_at)++];
    if (rn_cli_is(given, option)) return given->value ? given->value : "";
  }
  return NULL;
}

const char* rn_cli_text(const rn_cli_t* cli, const char* option) {
  const char* last = NULL;
  size_t at = 0;
  for (const char* value; (value = rn_cli_each(cli, option, &at));) last = value;
  return last;
}

bool rn_cli_has(const rn_cli_t* cli, const char* option) { return rn_cli_flag(cli, option, false); }

bool rn_cli_flag(const rn_cli_t* cli, const char* option, bool otherwise) {
  for (size_t i = cli->given.count; i-- > 0;) {
    const rn_cli_given_t* given = &cli->given.items[i];
    if (!rn_cli_is(given, option)) continue;
    return given->option->kind != RN_CLI_FLAG || !given->value;
  }
  return otherwise;
}

int64_t rn_cli_number(const rn_cli_t* cli, const char* option, int64_t otherwise) {
  const char* text = rn_cli_text(cli, option);
  int64_t number;
  return text && rn_str_to_i64(rn_str(text), &number) ? number : otherwise;
}

const char* rn_cli_word(const rn_cli_t* cli, const char* name) {
  rn_str_t rest = rn_str(cli->verb ? cli->verb->words : cli->command->words);
  for (size_t i = 0; rest.size; ++i) {
    rn_str_t word = rn_str_split(&rest, ' ');
    if (rn_str_starts_with(word, RN_STR("["))) word = rn_str_n(word.data + 1, word.size - 1);
    if (rn_str_ends_with(word, RN_STR("]"))) word.size--;
    if (rn_str_is(word, name)) return i < cli->words.count ? cli->words.items[i] : NULL;
  }
  assert(!"the table has no such word");
  return NULL;
}

rn_status_t rn_cli_split(const rn_cli_t* cli, const char* option, rn_str_t text, rn_str_t* out_name,
                         rn_str_t* out_value) {
  *out_value = text;
  *out_name = rn_str_split(out_value, '=');
  if (!out_name->size || out_name->size == text.size)
    return rn_cli_usage(cli, "%s needs NAME=VALUE, not '%.*s'", option, RN_STR_ARGS(text));
  return RN_OK;
}

const char* rn_cli_digits(int64_t value, rn_cli_digits_t* buffer) {
  char plain[24];
  int length = snprintf(plain, sizeof plain, "%lld", (long long)value);
  char* to = buffer->text;
  for (int i = 0; i < length; ++i) {
    *to++ = plain[i];
    int left = length - 1 - i;
    if (left > 0 && left % 3 == 0 && plain[i] != '-') *to++ = ',';
  }
  *to = '\0';
  return buffer->text;
}
