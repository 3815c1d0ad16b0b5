"""The classifier: what it sees, that it computes what scikit-learn does, and that it knows when it does not know."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from logtriage import classifying, guessing, pipeline, resources
from logtriage.classifier import evidence, fingerprint, masking, predict
from logtriage.classifier.features import Feature, Lexicon, extract
from logtriage.errors import InputError
from logtriage.records import Candidate
from logtriage.report import json_v1
from logtriage.workbench import accuracy, training
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from logtriage.engine.ruleset import RuleSet

HEAD = """\
[2026-02-11 09:14:21 TP0] Init torch distributed begin.
[2026-02-11 09:14:29 TP0] Load weight begin. avail mem=93.11 GB
"""
POST = """\
[2026-02-11 09:20:19 TP{rank}] Scheduler hit an exception: Traceback (most recent call last):
  File "{site}/sglang/srt/model_loader/loader.py", line {line}, in load_weights_and_postprocess
    quant_method.process_weights_after_loading(module)
  File "{site}/sglang/srt/layers/quantization/fp8.py", line {line}, in process_weights_after_loading
    layer.w13_weight.data = repack(layer.w13_weight.data)
"""
EXHAUSTED = "torch.AllocError: device memory exhausted while repacking {site}/w13: {size} GiB wanted on GPU {rank}\n"


def _failure(rank: int = 0, site: str = "/opt/venv/lib", line: int = 702, size: float = 1.5) -> bytes:
    return (HEAD + (POST + EXHAUSTED).format(rank=rank, site=site, line=line, size=size)).encode()


@pytest.fixture(scope="module")
def model() -> predict.Model:
    """The weights that are shipped."""
    path = resources.weights_file()
    assert path is not None
    return predict.load(path)


@pytest.fixture(scope="module")
def shipped() -> dict[str, Any]:
    path = resources.weights_file()
    assert path is not None
    with open(path, encoding="utf-8") as file:
        return dict(json.load(file))


def _samples(count: int = 90, seed: int = 3) -> list[Any]:
    from logtriage.classifier.train import Sample

    rng = random.Random(seed)  # noqa: S311 - samples, not secrets
    words = {"port-in-use": "abcdef", "oom-gpu": "defghi", "unknown": "hijklm"}
    made = []
    for number in range(count):
        label = list(words)[number % 3]
        chosen = {f"w:{letter}": rng.choice([0.5, 1.0]) for letter in rng.sample(words[label], 4)}
        made.append(Sample(f"family-{number % 30}", label, chosen))
    return made


def test_predictor_computes_what_scikit_learn_computes() -> None:
    """With the weights as exported, scikit-learn's own logistic regression gives the same probabilities to 1e-6."""
    numpy = pytest.importorskip("numpy")
    linear_model = pytest.importorskip("sklearn.linear_model")
    from logtriage.classifier import train

    data = train.fit(_samples(), training.lexicon(), {})
    ours = predict.Model(data)
    theirs = linear_model.LogisticRegression()
    theirs.classes_ = numpy.array(data["labels"])
    names, idf, theirs.coef_ = _exported(data)
    theirs.intercept_ = numpy.array(data["bias"])
    rng = random.Random(1)  # noqa: S311
    for _ in range(200):
        chosen = {name: rng.choice([0.5, 1.0]) for name in rng.sample(names, rng.randint(1, 8))}
        vector = numpy.array([chosen.get(name, 0.0) for name in names]) * idf
        wanted = theirs.predict_proba([vector / numpy.linalg.norm(vector)])[0]
        given = ours.score({name: Feature(weight, 0, "") for name, weight in chosen.items()}).probabilities
        assert numpy.abs(wanted - numpy.array(given)).max() < 1e-6


def test_shipped_weights_compute_what_scikit_learn_computes(shipped: dict[str, Any], model: predict.Model) -> None:
    """The same holds for the weights that are shipped."""
    numpy = pytest.importorskip("numpy")
    linear_model = pytest.importorskip("sklearn.linear_model")
    theirs = linear_model.LogisticRegression()
    theirs.classes_ = numpy.array(shipped["labels"])
    names, idf, theirs.coef_ = _exported(shipped)
    theirs.intercept_ = numpy.array(shipped["bias"])
    rng = random.Random(2)  # noqa: S311
    for _ in range(30):
        chosen = {name: rng.choice([0.5, 1.0]) for name in rng.sample(names, 200)}
        vector = numpy.array([chosen.get(name, 0.0) for name in names]) * idf
        wanted = theirs.predict_proba([vector / numpy.linalg.norm(vector)])[0]
        given = model.score({name: Feature(weight, 0, "") for name, weight in chosen.items()}).probabilities
        assert numpy.abs(wanted - numpy.array(given)).max() < 1e-6


