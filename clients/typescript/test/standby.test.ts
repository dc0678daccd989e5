import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";
import { LeaseLost, type Client, type Lease } from "../src/index.js";
import { Server } from "./server.js";

/** A thread that keeps the leases while the event loop stands still. */

let server: Server;

before(async () => {
  server = await Server.start();
});
after(() => server[Symbol.asyncDispose]());

const word = new Int32Array(new SharedArrayBuffer(4));

/** Lets the whole event loop stand still for a moment, again and again until something holds. */
function block(until: () => boolean): void {
  while (!until()) Atomics.wait(word, 0, 0, 5);
}

/** Has the thread beat often, whatever the ttl is, and returns how often a lease was renewed since. */
async function often(client: Client, lease: Lease): Promise<() => number> {
  client.keeper.expect(300);
  await (await client.lease(`${lease.key}:other`)).release(); // the thread hears of that
  let times = 0;
  let left = lease.leftMs;
  return () => {
    const now = lease.leftMs;
    if (now > left) times++;
    left = now;
    return times;
  };
}

test("leases are kept while the event loop stands still, and their end is learned", async () => {
  const client = server.client("billing-7", { standbyMs: 600_000 });
  const lease = await client.lease("standby:1", { graceMs: 0 });
  const renewed = await often(client, lease);
  block(() => renewed() >= 3);
  lease.check();
  const revoke = ["lease", "revoke", "standby:1", "--fence", lease.fence, "--url", server.url, "-y"];
  execFileSync(process.env["INTERLOCK_BINARY"] ?? "", revoke, { stdio: "ignore" });
  block(() => !lease.held);
  assert.ok(lease.signal.reason instanceof LeaseLost && lease.signal.reason.code === "revoked");
  await client.close();
});

test("a thread gives up in time, and what has no thread says so", async () => {
  const client = server.client("billing-7", { standbyMs: 1 });
  const lease = await client.lease("standby:2");
  const renewed = await often(client, lease);
  let rounds = 0;
  block(() => renewed() > 1 || ++rounds > 200);
  assert.ok(renewed() <= 1, "more than the renewal that a busy machine begins in the first millisecond");
  await lease.release();
  assert.throws(() => server.client("billing-7", { standbyMs: 1, fetch }), /leave one of them out/);
});
