import type { LeaseOptions, What } from "./acquire.js";
import type { Client } from "./client.js";
import { InterlockError } from "./errors.js";
import type { Lease } from "./lease.js";

/** A function of a tool. */
export type Tool<A, R> = (args: A, lease: Lease, signal: AbortSignal) => R | PromiseLike<R>;

/**
 * Wraps the function of a tool: a call acquires a lease, runs the tool under it, and releases it. The
 * keys are a template such as "account:{account_id}", filled in with the arguments of the call, or a
 * function of them. A refusal is returned as a text for the model: what is wrong and what to do next.
 * Other errors of the tool are thrown. A tool that yields cannot be guarded: it would run on after its
 * lease.
 */
export function guarded<A extends object, R>(
  client: Client,
  keys: string | readonly string[] | ((args: A) => What),
  tool: Tool<A, R>,
  options: LeaseOptions = {},
): (
  args: A,
  call?: { abortSignal?: AbortSignal | undefined; signal?: AbortSignal | undefined },
) => Promise<R | string> {
  if (Object.prototype.toString.call(tool).endsWith("GeneratorFunction]")) {
    throw new TypeError("a tool that yields would run on after its lease: return a result instead");
  }
  return async (args, call) => {
    const signal = call?.abortSignal ?? call?.signal ?? options.signal;
    const what = typeof keys === "function" ? keys(args) : fill(keys, args);
    try {
      return await client.withLease(what, signal ? { ...options, signal } : options, (lease, ends) =>
        tool(args, lease, ends),
      );
    } catch (error) {
      if (error instanceof InterlockError) return String(error);
      throw error;
    }
  };
}

/** Fills the arguments of a call in. */
function fill(keys: string | readonly string[], args: object): string | string[] {
  const one = (template: string) =>
    template.replace(/\{(\w+)\}/g, (_all, name: string) => {
      const value = (args as Record<string, unknown>)[name];
      const simple = typeof value === "string" || typeof value === "number" || typeof value === "bigint";
      if (!simple || value === "")
        throw new TypeError(`the key ${template} needs the argument ${name}: a text or a number`);
      return String(value);
    });
  return typeof keys === "string" ? one(keys) : keys.map(one);
}
