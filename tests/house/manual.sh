#!/usr/bin/env bash
# The manual pages format without a warning, and every option in a command's help is in its page.
# usage: manual.sh RUNNEL
runnel=$(realpath "$1") && [ -x "$runnel" ] || exit 1
cd "$(dirname "$0")/../../doc/man" || exit 1
bad=0
for option in color help; do grep -q "Fl -$option" runnel.1 || { echo "runnel.1 lacks --$option"; bad=1; }; done
# help and version are in runnel.1.
for command in $("$runnel" help | sed -n 's/^  \([a-z][a-z_-]*\)  *[a-z].*/\1/p' | grep -vx 'runnel\|help\|version' | tr - _); do
  [ -e runnel-$command.1 ] || { echo "runnel-$command.1 is missing"; bad=1; continue; }
  for option in $("$runnel" help $command | grep -oE '^  --[a-z_-]+' | tr -d ' ' | grep -vx -- '--help\|--color'); do
    grep -q -- "Fl ${option#-} \|Fl ${option#-}\$" runnel-$command.1 || { echo "runnel-$command.1 lacks $option"; bad=1; }
  done
done
if command -v man >/dev/null; then
  for page in *.[13]; do
    warnings=$(LC_ALL=C.UTF-8 MANROFFSEQ='' man --warnings=w -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
    [ -z "$warnings" ] || { echo "$warnings"; bad=1; }
    LC_ALL=C.UTF-8 man -E UTF-8 -l "$page" 2>/dev/null | grep -q NAME || { echo "$page does not format"; bad=1; }
  done
fi
exit $bad
