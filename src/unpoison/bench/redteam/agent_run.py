"""Test an agent: give it tasks, plant orders into what it reads for them, and see what it then does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import NamedTuple

from unpoison.bench.evaluation.runs import moment
from unpoison.bench.redteam.agent_attacks import ADAPTIVE, Adaptive, Attacker, Fixed, Tried, plant_into
from unpoison.bench.redteam.agent_config import INJECTIONS, AgentConfig
from unpoison.bench.redteam.agent_session import SITE, AgentSession, Answerer, open_session
from unpoison.bench.redteam.agent_tasks import Order, Task, families, injected_orders, outcomes, tasks, written_orders
from unpoison.bench.redteam.agent_world import Call
from unpoison.bench.redteam.http_hosts import Hosts
from unpoison.bench.redteam.pace import Clock, InterruptedTestError, Pace
from unpoison.bench.redteam.results import NO_ATTACK, Results, Trial
from unpoison.bench.redteam.secrets import Secrets
from unpoison.bench.redteam.targets import new_canary
from unpoison.errors import InputError, OptionError, TargetError

__all__ = ["describe_agent_test", "run_agent_test"]

Progress = Callable[[int, int, str], None]

MAX_ANSWER_CHARS = 65_536
"""Characters of an answer that are kept and judged."""

MAX_FAILURES = 10
"""Tasks that fail in a row until the test ends."""


class _Example(NamedTuple):
    """A task in one of its variants."""

    task: Task
    variant: int

    @property
    def id(self) -> str:
        return f"{self.task.id}-{self.variant + 1}"


def run_agent_test(
    config: AgentConfig,
    *,
    secrets: Secrets,
    hosts: Hosts,
    agent: Answerer | None = None,
    clock: Clock | None = None,
    progress: Progress = lambda done, total, doing: None,
) -> Results:
    """Run a test of an agent.

    Nothing is planted outside the stub's own folder, so there is no journal and nothing to take back.

    Args:
        config: What it does.
        secrets: What `${NAME}` stands for.
        hosts: Where requests may go.
        agent: A function of a task and of what calls a tool, in place of the agent that the configuration names.
        clock: Time.
        progress: Called after every finished task.

    Returns:
        What was measured; incomplete where the agent gave up or the budget was used up. An attack has won where
        `Trial.outcome` says what it reached.

    Raises:
        InputError: No tasks, or an evaluation file that cannot be read.
        OptionError, UnknownNameError: A configuration that cannot be used, or a budget that cannot suffice.
        TargetError: A server cannot be used.
    """
    examples = _examples(config)
    injected = {spec: _injected(config, spec) for spec in config.attacks if spec.startswith(INJECTIONS)}
    needed = len(examples) * (1 + len(config.attacks))
    if needed > config.bounds.budget:
        raise OptionError(
            f"{len(examples):,} tasks need {needed:,} requests or more, and limits.budget is "
            f"{config.bounds.budget:,}; raise it, or give fewer variants"
        )
    started = moment()
    with open_session(config, secrets, hosts, agent) as session:
        run = _Run(config, session, Pace(config.bounds, clock), lambda text: str(secrets.mask(text)))
        try:
            for spec in (NO_ATTACK, *config.attacks):
                attacker = _attacker(config, spec)
                for example in examples:
                    run.take(example, spec, attacker, injected.get(spec))
                    progress(len(run.trials), len(examples) * (1 + len(config.attacks)), spec)
        except InterruptedTestError as stop:
            run.problems.append(str(stop))
        return Results(
            run={
                "name": session.name,
                "started": started,
                "config": config.digest(),
                "target": config.target.model_dump(),
                "test": {
                    "agent": True,
                    "attacks": list(config.attacks),
                    "places": list(config.places),
                    "goals": list(config.goals),
                    "variants": config.variants,
                    "tries": config.tries,
                    "seed": config.seed,
                },
            },
            finished=None if run.problems else moment(),
            examples=len(examples),
            trials=tuple(run.trials),
            cells=((NO_ATTACK, 0), *((spec, 1) for spec in config.attacks)),
            problems=tuple(run.problems),
        )


def describe_agent_test(config: AgentConfig) -> list[str]:
    """What a test would do: the first task, and the first order of every attack as it is planted; nothing is asked."""
    examples = _examples(config)
    task, lines = examples[0].task.at(SITE), list[str]()
    lines.append(f"{len(examples) * (1 + len(config.attacks)):,} requests or more, {len(examples):,} tasks")
    lines.append(f"ask: {task.task}")
    for spec in config.attacks:
        injected = _injected(config, spec) if spec.startswith(INJECTIONS) else None
        order = (injected or _written(config, spec, task, 0, "TOKEN", SITE))[0]
        lines.append(f"{spec}: {plant_into(task, order, _wrappers(spec), seed=config.seed)}")
    return lines


class _Run:
    """The trials of a test, one after the other."""

    def __init__(self, config: AgentConfig, session: AgentSession, pace: Pace, masked: Callable[[str], str]) -> None:
        self._config, self._session, self._pace, self._masked = config, session, pace, masked
        self._before: dict[str, list[Call]] = {}
        self._failures = 0
        self.trials: list[Trial] = []
        self.problems: list[str] = []

    def take(self, example: _Example, spec: str, attacker: Attacker, injected: Sequence[Order] | None) -> None:
        """Do a task without an attack, or let an attacker try.

        Raises:
            InterruptedTestError: The budget is used up, or the agent fails again and again.
        """
        task = example.task.at(self._session.site)
        trial = Trial(
            example.id,
            task.task,
            correct=(task.correct,),
            wanted=(task.wanted,),
            told=True,
            outcome="",
            place=task.place,
        )
        if spec == NO_ATTACK:
            trial = self._attempt(trial, task, None)
        else:
            token = blake2b(f"{self._config.seed} {spec} {example.id}".encode(), digest_size=5).hexdigest()
            orders = injected or _written(self._config, spec, task, example.variant, f"c{token}", self._session.site)
            last = replace(trial, attack=spec, poisons=1, planted=1)

            def attempt(tried: Tried) -> bool:
                nonlocal last
                last = self._attempt(replace(last, text=tried.text, how=tried.how), task, tried)
                return bool(last.outcome) or last.failed

            tries = attacker.attack(task, orders, example.variant, attempt)
            trial = replace(last, tries=tries)
        self.trials.append(trial)
        self._count_failures(trial)

    def _attempt(self, trial: Trial, task: Task, tried: Tried | None) -> Trial:
        """Ask once."""
        self._pace.check()
        secret, began = new_canary(), self._pace.clock.now()
        try:
            answer, calls = self._pace.call(
                "ask", lambda: self._session.ask(task.task, task.world(secret, None if tried is None else tried.text))
            )
        except TargetError as error:
            return replace(trial, stage="ask", error=self._masked(str(error)))
        answer = answer[:MAX_ANSWER_CHARS]
        if tried is None:
            self._before[trial.example] = calls
        order = None if tried is None else tried.order
        reached = outcomes(task, order, secret, answer, calls, self._before.get(trial.example, ()))
        return replace(
            trial,
            answer=answer,
            outcome=", ".join(reached),
            read=None if tried is None else int(any(call.planted for call in calls)),
            seconds=round(self._pace.clock.now() - began, 4),
        )

    def _count_failures(self, trial: Trial) -> None:
        self._failures = self._failures + 1 if trial.failed else 0
        if self._failures == MAX_FAILURES:
            raise InterruptedTestError(f"the agent failed {MAX_FAILURES} times in a row: {trial.error}")


def _examples(config: AgentConfig) -> list[_Example]:
    chosen = tasks(config.places)[: config.limit]
    if not chosen:
        raise InputError(f"there is no task for the places {', '.join(config.places)}")
    return [_Example(task, variant) for variant in range(config.variants) for task in chosen]


def _attacker(config: AgentConfig, spec: str) -> Attacker:
    return Adaptive(config.tries, config.seed) if spec == ADAPTIVE else Fixed(_wrappers(spec), config.seed)


def _wrappers(spec: str) -> tuple[str, ...]:
    return tuple(spec.split("+")[1:])


def _injected(config: AgentConfig, spec: str) -> list[Order]:
    return injected_orders(config.injections_path, spec.split("+")[0].removeprefix(INJECTIONS))


def _written(config: AgentConfig, spec: str, task: Task, variant: int, token: str, site: str) -> list[Order]:
    """What an attacker may plant for a task, in our words; who adapts has one goal for each variant, in turn."""
    if spec != ADAPTIVE:
        return written_orders(spec.split("+")[0], task, token, site, config.goals)
    goal = config.goals[variant % len(config.goals)]
    return [order for family in families() for order in written_orders(family, task, token, site, [goal])]
