"""Filing a log in a corpus and checking one: the real command on real files, and what it must never let through."""

from __future__ import annotations

import base64
import gzip
import hashlib
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from logtriage import pipeline
from logtriage.errors import InputError
from logtriage.redact import Redactor
from logtriage.workbench import corpus_add, corpus_check, duplicates, variants
from logtriage.workbench.duplicates import Document
from logtriage.workbench.scrub import Scrubber
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from logtriage.engine.ruleset import RuleSet

TOKEN = "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ01234567"
OOM = "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."
LOG = f"""\
maria.k@dgx-prod-7:~$ HF_TOKEN={TOKEN} python3 -m sglang.launch_server --model-path /home/maria.k/models/big
[2026-01-12 10:00:00] server_args=ServerArgs(model_path='/home/maria.k/models/big', tp_size=1)
[2026-01-12 10:00:20] Load weight begin. avail mem=78.00 GB
[2026-01-12 10:01:00] Load weight end. type=LlamaForCausalLM, avail mem=1.20 GB
[2026-01-12 10:01:01] Scheduler hit an exception: Traceback (most recent call last):
  File "/home/maria.k/venv/lib/python3.12/site-packages/sglang/srt/model_executor/model_runner.py", line 9, in f
{OOM}

[2026-01-12 10:01:02] Received sigquit from a child process. It usually means the child failed.
dgx-prod-7:811:811 [0] NCCL INFO Bootstrap : Using eth0:10.1.2.3<0>
"""


def case(folder: Path) -> dict[str, Any]:
    return dict(yaml.safe_load((folder / "case.yaml").read_text(encoding="utf-8")))


def test_the_whole_corpus_is_in_order(rules: RuleSet) -> None:
    """No case is incomplete or wrong, none holds a secret, and no log is nearly the same in both splits."""
    checked = corpus_check.check(ROOT / "corpus", rules)
    assert checked.faults == []
    assert checked.cases >= 500
    assert checked.families >= 400


def test_every_label_has_families_enough(rules: RuleSet) -> None:
    """Six for each label, ten for those that the product exists for, some of them for tests."""
    from logtriage.workbench import templates

    families = templates.load(ROOT / "corpus" / "templates").families
    assert set(families) == set(rules.labels)
    for label, members in families.items():
        least = 10 if rules.labels[label]["family"] == "mission" else 6
        assert len(members) >= least, label
        assert 0.2 <= sum(family.split == "test" for family in members) / len(members) <= 0.6, label


def test_add_takes_out_names_and_secrets(run: Any, tmp_path: Path) -> None:
    """User, host, home folder and token are gone, the verdict is the same, and the case is complete."""
    (tmp_path / "run.log").write_text(LOG, encoding="utf-8")
    done = run("corpus", "add", "run.log", "--label", "oom-kv-cache")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "corpus" / "added" / "oom-kv-cache"
    text = (folder / "run.log").read_text(encoding="utf-8")
    for gone in ("maria", "dgx-prod", TOKEN):
        assert gone not in text
    assert "user-1@host-1:~$" in text
    assert text.count("/home/user-1/") == 3
    assert "host-1:811:811 [0] NCCL" in text
    assert case(folder)["root_line"] == OOM
    checked = run("corpus", "check", "corpus")
    assert checked.returncode == 0, checked.stdout
    assert "1 cases" in checked.stdout


def test_add_cuts_a_long_log_down_and_keeps_the_verdict(rules: RuleSet, tmp_path: Path) -> None:
    """Of thousands of lines a few hundred are left, with the same root line."""
    begin, end = LOG.split("[2026-01-12 10:01:00]")
    noise = "".join(f"[2026-01-12 10:00:{20 + n % 30}] reading tensor {n}\n" for n in range(4000))
    (tmp_path / "long.log").write_text(f"{begin}{noise}[2026-01-12 10:01:00]{end}", encoding="utf-8")
    added = corpus_add.add(str(tmp_path / "long.log"), tmp_path, corpus_add.Wanted("oom-kv-cache"), rules)
    assert added.lines > 4000
    assert added.kept < 200
    report = pipeline.analyze(added.folder / "run.log", rules=rules)
    assert report.label == "oom-kv-cache"
    assert report.root is not None
    assert report.lines[report.root.line].text == case(added.folder)["root_line"] == OOM


