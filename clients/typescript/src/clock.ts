/** What is used of a runtime. */
interface Runtime {
  process?: { getBuiltinModule?(name: string): Partial<typeof globalThis> | undefined };
}

const { process } = globalThis as Runtime;
const { performance: meter = performance } = process?.getBuiltinModule?.("node:perf_hooks") ?? {};
const { setTimeout: set = setTimeout, clearTimeout: clear = clearTimeout } =
  process?.getBuiltinModule?.("node:timers") ?? {};

/**
 * The clocks and timers of the runtime, as they are at the import of this module. Those that a test puts in the place
 * of the global ones stand still, and a lease that is held would end.
 */
const monotonic = meter.now.bind(meter);
const wall = Date.now.bind(Date);
const setTimer = set.bind(globalThis);
const clearTimer = clear.bind(globalThis);

export type Timer = ReturnType<typeof setTimeout>;

/** The longest time that a timer takes; with a longer one it would end at once. */
const longest = 2 ** 31 - 1;

/** Milliseconds since some moment, without the sleep of the machine. */
export const steadyNow = (): number => monotonic();

/** Calls f after so many milliseconds, 24 days at most. */
export function later(f: () => void, ms: number): Timer {
  return setTimer(f, Math.min(ms, longest)) as Timer;
}

/** Ends a timer of later. */
export function cancel(timer: Timer | undefined): void {
  clearTimer(timer);
}

/** A step of the wall clock ahead of the monotonic one that counts as a sleep of the machine. */
const step = 1000;

/**
 * A clock that never goes back and that also advances while the machine sleeps. The monotonic
 * clock of most systems stands still then, and a lease would seem alive after a night in a closed
 * laptop. The wall clock shows the difference. A wall clock that is set forward looks the same:
 * that is why a lease that is over for this reason alone is first checked with the server.
 */
export class Clock {
  #monotonic: number;
  #wall: number;
  #slept = 0;

  constructor(private readonly read: { monotonic(): number; wall(): number } = { monotonic, wall }) {
    this.#monotonic = read.monotonic();
    this.#wall = read.wall();
  }

  /** Milliseconds since some moment, with the sleep of the machine: for what a server ends meanwhile. */
  now(): number {
    const monotonic = this.read.monotonic();
    const wall = this.read.wall();
    const gap = wall - this.#wall - (monotonic - this.#monotonic);
    if (gap > step) this.#slept += gap;
    this.#monotonic = monotonic;
    this.#wall = wall;
    return monotonic + this.#slept;
  }

  /** Milliseconds since some moment, without it: for waits, which no setting of the wall clock ends. */
  steady(): number {
    return this.read.monotonic();
  }

  /** How long the machine has slept so far, as far as now has noticed. */
  get slept(): number {
    return this.#slept;
  }
}

/** Returns the pause before another try: random, on average doubled by each try, at most most. */
export function backoff(tries: number, estimate: number, most: number): number {
  return Math.random() * Math.min(most, 2 * Math.max(estimate, 50) * 2 ** Math.min(tries, 16));
}
