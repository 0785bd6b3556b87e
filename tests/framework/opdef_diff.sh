#!/bin/sh
# Compares every registered op with stock TensorFlow's definition of it.
#
#   opdef_diff.sh DUMP [PYTHON]
#
# DUMP is the opdef_dump program; PYTHON has TensorFlow (build/venv). Passes when no op differs and
# stock knows all of ours but those of ops_of_ours.txt; ops that stock has and we do not yet have do
# not count.
set -eu
dump=$1
python=${2:-build/venv/bin/python}
tools=$(dirname "$0")/../../tools
list=$(mktemp)
trap 'rm -f "$list" "$list.names" "$list.diff"' EXIT
"$dump" >"$list"
"$python" - "$list" "$(dirname "$0")/ops_of_ours.txt" >"$list.names" 2>/dev/null <<'PY'
import sys
from tensorflow.core.framework import op_def_pb2
ops = op_def_pb2.OpList()
ops.ParseFromString(open(sys.argv[1], "rb").read())
ours = {line.split()[0] for line in open(sys.argv[2]) if not line.startswith("#")}
kept = [op for op in ops.op if op.name not in ours]
del ops.op[:]
ops.op.extend(kept)
open(sys.argv[1], "wb").write(ops.SerializeToString())
print("\n".join(op.name for op in kept))
PY
xargs "$python" "$tools/tf_registry.py" --full-type --diff "$list" <"$list.names" \
  >"$list.diff" 2>/dev/null || true
cat "$list.diff"
grep -q ' 0 differ, 0 missing$' "$list.diff" && ! grep -q '^not in stock' "$list.diff" &&
  ! grep -q skipped "$list.diff"
