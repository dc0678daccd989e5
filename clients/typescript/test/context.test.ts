/** One agent is one holder: what a lease encloses uses it at once, or is refused at once as its own. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  Deadlock,
  DoneInPart,
  EffectTaken,
  Held,
  InterlockError,
  LeaseLost,
  OutcomeUnknown,
  Refused,
  Stale,
  Unreachable,
  WaitTimeout,
  guarded,
  type Client,
  type ClientOptions,
  type Lease,
} from "../src/index.js";
import { guardTools } from "../src/ai-sdk.js";
import { leasedGraph, leasedNode } from "../src/langgraph.js";
import { insides, styles } from "./insides.js";
import { Server, aborted, beat, failure } from "./server.js";

let server: Server;
let a: Client;
let b: Client;

before(async () => {
  server = await Server.start();
  a = server.client("teller");
  b = server.client("other");
});
after(() => server[Symbol.asyncDispose]());

const patient = { waitMs: Infinity };
const never = () => assert.fail("it ran");

type Work = () => Promise<unknown>;

/** Runs work as the only attempt at a task with a key. */
async function attempt(key: string, work: Work): Promise<void> {
  const queue = key.replaceAll(/[:/]/g, "-");
  await a.request("setQueue", { path: { queue }, body: {} });
  await a.submit({ queue, claims: [{ key }] });
  const stop = new AbortController();
  let failed: unknown;
  await a.work({ queue, signal: stop.signal }, async () => {
    try {
      await work();
    } catch (error) {
      failed = error;
    } finally {
      stop.abort();
    }
  });
  if (failed) throw failed;
}

/** What encloses work with a key. */
const outsides: Record<string, (key: string, work: Work) => Promise<unknown>> = {
  withLease: (key, work) => a.withLease(key, work),
  enclose: async (key, work) => {
    await using lease = await a.lease(key);
    await lease.enclose(work);
  },
  guarded: async (key, work) => guarded(a, key, work)({}),
  guardTools: async (key, work) => {
    const { tool } = guardTools(a, { tool: { execute: (_input: object) => work() } }, { tool: key });
    await a.turn(() => tool.execute({}));
  },
  leasedNode: async (key, work) => leasedNode(a, () => key, work)({}, {}),
  "leasedNode in a turn": async (key, work) => a.turn(() => leasedNode(a, () => key, work)({}, {})),
  work: attempt,
  nested: (key, work) => a.withLease("around", () => a.withLease(key, () => a.withLease(`${key}/x`, work))),
};

for (const [outside, enclose] of Object.entries(outsides)) {
  test(`what ${outside} encloses uses its lease at once`, async () => {
    const twin = server.client("teller");
    for (const [n, style] of Object.keys(styles).entries()) {
      const key = `matrix:${outside.replaceAll(" ", "-")}-${n}`;
      const run = styles[style] ?? assert.fail();
      await enclose(key, async () => {
        const [fence] = (await b.look(key)).holders.map((holder) => holder.fence);
        for (const [inside, use] of Object.entries(insides)) {
          for (const client of [a, twin]) {
            for (const one of [key, `${key}/below`])
              await run(() => use(client, one)).catch((cause) => {
                throw new Error(`${inside} in ${outside}, by ${style}, on ${one}`, { cause });
              });
          }
        }
        // No release inside has freed it.
        assert.deepEqual(
          (await b.look(key)).holders.map((holder) => holder.fence),
          [fence],
        );
      });
      assert.deepEqual((await b.look(key)).holders, []);
    }
  });

  test(`what must not share is refused at once in what ${outside} encloses`, async () => {
    const key = `apart:${outside.replaceAll(" ", "-")}`;
    const apart = server.client("teller", { join: false });
    await enclose(key, async () => {
      for (const one of [key, `${key}/below`]) {
        const tries = [
          a.lease(one, { ...patient, flow: "sub-agent" }),
          a.lease(one, { waitMs: 0, flow: "sub-agent" }),
          a.turn(() => a.lease(one, patient), { flow: "sub-agent" }),
          ...[b, apart].flatMap((client) => [
            client.lease(one, patient),
            client.withLease(["free", one], patient, never),
            leasedNode(client, () => one, never, patient)({}, {}),
          ]),
        ];
        for (const refused of await Promise.all(tries.map(failure))) {
          assert.ok(refused instanceof Deadlock, String(refused));
          assert.match(
            String(refused),
            /is held by your own lease .*: the wait .*Next step: use the enclosing/,
          );
        }
        const text = await guarded(b, one, never, patient)({});
        assert.match(String(text), /^Not done: apart:\S+ is held by your own lease/);
      }
    });
    assert.deepEqual((await b.look(key)).holders, []);
    assert.equal((await b.look("free")).holders.length, 0);
  });
}

