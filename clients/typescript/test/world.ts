import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
import { spawn, type ChildProcess } from "node:child_process";
import type { UUID } from "node:crypto";
import { createInterface } from "node:readline";
import type { Client as AnyClient, ClientOptions, Lease } from "../src/index.js";

/**
 * Simulated worlds: clients with a simulated network, clock and schedule, and the real server in virtual time behind
 * a pipe, which internal/test/clientworld is. All that a world decides comes from its seed: which timer fires first,
 * when an answer arrives, what becomes of a request, when a process stands still, sleeps or ends.
 */

/** A promise of the client that a world saw broken. */
export class Violation extends Error {
  override name = "Violation";
}

/** Chance that follows from a seed. */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = Math.imul(seed + 1, 0x9e3779b1);
  }

  /** A number from 0 to 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let x = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  between(least: number, most: number): number {
    return least + this.next() * (most - least);
  }

  below(n: number): number {
    return Math.floor(this.next() * n);
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T;
  }
}

/** What happens at a moment. In Node's place it is also a timer. */
class Happening {
  constructor(
    /** The moment, in microseconds of the server's time. */
    public at: number,
    readonly act: () => unknown,
    /** The process in which it happens: not while that stands still, and not after its end. */
    readonly process?: Process,
  ) {}

  unref(): this {
    return this;
  }
}

/** The present world; there is one at a time. */
let present: World | undefined;

/** The process and the program in it that runs. */
const running = new AsyncLocalStorage<{ process: Process; name: string }>();

/** Has a function run in the context of the caller. */
function bound<A extends unknown[], R>(f: (...args: A) => R): (...args: A) => R {
  const context = new AsyncResource("world", { requireManualDestroy: true });
  return (...args) => context.runInAsyncScope(f, undefined, ...args);
}

/** What takes the place of the functions of the runtime, before the client is imported. */
const real = {
  random: Math.random,
  randomUUID: crypto.randomUUID.bind(crypto),
  module: process.getBuiltinModule.bind(process),
  emitWarning: process.emitWarning.bind(process),
  setTimeout,
  clearTimeout,
};
const timers = {
  setTimeout: (f: () => void, ms = 0) => present?.timer(f, ms) ?? real.setTimeout(f, ms),
  clearTimeout: (timer: unknown) =>
    timer instanceof Happening ? present?.forget(timer) : real.clearTimeout(timer as undefined),
};
process.getBuiltinModule = ((name: string) =>
  name === "node:timers" ? timers : real.module(name)) as typeof process.getBuiltinModule;
Math.random = () => present?.dice.next() ?? real.random();
crypto.randomUUID = () => present?.uuid() ?? real.randomUUID();
process.emitWarning = (warning: string | Error, ...more: unknown[]) =>
  present ? present.tell(`warning: ${String(warning)}`) : real.emitWarning(warning, ...(more as []));

/** What is to be done for each object when it is collected as garbage. */
const remains = new WeakMap<object, () => void>();

/** A registry that learns of what a world collects, and not of garbage. */
globalThis.FinalizationRegistry = class<T> {
  readonly #targets = new WeakMap<object, object>();

  constructor(readonly call: (held: T) => void) {}

  register(target: object, held: T, token?: object): void {
    const process = running.getStore();
    remains.set(target, () => process && running.run(process, () => this.call(held)));
    if (token) this.#targets.set(token, target);
  }

  unregister(token: object): boolean {
    const target = this.#targets.get(token);
    return target !== undefined && remains.delete(target);
  }
} as unknown as typeof FinalizationRegistry;

/** The client, in whose modules all that is in place. */
export const { Client, Clock, EffectTaken, InterlockError, LeaseLost, NotDone, guarded } =
  await import("../src/index.js");

interface Done {
  id: number;
  status: number;
  headers?: Record<string, string>;
  body: string;
}

interface Told {
  now: number;
  done: Done[];
}

/** The server. */
export class Pipe {
  readonly #child: ChildProcess;
  readonly #waiting: ((line: string) => void)[] = [];

  constructor(program: string) {
    const args = ["-test.run=^TestServe$", "-test.timeout=0", "-pipe"];
    this.#child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
    createInterface(this.#child.stdout as NodeJS.ReadableStream).on("line", (line) =>
      this.#waiting.shift()?.(line),
    );
  }

  async do(command: object): Promise<Told> {
    const line = await new Promise<string>((resolve) => {
      this.#waiting.push(resolve);
      this.#child.stdin?.write(`${JSON.stringify(command)}\n`);
    });
    return JSON.parse(line) as Told;
  }

