/**
 * Leases for graphs of LangGraph.js. A tool needs nothing of this: `tool(guarded(client, keys, run), {...})`.
 *
 * @packageDocumentation
 */
import type { LeaseOptions, What } from "./acquire.js";
import type { Client } from "./client.js";
import { LeaseLost } from "./errors.js";
import type { Lease } from "./lease.js";

/** The configuration that a node is called with, as far as it matters here. */
interface Config {
  signal?: AbortSignal | undefined;
}

/**
 * Wraps a node: it runs under a lease on keys that its state names. The node's signal ends with the
 * lease, and a refusal is thrown, so that a retry policy with `retryOn: (e) => e instanceof Held`
 * waits. The node's own errors are thrown as they are, and a retry repeats what came before them: where
 * that matters, tell by the key of a Held whether it refuses the node's lease or one that the node asked
 * for. An interrupt of the node releases the lease: a resumed node runs again from its start.
 */
export function leasedNode<S, C extends Config, R>(
  client: Client,
  keys: (state: S, config: C) => What,
  node: (state: S, config: C, lease: Lease) => R | PromiseLike<R>,
  options: LeaseOptions = {},
): (state: S, config: C) => Promise<R> {
  return (state, config) => {
    const outer = config?.signal ?? options.signal;
    return client.withLease(
      keys(state, config),
      outer ? { ...options, signal: outer } : options,
      (lease, signal) => node(state, { ...config, signal }, lease),
    );
  };
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
