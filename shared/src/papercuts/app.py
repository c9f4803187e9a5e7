"""Makes a tool's Typer app: common options, errors and signals to exit codes, closed pipes.

    app = App("seesaw", help="...", cite=True)

    @app.command()
    def plan(output: Output = "-") -> None: ...

The console script points at `app` itself. A command raises the errors of `papercuts.errors`, or
`typer.Exit(code)` when it has said all there is to say; everything else is settled here, once.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import inspect
import os
import pkgutil
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Annotated, Any, Literal, NoReturn, TypeVar

import typer
from typer.exceptions import TyperException

from papercuts import errors, log

FormatName = Literal["json", "csv", "table"]
Output = Annotated[
    str, typer.Option("-o", "--output", metavar="PATH", help="Where the result goes; - is stdout.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing output file.")]
Format = Annotated[
    FormatName | None,
    typer.Option(
        "--format",
        help="json is JSON Lines. Default: table on a terminal, elsewhere json.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of everything random.", min=0)]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", min=1, help="Processes to use. Default: the cores this process may use."
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray", metavar="ADDRESS", help="Run on this Ray cluster (local starts one here)."
    ),
]
Device = Annotated[
    str, typer.Option("--device", metavar="auto|cpu|cuda|mps", help="Where torch computes.")
]
Dtype = Annotated[
    str, typer.Option("--dtype", metavar="auto|fp32|bf16|fp16", help="Floating-point type.")
]
Plot = Annotated[
    str | None,
    typer.Option(
        "--plot", metavar="FILE", help="Also draw the result into this .png or .svg file."
    ),
]

_EPILOG = "Options of every command: -v, -q, --debug, --version, --cite (see {tool} --help)."
_WRITE_ERRORS = {errno.EBADF, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}

F = TypeVar("F", bound=Callable[..., Any])


class Terminated(BaseException):
    """SIGTERM arrived. A BaseException, so that only clean-up code meets it on its way out."""


class App(typer.Typer):
    """A Typer app with the manners of the house.

    `package` holds the tool's `paper.toml` (default: the import package of the tool's name) when
    `cite` is true. `schema`, where given, is a function that returns the JSON Schema of the tool's
    records, or names one as `package.module:function`, and makes the command `schema`.
    """

    def __init__(
        self,
        name: str,
        *,
        help: str,  # noqa: A002 (Typer's own name for it)
        package: str | None = None,
        distribution: str | None = None,
        cite: bool = True,
        schema: Callable[[], dict[str, Any]] | str | None = None,
    ) -> None:
        super().__init__(
            name=name,
            help=help,
            add_completion=False,
            # rich costs 0.4 s of every --help, and plain text is what a pipe wants.
            rich_markup_mode=None,
            pretty_exceptions_enable=False,
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        )
        self.tool = name
        self._package = package or name
        self._distribution = distribution or f"papercuts-{name}"
        self._cite = cite
        self._debug = False
        self._built: Any = None  # what Typer makes of all this, until another command is added
        self.callback(invoke_without_command=True, help=help)(
            self._with_common(_root, hidden=False)
        )
        if schema is not None:
            self._add_schema_command(schema)

    def command(self, name: str | None = None, **kwargs: Any) -> Callable[[F], F]:
        """Register a command, as `typer.Typer.command` does, with the common options added."""
        kwargs.setdefault("epilog", self._epilog())
        register = super().command(name, **kwargs)

        def decorate(function: F) -> F:
            register(self._with_common(function, hidden=True))
            self._built = None
            # `schema` was registered first, but stands last in the help.
            self.registered_commands.sort(key=lambda info: info.name == "schema")
            return function

        return decorate

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run the command line and leave the process with its exit code."""
        raise SystemExit(self.run(*args, **kwargs))

    def run(self, args: Sequence[str] | None = None) -> int:
        """Run one command line (default: `sys.argv`) and give its exit code; nothing is raised."""
        _reopen_closed_streams()
        log.reset()
        self._debug = False
        try:
            with _signals():
                code = self._invoke(args)
        except BaseException as error:  # noqa: BLE001 (this is the one place that may)
            code = self._ending(error)
        return self._flush(code)

    def _invoke(self, args: Sequence[str] | None) -> int:
        if self._built is None:
            self._built = typer.main.get_command(self)
        arguments = list(sys.argv[1:] if args is None else args)
        # Not `command.main`: it would turn a closed pipe and Ctrl-C into endings of its own.
        with self._built.make_context(self.tool, arguments) as context:
            self._built.invoke(context)
        return errors.OK

    def _ending(self, error: BaseException) -> int:
        """Say on one line of stderr how the command ended, and give the exit code."""
        if self._debug and not isinstance(error, (SystemExit, typer.Exit, BrokenPipeError)):
            traceback.print_exception(error)
        match error:
            case typer.Exit(exit_code=code) | SystemExit(code=int(code)):
                return code
            case SystemExit(code=code):
                return errors.OK if code is None else self._say(str(code), errors.NEGATIVE)
            case BrokenPipeError():
                _discard(sys.stdout)
                return errors.OK
            case KeyboardInterrupt() | typer.Abort():
                return self._say("interrupted", errors.INTERRUPTED)
            case Terminated():
                return self._say("terminated", errors.TERMINATED)
            case errors.PapercutsError(exit_code=code):
                return self._say(f"error: {error}", code)
            case TyperException():
                return self._say(f"error: {_usage_message(error)}", errors.USAGE)
            case OSError(errno=number) if number in _WRITE_ERRORS:
                return self._say(f"error: cannot write: {_os_message(error)}", errors.CANT_CREATE)
            case (
                FileNotFoundError() | PermissionError() | IsADirectoryError() | NotADirectoryError()
            ):
                return self._say(f"error: {_os_message(error)}", errors.NO_INPUT)
            case MemoryError():
                return self._say("error: out of memory", errors.INTERNAL)
        return self._say(
            f"internal error: {type(error).__name__}: {_one_line(str(error))} "
            f"(a fault of {self.tool}: please report the command line and what --debug adds)",
            errors.INTERNAL,
        )

    def _flush(self, code: int) -> int:
        """Flush stdout while an error can still be told, and close it to what Python does later."""
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            _discard(sys.stdout)
        except OSError as error:
            _discard(sys.stdout)
            if code == errors.OK:
                code = self._say(f"error: cannot write: {_os_message(error)}", errors.CANT_CREATE)
        return code

    def _say(self, text: str, code: int) -> int:
        try:
            sys.stderr.write(f"{self.tool}: {text}\n")
            sys.stderr.flush()
        except OSError:
            _discard(sys.stderr)  # nobody listens; the exit code still tells
        return code

    def _with_common(self, function: F, *, hidden: bool) -> F:
        """Wrap a command so that its signature, which Typer reads, has the common options too."""
        common = self._common_parameters(hidden=hidden)
        names = [parameter.name for parameter in common]
        signature = inspect.signature(function, eval_str=True)

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            given = {name: kwargs.pop(name) for name in names}
            self._debug = self._debug or given["debug"]
            log.configure(self.tool, verbose=given["verbose"], quiet=given["quiet"])
            return function(*args, **kwargs)

        parameters = [*signature.parameters.values(), *common]
        wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
        return wrapper  # type: ignore[return-value]

    def _common_parameters(self, *, hidden: bool) -> list[inspect.Parameter]:
        def option(
            name: str, kind: Any, *flags: str, default: Any, **extra: Any
        ) -> inspect.Parameter:
            info = typer.Option(*flags, hidden=hidden, **extra)
            return inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=default,
                annotation=Annotated[kind, info],
            )

        parameters = [
            option(
                "verbose", int, "-v", "--verbose", default=0, count=True,
                show_default=False, help="Say more on stderr.",
            ),
            option("quiet", bool, "-q", "--quiet", default=False, help="Say errors only."),
            option("debug", bool, "--debug", default=False, help="Show tracebacks."),
            option(
                "version", bool, "--version", default=False, is_eager=True,
                callback=self._print_version, help="Print the version and exit.",
            ),
        ]  # fmt: skip
        if self._cite:
            parameters.append(
                option(
                    "cite", bool, "--cite", default=False, is_eager=True,
                    callback=self._print_cite, help="Print the paper's BibTeX and exit.",
                )
            )  # fmt: skip
        return parameters

    def _print_version(self, wanted: bool) -> None:
        if wanted:
            from importlib.metadata import version

            typer.echo(f"{self.tool} {version(self._distribution)}")
            raise typer.Exit

    def _print_cite(self, wanted: bool) -> None:
        if wanted:
            typer.echo(read_paper(self._package)["bibtex"].strip())
            raise typer.Exit

    def _epilog(self) -> str:
        text = _EPILOG.format(tool=self.tool)
        return text if self._cite else text.replace(", --cite", "")

    def _add_schema_command(self, schema: Callable[[], dict[str, Any]] | str) -> None:
        @self.command("schema")
        def print_schema() -> None:
            """Print the JSON Schema of the records."""
            import json

            make = pkgutil.resolve_name(schema) if isinstance(schema, str) else schema
            typer.echo(json.dumps(make(), indent=2))


