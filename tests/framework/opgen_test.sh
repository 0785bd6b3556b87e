#!/bin/sh
# The error messages of opgen: each case is a bad .ops file and the expected message.
#
#   opgen_test.sh OPGEN
set -eu
opgen=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo bad >"$folder/families.def"
failures=0

# check 'text of bad.ops' 'what the message must hold'
check() {
  printf '%b' "$1" >"$folder/bad.ops"
  if message=$("$opgen" --families "$folder/families.def" --table /dev/null 2>&1); then
    echo "accepted: $1"
    failures=$((failures + 1))
  elif ! printf '%s' "$message" | grep -qF -- "bad.ops:$2"; then
    echo "wrong message for: $1"
    echo "  expected bad.ops:$2"
    echo "  got      $message"
    failures=$((failures + 1))
  fi
}

end='\n  shape unknown\n  grad none\n  doc x\n'
check 'op A(x: T) -> ()'"$end" '1: x: no attribute T'
check 'op A(x: T) -> ()\n  T: int'"$end" '1: x: attribute T has the wrong kind'
check 'op A(x: float) -> (y: float)\n  shape unknown\n  doc x\n' '1: A: takes and returns floats'
check 'op A() -> ()\n  doc x\n' '1: A: no shape function'
check 'op A() -> ()\n  shape unknown\n' '1: A: no doc'
check 'op A() -> ()\n  T: {float, flaot}'"$end" "2: 'flaot' is neither a type nor a set"
check 'op A() -> ()\n  T: {float} = int32'"$end" '1: A: the default of T is not allowed'
check 'op A() -> ()\n  n: int = x'"$end" '2: expected a number'
check 'op A() -> ()\n  n: int = 1 2'"$end" "2: did not expect '2'"
check 'op A() -> ()\n  n: nit'"$end" "2: 'nit' is not a kind of attribute"
check 'op A() -> ()\n  n: int\n  n: int'"$end" '3: attribute n is defined twice'
check 'op A() -> ()\n  flags stateless'"$end" "2: 'stateless' is not a flag"
check 'op A() -> ()\n  role king'"$end" "2: 'king' is not a role"
check 'op A() -> ()\n  colour red'"$end" "2: 'colour' is not a property"
check 'op A() -> ()\n  shape a\n  shape b\n  doc x\n' '3: this property is given twice'
check 'op A() -> ()\n  s: string = "a'"$end" '2: expected'
check 'op A()'"$end" "1: expected '->'"
check 'op A() -> ()'"$end"'op A() -> ()'"$end" '5: A is defined at'
check '  shape x\n' '1: a property must follow an op'
check '      shape x\n' '1: no line to continue'
check 'op A() -> ()\n\tdoc x\n' '2: tabs are not allowed'
check 'po A() -> ()\n' '1: expected op, face or types'
check 'face B of A\n' '1: A is not an op with a definition'
check 'op A() -> ()'"$end"'face B of A without n\n' '5: A lacks an attribute'
check 'op A() -> ()'"$end"'face B of A\n  doc x\n' '6: a face has no properties'
[ "$failures" -eq 0 ]
