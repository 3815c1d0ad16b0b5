"""Each kind of secret is found wherever it stands, and nothing else is touched."""

from __future__ import annotations

import json
import re
import re._parser as regex_parser  # type: ignore[import-not-found]
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage.records import Line
from logtriage.redact import Redactor
from logtriage.report.json_v1 import redact_shell

KINDS: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[1] / "rules" / "secrets.yaml").read_text(encoding="utf-8")
)["kinds"]
REDACTOR = Redactor(KINDS)
EXAMPLES = [(kind["kind"], example) for kind in KINDS for example in kind["example"]]
COUNTER_EXAMPLES = [(kind["kind"], text) for kind in KINDS for text in kind.get("not", [])]
EXAMPLE_IDS = [f"{kind}-{index}" for index, (kind, _) in enumerate(EXAMPLES)]

SERVER_ARGS = (
    "[2026-11-29 12:04:35] server_args=ServerArgs(model_path='/models/dense', tokenizer_path='/models/dense', "
    "tokenizer_mode='auto', tokenizer_backend='huggingface', tokenizer_worker_num=1, detokenizer_worker_num=1, "
    "skip_tokenizer_init=False, model_loader_extra_config='{}', json_model_override_args='{}', "
    "max_total_tokens=20000, chunked_prefill_size=8192, max_prefill_tokens=16384, dist_init_addr=None, "
    "random_seed=725133776, host='127.0.0.1', port=31000, fastapi_root_path='', ssl_keyfile=None, "
    "ssl_certfile=None, ssl_keyfile_password=None, enable_ssl_refresh=False, api_key=None, admin_api_key=None, "
    "served_model_name='/models/dense', hf_chat_template_name=None, file_storage_path='sglang_storage', "
    "tokenizer_metrics_custom_labels_header='x-custom-labels', bucket_time_to_first_token=None, "
    "prompt_tokens_buckets=None, otlp_traces_endpoint='localhost:4317', speculative_num_draft_tokens=None, "
    "cuda_graph_config=CudaGraphConfig(decode=PhaseConfig(backend='full', max_bs=256, bs=[1, 2, 4, 8], "
    "tc_compiler='eager', full_prefill_max_req=None)), speculative_token_map=None, "
    "decrypted_config_file=None, num_reserved_decode_tokens=512, uvicorn_access_log_exclude_prefixes=[], "
    "tbo_token_distribution_threshold=0.48, encoder_urls=['http://10.0.0.1:30001'], download_dir=None)"
)

HARMLESS_LINES = [
    SERVER_ARGS,
    "[2026-11-29 12:04:35] server_args={'model_path': '/m', 'api_key': None, 'admin_api_key': None, 'tp_size': 8}",
    "[2026-11-29 12:05:24] Prefill batch, #new-seq: 1, #new-token: 81, #cached-token: 0, token usage: 0.00",
    "max_total_num_tokens=20000, chunked_prefill_size=8192, max_prefill_tokens=16384, context_len=32768",
    "Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1, bs=[1, 2, 4, 8]",
    "Using fallback token IDs for yes/no (9693/2152)",
    "+ HF_TOKEN= python3 -m sglang.launch_server --max-total-tokens 20000 --tokenizer-path /models/dense",
    "usage: launch_server.py [-h] [--api-key API_KEY] [--admin-api-key ADMIN_API_KEY] [--ssl-keyfile F]",
    "  --api-key API_KEY     Set API key of the server. It is also used in the OpenAI API",
    '{"eos_token": "</s>", "bos_token": "<s>", "special_token_ids": [1, 2], "token": "hello"}',
    '  File "/sgl/srt/utils/hf_transformers/tokenizer.py", line 4, in get_tokenizer',
    "NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>; tcp://10.0.0.1:20000 rank@0",
    "add_api_key_middleware(app, server_args.api_key, server_args.admin_api_key)",
]

PLACES = {
    "line": "[2026-11-29 12:04:35 TP0] load: {} and more",
    "url": "GET http://127.0.0.1:30000/v1/models?next={} HTTP/1.1",
    "command": "+ python3 -m sglang.launch_server --model-path /m {} --tp-size 8",
}


