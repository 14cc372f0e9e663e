"""The expected effects of a test's findings, for its report."""

from dataclasses import replace
from functools import reduce
from operator import add

from harness.analysis.timeline import Timeline
from harness.model.effects import TOGETHER, Effects
from harness.model.errors import PipeswarmError
from harness.model.findings import Diagnosis
from harness.planning.identify import identify, recorded_test, simulable
from harness.planning.sweeps import DaskWorkers, Workers
from harness.planning.what_if.fixes import fixes_of
from harness.planning.what_if.prediction import predict
from harness.store.folder import RunFolder

_MOST_FIXES = 6
_MOST_PODS = 15_000  # of a test: more would hold the report up for minutes


def expected_effects(
    folder: RunFolder, timeline: Timeline, diagnosis: Diagnosis, workers: Workers | DaskWorkers
) -> Effects | None:
    """Predict what the fixes of the first findings would bring; none where no finding has one that can be simulated."""
    fixes = dict(list(fixes_of(diagnosis.findings).items())[:_MOST_FIXES])
    if not fixes or not simulable(timeline):
        return None
    if len(timeline.names) > _MOST_PODS:
        return Effects(f"for a test of that many pods, pipeswarm what-if {folder.path.name} predicts effects", {})
    try:
        test = recorded_test(folder, timeline)
        identified = identify(timeline, test)
        changes = [change for _, change in fixes.values()]
        if len(changes) > 1:
            changes.append(replace(reduce(add, changes), name=TOGETHER))
        what_if = predict(identified, test, changes, workers)
    except PipeswarmError as error:
        return Effects(f"effects are not predicted: {error.message}", {})
    predictions = {prediction.name: prediction for prediction in what_if.predictions}
    together = predictions.pop(TOGETHER, None)
    said = {name: replace(each, simulated=fixes[name][0]) for name, each in predictions.items() if not each.unchanged}
    return Effects(str(identified.reproduction), said, together)
