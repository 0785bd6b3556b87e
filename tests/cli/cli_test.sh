#!/usr/bin/env bash
# The command `runnel`: its output, its exit status, and its messages for wrong usage.
# usage: cli_test.sh RUNNEL PART
set -u
runnel=$1
part=$2
data=$(cd "$(dirname "$0")" && pwd)/data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
net=$data/net.pbtxt
failures=0

fail() {
  echo "FAILED: $1"
  sed 's/^/  out: /' out
  sed 's/^/  err: /' err
  failures=$((failures + 1))
}
call() { "$runnel" "$@" >out 2>err; }
# ok ARGUMENT ...: ends with 0 and says nothing on stderr.
ok() {
  call "$@" || fail "runnel $* (ended with $?)"
  [ -s err ] && fail "runnel $*: text on stderr"
}
# prints PATTERN: the last output has a line that matches.
prints() { grep -Eq -- "$1" out || fail "no output matches: $1"; }
# shows TEXT: the last output is exactly this.
shows() { [ "$(cat out)" = "$1" ] || fail "the output should be: $1"; }
# bad CODE PATTERN ARGUMENT ...: ends with CODE, one line on stderr that begins with "runnel: " and matches.
bad() {
  local code=$1 pattern=$2 got
  shift 2
  call "$@"
  got=$?
  [ $got = "$code" ] || fail "runnel $*: ended with $got, not $code"
  [ "$(wc -l <err)" = 1 ] || fail "runnel $*: not one line on stderr"
  grep -q '^runnel: ' err || fail "runnel $*: no 'runnel: ' in front"
  grep -Eq -- "$pattern" err || fail "runnel $*: stderr should match: $pattern"
  # What the message tells people to type works.
  local hint
  while read -r hint; do
    eval "\"$runnel\" ${hint#runnel }" >/dev/null 2>&1 || fail "runnel $*: '$hint' fails"
  done < <(grep -oE "'runnel [^']*'" err | tr -d "'")
}

part_main() {
  ok --version
  prints '^runnel [0-9]+\.[0-9]+\.[0-9]+ \(TensorFlow 2\.21\.0\)$'
  cp out version
  ok version
  cmp -s out version || fail 'version and --version differ'
  call || fail 'no help without a command'
  [ -s err ] && fail 'the help goes to stderr'
  cp out help
  ok --help
  cmp -s out help || fail 'runnel and runnel --help differ'
  ok help
  cmp -s out help || fail 'runnel and runnel help differ'
  local command commands option
  commands=$(sed -n 's/^  \([a-z][a-z_-]*\)  *[a-z].*/\1/p' help | grep -v '^runnel$')
  [ "$(wc -w <<<"$commands")" -ge 17 ] || fail 'not all commands are in the help'
  for command in $commands; do
    ok help "$command"
    prints "^usage: runnel $command"
    prints '^examples:'
    [ "$(awk 'length > 100' out | wc -l)" = 0 ] || fail "lines of $command are too long"
    cp out help
    ok "$command" --help
    cmp -s out help || fail "help $command and $command --help differ"
    bad 2 "^runnel: $command.*(; t|\\? T)ry 'runnel help $command'$" "$command" --qwertyuiop --qwertyuiop
  done
  ok help saved-model
  prints '^usage: runnel saved_model'
  ok help python_compat
  prints '^usage: runnel python-compat'
  bad 2 'SCRIPT is missing' python-compat
  PYTHON=no-such-python bad 1 'cannot start no-such-python' python-compat script.py
  bad 2 "no command 'whirl'; try 'runnel help'$" whirl
  bad 2 "no command 'whirl'" help whirl
  bad 2 "no command 'grahp'; did you mean 'graph'" grahp
  bad 2 "no command 'transfrom'; did you mean 'transform'" help transfrom
  bad 2 "no command 'save'; did you mean 'saved_model'" save
  bad 2 "there is no 'lsit'; did you mean 'list'" ckpt lsit
  bad 2 "there is no option '--fold_constant'; did you mean '--fold-constants'" transform a b --fold_constant
  bad 2 "there is no option '--treads'; did you mean '--threads'" bench --treads=2
  # '_' and '-' are the same.
  bad 2 'name the values to keep with --output' transform a b --fold_constants
  if [ -e /dev/full ]; then
    "$runnel" ops >/dev/full 2>err
    [ $? = 1 ] || fail "a full disk is not an error"
    grep -q '^runnel: cannot write' err || fail "a full disk is not named"
  fi
}

part_ops() {
  ok ops
  prints '^MatMul +CPU.* grad '
  prints '^[0-9]+ ops, [0-9]+ of them run on the CPU$'
  ok ops MatMul
  prints '^MatMul\(a: T, b: T\) -> \(product: T\)$'
  prints '^  transpose_a: bool = false$'
  prints '^  T: type in \{bfloat16, half, float, '
  prints '^family +math$'
  prints '^definition +src/ops/math.ops:[0-9]+$'
  prints '^gradient +src/ops/math_matrix_grad.c$'
  prints '^ +src/kernels/cpu/math/matmul.c$'
  prints '^  CPU +T in \{.*float.*\}$'
  ok ops Concat
  prints '^Concat\(concat_dim: int32, values: N \* T\) -> \(output: T\)$'
  prints '^  N: int >= 2$'
  ok ops Switch
  prints 'the executor runs it itself'
  ok ops --family bitwise
  prints '^BitwiseAnd '
  grep -q '^MatMul ' out && fail '--family bitwise shows MatMul'
  ok ops --search SOFTMAX
  prints '^LogSoftmax '
  bad 1 "did you mean 'MatMul'\?" ops Matmull
  bad 1 "no op is called 'Qwertyuiop'" ops Qwertyuiop
  bad 1 "no family of ops called 'x'; there are array, " ops --family x
  bad 1 'no op matches' ops --search qwertyuiop
  bad 2 "no option '--famly'; did you mean '--family'" ops --famly math
  bad 2 'give either the name of an op' ops MatMul --family math
  bad 2 '--family needs a value' ops --family
  bad 2 '--missing takes no value' ops --missing=maybe
}

