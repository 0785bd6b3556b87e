#!/bin/sh
# Every op that could be differentiated has a rule, says `grad none`, or is listed in refused.txt with
# the reason; and every rule is tested: by a row with "grad": true or "complex", or by name in a test of this folder.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
list=$(mktemp)
trap 'rm -f "$list"' EXIT
awk '/^op /{sub(/^op /,""); sub(/\(.*/,""); op=$0} /^  grad /{print op, $2}' "$root"/src/ops/*.ops >"$list"
bad=0
for op in $(awk '$2 == "refused" {print $1}' "$list"); do
  grep -q "^$op " "$here/refused.txt" || { echo "$op has no gradient rule, and refused.txt does not say why"; bad=1; }
done
for op in $(awk '!/^#/ {print $1}' "$here/refused.txt"); do
  grep -q "^$op refused$" "$list" || { echo "refused.txt lists $op, which is not refused"; bad=1; }
done
tried=$(mktemp)
trap 'rm -f "$list" "$tried"' EXIT
grep -h -E '"grad": (true|"complex")' "$root"/tests/ops/cases/*.jsonl | grep -o '"op": "[A-Za-z0-9_]*"' | cut -d'"' -f4 | sort -u >"$tried"
cat "$here"/*_test.c | grep -o 'rn_[A-Z][A-Za-z0-9]*' | sed 's/^rn_//' | sort -u >>"$tried"
for op in $(awk '$2 != "refused" && $2 != "none" {print $1}' "$list"); do
  grep -qx "$op" "$tried" || grep -q "^$op " "$here/indirect.txt" || { echo "the rule of $op is tried by no row and no test"; bad=1; }
done
exit $bad
