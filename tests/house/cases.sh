#!/usr/bin/env bash
# tools/make_cases.py writes the rows of tests/ops/cases as they are: none was added by hand, which the next recording would drop.
cd "$(dirname "$0")/../.." || exit 1
command -v python3 >/dev/null || exit 77
made=$(mktemp -d) || exit 1
trap 'rm -rf "$made"' EXIT
PYTHONDONTWRITEBYTECODE=1 python3 tools/make_cases.py "$made" >/dev/null && diff -rq "$made" tests/ops/cases