part_graph() {
  ok graph "$net"
  prints '^nodes +20$'
  prints '^edges +[0-9]+ data, 2 control$'
  prints '^parameters +1 in 1 variables; 7 in 3 constants$'
  prints '^inputs +x  float \[\?,2\]$'
  prints 'y  float \[\?,2\]$'
  prints '/device:CPU:0  1 node$'
  prints '^ops +4  Placeholder$'
  ok graph "$net" --stats --input 'x=[32,2]'
  prints 'y  float \[32,2\]$'
  ok graph --text "$net"
  cp out again.pbtxt
  ok graph again.pbtxt --text
  cmp -s out again.pbtxt || fail 'text of text differs'
  "$runnel" graph - --text <again.pbtxt >out 2>err || fail 'the standard input cannot be read'
  cmp -s out again.pbtxt || fail 'the standard input is read differently'
  ok graph "$net" --dot --input='x=[7,2]'
  prints '^digraph '
  prints 'subgraph "cluster_layer" \{ label="layer"$'
  prints 'label="product\\nMatMul\\n1: float \[2,2\] = \[1 2\]\[3 4\]"'
  prints 'label="float \[7,2\]"'
  prints 'style=dashed'
  prints 'fillcolor="#dbe9f6"'
  [ "$(grep -c '{' out)" = "$(grep -c '}' out)" ] || fail 'the boxes of the drawing are not closed'
  if command -v dot >/dev/null; then dot -Tsvg out >/dev/null 2>err || fail 'Graphviz refuses the drawing'; fi
  ok graph "$net" --dot --depth 0
  prints 'label="layer/\\n.*1 MatMul.*shape=box3d'
  if grep -q subgraph out && ! grep -q 'cluster "' out; then fail 'a folded scope is a box still'; fi
  # 120 blocks of three nodes are folded of themselves; the two edges between neighbours are one.
  {
    echo 'node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }'
    from=x
    for i in $(seq 120); do
      for part in "a Neg $from" "b Add b$i/a $from" "c Mul b$i/b b$i/a"; do
        set -- $part
        printf 'node { name: "b%d/%s" op: "%s" attr { key: "T" value { type: DT_FLOAT } }' "$i" "$1" "$2"
        shift 2
        for input; do printf ' input: "%s"' "$input"; done
        echo ' }'
      done
      from=b$i/c
    done
  } >large.pbtxt
  ok graph large.pbtxt --dot
  prints 'label="b77/\\n1 Add, 1 Mul, 1 Neg"'
  prints 'label="2 edges", penwidth=2'
  [ "$(grep -c -- '->' out)" = 120 ] || fail 'edges of folded scopes are not one each'
  ok graph large.pbtxt --dot --depth 1
  prints 'label="c\\nMul"'
  bad 2 '--depth needs a whole number from 0 to 1000' graph "$net" --dot --depth x
  ok graph "$data/unknown.pbtxt"
  prints '^unknown ops NoSuchOp  2 nodes$'
  prints '^ +OtherStrangeOp  1 node$'
  prints '^import +fails: '
  ok graph "$data/unknown.pbtxt" --dot
  prints 'color=red'
  bad 1 "^runnel: cannot read the graph: 'nowhere.pb': No such file or directory$" graph nowhere.pb
  head -c 400 "$runnel" >garbage.pb
  bad 1 "'garbage.pb': not a GraphDef" graph garbage.pb
  printf '\xff\xff\xff\xff\xff\xff\xff\xff' >ones.pb
  bad 1 "'ones.pb': not a GraphDef" graph ones.pb
  : >empty.pb
  bad 1 "'empty.pb': not a GraphDef" graph empty.pb
  echo 'node { name: "a" op: ' >cut.pbtxt
  bad 1 "'cut.pbtxt': .*2:1" graph cut.pbtxt
  # More sparse features than types of them: outputs would be written that the node does not have.
  {
    for i in 0 1 2 3 4; do
      echo "node { name: 'i$i' op: 'Placeholder' attr { key: 'dtype' value { type: DT_STRING } } }"
    done
    echo "node { name: 'n' op: 'ParseExampleV2' input: ['i0', 'i1', 'i2', 'i3', 'i4']"
    echo "  attr { key: 'num_sparse' value { i: 40 } }"
    echo "  attr { key: 'sparse_types' value { list { type: DT_FLOAT } } }"
    for list in Tdense ragged_value_types ragged_split_types dense_shapes; do
      echo "  attr { key: '$list' value { list { } } }"
    done
    echo '}'
  } >counts.pbtxt
  ok graph counts.pbtxt
  prints '^import +fails: .*len\(sparse_keys\) != len\(sparse_types\)'
  bad 1 'Could not find SavedModel' graph .
  bad 1 'no such node' graph "$net" --input 'q=[1]'
  bad 1 'not a placeholder' graph "$net" --input 'y=[1]'
  bad 1 'is not a shape' graph "$net" --input 'x=[1,b]'
  bad 2 'needs NAME=VALUE' graph "$net" --input x
  bad 2 'FILE is missing' graph
  bad 2 'give only one of --stats, --ops, --passes, --text and --dot' graph "$net" --dot --text
  bad 2 'is one argument too many' graph "$net" "$net"
  ok graph "$net" --ops
  prints "^MatMul\$"
}

