"""What the op case rows are made of: one module a family, see make_cases.py."""