def secret_of(example: str) -> list[str]:
    """The words that redaction takes out of an example."""
    result = REDACTOR.text(example)
    start = common_start(example, result)
    end = common_start(example[start:][::-1], result[start:][::-1])
    secret = example[start : len(example) - end]
    return [word for word in re.split(r"[\s\"']+|\\n", secret) if word and not word.startswith("-----")]


def common_start(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def assert_gone(text: str, example: str) -> None:
    words = secret_of(example)
    assert words
    for word in words:
        assert word not in text


def test_the_data_has_examples_of_every_kind() -> None:
    assert len(KINDS) >= 40
    for kind in KINDS:
        assert set(kind) <= {"kind", "anchor", "shape", "regex", "keep", "keep_after", "example", "not"}
        assert kind["example"]
        groups = re.compile(kind["regex"]).groupindex
        assert {kind.get("keep"), kind.get("keep_after")} - {None} <= set(groups)


@pytest.mark.parametrize(("kind", "example"), EXAMPLES, ids=EXAMPLE_IDS)
def test_an_example_is_redacted_by_its_own_kind(kind: str, example: str) -> None:
    own = Redactor([entry for entry in KINDS if entry["kind"] == kind])
    assert f"<redacted:{kind}>" in own.text(example)
    assert "<redacted:" in REDACTOR.text(example)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("kind", "example"), EXAMPLES, ids=EXAMPLE_IDS)
def test_an_example_is_redacted_in_text(kind: str, example: str, place: str) -> None:
    result = REDACTOR.text(PLACES[place].format(example))
    assert_gone(result, example)
    assert REDACTOR.text(result) == result
    assert result.startswith(PLACES[place].partition("{")[0])


@pytest.mark.parametrize(("kind", "example"), EXAMPLES, ids=EXAMPLE_IDS)
def test_an_example_is_redacted_in_a_server_args_line(kind: str, example: str) -> None:
    line = SERVER_ARGS.replace("served_model_name='/models/dense'", f"served_model_name={example!r}")
    result = REDACTOR.text(line)
    assert_gone(result, example)
    assert result.startswith(line.partition("served_model_name")[0])


@pytest.mark.parametrize(("kind", "example"), EXAMPLES, ids=EXAMPLE_IDS)
def test_an_example_is_redacted_in_json_that_stays_json(kind: str, example: str) -> None:
    result = REDACTOR.text(json.dumps({"message": f"load: {example}", "rank": 0}))
    assert_gone(result, example)
    assert json.loads(result)["rank"] == 0


@pytest.mark.parametrize(("kind", "example"), EXAMPLES, ids=EXAMPLE_IDS)
def test_an_example_is_redacted_in_data(kind: str, example: str) -> None:
    data = {"evidence": [{"line": 1, "text": example}], "more": (example, None, 1.5, True)}
    result = REDACTOR.value(data)
    assert isinstance(result, dict)
    assert_gone(json.dumps(result), example)
    assert result["evidence"][0]["line"] == 1
    assert result["more"][1:] == (None, 1.5, True)
    assert REDACTOR.value(result) == result


@pytest.mark.parametrize(("kind", "text"), COUNTER_EXAMPLES)
def test_a_counter_example_stays(kind: str, text: str) -> None:
    assert REDACTOR.text(text) == text


@pytest.mark.parametrize("line", HARMLESS_LINES)
def test_a_line_without_secrets_stays(line: str) -> None:
    assert REDACTOR.text(line) == line
    assert REDACTOR.value({"text": line}) == {"text": line}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("api_key='letmein', tp_size=8", "api_key='<redacted:named-value>', tp_size=8"),
        ("'api_key': 'it\\'s me', 'x': 1", "'api_key': '<redacted:named-value>', 'x': 1"),
        ('{\\"api_key\\": \\"a b\\", \\"x\\": 1}', '{\\"api_key\\": \\"<redacted:named-value>\\", \\"x\\": 1}'),
        ("--admin-api-key=letmein --tp 8", "--admin-api-key=<redacted:flag-value> --tp 8"),
        ('--api-key "two words" --tp 8', '--api-key "<redacted:flag-value>" --tp 8'),
        ("Authorization: Bearer abc123", "Authorization: Bearer <redacted:authorization>"),
        ("https://user:pw@host/p", "https://user:<redacted:url-password>@host/p"),
        ("HF_TOKEN=hf_" + "a1B2" * 8, "HF_TOKEN=<redacted:hf-token>"),
        ("DB_PASSWORD=pre-hf_" + "a1B2" * 8, "DB_PASSWORD=<redacted:env-value>"),
        ("HF_TOKEN=opaque; python3 -m x", "HF_TOKEN=<redacted:env-value>; python3 -m x"),
    ],
)
def test_name_scheme_and_quotes_stay(text: str, expected: str) -> None:
    assert REDACTOR.text(text) == expected
    assert REDACTOR.text(expected) == expected


