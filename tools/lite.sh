#!/bin/sh
# Builds build/lite/libtensorflow.so.2, a library with only the ops and kernels that a graph needs.
#
#   lite.sh BUILD GRAPH ISA JOBS
#
# BUILD is an ordinary build, whose programs find out what the graph needs; doc/lite.md has the rest.
set -e
cd "$(dirname "$0")/.."
build=$1 graph=$2 isa=$3 jobs=$4
[ -n "$graph" ] || { echo "make lite: name a frozen graph, as in make lite GRAPH=model.pb" >&2; exit 2; }
[ -r "$graph" ] || { echo "make lite: cannot read '$graph'" >&2; exit 2; }
out=build/lite
tables=$PWD/$out/tables
mkdir -p "$tables"
ninja -C "$build" -j "$jobs" runnel lite_tables >"$out/tools.log" || { cat "$out/tools.log"; exit 1; }
"$build/cli/runnel" graph "$graph" --ops >"$tables/graph_ops.txt"
"$build/lite_tables" "$tables/graph_ops.txt" src/ops/lite.txt "$tables/ops.new" "$tables/registrar.new"
for file in ops.txt registrar.c; do  # a file that stays the same is not compiled again
  cmp -s "$tables/${file%.*}.new" "$tables/$file" || cp "$tables/${file%.*}.new" "$tables/$file"
done
cmake -S . -B "$out" -G Ninja -DRN_LITE="$tables" -DRN_ISA_ONLY="$isa" $LITE_FLAGS >"$out/cmake.log" || { cat "$out/cmake.log"; exit 1; }
ninja -C "$out" -j "$jobs" tensorflow_lite
library=$out/libtensorflow.so.2
"${STRIP:-strip}" --strip-unneeded "$library"
printf '%s: %s bytes, %s ops, for %s\n' "$library" "$(stat -L -c %s "$library")" "$(wc -l <"$tables/ops.txt")" "$isa"
