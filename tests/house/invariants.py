#!/usr/bin/env python3
"""Checks doc/invariants.md: every invariant names its check, the named files exist, and the code cites existing numbers."""

import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def main():
    os.chdir(ROOT)
    with open("doc/invariants.md", encoding="utf-8") as stream:
        text = stream.read()
    bad = []
    entries = re.split(r"^- \*\*(\d+[a-z]?)\.\*\* ", text, flags=re.M)
    numbers = entries[1::2]
    for number, entry in zip(numbers, entries[2::2]):
        if "Held by:" not in entry:
            bad.append("invariant %s names no check" % number)
        for path in re.findall(r"`((?:src|tests|fuzz|tools)/[^`]*)`", entry.split("Held by:")[-1]):
            if not os.path.exists(path.rstrip("/")):
                bad.append("invariant %s names '%s', which does not exist" % (number, path))
    if len(numbers) != len(set(numbers)):
        bad.append("a number stands twice")
    cited = subprocess.run(["grep", "-rnoE", r"invariants? [0-9]+[a-z]?\b", "src", "cli", "tests", "--include=*.c", "--include=*.h"],
                           stdout=subprocess.PIPE, text=True).stdout.splitlines()
    for line in cited:
        if line.split()[-1] not in numbers:
            bad.append("%s: there is no such invariant" % line)
    if not cited:
        bad.append("the code cites no invariant")
    print("\n".join(bad) or "%d invariants, cited %d times" % (len(numbers), len(cited)))
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
