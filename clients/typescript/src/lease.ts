/// <reference lib="esnext.disposable" preserve="true" />
import type { Ask, Waiting } from "./acquire.js";
import type { Client } from "./client.js";
import { within } from "./context.js";
import type { Turn } from "./siblings.js";
import { linked, listen, orAborted } from "./stop.js";
import type { Commit } from "./state.js";
import { InterlockError, LeaseLost, OutcomeUnknown, leaseIsGone } from "./errors.js";
import { Grant, expired, lossOf, type Remains } from "./keeper.js";
import { checkTTL, clip } from "./text.js";
import { limits } from "./types.js";
import type * as t from "./types.js";

/** A report to the next holders. */
export interface Outcome {
  /** The holder's word for how it went, such as "done". */
  outcome?: string;
  /** What was changed, for the next holder. */
  note?: string;
}

/**
 * A handle of a granted lease. Several handles of one flow may stand for the same lease, which the
 * last release frees. If the program loses the last one, and it is collected as garbage, the lease is given back
 * with a warning: the signal aborts.
 */
export class Lease implements AsyncDisposable {
  readonly #client: Client;
  readonly #grant: Grant;
  #granted: t.Granted;
  readonly #own = new AbortController();
  readonly #flow: string;
  readonly #remains: Remains;
  /** The place among the calls beside the one that got it. @internal */
  turn: Turn | undefined;
  #releasing: Promise<void> | undefined;
  #reported = false;
  /** The end of the lease that its release has met. */
  #verdict: LeaseLost | undefined;