test("other requests that would wait for what encloses them are refused at once", async () => {
  await a.request("setPattern", { path: { name: "runs" }, body: { pattern: "org:inner/runs", capacity: 1 } });
  const aside = await b.lease("aside");
  await aside.park({ keys: "free" });
  const changed = await b.lease("changed");
  await a.withLease("aside", () =>
    a.run({ org: "inner" }, async () => {
      const tries = [
        b.lease(["aside", "aside/below"], { any: true, ...patient }),
        changed.convert([{ key: "changed" }, { key: "aside/below" }], patient),
        b.resume(aside.id, patient),
        ...[a, b].map((client) => client.run({ org: "inner", waitMs: 55_000 }, never)),
      ];
      for (const refused of await Promise.all(tries.map(failure)))
        assert.match(String(refused), /your own lease/);
      assert.equal(changed.held, true);
    }),
  );
  await (await b.resume(aside.id)).release();
  await changed.release();
});

test("a wait that other agents can end goes on, although a lease around it is in the way, too", async () => {
  await a.request("setPattern", { path: { name: "pairs" }, body: { pattern: "pair:{id}", capacity: 2 } });
  const c = server.client("third");
  const permits = (permits: number) => ({ key: "pair:1", permits });
  await a.withLease(permits(1), () =>
    a.withLease("choice:1", async () => {
      await (await b.lease("pair:1", { waitMs: 0 })).release(); // a permit
      const busy = [await c.lease(permits(1)), await c.lease("choice:2")] as const;
      const waits = [
        b.lease(permits(1), { ...patient, onQueued: () => void busy[0].release() }),
        b.lease(["choice:1", "choice:2"], { any: true, ...patient, onQueued: () => void busy[1].release() }),
      ];
      for (const lease of await Promise.all(waits)) await lease.release();
      assert.match(String(await failure(b.lease(permits(2), patient))), /your own lease/);
    }),
  );
});

test("calls beside each other in a lease exclude each other where it does not have their key", async () => {
  let running = 0;
  const alone = async () => {
    assert.equal(++running, 1);
    await b.look("beside");
    running--;
  };
  const tool = guarded(a, "around", alone);
  await a.withLease("around", async () => {
    await Promise.all([1, 2, 3].map(() => a.withLease("beside", alone)));
    await Promise.all([1, 2, 3].map(() => tool({}))); // tools do so in any case
    const first = await a.lease("beside");
    assert.ok((await failure(a.lease("beside", { waitMs: 0 }))) instanceof Held);
    assert.ok((await failure(a.lease("beside", { waitMs: 1 }))) instanceof WaitTimeout);
    await first.release();
  });
});

test("calls beside each other that would wait for each other are refused", async () => {
  const both = async (one: string, two: string, arrive: () => Promise<unknown>) =>
    a.withLease(one, patient, async () => {
      await arrive();
      return a.withLease(two, patient, () => "done");
    });
  let here = 0;
  let all = () => {};
  const met = new Promise<void>((resolve) => (all = resolve));
  const arrive = async () => {
    if (++here === 2) all();
    await met;
  };
  const ends = await a.withLease("around", () =>
    Promise.allSettled([both("x", "y", arrive), both("y", "x", arrive)]),
  );
  const [refused] = ends.filter((end) => end.status === "rejected");
  assert.equal(ends.filter((end) => end.status === "fulfilled").length, 1);
  assert.ok(refused?.reason instanceof Deadlock);
});

test("permits that a lease does not have are taken by each call beside it", async () => {
  await a.request("setPattern", { path: { name: "slots" }, body: { pattern: "slot:{id}", capacity: 2 } });
  await a.withLease("around", async () => {
    const one = await a.lease("slot:1", { permits: 1 });
    const two = await a.lease("slot:1", { permits: 1 });
    assert.ok((await failure(a.lease("slot:1", { permits: 1, waitMs: 0 }))) instanceof Held);
    await one.release();
    await two.release();
  });
});

