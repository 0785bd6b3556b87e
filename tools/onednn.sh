#!/usr/bin/env bash
# Builds the oneDNN that goes into wheels: convolutions and reorders only, without threads and GPUs. Debian's has everything, and is
# 40 MB large; what we call (src/kernels/cpu/dnnl.h) needs a fifth of it.
# usage: tools/onednn.sh FOLDER JOBS
# Takes the sources from $ONEDNN_SOURCE if that is set, otherwise from the project's repository.
set -eu
folder=$1 jobs=$2
tag=v2.6.3 commit=92ac40077b3b5816c7b78cdf39a988599929f0e9  # of the version that Debian's headers describe
[ -e "$folder/libdnnl.so.2" ] && exit 0
mkdir -p "$folder"
source=${ONEDNN_SOURCE:-$folder/source}
if [ ! -e "$source/CMakeLists.txt" ]; then
  git clone -q -c advice.detachedHead=false --depth 1 --branch $tag https://github.com/oneapi-src/oneDNN "$source"
  [ "$(git -C "$source" rev-parse HEAD)" = $commit ] || { echo "onednn.sh: $tag is another commit than $commit" >&2; exit 1; }
fi
# We convolve floats only. Other primitives and types would be compiled and then left out by the linker; without their files, and the rows
# that name them, the build takes a third of the time.
types='(amx|core_bf16)_(1x1_)?conv|gemm_bf16_conv|[ux]8s8s32x'
sed -E -i "/CPU_INSTANCE.*($types)/d" "$source/src/cpu/cpu_convolution_list.cpp"
primitives='rnn|pool|lrn|batch_norm|layer_norm|softmax|shuffle|prelu|resampl|reduction|matmul|inner_product|deconv|_sum|_concat'
find "$source/src/cpu" -name '*.cpp' ! -name '*_list.cpp' ! -name cpu_sum.cpp ! -name cpu_concat.cpp -regextype posix-extended \
  -regex ".*($primitives|$types)[^/]*(/.*)?" -delete
# These files generate code; optimizing the generators takes long and gains nothing.
grep -q O1 "$source/src/cpu/x64/CMakeLists.txt" || sed -i '1i add_compile_options(-O1)' "$source/src/cpu/x64/CMakeLists.txt"
launcher=$(command -v ccache || true)
cmake -S "$source" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  ${launcher:+-DCMAKE_CXX_COMPILER_LAUNCHER=$launcher} \
  -DDNNL_CPU_RUNTIME=SEQ -DDNNL_GPU_RUNTIME=NONE '-DDNNL_ENABLE_PRIMITIVE=CONVOLUTION;REORDER' -DDNNL_ARCH_OPT_FLAGS=-msse4.1 \
  -DDNNL_BUILD_TESTS=OFF -DDNNL_BUILD_EXAMPLES=OFF -DDNNL_ENABLE_JIT_PROFILING=OFF -DDNNL_ENABLE_ITT_TASKS=OFF \
  '-DCMAKE_CXX_FLAGS=-ffunction-sections -fdata-sections' '-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG' \
  '-DCMAKE_SHARED_LINKER_FLAGS=-static-libstdc++ -static-libgcc -Wl,--gc-sections,--exclude-libs,ALL,--as-needed,-z,defs,-s' \
  >"$folder/configure.log" 2>&1 || { cat "$folder/configure.log" >&2; exit 1; }
ninja -C "$folder/build" -j "$jobs"
cat "$source/LICENSE" "$source/THIRD-PARTY-PROGRAMS" >"$folder/copyright"
cp -L "$folder/build/src/libdnnl.so.2" "$folder/libdnnl.so.2"
