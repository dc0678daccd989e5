import { backoff, cancel, later, type Clock, type Timer } from "./clock.js";
import { sessionOver, type Origin } from "./context.js";
import {
  ClientClosed,
  InterlockError,
  LeaseLost,
  Refused,
  errorOf,
  leaseIsGone,
  mayPass,
  sessionIsGone,
} from "./errors.js";
import { attentiveMs, type Servers } from "./servers.js";
import { Standby, type Kept } from "./standby.js";
import { Stop, orAborted, sleep, unref, type Signal } from "./stop.js";
import { warn } from "./text.js";
import type { OperationName, RequestParameters, Sending, Transport } from "./transport.js";
import { limits } from "./types.js";
import type {
  Advice,
  Heartbeat,
  KnownLeases,
  Lease,
  LeaseID,
  Operations,
  SessionID,
  TicketID,
  Yield,
} from "./types.js";

/** The session of a client: what its heartbeats renew. */
export interface Session {
  id: SessionID;
  /** The public name. */
  name: string;
  ttlMs: number;
  /** The time before the last confirmed heartbeat was sent. */
  beatAt: number;
  /** Whether it is of the process around this one, which keeps it alive. */
  isJoined?: boolean;
}

/** A lease that the server has granted. The handles of one flow for one lease share it. */
export class Grant {
  readonly aborting = new AbortController();
  /** Why it is not held any more. */
  lost: LeaseLost | undefined;
  /** Handles that were not released. */
  handles = 0;
  /** Gives it back when the program has lost all handles; left out, it is released. */
  abandon: (() => void) | undefined;
  yield: Yield | undefined;
  warning: Advice | undefined;
  listener: ((advice: Advice, lease: Lease) => void) | undefined;
  /** When its max_hold ends it. */
  capAt = Infinity;
  /** Settles when it is known whether it still lived as its grant came. No handle stands for it before. */
  arriving: Promise<void> | undefined;
  /** Whether a report is on its way that ends it: no release may be faster. */
  reporting = false;
  /** Whether it is of another client of a joined session, which releases it. */
  isForeign = false;
  /** The runs that have begun, or ended, a call that writes under it. They may share it with one another. */
  readonly writes: string[] = [];

  constructor(
    readonly keeper: Keeper,
    readonly session: Session,
    public info: Lease,
    /** The time before the last request was sent that has renewed it: not each heartbeat of the session does. */
    public confirmedAt: number,
  ) {}

  /** Takes over the server's view of the lease, in answer to a request that was sent at sentAt. */
  update(info: Lease, sentAt: number): void {
    this.info = info;
    // A session without a ttl of its own lives as long as its leases.
    if (this.keeper.config.sessionTTLMs === undefined)
      this.session.ttlMs = Math.max(this.session.ttlMs, info.ttl_ms);
    this.yield = info.yield ?? this.yield;
    this.capAt = info.max_hold_in_ms === undefined ? Infinity : sentAt + info.max_hold_in_ms;
    if (isPast(info)) this.lose(past(info));
  }

  /** Takes note that a request which was sent then has renewed it. */
  confirm(sentAt: number): void {
    this.confirmedAt = Math.max(this.confirmedAt, sentAt);
  }

  /** When it counts as lost by this machine's clock, if nothing is heard of the server. */
  get deadline(): number {
    const { session } = this;
    const own = this.confirmedAt + this.info.ttl_ms - margin(this.info.ttl_ms);
    if (session.isJoined) return Math.min(own, this.capAt);
    return Math.min(own, session.beatAt + session.ttlMs - margin(session.ttlMs), this.capAt);
  }

  /** Reports the loss to the holder, once. */
  lose(why: LeaseLost): void {
    loseAll([[this, why]]);
  }
}

/**
 * Reports losses to their holders, each once. All are noted before the first holder learns of one: it
 * may release another of these leases at once, and that would be the reason then.
 */
