#!/bin/sh
# Prints the C program in the ```c blocks of a page: doc_code.sh PAGE
exec sed -n '/^```c$/,/^```$/{/^```/d;p;}' "$1"
