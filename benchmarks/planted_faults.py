"""Plant single faults in the library, one at a time, and see whether a test notices.

    OMP_NUM_THREADS=1 python benchmarks/planted_faults.py --faults 200 --seed 10001 --processes 2
    OMP_NUM_THREADS=1 python benchmarks/planted_faults.py --rooms geometry nesting --faults 40 --seed 7 --seconds 20
    OMP_NUM_THREADS=1 python benchmarks/planted_faults.py --only learning/exact.py:57   # faults of one line

A fault is one small change of one expression or statement: another comparison, sign or operator, a term or factor that
is dropped, arguments that are swapped, a constant or an axis that is off by one, a condition that is negated, a guard,
a clip or a loop that is gone. What could never run is left out (types that are joined by `&`, a path times a text, one
value in place of the several that are unpacked): any test that comes there would notice. Faults are drawn evenly over
the rooms. For each, the tests that enter the changed function run, shortest first and as many as fit into `--seconds`
of CPU, until one fails: by an assertion, or by a crash (any other exception, or no end). A few more tests run after a
crash: "later" is a crash in the shortest test, which may be one that only looks whether anything comes out, and an
assertion in one of these. What survives is printed with its place, to be judged by a person: some changes make no
difference.

Which tests enter which function is recorded by one traced run of the suite and kept in the temporary folder; test files
that changed since are recorded anew, and `--record` records all (do so after large changes of the library). Faults are
written into copies of the tree in a temporary folder, never into the tree itself.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import importlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path("src/featgeo")
MAP = Path(tempfile.gettempdir()) / f"featgeo_tests_by_function_{os.getuid()}.json"
PYTEST = ["-q", "-p", "no:cacheprovider", "--no-header"]

COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
OPPOSITES = [
    ("min", "max"),
    ("minimum", "maximum"),
    ("argmin", "argmax"),
    ("amin", "amax"),
    ("any", "all"),
    ("floor", "ceil"),
    ("zeros", "ones"),
    ("sum", "mean"),
]
OPPOSITE = {a: b for pair in OPPOSITES for a, b in (pair, pair[::-1])}
REMOVABLE = {"clip", "abs", "sqrt", "square", "exp", "log", "cumsum", "sorted", "reversed", "copy", "conj", "unique"}
AXES = {"axis", "dim"}
TYPES = {"int", "float", "str", "bytes", "bool", "list", "tuple", "set", "frozenset", "dict", "type", "np.bool_"}
COMMUTE = {"min", "max", "minimum", "maximum", "allclose", "array_equal", "logical_and", "logical_or", "hypot"}
ORDER_IS_TYPED = {"isinstance", "issubclass", "getattr", "setattr", "hasattr", "register_buffer", "partial", "cast"}


@dataclass(frozen=True)
class Fault:
    """A change of one stretch of a file.

    Attributes:
        file: Path within the package.
        function: Qualified name of the function, or of the class, that it stands in; empty at the top of a file.
        line: Line where it starts, counted from 1.
        span: First and last byte.
        old: The text there.
        new: What it becomes.
    """

    file: str
    function: str
    line: int
    span: tuple[int, int]
    old: str
    new: str

    @property
    def room(self) -> str:
        """Folder of the package, or the file where it stands in none."""
        return self.file.split("/")[0]

    def __str__(self) -> str:
        old, new = (" ".join(text.split()) for text in (self.old, self.new))
        return f"{self.file}:{self.line} in {self.function or 'the module'}: {old[:100]}  ->  {new[:100]}"

    def plant(self, source: bytes) -> bytes:
        """The file with the fault."""
        return source[: self.span[0]] + self.new.encode() + source[self.span[1] :]


def faults_of(file: Path) -> list[Fault]:
    """Every fault that can be planted in a file; a few do not compile, see `draw`."""
    source = (ROOT / PACKAGE / file).read_bytes()
    starts = [0]
    for line in source.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    found = {}
    for node, function in _nodes(ast.parse(source), ""):
        for place, new in _changes(node):
            first = starts[place.lineno - 1] + place.col_offset
            last = starts[place.end_lineno - 1] + place.end_col_offset
            old = source[first:last].decode()
            fault = Fault(str(file), function, place.lineno, (first, last), old, new)
            found[fault.span, fault.new] = fault
    return list(found.values())


def compiles(fault: Fault) -> bool:
    """Whether the file with the fault is Python, and another program than without it."""
    source = (ROOT / PACKAGE / fault.file).read_bytes()
    try:
        return ast.dump(ast.parse(fault.plant(source))) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


def _nodes(node: ast.AST, scope: str, prefix: str = "") -> Iterator[tuple[ast.AST, str]]:
    """All nodes that compute something, with the function they stand in: no types, no texts, no messages of errors."""
    if isinstance(node, (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)):
        return
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        scope = prefix + node.name
        prefix = scope + ("." if isinstance(node, ast.ClassDef) else ".<locals>.")
    if isinstance(node, ast.If) and _text(node.test) == "(TYPE_CHECKING)":
        return
    yield node, scope
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and getattr(child, "arg", "") != "strict":  # it only checks lengths
                yield from _nodes(child, scope, prefix)


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Stretches of text to replace, and by what."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            for other in COMPARISONS[type(op)]:
                yield node, _text(ast.Compare(left, [other()], [right]))
        case ast.BinOp(left=left, op=op, right=right):
            if type(op) in OPERATORS and not _never_runs(op, left, right):
                yield node, _text(ast.BinOp(left, OPERATORS[type(op)](), right))
            if not isinstance(op, ast.MatMult):
                yield node, _text(left)
        case ast.BoolOp(op=op, values=values):
            yield node, _text(ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values))
            for i in range(len(values)):
                yield node, _text(ast.BoolOp(op, values[:i] + values[i + 1 :]) if len(values) > 2 else values[1 - i])
        case ast.UnaryOp(operand=operand):
            yield node, _text(operand)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield node, _text(ast.IfExp(test, orelse, body))
        case ast.Attribute(value=value, attr="T"):
            yield node, _text(value)
        case ast.Constant(value=value) if node.end_lineno == node.lineno:
            yield from _other_constants(node, value)
        case ast.Call():
            yield from _other_calls(node)
        case ast.Subscript(value=value, slice=ast.Slice(lower=lower, upper=upper)) if lower or upper:
            yield node, _text(value)
        case ast.If(test=test, orelse=orelse):
            yield test, f"not {_text(test)}"
            if not orelse and not isinstance(test, ast.Name):
                yield test, "False"
        case ast.For(iter=several):
            yield several, f"list({_text(several)})[:1]"
        case ast.AugAssign(target=target, op=op, value=value):
            if type(op) in OPERATORS:
                yield node, f"{ast.unparse(target)} {ast.unparse(ast.BinOp(target, OPERATORS[type(op)](), value))}"
            yield node, "pass"
        case ast.Expr(value=ast.Call()):
            yield node, "pass"
        case ast.Continue():
            yield node, "break"


def _never_runs(op: ast.operator, left: ast.expr, right: ast.expr) -> bool:
    """Whether another operator between two operands is an error whatever they are: texts, paths and types."""
    texts = any(isinstance(side, ast.JoinedStr) for side in (left, right)) or any(
        isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (left, right)
    )
    types = isinstance(op, ast.BitOr) and any(
        ast.unparse(side) in TYPES or isinstance(side, ast.Constant) for side in (left, right)
    )
    return texts or types or isinstance(left, ast.Constant)


def _other_constants(node: ast.Constant, value: object) -> Iterator[tuple[ast.expr, str]]:
    if isinstance(value, bool):
        yield node, str(not value)
    elif isinstance(value, int):
        yield node, str(value + 1)
    elif isinstance(value, float) and abs(value) > 1e-6:  # smaller ones are guards, of no exact size
        yield node, f"{value * 2 or 1.0!r}"


def _other_calls(node: ast.Call) -> Iterator[tuple[ast.expr, str]]:
    name = {ast.Attribute: "attr", ast.Name: "id"}.get(type(node.func), "")
    name = getattr(node.func, name) if name else ""
    is_method = isinstance(node.func, ast.Attribute) and not (
        isinstance(node.func.value, ast.Name) and node.func.value.id in ("np", "torch", "math")
    )
    if name in OPPOSITE and (isinstance(node.func, ast.Attribute) or OPPOSITE[name] in ("min", "max", "any", "all")):
        other = ast.parse(_text(node), mode="eval").body
        setattr(other.func, "attr" if isinstance(other.func, ast.Attribute) else "id", OPPOSITE[name])
        yield node, _text(other)
    if name in REMOVABLE:
        yield node, _text(node.func.value if is_method else node.args[0])
    alike = len(node.args) > 1 and type(node.args[0]) is type(node.args[1]) is not ast.Starred
    if alike and name not in ORDER_IS_TYPED | COMMUTE:
        yield node, _text(ast.Call(node.func, [node.args[1], node.args[0], *node.args[2:]], node.keywords))
    for i, keyword in enumerate(node.keywords):
        if keyword.arg in AXES and isinstance(keyword.value, ast.Constant):
            yield keyword.value, "1" if keyword.value.value in (0, None) else "0"
        elif keyword.arg in (None, "strict") or name[:1].isupper():  # records need all of theirs
            continue
        elif not keyword.arg.startswith("return_"):
            yield node, _text(ast.Call(node.func, node.args, node.keywords[:i] + node.keywords[i + 1 :]))


def _text(node: ast.expr) -> str:
    """An expression as text that can stand wherever one stood; the values of nodes with a place are unchanged."""
    return f"({ast.unparse(node)})"


class Recorder:
    """A pytest plugin that notes which functions of the package each test enters, and its CPU seconds.

    What a fixture of a module enters counts for every test that uses it: each of them makes it when it runs alone.
    """

    def __init__(self) -> None:
        self.tests: dict[str, tuple[float, set[str]]] = {}
        self._entered: set[str] = set()
        self._fixtures: dict[object, tuple[float, set[str]]] = {}
        self._failed: set[str] = set()

    def _trace(self, frame, event, argument) -> None:
        path, name = frame.f_code.co_filename, frame.f_code.co_qualname
        if path.startswith(self._package):
            self._entered.add(f"{path[len(self._package) + 1 :]}:{name}")
        elif path == "<string>" and name.endswith("__init__"):  # made by `dataclass`
            kind = type(frame.f_locals.get("self"))
            if kind.__module__.startswith("featgeo."):
                file = kind.__module__.removeprefix("featgeo.").replace(".", "/") + ".py"
                self._entered.add(f"{file}:{kind.__qualname__}.__init__")

    def pytest_sessionstart(self) -> None:
        """Begin."""
        self._package = str(ROOT / PACKAGE)
        sys.settrace(self._trace)
        threading.settrace(self._trace)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef) -> Iterator[None]:
        """Note what a fixture enters."""
        outer, self._entered, start = self._entered, set(), time.process_time()
        yield
        self._fixtures[fixturedef] = (time.process_time() - start, self._entered)
        self._entered = outer | self._entered

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item) -> Iterator[None]:
        """Note what a test enters."""
        sys.settrace(self._trace)  # a test may have ended it
        self._entered, start = set(), time.process_time()
        yield
        seconds, entered = time.process_time() - start, set(self._entered)
        for definitions in item._fixtureinfo.name2fixturedefs.values():
            for shared in (self._fixtures.get(definition, (0.0, set())) for definition in definitions):
                seconds, entered = max(seconds, shared[0]), entered | shared[1]
        if item.nodeid not in self._failed:
            self.tests[item.nodeid] = (seconds, entered)

    def pytest_runtest_logreport(self, report) -> None:
        """Leave out tests that fail or are skipped as things are."""
        if report.skipped or report.failed:
            self._failed.add(report.nodeid)


class Witness:
    """A pytest plugin that remembers how the first test failed, and ends tests that take far longer than recorded."""

    def __init__(self, seconds: dict[str, float], running: Path) -> None:
        self.seconds = seconds
        self.running = running
        self.verdict = "unnoticed"

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Say which test runs, also to those who live on: the process ends when its CPU seconds are spent."""
        if self.verdict == "unnoticed":
            self.running.write_text(nodeid)
        signal.setitimer(signal.ITIMER_PROF, 10 + 5 * self.seconds.get(nodeid, 10))

    def pytest_exception_interact(self, node, call) -> None:
        """A test has failed, or could not be collected."""
        by_assertion = call.excinfo.errisinstance((AssertionError, pytest.fail.Exception))
        if self.verdict == "unnoticed":
            self.verdict = "assertion" if by_assertion else "crash"
        elif by_assertion:
            self.verdict = "later"
        if by_assertion:
            node.session.shouldstop = "It is noticed."


