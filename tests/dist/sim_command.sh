#!/usr/bin/env bash
# `runnel sim`: the same seed prints the same output, another seed does not; the picture is XML. usage: sim_command.sh RUNNEL
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
simulate() { "$1" sim --workers 12 --ps 3 --backups 2 --steps 24 --stragglers 20 --seed "$2" --svg "$folder/$3.svg" >"$folder/$3"; }
simulate "$1" 1 first
simulate "$1" 1 again
simulate "$1" 2 other
cmp "$folder/first" "$folder/again"
cmp "$folder/first.svg" "$folder/again.svg"
if cmp -s "$folder/first" "$folder/other"; then
  echo "two seeds print the same"
  exit 1
fi
python3 -c "import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])" "$folder/first.svg"
# Backups do not make steps slower: with a fifth of the steps straggling, they gain much.
awk '$1 == "0" { none = $2 } $1 == "2" { two = $2 } END { exit !(none > 1.1 * two) }' "$folder/first" || {
  cat "$folder/first"
  exit 1
}
if "$1" sim --workers 0 2>/dev/null; then
  echo "no workers are enough?"
  exit 1
fi
