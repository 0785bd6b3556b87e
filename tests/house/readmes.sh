#!/usr/bin/env bash
# Every folder of src/ that contains files has a README.md of 3 to 30 lines that says what it is for.
cd "$(dirname "$0")/../.." || exit 1
bad=0
while read -r folder; do
  [ -n "$(find "$folder" -maxdepth 1 -type f)" ] || continue
  lines=$(grep -c . "$folder/README.md" 2>/dev/null)
  if [ "${lines:-0}" -lt 3 ] || [ "$lines" -gt 30 ]; then
    echo "$folder/README.md: ${lines:-no} lines"
    bad=1
  fi
done < <(find src cli bench fuzz -path fuzz/corpus -prune -o -type d -print)
exit $bad