VERDICTS = ("unnoticed", "assertion", "crash", "later")
MOST_FAILURES = 5  # tests that fail before no assertion is expected any more


def in_a_process(work, wall_seconds: float) -> str:
    """The verdict of a function that runs in a process of its own; "crash" if it is killed or takes too long."""
    child = os.fork()
    if child == 0:
        os.setsid()  # so that what it starts ends with it
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        verdict = "crash"
        try:
            verdict = work()
        finally:
            os._exit(VERDICTS.index(verdict))
    end = time.monotonic() + wall_seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if not done:
        os.waitpid(child, 0)
        return "crash"
    return VERDICTS[os.WEXITSTATUS(status)] if os.WIFEXITED(status) else "crash"


def import_what_it_needs() -> None:
    """Import what the package imports, but not itself: processes that part later start with it."""
    command = (
        "import sys, featgeo.cli, featgeo.demo, pandas, typer.testing; print(*sys.modules)"  # and what tests import
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    listed = subprocess.run(  # noqa: S603
        [sys.executable, "-c", command], env=environment, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.split():
        if name.split(".")[0] not in ("featgeo", "__main__"):
            with contextlib.suppress(Exception):  # modules may be made up by others
                importlib.import_module(name)


def enter(tree: Path, writes: bool = False) -> None:
    """Make a copy of the repository the one that is imported and tested; `writes` what Python compiles, or not."""
    os.chdir(tree)
    sys.dont_write_bytecode = not writes
    sys.path[:0] = [str(tree / "src"), str(tree / "tests")]
    os.environ |= {"PYTHONPATH": str(tree / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def run_tests(tree: Path, tests: dict[str, float]) -> str:
    """How some tests fail; `running` beside the tree names the first that does, or nothing where none could start."""
    running = tree.parent / "running"
    running.write_text("")
    enter(tree)
    witness = Witness(tests, running)
    code = pytest.main([*PYTEST, f"--maxfail={MOST_FAILURES}", *tests], plugins=[witness])
    here = importlib.import_module("featgeo").__file__ or ""
    if code > pytest.ExitCode.INTERRUPTED or not here.startswith(str(tree)):
        return "crash"
    return witness.verdict


class Collected:
    """A pytest plugin that writes the names of all tests to a file."""

    def __init__(self, to: Path) -> None:
        self.to = to

    def pytest_collection_finish(self, session) -> None:
        """All tests are known."""
        self.to.write_text("\n".join(item.nodeid for item in session.items))


def collect(tree: Path) -> str:
    """Import everything once, and list the tests there are."""
    enter(tree, writes=True)
    pytest.main([*PYTEST, "--collect-only", "tests"], plugins=[Collected(tree.parent / "tests")])
    return "unnoticed"


def judged(tree: Path, fault: Fault, tests: dict[str, float], broken: set[str]) -> str:
    """How tests notice a fault; those that also fail without it are told apart and left out from then on.

    Args:
        tree: The copy to plant it in, which is left as it was.
        fault: What to plant.
        tests: CPU seconds of each test.
        broken: Tests that fail by themselves; it grows.
    """
    path = tree / PACKAGE / fault.file
    source, times = path.read_bytes(), (path.stat().st_atime, path.stat().st_mtime)

    def verdict_of(some: dict[str, float]) -> str:
        limit = 60 + 10 * sum(some.values())  # what waits for ever spends no CPU
        return in_a_process(lambda: run_tests(tree, some), limit) if some else "unnoticed"

    while True:
        path.write_bytes(fault.plant(source))
        os.utime(path, (0, fault.span[0]))  # what was compiled of another version is not taken for it
        verdict = verdict_of({name: tests[name] for name in tests if name not in broken})
        noticed_by = (tree.parent / "running").read_text() if verdict != "unnoticed" else ""
        path.write_bytes(source)
        os.utime(path, times)
        if not noticed_by or verdict_of({noticed_by: tests.get(noticed_by, 10)}) == "unnoticed":
            return verdict
        broken.add(noticed_by)


def record(files: list[Path], to: Path) -> str:
    enter(ROOT)
    recorder = Recorder()
    pytest.main([*PYTEST, *map(str, files)], plugins=[recorder])
    sys.settrace(None)
    known = json.loads(to.read_text()) if to.exists() else {}
    for file in files:
        known[str(file)] = {"digest": _digest(file), "tests": {}}
    for name, (seconds, entered) in recorder.tests.items():
        known[name.split("::")[0]]["tests"][name] = [round(seconds, 3), sorted(entered)]
    to.write_text(json.dumps(known))
    return "assertion"


def _digest(file: Path) -> str:
    return hashlib.sha256((ROOT / file).read_bytes()).hexdigest()


def tests_by_function(fresh: bool, changed: bool) -> tuple[dict[str, float], dict[str, set[str]]]:
    """CPU seconds of each test, and for each function the tests that enter it.

    Args:
        fresh: Whether to record all test files.
        changed: Whether to record those that are new or have changed.
    """
    known = json.loads(MAP.read_text()) if MAP.exists() and not fresh else {}
    files = sorted(path.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py"))
    missing = [file for file in files if changed and known.get(str(file), {}).get("digest") != _digest(file)]
    if missing:
        print(f"Recording {len(missing)} test files ...", flush=True)
    for file in missing:  # one process a file: what is done is kept
        in_a_process(lambda file=file: record([file], MAP), wall_seconds=3600)
    known = json.loads(MAP.read_text())
    seconds, entering = {}, {}
    for file in files:
        for name, (duration, functions) in known.get(str(file), {"tests": {}})["tests"].items():
            seconds[name] = duration
            for function in functions:
                entering.setdefault(function, set()).add(name)
    return seconds, entering


def tests_for(fault: Fault, entering: dict[str, set[str]]) -> set[str]:
    """Tests that enter the function of a fault; of a class or a file, those that enter any function of it."""
    exact = entering.get(f"{fault.file}:{fault.function}", set())
    if exact:
        return exact
    outer = fault.function.split(".<locals>")[0] if "<locals>" in fault.function else ""
    prefixes = [f"{fault.file}:{outer or fault.function}", f"{fault.file}:"]
    for prefix in prefixes:
        if found := set().union(*(tests for name, tests in entering.items() if name.startswith(prefix))):
            return found
    return set()


def shortest(tests: set[str], seconds: dict[str, float], limit: float) -> dict[str, float]:
    """Tests with their CPU seconds, shortest first, as many as fit into the limit, and at least one."""
    chosen, total = {}, 0.0
    for name in sorted(tests, key=lambda name: (seconds[name], name)):
        total += seconds[name]
        if chosen and total > limit:
            break
        chosen[name] = seconds[name]
    return chosen


def draw(faults: list[Fault], count: int, seed: int) -> list[Fault]:
    """Faults that compile, drawn in turn from each room, no line twice."""
    chance = random.Random(seed)  # noqa: S311
    rooms: dict[str, list[Fault]] = {}
    for fault in faults:
        rooms.setdefault(fault.room, []).append(fault)
    for pile in rooms.values():
        chance.shuffle(pile)
    chosen: dict[tuple[str, int], Fault] = {}
    while len(chosen) < count and any(rooms.values()):
        for room in chance.sample(sorted(rooms), len(rooms)):
            while rooms[room] and len(chosen) < count:
                fault = rooms[room].pop()
                if (fault.file, fault.line) not in chosen and compiles(fault):
                    chosen[fault.file, fault.line] = fault
                    break
    return list(chosen.values())


def work_off(faults: list[Fault], plans: list[dict[str, float]], results, number: int, processes: int) -> None:
    """Plant every `processes`-th fault in a copy of the tree, and put (position, verdict) for each."""
    with tempfile.TemporaryDirectory(prefix="planted_") as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", ".*_cache"))
        in_a_process(lambda: collect(tree), wall_seconds=3600)  # so that all but one file are compiled already
        there, broken = set((tree.parent / "tests").read_text().splitlines()), set()
        for i in range(number, len(faults), processes):
            tests = {name: seconds for name, seconds in plans[i].items() if name in there}
            results.put((i, judged(tree, faults[i], tests, broken)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rooms", nargs="*", help="folders of the package; all by default")
    parser.add_argument("--only", nargs="*", help="files, or lines of them (file.py:12), in place of all")
    parser.add_argument("--seconds", type=float, default=60, help="of CPU, as recorded, for the tests of one fault")
    parser.add_argument("--processes", type=int, default=1)
    recording = parser.add_mutually_exclusive_group()
    recording.add_argument("--record", action="store_true", help="record anew which tests enter which function")
    recording.add_argument("--as-recorded", action="store_true", help="record nothing, also not what has changed")
    options = parser.parse_args()
    import_what_it_needs()
    seconds, entering = tests_by_function(options.record, not options.as_recorded)
    files = sorted(path.relative_to(ROOT / PACKAGE) for path in (ROOT / PACKAGE).rglob("*.py"))
    every = [fault for file in files for fault in faults_of(file)]
    if options.only:
        there = [f for f in every if {f.file, f"{f.file}:{f.line}"} & set(options.only) and compiles(f)]
        faults = random.Random(options.seed).sample(there, min(options.faults, len(there)))  # noqa: S311
    else:
        faults = draw([f for f in every if not options.rooms or f.room in options.rooms], options.faults, options.seed)
    entered = [tests_for(fault, entering) for fault in faults]
    plans = [shortest(tests, seconds, options.seconds) for tests in entered]

    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    workers = [
        context.Process(target=work_off, args=(faults, plans, results, number, options.processes))
        for number in range(options.processes)
    ]
    for worker in workers:
        worker.start()
    verdicts = {}
    while len(verdicts) < len(faults):
        i, verdict = results.get()
        verdicts[i] = verdict
        print(f"{len(verdicts):4d} {verdict:9s} {len(plans[i])}/{len(entered[i])} tests  {faults[i]}", flush=True)
    for worker in workers:
        worker.join()
    summarise([(faults[i], verdicts[i]) for i in range(len(faults))])


def summarise(found: list[tuple[Fault, str]]) -> None:
    """Scores, by room and in all, and what survived."""
    totals = Counter(verdict for _, verdict in found)
    print("\nroom                 faults noticed by assertion")
    for room in [*sorted({fault.room for fault, _ in found}), "all"]:
        counts = Counter(verdict for fault, verdict in found if room in ("all", fault.room))
        noticed = counts.total() - counts["unnoticed"]
        print(f"{room:20s} {counts.total():6d} {noticed:7d} {counts['assertion'] + counts['later']:12d}")
    noticed, asserted = len(found) - totals["unnoticed"], totals["assertion"] + totals["later"]
    print(f"\nnoticed {noticed} of {len(found)} ({noticed / max(len(found), 1):.2f}), ", end="")
    print(f"by assertions {asserted} of these ({asserted / max(noticed, 1):.2f}), ", end="")
    print(f"{totals['assertion']} of them in the first test that failed")
    print("\nUnnoticed; judge which of them make a difference:")
    for fault, verdict in sorted(found, key=lambda pair: (pair[0].file, pair[0].line)):
        if verdict == "unnoticed":
            print(f"  {fault}")


if __name__ == "__main__":
    main()
