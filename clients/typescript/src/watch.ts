import { cancel, later } from "./clock.js";
import { InterlockError, errorOf, mayPass, refusal } from "./errors.js";
import { parse } from "./json.js";
import { linked, orAborted, sleep, type Signal } from "./stop.js";
import { warn, words } from "./text.js";
import { isGood, problemOf, strange, type Transport } from "./transport.js";
import type { Decimal, Key, KeepAlive, StreamEnd, Written } from "./types.js";

/** What a watch follows. */
export interface WatchOptions {
  key?: Key;
  prefix?: string;
  /** The index of the journal to begin at; from now on if left out. */
  from?: Decimal;
  /** Whether the writes come with their values: yes if left out. */
  values?: boolean;
  signal?: Signal;
}

/** How long a stream may be silent: the server sends a sign of life more often. */
const silentMs = 60_000;

/** The ends of a stream after which another server, or the same one later, goes on with it. */
const resumable: ReadonlySet<string> = new Set([
  "shutting_down",
  "not_owner",
  "moving",
  "overloaded",
  "too_many_streams",
]);

/**
 * Follows writes, across outages and changes of the server, until the signal ends it, with its reason, or
 * the client is closed.
 */
export async function* watch(
  transport: Transport,
  closed: Signal,
  options: WatchOptions,
): AsyncGenerator<Written> {
  if (closed.aborted) throw closed.reason;
  const { signal: outer, end } = linked([options.signal, closed]);
  try {
    yield* follow(transport, outer, options);
  } catch (error) {
    if (!closed.aborted || options.signal?.aborted) throw error;
  } finally {
    end();
  }
}

async function* follow(
  transport: Transport,
  outer: AbortSignal,
  options: WatchOptions,
): AsyncGenerator<Written> {
  const { servers, retryForMs, clock } = transport.config;
  const place = new Place(options.from);
  let failedAt: number | undefined;
  let isTold = false;
  let hasAnswered = false;
  let follows = 0; // without a line in between: servers that name each other must not send it around for ever
  for (let tries = 0; ; tries++) {
    outer.throwIfAborted();
    const query: Record<string, unknown> = { values: options.values === false ? "false" : "true" };
    if (options.key !== undefined) query.key = options.key;
    if (options.prefix !== undefined) query.prefix = options.prefix;
    if (place.from !== undefined) query.from = place.from;
    const index = servers.current;
    const stop = new AbortController();
    const { signal, end } = linked([outer, stop.signal]);
    const silent = later(() => stop.abort(new Error("no answer in time")), silentMs);
    let cause: unknown;
    try {
      const { status, headers, chunks } = await transport.open("watchState", { query }, index, signal);
      const follow = (url: string | null | undefined, isAlive: boolean): boolean => {
        if (follows >= servers.count || !servers.follow(url, isAlive)) return false;
        follows++;
        return servers.current !== index;
      };
      if (!isGood(status)) {
        const text = await all(chunks);
        const problem = problemOf(text);
        const error = problem ? refusal(problem) : strange(servers.url(index), status, text);
        if (problem?.code === "not_owner" && follow(problem.active?.http, false)) continue;
        if (problem && resumable.has(problem.code)) throw new Interruption(error);
        throw error;
      }
      cancel(silent);
      hasAnswered = true;
      if (follow(headers.get("Interlock-Owner"), true)) continue; // another server forwards the stream
      for await (const line of lines(chunks, silentMs, signal)) {
        tries = follows = 0;
        failedAt = undefined;
        isTold = false;
        const event = parse(line) as Written | KeepAlive | StreamEnd;
        if (!("event" in event)) {
          if (place.isNew(event)) yield event;
        } else if ("code" in event) {
          const error = errorOf({ code: event.code, message: event.detail, advice: event.advice });
          if (!resumable.has(event.code)) throw error;
          if (event.code === "moving") place.arrive();
          throw new Interruption(error);
        } else {
          place.after(event.index);
        }
      }
      cause = new Error("the stream ended");
    } catch (error) {
      outer.throwIfAborted();
      // A connection that never worked is a mistake of the program, and later an outage.
      const isMistake = !hasAnswered && tries + 1 >= servers.count;
      if (error instanceof InterlockError && (!mayPass(error) || (isMistake && !error.retryable)))
        throw error;
      cause = error instanceof Interruption ? error.cause : error;
    } finally {
      cancel(silent);
      stop.abort();
      end();
    }
    servers.failed(index, !(cause instanceof InterlockError));
    failedAt ??= clock.steady();
    const pause = servers.pause(tries + 1, 0);
    if (!isTold && clock.steady() + pause - failedAt >= retryForMs) {
      isTold = true;
      const what = options.key ?? `${options.prefix ?? ""}...`;
      warn(`the watch of ${what} goes on when a server answers again: ${words(cause)}`);
    }
    await sleep(pause, outer);
  }
}

/** Where a watch goes on: a commit has one index, and may write several keys. */
class Place {
  from: Decimal | "arrival" | undefined;
  /** The keys that have arrived with this index; all of them if it is undefined. */
  #keys: Set<Key> | undefined = new Set();

  constructor(from: Decimal | undefined) {
    this.from = from;
  }

  /** Takes note of a write, and reports whether it arrives for the first time. */
  isNew({ index, key }: Written): boolean {
    if (index !== this.from) {
      this.from = index;
      this.#keys = new Set();
    }
    if (!this.#keys || this.#keys.has(key)) return false;
    this.#keys.add(key);
    return true;
  }

  /** Takes note that everything in this shard has arrived, and the namespace goes on in another one. */
  arrive(): void {
    this.from = "arrival";
    this.#keys = new Set();
  }

  /** Takes note that everything up to an index has arrived. */
  after(index: Decimal): void {
    this.from = index;
    this.#keys = undefined;
  }
}

/** The end of a stream that goes on elsewhere. */
class Interruption extends Error {
  constructor(cause: unknown) {
    super("the stream was interrupted", { cause });
  }
}

/** Reads all of a stream as text. */
async function all(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of chunks) text += decoder.decode(chunk, { stream: true });
  return text + decoder.decode();
}

/** Reads a stream line by line. It throws when the stream is silent for too long. */
async function* lines(
  chunks: AsyncIterable<Uint8Array>,
  silent: number,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const source = chunks[Symbol.asyncIterator]();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { signal: quiet, end } = linked([signal], silent);
      const { done, value } = await orAborted(source.next(), quiet).finally(end);
      if (done) return;
      const parts = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = parts.pop() ?? "";
      for (const part of parts) {
        if (part.trim() !== "") yield part;
      }
    }
  } finally {
    source.return?.().catch(() => {});
  }
}
