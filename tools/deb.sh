#!/usr/bin/env bash
# Makes Debian packages of what was built in BUILD, under OUT: one per component of cmake/install.cmake. Compiles nothing.
# usage: tools/deb.sh BUILD OUT
# deploy/debian has what describes the packages. DEBFULLNAME and DEBEMAIL name the person who makes them.
set -eu
cd "$(dirname "$0")/.."
source=$PWD
build=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
for tool in dh_builddeb:debhelper dpkg-shlibdeps:dpkg-dev dh_python3:dh-python; do
  command -v ${tool%:*} >/dev/null || { echo "deb.sh: ${tool%:*} is missing (Debian: ${tool#*:})" >&2; exit 1; }
done
version=$(sed -n 's/^#define RN_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' include/runnel/version.h | paste -sd .)
work=$build/deb
rm -rf "$work"
mkdir -p "$work"
cp -r deploy/debian "$work/debian"
cd "$work"
# Packages of the same commit are the same to the bit.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$source" log -1 --format=%ct 2>/dev/null || date +%s)}
DEB_HOST_ARCH=$(dpkg --print-architecture)  # dh_python3 reads it
export DEB_HOST_ARCH
person="${DEBFULLNAME:-Runnel maintainers} <${DEBEMAIL:-runnel@example.org}>"
sed -i "s/^Maintainer: .*/Maintainer: $person/" debian/control
cat >debian/changelog <<END
runnel ($version) unstable; urgency=medium

  * The package runnel-doc has the list of changes: CHANGELOG.md.

 -- $person  $(date -uRd "@$SOURCE_DATE_EPOCH")
END

# A package without files is not made: the CUDA part, the C++ messages and the Python client may not be built.
packages=()
take() {
  cmake --install "$build" --prefix "debian/$2/usr" --component "$1" >/dev/null
  if [ -d "debian/$2" ]; then packages+=("-p$2"); else echo "$2: not built, so there is no package"; fi
}
take library libtensorflow2-runnel
take messages libtensorflow-protos2-runnel
take development libtensorflow-runnel-dev
take cuda librunnel-cuda2
take command runnel
take documentation runnel-doc
modules=debian/python3-runnel/usr/lib/python3/dist-packages
if [ -e "$build/python/runnel/_core.$(/usr/bin/python3 -c 'import sysconfig; print(sysconfig.get_config_var("SOABI"))').so" ]; then
  take python python3-runnel
  mkdir "$modules/runnel-$version.dist-info"
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$source/python/tools /usr/bin/python3 -c 'import wheel_file; print(wheel_file.metadata())' \
    >"$modules/runnel-$version.dist-info/METADATA"
else
  echo "python3-runnel: the C part is not built for Debian's Python, so there is no package"
fi
# Debian's folder of libraries has the machine in its name.
libraries=lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
for package in debian/lib*/usr; do
  mkdir "$package/libraries"
  mv "$package/lib"/* "$package/libraries"
  mkdir -p "$package/$libraries"
  mv "$package/libraries"/* "$package/$libraries"
  rmdir "$package/libraries"
done
sed -i "s|^prefix=.*|prefix=/usr|; s|^libdir=.*|libdir=\${prefix}/$libraries|" debian/*-dev/usr/"$libraries"/pkgconfig/*.pc
find debian -name 'lib*.so.2' -type f -print0 -o -name '_core.*.so' -print0 | xargs -0 cmake -P "$source/cmake/remove_rpath.cmake"

# The libraries that are opened when they are first used are recommended: by a file that needs them all.
mapfile -t opened < <(grep -rlE 'dlopen\(' "$source/src" --include='*.c' | grep -v /cuda/ |
  xargs grep -hoE '"lib[a-zA-Z0-9_+-]+\.so\.[0-9.]*[0-9]"' | tr -d '"' | grep -v '^librunnel\|^libtensorflow\|^libcuda' | sort -u)
cc -shared -nostdlib -o opened.so -Wl,--no-as-needed -x c /dev/null "${opened[@]/#/-l:}"
for package in libtensorflow2-runnel runnel; do
  dpkg-shlibdeps --warnings=0 -popened "-Tdebian/$package.substvars" -dRecommends opened.so 2> >(grep -v warning: >&2)
done
# What linking with -ltensorflow_framework reads, where there is C++.
if [ -d debian/libtensorflow-protos2-runnel ]; then
  echo "messages:Depends=libtensorflow-protos2-runnel (= $version), libabsl-dev, libeigen3-dev, libprotobuf-dev"
fi >>debian/libtensorflow-runnel-dev.substvars

dh() {
  local step=$1
  shift
  "dh_$step" "${packages[@]}" "$@"
}
dh installdocs
dh installchangelogs
dh lintian
if [ -d "$modules" ]; then dh_python3 -ppython3-runnel; fi
dh compress -X.md -X.pbtxt -X.npy
dh fixperms
dh strip --no-automatic-dbgsym
dh makeshlibs "-VUpstream-Version"
dh shlibdeps
dh installdeb
dh gencontrol
dh md5sums
rm -f "$out"/*.deb
dh builddeb "--destdir=$out"
