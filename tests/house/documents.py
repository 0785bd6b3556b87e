#!/usr/bin/env python3
"""Checks the Markdown files of the tree.

usage: documents.py SOURCE links     every relative link leads to a file, and every anchor to a heading
       documents.py SOURCE widths    no code block or table is so wide that GitHub shows a scroll bar
"""
import os
import re
import sys

SOURCE, MODE = os.path.realpath(sys.argv[1]), sys.argv[2]
CODE_COLUMNS = 100  # of a line in a code block
CELL_COLUMNS = 100  # of a table's cell: GitHub wraps cells, but a reader should not have to
ROW_COLUMNS = 150
failures = []


def documents():
    for folder, folders, names in os.walk(SOURCE):
        folders[:] = sorted(name for name in folders if name not in ("build", ".git", "__pycache__"))
        for name in sorted(names):
            if name.endswith(".md"):
                yield os.path.relpath(os.path.join(folder, name), SOURCE)


def prose(path):
    """(line number, line) outside of code blocks."""
    fence = None
    for number, line in enumerate(open(os.path.join(SOURCE, path), encoding="utf-8"), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark:
            fence = mark.group(1) if fence is None else None if mark.group(1).startswith(fence) else fence
        elif fence is None:
            yield number, line.rstrip("\n")


def plain(text):
    """What a reader sees of inline Markdown."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"(?<!\\)[`*]", "", text).replace("\\|", "|")


def anchors(path, cache={}):  # noqa: B006
    """The anchors that GitHub gives to the headings of |path|."""
    if path not in cache:
        counts, found = {}, set()
        for _, line in prose(path):
            heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
            if heading:
                slug = re.sub(r"[^\w\- ]", "", plain(heading.group(1)).lower()).replace(" ", "-")
                found.add(slug if slug not in counts else "%s-%d" % (slug, counts[slug]))
                counts[slug] = counts.get(slug, 0) + 1
            found.update(re.findall(r'<a (?:name|id)="([^"]+)"', line))
        cache[path] = found
    return cache[path]


def check_links(path):
    for number, line in prose(path):
        line = re.sub(r"(?<!`)`[^`]*`(?!`)", "", line)
        targets = re.findall(r"\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)", line) + re.findall(r'(?:src|href)="([^"]+)"', line)
        for target in targets:
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            name, _, anchor = target.partition("#")
            other = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
            if not os.path.exists(os.path.join(SOURCE, other)):
                failures.append("%s:%d: there is no %s" % (path, number, target))
            elif anchor and other.endswith(".md") and anchor not in anchors(other):
                failures.append("%s:%d: %s has no heading #%s" % (path, number, other, anchor))


def check_widths(path):
    seen = set()
    for number, line in prose(path):
        seen.add(number)
        if not line.startswith("|"):
            continue
        cells = [plain(cell.strip()) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        widest = max(map(len, cells), default=0)
        if widest > CELL_COLUMNS:
            failures.append("%s:%d: a cell of %d columns" % (path, number, widest))
        elif sum(map(len, cells)) > ROW_COLUMNS:
            failures.append("%s:%d: a row of %d columns" % (path, number, sum(map(len, cells))))
    for number, line in enumerate(open(os.path.join(SOURCE, path), encoding="utf-8"), 1):
        if number not in seen and len(line.rstrip("\n")) > CODE_COLUMNS:
            failures.append("%s:%d: a code line of %d columns" % (path, number, len(line) - 1))


for document in documents():
    {"links": check_links, "widths": check_widths}[MODE](document)
print("\n".join(failures))
sys.exit(bool(failures))