def _exported(data: dict[str, Any]) -> tuple[list[str], Any, Any]:
    """Names of features, their rarity, and the coefficients (labels by features) of a weights file."""
    numpy = pytest.importorskip("numpy")
    names = data["features"].split("\n")
    idf, scale = (numpy.frombuffer(base64.b64decode(data[key]), "<f4").astype(float) for key in ("idf", "scale"))
    whole = numpy.frombuffer(base64.b64decode(data["weights"]), "i1").reshape(-1, len(names))
    return names, idf, whole * scale


def test_training_twice_gives_the_same_bytes() -> None:
    """The same samples give the same file."""
    pytest.importorskip("sklearn")
    from logtriage.classifier import train

    first, second = (json.dumps(train.fit(_samples(), training.lexicon(), {})) for _ in range(2))
    assert first == second


def test_shipped_weights_have_a_card(shipped: dict[str, Any], rules: RuleSet) -> None:
    """The weights name what they were trained with, are small, and their digest is right."""
    path = resources.weights_file()
    assert path is not None
    with open(path, "rb") as file:
        assert len(file.read()) < 3 << 20
    card = shipped["card"]
    assert card["logs"] > 3000
    assert set(card["sources"]) == {"examples", "logs", "messages", "templates", "wordings"}
    assert card["scikit-learn"]
    assert set(shipped["labels"]) == set(rules.labels)
    body = {key: value for key, value in shipped.items() if key != "card"}
    assert hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest() == card["sha256"]


def test_shipped_weights_know_the_words_of_the_lexicon(shipped: dict[str, Any]) -> None:
    """Whoever changes the lexicon trains again."""
    assert shipped["lexicon"] == training.lexicon()


def test_a_failure_in_other_words(rules: RuleSet, tmp_path: Path) -> None:
    """A failure that no rule knows gets its label by the classifier, which shows line, words, and what to do."""
    (tmp_path / "run.log").write_bytes(_failure())
    report = pipeline.analyze(tmp_path / "run.log", rules=rules)
    data = json_v1.to_dict(report)
    assert data["verdict"]["label"] == "oom-weight-shuffle"
    assert data["verdict"]["decided_by"] == "classifier"
    assert data["verdict"]["rule"] is None
    assert 0.5 <= data["verdict"]["confidence"] < 1
    assert data["root_cause"]["text"].startswith("torch.AllocError")
    assert data["verdict"]["words"]
    assert all(word in data["verdict"]["because"] for word in data["verdict"]["words"])
    assert any("logtriage rules new --from" in note and "run.log:8" in note for note in data["notes"])
    unnamed = json_v1.to_dict(pipeline.analyze(_failure(), rules=rules))
    assert not any("logtriage rules new --from" in note for note in unnamed["notes"])


def test_frames_alone_prove_nothing(rules: RuleSet) -> None:
    """A traceback that is cut off before its exception stays unknown."""
    log = (HEAD + POST.format(rank=0, site="/opt", line=1)).encode()
    assert pipeline.analyze(log, rules=rules).label == "unknown"


@pytest.mark.parametrize("message", ["Exception: the moon is in the wrong phase", "ValueError: banana", "KeyError"])
def test_words_that_nobody_knows(message: str, rules: RuleSet) -> None:
    """A message of unknown words stays unknown, whatever its exception and its frames are like."""
    log = (HEAD + POST.format(rank=0, site="/opt", line=1) + message + "\n").encode()
    assert pipeline.analyze(log, rules=rules).label == "unknown"


def test_a_word_that_a_label_needs() -> None:
    """Without any word of memory nothing is a lack of memory, however much it resembles one."""
    lexicon = Lexicon(training.lexicon())
    assert lexicon.allows("oom-gpu", {"g:memory": Feature(1, 0, "")})
    assert not lexicon.allows("oom-gpu", {"g:port": Feature(1, 0, "")})
    assert lexicon.allows("degenerate-output", {"o:words": Feature(1, 0, "")})