part_run() {
  ok run "$net" --feed 'x=[[1,2],[3,4]]' --feed 'text=""' --fetch y
  shows 'y: float [2,2]
[[15. 19.]
 [31. 43.]]'
  ok run "$net" --feed 'text=["a\n","b \"c\""]' --fetch echo:0
  shows 'echo:0: string [2]
["a\n" "b \"c\""]'
  ok run "$net" --feed 'any=[[[1,-2,300]]]' --fetch same
  shows 'same: int32 [1,1,3]
[[[  1  -2 300]]]'
  ok run "$net" --feed 'any=7' --fetch same --feed real=1e-5 --fetch same_real
  shows 'same: int32 []
7
same_real: double []
1e-05'
  ok run "$net" --feed 'any=[]' --fetch same
  shows 'same: int32 [0]
[]'
  ok run "$net" --feed 'real=[0.1,2.5,-3,inf,nan]' --fetch same_real
  shows 'same_real: double [5]
[ 0.1  2.5 -3.   inf  nan]'
  ok run "$net" --feed 'real=[1e-5,1.25]' --fetch same_real
  shows 'same_real: double [2]
[1.00e-05 1.25e+00]'
  # Fed edges need not be placeholders; what lies before them is not needed.
  ok run "$net" --feed 'layer/relu=[[1.5]]' --feed 'text=""' --fetch y
  shows 'y: float [1,1]
[[3.]]'
  ok run "$net" --init init --target more --fetch count
  shows 'count: float []
4.0'
  call run "$net" --init init --fetch count --repeat 5 || fail '--repeat'
  shows 'count: float []
12.0'
  grep -Eq '^5 steps: the first took [0-9.]+ us, the others [0-9.]+ us each \(p50 [0-9.]+, p90 [0-9.]+, p99 [0-9.]+, max [0-9.]+\)$' err ||
    fail '--repeat says no times'
  awk '{gsub(/[,()]/, ""); for (i = 1; i < NF; ++i) v[$i] = $(i + 1)}
    END {exit !(v["p50"] <= v["p90"] && v["p90"] <= v["p99"] && v["p99"] <= v["max"])}' err || fail 'the percentiles are not in order'
  ok run "$net" --feed 'x=[[1,2]]' --feed 'text=""' --fetch y --threads 1 --trace trace.json
  grep -q '"traceEvents"' trace.json && grep -q '"name":"MatMul"' trace.json || fail 'no trace'
  if command -v python3 >/dev/null; then python3 -m json.tool trace.json >out 2>err || fail 'the trace is no JSON'; fi

  bad 1 "^runnel: cannot read the graph: 'nowhere.pb': No such file or directory$" run nowhere.pb --fetch y
  bad 1 '--fetch zebra: the graph has no node' run "$net" --fetch zebra
  bad 1 '--target zebra: the graph has no node' run "$net" --target zebra
  bad 1 '--feed zebra: the graph has no node' run "$net" --feed zebra=1 --fetch y
  bad 1 'has 1 outputs' run "$net" --feed any=1 --fetch same:1
  bad 1 "placeholder tensor 'x' with dtype float" run "$net" --feed 'text=""' --fetch y
  bad 1 '--feed x: the value has shape \[3\], but the graph expects \[\?,2\]' run "$net" --feed 'x=[1,2,3]' --feed 'text=""' --fetch y
  bad 1 '--feed x: the value is int32, but the graph expects float' run "$net" --feed 'x=[[1,2]]:int32' --fetch y
  bad 1 "--feed any: '1.5' is not a valid int32" run "$net" --feed any=1.5 --fetch same
  bad 1 "--feed any: '3000000000' is not a valid int32" run "$net" --feed any=3000000000 --fetch same
  bad 1 '--feed x: the rows differ in length' run "$net" --feed 'x=[[1,2],[3]]' --fetch y
  bad 1 '--feed x: the rows differ in depth' run "$net" --feed 'x=[[1,2],3]' --fetch y
  bad 1 '--feed x: a .,. or .\]. is missing' run "$net" --feed 'x=[1 2]' --fetch y
  bad 1 '--feed x: the value ends' run "$net" --feed 'x=[1,' --fetch y
  bad 1 "--feed x: there is no type 'flaot'" run "$net" --feed 'x=1:flaot' --fetch y
  bad 1 'unexpected after the value' run "$net" --feed 'x=[1]]' --fetch y
  bad 1 'does not end' run "$net" --feed 'text="abc' --fetch echo
  bad 1 'double quotes' run "$net" --feed 'text=abc' --fetch echo
  bad 1 'nested brackets' run "$net" --feed "x=$(printf '[%.0s' $(seq 100000))" --fetch y
  bad 1 'Timed out' run "$net" --fetch wait --timeout 50
  bad 1 "NoSuchOp.*OtherStrangeOp" run "$data/unknown.pbtxt" --fetch c
  bad 1 'cannot write .*No such file' run "$net" --feed any=1 --save same=no/such/folder.npy
  bad 2 'GRAPH is missing' run
  bad 2 'nothing to run' run "$net"
  bad 2 'needs NAME=VALUE' run "$net" --feed x --fetch y
  bad 2 'number from 1 to' run "$net" --fetch y --repeat 0
  bad 2 'number from 1 to' run "$net" --fetch y --threads many
  bad 2 'number of an output' run "$net" --fetch y:first
}

