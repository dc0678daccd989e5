import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { Unreachable, type Client } from "../src/index.js";
import { Server, failure, until } from "./server.js";

let server: Server;
let other: Client;

before(async () => {
  server = await Server.start();
  other = server.client("support-2");
});
after(() => server[Symbol.asyncDispose]());

/** An address in front of the server that can fall silent: it then accepts everything and answers nothing. */
class Front implements AsyncDisposable {
  silent = false;
  connections = 0;
  readonly #sockets = new Set<Socket>();
  readonly #listener = createServer((from) => {
    this.connections++;
    const to = connect(Number(new URL(server.url).port), "127.0.0.1");
    for (const socket of [from, to]) {
      this.#sockets.add(socket);
      socket.on("error", () => {}).on("close", () => this.#sockets.delete(socket));
    }
    from.on("data", (data) => this.silent || to.write(data)).on("end", () => to.end());
    to.on("data", (data) => this.silent || from.write(data)).on("end", () => from.end());
  });

  static async open(): Promise<Front> {
    const front = new Front();
    front.#listener.listen(0, "127.0.0.1");
    await once(front.#listener, "listening");
    return front;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#listener.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#listener.close();
    await once(this.#listener, "close");
  }
}

test("a server that falls silent is left for the next one, and its leases and waits go on", async () => {
  await using front = await Front.open();
  const client = server.client("billing-7", { url: [front.url, server.url], sessionTTLMs: 4000 });
  const lease = await client.lease("account:1");
  const held = await other.lease("account:2");
  const waiting = client.lease("account:2");
  await until(other, "account:2", 1, 1);
  assert.ok(front.connections > 0);
  front.silent = true;
  await held.release({ note: "go on" });
  await using next = await waiting; // the poll of the silent server is given up with the heartbeat
  assert.equal(next.notes[0]?.text, "go on");
  lease.check();
  await other.checkFence("account:1", lease.fence);
  await lease.release();
});

test("a first server that is silent costs one attempt", async () => {
  await using front = await Front.open();
  front.silent = true;
  const client = server.client("billing-7", { url: [front.url, server.url], sessionTTLMs: 2000 });
  await using lease = await client.lease("account:3");
  assert.equal(lease.held, true);
});

test("a single server that is silent is unreachable for a query, and nothing is left behind", async () => {
  await using front = await Front.open();
  const client = server.client("billing-7", { url: front.url, retryForMs: 0 });
  await client.lease("account:4");
  front.silent = true;
  const error = await failure(client.request("getStatus", {}, { attemptMs: 100 }));
  assert.ok(error instanceof Unreachable && /no answer in time/.test(error.message));
  front.silent = false;
});
