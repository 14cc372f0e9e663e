"""``junit.xml``: a case for the test's validity, one for each objective, and one for the baseline, for CI servers."""

import re
from time import gmtime, strftime
from xml.etree import ElementTree as ET

from harness.analysis.baseline import Regression
from harness.analysis.slo import SloResult
from reports.report import Report
from reports.summary import measured_text, summary

# What XML 1.0 allows; a platform's message may hold anything.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NO_VERDICT = "the test is invalid: no verdict on the platform"


def render(report: Report) -> bytes:
    """The document as UTF-8. An invalid test is an error of the validity case, and its objectives are skipped."""
    valid = report.diagnosis.validity.valid
    suite = ET.Element("testsuite", name=_clean(f"pipeswarm {report.name}"))
    case = _case(suite, "validity", report)
    if not valid:
        reasons = report.diagnosis.validity.reasons
        ET.SubElement(case, "error", type="invalid", message=_clean(reasons[0])).text = _clean("\n".join(reasons))
    for result in report.slos:
        _judge(_case(suite, result.slo.text, report), result, valid=valid)
    if report.regression is not None:
        _hold(_case(suite, f"baseline {report.regression.baseline}", report), report.regression, valid=valid)
    ET.SubElement(suite, "system-out").text = _clean(summary(report))
    for kind, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f"testcase/{kind}"))))
    suite.set("tests", str(len(suite.findall("testcase"))))
    suite.set("time", f"{report.throughput.makespan_s:.3f}")
    suite.set("timestamp", strftime("%Y-%m-%dT%H:%M:%S", gmtime(report.timeline.start_at // 10**9)))
    whole = ET.Element("testsuites")
    whole.append(suite)
    ET.indent(whole)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(whole, encoding="unicode")}\n'.encode()


def _case(suite: ET.Element, name: str, report: Report) -> ET.Element:
    return ET.SubElement(suite, "testcase", name=_clean(name), classname=f"pipeswarm.{report.timeline.plan.target}")


def _judge(case: ET.Element, result: SloResult, *, valid: bool) -> None:
    if not valid:
        ET.SubElement(case, "skipped", message=_NO_VERDICT)
    elif not result.met:
        said = measured_text(result) or "not measured"
        kind, word = ("missed", "failed") if result.met is False else ("unknown", "can't be judged")
        failure = ET.SubElement(case, "failure", type=kind, message=_clean(f"{word}: {said}"))
        failure.text = _clean(f"{result.slo.text}: {said}")


def _hold(case: ET.Element, found: Regression, *, valid: bool) -> None:
    if not valid:
        ET.SubElement(case, "skipped", message=_NO_VERDICT)
    elif found.reasons:
        failure = ET.SubElement(case, "failure", type="regression", message=_clean(found.reasons[0]))
        failure.text = _clean("\n".join(found.reasons))
    elif found.comparison is None:
        ET.SubElement(case, "skipped", message=_clean(found.sentence))


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("�", text)