part_npy() {
  # Bytes as NumPy writes them.
  header() { printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '$1', 'fortran_order': $2, 'shape': $3, }"; }
  { header '<f8' False '(2, 1)'; printf '\0\0\0\0\0\0\xf8\x3f\0\0\0\0\0\0\x04\xc0'; } >real.npy
  ok run "$net" --feed real=@real.npy --fetch same_real --save same_real=saved.npy
  shows 'same_real: double [2,1]
[[ 1.5]
 [-2.5]]'
  [ "$(head -c 8 saved.npy | od -An -tx1 | tr -d ' ')" = 934e554d50590100 ] || fail 'the magic of a saved file'
  [ "$(wc -c <saved.npy)" = 144 ] || fail 'the data of a saved file starts at a multiple of 64'
  ok run "$net" --feed real=@saved.npy --fetch same_real
  prints '^ \[-2\.5\]\]$'
  { header '>i4' False '(3,)'; printf '\0\0\0\x01\0\0\0\x02\xff\xff\xff\xff'; } >big_endian.npy
  ok run "$net" --feed any=@big_endian.npy --fetch same
  prints '^\[ 1  2 -1\]$'
  { header '|S3' False '(2,)'; printf 'a\0\0bcd'; } >bytes.npy
  ok run "$net" --feed text=@bytes.npy --fetch echo --save echo=bytes2.npy
  prints '^\["a" "bcd"\]$'
  ok run "$net" --feed text=@bytes2.npy --fetch echo
  prints '^\["a" "bcd"\]$'
  { header '<U2' False '()'; printf '\xe9\0\0\0\0\0\0\0'; } >unicode.npy
  ok run "$net" --feed text=@unicode.npy --fetch echo
  prints '^"é"$'
  { printf '\x93NUMPY\x02\x00\x74\x00\x00\x00%-115s\n' "{'shape': (), 'fortran_order': False, 'descr': '<i4'}"; printf '\x2a\0\0\0'; } >two.npy
  ok run "$net" --feed any=@two.npy --fetch same
  prints '^42$'

  feed() { bad 1 "--feed real: '$1.npy': $2" run "$net" --feed "real=@$1.npy" --fetch same_real; }
  bad 1 "^runnel: --feed real: 'none.npy': No such file or directory$" run "$net" --feed real=@none.npy --fetch same_real
  head -c 100 "$runnel" >not.npy
  feed not 'not an .npy file'
  head -c 9 real.npy >cut.npy
  feed cut 'not an .npy file'
  head -c 40 real.npy >cut.npy
  feed cut 'not an .npy file: it ends within the header'
  head -c 130 real.npy >cut.npy
  feed cut 'not an .npy file: the size of its data'
  { cat real.npy; printf x; } >long.npy
  feed long 'not an .npy file: the size of its data'
  { header '<f8' True '(2, 1)'; printf '%016d' 0; } >fortran.npy
  feed fortran 'the array is in Fortran order'
  { header '<f8' False '(-2, 1)'; printf '%016d' 0; } >negative.npy
  feed negative 'not an .npy file'
  { header '<f8' False '(4611686018427387904, 4)'; } >huge.npy
  feed huge 'not an .npy file'
  { header '<M8' False '(1,)'; printf '%08d' 0; } >date.npy
  feed date "arrays of type '<M8' are not supported"
  { header '|O' False '(1,)'; printf '%08d' 0; } >object.npy
  feed object "arrays of type|not an .npy"
  bad 1 'the value is double, but the graph expects int32' run "$net" --feed any=@real.npy --fetch same
}

part_bench() {
  ok bench null scalar --seconds 0.02 --threads 1
  prints '^case +steps/s'
  prints '^null step +[0-9]'
  prints '^scalar chain'
  bad 1 "no case begins with 'zebra'" bench zebra
  bad 2 'number above 0' bench --seconds nothing
  bad 2 'number from 1 to' bench --threads 0
  bad 2 'cpu' bench --device tpu
  ok bench null --device cpu --seconds 0.02
}

part_devices() {
  ok devices
  prints '^device +memory +capability +name$'
  prints '^CPU:0 +[0-9.]+ GiB'
  ok devices --json
  prints '"cpu": \{'
  prints '"gpus": \['
  bad 2 'one argument too many' devices all
  # With the emulated driver of tests/gpu, if it was built.
  local cuda
  cuda=$(dirname "$runnel")/../tests/gpu/cuda
  [ -e "$cuda/librunnel_cuda.so.2" ] && [ -e "$cuda/libcuda.so.1" ] || return 0
  cuda=$(realpath "$cuda")
  export RUNNEL_CUDA_PATH=$cuda RUNNEL_CUDA_PART=$cuda/librunnel_cuda.so.2 RUNNEL_CACHE_DIR=$work/kernels
  RN_EMULATED_GPUS=2 ok devices
  prints '^GPU:1 +1\.0 GiB +[0-9]+\.[0-9]'
  prints '^driver version +CUDA 13\.0$'
  prints "^driver +$cuda/libcuda.so.1$"
  grep -q 'GPUs are not used' out && fail 'GPUs are used'
  ok devices --json
  prints '"problem": null'
  prints '"driver_version": 13000'
  RN_EMULATED_VERSION=11040 ok devices
  prints '^GPUs are not used: .* CUDA 11\.4'
  RN_EMULATED_GPUS=0 ok devices
  prints '^GPUs are not used: The driver has no GPU$'
  RN_EMULATED_GPUS=0 bad 1 'There is no GPU to use' bench null --device gpu --seconds 0.02
  ok bench null 'scalar' --device gpu --seconds 0.02
  prints '^null step +[0-9]'
  RUNNEL_CUDA_PART=$work/nothing.so ok devices
  prints "^GPUs are not used: .*$work/nothing.so"
}

part_events() {
  mkdir -p runs/empty
  cp "$data/events.out.tfevents" runs/events.out.tfevents.1.host
  ok events runs --list
  prints '^runs: 9 events in 1 file'
  prints '^  scalar +loss +3 points, step 30: 0.5'
  prints '^  scalar +new/loss +1 point, +step 30: 0.25'
  prints '^  histogram +h '
  prints '^  graph '
  ok events runs --csv --tag new
  prints '^runs,new/loss,30,[0-9.]+,0.25$'
  ok events runs --tag loss --width 20 --height 3
  prints '0.5 ┤'
  head -c 150 runs/events.out.tfevents.1.host >cut && mv cut runs/events.out.tfevents.1.host
  call events runs --list || fail 'a damaged log is refused'
  prints '^  scalar +loss +1 point'
  grep -q 'truncated record at 114; .*shown is what came before it' err || fail 'the damage is not named'
  bad 1 'no event files in' events runs/empty
  bad 1 'No such file' events nowhere
  bad 2 'FOLDER is missing' events
  bad 2 'number from 2 to' events runs --height 1
}

