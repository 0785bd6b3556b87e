#!/usr/bin/env bash
# Makes Debian packages of the built tree as `make deb` does, checks them with lintian, and installs them in a small Debian: the README's
# program compiles and runs there, the command and Python work, and nothing is left when they are removed.
# usage: deb_test.sh SOURCE BUILD
# Skipped (77) without debhelper, dh-python, lintian and debootstrap, or without the rights or the network to make a small Debian. It is
# kept under SOURCE/build.
set -eu
source=$1 build=$2
for tool in dh_builddeb dh_python3 lintian debootstrap; do
  command -v $tool >/dev/null || { echo "$tool is missing"; exit 77; }
done
fail() {
  echo "FAILED: $1"
  exit 1
}

out=$build/packages/deb
mkdir -p "$out"
"$source/tools/deb.sh" "$build" "$out" >"$out/log" 2>&1 || { cat "$out/log"; fail 'the packages are not made'; }
lintian --allow-root --fail-on warning "$out"/*.deb || fail 'lintian complains'
for package in "$out"/*.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -tf - | grep -q "/usr/share/doc/$(dpkg-deb -f "$package" Package)/copyright" ||
    fail "$package has no copyright"
done

[ "$(id -u)" = 0 ] || { echo 'only root can make a small Debian; lintian found nothing'; exit 77; }
root=$source/build/deb-root
if [ ! -e "$root/made" ]; then
  rm -rf "$root"
  # shellcheck disable=SC1091
  debootstrap --variant=minbase --include=gcc,libc6-dev,pkg-config "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root" \
    >"$out/debootstrap.log" 2>&1 || { tail -3 "$out/debootstrap.log"; rm -rf "$root"; echo 'no small Debian; lintian found nothing'; exit 77; }
  touch "$root/made"
fi
inside() {
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/ DEBIAN_FRONTEND=noninteractive ${http_proxy:+http_proxy=$http_proxy} \
    chroot "$root" "$@"
}
mapfile -t names < <(for package in "$out"/*.deb; do dpkg-deb -f "$package" Package; done)
remove() { inside dpkg --purge "${names[@]}" >>"$out/log" 2>&1; }
remove || true  # what an earlier run may have left
rm -rf "$root/packages"
mkdir "$root/packages"
cp "$out"/*.deb "$root/packages"
inside apt-get update -qq >>"$out/log" 2>&1 || { tail -3 "$out/log"; echo 'no archive of packages; lintian found nothing'; exit 77; }
inside bash -c 'apt-get install -y -qq /packages/*.deb' >>"$out/log" 2>&1 || { tail -20 "$out/log"; fail 'apt-get cannot install them'; }

# shellcheck disable=SC2016
sed -n '/^```c$/,/^```$/p' "$source/README.md" | grep -v '^```' >"$root/packages/slope.c"
cp "$source/tests/install/client.c" "$root/packages"
for program in slope:runnel client:tensorflow; do
  # shellcheck disable=SC2016
  inside sh -c 'cd /packages && cc -Wall -Werror $1.c -o $1 $(pkg-config --cflags --libs $2)' sh "${program%:*}" "${program#*:}" ||
    fail "$program does not compile"
done
[ "$(inside /packages/slope)" = 'the slope of x*x at 3 is 6' ] || fail "the README's program says: $(inside /packages/slope 2>&1)"
[ "$(inside /packages/client)" = '2.21.0 42' ] || fail "the client says: $(inside /packages/client 2>&1)"
inside runnel --version | grep -q "^runnel $(dpkg-deb -f "$out"/runnel_*.deb Version)" || fail 'runnel --version'
inside runnel run /usr/share/doc/runnel/examples/models/line.pbtxt --feed 'x=[[1,2],[3,4]]' --fetch y >/dev/null || fail 'runnel run'
if [ -d "$build/deb/debian/python3-runnel" ]; then
  said=$(inside python3 -c 'import runnel as tf; print(tf.Session().run(tf.constant(2) + 40))') || fail 'Python'
  [ "$said" = 42 ] || fail "Python says: $said"
fi

mapfile -t files < <(inside dpkg -L "${names[@]}" | grep -E 'runnel|tensorflow')
remove || { tail -20 "$out/log"; fail 'dpkg cannot remove them'; }
rm -r "$root/packages"
left=$(find "$root" -xdev \( -name '*runnel*' -o -name '*tensorflow*' \) -not -path "$root/var/log/*" -not -path "$root/var/cache/apt/*")
for file in "${files[@]}"; do [ ! -e "$root$file" ] || left+=" $file"; done
[ -z "$left" ] || fail "left behind: $left"
