#!/bin/sh
# Measures the library of a build folder: run.sh [BUILD] [nets|ops] [options]. Against stock TensorFlow by compare.py;
# after "nets", networks against other libraries by nets/nets.py; after "ops", single ops by ops/ops.py.
set -eu
here=$(dirname "$0")
build=
if [ $# -gt 0 ] && [ -d "$1" ]; then
  build=$1
  shift
fi
program=$here/compare.py
case ${1:-} in
nets | ops)
  program=$here/$1/$1.py
  shift
  ;;
esac
exec python3 "$program" ${build:+--ours "$build"} "$@"
