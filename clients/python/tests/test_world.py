"""The clients in simulated worlds. See world.py.

A world that fails is repeated alone by its seed, and tells its story:

    INTERLOCK_TEST_WORLD=PROGRAM INTERLOCK_TEST_WORLDS=17 python -m pytest tests/test_world.py

PROGRAM is what "go test -c ./internal/test/clientworld" builds. INTERLOCK_TEST_VERBOSE=1 tells each request.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from functools import partial
from typing import Any

import pytest
from world import Loop, Pipe, Thread, Violation, World, world

from interlock import AsyncClient, Client, current_lease, guarded
from interlock._errors import InterlockError, LeaseLost, OutcomeUnknown, Unreachable
from interlock.ext import Run, ToolKeys

PROGRAM = os.environ.get("INTERLOCK_TEST_WORLD")

#: A ttl of the leases, and what the server gives a holder beyond it.
TTL, GRACE = 6.0, 5.0
KEYS = ["k:0", "k:1", "k:2"]
QUEUE = "jobs"


#: The body of a tool.
Body = Callable[[], Coroutine[Any, Any, Any]]


class Failed(Exception):
    """What the body of a program raises."""


def drive(steps: Coroutine[Any, Any, Any]) -> Any:
    """Carries out a coroutine that waits for nothing in an event loop: what it waits for stops the thread."""
    try:
        steps.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("a program for threads waits in an event loop")


class Blocking:
    """A client for threads with the methods of the one for asyncio, so that programs are written once."""

    def __init__(self, client: Client) -> None:
        self.client = client

    @contextlib.asynccontextmanager
    async def lease(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        with self.client.lease(*args, **options) as lease:
            yield lease

    @contextlib.asynccontextmanager
    async def effect(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        with self.client.effect(*args, **options) as claim:
            yield claim

    async def acquire(self, *args: Any, **options: Any) -> Any:
        return self.client.acquire(*args, **options)

    async def submit(self, *args: Any, **options: Any) -> Any:
        return self.client.submit(*args, **options)

    async def work(self, queue: str, handle: Callable[[Any], Coroutine[Any, Any, Any]], **options: Any) -> None:
        self.client.work(queue, lambda job: drive(handle(job)), **options)

    async def call(self, key: str, wait: float, tool: Callable[[int], Coroutine[Any, Any, str]], value: int) -> str:
        def run(account: int) -> str:
            return str(drive(tool(account)))

        return guarded(key, client=self.client, wait=wait)(run)(value)

    async def tool(self, tools: ToolKeys, name: str, value: int, body: Body, run: Run) -> Any:
        return tools.run_blocking(name, {"account": value}, lambda: drive(body()), run=run)

    async def end(self, run: Run) -> None:
        run.end_blocking()

    async def close(self) -> None:
        self.client.close()


class Awaited:
    """A client for asyncio with the same methods."""

    def __init__(self, client: AsyncClient) -> None:
        self.lease, self.effect, self.acquire, self.submit = client.lease, client.effect, client.acquire, client.submit
        self.work, self.close, self.client = client.work, client.close, client

    async def call(self, key: str, wait: float, tool: Callable[[int], Coroutine[Any, Any, str]], value: int) -> str:
        async def run(account: int) -> str:
            return await tool(account)

        return await guarded(key, client=self.client, wait=wait)(run)(value)

    async def tool(self, tools: ToolKeys, name: str, value: int, body: Body, run: Run) -> Any:
        # Frameworks have a task of its own for each call.
        return await asyncio.create_task(tools.run(name, {"account": value}, body, run=run))

    async def end(self, run: Run) -> None:
        await run.end()


class Programs:
    """What the threads or tasks of a world do, and what has to hold of it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = world.random
        #: How often the body of each effect ran.
        self.effects: Counter[str] = Counter()
        #: How often the handler of each task began, and how often it came to its end.
        self.begun: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        #: How many tasks the submissions may have brought, and those that they have told.
        self.sent = 0
        self.told: set[str] = set()
        #: What is read and written outside of the server, by its key.
        self.accounts: Counter[int] = Counter()
        #: Nothing goes wrong but in the programs: then no lease is lost, and what is left is given back at once.
        self.calm = False
        self.stopping = False
        #: All programs write by what they have read.
        self.rivals = world.ways.random() < 0.3

    # The steps of a program.

    async def pause(self) -> None:
        await self.sleep(self.random.choice([0.0, 0.1, 1.0, 3.0, 3.0, 8.0]))

    async def lease(self, client: Any, depth: int = 0) -> None:
        """Holds a lease for a while, and perhaps others below it."""
        key = self.random.choice(KEYS)
        wait = self.random.choice([0.0, 2.0, 30.0])
        async with client.lease(key, wait=wait, grace=GRACE) as lease:
            with self.world.believing(lease):
                self.world.tell(f"holds {key}")
                for _ in range(self.random.randrange(3)):
                    await self.pause()
                    lease.check()
                if depth < 2 and self.random.random() < 0.3:
                    await self.lease(client, depth + 1)
                self.may_fail()
        self.world.tell(f"left {key}")

    async def drop(self, client: Any) -> None:
        """Takes a lease, and drops its handle: nothing refers to it any more."""
        key = self.random.choice(KEYS)
        lease = await client.acquire(key, wait=self.random.choice([0.0, 2.0]), grace=GRACE)
        with self.world.believing(lease):
            self.world.tell(f"holds {key}, and drops it")
            await self.pause()
            lease.check()

    async def effect(self, client: Any) -> None:
        """Does something that must not happen twice."""
        target = f"card:{self.random.randrange(3)}"
        async with client.effect("charge", target, wait=self.random.choice([0.0, 5.0])) as claim:
            if claim.done:
                return
            self.effects[target] += 1
            self.world.tell(f"charges {target}")
            if self.effects[target] > 1:
                raise Violation(f"{target} is charged twice")
            await self.pause()
            self.may_fail()
            claim.complete(self.random.choice([None, 7, float("nan"), "\ud800", "x" * 70_000]))

    async def guarded(self, client: Any) -> None:
        """Calls a tool, and looks at what the model reads of it."""
        began, ended = [], []

        async def tool(account: int) -> str:
            began.append(account)
            await self.pause()
            if self.random.random() < 0.3:
                await self.lease(client, 1)
            self.may_fail()
            ended.append(account)
            return "refunded"

        text = await client.call("k:{account}", self.random.choice([0.0, 10.0]), tool, self.random.randrange(3))
        self.read(text, bool(began), "refunded" if ended else None)

    def read(self, text: Any, began: bool, returned: Any) -> bool:
        """Looks at what the model reads of a call, and reports whether the tool has simply returned."""
        self.world.tell(f"the model reads {text!r}")
        if returned is not None and text == returned:
            return True
        if str(text).startswith("Not done") == began:
            raise Violation(f"the tool has{'' if began else ' not'} begun, and the model reads {text!r}")
        if returned is not None and str(returned) not in str(text):
            raise Violation(f"the tool has returned {returned!r}, and the model reads {text!r}")
        return False

    async def decide(self, client: Any) -> None:
        """Reads with one tool, and writes with another what follows from that, in one run."""
        hold: Any = "commit" if self.rivals else self.random.choice(["run", "commit", "commit"])
        keys = {"get": "k:{account}", "set": "k:{account}"}
        reads = ["get"] if hold == "commit" else []
        tools = ToolKeys(keys, client.client, hold, reads, wait=self.random.choice([0.0, 10.0]), grace=GRACE)
        account = 3 if self.rivals else self.random.choice([0, 3])  # the key of 3 is in no other step
        run = Run()
        known: int | None = None
        returned: int | str | None = None
        began = False

        async def get() -> int:
            nonlocal began, known, returned
            began = True
            if self.random.random() < 0.5:
                await self.pause()
            if self.random.random() < 0.2:
                await self.lease(client, 1)
            self.may_fail(0.3)
            known = self.accounts[account]
            if self.random.random() < 0.5:
                await self.pause()
            returned = known
            return returned

        async def put() -> str:
            nonlocal began, known, returned
            began = True
            lease = current_lease()
            with self.world.believing(lease):
                if self.random.random() < 0.5:
                    await self.pause()
                if self.random.random() < 0.2:
                    await self.lease(client, 1)
                lease.check()
                now = self.accounts[account]
                if lease.id in self.world.revoked:  # the account refuses it, which the client cannot know yet
                    raise Failed("revoked")
                if now != known:
                    raise Violation(f"account {account} was {known} for this run, and is {now}")
                known = self.accounts[account] = now + 1
                self.world.tell(f"writes {known} to account {account}")
                if self.random.random() < 0.3:
                    await self.pause()
                self.may_fail(0.4)
            returned = "written"
            return returned

        try:
            has_read = False
            for _ in range(self.random.randrange(2, 7 if self.rivals else 5)):
                name, body = (
                    ("set", put) if has_read and self.random.random() < (0.6 if self.rivals else 0.8) else ("get", get)
                )
                began, returned = False, None
                try:
                    text = await client.tool(tools, name, account, body, run)
                except Failed:
                    if self.random.random() < 0.3:
                        raise
                    self.world.tell(f"the model reads that {name} has failed")
                    continue  # with what it has read before
                if self.read(text, began, returned):
                    has_read = True
                elif self.random.random() < 0.5:
                    return
                else:
                    has_read = False
                await self.pause()
        finally:
            await client.end(run)

    async def submit(self, client: Any) -> None:
        """Submits a task."""
        self.sent += 1
        try:
            task = await client.submit(QUEUE, {"n": 1}, claims=[self.random.choice(KEYS)])
        except Unreachable:  # it was certainly not executed
            self.sent -= 1
            raise
        self.told.add(task["id"])

    def fell(self, error: Exception) -> None:
        """Looks at an error that has ended a step."""
        self.world.tell(f"{type(error).__name__}: {str(error)[:100]}")
        if self.calm and isinstance(error, (LeaseLost, OutcomeUnknown, Unreachable)):
            raise Violation(f"nothing was wrong with the network, and the client raises {error!r}")

    def may_fail(self, share: float = 0.1) -> None:
        if self.random.random() < share:
            raise Failed(self.random.choice(["x", "取" * 600, "\udcff"]))

    async def handle(self, client: Any, job: Any) -> Any:
        """Works on a task."""
        task = job.task["id"]
        self.begun[task] += 1
        self.world.tell(f"begins {task}")
        with self.world.believing(job.lease):
            await self.pause()
            if self.random.random() < 0.3:
                await self.lease(client, 1)
            self.may_fail()
        self.ended[task] += 1
        return self.random.choice([None, {"a": 1}, float("nan"), "x" * 70_000, object()])

    def steps(self) -> Callable[[Any], Awaitable[None]]:
        if self.rivals:
            return self.decide
        steps = [self.lease, self.lease, self.drop, self.effect, self.guarded, self.submit, self.decide, self.decide]
        return self.random.choice(steps)

    async def program(self, client: Any) -> None:
        for _ in range(self.random.randrange(1, 5)):
            await self.protected(self.steps(), client)
            await self.pause()

    # What worlds of threads and of tasks have each their own way for.

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError

    async def protected(self, step: Callable[[Any], Awaitable[None]], client: Any) -> None:
        """Carries out a step as a program would that goes on after every error it knows."""
        raise NotImplementedError

    def begin(self) -> None:
        """Draws how the world is: its network, and when its server is away."""
        world, dice = self.world, self.random
        self.calm = dice.random() < 0.2
        world.faults = 0.0 if self.calm else dice.choice([0.0, 0.05, 0.2])
        world.interrupts = dice.choice([0.0, 0.1]) if self.calm else dice.choice([0.0, 0.0, 0.02])
        world.ask(
            "PUT", f"/v1/queues/{QUEUE}", {"max_attempts": 3, "backoff_ms": 100, "ttl_ms": 6000, "grace_ms": 5000}
        )
        if self.calm:
            return
        world.lag = world.ways.choice([0.02, 0.02, 1.4])
        for _ in range(dice.randrange(2)):
            world.at(dice.uniform(0, 20), self.revoke)
        for _ in range(dice.randrange(3)):
            moment = dice.uniform(0, 20)
            world.at(moment, lambda: setattr(world, "down", True))
            world.at(moment + dice.choice([1.0, 4.0, 12.0]), lambda: setattr(world, "down", False))
        if dice.random() < 0.3:
            world.at(dice.uniform(0, 20), self.restart)

    def options(self) -> dict[str, Any]:
        return {"session_ttl": TTL, "retry_for": self.random.choice([1.0, 10.0])}

    def revoke(self) -> None:
        """An operator takes a lease away from a program."""
        if self.world.beliefs:
            self.world.revoke(self.random.choice(self.world.beliefs))

    def restart(self) -> None:
        """The server stops, and another one starts over its journal."""
        self.world.tell("the server restarts")
        self.world.settle(self.world.pipe.do(do="restart", us=self.world.now - self.world.server))

    def mend(self) -> None:
        """The network is good from now on."""
        self.world.faults, self.world.interrupts, self.world.down, self.world.lag = 0.0, 0.0, False, 0.02
        self.world.tell("the network is good")

    def judge(self, workers: bool) -> None:
        """All blocks are left, and a ttl has passed."""
        keys = self.world.ask("GET", "/v1/keys?state=held")[1]["keys"]
        if keys:
            raise Violation(f"all blocks are left, and the server has {keys}")
        for part, target in ("tickets", "tickets"), ("effects", "effects?state=claimed"):
            left = self.world.ask("GET", f"/v1/{target}")[1][part]
            if left:
                raise Violation(f"all blocks are left, and the server has {left}")
        if self.tasks("running"):
            raise Violation(f"an attempt does not end: {self.tasks('running')}")
        for task in self.tasks("waiting", "scheduled"):
            if workers:
                raise Violation(f"a task is not worked on: {task}")
        for row in self.tasks("done"):
            if not self.ended[row["id"]]:
                raise Violation(f"{row['id']} is done, and its handler has never come to its end")
        there = {row["id"] for row in self.tasks("waiting", "scheduled", "done", "dead")}
        if not self.told <= there or len(there) > self.sent:
            raise Violation(f"{self.sent} submissions, of which {self.told} are confirmed, have brought {there}")

    def judge_end(self) -> None:
        """All clients are closed."""
        sessions = self.world.ask("GET", "/v1/sessions")[1]["sessions"]
        if sessions:
            raise Violation(f"all clients are closed, and the server has {sessions}")

    def tasks(self, *states: str) -> list[Any]:
        return [row for state in states for row in self.world.ask("GET", f"/v1/tasks?state={state}")[1]["tasks"]]

    #: How long the network may keep a request at most, in seconds.
    LATE = 60.0

    def rest(self) -> float:
        """Returns how long a lease may outlive its last holder, in seconds."""
        return 5.0 if self.calm else 2 * TTL + GRACE + 60