part_trace() {
  ok trace "$data/run_metadata.pb" -o step.json
  grep -q '"name":"_MklMatMul","args":{"node":"b","bytes":64}' step.json || fail 'no MatMul in the trace'
  python3 -c 'import json; json.load(open("step.json"))' 2>/dev/null || ! command -v python3 >/dev/null || fail 'no JSON'
  ok trace "$data/run_metadata.pb"
  prints '"ph":"X"'
  printf 'xxx' >bad.pb
  bad 1 "'bad.pb': " trace bad.pb
  : >empty.pb
  bad 1 'no step statistics' trace empty.pb
  bad 1 'no run metadata' trace "$data/events.out.tfevents"
  bad 1 "^runnel: cannot write 'no/step.json': No such file or directory$" trace "$data/run_metadata.pb" -o no/step.json
  bad 2 'FILE is missing' trace
}

part_ckpt() {
  cp -r "$data/ckpt" run && chmod -R u+w run
  ok ckpt list run/model
  prints '^b +int32 +\[3\] +12$'
  prints '^s +string +\[3\] +310$'
  prints '^sc +double +\[\] +8$'
  [ "$(wc -l <out)" = 5 ] || fail 'not five tensors'
  ok ckpt list run/model.index
  [ "$(wc -l <out)" = 5 ] || fail 'not five tensors'
  ok ckpt verify run/model.data-00000-of-00001
  ok ckpt list run/old
  prints '^w +float +\[2,2\]'
  ok ckpt show run/model b
  shows '[1 2 3]'
  ok ckpt show run/model w --npy w.npy
  [ "$(head -c 6 w.npy | tail -c 5)" = NUMPY ] || fail 'no .npy file'
  ok ckpt verify run/model run/old
  prints '^run/model: 5 tensors, 346 bytes, all checksums are right'
  prints '^run/old: 3 tensors'
  printf 'model_checkpoint_path: "model"\nall_model_checkpoint_paths: "old"\n' >run/checkpoint
  ok ckpt latest run
  shows run/model
  ok ckpt list run
  prints '^run/model:$'
  prints '^b +int32 +\[3\] +12$'
  ok ckpt show run b
  shows '[1 2 3]'
  ok ckpt verify run/
  prints '^run/model: 5 tensors'
  mkdir nothing
  bad 1 "^runnel: the folder 'nothing' has no checkpoint$" ckpt list nothing
  ok ckpt list "$data/../../saved_model/data/mlp"
  prints 'variables/variables:$'
  printf 'x' | dd of=run/model.data-00000-of-00001 bs=1 seek=3 conv=notrunc status=none
  bad 1 'Checksum does not match.*tensor w at offset 0' ckpt verify run/model
  call ckpt latest run || fail 'no older checkpoint is taken'
  shows run/old
  grep -q 'checkpoint run/model cannot be used' err || fail 'the damage is not named'
  head -c 100 "$data/ckpt/model.index" >run/model.index
  bad 1 "'run/model.index': not an sstable" ckpt list run/model
  bad 1 "Failed to find any matching files for 'nowhere'$" ckpt list nowhere
  bad 1 'Key z not found in checkpoint' ckpt show run/old z
  bad 2 'list, show, verify or latest' ckpt
  bad 2 'NAME is missing' ckpt show run/model
  bad 2 "goes with 'show', not with 'list'" ckpt list run/model --npy x
}

part_saved_model() {
  local models
  models=$(cd "$data/../../saved_model/data" && pwd)
  ok saved_model show "$models/mlp"
  prints '^tags: serve  \(TensorFlow 2\.21\.0, with objects\)$'
  prints '^  signature serving_default  \(tensorflow/serving/predict\)$'
  prints '^    in  keras_tensor: float \[\?,8\]  \(serving_default_keras_tensor:0\)$'
  prints '^    out output_0: float \[\?,4\] '
  prints '^  graph: 45 nodes, 5 functions with 89 nodes, 12 variables$'
  ok graph "$models/mlp"
  prints '^nodes +45$'
  ok saved_model show "$models/lstm" --functions --tags serve
  prints '^    __inference_.*: [0-9]+ arguments, [0-9]+ results, [0-9]+ nodes$'
  ok saved_model run "$models/mlp" --feed "keras_tensor=@$models/mlp/in_keras_tensor.npy"
  cp out wanted
  prints '^output_0: float \[3,4\]$'
  bad 1 "signature 'serving_default' of '.*/mlp' needs a value for 'keras_tensor' \\(float \\[\\?,8\\]\\); write --feed NAME=" \
    saved_model run "$models/mlp"
  ok run "$models/mlp" --signature serve --fetch output_0 --feed "keras_tensor=@$models/mlp/in_keras_tensor.npy"
  cmp -s out wanted || fail 'the two signatures differ'
  # As saved_model_cli is called.
  ok saved_model run --dir "$models/mlp" --tag_set serve --signature_def serving_default \
    --inputs "keras_tensor=$models/mlp/in_keras_tensor.npy" --outdir written/here
  cmp -s out wanted || fail '--inputs differ from --feed'
  [ -s written/here/output_0.npy ] || fail '--outdir has no file'
  bad 1 "'written/here/output_0.npy' exists already; --overwrite" saved_model run --dir "$models/mlp" --outdir written/here \
    --input_exprs 'keras_tensor=[(1,2,3,4,5,6,7,8)]'
  ok saved_model run --dir "$models/mlp" --outdir written/here --overwrite --input_exprs 'keras_tensor=[(1,2,3,4,5,6,7,8,)]'
  prints '^output_0: float \[1,4\]$'
  ok saved_model show --dir "$models/mlp" --all --tag_set serve --signature_def serve
  prints '^  signature serve '
  grep -q serving_default out && fail '--signature_def shows all'
  bad 1 "no signature 'x'" saved_model show --dir "$models/mlp" --signature_def x
  bad 1 'examples are strings, but the model expects float' saved_model run "$models/mlp" --input_examples 'keras_tensor=[{"a":[1]}]'
  bad 1 "'nine.npz\[a\]': arrays of .npz files are not supported" saved_model run "$models/mlp" --inputs 'keras_tensor=nine.npz[a]'
  bad 2 '--inputs needs NAME=VALUE' saved_model run "$models/mlp" --inputs nine.npy
  bad 2 "there is no option '--inputs'" run "$models/mlp" --inputs x=y.npy
  ok saved_model freeze "$models/mlp" mlp.pb
  ok run mlp.pb --feed "keras_tensor=@$models/mlp/in_keras_tensor.npy" --fetch output_0
  cmp -s out wanted || fail 'the frozen graph differs'
  ok saved_model freeze "$models/convnet" conv.pbtxt --fold-batch-norms
  grep -q 'op: "BiasAdd"' conv.pbtxt || fail 'no bias'
  grep -Eq 'op: "(Mul|Rsqrt|VarHandleOp)"' conv.pbtxt && fail 'batch norms are left'
  # The file of a model instead of its folder.
  cp -r "$models/mlp" copy
  cp copy/saved_model.pb renamed.pb
  bad 1 "^runnel: 'copy/saved_model.pb' is the file of a SavedModel, not a GraphDef: give its folder$" graph copy/saved_model.pb
  bad 1 "^runnel: 'renamed.pb' is the file of a SavedModel, not a GraphDef: give its folder$" run renamed.pb --fetch x
  bad 1 "^runnel: 'copy/saved_model.pb' is a file: give the folder of the SavedModel$" saved_model show copy/saved_model.pb
  bad 1 "^runnel: 'copy/saved_model.pb' is the file of a SavedModel" run copy/saved_model.pb --fetch x
  mkdir empty
  bad 1 "Could not find SavedModel .pb or .pbtxt at supplied export directory path: 'empty'\. Check" saved_model show empty
  bad 1 "no graph has the tags 'train'; --tags may be: serve" saved_model show "$models/mlp" --tags train
  bad 1 "no signature 'x'; it has: serve, serving_default" saved_model run "$models/mlp" --signature x
  bad 1 '--feed nothing: the graph has no node' saved_model run "$models/mlp" --feed nothing=1
  bad 1 "'everything' is not a permission" saved_model run "$models/mlp" --allow everything
  bad 2 'show, run or freeze' saved_model
  bad 2 "not 'eat'" saved_model eat
  bad 2 'FILE is missing' saved_model freeze "$models/mlp"
  bad 2 'are for SavedModels' run mlp.pb --tags serve --fetch output_0
}

