#!/usr/bin/env python3
"""Reads the declarations of the public headers and their comments.

usage: headers.py --check [FOLDER]    lists the functions without a comment, and fails if there are any

A comment belongs to the declarations below it, up to the next comment or blank line, so several functions
may share one comment. A comment at the end of the declaration's own line also counts.
"""
import collections
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# kind: function, call (a macro that is called like a function), type or macro. code: the lines of the declaration.
Item = collections.namedtuple("Item", "kind name code line")
# Declarations that share a comment.
Group = collections.namedtuple("Group", "comment items")
Header = collections.namedtuple("Header", "path comment groups")

WORDS = re.compile(r"\b(TF_CAPI_EXPORT|TF_EXPORT|RN_API|RN_MUST_USE|extern|static|inline)\b|RN_PRINTF\([^)]*\)"
                   r"|__attribute__\(\(.*?\)\)(?:\))?")


def split_comment(line):
    """Returns (code, text of the // comment or None)."""
    found = re.search(r'(?<![:"])//(.*)$', line)
    return (line[: found.start()].rstrip(), found.group(1).strip()) if found else (line.rstrip(), None)


def declarations(lines):
    """Yields (line number, comment lines, code lines) and (line number, None, None) for blank lines."""
    number, comment = 0, []
    while number < len(lines):
        line = lines[number]
        if not line.strip():
            yield number, None, None
            comment = []
            number += 1
        elif line.startswith("//"):
            comment.append(line[2:][1:] if line[2:3] == " " else line[2:])
            number += 1
        elif line.startswith("/*"):
            while "*/" not in lines[number]:
                comment.append(re.sub(r"^\s*/?\*+ ?", "", lines[number]))
                number += 1
            number += 1
        else:
            start, code, depth = number, [], 0
            is_macro = line.startswith("#")
            while True:
                line = lines[number]
                text = split_comment(line)[0]
                code.append(line)
                number += 1
                if is_macro:
                    if not line.endswith("\\"):
                        break
                else:
                    depth += text.count("{") + text.count("(") - text.count("}") - text.count(")")
                    if text in ('extern "C" {', 'extern "C++" {') or re.match(r"[A-Z_0-9]+\(\w*\)$", text) or (depth <= 0 and text.endswith((";", "}"))):
                        break
                if number == len(lines):
                    break
            yield start, comment, code
            comment = []


def item_of(number, code):
    """Returns the Item that |code| declares, or None."""
    first = code[0]
    plain = " ".join(split_comment(line)[0].strip() for line in code)
    if first.startswith("#"):
        found = re.match(r"#\s*define (\w+)(\(?)", first)
        if not found or found.group(1).endswith("_") or found.group(1).endswith("_H"):
            return None
        is_call = found.group(2) and not found.group(1).isupper()
        return Item("call" if is_call else "macro", found.group(1), code, number)
    if plain.startswith(("}", 'extern "C')) or re.match(r"[A-Z_0-9]+\(\w*\)$", plain):
        return None
    if plain.startswith("typedef"):
        found = re.match(r"typedef (?:struct|enum|union) (\w+)", plain) or re.search(r"\(\*(\w+)\)", plain) or re.search(r"(\w+);$", plain)
        return Item("type", found.group(1), code, number)
    if re.match(r"(struct|enum|union)\b[^()]*\{", plain) or re.match(r"(struct|enum|union) \w+;", plain):
        found = re.match(r"(?:struct|enum|union) (\w+)", plain)
        return Item("type", found.group(1) if found else "", code, number)
    found = re.search(r"(\w+)\(", WORDS.sub("", plain))
    if not found or (plain.startswith("static inline") and found.group(1).endswith("_")):  # a part of a macro
        return None
    return Item("function", found.group(1), code, number)


def signature(item):
    """Returns, on one line, the declaration of a function without attributes and body, or the head of a macro.

    A function NAME_ that a macro NAME calls gets the name of the macro."""
    plain = " ".join(split_comment(line)[0].strip() for line in item.code)
    if item.kind == "call":
        return re.match(r"#define (\w+\([^)]*\))", plain).group(1)
    plain = re.sub(r"\s+", " ", WORDS.sub("", re.sub(r"\s*\{.*", "", plain))).strip().rstrip(";").strip()
    return re.sub(r"\b(\w+)_\(", r"\1(", plain, count=1) if item.name.endswith("_") else plain


def read(path):
    """Returns the Header at |path|."""
    lines = open(path, encoding="utf-8").read().split("\n")
    opening, groups, comment, items = [], [], [], []

    def close():
        if items:
            groups.append(Group(list(comment), list(items)))
            items.clear()
    for number, text, code in declarations(lines):
        if code is None:
            close()
            comment = []
            continue
        if text:
            if not opening and not groups and code[0].startswith("#ifndef"):
                opening = text
                continue
            close()
            comment = text
        item = item_of(number + 1, code)
        if item:
            items.append(item)
    close()
    return Header(path, opening, groups)


def headers(folder=None):
    """Returns the headers below |folder|, without internal functions: NAME_ is public only if a macro NAME calls it."""
    folder = folder or os.path.join(ROOT, "include")
    found = [read(path) for path in sorted(glob.glob(os.path.join(folder, "**", "*.h"), recursive=True))]
    calls = {item.name for header in found for group in header.groups for item in group.items if item.kind == "call"}

    def public(item):
        return item.kind != "function" or not item.name.endswith("_") or item.name[:-1] in calls
    return [header._replace(groups=[Group(group.comment, list(filter(public, group.items))) for group in header.groups])
            for header in found]


def is_documented(group, item):
    return bool(group.comment) or any(split_comment(line)[1] for line in item.code)


def main():
    if sys.argv[1:2] != ["--check"]:
        sys.exit(__doc__)
    count = missing = 0
    for header in headers(*sys.argv[2:]):
        for group in header.groups:
            for item in group.items:
                if item.kind not in ("function", "call"):
                    continue
                count += 1
                if not is_documented(group, item):
                    missing += 1
                    print("%s:%d: %s has no comment" % (os.path.relpath(header.path, ROOT), item.line, item.name))
    print("%d public functions, %d without a comment" % (count, missing))
    sys.exit(missing > 0)


if __name__ == "__main__":
    main()