class Threads(Programs):
    """A world of threads."""

    async def sleep(self, seconds: float) -> None:
        self.world.sleep(seconds)

    async def protected(self, step: Callable[[Any], Awaitable[None]], client: Any) -> None:
        me = self.world.running
        assert me is not None
        self.world.interruptible.add(me)
        try:
            await step(client)
        except (InterlockError, Failed) as error:
            self.fell(error)
        except KeyboardInterrupt:
            self.world.tell("goes on after an interrupt")
        finally:
            self.world.interruptible.discard(me)

    async def worker(self, client: Any) -> None:
        while not self.stopping:
            await self.protected(self.work, client)

    async def work(self, client: Any) -> None:
        stop: Any = self
        try:
            await client.work(QUEUE, lambda job: self.handle(client, job), stop=stop, wait=2.0)
        except InterlockError as error:
            raise Violation(f"a worker ends by itself: {error!r}") from error
        if not self.stopping:
            raise Violation("a worker ends by itself")

    def is_set(self) -> bool:
        """Whether the workers are to stop."""
        return self.stopping

    @staticmethod
    def drive(steps: Callable[[Blocking], Coroutine[Any, Any, None]], client: Blocking) -> None:
        drive(steps(client))

    def live(self) -> None:
        world, dice = self.world, self.random
        self.begin()
        clients = [Blocking(world.client(f"agent-{n}", **self.options())) for n in range(2)]
        threads: list[Thread] = []
        for at, client in enumerate(clients):
            for number in range(dice.randrange(1, 3)):
                threads.append(world.spawn(f"agent-{at}/{number}", partial(self.drive, self.program, client)))
        workers = [world.spawn("worker", partial(self.drive, self.worker, clients[0]))] if dice.random() < 0.6 else []
        world.run(lambda: all(thread.done for thread in threads), 1200)
        self.mend()
        if workers:
            late = world.now + self.LATE * 1e6
            world.at(self.LATE, lambda: None)
            world.run(lambda: world.now >= late, 100)
            world.run(lambda: not self.tasks("waiting", "scheduled", "running"), 1200)
        self.stopping = True
        world.run(lambda: all(worker.done for worker in workers), 100)
        over = world.now + self.rest() * 1e6
        world.at(self.rest(), lambda: None)
        world.run(lambda: world.now >= over, 1000)
        self.judge(bool(workers))
        closing = [world.spawn("closer", partial(self.drive, Blocking.close, client)) for client in clients]
        world.run(lambda: all(thread.done for thread in closing), 100)
        self.judge_end()


