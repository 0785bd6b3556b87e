"""Checkpoints of objects: which objects hold which, what is stored of them, and how they are restored."""
