/** What ends work: an AbortSignal, or a Stop. */
export interface Signal {
  readonly aborted: boolean;
  readonly reason: unknown;
  throwIfAborted(): void;
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** Ends any number of pieces of work. Node warns of an AbortSignal that more than ten listen to. */
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
    one.addEventListener("abort", forward, { once: true });
    undo.push(() => one.removeEventListener("abort", forward));
  }
  if (Number.isFinite(ms)) {
    const timer = setTimeout(
      () => controller.abort(new DOMException("no answer in time", "TimeoutError")),
      ms,
    );
    undo.push(() => clearTimeout(timer));
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
    signal.addEventListener("abort", end, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", end));
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
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, ms);
    if (background) unref(timer);
    signal?.addEventListener("abort", end, { once: true });
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
