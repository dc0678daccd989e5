import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  Dead,
  EffectTaken,
  Held,
  LeaseLost,
  NeedsApproval,
  NotDone,
  RetryAfter,
  TaskMoved,
  WaitTimeout,
  guarded,
  put,
  seen,
  type Client,
  type Job,
} from "../src/index.js";
import { guardTools, leaseOf } from "../src/ai-sdk.js";
import { Server, aborted, beat, failure, until } from "./server.js";

let server: Server;
let a: Client;
let b: Client;

before(async () => {
  server = await Server.start();
  a = server.client("billing-7");
  b = server.client("support-2");
});
after(() => server[Symbol.asyncDispose]());

async function queue(name: string, body: object = {}): Promise<void> {
  await a.request("setQueue", { path: { queue: name }, body });
}

const charge = (target: string) => ({ tool: "stripe.charge", target, arguments: { cents: 3500 } });

test("an effect happens once, and the second caller gets the first result", async () => {
  let times = 0;
  let begun = () => {};
  const started = new Promise<void>((resolve) => (begun = resolve));
  let finish = () => {};
  const finished = new Promise<void>((resolve) => (finish = resolve));
  const first = a.effect(charge("customer:1"), async (effect) => {
    times++;
    assert.match(effect.action, /^[0-9a-f]{64}$/);
    begun();
    await finished;
    return { charge: "ch_1" };
  });
  await started;
  const act = () => assert.fail("it is done twice");
  const same = a.effect(charge("customer:1"), act); // of the same client
  const second = b.effect(charge("customer:1"), act);
  const impatient = await failure(b.effect(charge("customer:1"), act, { waitMs: 0 }));
  assert.ok(impatient instanceof EffectTaken && impatient.code === "effect_claimed");
  assert.equal(impatient.effect?.agent, "billing-7");
  finish();
  assert.deepEqual(await Promise.all([first, same, second]), [
    { charge: "ch_1" },
    { charge: "ch_1" },
    { charge: "ch_1" },
  ]);
  assert.equal(times, 1);
});

test("an effect that failed is unknown, and one that was not done is free", async () => {
  const broken = new Error("the connection broke");
  const throwing = (error: unknown) => () => {
    throw error;
  };
  assert.equal(await failure(a.effect(charge("customer:2"), throwing(broken))), broken);
  const unknown = await failure(b.effect(charge("customer:2"), () => "again"));
  assert.ok(unknown instanceof EffectTaken && unknown.code === "effect_unknown");
  assert.equal(unknown.effect?.reason, "the connection broke");
  assert.equal(await failure(a.effect(charge("customer:3"), throwing(new NotDone(broken)))), broken);
  assert.equal(await b.effect(charge("customer:3"), () => "done now"), "done now");
});

test("a caller that leaves while another does an effect claims nothing", async () => {
  const controller = new AbortController();
  let finish = () => {};
  const finished = new Promise<void>((resolve) => (finish = resolve));
  let begun = () => {};
  const started = new Promise<void>((resolve) => (begun = resolve));
  const first = a.effect(charge("customer:4"), async () => {
    begun();
    await finished;
    throw new NotDone("the shop is closed");
  });
  await started;
  const leaving = failure(b.effect(charge("customer:4"), () => assert.fail(), { signal: controller.signal }));
  controller.abort();
  assert.equal(((await leaving) as Error).name, "AbortError");
  finish();
  await failure(first);
  await b.line.settled();
  assert.equal(await a.effect(charge("customer:4"), () => "mine"), "mine");
});

/** Works on a queue until so many attempts have ended. */
async function works(
  client: Client,
  name: string,
  handle: Parameters<Client["work"]>[1],
  attempts: number,
  concurrency = 1,
): Promise<unknown[]> {
  const stop = new AbortController();
  const errors: unknown[] = [];
  const onError = (error: unknown) => void errors.push(error);
  let left = attempts;
  await client.work({ queue: name, concurrency, signal: stop.signal, onError }, async (job: Job) => {
    try {
      return await handle(job);
    } finally {
      if (--left === 0) stop.abort();
    }
  });
  return errors;
}

