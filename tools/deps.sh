#!/usr/bin/env bash
# Installs the packages of packages.txt that are missing, where that is allowed; names them otherwise.
set -u
cd "$(dirname "$0")/.." || exit 1
mkdir -p build
stamp=build/.deps
[ -e "$stamp" ] && [ "$stamp" -nt packages.txt ] && exit 0
missing=()
while read -r package _; do
  case $package in '' | '#'*) continue ;; esac
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done <packages.txt
if [ ${#missing[@]} -gt 0 ]; then
  echo "Runnel needs these Debian packages: ${missing[*]}"
  if [ "$(id -u)" = 0 ]; then
    run=()
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    run=(sudo)
  else
    echo "Install them with: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  "${run[@]}" apt-get update -qq && "${run[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >build/deps.log 2>&1 || {
    echo "apt-get failed; see build/deps.log" >&2
    exit 1
  }
fi
touch "$stamp"