@pytest.mark.parametrize(
    ("sm", "label", "candidates"),
    [
        (None, "sm100-only-kernel", ["unsupported-config"]),
        (120, "sm100-only-kernel", ["unsupported-config"]),
        (100, "unknown", ["unsupported-config"]),
    ],
)
def test_no_kernel_for_sm100_alone_fails_on_sm100(
    sm: int | None, label: str, candidates: list[str], rules: RuleSet
) -> None:
    """What a label means rules it out where the facts are known to be others, as the first guess and as a candidate."""
    facts = {} if sm is None else {"sm": sm}
    found = predict.Guess(
        "sm100-only-kernel", 0.8, is_sure=True, candidates=(Candidate("unsupported-config", 0.1, ""),)
    )
    left = classifying.fitting(found, rules.labels, facts)
    assert (left.label, [other.label for other in left.candidates]) == (label, candidates)
    turned = predict.Guess(
        "unsupported-config", 0.8, is_sure=True, candidates=(Candidate("sm100-only-kernel", 0.1, ""),)
    )
    left = classifying.fitting(turned, rules.labels, facts)
    assert (left.label, bool(left.candidates)) == ("unsupported-config", sm != 100)


def test_advice_is_no_evidence() -> None:
    """What is printed below every failed capture tells nothing of this one; what stands before an advice does."""
    lexicon = Lexicon(training.lexicon())
    assert lexicon.masked("3. disable torch compile by not using --enable-torch-compile") == "3. "
    assert lexicon.masked("scheduler died (exit code: -11). If exit code is -9 (SIGKILL), a common cause is …") == (
        "scheduler died (exit code: -11). "
    )
    assert not lexicon.is_alarm("4. disable CUDA graph by --disable-cuda-graph. (Not recommended)", how="failed")


def test_the_command_of_a_compiler_tells_little() -> None:
    """Of the commands of a build only the beginning is looked at, so that they do not drown the message."""
    command = "nvcc -c /b/a.cu -o /b/a.o -I/usr/include/x " + "-DENABLE_SOMETHING_SPECIAL " * 20
    seen = evidence.Evidence(items=tuple(evidence.Item(at, "text", 1.0, f"{command} -DN{at}") for at in range(3)))
    words = [name for name in extract(seen, Lexicon(training.lexicon())) if name.startswith("w:")]
    assert "w:nvcc" in words
    assert len(words) < 12


def test_an_answer_that_goes_round_in_circles(rules: RuleSet) -> None:
    """Of a ready server an answer that is odd by its form is garbage, and a sane one is none."""
    ready = HEAD + "[2026-02-11 09:30:21] The server is fired up and ready to roll!\n"
    ready += '[2026-02-11 09:30:29] INFO:     127.0.0.1:4112 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
    odd = "assistant> " + "We will see what the weather brings, then. " * 6
    sane = "assistant> We will see what the weather brings, then. Bring a coat, and some tea for the way."
    report = pipeline.analyze(f"{ready}{odd}\n".encode(), rules=rules)
    assert (report.label, report.verdict.decided_by) == ("degenerate-output", "classifier")
    assert report.verdict.confidence < accuracy.SURE
    assert pipeline.analyze(f"{ready}{sane}\n".encode(), rules=rules).label == "healthy"


def test_a_sign_of_nan_casts_doubt_on_healthy(rules: RuleSet) -> None:
    """A ready server that cannot encode an infinity may be healthy, but not surely."""
    ready = HEAD + "[2026-02-11 09:30:21] The server is fired up and ready to roll!\n"
    sign = "[2026-02-11 09:30:29] ValueError: Out of range float values are not JSON compliant: -inf\n"
    sure, unsure = (pipeline.analyze(log.encode(), rules=rules) for log in (ready, ready + sign))
    assert (sure.label, unsure.label) == ("healthy", "healthy")
    assert unsure.verdict.confidence < accuracy.SURE < sure.verdict.confidence


@pytest.mark.parametrize(
    ("failure", "is_odd", "is_last", "suspected"),
    [(0.95, False, True, True), (0.95, False, False, False), (0.7, False, True, False), (0.5, True, False, True)],
)
def test_what_makes_a_silent_log_suspect(failure: float, *, is_odd: bool, is_last: bool, suspected: bool) -> None:
    """A log without a failure by form is unknown, not incomplete, only where its end is very likely one."""
    guess = predict.Guess("hang-timeout", 0.5, is_sure=False, is_odd=is_odd, failure=failure, is_last=is_last)
    assert guessing.suspects(guess, "weight-load") is suspected


