import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Deadlock, Held, LeaseLost, WaitTimeout, type Client } from "../src/index.js";
import { Server, beat, failure, until } from "./server.js";

let server: Server;
let a: Client;
let b: Client;

before(async () => {
  server = await Server.start();
  a = server.client("billing-7");
  b = server.client("support-2");
});
after(() => server[Symbol.asyncDispose]());

test("a lease is held until it is released", async () => {
  const lease = await a.lease("account:1", { purpose: "late fee" });
  assert.match(lease.fence, /^[1-9]\d*$/);
  assert.equal(lease.key, "account:1");
  assert.equal(lease.held, true);
  assert.ok(lease.leftMs > 20_000 && lease.leftMs < 30_000);
  assert.equal(lease.changed, false);
  lease.check();
  await a.checkFence("account:1", lease.fence);
  await lease.release({ outcome: "done", note: "fee of 35.00 applied" });
  assert.equal(lease.held, false);
  assert.throws(
    () => lease.check(),
    (e) => e instanceof LeaseLost && e.code === "released",
  );
  assert.equal((lease.signal.reason as LeaseLost).code, "released");
  const next = await b.lease("account:1", { waitMs: 0 });
  assert.ok(BigInt(next.fence) > BigInt(lease.fence));
  assert.deepEqual(
    next.notes.map((n) => [n.agent, n.text]),
    [["billing-7", "fee of 35.00 applied"]],
  );
  await next.release();
});

test("a refusal is a sentence for a prompt and names the holder", async () => {
  await using lease = await a.lease("account:2", { purpose: "late fee" });
  const error = await failure(b.lease("account:2", { waitMs: 0 }));
  assert.ok(error instanceof Held);
  assert.equal(error.code, "held");
  assert.equal(error.key, "account:2");
  assert.equal(error.holders[0]?.agent, "billing-7");
  assert.equal(error.retryable, true);
  assert.match(String(error), /^account:2 is held by billing-7 \(live, "late fee"\).*\. Next step: ./);
  assert.equal(lease.held, true);
});

test("await using releases, and disposing twice is once", async () => {
  {
    await using lease = await a.lease("account:3");
    assert.equal(lease.held, true);
  }
  const lease = await b.lease("account:3", { waitMs: 0 });
  await lease[Symbol.asyncDispose]();
  await lease[Symbol.asyncDispose]();
  await lease.release();
  await (await a.lease("account:3", { waitMs: 0 })).release();
});

test("withLease returns the result, and releases after a failure too", async () => {
  assert.equal(await a.withLease("account:4", (lease) => `done under ${lease.key}`), "done under account:4");
  const broken = new Error("the tool broke");
  const error = await failure(
    a.withLease("account:4", { waitMs: 0 }, (_lease, signal) => {
      assert.equal(signal.aborted, false);
      throw broken;
    }),
  );
  assert.equal(error, broken);
  await (await b.lease("account:4", { waitMs: 0 })).release();
});

test("a waiter is granted at the release and learns what changed", async () => {
  const held = await a.lease("account:5");
  const positions: number[] = [];
  const waiting = b.lease("account:5", {
    onQueued: (ticket, holders) => {
      positions.push(ticket.position);
      assert.equal(holders[0]?.agent, "billing-7");
    },
  });
  await until(a, "account:5", 1, 1);
  assert.match((await a.why({ agent: "support-2" })).text, /billing-7/);
  await held.release({ note: "written" });
  await using lease = await waiting;
  assert.deepEqual(positions, [1]);
  assert.equal(lease.changed, true);
  assert.equal(lease.notes[0]?.text, "written");
});

test("a wait ends after waitMs and leaves the line", async () => {
  await using _held = await a.lease("account:6");
  const error = await failure(b.lease("account:6", { waitMs: 50 }));
  assert.ok(error instanceof WaitTimeout);
  assert.equal(error.holders[0]?.agent, "billing-7");
  assert.equal((await a.look("account:6")).length, 0);
});

