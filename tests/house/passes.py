#!/usr/bin/env python3
"""Checks that doc/passes.md lists the passes that the planner runs, in their order and with their summaries.

usage: passes.py RUNNEL ROOT
"""

import json
import os
import re
import subprocess
import sys


def main(runnel, root):
    os.chdir(root)
    run = subprocess.run([runnel, "graph", "examples/models/line.pbtxt", "--passes", "--json"], stdout=subprocess.PIPE, check=True)
    table = [(row["name"], row["summary"]) for row in json.loads(run.stdout)]
    with open("doc/passes.md", encoding="utf-8") as stream:
        listed = re.findall(r"^\| `(\w+)` \| (.*) \|$", stream.read(), re.M)
    if table == listed:
        return 0
    print("doc/passes.md differs from src/session/passes.c; its table should be:")
    for row in table:
        print("| `%s` | %s |" % row)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