@pytest.mark.parametrize(
    ("stage", "label", "is_behind", "suspected"),
    [
        ("warmup", "healthy", True, True),
        ("warmup", "healthy", False, False),
        ("warmup", "incomplete", True, False),
        ("cuda-graph", "healthy", True, False),
    ],
)
def test_what_follows_the_last_stage(stage: str, label: str, *, is_behind: bool, suspected: bool) -> None:
    """Nothing but the ready line is still to come there: other lines are another server's words, or a failure's."""
    guess = predict.Guess(label, 0.7, is_sure=False, failure=0.2, is_behind=is_behind)
    assert guessing.suspects(guess, stage) is suspected


def test_starts_that_are_cut_off_are_learned_from() -> None:
    """A log of a server that was ready teaches what an incomplete one looks like, unless something failed before."""
    ready = "[2026-02-11 09:30:21] The server is fired up and ready to roll!\n"
    warning = "[2026-02-11 09:30:20] WARNING: cannot read the topology of the GPUs, error 3, trying again\n"
    error = "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n"
    logs = [
        training.Labelled("logs", name, "healthy", (HEAD + text + ready).encode())
        for name, text in (("warned", warning), ("failed", error + warning))
    ]
    found = [(made.family, made.label, made.weight) for made in training.samples(logs)]
    assert ("warned", "incomplete", 0.5) in found
    assert not [made for made in found if made[:2] == ("failed", "incomplete")]


def test_what_a_launch_goes_on_after(rules: RuleSet) -> None:
    """Words of a failure that no rule knows make a silent log a failed one where it ends with them, and only there."""
    alarm = "scheduler: the memory limit of the container was exceeded, the server has to give up\n"
    goes_on = "[2026-02-11 09:30:21] Load weight begin. avail mem=77.90 GB\n"
    ends, lives = (pipeline.analyze((HEAD + log).encode(), rules=rules) for log in (alarm, alarm + goes_on))
    assert (ends.verdict.outcome, lives.verdict.outcome) == ("failed", "incomplete")
    assert lives.verdict.confidence < accuracy.SURE


def test_the_lexicon_names_what_there_is(rules: RuleSet) -> None:
    """Labels and groups that the lexicon refers to exist."""
    data = training.lexicon()
    groups = set(data["groups"])
    alarming = (*data["alarming"], *data["alarming_when_silent"], *data["alarming_when_ready"])
    assert {name for item in alarming for name in ([item] if isinstance(item, str) else item)} <= groups
    assert set(data["needs"]) <= set(rules.labels)
    assert {name for needed in data["needs"].values() for name in needed} <= groups | {"odd"}


@pytest.mark.parametrize("name", [path.parent.name for path in sorted((ROOT / "corpus/foreign").glob("*/case.yaml"))])
def test_other_programs_get_no_label(name: str, rules: RuleSet) -> None:
    """The log of another program, and an empty one, never gets the label of a failure."""
    report = pipeline.analyze(ROOT / "corpus/foreign" / name / "run.log", rules=rules)
    assert report.label in ("unknown", "incomplete")


def test_empty_log(rules: RuleSet) -> None:
    """Nothing is guessed of nothing."""
    report = pipeline.analyze(b"", rules=rules)
    assert (report.label, report.verdict.decided_by) == ("incomplete", "none")
    measured = pipeline.analyze(b"", rules=rules, options=pipeline.Options(deciders=("guess",)))
    assert measured.label == "incomplete"


def test_same_failure_same_fingerprint(rules: RuleSet) -> None:
    """Numbers, paths, ranks and lines of source do not change the fingerprint; another failure does."""
    one, two = (
        pipeline.analyze(log, rules=rules)
        for log in (_failure(), _failure(rank=3, site="/home/me/env/python3.12", line=88, size=23.25))
    )
    other = pipeline.analyze((HEAD + "OSError: [Errno 98] Address already in use\n").encode(), rules=rules)
    assert one.fingerprint
    assert one.fingerprint == two.fingerprint
    assert other.fingerprint not in (None, one.fingerprint)


