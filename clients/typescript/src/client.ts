import { Line, bodyOf, claimsOf, defaultWaitMs, type Ask, type LeaseOptions, type What } from "./acquire.js";
import { Clock } from "./clock.js";
import {
  collide,
  fits,
  isCounted,
  originOf,
  overlap,
  ownLease,
  scopes,
  within,
  type Blocked,
  type Origin,
  type Scope,
} from "./context.js";
import { drainOn } from "./drain.js";
import { finished, shortPollMs, type Waiter } from "./finished.js";
import { ClientClosed, Held, LeaseLost, Refused, TaskMoved, WaitTimeout } from "./errors.js";
import { Run } from "./hold.js";
import { Keeper, type Session } from "./keeper.js";
import { Lease, under } from "./lease.js";
import { Servers, attentiveMs } from "./servers.js";
import { enter, type Turn } from "./siblings.js";
import { NodeSender } from "./node.js";
import { FetchSender, type Sender } from "./sender.js";
import { perform, type Action, type EffectOptions } from "./effect.js";
import { startRun, type RunOptions } from "./run.js";
import { work, type Done, type Job, type WorkOptions } from "./worker.js";
import { commitBody, type Commit } from "./state.js";
import { Pace, Stop, linked, listen, type Signal } from "./stop.js";
import { Transport, type Answer, type OperationName, type RequestParameters } from "./transport.js";
import { limits, type Operations } from "./types.js";
import type * as t from "./types.js";
import { checkTTL } from "./text.js";
import { watch, type WatchOptions } from "./watch.js";
import type { ClientOptions, RequestOptions, TurnOptions } from "./options.js";

export type { ClientOptions, RequestOptions, TurnOptions } from "./options.js";

/** The id of the process, or where there is none a random number. */
function processID(): number {
  const { process } = globalThis as { process?: { pid?: number } };
  return process?.pid ?? Math.floor(Math.random() * 1e6);
}

function defaultSender(servers: Servers): Sender {
  const sender = NodeSender.find();
  if (!sender) return new FetchSender((input, init) => fetch(input, init));
  for (let n = 0; n < servers.count; n++) sender.check(servers.url(n));
  return sender;
}

/** Returns what a refusal tells of those who are in the way. */
function blockedBy({ holders, problem }: Held | WaitTimeout): Blocked {
  return { holders: [...holders], ...(problem?.capacity && { capacity: problem.capacity }) };
}

/** The refusal of what the client holds itself: nobody but the program knows whether that encloses the call. */
function heldByOwn(error: Held | WaitTimeout): Held | WaitTimeout {
  const { code, problem, retryable } = error;
  const message = `${error.message.replace(/\.$/, "")}: another call of this client holds it`;
  const next =
    "if that lease encloses this call, take it by withLease, or make the call within its enclose; else ask again later";
  const advice = { action: "fix_request", retry_after_ms: error.retryAfterMs, message: next } as const;
  const reason = { code, message, retryable, advice, ...(problem ? { problem } : {}) };
  return error instanceof Held ? new Held(reason) : new WaitTimeout(reason);
}

/** What a credential or the name of a namespace is made of. */
const visible = /^[!-~]*$/;

/** Returns a value that goes into a header. A line break at its end is left out: it may come from a file. */
function lineOf(what: string, value: string | undefined): string | undefined {
  const line = value?.replace(/\r?\n$/, "");
  if (line !== undefined && !visible.test(line)) {
    throw new TypeError(`the ${what} has a blank, a control character or one that is not of ASCII`);
  }
  return line;
}

function environment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  try {
    return process?.env?.[name] || undefined;
  } catch {
    return undefined; // the runtime does not let it be read
  }
}

/**
 * A client is one session: its heartbeats run by themselves and keep all its leases. It is shared
 * by any number of concurrent callers.
 */
