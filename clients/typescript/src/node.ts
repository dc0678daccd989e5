import type { Flow, Outgoing, Sender, Whole } from "./sender.js";

/** What is used of node:http and node:https. */
interface Wire {
  Agent: new (options: object) => Agent;
  globalAgent: { options?: { proxyEnv?: unknown } };
  request(url: URL, options: object): ClientRequest;
}

interface Agent {
  destroy(): void;
}

interface ClientRequest {
  on(event: "response", listener: (answer: IncomingMessage) => void): this;
  on(event: "error", listener: (error: Error) => void): this;
  on(event: "upgrade", listener: (answer: IncomingMessage, socket: { destroy(): void }) => void): this;
  on(event: "close", listener: () => void): this;
  end(body?: Uint8Array): void;
  destroy(reason?: Error): void;
}

interface IncomingMessage extends AsyncIterable<Uint8Array> {
  readonly statusCode: number;
  readonly rawHeaders: readonly string[];
  readonly complete: boolean;
  on(event: "data", listener: (chunk: Uint8Array) => void): this;
  on(event: "error", listener: (error: Error) => void): this;
  on(event: "end" | "close", listener: () => void): this;
}

/** What is used of a runtime. */
interface Runtime {
  process?: { getBuiltinModule?(name: string): unknown };
  navigator?: { userAgent?: string };
}

/**
 * The settings of connections. The number of connections has no bound: a request that waits in line
 * keeps one, and the release that it waits for must not wait for a connection. Those that are not in
 * use do not keep the process alive.
 */
const connections = { keepAlive: true, noDelay: true, maxFreeSockets: 256, timeout: 4000 };

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * Sends requests by the HTTP of Node, which costs less than half of what fetch costs there. A client
 * has connections of its own.
 */
export class NodeSender implements Sender {
  readonly #load: (name: string) => Wire;
  readonly #wires = new Map<string, { wire: Wire; agent: Agent }>();

  private constructor(load: (name: string) => Wire) {
    this.#load = load;
  }

  /**
   * Returns a sender, or undefined if the program does not run on Node. Others have its modules too, and
   * build them on their fetch. The modules are not imported, so that programs are bundled for browsers.
   */
  static find(runtime = globalThis as Runtime): NodeSender | undefined {
    const { process, navigator } = runtime;
    if (typeof process?.getBuiltinModule !== "function") return undefined;
    if (navigator?.userAgent !== undefined && !navigator.userAgent.startsWith("Node.js/")) return undefined;
    return new NodeSender((name) => process.getBuiltinModule?.(name) as Wire);
  }

  send(request: Outgoing): Promise<Whole> {
    return new Promise((resolve, reject) => {
      this.#request(request, reject, (answer) => {
        const chunks: Uint8Array[] = [];
        const status = answer.statusCode;
        const headers = headersOf(answer);
        answer
          .on("data", (chunk) => chunks.push(chunk))
          .on("error", reject)
          .on("end", () => resolve({ status, headers, body: joined(chunks) }))
          .on("close", () => {
            if (!answer.complete) reject(new Error("the connection was closed within the answer"));
          });
      });
    });
  }

  open(request: Outgoing): Promise<Flow> {
    return new Promise((resolve, reject) => {
      this.#request(request, reject, (answer) => {
        answer.on("error", () => {}); // the reader of the chunks gets it
        resolve({ status: answer.statusCode, headers: headersOf(answer), chunks: answer });
      });
    });
  }

  /** Sends a request. It calls answered when its answer begins, and failed when that fails to come. */
  #request(
    { method, url, headers, body, signal }: Outgoing,
    failed: (error: unknown) => void,
    answered: (answer: IncomingMessage) => void,
  ): void {
    signal.throwIfAborted();
    const target = new URL(url);
    const { wire, agent } = this.#wire(target.protocol);
    if (body) headers = { ...headers, "content-length": String(body.length) };
    const request = wire.request(target, { method, headers, agent });
    const abort = () => request.destroy(new Error("the request was given up", { cause: signal.reason }));
    signal.addEventListener("abort", abort, { once: true });
    request
      .on("error", failed)
      .on("close", () => signal.removeEventListener("abort", abort))
      .on("upgrade", (_answer, socket) => {
        failed(new Error("the protocol was changed"));
        socket.destroy();
      })
      .on("response", (answer) => {
        try {
          if (redirects.has(answer.statusCode)) throw new Error(`status ${answer.statusCode} is a redirect`);
          answered(answer);
        } catch (error) {
          failed(error);
          request.destroy();
        }
      })
      .end(body);
  }

  #wire(protocol: string): { wire: Wire; agent: Agent } {
    let known = this.#wires.get(protocol);
    if (!known) {
      const wire = this.#load(protocol === "https:" ? "node:https" : "node:http");
      const { proxyEnv } = wire.globalAgent.options ?? {}; // set where Node takes its proxies from the environment
      known = { wire, agent: new wire.Agent({ ...connections, proxyEnv }) };
      this.#wires.set(protocol, known);
    }
    return known;
  }

  close(): void {
    for (const { agent } of this.#wires.values()) agent.destroy();
  }
}

function headersOf(answer: IncomingMessage): Headers {
  const headers = new Headers();
  const { rawHeaders } = answer;
  for (let n = 0; n + 1 < rawHeaders.length; n += 2)
    headers.append(rawHeaders[n] ?? "", rawHeaders[n + 1] ?? "");
  return headers;
}

/** Returns the chunks in one piece, which shares no memory with other answers. */
function joined(chunks: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}
