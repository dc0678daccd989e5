import type { Clock } from "./clock.js";
import { InterlockError, Unreachable, OutcomeUnknown, refusal } from "./errors.js";
import { encode, parse } from "./json.js";
import type { Servers } from "./servers.js";
import { linked, orAborted, sleep, type Signal } from "./stop.js";
import { operations, type Operations, type Problem } from "./types.js";

export type OperationName = keyof Operations;

/** The parameters and the body of an operation. */
export type RequestParameters<O extends OperationName> = Omit<Operations[O], "answer">;

/** How a request is sent. */
export interface Sending {
  signal?: Signal | undefined;
  /** Repetitions with the same key happen once. Left out, each call has its own. */
  idempotencyKey?: string | undefined;
  /** How long the server may keep the answer back, besides what a request takes. */
  waitMs?: number | undefined;
  /** How long one attempt may take, besides waitMs. */
  attemptMs?: number | undefined;
  /** Its caller does not wait for it: the pauses between attempts do not keep the process alive. */
  background?: boolean | undefined;
  /** How long it is tried again from the first failure on. */
  retryForMs?: number | undefined;
}

/** An answer to a request. */
export interface Answer<T> {
  data: T;
  status: number;
  headers: Headers;
  /** When the request was first sent, by the client's clock. */
  sentAt: number;
}

/** The settings of a transport. */
export interface TransportConfig {
  servers: Servers;
  clock: Clock;
  credential?: string | undefined;
  namespace?: string | undefined;
  retryForMs: number;
  /** How long one attempt may take, besides waiting; asked anew for each attempt. */
  attemptMs(): number;
  fetch: typeof fetch;
}

/** Operations that may be repeated without a key: they read, or once is as good as twice. */
const repeatable: ReadonlySet<OperationName> = new Set([
  "heartbeatSession",
  "deleteSession",
  "checkFence",
  "signLease",
  "deleteEffects",
  "deleteEffect",
] as const);

/** The errors of fetch that come before anything was sent. */
const unsent: ReadonlySet<unknown> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
  "ConnectionRefused",
  "FailedToOpenSocket",
]);

/** How an attempt ended without an answer that decides. */
interface Failure {
  /** Whether the server may have carried the request out. */
  maybe: boolean;
  /** How long to stay away, as the server said. */
  retryAfterMs: number;
  /** Whether to ask the next server at once. */
  next: boolean;
  error: unknown;
}

/** Sends requests: repeats them while that is safe, and goes to the server that is active. */
export class Transport {
  constructor(readonly config: TransportConfig) {}

  /** Sends the request of an operation, and returns its answer. */
  async send<O extends OperationName>(
    operation: O,
    parameters: RequestParameters<O>,
    sending: Sending = {},
  ): Promise<Answer<Operations[O]["answer"]>> {
    const { servers, clock } = this.config;
    const call = operations[operation];
    const key = call.keyed ? (sending.idempotencyKey ?? crypto.randomUUID()) : undefined;
    const again = call.method === "GET" || call.keyed || repeatable.has(operation);
    const limit = sending.retryForMs ?? this.config.retryForMs;
    const first = { sentAt: -1, failedAt: -1 };
    let unknown = false;
    for (let tries = 0; ; tries++) {
      sending.signal?.throwIfAborted();
      const sentAt = clock.now();
      if (first.sentAt < 0) first.sentAt = sentAt;
      const result = await this.#attempt(operation, parameters, sending, key, servers.current, unknown);
      if ("data" in result) return { ...result, sentAt: first.sentAt } as Answer<Operations[O]["answer"]>;
      unknown ||= result.maybe;
      if (!again && unknown) throw this.#gaveUp(operation, true, result.error);
      if (first.failedAt < 0) first.failedAt = sentAt;
      const pause = result.next
        ? 0
        : Math.max(servers.pause(tries + 1, 0), result.retryAfterMs * (0.5 + Math.random() / 2));
      if (clock.now() + pause - first.failedAt >= limit) throw this.#gaveUp(operation, unknown, result.error);
      await sleep(pause, sending.signal, sending.background);
    }
  }

