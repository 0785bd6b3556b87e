#!/bin/sh
# Measures the library of a build folder: run.sh [BUILD] [nets] [options]. Against stock TensorFlow by compare.py, or,
# after "nets", networks against other libraries by nets/nets.py.
set -eu
here=$(dirname "$0")
build=
if [ $# -gt 0 ] && [ -d "$1" ]; then
  build=$1
  shift
fi
program=$here/compare.py
if [ "${1:-}" = nets ]; then
  program=$here/nets/nets.py
  shift
fi
exec python3 "$program" ${build:+--ours "$build"} "$@"
