import type { Clock } from "./clock.js";
import type { Blocked } from "./context.js";
import {
  InterlockError,
  LeaseLost,
  OutcomeUnknown,
  Unreachable,
  WaitTimeout,
  codesOfRestart,
  leaseIsGone,
  sessionIsGone,
} from "./errors.js";
import { isPast, type Keeper, type Session } from "./keeper.js";
import { Pace, linked, orAborted, sleep, type Signal } from "./stop.js";
import type { Answer, RequestParameters, Sending, Transport } from "./transport.js";
import { codes, limits } from "./types.js";
import type * as t from "./types.js";

/** How long a request may wait. */
export interface Waiting {
  /** How long it may stand in line: 60 s if left out; 0 asks once; Infinity has no bound. */
  waitMs?: number;
  /** Ends the wait: the place in line is left, and a lease that was just granted is released. */
  signal?: Signal;
  /** Is called with the place in line and the holders, whenever they are known anew. */
  onQueued?: (ticket: t.Ticket, holders: readonly t.Holder[]) => void;
  /** Throws what refuses a wait for them. @internal */
  refuse?: (blocked: Blocked) => void;
  /** How long one question lasts. @internal */
  pollMs?: number;
}

/** What is claimed, and how. */
export interface LeaseOptions extends Waiting {
  /** Why, in a few words. Others who wait read it. */
  purpose?: string;
  /** The mode of keys that are given as strings: exclusive if left out, or one permit where the pattern has some. */
  mode?: t.Mode;
  /** Takes so many permits of each key that is given as a string. */
  permits?: number;
  /** Takes exactly one of the keys: the first that is free. */
  any?: boolean;
  /** The flow: requests of one flow share their leases. Each request has its own if left out. */
  flow?: string;
  /** What to do about holders. preempt waits like wait, and asks them to yield. */
  onConflict?: "wait" | "preempt";
  /** How urgent it is, from -100 to 100. Each step counts as 10 s of waiting. */
  priority?: number;
  /** The claimant group that permits count for. */
  group?: string;
  ttlMs?: number;
  graceMs?: number;
  maxHoldMs?: number;
  stallMs?: number;
  lockDelayMs?: number;
  /** Refuses the request at once if it would wait further back in the line. */
  maxPosition?: number;
  /** Brings the documents at the keys along. */
  documents?: boolean;
  /** The version that was read before: the lease reports later changes in its packet. */
  asOf?: t.Decimal;
  /** The traceparent of the caller, as W3C defines it. */
  traceparent?: string;
  /** Is called when the lease ends soon, or another agent asks for it. */
  onWarning?: (advice: t.Advice, lease: t.Lease) => void;
}

/** Keys to claim: one or several, each as a string or as a claim with its own mode. */
export type What = string | t.ClaimRequest | readonly (string | t.ClaimRequest)[] | { anyPrefix: string };

/** How long a request stands in line if the caller does not choose. */
export const defaultWaitMs = 60_000;

/** How long a request without a wait is repeated whose session, or whose turn, ends before it has its answer. */
const restartMs = 10_000;

/** How long an abort waits for its cleanup, which goes on in the background. */
const cleanupMs = 2000;

/** The part of a body about the wait. */
export interface WaitFields {
  wait_ms: number;
  on_conflict?: "wait" | "preempt" | "fail";
  max_wait_ms?: number;
}

/** A request that may stand in line. */
export type Ask = (wait: WaitFields, session: Session) => Waitable;

type Waitable = {
  [O in WaitingOperation]: { operation: O } & RequestParameters<O>;
}[WaitingOperation];

type WaitingOperation = "acquireLease" | "convertLease" | "arriveAtBarrier" | "resumeLease" | "declareWait";

/** A grant, with the session that it was asked for in. */
export interface Obtained {
  granted: t.Granted;
  session: Session;
  sentAt: number;
}

/** Returns the claims of a request. */
export function claimsOf(what: What, options: { mode?: t.Mode; permits?: number }): t.ClaimRequest[] {
  const list = (Array.isArray(what) ? what : [what]) as readonly (string | t.ClaimRequest)[];
  return list.map((one) => {
    if (typeof one !== "string") return one;
    const claim: t.ClaimRequest = { key: one };
    if (options.mode !== undefined) claim.mode = options.mode;
    if (options.permits !== undefined) claim.permits = options.permits;
    return claim;
  });
}

