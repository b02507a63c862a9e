"""What people read: one self-contained HTML file per profile or validation, every number with its evidence."""

from __future__ import annotations

__all__: list[str] = []
