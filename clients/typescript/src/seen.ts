/**
 * What a run has read of a key without a lease, and what others did there before it writes.
 *
 *        read                 write
 *    ─────┬──────────────────────┬────────────┬───────► entries of the journal
 *      Reading: who has    the lease of the  the tool
 *      the key, which      call, and all     writes
 *      entry is the last   events since
 *
 * A lease of others that was held in between may have been written under, also one whose holder has died; and so
 * may a document. Only a shared lease counts as one that was not, and one that was released with the outcome
 * `unchanged`. What is written without a lease, and is no document of Interlock, is not seen.
 */
import type { Client } from "./client.js";
import { overlap, scopes } from "./context.js";
import { InterlockError, Stale } from "./errors.js";
import type { Run } from "./hold.js";
import type { Lease } from "./lease.js";
import type * as t from "./types.js";

/** The outcome of a lease under which nothing was written. */
export const unchanged = "unchanged";

/** The events that tell of a holder of a key, or of a write of its document. */
const kinds = "granted,admitted,resumed,converted,parked,task_dispatched,grace,closed,ended,written";
const forgotten = "the server does not know any more what happened";
const mostShown = 5;
/** How many characters of a text are shown. */
const long = 1000;

/** The moment before a tool reads a key. */
export interface Reading {
  key: string;
  at: t.At;
  /** The version of the documents; 0 if there has never been one. */
  version: t.Decimal;
  /** Who may have been writing at that moment. */
  busy: readonly t.Holder[];
  /** How often runs had written by then under the leases around it, by their fences. */
  writes: ReadonlyMap<string, number>;
}

/** What a run has read and may decide on, by the calls of tools that have read it. */
export class Readings {
  readonly #found = new Map<string, Reading>();

  /** Takes note of a call. The same call again has read what is there now. */
  add(call: string, reading: Reading): void {
    this.#found.set(call, reading);
  }

