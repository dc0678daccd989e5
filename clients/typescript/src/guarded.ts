import type { LeaseOptions, What } from "./acquire.js";
import type { Client } from "./client.js";
import { claimsOf } from "./acquire.js";
import { isCounted } from "./context.js";
import { Deadlock, InterlockError, LeaseLost, Refused, Stale, WaitTimeout } from "./errors.js";
import { runAround, type Run } from "./hold.js";
import type { Lease } from "./lease.js";
import { compared, read } from "./seen.js";
import { linked, type Signal } from "./stop.js";
import { warn } from "./text.js";

/** How the lease of a tool is claimed. */
export interface GuardOptions extends LeaseOptions {
  /**
   * How long a tool holds its keys. run: from the first tool that names a key to the end of the run of the
   * agent, which Client.turn or an attempt at a task is, so that nobody writes between a tool that reads and
   * one that writes. call: for each call alone, which suits a tool that reads and writes inside. Left out:
   * run, or with permits call. A key with a rate or a capacity is always held by the call, which it counts. A call that no framework makes, and that no run encloses, is a run of its own.
   *
   * commit: nobody waits for an agent that thinks. A tool with reads: true holds nothing. One without holds its keys
   * for each call, and is refused before it begins if the run has not read them, or others may have written since.
   */
  hold?: "run" | "call" | "commit";
  /** With hold: "commit", whether the tool only reads. */
  reads?: boolean;
}

/** How a tool is guarded that only reads, and has no lease. */
export interface ReadOptions {
  hold: "commit";
  reads: true;
  signal?: Signal;
}

/** A tool that is guarded. It returns what the tool returns, or a text for the model. */
export type Guarded<A, R> = (
  args: A,
  call?: { abortSignal?: AbortSignal | undefined; signal?: AbortSignal | undefined },
) => Promise<R | string>;

/** A function of a tool. */
export type Tool<A, R> = (args: A, lease: Lease, signal: AbortSignal) => R | PromiseLike<R>;

/**
 * Wraps the function of a tool: a call runs under a lease, which the run of the agent keeps to its end, or
 * with hold: "call" the call. The keys are a template such as "account:{account_id}", filled in with the
 * arguments of the call, or a function of them. Within a lease that has the keys, the tool uses that one.
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
  tool: (args: A, lease: undefined, signal: AbortSignal) => R | PromiseLike<R>,
  options: ReadOptions,
): Guarded<A, R>;
export function guarded<A extends object, R>(
  client: Client,
  keys: string | readonly string[] | ((args: A) => What),
  tool: Tool<A, R>,
  options?: GuardOptions,
): Guarded<A, R>;
export function guarded<A extends object, R>(
  client: Client,
  keys: string | readonly string[] | ((args: A) => What),
  tool: (args: A, lease: never, signal: AbortSignal) => R | PromiseLike<R>,
  options: GuardOptions = {},
): Guarded<A, R> {
  return guardedAs(newTool(), client, keys, tool, options);
}

/** How many tools were guarded. */
let tools = 0;

/** Returns a name that no other tool has. */
export function newTool(): string {
  return `tool-${++tools}`;
}

/** Wraps the function of a tool of a name: the same call of it, again, replaces what it has read before. */
export function guardedAs<A extends object, R>(
  name: string,
  client: Client,
  keys: string | readonly string[] | ((args: A) => What),
  tool: (args: A, lease: never, signal: AbortSignal) => R | PromiseLike<R>,
  options: GuardOptions,
): Guarded<A, R> {
  const { hold = options.permits === undefined ? "run" : "call", reads = false, ...leasing } = options;
  checkHold(hold, reads, leasing);
  if (Object.prototype.toString.call(tool).endsWith("GeneratorFunction]")) throw yields();
  const calls: Guarded<A, R> = async (args, call) => {
    const outer = call?.abortSignal ?? call?.signal ?? options.signal;
    const what = typeof keys === "function" ? keys(args) : fill(keys, args);
    const around = hold === "call" ? undefined : runAround(client);
    if (around?.run.isOver)
      throw misused("the run that this call belongs to has ended: wait within client.turn", hold);
    if (!around && (hold === "commit" || (hold === "run" && isOfFramework(call) && !client.isWithin())))
      throw misused("no run encloses this call", hold);
    if (around && reads) {
      const hasRead = await read(client, around.run, keysOf(what), `${name} ${shown(args)}`);
      const act = async (signal: AbortSignal) => finished(tool, await tool(args, undefined as never, signal));
      return runFree(outer, act, hasRead);
    }
    let lease: Lease;
    try {
      const own = { ...leasing, ...(outer ? { signal: outer } : {}) };
      if (around && hold === "commit") lease = await toCommit(client, around, what, own);
      else lease = around ? await ofRun(client, around, what, own) : await client.acquire(what, own, {});
      if (hold === "run" && !around && !lease.isReused && isOfFramework(call)) {
        await lease.release();
        throw misused("no run encloses this call", hold);
      }
    } catch (error) {
      if (isCancelled(error, outer) || !isRefusal(error)) throw error;
      return refused(error, around?.run);
    }
    return run(lease, outer, async (signal) => {
      if (!around || hold !== "commit") return finished(tool, await tool(args, lease as never, signal));
      lease.writes.push(around.run.flow);
      try {
        return finished(tool, await tool(args, lease as never, signal));
      } finally {
        lease.writes.push(around.run.flow);
      }
    });
  };
  markGuarded(calls);
  return calls;
}

