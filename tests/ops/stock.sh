#!/bin/sh
# Checks the recorded cases themselves: the runner, linked with stock TensorFlow, must pass every row.
# stock.sh [OPTIONS OF ops_test ...]; families named *_onednn need TF_ENABLE_ONEDNN_OPTS=1.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
python=${PYTHON:-$root/build/venv/bin/python}
tf=$("$python" -c 'import importlib.util as u; print(u.find_spec("tensorflow").submodule_search_locations[0])')
out=$root/build/ops_stock
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -I"$tf/include" "$here"/*.c -o "$out" \
  -L"$tf" -l:libtensorflow_cc.so.2 -l:libtensorflow_framework.so.2 -Wl,-rpath,"$tf" \
  -Wl,--allow-shlib-undefined -ljansson -lm
exec env TF_ENABLE_ONEDNN_OPTS="${TF_ENABLE_ONEDNN_OPTS:-0}" TF_CPP_MIN_LOG_LEVEL=3 "$out" --stock --dir "$here" "$@"
