import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client, type ClientOptions } from "../src/index.js";

/** A server of its own for the tests of a file. */
export class Server implements AsyncDisposable {
  readonly #folder: string;
  #process: ChildProcess;
  url: string;
  /** The address of the binary's own clients. */
  readonly grpc: string;
  readonly #clients: Client[] = [];

  private constructor(folder: string, process: ChildProcess, url: string, grpc: string) {
    this.#folder = folder;
    this.#process = process;
    this.url = url;
    this.grpc = grpc;
  }

  static async start(): Promise<Server> {
    const folder = await mkdtemp(join(tmpdir(), "interlock-"));
    const { child, http, grpc } = await launch(folder, "127.0.0.1:0");
    return new Server(folder, child, `http://${http}`, grpc);
  }

  /** Returns a client that is closed with the server. */
  client(agent: string, options: ClientOptions = {}): Client {
    const client = new Client({ url: this.url, agent, ...options });
    this.#clients.push(client);
    return client;
  }

  /** Kills the server. */
  async kill(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = once(this.#process, "exit");
    this.#process.kill("SIGKILL");
    await ended;
  }

  /** Stops the server in the middle of what it does, or lets it go on. */
  signal(name: "SIGSTOP" | "SIGCONT"): void {
    this.#process.kill(name);
  }

  /** Starts the server again over its journal, at the same address. */
  async restart(): Promise<void> {
    await this.kill();
    const { child } = await launch(this.#folder, new URL(this.url).host);
    this.#process = child;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#clients.map((c) => c.close()));
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

interface Launched {
  child: ChildProcess;
  http: string;
  grpc: string;
}

async function launch(folder: string, http: string): Promise<Launched> {
  const binary = process.env["INTERLOCK_BINARY"];
  if (!binary)
    throw new Error("INTERLOCK_BINARY is not set: run the Go test in internal/test/typescripttest");
  const child = spawn(
    binary,
    ["serve", "--data-dir", join(folder, "data"), "--http", http, "--grpc", "127.0.0.1:0"],
    {
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  let log = "";
  child.stderr.on("data", (text) => (log += String(text)));
  for await (const line of createInterface(child.stdout)) {
    const ready = /^ready http=(\S+)(?: grpc=(\S+))?/.exec(line);
    if (ready?.[1]) return { child, http: ready[1], grpc: ready[2] ?? "" };
  }
  throw new Error(`the server did not start:\n${log}`);
}

/** Resolves when the signal aborts, with its reason. */
export function aborted(signal: AbortSignal): Promise<unknown> {
  if (signal.aborted) return Promise.resolve(signal.reason);
  return new Promise((resolve) =>
    signal.addEventListener("abort", () => resolve(signal.reason), { once: true }),
  );
}

/** Resolves when a key has so many holders and waiters, or when over returns true. */
export async function until(
  client: Client,
  key: string,
  holders: number,
  waiters: number,
  over: () => boolean = () => false,
): Promise<void> {
  while (!over()) {
    const view = await client.look(key);
    if (view.holders.length === holders && view.length === waiters) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Returns what a promise rejects with. */
export async function failure(work: PromiseLike<unknown>): Promise<unknown> {
  try {
    await work;
  } catch (error) {
    return error;
  }
  throw new Error("it should have failed");
}

/** Has a client send a heartbeat now. A session so short that one comes soon would end on a busy machine. */
export function beat(client: Client): void {
  client.keeper.expect(1)();
}