class Tasks(Programs):
    """A world of tasks of one event loop."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        #: The steps that go on beside each other, also if another one has failed.
        self.beside: set[asyncio.Future[None]] = set()
        self.broken: list[str] = []

    async def sleep(self, seconds: float) -> None:
        if seconds > 1 and not self.calm and self.random.random() < 0.05:
            self.block(seconds)
        await asyncio.sleep(seconds)

    def block(self, seconds: float) -> None:
        """Has the event loop stand still."""
        self.world.tell(f"stands still for {seconds:g} s")
        end = self.world.now + round(seconds * 1e6)
        while self.world.now < end:
            self.world.advance(end)

    async def protected(self, step: Callable[[Any], Awaitable[None]], client: Any) -> None:
        """It may also be cancelled, or have a limit, or be two steps at once."""
        dice, loop = self.random, asyncio.get_running_loop()

        async def several() -> None:
            await asyncio.gather(self.along(step(client)), self.along(self.steps()(client)))

        task = loop.create_task(several() if dice.random() < 0.2 and step != self.work else self.one(step, client))
        name = asyncio.current_task()
        assert name is not None
        task.set_name(name.get_name() + "'s")
        timers = [
            loop.call_later(dice.uniform(0, 10), task.cancel)
            for _ in range(3)
            if dice.random() < self.world.interrupts * 5
        ]
        try:
            await (asyncio.wait_for(task, dice.choice([0.05, 1.0, 5.0])) if dice.random() < 0.15 else task)
        except (InterlockError, Failed) as error:
            self.fell(error)
        except (asyncio.CancelledError, TimeoutError, asyncio.TimeoutError):
            self.world.tell("goes on after a cancellation")
        finally:
            for timer in timers:
                timer.cancel()

    def along(self, step: Awaitable[None]) -> asyncio.Future[None]:
        """Begins a step beside another one. It is forgotten at its end, with all that its error refers to."""
        task = asyncio.ensure_future(step)
        self.beside.add(task)
        task.add_done_callback(self.ended_beside)
        return task

    def ended_beside(self, task: asyncio.Future[None]) -> None:
        self.beside.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Violation):
            self.broken.append(str(error))

    async def one(self, step: Callable[[Any], Awaitable[None]], client: Any) -> None:
        await step(client)

    async def worker(self, client: Any) -> None:
        while not self.stopping:
            await self.protected(self.work, client)

    async def work(self, client: Any) -> None:
        try:
            await client.work(QUEUE, lambda job: self.handle(client, job), wait=2.0)
        except InterlockError as error:
            raise Violation(f"a worker ends by itself: {error!r}") from error
        raise Violation("a worker ends by itself")

    def live(self) -> None:
        self.world.loop = Loop(self.world)
        self.world.loop.run_until_complete(self.main())

    async def main(self) -> None:
        world, dice = self.world, self.random
        self.begin()
        loop = asyncio.get_running_loop()
        clients = [Awaited(world.async_client(f"agent-{n}", **self.options())) for n in range(2)]
        tasks = [
            loop.create_task(self.program(client), name=f"agent-{at}/{number}")
            for at, client in enumerate(clients)
            for number in range(dice.randrange(1, 3))
        ]
        workers = [loop.create_task(self.worker(clients[0]), name="worker")] if dice.random() < 0.6 else []
        world.limit = world.now + 1200 * 1e6
        await asyncio.gather(*tasks)
        while self.beside:
            await asyncio.wait(self.beside)
        for text in self.broken:
            raise Violation(text)
        self.mend()
        world.limit = world.now + 2400 * 1e6
        if workers:
            await asyncio.sleep(self.LATE)
        while workers and self.tasks("waiting", "scheduled", "running"):  # noqa: ASYNC110
            await asyncio.sleep(1)
        self.stopping = True
        for worker in workers:
            worker.cancel()
            await asyncio.wait({worker})
        await asyncio.sleep(self.rest())
        self.judge(bool(workers))
        for client in clients:
            await client.close()
        self.judge_end()


@pytest.fixture(scope="module")
def pipe() -> Iterator[Pipe]:
    assert PROGRAM, "INTERLOCK_TEST_WORLD names no server of simulated worlds"
    made = Pipe(PROGRAM)
    yield made
    made.close()


def parts() -> list[range]:
    """Returns the seeds of the worlds in parts, so that both kinds of worlds come soon."""
    first, _, end = os.environ.get("INTERLOCK_TEST_WORLDS", "0:20").partition(":")
    seeds = range(int(first), int(end or int(first) + 1))
    return [seeds[at : at + 50] for at in range(0, len(seeds), 50)]


@pytest.mark.filterwarnings("ignore:unreleased .*Lease:ResourceWarning")
@pytest.mark.parametrize("kind", [Threads, Tasks])
@pytest.mark.parametrize("seeds", parts(), ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
def test_worlds(pipe: Pipe, seeds: range, kind: type[Threads | Tasks]) -> None:
    """No world breaks a promise."""
    for seed in seeds:
        with world(pipe, seed) as made:
            try:
                kind(made).live()
            except Violation as violation:
                raise AssertionError(f"world {seed}: {violation}\n" + "\n".join(made.story)) from violation
