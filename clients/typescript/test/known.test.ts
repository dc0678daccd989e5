import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Clock, LeaseLost, type Client, type Lease, type api } from "../src/index.js";
import { Server, aborted, beat, failure, until } from "./server.js";

/** A heartbeat keeps what its client knows of, and nothing else. */

let server: Server;
let operator: Client;

before(async () => {
  server = await Server.start();
  operator = server.client("operator");
});
after(() => server[Symbol.asyncDispose]());

/** A fetch that notes the heartbeats with their answers. */
class Beats {
  readonly asked: (api.KnownLeases | undefined)[] = [];
  #waiting: (() => void) | undefined;

  readonly fetch: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init);
    if (!String(input).endsWith("/heartbeat")) return answer;
    const { known } = JSON.parse(new TextDecoder().decode(init?.body as Uint8Array)) as api.HeartbeatRequest;
    this.asked.push(known);
    const { wants_list } = (await answer.clone().json()) as api.Heartbeat;
    const over = this.#waiting;
    if (!wants_list) setImmediate(() => over?.()); // the keeper has read it by then
    return answer;
  };

  /** Has a client send a heartbeat, with a list if one is wanted, and returns what it told. */
  async of(client: Client): Promise<(api.KnownLeases | undefined)[]> {
    this.asked.length = 0;
    const over = new Promise<void>((resolve) => (this.#waiting = resolve));
    beat(client);
    await over;
    return this.asked.splice(0);
  }
}

/** Asks for a lease in the session of a client, whose answer is lost. */
async function lostAnswer(client: Client, key: string, ttlMs: number): Promise<api.LeaseID> {
  const { id } = await client.keeper.session();
  const body = { session: id, claims: [{ key }], ttl_ms: ttlMs, grace_ms: 0 };
  return ((await client.request("acquireLease", { body })) as api.Granted).lease.id;
}

test("a lease whose grant was lost ends by its own ttl, while the others are kept", async () => {
  const beats = new Beats();
  const client = server.client("billing-7", { fetch: beats.fetch });
  const lease = await client.lease("known:1");
  assert.deepEqual(await beats.of(client), [{ count: 1, digest: lease.id.slice(2) }]);
  const lost = await lostAnswer(client, "known:2", 1000);
  const [digest, list] = await beats.of(client);
  assert.deepEqual(digest, { count: 1, digest: lease.id.slice(2) });
  assert.deepEqual(list, { leases: [lease.id] });
  await using next = await operator.lease("known:2");
  assert.equal(next.held, true);
  const error = await failure(operator.request("getLease", { path: { id: lost } }));
  assert.match(String(error), /known:2/);
  lease.check();
  const second = await client.lease("known:3");
  const sum = BigInt(`0x${lease.id.slice(2)}`) ^ BigInt(`0x${second.id.slice(2)}`);
  assert.deepEqual(await beats.of(client), [{ count: 2, digest: sum.toString(16).padStart(32, "0") }]);
  await Promise.all([lease.release(), second.release()]);
  assert.deepEqual(await beats.of(client), [{ count: 0, digest: "0".repeat(32) }]);
});

test("a lease that a list has left out is kept again once its grant has arrived", async () => {
  const beats = new Beats();
  const client = server.client("billing-7", { fetch: beats.fetch });
  const flow = "late";
  const { id } = await client.keeper.session();
  const body: api.AcquireRequest = { session: id as api.SessionID, flow, claims: [{ key: "known:4" }] };
  await client.request("acquireLease", { body });
  assert.deepEqual((await beats.of(client))[1], { leases: [] });
  const lease = await client.lease("known:4", { flow }); // the server grants it again, and counts it again
  assert.equal(lease.held, true);
  assert.deepEqual(await beats.of(client), [{ count: 1, digest: lease.id.slice(2) }]);
  await lease.release();
});

test("two clients of one session each keep their own", async () => {
  const beats = new Beats();
  const one = server.client("billing-7", { fetch: beats.fetch });
  const session = await one.keeper.session();
  const joining: typeof fetch = async (input, init) => {
    const answer = await beats.fetch(input, init);
    if (!String(input).endsWith("/v1/sessions")) return answer;
    const view = (await answer.json()) as api.SessionView;
    return Response.json({ ...view, session: { ...view.session, id: session.id, ttl_ms: session.ttlMs } });
  };
  const two = server.client("billing-7", { fetch: joining });
  const first = await one.lease("known:5", { flow: "one" });
  const second = await two.lease("known:6", { flow: "two" });
  for (let n = 0; n < 3; n++) {
    assert.deepEqual((await beats.of(one)).at(-1), { leases: [first.id] });
    assert.deepEqual((await beats.of(two)).at(-1), { leases: [second.id] });
  }
  for (const key of ["known:5", "known:6"]) assert.equal((await operator.look(key)).holders.length, 1);
  first.check();
  second.check();
  await Promise.all([first.release(), second.release()]);
});

/** A server that grants everything, and answers heartbeats as told. */
class Pretended {
  readonly bodies: api.HeartbeatRequest[] = [];
  now = 0;
  isReused = false;
  /** Is called with each heartbeat, whose answer is then kept back until the timers that are set have run. */
  onBeat: (() => void) | undefined;
  readonly clock = new Clock({ monotonic: () => this.now, wall: () => this.now });
  #count = 0;
  #told = () => {};

  constructor(readonly answers: (object | undefined)[]) {}

  readonly fetch: typeof fetch = (input, init) => {
    const url = String(input);
    const ids = {
      session: `s_${"0".repeat(32)}`,
      lease: `l_${(++this.#count).toString(16).padStart(32, "0")}`,
    };
    const lease = { id: ids.lease, fence: "1", claims: [{ key: `k:${this.#count}` }], ttl_ms: 10_000 };
    let answer: object | undefined;
    if (url.endsWith("/v1/sessions")) answer = { session: { id: ids.session, name: "s", ttl_ms: 60_000 } };
    else if (url.endsWith("/v1/leases"))
      answer = { outcome: "granted", lease, notes: [], reused: this.isReused };
    else if (url.endsWith("/heartbeat")) {
      this.bodies.push(
        JSON.parse(new TextDecoder().decode(init?.body as Uint8Array)) as api.HeartbeatRequest,
      );
      answer = this.answers.length > 0 ? this.answers.shift() : {};
      setImmediate(() => setImmediate(() => this.#told()));
      if (answer) answer = { warnings: [], losses: [], ...answer };
    } else if (init?.method === "GET")
      answer = { lease: { ...lease, id: url.slice(url.lastIndexOf("/") + 1) } };
    else answer = { outcome: "released" };
    if (!answer) return Promise.reject(new Error("the connection broke"));
    const sent = Response.json(answer);
    if (!this.onBeat || !url.endsWith("/heartbeat")) return Promise.resolve(sent);
    this.onBeat();
    return new Promise((resolve) => setTimeout(() => resolve(sent), 5));
  };

  /** Advances to a moment at which a heartbeat is due, and waits for so many answers. */
  async at(now: number, client: Client, answers: number): Promise<void> {
    this.now = now;
    const { length } = this.bodies;
    client.keeper.expect(1)();
    while (this.bodies.length < length + answers)
      await new Promise<void>((resolve) => (this.#told = resolve));
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test("each lease lives from the heartbeat that has renewed it", async () => {
  const pretended = new Pretended([{ wants_list: true }, undefined, {}, { wants_list: true }, {}]);
  const { clock, fetch } = pretended;
  const client = server.client("billing-7", { clock, fetch });
  const lease = await client.lease("k:1");
  const left = () => lease.leftMs;
  assert.equal(left(), 9500);
  await pretended.at(4000, client, 2); // a list is wanted, and its answer does not arrive
  assert.equal(left(), 5500);
  await pretended.at(5000, client, 1);
  assert.equal(left(), 9500);
  await pretended.at(9000, client, 2); // the answer with the list counts
  assert.equal(left(), 9500);
  assert.deepEqual(Object.keys(pretended.bodies.at(-1)?.known ?? {}), ["leases"]);
});

test("a lease that its flow had before is held once a heartbeat has renewed it", async () => {
  const pretended = new Pretended([]);
  pretended.now = 100_000;
  const client = server.client("billing-7", { clock: pretended.clock, fetch: pretended.fetch });
  pretended.isReused = true;
  pretended.onBeat = () => client.keeper.expect(10_000)(); // the keeper sets its timer anew
  const lease = await client.lease("k:1");
  assert.equal(pretended.bodies.length, 1);
  assert.equal(lease.leftMs, 9500);
});

test("with more leases than a heartbeat can tell of, all are renewed", async () => {
  const pretended = new Pretended([]);
  const client = server.client("billing-7", { clock: pretended.clock, fetch: pretended.fetch });
  const leases = await Promise.all(Array.from({ length: 1025 }, (_, n) => client.lease(`k:${n}`)));
  await pretended.at(4000, client, 1);
  assert.deepEqual(pretended.bodies, [{}]);
  for (const lease of leases) assert.equal(lease.leftMs, 9500);
  await leases[0]?.release();
  await pretended.at(8000, client, 1);
  assert.equal(pretended.bodies[1]?.known?.count, 1024);
  await Promise.all(leases.map((lease) => lease.release()));
});

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Collects garbage until a warning tells that the lease on a key was given back. */
async function collected(key: string): Promise<void> {
  let isTold = false;
  const listen = ({ message }: Error) => {
    isTold ||= message.startsWith(`the lease on ${key} was given back: its handle was collected`);
  };
  process.on("warning", listen);
  while (!isTold) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  process.off("warning", listen);
}

test("a lease whose handle is collected is given back at once, with a warning", async () => {
  const client = server.client("billing-7");
  const signal = await (async () => (await client.lease("known:7")).signal)();
  await collected("known:7");
  const reason = await aborted(signal);
  assert.ok(reason instanceof LeaseLost && reason.code === "released");
  await using next = await operator.lease("known:7");
  assert.equal(next.held, true);
});

test("a lease lives while one of its handles does, and while its block runs", async () => {
  const client = server.client("billing-7");
  const flow = "shared";
  const kept = await client.lease("known:8", { flow });
  let end = () => {};
  let inside: Lease | undefined;
  void client.withLease("known:9", (lease) => {
    inside = lease;
    inside = undefined;
    return new Promise<void>((resolve) => (end = resolve));
  });
  await (async () => void (await client.lease("known:8", { flow })))();
  await until(operator, "known:9", 1, 0);
  await collected("known:8");
  kept.check();
  for (const key of ["known:8", "known:9"]) assert.equal((await operator.look(key)).holders.length, 1);
  assert.equal(inside, undefined);
  end();
  await until(operator, "known:9", 0, 0);
  await kept.release();
});

test("an attempt whose handler can never end fails, and the worker goes on", async () => {
  const client = server.client("worker-1");
  const queue = "never";
  await operator.request("setQueue", { path: { queue }, body: { backoff_ms: 1, max_attempts: 2 } });
  const { id } = await operator.submit({ queue, claims: [{ key: "known:10" }] });
  const stop = new AbortController();
  const work = client.work({ queue, signal: stop.signal }, (job) =>
    job.task.attempt === 1 ? new Promise<undefined>(() => {}) : { result: "ok" },
  );
  await until(operator, "known:10", 1, 0);
  await collected("known:10");
  const task = await operator.finished(id);
  assert.equal(task.result, "ok");
  assert.match(task.attempts?.[0]?.reason ?? "", /can never end/);
  stop.abort();
  await work;
});
