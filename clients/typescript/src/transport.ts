import type { Clock } from "./clock.js";
import { InterlockError, InvalidRequest, Unreachable, OutcomeUnknown, refusal } from "./errors.js";
import { encode, parse } from "./json.js";
import { ProxyError } from "./proxy.js";
import type { Flow, Outgoing, Sender, Whole } from "./sender.js";
import { isA, words } from "./text.js";
import type { Servers } from "./servers.js";
import { linked, orAborted, sleep, type Signal } from "./stop.js";
import { operations, type Operations, type Problem } from "./types.js";

export type OperationName = keyof Operations;

/** The parameters and the body of an operation. */
export type RequestParameters<O extends OperationName> = Omit<Operations[O], "answer">;

/** The same for any operation. */
interface RequestParts {
  path?: unknown;
  query?: unknown;
  header?: unknown;
  body?: unknown;
}

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
  /** Whether the caller asked for that time: it counts also while no server has ever answered. */
  patient: boolean;
  /** How long one attempt may take, besides waiting; asked anew for each attempt. */
  attemptMs(): number;
  sender: Sender;
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

/** The errors that come before anything was sent. */
const unsent: ReadonlySet<unknown> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EADDRNOTAVAIL",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
  "ConnectionRefused",
  "ERR_PROXY",
  "FailedToOpenSocket",
]);

/** A request for whichever server. */
type Prepared = Omit<Outgoing, "signal">;

/** How an attempt ended without an answer that decides. */
interface Failure {
  /** Whether the server may have carried the request out. */
  maybe: boolean;
  /** How long to stay away, as the server said. */
  retryAfterMs: number;
  /** Whether to ask the next server at once. */
  next: boolean;
  /** What is wrong with the connection to this server, that no repetition mends. */
  wrong?: Unreachable | undefined;
  error: unknown;
}

