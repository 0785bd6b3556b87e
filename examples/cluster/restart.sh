#!/usr/bin/env bash
# Kills a parameter server while a cluster trains and restarts it: restart.sh DIGITS FOLDER [--sync]
#
# The chief has saved what the server knew; the workers wait, it is restored, and training goes on
# by itself. The exit code is the chief's: 0 if the digits were learned in the end.
set -eu
digits=$1
folder=$2
shift 2
rm -rf "$folder"
mkdir -p "$folder"
mapfile -t ports < <("$digits" --ports 4)
cluster="ps=127.0.0.1:${ports[0]}|127.0.0.1:${ports[1]},worker=127.0.0.1:${ports[2]}|127.0.0.1:${ports[3]}"
pids=()
task() { # JOB NUMBER, in the background
  "$digits" --cluster "$cluster" --job "$1" --task "$2" --dir "$folder" --steps 6000 "${@:3}" \
    >"$folder/$1$2.log" 2>&1 &
  pids+=($!)
}
trap 'kill "${pids[@]}" 2>/dev/null || true' EXIT
task ps 0
task ps 1
task worker 0 --dump "$folder/result" "$@"
task worker 1 "$@"
chief=${pids[2]}

# Until something has been saved after the beginning.
for ((i = 0; i < 600; ++i)); do
  sleep 0.1
  saved=$(find "$folder" -name 'model.ckpt-*.index' ! -name 'model.ckpt-[01].index' | wc -l)
  [ "$saved" -gt 0 ] && break
done
[ "$saved" -gt 0 ] || { echo "no checkpoint came"; exit 1; }
kill -KILL "${pids[1]}"
echo "parameter server 1 is dead"
sleep 1
kill -0 "$chief" || { echo "the chief went with it"; exit 1; }
task ps 1
echo "parameter server 1 is back"
wait "$chief" || { tr '\r' '\n' <"$folder/worker0.log" | tail -3; exit 1; }
tail -n 1 "$folder/worker0.log" | tr '\r' '\n' | tail -n 1
# The same session went on: the same process, which has seen what happened.
recoveries=$(sed -n 's/^recoveries //p' "$folder/result")
echo "the chief made $recoveries new session(s)"
[ "$recoveries" -ge 1 ]
