"""The op case rows: one module per family, see make_cases.py."""
