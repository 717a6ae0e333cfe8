"""Measure defenses: data sets, contexts with poison in them, scenarios, metrics, intervals.

run = Runner("unpoison-runs/first", Grid.of({"data": "sample", "defense": "grada"}).scenarios()).run()
for summary in summarise(run.cells):
    print(summary.scenario.defense, summary["poisoned"])
"""
