// Arguments of a sub-command, and the statuses that say what is wrong with them: see cli.h.
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

rn_status_t rn_cli_usage(const rn_cli_t* cli, const char* format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  rn_status_t status = cli->command ? rn_invalid_argument("%s: %s; try 'runnel help %s'",
                                                          cli->command, text, cli->command)
                                    : rn_invalid_argument("%s; try 'runnel --help'", text);
  rn_status_set_payload(status, "runnel/usage", cli->command ? cli->command : "");
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

static rn_status_t read_option(rn_cli_t* cli, const rn_cli_option_t* option, const char* word,
                               size_t length, const char** out_value) {
  const char* joined = word[length] == '=' ? word + length + 1 : NULL;
  if (!option->takes_value) {
    *out_value = NULL;
    return joined ? rn_cli_usage(cli, "%s takes no value", option->name) : RN_OK;
  }
  if (!joined && cli->at >= cli->argc) return rn_cli_usage(cli, "%s wants a value", option->name);
  *out_value = joined ? joined : cli->argv[cli->at++];
  return RN_OK;
}

rn_status_t rn_cli_next(rn_cli_t* cli, const rn_cli_option_t* options, int* out_option,
                        const char** out_value) {
  *out_option = RN_CLI_END;
  *out_value = NULL;
  if (cli->at >= cli->argc) return RN_OK;
  const char* word = cli->argv[cli->at++];
  if (!cli->options_over && strcmp(word, "--") == 0) {
    cli->options_over = true;
    return rn_cli_next(cli, options, out_option, out_value);
  }
  if (cli->options_over || word[0] != '-' || word[1] == '\0') {
    *out_option = RN_CLI_WORD;
    *out_value = word;
    return RN_OK;
  }
  size_t length = strcspn(word, "=");
  for (int i = 0; options[i].name; ++i) {
    if (strlen(options[i].name) != length || memcmp(options[i].name, word, length) != 0) continue;
    *out_option = i;
    return read_option(cli, &options[i], word, length, out_value);
  }
  return rn_cli_usage(cli, "there is no option %.*s", (int)length, word);
}

rn_status_t rn_cli_number(const rn_cli_t* cli, const char* option, const char* text, int64_t least,
                          int64_t* out) {
  if (!rn_str_to_i64(rn_str(text), out) || *out < least)
    return rn_cli_usage(cli, "%s wants a whole number of at least %lld, not '%s'", option,
                        (long long)least, text);
  return RN_OK;
}

rn_status_t rn_cli_split(const rn_cli_t* cli, const char* option, const char* text,
                         rn_str_t* out_name, rn_str_t* out_value) {
  const char* equals = strchr(text, '=');
  if (!equals || equals == text)
    return rn_cli_usage(cli, "%s wants NAME=VALUE, not '%s'", option, text);
  *out_name = rn_str_n(text, (size_t)(equals - text));
  *out_value = rn_str(equals + 1);
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
