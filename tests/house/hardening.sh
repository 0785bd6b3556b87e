#!/usr/bin/env bash
# Installed files are hardened: stack canaries, fortified copies, full RELRO, BIND_NOW, no executable stack, no text relocations.
# usage: hardening.sh LIBRARY COMMAND
cd "$(dirname "$0")" || exit 1
command -v readelf >/dev/null || exit 77
failed=0
fail() {
  echo "$1: $2"
  failed=1
}

for file in "$@"; do
  headers=$(readelf -W -l "$file") dynamic=$(readelf -W -d "$file") symbols=$(readelf -W --dyn-syms "$file")
  grep -q 'GNU_RELRO' <<<"$headers" || fail "$file" 'no RELRO'
  grep -qE 'BIND_NOW|FLAGS.*NOW' <<<"$dynamic" || fail "$file" 'no BIND_NOW'
  grep -qE 'GNU_STACK.* RWE' <<<"$headers" && fail "$file" 'the stack may run code'
  grep -qE 'LOAD.* RWE' <<<"$headers" && fail "$file" 'a segment may be written and run'
  grep -q 'TEXTREL' <<<"$dynamic" && fail "$file" 'the text is written to when it is loaded'
  grep -q '__stack_chk_fail' <<<"$symbols" || fail "$file" 'no stack canaries'
  grep -qE '__(mem|str|vsn|sn)[a-z]*_chk' <<<"$symbols" || fail "$file" 'no checked copies (_FORTIFY_SOURCE)'
  readelf -h "$file" | grep -qE 'Type: +DYN' || fail "$file" 'its addresses are fixed'
done
exit $failed