  async close(): Promise<void> {
    const over = new Promise((resolve) => this.#child.once("close", resolve));
    this.#child.stdin?.end();
    await over;
  }
}

/** How many clients there were. */
let clients = 0;

/** A process with clients. It may stand still, sleep with its machine, or end. */
export class Process {
  isOver = false;
  /** Until when nothing runs in it. */
  standsUntil = 0;
  /** For how long its machine has slept. */
  slept = 0;
  /** Those that run. */
  readonly programs = new Set<string>();

  constructor(
    readonly world: World,
    readonly name: string,
  ) {}

  /** When it last went on after it had stood still, in milliseconds since the world began. */
  get wokeMs(): number {
    return this.world.ms() - (this.world.now - this.standsUntil) / 1000;
  }

  get isRunning(): boolean {
    return !this.isOver && this.standsUntil <= this.world.now;
  }

  client(options: ClientOptions): AnyClient {
    const monotonic = () => this.world.ms() - this.slept / 1000;
    const clock = new Clock({ monotonic, wall: () => 1e12 + this.world.ms() });
    // Processes share nothing, though all are one here, in all worlds: a credential tells them apart.
    const credential = `${++clients}`;
    return new Client({ url: "http://world:1", clock, fetch: this.world.fetch, credential, ...options });
  }

  /** Starts a program. An error that it throws ends the world. */
  start(name: string, run: () => Promise<void>): void {
    if (this.isOver) return;
    this.programs.add(name);
    const over = () => void this.programs.delete(name);
    running.run({ process: this, name: `${this.name}/${name}` }, () =>
      this.world.at(0, () => void run().then(over, (error: unknown) => this.world.fail(error))),
    );
  }

  /** Stands still for a while, as in a computation. */
  stand(ms: number): void {
    this.standsUntil = Math.max(this.standsUntil, this.world.now) + Math.round(ms * 1000);
    this.world.tell(`${this.name} stands still for ${Math.round(ms)} ms`);
  }

  /** Its machine sleeps for a while. Timers do not count that, nor does the clock that never goes back. */
  sleep(ms: number): void {
    this.stand(ms);
    this.slept += Math.round(ms * 1000);
    this.world.postpone(this, Math.round(ms * 1000));
  }

  /** Ends at once. */
  end(): void {
    this.isOver = true;
    this.programs.clear();
    this.world.tell(`${this.name} ends`);
    this.world.leave(this);
  }
}

// prettier-ignore
const faults = [
  "refused", "silent", "reset", "answer lost", "answer reset", "answer cut", "bad gateway", "twice", "slow", "late",
  "drips",
] as const;

type Fate = "good" | (typeof faults)[number];

/** A request at the server, or on its way there. */
interface Request {
  id: number;
  process: Process | undefined;
  take: (done: Done) => void;
}

/** One world. Its programs call clients, sleep and check. */
export class World {
  readonly dice: Dice;
  /** Chance of what the programs do not see. */
  readonly looks: Dice;
  /** The server's time in microseconds. */
  now = 0;
  /** The share of requests that meet a fault. */
  faults = 0;
  /** Whether no server can be reached. */
  isDown = false;
  /** The leases that a program goes by. */
  readonly beliefs = new Map<Lease, Process>();
  /** When an operator has revoked a lease, by its id. */
  readonly #revoked = new Map<string, number>();
  readonly story: string[] = [];
  #began = 0;
  #error: unknown;
  #numbers = 0;
  readonly #happenings = new Set<Happening>();
  readonly #requests = new Map<number, Request>();

  private constructor(
    readonly pipe: Pipe,
    readonly seed: number,
  ) {
    this.dice = new Dice(seed);
    this.looks = new Dice(~seed);
  }

  /** Lives through a world. A broken promise comes with the story. */
  static async live(pipe: Pipe, seed: number, life: (world: World) => Promise<void>): Promise<World> {
    const world = new World(pipe, seed);
    world.now = world.#began = (await pipe.do({ do: "world", seed })).now;
    const fail = (error: unknown) =>
      world.fail(new Violation("a rejection is not handled", { cause: error }));
    process.on("unhandledRejection", fail);
    present = world;
    try {
      await life(world);
    } catch (error) {
      throw new Violation(`world ${seed}: ${String(error)}\n${world.story.join("\n")}`, { cause: error });
    } finally {
      present = undefined;
      process.off("unhandledRejection", fail);
    }
    return world;
  }

