"""Written by the build (python/tools/make_messages.py)."""

from typing import Any

MESSAGES: dict[str, tuple[Any, ...]]
ENUMS: dict[str, tuple[tuple[str, int], ...]]
ONEOFS: dict[str, tuple[str, ...]]
PACKAGES: dict[str, str]
