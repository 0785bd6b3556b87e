// runnel ckpt: lists the contents of a checkpoint and verifies it.
#include <stdio.h>

#include "cli/json.h"
#include "cli/model.h"
#include "cli/npy.h"
#include "cli/progress.h"
#include "cli/value.h"
#include "io/checkpoint.h"
#include "io/checkpoint_state.h"

static void print_line(const rn_checkpoint_tensor_t* tensor, const rn_bundle_entry_t* entry,
                       rn_strbuf_t* scratch) {
  rn_cli_digits_t digits;
  scratch->size = 0;
  rn_shape_print(scratch, tensor->shape);
  printf("%-40.*s %-10s %-16s", RN_STR_ARGS(tensor->name), rn_dtype_name(tensor->dtype),
         rn_strbuf_view(scratch).data);
  if (entry && entry->slice_count)
    printf(" in %zu slices", entry->slice_count);
  else if (entry)
    printf(" %14s", rn_cli_digits(entry->size, &digits));
  putchar('\n');
}

static json_t* json_of(const rn_checkpoint_tensor_t* tensor, const rn_bundle_entry_t* entry) {
  json_t* row = json_pack("{s:o, s:s, s:o}", "name", rn_cli_json_str(tensor->name), "dtype",
                          rn_dtype_name(tensor->dtype), "shape", rn_cli_json_shape(tensor->shape));
  if (entry && entry->slice_count)
    json_object_set_new(row, "slices", json_integer((json_int_t)entry->slice_count));
  else if (entry)
    json_object_set_new(row, "bytes", json_integer(entry->size));
  return row;
}

static rn_status_t list(rn_cli_t* cli, const rn_checkpoint_t* checkpoint, const char* prefix) {
  rn_bundle_reader_t* bundle = rn_checkpoint_bundle(checkpoint);
  json_t* rows = rn_cli_has(cli, "--json") ? json_array() : NULL;
  rn_strbuf_t scratch;
  rn_strbuf_init(&scratch, cli->allocator);
  if (!rows && rn_cli_is_folder(cli, rn_cli_word(cli, "PREFIX"))) printf("%s:\n", prefix);
  for (size_t i = 0; i < rn_checkpoint_count(checkpoint); ++i) {
    rn_checkpoint_tensor_t tensor = rn_checkpoint_tensor(checkpoint, i);
    const rn_bundle_entry_t* entry = bundle ? rn_bundle_entry(bundle, i) : NULL;
    if (rows)
      json_array_append_new(rows, json_of(&tensor, entry));
    else
      print_line(&tensor, entry, &scratch);
  }
  rn_strbuf_clear(&scratch);
  if (!rows) return RN_OK;
  return rn_cli_json_print(
      json_pack("{s:o, s:o}", "checkpoint", rn_cli_json_str(rn_str(prefix)), "tensors", rows));
}

static rn_status_t show(rn_cli_t* cli, const rn_checkpoint_t* checkpoint, const char* prefix) {
  const char *name = rn_cli_word(cli, "NAME"), *npy = rn_cli_text(cli, "--npy");
  rn_tensor_t tensor;
  rn_status_t status =
      rn_checkpoint_read(checkpoint, rn_str(name), cli->env->pool, cli->allocator, &tensor);
  RN_RETURN_IF_ERROR(rn_cli_at(status, prefix));
  rn_strbuf_t text;
  rn_strbuf_init(&text, cli->allocator);
  if (npy) {
    status = rn_npy_write(&tensor, &text);
    if (rn_ok(status))
      status = rn_cli_prefix(rn_cli_at(rn_fs_write(cli->env, npy, rn_strbuf_view(&text)), npy),
                             "cannot write ");
  } else if (rn_cli_has(cli, "--json")) {
    json_t* root = rn_cli_json_tensor(&tensor);
    if (root) json_object_set_new(root, "name", rn_cli_json_str(rn_str(name)));
    status = rn_cli_json_print(root);
  } else {
    rn_cli_show(&text, &tensor);
    status = rn_strbuf_status(&text);
    if (rn_ok(status)) printf("%s\n", text.data);
  }
  rn_strbuf_clear(&text);
  rn_tensor_clear(&tensor);
  return status;
}

