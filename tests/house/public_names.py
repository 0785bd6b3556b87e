#!/usr/bin/env python3
"""Checks that RN_API marks every public function, at its declaration and at its definition.

usage: public_names.py SOURCE COMPILER INCLUDE_DIR ...

The same names must be declared so in include/runnel/, defined so in src/, and listed in src/capi/symbols_runnel.txt.
"""
import glob
import os
import re
import subprocess
import sys

SOURCE, COMPILER, INCLUDES = sys.argv[1], sys.argv[2].split(), sys.argv[3:]
MARK = "runnel_public_function"
bad = 0


def fail(text):
    global bad
    print(text)
    bad = 1


def marked(text, follows):
    """Names of the functions behind the mark whose parameters are followed by '{' or ';' (macros make some of them)."""
    command = COMPILER + ["-std=gnu11", "-E", "-P", f"-DRN_API={MARK}", "-x", "c", "-"] + ["-I" + folder for folder in INCLUDES]
    plain = subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=SOURCE).stdout
    names = []
    for match in re.finditer(MARK + r"\b[^(;]*?\b(\w+)\s*\(", plain):
        at, depth = match.end(), 1
        while depth:
            depth += {"(": 1, ")": -1}.get(plain[at], 0)
            at += 1
        if plain[at:].lstrip()[0] == follows:
            names.append(match.group(1))
    return names


os.chdir(SOURCE)
headers = sorted(glob.glob("include/runnel/*.h"))
declared = marked("".join('#include "%s"\n' % header[len("include/"):] for header in headers), ";")
defined = {}
for path in glob.glob("src/**/*.[ch]", recursive=True):
    text = open(path).read()
    if "RN_API" not in text or path.endswith(".h"):
        for line in re.findall(r"^RN_API.*", text, re.M):
            fail(f"{path}: RN_API is for include/runnel/ and for definitions: {line}")
        continue
    for name in marked(f'#include "{os.path.abspath(path)}"\n', "{"):
        if name in defined:
            fail(f"{path}: {name} is defined in {defined[name]}, too")
        defined[name] = path
listed = open("src/capi/symbols_runnel.txt").read().split()
everything = set(declared) | set(defined) | set(listed)
if len(everything) < 100:
    fail("no public functions found")
for name in sorted(everything):
    missing = [what for what, names in (("declared with RN_API in include/runnel/", declared), ("defined with RN_API in src/", defined),
                                        ("listed in src/capi/symbols_runnel.txt", listed)) if name not in names]
    if missing:
        fail(f"{name} is not {' nor '.join(missing)}")
for header in headers:
    for number, line in enumerate(open(header), 1):
        if re.match(r"(?!static |typedef |RN_API |return |else |if |for |extern )[a-z][\w *]*\brn_\w+\(", line):
            fail(f"{header}:{number}: a function without RN_API: {line.strip()}")
sys.exit(bad)
