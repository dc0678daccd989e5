import { words } from "./text.js";
import type { Heartbeat, LeaseID, SessionID } from "./types.js";

/** What the thread needs to speak with the servers. */
export interface Contact {
  urls: readonly string[];
  credential: string | undefined;
  namespace: string | undefined;
  /** How long it may keep leases while it hears nothing of the event loop. */
  standbyMs: number;
}

/** What the event loop tells the thread. */
export interface Told {
  /** The clock of the client. */
  at: number;
  /** When the last heartbeat that renewed all leases was sent, by that clock. */
  beatAt: number;
  /** The shortest ttl. */
  ttlMs: number;
  session: SessionID;
  /** A lease that the client knows of from now on. */
  add?: LeaseID;
  /** A lease that it does not know of any more. */
  remove?: LeaseID;
}

/** What the thread tells of a heartbeat. */
export interface Kept {
  /** When it was sent, by the clock of the client, or earlier. */
  sentAt: number;
  session: SessionID;
  /** The leases that it has renewed. */
  leases: readonly LeaseID[];
  answer: Heartbeat;
}

/** What is used of node:worker_threads. */
interface Threads {
  Worker: new (file: string, options: object) => Worker;
  MessageChannel: new () => { port1: Port; port2: Port };
  receiveMessageOnPort(port: Port): { message: Kept } | undefined;
}

interface Worker {
  on(event: "error", listener: (error: unknown) => void): this;
  terminate(): unknown;
  unref(): void;
}

/** An end of a channel. */
export interface Port {
  on(event: "message", listener: (message: unknown) => void): this;
  postMessage(message: unknown): void;
  unref(): void;
  close(): void;
}

declare const __filename: string | undefined;

/**
 * Keeps the leases of a client in a thread of its own while the event loop stands still. The thread hears of each
 * heartbeat. When half of the shortest ttl has passed since the last one, it sends heartbeats itself.
 */
export class Standby {
  readonly #threads: Threads;
  readonly #port: Port;
  readonly #worker: Worker;

  /** kept learns of each heartbeat of the thread, failed that there is no thread. */
  constructor(
    contact: Contact,
    readonly kept: (kept: Kept) => void,
    failed: (why: string) => void,
  ) {
    this.#threads = threads();
    const { Worker, MessageChannel } = this.#threads;
    const { port1, port2 } = new MessageChannel();
    this.#port = port1.on("message", (message) => kept(message as Kept));
    const file = String(__filename).replace(/standby(\.\w+)$/, "standby-thread$1");
    this.#worker = new Worker(file, { workerData: { ...contact, port: port2 }, transferList: [port2] });
    this.#worker.on("error", (error) => failed(words(error)));
    this.#worker.unref();
    port1.unref();
  }

  /** Throws a TypeError if the runtime has no threads. */
  static check(): void {
    threads();
  }

  tell(told: Told): void {
    this.#port.postMessage(told);
  }

  /** Takes over what the thread has told meanwhile: the event loop may not have run. */
  sync(): void {
    let next: { message: Kept } | undefined;
    while ((next = this.#threads.receiveMessageOnPort(this.#port))) this.kept(next.message);
  }

  close(): void {
    this.#port.close();
    void this.#worker.terminate();
  }
}

function threads(): Threads {
  const { process } = globalThis as { process?: { getBuiltinModule?(name: string): unknown } };
  const found = process?.getBuiltinModule?.("node:worker_threads");
  if (!found || typeof __filename === "undefined")
    throw new TypeError(
      "standbyMs needs the threads of Node 20.16 or later, of Bun or of Deno, and no bundler",
    );
  return found as Threads;
}
