"""Following writes."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from interlock import AsyncClient, Cancelled, CancelToken, Client, Refused, put
from interlock._call import Caller
from interlock._watch import Emit, Line, Open, Place, watch
from interlock._wire import Broken, NotSent, Pause, Reply
from interlock.testing import LocalServer


def test_watch_goes_on_after_a_restart() -> None:
    with LocalServer() as server, Client(server.url) as client:
        first = client.commit([put("a:1", 1), put("a:2", 2), put("b:1", 3)])
        writes = client.watch(prefix="a:", start=first["at"]["index"])
        assert [next(writes)["key"], next(writes)["key"]] == ["a:1", "a:2"]
        server.kill()
        server.start()
        client.commit([put("a:3", {"x": 1})])
        found = next(writes)
        assert found["key"] == "a:3"
        assert found.get("value") == {"x": 1}
        writes.close()


def test_watch_can_be_cancelled(interlock_client: Client, key: str) -> None:
    token = CancelToken()
    errors: list[BaseException] = []

    def follow() -> None:
        try:
            with token:
                for _ in interlock_client.watch(key):
                    token.cancel()
        except Cancelled as error:
            errors.append(error)

    interlock_client.commit([put(key, 1)], [{"key": key, "absent": True}])
    thread = threading.Thread(target=follow)
    thread.start()
    while thread.is_alive():
        interlock_client.commit([put(key, 1)], [{"key": key, "present": True}])
        thread.join(0.05)
    assert len(errors) == 1


def test_watch_in_asyncio(interlock_server: LocalServer, key: str) -> None:
    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            done = await client.commit([put(key, "text"), put(key + "/b", None)])
            found = []
            writes = client.watch(prefix=key, start=done["at"]["index"])
            async for write in writes:
                found.append(write["key"])
                if len(found) == 2:
                    break
            await writes.aclose()
            assert found == [key, key + "/b"]
            waiting = asyncio.ensure_future(anext(client.watch(key)))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    asyncio.run(main())


def test_index_that_was_never_assigned_is_refused(interlock_client: Client) -> None:
    with pytest.raises(Refused) as error:
        next(interlock_client.watch("k", start="999999999"))
    assert error.value.code == "future_version"


def test_place_reports_each_write_once() -> None:
    place = Place("5")
    writes: list[Any] = [
        {"index": index, "key": key} for index, key in [("6", "a"), ("6", "b"), ("6", "a"), ("7", "a")]
    ]
    assert [place.is_new(write) for write in writes] == [True, True, False, True]
    place.after("7")
    assert not place.is_new(writes[3])


def forwarded(owner: str) -> Reply:
    return Reply(200, {"interlock-owner": owner}, b"")


def refused(active: str) -> Reply:
    body = {"code": "not_owner", "detail": "x", "active": {"http": active, "grpc": ""}}
    return Reply(503, {"content-type": "application/problem+json"}, json.dumps(body).encode())


AWAY = NotSent("refused")
LINE = '{"index":"6","key":"k"}\n'


@pytest.mark.parametrize(
    ("answers", "hosts"),
    [
        ([forwarded("http://b"), Reply(200, {}, b""), LINE], "ab"),
        ([forwarded("http://evil"), LINE], "a"),
        ([forwarded("http://a"), LINE], "a"),  # one address in front of all servers
        ([refused("http://b"), forwarded("http://a"), forwarded("http://b"), LINE], "aba"),
        ([forwarded("http://b"), AWAY, forwarded("http://b"), AWAY, forwarded("http://b"), LINE], "ababa"),
        ([refused("http://b"), refused("http://a"), refused("http://b"), Reply(200, {}, b""), LINE], "abab"),
    ],
)
def test_stream_goes_to_the_owner(answers: list[Any], hosts: str) -> None:
    """A forwarded stream is opened again at the owner, if it is on the list, and not for ever."""
    steps = watch(Caller(["http://a", "http://b"], None, None, 5.0, "x"), "k", None, True, None)
    opened = ""
    value: Any = None
    while True:
        effect = steps.throw(value) if isinstance(value, Exception) else steps.send(value)
        value = None
        if isinstance(effect, Emit):
            break
        if isinstance(effect, Open):
            opened += effect.send.server.host
        if not isinstance(effect, Pause):
            value = answers.pop(0)
    assert (opened, answers) == (hosts, [])


def test_streams_that_end_go_on_elsewhere() -> None:
    steps = watch(Caller(["http://a", "http://b"], None, None, 5.0, "x"), "k", None, True, None)
    opened: list[Any] = []
    script: list[Any] = [
        Reply(200, {}, b""),
        '{"index":"6","key":"k"}\n',
        '{"event":"end","code":"shutting_down","detail":"bye"}\n',
        Reply(200, {}, b""),
        '{"index":"6","key":"k"}\n',
        '{"event":"keep_alive","index":"9"}\n',
        "garbage\n",
        Broken("x"),
        Reply(200, {}, b""),
        '{"index":"10","key":"k"}\n',
    ]
    found: list[str] = []
    value: Any = None
    while len(found) < 2:
        effect = steps.throw(value) if isinstance(value, Exception) else steps.send(value)
        value = None
        if isinstance(effect, Emit):
            found.append(effect.write["index"])
        elif isinstance(effect, Open):
            opened.append((effect.send.server.host, effect.send.target.rpartition("from=")[2]))
            value = script.pop(0)
        elif isinstance(effect, Line):
            value = script.pop(0)
        else:
            assert isinstance(effect, Pause)
    assert found == ["6", "10"]
    assert opened[1:] == [("b", "6"), ("a", "9"), ("b", "9")]
