import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Clock, LeaseLost, Unreachable, type Client } from "../src/index.js";
import { Server, aborted, beat, failure, until } from "./server.js";

let server: Server;
let operator: Client;

before(async () => {
  server = await Server.start();
  operator = server.client("operator");
});
after(() => server[Symbol.asyncDispose]());

async function revoke(key: string, fence: string): Promise<void> {
  await operator.request("revokeLease", { body: { key, fence } });
}

test("a revoked lease aborts the signal of its work, and withLease rejects", async () => {
  const client = server.client("billing-7");
  let reason: unknown;
  const error = await failure(
    client.withLease("account:1", { graceMs: 0 }, async (lease, signal) => {
      await revoke("account:1", lease.fence);
      beat(client);
      reason = await aborted(signal);
      assert.equal(lease.held, false);
      return "done in vain";
    }),
  );
  assert.ok(error instanceof LeaseLost);
  assert.equal(error, reason);
  assert.equal(error.code, "revoked");
  assert.match(String(error), /account:1.*Next step: /);
});

test("disposing a lease throws its loss once, unless check has thrown it", async () => {
  const client = server.client("billing-7");
  const silent = await client.lease("account:2", { graceMs: 0 });
  const checked = await client.lease("account:3", { graceMs: 0 });
  await Promise.all([revoke("account:2", silent.fence), revoke("account:3", checked.fence)]);
  beat(client);
  await Promise.all([aborted(silent.signal), aborted(checked.signal)]);
  assert.ok((await failure(silent[Symbol.asyncDispose]())) instanceof LeaseLost);
  await silent[Symbol.asyncDispose]();
  assert.throws(() => checked.check(), LeaseLost);
  await checked[Symbol.asyncDispose]();
});

test("the failure of the work counts, and not the loss", async () => {
  const client = server.client("billing-7");
  const broken = new Error("the tool broke");
  const error = await failure(
    client.withLease("account:4", { graceMs: 0 }, async (lease, signal) => {
      await revoke("account:4", lease.fence);
      beat(client);
      await aborted(signal);
      throw broken;
    }),
  );
  assert.equal(error, broken);
});

test("a request of a lost lease tells that it is lost", async () => {
  const client = server.client("billing-7");
  const lease = await client.lease("account:5", { graceMs: 0 });
  await revoke("account:5", lease.fence);
  const error = await failure(lease.renew());
  assert.ok(error instanceof LeaseLost && error.code === "revoked");
  assert.equal(lease.held, false);
  assert.equal(lease.signal.reason, error);
});

test("the end of a session loses its leases, and the next lease has a new session", async () => {
  const client = server.client("billing-7");
  const lease = await client.lease("account:6");
  const session = await client.keeper.session();
  await operator.request("deleteSession", { path: { id: session.id } });
  beat(client);
  const reason = await aborted(lease.signal);
  assert.ok(reason instanceof LeaseLost && reason.code === "session_ended");
  await using next = await client.lease("account:6");
  assert.equal(next.held, true);
  assert.notEqual((await client.keeper.session()).id, session.id);
});

test("a server that stands still costs the lease no later than the server ends it", async () => {
  const other = await Server.start();
  try {
    let now = 0;
    const clock = new Clock({ monotonic: () => now, wall: () => now });
    const client = other.client("billing-7", { sessionTTLMs: 1000, retryForMs: 200, clock });
    const lease = await client.lease("account:1");
    other.signal("SIGSTOP");
    now = 899;
    lease.check();
    now = 900; // the ttl without its margin
    assert.equal(lease.held, false);
    const reason = await aborted(lease.signal);
    assert.ok(reason instanceof LeaseLost && reason.code === "expired");
    assert.match(reason.message, /^the lease on account:1 is considered lost: no server confirmed/);
  } finally {
    other.signal("SIGCONT");
    await other[Symbol.asyncDispose]();
  }
});

test("a lease outlives a restart of the server, and a place in line does", async () => {
  const other = await Server.start();
  try {
    const one = other.client("billing-7");
    const two = other.client("support-2");
    const lease = await one.lease("account:1");
    const waiting = two.lease("account:1");
    await until(one, "account:1", 1, 1);
    await other.restart();
    lease.check();
    await one.checkFence("account:1", lease.fence);
    await lease.release({ note: "after the restart" });
    await using next = await waiting;
    assert.equal(next.notes[0]?.text, "after the restart");
  } finally {
    await other[Symbol.asyncDispose]();
  }
});

test("without a server a request is unreachable, and says at which address", async () => {
  const other = await Server.start();
  await other.kill();
  const client = other.client("billing-7", { retryForMs: 50 });
  const error = await failure(client.lease("account:1"));
  assert.ok(error instanceof Unreachable);
  assert.ok(error.message.includes(other.url) && error.message.includes("ECONNREFUSED"), error.message);
  assert.match(String(error), /Next step: start one with `interlock serve --data-dir data`/);
  await other.restart();
  await client.look("account:1");
  await other.kill();
  const later = await failure(client.look("account:1"));
  assert.match(String(later), /Next step: try again a little later, and check that a server runs/);
  await other[Symbol.asyncDispose]();
});

