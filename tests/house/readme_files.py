#!/usr/bin/env python3
"""Checks that the README.md of every folder of src/ and cli/ names the folder's files, and no file that does not exist.

Every .c, .h and .def file must be named in backticks: `plan.h`, `plan.c` or `plan` cover all files called plan, and a pattern such as
`import_*.c` or `<family>_grad.c` covers what it matches. Every file, pattern or folder that a README names must exist: beside it, in
src/, in include/ or from the root. A word without an extension is a name if a list item or a clause begins with it and a
description follows.
"""
import fnmatch
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
CODE = (".c", ".h", ".def")
NAME = r"[\w.<>*/-]+"
FILE = rf"{NAME}\.(?:c|h|def|ops|py|sh|txt|md|cmake)"


def names_of(text):
    """What the text has in backticks, with <placeholders> as patterns: `<family>.c` is `*.c`."""
    quoted = [re.sub(r"<\w+>", "*", name) for name in re.findall(rf"`({NAME})`", text)]
    linked = re.findall(r"\]\(([^)#:]+)[^):]*\)", text)
    return quoted, linked


def words_of(text):
    """Words that begin a list item or a clause of one, where a description follows: "- `worker` runs steps; `gc` closes ..."."""
    items = re.sub(r"\n +", " ", text).split("\n")
    return [word for item in items if item.startswith("- ")
            for word in re.findall(r"(?:^- |; )`([a-z]\w*)` [a-z]", item)]


def exists(name, folder):
    return any(glob.glob(os.path.join(ROOT, base, name)) for base in (folder, "src", "include", "include/runnel", ""))


def covers(name, file):
    stem = os.path.splitext(file)[0]
    stems = (stem, stem.removesuffix("_args"))  # x_args.h is what x.cu and x.c share
    if "*" in name:
        return fnmatch.fnmatch(file, name)
    return name in stems or (name.endswith(CODE + (".cu",)) and os.path.splitext(name)[0] in stems)


def check(folder, files):
    path = os.path.join(folder, "README.md")
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        text = file.read()
    quoted, linked = names_of(text)
    for file in sorted(files):
        if not any(covers(name, file) for name in quoted):
            yield f"{path} does not name {file}"
    named = [name for name in quoted if re.fullmatch(FILE, name) or name.endswith("/")] + linked
    for name in sorted(set(named)):
        if not exists(name, folder):
            yield f"{path} names {name}, which does not exist"
    for word in sorted(set(words_of(text))):
        if not exists(word, folder) and not exists(word + ".*", folder):
            yield f"{path} names {word}, but there is no such file or folder"


failures = []
for top in ("src", "cli"):
    for folder, _, names in os.walk(os.path.join(ROOT, top)):
        code = [name for name in names if name.endswith(CODE)]
        if "README.md" in names:
            failures += check(os.path.relpath(folder, ROOT), code)
        elif code:
            failures.append(f"{os.path.relpath(folder, ROOT)} has no README.md")
print("\n".join(sorted(failures)))
sys.exit(bool(failures))
