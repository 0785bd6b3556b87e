#!/usr/bin/env bash
# Installs the packages of packages.txt that are missing, where that is allowed; names them otherwise. With "tests", those of its
# last part too, without which tests are skipped: if they cannot be had, that is no error.
set -u
cd "$(dirname "$0")/.." || exit 1
mkdir -p build
what=${1:-needed}
stamp=build/.deps.$what
[ -e "$stamp" ] && [ "$stamp" -nt packages.txt ] && exit 0
optional='# tests that are skipped'
missing=()
while read -r package _; do
  case $package in '' | '#'*) continue ;; esac
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done < <(if [ "$what" = tests ]; then sed "1,/^$optional/d" packages.txt; else sed "/^$optional/,\$d" packages.txt; fi)
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
