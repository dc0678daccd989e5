/**
 * The client of Interlock: leases that live as long as the process that holds them, and documents
 * that are committed by their versions.
 *
 * @packageDocumentation
 */
export {
  Client,
  type ClientOptions,
  type RequestOptions,
  type ResumeOptions,
  type TurnOptions,
} from "./client.js";
export { Lease, type Outcome } from "./lease.js";
export type { LeaseOptions, Waiting, What } from "./acquire.js";
export { NotDone, type Action, type EffectOptions } from "./effect.js";
export { guarded, type Guarded, type GuardOptions, type ReadOptions, type Tool } from "./guarded.js";
export type { RunOptions } from "./run.js";
export { Dead, NeedsApproval, RetryAfter, type Done, type Job, type WorkOptions } from "./worker.js";
export { add, merge, put, remove, seen, text, type Commit } from "./state.js";
export type { WatchOptions } from "./watch.js";
export type { OperationName, RequestParameters, Sending } from "./transport.js";
export { Clock } from "./clock.js";
export {
  ClientClosed,
  Deadlock,
  DoneInPart,
  EffectTaken,
  Exhausted,
  Forbidden,
  Held,
  InterlockError,
  InvalidRequest,
  LeaseLost,
  OutcomeUnknown,
  Refused,
  Stale,
  TaskMoved,
  Unreachable,
  WaitTimeout,
  type Reason,
} from "./errors.js";
export { codes, limits, operations, type CodeInfo, type Operations } from "./types.js";
export type * as api from "./types.js";