test("a wait for another call of the client tells how that would enclose it", async () => {
  await using _ = await a.lease("twice");
  for (const waitMs of [0, 1]) {
    const refused = await failure(a.lease("twice", { waitMs }));
    assert.ok(refused instanceof (waitMs === 0 ? Held : WaitTimeout));
    assert.match(String(refused), /another call of this client holds it\. Next step: .* withLease/);
  }
  assert.doesNotMatch(String(await failure(b.lease("twice", { waitMs: 0 }))), /another call/);
});

test("what goes on after its lease has ended is a flow of its own", async () => {
  let end = () => {};
  const ended = new Promise<void>((resolve) => (end = resolve));
  let late: Promise<Lease>[] = [];
  await a.withLease("early", () => {
    late = [1, 2].map(() => ended.then(() => a.lease("late", { waitMs: 0 })));
  });
  end();
  const [one, two] = await Promise.allSettled(late);
  assert.notEqual(one?.status, two?.status);
});

test("a lease that is lost at the server encloses nothing that is granted anew", async () => {
  await a
    .withLease("gone", async (lease) => {
      await b.request("revokeLease", { body: { key: "gone", fence: lease.fence, reason: "it was silent" } });
      const refused = await failure(a.lease("gone", patient));
      assert.ok(refused instanceof LeaseLost);
      assert.match(refused.message, /that encloses this call was lost/);
    })
    .catch((error: unknown) => assert.ok(error instanceof LeaseLost));
  assert.deepEqual((await b.look("gone")).holders, []);
});

test("a wait for a task that waits for what encloses the call is refused at once", async () => {
  await a.request("setQueue", { path: { queue: "inner" }, body: {} });
  for (const [outside, enclose] of Object.entries(outsides)) {
    const key = `task:${outside.replaceAll(" ", "-")}`;
    await enclose(key, async () => {
      const { id } = await a.submit({ queue: "inner", claims: [{ key }] });
      const refused = await failure(a.finished(id));
      assert.ok(refused instanceof Deadlock, `${outside}: ${String(refused)}`);
      assert.ok((await failure(server.client("teller").finished(id))) instanceof Deadlock);
      await a.request("cancelTask", { path: { id }, body: {} });
    });
  }
});

test("a wait for a task that waits for what another client has around the call is refused at once", async () => {
  const { id } = await a.submit({ queue: "inner", claims: [{ key: "task:a" }, { key: "task:b" }] });
  const [c, gone] = [server.client("third"), server.client("gone")];
  const free = await a.lease("task:b");
  await gone
    .withLease("task:c", async () => {
      const refused = await failure(c.withLease("task:a", () => b.finished(id)));
      assert.ok(refused instanceof Deadlock, String(refused));
      await gone.request("deleteSession", { path: { id: await gone.sessionID() } });
      await c.withLease("task:d", () =>
        a.withLease("task:e", async () =>
          assert.equal((await b.finished(id, { waitMs: 100 })).state, "waiting"),
        ),
      );
    })
    .catch((error: unknown) => assert.ok(error instanceof LeaseLost, String(error)));
  await free.release();
  await a.request("cancelTask", { path: { id }, body: {} });
});

test("a wait for one of a pool is refused if all of it is around the call, and goes on else", async () => {
  const body = { pattern: "pool:{id}", members: ["pool:0", "pool:1"] };
  await a.request("setPattern", { path: { name: "pool" }, body });
  await a.withLease("pool:0", async () => {
    await a.withLease("pool:1", async () => {
      const tries = [b.lease({ anyPrefix: "pool:" }, patient), b.lease({ anyPrefix: "pool:1" }, patient)];
      tries.push(a.lease({ anyPrefix: "pool:" }, { ...patient, flow: "sub-agent" }));
      for (const refused of await Promise.all(tries.map(failure)))
        assert.match(String(refused), /your own lease/);
    });
    const held = await a.lease("pool:1", { flow: "elsewhere" });
    const onQueued = () => void held.release();
    const lease = await b.lease({ anyPrefix: "pool:" }, { ...patient, onQueued });
    assert.equal(lease.key, "pool:1");
    await lease.release();
  });
});