def test_add_refuses_to_trim_where_that_moves_the_verdict(rules: RuleSet, tmp_path: Path) -> None:
    """The GPU, named in the middle of a long log, decides what the message means: no line is cut off silently."""
    begin, _ = LOG.split("[2026-01-12 10:00:20]")
    noise = "".join(f"[2026-01-12 10:00:30] reading tensor {n}\n" for n in range(1000))
    gpu = "GPU 0: NVIDIA H200 (UUID: GPU-1b2c3d4e-0000-1111-2222-333344445555)\n"
    last = "RuntimeError: No supported CUDA architectures found for major versions [10, 12].\n"
    (tmp_path / "run.log").write_text(begin + noise + gpu + noise + last, encoding="utf-8")
    wanted = corpus_add.Wanted("arch-unsupported-kernel")
    with pytest.raises(InputError, match=r"moves the verdict from arch-unsupported-kernel to .*--whole"):
        corpus_add.add(str(tmp_path / "run.log"), tmp_path, wanted, rules)
    assert not (tmp_path / "added").exists()
    added = corpus_add.add(str(tmp_path / "run.log"), tmp_path, wanted._replace(whole=True), rules)
    assert added.kept == added.lines > 2000


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--label", "no-such"], "no label 'no-such'; `logtriage rules list` shows them"),
        (["--label", "oom-host"], "the verdict is oom-kv-cache, on line 7; say which line shows oom-host, such as"),
        (["--label", "oom-host", "--root-line", "99"], "has no line 99; it has 10"),
        (["--label", "oom-host", "--root-line", "8"], "line 8 is blank; name a line that shows oom-host"),
        (["--label", "oom-kv-cache", "--name", "../up"], "must be letters, digits and hyphens"),
    ],
)
def test_add_says_what_is_wrong(run: Any, tmp_path: Path, words: list[str], told: str) -> None:
    """A label, a line or a name that cannot be is told with what would be valid, and nothing is written."""
    (tmp_path / "run.log").write_text(LOG, encoding="utf-8")
    done = run("corpus", "add", "run.log", *words)
    assert done.returncode == 2
    assert told in " ".join(done.stderr.split())
    assert not (tmp_path / "corpus").exists()


def test_add_never_overwrites(run: Any, tmp_path: Path) -> None:
    """A second log of the same name is refused, and the first one stays as it is."""
    (tmp_path / "run.log").write_text(LOG, encoding="utf-8")
    assert run("corpus", "add", "run.log", "--label", "oom-kv-cache").returncode == 0
    again = run("corpus", "add", "run.log", "--label", "oom-kv-cache", "--note", "again")
    assert again.returncode == 2
    assert "is there already" in again.stderr
    assert case(tmp_path / "corpus" / "added" / "oom-kv-cache")["note"] == ""


def test_a_label_against_the_verdict_with_its_own_root_line(rules: RuleSet, tmp_path: Path) -> None:
    """What no rule knows can be filed: the line that is named becomes the root line, without its secrets."""
    text = "[2026-01-12 10:00:00] server_args=ServerArgs(model_path='m')\nthe moon is wrong for /home/maria.k today\n"
    (tmp_path / "odd.log").write_text(text, encoding="utf-8")
    added = corpus_add.add(str(tmp_path / "odd.log"), tmp_path, corpus_add.Wanted("host-resources", 2), rules)
    assert added.folder.name == "host-resources-odd"
    assert case(added.folder)["root_line"] == "the moon is wrong for /home/user-1 today"


def test_add_takes_out_a_key_over_several_lines(rules: RuleSet, tmp_path: Path) -> None:
    """The body of a private key, which is told by the line above it, is gone."""
    body = [base64.b64encode(hashlib.sha384(bytes([n])).digest()).decode() for n in range(3)]
    key = "\n".join(["-----BEGIN PRIVATE KEY-----", *body, "-----END PRIVATE KEY-----"])
    (tmp_path / "run.log").write_text(f"{LOG}{key}\n", encoding="utf-8")
    added = corpus_add.add(str(tmp_path / "run.log"), tmp_path, corpus_add.Wanted("oom-kv-cache"), rules)
    text = (added.folder / "run.log").read_text(encoding="utf-8")
    assert not [part for part in body if part in text]


def test_add_reads_compressed_logs_and_standard_input(run: Any, tmp_path: Path) -> None:
    """What analyze reads can be filed, too."""
    (tmp_path / "run.log.gz").write_bytes(gzip.compress(LOG.encode()))
    done = run("corpus", "add", "run.log.gz", "--label", "oom-kv-cache", "--name", "one")
    assert done.returncode == 0, done.stderr
    done = run("corpus", "add", "-", "--label", "oom-kv-cache", "--name", "two", input=LOG)
    assert done.returncode == 0, done.stderr
    one, two = ((tmp_path / "corpus" / "added" / name / "run.log").read_text("utf-8") for name in ("one", "two"))
    assert one == two


