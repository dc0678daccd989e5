import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, Clock, LeaseLost, codes, type Lease, type api } from "../src/index.js";
import { encode } from "../src/json.js";
import { failure } from "./server.js";

/** Why a lease was lost: the first reason counts, and not what the client did after it. */

const json = (status: number, value: unknown): Response =>
  new Response(encode(value), { status, headers: { "Content-Type": "application/json" } });

const refusal = (code: api.Code): Response =>
  json(codes[code].status, {
    code,
    detail: code === "released" ? "the lease on k was released by its holder" : "because",
    advice: { action: "stop", retry_after_ms: 0, message: "x" },
  });

/** A server of a script, with a clock that the test sets. */
class Stage {
  now = 0;
  granted = 0;
  readonly sent: string[] = [];
  /** Answers a request that is none of session, acquisition or release. */
  answer: (request: string) => Response | Promise<Response> = () => refusal("released");
  release: () => Response | Promise<Response> = () => json(200, { outcome: "done" });
  /** The lease that the next acquisition gets: a new one, if it is undefined. */
  again: string | undefined;

  readonly client = new Client({
    url: "http://a:1",
    agent: "x",
    clock: new Clock({ monotonic: () => this.now, wall: () => this.now }),
    fetch: async (input, init) => {
      const request = `${init?.method ?? "GET"} ${new URL(String(input)).pathname}`;
      if (request === "POST /v1/sessions")
        return json(201, { outcome: "created", session: { id: "s_1", name: "x-1", ttl_ms: 30_000 } });
      if (request.startsWith("DELETE /v1/sessions")) return json(200, { outcome: "done" });
      this.sent.push(request);
      if (request === "POST /v1/leases") return json(201, this.grant());
      if (request.endsWith("/release")) return this.release();
      return this.answer(request);
    },
  });

  grant(): object {
    const id = this.again ?? `l_${++this.granted}`;
    this.again = undefined;
    return {
      outcome: "granted",
      reused: false,
      changed: false,
      notes: [],
      lease: { id, fence: "7", claims: [{ key: "k", mode: "exclusive" }], ttl_ms: 30_000, state: "active" },
    };
  }

  /** Has the clock end all leases, and the keeper notice it with an answer to a heartbeat. */
  async runOut(lease: Lease): Promise<void> {
    this.now += 40_000;
    const grant = [...this.client.keeper.grants.values()].find((g) => g.info.id === lease.id);
    assert.ok(grant);
    // A grant that has been on its way for long has the keeper look at all others.
    await failure(this.client.keeper.adopt(grant.session, { ...grant.info, id: "l_99" as never }, -60_000));
    assert.ok(lease.signal.aborted);
  }
}

const expired = (error: unknown): boolean => error instanceof LeaseLost && error.code === "expired";

const named: Record<string, (lease: Lease, client: Client) => Promise<unknown>> = {
  renew: (lease) => lease.renew(),
  convert: (lease) => lease.convert([{ key: "k" }]),
  arrive: (lease) => lease.arrive(),
  park: (lease) => lease.park(),
  commit: (lease) => lease.commit({ writes: [] }),
  "Client.commit": (lease, client) => client.commit({ writes: [], leases: [lease] }),
  effect: (lease, client) => client.effect({ tool: "t", target: "x" }, () => 1, { lease }),
};

for (const [name, ask] of Object.entries(named)) {
  test(`${name}: a refusal after a loss tells the loss`, async () => {
    const stage = new Stage();
    await using client = stage.client;
    const lease = await client.lease("k");
    stage.answer = async (request) => {
      if (request.endsWith("/heartbeat")) return json(503, {});
      if (lease.held) await stage.runOut(lease);
      return refusal("released");
    };
    assert.ok(expired(await failure(ask(lease, client))));
    const { length } = stage.sent;
    assert.ok(expired(await failure(ask(lease, client))));
    assert.equal(stage.sent.length, length); // and no further request is sent
  });
}