test("a wait for a person ends with the answer, and is refused if the keys are around the call then", async () => {
  const approve = async (question: string) => {
    const asked = (await b.approvals()).leases?.find((one) => one.question === question);
    await b.answerApproval(asked?.fence as never, { verdict: "approved", by: "ann" });
  };
  const first = await a.lease("asks");
  const id = await first.park({ keys: "free", reason: "first?" });
  const early = await failure(a.resume(id, { waitMs: 100 }));
  assert.ok(early instanceof InterlockError && early.code === "parked", String(early));
  const [second] = await Promise.all([a.resume(id, patient), approve("first?")]);
  await second.park({ keys: "free", reason: "second?" });
  await b.withLease("asks", async () => {
    const [refused] = await Promise.all([failure(a.resume(id, patient)), approve("second?")]);
    assert.match(String(refused), /your own lease/);
  });
  await (await a.resume(id)).release();
});

test("an effect within itself is refused at once", async () => {
  const action = { tool: "charge", target: "customer:1" };
  const nested = await a.effect(action, () => failure(a.effect(action, never, patient)).then(String));
  assert.match(nested, /claimed|about to do/);
  const other = { tool: "charge", target: "customer:2" };
  await using lease = await a.lease("around");
  const own = await a.effect(other, () => failure(a.effect(other, never, { ...patient, lease })), { lease });
  assert.ok(own instanceof EffectTaken);
});

test("what a node meets is no refusal of its lease", async () => {
  await using _ = await b.lease("taken");
  const node = (key: string, work: (lease: Lease) => unknown, signal?: AbortSignal) =>
    failure(
      leasedNode(
        a,
        () => key,
        (_state, _config, lease) => work(lease),
        { waitMs: 0 },
      )({}, { signal }),
    );
  assert.ok((await node("taken", never)) instanceof Held);
  const about = { code: "held", message: "no" } as const;
  const met = [
    () => a.lease("taken", { waitMs: 0 }),
    () => a.withLease("taken", { waitMs: 1 }, never),
    ...[Refused, Stale, OutcomeUnknown, Unreachable, LeaseLost, Deadlock].map((kind) => () => {
      throw new kind(about);
    }),
    (lease: Lease) =>
      b.request("revokeLease", { body: { key: lease.key, fence: lease.fence, reason: "it was silent" } }),
  ];
  for (const work of met) {
    const within = await node("mine", work);
    assert.ok(within instanceof DoneInPart && within.cause instanceof InterlockError, String(within));
    assert.match(String(within), /^it may have been done in part: .*Next step: check before you repeat it$/);
    assert.ok(!(within instanceof Refused) && !within.retryable);
    const outer = await failure(
      leasedNode(
        a,
        () => "outer",
        () => Promise.reject(within),
      )({}, {}),
    );
    assert.equal(outer, within);
  }
  const own = new TypeError("a mistake of the node");
  assert.equal(await node("mine", () => Promise.reject(own)), own);
  const leave = new AbortController();
  const reason = new LeaseLost(about);
  const left = node(
    "mine",
    () => {
      leave.abort(reason);
      throw reason;
    },
    leave.signal,
  );
  assert.equal(await left, reason);
});

/** An account that is read by one tool and written by another one. */
function bank(client: Client, account: string, balance = 100) {
  const book = { balance };
  const key = "account:{account}";
  return {
    book,
    read: guarded(client, key, () => String(book.balance)),
    write: guarded(client, key, (args: { account: string; balance: number }) => {
      book.balance = args.balance;
      return "written";
    }),
    at: { account },
  };
}

test("a run keeps what its tools have taken", async () => {
  const { book, read, write, at } = bank(a, "run");
  let begin = () => {};
  const begun = new Promise<void>((resolve) => (begin = resolve));
  let queued = () => {};
  const inLine = new Promise<void>((resolve) => (queued = resolve));
  const onQueued = () => queued();
  const line = begun.then(() =>
    b.withLease("account:run", { ...patient, onQueued }, () => (book.balance -= 10)),
  );
  await a.turn(async () => {
    const seen = Number(await read(at));
    begin();
    await inLine;
    await a.turn(async () => void (await read(at))); // a turn within a turn is a part of it
    await write({ ...at, balance: seen + 50 });
  });
  await line;
  assert.equal(book.balance, 140);
  assert.deepEqual((await b.look("account:run")).holders, []);
});