function loseAll(losses: readonly (readonly [Grant, LeaseLost])[]): void {
  const first = losses.filter(([g, why]) => {
    if (g.lost) return false;
    g.lost = why;
    g.keeper.forget(g);
    return true;
  });
  for (const [g, why] of first) g.aborting.abort(why);
}

/** What is known of a handle without keeping it. */
export interface Remains {
  grant: Grant;
  /** Ends the handle's signal. */
  own: AbortController;
  /** Lets go of the signal of the grant. */
  deafen: () => void;
}

/** How much earlier than the server a client counts a lease as lost. */
export function margin(ttlMs: number): number {
  return Math.max(100, ttlMs / 20);
}

/** Makes the loss of a lease out of the server's refusal, or of what a heartbeat reports. */
export function lossOf(error: InterlockError): LeaseLost {
  if (error instanceof LeaseLost) return error;
  return new LeaseLost({
    code: error.code,
    message: error.message,
    advice: { action: "stop", retry_after_ms: error.retryAfterMs, message: error.nextStep },
    ...(error.problem ? { problem: error.problem } : {}),
  });
}

/**
 * Tells a heartbeat which leases the client knows of. The server ends the others by their own ttl, such as one
 * whose grant never arrived. Without it, as with very many leases, the heartbeat renews all of the session.
 */
function knownLeases(grants: readonly Grant[], listed: boolean): KnownLeases | undefined {
  if (grants.length > limits.maxKnown) return undefined;
  const ids = grants.map((g) => g.info.id);
  if (listed) return { leases: ids };
  const digest = ids.reduce((sum, id) => sum ^ BigInt(`0x${id.slice(id.indexOf("_") + 1)}`), 0n);
  return { count: ids.length, digest: digest.toString(16).padStart(32, "0") };
}

/** How long a lease that was given back is remembered: longer than any answer takes. */
const rememberMs = 600_000;

/** How long close tries to reach a server; after that the ttl ends the session. */
const closeMs = 2000;

/** Settings of a keeper. */
export interface KeeperConfig {
  transport: Transport;
  servers: Servers;
  clock: Clock;
  agent: string;
  /** The ttl that is asked for the session, if any. */
  sessionTTLMs: number | undefined;
  /** How long a thread keeps the leases while the event loop stands still, if at all. */
  standbyMs: number | undefined;
  /** The session of the process before. */
  takeOver: string | undefined;
  /** The lease around this process whose session it joins, if it does. */
  origin: Origin | undefined;
}

/** Keeps the leases of a client alive: one session, one timer, however many leases there are. */
export class Keeper {
  readonly grants = new Map<string, Grant>();
  /** Leases that were just granted, and are to be adopted. */
  readonly arriving = new Set<LeaseID>();
  /** The places in line. */
  readonly tickets = new Set<TicketID>();
  #session: Session | undefined;
  #opening: Promise<Session> | undefined;
  #timer: Timer | undefined;
  /** When the timer is due, by the steady clock. */
  #due = Infinity;
  #beating: Promise<void> | undefined;
  #nextBeat = Infinity;
  #failures = 0;
  #slept = 0;
  /** The sleep of the machine that the last confirmation came after. */
  #confirmedSlept = 0;
  /** Whether a heartbeat may have reported losses that did not arrive. */
  #unsure = false;
  #coming = new Map<object, number>();
  /** The leases that are given back, and since when, the oldest first. */
  readonly #leaving = new Map<LeaseID, number>();
  readonly #closing = new Stop();
  /** Why a joined session is over: there is no other one. */
  #over: InterlockError | undefined;