def test_every_failed_log_has_a_fingerprint(rules: RuleSet) -> None:
    """Of all logs of the recorded launches those that failed have one, and the others none."""
    looked_at = 0
    for path in sorted((ROOT / "corpus/recorded").glob("*/run.log")):
        report = pipeline.analyze(path, rules=rules)
        assert (report.fingerprint is not None) == (report.verdict.outcome in ("failed", "degenerate"))
        looked_at += 1
    assert looked_at >= 29


def test_bare_exceptions_differ_by_their_frame(rules: RuleSet) -> None:
    """A message that says nothing is told apart by the function that raised it."""
    bare = HEAD + POST + "AssertionError\n"
    one = pipeline.analyze(bare.format(rank=0, site="/a", line=1).encode(), rules=rules)
    two = pipeline.analyze(bare.replace("process_weights", "other_weights").format(rank=0, site="/a", line=1).encode(),
                           rules=rules)  # fmt: skip
    assert one.fingerprint != two.fingerprint


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("no /opt/venv/lib/libcudart.so.13 for GPU 3", "no <path> libcudart.so.# for GPU #"),
        ("[TP3] at 0x7f12ab in 12.5 s", "[TP#] at <hex> in # s"),
        ("10.0.0.7:30000 refused, see https://example.org/x?y=1", "<address> refused, see <url>"),
        ("built for sm_100a, got SM 120", "built for sm100, got sm120"),
        ("c++ -I/usr/include/torch -L/opt/lib/x -o /tmp/build/a.so", "c++ -I<path> -L<path> -o <path> a.so"),
        ("sh: 1: /usr/local/cuda/bin/nvcc: not found", "sh: #: <path> nvcc: not found"),
    ],
)
def test_masking(text: str, masked: str) -> None:
    """What differs between two runs is masked; architectures and kinds of files stay."""
    assert masking.shape(text) == masked


def test_fingerprint_of_text_is_stable() -> None:
    """A fingerprint means the same in every release: it is stored by others."""
    assert fingerprint.of_text("ValueError: #") == "d19d1cddda554ac9"


def test_answers_that_are_odd() -> None:
    """Garbage among answers is seen by its form; a rule of dashes or a progress bar is none."""
    assert masking.oddities("answer: !!!!!!!!!!!!!!!!") == ["letters"]
    assert masking.oddities("the the the the the the") == ["words"]
    assert masking.oddities("Accuracy: 0.006") == ["useless"]
    assert masking.oddities(r"\u0e01 the \u0634 you \u4f60") == ["alphabets"]
    assert masking.oddities("-------------------- 100%|##########| 8/8 Accuracy: 0.942") == []


def test_a_weights_file_that_is_none(tmp_path: Path, run: Any) -> None:
    """What cannot be read as weights is refused with its name and what makes one."""
    broken = tmp_path / "weights.json"
    for content in ("", "[]", '{"format": "other"}', '{"format": "logtriage/weights/v1", "card": {}}'):
        broken.write_text(content)
        with pytest.raises(InputError, match="logtriage train --output"):
            predict.load(str(broken))
    log = tmp_path / "run.log"
    log.write_bytes(_failure())
    done = run("analyze", str(log), "--weights", str(broken))
    assert done.returncode == 2
    assert "weights.json: is no weights file" in done.stderr
    assert run("analyze", str(log), "--weights", str(tmp_path / "nowhere.json")).returncode == 2


def test_the_classifier_needs_no_other_library(tmp_path: Path) -> None:
    """A verdict by the classifier imports neither numpy nor scikit-learn; one by a rule does not even load it."""
    log = tmp_path / "run.log"
    log.write_bytes(_failure())
    code = (
        "import json, sys\nfrom logtriage.cli.main import main\n"
        "try:\n    main(['analyze', sys.argv[1], '--format', 'json'])\n"
        "except SystemExit:\n    print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    imported = {}
    for path in (str(log), str(ROOT / "corpus/recorded/kv-fp4/run.log")):
        done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True, cwd=ROOT)
        decided = json.loads(done.stdout)["verdict"]["decided_by"]
        imported[decided] = json.loads(done.stderr.splitlines()[-1])
    assert "logtriage.classifier.predict" in imported["classifier"]
    assert not {"numpy", "sklearn", "scipy", "yaml", "pydantic"} & set(imported["classifier"])
    assert "logtriage.classifier.predict" not in imported["rule"]


