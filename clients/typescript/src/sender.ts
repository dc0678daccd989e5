/** A request as it is sent. The names of its headers are in lower case. */
export interface Outgoing {
  method: string;
  url: string;
  headers: Record<string, string>;
  body: Uint8Array | undefined;
  signal: AbortSignal;
}

/** An answer that has arrived in full. */
export interface Whole {
  status: number;
  headers: Headers;
  body: Uint8Array;
}

/** An answer that goes on to arrive. */
export interface Flow {
  status: number;
  headers: Headers;
  chunks: AsyncIterable<Uint8Array>;
}

/** Sends requests over HTTP, each once. A redirect is an error. */
export interface Sender {
  /** Sends a request, and returns its answer when all of it has arrived. */
  send(request: Outgoing): Promise<Whole>;
  /** Sends a request, and returns its answer when that begins. */
  open(request: Outgoing): Promise<Flow>;
  /** Closes the connections. */
  close(): void;
}

/** Sends requests by a fetch. */
export class FetchSender implements Sender {
  constructor(readonly fetch: typeof globalThis.fetch) {}

  async send(request: Outgoing): Promise<Whole> {
    const response = await this.#fetch(request);
    const body = new Uint8Array(await response.arrayBuffer());
    return { status: response.status, headers: response.headers, body };
  }

  async open(request: Outgoing): Promise<Flow> {
    const response = await this.#fetch(request);
    return { status: response.status, headers: response.headers, chunks: chunksOf(response.body) };
  }

  #fetch({ url, method, headers, body, signal }: Outgoing): Promise<Response> {
    const init: RequestInit = { method, headers: new Headers(headers), redirect: "error", signal };
    if (body !== undefined) init.body = body as BodyInit;
    return this.fetch(url, init);
  }

  close(): void {} // the runtime has the connections
}

/** Reads a stream. Not every runtime can iterate over it. */
function chunksOf(stream: ReadableStream<Uint8Array> | null): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]() {
      const reader = stream?.getReader();
      const end = { done: true, value: undefined } as const;
      return {
        next: async () => (await reader?.read()) ?? end,
        async return() {
          await reader?.cancel();
          return end;
        },
      };
    },
  };
}
