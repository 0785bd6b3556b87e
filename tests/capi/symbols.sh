#!/bin/sh
# Compares what a library exports with the checked-in lists: every name of symbols.txt under both
# version nodes, every name of symbols_runnel.txt under RUNNEL_1.0, and nothing else.
# usage: symbols.sh LIBRARY SYMBOLS_DIR
set -eu
library=${1:?usage: symbols.sh LIBRARY SYMBOLS_DIR}
lists=${2:?usage: symbols.sh LIBRARY SYMBOLS_DIR}
export LC_ALL=C

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sort -c "$lists/symbols.txt"
[ -s "$lists/symbols.txt" ]
{
  sed 's/$/@@VERS_1.0/' "$lists/symbols.txt"
  sed 's/$/@tensorflow/' "$lists/symbols.txt"
  sed 's/$/@@RUNNEL_1.0/' "$lists/symbols_runnel.txt"
} | sort >"$work/expected"

# Absolute symbols are the version nodes themselves.
nm -D --defined-only --with-symbol-versions "$library" | awk '$2 != "A" { print $3 }' |
  sort >"$work/actual"

if ! diff -u "$work/expected" "$work/actual"; then
  echo "FAIL: '-' is missing in $library, '+' is not in the lists" >&2
  exit 1
fi
echo "$(wc -l <"$work/actual") symbols as listed"