  /** Milliseconds since the world began. */
  ms(): number {
    return (this.now - this.#began) / 1000;
  }

  uuid(): UUID {
    const [seed, number] = [this.seed, ++this.#numbers].map((n) => n.toString(16));
    return `${seed?.padStart(8, "0")}-0000-4000-8000-${number?.padStart(12, "0")}`;
  }

  /** Adds a line to the story. */
  tell(text: string): void {
    this.story.push(`${this.ms().toFixed(3).padStart(11)} ${running.getStore()?.name ?? "world"}: ${text}`);
  }

  /** Ends the world as failed. */
  fail(error: unknown): void {
    this.#error ??= error;
  }

  /** Does the same, whoever catches what this returns. */
  broken(promise: string): Violation {
    const error = new Violation(promise);
    this.fail(error);
    return error;
  }

  // What happens.

  /** Has something happen after so many milliseconds, in the process that asks for it. */
  at(ms: number, act: () => unknown): Happening {
    const process = running.getStore()?.process;
    const it = new Happening(this.now + Math.max(0, Math.ceil(ms * 1000)), bound(act), process);
    if (!process?.isOver) this.#happenings.add(it);
    return it;
  }

  /** Has something happen that no process has a part in. */
  beside(ms: number, act: () => unknown): Happening {
    return running.exit(() => this.at(ms, act));
  }

  /** A timer as Node has it: in whole milliseconds, and late more often than not. */
  timer(f: () => void, ms: number): Happening {
    if (!running.getStore()) throw new Error("a timer of no process");
    return this.at(Math.max(1, Math.trunc(ms)) + this.dice.next() ** 16 * 300, () => void f());
  }

  forget(it: Happening): void {
    this.#happenings.delete(it);
  }

  /** The timers of a process come later. */
  postpone(process: Process, us: number): void {
    for (const it of this.#happenings) if (it.process === process) it.at += us;
  }

  /** A process has ended: nothing of it happens any more, and its connections break. */
  leave(process: Process): void {
    for (const it of this.#happenings) if (it.process === process) this.forget(it);
    for (const [lease, of] of this.beliefs) if (of === process) this.beliefs.delete(lease);
    for (const request of this.#requests.values()) if (request.process === process) this.#hangUp(request.id);
  }

  /** Has a program do something else for a while. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.at(ms, resolve));
  }

  /** Lets time pass until a condition holds. A world that reaches the limit has failed. */
  async run(what: string, limitMs: number, until: () => boolean): Promise<void> {
    const end = this.now + limitMs * 1000;
    while (!until()) {
      if (this.now >= end) throw new Violation(`no end after ${limitMs} ms: ${what}`);
      const ready: Happening[] = [];
      let next = end;
      for (const it of this.#happenings) {
        const at = Math.max(it.at, it.process?.standsUntil ?? 0);
        if (at <= this.now) ready.push(it);
        next = Math.min(next, at);
      }
      if (ready.length === 0) {
        await this.#do({ do: "pass", us: next - this.now });
        continue;
      }
      const it = this.dice.pick(ready);
      this.forget(it);
      await it.act();
      await new Promise((resolve) => setImmediate(resolve)); // until all promises are settled
      if (this.#error !== undefined) throw this.#error;
      if (this.beliefs.size > 0 && this.looks.chance(0.25)) await this.#check();
    }
  }

  // The server.

  async #do(command: object): Promise<void> {
    const { now, done } = await this.pipe.do(command);
    this.now = now;
    for (const one of done) {
      const request = this.#requests.get(one.id);
      this.#requests.delete(one.id);
      request?.take(one);
    }
  }

  /** Has the server get a request now, and returns its number. */
  async #deliver(
    { method, target, headers, body }: { method: string; target: string; headers: object; body: string },
    take: (done: Done) => void,
  ): Promise<number> {
    const id = ++this.#numbers;
    this.#requests.set(id, { id, process: running.getStore()?.process, take });
    await this.#do({ do: "send", id, method, target, headers, body });
    return id;
  }

  /** Asks the server beside the network. */
  async ask<T>(method: string, target: string, body?: object): Promise<{ status: number; data: T }> {
    let got: Done | undefined;
    const headers = body ? { "content-type": "application/json" } : {};
    await this.#deliver(
      { method, target, headers, body: body ? JSON.stringify(body) : "" },
      (done) => (got = done),
    );
    if (!got) throw new Error(`${method} ${target} is not answered at once`);
    return { status: got.status, data: JSON.parse(got.body || "null") as T };
  }

  /** An operator revokes a lease. */
  async revoke(lease: Lease): Promise<void> {
    this.tell(`the lease on ${lease.key} is revoked`);
    this.#revoked.set(lease.id, this.now);
    await this.ask("POST", "/v1/revocations", { key: lease.key, fence: lease.fence });
  }

  /** Whether a client holds a lease, and no operator has revoked it. */
  isHeld(lease: Lease): boolean {
    return lease.held && !this.#revoked.has(lease.id);
  }

  /** The server stops, and another one starts over its journal. */
  async restart(): Promise<void> {
    this.tell("the server restarts");
    await this.#do({ do: "restart" });
  }

  /** The server sees that a connection is closed: if its process has ended, and in most cases otherwise. */
  #hangUp(id: number): void {
    const request = this.#requests.get(id);
    if (!request || (!request.process?.isOver && this.dice.chance(0.1))) return;
    this.beside(this.dice.between(0, 20), () => this.#requests.has(id) && this.#do({ do: "cut", id }));
  }

  /** Compares what the programs believe with what the server knows. */
  async #check(): Promise<void> {
    for (const [lease, process] of this.beliefs) {
      const revokedAt = this.#revoked.get(lease.id) ?? -Infinity; // its client learns of it with a heartbeat
      if (!process.isRunning || this.now - revokedAt < 8e6) continue;
      const isHeld = lease.held;
      // A signal comes by a timer, which may be late, and after a sleep when a heartbeat has been tried.
      const isAlive = isHeld || (!lease.signal.aborted && this.now - process.standsUntil > 4e6);
      if (!isAlive) continue;
      type View = { code?: string; lease?: { state: string } };
      const { status, data } = await this.ask<View>("GET", `/v1/leases/${lease.id}`);
      const state = data.lease?.state ?? data.code;
      if (status === 200 && (state === "held" || state === "soft")) continue;
      const belief = isHeld ? `believes in it for another ${lease.leftMs} ms` : "has not aborted its signal";
      throw new Violation(
        `the server has ended the lease on ${lease.keys.join(", ")} (${state}), and the client ${belief}`,
      );
    }
  }

  // The network.

  /** Carries a request to the server, and its answer back, or what the network makes of them. */
  readonly fetch: typeof fetch = (input, init) =>
    new Promise((resolve, reject) => {
      const { method = "GET", signal } = init ?? {};
      const { pathname, search } = new URL(String(input));
      const { dice } = this;
      let fate: Fate = "good";
      if (this.isDown) fate = dice.pick(["refused", "refused", "silent"]);
      else if (dice.chance(this.faults)) fate = dice.pick(faults);
      if (fate !== "good" || verbose) this.tell(`${method} ${pathname}: ${fate}`);
      const there = fate === "late" ? dice.between(0, 30_000) : dice.between(0, 20);
      const back = dice.between(0, 20);
      const ids: number[] = [];
      let isOver = false;
      const end = (settle: () => void) => {
        if (!isOver) settle();
        isOver = true;
      };
      signal?.addEventListener("abort", () =>
        end(() => {
          reject(signal.reason as Error);
          for (const id of ids) this.#hangUp(id);
        }),
      );
      const broken = () => end(() => reject(failure("the connection broke", "ECONNRESET")));
      const answered = bound((done: Done) => {
        if (fate === "answer lost") return;
        if (done.status === 0 || fate === "answer reset") return this.at(back, broken);
        const body = new TextEncoder().encode(done.body);
        const slow = fate === "slow" ? dice.between(0, 20_000) : 0;
        const drips = fate === "drips" ? dice.between(0, 20_000) : 0;
        const isBad = fate === "bad gateway";
        const arrayBuffer = () =>
          new Promise((resolve, reject) =>
            this.at(drips, () =>
              fate === "answer cut" ? reject(failure("terminated", "UND_ERR_SOCKET")) : resolve(body),
            ),
          );
        const headers = new Headers(isBad ? { "content-type": "text/html" } : done.headers);
        const answer = { status: isBad ? 502 : done.status, headers, arrayBuffer };
        this.at(back + slow, () => end(() => resolve(answer as unknown as Response)));
      });
      const headers = Object.fromEntries(new Headers(init?.headers));
      delete headers["authorization"];
      const text = init?.body ? new TextDecoder().decode(init.body as Uint8Array) : "";
      const request = { method, target: pathname + search, headers, body: text };
      const arrive = bound(async () => {
        const id = await this.#deliver(request, answered);
        ids.push(id);
        if (isOver || here().isOver) this.#hangUp(id);
      });
      if (fate === "refused")
        this.at(there, () => end(() => reject(failure("connect ECONNREFUSED", "ECONNREFUSED"))));
      else if (fate === "reset") this.at(there, broken);
      else if (fate !== "silent") {
        this.beside(there, arrive); // also after its process has ended
        if (fate === "twice") this.beside(there + dice.between(0, 5000), arrive);
      }
    });
}

/** The error of a fetch. */
function failure(message: string, code: string): Error {
  return new TypeError("fetch failed", { cause: Object.assign(new Error(message), { code }) });
}

/** Whether the story has the requests that meet no fault. */
const verbose = process.env["INTERLOCK_TEST_VERBOSE"] !== undefined;

/** The program loses a handle, which is collected as garbage. */
export function collect(handle: object): void {
  const left = remains.get(handle);
  remains.delete(handle);
  left?.();
}

/** The process of the program that runs. */
export function here(): Process {
  const store = running.getStore();
  if (!store) throw new Error("no program runs");
  return store.process;
}
