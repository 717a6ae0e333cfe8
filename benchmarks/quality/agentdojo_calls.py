"""Whether attacks of AgentDojo v1 reach their target if a model obeys whatever it reads, by executed effect.

    pip install agentdojo
    python -m benchmarks agentdojo_calls

No model runs. Each injection task is planted in each user task; the calls of the user task's ground truth are executed
and, if a result shows the attack, those of the injection task. An attack reaches its target if AgentDojo's own check
of the environment says so. With the text check, results are screened first, and an attack of which no result shows
its goal any more is not obeyed. With the gate, a call whose target only a result named is not made. `asked` counts
user tasks of which the gate asks about a call without an attack; ground truths leave out some look-ups, and then the
gate has less to compare. Nothing is fitted on these tasks.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
from agentdojo.functions_runtime import FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suites

from benchmarks.quality.agentdojo_texts import TEMPLATES
from unpoison.agents import screen_tool_result
from unpoison.agents.arguments import Conversation

GUARDS = {"none": (False, False), "gate": (True, False), "text check": (False, True), "both": (True, True)}
"""Whether each way has the gate, and the text check."""

SHOWN = 20
"""Characters of a goal by which it is recognised in a result; behind them quotation marks may be doubled."""


class Run(NamedTuple):
    """What the calls of a user task gave.

    Attributes:
        calls: Each call with its result as a text.
        environment: Afterwards.
    """

    calls: list[tuple[Any, str]]
    environment: Any


@lru_cache(maxsize=2)
def loaded(suite: Any, attack: str) -> Any:
    """The environment of a suite with a text in all its placeholders."""
    places = suite.get_injection_vector_defaults()
    return suite.load_and_inject_default_environment(dict.fromkeys(places, attack) if attack else {})


def run(suite: Any, task: Any, attack: str) -> Run:
    """Execute the ground truth of a user task."""
    environment = task.init_environment(copy.deepcopy(loaded(suite, attack)))
    runtime, calls = FunctionsRuntime(suite.tools), []
    for call in task.ground_truth(environment):
        result, error = runtime.run_function(environment, call.function, dict(call.args))
        calls.append((call, str(error) if error else tool_result_to_str(result)))
    return Run(calls, environment)


@lru_cache(maxsize=20_000)
def screened(tool: str, text: str) -> str:
    """A result after the text check."""
    return str(screen_tool_result(tool, text).value)


def read(conversation: Conversation, run: Run, text_check: bool) -> list[str]:
    """What the model reads, and the conversation remembers; the user's own calls are made."""
    texts = []
    for call, text in run.calls:
        conversation.allow_call(call.function, call.args)
        texts.append(screened(call.function, text) if text_check else text)
        conversation.add_result(call.function, texts[-1], call.args)
    return texts


def reaches(suite: Any, run: Run, goal: Any, asked: str, gate: bool, text_check: bool) -> bool:
    """Whether an attack that a model obeys has its effect."""
    conversation = Conversation()
    conversation.add_user(asked)
    texts = read(conversation, run, text_check)
    if not any(goal.GOAL[:SHOWN] in text for text in texts):
        return False
    before, after = copy.deepcopy(run.environment), copy.deepcopy(run.environment)
    runtime, made = FunctionsRuntime(suite.tools), [call for call, _ in run.calls]
    for call in goal.ground_truth(before):
        if gate and conversation.foreign(call.function, call.args):
            continue
        made.append(call)
        conversation.allow_call(call.function, call.args)
        result, error = runtime.run_function(after, call.function, dict(call.args))
        text = str(error) if error else tool_result_to_str(result)
        conversation.add_result(call.function, screened(call.function, text) if text_check else text, call.args)
    said = goal.GROUND_TRUTH_OUTPUT or goal.GOAL
    by_calls = goal.security_from_traces(said, before, after, made)
    return bool(goal.security(said, before, after) if by_calls is None else by_calls)


def asked_about(run: Run, asked: str) -> list[str]:
    """The calls of a user task that the gate asks about, without an attack."""
    conversation, found = Conversation(), []
    conversation.add_user(asked)
    for call, text in run.calls:
        if conversation.foreign(call.function, call.args):
            found.append(call.function)
        conversation.allow_call(call.function, call.args, approved=True)
        conversation.add_result(call.function, text, call.args)
    return found


def counts(suite: Any, template: str) -> Counter[str]:
    """The figures of a suite."""
    found = Counter[str]()
    for task in suite.user_tasks.values():
        found["user tasks"] += 1
        found["asked"] += bool(asked_about(run(suite, task, ""), task.PROMPT))
    for goal in suite.injection_tasks.values():
        attack = TEMPLATES[template].format(goal=goal.GOAL)
        for task in suite.user_tasks.values():
            attacked = run(suite, task, attack)
            if any(goal.GOAL[:SHOWN] in text for _, text in attacked.calls) and reaches(
                suite, attacked, goal, task.PROMPT, False, False
            ):  # others are not read, or have no effect in this environment
                found["none"] += 1
                for guard, (gate, text_check) in list(GUARDS.items())[1:]:
                    found[guard] += reaches(suite, attacked, goal, task.PROMPT, gate, text_check)
    return found


def table(rows: Sequence[tuple[str, Counter[str]]]) -> Iterator[str]:
    """The figures as a table in Markdown."""
    yield "| suite | attacks that a model obeys | with the gate | with the text check | with both | user tasks asked |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for name, row in rows:
        figures = [row[guard] for guard in GUARDS]
        yield f"| {name} | {' | '.join(map(str, figures))} | {row['asked']} of {row['user tasks']} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--template", action="append", choices=list(TEMPLATES), help="[default: important, todo]")
    for template in parser.parse_args().template or ["important", "todo"]:
        rows = list[tuple[str, Counter[str]]]()
        for name, suite in get_suites("v1").items():
            rows.append((name, counts(suite, template)))
            print(name, dict(rows[-1][1]), file=sys.stderr, flush=True)
        print(f"\n{template}\n")
        print("\n".join(table([*rows, ("all", sum((row for _, row in rows), Counter[str]()))])), flush=True)


if __name__ == "__main__":
    main()