/** Returns the body of a request for a lease, without its wait. */
export function bodyOf(what: What, options: LeaseOptions, session: Session, flow: string): t.AcquireRequest {
  const body: t.AcquireRequest = { session: session.id, flow };
  if (typeof what === "object" && "anyPrefix" in what) body.any_prefix = what.anyPrefix;
  else body.claims = claimsOf(what, options);
  const fields: Partial<t.AcquireRequest> = {
    purpose: options.purpose,
    any: options.any,
    priority: options.priority,
    group: options.group,
    ttl_ms: options.ttlMs,
    grace_ms: options.graceMs,
    max_hold_ms: options.maxHoldMs,
    stall_ms: options.stallMs,
    lock_delay_ms: options.lockDelayMs,
    max_position: options.maxPosition,
    documents: options.documents,
    as_of: options.asOf,
  } as Partial<t.AcquireRequest>;
  return Object.assign(
    body,
    Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)),
  );
}

/** Asks once, and then stands in line with a ticket until the grant comes. */
export class Line {
  /** What is given back in the background, with its flow. */
  readonly #undoing = new Map<Promise<unknown>, string | undefined>();

  constructor(
    readonly transport: Transport,
    readonly keeper: Keeper,
    readonly clock: Clock,
  ) {}

  /**
   * Obtains a lease. When the signal ends the wait, nothing stays behind: the ticket is left, and a
   * lease that was granted in that moment is released, or with late "return" returned.
   *
   * A lease that was granted although it is over is given back, and asked for again. If it comes for longer than its
   * ttl, the wait is over.
   */
  async obtain(
    ask: Ask,
    waiting: Waiting,
    late: "release" | "return",
    onConflict: "wait" | "preempt" = "wait",
    flow?: string,
  ): Promise<Obtained> {
    const wait = waiting.waitMs ?? defaultWaitMs;
    const began = this.clock.steady();
    const until = began + wait;
    const pace = new Pace(this.clock);
    waiting.signal?.throwIfAborted();
    for (;;) {
      if (flow !== undefined) await this.#undone(flow, waiting.signal, until);
      const session = await this.keeper.session(waiting.signal);
      try {
        const got = await this.#once(ask, waiting, late, session, until, onConflict, flow);
        const { lease } = got.granted;
        const { id } = lease;
        if (late === "return") return got;
        if (!isPast(lease) && !this.keeper.isLeaving(id)) {
          this.keeper.arriving.add(id);
          return got;
        }
        // The flow was granted again what this client is just giving back, or what is over: that comes first.
        this.keeper.leave(id);
        const release = this.keeper.insist("releaseLease", { path: { id } });
        await orAborted(release, waiting.signal).catch((error: unknown) => {
          if (!(error instanceof InterlockError) || !leaseIsGone(error.code)) throw error;
        });
        if (this.clock.steady() >= Math.max(until, began + lease.ttl_ms)) throw past(lease, got.granted);
      } catch (error) {
        if (!(error instanceof InterlockError)) throw error;
        if (sessionIsGone(error.code)) this.keeper.sessionLost(session, error);
        const restarts = late === "release" && codesOfRestart.has(error.code);
        if (
          !restarts ||
          this.keeper.closed.aborted ||
          this.clock.steady() >= (wait > 0 ? until : began + restartMs)
        )
          throw error;
      }
      await pace.next(waiting.signal);
    }
  }

