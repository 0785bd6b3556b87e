// runnel python-compat: lists the names of tf that a script uses and the Python client lacks.
// Starts the client to find out: the one of the source tree if this command is in a build folder of
// it, otherwise the one that python3 finds.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

// The folder of this command followed by |tail|, if that file exists. Does not resolve links,
// because the python3 of a virtual environment is a link.
static bool beside(const char* tail, char out[static PATH_MAX]) {
  char self[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0) return false;
  self[length] = '\0';
  char* slash = strrchr(self, '/');
  if (!slash) return false;
  *slash = '\0';
  int wanted = snprintf(out, PATH_MAX, "%s/%s", self, tail);
  return wanted > 0 && wanted < PATH_MAX && access(out, F_OK) == 0;
}

// For a build folder of the source tree: sets the paths of the package and of the built library.
static rn_status_t use_source_tree(void) {
  char path[PATH_MAX], package[PATH_MAX], build[PATH_MAX], search[2 * PATH_MAX];
  if (!beside("../../../python/runnel/__main__.py", path) || !realpath(path, package)) return RN_OK;
  if (!beside("..", path) || !realpath(path, build)) return RN_OK;
  *strrchr(package, '/') = '\0';
  *strrchr(package, '/') = '\0';
  const char* old = getenv("PYTHONPATH");
  int wanted =
      snprintf(search, sizeof search, "%s%s%s", package, old && *old ? ":" : "", old ? old : "");
  if (wanted < 0 || (size_t)wanted >= sizeof search)
    return rn_invalid_argument("PYTHONPATH is too long");
  if (setenv("PYTHONPATH", search, 1) != 0 || setenv("RUNNEL_BUILD", build, 0) != 0)
    return rn_resource_exhausted("no memory for the environment");
  return RN_OK;
}

static rn_status_t python_compat(rn_cli_t* cli) {
  enum { MAX_SCRIPTS = 1000 };
  char* argv[MAX_SCRIPTS + 5];
  char own[PATH_MAX];  // of the environment that the command was installed into
  const char* python = getenv("PYTHON");
  if (!python || !*python) python = beside("python3", own) ? own : "python3";
  int count = 0;
  argv[count++] = (char*)python;
  argv[count++] = "-m";
  argv[count++] = "runnel";
  argv[count++] = "--names";
  if (cli->words.count > MAX_SCRIPTS) return rn_cli_usage(cli, "at most %d scripts", MAX_SCRIPTS);
  for (size_t i = 0; i < cli->words.count; ++i) argv[count++] = (char*)cli->words.items[i];
  argv[count] = NULL;
  RN_RETURN_IF_ERROR(use_source_tree());
  if (fflush(stdout) != 0) return rn_internal("cannot write the output");
  execvp(python, argv);
  return rn_not_found("cannot start %s: %s", python, strerror(errno));
}

const rn_cli_command_t rn_cli_python_compat_command = {
    .name = "python-compat",
    .summary = "list names in a Python script that are missing",
    .about =
        "Lists the names of tensorflow in Python scripts that Runnel's client lacks, as file:line: "
        "name. It does not run the scripts. A script without such names runs with 'python -m "
        "runnel SCRIPT'. Exit status: 0 if no name is missing, 1 if some are, 2 if a script "
        "cannot be read.\n\nThe client is a Python package: 'pip install .' installs it. PYTHON "
        "names the interpreter (default python3).",
    .words = "SCRIPT ...",
    .word_kind = RN_CLI_FILE,
    .run = python_compat,
    .examples = "runnel python-compat examples/python/softmax_digits.py",
};
