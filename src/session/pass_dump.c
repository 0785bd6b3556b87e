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

static void write_file(const char* path, rn_strbuf_t* text) {
  FILE* file = fopen(path, "we");
  bool is_written = file && fwrite(text->data, 1, text->size, file) == text->size;
  if (file) is_written &= fclose(file) == 0;
  if (!is_written) fprintf(stderr, "RUNNEL_DUMP: cannot write '%s': %s\n", path, strerror(errno));
}

// Files are numbered in the order in which they are written: the first free number is taken.
static void write_files(const rn_plan_debug_t* debug, const char* pass, const char* when,
                        rn_ir_t* ir, rn_strbuf_t* text) {
  char path[4096];
  for (int number = 1; number < 100000; ++number) {
    snprintf(path, sizeof path, "%s/%05d-%s-%s.txt", debug->dump_folder, number, pass, when);
    FILE* file = fopen(path, "wxe");
    if (!file && errno == EEXIST) continue;
    if (file) fclose(file);
    write_file(path, text);
    snprintf(path, sizeof path, "%s/%05d-%s-%s.dot", debug->dump_folder, number, pass, when);
    text->size = 0;
    rn_ir_print_dot(ir, text);
    write_file(path, text);
    return;
  }
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