test("a renewal that is answered after the loss does not hide it", async () => {
  const stage = new Stage();
  await using client = stage.client;
  const lease = await client.lease("k");
  stage.answer = async (request) => {
    if (request.endsWith("/heartbeat")) return json(503, {});
    await stage.runOut(lease);
    stage.again = lease.id;
    return json(200, stage.grant());
  };
  assert.ok(expired(await failure(lease.renew())));
});

const heartbeat = (code: api.Code, ...ids: string[]): Response => {
  const advice = { action: "stop", retry_after_ms: 0, message: "x" };
  const losses = ids.map((id) => ({
    lease: { id, fence: "7", claims: [{ key: "k", mode: "exclusive" }], ttl_ms: 30_000, state: "ended" },
    code,
    detail: "because",
    advice,
  }));
  return json(200, { outcome: "done", losses, warnings: [] });
};

const causes: Record<string, [api.Code, (stage: Stage, lease: Lease) => Promise<void>]> = {
  "a heartbeat": [
    "revoked",
    async (stage, lease) => {
      stage.now += 16_000;
      stage.answer = (request) =>
        request.startsWith("GET") ? refusal("released") : heartbeat("revoked", "l_1", "l_2");
      const grant = stage.client.keeper.grants.get(lease.id);
      assert.ok(grant);
      await failure(stage.client.keeper.adopt(grant.session, { ...grant.info, id: "l_99" as never }, 0));
    },
  ],
  "the clock": ["expired", (stage, lease) => stage.runOut(lease)],
  "the end of the session": [
    "session_ended",
    async (stage, lease) => {
      stage.answer = () => refusal("session_ended");
      stage.now += 16_000;
      const grant = stage.client.keeper.grants.get(lease.id);
      assert.ok(grant);
      await failure(stage.client.keeper.adopt(grant.session, { ...grant.info, id: "l_99" as never }, 0));
    },
  ],
  "the end of the client": ["session_ended", (stage) => stage.client.close()],
};

for (const [cause, [code, lose]] of Object.entries(causes)) {
  test(`${cause}: a release of another lost lease as one learns of its loss is not the reason`, async () => {
    const stage = new Stage();
    await using client = stage.client;
    const [one, two] = [await client.lease("k"), await client.lease("k")];
    stage.answer = () => json(503, {});
    const met: Promise<unknown>[] = [];
    one.signal.addEventListener("abort", () => met.push(failure(two.release())));
    two.signal.addEventListener("abort", () => met.push(failure(one.release())));
    await lose(stage, one);
    assert.deepEqual(
      (await Promise.all(met)).map((error) => error instanceof LeaseLost && error.code),
      [code, code],
    );
    for (const lease of [one, two])
      assert.throws(
        () => lease.check(),
        (e) => e instanceof LeaseLost && e.code === code,
      );
  });
}

test("the verdict that a release meets is the reason", async () => {
  const stage = new Stage();
  await using client = stage.client;
  const lease = await client.lease("k");
  stage.release = () => refusal("revoked");
  const met = await failure(lease.release());
  assert.ok(met instanceof LeaseLost && met.code === "revoked");
  assert.throws(
    () => lease.check(),
    (e) => e === met,
  );
});

test("a release that an earlier attempt has carried out is no loss", async () => {
  const stage = new Stage();
  await using client = stage.client;
  const lease = await client.lease("k");
  stage.release = () => refusal("released");
  await lease.release();
});

test("a release after the clock has ended a lease leaves the reason", async () => {
  const stage = new Stage();
  await using client = stage.client;
  const lease = await client.lease("k");
  stage.now += 40_000; // the keeper has not noticed it
  stage.release = () => refusal("expired");
  assert.ok(expired(await failure(lease.release())));
  assert.ok(expired(lease.signal.reason));
});

