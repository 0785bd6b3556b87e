#!/usr/bin/env bash
# Which folder may include which (doc/architecture.md): every #include "folder/file.h" in src/ must point to the
# folder itself or to one below it.
set -u
cd "$(dirname "$0")/.." || exit 1
declare -A may=(
  [base]=""
  [wire]="base proto"
  [tensor]="base wire proto"
  [io]="base wire proto tensor"
  [framework]="base wire proto tensor io runnel"
  [net]="base wire proto tensor framework"
  [device]="base tensor io framework runnel"
  [collective]="base tensor framework device"
  [graph]="base wire proto tensor io framework runnel"
  [function]="base wire proto tensor framework graph runnel"
  [step]="base wire proto tensor framework device graph function"
  [ops]="base tensor io framework graph runnel"
  [grad]="base tensor framework graph function ops runnel"
  [kernels]="base wire tensor io framework device runnel"
  [place]="base tensor framework device graph step"
  [exec]="base tensor framework device graph step"
  [session]="base wire proto tensor framework device collective graph function step exec place runnel"
  [eager]="base tensor framework device collective graph function ops grad exec place session runnel"
  [train]="base tensor io framework graph function ops grad session runnel"
  [saved_model]="base wire proto tensor io framework device graph function step ops grad exec place session train runnel"
  [dist]="base wire proto tensor io framework net device collective graph step exec place session eager runnel"
  [data_service]="base wire proto tensor io framework net device graph step session runnel"
  [serve]="base wire proto tensor io framework net device graph step session saved_model runnel"
)
bad=0
while IFS=: read -r file line text; do
  room=${file#src/}
  room=${room%%/*}
  [[ $text =~ \#include\ \"([^\"/]*)/ ]] || continue
  target=${BASH_REMATCH[1]}
  [ "$room" = capi ] || [ "$target" = "$room" ] && continue
  case " ${may[$room]-none} " in
    *" $target "*) ;;
    *)
      echo "$file:$line: $room may not include $target"
      bad=1
      ;;
  esac
done < <(grep -rn '^ *#include "' src --include='*.c' --include='*.h' --include='*.inc')
# Only the registrar names the tables of kernels; exec, place and session name no op.
exit $bad
