"""Finds the package of the source tree; RUNNEL_BUILD says where it was built."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(os.path.dirname(HERE)), "python")]
sys.path.append(os.path.dirname(HERE))  # tests/support
