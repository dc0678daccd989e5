import { Clock, cancel, later, type Timer } from "./clock.js";
import { NodeSender } from "./node.js";
import { FetchSender } from "./sender.js";
import { Servers } from "./servers.js";
import type { Contact, Kept, Port, Told } from "./standby.js";
import { Transport } from "./transport.js";
import { limits, type LeaseID } from "./types.js";

/** The thread of a Standby. */

interface Given extends Contact {
  port: Port;
}

const { process } = globalThis as unknown as {
  process: { getBuiltinModule(name: string): { workerData: Given } };
};
const { port, urls, credential, namespace, standbyMs } =
  process.getBuiltinModule("node:worker_threads").workerData;
const clock = new Clock();
const servers = new Servers(urls);
const transport = new Transport({
  servers,
  clock,
  credential,
  namespace,
  retryForMs: 0,
  patient: true,
  attemptMs: () => 10_000,
  sender: NodeSender.find() ?? new FetchSender((input, init) => fetch(input, init)),
});

const leases = new Set<LeaseID>();
/** The last that was told, and when it arrived here. */
let told: Told | undefined;
let heardAt = 0;
/** When the next heartbeat is due here. */
let dueAt = Infinity;
let timer: Timer | undefined;
let isBeating = false;

port.on("message", (message) => {
  const before = told;
  told = message as Told;
  heardAt = clock.steady();
  if (before?.session !== told.session) leases.clear();
  if (told.add !== undefined) leases.add(told.add);
  if (told.remove !== undefined) leases.delete(told.remove);
  dueAt = heardAt - (told.at - told.beatAt) + told.ttlMs / 2;
  plan();
});

function plan(): void {
  cancel(timer);
  if (isBeating || leases.size === 0 || dueAt - heardAt > standbyMs) return;
  timer = later(() => void beat(), Math.max(1, dueAt - clock.steady()));
}

async function beat(): Promise<void> {
  if (!told) return;
  const { at, session, ttlMs } = told;
  const listed = [...leases];
  const body = listed.length > limits.maxKnown ? {} : { known: { leases: listed } };
  // What has arrived here had been told before: so this is no later than the moment in which it is sent.
  const sentAt = at + clock.steady() - heardAt;
  dueAt = clock.steady() + ttlMs / 3;
  isBeating = true;
  try {
    const sending = { attemptMs: Math.max(200, ttlMs / 4) };
    const { data } = await transport.send("heartbeatSession", { path: { id: session }, body }, sending);
    for (const { lease } of data.losses) leases.delete(lease.id);
    port.postMessage({ sentAt, session, leases: listed, answer: data } satisfies Kept);
  } catch {
    dueAt = clock.steady() + Math.max(servers.pause(1, 0), ttlMs / 10); // the event loop learns it from its own
  } finally {
    isBeating = false;
    plan();
  }
}
