#!/usr/bin/env python3
"""Records the results of stock TensorFlow's input pipelines.

  record.py [--only NAME]        writes cases.jsonl (or, with --only, prints these cases)

The pipelines are in pipelines.py, older_pipelines.py, kept_pipelines.py, experimental_pipelines.py and graph_pipelines.py; recorder.py is
what they are made with.
"""
import recorder  # first: it sets up stock TensorFlow
import pipelines  # noqa: F401
import older_pipelines  # noqa: F401
import kept_pipelines  # noqa: F401
import experimental_pipelines  # noqa: F401
import graph_pipelines  # noqa: F401

if __name__ == "__main__":
    recorder.main()