def test_a_regex_is_compiled_only_when_its_anchor_occurs() -> None:
    redactor = Redactor([{"kind": "broken", "anchor": "Xyz", "regex": "("}])
    assert redactor.text("nothing here") == "nothing here"
    with pytest.raises(re.error):
        redactor.text("has xYZ in it")


def test_value_knows_secrets_by_key_and_by_flag() -> None:
    data = {
        "command": ["python3", "--api-key", "plain", "--tp-size", "8", "--api-key", "--tp"],
        "flags": {"--api-key": "plain", "--tp-size": "8", "--tokenizer-path": "/m"},
        "resolved": {"api_key": "two words", "admin_api_key": "None", "ssl_keyfile_password": ""},
        "advice": ["drop --api-key"],
    }
    assert REDACTOR.value(data) == {
        "command": ["python3", "--api-key", "<redacted:flag-value>", "--tp-size", "8", "--api-key", "--tp"],
        "flags": {"--api-key": "<redacted:flag-value>", "--tp-size": "8", "--tokenizer-path": "/m"},
        "resolved": {
            "api_key": "<redacted:named-value>",
            "admin_api_key": "None",
            "ssl_keyfile_password": "",
        },
        "advice": ["drop --api-key"],
    }


def test_a_private_key_is_followed_over_several_strings() -> None:
    body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
    lines = [body, "-----BEGIN PRIVATE KEY-----", f"[12:00] {body}", "c2hvcnQ=", "-----END PRIVATE KEY-----", body]
    result = REDACTOR.value([{"text": line} for line in lines])
    assert isinstance(result, list)
    texts = [item["text"] for item in result]
    assert texts[0] == body
    assert texts[2] == "[12:00] <redacted:private-key>"
    assert texts[3] == "<redacted:private-key>"
    assert texts[5] == body


@pytest.mark.parametrize(
    ("argv", "expected", "names"),
    [
        (["x", "--api-key", "S"], ["x", "--api-key", "$API_KEY"], {"API_KEY": "--api-key"}),
        (["--admin-api-key=S"], ["--admin-api-key=$ADMIN_API_KEY"], {"ADMIN_API_KEY": "--admin-api-key"}),
        (["-e", "HF_TOKEN=S"], ["-e", "HF_TOKEN=$HF_TOKEN"], {"HF_TOKEN": "HF_TOKEN"}),
        (["--env=HF_TOKEN=S"], ["--env=HF_TOKEN=$HF_TOKEN"], {"HF_TOKEN": "HF_TOKEN"}),
        (["HF_TOKEN=hf_" + "a" * 30, "x"], ["HF_TOKEN=$HF_TOKEN", "x"], {"HF_TOKEN": "HF_TOKEN"}),
        (["--hf-token", "S"], ["--hf-token", "$HF_TOKEN"], {"HF_TOKEN": "--hf-token"}),
        (["--api-key", "S", "--api-key", "S"], ["--api-key", "$API_KEY"] * 2, {"API_KEY": "--api-key"}),
        (
            ["--api-key", "S", "--api-key", "T"],
            ["--api-key", "$API_KEY", "--api-key", "$API_KEY_2"],
            {"API_KEY": "--api-key", "API_KEY_2": "--api-key"},
        ),
        (
            ["--proxy", "http://u:pw@h:1"],
            ["--proxy", "http://u:$URL_PASSWORD@h:1"],
            {"URL_PASSWORD": "url-password"},
        ),
        (
            ["bash", "-c", "python3 --api-key S --tp 8"],
            ["bash", "-c", "python3 --api-key $API_KEY --tp 8"],
            {"API_KEY": "--api-key"},
        ),
        (["--api-key", "$KEY"], ["--api-key", "$KEY"], {}),
        (["--api-key", "--tp", "8"], ["--api-key", "--tp", "8"], {}),
        (["--max-total-tokens", "20000"], ["--max-total-tokens", "20000"], {}),
        (["--tokenizer-path", "/m", "HF_TOKEN="], ["--tokenizer-path", "/m", "HF_TOKEN="], {}),
    ],
)
def test_argv_names_variables(argv: list[str], expected: list[str], names: dict[str, str]) -> None:
    assert REDACTOR.argv(argv) == (expected, names)
    assert REDACTOR.argv(expected) == (expected, {})
    assert REDACTOR.value(expected) == expected


