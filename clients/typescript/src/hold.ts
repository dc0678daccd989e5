import type { Client } from "./client.js";
import { overlap, scopes } from "./context.js";
import { InterlockError, LeaseLost } from "./errors.js";
import type { Lease } from "./lease.js";
import { Readings } from "./seen.js";
import { enter, type Patience, type Turn } from "./siblings.js";
import type * as t from "./types.js";

/**
 * The run of an agent: a turn, an invocation of a graph, or an attempt at a task. It keeps the leases that
 * the tools in it have taken, so that what one tool has read is as it was when another one writes.
 */
export class Run {
  isOver = false;
  /** Its flow, in the session of a client that does not share that of the run. */
  readonly flow = `turn-${crypto.randomUUID()}`;
  /** What it has read without a lease, and the fences of its calls that write. */
  readings = new Readings();
  fences = new Set<string>();
  /** Its places among the runs that share its flow. */
  readonly turns = new Set<Turn>();
  #kept: Lease[] = [];
  /** The losses that no tool has been told of, by their keys. */
  #lost: { keys: readonly string[]; why: LeaseLost }[] = [];

  /** The leases that it keeps and that are held. */
  get kept(): readonly Lease[] {
    this.#sort();
    return this.#kept;
  }

  /** Keeps a lease that a tool has got, until the end. After that the tool has it for itself. */
  keep(lease: Lease): void {
    if (!this.isOver && !this.kept.some((one) => one.id === lease.id)) this.#kept.push(lease.again());
  }

  /** Notes that a lease is lost which a parked one was to be. */
  lose(keys: readonly string[], why: LeaseLost): void {
    this.#lost.push({ keys, why });
  }

  /**
   * Throws the loss of a lease on these keys, once: what was read under it may be out of date. The tool after
   * that gets a new lease.
   */
  check(claims: readonly t.ClaimRequest[]): void {
    this.#sort();
    const at = this.#lost.findIndex(({ keys }) =>
      keys.some((key) => claims.some((c) => overlap(key, c.key))),
    );
    const [lost] = at < 0 ? [] : this.#lost.splice(at, 1);
    if (lost) throw lostInRun(lost.keys, lost.why);
  }

  #sort(): void {
    for (const lease of this.#kept) if (lease.loss) this.#lost.push({ keys: lease.keys, why: lease.loss });
    this.#kept = this.#kept.filter((lease) => !lease.loss);
  }

  /** Takes a place among the runs that share its flow, until the end, for a call with a place of its own. */
  async enter(flow: string, call: Turn, patience: Patience): Promise<void> {
    const { claims } = call;
    const fresh = claims.filter(
      (c) => ![...this.turns].some((turn) => turn.claims.some((d) => isSame(c, d))),
    );
    if (fresh.length === 0) return;
    const turn = await enter(flow, fresh, [{ turn: call }, ...scopes()], patience);
    if (this.isOver) turn.end();
    else this.turns.add(turn);
  }

  /** Whether the work of a fence and a flow is that of this run, or of what encloses it. */
  owns(fence: string, flow: string): boolean {
    if (this.fences.has(fence) || flow === this.flow) return true;
    const kept = this.#kept.some((lease) => lease.fence === fence);
    return kept || [...scopes()].some(({ lease }) => lease?.fence === fence);
  }

  /** Goes on with what an earlier run has read and written: that of the same thread, before a person was asked. */
  goOn(before: Run | undefined): void {
    if (before) ({ readings: this.readings, fences: this.fences } = before);
  }

  /** Takes all leases out, for whoever parks them. */
  take(): Lease[] {
    const all = this.#kept;
    this.#kept = [];
    return all;
  }

  /** Ends it: its leases are released. One that was lost has been told, or nothing more is done under it. */
  async end(): Promise<void> {
    this.isOver = true;
    const ends = this.take().map((lease) => lease.release());
    const settled = await Promise.allSettled(ends);
    for (const turn of this.turns) turn.end();
    for (const end of settled) {
      if (end.status === "rejected" && !(end.reason instanceof InterlockError)) throw end.reason;
    }
  }
}

function isSame(a: t.ClaimRequest, b: t.ClaimRequest): boolean {
  return a.key === b.key && a.mode === b.mode && a.permits === b.permits;
}

/** Returns the run around the caller: the outermost one, as a run within it is a part of it. */
export function runAround(client: Client): { run: Run; client: Client } | undefined {
  let found: { run: Run; client: Client } | undefined;
  for (const scope of scopes()) {
    if (scope.run && scope.client.place === client.place) found = { run: scope.run, client: scope.client };
    if (scope.isApart) break;
  }
  return found;
}

function lostInRun(keys: readonly string[], why: LeaseLost): LeaseLost {
  return new LeaseLost({
    code: why.code,
    message: `the lease on ${keys.join(", ")} was lost since this run took it (${why.message.replace(/\.+$/, "")})`,
    advice: {
      action: "re_read",
      retry_after_ms: 0,
      message: "what this run has read there may be out of date: read it again before you write",
    },
  });
}
