import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";
import {
  Dead,
  EffectTaken,
  LeaseLost,
  NeedsApproval,
  NotDone,
  RetryAfter,
  type Client,
  type Done,
  type Job,
  type WorkOptions,
} from "../src/index.js";
import { Server, aborted, beat, failure } from "./server.js";

/** How attempts and effects end: each is reported, whatever a handler returns or throws. */

let server: Server;
let a: Client;
let queues = 0;

before(async () => {
  server = await Server.start();
  a = server.client("billing-7");
});
after(() => server[Symbol.asyncDispose]());

/** Has a worker handle a new task until that is settled, and returns it with the number of its runs. */
async function settled(
  handle: (job: Job) => Done | void | Promise<Done | void>,
  options: Partial<WorkOptions> = {},
  client = a,
) {
  const name = `q${++queues}`;
  await a.request("setQueue", { path: { queue: name }, body: { backoff_ms: 1, max_attempts: 3 } });
  const { id } = await a.submit({ queue: name });
  const stop = new AbortController();
  let runs = 0;
  const working = client.work({ queue: name, signal: stop.signal, ...options }, (job) => {
    runs++;
    return handle(job);
  });
  const task = await a.finished(id);
  stop.abort();
  await working;
  return { task, runs };
}

const cycle: Record<string, unknown> = {};
cycle["itself"] = cycle;

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let n = 0; n < depth; n++) value = [value];
  return value;
}

const unstorable: Record<string, unknown> = {
  "a cycle": cycle,
  NaN: { ratio: NaN },
  infinity: [1, -Infinity],
  "no element": [1, undefined],
  "a function": () => 1,
  "a symbol": Symbol("s"),
  "70 KiB": "x".repeat(70 << 10),
  "64 KiB of three bytes each": "网".repeat(22_000),
  "half of a pair": { name: "\ud800.txt" },
  "half of a pair in a name": { "\udc00": 1 },
  "an error of toJSON": {
    toJSON() {
      throw new Error("网关超时".repeat(100));
    },
  },
  "an error of a getter": {
    get it() {
      throw "lazy";
    },
  },
  "too deep for the server": nested(3000),
  "too deep for JSON": nested(100_000),
};

for (const [name, result] of Object.entries(unstorable)) {
  test(`a result that cannot be stored does not repeat the work: ${name}`, async () => {
    const errors: unknown[] = [];
    const { task, runs } = await settled(() => ({ result }), { onError: (error) => void errors.push(error) });
    const stored = task.result as { interlock: string; reason: string };
    assert.deepEqual([task.state, runs, errors], ["done", 1, []]);
    assert.deepEqual(Object.keys(stored).sort(), ["interlock", "reason"]);
    assert.equal(stored.interlock, "result not stored");
    assert.ok(Buffer.byteLength(stored.reason) <= 200 && stored.reason !== "", stored.reason);
  });
}

test("what JSON has a form for is stored as it is", async () => {
  const result = { big: 12345678901234567890n, at: new Date(0), left: undefined, pair: "\u{1f600}" };
  const { task } = await settled(() => ({ result }));
  const at = "1970-01-01T00:00:00.000Z";
  assert.deepEqual(task.result, { big: "12345678901234567890", at, pair: "\u{1f600}" });
  const text = "x".repeat((64 << 10) - 2);
  assert.equal((await settled(() => ({ result: text }))).task.result, text);
});

test("a task whose result cannot be stored is dead, if the worker says so", async () => {
  const { task, runs } = await settled(() => ({ result: cycle }), { unstorable: "dead" });
  assert.deepEqual([task.state, runs], ["dead", 1]);
  assert.match(task.reason ?? "", /^result not stored: /);
});

test("writes that are refused do not repeat the work", async () => {
  await a.commit({ writes: [{ key: "text", put: "text" }] });
  const ends: Partial<Done>[] = [
    { writes: [{ key: "k", put: cycle }] },
    { writes: [{ key: "", put: 1 }] },
    { writes: [{ key: "k", put: "\ud800" }] },
    { writes: [{ key: "text", add: 1 }] },
    { tasks: [{ queue: "nosuch", payload: 1 }] },
  ];
  for (const end of ends) {
    const { task, runs } = await settled(() => ({ result: 1, ...end }));
    assert.deepEqual([task.state, runs], ["dead", 1]);
    assert.match(task.reason ?? "", /^it was handled, and what the handler returned is refused: /);
  }
});

test("what a handler returned and cannot be read does not repeat the work", async () => {
  const { task, runs } = await settled(() => ({
    get result() {
      throw new Error("lazy");
    },
  }));
  assert.deepEqual([task.state, runs], ["dead", 1]);
  assert.match(task.reason ?? "", /is refused: lazy$/);
});

