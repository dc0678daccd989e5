import type { Client } from "./client.js";
import { EffectTaken } from "./errors.js";
import { under, type Lease } from "./lease.js";
import type { Signal } from "./stop.js";
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

/** How long the outcome of an effect is reported. */
const settleMs = 10_000;

/** Does something once; see Client.effect. */
export async function perform<T>(
  client: Client,
  action: Action,
  act: (effect: t.Effect) => T | PromiseLike<T>,
  options: EffectOptions,
): Promise<T> {
  const effect = await claim(client, action, options);
  if (effect.state === "done") return effect.result as T;
  const id = effect.id ?? "";
  const sending = { retryForMs: settleMs };
  let result: T;
  try {
    result = await act(effect);
  } catch (error) {
    const reason = clip(error instanceof Error ? error.message : String(error));
    const operation = error instanceof NotDone ? "cancelEffect" : "markEffectUnknown";
    await client
      .request(operation, { path: { id }, body: { reason } }, sending)
      .catch((unreported: unknown) => {
        throw new AggregateError(
          [error, unreported],
          "the action failed, and so did the report to the server",
        );
      });
    throw error instanceof NotDone ? error.cause : error;
  }
  const body: t.DoneRequest = result === undefined ? {} : { result };
  await client.request("completeEffect", { path: { id }, body }, sending);
  return result;
}

/** Claims an effect, and waits while another caller has claimed it. */
async function claim(client: Client, action: Action, options: EffectOptions): Promise<t.Effect> {
  const until = client.clock.now() + (options.waitMs ?? 60_000);
  const flow = client.newFlow(); // a claim of the same flow would be taken for this one
  for (;;) {
    options.signal?.throwIfAborted();
    const session = await client.keeper.session(options.signal);
    const left = Math.max(0, until - client.clock.now());
    const body: t.EffectRequest = { ...action, session: session.id, flow };
    body.wait_ms = Math.round(Math.min(left, sliceMs));
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
            await client.request("cancelEffect", { path: { id: effect.id }, body: { reason } });
          },
          options.signal,
        ),
      );
      return data.effect;
    } catch (error) {
      const taken = error instanceof EffectTaken && error.code === "effect_claimed";
      if (!taken || client.clock.now() >= until) throw error;
    }
  }
}

/** Shortens a reason to what the server keeps of one. */
export function clip(reason: string): string {
  const bytes = new TextEncoder().encode(reason);
  if (bytes.length <= limits.maxReasonBytes) return reason;
  return new TextDecoder().decode(bytes.slice(0, limits.maxReasonBytes - 3)).replace(/\uFFFD+$/, "");
}
