"""Every fix, as a user sees it: what it makes of a file, letter by letter, and that the result exports and is verified.

A fixture is a pair `name_in.py` and `name_out.py`. The first line of each is the command that it is for:

    # trueport fix Net -i x:Nx4
    # then: Net -i x:Nx4 --state inputs-outputs      (only where the way out is, or needs, another command)
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from trueport.cli.fix import command_of
from trueport.cli.fix import fix as fix_command
from trueport.cli.trial import Nursery, trials
from trueport.fix.command import Command
from trueport.fix.registry import all_fixes
from trueport.fix.search import Sought, find_fixes

FIXTURES = Path(__file__).parent / "fixtures"
NAMES = sorted(path.name.removesuffix("_in.py") for path in FIXTURES.glob("*_in.py"))
ASKED, THEN = "# trueport fix ", "# then: "
NOT_ASKED = ("diff", "portable", "debug", "quiet", "timeout")
"""What is said of the command itself, and not of the model."""


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    """All trials of this file are forked from one process, which has imported torch once."""
    home = Nursery()
    yield home
    home.close()


def command_in(file: Path, head: str) -> Command | None:
    line = next((line for line in file.read_text().splitlines() if line.startswith(head)), None)
    if line is None:
        return None
    target, *options = shlex.split(line.removeprefix(head))
    with click.Context(fix_command) as context:
        fix_command.parse_args(context, [f"{file}:{target}", *options])
        return command_of(**{name: value for name, value in context.params.items() if name not in NOT_ASKED})


def sought(file: Path, nursery: Nursery, head: str = ASKED) -> Sought:
    command = command_in(file, head)
    assert command is not None
    with trials(nursery) as trial:
        return find_fixes(command, trial)


@pytest.mark.parametrize("name", NAMES)
def test_the_fix_gives_exactly_this(name: str, nursery: Nursery) -> None:
    file, wanted = FIXTURES / f"{name}_in.py", FIXTURES / f"{name}_out.py"
    found = sought(file, nursery)
    assert found.found_a_way, [str(one) for one in found.after.report.diagnostics] + [str(r) for r in found.rejected]
    after = found.state.files.get(file.resolve())
    assert (after.text if after else file.read_text()) == wanted.read_text()
    assert found.state.command == (command_in(file, THEN) or command_in(file, ASKED))


@pytest.mark.parametrize("name", NAMES)
def test_what_it_gives_exports_is_verified_and_needs_no_fix(name: str, nursery: Nursery) -> None:
    file = FIXTURES / f"{name}_out.py"
    found = sought(file, nursery, THEN if command_in(file, THEN) else ASKED)
    assert found.before.faithful, [str(one) for one in found.before.report.diagnostics]
    assert not found.state.taken


def test_every_fix_has_a_fixture_that_bears_its_name() -> None:
    fixes = [type(fix).__module__.rpartition(".")[2] for fix in all_fixes()]
    assert [name for name in fixes if not any(fixture.startswith(name) for fixture in NAMES)] == []
    assert [name for name in NAMES if not any(name.startswith(fix) for fix in fixes)] == []
    assert all(fix.__doc__ and fix.codes for fix in all_fixes())
