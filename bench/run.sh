#!/bin/sh
# Measures the library of a build folder against stock TensorFlow: run.sh [BUILD] [compare.py's options]
set -eu
here=$(dirname "$0")
if [ $# -gt 0 ] && [ -d "$1" ]; then
  build=$1
  shift
  set -- --ours "$build" "$@"
fi
exec python3 "$here/compare.py" "$@"
