"""The checks of a script, reported while it runs: assertions, and exits that depend on results."""

import ast

NOTE = "__cubecore_checked__"
"""The name, among a script's globals, of the function that is called beside each check."""
_EXITS = ("exit", "_exit", "quit", "SystemExit", "AssertionError")


def noting_checks(tree: ast.Module) -> ast.Module:
    """Return a script that calls `NOTE` at each of its checks, at the same lines.

    A check is an assertion that holds, a call of a function ``assert...`` that returns, a branch
    that ends the script (or fails an assertion) on one side, and an exit whose code is computed.
    The bodies of kernels hold none: their assertions are about a core, not about a result.
    """
    noting = _Noting().visit(tree)
    assert isinstance(noting, ast.Module)
    return ast.fix_missing_locations(noting)


class _Noting(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if any(_last_name(decorator) == "kernel" for decorator in node.decorator_list):
            return node
        return self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> list[ast.AST]:
        return [node, _note(node)]

    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.AST]:
        if isinstance(node.value, ast.Call) and _last_name(node.value).startswith("assert"):
            return [node, _note(node)]
        return [_note(node), node] if _computed_exit(node.value) else node

    def visit_Raise(self, node: ast.Raise) -> ast.AST | list[ast.AST]:
        return [_note(node), node] if _computed_exit(node.exc) else node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.AST]:
        ends = any(_ends(line) for line in (*node.body, *node.orelse))
        self.generic_visit(node)
        return [_note(node), node] if ends else node


def _note(beside: ast.AST) -> ast.stmt:
    call = ast.Call(ast.Name(NOTE, ast.Load()), [], [])
    return ast.copy_location(ast.Expr(ast.copy_location(call, beside)), beside)


def _last_name(node: ast.AST) -> str:
    """Return the name that a call, or a dotted name, ends with."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _ends(line: ast.stmt) -> bool:
    ended = line.exc if isinstance(line, ast.Raise) else getattr(line, "value", None)
    return isinstance(line, (ast.Raise, ast.Expr)) and _last_name(ended or line) in _EXITS


def _computed_exit(node: ast.expr | None) -> bool:
    """Return whether a call ends the script with a code that is neither a constant nor a call's."""
    if not isinstance(node, ast.Call) or _last_name(node) not in _EXITS or not node.args:
        return False
    return not isinstance(node.args[0], (ast.Constant, ast.Call))