test("a worker handles tasks under their leases, and commits the result with them", async () => {
  await queue("fees");
  const ids = await Promise.all(
    [1, 2, 3].map(
      async (n) => (await a.submit({ queue: "fees", claims: [{ key: `fee:${n}` }], payload: n })).id,
    ),
  );
  await queue("mails");
  const handle = async ({ payload, lease, documents, signal, task }: Job) => {
    assert.equal(signal.aborted, false);
    assert.equal(documents[0]?.absent, true);
    assert.equal(lease.flow, task.id);
    const again = await b.lease(lease.key, { flow: lease.flow, waitMs: 0 }); // the worker's flow has the keys
    await again.release();
    const writes = [put(lease.key, { charged: payload })];
    return {
      result: { charged: payload },
      reads: seen(...documents),
      writes,
      tasks: [{ queue: "mails" }],
      note: "charged",
    };
  };
  assert.deepEqual(await works(b, "fees", handle, 3, 2), []);
  for (const [at, id] of ids.entries()) {
    const task = await a.finished(id);
    assert.deepEqual([task.state, task.result], ["done", { charged: at + 1 }]);
    assert.deepEqual((await a.read(`fee:${at + 1}`)).value, { charged: at + 1 });
    assert.equal((await a.look(`fee:${at + 1}`)).holders.length, 0);
  }
  const { queue: mails } = await a.request("getQueue", { path: { queue: "mails" } });
  assert.equal(mails.tasks.waiting, 3);
});

test("a failed attempt is repeated, and a task that makes no sense is dead", async () => {
  await queue("shaky", { backoff_ms: 1 });
  const { id } = await a.submit({ queue: "shaky" });
  const errors = await works(
    b,
    "shaky",
    ({ task }) => {
      if (task.attempt === 1) throw new Error("the mail server is down");
      if (task.attempt === 2) throw new RetryAfter(1, "still down");
      throw new Dead("there is no such address");
    },
    3,
  );
  assert.deepEqual(errors.map(String), [
    "Error: the mail server is down",
    "RetryAfter: still down",
    "Dead: there is no such address",
  ]);
  const task = await a.finished(id);
  assert.equal(task.state, "dead");
  assert.deepEqual(
    task.attempts?.map((x) => x.reason),
    ["the mail server is down", "still down", "there is no such address"],
  );
});

test("a task waits for a person, and the next attempt has the answer", async () => {
  await queue("refunds");
  const { id } = await a.submit({ queue: "refunds" });
  await works(b, "refunds", () => Promise.reject(new NeedsApproval({ question: "refund 900?" })), 1);
  const { tasks } = await a.approvals();
  assert.deepEqual(
    tasks.map((x) => [x.id, x.approval?.question]),
    [[id, "refund 900?"]],
  );
  await a.answerApproval(id, { verdict: "approved", by: "ann" });
  const handle = ({ approval }: Job) => ({ result: `${approval?.verdict} by ${approval?.by}` });
  await works(b, "refunds", handle, 1);
  assert.equal((await a.finished(id)).result, "approved by ann");
});

test("an attempt that lost its lease learns it, and its result does not count", async () => {
  await queue("lost", { backoff_ms: 1, grace_ms: 0 });
  const worker = server.client("worker-1");
  const { id } = await a.submit({ queue: "lost", claims: [{ key: "lost:1" }] });
  const errors = await works(
    worker,
    "lost",
    async ({ lease, signal, task }) => {
      if (task.attempt === 1) {
        await a.request("revokeLease", { body: { key: lease.key, fence: lease.fence } });
        beat(worker);
        await aborted(signal);
      }
      return { result: task.attempt };
    },
    2,
  );
  assert.ok(errors.length === 1 && errors[0] instanceof LeaseLost);
  assert.equal((await a.finished(id)).result, 2);
});

