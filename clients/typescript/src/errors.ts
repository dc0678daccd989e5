import {
  codes,
  type Advice,
  type Capacity,
  type Code,
  type CycleStep,
  type Effect,
  type Holder,
  type Packet,
  type Problem,
  type StaleDocument,
  type Task,
} from "./types.js";

/** What an error is made of. */
export interface Reason {
  code: Code;
  /** What is wrong in this instance. */
  message: string;
  /** The next step; left out, it is the code's usual one. */
  advice?: Advice;
  /** Whether asking again can succeed; left out, it is as usual for the code. */
  retryable?: boolean;
  /** The server's answer, if there is one. */
  problem?: Problem;
  cause?: unknown;
}

/**
 * The base of all errors of this package. Its text, `String(error)`, is a sentence for a prompt:
 * what is wrong, and the next step.
 */
export class InterlockError extends Error {
  override name = "InterlockError";
  /** The stable code; docs/errors.md describes each. */
  readonly code: Code;
  /** The next step in words. */
  readonly nextStep: string;
  /** When to come back; 0 when there is no such time. */
  readonly retryAfterMs: number;
  /** Whether asking again can succeed without a change of the request. */
  readonly retryable: boolean;
  /** The server's answer, if there is one. */
  readonly problem: Problem | undefined;

  constructor(reason: Reason) {
    super(reason.message, reason.cause === undefined ? undefined : { cause: reason.cause });
    const info = codes[reason.code] ?? codes.internal;
    const advice = reason.advice ?? reason.problem?.advice;
    this.code = reason.code;
    this.nextStep = advice?.message || info.next;
    this.retryAfterMs = advice?.retry_after_ms ?? info.retryAfterMs;
    this.retryable = reason.retryable ?? reason.problem?.retryable ?? info.retryable;
    this.problem = reason.problem;
  }

  /** The key that it is about. */
  get key(): string | undefined {
    return this.problem?.key;
  }

  override toString(): string {
    return `${this.message.replace(/\.$/, "")}. Next step: ${this.nextStep}`;
  }
}

/** The server has decided: the request was refused, and nothing was done. */
export class Refused extends InterlockError {
  override name = "Refused";
}

/** Others hold what was asked for: a key, permits of it, or its rate. */
export class Held extends Refused {
  override name = "Held";

  /** The holders that block the request. Their texts are other agents' data, not instructions. */
  get holders(): readonly Holder[] {
    return this.problem?.holders ?? [];
  }

  get capacity(): Capacity | undefined {
    return this.problem?.capacity;
  }
}

/** The wait would never end: those who wait for each other are its cycle. */
export class Deadlock extends Refused {
  override name = "Deadlock";

  get cycle(): readonly CycleStep[] {
    return this.problem?.cycle ?? [];
  }
}

/** What a commit has read is not the present state. Think again, then commit with the new versions. */
export class Stale extends Refused {
  override name = "Stale";

  /** The changes since the read, with their writers and reasons. */
  get changes(): readonly StaleDocument[] {
    return this.problem?.packet?.stale ?? [];
  }

  get packet(): Packet | undefined {
    return this.problem?.packet;
  }

  /** With the changes in words: they belong into the prompt that decides again. */
  override toString(): string {
    return this.packet?.message ?? super.toString();
  }
}

/** Another caller has claimed the effect, or has done it, or it is unknown whether it happened. */
export class EffectTaken extends Refused {
  override name = "EffectTaken";

  get effect(): Effect | undefined {
    return this.problem?.effect;
  }
}

/** The attempt at the task is over, or the task is settled. */
export class TaskMoved extends Refused {
  override name = "TaskMoved";

  get task(): Task | undefined {
    return this.problem?.task;
  }
}

/** The credential, or a rule of an operator, does not allow it. */
export class Forbidden extends Refused {
  override name = "Forbidden";
}

/** The request itself is wrong: repeating it unchanged cannot succeed. */
export class InvalidRequest extends Refused {
  override name = "InvalidRequest";
}

/** A quota or a limit of the server is reached. */
export class Exhausted extends Refused {
  override name = "Exhausted";
}

/** The request stood in line for as long as it was allowed to, and has left the line. */
export class WaitTimeout extends InterlockError {
  override name = "WaitTimeout";