def read_paper(package: str) -> dict[str, Any]:
    """Read `paper.toml` of an installed package: title, authors, venue, ids, summary, bibtex."""
    import tomllib
    from importlib.resources import files

    return tomllib.loads(files(package).joinpath("paper.toml").read_text(encoding="utf-8"))


def need(module: str, *, tool: str, extra: str) -> Any:
    """Import `module`, or raise `MissingError` that names the extra which brings it."""
    from importlib import import_module

    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise errors.MissingError(
            f"this needs {error.name}, which is not installed; add the extra '{extra}': "
            f"uv tool install './packages/{tool}[{extra}]' in a checkout"
        ) from None


def _root(ctx: typer.Context) -> None:
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help(), err=True)
        raise typer.Exit(errors.USAGE)


class _signals:  # noqa: N801 (reads as the statement it is)
    """While it lasts, SIGTERM raises `Terminated` (Ctrl-C raises `KeyboardInterrupt` by itself)."""

    def __enter__(self) -> None:
        self._before = None
        # Outside the main thread the program around us owns the signals.
        with contextlib.suppress(ValueError):
            self._before = signal.signal(signal.SIGTERM, self._terminate)

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)

    @staticmethod
    def _terminate(_number: int, _frame: FrameType | None) -> NoReturn:
        # A second SIGTERM must not interrupt the clean-up that the first one began.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated


def _usage_message(error: TyperException) -> str:
    context = getattr(error, "ctx", None)
    hint = f" (try '{context.command_path} --help')" if context is not None else ""
    return _one_line(error.format_message()) + hint


def _os_message(error: BaseException) -> str:
    assert isinstance(error, OSError)  # noqa: S101
    text = error.strerror or str(error)
    return f"{error.filename}: {text}" if error.filename is not None else text


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _reopen_closed_streams() -> None:
    """Give the streams that the shell closed (`>&-`) a descriptor, so that no later file takes it.

    Writing to a closed stdout then fails as it should; what stderr would have said is dropped.
    """
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _discard(stream: Any) -> None:
    """Point a stream that can no longer be written at /dev/null, so that its closing is silent."""
    with contextlib.suppress(OSError, ValueError):  # a stand-in without a descriptor needs nothing
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
