#!/usr/bin/env bash
# No file speaks of the machine it was written on. In a worktree .git is a file that names a path.
cd "$(dirname "$0")/../.." || exit 1
! grep -rnIE '/(wor[k]|roo[t]|hom[e]/[a-z]+)/' --exclude-dir=build --exclude-dir=.git --exclude=.git .
