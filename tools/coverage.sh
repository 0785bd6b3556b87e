#!/usr/bin/env bash
# Line coverage of the tests: builds with counters under build/coverage, runs the tests, prints a table by folder and the files with
# the least coverage, and writes one annotated file per source to build/coverage/report.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
build=build/coverage
jobs=${JOBS:-$(nproc)}
mkdir -p $build
cmake -S . -B $build -G Ninja -DRN_COVERAGE=ON -DCMAKE_BUILD_TYPE=Debug >$build/cmake.log || { cat $build/cmake.log >&2; exit 1; }
ninja -C $build -j "$jobs"
find $build -name '*.gcda' -delete
ctest --test-dir $build --output-on-failure -j "$jobs" ${COVERAGE_CTEST:-} >$build/test.log 2>&1 || {
  tail -n 30 $build/test.log
  echo 'coverage.sh: some tests failed; the figures count what ran' >&2
}
rm -rf $build/report
mkdir -p $build/report
cd $build/report
# One line per source: covered lines, lines, name. A source that is compiled several times counts each line once, at its best.
find "$root/$build" -name '*.gcda' -print0 | sort -z |
  xargs -0 -n 64 gcov --json-format --stdout 2>/dev/null |
  python3 "$root/tools/coverage.py" "$root"