export class Client implements AsyncDisposable {
  readonly agent: string;
  /** @internal */
  readonly clock: Clock;
  /** @internal */
  readonly transport: Transport;
  /** @internal */
  readonly keeper: Keeper;
  /** @internal */
  readonly line: Line;
  /** Ends the pulls of all workers. @internal */
  readonly draining = new Stop();
  readonly #working = new Set<Promise<void>>();
  readonly #forgetSignals: () => void;
  /** The server and the namespace. @internal */
  readonly place: string;
  /** What clients have in common that use each other's sessions in a context. @internal */
  readonly party: string;
  /** The lease around this process, if it is of the same place. */
  readonly #origin: Origin | undefined;
  /** What encloses each call, if the session is joined. */
  readonly #root: Scope | undefined;
  #flows = 0;
  #closing: Promise<void> | undefined;

  constructor(options: ClientOptions = {}) {
    if (options.standbyMs !== undefined && options.fetch)
      throw new TypeError(
        "standbyMs sends from another thread, where fetch does not reach: leave one of them out",
      );
    checkTTL(options.sessionTTLMs);
    const near = environment("INTERLOCK_URL") ?? "http://127.0.0.1:7420";
    const servers = new Servers(options.url ?? near);
    this.agent = options.agent ?? environment("INTERLOCK_AGENT") ?? `typescript-${processID()}`;
    this.clock = options.clock ?? new Clock();
    this.transport = new Transport({
      servers,
      clock: this.clock,
      credential: lineOf("credential", options.credential ?? environment("INTERLOCK_CREDENTIAL")),
      namespace: lineOf("namespace", options.namespace ?? environment("INTERLOCK_NAMESPACE")),
      retryForMs: options.retryForMs ?? 30_000,
      patient: options.retryForMs !== undefined,
      attemptMs: () =>
        servers.several ? Math.min(attentiveMs, Math.max(250, this.keeper.shortestMs / 4)) : 10_000,
      sender: options.fetch ? new FetchSender(options.fetch) : defaultSender(servers),
    });
    const { credential, namespace } = this.transport.config;
    this.place = JSON.stringify([[...servers.urls].sort(), namespace ?? ""]);
    const origin = originOf(environment);
    const isNear =
      new Servers(near).urls.some((url) => servers.urls.includes(url)) &&
      (namespace ?? "") === (lineOf("namespace", environment("INTERLOCK_NAMESPACE")) ?? "");
    this.#origin = isNear ? origin : undefined;
    const isSame =
      credential === lineOf("credential", environment("INTERLOCK_CREDENTIAL")) &&
      this.agent === (environment("INTERLOCK_AGENT") ?? this.agent);
    const joins = options.join !== false && isSame ? this.#origin : undefined;
    if (options.join === true && !joins) {
      throw new TypeError(
        "join: true needs a session to join: start the process below `interlock run` or `interlock task work`, " +
          "and leave out url, namespace, credential and agent",
      );
    }
    this.#root = joins && { client: this, flow: joins.flow, outer: undefined };
    this.party =
      options.join === false ? crypto.randomUUID() : JSON.stringify([this.place, this.agent, credential]);
    this.keeper = new Keeper({
      transport: this.transport,
      servers,
      clock: this.clock,
      agent: this.agent,
      sessionTTLMs: options.sessionTTLMs,
      standbyMs: options.standbyMs,
      takeOver: options.takeOver,
      origin: joins,
    });
    this.line = new Line(this.transport, this.keeper, this.clock);
    this.#forgetSignals = drainOn(this, options.drainOn ?? []);
  }

  /** Returns the id of the session, a secret: takeOver of the next process. The session is opened if there is none. */
  async sessionID(): Promise<t.SessionID> {
    return (await this.keeper.session()).id;
  }

  /** Returns a name of a flow that no other request of this client has. */
  newFlow(): string {
    return `flow-${++this.#flows}`;
  }

  /** Returns what encloses the caller and may be used by this client, the innermost first. */
  *#around(): Generator<Scope> {
    for (const scope of scopes()) {
      const { client, lease, run } = scope;
      const isUsed = client.party === this.party && !client.keeper.closed.aborted;
      if (isUsed && (lease?.held || run?.isOver === false)) yield scope;
      if (scope.isApart) return;
    }
    if (this.#root) yield this.#root;
  }

  /** Whether anything encloses the caller. @internal */
  isWithin(): boolean {
    return this.#around().next().done === false;
  }

