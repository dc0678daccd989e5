import type { Client } from "./client.js";
import { scopes, within } from "./context.js";
import { EffectTaken, InvalidRequest } from "./errors.js";
import { resultOf, unstored } from "./json.js";
import { under, type Lease } from "./lease.js";
import { Pace, type Signal } from "./stop.js";
import { clip, isA, warn, words } from "./text.js";
import type { RequestParameters } from "./transport.js";
import { limits } from "./types.js";
import type * as t from "./types.js";

/**
 * Something to be done in the world outside that must not happen twice, such as a charge. Two of
 * them are the same if their tool, target and arguments are, whichever agent plans them.
 */
export interface Action {
  /** The tool that acts, such as "stripe.charge". */
  tool: string;
  /** What it acts on, such as "customer:12". */
  target: string;
  /** The other values that identify the action: no time, no random number, and no secret. */
  arguments?: Record<string, unknown>;
}

/** How an effect is claimed. */
export interface EffectOptions {
  /** How long to wait while another caller is about to do it: 60 s if left out. */
  waitMs?: number;
  signal?: Signal;
  /** The claim lives as long as this lease; else as long as the session of the client. */
  lease?: Lease;
}

/** Thrown by the function of an effect: the action has certainly not happened, so another may do it. */
export class NotDone extends Error {
  override name = "NotDone";

  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}

/** How long one request waits for another caller. */
const sliceMs = 10_000;

/** How long the caller waits for the report of an outcome, which goes on after that. */
const settleMs = 10_000;

/** Does something once; see Client.effect. */
export async function perform<T>(
  client: Client,
  action: Action,
  act: (effect: t.Effect) => T | PromiseLike<T>,
  options: EffectOptions,
): Promise<T> {
  client = options.lease?.client ?? client; // the claim lives in the session of the lease
  const effect = await claim(client, action, options);
  if (effect.state === "done") return effect.result as T;
  const settle = new Settlement(client, action, effect.id ?? ("" as t.EffectID));
  let result: T;
  try {
    result = await within({ client, flow: "", effect: effect.action }, () => act(effect));
  } catch (error) {
    const body = { reason: clip(words(error), limits.maxReasonBytes) };
    if (!isA(error, NotDone)) {
      await settle.by("markEffectUnknown", body);
      throw error;
    }
    await settle.by("cancelEffect", body);
    throw error.cause;
  }
  const stored = result === undefined ? undefined : resultOf(result);
  if (stored?.problem !== undefined)
    warn(`${settle} was done, and its result is not stored for later callers: ${stored.problem}`);
  await settle.by("completeEffect", stored ? { result: stored.value } : {}, (why) => ({
    result: unstored(why).value,
  }));
  return result;
}

type Settling = "completeEffect" | "markEffectUnknown" | "cancelEffect";

/** The report of what became of an effect. */
class Settlement {
  constructor(
    readonly client: Client,
    readonly action: Action,
    readonly id: t.EffectID,
  ) {}

  toString(): string {
    return `the effect ${this.action.tool} on ${this.action.target}`;
  }

  /**
   * Reports, for as long as the caller waits and then in the background. It never throws: the caller gets
   * what his function returned, or its error.
   */
  async by(
    operation: Settling,
    body: t.DoneRequest | t.ReasonRequest,
    instead?: (why: string) => t.DoneRequest,
  ): Promise<void> {
    const { client, id } = this;
    let isOver = false;
    const send = (body: t.DoneRequest | t.ReasonRequest) =>
      client.keeper.insist(operation, { path: { id }, body } as RequestParameters<Settling>);
    const report = send(body)
      .catch((error: unknown) => {
        if (!instead || !(error instanceof InvalidRequest)) throw error;
        return send(instead(error.message));
      })
      .then(
        () => {},
        (error: unknown) => {
          if (!client.keeper.closed.aborted)
            warn(`the server refused the report of ${this}: ${words(error)}`);
        },
      )
      .finally(() => (isOver = true));
    await client.line.shielded(report, { ms: settleMs });
    if (!isOver) warn(`the report of ${this} goes on when a server answers again`);
  }
}

/** Claims an effect, and waits while another caller has claimed it. */
async function claim(client: Client, action: Action, options: EffectOptions): Promise<t.Effect> {
  const { clock, keeper } = client;
  const until = clock.steady() + (options.waitMs ?? 60_000);
  const flow = client.newFlow();
  const pace = new Pace(clock);
  for (let isFirst = true; ;) {
    options.signal?.throwIfAborted();
    const session = await keeper.session(options.signal);
    const left = Math.max(0, until - clock.steady());
    const body: t.EffectRequest = { ...action, session: session.id, flow };
    // A claim within an effect may be for that one: the first answer tells.
    body.wait_ms = isFirst && [...scopes()].some((s) => s.effect) ? 0 : Math.round(Math.min(left, sliceMs));
    isFirst = false;
    if (options.lease) body.lease = options.lease.id;
    const idempotencyKey = crypto.randomUUID();
    try {
      const { data } = await under(options.lease ? [options.lease] : [], () =>
        client.line.undoable(
          (sending) =>
            client.transport.send("claimEffect", { body }, { ...sending, idempotencyKey, waitMs: sliceMs }),
          async ({ data: { effect, outcome } }) => {
            if (outcome !== "claimed" || effect.id === undefined) return;
            const reason = "its caller left before it was started";
            await keeper.insist("cancelEffect", { path: { id: effect.id }, body: { reason } });
          },
          options.signal,
        ),
      );
      return data.effect;
    } catch (error) {
      const isTaken = error instanceof EffectTaken && error.code === "effect_claimed";
      if (!isTaken || isOwn(error.effect) || clock.steady() >= until) throw error;
    }
    await pace.next(options.signal);
  }
}

/** Whether the caller performs an effect already: a wait for it would never end. */
function isOwn(effect: t.Effect | undefined): boolean {
  for (const scope of scopes()) if (effect && scope.effect === effect.action) return true;
  return false;
}
