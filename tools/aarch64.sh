#!/bin/sh
# Builds the library, the command and the tests of kernels for 64-bit ARM, and runs these tests under qemu-user.
#
#   aarch64.sh [JOBS]
#
# Needs Debian with gcc-aarch64-linux-gnu, g++-aarch64-linux-gnu and qemu-user, which it installs if it may, and
# arm64 among dpkg's architectures, from which it takes the libraries: they are unpacked under build/aarch64/root, not
# installed. doc/aarch64.md says what works.
set -e
cd "$(dirname "$0")/.."
jobs=${1:-$(nproc)}
out=build/aarch64
root=$PWD/$out/root
libraries="libc6 libc6-dev linux-libc-dev libcrypt-dev libgcc-s1 libstdc++6 libgomp1 libdnnl-dev libdnnl2 libsleef-dev libsleef3
  libpcre2-dev libpcre2-8-0 libnghttp2-dev libnghttp2-14 zlib1g-dev zlib1g libjansson-dev libjansson4 libjpeg62-turbo-dev
  libjpeg62-turbo libpng-dev libpng16-16 libssl-dev libssl3 libhiredis-dev libhiredis0.14 libcriterion-dev libcriterion3
  libnanomsg5 libffi8 libgit2-1.5 libjxl-dev libjxl0.7 libwebp-dev
  libwebp7 libwebpdemux2 libbrotli1 libhwy1 liblcms2-2 libsqlite3-0 libzstd1"

say() { printf 'aarch64: %s\n' "$1"; }
if ! { command -v aarch64-linux-gnu-g++ && command -v qemu-aarch64; } >/dev/null; then
  [ "$(id -u)" = 0 ] || { say "install gcc-aarch64-linux-gnu, g++-aarch64-linux-gnu and qemu-user first" >&2; exit 1; }
  apt-get install -y --no-install-recommends gcc-aarch64-linux-gnu g++-aarch64-linux-gnu qemu-user
fi
if [ ! -e "$out/root.complete" ]; then
  dpkg --print-foreign-architectures | grep -q '^arm64$' ||
    { say "run 'dpkg --add-architecture arm64 && apt-get update' first" >&2; exit 1; }
  mkdir -p "$out/packages" "$root"
  packages=
  for name in $libraries; do packages="$packages $name:arm64"; done
  # shellcheck disable=SC2086  # a list of names
  (cd "$out/packages" && apt-get download $packages)
  for file in "$out"/packages/*.deb; do dpkg -x "$file" "$root"; done
  touch "$out/root.complete"
fi
cmake -S . -B "$out/build" -G Ninja -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake -DRN_ROOT="$root" -DRN_NVCC= >"$out/cmake.log" ||
  { cat "$out/cmake.log"; exit 1; }
ninja -C "$out/build" -j "$jobs" tensorflow runnel ops_test
exec ctest --test-dir "$out/build" --output-on-failure -j "$jobs" -R '^ops/eval/'
