import { deepEqual } from "node:assert/strict";
import type { Client as AnyClient, Job, Lease } from "../src/index.js";
import { InterlockError, NotDone, Pipe, Process, World, collect, guarded, here } from "./world.js"; // prettier-ignore

/**
 * The client in simulated worlds. See world.ts.
 *
 *     node build/test/worlds.js PROGRAM 0 10000
 *
 * PROGRAM is the test program of internal/test/clientworld. The first world that breaks a promise tells its story, and
 * is repeated by its seed alone.
 */

/** The ttl of the sessions, and what the server gives a holder beyond it. */
const ttlMs = 6000;
const graceMs = 5000;
const keys = ["k:0", "k:1", "k:2", "k:0/part"];
const queue = "jobs";

/** How long a tool holds its keys. */
type Hold = "run" | "commit";

/** What the body of a program throws. */
class Failed extends Error {
  override name = "Failed";
}

/** The reason of the signals. */
class Stopped extends Error {
  override name = "Stopped";

  constructor(readonly at: number) {
    super("stopped");
  }
}

const template = "k:{account}";

/** The tool of a run that reads: a call of it, again, replaces what it has read before. */
class Reader {
  #read: () => Promise<unknown> = () => Promise.reject(new Error("nothing is to be read"));
  readonly #tool;

  constructor(client: AnyClient) {
    this.#tool = guarded(client, template, () => this.#read(), { hold: "commit", reads: true });
  }

  read(account: number, read: () => Promise<unknown>, call: { signal?: AbortSignal }): Promise<unknown> {
    this.#read = read;
    return this.#tool({ account }, call);
  }
}

/** What the programs of a world do, and what has to hold of it. */
class Programs {
  readonly #processes: Process[] = [];
  /** The bodies of each effect: how many ran that may have acted, and what the last one has returned. */
  readonly #effects = new Map<string, { acted: number; results: unknown[] }>();
  /** How often the handler of each task came to its end. */
  readonly #ended = new Map<string, number>();
  /** The tasks by what was submitted. */
  readonly #tasks = new Map<unknown, string>();
  #submitted = 0;
  /** The leases of the tools that are at each account. */
  readonly #inside = new Map<number, Lease[]>();
  /** What is read and written outside of the server, by its key: the number of its writes. */
  readonly #accounts = [0, 0, 0, 0];
  #isSettling = false;
  /** Whether all programs write by what they have read. */
  readonly #areRivals: boolean;
  #agents = 0;
  /** Whether nothing keeps a client from giving back at once what it has left. */
  #isCalm = true;

  constructor(readonly world: World) {
    this.#areRivals = world.looks.chance(0.3);
  }