test("too long a note is cut off at a character", async () => {
  const note = "网".repeat(2000);
  const key = "noted:1";
  assert.equal((await settled(() => ({ note }))).task.state, "done");
  const lease = await a.lease(key);
  await lease.release({ outcome: "网".repeat(100), note: `${note}\ud800` });
  await using next = await a.lease(key);
  assert.equal(next.notes[0]?.text, "网".repeat(1365));
});

const { proxy: revoked, revoke } = Proxy.revocable({}, {});
revoke();

const thrown: Record<string, [unknown, RegExp]> = {
  "171 characters of three bytes": [new Error("网".repeat(171)), /^网{170}$/],
  "half of a pair": [new Error("no such file: \ud800.txt"), /^no such file: \ufffd\.txt$/],
  "no error": [undefined, /^undefined$/],
  "an object without a prototype": [Object.create(null), /no form as a text/],
  "a revoked proxy": [revoked, /no form as a text/],
  "an error whose message throws": [
    Object.defineProperty(new Error(), "message", {
      get() {
        throw new Error("lazy");
      },
    }),
    /no form as a text/,
  ],
  "a pause that is no number": [new RetryAfter(NaN, "later"), /^later$/],
  "a question without words": [new NeedsApproval({ question: "" }), /^its question could not be asked: /],
  "the death in many words": [new Dead("网".repeat(1000)), /^网{170}$/],
};

for (const [name, [error, reason]] of Object.entries(thrown)) {
  test(`an attempt that fails is reported: ${name}`, async () => {
    const { task, runs } = await settled(({ task }) => {
      if (task.attempt === 1) throw error;
      return { result: "ok" };
    });
    const isDead = name.startsWith("the death");
    assert.deepEqual([task.state, runs], isDead ? ["dead", 1] : ["done", 2]);
    const told = isDead ? task.reason : task.attempts?.[0]?.reason;
    assert.match(told ?? "", reason);
  });
}

test("the loss of a lease of the handler's own is its failure", async () => {
  const client = server.client("worker-1");
  const { task, runs } = await settled(
    async ({ task, lease }) => {
      if (task.attempt === 2) return { result: lease.held };
      await client.withLease("stock:9", { graceMs: 0 }, async (own, signal) => {
        await a.request("revokeLease", { body: { key: own.key, fence: own.fence } });
        beat(client);
        await aborted(signal);
        assert.equal(lease.held, true);
        own.check();
      });
    },
    {},
    client,
  );
  assert.deepEqual([task.state, task.result, runs], ["done", true, 2]);
});

test("an error of onError is a warning, and the worker goes on", async () => {
  for (const onError of [
    () => {
      throw new Error("the log is full");
    },
    () => Promise.reject(new Error("the log is full")),
  ]) {
    const warned = once(process, "warning");
    const { task } = await settled(
      ({ task }) => {
        if (task.attempt === 1) throw new Error("no");
      },
      { onError: onError as () => void },
    );
    assert.equal(task.state, "done");
    assert.match(String((await warned)[0]), /onError of the worker failed: the log is full/);
  }
});

test("a worker that would handle nothing is refused", async () => {
  for (const concurrency of [0, NaN, -1])
    await assert.rejects(
      a.work({ queue: "q", concurrency }, () => {}),
      TypeError,
    );
});

/** Kills a server, and starts it again when a client has warned that none answers. */
async function outage(of: Server): Promise<void> {
  const told = new Promise<void>((resolve) => {
    const listener = (warning: Error) => {
      if (!/goes on when a server answers again/.test(warning.message)) return;
      process.off("warning", listener);
      resolve();
    };
    process.on("warning", listener);
  });
  await of.kill();
  void told.then(() => of.restart());
}

test("an end that could not be reported is reported when the server is back", async () => {
  const other = await Server.start();
  try {
    const client = other.client("worker-1", { retryForMs: 1 });
    const operator = other.client("operator");
    await operator.request("setQueue", { path: { queue: "q" }, body: { backoff_ms: 1 } });
    const first = await operator.submit({ queue: "q" });
    const second = await operator.submit({ queue: "q" });
    const stop = new AbortController();
    const working = client.work({ queue: "q", signal: stop.signal }, async ({ task }) => {
      if (task.attempt === 1) await outage(other);
      if (task.attempt === 1 && task.id === second.id) throw new Error("no");
      return { result: task.attempt };
    });
    const [one, two] = [await operator.finished(first.id), await operator.finished(second.id)];
    assert.deepEqual([one.result, two.result, two.attempts?.[0]?.reason], [1, 2, "no"]);
    stop.abort();
    await working;
  } finally {
    await other[Symbol.asyncDispose]();
  }
});

