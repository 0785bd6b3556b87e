#!/usr/bin/env bash
# Every C file is formatted by clang-format ("make format"). Skipped for versions other than 14, which differ in details.
cd "$(dirname "$0")/../.." || exit 1
case $(clang-format --version 2>/dev/null) in *"version 14."*) ;; *) echo "there is no clang-format 14"; exit 77 ;; esac
! find . \( -path ./build -o -path ./.git \) -prune -o -name '*.[ch]' -print | xargs -n 60 -P "$(nproc)" clang-format --dry-run -Werror 2>&1 | grep 'error:'