// The bytes that verification reads; strings count as far as the index tells.
static int64_t size_of(const rn_checkpoint_t* checkpoint) {
  rn_bundle_reader_t* bundle = rn_checkpoint_bundle(checkpoint);
  int64_t total = 0;
  for (size_t i = 0; i < rn_checkpoint_count(checkpoint); ++i) {
    rn_checkpoint_tensor_t tensor = rn_checkpoint_tensor(checkpoint, i);
    const rn_bundle_entry_t* entry = bundle ? rn_bundle_entry(bundle, i) : NULL;
    int64_t count = 0, bytes = 0;
    bool is_whole = entry && !entry->slice_count;
    if (!is_whole && rn_shape_count(tensor.shape, &count) &&
        !rn_mul_i64_ok(count, (int64_t)rn_dtype_size(tensor.dtype), &bytes))
      bytes = 0;
    if (!rn_add_i64_ok(total, is_whole ? entry->size : bytes, &total)) return 0;
  }
  return total;
}

static rn_status_t verify(rn_cli_t* cli, const rn_checkpoint_t* checkpoint, const char* prefix) {
  int64_t bytes = 0, start = cli->env->now_ns(cli->env->self);
  rn_cli_progress_t progress = rn_cli_progress(cli, "bytes", size_of(checkpoint));
  rn_status_t status = RN_OK;
  size_t at = 0;
  for (bool is_over = false; rn_ok(status) && !is_over;) {
    status = rn_checkpoint_verify_next(checkpoint, cli->env->pool, &at, &bytes, &is_over);
    rn_cli_progress_set(&progress, bytes);
  }
  rn_cli_progress_end(&progress);
  RN_RETURN_IF_ERROR(rn_cli_at(status, prefix));
  double seconds = (double)(cli->env->now_ns(cli->env->self) - start) * 1e-9;
  rn_cli_digits_t digits, count;
  if (rn_cli_has(cli, "--json"))
    return rn_cli_json_print_line(json_pack("{s:o, s:I, s:I, s:f}", "checkpoint",
                                            rn_cli_json_str(rn_str(prefix)), "tensors",
                                            (json_int_t)rn_checkpoint_count(checkpoint), "bytes",
                                            (json_int_t)bytes, "seconds", seconds));
  printf("%s: %s tensors, %s bytes, all checksums are right (%.2f s)\n", prefix,
         rn_cli_digits((int64_t)rn_checkpoint_count(checkpoint), &count),
         rn_cli_digits(bytes, &digits), seconds);
  return RN_OK;
}

static rn_status_t latest(rn_cli_t* cli) {
  const char* directory = rn_cli_word(cli, "DIRECTORY");
  rn_strbuf_t path, note;
  rn_strbuf_init(&path, cli->allocator);
  rn_strbuf_init(&note, cli->allocator);
  rn_status_t status =
      rn_checkpoint_latest(cli->env, directory, RN_CHECKPOINT_STATE, cli->env->pool, &path, &note);
  if (rn_ok(status) && rn_cli_has(cli, "--json"))
    status =
        rn_cli_json_print(json_pack("{s:o}", "checkpoint", rn_cli_json_str(rn_strbuf_view(&path))));
  else if (rn_ok(status))
    printf("%s\n", path.data);
  if (rn_ok(status) && note.size) fprintf(stderr, "runnel: %s\n", note.data);
  rn_strbuf_clear(&note);
  rn_strbuf_clear(&path);
  return rn_cli_at(status, directory);
}

static void cut_to_prefix(char* path) {
  size_t size = strlen(path);
  char* data = strstr(path, ".data-");
  if (size > 6 && strcmp(path + size - 6, ".index") == 0)
    path[size - 6] = '\0';
  else if (data && strstr(data, "-of-") && !strchr(data, '/'))
    *data = '\0';
}

// The latest checkpoint according to the folder's state file. If it cannot be opened, the newest
// intact one; finding it is slower, because all data is read.
static rn_status_t find_newest(rn_cli_t* cli, const char* folder, rn_strbuf_t* out,
                               rn_strbuf_t* note) {
  rn_checkpoint_state_t state;
  rn_checkpoint_t* checkpoint = NULL;
  rn_checkpoint_state_init(&state, cli->allocator);
  rn_status_t status = rn_checkpoint_state_read(cli->env, folder, RN_CHECKPOINT_STATE, &state);
  if (rn_ok(status)) status = rn_checkpoint_open(cli->env, state.latest.data, &checkpoint);
  if (rn_ok(status)) rn_strbuf_append(out, state.latest);
  rn_checkpoint_close(checkpoint);
  rn_checkpoint_state_clear(&state);
  if (rn_ok(status)) return rn_strbuf_status(out);
  rn_status_free(status);
  return rn_checkpoint_latest(cli->env, folder, RN_CHECKPOINT_STATE, cli->env->pool, out, note);
}