  /** Returns the keys that a scope holds. */
  #keysOf(scope: Scope): readonly string[] {
    if (scope === this.#root) return this.#origin?.keys ?? [];
    return [...(scope.lease?.keys ?? []), ...(scope.run?.kept.flatMap((lease) => lease.keys) ?? [])];
  }

  /** Chooses what encloses a request: the innermost scope that has one of its keys, else the innermost. */
  #scopeOf(claims: readonly t.ClaimRequest[] | undefined): Scope | undefined {
    const around = [...this.#around()];
    const has = (scope: Scope) =>
      this.#keysOf(scope).some((key) => claims?.some((claim) => overlap(claim.key, key)));
    return around.find(has) ?? (claims?.every(isCounted) ? undefined : around[0]);
  }

  /** Returns the flow of what encloses the caller, or one of its own. @internal */
  flowAround(): string {
    const [scope] = this.#around();
    return scope?.client === this ? scope.flow : this.newFlow();
  }

  /** Returns the leases that enclose the caller, whoever's they are. */
  *#enclosing(): Generator<Lease> {
    for (const { client, lease, run } of scopes()) {
      if (client.place !== this.place) continue;
      for (const one of [lease, ...(run?.kept ?? [])]) if (one?.held) yield one;
    }
  }

  /** Refuses a request that would wait for what encloses it, before it stands in line. */
  #refuseClaims(claims: readonly t.ClaimRequest[], flow: string): void {
    const origin = this.#root && flow !== this.#root.flow ? this.#origin : undefined;
    const key = origin?.keys.find((held) =>
      claims.some((claim) => collide({ key: held, mode: "shared" }, claim)),
    );
    if (key !== undefined) throw ownLease(key, origin?.fence ?? "unknown", "");
    for (const lease of this.#enclosing()) {
      if (lease.client === this && lease.flow === flow) continue;
      // Where a lease has permits, a claim without a mode is for one, too.
      const isPermit = (held: t.Claim, claim: t.ClaimRequest) => isCounted(held) && claim.mode === undefined;
      const own = lease.claims.find((held) =>
        claims.some((claim) => collide(held, claim) && !isPermit(held, claim)),
      );
      if (own) throw ownLease(own.key, lease.fence, lease.info.purpose);
    }
  }

  /**
   * Does the same by the holders that the server names: a key may have several spellings. Of several keys to
   * choose from, all must be in the way.
   */
  #refuseHolders({ holders, capacity }: Blocked, claims: readonly t.ClaimRequest[], any: boolean): void {
    const around = [...this.#enclosing()];
    const has = (claim: t.ClaimRequest) =>
      around.some((lease) => lease.claims.some((held) => collide(held, claim))) ||
      this.#origin?.keys.some((key) => overlap(key, claim.key));
    if (any && !claims.every(has)) return;
    const fences = new Set([this.#origin?.fence, ...around.map((lease) => lease.fence)]);
    const mine = holders.filter((holder) => fences.has(holder.fence));
    const [own] = mine;
    if (own && !fits(claims, mine, capacity)) throw ownLease(own.key, own.fence, own.purpose);
  }

  /** Has a request wait for a lease, unless that would be for what encloses the call. @internal */
  async unlessOwn<T>(
    claims: readonly t.ClaimRequest[],
    any: boolean,
    wait: (refuse: (blocked: Blocked) => void) => Promise<T>,
  ): Promise<T> {
    const refuse = (blocked: Blocked) => this.#refuseHolders(blocked, claims, any);
    try {
      return await wait(refuse);
    } catch (error) {
      if (error instanceof Held || error instanceof WaitTimeout) refuse(blockedBy(error));
      throw error;
    }
  }

  /**
   * Acquires a lease. It waits in line for waitMs, 60 s if left out, and rejects with Held (waitMs
   * 0), WaitTimeout, Deadlock or another refusal, or with the reason of the signal. Within withLease, guarded
   * and the like it uses what they hold, and is refused with Deadlock instead of waiting for that.
   */
  lease(what: What, options: LeaseOptions = {}): Promise<Lease> {
    return this.acquire(what, options);
  }

  /**
   * Acquires a lease for what encloses the caller. A tool also waits for the calls beside it that use the
   * same lease around them, and for the runs beside its own. @internal
   */
  async acquire(what: What, options: LeaseOptions, tool?: { run?: Run | undefined }): Promise<Lease> {
    checkTTL(options.ttlMs);
    const claims = typeof what === "object" && "anyPrefix" in what ? undefined : claimsOf(what, options);
    const scope = options.flow === undefined ? this.#scopeOf(claims) : undefined;
    if (scope && scope.client !== this) return scope.client.acquire(what, options, tool);
    const own = options.flow ?? scope?.flow ?? this.newFlow();
    if (claims && !options.any) this.#refuseClaims(claims, own);
    const until = this.clock.steady() + (options.waitMs ?? defaultWaitMs);
    const left = () => Math.max(0, until - this.clock.steady());
    let turn: Turn | undefined;
    try {
      if (scope && claims && !options.any && (tool || !this.#isEnclosed(claims))) {
        const flow = `${this.#root ? this.#origin?.session : this.party}/${own}`;
        const patience = () => ({ clock: this.clock, waitMs: left(), signal: options.signal });
        turn = await enter(flow, claims, scopes(), patience());
        await tool?.run?.enter(flow, turn, patience());
      }
      const lease = await this.#ask(what, { ...options, waitMs: left() }, own);
      if (scope && claims && !lease.isReused) await this.#confirm(claims, lease);
      lease.turn = turn;
      if (turn) listen(lease.signal, turn.end);
      return lease;
    } catch (error) {
      turn?.end();
      throw error;
    }
  }

  /** Whether leases around the caller have all these keys, or what is above them. */
  #isEnclosed(claims: readonly t.ClaimRequest[]): boolean {
    const keys = [...this.#around()].flatMap((scope) => (scope.run ? [] : this.#keysOf(scope)));
    return claims.every((claim) => keys.some((key) => overlap(key, claim.key)));
  }

  /**
   * Looks after the leases around the caller when one of their keys was granted anew: if they are lost,
   * others may have written what was read under them, and the new one is none.
   */
  async #confirm(claims: readonly t.ClaimRequest[], lease: Lease): Promise<void> {
    for (const { lease: around, run } of this.#around()) {
      for (const one of [around, ...(run?.kept ?? [])]) {
        if (!one?.keys.some((key) => claims.some((claim) => overlap(claim.key, key)))) continue;
        const loss = await one.verify().catch(() => undefined);
        if (!loss) continue;
        await lease.release().catch(() => {});
        run?.check(claims);
        throw new LeaseLost({
          code: loss.code,
          message: `the lease on ${one.key} that encloses this call was lost: ${loss.message}`,
          advice: {
            action: "re_read",
            retry_after_ms: 0,
            message: "end what works under it; then acquire again and read again",
          },
        });
      }
    }
  }

  /** Whether other calls of this client hold what was asked for. */
  #isOwn(holders: readonly t.Holder[]): boolean {
    const fences = new Set([...this.keeper.grants.values()].map((grant) => grant.info.fence));
    return holders.length > 0 && holders.every((holder) => fences.has(holder.fence));
  }

  /**
   * Does the same for a request that is answered only after its wait: within a lease it asks first without one.
   * @internal
   */
  async firstUnlessOwn<T>(
    waitMs: number,
    attempt: (waitMs: number, refuse?: (blocked: Blocked) => void) => Promise<T>,
  ): Promise<T> {
    if (waitMs <= 0) return attempt(waitMs); // its refusal tells what is full
    if (scopes().next().done === false) {
      try {
        return await this.unlessOwn([], false, () => attempt(0));
      } catch (error) {
        const isBusy = error instanceof Held || (error instanceof Refused && error.code === "parked");
        if (!isBusy) throw error;
      }
    }
    return this.unlessOwn([], false, (refuse) => attempt(waitMs, refuse));
  }

  async #ask(what: What, options: LeaseOptions, flow: string): Promise<Lease> {
    const expected = this.keeper.expect(options.ttlMs);
    const ask: Ask = (wait, session) => ({
      operation: "acquireLease",
      body: { ...bodyOf(what, options, session, flow), ...this.keeper.takesOver(), ...wait },
      header: { traceparent: options.traceparent },
    });
    const isPool = typeof what === "object" && "anyPrefix" in what;
    const claims = isPool ? await this.#members(what.anyPrefix) : claimsOf(what, options);
    const any = isPool || options.any === true;
    try {
      const { granted, session, sentAt } = await this.unlessOwn(claims, any, (refuse) =>
        this.line.obtain(ask, { ...options, refuse }, "release", options.onConflict, flow),
      );
      const lease = await this.#adopt(granted, session, sentAt, flow);
      lease.onWarning(options.onWarning);
      return lease;
    } catch (error) {
      if (!(error instanceof Held || error instanceof WaitTimeout)) throw error;
      throw this.#isOwn(error.holders) ? heldByOwn(error) : error;
    } finally {
      expected();
    }
  }

  /**
   * Returns claims on the keys that a prefix stands for, if some of them are around the caller. A refusal names
   * the holder of one of them only.
   */
  async #members(prefix: string): Promise<t.ClaimRequest[]> {
    const around = [...this.#enclosing()].flatMap((lease) => lease.keys);
    if (![...around, ...(this.#origin?.keys ?? [])].some((key) => key.startsWith(prefix))) return [];
    const { patterns } = await this.request("listPatterns", {});
    const keys = patterns.flatMap(({ members }) => members ?? []).filter((key) => key.startsWith(prefix));
    return keys.map((key) => ({ key, mode: "exclusive" }));
  }

  async #adopt(granted: t.Granted, session: Session, sentAt: number, flow: string): Promise<Lease> {
    const grant = await this.keeper.adopt(session, granted.lease, sentAt, granted.reused);
    return new Lease(this, grant, granted, flow);
  }

  /**
   * Runs work under a lease and releases it at the end, however that comes. The signal that work
   * gets aborts when the lease is lost, or with the caller's signal. If the lease was lost, the
   * result is a LeaseLost, unless work itself has failed.
   */
  async withLease<T>(
    what: What,
    options: LeaseOptions,
    work: (lease: Lease, signal: AbortSignal) => T | PromiseLike<T>,
  ): Promise<T>;
  async withLease<T>(what: What, work: (lease: Lease, signal: AbortSignal) => T | PromiseLike<T>): Promise<T>;
  async withLease<T>(
    what: What,
    second: LeaseOptions | ((lease: Lease, signal: AbortSignal) => T | PromiseLike<T>),
    third?: (lease: Lease, signal: AbortSignal) => T | PromiseLike<T>,
  ): Promise<T> {
    const options = typeof second === "function" ? {} : second;
    const work = typeof second === "function" ? second : third;
    if (!work) throw new TypeError("withLease needs a function to run under the lease");
    return this.#under(await this.lease(what, options), options.signal, work);
  }

  /** Runs work under a lease, and releases it. */
  async #under<T>(
    lease: Lease,
    outer: Signal | undefined,
    work: (lease: Lease, signal: AbortSignal) => T | PromiseLike<T>,
  ): Promise<T> {
    const { signal, end } = linked([lease.signal, outer]);
    const { blocks } = this.keeper;
    blocks.add(lease); // also if nothing but a timer of the work is left
    let result: T;
    try {
      result = await lease.enclose(() => work(lease, signal));
    } catch (error) {
      await lease.release().catch(() => {}); // the failure of the work is what counts
      throw error;
    } finally {
      blocks.delete(lease);
      end();
    }
    await lease[Symbol.asyncDispose]();
    return result;
  }

  /**
   * Runs the work of one run of an agent: a turn, or an invocation of a graph. The leases that its tools take
   * with hold: "run" are kept until the work has ended, so that no other agent writes between a tool that
   * reads and one that writes. A turn within a turn is a part of it. Wait within the work for the end of what
   * it starts, such as a stream.
   */
  async turn<T>(work: () => T | PromiseLike<T>, options: TurnOptions = {}): Promise<T> {
    const turn = this.begin(options);
    try {
      return await turn.within(work);
    } finally {
      await turn.run.end();
    }
  }

  /** Begins the run of an agent, which its caller ends. @internal */
  begin(options: TurnOptions = {}): { run: Run; within: <R>(work: () => R) => R } {
    const [around] = options.flow === undefined ? this.#around() : [];
    const run = new Run();
    const flow = options.flow ?? around?.flow ?? run.flow;
    const scope = { client: around?.client ?? this, flow, run, isApart: options.flow !== undefined };
    return { run, within: (work) => within(scope, work) };
  }

  /**
   * Resumes a parked lease. It rejects with the code parked if no answer comes within waitMs, which is
   * 0 if left out.
   */
  async resume(id: t.LeaseID, options: ResumeOptions = {}): Promise<Lease> {
    const flow = options.flow ?? this.flowAround();
    const until = this.clock.steady() + (options.waitMs ?? 0);
    const pollMs = scopes().next().done === false ? shortPollMs : limits.maxLongPollMs;
    const pace = new Pace(this.clock);
    for (;;) {
      const left = Math.max(0, until - this.clock.steady());
      try {
        const { granted, session, sentAt } = await this.firstUnlessOwn(left, (waitMs, refuse) => {
          const ask: Ask = (wait, session) => {
            const body: t.ResumeRequest = { ...wait, session: session.id, flow };
            if (waitMs > 0) body.wait_ms = Math.ceil(Math.min(waitMs, pollMs));
            if (options.unapproved !== undefined) body.unapproved = options.unapproved;
            return { operation: "resumeLease", path: { id }, body };
          };
          return this.line.obtain(
            ask,
            { ...options, waitMs, pollMs, ...(refuse ? { refuse } : {}) },
            "return",
          );
        });
        return await this.#adopt(granted, session, sentAt, flow);
      } catch (error) {
        const isUnanswered = error instanceof Refused && error.code === "parked";
        if (!isUnanswered || this.clock.steady() >= until) throw error;
      }
      await pace.next(options.signal);
    }
  }

  /** Shows a key: its holders, those who wait, and the notes of earlier holders. */
  look(key: t.Key, options: RequestOptions = {}): Promise<t.KeyView> {
    return this.request("getKey", { path: { key } }, options);
  }

  /** Explains in words why a key is held, or what an agent waits for. */
  why(about: t.Key | { agent: string }, options: RequestOptions = {}): Promise<t.Why> {
    const query = typeof about === "string" ? { key: about } : about;
    return this.request("getWhy", { query }, options);
  }

  /** Checks that a fence is the newest of its key. It rejects with the code fenced if it is not. */
  async checkFence(key: t.Key, fence: t.Decimal, options: RequestOptions = {}): Promise<void> {
    await this.request("checkFence", { body: { key, fence } }, options);
  }

  /** Reads a document. One that does not exist has absent and its version, which a creating commit names. */
  async read(key: t.Key, options: RequestOptions = {}): Promise<t.Document> {
    const [document] = await this.readAll([key], options);
    if (!document) throw new TypeError(`the server returned no document for ${key}`);
    return document;
  }

  /** Reads several documents as of one moment. */
  async readAll(keys: readonly t.Key[], options: RequestOptions = {}): Promise<t.Document[]> {
    const answer = await this.request("listState", { query: { key: [...keys], values: "true" } }, options);
    return answer.documents;
  }

  /** Lists the documents with a prefix of their keys, in their order. */
  async *list(
    prefix: string,
    options: RequestOptions & { values?: boolean } = {},
  ): AsyncGenerator<t.Document> {
    let cursor: string | undefined;
    do {
      const query: NonNullable<Operations["listState"]["query"]> = {
        prefix,
        values: options.values === false ? "false" : "true",
      };
      if (cursor !== undefined) query.cursor = cursor;
      const page = await this.request("listState", { query }, options);
      yield* page.documents;
      cursor = page.cursor;
    } while (cursor !== undefined);
  }

  /** Lists the versions of a document that are kept, the newest first. */
  history(key: t.Key, options: RequestOptions = {}): Promise<t.History> {
    return this.request("listVersions", { path: { key }, query: { values: "true" } }, options);
  }

  /** Commits documents, all or none. It rejects with Stale if a read is not the present version. */
  async commit(commit: Commit): Promise<t.Committed> {
    const { idempotencyKey, signal } = commit;
    const isFree = commit.flow === undefined && commit.leases === undefined;
    const around = isFree ? this.#scopeOf((commit.writes ?? []).map(({ key }) => ({ key }))) : undefined;
    const flow = commit.flow ?? around?.flow; // what encloses the call may hold a key exclusively
    const bound = flow !== undefined || commit.leases !== undefined;
    const owner = around?.client ?? commit.leases?.find((l) => typeof l !== "string")?.client ?? this;
    const session = bound ? (await owner.keeper.session(signal)).id : undefined;
    const body = commitBody(flow === undefined ? commit : { ...commit, flow }, this.agent, session);
    return under(commit.leases ?? [], () =>
      this.request("commitState", { body }, { idempotencyKey, signal }),
    );
  }

  /**
   * Changes a document by a function of its present value, which is called again when another commit
   * was faster. It needs no lease, and suits changes that need no thought.
   */
  async update<V = unknown>(
    key: t.Key,
    change: (value: V | undefined, document: t.Document) => V | PromiseLike<V>,
    options: { note?: string; signal?: Signal; tries?: number } = {},
  ): Promise<t.Committed> {
    const { tries = 16, ...rest } = options;
    for (let n = 1; ; n++) {
      const document = await this.read(key, { signal: options.signal });
      const value = await change(document.absent ? undefined : (document.value as V), document);
      const reads = [{ key, version: document.version }];
      try {
        return await this.commit({ ...rest, reads, writes: [{ key, put: value }] });
      } catch (error) {
        if (!(error instanceof Refused) || error.code !== "stale" || n >= tries) throw error;
      }
    }
  }

  /** Follows the writes to a key, or below a prefix. It goes on after a broken connection. */
  watch(options: WatchOptions): AsyncGenerator<t.Written> {
    return watch(this.transport, this.keeper.closed, options);
  }

  /**
   * Does something that must not happen twice, such as a charge. If it was done before, by any caller,
   * act is not called, and the result is that of then. While another caller is about to do it, this
   * one waits. An error of act leaves the outcome unknown, and it is not done again until a person has
   * found out; a NotDone frees it for the next caller.
   */
  effect<T>(
    action: Action,
    act: (effect: t.Effect) => T | PromiseLike<T>,
    options: EffectOptions = {},
  ): Promise<T> {
    return perform(this, action, act, options);
  }

  /** Submits a task, which stands in line for its keys and holds nothing until a worker gets it. */
  async submit(task: t.TaskRequest, options: RequestOptions = {}): Promise<t.Task> {
    const body: t.SubmitRequest = { agent: this.agent, ...task };
    return (await this.request("createTask", { body }, options)).task;
  }

  /** Waits for the end of a task or of a message: it is then done, dead or cancelled. */
  finished(id: t.TaskID, options: RequestOptions & { waitMs?: number } = {}): Promise<t.Task> {
    return finished(this, id, this.#waiters(), options);
  }

  /** Returns whose flows wait when the caller does: of what it may use, the innermost; and of others around it. */
  #waiters(): Waiter[] {
    const found = [...this.#around()].slice(0, 1);
    for (const scope of scopes()) {
      const isOther = scope.client.place === this.place && scope.client.party !== this.party;
      const isHeld = scope.lease?.held || scope.run?.kept.length;
      if (
        isOther &&
        isHeld &&
        !found.some(({ client, flow }) => client === scope.client && flow === scope.flow)
      )
        found.push(scope);
    }
    return found;
  }

  /**
   * Works on the tasks of a queue until the signal ends, and then finishes those that run. What handle
   * returns ends the task, with its result, its writes and its follow-up tasks, all or nothing. An
   * error is another attempt; RetryAfter, Dead and NeedsApproval change that.
   */
  work(
    options: WorkOptions,
    handle: (job: Job) => Done | undefined | void | PromiseLike<Done | undefined | void>,
  ): Promise<void> {
    const working = work(this, options, handle);
    const over = working
      .catch(() => {}) // its caller learns of it
      .finally(() => this.#working.delete(over));
    this.#working.add(over);
    return working;
  }

  /** Sends a message to the single writer of a key. The task that it returns ends with the reply. */
  async send(key: t.Key, message: t.SendRequest, options: RequestOptions = {}): Promise<t.Task> {
    const body = { agent: this.agent, ...message };
    return (await this.request("sendMessage", { path: { key }, body }, options)).message;
  }

  /** Sends a message to the single writer of a key, and returns the reply. */
  async ask<T = unknown>(
    key: t.Key,
    message: t.SendRequest,
    options: RequestOptions & { waitMs?: number } = {},
  ): Promise<T> {
    const { id } = await this.send(key, message, options);
    const task = await this.finished(id, options);
    if (task.state === "done") return task.result as T;
    if (task.state === "dead" || task.state === "cancelled") {
      throw new TaskMoved({
        code: "task_settled",
        message: `the message to ${key} is ${task.state}: ${task.reason ?? ""}`,
      });
    }
    throw new WaitTimeout({
      code: "wait_limit",
      message: `there is no reply of the writer of ${key} yet`,
      advice: {
        action: "work_elsewhere",
        retry_after_ms: 0,
        message: `work on something else; the message ${id} goes on`,
      },
    });
  }

  /** Lists what waits for a person's answer: tasks and parked leases. */
  approvals(options: RequestOptions = {}): Promise<t.ApprovalList> {
    return this.request("listApprovals", {}, options);
  }

  /** Answers a question: the id of its task, or the fence of its lease. */
  async answerApproval(
    id: t.QuestionID,
    answer: t.AnswerRequest,
    options: RequestOptions = {},
  ): Promise<void> {
    await this.request("answerApproval", { path: { id }, body: answer }, options);
  }

  /**
   * Admits a run of a workflow, as many at once as an organisation may have, and runs work in it, as a turn. It
   * rejects with Held if there is no room within waitMs, which is 2 s if left out.
   */
  async run<T>(
    options: RunOptions,
    work: (lease: Lease, signal: AbortSignal) => T | PromiseLike<T>,
  ): Promise<T> {
    const lease = await startRun(this, options);
    return this.#under(lease, options.signal, (lease, signal) => this.turn(() => work(lease, signal)));
  }

  /** Shows the server and the namespace. */
  status(options: RequestOptions = {}): Promise<t.ServerStatus> {
    return this.request("getStatus", {}, options);
  }

  /** Sends the request of any operation of the API, and returns its answer. */
  async request<O extends OperationName>(
    operation: O,
    parameters: RequestParameters<O>,
    options: RequestOptions = {},
  ): Promise<Operations[O]["answer"]> {
    return (await this.answer(operation, parameters, options)).data;
  }

  /** Does the same, and returns the status and the headers too. */
  async answer<O extends OperationName>(
    operation: O,
    parameters: RequestParameters<O>,
    options: RequestOptions = {},
  ): Promise<Answer<Operations[O]["answer"]>> {
    const { closed } = this.keeper;
    const { signal, end } = linked([options.signal, closed]);
    try {
      return await this.transport.send(operation, parameters, { ...options, signal });
    } finally {
      end();
    }
  }

  /**
   * Ends the work of all workers as their signals do: they take no more tasks, and finish those that run. Then it
   * closes the client, which releases all other leases.
   */
  async drain(): Promise<void> {
    this.draining.abort(new ClientClosed());
    await Promise.all(this.#working);
    await this.close();
  }

  /** Ends the session: its leases are released and its places in line left. Pending calls reject. */
  close(): Promise<void> {
    this.#forgetSignals();
    this.#closing ??= this.keeper.close().finally(() => this.transport.close());
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** How a parked lease is resumed. */
export interface ResumeOptions {
  /** How long to wait for the answer, and for keys that were freed. */
  waitMs?: number;
  flow?: string;
  signal?: Signal;
  /** Resumes without an answer, or in spite of a denial. */
  unapproved?: boolean;
}
