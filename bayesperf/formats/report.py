"""What an import did, for people, programs and provenance."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bayesperf.quality.findings import QualityReport

__all__ = ["FileReport", "ImportReport"]


@dataclass(slots=True)
class FileReport:
    """One file.

    Parameters
    ----------
    file, sha256
        Its name without folders, and its hash.
    format, format_version, tool, tool_version
        What it was read as.
    rows
        Measurements taken from it.
    skipped
        Rows that carry no measurement: {reason: {count, examples}}.
    notes
        Assumptions and disagreements: {reason: {count, examples}}.
    facts
        What else the file says.
    """

    file: str
    sha256: str
    format: str
    format_version: int
    tool: str
    tool_version: str | None
    rows: int
    skipped: dict[str, dict[str, Any]]
    notes: dict[str, dict[str, Any]]
    facts: dict[str, Any]

    def text(self) -> str:
        """A few lines."""
        version = f" {self.tool_version}" if self.tool_version else ""
        lines = [f"{self.file}: {self.rows} rows ({self.tool}{version})"]
        for title, tally in (("skipped", self.skipped), ("note", self.notes)):
            for reason, entry in tally.items():
                lines.append(f"  {title}: {reason}: {entry['count']}")
                lines += [f"    {example}" for example in entry["examples"]]
        return "\n".join(lines)


@dataclass(slots=True)
class ImportReport:
    """All files of an import, and what the quality gate found."""

    files: list[FileReport] = field(default_factory=list)
    quality: QualityReport = field(default_factory=QualityReport)

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return sum(file.rows for file in self.files)

    def text(self) -> str:
        """Everything, for people."""
        parts = [file.text() for file in self.files]
        quality = self.quality.text()
        return "\n".join([*parts, quality] if quality else parts)

    def as_dict(self) -> dict[str, Any]:
        """JSON-able, for ``--json``."""
        files = [{name: getattr(file, name) for name in FileReport.__dataclass_fields__} for file in self.files]
        return {"rows": self.rows, "files": files, "quality": self.quality.as_dict()}
