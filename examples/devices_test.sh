#!/bin/sh
# An example computes the same on the CPU and on a GPU: devices_test.sh PROGRAM ARGUMENTS ...
# Compares the last lines, which have the numbers; a few steps are enough.
set -u
last() { "$@" | tail -n 1; }
cpu=$(last "$@" --device cpu)
gpu=$(last "$@" --device gpu)
echo "cpu: $cpu"
echo "gpu: $gpu"
[ -n "$cpu" ] && [ "$cpu" = "$gpu" ]
