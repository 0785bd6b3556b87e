#!/usr/bin/env bash
# Installs the missing packages of packages.txt if it has the permission; otherwise lists them.
# usage: deps.sh          what building and testing need
#        deps.sh docs     what `make docs` needs
#        deps.sh tests    what optional tests need, which are skipped otherwise; a failure is not an error
set -u
cd "$(dirname "$0")/.." || exit 1
mkdir -p build
what=${1:-needed}
stamp=build/.deps.$what
[ -e "$stamp" ] && [ "$stamp" -nt packages.txt ] && exit 0
missing=()
while read -r package _; do
  case $package in '' | '#'*) continue ;; esac
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done < <(awk -v what="$what" '
  /^#/ { part = /^# tests that are skipped/ ? "tests" : /^# documentation/ ? "docs" : "needed" }
  part == what' packages.txt)
if [ ${#missing[@]} -gt 0 ]; then
  echo "Runnel needs these Debian packages${1:+ for $1}: ${missing[*]}"
  if [ "$(id -u)" = 0 ]; then
    run=()
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    run=(sudo)
  else
    echo "Install them with: apt-get install ${missing[*]}" >&2
    [ "$what" = tests ]
    exit
  fi
  export DEBIAN_FRONTEND=noninteractive
  "${run[@]}" apt-get update -qq && "${run[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >"build/deps.$what.log" 2>&1 || {
    echo "apt-get failed; see build/deps.$what.log" >&2
    [ "$what" = tests ]
    exit
  }
fi
touch "$stamp"