part_place() {
  cat >wide.pbtxt <<'END'
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "a" op: "MatMul" input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "b" op: "MatMul" input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "transpose_a" value { b: true } } }
node { name: "c" op: "MatMul" input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "transpose_b" value { b: true } } device: "/device:CPU:0" }
node { name: "y" op: "AddN" input: "a" input: "b" input: "c" attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "N" value { i: 3 } } }
END
  ok place wide.pbtxt --feed 'x=[[1,2],[3,4]]' --fetch y --measure 3 --save-costs costs
  head -1 costs | grep -q '^runnel-costs 1$' || fail 'not a file of costs'
  grep -q '^op CPU MatMul float\[2,2\];float\[2,2\]->float\[2,2\] ' costs || fail 'no entry of MatMul'
  ok place wide.pbtxt --feed 'x=[[1,2],[3,4]]' --fetch y --costs costs --report
  prints '^found .* ms  by the client'
  prints 'measured for the node$'
  # Slow links keep a step together, whatever the speeds.
  ok place wide.pbtxt --fetch y --devices /job:a/device:CPU:0,/job:b/device:CPU:0*100 --link 1000000,1 --report
  prints '^0 of . groups moved'
  # A device that is much faster gets all but what is asked for elsewhere.
  ok place wide.pbtxt --fetch y --devices CPU:0*0.0001,CPU:1 --out placed.pbtxt --timeline step.svg --json
  prints '"found_ns"'
  grep -A9 'name: "a"' placed.pbtxt | grep -q 'device: "/device:CPU:1"' || fail 'a did not move'
  grep -A9 'name: "c"' placed.pbtxt | grep -q 'device: "/device:CPU:0"' || fail 'c was asked for on CPU:0'
  grep -q '^</svg>$' step.svg || fail 'no picture'
  ok place wide.pbtxt --fetch y --devices CPU:0@1,CPU:1@1 --report
  prints 'No placement that was tried fits into memory'
  printf 'runnel-costs 1\nend 1 0' >cut
  bad 1 "a file of costs is not complete .*'cut'" place wide.pbtxt --fetch y --costs cut
  bad 1 "'nowhere': No such file" place wide.pbtxt --fetch y --costs nowhere
  bad 1 "cannot read the graph: 'nowhere'" place nowhere --fetch y
  bad 1 'the graph has no node of that name' place wide.pbtxt --fetch z
  bad 1 'cannot write ' place wide.pbtxt --fetch y --timeline /nowhere/step.svg
  bad 2 'name the step with --fetch or --target' place wide.pbtxt
  bad 2 'GRAPH is missing' place
  bad 2 'is no device' place wide.pbtxt --fetch y --devices CPU
  bad 2 'is of no type' place wide.pbtxt --fetch y --devices XPU:0
  bad 2 'is there twice' place wide.pbtxt --fetch y --devices CPU:0,CPU:0
  bad 2 'the speed after' place wide.pbtxt --fetch y --devices 'CPU:0*0'
  bad 2 'the memory after' place wide.pbtxt --fetch y --devices CPU:0@much
  bad 2 'give microseconds and megabytes' place wide.pbtxt --fetch y --link 7
}

