import type { Client } from "./client.js";
import { Deadlock, InterlockError } from "./errors.js";
import type { Lease } from "./lease.js";
import type { Run } from "./hold.js";
import type { Turn } from "./siblings.js";
import type * as t from "./types.js";

/** What encloses a piece of work: a lease, the run of an agent, or an effect. Children, timers and promises inherit it. */
export interface Scope {
  /** Whose session it is of. */
  readonly client: Client;
  readonly flow: string;
  readonly outer: Scope | undefined;
  readonly lease?: Lease | undefined;
  readonly run?: Run | undefined;
  /** The place among the calls beside it. */
  readonly turn?: Turn | undefined;
  /** The digest of the action that is being performed. */
  readonly effect?: string | undefined;
  /** Whether it uses nothing of what is around it. */
  readonly isApart?: boolean | undefined;
}

/** What is used of AsyncLocalStorage. */
interface Storage {
  run<R>(scope: Scope | undefined, work: () => R): R;
  getStore(): Scope | undefined;
}

type Kind = new () => Storage;

interface Runtime {
  AsyncLocalStorage?: Kind;
  process?: { getBuiltinModule?(name: string): { AsyncLocalStorage?: Kind } | undefined };
}

const storage = find();

/** Finds the storage, one for all copies of this package in a process. Without one, nothing is enclosed. */
function find(): Storage {
  const shared = globalThis as unknown as Record<symbol, Storage | undefined>;
  const name = Symbol.for("interlock.context");
  return (shared[name] ??= create());
}

function create(runtime = globalThis as unknown as Runtime): Storage {
  const kind =
    runtime.AsyncLocalStorage ?? runtime.process?.getBuiltinModule?.("node:async_hooks")?.AsyncLocalStorage;
  return kind ? new kind() : { run: (_scope, work) => work(), getStore: () => undefined };
}

/** Returns the scopes around the caller, the innermost first. */
export function* scopes(): Generator<Scope> {
  for (let scope = storage.getStore(); scope; scope = scope.outer) yield scope;
}

/** Runs work within a scope. */
export function within<R>(scope: Omit<Scope, "outer">, work: () => R): R {
  return storage.run({ ...scope, outer: storage.getStore() }, work);
}

/** The lease under which `interlock run` or `interlock task work` has started this process. */
export interface Origin {
  session: string;
  flow: string;
  keys: readonly string[];
  fence: string | undefined;
}

/** Reads what the variables tell of the lease around this process. */
export function originOf(variable: (name: string) => string | undefined): Origin | undefined {
  const session = variable("INTERLOCK_SESSION");
  if (session === undefined) return undefined;
  const flow = variable("INTERLOCK_FLOW") ?? "main";
  const keys = (variable("INTERLOCK_KEYS") ?? "").split("\n").filter((key) => key !== "");
  return { session, flow, keys, fence: variable("INTERLOCK_FENCE") };
}

/** Whether a claim is for a part of what the key counts: each has its own. */
export function isCounted({ mode, permits }: t.ClaimRequest): boolean {
  return (
    mode === "permits" ||
    mode === "barrier" ||
    mode === "member" ||
    (mode === undefined && permits !== undefined)
  );
}

/** Whether two claims exclude each other: on one key, or on one above the other. */
export function collide(a: t.ClaimRequest, b: t.ClaimRequest): boolean {
  const excludes = (c: t.ClaimRequest) =>
    (c.mode ?? (c.permits === undefined ? "exclusive" : "permits")) === "exclusive";
  return (excludes(a) || excludes(b)) && overlap(a.key, b.key);
}

/** What an answer tells of those who are in the way of a request. */
export type Blocked = Pick<t.Queued, "holders" | "capacity">;

/** Whether a key has permits for a request beside the holders that are its own. With groups it counts as full. */
export function fits(
  claims: readonly t.ClaimRequest[],
  own: readonly t.Holder[],
  capacity: t.Capacity | undefined,
): boolean {
  if (!capacity || capacity.groups?.length) return false;
  const asked = claims.filter(({ key }) => own.some((holder) => holder.key === key));
  const all = [...(asked.length > 0 ? asked : [{}]), ...own] as Partial<t.ClaimRequest>[];
  if (all.some(({ mode = "permits" }) => mode !== "permits")) return false;
  return all.reduce((sum, { permits = 1 }) => sum + permits, 0) <= (capacity.permits ?? Infinity);
}

/** Whether two keys are one, or one is above the other. */
export function overlap(a: string, b: string): boolean {
  return a === b || a.startsWith(`${b}/`) || b.startsWith(`${a}/`);
}

/** The refusal of a wait for what encloses the waiter. */
export function ownLease(key: string, fence: string, purpose: string): Deadlock {
  const lease = `your own lease (fence ${fence}${purpose === "" ? "" : `, ${JSON.stringify(purpose)}`})`;
  return new Deadlock({
    code: "deadlock",
    message: `${key} is held by ${lease}, which encloses this call: the wait would never end`,
    retryable: false,
    advice: {
      action: "fix_request",
      retry_after_ms: 0,
      message:
        "use the enclosing lease: ask without a flow, an agent name and join: false of your own; or ask " +
        "after that lease has ended",
    },
  });
}

/** The error of a client whose joined session has ended. */
export function sessionOver(cause: InterlockError): InterlockError {
  return new InterlockError({
    code: cause.code,
    message: `the session that encloses this process is over, with all its leases (${cause.message})`,
    retryable: false,
    advice: {
      action: "stop",
      retry_after_ms: 0,
      message:
        "start this program again below a lease, or give its client join: false for a session of its own",
    },
    cause,
  });
}
