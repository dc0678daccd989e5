import { backoff, cancel, later, type Clock } from "./clock.js";

/** What ends work: an AbortSignal, or a Stop. */
export interface Signal {
  readonly aborted: boolean;
  readonly reason: unknown;
  throwIfAborted(): void;
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** Ends any number of pieces of work. */
export class Stop implements Signal {
  readonly #listeners = new Set<() => void>();
  aborted = false;
  reason: unknown;

  abort(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    for (const listener of [...this.#listeners]) listener();
    this.#listeners.clear();
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason;
  }

  addEventListener(_type: "abort", listener: () => void): void {
    if (!this.aborted) this.#listeners.add(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    this.#listeners.delete(listener);
  }
}

/** What is to be called at the end of each signal. */
const listening = new WeakMap<Signal, { listeners: Set<() => void>; stop(): void }>();

/**
 * Calls listener when the signal ends, and returns a function that takes it back. However many listen in
 * this way, the signal has one listener: Node warns of an AbortSignal with more than ten.
 */
export function listen(signal: Signal, listener: () => void): () => void {
  let known = listening.get(signal);
  if (!known) {
    const listeners = new Set<() => void>();
    const stop = () => {
      signal.removeEventListener("abort", tell);
      listening.delete(signal);
    };
    const tell = () => {
      stop();
      for (const one of listeners) one();
    };
    known = { listeners, stop };
    listening.set(signal, known);
    signal.addEventListener("abort", tell, { once: true });
  }
  const { listeners, stop } = known;
  const own = () => listener();
  listeners.add(own);
  return () => {
    listeners.delete(own);
    if (listeners.size === 0 && listening.get(signal)?.listeners === listeners) stop();
  };
}

/** A signal that ends with any of others, or when its time is up. */
export interface Linked {
  signal: AbortSignal;
  /** Lets go of the others, which may live for long. */
  end(): void;
}

/** Returns a signal that aborts with any of these, or after ms with a TimeoutError. */
export function linked(signals: readonly (Signal | undefined)[], ms = Infinity): Linked {
  const controller = new AbortController();
  const undo: (() => void)[] = [];
  for (const one of signals) {
    if (!one) continue;
    const forward = () => controller.abort(one.reason);
    if (one.aborted) forward();
    else undo.push(listen(one, forward));
  }
  if (Number.isFinite(ms)) {
    const timer = later(() => controller.abort(new DOMException("no answer in time", "TimeoutError")), ms);
    undo.push(() => cancel(timer));
  }
  return { signal: controller.signal, end: () => undo.forEach((f) => f()) };
}

/** Settles as work does, or rejects with the reason of the signal. The work goes on. */
export function orAborted<T>(work: Promise<T>, signal?: Signal): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const end = () => reject(signal.reason);
    if (signal.aborted) {
      end();
      work.catch(() => {});
      return;
    }
    work.then(resolve, reject).finally(listen(signal, end));
  });
}

/**
 * Waits, and rejects with the reason of the signal when that ends first. In the background it does not
 * keep the process alive.
 */
export function sleep(ms: number, signal?: Signal, background = false): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const timer = later(() => {
      undo?.();
      resolve();
    }, ms);
    if (background) unref(timer);
    const undo =
      signal &&
      listen(signal, () => {
        cancel(timer);
        reject(signal.reason);
      });
  });
}

/** Lets a timer not keep the process alive, where the runtime knows such a thing. */
export function unref(timer: unknown): void {
  if (typeof timer === "object" && timer !== null && "unref" in timer && typeof timer.unref === "function") {
    timer.unref();
    return;
  }
  const runtime = (globalThis as { Deno?: { unrefTimer?(id: unknown): void } }).Deno;
  runtime?.unrefTimer?.(timer);
}

/** The longest pause of a loop, and of a turn that counts as one that ended at once. */
const mostPauseMs = 1000;

/**
 * The pauses of a loop that asks a server until it brings something. A turn takes its time by itself, as its request
 * waits at the server. From the second one on that ended at once there is a pause: it grows, up to a second.
 */
export class Pace {
  #began: number;
  #quick = 0;

  constructor(readonly clock: Clock) {
    this.#began = clock.steady();
  }

  /** Pauses after a turn that has brought nothing. */
  async next(signal?: Signal): Promise<void> {
    const waited = this.clock.steady() - this.#began >= mostPauseMs / 2;
    this.#quick = waited ? 0 : this.#quick + 1;
    if (this.#quick > 1) await sleep(1 + backoff(this.#quick, 0, mostPauseMs), signal);
    this.#began = this.clock.steady();
  }
}