test("a worker that ends while no server answers does not wait for ever", async () => {
  const other = await Server.start();
  const client = other.client("worker-1", { retryForMs: 1 });
  await client.request("setQueue", { path: { queue: "q" }, body: {} });
  await client.submit({ queue: "q" });
  const stop = new AbortController();
  const errors: unknown[] = [];
  const onError = (error: unknown) => void errors.push(error);
  await client.work({ queue: "q", signal: stop.signal, onError }, async () => {
    await other.kill();
    stop.abort();
  });
  assert.match(String(errors[0]), /no server has confirmed the end of the attempt/);
  await other[Symbol.asyncDispose]();
});

test("a watch outlives an outage, and ends with its client", async () => {
  const other = await Server.start();
  try {
    const client = other.client("watcher", { retryForMs: 1 });
    const writer = other.client("writer");
    await writer.commit({ writes: [{ key: "w:1", put: 1 }] });
    const watching = client.watch({ key: "w:1", from: "1" });
    const seen: unknown[] = [];
    const next = async () => seen.push((await watching.next()).value?.value);
    await next();
    await outage(other);
    const warned = once(process, "warning");
    const second = next();
    await warned;
    await writer.update("w:1", () => 2);
    await second;
    assert.deepEqual(seen, [1, 2]);
    const last = watching.next();
    await client.close();
    assert.equal((await last).done, true);
  } finally {
    await other[Symbol.asyncDispose]();
  }
});

test("a worker ends with its client", async () => {
  const client = server.client("worker-1");
  await a.request("setQueue", { path: { queue: "closing" }, body: {} });
  await a.submit({ queue: "closing" });
  let lost: unknown;
  await client.work({ queue: "closing" }, async ({ signal }) => {
    void client.close();
    lost = await aborted(signal);
  });
  assert.ok(lost instanceof LeaseLost);
  await failure(client.work({ queue: "closing" }, () => {}));
});

const charge = (target: string) => ({ tool: "stripe.charge", target });

test("an effect is done whatever its result is, and its caller gets that result", async () => {
  for (const [name, result] of Object.entries(unstorable)) {
    const action = charge(`result:${name}`);
    assert.equal(await a.effect(action, () => result), result);
    const later = (await a.effect(action, () => assert.fail("it is done twice"))) as { interlock: string };
    assert.equal(later.interlock, "result not stored");
  }
});

test("an effect that fails is reported whatever it throws, and its caller gets that", async () => {
  for (const [name, [error]] of Object.entries(thrown)) {
    const action = charge(`thrown:${name}`);
    const act = () => {
      throw error;
    };
    const met = await a.effect(action, act).then(
      () => [],
      (error: unknown) => [error],
    );
    assert.ok(met[0] === error);
    const next = await failure(a.effect(action, () => assert.fail("it is done twice"), { waitMs: 0 }));
    assert.ok(next instanceof EffectTaken && next.code === "effect_unknown", name);
  }
});

test("of two effects under one lease one is done", async () => {
  await using lease = await a.lease("customer:lease");
  let finish = () => {};
  const finished = new Promise<void>((resolve) => (finish = resolve));
  let begun = () => {};
  const started = new Promise<void>((resolve) => (begun = resolve));
  const first = a.effect(
    charge("lease"),
    async () => {
      begun();
      await finished;
      throw new NotDone("closed");
    },
    { lease },
  );
  await started;
  const controller = new AbortController();
  const act = () => assert.fail("it is done twice");
  const leaving = failure(a.effect(charge("lease"), act, { lease, signal: controller.signal }));
  controller.abort();
  await leaving;
  const impatient = await failure(
    a.effect(charge("lease"), () => assert.fail("it is done twice"), { lease, waitMs: 0 }),
  );
  assert.ok(impatient instanceof EffectTaken && impatient.code === "effect_claimed");
  assert.equal(impatient.effect?.agent, "billing-7");
  const second = a.effect(charge("lease"), () => "second", { lease });
  finish();
  await failure(first);
  assert.equal(await second, "second");
});

test("an effect whose report was lost is not done again by its caller, under the same lease neither", async () => {
  const other = await Server.start();
  try {
    let isAway = false;
    const refusing: typeof fetch = (input, init) => {
      if (isAway && String(input).endsWith("/done")) throw new Error("the connection broke");
      return fetch(input, init);
    };
    const client = other.client("billing-7", { retryForMs: 1, fetch: refusing });
    const lease = await client.lease("customer:12");
    isAway = true;
    let done: Promise<string> | undefined;
    await new Promise<void>((begun) => {
      const charging = () => {
        begun();
        return "charged";
      };
      done = client.effect(charge("lost"), charging, { lease });
    });
    const again = failure(
      client.effect(charge("lost"), () => assert.fail("it is done twice"), { lease, waitMs: 1 }),
    );
    assert.ok((await again) instanceof EffectTaken);
    isAway = false;
    assert.equal(await done, "charged");
    assert.equal(
      await client.effect(charge("lost"), () => assert.fail("it is done twice"), { lease }),
      "charged",
    );
  } finally {
    await other[Symbol.asyncDispose]();
  }
});
