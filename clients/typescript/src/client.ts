import { Line, bodyOf, type LeaseOptions, type What } from "./acquire.js";
import { Clock } from "./clock.js";
import { Refused } from "./errors.js";
import { Keeper, type Session } from "./keeper.js";
import { Lease } from "./lease.js";
import { Servers, attentiveMs } from "./servers.js";
import { commitBody, type Commit } from "./state.js";
import { linked, type Signal } from "./stop.js";
import {
  Transport,
  type Answer,
  type OperationName,
  type RequestParameters,
  type Sending,
} from "./transport.js";
import { limits, type Operations } from "./types.js";
import type * as t from "./types.js";
import { watch, type WatchOptions } from "./watch.js";

/** The settings of a client. Each has a default that works with a server on this machine. */
export interface ClientOptions {
  /** The URLs of the servers of one cluster, in a list or separated by commas: INTERLOCK_URL if left out. */
  url?: string | readonly string[];
  /** The credential: INTERLOCK_CREDENTIAL if left out. */
  credential?: string;
  /** The tenant; the credential's if left out. */
  namespace?: string;
  /** The name that other agents and people see: INTERLOCK_AGENT if left out. */
  agent?: string;
  /** How long the session, with its leases, outlives its last heartbeat. */
  sessionTTLMs?: number;
  /** How long a request is tried again while no server answers. */
  retryForMs?: number;
  /** Sends the requests in place of the global fetch. */
  fetch?: typeof fetch;
  /** The clock that leases are timed by. */
  clock?: Clock;
}

/** The settings of a request. */
export interface RequestOptions extends Sending {}

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
  #flows = 0;
  #closing: Promise<void> | undefined;

  constructor(options: ClientOptions = {}) {
    const servers = new Servers(options.url ?? environment("INTERLOCK_URL") ?? "http://127.0.0.1:7420");
    this.agent = options.agent ?? environment("INTERLOCK_AGENT") ?? "";
    this.clock = options.clock ?? new Clock();
    this.transport = new Transport({
      servers,
      clock: this.clock,
      credential: options.credential ?? environment("INTERLOCK_CREDENTIAL"),
      namespace: options.namespace ?? environment("INTERLOCK_NAMESPACE"),
      retryForMs: options.retryForMs ?? 30_000,
      attemptMs: () =>
        servers.several ? Math.min(attentiveMs, Math.max(250, this.keeper.shortestMs / 4)) : 10_000,
      fetch: options.fetch ?? ((input, init) => fetch(input, init)),
    });
    this.keeper = new Keeper({
      transport: this.transport,
      servers,
      clock: this.clock,
      agent: this.agent,
      sessionTTLMs: options.sessionTTLMs ?? limits.defaultTTLMs,
    });
    this.line = new Line(this.transport, this.keeper, this.clock);
  }

  /** Returns a name of a flow that no other request of this client has. */
  newFlow(): string {
    return `flow-${++this.#flows}`;
  }

  /**
   * Acquires a lease. It waits in line for waitMs, 60 s if left out, and rejects with Held (waitMs
   * 0), WaitTimeout, Deadlock or another refusal, or with the reason of the signal.
   */
  async lease(what: What, options: LeaseOptions = {}): Promise<Lease> {
    const flow = options.flow ?? this.newFlow();
    const expected = this.keeper.expect(options.ttlMs);
    try {
      const { granted, session, sentAt } = await this.line.obtain(
        (wait, session) => ({
          operation: "acquireLease",
          body: { ...bodyOf(what, options, session, flow), ...wait },
          header: { traceparent: options.traceparent },
        }),
        options,
        "release",
        options.onConflict,
      );
      const lease = await this.#adopt(granted, session, sentAt, flow);
      lease.onWarning(options.onWarning);
      return lease;
    } finally {
      expected();
    }
  }

  async #adopt(granted: t.Granted, session: Session, sentAt: number, flow: string): Promise<Lease> {
    const grant = await this.keeper.adopt(session, granted.lease, sentAt);
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
    const lease = await this.lease(what, options);
    const { signal, end } = linked([lease.signal, options.signal]);
    let result: T;
    try {
      result = await work(lease, signal);
    } catch (error) {
      await lease.release().catch(() => {}); // the failure of the work is what counts
      throw error;
    } finally {
      end();
    }
    await lease[Symbol.asyncDispose]();
    return result;
  }

  /**
   * Resumes a parked lease. It rejects with the code parked if no answer comes within waitMs, which is
   * 0 if left out.
   */
  async resume(id: t.LeaseID, options: ResumeOptions = {}): Promise<Lease> {
    const flow = options.flow ?? this.newFlow();
    const waiting = { ...options, waitMs: options.waitMs ?? 0 };
    const { granted, session, sentAt } = await this.line.obtain(
      (wait, session) => {
        const body: t.ResumeRequest = { ...wait, session: session.id, flow };
        if (waiting.waitMs > 0) body.wait_ms = Math.min(waiting.waitMs, limits.maxLongPollMs);
        if (options.unapproved !== undefined) body.unapproved = options.unapproved;
        return { operation: "resumeLease", path: { id }, body };
      },
      waiting,
      "return",
    );
    return this.#adopt(granted, session, sentAt, flow);
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
    const bound = commit.flow !== undefined || commit.leases !== undefined;
    const session = bound ? (await this.keeper.session(signal)).id : undefined;
    return this.request(
      "commitState",
      { body: commitBody(commit, this.agent, session) },
      { idempotencyKey, signal },
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

  /** Ends the session: its leases are released and its places in line left. Pending calls reject. */
  close(): Promise<void> {
    this.#closing ??= this.keeper.close();
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