part_transform() {
  ok transform "$net" net.pb
  ok transform net.pb again.pbtxt
  ok graph "$net" --text
  cmp -s out again.pbtxt || fail 'text, bytes, text: something was lost'
  ok transform net.pb - --text
  cmp -s out again.pbtxt || fail 'the standard output differs'
  cat >chain.pbtxt <<'END'
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "two" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 2 } } } }
node { name: "four" op: "Mul" input: "two" input: "two" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "a" op: "Mul" input: "x" input: "four" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "b" op: "AddV2" input: "a" input: "two" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "unused" op: "Neg" input: "b" attr { key: "T" value { type: DT_FLOAT } } }
END
  ok transform chain.pbtxt cut.pbtxt --output b
  grep -q unused cut.pbtxt && fail 'what is not used is still there'
  ok run cut.pbtxt --feed x=3 --fetch b
  shows "$(printf 'b: float []\n14.0')"
  ok transform chain.pbtxt cut.pbtxt --input a --output b
  [ "$(grep -c 'op:' cut.pbtxt)" = 3 ] || fail 'not three nodes'
  ok run cut.pbtxt --feed a=5 --fetch b
  shows "$(printf 'b: float []\n7.0')"
  ok transform chain.pbtxt cut.pbtxt --output b --fold-constants
  grep -A1 'name: "four"' cut.pbtxt | grep -q Const || fail 'not folded'
  ok run cut.pbtxt --feed x=3 --fetch b
  shows "$(printf 'b: float []\n14.0')"
  bad 1 "--output c: The graph has no node 'c'" transform chain.pbtxt out.pb --output c
  bad 1 "cannot read the graph: 'nowhere': No such file or directory$" transform nowhere out.pb
  bad 2 'OUT is missing' transform chain.pbtxt
  bad 2 'name the values to keep with --output' transform chain.pbtxt out.pb --inline
}

# says JSON EXPRESSION: the output is JSON for which the Python expression of 'it' is true.
says() {
  python3 -c 'import json, sys; it = json.load(sys.stdin); sys.exit(not eval(sys.argv[1]))' "$1" <out 2>>err || fail "not so in JSON: $1"
}

part_json() {
  command -v python3 >/dev/null || return 0
  local models
  models=$(cd "$data/../../saved_model/data" && pwd)
  ok graph "$net" --json
  says 'it["nodes"] == 20 and it["edges"]["control"] == 2 and {"name": "x", "dtype": "float", "shape": [None, 2]} in it["inputs"]'
  says 'it["ops"][0] == {"op": "Placeholder", "nodes": 4, "is_function": False, "is_known": True, "has_kernel": True}'
  ok graph "$data/unknown.pbtxt" --json
  says '"NoSuchOp" in it["import_error"] and not it["ops"][0]["is_known"]'
  bad 2 'not with text or drawings' graph "$net" --json --dot
  ok ops --json
  says 'len(it) > 900 and all("CPU" in op["devices"] for op in it if op["name"] == "MatMul")'
  ok ops MatMul --json
  says 'it["files"]["definition"].startswith("src/ops/math.ops:") and it["kernels"][0]["file"] == "src/kernels/cpu/math/matmul.c"'
  says 'it["inputs"][1] == {"name": "b", "is_ref": False, "type_attr": "T"} and it["has_gradient"]'
  says 'it["attributes"][0] == {"name": "transpose_a", "type": "bool", "default": "false"} and "float" in it["kernels"][0]["types"]["T"]'
  ok ops --family bitwise --json
  says '{op["family"] for op in it} == {"bitwise"}'
  ok ops --search qwertyuiop --json
  shows '[]'
  ok saved_model show "$models/mlp" --json
  says 'it["graphs"][0]["tags"] == ["serve"] and it["graphs"][0]["nodes"] == 45 and len(it["graphs"][0]["functions"]) == 5'
  says 'it["graphs"][0]["signatures"]["serving_default"]["inputs"]["keras_tensor"]["shape"] == [None, 8]'
  ok ckpt list "$data/ckpt/model" --json
  says 'len(it["tensors"]) == 5 and {"name": "b", "dtype": "int32", "shape": [3], "bytes": 12} in it["tensors"]'
  ok ckpt show "$data/ckpt/model" b --json
  says 'it == {"name": "b", "dtype": "int32", "shape": [3], "values": [1, 2, 3]}'
  ok ckpt show "$data/ckpt/model" w --json
  says 'it["dtype"] == "float" and len(it["values"]) == it["shape"][0]'
  ok ckpt show "$data/ckpt/model" s --json
  says 'len(it["values"]) == 3 and all(isinstance(text, str) for text in it["values"])'
  ok ckpt verify "$data/ckpt/model" --json
  says 'it["tensors"] == 5 and it["bytes"] == 346'
  call cluster status --cluster worker=localhost:1 --json
  says 'it["tasks"][0]["state"] == "down" and "refused" in it["tasks"][0]["why"]'
  ok cluster up --ps 1 --workers 1 --dir c -- "$runnel" cluster status --json
  says '[task["state"] for task in it["tasks"]] == ["ready", "ready"] and it["tasks"][1]["status"]["steps"] == 0'
  ok cluster up --ps 1 --workers 1 --dir c -- "$runnel" top --once --json
  says 'len(it["tasks"]) == 2'
}

# on_terminal ARGUMENT ...: the output of a run whose stdout and stderr are a terminal, in 'out'.
on_terminal() {
  python3 -c '
import os, pty, sys
text = bytearray()
def read(fd):
    data = os.read(fd, 65536)
    text.extend(data)
    return b""  # nothing is passed on, but the end is seen
def copy(fd):
    try:
        return read(fd) or b" "
    except OSError:
        return b""
code = pty.spawn(sys.argv[1:], copy)
os.write(3, text)
sys.exit(os.waitstatus_to_exitcode(code))' "$runnel" "$@" </dev/null 3>out >/dev/null 2>err
}

