#!/usr/bin/env bash
# The tests that need a card: on a machine that has one, with a build tree or with programs that were carried there.
# usage: tests/gpu/card.sh FOLDER [STAGE ...]
#   FOLDER     a build tree, or a folder with libtensorflow.so.2, librunnel_cuda.so.2, ops_test, gpu_bench, gpu_random_graphs, gpu_*_test
#   tests      the test programs of tests/gpu that do not need the emulated driver
#   tables     the case tables of tests/ops with every op on the GPU
#   gradients  the gradients of the tables, against central differences
#   graphs     random graphs against the CPU
#   networks   the networks of bench/gpu: losses as on the CPU, and the same bits in two runs
#   memcheck, initcheck, racecheck: rows of the tables under compute-sanitizer, one per op and types
# All stages run if none is named. Settings: FAMILIES of the tables (all), GRAPHS (300), SAMPLE (1), LIMIT (600 s per program).
set -u
[ $# -gt 0 ] || { sed -n '2,12s/^# //p' "$0"; exit 2; }
folder=$1
shift
[ $# -gt 0 ] || set -- tests tables gradients graphs networks memcheck initcheck racecheck
here=$(cd "$(dirname "$0")" && pwd)
limit=${LIMIT:-600}
passed=0 failed=0

# The file of this name in the folder, but not what the emulated driver has.
find_file() { find "$folder" -name "$1" -not -path '*/tests/gpu/cuda/*' \( -type f -o -type l \) | sort | head -n 1; }

library=$(find_file libtensorflow.so.2) part=$(find_file librunnel_cuda.so.2) ops=$(find_file ops_test)
for need in "$library" "$part" "$ops"; do
  [ -n "$need" ] || { echo "card.sh: $folder lacks libtensorflow.so.2, librunnel_cuda.so.2 or ops_test" >&2; exit 2; }
done
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
unset RUNNEL_CUDA_PATH
LD_LIBRARY_PATH=$(cd "$(dirname "$library")" && pwd)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
RUNNEL_CUDA_PART=$(cd "$(dirname "$part")" && pwd)/librunnel_cuda.so.2
export LD_LIBRARY_PATH RUNNEL_CUDA_PART RUNNEL_CACHE_DIR=$cache RUNNEL_VERIFY=1

# Products in full precision: what they are compared with is.
export NVIDIA_TF32_OVERRIDE=0

# Runs a command; what it says is shown if it fails.
check() {
  local name=$1 began=$SECONDS log=$cache/log
  shift
  if timeout "$limit" "$@" >"$log" 2>&1; then
    passed=$((passed + 1))
    echo "ok      $name ($((SECONDS - began)) s)  $(tail -n 1 "$log" | cut -c1-100)"
  else
    local status=$?
    failed=$((failed + 1))
    echo "FAILED  $name ($((SECONDS - began)) s, status $status)"
    tail -n "${LINES_SHOWN:-40}" "$log" | cut -c1-300
  fi
}

families() {
  [ -z "${FAMILIES:-}" ] || { echo "$FAMILIES"; return; }
  for file in "$here"/../ops/cases/*.jsonl; do basename "$file" .jsonl; done
}

# Ops whose rows take different kernels by their sizes: all of their rows.
by_size='DynamicStitch CumulativeLogsumexp Cumsum BlockLSTM ResizeNearestNeighbor Transpose QuantizeAndDequantize'

sanitize() {
  local tool=$1 program
  shift
  program=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
  [ -x "$program" ] || { echo "FAILED  $tool: there is no compute-sanitizer"; failed=$((failed + 1)); return; }
  # Every allocation is one of the driver's, so that the tool sees the borders of tensors.
  export RUNNEL_CUDA_EXACT=1
  set -- "$program" --tool "$tool" --target-processes all --error-exitcode 9 --report-api-errors no --print-limit 10 "$@" "$ops" --gpu --dir "$here/../ops"
  for family in $(families); do check "$tool/$family" "$@" --sample "${SAMPLE:-1}" "$family"; done
  for op in $([ -n "${FAMILIES:-}" ] || echo "$by_size"); do check "$tool/$op" "$@" --filter "$op"; done
  unset RUNNEL_CUDA_EXACT
}

run_stage() {
  case $1 in
    tests)
      for program in $(find "$folder" -name 'gpu_*_test' -type f -perm -u+x | sort); do
        case $(basename "$program") in
          *emulator*|*_api_test|*faults_test) continue ;;
          *scalar_ops_test) check scalar_ops_test env RUNNEL_CUDA_PART=none "$program" -j2 ;;  # its reference is the CPU
          *) check "$(basename "$program")" "$program" -j2 ;;
        esac
      done ;;
    tables) for family in $(families); do check "tables/$family" "$ops" --gpu --dir "$here/../ops" "$family"; done ;;
    gradients) check gradients "$ops" --gpu --mode grad --dir "$here/../ops" ;;
    graphs) check graphs "$(find_file gpu_random_graphs)" --count "${GRAPHS:-300}" ;;
    networks)
      for dtype in float bfloat16; do check "networks/$dtype" "$(find_file gpu_bench)" --check --dtype $dtype; done
      check networks/repeats "$(find_file gpu_bench)" --repeats ;;
    memcheck) sanitize memcheck --leak-check no ;;
    initcheck) sanitize initcheck ;;
    racecheck) sanitize racecheck ;;
    *) echo "card.sh: there is no stage '$1'" >&2; exit 2 ;;
  esac
}

for stage in "$@"; do run_stage "$stage"; done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
