#!/bin/sh
# Records what stock TensorFlow answers to the case rows: record.sh [--check] [FAMILY ...]
#
# PYTHON is a Python that has stock TensorFlow (build/venv/bin/python when it is there).
# --check runs the cases again and compares with what is recorded already.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
python=${PYTHON:-$root/build/venv/bin/python}
[ -x "$python" ] || python=python3
check=
if [ "${1:-}" = --check ]; then check=1; shift; fi
[ $# -gt 0 ] || set -- $(cd "$here/cases" && ls ./*.jsonl | sed 's,^\./,,; s,\.jsonl$,,')
failed=0
for family in "$@"; do
  echo "$family:"
  # Ops that stock only has with oneDNN.
  case $family in *_onednn) export TF_ENABLE_ONEDNN_OPTS=1 ;; *) export TF_ENABLE_ONEDNN_OPTS=0 ;; esac
  if [ "$check" ]; then
    "$python" "$root/tools/record_cases.py" "$here/cases/$family.jsonl" --check "$here/golden/$family.jsonl" || failed=1
  else
    "$python" "$root/tools/record_cases.py" "$here/cases/$family.jsonl" -o "$here/golden/$family.jsonl" || failed=1
  fi
done
exit $failed