/** Returns a result, unless it is the text of a refusal on the way. */
function finished<R>(tool: object, result: R): R {
  if (!isGuarded(tool)) passOn(result);
  return result;
}

/** Throws what is wrong with the settings of a tool. */
function checkHold(hold: string, reads: boolean, options: LeaseOptions): void {
  if (reads && hold !== "commit") throw new TypeError('reads is for hold: "commit"');
  if (hold !== "commit") return;
  const unfit = (["mode", "permits", "any", "group", "asOf", "flow"] as const).filter(
    (name) => options[name] !== undefined,
  );
  if (unfit.length > 0)
    throw new TypeError(`hold: "commit" takes the whole key: leave out ${unfit.join(", ")}`);
}

/** Returns the keys of what a tool with hold: "commit" claims. */
function keysOf(what: What): string[] {
  if (typeof what === "object" && "anyPrefix" in what)
    throw new TypeError('hold: "commit" needs keys, and not a prefix of some');
  const claims = claimsOf(what, {});
  if (claims.some(({ mode, permits }) => (mode ?? "exclusive") !== "exclusive" || permits !== undefined))
    throw new TypeError('hold: "commit" takes the whole key: leave out mode and permits');
  return claims.map(({ key }) => key);
}

interface Around {
  run: Run;
  client: Client;
}

/** A client without what the run has has a flow of its own. */
function apartOf(client: Client, { run, client: owner }: Around, options: LeaseOptions): { flow?: string } {
  return client.party === owner.party || options.flow !== undefined ? {} : { flow: run.flow };
}

/** Returns the lease of a call that writes, after a comparison with what its run has read. */
function toCommit(client: Client, around: Around, what: What, options: LeaseOptions): Promise<Lease> {
  const own = { ...options, ...apartOf(client, around, options) };
  return compared(client, around.run, keysOf(what), (asOf) => client.acquire(what, { ...own, ...asOf }, {}));
}

/** Returns the lease of a call, which its run keeps. */
async function ofRun(client: Client, around: Around, what: What, options: LeaseOptions): Promise<Lease> {
  const { run } = around;
  if (typeof what === "string" || !("anyPrefix" in what)) run.check(claimsOf(what, options));
  const lease = await client.acquire(what, { ...options, ...apartOf(client, around, options) }, { run });
  // The server may count a claim that names no permits: each call is one.
  if (!lease.claims.every(isCounted)) run.keep(lease);
  return lease;
}

/** Whether a framework has made a call: it passes more along than a signal. */
function isOfFramework(call: object | undefined): boolean {
  return call !== undefined && Object.keys(call).some((name) => name !== "signal" && name !== "abortSignal");
}

/** The error of a tool that needs a run around it, and is in none. */
function misused(why: string, hold: string): TypeError {
  const does =
    hold === "commit"
      ? "compares what the run of its agent has read"
      : "keeps its lease to the end of the run of its agent";
  const text =
    `a guarded tool ${does}, and ${why}. Run the agent within ` +
    'client.turn(() => ...), or guard the tool with hold: "call" if each call reads and writes by itself';
  warn(text);
  return new TypeError(text);
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

function refused(error: InterlockError, run?: Run): string {
  const kept = new Set(run?.kept.flatMap((lease) => lease.keys));
  const isCircle = error instanceof Deadlock && error.retryable && kept.size > 0;
  const text = `Not done: ${isCircle ? circle(error, [...kept]) : error}`;
  refusals.set(text, error);
  const [oldest] = refusals.keys();
  if (refusals.size > 1000 && oldest !== undefined) refusals.delete(oldest);
  return text;
}

/** What a model reads whose run waits in a circle with another one. */
function circle(error: Deadlock, keys: readonly string[]): string {
  return (
    `${fact(error)}. This call has done nothing, and what this run did before it stays done. Next step: end this ` +
    `run, which gives ${keys.join(", ")} back to the others, and read again when you begin anew`
  );
}

/**
 * Throws what the text of another guarded function stands for, if a tool that calls it has returned that
 * text: the tool itself may have acted before that call.
 */
function passOn(result: unknown): void {
  const error = typeof result === "string" ? refusals.get(result) : undefined;
  if (error) throw error;
}

/** Runs a tool that has no lease. */
async function runFree<R>(
  outer: Signal | undefined,
  tool: (signal: AbortSignal) => Promise<R>,
  hasRead: () => void,
): Promise<R | string> {
  const { signal, end } = linked([outer]);
  try {
    const result = await tool(signal);
    if (isIterator(result)) throw yields();
    if (!isReport(result)) hasRead();
    return result;
  } catch (error) {
    if (isCancelled(error, outer) || !(error instanceof InterlockError)) throw error;
    return `It may have been done in part: ${fact(error)}. ${check}`;
  } finally {
    end();
  }
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
    result = await lease.enclose(() => tool(signal));
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
 * none: the tool has ended while the lease was held, and its ttl frees the keys. One that a run keeps, or what
 * encloses the call, is not released at the server, which is asked instead.
 */
async function lossOf(lease: Lease): Promise<LeaseLost | undefined> {
  let loss: LeaseLost | undefined;
  const note = (error: unknown) => {
    if (!(error instanceof InterlockError)) throw error;
    if (error instanceof LeaseLost && error.code !== "released") loss ??= error;
  };
  const unanswered = (error: unknown) => {
    note(error);
    lease.check(); // the clock of this machine has to do
  };
  if (!lease.isAlone) await lease.verify().catch(unanswered).catch(note);
  await lease.release().catch(note);
  return loss;
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
export function isCancelled(error: unknown, outer: Signal | undefined): boolean {
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
