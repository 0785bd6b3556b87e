#!/usr/bin/env bash
# Runs the tests in phases, cheap ones first: a phase starts only if no earlier one failed, and runs all of its tests. The last line
# sums up the phases.
# usage: tools/test.sh BUILD JOBS PHASE ...
#   structure  checks that read the source tree only (label structure)
#   build      builds everything
#   quick      the tests that are neither structure nor slow
#   slow       the tests that take long (label slow)
set -u
build=$1 jobs=$2
shift 2
cd "$(dirname "$0")/.." || exit 1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Many tests wait for other processes, so 1.5 tests per core keep the cores busy.
parallel=$((jobs + jobs / 2))
passed=0 failed=0
export RUNNEL_VERIFY=1  # every plan is checked: doc/passes.md

# Runs ctest with the given arguments and adds to the counts. Fails if a test fails or none ran.
run_tests() {
  ctest --test-dir "$build" --output-on-failure --no-tests=error -j "$parallel" "$@" | tee "$log"
  local status=${PIPESTATUS[0]} bad all
  read -r bad all < <(sed -n 's/.*% tests passed, \([0-9]*\) tests* failed out of \([0-9]*\)$/\1 \2/p' "$log")
  failed=$((failed + ${bad:-0}))
  passed=$((passed + ${all:-0} - ${bad:-0}))
  return "$status"
}

run_phase() {
  case $1 in
    structure) run_tests -L '^structure$' ;;
    build) ninja -C "$build" -j "$jobs" ;;
    quick) run_tests -LE '^(structure|slow)$' ;;
    slow) run_tests -L '^slow$' ;;
    *) echo "test.sh: there is no phase '$1'" >&2; return 2 ;;
  esac
}

began=$SECONDS
while [ $# -gt 0 ]; do
  echo "== $1"
  phase_began=$SECONDS
  if ! run_phase "$1"; then
    echo
    echo "phase $1 failed${2:+; not run: ${*:2}}"
    echo "$passed passed, $failed failed"
    exit 1
  fi
  echo "== $1 took $((SECONDS - phase_began)) s"
  shift
done
echo "all phases took $((SECONDS - began)) s"
echo "$passed passed, $failed failed"
