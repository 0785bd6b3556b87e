"""Writes op_docs.txt, one line "Op<TAB>sentence" per op, from .ops files.

    make_op_docs.py OUT FILE.ops ...
"""

import re
import sys


def main():
    rows = {}
    for file in sys.argv[2:]:
        op = None
        in_doc = False
        for line in open(file, encoding="utf-8"):
            found = re.match(r"op (\w+)", line)
            if found:
                op, in_doc = found.group(1), False
            elif op and re.match(r"  doc\s", line):
                rows[op] = line.split(None, 1)[1].strip()
                in_doc = True
            elif in_doc and line.startswith("    "):
                rows[op] += " " + line.strip()
            else:
                in_doc = False
    with open(sys.argv[1], "w", encoding="utf-8") as stream:
        for op in sorted(rows):
            stream.write("%s\t%s\n" % (op, rows[op]))


if __name__ == "__main__":
    main()
