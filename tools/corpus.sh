#!/usr/bin/env bash
# The fuzz targets' corpora: fuzz/corpus/TARGET.tar holds the inputs of TARGET. The archives are plain and deterministic:
# the same inputs always make the same bytes.
# usage: tools/corpus.sh list [TARGET]            counts the inputs of each target, or names those of one
#        tools/corpus.sh add TARGET FILE ...      adds inputs; skips one whose bytes are already there
#        tools/corpus.sh remove TARGET NAME ...   removes inputs
#        tools/corpus.sh unpack TARGET FOLDER     writes the inputs as files into FOLDER
#        tools/corpus.sh check                    fails if a target has no archive, or an archive is not what this script writes
set -eu
archives=$(cd "$(dirname "$0")/../fuzz/corpus" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() { echo "corpus.sh: $*" >&2; exit 1; }

archive_of() {
  [ -e "$archives/../$1.c" ] || fail "there is no target '$1'"
  echo "$archives/$1.tar"
}

# Packs the files of folder $1 into archive $2.
pack() {
  (cd "$1" && find . -maxdepth 1 -type f -printf '%f\n' | LC_ALL=C sort |
    tar --create --file="$2" --format=ustar --blocking-factor=1 --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=644 \
      --verbatim-files-from --files-from=-)
}

unpack() { if [ -e "$1" ]; then tar --extract --file="$1" --directory="$2"; fi; }

contents() { TZ=UTC tar --list --verbose --numeric-owner --full-time --file="$1"; }

check_archive() {
  local archive=$1 again bad=0
  rm -rf "$folder/check" && mkdir "$folder/check"
  unpack "$archive" "$folder/check"
  again=$folder/again.tar
  pack "$folder/check" "$again"
  # The members are compared, not the bytes, which differ between versions of tar.
  cmp -s <(contents "$archive") <(contents "$again") || { echo "$archive: not packed by tools/corpus.sh"; bad=1; }
  sums=$(cd "$folder/check" && sha1sum -- * | sort | uniq -w40 -D)
  [ -z "$sums" ] || { echo "$archive: inputs that are the same:"; echo "$sums"; bad=1; }
  return $bad
}

check() {
  local source bad=0
  for source in "$archives"/../fuzz_*.c; do
    archive=$archives/$(basename "$source" .c).tar
    [ -e "$archive" ] || { echo "$archive is missing"; bad=1; continue; }
    check_archive "$archive" || bad=1
  done
  return $bad
}

command=${1:-}
[ $# -gt 0 ] && shift
case $command in
  list)
    if [ $# -gt 0 ]; then
      archive=$(archive_of "$1")
      tar --list --verbose --file="$archive" | awk '{ print $6, $3 " bytes" }'
    else
      for archive in "$archives"/*.tar; do echo "$(basename "$archive" .tar) $(tar --list --file="$archive" | wc -l)"; done
    fi
    ;;
  add)
    [ $# -gt 1 ] || fail "usage: tools/corpus.sh add TARGET FILE ..."
    archive=$(archive_of "$1")
    shift
    mkdir "$folder/all"
    unpack "$archive" "$folder/all"
    # Compares digests, so that many can be added at once.
    (cd "$folder/all" && find . -type f -exec sha1sum {} +) >"$folder/sums"
    for file; do
      sum=$(sha1sum <"$file" | cut -c1-40)
      if twin=$(grep "^$sum" "$folder/sums"); then
        echo "$file: there already, as ${twin##*/}"
      else
        cp "$file" "$folder/all/"
        echo "$sum  $file" >>"$folder/sums"
      fi
    done
    pack "$folder/all" "$archive"
    ;;
  remove)
    [ $# -gt 1 ] || fail "usage: tools/corpus.sh remove TARGET NAME ..."
    archive=$(archive_of "$1")
    shift
    mkdir "$folder/all"
    unpack "$archive" "$folder/all"
    (cd "$folder/all" && rm -- "$@")
    pack "$folder/all" "$archive"
    ;;
  unpack)
    [ $# = 2 ] || fail "usage: tools/corpus.sh unpack TARGET FOLDER"
    archive=$(archive_of "$1")
    mkdir -p "$2"
    unpack "$archive" "$2"
    ;;
  check) check ;;
  *)
    sed -n '4,8s/^# *\(usage: \)\{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
