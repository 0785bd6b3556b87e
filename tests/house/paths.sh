#!/usr/bin/env bash
# No file speaks of the machine it was written on.
cd "$(dirname "$0")/../.." || exit 1
! grep -rnIE '/(wor[k]|roo[t]|hom[e]/[a-z]+)/' --exclude-dir=build --exclude-dir=.git --exclude=.git .
