"""Simulated worlds: the clients with a simulated network, clock and schedule, and the real server.

Everything that a world decides comes from its seed. In a world of threads they are real ones, but only one runs at a
time: each stops at every effect of the core (a request, a pause, a wait), and the world decides which goes on, and how
the effect ends. In a world of tasks the event loop is a real one, and its time is that of the world. The server runs
in virtual time behind a pipe: see internal/test/clientworld.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import json
import math
import os
import random
import selectors
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from interlock import AsyncClient, Client, _async, _clock, _life, _sync, _tasks, _threads
from interlock._call import Caller
from interlock._errors import Cancelled, Closed, ForkedError
from interlock._wire import Broken, Effect, Idle, NotSent, Pause, Reply, Send

#: The virtual time at which each world begins, in seconds.
BEGIN = 1000.0
#: The longest that a program may take once the network is good again, in virtual seconds.
PATIENCE = 1200.0


class Violation(Exception):
    """A promise of the client that a world saw broken."""


class Stopped(BaseException):
    """Ends the threads of a world that is over."""


class Pipe:
    """The server."""

    def __init__(self, program: str) -> None:
        self.process = subprocess.Popen(
            [program, "-test.run=^TestServe$", "-test.timeout=0", "-pipe"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=1 << 16,
        )

    def do(self, **command: Any) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(command).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the server of the simulated worlds has ended")
        return json.loads(line)

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.read()
        self.process.stdout.close()
        self.process.wait()


class Thread:
    """A thread of a world."""

    def __init__(self, world: World, name: str, run: Callable[[], None]) -> None:
        self.world = world
        self.name = name
        self.done = False
        self.error: BaseException | None = None
        self.go = threading.Semaphore(0)
        self.value: object = None
        self.thrown: BaseException | None = None
        #: Counts what it waited for, so that a late end of an earlier wait is told from that of this one.
        self.waits = 0
        self.tokens: list[Token] = []
        self.joining: list[Thread] = []
        self.run = run
        self.real = threading.Thread(target=self._main, name=name, daemon=True)
        self.real.start()

    def _main(self) -> None:
        self.go.acquire()
        try:
            if self.thrown is None:
                self.run()
        except Stopped:
            pass
        except BaseException as error:
            self.error = error
        self.done = True
        for one in self.joining:
            self.world.end_wait(one, one.waits, None)
        self.world.back.release()

    def join(self, timeout: float | None = None) -> None:
        """Waits for its end, in virtual time."""
        me = self.world.running
        if self.done or me is None or me is self or self.world.over:
            return
        self.joining.append(me)
        self.world.wait(None if timeout is None else timeout)


class Token(_threads.CancelToken):
    """A token that breaks off the waits of a world."""

    world: World

    def cancel(self) -> None:
        super().cancel()
        self.world.cancelled(self)


class Engine(_threads.Engine):
    """The shell of a client in a world."""

    world: World

    def __init__(self, caller: Caller, *args: Any, **kwargs: Any) -> None:
        super().__init__(caller, *args, **kwargs)
        self.parting, self.ending = Token(), Token()
        self.parting.world = self.ending.world = self.world
        self.idle: tuple[Thread, int] | None = None

    def wake(self) -> None:
        self.woken.set()
        if self.keeper is None and not self.core.closed:
            self.world.spawn(f"keeper of {self.core.caller.agent}", self._keep)
        if self.idle is not None:
            self.world.end_wait(*self.idle, None)

    def _keep(self) -> None:
        if not self.keeping.acquire(blocking=False):
            return
        keeper: Any = self.world.running
        self.keeper = keeper
        with self.parting:
            self.run(self.core.keep())

    def abandon(self) -> None:
        if self.idle is not None:
            self.world.end_wait(*self.idle, None)
        super().abandon()

    def _perform(self, effect: Effect) -> object:
        if self.core.forked:
            raise ForkedError
        world = self.world
        token: Any = getattr(_threads._local, "token", None)
        if isinstance(effect, Send):
            if token is not None and token.cancelled:
                raise Cancelled
            ending: Any = self.ending
            tokens = [one for one in (token, ending if effect.poll else None) if one is not None]
            return world.send(effect, tokens)
        if isinstance(effect, Idle):
            if not self.woken.is_set():
                me = world.running
                assert me is not None
                self.idle = (me, me.waits + 1)
                world.wait(effect.seconds)
                self.idle = None
            self.woken.clear()
        elif isinstance(effect, Pause):
            breaker: Any = token or self.ending
            if not breaker.cancelled:
                world.wait(effect.seconds, [breaker])
            if breaker.cancelled:
                raise Closed if token is None else Cancelled
        return None


class TaskEngine(_tasks.Engine):
    """The shell of a client for asyncio in a world."""

    world: World

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sent: set[asyncio.Future[Reply]] = set()

    async def _perform(self, effect: Effect) -> object:
        if not isinstance(effect, Send) or self.core.forked:
            return await super()._perform(effect)
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def end(result: Reply | Exception) -> None:
            if answer.done():
                return
            if isinstance(result, Exception):
                answer.set_exception(result)
            else:
                answer.set_result(result)

        over = self.world.carry(effect, end)
        if effect.poll:
            self.sent.add(answer)
        try:
            return await answer
        finally:
            self.sent.discard(answer)
            over()

    def abandon(self) -> None:
        super().abandon()
        for answer in list(self.sent):
            if not answer.done():
                answer.set_exception(Broken("the connection is closed"))


class Loop(asyncio.SelectorEventLoop):
    """An event loop in the time of a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        super().__init__(Selector(world))

    def time(self) -> float:
        return self.world.clock()


