"""What the tests written in Python share. See README.md."""
