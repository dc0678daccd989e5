import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Held, LeaseLost } from "../src/index.js";
import { Server } from "./server.js";

/** A process that is started again goes on with the leases of the process before. */

let server: Server;

before(async () => {
  server = await Server.start();
});
after(() => server[Symbol.asyncDispose]());

test("the next process goes on with a lease, ahead of the line", async () => {
  const first = server.client("billing");
  const lease = await first.lease("k");
  let queued = (): void => undefined;
  const inLine = new Promise<void>((resolve) => {
    queued = resolve;
  });
  const waiter = server.client("other").lease("k", { waitMs: 60_000, onQueued: () => queued() });
  await inLine;
  const next = server.client("billing", { takeOver: await first.sessionID() });
  await assert.rejects(next.lease(["k", "l"], { waitMs: 0 }), Held); // not the same claims
  const taken = await next.lease("k", { waitMs: 0 });
  assert.ok(BigInt(taken.fence) > BigInt(lease.fence));
  await assert.rejects(lease.renew(), LeaseLost); // the process before, should it still live
  await taken.release();
  await (await waiter).release();
});