FRAGMENTS = [example for _, example in EXAMPLES] + [text for _, text in COUNTER_EXAMPLES]
GLUE = ["", " ", ", ", "\n", "=", ": ", "'", '"', "\\n", "--api-key ", "HF_TOKEN=", "Bearer ", "://a:", "@", "&"]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS + GLUE), max_size=8).map("".join))
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = REDACTOR.text(text)
    assert REDACTOR.text(once) == once


def test_no_regex_repeats_a_repeat() -> None:
    """A repeat without limit inside another one is what makes a regex slow; possessive ones never go back."""
    for kind in KINDS:
        assert not nested_repeats(regex_parser.parse(kind["regex"]), inside=False), kind["kind"]
    assert nested_repeats(regex_parser.parse("(?:a+b?)*c"), inside=False)


def nested_repeats(parsed: Any, inside: bool) -> bool:
    for operator, argument in parsed:
        name = str(operator)
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            unlimited = argument[1] == regex_parser.MAXREPEAT
            if (unlimited and inside) or nested_repeats(argument[2], inside or unlimited):
                return True
            continue
        if name == "POSSESSIVE_REPEAT":
            continue
        parts = argument if isinstance(argument, list | tuple) else [argument]
        flat = [item for part in parts for item in (part if isinstance(part, list) else [part])]
        subpatterns = [item for item in flat if isinstance(item, regex_parser.SubPattern)]
        if any(nested_repeats(item, inside) for item in subpatterns):
            return True
    return False


HOSTILE = [
    "a" * 65536,
    "-" * 65536,
    " " * 65536,
    "eyJ" * 21845,
    "eyJaaaaa." * 7281,
    "://a:" * 13107,
    "://" + "a:" * 32766,
    "-----BEGIN PRIVATE KEY-----" * 2427,
    "-----BEGIN PRIVATE KEY-----" + "A" * 65536,
    "--api-key " * 6553,
    "--" + "a-" * 32766,
    "api_key='" * 7281,
    "api_key=" + '\\"' * 32766,
    "_TOKEN" * 10922,
    "A_TOKEN=" * 8192,
    "Authorization: " * 4369,
    "Bearer " + "a" * 65536,
    "sk-" * 21845,
    "hf_" * 21845,
    "?token=&key=" * 5461,
    "password : " * 5957,
]


@pytest.mark.parametrize("text", HOSTILE, ids=[text[:12] for text in HOSTILE])
def test_hostile_text_of_64_kib_comes_back(text: str) -> None:
    assert REDACTOR.text(text[:65536]) is not None


def test_a_secret_at_the_end_of_a_long_line_is_found() -> None:
    secret = "hf_" + "a1B2" * 8
    assert secret not in REDACTOR.text("x " * 32768 + secret)


KEY = [
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
    *(f"{n}xVtq+Kb/" * 6 + "Wq07Zk1Lp9" for n in range(7)),
]
PREFIX = "[2026-11-29 12:04:35 TP0] "


def log_of(texts: list[str], prefix: str = "", first: int = 1) -> list[Line]:
    return [Line(0, at, 0, prefix + text, start=len(prefix), row=at) for at, text in enumerate(texts, first)]


