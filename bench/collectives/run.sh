#!/bin/sh
# Compares our all-reduce with Open MPI's, and training by it with training by parameter servers, by turns:
# run.sh [TURNS]. BUILD is the build folder, PYTHON has NumPy.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
build=${BUILD:-$root/build/release}
python=${PYTHON:-$root/build/venv/bin/python}
command -v mpicc >/dev/null || { echo "run.sh needs libopenmpi-dev" >&2; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mpicc -O2 -o "$folder/mpi" "$here/mpi.c"
export RUNNEL_BUILD="$build" PYTHONPATH="$root/python" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# up SCRIPT ARGUMENTS: the last line that a script prints on a new cluster.
up() {
  script=$1
  shift
  "$build/cli/runnel" cluster up --ps 1 --workers 4 -- "$python" "$here/$script" "$@" 2>/dev/null | tail -n 1
}

for turn in $(seq "${1:-3}"); do
  for sizes in "25000000 2 4" "1 200 100"; do
    set -- $sizes
    echo "$(($1 * 4)) MPI $(mpirun --oversubscribe -n 4 "$folder/mpi" "$@" 2>/dev/null)" >>"$folder/times"
    echo "$(($1 * 4)) ours $(up ours.py "$@")" >>"$folder/times"
    echo "$(($1 * 4)) by_MPI $("$python" "$here/by_mpi.py" "$build/cli/runnel" "$@" 2>/dev/null | tail -n 1)" >>"$folder/times"
    tail -n 3 "$folder/times"
  done
  for form in all-reduce servers; do
    echo "digits $form $(up digits.py $form | sed 's/.*: //')" >>"$folder/times"
  done
  tail -n 2 "$folder/times"
done
awk '$1 == "digits" { if ($3 > rate[$2]) rate[$2] = $3; next }
     { if (!($1 $2 in best) || $3 < best[$1 $2]) best[$1 $2] = $3; sizes[$1]
       if (!($1 $2 in used) || $4 < used[$1 $2]) used[$1 $2] = $4 }
     END { for (size in sizes)
             printf "%d bytes: MPI %.6f s (processors %.6f), ours %.6f s (%.6f), ratio of times %.2f\n", size,
                    best[size "MPI"], used[size "MPI"], best[size "ours"], used[size "ours"], best[size "ours"] / best[size "MPI"]
           for (size in sizes) printf "%d bytes: our collectives by MPI %.6f s\n", size, best[size "by_MPI"]
           printf "digits: all-reduce %d steps/s, servers %d, ratio %.2f\n", rate["all-reduce"], rate["servers"],
                  rate["all-reduce"] / rate["servers"] }' "$folder/times"