  #gaveUp(operation: OperationName, unknown: boolean, cause: unknown): InterlockError {
    if (cause instanceof InterlockError && !unknown) return cause;
    const reads = operations[operation].method === "GET";
    const words = cause instanceof Error ? cause.message : String(cause);
    const url = this.config.servers.url(this.config.servers.current);
    if (unknown && !reads) {
      return new OutcomeUnknown({
        code: "outcome_unknown",
        message: `${operation} was sent, and no answer came (${words}): whether it was carried out is unknown`,
        cause,
      });
    }
    return new Unreachable({
      code: "unreachable",
      message: `no server answered at ${url}: ${words}`,
      advice: {
        action: "retry",
        retry_after_ms: 2000,
        message: "try again a little later, and check that a server runs at that address",
      },
      cause,
    });
  }

  /** Sends the request once. It throws what decides: a refusal, or the reason of the caller's signal. */
  async #attempt(
    operation: OperationName,
    parameters: { path?: unknown; query?: unknown; header?: unknown; body?: unknown },
    sending: Sending,
    key: string | undefined,
    index: number,
    unknown: boolean,
  ): Promise<Omit<Answer<unknown>, "sentAt"> | Failure> {
    const { servers } = this.config;
    const most = (sending.attemptMs ?? this.config.attemptMs()) + (sending.waitMs ?? 0);
    const { signal, end } = linked([sending.signal, servers.leaving(index)], most);
    const failed = (error: unknown, maybe: boolean): Failure => {
      if (sending.signal?.aborted) throw sending.signal.reason;
      servers.failed(index);
      return { maybe, retryAfterMs: 0, next: false, error };
    };
    let response: Response;
    let text: string | Uint8Array;
    try {
      response = await orAborted(this.open(operation, parameters, key, index, signal), signal);
      text = await orAborted(body(response), signal);
    } catch (error) {
      return failed(detail(error), !wasUnsent(error));
    } finally {
      end();
    }
    if (response.ok || response.status === 304) {
      if (typeof text !== "string" || !isJSON(response))
        return { data: text, status: response.status, headers: response.headers };
      try {
        return { data: parse(text), status: response.status, headers: response.headers };
      } catch (error) {
        return failed(error, true);
      }
    }
    const problem = problemOf(text);
    if (!problem) {
      const error = new Error(
        `${servers.url(index)} answered ${response.status}, which is no answer of Interlock`,
      );
      return failed(error, response.status >= 500);
    }
    return this.#judge(problem, index, unknown);
  }

  /** Decides whether a refusal is the answer, or is about the server's state. */
  #judge(problem: Problem, index: number, unknown: boolean): Failure {
    const { servers } = this.config;
    const error = refusal(problem);
    switch (problem.code) {
      case "not_owner": {
        if (servers.follow(problem.active?.http))
          return { maybe: false, retryAfterMs: 0, next: servers.several, error };
        servers.failed(index);
        return { maybe: false, retryAfterMs: servers.several ? 0 : error.retryAfterMs, next: false, error };
      }
      case "shutting_down":
        servers.failed(index);
        return { maybe: false, retryAfterMs: servers.several ? 0 : error.retryAfterMs, next: false, error };
      case "overloaded":
      case "unreachable":
        return { maybe: false, retryAfterMs: error.retryAfterMs, next: false, error };
      case "outcome_unknown":
        return { maybe: true, retryAfterMs: error.retryAfterMs, next: false, error };
      case "quota_exceeded": // it decided nothing about an earlier attempt
        if (unknown) return { maybe: false, retryAfterMs: error.retryAfterMs, next: false, error };
        throw error;
      default:
        throw error;
    }
  }

  /** Sends the request once, and returns the response with its body unread. */
  open(
    operation: OperationName,
    parameters: { path?: unknown; query?: unknown; header?: unknown; body?: unknown },
    key: string | undefined,
    index: number,
    signal: AbortSignal,
  ): Promise<Response> {
    const call = operations[operation];
    const path = (parameters.path ?? {}) as Record<string, string>;
    let url =
      this.config.servers.url(index) +
      call.path.replace(/\{(\w+)\}/g, (_all, name: string) => segments(path[name] ?? ""));
    const query = queryOf((parameters.query ?? {}) as Record<string, unknown>);
    if (query !== "") url += `?${query}`;
    const headers = new Headers();
    for (const [name, value] of Object.entries((parameters.header ?? {}) as Record<string, unknown>)) {
      if (value !== undefined) headers.set(name, String(value));
    }
    headers.set("Accept", call.streams ? "application/x-ndjson" : "*/*");
    if (key !== undefined) headers.set("Idempotency-Key", key);
    if (this.config.credential) headers.set("Authorization", `Bearer ${this.config.credential}`);
    if (this.config.namespace) headers.set("Interlock-Namespace", this.config.namespace);
    const init: RequestInit = { method: call.method, headers, redirect: "error", signal };
    if (call.sends !== undefined && parameters.body !== undefined) {
      if (!headers.has("Content-Type")) headers.set("Content-Type", call.sends);
      init.body =
        parameters.body instanceof Uint8Array ? (parameters.body as BodyInit) : encode(parameters.body);
    }
    return this.config.fetch(url, init);
  }
}

/** Encodes a value of a path. Slashes separate the segments of a key and stay. */
function segments(value: string): string {
  return value.split("/").map(encodeURIComponent).join("/");
}

function queryOf(values: Record<string, unknown>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined) query.append(name, String(one));
    }
  }
  return query.toString();
}

function isJSON(response: Response): boolean {
  return (
    /[/+]json\b/.test(response.headers.get("Content-Type") ?? "") &&
    !response.headers.has("Interlock-Version")
  );
}

/** Reads a body: as text, or as bytes where it is a document. */
async function body(response: Response): Promise<string | Uint8Array> {
  if (
    response.ok &&
    (response.headers.has("Interlock-Version") ||
      !/text|json/.test(response.headers.get("Content-Type") ?? ""))
  ) {
    return new Uint8Array(await response.arrayBuffer());
  }
  return response.text();
}

/** Returns the refusal that a body is, if it is one. */
export function problemOf(text: string | Uint8Array): Problem | undefined {
  if (typeof text !== "string") return undefined;
  try {
    const value = parse(text) as Partial<Problem> | null;
    return typeof value?.code === "string" && typeof value.detail === "string"
      ? (value as Problem)
      : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the error in words: fetch hides it in the cause. */
function detail(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Error ? error.cause : error;
}

function wasUnsent(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  if (unsent.has(code)) return true;
  if (cause instanceof AggregateError)
    return cause.errors.length > 0 && cause.errors.every((e) => wasUnsent(e));
  return cause !== undefined && wasUnsent(cause);
}
