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

# Many parameter servers; only every third number of backups.
"$1" sim --workers 4 --ps 70 --backups 3 --every 3 --steps 3 | awk 'NR > 2 { print $1 }' | xargs >"$folder/rows"
[ "$(cat "$folder/rows")" = "0 3" ] || { cat "$folder/rows"; exit 1; }

# The number in a column of a phase's line: number PHASE COLUMN
number() { awk -v phase="$1" -v column="$2" '$1 == phase { print $column }' "$folder/rates"; }
# A rack of five loses power: asynchronous workers lose a fifth of the rate, synchronous ones wait unless backups replace it.
"$1" sim --workers 10 --ps 2 --racks 5 --down 40 --steps 8 --mode async --fault rack >"$folder/rates"
awk -v before="$(number before 3)" -v during="$(number during 3)" -v after="$(number after 3)" \
  'BEGIN { exit !(during > 0.7 * before && during < 0.9 * before && after > 0.9 * before) }' || { cat "$folder/rates"; exit 1; }
"$1" sim --workers 10 --ps 2 --racks 5 --down 40 --steps 8 --fault rack >"$folder/rates"
awk -v pause="$(number during 4)" 'BEGIN { exit !(pause > 30) }' || { cat "$folder/rates"; exit 1; }
"$1" sim --workers 8 --backups 2 --ps 2 --racks 5 --down 40 --steps 8 --fault rack >"$folder/rates"
awk -v pause="$(number during 4)" 'BEGIN { exit !(pause < 15) }' || { cat "$folder/rates"; exit 1; }
"$1" sim --workers 10 --ps 2 --racks 5 --down 5 --steps 8 --mode async --fault rolling >"$folder/rates"
awk -v before="$(number before 3)" -v after="$(number after 3)" 'BEGIN { exit !(after > 0.9 * before) }' || { cat "$folder/rates"; exit 1; }

# An all-reduce takes at least 2 (n - 1) / n of the model's bytes over one port, and racks need fewer rounds.
"$1" sim --workers 100 --mode ring --steps 5 | tail -1 >"$folder/ring"
"$1" sim --workers 100 --mode racks --racks 10 --steps 5 | tail -1 >"$folder/racks"
least=$(awk 'BEGIN { print 2 * 99 / 100 * 96e6 / 1.25e9 }')
cat "$folder/ring" "$folder/racks" | awk -v least="$least" '$5 < least || $5 > 2 * least { exit 1 }' || { cat "$folder/ring" "$folder/racks"; exit 1; }
cat "$folder/ring" "$folder/racks" | awk '{ took[NR] = $5 } END { exit !(took[2] < took[1]) }'

for wrong in '--workers 10 --mode racks --racks 3' '--mode ring --fault rack' '--mode async --backups 2' '--workers 2 --racks 3 --fault rack' \
             '--mode sideways'; do
  # shellcheck disable=SC2086
  if "$1" sim $wrong >/dev/null 2>&1; then echo "accepted: $wrong"; exit 1; fi
done
if "$1" sim --workers 0 2>/dev/null; then
  echo "no workers are enough?"
  exit 1
fi
