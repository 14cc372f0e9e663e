"""``junit.xml``: for CI servers, a case for the test's validity, one for each SLO, and one for the baseline."""

from time import gmtime, strftime
from xml.etree import ElementTree as ET

from harness.analysis.baseline import Regression
from harness.analysis.result import Result
from harness.analysis.slo import SloResult, State
from harness.model.text.inert import visible
from reports.summary import measured_text, summary

_FAILURES = {State.FAILED: "missed", State.INCONCLUSIVE: "unknown", State.UNPROVEN: "unproven"}
_NO_VERDICT = "the test is invalid: no verdict on the platform"


def render(result: Result) -> bytes:
    """The document as UTF-8. An invalid test is an error of the validity case, and its SLOs are skipped."""
    valid = result.valid
    suite = ET.Element("testsuite", name=visible(f"pipeswarm {result.name}"))
    case = _case(suite, "validity", result)
    if not valid:
        reasons = result.diagnosis.validity.reasons
        ET.SubElement(case, "error", type="invalid", message=visible(reasons[0])).text = visible("\n".join(reasons))
    for slo in result.slos:
        _judge(_case(suite, slo.slo.text, result), slo, result)
    if result.regression is not None:
        _compare(_case(suite, f"baseline {result.regression.baseline}", result), result.regression, valid=valid)
    ET.SubElement(suite, "system-out").text = visible(summary(result))
    for kind, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f"testcase/{kind}"))))
    suite.set("tests", str(len(suite.findall("testcase"))))
    suite.set("time", f"{result.throughput.makespan_s:.3f}")
    suite.set("timestamp", strftime("%Y-%m-%dT%H:%M:%S", gmtime(result.timeline.start_at // 10**9)))
    whole = ET.Element("testsuites")
    whole.append(suite)
    ET.indent(whole)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(whole, encoding="unicode")}\n'.encode()


def _case(suite: ET.Element, name: str, result: Result) -> ET.Element:
    return ET.SubElement(suite, "testcase", name=visible(name), classname=visible(f"pipeswarm.{result.plan.target}"))


def _judge(case: ET.Element, slo: SloResult, result: Result) -> None:
    if not result.valid:
        ET.SubElement(case, "skipped", message=_NO_VERDICT)
    elif not result.passes(slo):
        measured = measured_text(slo) or "not measured"
        failure = ET.SubElement(
            case, "failure", type=_FAILURES[slo.state], message=visible(f"{slo.state.value.lower()}: {measured}")
        )
        failure.text = visible(f"{slo.slo.text}: {measured}")


def _compare(case: ET.Element, found: Regression, *, valid: bool) -> None:
    if not valid:
        ET.SubElement(case, "skipped", message=_NO_VERDICT)
    elif found.reasons:
        failure = ET.SubElement(case, "failure", type="regression", message=visible(found.reasons[0]))
        failure.text = visible("\n".join(found.reasons))
    elif found.comparison is None:
        ET.SubElement(case, "skipped", message=visible(found.sentence))
