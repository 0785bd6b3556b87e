#!/usr/bin/env bash
# tests/ops/cases is exactly what tools/make_cases.py writes: the next recording would drop rows that were added by hand.
cd "$(dirname "$0")/../.." || exit 1
command -v python3 >/dev/null || exit 77
made=$(mktemp -d) || exit 1
trap 'rm -rf "$made"' EXIT
PYTHONDONTWRITEBYTECODE=1 python3 tools/make_cases.py "$made" >/dev/null && diff -rq "$made" tests/ops/cases
