/**
 * Leases for graphs of LangGraph.js. A tool needs nothing of this: `tool(guarded(client, keys, run), {...})`.
 *
 * @packageDocumentation
 */
import type { LeaseOptions, What } from "./acquire.js";
import type { Client } from "./client.js";
import type { Lease } from "./lease.js";

/** The configuration that a node is called with, as far as it matters here. */
interface Config {
  signal?: AbortSignal | undefined;
}

/**
 * Wraps a node: it runs under a lease on keys that its state names. The node's signal ends with the
 * lease, and a refusal is thrown, so that a retry policy with `retryOn: (e) => e instanceof Held`
 * waits. An interrupt of the node releases the lease: a resumed node runs again from its start.
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

/** What a checkpoint saver writes with. */
interface Saver {
  put(...args: never[]): Promise<unknown>;
  putWrites(...args: never[]): Promise<unknown>;
}

/**
 * Wraps a checkpoint saver: it writes only while the lease is held, and rejects with LeaseLost
 * afterwards. Take the lease on the thread, such as `thread:42`: of two processes that run one thread,
 * the one that lost it cannot overwrite the checkpoints of the other, as far as its clock can tell.
 */
export function leasedSaver<T extends Saver>(saver: T, lease: Lease): T {
  const checked =
    (target: T, name: "put" | "putWrites") =>
    async (...args: never[]): Promise<unknown> => {
      lease.check();
      return target[name](...args);
    };
  return new Proxy(saver, {
    get(target, name) {
      if (name === "put" || name === "putWrites") return checked(target, name);
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