  async #once(
    ask: Ask,
    waiting: Waiting,
    late: "release" | "return",
    session: Session,
    until: number,
    onConflict: "wait" | "preempt",
    flow: string | undefined,
  ): Promise<Obtained> {
    const { signal } = waiting;
    signal?.throwIfAborted();
    const left = until - this.clock.steady();
    const fields: WaitFields = { wait_ms: 0 };
    if ((waiting.waitMs ?? defaultWaitMs) > 0) {
      fields.on_conflict = onConflict;
      if (left < limits.maxMaxWaitMs) fields.max_wait_ms = Math.max(1, Math.ceil(left));
    } else {
      fields.on_conflict = "fail";
    }
    const { operation, ...parameters } = ask(fields, session);
    const idempotencyKey = crypto.randomUUID();
    let kept: Obtained | undefined;
    let answer: Answer<Waited>;
    try {
      answer = await this.undoable<Answer<Waited>>(
        (sending) =>
          this.transport.send(operation, parameters as RequestParameters<typeof operation>, {
            ...sending,
            idempotencyKey,
          }),
        async (a) => {
          kept = await this.#undo(a, late, session);
        },
        signal,
        flow,
      );
    } catch (error) {
      if (kept) return kept;
      throw error;
    }
    return this.#follow(answer, waiting, late, session, until, flow);
  }

  /**
   * Sends a request, and undoes what it did if the signal ends before the answer has come, or if it is
   * unknown whether it was carried out. The signal does not end the request: the answer tells what is
   * to be undone.
   */
  async undoable<T>(
    send: (sending: Sending) => Promise<T>,
    undo: (answer: T) => Promise<unknown>,
    signal: Signal | undefined,
    flow?: string,
  ): Promise<T> {
    const asking = send({ signal: this.keeper.closed });
    try {
      return await orAborted(asking, signal);
    } catch (error) {
      if (signal?.aborted && error === signal.reason) {
        await this.shielded(asking.catch(() => send(this.keeper.insisting)).then(undo), { flow });
      } else if (error instanceof OutcomeUnknown) {
        void this.#background(send(this.keeper.insisting).then(undo), flow);
      }
      throw error;
    }
  }

  /** Follows the ticket of an answer until it is granted. */
  async #follow(
    answer: Answer<Waited>,
    waiting: Waiting,
    late: "release" | "return",
    session: Session,
    until: number,
    flow: string | undefined,
  ): Promise<Obtained> {
    let ticket: t.Ticket | undefined;
    const pace = new Pace(this.clock);
    for (;;) {
      if (ticket) this.keeper.tickets.delete(ticket.id);
      const { data } = answer;
      if ("lease" in data && data.outcome === "granted") {
        return { granted: data as t.Granted, session, sentAt: answer.sentAt };
      }
      if (!("ticket" in data)) throw unexpected(data);
      ticket = data.ticket;
      this.keeper.tickets.add(ticket.id);
      try {
        waiting.refuse?.(data);
        waiting.onQueued?.(ticket, data.holders);
        const left = until - this.clock.steady();
        if (left <= -cleanupMs) throw overdue(data);
        const most = waiting.pollMs ?? limits.maxLongPollMs;
        const wait = Math.round(Math.min(most, Math.max(left, 0) + 1000));
        const retryForMs = Math.min(this.transport.config.retryForMs, Math.max(0, left));
        const { signal, end } = linked([waiting.signal, this.keeper.closed]);
        answer = await this.transport
          .send(
            "getTicket",
            { path: { id: ticket.id }, query: { wait_ms: wait } },
            { signal, waitMs: wait, retryForMs },
          )
          .finally(end);
        if ("ticket" in answer.data) await pace.next(waiting.signal);
      } catch (error) {
        const isOver = error instanceof InterlockError && error.problem && isDecided(error);
        if (!isOver && this.keeper.closed.aborted) throw this.keeper.closed.reason;
        this.keeper.tickets.delete(ticket.id);
        if (isOver) throw error;
        const kept = await this.shielded(this.#leave(ticket, late, session), { flow });
        if (kept) return kept;
        if (!(error instanceof InterlockError) || isDecided(error)) throw error;
        if (this.clock.steady() >= until) throw overdue(data);
        throw new OutcomeUnknown({
          code: "outcome_unknown",
          message: `${error.message}, since the request was in line: what it has got is given back`,
          cause: error,
        });
      }
    }
  }

  /** Returns what an answer brought that its caller does not wait for any more. */
  async #undo(
    answer: Answer<Waited>,
    late: "release" | "return",
    session: Session,
  ): Promise<Obtained | undefined> {
    const { data } = answer;
    if ("ticket" in data) return this.#leave(data.ticket, late, session);
    if (!("lease" in data)) return undefined;
    if (late === "return") return { granted: data as t.Granted, session, sentAt: answer.sentAt };
    // Another request of the flow holds it, or another client of a joined session.
    const { id } = data.lease;
    if (this.#isKept(id) || (session.isJoined && "reused" in data && data.reused)) return undefined;
    this.keeper.leave(id);
    await this.keeper.insist("releaseLease", { path: { id } });
    return undefined;
  }

  /** Leaves the line. A grant that was not received is withdrawn with it. */
  async #leave(
    ticket: t.Ticket,
    late: "release" | "return",
    session: Session,
  ): Promise<Obtained | undefined> {
    const path = { id: ticket.id };
    if (late === "return") {
      const { data, sentAt } = await this.keeper.insist("getTicket", { path });
      if ("lease" in data) return { granted: data, session, sentAt };
    }
    const lease: t.LeaseID = `l_${ticket.id.slice(2)}`; // it keeps its number when it is granted
    if (this.#isKept(lease)) return undefined;
    this.keeper.leave(lease);
    await this.keeper.insist("deleteTicket", { path });
    return undefined;
  }

  /** Whether another request of its flow has got a lease. */
  #isKept(id: t.LeaseID): boolean {
    return this.keeper.grants.has(id) || this.keeper.arriving.has(id);
  }

  #background<T>(work: Promise<T>, flow: string | undefined): Promise<T | undefined> {
    const quiet = work.catch(() => undefined);
    this.#undoing.set(quiet, flow);
    return quiet.finally(() => this.#undoing.delete(quiet));
  }

  /**
   * Waits until what a flow has asked for before is given back: the server would grant the flow the same lease
   * again, and the end of the older request would end it.
   */
  async #undone(flow: string, outer: Signal | undefined, until: number): Promise<void> {
    const before = [...this.#undoing].filter(([, of]) => of === flow).map(([work]) => work);
    if (before.length === 0) return;
    const ms = Math.max(this.transport.config.retryForMs, until - this.clock.steady());
    const { signal, end } = linked([outer, this.keeper.closed], ms);
    try {
      await orAborted(Promise.all(before), signal);
    } catch {
      outer?.throwIfAborted();
      this.keeper.closed.throwIfAborted();
      const message = "no server answers, and an earlier request of the same flow is not given back yet";
      throw new Unreachable({ code: "unreachable", message });
    } finally {
      end();
    }
  }

  /** Waits for what has to be done after its caller has left, for two seconds at most. Then it goes on. */
  async shielded<T>(
    work: Promise<T>,
    { ms = cleanupMs, flow }: { ms?: number; flow?: string | undefined } = {},
  ): Promise<T | undefined> {
    const limit = new AbortController();
    try {
      return await Promise.race([
        this.#background(work, flow),
        sleep(ms, limit.signal).then(
          () => undefined,
          () => undefined,
        ),
      ]);
    } finally {
      limit.abort();
    }
  }

  /** Waits for the cleanups that go on in the background. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#undoing.keys());
  }
}

type Waited = t.Granted | t.Queued | t.Skipped;

/** Whether a server has ended the wait with this error. */
function isDecided(error: InterlockError): boolean {
  return !(error instanceof Unreachable) && !codes[error.code].transient && error.code !== "quota_exceeded";
}

