import type { LeaseOptions, What } from "./acquire.js";
import type { Client } from "./client.js";
import { InterlockError, LeaseLost, Refused, Stale, WaitTimeout } from "./errors.js";
import type { Lease } from "./lease.js";
import { linked, type Signal } from "./stop.js";

/** A function of a tool. */
export type Tool<A, R> = (args: A, lease: Lease, signal: AbortSignal) => R | PromiseLike<R>;

/**
 * Wraps the function of a tool: a call acquires a lease, runs the tool under it, and releases it. The
 * keys are a template such as "account:{account_id}", filled in with the arguments of the call, or a
 * function of them.
 *
 * A refusal of the lease is returned as a text for the model, "Not done: ...": what is wrong and what to
 * do next. Once the tool has begun, a lease that is lost and each error of this package become another
 * text: that it may have been done in part, or what it returned. Other errors of the tool are thrown, and
 * so are the reason of an aborted signal and what keeps a lease from being asked for, such as a server
 * that cannot be reached. A tool that yields cannot be guarded: it would run on after its lease.
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
  if (Object.prototype.toString.call(tool).endsWith("GeneratorFunction]")) throw yields();
  const calls: ReturnType<typeof guarded<A, R>> = async (args, call) => {
    const outer = call?.abortSignal ?? call?.signal ?? options.signal;
    const what = typeof keys === "function" ? keys(args) : fill(keys, args);
    let lease: Lease;
    try {
      lease = await client.lease(what, outer ? { ...options, signal: outer } : options);
    } catch (error) {
      if (isCancelled(error, outer) || !isRefusal(error)) throw error;
      return refused(error);
    }
    return run(lease, outer, async (signal) => {
      const result = await tool(args, lease, signal);
      if (!isGuarded(tool)) passOn(result);
      return result;
    });
  };
  markGuarded(calls);
  return calls;
}

const guards = new WeakSet<object>();

/** Notes that a function is a guarded one, and does nothing else. */
export function markGuarded(tool: object): void {
  guards.add(tool);
}

/** Whether a function is a guarded one, and does nothing else. */
export function isGuarded(tool: object): boolean {
  return guards.has(tool);
}

/** The last texts that say that a tool was not done, with their errors. */
const refusals = new Map<string, InterlockError>();

function refused(error: InterlockError): string {
  const text = `Not done: ${error}`;
  refusals.set(text, error);
  const [oldest] = refusals.keys();
  if (refusals.size > 1000 && oldest !== undefined) refusals.delete(oldest);
  return text;
}

/**
 * Throws what the text of another guarded function stands for, if a tool that calls it has returned that
 * text: the tool itself may have acted before that call.
 */
function passOn(result: unknown): void {
  const error = typeof result === "string" ? refusals.get(result) : undefined;
  if (error) throw error;
}

/** Runs a tool under its lease, releases it, and tells a model what is known if the tool did not simply return. */
async function run<R>(
  lease: Lease,
  outer: Signal | undefined,
  tool: (signal: AbortSignal) => R | PromiseLike<R>,
): Promise<R | string> {
  const { keys } = lease;
  const { signal, end } = linked([lease.signal, outer]);
  let result: R;
  try {
    result = await tool(signal);
  } catch (error) {
    const loss = await lossOf(lease);
    if (isCancelled(error, outer)) throw error;
    // Many a library has an error of its own for an aborted signal.
    const why = loss && !outer?.aborted && isAbort(error) ? loss : error;
    if (why instanceof InterlockError) {
      const own = why instanceof LeaseLost && why.code === loss?.code;
      return `It may have been done in part: ${fact(why)}. ${loss && !own ? lost(keys, loss) : check}`;
    }
    if (loss && error instanceof Error && error.cause === undefined && Object.isExtensible(error)) {
      error.cause = loss;
    }
    throw error;
  } finally {
    end();
  }
  const loss = await lossOf(lease);
  if (isIterator(result)) throw yields();
  return loss ? `${returned(result)} ${lost(keys, loss)}` : result;
}

/**
 * Releases a lease, and returns why it was not held any more. A release that no server has confirmed is
 * none: the tool has ended while the lease was held, and its ttl frees the keys.
 */
async function lossOf(lease: Lease): Promise<LeaseLost | undefined> {
  try {
    await lease.release();
  } catch (error) {
    if (error instanceof LeaseLost && error.code !== "released") return error;
    if (!(error instanceof InterlockError)) throw error;
  }
  return undefined;
}

const check = "Check before you repeat it.";

/** Whether a result is the text of a call that did not simply return. */
export function isReport(result: unknown): result is string {
  if (typeof result !== "string") return false;
  return result.startsWith("Not done: ") || (result.startsWith("It ") && result.endsWith(check));
}

function lost(keys: readonly string[], loss: LeaseLost): string {
  const on = keys.join(", ");
  return `The lease on ${on} was lost meanwhile (${fact(loss)}): others may have written. ${check}`;
}

function returned(result: unknown): string {
  if (result === undefined || result === null) return "It returned nothing.";
  const text = shown(result);
  return `It returned: ${text}${/[.!?]$/.test(text) ? "" : "."}`;
}

function shown(result: unknown): string {
  if (typeof result === "string") return result;
  try {
    const text = JSON.stringify(result, (_name, value: unknown) =>
      typeof value === "bigint" ? String(value) : value,
    );
    if (text !== undefined) return text;
  } catch {
    // it contains itself
  }
  return String(result);
}

/** Returns an error without its advice, which is for a caller that nothing was done for. */
function fact(error: InterlockError): string {
  const text = (error instanceof Stale && error.packet?.message) || error.message;
  return text.replace(/\.+$/, "");
}

/** Whether an error says that the lease of a call was not granted. */
function isRefusal(error: unknown): error is InterlockError {
  return error instanceof Refused || error instanceof WaitTimeout || error instanceof LeaseLost;
}

/** Whether an error is the caller's cancellation. */
function isCancelled(error: unknown, outer: Signal | undefined): boolean {
  return outer !== undefined && outer.aborted && error === outer.reason;
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}

function isIterator(result: unknown): boolean {
  return typeof result === "object" && result !== null && Symbol.asyncIterator in result && "next" in result;
}

function yields(): TypeError {
  return new TypeError("a tool that yields would run on after its lease: return a result instead");
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