// A folder means its newest checkpoint, or the variables of a SavedModel.
static rn_status_t find_in_folder(rn_cli_t* cli, const char* folder, rn_strbuf_t* out) {
  rn_strbuf_t note;
  rn_strbuf_init(&note, cli->allocator);
  rn_strbuf_printf(out, "%s/variables/variables.index", folder);
  bool is_model = rn_ok(rn_strbuf_status(out)) && rn_fs_exists(cli->env, out->data);
  out->size = 0;
  rn_status_t status = RN_OK;
  if (is_model)
    rn_strbuf_printf(out, "%s/variables/variables", folder);
  else
    status = find_newest(cli, folder, out, &note);
  if (rn_status_code(status) == RN_CODE_NOT_FOUND) {
    rn_status_free(status);
    status = rn_not_found("the folder '%s' has no checkpoint", folder);
  }
  if (rn_ok(status) && note.size) fprintf(stderr, "runnel: %s\n", note.data);
  rn_strbuf_clear(&note);
  return rn_ok(status) ? rn_strbuf_status(out) : status;
}

// The prefix for |name|, which may also be a folder or a file of a checkpoint.
static rn_status_t find_prefix(rn_cli_t* cli, const char* name, rn_strbuf_t* out) {
  if (rn_cli_is_folder(cli, name)) return find_in_folder(cli, name, out);
  rn_strbuf_append(out, rn_str(name));
  RN_RETURN_IF_ERROR(rn_strbuf_status(out));
  cut_to_prefix(out->data);
  return RN_OK;
}

// Opens the checkpoints one after another and calls |look| on each.
static rn_status_t each(rn_cli_t* cli, size_t count,
                        rn_status_t (*look)(rn_cli_t* cli, const rn_checkpoint_t* checkpoint,
                                            const char* prefix)) {
  rn_strbuf_t prefix;
  rn_strbuf_init(&prefix, cli->allocator);
  rn_status_t status = RN_OK;
  for (size_t i = 0; rn_ok(status) && i < count; ++i) {
    rn_checkpoint_t* checkpoint = NULL;
    prefix.size = 0;
    status = find_prefix(cli, cli->words.items[i], &prefix);
    if (rn_ok(status)) status = rn_checkpoint_open(cli->env, prefix.data, &checkpoint);
    status = rn_cli_at(status, cli->words.items[i]);
    if (rn_ok(status)) status = look(cli, checkpoint, prefix.data);
    rn_checkpoint_close(checkpoint);
  }
  rn_strbuf_clear(&prefix);
  return status;
}

static rn_status_t run_list(rn_cli_t* cli) { return each(cli, 1, list); }
static rn_status_t run_show(rn_cli_t* cli) { return each(cli, 1, show); }
static rn_status_t run_verify(rn_cli_t* cli) { return each(cli, cli->words.count, verify); }

static const rn_cli_verb_t verbs[] = {
    RN_VERB("list", "PREFIX", run_list, FILE, "name, type, shape and size of every tensor"),
    RN_VERB("show", "PREFIX NAME", run_show, FILE, "the values of one tensor"),
    RN_VERB("verify", "PREFIX ...", run_verify, FILE,
            "reads everything and verifies the checksums"),
    RN_VERB("latest", "DIRECTORY", latest, FOLDER,
            "the newest complete checkpoint of a directory; stderr gets those that were skipped, "
            "and why"),
    {0},
};

static const rn_cli_option_t options[] = {
    RN_CLI_JSON_OPTION(NULL),
    RN_OPTION(FILE, "--npy", "FILE", "write the tensor as a NumPy file instead of printing it",
              .verbs = "show"),
    {0},
};

const rn_cli_command_t rn_cli_ckpt_command = {
    .name = "ckpt",
    .summary = "list, show or verify a checkpoint",
    .about =
        "Shows and verifies checkpoints of either format. PREFIX is what a saver returned: "
        "model-100 for model-100.index and model-100.data-00000-of-00001 (either file name works "
        "too); a file of the first format is its own prefix. A folder stands for the newest "
        "checkpoint in it, or for the variables of the SavedModel in it.",
    .verbs = verbs,
    .options = options,
    .examples =
        "runnel ckpt list build/train                    # after make train\n"
        "runnel ckpt show build/train/state-6000 hidden/bias\n"
        "runnel ckpt verify $(runnel ckpt latest build/train)",
};