def test_train_and_use(tmp_path: Path, run: Any) -> None:
    """Whoever has logs with labels trains with them, and the result is used; the test half is left out."""
    pytest.importorskip("sklearn")
    causes = {
        "port-in-use": "OSError: the frobnicator seat {} is taken by somebody",
        "host-resources": "OSError: the grommet drawer {} is full to the brim",
        "unknown": "RuntimeError: something odd happened {}",
    }
    for label, cause in causes.items():
        for number in range(8):
            folder = tmp_path / "logs" / f"{label}-{number}"
            folder.mkdir(parents=True)
            (folder / "run.log").write_text(HEAD + cause.format(number) + "\n")
            split = "test" if number == 7 else "train"
            (folder / "case.yaml").write_text(yaml.safe_dump({"label": label, "split": split, "family": folder.name}))
    done = run("train", "--corpus", "logs", "--only", "--output", "own.json")
    assert done.returncode == 0, done.stderr
    assert "3 labels from 21 logs of 21 families" in done.stdout
    new = tmp_path / "run.log"
    new.write_text(HEAD + "OSError: the grommet drawer 99 is full to the brim\n")
    done = run("analyze", str(new), "--weights", "own.json", "--format", "json")
    verdict = json.loads(done.stdout)["verdict"]
    assert "host-resources" in [verdict["label"], *(item["label"] for item in verdict["candidates"])]
    done = run("evaluate", "--corpus", "logs", "--split", "test", "--rules-off", "--weights", "own.json",
               "--format", "json", "--picture", "confusion.png")  # fmt: skip
    figures = json.loads(done.stdout)
    assert figures["logs"] == 3
    assert set(figures["labels"]) == set(causes)
    assert (tmp_path / "confusion.png").read_bytes().startswith(b"\x89PNG")


def test_figures_of_nothing_are_not_told(tmp_path: Path, run: Any) -> None:
    """Of two labels with one family each none can be set aside: there is no share that was answered."""
    pytest.importorskip("sklearn")
    for label, cause in (("port-in-use", "OSError: the seat is taken"), ("host-resources", "OSError: it is full")):
        for number in range(2):
            folder = tmp_path / "logs" / f"{label}-{number}"
            folder.mkdir(parents=True)
            (folder / "run.log").write_text(HEAD + cause + "\n")
            (folder / "case.yaml").write_text(yaml.safe_dump({"label": label, "split": "train", "family": label}))
    done = run("train", "--corpus", "logs", "--only", "--output", "own.json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == (
        "families that it had not seen: none, there are too few logs to set some aside"
    )


def test_nothing_to_train_with(tmp_path: Path, run: Any) -> None:
    """A folder without logs, and one with an unknown label, are refused with their names."""
    pytest.importorskip("sklearn")
    (tmp_path / "logs").mkdir()
    done = run("train", "--corpus", "logs", "--only")
    assert done.returncode == 2
    assert "logs: holds no log to train with" in done.stderr
    folder = tmp_path / "logs" / "one"
    folder.mkdir()
    (folder / "run.log").write_text("x\n")
    (folder / "case.yaml").write_text("label: no-such-label\nsplit: train\n")
    done = run("train", "--corpus", "logs", "--only")
    assert done.returncode == 2
    assert "'no-such-label' is no label" in done.stderr


def test_figures_of_accuracy() -> None:
    """Precision, recall, F1, calibration and coverage are those of a case worked out by hand."""
    rows = [("a", "a", 0.9), ("a", "b", 0.8), ("b", "b", 0.9), ("b", "unknown", 0.2)]
    given = [
        accuracy.Given(f"log-{n}", f"family-{n}", wanted, label, sure, "rule", wanted == label, None)
        for n, (wanted, label, sure) in enumerate(rows)
    ]
    found = accuracy.figures(given, ["a"])
    assert found["labels"]["a"] == {"logs": 2, "precision": 1.0, "recall": 0.5, "f1": 0.6667}
    assert found["labels"]["b"] == {"logs": 2, "precision": 0.5, "recall": 0.5, "f1": 0.5}
    assert (found["right"], found["wrong"], found["unknown"], found["wrong_and_sure"]) == (0.5, 0.25, 0.25, 1)
    assert found["calibration_error"] == pytest.approx((0.2 + 0.8 + 0.2) / 4)
    assert found["coverage_at_precision"]["0.95"] == 0.5