test("a ttl of a pattern", async () => {
  const set = (name: string, ttl_ms: number) =>
    a.request("setPattern", { path: { name }, body: { pattern: `${name}:{n}`, ttl_ms } });
  await set("ttl-long", 120_000);
  await set("ttl-short", 1000);
  for (const [sessionTTLMs, name, want] of [
    [undefined, "ttl-long", 120_000],
    [undefined, "ttl-short", 1000],
    [undefined, "ttl-none", 30_000],
    [60_000, "ttl-long", 60_000],
    [60_000, "ttl-short", 1000],
    [60_000, "ttl-none", 60_000],
  ] as const) {
    const client = server.client("patient", sessionTTLMs === undefined ? {} : { sessionTTLMs });
    await using lease = await client.lease(`${name}:${sessionTTLMs}`);
    assert.equal(lease.info.ttl_ms, want);
  }
});

test("claims: many keys, shared, any one, permits, a rate", async () => {
  await using many = await a.lease(["set:1", { key: "set:2", mode: "shared" }]);
  assert.deepEqual(many.keys, ["set:1", "set:2"]);
  await (await b.lease("set:2", { mode: "shared", waitMs: 0 })).release();
  await using any = await b.lease(["set:1", "set:3"], { any: true, waitMs: 0 });
  assert.equal(any.key, "set:3");

  const set = (name: string, body: object) =>
    a.request("setPattern", { path: { name }, body: body as never });
  await set("runs", { pattern: "org:{org}/runs", capacity: 2 });
  await using two = await a.lease("org:x/runs", { permits: 2, waitMs: 0 });
  assert.equal(two.claims[0]?.permits, 2);
  const full = await failure(b.lease("org:x/runs", { permits: 1, waitMs: 0 }));
  assert.ok(full instanceof Held && full.code === "at_capacity");
  assert.deepEqual([full.capacity?.permits, full.capacity?.used], [2, 2]);

  await set("model", { pattern: "model:{name}", rate: 1, per_ms: 3_600_000, burst: 1 });
  await (await a.lease("model:opus", { permits: 1, waitMs: 0 })).release();
  const spent = await failure(b.lease("model:opus", { permits: 1, waitMs: 0 }));
  assert.ok(spent instanceof Held && spent.code === "rate_limited");

  await set("gpu", { pattern: "gpu:{n:int}", members: ["gpu:{0..3}"] });
  await using gpu = await a.lease({ anyPrefix: "gpu:" });
  assert.match(gpu.key, /^gpu:[0-3]$/);
});

test("requests of one client exclude each other, and those of one flow share", async () => {
  const first = await a.lease("account:7");
  assert.ok((await failure(a.lease("account:7", { waitMs: 0 }))) instanceof Held);
  const again = await a.lease("account:7", { waitMs: 0, flow: first.flow });
  assert.equal(again.id, first.id);
  await first.release();
  assert.equal(first.held, false);
  assert.equal(again.held, true);
  assert.ok((await failure(b.lease("account:7", { waitMs: 0 }))) instanceof Held);
  await again.release();
  await (await b.lease("account:7", { waitMs: 0 })).release();
});

test("a deadlock is refused with its cycle", async () => {
  const one = await a.lease("lock:1", { flow: "one" });
  const two = await b.lease("lock:2", { flow: "two" });
  const waiting = a.lease("lock:2", { flow: "one" });
  await until(a, "lock:2", 1, 1);
  const error = await failure(b.lease("lock:1", { flow: "two" }));
  assert.ok(error instanceof Deadlock);
  assert.equal(error.cycle.length > 0, true);
  await two.release();
  await (await waiting).release();
  await one.release();
});

test("a lease is converted, renewed with another ttl, and reports progress", async () => {
  await using lease = await a.lease("doc:1", { mode: "shared" });
  await lease.convert([{ key: "doc:1" }, { key: "doc:2" }]);
  assert.deepEqual(
    lease.claims.map((c) => [c.key, c.mode]),
    [
      ["doc:1", "exclusive"],
      ["doc:2", "exclusive"],
    ],
  );
  await lease.renew({ ttlMs: 20_000, progress: "1/2" });
  assert.equal(lease.info.ttl_ms, 20_000);
  assert.equal((await b.look("doc:1")).holders[0]?.progress, "1/2");
});

