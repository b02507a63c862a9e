"""Taking parts of a JSON document that may be anything."""

from __future__ import annotations

from typing import Any

__all__ = ["items", "mapping", "text"]


def mapping(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; empty if it is none."""
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def text(value: Any, limit: int = 120) -> str | None:
    """The value if it is text, cut to `limit` characters, without surrounding blanks; None if there is none."""
    return value.strip()[:limit].strip() or None if isinstance(value, str) else None
