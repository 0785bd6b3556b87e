#!/usr/bin/env python3
"""Checks that a type name means one type in the whole tree: no two files define a struct, union, enum or typedef of
the same name, not even for use in a single .c file, because grep, ctags and debuggers cannot tell them apart.
Alternatives within one file (#if) are allowed, and so are the names of TensorFlow's own headers.
"""
import collections
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
FOLDERS = ("include", "src", "cli")


def without_comments(text):
    """The text with comments and strings blanked, line breaks kept."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def typedef_name(text, begin):
    """The name that a typedef whose declaration starts at |begin| introduces."""
    depth, end = 0, begin
    while end < len(text) and (depth or text[end] != ";"):
        depth += (text[end] in "{(") - (text[end] in "})")
        end += 1
    declaration = re.sub(r"\{.*\}", "", text[begin:end], flags=re.S).strip()
    pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)", declaration)
    name = pointer or re.search(r"(\w+)\s*(?:\[[^\]]*\])?\s*(?:\([^()]*\))?$", declaration)
    return name and name.group(1)


def definitions(text):
    """Yields (name, offset) of every type with a body, and of every typedef of another name than its own tag."""
    for match in re.finditer(r"\b(?:struct|union|enum)\s+(\w+)\s*\{", text):
        yield match.group(1), match.start()
    for match in re.finditer(r"\btypedef\s+", text):
        name = typedef_name(text, match.end())
        if name and not re.match(r"(?:struct|union|enum)\s+%s\b" % name, text[match.end():]):
            yield name, match.start()


def main():
    places = collections.defaultdict(dict)  # by name: the line of its first definition in each file
    for folder in FOLDERS:
        for path, folders, files in os.walk(os.path.join(ROOT, folder)):
            folders[:] = [name for name in folders if name != "tensorflow"]  # of stock's headers
            for file in files:
                if not file.endswith((".c", ".h", ".inc")):
                    continue
                full = os.path.join(path, file)
                with open(full, encoding="utf-8") as source:
                    text = without_comments(source.read())
                for name, offset in definitions(text):
                    line = text.count("\n", 0, offset) + 1
                    places[name].setdefault(os.path.relpath(full, ROOT), line)
    assert len(places) > 500, "types are not found any more"
    bad = {name: files for name, files in places.items() if len(files) > 1}
    for name, files in sorted(bad.items()):
        print(name + ": " + ", ".join("%s:%d" % place for place in sorted(files.items())))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