test("a missing server is told at once, unless the caller asks to wait", async () => {
  const other = await Server.start();
  await other.kill();
  let tries = 0;
  let last = () => {};
  const counting: typeof fetch = (input, init) => {
    if (++tries === 3) last();
    return fetch(input, init);
  };
  const third = new Promise<void>((resolve) => (last = resolve));
  for (const ask of [(c: Client) => c.lease("account:1"), (c: Client) => c.look("account:1")]) {
    tries = 0;
    assert.ok((await failure(ask(other.client("billing-7", { fetch: counting })))) instanceof Unreachable);
    assert.equal(tries, 1);
  }
  const url = [other.url, "http://127.0.0.1:2"]; // each server is asked
  tries = 0;
  assert.ok((await failure(other.client("a", { url, fetch: counting }).look("k"))) instanceof Unreachable);
  assert.equal(tries, 2);
  tries = 0;
  const patient = other.client("billing-7", { retryForMs: 600_000, fetch: counting });
  const work = patient.look("account:1");
  await third;
  await other.restart();
  await work;
  await other.kill(); // an outage is not a missing server
  const again = patient.look("account:1");
  await other.restart();
  await again;
  await other[Symbol.asyncDispose]();
});

/** A clock that the test sets. */
function handClock(): { clock: Clock; monotonic: number; wall: number } {
  const hands = { monotonic: performance.now(), wall: Date.now() };
  const began = performance.now();
  const ran = () => performance.now() - began;
  const read = { monotonic: () => hands.monotonic + ran(), wall: () => hands.wall + ran() };
  return Object.assign(hands, { clock: new Clock(read) });
}

test("after a sleep of the machine a lease is not held until the server has confirmed it", async () => {
  const hands = handClock();
  let beat = () => {};
  const beaten = new Promise<void>((resolve) => (beat = resolve));
  const noticing: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init);
    if (String(input).endsWith("/heartbeat")) beat();
    return answer;
  };
  const client = server.client("billing-7", { clock: hands.clock, fetch: noticing });
  const lease = await client.lease("account:7");
  lease.check();
  hands.wall += 3_600_000; // an hour that the monotonic clock does not count
  assert.equal(lease.held, false);
  assert.throws(
    () => lease.check(),
    (e) => e instanceof LeaseLost && e.code === "expired",
  );
  assert.equal(lease.signal.aborted, false);
  await beaten; // the server knows better: the clock was set
  await new Promise((resolve) => setImmediate(resolve));
  lease.check();
  await lease.release();
});

test("a release after the wall clock was set is a release, and waits go on", async () => {
  const hands = handClock();
  const client = server.client("billing-7", { clock: hands.clock });
  const lease = await client.lease("account:8");
  const waiting = client.lease("account:8", { waitMs: 60_000 });
  await until(operator, "account:8", 1, 1);
  hands.wall += 3_600_000;
  await lease.release();
  assert.ok(lease.signal.reason instanceof LeaseLost && lease.signal.reason.code === "released");
  const next = await waiting;
  hands.wall += 3_600_000;
  assert.equal(await client.withLease("account:9", () => ((hands.wall += 3_600_000), "done")), "done");
  hands.wall -= 10_800_000;
  await next.release();
  assert.equal((await operator.look("account:8")).holders.length, 0);
});

test("a release after the machine has slept tells that the server has ended the lease", async () => {
  const hands = handClock();
  const client = server.client("billing-7", { clock: hands.clock });
  const lease = await client.lease("account:10", { graceMs: 0 });
  await revoke("account:10", lease.fence);
  hands.wall += 3_600_000;
  const error = await failure(lease.release());
  assert.ok(error instanceof LeaseLost && error.code === "revoked");
});

test("an event loop that stood still is named", async () => {
  const hands = handClock();
  const client = server.client("billing-7", { clock: hands.clock });
  await using lease = await client.lease("account:11", { ttlMs: 15_000 });
  const warned = new Promise<Error>((resolve) =>
    process.on("warning", (warning) => warning.name === "InterlockWarning" && resolve(warning)),
  );
  hands.monotonic += 6500; // of which the timer comes a second later at most
  hands.wall += 6500;
  await using other = await client.lease("account:12"); // the keeper looks at its timer
  const { message } = await warned;
  assert.equal(other.held, true);
  assert.match(
    message,
    /event loop .* came [56]\d{3} ms late, and a lease with a ttl of 15000 ms .* worker thread/,
  );
  assert.equal(lease.held, true);
});

test("many leases are kept by one heartbeat", async () => {
  let beats = 0;
  let beaten = () => {};
  const counting: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init);
    if (String(input).endsWith("/heartbeat")) {
      beats++;
      beaten();
    }
    return answer;
  };
  let now = 0;
  const clock = new Clock({ monotonic: () => now, wall: () => now });
  const client = server.client("billing-7", { sessionTTLMs: 30_000, fetch: counting, clock });
  const leases = await Promise.all(Array.from({ length: 100 }, (_, n) => client.lease(`many:${n}`)));
  now = 7999; // a heartbeat comes after a third of the ttl, or a fifth of that earlier
  await client.lease("many:early"); // the keeper looks at the clock
  for (const third of [1, 2, 3]) {
    assert.equal(beats, third - 1);
    const next = new Promise<void>((resolve) => (beaten = resolve));
    now = third * 10_000;
    client.keeper.expect(30_000)(); // it looks again, with no lease on its way, which a second heartbeat would list
    await next;
    while (leases.some(({ leftMs }) => leftMs < 25_000))
      await new Promise((resolve) => setImmediate(resolve));
    for (const lease of leases) lease.check();
  }
  assert.equal(beats, 3);
});
