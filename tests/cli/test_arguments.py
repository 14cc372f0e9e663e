"""The error for an invalid argument names its option, before anything is written."""

import pytest

from harness.cli import main


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("report run --every 0s", "argument --every: 0s is not above 0"),
        ("report run --every soon", "argument --every: 'soon' is not a duration: write it as 90s"),
        ("observe --host http://127.0.0.1:9 --for soon", "argument --for: 'soon' is not a duration"),
        ("cleanup run --rate 0/s", "argument --rate: 0/s is not above 0"),
        ("cleanup run --rate fast", "argument --rate: 'fast' is not a rate"),
        ("capacity --from t --jobs-per-node 0", "argument --jobs-per-node: 0 is not above 0"),
        ("capacity --from t --spot --step-time long", "argument --step-time: 'long' is not a duration"),
        ("capacity --from t --spot --replacement-time -3m", "argument --replacement-time: expected one argument"),
        ("capacity --from t --price=-2", "argument --price: -2 is not a number from 0 on"),
        ("capacity --from t --spot=-1", "argument --spot: -1 is not a number from 0 on"),
        ("capacity jobs-per-node --most some", "argument --most: invalid count value: 'some'"),
        ("capacity jobs-per-node --repetitions 0", "argument --repetitions: 0 is not above 0"),
        ("capacity jobs-per-node --trial 0", "argument --trial: 0 is not above 0"),
        ("simulate adapter --errors 2", "argument --errors: 2 is not a number from 0 to 1"),
        ("simulate adapter --capacity=-1", "argument --capacity: -1 is below 0"),
        ("simulate adapter --latency 2s..1s", "argument --latency: 2s..1s is reversed"),
        ("simulate adapter --step 0s", "argument --step: 0s is not above 0"),
        ("simulate adapter --port 65536", "argument --port: 65536 is not a port"),
        ("simulate run --schedule wave", "argument --schedule: invalid choice: 'wave'"),
        ("simulate run --caching maybe", "argument --caching: invalid choice: 'maybe'"),
        ("reprot run", "there is no verb 'reprot': did you mean report?"),
        ("zzz", "there is no verb 'zzz': pipeswarm --help lists the verbs"),
        ("simulate serve --port=-1", "argument --port: -1 is not a port"),
    ],
)
def test_the_error_for_an_invalid_value_names_its_option(call, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(call.split())
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_schedule_that_is_none_is_told_all_there_are(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["simulate", "run", "--schedule", "wave"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    names = ("constant", "poisson", "ramp", "spread", "burst", "stages", "replay", "concurrency")
    assert all(name in said for name in names)
    assert not list(tmp_path.iterdir())


def test_the_nearest_choice_is_proposed(capsys):
    with pytest.raises(SystemExit) as exited:
        main(["load", "kpf"])
    assert exited.value.code == 2
    assert capsys.readouterr().err.rstrip().endswith("; did you mean 'kfp'?")
