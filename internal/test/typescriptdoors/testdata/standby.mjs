// Runs in Node, Deno and Bun: a thread keeps a lease while the event loop stands still for longer than its ttl.
import { Client } from "@interlockdev/client";

const url = globalThis.Deno ? Deno.env.get("INTERLOCK_URL") : process.env.INTERLOCK_URL;
const client = new Client({ url, agent: "standby", standbyMs: 600_000 });
const lease = await client.lease(`standby:${crypto.randomUUID()}`);
client.keeper.expect(300); // the thread beats that often, and the lease has time even if the machine is busy
const told = await client.lease(`standby:${crypto.randomUUID()}`);
const word = new Int32Array(new SharedArrayBuffer(4));
let left = lease.leftMs;
for (let renewals = 0; renewals < 3;) {
  Atomics.wait(word, 0, 0, 5);
  lease.check();
  if (lease.leftMs > left) renewals++;
  left = lease.leftMs;
}
await Promise.all([lease.release(), told.release()]);
await client.close();
console.log("kept");
