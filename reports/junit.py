"""``junit.xml``: for CI servers, a case for the test's validity, one for each SLO, and one for the baseline."""

import re
from time import gmtime, strftime
from xml.etree import ElementTree as ET

from harness.analysis.result import Regression, Result, SloResult
from reports.summary import measured_text, summary

# What XML 1.0 allows; a platform's message may hold anything.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NO_VERDICT = "the test is invalid: no verdict on the platform"


def render(result: Result) -> bytes:
    """The document as UTF-8. An invalid test is an error of the validity case, and its SLOs are skipped."""
    valid = result.valid
    suite = ET.Element("testsuite", name=_clean(f"pipeswarm {result.name}"))
    case = _case(suite, "validity", result)
    if not valid:
        reasons = result.diagnosis.validity.reasons
        ET.SubElement(case, "error", type="invalid", message=_clean(reasons[0])).text = _clean("\n".join(reasons))
    for slo in result.slos:
        _judge(_case(suite, slo.slo.text, result), slo, valid=valid)
    if result.regression is not None:
        _compare(_case(suite, f"baseline {result.regression.baseline}", result), result.regression, valid=valid)
    ET.SubElement(suite, "system-out").text = _clean(summary(result))
    for kind, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f"testcase/{kind}"))))
    suite.set("tests", str(len(suite.findall("testcase"))))
    suite.set("time", f"{result.throughput.makespan_s:.3f}")
    suite.set("timestamp", strftime("%Y-%m-%dT%H:%M:%S", gmtime(result.started_at // 10**9)))
    whole = ET.Element("testsuites")
    whole.append(suite)
    ET.indent(whole)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(whole, encoding="unicode")}\n'.encode()


def _case(suite: ET.Element, name: str, result: Result) -> ET.Element:
    return ET.SubElement(suite, "testcase", name=_clean(name), classname=f"pipeswarm.{result.plan.target}")


def _judge(case: ET.Element, slo: SloResult, *, valid: bool) -> None:
    if not valid:
        ET.SubElement(case, "skipped", message=_NO_VERDICT)
    elif not slo.met:
        measured = measured_text(slo) or "not measured"
        kind, word = ("missed", "failed") if slo.met is False else ("unknown", "can't be judged")
        failure = ET.SubElement(case, "failure", type=kind, message=_clean(f"{word}: {measured}"))
        failure.text = _clean(f"{slo.slo.text}: {measured}")


def _compare(case: ET.Element, found: Regression, *, valid: bool) -> None:
    if not valid:
        ET.SubElement(case, "skipped", message=_NO_VERDICT)
    elif found.reasons:
        failure = ET.SubElement(case, "failure", type="regression", message=_clean(found.reasons[0]))
        failure.text = _clean("\n".join(found.reasons))
    elif found.comparison is None:
        ET.SubElement(case, "skipped", message=_clean(found.sentence))


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("�", text)
