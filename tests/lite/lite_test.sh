#!/bin/sh
# A library that was made for one graph gives the same numbers as the whole one, is smaller, and
# says of other graphs which op it lacks.
#
#   lite_test.sh RUNNEL CLIENT WHOLE_FOLDER LITE_FOLDER GRAPH.pbtxt OTHER.pbtxt
set -e
runnel=$1 client=$2 whole=$3 lite=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$runnel" transform "$5" "$work/graph.pb"
"$runnel" transform "$6" "$work/other.pb"

LD_LIBRARY_PATH=$whole "$client" "$work/graph.pb" >"$work/whole.txt"
LD_LIBRARY_PATH=$lite "$client" "$work/graph.pb" >"$work/lite.txt"
[ "$(wc -l <"$work/whole.txt")" = 6 ] || { echo "not 6 numbers"; cat "$work/whole.txt"; exit 1; }
cmp "$work/whole.txt" "$work/lite.txt"

if LD_LIBRARY_PATH=$lite "$client" "$work/other.pb" >"$work/other.txt"; then
  echo "the small library runs a graph that it was not made for"
  exit 1
fi
grep -q "Op type not registered 'Svd'" "$work/other.txt" || { cat "$work/other.txt"; exit 1; }

size() { stat -L -c %s "$1/libtensorflow.so.2"; }
[ $((2 * $(size "$lite"))) -lt "$(size "$whole")" ] || { echo "the small library is large"; exit 1; }