  /** Returns those of a key, and of keys above and below it, the oldest first. */
  of(key: string): Reading[] {
    const found = [...this.#found.values()].filter((one) => overlap(one.key, key));
    return found.sort((a, b) => Number(BigInt(a.at.index) - BigInt(b.at.index)));
  }

  /** Forgets those: the model has been told that they are out of date. */
  forget(key: string): void {
    for (const [call, one] of this.#found) if (overlap(one.key, key)) this.#found.delete(call);
  }
}

/**
 * Looks at the moment before a call of a tool reads keys, and returns what is to be called once it has read. A call
 * that fails has read nothing: what the run has read before counts on.
 */
export async function read(
  client: Client,
  run: Run,
  keys: readonly string[],
  call: string,
): Promise<() => void> {
  const found: Reading[] = [];
  for (const key of keys) {
    const { as_of: version } = await client.request("listState", { query: { key: [key] } });
    const { at, holders } = await client.look(key);
    const busy = holders.filter(({ mode, fence, flow }) => mode !== "shared" && !run.owns(fence, flow));
    const writes = new Map(
      [...scopes()].flatMap(({ lease }) => (lease ? [[lease.fence, lease.writes.length]] : [])),
    );
    found.push({ key, at, version, busy, writes });
  }
  return () => {
    for (const one of found) run.readings.add(`${one.key} ${call}`, one);
  };
}

/** Returns what a run has read of keys. It throws Stale if there is a key that it has not read. */
export function readingsOf(run: Run, keys: readonly string[]): [Reading, ...Reading[]] {
  const found = keys.map((key) => run.readings.of(key));
  const [first, ...rest] = found.flat();
  if (!first || found.some((list) => list.length === 0)) throw unread(keys);
  return [first, ...rest];
}

/** Obtains the lease of a call that writes. It throws Stale if others may have written since the run has read. */
export async function compared(
  client: Client,
  run: Run,
  keys: readonly string[],
  obtain: (asOf: { asOf?: t.Decimal }) => Promise<Lease>,
): Promise<Lease> {
  const readings = readingsOf(run, keys);
  const versions = readings.map(({ version }) => BigInt(version));
  const version = versions.reduce((a, b) => (a < b ? a : b));
  let lease: Lease | undefined;
  let changes: string;
  try {
    lease = await obtain(version > 0n ? { asOf: String(version) as t.Decimal } : {});
    run.fences.add(lease.fence);
    changes = await others(client, run, lease, readings);
    if (changes === "") lease.check(); // the comparison may have taken long
  } catch (error) {
    const isGone =
      error instanceof InterlockError &&
      (error.code === "history_trimmed" || error.code === "future_version");
    if (!isGone) {
      await lease?.release({ outcome: unchanged }).catch(() => {});
      throw error;
    }
    changes = forgotten;
  }
  if (lease && changes === "") return lease;
  for (const key of keys) run.readings.forget(key);
  const packet = lease?.packet;
  await lease?.release({ outcome: unchanged });
  throw moved(keys, changes, packet);
}

/** Returns what others may have written at the keys of a lease since the first of the readings, in words. */
async function others(client: Client, run: Run, lease: Lease, readings: readonly Reading[]): Promise<string> {
  const { at, keys, fence } = lease;
  if (readings.some((one) => one.at.shard !== at.shard || one.at.epoch !== at.epoch))
    return "the server was replaced meanwhile";
  const since = Math.min(...readings.map((one) => one.writes.get(fence) ?? 0));
  if (lease.writes.slice(since).some((one) => one !== run.flow))
    return "another run under the lease around both had it";
  const found = new Map<string, Partial<t.Holder & t.Event>>();
  for (const { busy } of readings)
    for (const one of busy) if (!run.owns(one.fence, one.flow)) found.set(one.fence, one);
  const from = readings.map((one) => BigInt(one.at.index)).reduce((a, b) => (a < b ? a : b)) + 1n;
  const abouts = new Set(
    keys.map((key) => (keys.some((one) => one.includes("/")) ? (key.split("/")[0] ?? key) : key)),
  );
  for (const about of abouts) {
    const query = { from: String(from), about, event: kinds, follow: "false" } as const;
    const lines: unknown = await client.request("listEvents", { query });
    for (const line of String(lines).split("\n")) {
      if (line === "") continue;
      const event = JSON.parse(line) as t.Event | t.StreamEnd;
      if (!("index" in event)) return "the journal could not be read to its end";
      note(found, event, keys, run);
    }
  }
  const changed = [...found.values()].filter(({ outcome }) => outcome !== unchanged);
  if (changed.length === 0) return "";
  const told = changed.slice(-mostShown).map(words).join("; ");
  const more = changed.length > mostShown ? `, and ${changed.length - mostShown} before` : "";
  const documents = (lease.packet?.stale ?? []).slice(0, mostShown);
  return (
    told +
    more +
    documents.map(({ key, diff }) => `; the document ${key} changed by ${quoted(diff)}`).join("")
  );
}

/** Adds an event to what is found, by the fence of its lease; a write has its own place. */
function note(
  found: Map<string, Partial<t.Holder & t.Event>>,
  event: t.Event,
  keys: readonly string[],
  run: Run,
): void {
  const isWrite = event.event === "written";
  const fence = event.fence ?? "0";
  const meets = (claim: t.Claim) =>
    (isWrite || claim.mode !== "shared") && keys.some((key) => overlap(claim.key, key));
  if (run.owns(fence, event.flow ?? "") || !event.claims?.some(meets)) return;
  const place = isWrite ? `written ${event.index}` : fence;
  const before = found.get(place);
  found.delete(place); // so that those who were there last come last
  found.set(place, { ...before, ...event });
}

/** Says who it was, and why, with the words of others in quotation marks. */
function words(one: Partial<t.Holder & t.Event>): string {
  const said = (["purpose", "outcome", "note"] as const).filter((name) => one[name]);
  const texts = said.map((name) => `${name} ${quoted(one[name])}`).join(", ");
  const did = one.event === "written" ? "wrote the document" : "had it";
  return `${one.agent || "an agent without a name"} ${did}${texts === "" ? "" : ` (${texts})`}`;
}

function quoted(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length <= long ? text : `${text.slice(0, long)}... (cut)`;
}

/** The refusal of a write by a run that has not read its key. */
function unread(keys: readonly string[]): Stale {
  const text = `this run has not read ${keys.join(", ")} yet, or not since it was told of a change`;
  return stale(keys, text, "read it first, then decide");
}

/** The refusal of a write whose key others may have written since the run has read it. */
function moved(keys: readonly string[], changes: string, packet?: t.Packet): Stale {
  const text = `${keys.join(", ")} may have changed since this run read it: ${changes}`;
  return stale(keys, text, "read it again, then decide", packet);
}

function stale(keys: readonly string[], message: string, next: string, packet?: t.Packet): Stale {
  const advice = { action: "re_read", retry_after_ms: 0, message: next } as const;
  const told = {
    stale: packet?.stale ?? [],
    more: packet?.more ?? false,
    message: `${message}. Next step: ${next}`,
  };
  const problem = { code: "stale", detail: message, retryable: false, advice, key: keys[0], packet: told };
  return new Stale({ code: "stale", message, advice, problem: problem as t.Problem });
}
