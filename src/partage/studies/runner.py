"""Running studies: the chunks of all studies go into one pool, longest first, and each is played once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from partage.checks import count
from partage.simulate.bars import Bars, Lone, bars_of, lone_games
from partage.simulate.chunk import Task
from partage.simulate.fold import Folded, join
from partage.simulate.parallel import Chunk, Play, compile_rule, cut
from partage.simulate.play import alone_task, new_task
from partage.simulate.result import Estimate, Result
from partage.simulate.trial import Trial
from partage.studies.cache import Store, chunk_name, task_digest
from partage.studies.results import Played
from partage.studies.study import Study

CHUNKS = ".chunks"


@dataclass(frozen=True)
class _Need:
    """The names of the work for one line at one place: its task, and 2-UCB alone.

    Where agents differ, 2-UCB is also played alone by each kind of them (`lone`).
    """

    task: str
    alone: str
    lone: Lone | None
    by_class: tuple[str, ...]

    @property
    def names(self) -> set[str]:
        return {self.task, self.alone, *self.by_class}


Plan = dict[tuple[str, int], _Need]


@dataclass
class _Work:
    """A task or a trial that some of the studies need: its chunks, and the finished ones."""

    task: Task | Trial
    digest: str
    chunks: list[Chunk]
    parts: dict[int, Folded] = field(default_factory=dict)
    seconds: float = 0.0

    def joined(self) -> Folded:
        return join([self.parts[place] for place in range(len(self.chunks))])


@dataclass(frozen=True)
class Progress:
    """Progress: chunks, and the work expected in them."""

    done: int
    chunks: int
    work_done: float
    work: float


def play_studies(
    studies: Sequence[Study],
    spread: Play,
    runs: int = 100,
    seed: int = 0,
    store: Store | None = None,
    progress: Callable[[Progress], None] = lambda progress: None,
) -> list[Played]:
    """Play studies and return their results.

    Parameters
    ----------
    studies
        The studies.
    spread
        The function that plays chunks: see `partage.simulate.parallel.workers`.
    runs, seed
        As for `partage.play`.
    store
        The cache of finished chunks; None for no cache.
    progress
        Called whenever a chunk is finished.
    """
    runs = count("The number of runs", runs)
    works: dict[str, _Work] = {}

    def need(task: Task | Trial, most: int | None) -> str:
        digest, many = task_digest(task), min(runs, most or runs)
        name = f"{digest}-{many}"
        if name not in works:
            works[name] = _Work(task, digest, cut(task, many))
        return name

    plans = [_plan(study, seed, need) for study in studies]
    trials = [
        {trial.name: need(replace(trial, seed=seed), trial.most_runs) for trial in study.trials} for study in studies
    ]
    tasks = [work.task for work in works.values() if isinstance(work.task, Task)]
    for task in {(type(task.rule), task.game.uneven): task for task in tasks}.values():
        compile_rule(task)
    _play(list(works.values()), spread, store, progress)
    return [
        _played(study, plan, tried, works, runs, seed)
        for study, plan, tried in zip(studies, plans, trials, strict=True)
    ]


def _plan(study: Study, seed: int, need: Callable[[Task | Trial, int | None], str]) -> Plan:
    """Return what is needed for each line and place of a study."""
    plan = {}
    for line in study.lines:
        for at in study.places(line):
            task = new_task(
                line.game(at),
                line.rule,
                line.settlement,
                seed,
                study.checkpoints,
                line.fee,
                line.alone,
                prepaid=line.prepaid(at),
                underwriting=line.underwriting,
            )
            alone, most = alone_task(task, task.checkpoints), line.most_runs(at)
            lone = lone_games(task.game) if task.game.traits else None
            by_class = [need(alone_task(task, game=game), most) for game in (lone.games if lone else ())]
            plan[line.name, at] = _Need(need(task, most), need(alone, most), lone, tuple(by_class))
    return plan


def _play(works: list[_Work], spread: Play, store: Store | None, progress: Callable[[Progress], None]) -> None:
    """Play the chunks that are not in the store, longest first, and store each as it finishes."""
    todo = []
    total = sum(chunk.expected for work in works for chunk in work.chunks)
    chunks, done, work_done = sum(len(work.chunks) for work in works), 0, 0.0
    for work in works:
        for place, chunk in enumerate(work.chunks):
            kept = store.load(chunk_name(work.digest, chunk)) if store else None
            if kept is None:
                todo.append((work, place, chunk))
                continue
            work.parts[place] = kept[0]
            work.seconds += kept[1]
            done, work_done = done + 1, work_done + chunk.expected
    progress(Progress(done, chunks, work_done, total))
    todo.sort(key=lambda each: -each[2].expected)
    for finished in spread([chunk for _, _, chunk in todo]):
        work, place, chunk = todo[finished.place]
        if store:
            store.save(chunk_name(work.digest, chunk), finished)
        work.parts[place] = finished.folded
        work.seconds += finished.seconds
        done, work_done = done + 1, work_done + chunk.expected
        progress(Progress(done, chunks, work_done, total))


def _played(
    study: Study, plan: Plan, trials: dict[str, str], works: dict[str, _Work], runs: int, seed: int
) -> Played:
    """Put the results of one study together."""
    needed = {name for one in plan.values() for name in one.names} | {*trials.values()}
    folded = {digest: works[digest].joined() for digest in needed}

    def result(digest: str, alone: dict[str, Estimate], bars: Bars | None = None) -> Result:
        work, task = works[digest], works[digest].task
        assert isinstance(task, Task)
        played = len(folded[digest].figures)
        settings = task.game, task.rule, task.settlement, played, task.seed
        return Result(*settings, work.seconds, folded[digest], task.checkpoints, alone, bars=bars)

    def compared(one: _Need, alone: Result) -> Result:
        if one.lone is None:  # all agents are equal, or arms change, and then no learner alone is a bar
            changes = result(one.task, {}).game.changes
            return result(one.task, {} if changes else {"two-ucb": alone.overall_regret})
        bars, regret = bars_of(one.lone, {"two-ucb": [folded[name].figures[:, 0] for name in one.by_class]})
        return result(one.task, regret, bars)

    alones = {key: result(one.alone, {}) for key, one in plan.items()}
    results = {key: compared(one, alones[key]) for key, one in plan.items()}
    tried = {name: folded[digest].figures for name, digest in trials.items()}
    return Played(study, runs, seed, sum(works[digest].seconds for digest in needed), results, alones, tried)
