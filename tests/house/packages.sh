#!/usr/bin/env bash
# Everything the build takes from outside is in packages.txt: the package of every <header> that our C files include, and of
# the programs that the Makefile calls. Ends with 77 (skipped) where there is no dpkg to ask.
cd "$(dirname "$0")/../.." || exit 1
command -v dpkg >/dev/null || exit 77
cc=${1:-cc}
listed=$(sed 's/#.*//; s/[[:space:]].*//; /^$/d' packages.txt)
bad=0
lists() {
  grep -qx -- "$1" <<<"$listed" && return
  echo "packages.txt lacks $1, for $2"
  bad=1
}
for package in gcc make cmake ninja-build pkg-config; do lists $package 'the build'; done

# Headers that belong to nobody are ours, the C library's or generated.
headers=$(grep -rhoE '^ *#include <[^>]+>' src cli tests examples tools --include='*.c' --include='*.h' --include='*.inc' |
  sed 's/.*<\(.*\)>.*/\1/' | sort -u)
declare -A header_of
for header in $headers; do
  [ -e "include/$header" ] && continue
  path=$(echo "#include <$header>" | "$cc" -E -x c - 2>/dev/null | sed -n "s|^# 1 \"\(.*$header\)\".*|\1|p" | head -1)
  [ -n "$path" ] && header_of[$(realpath "$path")]=$header
done
while IFS= read -r line; do
  package=${line%%[:,]*}
  case $package in
    libc6-dev | linux-libc-dev | libgcc-*-dev | libclang-*) ;;
    *) lists "$package" "<${header_of[${line##*: }]}>" ;;
  esac
done < <(dpkg -S "${!header_of[@]}" 2>/dev/null)
# Libraries by the names that CMake links.
for pair in criterion:libcriterion-dev jansson:libjansson-dev sleef:libsleef-dev dnnl:libdnnl-dev; do
  grep -rqw "${pair%%:*}" CMakeLists.txt tests/*/CMakeLists.txt cli/CMakeLists.txt cmake src --include=CMakeLists.txt --include='*.cmake' &&
    lists "${pair##*:}" "the library ${pair%%:*}"
done
exit $bad