test("runs beside each other in one lease do not mix", async () => {
  for (const key of ["around", "elsewhere"]) {
    const { book, read, write, at } = bank(a, `runs-in-${key}`);
    const account = key === "around" ? `account:${at.account}` : key;
    const add = () =>
      a.turn(async () => {
        const seen = Number(await read(at));
        await b.look("anything");
        await write({ ...at, balance: seen + 1 });
      });
    await a.withLease(account, () => Promise.all([1, 2, 3, 4].map(add)));
    assert.equal(book.balance, 104);
  }
});

test("runs beside each other in one lease that take keys in different orders are told so", async () => {
  const tool = guarded(a, "{key}", ({ key }: { key: string }) => `did ${key}`, patient);
  let taken = 0;
  let all = () => {};
  const met = new Promise<void>((resolve) => (all = resolve));
  const run = (first: string, second: string) =>
    a.turn(async () => {
      await tool({ key: first });
      if (++taken === 2) all();
      await met;
      return tool({ key: second });
    });
  const said = await a.withLease("around", () => Promise.all([run("r", "s"), run("s", "r")]));
  assert.equal(
    said.filter((text) => /^Not done: .*This call has done nothing.*end this run/.test(text)).length,
    1,
  );
  assert.equal(said.filter((text) => text.startsWith("did ")).length, 1);
});

test("a run keeps no permits, also where the server counts a claim that names none", async () => {
  const counting = server.client("teller", {
    fetch: async (input, init) => {
      const answer = await fetch(input, init);
      const text = (await answer.text()).replaceAll('"mode":"exclusive"', '"mode":"permits","permits":1');
      return new Response(text, answer);
    },
  });
  const tool = guarded(counting, "counted", () => "done");
  await counting.turn(async () => {
    for (let n = 0; n < 2; n++) {
      assert.equal(await tool({}), "done");
      assert.deepEqual((await b.look("counted")).holders, []);
    }
  });
});

test("a tool that gets its lease after the end of its run keeps it no longer than its call", async () => {
  for (const around of [undefined, "around"]) {
    const held = await b.lease("overdue");
    let call: Promise<unknown> = Promise.resolve();
    const turn = () =>
      a.turn(
        () =>
          new Promise<void>((queued) => {
            call = guarded(a, "overdue", () => "done", { ...patient, onQueued: () => queued() })({});
          }),
      );
    await (around === undefined ? turn() : a.withLease(around, turn));
    await held.release();
    assert.equal(await call, "done");
    assert.deepEqual((await b.look("overdue")).holders, []);
    assert.equal(await a.withLease("around", () => guarded(a, "overdue", () => "next", patient)({})), "next");
  }
});

test("a run of a workflow is a run, too", async () => {
  const { book, read, write, at } = bank(a, "workflow");
  await a.run({ org: "bank" }, async () => {
    const seen = Number(await read(at, { toolCallId: "1" } as never));
    assert.ok((await b.look("account:workflow")).holders.length > 0);
    await write({ ...at, balance: seen + 1 }, { toolCallId: "2" } as never);
  });
  assert.equal(book.balance, 101);
  assert.deepEqual((await b.look("account:workflow")).holders, []);
});

test("a tool of a framework outside of every run is refused with the remedy", async () => {
  const { read, at } = bank(a, "none");
  const call = { toolCallId: "1" };
  const warned = once(process, "warning");
  await assert.rejects(read(at, call as never), /no run encloses this call.*client\.turn.*hold: "call"/);
  assert.match(String((await warned)[0]), /client\.turn/);
  let late: Promise<string> = Promise.resolve("");
  let end = () => {};
  const ended = new Promise<void>((resolve) => (end = resolve));
  await a.turn(() => void (late = ended.then(() => read(at, call as never))));
  late.catch(() => {});
  end();
  await assert.rejects(late, /has ended/);
  const each = guarded(a, "account:none", () => "read", { hold: "call" });
  assert.equal(await each({}, call as never), "read");
  await a.withLease("account:none", async () => assert.equal(await read(at, call as never), "100"));
  await a.withLease("elsewhere", () => assert.rejects(read(at, call as never), /no run encloses/));
  assert.deepEqual((await b.look("account:none")).holders, []);
});

