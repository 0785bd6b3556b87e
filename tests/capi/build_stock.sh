#!/bin/sh
# Builds the C API tests with the stock library of the wheel and runs them, which checks that the tests expect stock's results.
# Omits the files named ours_only_*, in which stock crashes.
# usage: build_stock.sh [name ...]   e.g. build_stock.sh graph session
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out="$root/build/capi_stock"
tf=$(ls -d "$root"/build/venv/lib/python3*/site-packages/tensorflow)
cc=${CC:-gcc}
flags="-std=gnu11 -g -O1 -D_GNU_SOURCE -DCT_STOCK -Wall -Wextra -Werror -isystem $tf/include"
mkdir -p "$out"

# The plug-in finds TF_ symbols in the process that loads it, as a client's plug-in does.
$cc $flags -fPIC -shared "$here/plugin_op.c" -o "$out/plugin_op.so"

names=${*:-$(cd "$here" && ls -- *_test.c | grep -v '^ours_only_' | sed 's/_test\.c$//')}
failed=0
for name in $names; do
  # The original's header of experimental eager calls is C++: ours declares the same.
  case $name in eager_* | checkpoint) own="-I$root/include" ;; *) own="" ;; esac
  $cc $own $flags -DCT_PLUGIN_PATH="\"$out/plugin_op.so\"" "$here/${name}_test.c" "$here/util.c" \
    "$here/proto.c" -o "$out/${name}_test" "$tf/libtensorflow_cc.so.2" \
    "$tf/libtensorflow_framework.so.2" -Wl,-rpath,"$tf" -lcriterion -lpthread -lm
  echo "== $name"
  TF_CPP_MIN_LOG_LEVEL=3 "$out/${name}_test" -j1 --color=never 2>"$out/$name.log" || failed=1
  grep -E '^\[(----|FAIL|====|CRASH|SKIP)' "$out/$name.log" || true
done
exit $failed
