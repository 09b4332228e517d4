"""Marks of cheating in the sources of a submission."""

import ast
import re
from collections.abc import Collection, Iterator, Sequence

from cubecore.aliases import Json
from cubecore.workflows.judge.cheating.kinds import OUTSIDE, PATCHED, SHAPES, TABLE

_CPP_OUTSIDE = re.compile(
    r"\b(?:fopen|freopen|ifstream|ofstream|fstream|open_memstream|opendir|mmap|dlopen|dlsym|system"
    r"|popen|fork|vfork|execve?|execlp?|execvp|ptrace|getenv|socket|pthread_create|syscall|asm"
    r"|__asm__)\s*[(<{ ]|\bstd\s*::\s*(?:thread|filesystem|jthread|async)\b|\.incbin\b"
    r"|__attribute__\s*\(\(\s*constructor|#\s*include\s*[<\"]/"
)
_CPP_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"(?=[^\n]*$)", re.DOTALL)
_COMPARED = re.compile(r"(?:(?<=[=!]=)|\bcase)\s*(\d{2,})|\b(\d{2,})\w*(?=\s*(?:==|!=))")
_TABLE = re.compile(r"\{((?:\s*-?[\d.][\w.+-]*\s*,){31,}[^{}]*)\}")
_MODULES = frozenset(
    (
        *("gc", "inspect", "ctypes", "subprocess", "socket", "threading", "multiprocessing", "os"),
        *("importlib", "pickle", "builtins", "signal", "mmap", "glob", "shutil", "tempfile"),
        *("atexit", "time", "datetime", "platform", "asyncio", "concurrent", "weakref"),
    )
)
_CALLS = frozenset(
    {"open", "exec", "eval", "compile", "__import__", "globals", "breakpoint", "vars"}
)
_ATTRIBUTES = frozenset(
    (
        *("modules", "_getframe", "settrace", "setprofile", "f_back", "f_locals", "__globals__"),
        *("__subclasses__", "__dict__", "__bases__", "__mro__", "__code__", "__closure__"),
    )
)
_VERBS = frozenset({"run", "time", "judge", "plan", "check", "tune", "compare", "debug", "model"})
"""Functions of cubecore that compute or tell by themselves: no kernel needs them."""
_READERS = frozenset({"load", "loadtxt", "fromfile", "memmap", "read_text", "read_bytes"})
_LEAST_TABLE = 32


def source_marks(
    python: Sequence[str], cpp: Sequence[str], sizes: Collection[int]
) -> Iterator[Json]:
    """Yield the marks of a submission's sources; `sizes` are those of the cases' arrays."""
    for text in cpp:
        yield from _of_cpp(text, sizes)
    for text in python:
        try:
            yield from _of_python(ast.parse(text), sizes)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue


def _of_cpp(text: str, sizes: Collection[int]) -> Iterator[Json]:
    plain = _CPP_COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)
    outside = _CPP_OUTSIDE.search(plain)
    if outside:
        yield OUTSIDE.found(f"{outside[0].strip()} at {_line(plain, outside.start())}")
    for match in _COMPARED.finditer(plain):
        if int(match[1] or match[2]) in sizes:
            yield SHAPES.found(f"{match[0].strip()} at {_line(plain, match.start())}")
            break
    table = _TABLE.search(plain)
    if table:
        count = table[1].count(",") + 1
        yield TABLE.found(f"{count} numbers at {_line(plain, table.start())}")


def _line(text: str, at: int) -> str:
    return f"line {text.count(chr(10), 0, at) + 1}"


def _of_python(tree: ast.Module, sizes: Collection[int]) -> Iterator[Json]:
    imported = set(_imported(tree))
    outside = next(filter(None, (_outside(node) for node in ast.walk(tree))), "")
    if outside:
        yield OUTSIDE.found(outside)
    patched = next(filter(None, (_patched(node, imported) for node in ast.walk(tree))), "")
    if patched:
        yield PATCHED.found(patched)
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and _compares(node, sizes):
            yield SHAPES.found(f"{ast.unparse(node)[:80]} at line {node.lineno}")
            break
    for node in ast.walk(tree):
        if isinstance(node, (ast.List, ast.Tuple)) and _numbers(node) >= _LEAST_TABLE:
            yield TABLE.found(f"{_numbers(node)} numbers at line {node.lineno}")
            break


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (each.asname or each.name.partition(".")[0] for each in node.names)


def _outside(node: ast.AST) -> str:
    """Return how a node reaches out of its own computation, if it does."""
    if isinstance(node, ast.Import):
        names = [each.name for each in node.names]
    elif isinstance(node, ast.ImportFrom):
        names = [f"{node.module or ''}"]
    elif isinstance(node, ast.Call):
        named = node.func.id if isinstance(node.func, ast.Name) else ""
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        is_outside = named in _CALLS or method in _READERS
        return f"{ast.unparse(node.func)}(...) at line {node.lineno}" if is_outside else ""
    elif isinstance(node, ast.Attribute):
        if node.attr in _VERBS and ast.unparse(node.value) == "cubecore":
            return f"{ast.unparse(node)} at line {node.lineno}"
        return f"{ast.unparse(node)} at line {node.lineno}" if node.attr in _ATTRIBUTES else ""
    else:
        return ""
    for name in names:
        if name.partition(".")[0] in _MODULES or name.startswith("cubecore."):
            return f"import of {name} at line {node.lineno}"
    return ""


def _patched(node: ast.AST, imported: Collection[str]) -> str:
    """Return the attribute of an imported module that a node sets, if it does."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        targets = [node.target]
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"setattr", "delattr"}:
        targets = [ast.Attribute(node.args[0], "", ast.Store())] if node.args else []
    for target in targets:
        root: ast.expr = target
        while isinstance(root, (ast.Attribute, ast.Subscript)):
            root = root.value
        foreign = isinstance(root, ast.Name) and root.id in imported
        if root is not target and (foreign or _is_class_of(root, target)):
            return f"{ast.unparse(target).rstrip('.')} at line {getattr(node, 'lineno', 0)}"
    return ""


def _is_class_of(root: ast.expr, target: ast.expr) -> bool:
    """Return whether what is set is an attribute of some object's class: `type(add).name`."""
    called = root.func if isinstance(root, ast.Call) else None
    by_type = isinstance(called, ast.Name) and called.id == "type"
    return by_type or ".__class__." in ast.unparse(target)


def _compares(node: ast.Compare, sizes: Collection[int]) -> bool:
    values = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
    return any(type(each) is int and each > 9 and each in sizes for each in values)


def _numbers(node: ast.List | ast.Tuple) -> int:
    """Return how many numbers a display lists."""
    plain = (each.operand if isinstance(each, ast.UnaryOp) else each for each in node.elts)
    return sum(isinstance(e, ast.Constant) and isinstance(e.value, (int, float)) for e in plain)
