import type { Clock } from "./clock.js";
import { collide, type Scope } from "./context.js";
import { Deadlock, Held, WaitTimeout } from "./errors.js";
import { linked, orAborted, type Signal } from "./stop.js";
import type * as t from "./types.js";

/** The place of a call among those beside it. */
export interface Turn {
  readonly claims: readonly t.ClaimRequest[];
  readonly over: Promise<void>;
  end(): void;
}

interface Wait {
  /** Whether a turn encloses the waiter, or is of a run that does: such a run may have got it meanwhile. */
  isAround(turn: Turn): boolean;
  on: ReadonlySet<Turn>;
}

/** How long a call waits for its turn. */
export interface Patience {
  clock: Clock;
  waitMs: number;
  signal: Signal | undefined;
}

/**
 * The calls that the server takes for one holder, as they have one flow. Those beside each other exclude
 * each other here; a call never waits for one that encloses it.
 */
class Flow {
  constructor(readonly name: string) {}

  readonly turns = new Set<Turn>();
  readonly waits = new Set<Wait>();

  async enter(
    claims: readonly t.ClaimRequest[],
    isAround: (turn: Turn) => boolean,
    patience: Patience,
  ): Promise<Turn> {
    const until = patience.clock.steady() + patience.waitMs;
    for (;;) {
      const on = new Set([...this.turns].filter((turn) => !isAround(turn) && meet(turn.claims, claims)));
      if (on.size === 0) return this.#begin(claims);
      const wait = { isAround, on };
      const key = claims[0]?.key ?? "";
      if (this.#isCircle(wait)) throw circle(key);
      const left = until - patience.clock.steady();
      if (left <= 0) throw late(key, patience.waitMs);
      this.waits.add(wait);
      const { signal, end } = linked([patience.signal], left + 1);
      try {
        await orAborted(Promise.all([...on].map((turn) => turn.over)), signal);
      } catch (error) {
        patience.signal?.throwIfAborted();
        if (!signal.aborted) throw error;
      } finally {
        this.waits.delete(wait);
        end();
      }
    }
  }

  #begin(claims: readonly t.ClaimRequest[]): Turn {
    let ended = () => {};
    const over = new Promise<void>((resolve) => (ended = resolve));
    const turn: Turn = {
      claims,
      over,
      end: () => {
        this.turns.delete(turn);
        if (this.turns.size === 0 && this.waits.size === 0) flows.delete(this.name);
        ended();
      },
    };
    this.turns.add(turn);
    return turn;
  }

  /** Whether what a call waits for waits, over others, for what encloses that call. */
  #isCircle(first: Wait): boolean {
    const seen = new Set<Wait>([first]);
    for (const wait of seen) {
      for (const other of this.waits) {
        if (![...wait.on].some((turn) => other.isAround(turn))) continue;
        if ([...other.on].some((turn) => first.isAround(turn))) return true;
        seen.add(other);
      }
    }
    return false;
  }
}

const flows = new Map<string, Flow>();

/** Waits until no call beside the caller, in the same flow, has what its claims exclude. */
export function enter(
  name: string,
  claims: readonly t.ClaimRequest[],
  scopes: Iterable<Pick<Scope, "turn" | "run">>,
  patience: Patience,
): Promise<Turn> {
  const all = [...scopes];
  const isAround = (one: Turn) => all.some(({ turn, run }) => turn === one || run?.turns.has(one) === true);
  let flow = flows.get(name);
  if (!flow) flows.set(name, (flow = new Flow(name)));
  return flow.enter(claims, isAround, patience);
}

function meet(some: readonly t.ClaimRequest[], others: readonly t.ClaimRequest[]): boolean {
  return some.some((a) => others.some((b) => collide(a, b)));
}

function circle(key: string): Deadlock {
  return new Deadlock({
    code: "deadlock",
    message: `${key} is in use by another call of your own, which waits for a call around this one`,
  });
}

function late(key: string, waitMs: number): Held | WaitTimeout {
  const message = `${key} is in use by another call of your own, beside this one`;
  if (waitMs <= 0) return new Held({ code: "held", message });
  return new WaitTimeout({ code: "wait_limit", message: `${message}, and the wait is over` });
}
