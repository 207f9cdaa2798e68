"""The whole way as one job that goes on after any kill: propose, measure, fit, again, then the optimum and its file.

OUT/ground.json              domains and tokens that the runs are of; others are refused
OUT/rounds/                  mixing.loop.rounds: what was proposed and measured
OUT/proxies/                 train.proxies: the runs themselves
OUT/observed/                mixing.loop.feeding: what was fed back
OUT/observations.parquet     all of it as one tidy table
OUT/mix.json                 mixing.loop.telling: everything that a report shows
OUT/mixture.json             mixing.loop.mixture_file: the mixture; written last

A run on a folder that is done reads its files and ends. What was measured stays whatever settings change: the rounds
that come after follow the new ones, and so does the optimum.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from mixing.loop import digests, telling
from mixing.loop.feeding import MIXTURE, OBSERVATIONS, digest
from mixing.loop.finding import Found, single
from mixing.loop.ground import Ground, alone
from mixing.loop.measuring import ByProxies, Measure, Say
from mixing.loop.mixture_file import MixtureFile, read_mixture, write_mixture
from mixing.loop.rounds import CYCLE, Measured, Proposal, store_measured, store_proposal
from mixing.loop.settings import Mix, Swarm
from mixing.loop.sizes import scales_of
from mixing.loop.standing import Standing, standing_of
from mixing.loop.stopping import Next, next_round, worth_of
from mixing.observations import MixingError, Observations, write
from mixing.optimum.constraints import Constraints
from shards.store import join, read_json, sweep, write_json

REPORT = "mix.json"


def run(
    settings: Mix,
    *,
    tokens: str | Sequence[str] = (),
    out: str,
    available: Mapping[str, float] | None = None,
    measure: Measure | None = None,
    retry_failed: bool = False,
    say: Say | None = None,
) -> MixtureFile:
    """Find the mixture; again on the same `out` goes on where it stopped, or reads what is done.

    tokens: folders of token shards, which proxies are trained on. available: tokens that there are of each domain,
    where there are no shards (inf without end, NaN unknown). measure: what measures mixtures in place of proxies, see
    mixing.loop.measuring. retry_failed: train failed proxies of a round that is not over again. say: takes a line of
    progress at a time.
    Raises MixingError, and what training raises, in a line. Runs that fail are told, and the loop goes on.
    """
    folders = (tokens,) if isinstance(tokens, str) else tuple(tokens)
    if measure is None and not folders:
        raise MixingError("tokens: none; name folders of token shards, or give measure")
    with alone(out):
        sweep(out)
        ground = Ground.of(folders, available, held_out=settings.proxies.held_out)
        ground.settle(out, settings.swarm if measure is None else None)
        loop = _Loop(
            settings=settings,
            swarm=_as_begun(settings.swarm, out, say or _silent),
            ground=ground,
            out=out,
            tokens=folders,
            measure=measure,
            retry_failed=retry_failed,
            say=say or _silent,
        )
        return loop.run()


def _as_begun(swarm: Swarm, out: str, say: Say) -> Swarm:
    """Proxies that repeat domains as those of the folder do, so that all of its runs compare."""
    begun = replace(swarm, **Ground.repeated(out))
    if begun != swarm:
        say("mix: proxies repeat domains as those that are there, not as the mixture's run would")
    return begun


@dataclass(frozen=True, kw_only=True)
class _Loop:
    settings: Mix
    swarm: Swarm
    ground: Ground
    out: str
    tokens: tuple[str, ...]
    measure: Measure | None
    retry_failed: bool
    say: Say

    @cached_property
    def constraints(self) -> Constraints:
        return self.settings.bound(self.ground.available)

    @cached_property
    def shaped_by(self) -> str:
        return digests.proposals(self.settings, self.ground)

    def run(self) -> MixtureFile:
        self.constraints.polytope(self.ground.domains)  # what clashes is told before anything is trained
        if len(self.ground.domains) == 1:
            return self._single()
        while True:
            standing, waiting = standing_of(self.settings, self.out, self.ground.domains)
            if waiting is not None and waiting.shaped_by != self.shaped_by:
                self.say(f"mix: round {waiting.number} was proposed under other settings; it is proposed anew")
                waiting = None
            if waiting is None:
                what = next_round(self.settings, self.constraints, standing, self.tokens)
                if not what.rows:
                    return self._finish(standing, what)
                waiting = self._propose(standing, what)
            self._measure(standing, waiting)

    def _propose(self, standing: Standing, what: Next) -> Proposal:
        """Draw a round and store it, before anything of it is measured."""
        from mixing.design import propose

        number = len(standing.rounds) + 1
        known = standing.observations is not None
        table = propose(
            standing.rows if known else self.ground.domains,
            what.rows,
            law=None if what.filling else standing.law,
            constraints=self.constraints,
            objective=standing.objective if known else None,
            method="space_filling" if what.filling else self.settings.method,
            seed=self.settings.seed + number,
            **scales_of(self.settings, self.tokens),
        )
        before = [one.proposal for one in standing.rounds]
        workers = max(1, self.settings.proxies.workers)  # runs of one seed go in parallel
        cycle = max(1, min(CYCLE, table.num_rows // workers))
        proposal = Proposal.of(number, table, self.ground.domains, before=before, shaped_by=self.shaped_by, cycle=cycle)
        store_proposal(self.out, proposal)
        return proposal

    def _measure(self, standing: Standing, proposal: Proposal) -> None:
        """Measure a round and store what came of it. Raises MixingError where nothing was ever measured."""
        self.say(f"mix: round {proposal.number}: {len(proposal)} mixtures")
        started = time.monotonic()
        told = self._measurer(standing)(proposal.table())
        seconds = time.monotonic() - started
        measured = Measured(observations=told) if isinstance(told, Observations) else told
        for run, why in measured.failed.items():
            self.say(f"mix: {run} failed: {why}")
        if measured.observations is None or not len(measured.observations):
            if standing.observations is None:
                first = next(iter(measured.failed.items()), ("", ""))
                raise MixingError(
                    f"round {proposal.number}: none of {len(proposal)} runs came to an end; {first[0]}: {first[1]}"
                )
            measured = Measured(observations=None, failed=measured.failed)
        store_measured(self.out, proposal.number, named_apart(measured, standing, proposal.number), seconds)

    def _measurer(self, standing: Standing) -> Measure:
        if self.measure is not None:
            return self.measure
        known = frozenset({*standing.own, *standing.failed})
        return ByProxies(
            swarm=self.swarm, tokens=self.tokens, out=self.out, known=known,
            retry_failed=self.retry_failed, say=self.say,
        )  # fmt: skip

    def _finish(self, standing: Standing, what: Next) -> MixtureFile:
        """The optimum of all that was measured, and its files; those that are there where nothing changed."""
        made_of = digests.answer(self.settings, self.ground, digest(standing.whole))
        told, mixture = (read_json(join(self.out, name)) or {} for name in (REPORT, MIXTURE))
        if told.get("stop") == what.reason and told.get("made_of") == mixture.get("provenance") == made_of:
            return read_mixture(join(self.out, MIXTURE))
        self.say(f"mix: {what.reason}; the optimum of {len(standing.rows)} runs")
        write(standing.whole, join(self.out, OBSERVATIONS))
        found = Found.of(self.settings, self.constraints, self.ground, standing)
        if what.worth is None and self.settings.looks_ahead:
            worth = worth_of(self.settings, self.constraints, standing, self.tokens)
            what = replace(what, worth=worth)
        report = telling.told(found, what)
        return self._write(found.file(made_of), {"made_of": made_of, "stop": what.reason, **report})

    def _single(self) -> MixtureFile:
        """One domain: nothing to find."""
        domain = self.ground.domains[0]
        warning = f"there is one domain, {domain}; all of the mixture is of it, and no proxy is trained"
        self.say(f"mix: {warning}")
        mixture = single(self.settings, self.constraints, self.ground, digests.answer(self.settings, self.ground, ""))
        return self._write(mixture, {"made_of": dict(mixture.provenance), "stop": warning, "warnings": [warning]})

    def _write(self, mixture: MixtureFile, told: Mapping[str, object]) -> MixtureFile:
        # The report first: a mixture file stands for a job that is done.
        write_json(join(self.out, REPORT), {"format": telling.FORMAT, "mixture": mixture.to_json(), **told})
        write_mixture(mixture, join(self.out, MIXTURE))
        return read_mixture(join(self.out, MIXTURE))


def named_apart(measured: Measured, standing: Standing, number: int) -> Measured:
    """Runs that have the name of a run of an earlier round, named after their own round, too."""
    told = measured.observations
    taken = standing.own
    if told is None or not taken & set(told.runs):
        return measured
    runs = tuple(f"round-{number:02d}/{run}" if run in taken else run for run in told.runs)
    return replace(measured, observations=replace(told, runs=runs))


def _silent(_: str) -> None:
    pass