@pytest.mark.parametrize("prefix", ["", PREFIX, "node-1  | "])
@pytest.mark.parametrize("begin", ["-----BEGIN PRIVATE KEY-----", "the BEGIN line was not kept"])
@pytest.mark.parametrize("ends", [["c2hvcnRlbmQx", "-----END PRIVATE KEY-----"], []])
def test_the_body_of_a_key_is_known_by_the_lines_around_it(prefix: str, begin: str, ends: list[str]) -> None:
    """Each line of a private key's body is taken out, also where the log lacks its first or last line."""
    lines = log_of([begin, *KEY, *ends, "RuntimeError: out of memory"], prefix)
    found = REDACTOR.across(lines)
    hidden = [*KEY, *ends[:1]]
    assert found == dict.fromkeys(range(1, len(hidden) + 1), f"{prefix}<redacted:private-key>")


def test_a_log_that_begins_inside_a_key_shows_nothing_of_it() -> None:
    """The first line of a file may be a key's body, and a space at the end of its lines changes nothing."""
    assert list(REDACTOR.across(log_of([f"{line} " for line in KEY]))) == list(range(len(KEY)))


def test_no_output_shows_a_key_or_a_continued_secret(run: Any, tmp_path: Path) -> None:
    """The report, `explain` and `rules new` hide what only the lines around a line give away."""
    texts = ["x", "y", "z", "-----BEGIN PRIVATE KEY-----", *KEY, "torch.OutOfMemoryError: CUDA out of memory."]
    texts += ["- name: HF_TOKEN", "  value: Zx9letmein and more words"]
    (tmp_path / "key.log").write_text("".join(f"{PREFIX}{text}\n" for text in texts))
    calls = [("analyze", "key.log"), ("analyze", "key.log", "--format", "json"), ("explain", "key.log:12")]
    calls += [("explain", f"key.log:{len(texts)}"), ("rules", "new", "--from", "key.log:12", "--label", "oom-gpu")]
    calls += [("rules", "new", "--from", f"key.log:{len(texts)}", "--label", "oom-gpu")]
    for call in calls:
        done = run(*call)
        assert "<redacted:" in done.stdout, call
        assert not [secret for secret in [*KEY, "Zx9letmein"] if secret in done.stdout + done.stderr], call


def test_a_body_line_without_its_neighbours_is_known() -> None:
    """A body line is taken out where the lines beside it were not kept, so that nobody can tell what they were."""
    lines = [*log_of(["start"]), *log_of([KEY[0]], PREFIX, first=500), *log_of(["end"], first=900)]
    assert REDACTOR.across(lines) == {1: f"{PREFIX}<redacted:private-key>"}


@pytest.mark.parametrize(
    "texts",
    [
        ["0123456789abcdef" * 4] * 3,
        ["sha256 0123456789ABCDEF", KEY[0], "loaded"],
        ["/models/" + "Qwen3/" * 9 + "weights"] * 3,
        ["-----BEGIN CERTIFICATE-----", "loaded 4 of 8 weights", "-----END CERTIFICATE-----"],
        ["-----BEGIN PRIVATE KEY-----", "Killed", "Loading weights"],
        ["please set HF_TOKEN", "Loading weights"],
        ["KeyError: 'api_key'", "During handling of the above exception"],
        ["  --api-key API_KEY", "                        Set API key of the server"],
        ["- name: HF_TOKEN", "  valueFrom:"],
    ],
)
def test_lines_that_only_look_like_it_stay(texts: list[str]) -> None:
    """Digests, paths, a single word in base64 and ordinary lines are no key and no secret's second line."""
    assert REDACTOR.across(log_of(texts)) == {}


