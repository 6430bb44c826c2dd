"""The proof of generation: greedy tokens in ONNX Runtime against `generate()` in eager.

With a cache from empty, the prompt in one piece and in several, for one row and for three with padding on the left.
Where two logits are equal within the tolerance of the dtype, either token is right: the tie is named, and the run goes
on with eager's token, so that what follows is compared as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from trueport import progress
from trueport.diagnostics.rules.tp813_tokens_differ import TokensDiffer
from trueport.diagnostics.spelling import option, told
from trueport.errors import ExportError, refusal
from trueport.generation.eager import EagerText, Inputs, Prompts, generate
from trueport.generation.running import Decoding, Graphs
from trueport.load.faults import usage_error
from trueport.verify.judging.compare import Tolerance, tolerance_for

TOKENS = 32
_REPORT = "please report it with the model: each step by itself agrees with eager"
_PROMPT, _SOURCE = 7, 6
_ROWS = (1, 3)
_PIECES = (3, 1)
"""Of the prompt; the rest is the last piece."""

_MORE_THAN_ROUNDING = 100
"""Times the tolerance of the dtype: errors add up over the tokens, but not to that. Logits that are further apart tell
of a fault, though the best of them be the same."""


@dataclass(frozen=True)
class Tie:
    """Two tokens, each of which is the best within the tolerance."""

    row: int
    step: int
    eager: int
    runtime: int
    apart: float

    def __str__(self) -> str:
        return f"row {self.row}, token {self.step}: {self.eager} or {self.runtime}, {self.apart:.2g} apart"


@dataclass(frozen=True)
class GeneratedRun:
    """One text, or several, generated on both sides with the same tokens but for the ties."""

    rows: int
    pieces: tuple[int, ...]
    """The lengths in which the prompt was given."""
    tokens: int
    worst: float
    """The largest difference between the logits that were chosen by."""
    ties: tuple[Tie, ...]
    anew: tuple[int, ...]
    """The tokens for which `generate()` empties the cache and reads the whole text again. An application must too."""

    def __str__(self) -> str:
        rows = "1 row" if self.rows == 1 else f"{self.rows} rows"
        prompt = " + ".join(map(str, self.pieces))
        ties = f" but for {len(self.ties)} ties ({'; '.join(map(str, self.ties))})" if self.ties else ""
        anew = f", the whole text read again for token {', '.join(map(str, self.anew))}" if self.anew else ""
        return f"{rows}, prompt {prompt}: {self.tokens} tokens equal{ties}, logits within {self.worst:.1e}{anew}"


@dataclass(frozen=True)
class Proof:
    """Every run that was compared."""

    runs: tuple[GeneratedRun, ...]
    padded: bool = True
    """Whether rows were padded on the left; `generate()` may take no mask that says so."""
    one_piece_only: bool = False
    """Whether eager itself gives other tokens where a prompt comes in pieces, or none, so that there is nothing to
    compare with: the forward of Mamba begins anew with each piece of more than one token."""
    refused: bool = False
    """Whether both sides refuse such pieces, and the prompt cannot come in them by mistake."""

    def lines(self) -> list[str]:
        more = [] if self.padded else ["no row was padded: generate() was given no attention_mask"]
        one = "the prompt must come in one piece:"
        if self.refused:
            more.append(f"{one} the file refuses several tokens after others, as eager does")
        elif self.one_piece_only:
            more.append(f"{one} in several, eager itself gives other tokens than generate()")
        return [*map(str, self.runs), *more]


def refuse_short(prompts: Prompts) -> None:
    """Raise UsageError for a model that is made for fewer positions than the prompt and one token take."""
    if prompts.positions is not None and prompts.positions <= _PROMPT:
        message = (
            f"{type(prompts.model).__name__} is made for {prompts.positions} positions, and a proof takes {_PROMPT + 1}"
        )
        fix = told("raise max_position_embeddings, or pass ", option("verify", False), " and compare it yourself")
        raise usage_error(message, fix=fix)


def prove(graphs: Graphs, eager: Graphs, prompts: Prompts, tokens: int = TOKENS) -> Proof:
    """Compare, and raise ExportError where a token differs that is no tie. `eager` are the same graphs in torch."""
    if prompts.positions is not None:
        tokens = min(tokens, prompts.positions - _PROMPT)
    dtypes = {parameter.dtype for parameter in prompts.model.parameters() if parameter.dtype.is_floating_point}
    tolerance = tolerance_for(torch.float32, tuple(dtypes))
    progress.stage("generate")
    runs: list[GeneratedRun] = []
    in_pieces = (*_PIECES, _PROMPT - sum(_PIECES))
    refusals: list[bool] = []
    for count, rows in enumerate(_ROWS, 1):
        progress.count(count, len(_ROWS), "prompts")
        inputs = prompts.make(rows, _PROMPT, _SOURCE)
        expected = generate(prompts.model, inputs, tokens)
        runs.append(_run(graphs, inputs, (_PROMPT,), expected, tolerance))
        ours = _outcome(graphs, inputs, in_pieces, expected, tolerance)
        if isinstance(ours, GeneratedRun):
            runs.append(ours)
            continue
        theirs = _outcome(eager, inputs, in_pieces, expected, tolerance)
        if isinstance(theirs, GeneratedRun) or _refuses(theirs) is not _refuses(ours):
            raise ours
        refusals.append(_refuses(ours))
    padded = not bool(inputs.get("attention_mask", torch.ones(1)).all())
    return Proof(tuple(runs), padded, bool(refusals), bool(refusals) and all(refusals))


def _outcome(
    graphs: Graphs, inputs: Inputs, pieces: tuple[int, ...], expected: EagerText, tolerance: Tolerance
) -> GeneratedRun | ExportError:
    try:
        return _run(graphs, inputs, pieces, expected, tolerance)
    except ExportError as found:
        return found


def _refuses(found: ExportError) -> bool:
    """Whether there was no answer, and not another one."""
    return not any(isinstance(one, TokensDiffer) for one in found.diagnostics)


def _run(
    graphs: Graphs, inputs: Inputs, pieces: tuple[int, ...], expected: EagerText, tolerance: Tolerance
) -> GeneratedRun:
    encodes = graphs.encoder is not None
    text = inputs["decoder_input_ids" if encodes else "input_ids"]
    mask = torch.ones_like(text) if encodes else inputs.get("attention_mask", torch.ones_like(text))
    ties: list[Tie] = []
    worst, read = 0.0, pieces
    for step, anew in enumerate(expected.anew):
        if anew:
            decoding, at = Decoding(graphs, inputs), 0
        for piece in read if anew else (1,):
            logits = decoding.step(text[:, at : at + piece], mask[:, at : at + piece])
            at += piece
        ours, theirs = expected.logits[step].float(), logits[:, -1].float()
        apart = (ours - theirs).abs()
        worst = max(worst, float(apart.max()))
        ties += tied_tokens(pieces, step, expected.tokens[:, step], ours, theirs, tolerance)
        if not bool((apart <= _MORE_THAN_ROUNDING * tolerance.allowed(ours)).all()):
            prompt = " + ".join(map(str, pieces))
            message = f"prompt {prompt}, token {step}: the tokens are the same, and the logits {worst:.2g} apart"
            raise refusal(TokensDiffer(message=message, fix=_REPORT))
        text = torch.cat([text, expected.tokens[:, step : step + 1]], 1)
        mask = torch.cat([mask, torch.ones_like(mask[:, :1])], 1)
        read = (text.shape[1],)
    again = tuple(step for step, anew in enumerate(expected.anew) if anew and step)
    return GeneratedRun(len(text), pieces, len(expected.anew), worst, tuple(ties), again)


def tied_tokens(
    pieces: tuple[int, ...],
    step: int,
    chosen: torch.Tensor,
    ours: torch.Tensor,
    theirs: torch.Tensor,
    tolerance: Tolerance,
) -> Iterator[Tie]:
    for row, (token, other) in enumerate(zip(chosen.tolist(), theirs.argmax(-1).tolist(), strict=True)):
        if token == other:
            continue
        apart = abs(float(ours[row, token] - ours[row, other]))
        if not apart <= 2 * float(tolerance.allowed(ours[row])[token]):
            prompt = " + ".join(map(str, pieces))
            message = (
                f"prompt {prompt}, row {row} of {len(ours)}, token {step}: eager chose {token} "
                f"({ours[row, token]:.6g} before {ours[row, other]:.6g}), ONNX Runtime chose {other} "
                f"({theirs[row, other]:.6g} before {theirs[row, token]:.6g})"
            )
            raise refusal(TokensDiffer(message=message, fix=_REPORT))
        yield Tie(row, step, token, other, apart)
