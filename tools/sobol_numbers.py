#!/usr/bin/env python3
"""Writes the direction numbers of Sobol sequences: sobol_numbers.py > src/kernels/cpu/math/sobol.def

Runs stock TensorFlow's SobolSample for the points whose Gray code has one bit. Each dimension after
the first is a primitive polynomial of degree s (s - 1 inner coefficients, the highest first) and
s odd numbers m_k < 2^k (k - 1 bits each, without the lowest bit, which is 1). The bits of all
dimensions, lowest first, are concatenated and packed into words of 64 bits.
"""

import numpy as np
import tensorflow as tf

DIMENSIONS = 1024
BITS = 29


def directions():
    """Returns the numbers m_k of each dimension, for k from 1."""
    rows = []
    for k in range(BITS):
        at = 2 ** (k + 1) - 2  # the number of points before the one with Gray code 2^k
        point = tf.raw_ops.SobolSample(dim=DIMENSIONS, num_results=1, skip=at, dtype=tf.float64)
        rows.append((point.numpy()[0] * 2.0 ** (k + 1)).astype(np.int64))
    return np.array(rows).T.tolist()


def follows(m, degree, inner):
    """Tells whether the numbers m satisfy the polynomial's recurrence."""
    for k in range(degree, BITS):
        want = m[k - degree] ^ m[k - degree] << degree
        for j in range(1, degree):
            if inner >> degree - 1 - j & 1:
                want ^= m[k - j] << j
        if want != m[k]:
            return False
    return True


def main():
    bits, degree = [], 1
    numbers = directions()
    assert all(m == 1 for m in numbers[0])
    counts = []
    for m in numbers[1:]:
        inner = None
        while inner is None:
            inner = next((a for a in range(1 << degree - 1) if follows(m, degree, a)), None)
            degree += inner is None
        while len(counts) < degree:
            counts.append(0)
        counts[degree - 1] += 1
        bits += [inner >> i & 1 for i in range(degree - 1)]
        for k in range(degree):
            assert m[k] & 1 and m[k] < 2 << k
            bits += [m[k] >> i + 1 & 1 for i in range(k)]
    bits += [0] * (-len(bits) % 64)
    words = [sum(b << i for i, b in enumerate(bits[w : w + 64])) for w in range(0, len(bits), 64)]
    print("// Direction numbers of Sobol sequences; %d dimensions behind the first, by degree:" % sum(counts))
    print("// %s. Written by tools/sobol_numbers.py." % ", ".join(map(str, counts)))
    for i in range(0, len(words), 4):
        print(" ".join("0x%016x," % w for w in words[i : i + 4]))


if __name__ == "__main__":
    main()
