#!/usr/bin/env bash
# exec/, place/ and session/ handle ops by role and kernel, never by name: no string in them is an op's name. Ops that the
# runtime itself adds to graphs are declared in framework/internal_ops.h. Exceptions are listed here, one per line: FILE NAME.
cd "$(dirname "$0")/../.." || exit 1
allowed=$(cat <<'LIST'
LIST
)
names=$(sed -n 's/^op \([A-Za-z0-9_]*\).*/\1/p' src/ops/*.ops | sort -u)
[ "$(wc -l <<<"$names")" -gt 100 ] || { echo 'no op names found in src/ops'; exit 1; }
bad=0
while IFS=: read -r file line text; do
  for word in $(grep -o '"[A-Za-z0-9_]*"' <<<"$text" | tr -d '"'); do
    grep -qx -- "$word" <<<"$names" || continue
    grep -qx -- "$file $word" <<<"$allowed" && continue
    echo "$file:$line: names the op $word"
    bad=1
  done
done < <(grep -rnE '"[A-Z_][A-Za-z0-9_]*"' src/exec src/place src/session --include='*.[ch]')
exit $bad
