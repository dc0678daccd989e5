/** A server that answers each request at once, and never with what its client waits for. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, EffectTaken, WaitTimeout } from "../src/index.js";
import { failure } from "./server.js";

const session = { id: "s_1", name: "s", ttl_ms: 30_000 };
const lease = {
  id: "l_1",
  fence: "1",
  claims: [{ key: "k" }],
  state: "grace",
  ttl_ms: 200,
  expires_in_ms: 200,
};
const ticket = { id: "t_1", position: 1, length: 1, eta_ms: 0 };
const problem = { code: "effect_claimed", status: 409, title: "", detail: "", advice: {} };

/** Returns a client of a server that answers a part of its API so, and counts the requests. */
function busy(path: RegExp, status: number, body: object) {
  let sent = 0;
  const client = new Client({
    url: "http://busy:1",
    agent: "a",
    fetch: async (input) => {
      sent++;
      if (path.test(String(input))) return Response.json(body, { status });
      return Response.json({ session });
    },
  });
  return { client, sent: () => sent };
}

test("a lease that is over is not asked for without an end", async () => {
  const { client } = busy(/leases/, 200, { outcome: "granted", lease, reused: true });
  const error = await failure(client.lease("k", { waitMs: 0 }));
  assert.ok(error instanceof WaitTimeout);
  assert.match(error.message, /^k is not free: the lease that this agent had is over/);
});

test("requests that are answered at once are paced", async () => {
  const waiting: [RegExp, number, object, (client: Client) => Promise<unknown>][] = [
    [/tasks/, 200, { task: { state: "running" } }, (c) => c.finished("t_1", { waitMs: 500 })],
    [/leases|tickets/, 202, { outcome: "queued", ticket, holders: [] }, (c) => c.lease("k", { waitMs: 500 })],
    [/effects/, 409, problem, (c) => c.effect({ tool: "a", target: "b" }, () => 1, { waitMs: 500 })],
    [
      /pull/,
      200,
      { tasks: [] },
      (c) => c.work({ queue: "q", signal: AbortSignal.timeout(500) }, () => undefined),
    ],
  ];
  for (const [path, status, body, wait] of waiting) {
    const { client, sent } = busy(path, status, body);
    const error = await wait(client).then(
      () => undefined,
      (error: unknown) => error,
    );
    assert.ok(
      error === undefined || error instanceof EffectTaken || error instanceof WaitTimeout,
      String(error),
    );
    assert.ok(sent() < 100, `${path.source}: ${sent()}`);
  }
});
