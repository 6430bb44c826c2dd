"""`trueport doctor`: this machine, and the one where the model will run."""

from __future__ import annotations

import tempfile
from pathlib import Path

import onnxruntime
import pytest
import torch
from click.testing import CliRunner, Result

from trueport import temporary, versions
from trueport.cli.main import main
from trueport.cli.outcome import Exit
from trueport.errors import UsageError
from trueport.lower.runtimes import parse_target


def doctor(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["doctor", *arguments])


def test_it_lists_what_is_installed_and_what_it_loads() -> None:
    done = doctor()
    assert done.exit_code == Exit.FAITHFUL, done.output
    assert f"torch        {torch.__version__}" in done.stdout
    assert f"onnxruntime {onnxruntime.__version__}" in done.stdout
    assert "no known bad pair" in done.stdout


def test_a_runtime_that_takes_the_default_export() -> None:
    done = doctor("--target", "onnxruntime==1.17")
    assert done.exit_code == Exit.FAITHFUL
    assert "opsets up to 20, IR versions up to 9" in done.stdout
    assert "opset 20, in a file of IR version 9" in done.stdout


def test_a_runtime_that_needs_a_lower_opset_is_told_which() -> None:
    done = doctor("--target", "onnxruntime==1.16.3")
    assert done.exit_code == Exit.FINDINGS
    assert "error[TP601]" in done.stdout
    assert "opset 19, in a file of IR version 9" in done.stdout
    assert "export with --target onnxruntime==1.16" in done.stdout


def test_what_an_older_runtime_costs_is_told() -> None:
    told = doctor("--target", "opset==15").stdout
    assert "LayerNormalization (opset 17): its definition" in told
    assert "GridSample (opset 16): refused, for grid_sample" in told
    assert "Trilu" not in told, "opset 15 has it"


def test_what_it_costs_a_model_is_told_by_its_operators(tmp_path: Path) -> None:
    """Where something is refused, its line is."""
    file = tmp_path / "net.py"
    file.write_text(
        "import torch\n"
        "class Norm(torch.nn.LayerNorm):\n"
        "    def __init__(self): super().__init__(8)\n"
        "class Wave(torch.nn.Module):\n"
        "    def forward(self, x): return torch.fft.rfft(x).abs()\n"
    )
    told = doctor(f"{file}:Norm", "-i", "input:Nx8", "--target", "opset==15")
    assert told.exit_code == Exit.FAITHFUL, told.output
    assert "1 LayerNormalization (opset 17): its definition" in told.stdout.partition("model:")[2]
    assert "needs              opset 13 or newer" in told.stdout
    assert "written otherwise  nothing" in doctor(f"{file}:Norm", "-i", "input:Nx8").stdout
    refused = doctor(f"{file}:Wave", "-i", "x:Nx8", "--target", "opset==13")
    assert refused.exit_code == Exit.FINDINGS
    assert "opset 17 or newer" in refused.stdout and "net.py:5" in refused.stdout
    assert "not for this target" in doctor(f"{file}:Norm", "-i", "input:Nx8", "--target", "onnxruntime==1.12").stdout
    assert "no model" in doctor("-i", "x:Nx8").output


def test_a_runtime_that_is_too_old_for_everything() -> None:
    done = doctor("--target", "onnxruntime==1.12")
    assert done.exit_code == Exit.FINDINGS
    assert "install onnxruntime>=1.15 there" in done.stdout


def test_an_opset_says_who_loads_it() -> None:
    assert "onnxruntime 1.16 and newer" in doctor("--target", "opset==19").stdout
    refused = doctor("--target", "opset==11")
    assert refused.exit_code == Exit.FINDINGS
    assert "pass --opset 13" in refused.stdout


def test_versions_that_do_not_work_together_are_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    old = versions.judge_versions({**{name: "99" for name in versions.NEEDED}, "onnx": "1.2"}.get)
    monkeypatch.setattr(versions, "versions_found", lambda: old)
    done = doctor()
    assert done.exit_code == Exit.FINDINGS
    assert "onnx 1.2 is older" in done.stdout


def test_it_looks_at_what_is_relied_on_in_torch() -> None:
    count = versions.contract().count()
    assert f"{count} of {count}" in doctor().stdout


def test_what_moved_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "broken_contract", lambda: ("torch._sync is missing",))
    done = doctor()
    assert done.exit_code == Exit.FINDINGS
    assert "moved  torch._sync is missing" in done.stdout


@pytest.mark.parametrize("text", ["onnxruntime==", "onnxruntime==new", "opset==x", "tensorrt==10"])
def test_a_target_that_is_not_understood_shows_how_to_write_one(text: str) -> None:
    with pytest.raises(UsageError, match="is not understood"):
        parse_target(text)


def test_what_killed_runs_left_is_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By what it is called, whose it is, and that nobody holds its lock; nothing else is touched."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with temporary.folder() as alive, temporary.file_in(tmp_path) as (path, _):
        dead, others = tmp_path / "trueport-work-abcdefgh", tmp_path / "trueport-workshop"
        for place in (dead, others):
            place.mkdir()
            (place / "model.onnx").touch()
        (tmp_path / ".trueport-0123456789abcdef.tmp").touch()
        (tmp_path / "trueport-bug-12345678.txt").touch()
        link = tmp_path / "trueport-work-12345678"
        link.symlink_to(others)
        done = doctor()
        assert alive.exists() and path.exists()
    assert done.exit_code == Exit.FAITHFUL
    assert f"removed {dead}" in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {others.name, "trueport-bug-12345678.txt", link.name}
    assert (others / "model.onnx").exists()


def test_a_new_folder_that_another_process_took_for_a_leftover_is_made_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Between the making of a folder and its lock another process of ours may look for leftovers."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mkdtemp = tempfile.mkdtemp
    made: list[str] = []

    def made_and_taken(*args: object, **kwargs: object) -> str:
        made.append(mkdtemp(*args, **kwargs))  # type: ignore[call-overload]
        if len(made) == 1:
            assert temporary.clear(tmp_path) == [Path(made[0])]
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", made_and_taken)
    with temporary.folder() as folder:
        assert folder.is_dir()
        assert folder == Path(made[1])


def test_nothing_was_left() -> None:
    assert "left by killed runs  nothing" in doctor().stdout
