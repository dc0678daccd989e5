/**
 * Leases for the tools of the Vercel AI SDK.
 *
 * @packageDocumentation
 */
import type { What } from "./acquire.js";
import type { Client } from "./client.js";
import {
  guardedAs,
  isGuarded,
  isReport,
  markGuarded,
  newTool,
  type GuardOptions,
  type Tool,
} from "./guarded.js";
import type { Lease } from "./lease.js";

/** The keys of a tool's call: a template such as "account:{account_id}", or a function of its input. */
export type Keys = string | readonly string[] | ((input: never) => What);

const leases = new WeakMap<AbortSignal, Lease>();

/**
 * Returns the lease of a call of a guarded tool, by the options that its execute is called with: pass
 * its fence along with the writes of the tool. The signal of the options must be the one of the call.
 */
export function leaseOf(call: { abortSignal?: AbortSignal | undefined }): Lease {
  const lease = call.abortSignal && leases.get(call.abortSignal);
  if (!lease) throw new TypeError("these are not the options of a call of a guarded tool");
  return lease;
}

/** What a tool of the AI SDK is made of, as far as it matters here. */
interface Executable {
  execute?: ((input: never, call: never) => unknown) | undefined;
  toModelOutput?: ((given: never) => unknown) | undefined;
}

/** How the tools of a model are guarded. */
export interface ToolsOptions extends Omit<GuardOptions, "reads"> {
  /** With hold: "commit", the names of the tools that only read. */
  reads?: readonly string[];
}

/**
 * Returns the tools of a model with some of them guarded: such a tool runs under a lease, from the first call
 * that names the key to the end of Client.turn, which generateText or the use of a stream is to run in. With
 * hold: "call" each call has the lease for itself; with hold: "commit" a tool in reads has none, and the others are
 * refused if the key may have changed since the turn has read it. The model reads a refusal as the tool's result, also past its toModelOutput, and
 * the abort signal of the call ends the wait. A tool that yields intermediate results returns the last one.
 */
export function guardTools<T extends Record<string, object>>(
  client: Client,
  tools: T,
  keys: { [Name in keyof T]?: Keys },
  options: ToolsOptions = {},
): T {
  const { reads = [], ...guarding } = options;
  const unknown = reads.filter((name) => keys[name] === undefined);
  if (unknown.length > 0) throw new TypeError(`reads has ${unknown.join(", ")}, and keys has none for it`);
  if (options.hold === "commit" && reads.length === 0)
    throw new TypeError('hold: "commit" needs reads: the names of the tools that only read');
  const all: Record<string, object> = { ...tools };
  for (const [name, of] of Object.entries(keys) as [string, Keys | undefined][]) {
    const tool = all[name];
    if (!tool) throw new TypeError(`there is no tool ${name} to guard`);
    const how = reads.includes(name) ? { ...guarding, reads: true } : guarding;
    if (of !== undefined) all[name] = guardTool(client, tool, of, how);
  }
  return all as T;
}

/** Returns one tool guarded. */
export function guardTool<T extends object>(
  client: Client,
  tool: T,
  keys: Keys,
  options: GuardOptions = {},
): T {
  const { execute, toModelOutput } = tool as Executable;
  const name = newTool();
  if (typeof execute !== "function") {
    throw new TypeError("a tool without execute runs elsewhere, and cannot be guarded here");
  }
  const run = (args: object, lease: Lease | undefined, signal: AbortSignal, call: object) => {
    if (lease) leases.set(signal, lease); // a tool that only reads has none
    return last(execute.call(tool, args as never, { ...call, abortSignal: signal } as never));
  };
  const guardedExecute = (input: object, call: { abortSignal?: AbortSignal }) => {
    const one: Tool<object, unknown> = (args, lease, signal) => run(args, lease, signal, call);
    if (isGuarded(execute)) markGuarded(one);
    return guardedAs(name, client, keys as string | ((input: object) => What), one, options)(input, call);
  };
  if (typeof toModelOutput !== "function") return { ...tool, execute: guardedExecute };
  return {
    ...tool,
    execute: guardedExecute,
    toModelOutput: (given: { output: unknown }) =>
      isReport(given?.output)
        ? { type: "text", value: given.output }
        : toModelOutput.call(tool, given as never),
  };
}

/** Returns a result, or the last one of several. */
async function last(result: unknown): Promise<unknown> {
  if (typeof result !== "object" || result === null || !(Symbol.asyncIterator in result)) return result;
  let value: unknown;
  for await (const one of result as AsyncIterable<unknown>) value = one;
  return value;
}
