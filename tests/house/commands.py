#!/usr/bin/env python3
"""Runs every shell command of a document.

usage: commands.py SOURCE BUILD DOCUMENT [-v]

DOCUMENT is a Markdown file of the tree (its ```sh blocks, and the lines of ```console blocks that begin with "$ "), "man" (the
EXAMPLES of the manual pages), "help" (the examples of `runnel help COMMAND`) or "programs" (the commands that `make train` and
`runnel cluster up` print). Each document runs in one shell, in a folder that looks like the source tree with the built tree in
build/release. A block without a language is an error, and so is a command in `running text` that names a sub-command, an option or a
target that does not exist.

A block after a line that ends in "as `NAME`:" is written to the file NAME first. The other lines of a ```console block must be in the
output of the command before them; numbers may differ.
"""
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # support
from support.ports import free_port  # noqa: E402

SOURCE, BUILD, DOCUMENT = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2]), sys.argv[3]
RUNNEL = os.path.join(BUILD, "cli", "runnel")

# Commands that are not run, and why. The files of this tree that they name must exist all the same.
NOT_RUN = [
    (r"srun |mpirun |python3 train\.py; runnel cluster stop", "need a launcher's machines"),
    (r"export RUNNEL_CLUSTER=\$\(runnel server --cluster slurm", "needs Slurm's environment"),
    (r"export TF_CONFIG=", "follows from the line before"),
    (r"kubectl ", "needs Kubernetes"),
    (r"runnel data-server ", "serves until it is stopped; tests/data_service starts such servers"),
    (r"docker ", "needs an engine; tests/deploy checks the Dockerfile"),
    (r"dpkg --add-architecture |(sudo )?apt(-get)? install ", "changes the machine"),
    (r"pip install ", "changes the environment; tests/packages installs the wheels"),
    (r"tensorboard ", "is a program of others"),
    (r"digits --cluster \"\$C\"", "needs four machines"),
    (r"(PYTHONPATH=python )?python3? (examples/python|python/tools)/", "tests/python runs the examples"),
    (r"tools/make_cases\.py ", "records cases from stock TensorFlow"),
    (r"ctest ", "would run this test"),
    (r"ninja ", "everything is built already"),
    (r"runnel bench( +#.*)?$", "takes a minute; another example runs a part of it"),
    (r"(.*/)?runnel bench .*--device gpu", "needs a GPU"),
    (r"runnel container ", "a server starts it"),
    (r"runnel sim --workers 50 ", "takes a minute; another example is smaller"),
    (r"runnel top --cluster ps=localhost:2222", "shows two tasks that are down"),
    (r"runnel (serve|load) .*(\bhalf\b|models\.pbtxt)", "need models; doc/serving.md serves one"),
    (r"curl .*/half:predict", "likewise"),
    (r"runnel quantize ", "needs a model and examples of its inputs; tests/cli runs it"),
    (r"export PATH=\$PWD/build/release/cli", "the PATH has it already"),
    (r".*\| *dot -T", "Graphviz may be missing; the part before it is run"),
]

# A server that is really started, on a free port; others only show what they would be.
SERVER = "runnel server --cluster worker=localhost:2222 &"

# What stands for commands that would build the tree again or stay for ever.
PROLOGUE = r"""
set -u
make() {
  for target; do [[ $target == install ]] && { cmake --install build/release --prefix "${2#PREFIX=}" >/dev/null; return; }; done
  [[ ${1:-} == train ]] && { build/release/examples/digits build/train; return; }
  command make -n "$@" >/dev/null
}
wait_port() { for _ in $(seq 200); do (: < /dev/tcp/localhost/$1) 2>/dev/null && return; sleep 0.1; done; echo "no server listens on $1"; return 1; }
wait_for() { for _ in $(seq 200); do [[ -e $1 ]] && return; sleep 0.1; done; echo "there is no $1"; return 1; }
"""

# Programs in Python run with stock TensorFlow's environment, which has NumPy, or with the machine's.
PATH = os.path.join(SOURCE, "build", "venv", "bin") + ":" + os.environ["PATH"]
if subprocess.run(["python3", "-c", "import numpy"], env=dict(os.environ, PATH=PATH), capture_output=True).returncode:
    NOT_RUN.append((r"python3 \w+\.py", "NumPy is missing"))

failures = []


def fail(where, what):
    failures.append(f"{where}: {what}")


def join_lines(lines):
    """Commands: lines that end in a backslash go on, and so do open quotes."""
    commands, now = [], ""
    for line in lines:
        now += line
        if now.endswith("\\"):
            now = now[:-1]
            continue
        try:
            shlex.split(now, comments=True)
        except ValueError:
            now += "\n"
            continue
        if now.strip() and not now.lstrip().startswith("#"):
            commands.append(now)
        now = ""
    return commands


