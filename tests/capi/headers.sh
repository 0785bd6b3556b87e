#!/bin/sh
# Compiles every public header of C alone, as C11 and as C++11, 17 and 20, with warnings as errors; then a C++ program that uses the
# builders, and runs it. tests/cc compiles the C++ front end.
# usage: headers.sh INCLUDE_DIR [C_COMPILER [GENERATED_INCLUDE_DIR [LIBRARY_DIR]]]
set -u
include=${1:?usage: headers.sh INCLUDE_DIR [C_COMPILER [GENERATED_INCLUDE_DIR [LIBRARY_DIR]]]}
cc=${2:-cc}
generated=${3:-}
library=${4:-}
here=$(cd "$(dirname "$0")" && pwd)
warnings="-Wall -Wextra -Werror"
flags="$warnings -Wpedantic -I$include ${generated:+-I$generated} -fsyntax-only"
compilers=""
for cxx in g++ clang++; do command -v $cxx >/dev/null && compilers="$compilers $cxx"; done

headers=$(cd "$include" && find tensorflow tsl xla -name '*.h' | grep -v '^tensorflow/\(cc\|core\)/' | sort)
[ -n "$headers" ] || { echo "no headers under $include" >&2; exit 1; }
[ -z "$generated" ] || headers="$headers $(cd "$include" && find runnel -name '*.h' | sort) runnel/ops.h"
failed=0
fail() { echo "FAIL $*" >&2; failed=1; }
for header in $headers; do
  # Twice: the second inclusion must be empty.
  source=$(printf '#include "%s"\n#include "%s"\ntypedef int not_empty_t;\n' "$header" "$header")
  echo "$source" | $cc -std=c11 $flags -x c - || fail "C11 $header"
  echo "$source" | c++ -std=c++17 $flags -x c++ - || fail "C++17 $header"
done
# All together, in both orders: no two headers may contradict each other.
for order in "sort" "sort -r"; do
  all=$(echo $headers | tr ' ' '\n' | $order | sed 's/.*/#include "&"/')
  echo "$all" | $cc -std=c11 $flags -x c - || fail "all headers (C11, $order)"
  for cxx in $compilers; do
    for std in c++11 c++17 c++20; do
      echo "$all" | $cxx -std=$std $flags -x c++ - || fail "all headers ($cxx $std, $order)"
    done
  done
done
[ -n "$library" ] || exit $failed
program=$(mktemp)
for cxx in $compilers; do
  for std in c++11 c++17 c++20; do
    $cxx -std=$std $warnings "-I$include" "-I$generated" "$here/builders.cpp" -o "$program" "-L$library" -ltensorflow \
      "-Wl,-rpath,$library" && "$program" || fail "builders.cpp ($cxx $std)"
  done
done
rm -f "$program"
exit $failed