test("a run whose lease was lost between two tools tells the next one, once", async () => {
  for (const isKnown of [true, false]) {
    const { book, read, write, at } = bank(a, `lost-${isKnown}`);
    await a.turn(async () => {
      await read(at);
      const [holder] = (await b.look(`account:${at.account}`)).holders;
      const body = { key: `account:${at.account}`, fence: holder?.fence ?? "", reason: "it was silent" };
      await b.request("revokeLease", { body });
      if (isKnown) for (const grant of a.keeper.grants.values()) await a.keeper.verify(grant);
      const text = await write({ ...at, balance: 0 });
      assert.match(
        text,
        /^Not done: the lease on account:lost-\w+ was lost since this run took it.*read it again/,
      );
      assert.equal(book.balance, 100);
      assert.equal(await read(at), "100");
      assert.equal(await write({ ...at, balance: 5 }), "written");
    });
  }
});

test("two runs that take keys in different orders: one model is told the truth, the other one goes on", async () => {
  const use = (client: Client) =>
    guarded(client, "{key}", ({ key }: { key: string }) => `did ${key}`, patient);
  const [ann, bob] = [use(a), use(b)];
  let taken = 0;
  let all = () => {};
  const met = new Promise<void>((resolve) => (all = resolve));
  const run = (client: Client, tool: typeof ann, first: string, second: string) =>
    client.turn(async () => {
      await tool({ key: first });
      if (++taken === 2) all();
      await met;
      return tool({ key: second });
    });
  const said = await Promise.all([run(a, ann, "p", "q"), run(b, bob, "q", "p")]);
  const refused = said.filter((text) => text.startsWith("Not done: "));
  assert.equal(refused.length, 1, said.join("\n"));
  assert.match(
    refused[0] ?? "",
    /This call has done nothing, and what this run did before it stays done\. Next step: end this run, which gives [pq] back/,
  );
});

test("an agent of another name that works in a run keeps its leases to the end, too", async () => {
  const tool = guarded(b, "theirs", () => "done", patient);
  await a.turn(async () => {
    assert.equal(await tool({}), "done");
    assert.equal(await tool({}), "done");
    assert.equal((await a.look("theirs")).holders[0]?.agent, "other");
    assert.ok((await failure(a.lease("theirs", patient))) instanceof Deadlock);
  });
  assert.deepEqual((await a.look("theirs")).holders, []);
});

test("a graph is a run, also as a stream, and parks its leases while a person is asked", async () => {
  const { book, read, write, at } = bank(a, "graph");
  const steps = [
    async () => ({ seen: await read(at, { toolCallId: "1" } as never), __interrupt__: [{ value: "sure?" }] }),
    async () => ({ said: await write({ ...at, balance: book.balance + 1 }, { toolCallId: "2" } as never) }),
  ];
  let n = 0;
  const graph = {
    invoke: async (_input: object, _config: object): Promise<object> => steps[n++ % 2]?.() ?? {},
    stream: async (_input: object, _config: object) =>
      (async function* () {
        yield await steps[n++ % 2]?.();
      })(),
  };
  const leased = leasedGraph(a, graph, { parkedForMs: 3_600_000 });
  const config = { configurable: { thread_id: "1" } };
  const state = async () => (await b.look("account:graph")).holders.map((holder) => holder.parking?.keys);
  await leased.invoke({}, config);
  assert.deepEqual(await state(), ["kept"]);
  await leased.invoke({}, config);
  assert.deepEqual(await state(), []);
  for (const _ of [1, 2]) for await (const chunk of await leased.stream({}, config)) assert.ok(chunk);
  assert.deepEqual(await state(), []);
  assert.equal(book.balance, 102);
  await leased.invoke({}, { configurable: {} }); // without a thread nothing can be resumed
  assert.deepEqual(await state(), []);
});

test("a parked lease that has ended is told to the first tool that needs it", async () => {
  const { read, write, at } = bank(a, "parked");
  const answer = { text: "" };
  const graph = {
    invoke: async (_input: object, _config: object): Promise<object> => (
      await read(at),
      { __interrupt__: [{}] }
    ),
    stream: never,
  };
  const leased = leasedGraph(a, graph);
  const config = { configurable: { thread_id: "2" } };
  await leased.invoke({}, config);
  const [holder] = (await b.look("account:parked")).holders;
  await b.request("revokeLease", {
    body: { key: "account:parked", fence: holder?.fence ?? "", reason: "late" },
  });
  graph.invoke = async () => ((answer.text = await write({ ...at, balance: 1 })), { __interrupt__: [] });
  await leased.invoke({}, config);
  assert.match(answer.text, /^Not done: the lease on account:parked was lost since this run took it/);
});

