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

  constructor(
    private readonly read: { monotonic(): number; wall(): number } = {
      monotonic: () => performance.now(),
      wall: () => Date.now(),
    },
  ) {
    this.#monotonic = read.monotonic();
    this.#wall = read.wall();
  }

  /** Milliseconds since some moment. */
  now(): number {
    const monotonic = this.read.monotonic();
    const wall = this.read.wall();
    const gap = wall - this.#wall - (monotonic - this.#monotonic);
    if (gap > step) this.#slept += gap;
    this.#monotonic = monotonic;
    this.#wall = wall;
    return monotonic + this.#slept;
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