class Selector(selectors.SelectSelector):
    """Lets the time of a world pass, when the event loop has nothing else to do."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def select(self, timeout: float | None = None) -> Any:
        world = self.world
        if world.over:
            world.now += math.ceil((timeout or 0.0) * 1e6)
        elif timeout is None or timeout > 0:
            if world.now >= world.limit:
                raise Violation(f"no end: {', '.join(task.get_name() for task in asyncio.all_tasks(world.loop))}")
            left = world.limit - world.now if timeout is None else math.ceil(timeout * 1e6)
            world.advance(min(world.limit, world.now + left))
        return super().select(0)


class World:
    """One world. Its programs are functions that call clients, sleep and check."""

    def __init__(self, pipe: Pipe, seed: int) -> None:
        self.pipe = pipe
        self.seed = seed
        self.random = random.Random(seed)
        self.looks = random.Random(seed)
        #: What the network draws beside the fates of requests.
        self.ways = random.Random(f"{seed} ways")
        #: How long an answer is under way at most, in seconds.
        self.lag = 0.02
        self.threads: list[Thread] = []
        self.running: Thread | None = None
        self.back = threading.Semaphore(0)
        self.ready: list[Thread] = []
        self.events: list[tuple[int, int, Callable[[], None]]] = []
        self.numbers = itertools.count(1)
        self.over = False
        #: Of a world of tasks: its event loop, and the moment at which it has failed.
        self.loop: asyncio.AbstractEventLoop | None = None
        self.limit = math.inf
        #: How the network is: the share of requests that meet a fault.
        self.faults = 0.0
        self.down = False
        #: The share of waits in which a thread of a program is interrupted.
        self.interrupts = 0.0
        self.interruptible: set[Thread] = set()
        #: The requests at the server, by their number.
        self.open: dict[int, Callable[[Any], None]] = {}
        self.clients: list[Client | AsyncClient] = []
        #: The handles in which a program believes, while it does.
        self.beliefs: list[Any] = []
        #: When an operator has revoked a lease, by its id.
        self.revoked: dict[str, float] = {}
        self.story: list[str] = []
        #: Whether the story has the requests that meet no fault.
        self.verbose = bool(os.environ.get("INTERLOCK_TEST_VERBOSE"))
        self.began = pipe.do(do="world", seed=seed)["now"]
        #: The time of the world, and the one that the server knows, in microseconds.
        self.now = self.server = self.began

    # The clock.

    def clock(self) -> float:
        """Returns the virtual time, in seconds."""
        return float(BEGIN + (self.now - self.began) / 1e6)

    def at(self, seconds: float, do: Callable[[], None]) -> None:
        """Has something happen after so many seconds."""
        heapq.heappush(self.events, (self.now + max(0, math.ceil(seconds * 1e6)), next(self.numbers), do))

    def tell(self, text: str) -> None:
        """Adds a line to the story."""
        name = self.running.name if self.running else self.task_name() or "world"
        self.story.append(f"{self.clock() - BEGIN:10.3f} {name}: {text}")

    @staticmethod
    def task_name() -> str:
        """Returns the name of the task that runs, if one does."""
        try:
            task = asyncio.current_task()
        except RuntimeError:
            return ""
        return task.get_name() if task is not None else ""

    # Threads.

    def spawn(self, name: str, run: Callable[[], None]) -> Thread:
        """Begins a thread."""
        thread = Thread(self, name, run)
        self.threads.append(thread)
        self.ready.append(thread)
        return thread

    def wait(self, seconds: float | None, tokens: list[Token] | None = None) -> object:
        """Has the running thread wait, until end_wait ends that or the time is over. Returns what it is given."""
        me = self.running
        assert me is not None, "a thread that is none of the world waits"
        if self.over:
            raise Stopped
        me.waits += 1
        me.value, me.thrown, me.tokens = None, None, tokens or []
        if seconds is not None:
            number = me.waits
            self.at(seconds, lambda: self.end_wait(me, number, None))
        if me in self.interruptible and self.random.random() < self.interrupts:
            number = me.waits
            moment = 0.0 if self.random.random() < 0.5 else self.random.random()
            self.at(moment, lambda: self.end_wait(me, number, KeyboardInterrupt()))
        self.back.release()
        me.go.acquire()
        thrown, me.thrown = me.thrown, None
        if thrown is not None:
            try:
                raise thrown
            finally:
                del thrown  # its traceback refers to leases, which nobody is to hold any more
        return me.value

    def end_wait(self, thread: Thread, number: int, result: object) -> None:
        """Ends a wait of a thread, with a result or an error, unless it has ended."""
        if thread.waits != number or thread in self.ready or thread.done or thread is self.running:
            return
        if isinstance(result, BaseException):
            if isinstance(result, KeyboardInterrupt):
                self.story.append(f"{self.clock() - BEGIN:10.3f} {thread.name}: is interrupted")
            thread.thrown = result
        else:
            thread.value = result
        self.ready.append(thread)

    def cancelled(self, token: Token) -> None:
        """Breaks off what waits under a token."""
        for thread in self.threads:
            if token in thread.tokens:
                self.end_wait(thread, thread.waits, Cancelled() if token is not None else None)

    def sleep(self, seconds: float) -> None:
        """Has a program do something else for a while."""
        self.wait(seconds)

    def run(self, until: Callable[[], bool], limit: float) -> None:
        """Lets time pass until a condition holds. A world that reaches the limit has failed."""
        end = self.now + round(limit * 1e6)
        while not until():
            if self.ready:
                thread = self.ready.pop(self.random.randrange(len(self.ready)))
                self.running = thread
                thread.go.release()
                self.back.acquire()
                self.running = None
                if thread.error is not None and not self.over:
                    raise Violation(f"{thread.name} ended with {thread.error!r}") from thread.error
                continue
            if self.now >= end:
                waiting = ", ".join(t.name for t in self.threads if not t.done)
                raise Violation(f"no end after {limit:g} s: {waiting}")
            self.advance(end)

    def advance(self, end: float) -> None:
        """Lets time pass until something happens, or until its end, and has that happen."""
        moment = int(min(self.events[0][0], end)) if self.events else int(end)
        if moment > self.now and self.open:
            self.settle(self.pipe.do(do="pass", us=moment - self.server))
        elif moment > self.now:  # the server learns of it with its next command: it has nothing to answer
            self.now = moment
        while self.events and self.events[0][0] <= self.now:
            heapq.heappop(self.events)[2]()
        if self.beliefs and self.looks.random() < 0.25:
            self.check()

    # The network.

    def settle(self, answer: Any) -> None:
        """Takes what the server has answered."""
        self.now = self.server = answer["now"]
        for done in answer["done"]:
            take = self.open.pop(done["id"], None)
            if take is not None:
                take(done)

    def deliver(self, send: Send, take: Callable[[Any], None]) -> int:
        """Has the server get a request now."""
        number = next(self.numbers)
        self.open[number] = take
        self.settle(
            self.pipe.do(
                do="send",
                us=self.now - self.server,
                id=number,
                method=send.method,
                target=send.target,
                headers=dict(send.headers),
                body=send.body.decode(),
            )
        )
        return number

    def carry(self, send: Send, end: Callable[[Reply | Exception], None]) -> Callable[[], None]:
        """Carries a request to the server, and its answer back, or what the network makes of them.

        It calls end with what the client gets, perhaps more than once. It returns what the end of the wait calls.
        """
        dice = self.random
        fate = "good"
        if self.down:
            fate = dice.choice(["refused", "refused", "silent"])
        elif dice.random() < self.faults:
            fate = dice.choice(["refused", "silent", "reset", "answer lost", "answer reset", "twice", "slow", "late"])
        if fate != "good" or self.verbose:
            self.tell(f"{send.method} {send.target.split('?')[0]}: {fate}")
        there, back = dice.uniform(0, 0.02), dice.uniform(0, 0.02) + self.ways.uniform(0, self.lag)
        at_server: list[int] = []
        gone = False

        def answered(done: Any) -> None:
            if done["status"] == 0:
                self.at(back, lambda: end(Broken("the connection broke")))
                return
            reply = Reply(done["status"], done["headers"], done["body"].encode())
            if fate == "answer reset":
                self.at(back, lambda: end(Broken("the connection broke")))
            elif fate != "answer lost":
                self.at(back, lambda: end(reply))

        def arrive() -> None:
            if not self.over and not gone:
                at_server.append(self.deliver(send, answered))

        def over() -> None:
            nonlocal gone
            gone = not at_server and self.ways.random() < 0.5  # its caller has left before it was sent
            for one in at_server:
                if one in self.open and dice.random() < 0.9:  # the server sees that the connection is closed
                    self.settle(self.pipe.do(do="cut", id=one))

        if fate == "refused":
            self.at(there, lambda: end(NotSent("refused")))
        elif fate == "reset":
            self.at(there, lambda: end(Broken("the connection broke")))
        elif fate != "silent":
            if fate == "slow":
                back = dice.uniform(0, 2 * send.timeout)
            if fate == "late":
                there = dice.uniform(0, 3 * send.timeout)
            self.at(there, arrive)
            if fate == "twice":
                self.at(there + dice.uniform(0, 5), arrive)
        self.at(send.timeout, lambda: end(Broken("timed out")))
        return over

    def send(self, send: Send, tokens: list[Token]) -> Reply:
        """Has the running thread send a request."""
        me = self.running
        assert me is not None
        number = me.waits + 1
        over = self.carry(send, lambda result: self.end_wait(me, number, result))
        try:
            value = self.wait(None, tokens)
        finally:
            over()
        assert isinstance(value, Reply), value
        return value

    def ask(self, method: str, target: str, body: Any = None) -> Any:
        """Asks the server beside the network, and returns the status and the answer."""
        got: list[Any] = []
        headers = {"Content-Type": "application/json"} if body is not None else {}
        data = b"" if body is None else json.dumps(body).encode()
        server: Any = None
        self.deliver(Send(server, method, target, headers, data, 10.0), got.append)
        if not got:
            raise RuntimeError(f"{method} {target} is not answered at once")
        return got[0]["status"], json.loads(got[0]["body"] or "null")

    # Clients.

    def client(self, agent: str, **options: Any) -> Client:
        """Makes a client."""
        made = Client("http://world:1", agent=agent, **options)
        self.clients.append(made)
        return made

    def async_client(self, agent: str, **options: Any) -> AsyncClient:
        """Makes a client for asyncio."""
        made = AsyncClient("http://world:1", agent=agent, **options)
        self.clients.append(made)
        return made

    def revoke(self, lease: Any) -> None:
        """An operator revokes a lease."""
        self.tell(f"the lease on {lease.keys[0]} is revoked")
        self.revoked[lease.id] = self.clock()
        self.ask("POST", "/v1/revocations", {"key": lease.keys[0], "fence": str(lease.fence)})

    def check(self) -> None:
        """Compares what the programs believe with what the server knows."""
        for lease in self.beliefs:
            known = self.revoked.get(lease.id, -math.inf) + lease._grant.ttl  # by a heartbeat, or else its time is up
            if not lease.held or self.clock() < known:
                continue
            status, answer = self.ask("GET", f"/v1/leases/{lease._grant.id}")
            if status != 200 or answer["lease"]["state"] not in ("held", "soft"):
                state = answer.get("code") or answer["lease"]["state"]
                left = lease._grant.end - self.clock()
                raise Violation(
                    f"the client believes in {lease!r} for another {left:.3f} s, and the server has ended it: {state}"
                )

    @contextlib.contextmanager
    def believing(self, lease: Any) -> Iterator[None]:
        """Notes that a program goes by a lease."""
        self.beliefs.append(lease)
        try:
            yield
        finally:
            self.beliefs.remove(lease)

    def stop(self) -> None:
        """Ends all threads and tasks."""
        self.over = True
        if self.loop is not None:
            left = asyncio.all_tasks(self.loop)
            for task in left:
                task.cancel()
            if left:
                self.loop.run_until_complete(asyncio.wait(left, timeout=60.0))
            self.loop.close()
        for thread in self.threads:
            while not thread.done:
                thread.thrown = Stopped()
                self.running = thread
                thread.go.release()
                self.back.acquire()
            thread.real.join()
        for client in self.clients:
            client._engine.core.closed = True
            _life.remove(client._engine)


@contextlib.contextmanager
def world(pipe: Pipe, seed: int) -> Iterator[World]:
    """Has the client live in a world of a seed."""
    made = World(pipe, seed)
    engine = type("Engine", (Engine,), {"world": made})
    task_engine = type("TaskEngine", (TaskEngine,), {"world": made})
    replaced: list[tuple[Any, str, Any]] = [
        (_sync, "Engine", engine),
        (_threads, "Engine", engine),
        (_async, "Engine", task_engine),
    ]
    for module in [m for name, m in sys.modules.items() if name.startswith("interlock.") and m is not _clock]:
        if getattr(module, "now", None) is _clock.now:
            replaced.append((module, "now", made.clock))
    numbers = itertools.count(1)
    for module in [m for name, m in sys.modules.items() if name.startswith("interlock.")]:
        if hasattr(module, "new_key"):
            replaced.append((module, "new_key", lambda: f"{seed:016x}{next(numbers):016x}"))
        if getattr(module, "random", None) is random:
            replaced.append((module, "random", made.random))
    before = [(at, name, getattr(at, name)) for at, name, _ in replaced]
    for at, name, value in replaced:
        setattr(at, name, value)
    try:
        yield made
    finally:
        made.stop()
        for at, name, value in before:
            setattr(at, name, value)
