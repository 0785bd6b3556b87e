#!/usr/bin/env bash
# A compiler launcher (CMAKE_C_COMPILER_LAUNCHER) that takes the object from another build of this tree, if that one has compiled it
# with the same command, and runs the compiler otherwise. The other build must be up to date.
# usage: RN_REUSE_FROM=BUILD tools/reuse_objects.sh COMPILER ARGUMENT ...
words=() object='' dependencies=''
for ((i = 1; i <= $#; ++i)); do
  case ${!i} in
    # compile_commands.json does not have the options that write dependencies.
    -MD) ;;
    -MT) ((++i)) ;;
    -MF) ((++i)); dependencies=${!i} ;;
    -o) words+=("${!i}"); ((++i)); object=${!i}; words+=("$object") ;;
    *) words+=("${!i}") ;;
  esac
done
command=${words[*]}
from=${RN_REUSE_FROM:-}
if [ -n "$from" ] && [ -n "$object" ] && [ -f "$from/$object" ] &&
   grep -qF -- "${command//$PWD/$from}\"" "$from/compile_commands.json"; then
  # The object is made again when the other one is.
  [ -z "$dependencies" ] || echo "$object: $from/$object" >"$dependencies"
  exec cp "$from/$object" "$object"
fi
exec "$@"
