#!/usr/bin/env bash
# No file contains a path of the machine that it was written on. Skips .git, which in a worktree is a file that names a path.
cd "$(dirname "$0")/../.." || exit 1
! grep -rnIE '/(wor[k]|roo[t]|hom[e]/[a-z]+)/' --exclude-dir=build --exclude-dir=.git --exclude=.git .
