#!/bin/sh
# Compiles every public header of the C API alone, as C11 and as C++17, with warnings as errors.
# usage: headers.sh INCLUDE_DIR [C_COMPILER [CXX_COMPILER]]
set -u
include=${1:?usage: headers.sh INCLUDE_DIR [C_COMPILER [CXX_COMPILER]]}
cc=${2:-cc}
cxx=${3:-c++}
flags="-Wall -Wextra -Wpedantic -Werror -I$include -fsyntax-only"

headers=$(cd "$include" && find tensorflow tsl xla -name '*.h' | sort)
[ -n "$headers" ] || { echo "no headers under $include" >&2; exit 1; }
failed=0
for header in $headers; do
  # Twice: the second inclusion must be empty.
  source=$(printf '#include "%s"\n#include "%s"\n' "$header" "$header")
  echo "$source" | $cc -std=c11 $flags -x c - || { echo "FAIL C11   $header" >&2; failed=1; }
  echo "$source" | $cxx -std=c++17 $flags -x c++ - || { echo "FAIL C++17 $header" >&2; failed=1; }
done
# All together, in both orders: no two headers may contradict each other.
for order in "sort" "sort -r"; do
  for language in c c++; do
    case $language in c) compiler="$cc -std=c11" ;; c++) compiler="$cxx -std=c++17" ;; esac
    echo "$headers" | $order | sed 's/.*/#include "&"/' | $compiler $flags -x $language - ||
      { echo "FAIL all headers ($language, $order)" >&2; failed=1; }
  done
done
exit $failed
