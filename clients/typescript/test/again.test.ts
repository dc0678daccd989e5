/** A flow that asks again for what an earlier request of it has got, or is just giving back. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { LeaseLost, OutcomeUnknown, type Client } from "../src/index.js";
import { Server, failure } from "./server.js";

let server: Server;
let other: Client;

before(async () => {
  server = await Server.start();
  other = server.client("other");
});
after(() => server[Symbol.asyncDispose]());

/** A client whose requests pass a function, which may fail, wait, or change the answer. */
function through(pass: (name: string, send: () => Promise<Response>) => Promise<Response>) {
  const log: string[] = [];
  const client = server.client("billing-7", {
    retryForMs: 0,
    fetch: async (input, init) => {
      const [, what, how = ""] = /\/v1\/(\w+)(?:\/[^/]+)?(\/\w+)?/.exec(String(input)) ?? [];
      const name = `${init?.method} ${what}${how}`;
      const answer = await pass(name, () => {
        log.push(name);
        return fetch(input, init);
      });
      log.push(`${name}: ${answer.status}`);
      return answer;
    },
  });
  return { client, log };
}

/** Returns an answer whose lease is shown in another state. */
async function withState(answer: Response, state: string): Promise<Response> {
  const body = JSON.parse((await answer.text()).replace('"state":"held"', `"state":"${state}"`)) as object;
  return Response.json(body, { status: answer.status });
}

const broken = () => Promise.reject(new Error("the connection broke"));

test("a place in line that was given up is left before its flow asks again", async () => {
  let open = () => {};
  const gate = new Promise<void>((resolve) => (open = resolve));
  const { client, log } = through(async (name, send) => {
    if (name === "GET tickets") return broken();
    if (name === "DELETE tickets") await gate;
    return send();
  });
  const held = await other.lease("again:1");
  const lost = await failure(client.lease("again:1", { flow: "one" }));
  assert.ok(lost instanceof OutcomeUnknown);
  await held.release();
  log.length = 0;
  const asked = client.lease("again:1", { flow: "one" });
  const elsewhere = await client.lease("again:2", { flow: "two" }); // another flow does not wait for that
  open();
  await using lease = await asked;
  assert.ok(log.indexOf("DELETE tickets: 200") < log.lastIndexOf("POST leases"), log.join(", "));
  assert.equal((await other.look("again:1")).holders[0]?.fence, lease.fence);
  await elsewhere.release();
});

test("an acquisition whose answer was lost is given back before its flow asks again", async () => {
  let isBroken = true;
  const { client, log } = through(async (name, send) => {
    const answer = await send();
    if (name !== "POST leases" || !isBroken) return answer;
    isBroken = false;
    return broken();
  });
  assert.ok((await failure(client.lease("again:3", { flow: "one" }))) instanceof OutcomeUnknown);
  await using lease = await client.lease("again:3", { flow: "one" });
  assert.deepEqual(log.slice(-4), [
    "POST leases/release",
    "POST leases/release: 200",
    "POST leases",
    "POST leases: 200",
  ]);
  assert.equal((await other.look("again:3")).holders[0]?.fence, lease.fence);
});

test("a lease that two requests of a flow have got is not given back by the one that has left", async () => {
  const leave = new AbortController();
  let release = () => {};
  const isAnswered = new Promise<void>((resolve) => (release = resolve));
  let count = 0;
  const { client } = through(async (name, send) => {
    const answer = await send();
    if (name === "POST leases" && ++count === 1) await isAnswered;
    return answer;
  });
  const first = failure(client.lease("again:4", { flow: "one", signal: leave.signal }));
  while (count === 0) await other.look("again:4");
  await using second = await client.lease("again:4", { flow: "one" });
  leave.abort(new Error("it left"));
  release();
  assert.match(String(await first), /it left/);
  await client.line.settled();
  assert.equal((await other.look("again:4")).holders[0]?.fence, second.fence);
  assert.equal(await second.verify(), undefined);
});

for (const state of ["grace", "ended"]) {
  test(`a grant of a lease that is shown as ${state} is none`, async () => {
    let count = 0;
    const { client, log } = through(async (name, send) => {
      const answer = await send();
      return name === "POST leases" && ++count === 1 ? withState(answer, state) : answer;
    });
    await using lease = await client.lease(`again:${state}`, { waitMs: 0 });
    assert.equal(log.filter((line) => line === "POST leases/release").length, 1);
    assert.equal((await other.look(`again:${state}`)).holders[0]?.fence, lease.fence);
  });
}

test("a grant that was over before its answer came is asked for anew", async () => {
  for (const code of ["released", "expired", "taken", "unknown_lease", "offer_lapsed"]) {
    let count = 0;
    const { client } = through(async (name, send) => {
      const problem = {
        type: "about:blank",
        title: "",
        status: 410,
        code,
        detail: "it is over",
        retryable: false,
      };
      const advice = { action: "stop", retry_after_ms: 0, message: "" };
      if (name !== "POST leases" || ++count > 1) return send();
      return Response.json({ ...problem, advice }, { status: 410 });
    });
    await using lease = await client.lease("again:5");
    assert.equal(lease.held, true, code);
  }
});

test("a lease that is shown in its grace, or parked, is lost", async () => {
  for (const [state, code] of [
    ["grace", "in_grace"],
    ["ended", "in_grace"],
    ["parked", "parked"],
  ] as const) {
    const { client } = through(async (name, send) => {
      const answer = await send();
      return name === "GET leases" ? withState(answer, state) : answer;
    });
    const lease = await client.lease(`shown:${state}`);
    const loss = await lease.verify();
    assert.ok(loss instanceof LeaseLost && loss.code === code);
    assert.equal(lease.signal.reason, loss);
    assert.match(String(loss), /^the lease on shown:\w+ is (over|parked)\. Next step: /);
    await client.close();
  }
});

test("a task that is handed out in the grace of its lease is not handled", async () => {
  let isFirst = true;
  const { client } = through(async (name, send) => {
    const answer = await send();
    const isPull =
      name === "POST queues/pull" && isFirst && (await answer.clone().text()).includes('"state":"held"');
    if (!isPull) return answer;
    isFirst = false;
    return withState(answer, "grace");
  });
  await other.request("setQueue", { path: { queue: "late" }, body: { backoff_ms: 1 } });
  const { id } = await other.submit({ queue: "late", claims: [{ key: "again:6" }] });
  const stop = new AbortController();
  const attempts: (number | undefined)[] = [];
  await client.work({ queue: "late", signal: stop.signal }, (job) => {
    attempts.push(job.task.attempt);
    stop.abort();
  });
  assert.equal((await other.finished(id)).state, "done");
  assert.deepEqual(attempts, [2]);
});
