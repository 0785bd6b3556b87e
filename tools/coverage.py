#!/usr/bin/env python3
"""Reads gcov's JSON (one document per line) from stdin; prints coverage by folder and by file, and writes annotated sources here.

usage: gcov --json-format --stdout … | coverage.py ROOT
"""
import collections
import json
import os
import sys


def read(root):
    """Returns {source: {line: count}} for the sources of the project."""
    files = collections.defaultdict(dict)
    for document in sys.stdin:
        if not document.strip().startswith("{"):
            continue
        data = json.loads(document)
        for file in data["files"]:
            path = os.path.relpath(os.path.join(data["current_working_directory"], file["file"]), root)
            if not path.startswith(("src/", "cli/")):
                continue
            lines = files[path]
            for line in file["lines"]:
                number = line["line_number"]
                lines[number] = max(lines.get(number, 0), line["count"])
    return files


def annotate(root, path, lines):
    target = path.replace("/", "#") + ".gcov"
    with open(os.path.join(root, path), errors="replace") as source, open(target, "w") as out:
        for number, text in enumerate(source, 1):
            count = lines.get(number)
            mark = "-" if count is None else "#####" if count == 0 else str(count)
            out.write(f"{mark:>9}: {text}")


def main():
    root = sys.argv[1]
    files = read(root)
    folders = collections.defaultdict(lambda: [0, 0])
    rows = []
    for path, lines in sorted(files.items()):
        covered = sum(count > 0 for count in lines.values())
        rows.append((covered / max(len(lines), 1), covered, len(lines), path))
        for folder in (os.path.dirname(path), "all"):
            folders[folder][0] += covered
            folders[folder][1] += len(lines)
        annotate(root, path, lines)
    if not rows:
        sys.exit("coverage.py: nothing was counted")
    print(f"{'folder':32} {'lines':>8} {'covered':>8}")
    for folder, (covered, total) in sorted(folders.items(), key=lambda item: (item[0] == "all", item[0])):
        print(f"{folder:32} {total:8} {100 * covered / max(total, 1):7.1f}%")
    print("\nleast covered:")
    for share, _, total, path in sorted(rows)[:15]:
        print(f"{path:48} {total:6} {100 * share:7.1f}%")


main()
