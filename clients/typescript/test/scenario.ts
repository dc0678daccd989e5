/** Carries out a scenario of clients/scenarios, or with - the steps of standard input: see the README there. */
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { isDeepStrictEqual } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import {
  Client,
  InterlockError,
  Lease,
  LeaseLost,
  OutcomeUnknown,
  Refused,
  Unreachable,
  WaitTimeout,
  type LeaseOptions,
  type api,
} from "../src/index.js";

type Value = Record<string, unknown>;

interface Step {
  id?: string;
  title?: string;
  client?: string;
  do?: string;
  with?: Value;
  as?: string;
  start?: string;
  join?: string;
  cancel?: string;
  control?: Value;
  expect?: Value;
  error?: Value;
}

interface Scenario {
  title: string;
  dead_first?: boolean;
  hollow_first?: boolean;
  clients: Record<string, { agent?: string; session_ttl_ms?: number; retry_for_ms?: number }>;
  steps: Step[];
}

const known: ReadonlySet<string> = new Set([
  "title",
  "client",
  "do",
  "with",
  "as",
  "start",
  "join",
  "cancel",
  "control",
  "expect",
  "error",
]);

/** An operation that was begun. */
interface Operation {
  as: string | undefined;
  end: Promise<{ result: Value } | { failure: unknown }>;
  controller: AbortController;
}

class Runner {
  readonly #clients = new Map<string, Client>();
  readonly #results = new Map<string, Value>();
  readonly #begun = new Map<string, Operation>();

  constructor(readonly scenario: Pick<Scenario, "clients" | "steps">) {}

  async run(): Promise<void> {
    try {
      for (const [at, step] of this.scenario.steps.entries()) {
        await this.#step(step).catch((cause: unknown) => {
          throw new Error(`step ${at + 1}: ${cause instanceof Error ? cause.message : String(cause)}`, {
            cause,
          });
        });
      }
    } finally {
      await this.#end();
    }
  }

  async #end(): Promise<void> {
    for (const o of this.#begun.values()) {
      o.controller.abort();
      await o.end;
    }
    await Promise.all([...this.#clients.values()].map((c) => c.close()));
  }

  /** Carries out the steps that come, each at once, and writes the result of each when it is there. */
  async serve(): Promise<void> {
    try {
      for await (const line of createInterface(process.stdin)) {
        const step = JSON.parse(line) as Step & Partial<Scenario>;
        const { id = "" } = step;
        if (step.clients) this.scenario.clients = step.clients;
        else if (step.cancel !== undefined) this.#begun.get(step.cancel)?.controller.abort();
        else {
          const operation = this.#begin(step);
          this.#begun.set(id, operation);
          void operation.end.then((end) => {
            this.#begun.delete(id);
            if ("result" in end && step.as !== undefined) this.#results.set(step.as, end.result);
            const answer =
              "result" in end
                ? { result: { ...end.result, lease: undefined } }
                : { error: describe(end.failure) };
            console.log(JSON.stringify({ id, ...answer }));
          });
        }
      }
    } finally {
      await this.#end();
    }
  }

  #begin(step: Step): Operation {
    const controller = new AbortController();
    const work = this.#do(step, this.#resolve(step.with ?? {}) as Value, controller.signal);
    const end = work.then(
      (result) => ({ result }),
      (failure: unknown) => ({ failure }),
    );
    return { as: step.as, end, controller };
  }

  async #step(step: Step): Promise<void> {
    for (const member of Object.keys(step)) {
      if (!known.has(member)) throw new Error(`a step with ${member} is unknown`);
    }
    if (step.control) {
      const body = JSON.stringify(step.control);
      const answer = await fetch(process.env["INTERLOCK_CONTROL"] ?? "", { method: "POST", body });
      if (!answer.ok) throw new Error(await answer.text());
      return;
    }
    const name = step.join ?? step.cancel;
    if (name !== undefined) {
      const begun = this.#begun.get(name);
      if (!begun) throw new Error(`nothing was begun as ${name}`);
      if (step.cancel !== undefined) begun.controller.abort();
      return this.#judge(step, begun);
    }
    const operation = this.#begin(step);
    if (step.start !== undefined) this.#begun.set(step.start, operation);
    else await this.#judge(step, operation);
  }

  async #judge(step: Step, operation: Operation): Promise<void> {
    const end = await operation.end;
    if (step.error) {
      if ("result" in end) throw new Error(`it succeeds, and should fail with ${JSON.stringify(step.error)}`);
      match("error", this.#resolve(step.error), describe(end.failure));
      return;
    }
    if ("failure" in end) throw end.failure;
    if (operation.as !== undefined) this.#results.set(operation.as, end.result);
    if (step.expect) match("result", this.#resolve(step.expect), end.result);
  }

  #client(name: string): Client {
    let client = this.#clients.get(name);
    if (!client) {
      const settings = this.scenario.clients[name];
      if (!settings) throw new Error(`there is no client ${name}`);
      client = new Client({
        ...(settings.agent === undefined ? {} : { agent: settings.agent }),
        ...(settings.session_ttl_ms === undefined ? {} : { sessionTTLMs: settings.session_ttl_ms }),
        ...(settings.retry_for_ms === undefined ? {} : { retryForMs: settings.retry_for_ms }),
      });
      this.#clients.set(name, client);
    }
    return client;
  }

  /** Replaces the references in a value. */
  #resolve(value: unknown): unknown {
    if (typeof value === "string" && value.startsWith("$")) {
      const [name = "", member = "lease"] = value.slice(1).split(".");
      const found = this.#results.get(name)?.[member];
      if (found === undefined) throw new Error(`there is no result ${value}`);
      return found;
    }
    if (Array.isArray(value)) return value.map((v) => this.#resolve(v));
    if (typeof value === "object" && value !== null && !(value instanceof Lease)) {
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, this.#resolve(v)]));
    }
    return value;
  }

  async #do(step: Step, args: Value, signal: AbortSignal): Promise<Value> {
    const name = step.client ?? "";
    const client = this.#client(name);
    const lease = args["lease"] as Lease;
    switch (step.do) {
      case "acquire":
        return acquire(client, args, signal);
      case "release":
        await lease.release(pick(args, { outcome: "outcome", note: "note" }));
        return {};
      case "check":
        lease.check();
        return {};
      case "lost":
        await lost(lease, args["within_ms"] as number);
        return { held: lease.held };
      case "renew":
        await lease.renew(pick(args, { ttl_ms: "ttlMs", progress: "progress" }));
        return {};
      case "check_fence":
        await client.checkFence(args["key"] as string, args["fence"] as string, { signal });
        return {};
      case "read": {
        const { absent = false, version, value } = await client.read(args["key"] as string, { signal });
        return { absent, version, value };
      }
      case "commit":
        return { version: (await client.commit({ ...args, signal })).version };
      case "why":
        return { text: (await client.why(args["key"] as string, { signal })).text };
      case "fail":
        await fail(lease);
        return {};
      case "drop":
        this.#results.delete(args["name"] as string);
        collect();
        return {};
      case "close":
        this.#clients.delete(name);
        await client.close();
        return {};
      default:
        throw new Error(`there is no operation ${step.do}`);
    }
  }
}