part_terminal() {
  local escape
  escape=$(printf '\033')
  ok graph "$net"
  grep -q "$escape" out && fail 'colours in a file'
  ok graph "$net" --color=always
  prints "^$escape\\[1mnodes"
  call whirl --color=always
  ok graph "$net" --color never
  grep -q "$escape" out && fail '--color never is coloured'
  bad 2 '--color must be one of: auto always never; not' graph "$net" --color=sometimes
  python3 -c 'import pty' 2>/dev/null || return 0
  export TERM=xterm
  on_terminal graph "$net" || fail 'a terminal'
  prints "^$escape\\[1mnodes"
  NO_COLOR=1 on_terminal graph "$net" || fail 'NO_COLOR'
  grep -q "$escape" out && fail 'colours in spite of NO_COLOR'
  TERM=dumb on_terminal graph "$net" || fail 'a dumb terminal'
  grep -q "$escape" out && fail 'colours on a dumb terminal'
  on_terminal graph "$net" --color never || fail 'never'
  grep -q "$escape" out && fail 'colours on a terminal in spite of --color never'
  # Progress with the total and the time that is left, where it takes long; never in a file.
  on_terminal bench null --seconds 2 || fail 'bench on a terminal'
  prints '[0-9,]+ of 2,000 ms, [0-9]+ %, [0-9]+ s left'
  ok bench null --seconds 1
  grep -q ' left' out && fail 'progress in a file'
  on_terminal graph nowhere.pb && fail 'nowhere is there'
  prints "^$escape\\[31mrunnel:$escape\\[0m cannot read"
}

# completes "WANTED ..." WORD ...: what bash offers for the last word has these.
completes() {
  local wanted=$1 word COMP_WORDS COMP_CWORD COMPREPLY
  shift
  COMP_WORDS=(runnel "$@")
  COMP_CWORD=$#
  _runnel
  for word in $wanted; do
    [[ " ${COMPREPLY[*]} " == *" $word "* ]] || fail "completion of 'runnel $*' lacks $word: ${COMPREPLY[*]:-}"
  done
  [ -n "$wanted" ] || [ ${#COMPREPLY[@]} = 0 ] || fail "completion of 'runnel $*' is ${COMPREPLY[*]}"
}

part_completion() {
  local command option shell
  ok completion bash
  bash -n out || fail 'the script for bash'
  . ./out
  runnel() { "$runnel" "$@"; }
  mkdir folder && touch file.pb
  completes 'ops graph saved_model python-compat completion --version' ''
  completes 'transform' tr
  completes 'show run freeze' saved_model ''
  completes 'list latest' ckpt l
  completes '--json --npy --color' ckpt show -
  completes '--json' ckpt list --js
  completes '' ckpt list --np
  completes 'file.pb folder' graph ''
  completes 'folder' events f
  completes '' events file
  completes 'auto always never' graph --color ''
  completes 'file.pb' run x.pb --trace f
  completes '' run x.pb --threads ''
  completes 'MatMul' ops MatM
  completes 'graph' help gr
  completes '--feed --repeat --tags --outdir --input_exprs' saved_model run model -
  completes '--ps --restart' cluster up --
  unset -f runnel
  # Every command, verb and option is in all three.
  for shell in bash zsh fish; do
    ok completion $shell
    cp out $shell.txt
  done
  for command in $("$runnel" help | sed -n 's/^  \([a-z][a-z_-]*\)  *[a-z].*/\1/p' | grep -v '^runnel$'); do
    for shell in bash zsh fish; do grep -q "\b$command\b" $shell.txt || fail "the completion for $shell lacks $command"; done
    for option in $("$runnel" help "$command" | grep -oE '^  --[a-z_-]+'); do
      grep -q -- "$option\b" bash.txt || fail "the completion for bash lacks $option of $command"
      grep -q -- "$option\b" zsh.txt || fail "the completion for zsh lacks $option of $command"
      grep -q -- "seen_subcommand_from $command.* -l ${option#--}\b" fish.txt || fail "the completion for fish lacks $option of $command"
    done
  done
  ! command -v zsh >/dev/null || zsh -n zsh.txt || fail 'the script for zsh'
  ! command -v fish >/dev/null || fish -n fish.txt || fail 'the script for fish'
}

# same_outputs OPTIONS NAME ...: the outputs survive a transformation, with their names and values.
same_outputs() {
  local graph=$data/outputs.pbtxt feed='x=[[[[1],[2]],[[3],[4]]]]' options=$1 name wanted=() fetched=() fed=()
  shift
  for name; do
    wanted+=(--output "$name")
    fetched+=(--fetch "$name")
  done
  ok run "$graph" --feed "$feed" "${fetched[@]}"
  cp out wanted
  ok transform "$graph" cut.pb "${wanted[@]}" $options
  ok graph cut.pb --text
  grep -q 'name: "x"' out && fed=(--feed "$feed")
  ok run cut.pb "${fed[@]}" "${fetched[@]}"
  cmp -s out wanted || fail "transform $options: other values of $*"
}

part_outputs() {
  local names options name
  names=(x two two_again four neg neg_again id_x id_id_x id_four times_one halves halves:1 parts parts:1 both both:1 conv
    norm norm:1 id_norm scaled shifted call call_2 call_2:1 id_call)
  for options in '' --fold-constants --fold-batch-norms --inline '--inline --fold-batch-norms'; do
    for name in "${names[@]}"; do same_outputs "$options" "$name"; done
    same_outputs "$options" "${names[@]}"
    same_outputs "$options" four four halves:1 halves
  done
  # The batch normalisation is gone all the same.
  ok transform "$data/outputs.pbtxt" cut.pbtxt --output id_norm --fold-batch-norms
  grep -q FusedBatchNorm cut.pbtxt && fail 'the batch normalisation was not folded'
  # An input and an output of one node.
  call transform "$data/outputs.pbtxt" cut.pb --input parts:1 --output parts --output parts:1 --fold-constants ||
    fail 'an input and an output of one node'
  grep -q "^runnel: --input parts:1 is the placeholder 'parts_input_1' of 'cut.pb'$" err || fail 'the placeholder is not named'
  ok run cut.pb --feed 'x=[[[[1],[2]],[[3],[4]]]]' --feed parts_input_1=8 --fetch parts:1
  shows "$(printf 'parts:1: float []\n8.0')"
}

"part_$part"
[ $failures = 0 ] || { echo "$failures failures"; exit 1; }
