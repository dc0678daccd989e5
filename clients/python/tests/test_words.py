"""What Python code tells a person or a model is in the words of Python: no routes, headers, flags, members of JSON."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import interlock
from interlock.testing import LocalServer

FOLDER = Path(interlock.__file__).parent
#: Modules of names and types, which are generated from the server's API.
GENERATED = {"_api.py", "_types.py"}
#: The words of other doors.
FOREIGN = re.compile(
    r"\b(GET|POST|PUT|DELETE) |/v1\b|\bheaders?\b|\bon_conflict\b|\bwait_ms\b|\w_ms\b|Idempotency-Key|Interlock-\w"
    r"|\b(acquire|release|heartbeat)(Lease|Session)\b|(?<![\w-])--?[a-z]"
)
COMMAND = re.compile(r"`interlock ([^`]*)`")


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields the texts of a module that may be shown: all with a blank, but no docstrings, and nothing for a wire."""
    quiet: set[ast.AST] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            quiet.add(body[0].value)
        if isinstance(node, ast.JoinedStr):
            quiet.update(node.values)
    for node in ast.walk(tree):
        if node in quiet:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        elif isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in node.values)
        else:
            continue
        if " " in text.strip() and not text.endswith(" HTTP/1.1"):
            yield node.lineno, text


def shown() -> list[tuple[str, str]]:
    return [
        (f"{path.relative_to(FOLDER)}:{line}", text)
        for path in sorted(FOLDER.rglob("*.py"))
        if path.name not in GENERATED
        for line, text in texts(ast.parse(path.read_text(encoding="utf-8")))
    ]


def test_texts_have_words_of_python() -> None:
    found = shown()
    assert len(found) > 100
    wrong = [(place, text) for place, text in found if FOREIGN.search(COMMAND.sub("", text))]
    assert wrong == []


@pytest.mark.parametrize(
    "text",
    [
        "ask GET /v1/keys",
        "with the header X",
        "set on_conflict to wait",
        "ttl_ms is short",
        "use --wait",
        "acquireLease",
    ],
)
def test_words_of_other_doors_are_found(text: str) -> None:
    assert FOREIGN.search(text)


def test_commands_that_texts_name_exist(interlock_server: LocalServer) -> None:
    commands = {command for _, text in shown() for command in COMMAND.findall(text)}
    assert any(command.startswith("serve") for command in commands)
    for command in commands:
        words = command.split()
        names = [word for word in words if re.fullmatch("[a-z]+", word)][: 2 if words[0] == "task" else 1]
        help_of = subprocess.run(
            [interlock_server.binary, *names, "--help"], capture_output=True, text=True, timeout=60
        )
        assert help_of.returncode == 0, command
        for flag in (word for word in words if word.startswith("-")):
            assert flag in help_of.stdout + help_of.stderr, command
