#!/bin/sh
# Prints the C program that the ```c blocks of a page are: doc_code.sh PAGE
exec sed -n '/^```c$/,/^```$/{/^```/d;p;}' "$1"
