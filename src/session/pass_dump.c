// RUNNEL_DUMP: see pass_dump.h.
#include "session/pass_dump.h"

#include <errno.h>
#include <stdio.h>

#include "step/ir_print.h"

static bool is_wanted(const char* words, const char* pass) {
  rn_str_t rest = rn_str(words);
  while (rest.size) {
    rn_str_t word = rn_str_trim(rn_str_split(&rest, ','));
    if (rn_str_is(word, "all")) return true;
    for (const char* at = pass; word.size && *at; ++at)
      if (strncmp(at, word.data, word.size) == 0) return true;
  }
  return false;
}

// False, with errno, if |path| cannot be written, or if it exists.
static bool write_new(const char* path, const rn_strbuf_t* text) {
  FILE* file = fopen(path, "wxe");
  if (!file) return false;
  bool is_written = fwrite(text->data, 1, text->size, file) == text->size;
  return (fclose(file) == 0) && is_written;
}

// Files are numbered in the order in which they are written: each takes the first free number.
static void write_files(const rn_plan_debug_t* debug, const char* pass, const char* when,
                        rn_ir_t* ir, rn_strbuf_t* text) {
  char path[4096];
  bool is_written = false;
  for (int number = 1; !is_written; ++number) {
    snprintf(path, sizeof path, "%s/%05d-%s-%s.txt", debug->dump_folder, number, pass, when);
    is_written = write_new(path, text);
    if (!is_written && errno != EEXIST) break;
  }
  if (is_written) {
    memcpy(strrchr(path, '.'), ".dot", 4);
    text->size = 0;
    rn_ir_print_dot(ir, text);
    is_written = write_new(path, text);
  }
  if (!is_written) fprintf(stderr, "RUNNEL_DUMP: cannot write '%s': %s\n", path, strerror(errno));
}

void rn_pass_dump(const rn_plan_debug_t* debug, const char* pass, const char* when, rn_ir_t* ir) {
  if (!is_wanted(debug->dump, pass)) return;
  rn_strbuf_t text;
  rn_strbuf_init(&text, ir->allocator);
  rn_ir_print(ir, &text);
  if (!rn_ok(rn_strbuf_status(&text)))
    fprintf(stderr, "RUNNEL_DUMP: out of memory\n");
  else if (debug->dump_folder)
    write_files(debug, pass, when, ir, &text);
  else
    fprintf(stderr, "# %s %s\n%.*s", when, pass, RN_STR_ARGS(rn_strbuf_view(&text)));
  rn_strbuf_clear(&text);
}
