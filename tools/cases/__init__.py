"""The op cases: one module per family, see make_cases.py."""
