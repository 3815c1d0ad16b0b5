"""Is it SGLang that answers, and is it ready? Seen through real sockets."""

from __future__ import annotations

import os
import socket
import threading

import pytest

from logtriage.errors import InputError
from logtriage.runner import client, readiness
from tests.fake_http import serving


@pytest.mark.parametrize(
    ("behaviour", "state", "detail"),
    [
        ("sane", "ready", "200"),
        ("old", "ready", "200"),  # knows its model information under the old name only
        ("warming", "warming", "503"),
        ("html", "foreign", "text/html"),
        ("html-as-json", "foreign", "<html>"),
        ("other-server", "foreign", "404"),
        ("redirect", "foreign", "302"),
        ("silent", "warming", "within 0.5 s"),
        ("drips", "warming", "within 0.5 s"),
        ("endless", "foreign", "more than 8 MiB"),
    ],
)
def test_states(behaviour: str, state: str, detail: str) -> None:
    """Only what shows SGLang's model information and is healthy is ready; every call is bounded in time and size."""
    with serving(behaviour) as url:
        found = readiness.check(url, timeout_s=0.5 if "0.5" in detail else 10)
    assert found.state == state
    assert detail in found.detail
    assert found.model == ("/models/made-up" if state == "ready" or behaviour == "warming" else None)


def test_nothing_listens() -> None:
    """A refused connection is a server that is down."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    found = readiness.check(f"http://127.0.0.1:{port}")
    assert found.state == "down"


def test_a_port_that_speaks_no_http_is_foreign() -> None:
    """SSH, say."""
    with socket.create_server(("127.0.0.1", 0)) as other:

        def greet() -> None:
            one, _ = other.accept()
            one.recv(65536)
            one.sendall(b"SSH-2.0-made_up\r\n\r\n")
            one.close()

        thread = threading.Thread(target=greet)
        thread.start()
        found = readiness.check(f"http://127.0.0.1:{other.getsockname()[1]}")
        thread.join()
    assert found.state == "foreign"


def test_no_proxy_from_the_environment_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every proxy variable set, the server itself is asked: what the proxy says is never heard."""
    with serving("html") as proxy, serving("sane") as url:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy)
        monkeypatch.delenv("no_proxy", raising=False)
        assert readiness.check(url).state == "ready"


def test_an_api_key_is_sent() -> None:
    """Without the key the server is no known SGLang, and the reason says so."""
    with serving("sane", "made-up-key") as url:
        assert readiness.check(url, api_key="made-up-key").state == "ready"
        refused = readiness.check(url)
    assert refused.state == "foreign"
    assert "API key" in refused.detail


def test_embedding_models_answer_no_prompt() -> None:
    """They are ready all the same."""
    with serving("embeds") as url:
        found = readiness.check(url)
    assert (found.state, found.generates) == ("ready", False)


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("127.0.0.1:30000", "http://127.0.0.1:30000"),
        ("http://127.0.0.1:30000/", "http://127.0.0.1:30000"),
        ("http://127.0.0.1:30000/v1", "http://127.0.0.1:30000"),
        ("http://gate:80/team/v1/", "http://gate/team"),
        ("0.0.0.0:1", "http://127.0.0.1:1"),
        ("http://[::]:1", "http://[::1]:1"),
        ("HTTPS://box:8443", "https://box:8443"),
    ],
)
def test_urls_as_people_write_them(given: str, base: str) -> None:
    """A host and port, an OpenAI base URL, the address that the server was told to listen on."""
    assert client.base_of(given) == base


@pytest.mark.parametrize(
    "given", ["", "ftp://box", "http://", "http://user:word@box", "http://box?x=1", "http://box:x"]
)
def test_urls_that_are_none(given: str) -> None:
    """The message gives an example, and never repeats a password."""
    with pytest.raises(InputError) as caught:
        client.base_of(given)
    assert "word" not in str(caught.value)


def test_who_holds_a_port() -> None:
    """A process that listens is named, on its own address or on all; a port that is free again is nobody's."""
    everywhere = "0.0.0.0"  # noqa: S104 - it is what servers are told
    for address in ("127.0.0.1", everywhere):
        with socket.create_server((address, 0)) as taken:
            port = taken.getsockname()[1]
            holder = readiness.port_holder("127.0.0.1", port)
            assert holder is not None
            assert holder.pid == os.getpid()
            assert str(os.getpid()) in str(holder)
            assert readiness.port_holder(everywhere, port) is not None
        assert readiness.port_holder("127.0.0.1", port) is None
        assert readiness.port_holder("localhost", port) is None


def test_an_address_of_another_machine() -> None:
    """Nothing is said about a port that this machine cannot have."""
    with pytest.raises(OSError, match="assign"):
        readiness.port_holder("192.0.2.1", 30000)