test("a grant of what is just given back is given back, and asked for anew", async () => {
  const stage = new Stage();
  await using client = stage.client;
  let answer = (_: Response) => {};
  let sent = () => {};
  const release = new Promise<void>((resolve) => (sent = resolve));
  stage.release = () => {
    sent();
    return new Promise((resolve) => (answer = resolve));
  };
  const first = await client.lease("k", { flow: "f" });
  const released = first.release();
  await release;
  stage.release = () => refusal("released");
  stage.again = first.id; // the server has it still
  const second = await client.lease("k", { flow: "f" });
  assert.equal(second.id, "l_2");
  answer(json(200, { outcome: "done" }));
  await released;
  second.check();
});

test("a task whose lease is lost as its end is reported fails with the loss", async () => {
  const stage = new Stage();
  await using client = stage.client;
  const stop = new AbortController();
  let handled: Lease | undefined;
  stage.answer = async (request) => {
    if (request.endsWith("/pull")) {
      const { lease } = stage.grant() as { lease: object };
      const task = { id: "t_1", queue: "q", state: "running" };
      return json(200, { tasks: [{ task, lease, changed: false, notes: [], documents: [], as_of: "1" }] });
    }
    if (request.endsWith("/heartbeat")) return json(503, {});
    assert.ok(handled);
    await stage.runOut(handled);
    return refusal("released");
  };
  let failed: unknown;
  await client.work(
    {
      queue: "q",
      signal: stop.signal,
      onError: (error) => {
        failed = error;
      },
    },
    (job) => {
      handled = job.lease;
      stop.abort();
    },
  );
  assert.ok(expired(failed));
  assert.equal(stage.sent.filter((request) => request.endsWith("/nack")).length, 0);
});

test("an end for which there is no room is a failed attempt, and one that may pass is reported again", async () => {
  for (const [code, reports] of [
    ["too_many_tasks", ["ack", "nack"]],
    ["quota_exceeded", ["ack", "ack"]],
    ["shutting_down", ["ack", "ack"]],
  ] as const) {
    const stage = new Stage();
    await using client = stage.client;
    const stop = new AbortController();
    const sent: string[] = [];
    stage.answer = (request) => {
      if (request.endsWith("/pull")) {
        const { lease } = stage.grant() as { lease: object };
        const task = { id: "t_1", queue: "q", state: "running" };
        return json(200, { tasks: [{ task, lease, changed: false, notes: [], documents: [], as_of: "1" }] });
      }
      sent.push(request.slice(request.lastIndexOf("/") + 1));
      return sent.length === 1 ? refusal(code) : json(200, { outcome: "done" });
    };
    await client.work({ queue: "q", signal: stop.signal }, () => stop.abort());
    assert.deepEqual(sent, reports);
  }
});

test("a lease that runs out while its end is on the way is not released: the server decides", async () => {
  const stage = new Stage();
  await using client = stage.client;
  const stop = new AbortController();
  const errors: unknown[] = [];
  let handled: Lease | undefined;
  let acks = 0;
  stage.answer = async (request) => {
    if (request.endsWith("/pull")) {
      const { lease } = stage.grant() as { lease: object };
      const task = { id: "t_1", queue: "q", state: "running" };
      return json(200, { tasks: [{ task, lease, changed: false, notes: [], documents: [], as_of: "1" }] });
    }
    if (!request.endsWith("/ack") || ++acks > 1) return json(request.endsWith("/ack") ? 200 : 503, {});
    assert.ok(handled);
    await stage.runOut(handled);
    return json(503, {});
  };
  const onError = (error: unknown) => void errors.push(error);
  await client.work({ queue: "q", signal: stop.signal, onError }, ({ lease }) => {
    handled = lease;
    stop.abort();
  });
  assert.deepEqual([acks, errors], [2, []]);
  assert.equal(stage.sent.filter((request) => request === `POST /v1/leases/l_1/release`).length, 0);
});