class Document:
    """The commands of a page, the files that it tells people to save, and what its commands print."""

    def __init__(self, path):
        self.commands, self.files, self.shown = [], {}, []
        block, language, name = [], None, None
        for number, line in enumerate(open(os.path.join(SOURCE, path)), 1):
            line = line.rstrip("\n")
            fence = re.match(r"```(\w*)$", line)
            if not fence and language is None:
                check_inline(f"{path}:{number}", line)
                if line:
                    named = re.search(r"\bas `([\w.]+)`:$", line)
                    name = named.group(1) if named else None
            elif not fence:
                block.append(line)
            elif language is None:
                language, block = fence.group(1), []
                if not language:
                    fail(f"{path}:{number}", "the block says no language: sh, console, text, c, python ...")
            else:
                self.take_block(language, block, name)
                language = name = None
        # A program without a name has that which the compiler is given.
        program = self.files.pop(None, None)
        if program:
            source = next((m.group(1) for c in self.commands if (m := re.match(r"cc (\S+\.c) ", c))), "program.c")
            self.files[source] = program

    def take_block(self, language, block, name):
        if language == "console":
            self.commands += join_lines([text[2:] for text in block if text.startswith("$ ")])
            for text in block:
                if text.startswith("$ "):
                    self.shown.append((text[2:], []))
                elif self.shown:
                    self.shown[-1][1].append(text)
        elif language == "sh":
            self.commands += join_lines(block)
        elif name or (language == "c" and any("int main(" in text for text in block)):
            self.files[name] = "\n".join(block) + "\n"


def check_inline(where, line):
    """`runnel COMMAND --option` and `make TARGET` in running text."""
    for text in re.findall(r"`((?:runnel|make) [^`]*)`", line):
        words = text.split()
        if words[0] == "make":
            target = words[1]
            if not re.search(rf"^{re.escape(target)}:", MAKEFILE, re.M):
                fail(where, f"`{text}`: there is no such target")
            continue
        if words[1].startswith("-"):
            if subprocess.run([RUNNEL] + words[1:], capture_output=True).returncode:
                fail(where, f"`{text}` fails")
            continue
        got = subprocess.run([RUNNEL, "help", words[1]], capture_output=True, text=True)
        if got.returncode:
            fail(where, f"`{text}`: {got.stderr.strip()}")
        for option in re.findall(r"--[a-z][a-z_-]*", text.split(" -- ")[0]):
            if not re.search(rf"^  {option}\b", got.stdout, re.M) and not re.search(rf"also {option}\b", got.stdout):
                fail(where, f"`{text}`: there is no option {option}")


def commands_of_man():
    commands = []
    for page in sorted(glob.glob(os.path.join(SOURCE, "doc", "man", "*.1"))):
        text = open(page).read()
        block = re.search(r"^\.Sh EXAMPLES\n(.*?)(?=^\.Sh )", text, re.M | re.S)
        if not block and os.path.basename(page) != "runnel-version.1":
            fail(page, "has no EXAMPLES")
            continue
        for lines in re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", block.group(1), re.M | re.S):
            if lines.startswith(("import ", "#include")):
                continue
            commands += join_lines(lines.replace("\\e", "\\").replace("\\&", "").split("\n"))
    return commands


def commands_of_help():
    overview = subprocess.run([RUNNEL, "help"], capture_output=True, text=True, check=True).stdout
    names = [name for name in re.findall(r"^  ([a-z][a-z_-]*) +\w", overview, re.M) if name != "runnel"]
    commands = re.findall(r"^  (runnel .*)$", overview, re.M)
    for name in names:
        text = subprocess.run([RUNNEL, "help", name], capture_output=True, text=True, check=True).stdout
        commands += join_lines(line[2:] for line in text.split("\nexamples:\n")[1].splitlines())
    return commands


def make_sandbox(folder):
    for name in os.listdir(SOURCE):
        if name not in (".git", "build"):
            os.symlink(os.path.join(SOURCE, name), os.path.join(folder, name))
    os.mkdir(os.path.join(folder, "build"))
    os.symlink(BUILD, os.path.join(folder, "build", "release"))
    os.mkdir(os.path.join(folder, ".bin"))
    wrapper = os.path.join(folder, ".bin", "runnel")
    with open(wrapper, "w") as file:
        file.write(f'#!/bin/sh\n[ "$1" = server ] && [ -z "${{SERVES:-}}" ] && set -- "$@" --show\nexec {shlex.quote(RUNNEL)} "$@"\n')
    os.chmod(wrapper, 0o755)


