/**
 * Leases for graphs of LangGraph.js. A tool is wrapped by `tool(guarded(client, keys, run), {...})`, and its
 * graph by leasedGraph.
 *
 * @packageDocumentation
 */
import type { LeaseOptions, What } from "./acquire.js";
import type { Client } from "./client.js";
import { DoneInPart, InterlockError, LeaseLost } from "./errors.js";
import { isCancelled } from "./guarded.js";
import { runAround, type Run } from "./hold.js";
import type { Lease } from "./lease.js";
import { isA } from "./text.js";

/** The configuration that a node is called with, as far as it matters here. */
interface Config {
  signal?: AbortSignal | undefined;
}

/**
 * Wraps a node: it runs under a lease on keys that its state names. The node's signal ends with the
 * lease, and a refusal is thrown, so that a retry policy with `retryOn: (e) => e instanceof Held`
 * waits. What the node asks for uses that lease. Once the node has begun, an error of this package is thrown as
 * DoneInPart, also if the lease was lost meanwhile: such a policy does not repeat what the node did before. Its other
 * errors are thrown as they are. An interrupt of the node releases the lease: a resumed node runs again from its
 * start.
 */
export function leasedNode<S, C extends Config, R>(
  client: Client,
  keys: (state: S, config: C) => What,
  node: (state: S, config: C, lease: Lease) => R | PromiseLike<R>,
  options: LeaseOptions = {},
): (state: S, config: C) => Promise<R> {
  return async (state, config) => {
    const outer = config?.signal ?? options.signal;
    const own = outer ? { ...options, signal: outer } : options;
    let hasBegun = false;
    try {
      return await client.withLease(keys(state, config), own, (lease, signal) => {
        hasBegun = true;
        return node(state, { ...config, signal }, lease);
      });
    } catch (error) {
      const isOwn = hasBegun && !isCancelled(error, outer) && isA(error, InterlockError);
      throw isOwn && !(error instanceof DoneInPart) ? new DoneInPart(error) : error;
    }
  };
}

/** What a compiled graph, or another runnable, is called by, as far as it matters here. */
interface Graph {
  invoke(input: never, config: never): Promise<unknown>;
  stream(input: never, config: never): Promise<AsyncIterable<unknown>>;
}

/** How a graph keeps the leases of its tools. */
export interface GraphOptions {
  /** How long leases are parked while a person is asked: 24 hours, or as their pattern says, if left out. */
  parkedForMs?: number;
}

/** What was parked at an interrupt of a thread. */
interface Parked {
  id: string;
  keys: readonly string[];
}

/**
 * Wraps a compiled graph: each invocation is a run of an agent, as Client.turn is. The leases that its tools
 * take are kept until it has ended, so that no other agent writes between a tool that reads and one that
 * writes; a stream ends with its last chunk. At an interrupt, while a person is asked, they are parked with
 * their keys kept, and the next invocation of the thread by this object resumes them. If that process ends
 * meanwhile, they end after parkedForMs.
 */
export function leasedGraph<G extends Graph>(client: Client, graph: G, options: GraphOptions = {}): G {
  const parked = new Map<unknown, Parked[]>();
  const seen = new Map<unknown, Run>();
  const threadOf = (config: unknown) =>
    (config as { configurable?: { thread_id?: unknown } } | undefined)?.configurable?.thread_id;

  const park = async (run: Run, thread: unknown) => {
    const list = parked.get(thread) ?? [];
    parked.set(thread, list);
    seen.set(thread, run);
    for (const lease of run.take()) {
      const { keys } = lease;
      if (!lease.isAlone)
        await lease.release(); // what encloses the run keeps it
      else list.push({ id: await lease.park({ keys: "keep", ...forMs(options.parkedForMs) }), keys });
    }
  };
  const resume = async (run: Run, thread: unknown) => {
    run.goOn(seen.get(thread));
    seen.delete(thread);
    const list = parked.get(thread) ?? [];
    parked.delete(thread);
    for (const { id, keys } of list) {
      try {
        const lease = await client.resume(id);
        run.keep(lease);
        await lease.release();
      } catch (error) {
        if (!(error instanceof InterlockError)) throw error;
        run.lose(
          keys,
          error instanceof LeaseLost ? error : new LeaseLost({ ...error, message: error.message }),
        );
      }
    }
  };
  /** Begins a run, unless the graph is a part of one. */
  const begin = (config: unknown) => {
    const isPart = runAround(client) !== undefined;
    const turn = client.begin();
    const thread = threadOf(config);
    return {
      within: turn.within,
      ready: () =>
        isPart || thread === undefined ? Promise.resolve() : turn.within(() => resume(turn.run, thread)),
      end: async (isInterrupted: boolean) => {
        if (isInterrupted && !isPart && thread !== undefined) await park(turn.run, thread);
        await turn.run.end();
      },
    };
  };

  const invoke = async (input: never, config: never) => {
    const turn = begin(config);
    let isInterrupted = false;
    try {
      await turn.ready();
      const result = await turn.within(() => graph.invoke(input, config));
      isInterrupted = interrupts(result);
      return result;
    } finally {
      await turn.end(isInterrupted);
    }
  };
  const stream = async (input: never, config: never) => {
    const turn = begin(config);
    const open = async () => {
      await turn.ready();
      return turn.within(() => graph.stream(input, config));
    };
    const source = await open().catch(async (error: unknown) => {
      await turn.end(false);
      throw error;
    });
    return like(source, follow(source, turn));
  };
  return new Proxy(graph, {
    get(target, name) {
      if (name === "invoke") return invoke;
      if (name === "stream") return stream;
      return Reflect.get(target, name, target) as unknown;
    },
  });
}

