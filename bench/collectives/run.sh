#!/bin/sh
# Compares our all-reduce with Open MPI's: run.sh [TURNS]. BUILD is the build folder, PYTHON has NumPy.
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
for turn in $(seq "${1:-3}"); do
  for sizes in "25000000 6 2 6" "1 2000 9 200"; do
    set -- $sizes
    mpi=$(mpirun --oversubscribe -n 4 "$folder/mpi" "$1" "$2" 2>/dev/null)
    ours=$("$build/cli/runnel" cluster up --ps 0 --workers 4 -- "$python" "$here/ours.py" "$1" "$3" "$4" 2>/dev/null | tail -n 1)
    echo "turn $turn, $(($1 * 4)) bytes: MPI $mpi s, ours $ours s"
  done
done