def run(commands, folder):
    """One shell for all commands; the first that fails ends it."""
    script = [PROLOGUE]
    for command in commands:
        reason = next((why for pattern, why in NOT_RUN if re.match(pattern, command)), None)
        if reason:
            for path in re.findall(r"(?<![\w/$])(?:examples|python|tools|doc|tests)/[\w./-]+", command):
                if not os.path.exists(os.path.join(SOURCE, path)):
                    fail(command, f"there is no {path}")
            piped = re.match(r"(.*?) *\| *dot -T", command)
            if not piped:
                continue
            command = piped.group(1) + " > /dev/null"
        script.append(f"echo {shlex.quote('+ ' + command)}")
        server = re.fullmatch(SERVER.replace("2222", r"(\d+)"), command)
        if server:
            script.append(f"SERVES=1 {command}\nwait_port {server.group(1)} || exit 1")
            continue
        script.append(f"{{ {command}\n}} || {{ echo 'THIS FAILED'; exit 1; }}" if not command.rstrip().endswith("&") else command)
        background = re.search(r"--dir (\S+) &$", command)
        if background:
            script.append(f"wait_for {background.group(1)}/cluster.json || exit 1")
    environment = dict(os.environ, HOME=folder, PATH=os.path.join(folder, ".bin") + ":" + PATH, RUNNEL_BUILD=BUILD, PYTHONDONTWRITEBYTECODE="1")
    for name in ("TF_CONFIG", "RUNNEL_CLUSTER"):
        environment.pop(name, None)
    script.append("jobs -p | xargs -r kill 2>/dev/null; wait 2>/dev/null; exit 0")
    try:
        got = subprocess.run(["bash", "-c", "\n".join(script)], cwd=folder, env=environment, stdin=subprocess.DEVNULL, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=500)
    except subprocess.TimeoutExpired as error:
        fail(DOCUMENT, "took too long:\n" + (error.stdout or b"").decode()[-2000:])
        return ""
    if got.returncode:
        fail(DOCUMENT, got.stdout[-3000:])
    return got.stdout


def check_output(shown, output):
    """Every line that a page shows below a command is printed by it, in this order; numbers may be others."""
    def mask(text):
        return re.sub(r"-?\d[\d.]*(e[-+]\d+)?", "#", re.sub(r"\s+", " ", text)).strip()

    printed = []
    for line in output.splitlines():
        if line.startswith("+ "):
            printed.append((line[2:], []))
        elif printed:
            printed[-1][1].append(mask(line))
    for command, lines in shown:
        while printed and printed[0][0] != command:
            printed.pop(0)
        got = iter(printed.pop(0)[1] if printed else [])
        for line in lines:
            if mask(line) not in got:  # goes on behind the line that was found
                fail(command, f"does not print what the page shows: {line}\n{output[-3000:]}")


def check_programs(folder):
    """What programs tell people to type."""
    said = run(["make train"], folder)
    hints = re.findall(r"^  (?:\w+ +| +)(\S*(?:runnel|tensorboard) .*)$", said, re.M)
    if len(hints) != 4:
        fail("make train", f"does not say how to look at what it made:\n{said}")
    said += run(hints, folder)
    up = "runnel cluster up --dir here > said &\nwait_for here/cluster.json; sleep 0.2; cat said"
    said = run([up], folder)
    hints = re.search(r"In another terminal:\n(.*)Ctrl-C", said, re.S)
    if not hints:
        fail("runnel cluster up", f"does not say how to look at it:\n{said}")
        return
    lines = [line.strip() for line in hints.group(1).splitlines()]
    run([up] + [line + " --once" if line == "runnel top" else line for line in lines], folder)


MAKEFILE = open(os.path.join(SOURCE, "Makefile")).read()
sandbox = tempfile.mkdtemp()
try:
    make_sandbox(sandbox)
    if DOCUMENT == "programs":
        check_programs(sandbox)
    else:
        if DOCUMENT == "man":
            found = ["make train"] + commands_of_man()
        elif DOCUMENT == "help":
            found = ["make train"] + commands_of_help()
        else:
            page = Document(DOCUMENT)
            found = page.commands
            if SERVER in found:
                own = f"localhost:{free_port()}"
                found = [command.replace("localhost:2222", own) for command in found]
                page.shown = [(command.replace("localhost:2222", own), lines) for command, lines in page.shown]
            if any("runnel serve" in command for command in found):
                for port in ("8500", "8501"):
                    own = str(free_port())
                    found = [command.replace(port, own) for command in found]
            for name, text in page.files.items():
                with open(os.path.join(sandbox, name), "w") as file:
                    file.write(text)
        if found:
            output = run(found, sandbox)
            if DOCUMENT.endswith(".md"):
                check_output(page.shown, output)
            if sys.argv[4:] == ["-v"]:
                print(output)
finally:
    shutil.rmtree(sandbox, ignore_errors=True)
for failure in failures:
    print("FAILED", failure)
sys.exit(bool(failures))
