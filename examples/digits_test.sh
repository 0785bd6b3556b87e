#!/usr/bin/env bash
# Tests the main job as a user runs it: Ctrl-C keeps its state, the next run resumes there, and it leaves states, a log and a
# model that the command reads.
# usage: digits_test.sh DIGITS RUNNEL FOLDER
digits=$1 runnel=$2 folder=$3
rm -rf "$folder"
fail() {
  echo "digits_test: $1"
  exit 1
}

"$digits" "$folder" --steps 1000000 >"$folder.log" &
job=$!
for _ in $(seq 200); do
  ls "$folder"/state-*.index >/dev/null 2>&1 && break
  sleep 0.1
done
kill -INT $job
wait $job || fail "a stopped run ended with $?"
grep -q 'stopped, and saved' "$folder.log" || fail 'a stopped run does not say so'
stopped=$(sed -n 's/.*model_checkpoint_path: ".*state-\([0-9]*\)"/\1/p' "$folder/checkpoint" | head -1)
[ "${stopped:-0}" -ge 2000 ] || fail "the state was not saved at the stop, but at ${stopped:-no} step"
[ -e "$folder/model" ] && fail 'a stopped run leaves a model'

"$digits" "$folder" --steps $((stopped + 3000)) >"$folder.log" || fail "a run that goes on ended with $?"
grep -q "goes on from .*state-$stopped" "$folder.log" || fail 'a second run begins anew'
grep -q $'\r' "$folder.log" && fail 'carriage returns in a file'
# The first line comes after one step and the reading of the state, which takes more than a millisecond.
awk '/steps\/s/ {exit $(NF - 1) > 1000}' "$folder.log" ||
  fail 'the steps of the first run count as those of the second'
"$runnel" events "$folder" --csv | awk -F, -v s="$stopped" '$2 == "loss" && $3 > s {n++} END {exit n < 20}' ||
  fail 'the log has no losses of the second run'
"$runnel" events "$folder" --list | grep -q '^  image .*hidden/units' || fail 'the log has no image'
"$runnel" saved_model show "$folder/model" | grep -q images || fail 'the model does not name its input'
rm -rf "$folder" "$folder.log"