/** Ends a body under a lease by an error. */
async function fail(lease: Lease): Promise<void> {
  const failure = new Error("the body fails");
  const body = async () => {
    await using _held = lease;
    throw failure;
  };
  await body().catch((error: unknown) => {
    if (error !== failure && (error as { suppressed?: unknown }).suppressed !== failure) throw error;
  });
}

/** Has what nothing refers to any more be found, as soon as the step has ended. */
function collect(): void {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as () => void;
  setTimeout(gc, 1);
}

function pick(args: Value, names: Record<string, string>): Value {
  const found: Value = {};
  for (const [from, to] of Object.entries(names)) {
    if (args[from] !== undefined) found[to] = args[from];
  }
  return found;
}

async function acquire(client: Client, args: Value, signal: AbortSignal): Promise<Value> {
  const names = {
    mode: "mode",
    permits: "permits",
    any: "any",
    purpose: "purpose",
    wait_ms: "waitMs",
    ttl_ms: "ttlMs",
    grace_ms: "graceMs",
    max_hold_ms: "maxHoldMs",
    priority: "priority",
    flow: "flow",
  };
  const options = { ...pick(args, names), signal } as LeaseOptions;
  const lease = await client.lease(args["keys"] as string[], options);
  const notes = lease.notes.map(({ agent, text }) => ({ agent, text }));
  return { lease, keys: lease.keys, fence: lease.fence, changed: lease.changed, notes };
}

function lost(lease: Lease, withinMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    if (lease.signal.aborted) return resolve();
    const timer = setTimeout(
      () => reject(new Error(`the lease is still held after ${withinMs} ms`)),
      withinMs,
    );
    lease.signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** The members of an error. */
function describe(error: unknown): Value {
  let kind = "";
  if (error instanceof LeaseLost) kind = "lost";
  else if (error instanceof WaitTimeout) kind = "timeout";
  else if (error instanceof Unreachable) kind = "unreachable";
  else if (error instanceof OutcomeUnknown) kind = "unknown";
  else if (error instanceof Refused) kind = "refused";
  else if (error instanceof DOMException && error.name === "AbortError") kind = "cancelled";
  if (!(error instanceof InterlockError)) return { kind, message: String(error) };
  const holders = (error.problem?.holders ?? []).map((h: api.Holder) => ({
    agent: h.agent,
    purpose: h.purpose,
  }));
  return { kind, code: error.code, key: error.key, holders, message: error.message };
}

/** Compares a value with what is expected, and throws the first difference. */
function match(where: string, want: unknown, got: unknown): void {
  const differs = () =>
    new Error(`${where} is ${JSON.stringify(got)}, and should be ${JSON.stringify(want)}`);
  if (Array.isArray(want)) {
    if (!Array.isArray(got) || got.length !== want.length) throw differs();
    want.forEach((v, i) => match(`${where}[${i}]`, v, got[i]));
  } else if (typeof want === "object" && want !== null) {
    if ("above" in want) {
      if (!(BigInt(String(got)) > BigInt(String(want.above)))) throw differs();
      return;
    }
    if (typeof got !== "object" || got === null) throw differs();
    for (const [name, v] of Object.entries(want)) match(`${where}.${name}`, v, (got as Value)[name]);
  } else if (typeof want === "string") {
    const pattern = want
      .split("*")
      .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
      .join(".*");
    if (typeof got !== "string" || !new RegExp(`^${pattern}$`, "s").test(got)) throw differs();
  } else if (!isDeepStrictEqual(want, got)) {
    throw differs();
  }
}

const file = process.argv[2] ?? "";
if (file === "-") await new Runner({ clients: {}, steps: [] }).serve();
else await new Runner(JSON.parse(await readFile(file, "utf8")) as Scenario).run();