function forMs(ms: number | undefined): { forMs?: number } {
  return ms === undefined ? {} : { forMs: ms };
}

/** Passes the chunks of a stream on within a run, and ends it with them. */
async function* follow(
  source: AsyncIterable<unknown>,
  turn: { within<R>(work: () => R): R; end(isInterrupted: boolean): Promise<void> },
): AsyncGenerator<unknown> {
  const chunks = source[Symbol.asyncIterator]();
  let isInterrupted = false;
  try {
    for (;;) {
      const { done, value } = await turn.within(() => chunks.next());
      if (done) return;
      isInterrupted ||= interrupts(value) || (Array.isArray(value) && value.some(interrupts));
      yield value;
    }
  } finally {
    await turn.within(() => chunks.return?.());
    await turn.end(isInterrupted);
  }
}

/** Returns a stream of the kind of another one. */
function like(source: object, chunks: AsyncGenerator<unknown>): AsyncIterable<unknown> {
  const kind = source.constructor as {
    fromAsyncGenerator?(chunks: AsyncGenerator<unknown>): AsyncIterable<unknown>;
  };
  return kind.fromAsyncGenerator?.(chunks) ?? chunks;
}

/** Whether the result of a graph, or a chunk of it, tells that a person is asked. */
function interrupts(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const found = (value as { __interrupt__?: unknown }).__interrupt__;
  return Array.isArray(found) && found.length > 0;
}

/** What a checkpoint saver reads and writes with, as far as it matters here. */
interface Saver {
  getTuple(config: never): Promise<{ metadata?: object | undefined } | undefined>;
  put(...args: never[]): Promise<unknown>;
  putWrites(...args: never[]): Promise<unknown>;
  deleteThread(...args: never[]): Promise<unknown>;
}

/** The name of the fence in the metadata of a checkpoint. */
const fenceName = "interlock_fence";

/**
 * Wraps a checkpoint saver: it writes under a lease on the thread, such as `thread:42`, and keeps the
 * fence of the lease beside each checkpoint. A write rejects with LeaseLost if the lease is lost, or if
 * the thread has a checkpoint under a higher fence: then a later holder has written, and this process
 * was paused without noticing it. The comparison and the write are two steps: a process that
 * is paused between them may still write once.
 */
export function leasedSaver<T extends Saver>(saver: T, lease: Lease): T {
  const enter = async (configurable: { thread_id?: unknown; checkpoint_ns?: unknown } = {}) => {
    lease.check();
    for (const namespace of new Set(["", configurable.checkpoint_ns ?? ""])) {
      const place = { configurable: { thread_id: configurable.thread_id, checkpoint_ns: namespace } };
      const latest = (await saver.getTuple(place as never))?.metadata as Record<string, unknown> | undefined;
      const fence = BigInt(String(latest?.[fenceName] ?? 0));
      if (fence > BigInt(lease.fence)) {
        throw new LeaseLost({
          code: "fenced",
          message: `the thread has a checkpoint under fence ${fence}, above ${lease.fence} of this lease`,
          advice: { action: "stop", retry_after_ms: 0, message: "acquire again, and read the thread again" },
        });
      }
    }
  };
  const writes = {
    async put(config: { configurable?: object }, checkpoint: never, metadata: object, ...rest: never[]) {
      await enter(config.configurable);
      return saver.put(
        config as never,
        checkpoint,
        { ...metadata, [fenceName]: lease.fence } as never,
        ...rest,
      );
    },
    async putWrites(config: { configurable?: object }, ...rest: never[]) {
      await enter(config.configurable);
      return saver.putWrites(config as never, ...rest);
    },
    async deleteThread(thread: string, ...rest: never[]) {
      await enter({ thread_id: thread });
      return saver.deleteThread(thread as never, ...rest);
    },
  };
  return new Proxy(saver, {
    get(target, name) {
      if (Object.hasOwn(writes, name)) return writes[name as keyof typeof writes];
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
