// Runs in Node, Deno and Bun: a lease, a wait, a refusal, what a lease encloses, a document, and no timer that is left.
import { Client, Deadlock, Held, add, guarded } from "@interlockdev/client";

const url = globalThis.Deno ? Deno.env.get("INTERLOCK_URL") : process.env.INTERLOCK_URL;
const name = globalThis.Deno ? "deno" : globalThis.Bun ? "bun" : "node";
const one = new Client({ url, agent: `${name}-1` });
const two = new Client({ url, agent: `${name}-2` });
const key = `smoke:${crypto.randomUUID()}`; // another process may still hold one
const lease = await one.lease(key);
const refusal = await two.lease(key, { waitMs: 0 }).catch((error) => error);
if (!(refusal instanceof Held) || refusal.holders[0].agent !== `${name}-1`) throw refusal;
let queued;
const inLine = new Promise((resolve) => (queued = resolve));
const waiting = two.lease(key, { onQueued: queued });
await inLine;
await lease.release({ note: "written" });
const next = await waiting;
if (next.notes[0].text !== "written") throw new Error("there is no note");
await next.commit({ writes: [add(`${key}/sum`, 9007199254740993n)] });
const tool = guarded(two, `${key}-in`, () => "done", { waitMs: Infinity });
await two.withLease(`${key}-in`, async () => {
  const later = new Promise((resolve) => setTimeout(() => resolve(tool({})), 1));
  if ((await Promise.all([tool({}), later])).join() !== "done,done") throw new Error("the tools did not run");
  const own = await one.lease(`${key}-in`, { waitMs: Infinity }).catch((error) => error);
  if (!(own instanceof Deadlock)) throw own;
});
const { value } = await one.read(`${key}/sum`);
if (value !== "9007199254740993") throw new Error(`the sum is ${value}`);
await two.close();
const reason = next.signal.reason;
if (reason.code !== "session_ended") throw reason;
await one.lease(key); // its timer must not keep the process
console.log(`${name}: ok`);