  /** Learns which handles were collected without a release. */
  readonly #handles =
    typeof FinalizationRegistry === "undefined"
      ? undefined
      : new FinalizationRegistry<Remains>((handle) => this.#abandoned(handle));
  /** The leases of blocks, which hold them until they end. */
  readonly blocks = new Set<object>();

  #standby: Standby | undefined;

  constructor(readonly config: KeeperConfig) {
    if (config.standbyMs !== undefined) Standby.check();
  }

  /** Ends when the client is closed. */
  get closed(): Signal {
    return this.#closing;
  }

  /** How a cleanup is sent: until a server has answered, or the client is closed, which ends all. */
  get insisting(): Sending {
    return { signal: this.#closing, retryForMs: Infinity, background: true };
  }

  /** Sends a cleanup or a report until a server has decided it, or the signal ends. tell learns of failures. */
  async insist<O extends OperationName>(
    operation: O,
    parameters: RequestParameters<O>,
    sending: Sending = {},
    tell?: (error: InterlockError) => void,
  ): Promise<{ data: Operations[O]["answer"]; sentAt: number }> {
    const own = { signal: this.#closing, background: true, idempotencyKey: crypto.randomUUID(), ...sending };
    for (let tries = 1; ; tries++) {
      try {
        return await this.config.transport.send(operation, parameters, own);
      } catch (error) {
        if (own.signal?.aborted || !(error instanceof InterlockError) || !mayPass(error)) throw error;
        tell?.(error);
        await sleep(Math.max(error.retryAfterMs, backoff(tries, 0, 5000)), own.signal, own.background);
      }
    }
  }

  /** How long the machine may have slept since the last confirmation, or else its clock was set. */
  get doubtMs(): number {
    return this.config.clock.slept - this.#confirmedSlept;
  }

  /** The shortest ttl that is kept alive, for the share of an attempt. */
  get shortestMs(): number {
    let shortest = this.#session?.ttlMs ?? this.config.sessionTTLMs ?? limits.defaultTTLMs;
    for (const g of this.grants.values()) shortest = Math.min(shortest, g.info.ttl_ms);
    for (const ttl of this.#coming.values()) shortest = Math.min(shortest, ttl);
    return shortest;
  }

  /** Returns what a request for a lease says of the process before. */
  takesOver(): { take_over?: string } {
    return this.config.takeOver === undefined ? {} : { take_over: this.config.takeOver };
  }

  /** Returns the session, and opens it first if there is none. */
  session(signal?: Signal): Promise<Session> {
    if (this.#closing.aborted) return Promise.reject(this.#closing.reason);
    if (this.#over) return Promise.reject(this.#over);
    if (this.#session) return Promise.resolve(this.#session);
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return orAborted(this.#opening, signal);
  }

  async #open(): Promise<Session> {
    const { transport, agent, sessionTTLMs, origin, clock } = this.config;
    if (origin) {
      const ttlMs = limits.defaultTTLMs;
      this.#session = { id: origin.session, name: "", ttlMs, beatAt: clock.now(), isJoined: true };
      return this.#session;
    }
    const body = { agent, ttl_ms: sessionTTLMs };
    const { slept } = this.config.clock;
    const answer = await transport.send("createSession", { body }, { signal: this.#closing });
    const { id, name, ttl_ms } = answer.data.session;
    this.#session = { id, name, ttlMs: ttl_ms, beatAt: answer.sentAt };
    this.#confirmedSlept = slept;
    this.#standBy();
    this.#planBeat();
    return this.#session;
  }

  /** Starts the thread that keeps the leases while the event loop stands still, if one is asked for. */
  #standBy(): void {
    const { standbyMs, servers, transport } = this.config;
    if (standbyMs === undefined || this.#standby) return;
    const { credential, namespace } = transport.config;
    const failed = (why: string) => {
      this.#standby = undefined;
      warn(`no thread keeps the leases while the event loop stands still: ${why}`);
    };
    this.#standby = new Standby(
      { urls: servers.urls, credential, namespace, standbyMs },
      (kept) => this.#kept(kept),
      failed,
    );
  }

  /** Tells the thread of a heartbeat, or of a lease. */
  #tell(change: { add?: LeaseID; remove?: LeaseID } = {}): void {
    if (!this.#standby || !this.#session) return;
    const { id, beatAt } = this.#session;
    this.#standby.tell({
      at: this.config.clock.now(),
      beatAt,
      ttlMs: this.shortestMs,
      session: id,
      ...change,
    });
  }

  /** Takes note of a heartbeat of the thread. */
  #kept({ sentAt, session, leases, answer }: Kept): void {
    if (this.#session?.id !== session) return;
    this.#session.beatAt = Math.max(this.#session.beatAt, sentAt);
    for (const id of leases) this.grants.get(id)?.confirm(sentAt);
    this.#report(answer, sentAt);
  }

  /** Takes over what the thread has learned, also if the event loop has not run since. */
  sync(): void {
    this.#standby?.sync();
  }

  /** Heartbeats come often enough for a lease of this ttl that is being asked for. */
  expect(ttlMs: number | undefined): () => void {
    if (ttlMs === undefined) return () => {};
    const token = {};
    this.#coming.set(token, ttlMs);
    this.#planBeat();
    return () => this.#coming.delete(token);
  }

  /** Takes a granted lease over. One that its flow had already is not renewed by being granted again. */
  async adopt(session: Session, info: Lease, sentAt: number, reused = false): Promise<Grant> {
    this.arriving.delete(info.id);
    let grant = this.grants.get(info.id);
    if (grant) {
      grant.update(info, sentAt);
      if (!reused) grant.confirm(sentAt);
    } else {
      grant = new Grant(this, session, info, reused ? sentAt - info.ttl_ms : sentAt);
      grant.update(info, sentAt);
      grant.isForeign = reused && session.isJoined === true;
      this.grants.set(info.id, grant);
      this.#tell({ add: info.id });
      if (this.#isLate(grant)) grant.arriving = this.#arrive(grant);
    }
    await grant.arriving;
    this.#drop(this.config.clock.now());
    if (grant.lost) throw grant.lost;
    this.#planBeat();
    return grant;
  }

  /** Whether the grant of a lease has been on its way for long. */
  #isLate(grant: Grant): boolean {
    return grant.deadline - this.config.clock.now() < grant.info.ttl_ms / 2;
  }

  /** Has a heartbeat renew a late grant, unless it was over before. An earlier heartbeat may have told that. */
  async #arrive(grant: Grant): Promise<void> {
    for (let n = 0; n < 2 && this.#isLate(grant); n++) await this.#beat();
    try {
      await this.verify(grant);
    } catch {
      this.#giveUp([
        [grant, unheard(`${named(grant.info)} was granted late, and no server has confirmed it`)],
      ]);
    }
    grant.arriving = undefined;
  }

  forget(grant: Grant): void {
    if (this.grants.get(grant.info.id) !== grant) return;
    this.grants.delete(grant.info.id);
    this.#tell({ remove: grant.info.id });
  }

  /** Takes note of a handle. */
  hold(handle: object, remains: Remains): void {
    remains.grant.handles++;
    this.#handles?.register(handle, remains, remains);
  }

  /** Takes note that a handle is released. */
  drop(remains: Remains): void {
    remains.grant.handles--;
    this.#handles?.unregister(remains);
  }

  /** Gives a lease back whose last handle the program has lost: nobody can release it any more. */
  #abandoned({ grant, own, deafen }: Remains): void {
    deafen();
    if (own.signal.aborted) return; // it was lost before
    const { id, claims } = grant.info;
    const what = claims[0] ? `the lease on ${claims[0].key}` : "a lease";
    const why = new LeaseLost({
      code: "released",
      message: `${what} was given back: its handle was collected as garbage, and not released`,
      advice: {
        action: "stop",
        retry_after_ms: 0,
        message: "keep the handle for as long as the lease is needed",
      },
    });
    warn(`${why.message}. Use withLease or await using, or release it in a finally block`);
    own.abort(why);
    if (--grant.handles > 0) return;
    if (!grant.isForeign) this.leave(id);
    grant.lose(why);
    if (grant.isForeign) return; // another client of the session has it
    if (grant.abandon) grant.abandon();
    else this.insist("releaseLease", { path: { id } }).catch(() => {});
  }

  /** Takes note that a lease is given back. The server may grant it to its flow again in that moment. */
  leave(id: LeaseID): void {
    const now = this.config.clock.now();
    for (const [old, since] of this.#leaving) {
      if (now - since <= rememberMs) break;
      this.#leaving.delete(old);
    }
    this.#leaving.set(id, now);
  }

  /** Whether a lease is given back here, so that a grant of it is none. */
  isLeaving(id: LeaseID): boolean {
    return this.#leaving.has(id);
  }

  /** Takes note that the session is gone, with all its leases. */
  sessionLost(session: Session, error: InterlockError): void {
    const why = session.isJoined ? (this.#over = sessionOver(error)) : error;
    if (this.#session === session) this.#session = undefined;
    loseAll(this.#grantsOf(session).map((g) => [g, lossOf(why)]));
  }

  /** When the next heartbeat is due: after a third of the shortest ttl or somewhat less. */
  #planBeat(): void {
    const shortest = this.config.servers.several ? Math.min(this.shortestMs, attentiveMs) : this.shortestMs;
    const third = shortest / 3;
    const from = this.#session ? this.#session.beatAt : this.config.clock.now();
    this.#nextBeat = Math.min(this.#nextBeat, from + third - (Math.random() * third) / 5);
    this.#schedule();
  }

  /** Sets the timer: at least once a second while there is something to lose, as timers stand still in sleep. */
  #schedule(): void {
    this.#stopTimer();
    if (!this.#session || this.#closing.aborted) return;
    let next = this.#beating ? Infinity : this.#nextBeat;
    for (const g of this.grants.values()) if (!g.arriving) next = Math.min(next, g.deadline);
    const { clock } = this.config;
    const most = this.grants.size > 0 ? 1000 : 60_000;
    const pause = Math.max(1, Math.min(next - clock.now(), most));
    this.#due = clock.steady() + pause;
    this.#timer = later(() => this.#tick(), pause);
    unref(this.#timer);
  }

  /** Stops the timer. If it should have run long ago, nothing ran in this process meanwhile. */
  #stopTimer(): void {
    cancel(this.#timer);
    const late = Math.round(this.config.clock.steady() - this.#due);
    this.#due = Infinity;
    if (this.#standby && late <= (this.config.standbyMs ?? 0)) return; // it has kept them
    const ttl = this.shortestMs;
    if (this.grants.size === 0 || late <= ttl / 3) return;
    warn(
      `the event loop of this process stood still: the timer of the heartbeats came ${late} ms late, and a lease ` +
        `with a ttl of ${ttl} ms needs one every ${Math.round(ttl / 3)} ms. It may be lost, and its work be done ` +
        "again: move what computes or blocks to a worker thread, or ask for a longer ttl",
    );
  }

  #tick(): void {
    this.#stopTimer();
    const { clock } = this.config;
    const now = clock.now();
    const woke = clock.slept > this.#slept; // the wall clock may only have been set: the server knows
    this.#slept = clock.slept;
    if (woke) {
      void this.#beat(true);
    } else if (!this.#checking) {
      this.#drop(now);
      if (now >= this.#nextBeat) void this.#beat();
    }
    this.#schedule();
  }

  /** Whether a heartbeat after a sleep is on its way, which decides what is lost. */
  #checking = false;

  /** Drops the leases that are over by this machine's clock. */
  #drop(now: number): void {
    this.sync();
    const late = [...this.grants.values()].filter((g) => !g.arriving && now >= g.deadline);
    this.#giveUp(late.map((g) => [g, expired(g, now)]));
  }

  /** Drops leases that the server may still count as held. If it does not answer, the ttl frees the keys. */
  #giveUp(losses: readonly (readonly [Grant, LeaseLost])[]): void {
    for (const [g] of losses) this.leave(g.info.id);
    loseAll(losses);
    for (const [g] of losses) {
      if (!g.reporting && !g.isForeign)
        this.insist("releaseLease", { path: { id: g.info.id } }).catch(() => {});
    }
  }

  /** Sends a heartbeat, or joins the one that is on its way. */
  #beat(afterSleep = false): Promise<void> {
    if (this.#beating || !this.#session) return this.#beating ?? Promise.resolve();
    this.#checking = afterSleep;
    this.#beating = this.#heartbeat(this.#session).finally(() => {
      this.#beating = undefined;
      this.#checking = false;
      this.#drop(this.config.clock.now());
      this.#schedule();
    });
    return this.#beating;
  }

  /** Sends one heartbeat. */
  async #heartbeat(session: Session): Promise<void> {
    const { transport, clock, servers } = this.config;
    const sending = {
      signal: this.#closing,
      retryForMs: 0,
      attemptMs: Math.min(10_000, this.#shareMs()),
    };
    const { slept } = clock;
    const send = async (grants: readonly Grant[], listed: boolean): Promise<boolean> => {
      const body = { known: knownLeases(grants, listed) };
      const { data, sentAt } = await transport.send(
        "heartbeatSession",
        { path: { id: session.id }, body },
        sending,
      );
      session.beatAt = sentAt;
      this.#report(data, sentAt);
      if (data.wants_list) return false; // it has renewed none that an earlier list left out
      for (const g of grants) g.confirm(sentAt);
      return true;
    };
    try {
      if (session.isJoined) await this.#renewAll(session, sending);
      else if (!(await send(this.#grantsOf(session), false))) await send(this.#grantsOf(session), true);
      this.#confirmedSlept = slept;
      this.#failures = 0;
      this.#nextBeat = Infinity;
      this.#tell();
      this.#planBeat();
      if (this.#unsure) void this.#verify(session);
    } catch (error) {
      if (this.#closing.aborted) return;
      if (error instanceof InterlockError && sessionIsGone(error.code)) {
        this.sessionLost(session, error);
        return;
      }
      this.#unsure = true;
      this.#failures++;
      const refused = error instanceof Refused ? error.retryAfterMs : 0;
      this.#nextBeat =
        clock.now() + Math.max(refused, Math.min(servers.pause(this.#failures, 0), session.ttlMs / 10));
    }
  }

  /**
   * Renews each lease of a joined session by itself: a heartbeat would take the news that are for the process
   * around this one.
   */
  async #renewAll(session: Session, sending: Sending): Promise<void> {
    session.beatAt = this.config.clock.now();
    const renewing = [...this.grants.values()].map(async (g) => {
      if (g.reporting) return;
      const path = { id: g.info.id };
      try {
        const { data, sentAt } = await this.config.transport.send("renewLease", { path, body: {} }, sending);
        g.update(data.lease, sentAt);
        g.confirm(sentAt);
      } catch (error) {
        if (!(error instanceof InterlockError) || !leaseIsGone(error.code) || sessionIsGone(error.code))
          throw error;
        g.lose(lossOf(error));
      }
    });
    for (const end of await Promise.allSettled(renewing)) if (end.status === "rejected") throw end.reason;
  }

  /** The share of the ttl that one attempt may use, so that a silent server costs no lease. */
  #shareMs(): number {
    return Math.max(200, this.shortestMs / 4);
  }

  #report(beat: Heartbeat, sentAt: number): void {
    const losses: [Grant, LeaseLost][] = [];
    for (const { lease, code, detail, advice } of beat.losses) {
      const g = this.grants.get(lease.id);
      if (!g) continue;
      g.info = lease;
      losses.push([g, lossOf(errorOf({ code, message: detail, advice }))]);
    }
    loseAll(losses);
    for (const { lease, advice } of beat.warnings) {
      const g = this.grants.get(lease.id);
      if (!g) continue;
      g.update(lease, sentAt);
      g.warning = advice;
      g.listener?.(advice, lease);
    }
  }

  /** The leases of a session that this client knows of. */
  #grantsOf(session: Session): Grant[] {
    return [...this.grants.values()].filter((g) => g.session === session);
  }

  /** Asks after each lease: the answer to an earlier heartbeat, which may have had losses, did not arrive. */
  async #verify(session: Session): Promise<void> {
    this.#unsure = false;
    for (const g of this.#grantsOf(session)) {
      await this.verify(g).catch(() => {
        this.#unsure = true;
      });
    }
  }

  /** Asks the server whether a lease is held. */
  async verify(g: Grant): Promise<void> {
    try {
      const attemptMs = Math.min(10_000, this.#shareMs());
      const sending = { signal: this.#closing, retryForMs: 0, attemptMs };
      const answer = await this.config.transport.send("getLease", { path: { id: g.info.id } }, sending);
      g.update(answer.data.lease, answer.sentAt);
    } catch (error) {
      if (!(error instanceof InterlockError) || !leaseIsGone(error.code)) throw error;
      g.lose(lossOf(error));
    }
  }

  /** Ends the session, which releases its leases and leaves all lines. */
  async close(): Promise<void> {
    const session = this.#session;
    cancel(this.#timer);
    this.#standby?.close();
    this.#standby = undefined;
    this.#closing.abort(new ClientClosed());
    const own = [...this.grants.values()].filter((g) => !g.isForeign);
    loseAll([...this.grants.values()].map((g) => [g, lossOf(new ClientClosed())]));
    const opening = this.#opening;
    this.#session = undefined;
    await Promise.allSettled([this.#beating, opening]);
    if (!session) return;
    try {
      const sending = { retryForMs: closeMs, attemptMs: closeMs };
      if (session.isJoined) {
        const send = this.config.transport;
        const left = own.map((g) => send.send("releaseLease", { path: { id: g.info.id } }, sending));
        const lines = [...this.tickets].map((id) => send.send("deleteTicket", { path: { id } }, sending));
        await Promise.allSettled([...left, ...lines]);
        return;
      }
      await this.config.transport.send("deleteSession", { path: { id: session.id } }, sending);
    } catch (error) {
      if (!(error instanceof InterlockError)) throw error; // else its ttl ends it
    }
  }
}

/** Whether a lease that the server has shown is not held any more: it shows one in its grace as well. */
export function isPast({ state }: Lease): boolean {
  return state === "grace" || state === "ended" || state === "parked";
}

function past(info: Lease): LeaseLost {
  const { state, ended_by } = info;
  const how = state === "parked" ? "is parked" : `is over${ended_by ? ` (${ended_by})` : ""}`;
  return new LeaseLost({
    code: state === "parked" ? "parked" : "in_grace",
    message: `${named(info)} ${how}`,
  });
}

function named({ claims }: Lease): string {
  const key = claims[0]?.key;
  return key === undefined ? "the lease" : `the lease on ${key}`; // a task may have no keys
}

/** The loss of a lease by this machine's clock. */
export function expired(g: Grant, now: number): LeaseLost {
  const silent = Math.round(now - g.confirmedAt);
  return unheard(
    now >= g.capAt
      ? `${named(g.info)} was held for as long as it may be`
      : `${named(g.info)} is considered lost: no server confirmed a heartbeat for ${silent} ms`,
  );
}

function unheard(message: string): LeaseLost {
  return new LeaseLost({
    code: "expired",
    message,
    advice: {
      action: "re_read",
      retry_after_ms: 0,
      message: "write nothing more under it; acquire again and read again",
    },
  });
}