@pytest.mark.parametrize("prefix", ["", PREFIX])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("  --api-key \\", "  {} --tp 8"),
        ("  --hf-token=\\", "{}"),
        ("export HF_TOKEN=\\", "{}"),
        ("- name: HF_TOKEN", "  value: {}"),
        ('"name": "HF_TOKEN",', '"value": "{}"'),
        ("- --api-key", "- {}"),
        ('"--api-key",', '"{}",'),
        ('"api_key":', '"{}"'),
    ],
)
def test_a_secret_is_known_by_the_line_before(first: str, second: str, prefix: str) -> None:
    """What a name or flag at the end of one line introduces is taken out of the next line, and only that."""
    shown = REDACTOR.across(log_of(["x", first, second.format("Zx9letmein")], prefix))
    assert list(shown) == [2]
    assert re.fullmatch(re.escape(prefix + second).replace(r"\{\}", "<redacted:[a-z-]+>"), shown[2])


@pytest.mark.parametrize(
    "text",
    [
        "login(token=\"{}\")", "{{'token': '{}'}}", '{{"token": "{}"}}', "TOKEN={}", "SECRET={}", "secret={}",
        "PRIVATE_KEY={}", "CLIENT-SECRET: {}", "Incorrect API key provided: {}. You can find", "https://{}@host/",
        "https://u:ab/{}@host/p", "https://u:ab@{}@host/p", "curl -u user:{} http://x", "sshpass -p {} ssh a",
        '"auth": "{}=="', "_authToken={}", "npm_{0}{0}", "Cookie: session={}", "-e MY_KEY={}", "DB_PASS={}",
        "next=token%3D{}", "(b'authorization', b'Basic {}')", "('Authorization', 'Bearer {}')",
        "(b'x-api-key', b'{}')", "('X-API-Key', '{}')", "{{b'x-api-key': b'{}'}}",
        "{{'name': 'HF_TOKEN', 'value': '{}'}}",
    ],
)  # fmt: skip
@pytest.mark.parametrize("secret", ["Zx9qLm3vTb7RkP2w", "OnlyLettersSecret"])
def test_a_secret_is_found_whatever_its_letters(text: str, secret: str) -> None:
    """What stands in the place of a secret is taken out, with digits in it or without."""
    assert secret not in REDACTOR.text(f"{PREFIX}{text.format(secret)}")


def test_the_corpus_holds_no_secret_and_comes_back_unchanged() -> None:
    """No line of a corpus log is taken for a secret, alone or by the lines around it."""
    logs = sorted((Path(__file__).parents[1] / "corpus").glob("*/*/run.log"))
    assert len(logs) > 100
    for log in logs:
        texts = log.read_text(encoding="utf-8", errors="replace").split("\n")
        assert REDACTOR.text("\n\n\n".join(texts)) == "\n\n\n".join(texts), log
        assert REDACTOR.across(log_of(texts)) == {}, log


def test_a_secret_in_quotes_inside_a_word_of_the_shell() -> None:
    """What is quoted inside a quoted word is found, and the command still means the same to a shell."""
    words = ["launch", "--header", "{'authorization': 'letmeinplease12345', 'a': \"$b `c` \\\\\"}", "--name", "it's"]
    shown = redact_shell(shlex.join(words), REDACTOR)
    assert "letmein" not in shown
    script = f'AUTHORIZATION=x; printf "%s\\n" {shown}'
    printed = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.splitlines()
    assert printed == [*words[:2], words[2].replace("letmeinplease12345", "x"), *words[3:]]
    assert redact_shell("launch --name 'it'\"'\"'s' 'unbalanced", REDACTOR) == "launch --name 'it'\"'\"'s' 'unbalanced"


@pytest.mark.parametrize(
    "text",
    [
        "token: 128 tokens",
        "max_total_num_tokens=2201110, chunked_prefill_size=4096, max_prefill_tokens=16384",
        "tokenizer_path='/models/qwen3-30b-a3b', tokenizer_mode='auto'",
        "Loading tokenizer Qwen2TokenizerFast from /models/dense",
        "first token 1234.5ms, token throughput 5512.77token/s, tokens: 4096",
        "token id 151643 is out of range [0, 151642]",
        "Secret kubernetes.io/service-account-token mounted at /run/secrets",
        "Password authentication failed for user postgres15",
    ],
)  # fmt: skip
def test_words_about_tokens_stay(text: str) -> None:
    """What logs say of tokens, tokenizers and passwords is no secret."""
    assert REDACTOR.text(text) == text