  get #dice() {
    return this.world.dice;
  }

  // The steps of a program.

  #pause(): Promise<void> {
    return this.world.sleep(this.#dice.pick([0, 100, 1000, 3000, 3000, 8000]));
  }

  #mayFail(share = 0.1): void {
    if (this.#dice.chance(share)) throw new Failed(this.#dice.pick(["x", "取".repeat(600), "\udcff"]));
  }

  /** Returns how a step is asked for: with a wait, and perhaps with a signal that ends it. */
  #asking(...waits: number[]): { waitMs: number; signal?: AbortSignal } {
    const waitMs = this.#dice.pick(waits);
    if (this.#dice.chance(0.8)) return { waitMs };
    const stop = new AbortController();
    this.world.at(this.#dice.between(0, 4000), () => stop.abort(new Stopped(this.world.ms())));
    return { waitMs, signal: stop.signal };
  }

  /** Goes by a lease while work is done. */
  async #believing<T>(lease: Lease, work: () => Promise<T>): Promise<T> {
    this.world.beliefs.set(lease, here());
    try {
      return await work();
    } finally {
      this.world.beliefs.delete(lease);
    }
  }

  /** Holds a lease for a while, and perhaps others below it, one after another or at once. */
  async #lease(client: AnyClient, depth = 0): Promise<void> {
    const key = this.#dice.pick(keys);
    await client.withLease(key, { ...this.#asking(0, 2000, 30_000), ttlMs, graceMs }, (lease) =>
      this.#believing(lease, async () => {
        this.world.tell(`holds ${key}`);
        for (let n = this.#dice.below(3); n > 0; n--) {
          await this.#pause();
          lease.check();
        }
        if (depth < 2 && this.#dice.chance(0.3)) {
          const below = Array.from({ length: 1 + this.#dice.below(2) }, () => this.#lease(client, depth + 1));
          for (const one of await Promise.allSettled(below)) if (one.status === "rejected") throw one.reason;
        }
        this.#mayFail();
      }),
    );
    this.world.tell(`left ${key}`);
  }

  /** Holds a lease by its handle, and releases or loses that. */
  async #handle(client: AnyClient): Promise<void> {
    const key = this.#dice.pick(keys);
    const { world } = this;
    const lease = await client
      .lease(key, { ...this.#asking(0, 2000, 30_000), ttlMs, graceMs })
      .catch((error: unknown) => {
        const late = error instanceof Stopped ? world.ms() - Math.max(error.at, here().wokeMs) : 0;
        if (late > 3000) throw world.broken(`the wait for ${key} ended ${late} ms after its signal`);
        throw error;
      });
    await this.#believing(lease, () => this.#pause());
    if (this.#dice.chance(0.5)) return lease.release({ note: "取".repeat(5000) });
    this.world.tell(`loses the handle of ${key}`);
    collect(lease);
    if (lease.held || !lease.signal.aborted) throw this.world.broken("a handle that was collected is held");
  }

  /** Does something that must not happen twice. */
  async #effect(client: AnyClient, lease?: Lease): Promise<void> {
    const target = `card:${this.#dice.below(3)}`;
    const known = this.#effects.get(target) ?? { acted: 0, results: [] };
    this.#effects.set(target, known);
    const options = { ...this.#asking(0, 5000), ...(lease ? { lease } : {}) };
    const result = await client.effect({ tool: "charge", target }, () => this.#charge(target), options);
    if (!known.results.includes(JSON.stringify(result ?? null)))
      throw this.world.broken(
        `the effect on ${target} gave ${JSON.stringify(result)}, which no body has returned`,
      );
  }

  async #charge(target: string): Promise<unknown> {
    const known = this.#effects.get(target) ?? { acted: 0, results: [] };
    known.acted++;
    this.world.tell(`charges ${target}`);
    if (known.acted > 1) throw this.world.broken(`${target} is charged twice`);
    await this.#pause();
    if (this.#dice.chance(0.2)) {
      known.acted--;
      throw new NotDone(new Failed("refused by the bank"));
    }
    this.#mayFail();
    const result = this.#dice.pick<unknown>([null, undefined, 7, "取"]);
    known.results.push(JSON.stringify(result ?? null));
    return result;
  }

  /** Calls a tool that reads and one that writes what follows, and looks at what the model reads. */
  async #tools(client: AnyClient, hold: Hold = "run"): Promise<void> {
    const account = this.#areRivals ? 3 : this.#dice.pick([0, 3]); // the key of 3 is in no other step
    let known: number | undefined;
    const get = async () => {
      const read = (known = this.#accounts[account] ?? 0);
      if (this.#dice.chance(0.5)) await this.#pause();
      return read;
    };
    const put = async (lease?: Lease) => {
      lease?.check();
      const now = this.#accounts[account] ?? 0;
      if (!lease || !this.world.isHeld(lease)) throw new Failed("the account refuses the fence");
      if (now !== known)
        throw this.world.broken(`account ${account} was ${known} for this run, and is ${now}`);
      known = this.#accounts[account] = now + 1;
      this.world.tell(`writes ${known} to account ${account}`);
      if (this.#dice.chance(0.3)) await this.#pause();
      this.#mayFail(0.4);
      return "refunded";
    };
    const reader = new Reader(client);
    let hasRead = false;
    for (let n = 2 + this.#dice.below(this.#areRivals ? 5 : 3); n > 0; n--) {
      const reads: boolean = !hasRead || this.#dice.chance(this.#areRivals ? 0.4 : 0.2);
      let text: unknown;
      try {
        const free = hold === "commit" && reads ? reader : undefined;
        text = await this.#tool<unknown>(client, account, reads ? get : put, hold, free);
      } catch (error) {
        if (!(error instanceof Failed) || this.#dice.chance(0.3)) throw error;
        this.world.tell("the model reads that it has failed");
        continue; // with what it has read before
      }
      hasRead = reads ? text === known : text === "refunded";
      if (!hasRead && this.#dice.chance(0.5)) return;
      await this.#pause();
    }
  }

  /** Calls tools beside each other. */
  async #beside(client: AnyClient): Promise<void> {
    const call = () =>
      this.#protected(async () => void (await this.#tool(client, this.#dice.below(2), async () => "seen")));
    await Promise.all([call(), call()]);
  }

  /** Calls a tool. One that only reads has no lease with hold commit. */
  async #tool<R>(
    client: AnyClient,
    account: number,
    act: (lease?: Lease) => Promise<R>,
    hold: Hold = "run",
    reader?: Reader,
  ): Promise<unknown> {
    const { world } = this;
    let hasBegun = false;
    let returned: R | undefined;
    let isLost = false;
    const body = async (lease: Lease) => {
      hasBegun = true;
      const others = [...(this.#inside.get(account) ?? [])];
      if (world.isHeld(lease) && others.some((one) => world.isHeld(one)))
        throw world.broken(`two tools are at account ${account}`);
      this.#inside.set(account, [...others, lease]);
      try {
        await this.#pause();
        if (this.#dice.chance(0.2)) await this.#lease(client, 1);
        this.#mayFail();
        return (returned = await act(lease));
      } finally {
        isLost = lease.signal.aborted;
        this.#inside.set(
          account,
          (this.#inside.get(account) ?? []).filter((one) => one !== lease),
        );
      }
    };
    const { signal, ...options } = this.#asking(0, 10_000);
    const free = async () => {
      hasBegun = true;
      if (this.#dice.chance(0.5)) await this.#pause();
      if (this.#dice.chance(0.2)) await this.#lease(client, 1);
      this.#mayFail(0.4);
      return (returned = await act());
    };
    const call = guarded<{ account: number }, R>(
      client,
      template,
      (_args, lease) => this.#believing(lease, () => body(lease)),
      { ...options, hold, ttlMs, graceMs },
    );
    const passed = signal ? { signal } : {};
    const text = await (reader ? reader.read(account, free, passed) : call({ account }, passed));
    world.tell(`the model reads ${JSON.stringify(text)}`);
    if (text === returned) {
      if (isLost) throw world.broken(`the lease was lost, and the model reads nothing of it`);
      return text;
    }
    if (String(text).startsWith("Not done") === hasBegun)
      throw world.broken(`the tool has${hasBegun ? "" : " not"} begun, and the model reads ${String(text)}`);
    if (returned !== undefined && !String(text).includes(String(returned)))
      throw world.broken(`the tool has returned ${String(returned)}, and the model reads ${String(text)}`);
    return text;
  }

  async #submit(client: AnyClient): Promise<void> {
    const claims = [{ key: this.#dice.pick(keys) }];
    const { id } = await client.submit({ queue, payload: ++this.#submitted, claims });
    if (this.#dice.chance(0.2)) await client.finished(id, { waitMs: 5000 });
  }

  /** Works on a task. */
  async #work(client: AnyClient, { task, lease }: Job): Promise<{ result: unknown }> {
    this.world.tell(`begins ${task.id}`);
    const known = this.#tasks.get(task.payload) ?? task.id;
    if (known !== task.id) throw this.world.broken(`${known} and ${task.id} are of one submission`);
    this.#tasks.set(task.payload, task.id);
    await this.#believing(lease, async () => {
      await this.#pause();
      if (this.#dice.chance(0.3))
        await this.#dice.pick([() => this.#lease(client, 1), () => this.#tools(client)])();
      if (this.#dice.chance(0.2)) await this.#effect(client, lease);
      this.#mayFail();
    });
    const times = (this.#ended.get(task.id) ?? 0) + 1;
    if (times > 1 && this.#isCalm) throw this.world.broken(`${task.id} is done ${times} times`);
    this.#ended.set(task.id, times);
    return {
      result: this.#dice.pick<unknown>([null, { a: 1 }, NaN, "x".repeat(70_000), () => {}, "\ud800"]),
    };
  }

  // The processes.

  /** Carries out a step as a program does that goes on after each error that it knows. */
  async #protected(step: () => Promise<void>): Promise<void> {
    try {
      await step();
    } catch (error) {
      const isKnown = error instanceof InterlockError || error instanceof Failed || error instanceof Stopped;
      if (!isKnown) throw error;
      this.world.tell(`${error.name}: ${error.message.slice(0, 100)}`);
    }
  }

  async #program(client: AnyClient): Promise<void> {
    const turn = (step: () => Promise<void>) => () => client.turn(step);
    const decide = turn(() => this.#tools(client, "commit"));
    const steps = [
      () => this.#lease(client),
      () => this.#lease(client),
      () => this.#handle(client),
      () => this.#effect(client),
      turn(() => this.#tools(client)),
      decide,
      decide,
      turn(() => this.#beside(client)),
      () => this.#submit(client),
    ];
    for (let n = 1 + this.#dice.below(4); n > 0; n--) {
      await this.#protected(this.#areRivals ? decide : this.#dice.pick(steps));
      await this.#pause();
    }
  }

  /** Starts a process with its programs. */
  #begin(isWorker: boolean): Process {
    const agent = `agent-${++this.#agents}`;
    const one = new Process(this.world, agent);
    const retryForMs = this.#dice.pick([1000, 10_000]);
    const client = one.client({ agent, sessionTTLMs: ttlMs, retryForMs });
    this.#processes.push(one);
    for (let n = 1 + this.#dice.below(2); n > 0; n--) one.start(`${n}`, () => this.#program(client));
    const stopping = new AbortController();
    const { signal } = stopping;
    const options = { queue, signal, concurrency: 1 + this.#dice.below(2) };
    if (isWorker)
      one.start("worker", async () => {
        while (!signal.aborted)
          await this.#protected(() => client.work(options, (job) => this.#work(client, job)));
      });
    this.#stopping.push(() => one.start("stopper", async () => stopping.abort(new Stopped(this.world.ms()))));
    this.#closing.push(() => one.start("closer", () => client.close()));
    return one;
  }

  /** End the workers, and the clients, of all processes. */
  readonly #stopping: (() => void)[] = [];
  readonly #closing: (() => void)[] = [];

  async live(): Promise<void> {
    const { world } = this;
    const dice = this.#dice;
    const limits = { max_attempts: 3, backoff_ms: 100, ttl_ms: ttlMs, grace_ms: graceMs };
    await world.ask("PUT", `/v1/queues/${queue}`, limits);
    world.faults = dice.pick([0, 0.05, 0.2]);
    this.#isCalm = world.faults === 0;
    for (let n = 0; n < 2; n++) this.#begin(n === 0 && dice.chance(0.6));
    for (let n = dice.below(3); n > 0; n--) {
      const [from, ms] = [dice.between(0, 20_000), dice.pick([1000, 4000, 12_000])];
      this.#trouble(from, () => (world.isDown = true));
      this.#trouble(from + ms, () => (world.isDown = false));
    }
    if (dice.chance(0.3)) this.#trouble(dice.between(0, 20_000), () => world.restart());
    if (dice.chance(0.3))
      this.#trouble(dice.between(0, 20_000), () => {
        const leases = [...world.beliefs.keys()];
        return leases.length > 0 && world.revoke(dice.pick(leases));
      });
    for (let n = dice.below(3); n > 0; n--)
      this.#trouble(dice.between(0, 20_000), () => this.#disturb(dice.pick(this.#processes)));
    const isAtWork = (one: Process) =>
      one.standsUntil > world.now || [...one.programs].some((name) => name !== "worker");
    await world.run("the programs", 1_200_000, () => !this.#processes.some(isAtWork));
    await this.#settle();
  }

  #trouble(ms: number, act: () => unknown): void {
    this.world.at(ms, () => {
      if (this.#isSettling) return;
      this.#isCalm = false;
      return act();
    });
  }

  /** Has a process stand still, sleep or end. Another one takes the place of one that has ended. */
  #disturb(one: Process): void {
    if (!one.isRunning) return;
    const dice = this.#dice;
    const kind = dice.pick(["stand", "sleep", "end"]);
    if (kind === "stand") one.stand(dice.pick([300, 3000, 15_000]));
    else if (kind === "sleep") one.sleep(dice.pick([2000, 15_000, 600_000]));
    else {
      const isWorker = one.programs.has("worker");
      one.end();
      this.#begin(isWorker);
    }
  }

  /** Once the network is good, everything comes to its end. */
  async #settle(): Promise<void> {
    const { world } = this;
    this.#isSettling = true;
    world.faults = 0;
    world.isDown = false;
    world.tell("the network is good");
    const isWorked = this.#processes.some((one) => one.programs.has("worker"));
    if (isWorked)
      await this.#until("the tasks", 1_200_000, async () => (await this.#list(...unsettled)).length === 0);
    for (const one of this.#stopping) one();
    await world.run("the workers", 200_000, () => !this.#processes.some((one) => one.programs.size > 0));
    world.tell("all blocks are left");
    await this.#pass(this.#isCalm ? 3000 : 2 * ttlMs + graceMs);
    await this.#expectNone("leases", "/v1/leases", "all blocks are left");
    if (!this.#isCalm) await this.#pass(30_000); // a request that was lost has to be given up first
    for (const [what, target] of [
      ["tickets", "/v1/tickets"],
      ["effects", "/v1/effects?state=claimed"],
      ["tasks", "/v1/tasks?state=running"],
    ] as const)
      await this.#expectNone(what, target, "all blocks are left");
    for (const { id } of await this.#list("done"))
      if (!this.#ended.has(id))
        throw world.broken(`${id} is done, and its handler has never come to its end`);
    for (const one of this.#closing) one();
    await world.run("close", 100_000, () => !this.#processes.some((one) => one.programs.size > 0));
    await this.#expectNone("sessions", "/v1/sessions", "all clients are closed");
  }

  async #expectNone(what: string, target: string, after: string): Promise<void> {
    const { data } = await this.world.ask<Record<string, unknown[]>>("GET", target);
    if (data[what]?.length !== 0)
      throw this.world.broken(`${after}, and the server has ${JSON.stringify(data)}`);
  }

  async #list(...states: readonly string[]): Promise<{ id: string }[]> {
    const all: { id: string }[] = [];
    for (const state of states)
      all.push(
        ...(await this.world.ask<{ tasks: { id: string }[] }>("GET", `/v1/tasks?state=${state}`)).data.tasks,
      );
    return all;
  }

  async #pass(ms: number): Promise<void> {
    let isOver = false;
    this.world.at(ms, () => (isOver = true));
    await this.world.run("time", 2 * ms, () => isOver);
  }

  /** Asks the server once a second whether something has come to its end. */
  async #until(what: string, limitMs: number, isOver: () => Promise<boolean>): Promise<void> {
    for (const end = this.world.ms() + limitMs; !(await isOver()); await this.#pass(1000))
      if (this.world.ms() > end) throw this.world.broken(`no end after ${limitMs} ms: ${what}`);
  }
}

const unsettled = ["waiting", "scheduled", "running"];

const live = (pipe: Pipe, seed: number) => World.live(pipe, seed, (world) => new Programs(world).live());

const [program = "", first = "0", end = String(Number(first) + 1)] = process.argv.slice(2);
const pipe = new Pipe(program);
for (let seed = Number(first); seed < Number(end); seed++) {
  const { story } = await live(pipe, seed);
  if (seed % 100 === 0) deepEqual((await live(pipe, seed)).story, story, "a seed has two worlds");
}
await pipe.close();