const child = fileURLToPath(new URL("insides.js", import.meta.url));

/** Runs the command of the server's binary, and returns what it prints. */
async function command(...args: string[]): Promise<string> {
  const env = { ...process.env, INTERLOCK_URL: server.url, INTERLOCK_GRPC: server.grpc };
  const running = spawn(process.env["INTERLOCK_BINARY"] ?? "", args, {
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  for (const stream of [running.stdout, running.stderr])
    stream.on("data", (chunk) => (text += String(chunk)));
  await once(running, "close");
  return text;
}

test("a client below interlock run uses its lease, and gives back its own", async () => {
  const key = "process:1";
  const text = await command("run", key, "--agent", "teller", "--quiet", "--", process.execPath, child, key);
  assert.match(text, /^joined: all$/m);
  assert.deepEqual((await b.look(key)).holders, []);
});

test("a client below interlock task work uses the lease of its task", async () => {
  const key = "process:2";
  await a.request("setQueue", { path: { queue: "processes" }, body: {} });
  const { id } = await a.submit({ queue: "processes", claims: [{ key }] });
  const text = await command(
    "task",
    "work",
    "processes",
    "--idle",
    "1ms",
    "--",
    process.execPath,
    child,
    key,
  );
  const done = await a.finished(id, { waitMs: 0 });
  assert.equal(done.state, "done", text);
  assert.match(String(done.result), /joined: all/);
});

/** Returns a client as it would be in a process that another one has started. */
function below(session: string, flow: string, options: ClientOptions = {}): Client {
  const variables = { INTERLOCK_URL: server.url, INTERLOCK_SESSION: session, INTERLOCK_FLOW: flow };
  const before = Object.keys(variables).map((name) => [name, process.env[name]] as const);
  try {
    Object.assign(process.env, variables);
    return server.client("teller", options);
  } finally {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
}

test("a joined client renews its own leases, and loses them with the session", async () => {
  const around = server.client("teller");
  const outer = await around.lease("above");
  const joined = below((await around.keeper.session()).id, outer.flow);
  const reused = await joined.lease("above", { waitMs: 0 });
  assert.equal(reused.fence, outer.fence);
  await reused.release();
  assert.equal((await b.look("above")).holders.length, 1);
  const own = await joined.lease("below", { ttlMs: 5000 });
  const confirmed = () => [...joined.keeper.grants.values()].map((grant) => grant.confirmedAt);
  const [first] = confirmed();
  beat(joined);
  while (confirmed()[0] === first) await b.look("below");
  assert.ok(own.held);
  const kept = await joined.lease("kept", { ttlMs: 5000 });
  await around.close();
  beat(joined);
  const reason = await aborted(own.signal);
  assert.match(String(reason), /the session that encloses this process is over/);
  assert.equal(kept.held, false);
  const refused = await failure(joined.lease("below", patient));
  assert.match(String(refused), /session that encloses this process is over.*join: false/);
  await assert.rejects(joined.work({ queue: "inner" }, never), /session that encloses this process is over/);
  await joined.close();
});

test("a client joins only the session of its own place and name", async () => {
  const around = server.client("teller");
  const outer = await around.lease("mine");
  const session = (await around.keeper.session()).id;
  const joins = async (options: ClientOptions) =>
    (await below(session, outer.flow, options).keeper.session()).isJoined;
  assert.equal(await joins({}), true);
  assert.equal(await joins({ join: true, url: [`${server.url}/v1`] }), true);
  assert.equal(await joins({ join: false }), undefined);
  assert.equal(await joins({ namespace: "other" }).catch(() => undefined), undefined);
  assert.throws(
    () => below(session, outer.flow, { join: true, credential: "another" }),
    /needs a session to join/,
  );
  assert.throws(
    () => below(session, outer.flow, { join: true, url: "http://127.0.0.1:1" }),
    /needs a session/,
  );
});

test("join: true without a session around the process is refused", () => {
  assert.throws(() => server.client("alone", { join: true }), /needs a session to join/);
});
