#!/usr/bin/env python3
"""Writes the table of scripts: unicode_scripts.py > src/kernels/cpu/string/unicode_scripts.def

Runs stock TensorFlow's UnicodeScript for every code point.
"""

import numpy as np
import tensorflow as tf

END = 0x110000


def main():
    scripts = tf.raw_ops.UnicodeScript(input=np.arange(END, dtype=np.int32)).numpy()
    firsts = [0] + list(np.flatnonzero(np.diff(scripts)) + 1)
    print("// The scripts of code points: where each run begins, << 8, and its script as ICU numbers them.")
    print("// Written by tools/unicode_scripts.py.")
    words = ["0x%x," % (first << 8 | scripts[first]) for first in map(int, firsts)]
    line = ""
    for word in words:
        if len(line) + len(word) + 1 > 100:
            print(line)
            line = ""
        line += (" " if line else "") + word
    print(line)


if __name__ == "__main__":
    main()
