#!/usr/bin/env bash
# Shape functions reach a node's inputs and outputs through framework/shape_fn.h alone, which checks the index.
cd "$(dirname "$0")/../.." || exit 1
! grep -rnE 'ctx->(inputs|outputs|input_(types|values|partials|handles)|output_handles)\b' --include=*.c --include=*.h src/ops