/** Sends requests: repeats them while that is safe, and goes to the server that is active. */
export class Transport {
  #hasAnswered = false;

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
    const prepared = this.#prepare(operation, parameters, key);
    let first: number | undefined;
    let failedAt: number | undefined;
    let unknown = false;
    let wrong = 0;
    for (let tries = 0; ; tries++) {
      sending.signal?.throwIfAborted();
      first ??= clock.now();
      const began = clock.steady();
      const result = await this.#attempt(prepared, sending, servers.current, unknown);
      if ("data" in result) return { ...result, sentAt: first } as Answer<Operations[O]["answer"]>;
      unknown ||= result.maybe;
      if (!again && unknown) throw this.#gaveUp(operation, true, result.error);
      if (result.wrong && ++wrong >= servers.count) throw this.#gaveUp(operation, unknown, result.wrong);
      const isMissing =
        !this.#hasAnswered && !unknown && tries + 1 >= servers.count && wasUnsent(result.error);
      if (isMissing && !this.config.patient && sending.retryForMs === undefined)
        throw this.#gaveUp(operation, false, result.error);
      failedAt ??= began;
      const pause = result.next
        ? 0
        : Math.max(servers.pause(tries + 1, 0), result.retryAfterMs * (0.5 + Math.random() / 2));
      // A wait at a silent server may be longer than the limit by itself: the others are asked after it.
      const isOver = (tries + 1) % servers.count === 0 || limit <= 0;
      if (isOver && clock.steady() + pause - failedAt >= limit)
        throw this.#gaveUp(operation, unknown, result.error);
      await sleep(pause, sending.signal, sending.background);
    }
  }

  #gaveUp(operation: OperationName, unknown: boolean, cause: unknown): InterlockError {
    if (cause instanceof InterlockError && !unknown) return cause;
    const reads = operations[operation].method === "GET";
    const why = words(cause);
    const url = this.config.servers.url(this.config.servers.current);
    if (unknown && !reads) {
      return new OutcomeUnknown({
        code: "outcome_unknown",
        message: `${operation} was sent, and no answer came (${why}): whether it was carried out is unknown`,
        cause,
      });
    }
    return new Unreachable({
      code: "unreachable",
      message: `no server answered at ${url}: ${why}`,
      advice: {
        action: "retry",
        retry_after_ms: 2000,
        message:
          cause instanceof ProxyError
            ? cause.next
            : this.#hasAnswered
              ? "try again a little later, and check that a server runs at that address"
              : "start one with `interlock serve --data-dir data`, or set INTERLOCK_URL to the address of one",
      },
      cause,
    });
  }

  /** Sends the request once. It throws what decides: a refusal, or the reason of the caller's signal. */
  async #attempt(
    prepared: Prepared,
    sending: Sending,
    index: number,
    unknown: boolean,
  ): Promise<Omit<Answer<unknown>, "sentAt"> | Failure> {
    const { servers } = this.config;
    const most = (sending.attemptMs ?? this.config.attemptMs()) + (sending.waitMs ?? 0);
    const { signal, end } = linked([sending.signal, servers.leaving(index)], most);
    const failed = (error: unknown, maybe: boolean): Failure => {
      if (sending.signal?.aborted) throw sending.signal.reason;
      servers.failed(index, true);
      const wrong = wrongConnection(error, servers.url(index));
      return { maybe: maybe && !wrong, retryAfterMs: 0, next: false, wrong, error };
    };
    let answer: Whole;
    try {
      const request = { ...prepared, url: servers.url(index) + prepared.url, signal };
      answer = await orAborted(this.config.sender.send(request), signal);
    } catch (error) {
      return failed(detail(error), !wasUnsent(error));
    } finally {
      end();
    }
    const { status, headers } = answer;
    // Another server has forwarded the request. An owner that was just silent here can be out of reach: then each
    // next request would wait for it first.
    servers.follow(headers.get("Interlock-Owner"));
    const good = isGood(status);
    const data = good && isDocument(headers) ? answer.body : utf8.decode(answer.body);
    this.#hasAnswered ||= good;
    if (good || status === 304) {
      if (typeof data !== "string" || !isJSON(headers)) return { data, status, headers };
      try {
        return { data: parse(data), status, headers };
      } catch (error) {
        return failed(error, true);
      }
    }
    const problem = problemOf(data);
    if (!problem) {
      const error = strange(servers.url(index), status, data);
      const failure = failed(error, status >= 500);
      return error instanceof Unreachable ? { ...failure, wrong: error } : failure;
    }
    this.#hasAnswered = true;
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

  /** Sends the request once, and returns the answer when that begins. */
  async open(
    operation: OperationName,
    parameters: RequestParts,
    index: number,
    signal: AbortSignal,
  ): Promise<Flow> {
    const prepared = this.#prepare(operation, parameters, undefined);
    const url = this.config.servers.url(index);
    try {
      return await orAborted(
        this.config.sender.open({ ...prepared, url: url + prepared.url, signal }),
        signal,
      );
    } catch (error) {
      throw wrongConnection(detail(error), url) ?? error;
    }
  }

  /** Closes the connections. */
  close(): void {
    this.config.sender.close();
  }

  /** Encodes a request. What is wrong with it is told before anything is sent. */
  #prepare(operation: OperationName, parameters: RequestParts, key: string | undefined): Prepared {
    try {
      return this.#encoded(operation, parameters, key);
    } catch (cause) {
      const message = `${operation} was not sent, as it cannot be encoded: ${words(cause)}`;
      throw new InvalidRequest({ code: "invalid_request", message, cause });
    }
  }

  #encoded(operation: OperationName, parameters: RequestParts, key: string | undefined): Prepared {
    const { credential, namespace } = this.config;
    const call = operations[operation];
    const path = (parameters.path ?? {}) as Record<string, string>;
    let url = call.path.replace(/\{(\w+)\}/g, (_all, name: string) => segments(path[name] ?? ""));
    const query = queryOf((parameters.query ?? {}) as Record<string, unknown>);
    if (query !== "") url += `?${query}`;
    const headers: Record<string, string> = {};
    const set = (name: string, value: unknown, what = name) => {
      if (value !== undefined) headers[name.toLowerCase()] = headerValue(what, String(value));
    };
    let body: Uint8Array | undefined;
    if (call.sends !== undefined && parameters.body !== undefined) {
      set("content-type", call.sends);
      body = parameters.body instanceof Uint8Array ? parameters.body : bytes.encode(encode(parameters.body));
    }
    for (const [name, value] of Object.entries(parameters.header ?? {})) set(name, value);
    set("accept", call.streams ? "application/x-ndjson" : "*/*");
    set("idempotency-key", key, "idempotencyKey");
    set("authorization", credential ? `Bearer ${credential}` : undefined);
    set("interlock-namespace", namespace || undefined);
    return { method: call.method, url, headers, body };
  }
}