test("a holder learns that another agent asks for its lease", async () => {
  const client = server.client("builder");
  let asked = (_: string) => {};
  const purpose = new Promise<string>((resolve) => (asked = resolve));
  const lease = await client.lease("repo:web", {
    onWarning: (_advice, info) => asked(info.yield?.purpose ?? ""),
  });
  const waiting = b.lease("repo:web", { onConflict: "preempt", purpose: "hotfix", priority: 10 });
  await until(b, "repo:web", 1, 1);
  beat(client);
  assert.equal(await purpose, "hotfix");
  assert.equal(lease.yield?.agent, "support-2");
  assert.equal(lease.warning?.action, "stop");
  await lease.release();
  await (await waiting).release();
});

test("a lease is parked until a person has answered", async () => {
  const lease = await a.lease("account:8");
  const id = await lease.park({ keys: "free", reason: "refund 1200?" });
  assert.equal(lease.held, false);
  const parked = await failure(a.resume(id));
  assert.equal((parked as LeaseLost).code, "parked");
  const { leases } = await b.request("listApprovals", {});
  const fence = leases?.find((l) => l.question === "refund 1200?")?.fence ?? "";
  await b.request("answerApproval", { path: { id: fence }, body: { verdict: "approved", by: "ann" } });
  await using resumed = await a.resume(id, { waitMs: 10_000 });
  assert.equal(resumed.decision?.by, "ann");
  assert.equal(resumed.held, true);
});

test("a client that is closed frees what it holds", async () => {
  const client = server.client("leaver");
  const lease = await client.lease("account:9");
  const waiting = failure(client.lease("account:9"));
  await until(a, "account:9", 1, 1);
  await client.close();
  assert.equal(lease.held, false);
  assert.equal(((await waiting) as LeaseLost).code, "session_ended");
  await lease[Symbol.asyncDispose]();
  await (await b.lease("account:9", { waitMs: 0 })).release();
  assert.ok((await failure(client.lease("account:9"))) instanceof Error);
});

test("a crowd at one key is served in order, without a poll too many", async () => {
  const sent = new Map<string, number>();
  const counting: typeof fetch = (input, init) => {
    const kind = String(input).includes("/v1/tickets/")
      ? "ticket"
      : (new URL(String(input)).pathname.split("/").pop() ?? "");
    sent.set(kind, (sent.get(kind) ?? 0) + 1);
    return fetch(input, init);
  };
  const crowd = server.client("crowd", { fetch: counting });
  const first = await crowd.lease("crowd:1");
  const places = new Map<string, number>();
  const served: number[] = [];
  const callers = Array.from({ length: 50 }, async (_, n) => {
    const onQueued = (ticket: { id: string; position: number }) => {
      if (!places.has(String(n))) places.set(String(n), ticket.position);
    };
    const lease = await crowd.lease("crowd:1", { onQueued });
    served.push(places.get(String(n)) ?? 0);
    await lease.release();
  });
  await until(a, "crowd:1", 1, 50);
  await first.release();
  await Promise.all(callers);
  assert.deepEqual(
    served,
    [...served].sort((x, y) => x - y),
  );
  assert.equal(sent.get("leases"), 51);
  assert.equal(sent.get("ticket"), 50);
});

test("a ttl above an hour is named, and one that was meant in seconds is refused", async () => {
  const client = server.client("billing-7");
  const warned = new Promise<Error>((resolve) =>
    process.on("warning", (warning) => /a ttl of/.test(warning.message) && resolve(warning)),
  );
  await (await client.lease("ttl:1", { ttlMs: 36_000_000 })).release();
  assert.match((await warned).message, /^a ttl of 36000000 ms is 10 hours: when the process dies, /);
  assert.match(String(await failure(client.lease("ttl:1", { ttlMs: 30 }))), /ttl 30ms is not between 1s and/);
});