function unexpected(data: Waited): InterlockError {
  return new LeaseLost({
    code: "internal",
    message: `the server answered ${data.outcome} instead of a lease or a ticket`,
  });
}

/** The error of a wait that its caller's clock ends, because no server did. */
function overdue({ holders, key, ticket, at, server_time }: t.Queued): WaitTimeout {
  const message = `the lease was not granted in time: it was ${ticket.position} of ${ticket.length} in line`;
  return timeout(message, { holders, ...(key === undefined ? {} : { key }), at, server_time });
}

/** The error of a wait in which the server has granted nothing but a lease that is over. */
function past(lease: t.Lease, { at, server_time }: t.Granted): WaitTimeout {
  const key = lease.claims[0]?.key;
  const what = key === undefined ? "the lease" : `${key}`;
  const message = `${what} is not free: the lease that this agent had is over, and the server still has it`;
  return timeout(message, { holders: [], ...(key === undefined ? {} : { key }), at, server_time });
}

function timeout(
  message: string,
  more: Pick<t.Problem, "holders" | "key" | "at" | "server_time">,
): WaitTimeout {
  return new WaitTimeout({ code: "wait_limit", message, problem: { ...problemless, detail: "", ...more } });
}

const problemless = {
  type: "about:blank",
  title: "The maximum wait passed",
  status: 410,
  code: "wait_limit",
  retryable: true,
  advice: {
    action: "work_elsewhere",
    retry_after_ms: 0,
    message: "work on something else, then acquire again",
  },
} as const;
