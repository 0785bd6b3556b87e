#!/usr/bin/env bash
# Installs into an empty folder, then does what a new user does: compile with pkg-config, link, run, read the manual.
# usage: install_test.sh BUILD_FOLDER C_COMPILER EMULATED_CUDA
set -eu
build=$1
cc=$2
emulated=$3
here=$(cd "$(dirname "$0")" && pwd)
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
fail() {
  echo "FAILED: $1"
  exit 1
}

cmake --install "$build" --prefix "$prefix" --strip >"$prefix/log" || { cat "$prefix/log"; exit 1; }
cd "$prefix"
for file in lib/libtensorflow.so lib/libtensorflow.so.2 lib/libtensorflow.so.2.21.0 lib/libtensorflow_cc.so.2 \
  lib/libtensorflow_framework.so.2 lib/libtensorflow_framework.so include/tensorflow/c/c_api.h include/tensorflow/c/eager/c_api.h \
  include/runnel/runnel.h include/runnel/ops.h include/runnel/graph.h bin/runnel share/man/man1/runnel.1 \
  share/bash-completion/completions/runnel share/zsh/site-functions/_runnel share/fish/vendor_completions.d/runnel.fish \
  share/doc/runnel/examples/models/line.pbtxt \
  share/doc/runnel/README.md share/doc/runnel/LICENSE share/doc/runnel/ops/math.md lib/pkgconfig/tensorflow.pc lib/pkgconfig/runnel.pc; do
  [ -e $file ] || fail "$file is missing"
done
# The CUDA part comes with the library if it was built, at most 15 MB of it.
part=$build/librunnel_cuda.so.2
if grep -q 'not built' "$build/cuda_part.txt"; then part=; fi
if [ -n "$part" ] && [ -e "$part" ]; then
  [ -e lib/librunnel_cuda.so.2 ] || fail 'lib/librunnel_cuda.so.2 is missing'
  [ "$(stat -c %s lib/librunnel_cuda.so.2)" -le 15000000 ] || fail 'the CUDA part is too large'
  readelf -d lib/librunnel_cuda.so.2 | grep -q 'NEEDED.*lib\(cu\|nv\)' && fail 'the CUDA part needs a CUDA library to load'
  "$here/../house/hardening.sh" "$prefix/lib/librunnel_cuda.so.2" || [ $? = 77 ] || fail 'the CUDA part is not hardened'
fi
readelf -S lib/libtensorflow.so.2 | grep -q debug_info && fail 'the library was not stripped'
"$here/../house/hardening.sh" "$prefix/lib/libtensorflow.so.2" "$prefix/bin/runnel" || [ $? = 77 ] || fail 'it is not hardened'
grep -rl "$build" include lib/pkgconfig share && fail 'an installed file names the build folder'

export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
[ "$(pkg-config --modversion tensorflow)" = 2.21.0 ] || fail 'the version of tensorflow.pc'
said=$(bin/runnel --version | cut -d ' ' -f 2)
[ "$(pkg-config --modversion runnel)" = "$said" ] || fail "runnel.pc has another version than the command: $said"
libs=$(pkg-config --libs tensorflow)
case " $libs " in *' -ltensorflow '*) ;; *) fail "tensorflow.pc links with $libs" ;; esac
case " $libs " in *' -ltensorflow_framework '*) ;; *) fail "tensorflow.pc links with $libs" ;; esac
# shellcheck disable=SC2046
"$cc" -Wall -Werror "$here/client.c" -o client $(pkg-config --cflags --libs tensorflow)
# The first program of the README, as it stands there.
sed -n '/^```c$/,/^```$/p' "$here/../../README.md" | grep -v '^```' >slope.c
# shellcheck disable=SC2046
"$cc" -Wall -Werror slope.c -o slope $(pkg-config --cflags --libs runnel)
export LD_LIBRARY_PATH=$prefix/lib
[ "$(./client)" = '2.21.0 42' ] || fail "the client says: $(./client 2>&1)"
[ "$(./slope)" = 'the slope of x*x at 3 is 6' ] || fail "the README's program says: $(./slope 2>&1)"

# C++, where that part was built: with pkg-config, and as build files made for TensorFlow link.
if [ -e lib/pkgconfig/tensorflow_cc.pc ]; then
  # shellcheck disable=SC2046
  g++ -std=c++17 -Wall -Werror "$here/../../examples/cc/slope.cc" -o slope_cc $(pkg-config --cflags --libs tensorflow_cc)
  # shellcheck disable=SC2046
  g++ -std=c++17 "$here/../../examples/cc/slope.cc" -o slope_cc2 $(pkg-config --cflags tensorflow_cc) -Llib \
    -ltensorflow_cc -ltensorflow_framework
  for program in ./slope_cc ./slope_cc2; do
    [ "$($program)" = 'the slope of x*x at 3 is 6' ] || fail "$program says: $($program 2>&1)"
  done
  readelf -d client | grep -q 'NEEDED.*protobuf' && fail 'a C program needs protobuf'
  # Build files ask this name for its dependencies (CMake's GET_RUNTIME_DEPENDENCIES).
  readelf -d lib/libtensorflow_framework.so >readelf.log || fail 'libtensorflow_framework.so is no library'
  # An op as TensorFlow's guide builds it: one folder of headers, one library, which a program in C loads.
  g++ -std=c++17 -shared -fPIC "$here/../../examples/cc/zero_out.cc" -o zero_out.so -Iinclude -Llib -l:libtensorflow_framework.so.2
  # shellcheck disable=SC2046
  "$cc" -Wall -Werror "$here/load.c" -o load $(pkg-config --cflags --libs tensorflow)
  [ "$(./load ./zero_out.so)" = 1 ] || fail "an op that names no messages does not load: $(./load ./zero_out.so 2>&1)"
fi

# The whole tree may be moved.
mkdir moved
mv lib include bin share moved/
export PKG_CONFIG_PATH=$prefix/moved/lib/pkgconfig LD_LIBRARY_PATH=$prefix/moved/lib
case "$(pkg-config --cflags tensorflow)" in *moved*) ;; *) fail 'tensorflow.pc does not follow its folder' ;; esac
[ "$(./client)" = '2.21.0 42' ] || fail 'the client does not run with the moved library'
unset LD_LIBRARY_PATH
moved/bin/runnel --version | grep -q '^runnel ' || fail 'the command needs more than itself'
moved/bin/runnel ops MatMul | grep -q '^MatMul(' || fail 'the command knows no ops'
# The command finds the CUDA part however it is called; the driver is an emulated one.
if [ -e "$emulated/libcuda.so.1" ]; then
  [ -e moved/lib/librunnel_cuda.so.2 ] || cp "$emulated/librunnel_cuda.so.2" moved/lib/
  export RUNNEL_CUDA_PATH=$emulated
  ln -s moved/bin/runnel link
  for command in moved/bin/runnel ./link runnel; do
    PATH=$prefix/moved/bin:$PATH $command devices | grep -q '^GPU:0' || fail "'$command devices' does not list the GPU"
  done
fi