const bytes = new TextEncoder();
const utf8 = new TextDecoder();

/** Returns the value of a header, without the blanks around it. what is the caller's word for it. */
function headerValue(what: string, value: string): string {
  if (/[^\t -~\u0080-\u00ff]/.test(value))
    throw new TypeError(`${what} has a control character, or one that is not of Latin-1`);
  return value.trim();
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

/** Reports whether a status is that of success. */
export function isGood(status: number): boolean {
  return status >= 200 && status < 300;
}

function isJSON(headers: Headers): boolean {
  return /[/+]json\b/.test(headers.get("Content-Type") ?? "") && !headers.has("Interlock-Version");
}

/** Reports whether a body is a document, whose bytes are its value. */
function isDocument(headers: Headers): boolean {
  return headers.has("Interlock-Version") || !/text|json/.test(headers.get("Content-Type") ?? "");
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

/** Returns the error in words: fetch hides it in the cause, and a host has one for each of its addresses. */
function detail(error: unknown): unknown {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return inner instanceof AggregateError ? (inner.errors[0] ?? inner) : inner;
}

/** Returns the error of an answer that is none of Interlock. */
export function strange(url: string, status: number, data: unknown): Error {
  const error = new Error(`${url} answered ${status}, which is no answer of Interlock`);
  if (status !== 400 || typeof data !== "string" || !data.includes("HTTPS server")) return error;
  return misdirected(`what answers at ${url} speaks TLS`, "use an address with https://", error);
}

/** The codes of certificates that OpenSSL does not accept. */
const distrust =
  /^(UNABLE_TO_|CERT_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_(CA|PURPOSE)$|PATH_LENGTH_|HOSTNAME_|ERR_TLS_CERT_)/;

/** What Node, Bun and Deno say of a port that does not speak TLS. */
const noTLS = /wrong.version.number|packet.length.too.long|TLS handshake failed|received corrupt message/i;

/** Returns what is wrong if a server was not spoken to because of TLS. Nothing was sent then. */
function wrongConnection(error: unknown, url: string): Unreachable | undefined {
  if (!isA(error, Error)) return undefined;
  if (error instanceof ProxyError)
    return error.isFinal ? misdirected(error.message, error.next, error) : undefined;
  const code = String((error as { code?: unknown }).code ?? "");
  const text = words(error);
  if (distrust.test(code) || text.includes("invalid peer certificate")) {
    return misdirected(
      `the certificate of ${url} is not trusted (${text})`,
      "before the program starts, set NODE_EXTRA_CA_CERTS (Deno: DENO_CERT) to a file in PEM form with the " +
        "certificate of its authority, or address the server by a name that is in its certificate",
      error,
    );
  }
  if (/\btunnel\b/.test(text)) {
    return misdirected(
      `the proxy of the environment does not connect to ${url} (${text})`,
      "put the user and the password of the proxy into its variable, have it allow the connection, or name the server " +
        "in NO_PROXY if it is reached without a proxy",
      error,
    );
  }
  if (!noTLS.test(`${code} ${text}`)) return undefined;
  return misdirected(`what answers at ${url} does not speak TLS`, "use an address with http://", error);
}

function misdirected(what: string, next: string, cause: unknown): Unreachable {
  const advice = { action: "stop", retry_after_ms: 0, message: next } as const;
  const message = `${what}: nothing was carried out`;
  return new Unreachable({ code: "unreachable", message, advice, retryable: false, cause });
}

function wasUnsent(error: unknown): boolean {
  if (!isA(error, Error)) return false;
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  if (error instanceof AggregateError)
    return error.errors.length > 0 && error.errors.every((e) => wasUnsent(e));
  if (unsent.has(code) || error.message.includes("client error (Connect)")) return true; // the latter in Deno
  return cause !== undefined && wasUnsent(cause);
}
