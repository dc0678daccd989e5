import { Proxies, ProxyError, type Proxy } from "./proxy.js";
import type { Flow, Outgoing, Sender, Whole } from "./sender.js";

/** What is used of node:http and node:https. */
interface Wire {
  Agent: new (options: object) => Agent;
  request(url: URL, options: object): ClientRequest;
}

interface Agent {
  destroy(): void;
  createConnection(options: object, done?: Connected): unknown;
}

type Connected = (error: Error | null, socket?: unknown) => void;

interface ClientRequest {
  on(event: "response", listener: (answer: IncomingMessage) => void): this;
  on(event: "error", listener: (error: Error) => void): this;
  on(event: "upgrade", listener: (answer: IncomingMessage, socket: { destroy(): void }) => void): this;
  on(event: "connect", listener: (answer: IncomingMessage, socket: { destroy(): void }) => void): this;
  on(event: "close" | "timeout", listener: () => void): this;
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
  process?: { env?: Record<string, string | undefined>; getBuiltinModule?(name: string): unknown };
  navigator?: { userAgent?: string };
}

/**
 * The settings of connections. The number of connections has no bound: a request that waits in line
 * keeps one, and the release that it waits for must not wait for a connection. Those that are not in
 * use do not keep the process alive.
 */
const connections = { keepAlive: true, noDelay: true, maxFreeSockets: 256, timeout: 4000 };

/** How long a proxy may take to connect. */
const tunnelMs = 10_000;

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * Sends requests by the HTTP of Node, which costs less than half of what fetch costs there. A client
 * has connections of its own.
 */
export class NodeSender implements Sender {
  readonly #load: (name: string) => Wire;
  readonly #proxies: Proxies;
  readonly #routes = new Map<string, Route>();

  private constructor(load: (name: string) => Wire, env: Record<string, string | undefined>) {
    this.#load = load;
    this.#proxies = new Proxies(env);
  }

  /**
   * Returns a sender, or undefined if the program does not run on Node. Others have its modules too, and
   * build them on their fetch. The modules are not imported, so that programs are bundled for browsers.
   */
  static find(runtime = globalThis as Runtime): NodeSender | undefined {
    const { process, navigator } = runtime;
    if (typeof process?.getBuiltinModule !== "function") return undefined;
    if (navigator?.userAgent !== undefined && !navigator.userAgent.startsWith("Node.js/")) return undefined;
    return new NodeSender((name) => process.getBuiltinModule?.(name) as Wire, process.env ?? {});
  }

  /** Throws a TypeError if the environment names what is no proxy for an address. */
  check(url: string): void {
    this.#proxies.for(new URL(url));
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
    const { wire, agent, proxy } = this.#route(target);
    headers = { ...headers };
    if (body) headers["content-length"] = String(body.length);
    if (proxy) {
      headers["host"] = target.host;
      if (proxy.authorization) headers["proxy-authorization"] = proxy.authorization;
    }
    const options = { method, headers, agent, ...(proxy && { path: target.href }) };
    const request = wire.request(proxy?.url ?? target, options);
    const abort = () => request.destroy(new Error("the request was given up", { cause: signal.reason }));
    signal.addEventListener("abort", abort, { once: true });
    request
      .on("error", (error) =>
        failed(proxy && isOfConnection(error) ? ProxyError.unreachable(proxy, error) : error),
      )
      .on("close", () => signal.removeEventListener("abort", abort))
      .on("upgrade", (_answer, socket) => {
        failed(new Error("the protocol was changed"));
        socket.destroy();
      })
      .on("response", (answer) => {
        try {
          if (proxy && answer.statusCode === 407) throw ProxyError.refused(proxy, target, 407);
          if (redirects.has(answer.statusCode)) throw new Error(`status ${answer.statusCode} is a redirect`);
          answered(answer);
        } catch (error) {
          failed(error);
          request.destroy();
        }
      })
      .end(body);
  }

  /** Returns how an address is reached. A proxy gets requests of http: as a whole, and carries the bytes of https:. */
  #route(target: URL): Route {
    let known = this.#routes.get(target.origin);
    if (known) return known;
    const proxy = this.#proxies.for(target);
    const isTunnel = proxy && target.protocol === "https:";
    const wire = this.#wire(isTunnel ? target : (proxy?.url ?? target));
    const agent = new wire.Agent(connections);
    if (isTunnel) {
      const secure = agent.createConnection.bind(agent);
      agent.createConnection = (options, done) => {
        const connected: Connected = (error, socket) => {
          if (error) done?.(error);
          else done?.(null, secure({ ...options, socket }));
        };
        this.#connect(proxy, target, connected);
      };
    }
    known = { wire, agent, proxy: isTunnel ? undefined : proxy };
    this.#routes.set(target.origin, known);
    return known;
  }

  /** Has a proxy connect to an address. */
  #connect(proxy: Proxy, target: URL, done: Connected): void {
    const path = `${target.hostname}:${target.port || 443}`;
    const headers: Record<string, string> = { host: path };
    if (proxy.authorization) headers["proxy-authorization"] = proxy.authorization;
    const options = { method: "CONNECT", path, headers, agent: false, timeout: tunnelMs };
    const request = this.#wire(proxy.url).request(proxy.url, options);
    const refused = (answer: IncomingMessage) => ProxyError.refused(proxy, target, answer.statusCode);
    request
      .on("connect", (answer, socket) => {
        if (answer.statusCode === 200) return done(null, socket);
        socket.destroy();
        done(refused(answer));
      })
      .on("response", (answer) => {
        request.destroy();
        done(refused(answer));
      })
      .on("timeout", () => request.destroy(new Error(`no answer within ${tunnelMs} ms`)))
      .on("error", (error) => done(ProxyError.unreachable(proxy, error)))
      .end();
  }

  #wire({ protocol }: URL): Wire {
    return this.#load(protocol === "https:" ? "node:https" : "node:http");
  }

  close(): void {
    for (const { agent } of this.#routes.values()) agent.destroy();
  }
}

/** How an address is reached: by a proxy that gets the requests, if there is one. */
interface Route {
  wire: Wire;
  agent: Agent;
  proxy: Proxy | undefined;
}

/** Whether an error came before there was a connection. */
function isOfConnection(error: Error): boolean {
  const { syscall } = error as { syscall?: unknown };
  return syscall === "connect" || syscall === "getaddrinfo" || error instanceof AggregateError;
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
