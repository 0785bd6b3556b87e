#!/usr/bin/env bash
# Builds the fuzz targets with clang and runs each for FUZZ_SECONDS (default 60).
# usage: tools/fuzz.sh [TARGET ...]
# Each starts from the inputs of fuzz/corpus/TARGET.tar; its corpus grows in build/fuzz/corpus/TARGET. Inputs that crash it
# are in build/fuzz/crashes; tools/corpus.sh adds one to the archive.
set -eu
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-60}
build=build/fuzz
cc=${CC:-clang}
command -v "$cc" >/dev/null || { echo "fuzz.sh: $cc is missing; install the packages clang and libclang-rt-14-dev" >&2; exit 1; }
mkdir -p $build
cmake -S . -B $build -G Ninja -DCMAKE_C_COMPILER="$cc" -DRN_FUZZ=ON -DRN_ISA_ONLY=native \
  -DRN_SANITIZE=address,undefined,fuzzer-no-link >$build/cmake.log || { cat $build/cmake.log >&2; exit 1; }
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
  for source in fuzz/fuzz_*.c; do targets+=("$(basename "$source" .c)"); done
fi
ninja -C $build -j "${JOBS:-$(nproc)}" "${targets[@]}"

# Inputs may request more memory than there is.
export ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
mkdir -p $build/crashes
failed=0
for target in "${targets[@]}"; do
  corpus=$build/corpus/$target
  tools/corpus.sh unpack "$target" "$corpus"  # beside what earlier runs found
  echo "$target: $seconds seconds"
  $build/fuzz/"$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="$build/crashes/$target-" "$corpus" >"$build/$target.log" 2>&1 || {
    failed=1
    echo "$target: FAILED; see $build/$target.log and $build/crashes"
    tail -n 20 "$build/$target.log"
    continue
  }
  grep -E 'stat::(number_of_executed_units|new_units_added)' "$build/$target.log" | sed 's/^/  /'
done
exit $failed