  /** @internal */
  constructor(client: Client, grant: Grant, granted: t.Granted, flow: string) {
    this.#client = client;
    this.#grant = grant;
    this.#granted = granted;
    this.#flow = flow;
    this.#remains = { grant, own: this.#own, deafen: passOn(grant.aborting.signal, this.#own) };
    grant.keeper.hold(this, this.#remains);
  }

  /** The client whose session holds it. @internal */
  get client(): Client {
    return this.#client;
  }

  /** The runs that have begun, or ended, a call that writes under it. @internal */
  get writes(): string[] {
    return this.#grant.writes;
  }

  /** The entry of the journal that the answer to its request was about. @internal */
  get at(): t.At {
    return this.#granted.at;
  }

  /** Whether the flow had it before. @internal */
  get isReused(): boolean {
    return this.#granted.reused;
  }

  /** Returns another handle, which is to be released as well. @internal */
  again(): Lease {
    return new Lease(this.#client, this.#grant, this.#granted, this.#flow);
  }

  /** Asks the server whether it is held, and returns the loss if not. @internal */
  async verify(): Promise<LeaseLost | undefined> {
    await this.#grant.keeper.verify(this.#grant);
    return this.loss;
  }

  /** Whether no other handle stands for it. @internal */
  get isAlone(): boolean {
    return this.#grant.handles === 1 && !this.#grant.isForeign;
  }

  /**
   * Runs work that this lease encloses: what it asks for, by whatever it calls or starts, uses this lease, and
   * never waits for it. withLease does the same and releases the lease.
   */
  enclose<R>(work: () => R): R {
    return within({ client: this.#client, flow: this.#flow, lease: this, turn: this.turn }, work);
  }

  /** The lease's id: a secret of its holder. */
  get id(): t.LeaseID {
    return this.#grant.info.id;
  }

  /** The number to pass along wherever the agent writes. convert, arrive and resume change it. */
  get fence(): t.Decimal {
    return this.#grant.info.fence;
  }

  get claims(): readonly t.Claim[] {
    return this.#grant.info.claims;
  }

  get keys(): readonly t.Key[] {
    return this.claims.map((c) => c.key);
  }

  /** The first key: of a request for any one, the one that it got. */
  get key(): t.Key {
    return this.claims[0]?.key ?? "";
  }

  /** The flow that holds it. A request of the same flow is granted the same key again. */
  get flow(): string {
    return this.#flow;
  }

  /** Whether another holder may have written since: read again before you decide. */
  get changed(): boolean {
    return this.#granted.changed;
  }

  /** The notes of earlier holders: other agents' texts, never instructions. */
  get notes(): readonly t.Note[] {
    return this.#granted.notes;
  }

  /** The documents at the keys that changed meanwhile; its message is ready for a prompt. */
  get packet(): t.Packet | undefined {
    return this.#granted.packet;
  }

  /** The documents at the keys, if they were asked for. */
  get documents(): readonly t.Document[] {
    return this.#granted.documents ?? [];
  }

  /** The server's remarks, such as that a key is spelled almost like another one. */
  get warnings(): readonly string[] {
    return this.#granted.warnings ?? [];
  }

  /** A person's answer to the question of the last parking. */
  get decision(): t.Decision | undefined {
    return this.#grant.info.decision;
  }

  /** The last request of another agent to yield. Its purpose is that agent's text. */
  get yield(): t.Yield | undefined {
    return this.#grant.yield;
  }

  /** What the server warned of last: the lease ends soon, or another agent asks for it. */
  get warning(): t.Advice | undefined {
    return this.#grant.warning;
  }

  /** The lease as the server showed it last. */
  get info(): Readonly<t.Lease> {
    return this.#grant.info;
  }

  /** How long it lives on if nothing more is heard of the server. */
  get leftMs(): number {
    return this.held ? Math.max(0, this.#grant.deadline - this.#client.clock.now()) : 0;
  }

  /** Aborts when the lease is lost or released, with a LeaseLost as its reason. */
  get signal(): AbortSignal {
    return this.#own.signal;
  }

  /** Whether it is held, as far as this client can tell. */
  get held(): boolean {
    return this.#loss() === undefined;
  }

  /** Throws the LeaseLost with the reason if it is not held any more. It sends no request. */
  check(): void {
    const lost = this.#loss();
    if (lost) {
      this.#reported = true;
      throw lost;
    }
  }

  #loss(): LeaseLost | undefined {
    this.#grant.keeper.sync();
    if (this.#verdict) return this.#verdict;
    if (this.#own.signal.aborted) return this.#own.signal.reason as LeaseLost;
    if (this.#grant.lost) return this.#grant.lost;
    const now = this.#client.clock.now();
    return now >= this.#grant.deadline ? expired(this.#grant, now) : undefined;
  }

  /**
   * Frees the lease, and reports to the next holders. Further calls return the result of the first.
   * It rejects with LeaseLost if the lease was already gone. Too long a report is cut off.
   */
  release(report: Outcome = {}): Promise<void> {
    this.#releasing ??= this.#release(report);
    return this.#releasing;
  }

  async #release(report: Outcome): Promise<void> {
    const body: t.ReleaseRequest = {};
    if (report.outcome !== undefined) body.outcome = clip(String(report.outcome), limits.maxNameBytes);
    if (report.note !== undefined) body.note = clip(String(report.note), limits.maxNoteBytes);
    const grant = this.#grant;
    const { keeper } = grant;
    keeper.drop(this.#remains);
    if (grant.lost) throw grant.lost;
    const over = this.#loss();
    // A lease that is over only because the machine seems to have slept may be held: the server knows.
    const left = grant.deadline - (this.#client.clock.now() - keeper.doubtMs);
    const lost = left <= 0 ? over : undefined;
    this.#own.abort(
      lost ??
        new LeaseLost({
          code: "released",
          message: `the lease on ${this.key} was released`,
          advice: { action: "stop", retry_after_ms: 0, message: "acquire again if there is more to do" },
        }),
    );
    this.#remains.deafen();
    if (grant.handles > 0) return;
    keeper.forget(grant);
    if (grant.isForeign) return;
    keeper.leave(this.id);
    // It goes on in the background: heartbeats of the session would keep the lease alive otherwise.
    const work = this.#giveBack(body);
    if (lost) {
      work.catch(() => {});
      throw lost;
    }
    const { signal: limit, end } = linked([], Math.max(0, left));
    try {
      await orAborted(work, limit);
    } catch (error) {
      if (keeper.closed.aborted) return; // the end of the session released it
      if (error instanceof InterlockError && leaseIsGone(error.code)) {
        if (error.code === "released") return; // by an earlier attempt at this release
        this.#verdict = lossOf(error);
        throw this.#verdict;
      }
      if (!limit.aborted) throw error;
      throw (
        over ??
        new OutcomeUnknown({
          code: "outcome_unknown",
          message: `no server confirmed the release of ${this.key} before its ttl was over`,
          cause: error,
        })
      );
    } finally {
      end();
    }
  }

  /** Releases the lease at the server. A report that the server refuses does not keep it. */
  async #giveBack(body: t.ReleaseRequest): Promise<void> {
    const { keeper } = this.#grant;
    const path = { id: this.id };
    try {
      await keeper.insist("releaseLease", { path, body });
    } catch (error) {
      if (!(error instanceof InterlockError) || leaseIsGone(error.code)) throw error;
      await keeper.insist("releaseLease", { path });
      throw error;
    }
  }

  /**
   * Releases the lease. It throws only LeaseLost, if the lease was lost and check has not said so:
   * if no server can be reached, the ttl frees the keys.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.release();
    } catch (error) {
      if (!(error instanceof LeaseLost)) {
        if (error instanceof InterlockError) return;
        throw error;
      }
      if (error.code === "released" || this.#reported || this.#grant.keeper.closed.aborted) return;
      this.#reported = true;
      throw error;
    }
  }

  /** Renews the lease by itself, changes its ttl from now on, or reports progress to those who wait. */
  async renew(change: { ttlMs?: number; progress?: t.Progress } = {}): Promise<void> {
    checkTTL(change.ttlMs);
    const body: t.RenewRequest = {};
    if (change.ttlMs !== undefined) body.ttl_ms = change.ttlMs;
    if (change.progress !== undefined) body.progress = change.progress;
    const { data, sentAt } = await this.#ask("renewLease", { path: { id: this.id }, body });
    this.#changed(data.lease, sentAt);
    this.#grant.confirm(sentAt);
  }

  /** Replaces the claims: more, fewer, or in another mode. Waits like a request. */
  async convert(claims: t.ClaimRequest[], waiting: Waiting = {}): Promise<void> {
    await this.#client.unlessOwn(claims, false, (refuse) =>
      this.#change(
        (wait) => ({ operation: "convertLease", path: { id: this.id }, body: { claims, ...wait } }),
        { ...waiting, refuse },
      ),
    );
  }

  /** Arrives at its barrier again, and waits for the other parties. */
  async arrive(waiting: Waiting = {}): Promise<void> {
    await this.#change(
      ({ on_conflict: _, ...body }) => ({ operation: "arriveAtBarrier", path: { id: this.id }, body }),
      waiting,
    );
  }

  async #change(ask: Ask, waiting: Waiting): Promise<void> {
    const { granted, sentAt } = await under([this], () => this.#client.line.obtain(ask, waiting, "return"));
    this.#granted = granted;
    this.#changed(granted.lease, sentAt);
  }

  /** Takes over an answer, unless the lease was lost meanwhile and is given back. */
  #changed(info: t.Lease, sentAt: number): void {
    if (this.#grant.lost) throw this.#grant.lost;
    this.#grant.update(info, sentAt);
  }

  /** Commits documents under this lease. */
  commit(commit: Commit): Promise<t.Committed> {
    const leases = [...(commit.leases ?? []), this];
    return this.#client.commit({ flow: this.flow, ...commit, leases });
  }

  /**
   * Parks the lease until a person has answered, or until forMs has passed: it needs no heartbeat.
   * The handle ends; Client.resume makes a new one out of the id that this returns.
   */
  async park(parking: { keys?: "keep" | "free"; forMs?: number; reason?: string } = {}): Promise<t.LeaseID> {
    const body: t.ParkRequest = {};
    if (parking.keys !== undefined) body.keys = parking.keys;
    if (parking.forMs !== undefined) body.for_ms = parking.forMs;
    if (parking.reason !== undefined) body.reason = parking.reason;
    await this.#ask("parkLease", { path: { id: this.id }, body });
    const { id } = this;
    if (this.#grant.lost) throw this.#grant.lost;
    this.#releasing = Promise.resolve();
    this.#grant.lose(
      new LeaseLost({
        code: "parked",
        message: `the lease on ${this.key} was parked`,
        advice: { action: "stop", retry_after_ms: 0, message: "resume it when the answer is there" },
      }),
    );
    return id;
  }

  #ask: Client["answer"] = (operation, parameters, options) =>
    under([this], () => this.#client.answer(operation, parameters, options));

  /** Why it was lost, if it was. @internal */
  get loss(): LeaseLost | undefined {
    return this.#grant.lost;
  }

  /** Takes note that a report which ends it begins. @internal */
  reports(): void {
    this.#grant.reporting = true;
  }

  /** Takes note that the server has ended it. @internal */
  lose(why: LeaseLost): void {
    this.#grant.lose(why);
  }

  /** Ends the handle of a lease that ended with another request. @internal */
  end(why: string): void {
    this.#releasing ??= Promise.resolve();
    this.#grant.lose(
      new LeaseLost({
        code: "released",
        message: `the lease on ${this.key} is over: ${why}`,
        advice: { action: "stop", retry_after_ms: 0, message: "acquire again if there is more to do" },
      }),
    );
  }

  /** @internal */
  onWarning(listener: ((advice: t.Advice, lease: t.Lease) => void) | undefined): void {
    this.#grant.listener = listener ?? this.#grant.listener;
  }
}

/** Has a controller abort with a signal, and returns what undoes that. It keeps no handle of a lease alive. */
function passOn(signal: AbortSignal, own: AbortController): () => void {
  const end = () => own.abort(signal.reason);
  if (!signal.aborted) return listen(signal, end);
  end();
  return () => {};
}

/**
 * Does work that needs leases. If one of them is lost, before or meanwhile, it rejects with LeaseLost. A
 * refusal may only be the result of what this client did after the loss, as it releases what it has
 * lost: the first reason counts.
 */
export async function under<T>(leases: readonly (Lease | t.LeaseID)[], work: () => Promise<T>): Promise<T> {
  const handles = leases.filter((l) => typeof l !== "string");
  for (const lease of handles) lease.check();
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof InterlockError) || !error.problem || !leaseIsGone(error.code)) throw error;
    if (leases.length === 1) handles[0]?.lose(lossOf(error));
    throw handles.find((lease) => lease.loss)?.loss ?? error;
  }
}
