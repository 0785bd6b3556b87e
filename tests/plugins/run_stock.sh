#!/bin/sh
# Builds the plug-ins and their tests for stock's library (the wheel in build/venv) and runs them, which checks that the plug-ins load
# there unchanged and that the tests expect stock's results. Omits the files named ours_only_*: there stock ends the process.
# usage: run_stock.sh [name ...]   e.g. run_stock.sh device
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out="$root/build/plugins_stock"
tf=$(ls -d "$root"/build/venv/lib/python3*/site-packages/tensorflow)
cc=${CC:-gcc}
flags="-std=gnu11 -g -O1 -D_GNU_SOURCE -DCT_STOCK -Wall -Wextra -Werror"
mkdir -p "$out"

$cc $flags -fPIC -shared -isystem "$tf/include" "$here"/toy_[dkos]*.c -o "$out/toy.so" -lpthread
$cc $flags -fPIC -shared -isystem "$tf/include" "$here/toy_filesystem.c" -o "$out/toyfs.so" -lpthread

names=${*:-$(cd "$here" && ls -- *_test.c | grep -v '^ours_only_' | sed 's/_test\.c$//')}
failed=0
for name in $names; do
  # Stock's headers for experimental functions are C++; ours declare the same.
  $cc $flags -I"$root/include" -I"$root/tests/capi" -DPT_TOY_PATH="\"$out/toy.so\"" \
    -DPT_TOYFS_PATH="\"$out/toyfs.so\"" "$here/${name}_test.c" \
    "$root/tests/capi/util.c" "$root/tests/capi/proto.c" -o "$out/${name}_test" "$tf/libtensorflow_cc.so.2" \
    "$tf/libtensorflow_framework.so.2" -Wl,-rpath,"$tf" -lcriterion -lpthread -lm
  echo "== $name"
  TF_CPP_MIN_LOG_LEVEL=3 "$out/${name}_test" -j1 --color=never 2>"$out/$name.log" || failed=1
  grep -E '^\[(----|FAIL|====|CRASH|SKIP)' "$out/$name.log" || true
done
exit $failed
