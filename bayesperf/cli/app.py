"""The application: its verbs, and what becomes of an error."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperGroup

from bayesperf import __version__
from bayesperf.cli.output import visible
from bayesperf.errors import BayesperfError, MissingExtraError

__all__ = ["build"]

HELP = """Measure what a machine can do, fit a Bayesian model of it, and predict with honest intervals.

The main job is one command, run on the machine in question. It measures, fits, checks itself on workloads that it
was not fitted to, and writes measurements.parquet, profile.nc and report.html:

\b
    bayesperf characterize

The other verbs are its steps, each usable alone:

\b
    bayesperf measure --suite quick --out host.parquet
    bayesperf fit host.parquet --out host.nc
    bayesperf predict host.nc workloads.csv --target NAME
    bayesperf validate host.nc heldout.parquet
    bayesperf report host.nc --out host.html

Exit codes: 0 done, 1 failed, 2 wrong usage or bad input, 3 a regime fails to transfer; 130 after Ctrl-C.
"""

INTERRUPTED = 130
"""What shells report of a program ended by Ctrl-C."""


class Verbs(TyperGroup):
    """The verbs, with every error turned into one line and its exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run a verb."""
        try:
            return super().invoke(ctx)
        except (BayesperfError, OSError, KeyboardInterrupt, ModuleNotFoundError) as error:
            ours = isinstance(error, ModuleNotFoundError) and str(error.name).startswith("bayesperf")
            if ctx.params.get("debug") or ours or getattr(error, "errno", None) == errno.EPIPE:
                raise
            line, code = describe(error)
            typer.echo(line, err=True)
            raise typer.Exit(code) from None
        except (typer.Exit, typer.Abort):
            raise
        # A defect of ours must still end in one readable line; --debug shows the rest.
        except Exception as error:
            if ctx.params.get("debug") or is_usage_error(error):
                raise
            typer.echo(
                f"error: unexpected {type(error).__name__}: {one_line(error)}. This is a defect of bayesperf: "
                "run `bayesperf --debug ...` again and report what it prints",
                err=True,
            )
            raise typer.Exit(1) from None


def is_usage_error(error: Exception) -> bool:
    """Whether the parser raised it; it prints those itself, with the usage line."""
    return type(error).__module__.partition(".")[0] in ("typer", "click")


def describe(error: BaseException) -> tuple[str, int]:
    """Say what the user reads of an error, and the exit code."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", INTERRUPTED
    if isinstance(error, BayesperfError):
        return f"error: {one_line(error)}", error.exit_code
    if isinstance(error, ModuleNotFoundError):
        # The light install of measuring hosts lacks the libraries of inference.
        missing = MissingExtraError("this verb", str(error.name), "pip install bayesperf")
        return f"error: {missing}", missing.exit_code
    assert isinstance(error, OSError)
    where = f"{error.filename}: " if error.filename else ""
    failed = error.errno in (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EMFILE, errno.ENOMEM)
    return f"error: {where}{error.strerror or one_line(error)}", 1 if failed else 2


def one_line(error: BaseException) -> str:
    """Message of an error without line breaks and control characters."""
    return visible(" ".join(str(error).split())) or type(error).__name__


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning as one line, without the source that raised it."""
    print(f"warning: {' '.join(str(message).split())}", file=file or sys.stderr)


def version(value: bool) -> None:
    """Print the version and stop."""
    if value:
        typer.echo(f"bayesperf {__version__}")
        raise typer.Exit


def top(
    show_version: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="BAYESPERF_DEBUG", help="Show the traceback of an error.")
    ] = False,
) -> None:
    """Options of the program itself."""
    if not debug and not sys.warnoptions and "PYTHONWARNINGS" not in os.environ:
        warnings.showwarning = show_warning


def build() -> typer.Typer:
    """Assemble the application; loads no library but the parser."""
    from bayesperf.cli import (
        batch,
        characterize,
        compare,
        diff,
        doctor,
        explain,
        fit,
        import_,
        listing,
        measure,
        merge,
        predict,
        report,
        update,
        validate,
        verify,
    )

    app = typer.Typer(
        name="bayesperf",
        cls=Verbs,
        help=HELP,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
    app.callback(cls=Verbs, help=HELP, no_args_is_help=True)(top)
    for name, module, summary in (
        ("characterize", characterize, "Measure, fit, validate and report: the main job."),
        ("measure", measure, "Run probes; needs no inference library."),
        ("fit", fit, "Fit a model to measurements."),
        ("update", update, "Add a few rows to a profile without a full fit."),
        ("predict", predict, "Predict how long workloads take."),
        ("explain", explain, "Measure a program by profiler, beside its prediction."),
        ("validate", validate, "Compare a profile with measurements it has not seen."),
        ("compare", compare, "Say which target is faster, and how sure that is."),
        ("diff", diff, "Say what moved between two profiles of one target."),
        ("report", report, "Write a profile's report."),
        ("batch", batch, "Fit, validate and report many times, as a file says."),
        ("verify", verify, "Recompute a profile's hashes, fit again, compare the numbers."),
        ("import", import_, "Read other tools' outputs into the table."),
        ("merge", merge, "Join measurement tables."),
        ("list", listing, "List what is installed."),
        ("doctor", doctor, "Say what would spoil a measurement here."),
    ):
        app.command(name, help=module.HELP, short_help=summary)(module.run)
    return app
