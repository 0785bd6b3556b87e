#!/usr/bin/env bash
# clang++ accepts the programs of this folder, without a warning.
# usage: clang_test.sh SOURCE GENERATED_HEADERS EIGEN
set -eu
command -v clang++ >/dev/null || { echo 'no clang++'; exit 77; }
for file in "$1"/tests/cc/*.cc "$1"/examples/cc/*.cc; do
  clang++ -std=c++17 -fsyntax-only -Wall -Wextra -Werror -I"$1/include" -I"$2" -isystem "$3" "$file" || exit 1
done