def test_scrubbing_twice_changes_nothing_more(rules: RuleSet) -> None:
    """What was taken out stays out, versions are no addresses, and private addresses may stay."""
    text = LOG + "cudnn 9.10.2.21 and http://52.1.2.3:8000/x and tcp to 10.0.0.7:29500 by eve@corp.example\n"
    once = Scrubber(Redactor(rules.secrets)).text(text)
    assert Scrubber(Redactor(rules.secrets)).text(once) == once
    assert "9.10.2.21" in once
    assert "10.0.0.7:29500" in once
    assert "52.1.2.3" not in once
    assert "eve@corp.example" not in once


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A corpus of two cases in order."""
    for name in ("xid-79-in-0-5-18", "disk-full-then-no-weights"):
        shutil.copytree(ROOT / "corpus" / "written" / name, tmp_path / "written" / name)
    return tmp_path


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"label": "no-such"}, "no label 'no-such'"),
        ({"split": "dev"}, "split 'dev' must be one of: train, test"),
        ({"provenance": None}, "lacks 'provenance'"),
        ({"acceptable": "unknown"}, "acceptable must be a list"),
        ({"root_line": "nobody printed this"}, "root_line is no line of run.log"),
    ],
)
def test_check_finds_what_is_wrong_with_a_case(small: Path, rules: RuleSet, change: dict[str, Any], told: str) -> None:
    """Each fault is told with the case that has it; without the change there is none."""
    assert corpus_check.check(small, rules).faults == []
    path = small / "written" / "disk-full-then-no-weights" / "case.yaml"
    data = {key: value for key, value in {**case(path.parent), **change}.items() if value is not None}
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    faults = corpus_check.check(small, rules).faults
    assert len(faults) == 1
    assert faults[0].startswith("written/disk-full-then-no-weights: ")
    assert told in faults[0]


def test_check_finds_a_secret(small: Path, rules: RuleSet) -> None:
    """A token in a log is a fault, and is not printed."""
    with (small / "written" / "disk-full-then-no-weights" / "run.log").open("a") as log:
        log.write(f"HF_TOKEN={TOKEN}\n")
    faults = corpus_check.check(small, rules).faults
    assert len(faults) == 1
    assert "run.log holds a secret" in faults[0]
    assert TOKEN not in faults[0]


def test_check_finds_a_family_on_both_sides(small: Path, rules: RuleSet) -> None:
    """One family in train and in test is a leak, even where the logs differ."""
    for split, folder in zip(("train", "test"), sorted((small / "written").iterdir()), strict=True):
        data = {**case(folder), "family": "one", "split": split}
        (folder / "case.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
    assert [fault for fault in corpus_check.check(small, rules).faults if "family 'one' is in" in fault]


def test_check_finds_nearly_the_same_log_on_the_other_side(small: Path, rules: RuleSet) -> None:
    """A copy with other numbers, paths and times, put into the other split, is a leak."""
    source = small / "written" / "disk-full-then-no-weights"
    copy = small / "written" / "another"
    shutil.copytree(source, copy)
    text = (source / "run.log").read_text(encoding="utf-8")
    (copy / "run.log").write_text(text.replace("2026-", "2025-").replace("/", "/x"), encoding="utf-8")
    data = case(source)
    data.update(split="train" if data["split"] == "test" else "test", root_line="")
    (copy / "case.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
    assert [fault for fault in corpus_check.check(small, rules).faults if "nearly the same" in fault]


def test_other_words_are_no_duplicate() -> None:
    """Logs that share only what logs of three labels say are not alike; the same failure with other numbers is."""
    same = "\n".join(["Load weight begin."] * 1 + [f"step {word} of the launch is done" for word in "abcdefgh"])
    documents = [Document(f"common-{n}", f"label-{n}", "train", same) for n in range(3)]
    documents += [
        Document("train", "oom-host", "train", f"{same}\nMemoryError: no room for 12 tensors on this machine at all"),
        Document("twin", "oom-host", "test", f"{same}\nMemoryError: no room for 99 tensors on this machine at all"),
        Document("other", "oom-host", "test", f"{same}\nthe kernel ended the process for its memory, as it says"),
    ]
    assert [(pair.train, pair.test) for pair in duplicates.pairs(documents)] == [("train", "twin")]


def test_the_wording_of_a_test_is_found_in_an_example() -> None:
    """With other numbers it is the same wording; what training families say themselves is none of the tests' own."""
    templates = ROOT / "corpus" / "templates"
    training = [text for _, text in variants.wordings(templates, "train")]
    tests = [text for _, text in variants.wordings(templates, "test")]
    own = duplicates.Wordings(tests, training)
    assert 150 < len(own) < len(tests)
    assert own.are_in(
        "[2026-01-01 10:00:00] RuntimeError: fp8 blockscale gemm only supported on cuda version 12.9 or higher"
    )
    assert not own.are_in("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total")
    assert not own.are_in("RuntimeError: No supported CUDA architectures found for major versions [10].")


def test_generate_writes_logs_that_say_so(run: Any, tmp_path: Path) -> None:
    """The written cases are complete, say `generated`, and pass the check."""
    done = run("corpus", "generate", "out", "--templates", str(ROOT / "corpus" / "templates"), "--count", "30")
    assert done.returncode == 0, done.stderr
    folders = sorted((tmp_path / "out").iterdir())
    assert len(folders) == 30
    assert {case(folder)["provenance"] for folder in folders} == {"generated"}
    assert run("corpus", "check", "out").returncode == 0