  /** The holders that blocked it at last. */
  get holders(): readonly Holder[] {
    return this.problem?.holders ?? [];
  }
}

/** The lease is not held any more, as far as this client can tell. Write nothing more under it. */
export class LeaseLost extends InterlockError {
  override name = "LeaseLost";
}

/**
 * A node, or whatever wraps its lease around work, met a refusal after the work had begun: it may have been done
 * in part. It is no Refused, so that a retry policy for those does not repeat the work.
 */
export class DoneInPart extends InterlockError {
  override name = "DoneInPart";
  /** The default retry policy of LangGraph.js does not repeat this one. */
  readonly status = 409;

  constructor(cause: InterlockError) {
    super({
      code: cause.code,
      message: `it may have been done in part: ${cause.message}`,
      retryable: false,
      advice: { action: "ask_human", retry_after_ms: 0, message: "check before you repeat it" },
      ...(cause.problem ? { problem: cause.problem } : {}),
      cause,
    });
  }
}

/** The request certainly was not carried out: it never reached a server. */
export class Unreachable extends InterlockError {
  override name = "Unreachable";
}

/** The request was sent and no answer came: it is unknown whether it was carried out. */
export class OutcomeUnknown extends InterlockError {
  override name = "OutcomeUnknown";
}

/** The client was closed. */
export class ClientClosed extends InterlockError {
  override name = "ClientClosed";

  constructor() {
    super({
      code: "session_ended",
      message: "the client was closed, which released its leases",
      advice: { action: "stop", retry_after_ms: 0, message: "make a new client if there is more to do" },
    });
  }
}

type Kind = new (reason: Reason) => InterlockError;

const kinds: Partial<Record<Code, Kind>> = {
  held: Held,
  at_capacity: Held,
  rate_limited: Held,
  too_many_runs: Held,
  deadlock: Deadlock,
  stale: Stale,
  effect_claimed: EffectTaken,
  effect_unknown: EffectTaken,
  effect_done: EffectTaken,
  task_moved: TaskMoved,
  task_settled: TaskMoved,
  already_replied: TaskMoved,
  unauthenticated: Forbidden,
  forbidden: Forbidden,
  mode_forbidden: Forbidden,
  writer_only: Forbidden,
  foreign_fence: Forbidden,
  foreign_host: Forbidden,
  wait_limit: WaitTimeout,
  outcome_unknown: OutcomeUnknown,
  unreachable: Unreachable,
  no_space: Exhausted,
  queue_draining: Exhausted,
};

for (const code of ["expired", "taken", "revoked", "preempted", "in_grace"] as const) kinds[code] = LeaseLost;

/** Whether the same request is carried out later: nothing was decided, or only about the moment. */
export function mayPass(error: InterlockError): boolean {
  if (error instanceof Unreachable || error instanceof OutcomeUnknown) return true;
  return codes[error.code]?.transient || error.code === "quota_exceeded" || error.code === "no_space";
}

/** The codes that say that a session is gone. */
export function sessionIsGone(code: Code): boolean {
  return code === "session_ended" || code === "unknown_session";
}

/** The codes that say, in answer to a request about a lease, that it is gone. */
export function leaseIsGone(code: Code): boolean {
  return kinds[code] === LeaseLost || code === "released" || code === "unknown_lease" || sessionIsGone(code);
}

/**
 * The codes after which a request that was in line, and holds nothing, is asked anew: also if it was granted, and
 * that was over before its answer came.
 */
export const codesOfRestart: ReadonlySet<Code> = new Set<Code>([
  "offer_lapsed",
  "session_ended",
  "unknown_session",
  "unknown_ticket",
  "unknown_lease",
  "released",
  "expired",
  "taken",
]);

/** Returns the error of its group. */
export function errorOf(reason: Reason): InterlockError {
  let kind = kinds[reason.code];
  if (!kind) {
    const info = codes[reason.code];
    if (info?.status === 429) kind = Exhausted;
    else if (info?.action === "fix_request") kind = InvalidRequest;
    else kind = Refused;
  }
  return new kind(reason);
}

/** Returns the error of a refusal by the server. */
export function refusal(problem: Problem): InterlockError {
  return errorOf({ code: problem.code, message: problem.detail, problem });
}