test("a message is answered by the single writer of its key", async () => {
  await queue("bank");
  await a.request("setWriter", {
    path: { pattern: "money" },
    body: { queue: "bank", pattern: "money:{id}" },
  });
  const reply = a.ask("money:12", { kind: "debit", body: { cents: 3500 } });
  const handle = ({ payload, documents, lease }: Job) => ({
    result: { ok: true, payload },
    reads: seen(...documents),
    writes: [put(lease.key, payload)],
  });
  await works(b, "bank", handle, 1);
  assert.deepEqual(await reply, { ok: true, payload: { cents: 3500 } });
  const late = await failure(a.ask("money:12", { kind: "debit" }, { waitMs: 10 }));
  assert.ok(late instanceof WaitTimeout);
  await works(b, "bank", () => Promise.reject(new Dead("no")), 1);
  const refused = failure(a.ask("money:13", { kind: "debit" }));
  await works(b, "bank", () => Promise.reject(new Dead("no money")), 1);
  assert.ok((await refused) instanceof TaskMoved);
});

test("a run is admitted if the organisation has room", async () => {
  await a.request("setPattern", {
    path: { name: "runs" },
    body: { pattern: "org:{org}/runs", capacity: 1 } as never,
  });
  const result = await a.run({ org: "acme", workflow: "triage" }, async (lease, signal) => {
    assert.equal(signal.aborted, false);
    const full = await failure(b.run({ org: "acme", waitMs: 0 }, () => assert.fail()));
    assert.ok(full instanceof Held && full.code === "too_many_runs");
    assert.equal(lease.held, true);
    return "12 tickets";
  });
  assert.equal(result, "12 tickets");
  assert.equal(await b.run({ org: "acme", waitMs: 0 }, () => "next"), "next");
});

test("a guarded tool runs under a lease, and a refusal is a text for the model", async () => {
  let running = 0;
  const refund = guarded(
    a,
    "customer:{customer_id}",
    async ({ cents }: { customer_id: number; cents: number }, lease) => {
      assert.equal(++running, 1);
      await a.checkFence(lease.key, lease.fence);
      running--;
      return { refunded: cents, key: lease.key };
    },
    { purpose: "refund", waitMs: 0 },
  );
  assert.deepEqual(await refund({ customer_id: 7, cents: 5 }), { refunded: 5, key: "customer:7" });
  const holder = await b.lease("customer:7");
  const text = await refund({ customer_id: 7, cents: 5 });
  assert.ok(
    typeof text === "string" && /^Not done: customer:7 is held by support-2 .*Next step: /.test(text),
  );
  await holder.release();
  await assert.rejects(refund({ customer_id: "", cents: 5 } as never), /needs the argument customer_id/);
  const yields = async function* () {
    yield 1;
  };
  assert.throws(() => guarded(a, "customer", yields), /would run on after its lease/);
});

test("a tool of the AI SDK has the lease of its call", async () => {
  const execute = (_input: { id: number }, call: { abortSignal?: AbortSignal }) => leaseOf(call).key;
  const { charge } = guardTools(a, { charge: { execute } }, { charge: "charge:{id}" });
  assert.equal(await charge.execute({ id: 1 }, {}), "charge:1");
  assert.throws(() => leaseOf({}), /not the options of a call of a guarded tool/);
  assert.throws(() => leaseOf({ abortSignal: new AbortController().signal }), TypeError);
  assert.throws(() => guardTools(a, {}, { charge: "charge:1" } as never), /there is no tool charge to guard/);
});

test("of two agents that race for one key, one tool runs at a time", async () => {
  let running = 0;
  let calls = 0;
  const tool = async () => {
    assert.equal(++running, 1);
    const call = ++calls;
    if (call === 1) await until(server.client("operator"), "race:1", 1, 1); // the other one stands in line
    running--;
    return call;
  };
  const ours = guarded(a, "race:{id}", tool);
  const theirs = guarded(b, "race:{id}", tool);
  assert.deepEqual((await Promise.all([ours({ id: 1 }), theirs({ id: 1 })])).sort(), [1, 2]);
});
