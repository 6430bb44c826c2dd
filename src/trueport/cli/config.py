"""`[tool.trueport]` of pyproject.toml: defaults for every flag, as if they had been typed.

    [tool.trueport]
    dim = ["B=1..64"]
    ignore = ["TP303"]

    [tool.trueport.export]     # for one command only
    opset = 21

The nearest pyproject.toml upwards that has such a table counts; what is typed counts more. Paths are taken from the
current folder, as typed ones are.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from trueport.cli.request import usage_error


def defaults(commands: Mapping[str, click.Command], folder: Path | None = None) -> dict[str, dict[str, Any]]:
    """What click takes as `default_map`: for each command, the values of its options. Raises UsageError."""
    found: dict[str, dict[str, Any]] = {name: {} for name in commands}
    file, table = _table(folder or Path.cwd())
    own = {key: value for key, value in table.items() if key in commands and isinstance(value, Mapping)}
    for key, value in table.items():
        if key in own:
            continue
        takers = [name for name, command in commands.items() if _flag(key) in _options(command)]
        if not takers:
            raise _unknown(file, "", key, (flag for command in commands.values() for flag in _options(command)))
        fitting = [name for name in takers if _is_a_choice_of(_options(commands[name])[_flag(key)], value)]
        for name in fitting or takers:  # `output-format = "sarif"` is for the commands that have it
            found[name] |= _setting(file, key, value, _options(commands[name])[_flag(key)])
    for name, settings in own.items():
        options = _options(commands[name])
        for key, value in settings.items():
            if _flag(key) not in options:
                raise _unknown(file, f".{name}", key, options)
            found[name] |= _setting(file, key, value, options[_flag(key)])
    return found


def _table(folder: Path) -> tuple[Path, Mapping[str, Any]]:
    for place in (folder, *folder.parents):
        file = place / "pyproject.toml"
        if not file.is_file():
            continue
        try:
            content = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise usage_error(f"{file} cannot be read: {error}", fix="mend the file") from error
        table = content.get("tool", {}).get("trueport")
        if isinstance(table, Mapping):
            return file, table
    return folder, {}


def _options(command: click.Command) -> dict[str, click.Option]:
    """The options of a command by their long names."""
    return {
        flag: option
        for option in command.params
        if isinstance(option, click.Option)
        for flag in option.opts
        if flag.startswith("--")
    }


def _is_a_choice_of(option: click.Option, value: Any) -> bool:
    return not isinstance(option.type, click.Choice) or value in option.type.choices


def _flag(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def _setting(file: Path, key: str, value: Any, option: click.Option) -> dict[str, Any]:
    """The value under the name by which click knows the option."""
    fits = isinstance(value, bool) if option.is_flag else not isinstance(value, bool | Mapping)
    if isinstance(value, list) and not option.multiple:
        value = ",".join(map(str, value))  # --constants takes its names so
    if not fits:
        wanted = "true or false" if option.is_flag else "text, a number or a list"
        raise usage_error(f"{file}: {key} = {value!r} is not a value of {_flag(key)}", fix=f"give it {wanted}")
    if option.multiple and not isinstance(value, list):
        value = [value]
    return {option.name or "": [str(item) for item in value] if isinstance(value, list) else value}


def _unknown(file: Path, table: str, key: str, flags: Iterable[str]) -> Exception:
    close = difflib.get_close_matches(_flag(key), list(flags), n=1)
    hint = f"did you mean {close[0].removeprefix('--')}?" if close else "the keys are the long names of the flags"
    return usage_error(f"{file}: [tool.trueport{table}] has no key {key!r}", fix=hint)
