import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { Client, OutcomeUnknown, Unreachable } from "../src/index.js";
import { NodeSender } from "../src/node.js";
import { Server, failure } from "./server.js";

let server: Server;

before(async () => {
  server = await Server.start();
});
after(() => server[Symbol.asyncDispose]());

type Script = (socket: Socket, request: { line: string; head: string; body: string }) => void;

/** A server that answers each request by the next function, the last one again and again. */
class Scripted implements AsyncDisposable {
  /** The request lines, each with the number of its connection. */
  readonly seen: string[] = [];
  readonly heads: string[] = [];
  readonly sockets: Socket[] = [];
  readonly #listener = createServer((socket) => this.#serve(socket));

  private constructor(readonly scripts: readonly Script[]) {}

  static async open(...scripts: Script[]): Promise<Scripted> {
    const scripted = new Scripted(scripts);
    scripted.#listener.listen(0, "127.0.0.1");
    await once(scripted.#listener, "listening");
    return scripted;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#listener.address() as AddressInfo).port}`;
  }

  #serve(socket: Socket): void {
    const number = this.sockets.push(socket);
    let text = "";
    socket.on("error", () => {});
    socket.on("data", (data) => {
      text += data.toString("latin1");
      const at = text.indexOf("\r\n\r\n");
      if (at < 0) return;
      const head = text.slice(0, at);
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
      const body = text.slice(at + 4);
      if (body.length < length) return;
      text = "";
      const line = head.slice(0, head.indexOf(" HTTP"));
      this.seen.push(`${number} ${line}`);
      this.heads.push(head);
      this.scripts[Math.min(this.seen.length, this.scripts.length) - 1]?.(socket, { line, head, body });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.#listener.close();
    await once(this.#listener, "close");
  }
}

function answer(body: string, status = "200 OK", type = "application/json"): Script {
  return (socket) =>
    socket.write(
      `HTTP/1.1 ${status}\r\nContent-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
}

const committed = answer('{"outcome":"committed","version":"7","documents":[]}');

const cut: Script = (socket) => socket.destroy();

function sender(client: Client): NodeSender {
  const { sender } = client.transport.config;
  assert.ok(sender instanceof NodeSender);
  return sender;
}

/** Resolves when a connection is closed or broken. */
async function gone(socket: Socket | undefined): Promise<void> {
  assert.ok(socket);
  if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve));
}

/** Returns the signal of a controller, with the number of those who listen to it. */
function counted(controller: AbortController): { signal: AbortSignal; listening: () => number } {
  let count = 0;
  const { signal } = controller;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => (count++, add(...args));
  signal.removeEventListener = (...args: Parameters<typeof remove>) => (count--, remove(...args));
  return { signal, listening: () => count };
}

test("Node sends by its own HTTP, on a connection that is used again", async () => {
  await using scripted = await Scripted.open(committed);
  const client = new Client({ url: scripted.url, credential: "secret\n", namespace: "acme" });
  sender(client);
  await client.commit({ writes: [{ key: "ü", put: "ü" }] });
  await client.commit({});
  assert.deepEqual(scripted.seen, ["1 POST /v1/commits", "1 POST /v1/commits"]);
  const [head = ""] = scripted.heads;
  assert.match(head, /^authorization: Bearer secret\r$/im);
  assert.match(head, /^interlock-namespace: acme\r$/im);
  assert.match(head, /^content-type: application\/json\r$/im);
  assert.match(head, /^idempotency-key: [0-9a-f-]{36}\r$/im);
  await client.close();
});

test("a connection that was closed between two requests is not used again", async () => {
  await using scripted = await Scripted.open(committed);
  const client = new Client({ url: scripted.url, retryForMs: 0 });
  await client.commit({});
  const [socket] = scripted.sockets;
  socket?.end();
  await gone(socket); // the client has closed its side too
  await client.commit({});
  assert.deepEqual(scripted.seen, ["1 POST /v1/commits", "2 POST /v1/commits"]);
});

test("a used connection that breaks before an answer leaves the outcome unknown, and a key repeats it", async () => {
  await using scripted = await Scripted.open(committed, cut, committed, cut);
  const client = new Client({ url: scripted.url });
  await client.commit({});
  await client.commit({});
  assert.deepEqual(scripted.seen, ["1 POST /v1/commits", "1 POST /v1/commits", "2 POST /v1/commits"]);
  const [, second, third] = scripted.heads.map((head) => /idempotency-key: (\S+)/i.exec(head)?.[1]);
  assert.equal(second, third);
  const error = await failure(client.request("rotateFenceKeys", { body: {} }));
  assert.ok(error instanceof OutcomeUnknown, String(error));
  assert.equal(scripted.seen.length, 4);
});

test("a refused connection is unreachable, by name and by number", async () => {
  const scripted = await Scripted.open(committed);
  const { port } = new URL(scripted.url);
  await scripted[Symbol.asyncDispose]();
  for (const host of ["127.0.0.1", "localhost", "[::1]"]) {
    const client = new Client({ url: `http://${host}:${port}`, retryForMs: 0 });
    const error = await failure(client.request("rotateFenceKeys", { body: {} }));
    assert.ok(error instanceof Unreachable, String(error));
    assert.match(error.message, /ECONNREFUSED|EADDRNOTAVAIL/);
  }
});

const broken: Record<string, Script> = {
  "is no HTTP": (socket) => socket.write("SSH-2.0-OpenSSH_9.6\r\n\r\n"),
  "ends within its head": (socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Le"),
  "ends within its body": (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"outcome'),
  "breaks off within its body": (socket) => {
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", () => socket.resetAndDestroy());
  },
  "has a broken chunk": (socket) =>
    socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\nzz\r\n"),
  "has two lengths": (socket) =>
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}"),
  "has a head without an end": (socket) => socket.write(`HTTP/1.1 200 OK\r\nX: ${"x".repeat(1 << 20)}`),
  "is no JSON": answer('{"outcome":'),
  "changes the protocol": (socket) =>
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"),
  redirects: (socket) =>
    socket.write(
      "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
    ),
};

for (const [what, script] of Object.entries(broken)) {
  test(`the outcome is unknown after an answer that ${what}`, async () => {
    await using scripted = await Scripted.open(script, committed);
    const client = new Client({ url: scripted.url });
    const error = await failure(client.request("rotateFenceKeys", { body: {} }));
    assert.ok(error instanceof OutcomeUnknown, String(error));
    assert.equal(scripted.seen.length, 1);
    assert.equal((await client.commit({})).version, "7");
  });
}

test("a huge answer arrives in full", async () => {
  const value = "ü".repeat(12 << 20);
  await using scripted = await Scripted.open(answer(JSON.stringify({ version: "7", value })));
  const client = new Client({ url: scripted.url });
  const committed: unknown = await client.commit({});
  assert.ok(typeof committed === "object" && committed && "value" in committed);
  assert.ok(committed.value === value);
});

/** Aborts a request once it is here: the caller gets the reason, and nothing of the request is left. */
async function abortedOnce(here: Promise<void>, scripted: Scripted): Promise<void> {
  const client = new Client({ url: scripted.url });
  const controller = new AbortController();
  const { signal, listening } = counted(controller);
  const failed = failure(client.look("k", { signal }));
  await here;
  const reason = new Error("the caller has left");
  controller.abort(reason);
  assert.equal(await failed, reason);
  await gone(scripted.sockets[0]);
  assert.equal(listening(), 0);
}

test("an abort while the answer is awaited closes the connection, and nothing listens any more", async () => {
  let arrived = () => {};
  const here = new Promise<void>((resolve) => (arrived = resolve));
  await using scripted = await Scripted.open(() => arrived());
  await abortedOnce(here, scripted);
});

test("an abort within the body closes the connection, and nothing listens any more", async () => {
  let begun = () => {};
  const here = new Promise<void>((resolve) => (begun = resolve));
  await using scripted = await Scripted.open((socket) => {
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", () => begun());
  });
  await abortedOnce(here, scripted);
});

test("nothing listens to a signal after many requests", async () => {
  await using scripted = await Scripted.open(committed);
  const client = new Client({ url: scripted.url });
  const { signal, listening } = counted(new AbortController());
  for (let n = 0; n < 50; n++) await client.commit({ signal });
  assert.equal(listening(), 0);
  assert.equal(scripted.sockets.length, 1);
  assert.ok((scripted.sockets[0]?.listenerCount("close") ?? 0) < 10);
});

test("a watch goes on after its connection broke, and its end closes the connection", async () => {
  const written = (index: string) => `${JSON.stringify({ key: "k", index })}\n`;
  const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
  const head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n";
  await using scripted = await Scripted.open(
    (socket) => socket.write(head + chunk(written("1").slice(0, 5)), () => socket.resetAndDestroy()),
    (socket) => socket.write(head + chunk(written("1").slice(0, 5)) + chunk(written("1").slice(5))),
  );
  const client = new Client({ url: scripted.url });
  for await (const event of client.watch({ key: "k", from: "0" })) {
    assert.equal(event.index, "1");
    break;
  }
  assert.equal(scripted.seen.length, 2);
  await gone(scripted.sockets[1]);
});

test("many waits do not keep a release from a connection", async () => {
  const holder = server.client("holder");
  const crowd = server.client("crowd");
  const lease = await crowd.lease("node:1");
  const waits = Array.from({ length: 300 }, () => crowd.lease("node:1"));
  for (let length = 0; length < waits.length;) ({ length } = await holder.look("node:1"));
  await lease.release();
  await (await Promise.race(waits)).release();
  await crowd.close();
  await Promise.allSettled(waits);
});

test("other runtimes, browsers and an old Node send by fetch", () => {
  const process = { getBuiltinModule: () => ({}) };
  assert.ok(NodeSender.find({ process }));
  assert.ok(NodeSender.find({ process, navigator: { userAgent: "Node.js/24" } }));
  for (const userAgent of ["Deno/2.5.0", "Bun/1.3.0", "Cloudflare-Workers", "Mozilla/5.0"]) {
    assert.equal(NodeSender.find({ process, navigator: { userAgent } }), undefined);
  }
  assert.equal(NodeSender.find({ process: {} }), undefined);
  assert.equal(NodeSender.find({}), undefined);
});

/** Runs a program with the client, and returns how it ended. */
function run(program: string): Promise<{ code: number | null; text: string }> {
  const index = new URL("../src/index.js", import.meta.url).href;
  return spawned(`import { Client } from ${JSON.stringify(index)};\n${program}`);
}

async function spawned(text: string): Promise<{ code: number | null; text: string }> {
  const child = spawn(process.execPath, ["--input-type=module", "--eval", text], {
    env: { ...process.env, INTERLOCK_URL: server.url },
  });
  let out = "";
  child.stdout.on("data", (part) => (out += String(part)));
  child.stderr.on("data", (part) => (out += String(part)));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, text: out };
}

for (const closed of [false, true]) {
  const when = closed ? "a closed client has no connection" : "idle connections do not keep the process";
  test(when, async () => {
    const { code, text } = await run(`
      import { subscribe } from "node:diagnostics_channel";
      const sockets = [];
      subscribe("net.client.socket", ({ socket }) => sockets.push(socket));
      process.on("exit", () => console.log(sockets.filter((socket) => !socket.destroyed).length));
      const client = new Client();
      await Promise.all(["a", "b"].map((key) => client.look(key)));
      if (${closed}) await client.close();
    `);
    assert.equal(code, 0, text);
    assert.equal(text, closed ? "0\n" : "2\n");
  });
}

test("an abort at any moment leaves no rejection that nothing handles", async () => {
  const { code, text } = await run(`
    const client = new Client({ retryForMs: 0 });
    for (let n = 0; n < 200; n++) {
      const controller = new AbortController();
      const work = client.look("k", { signal: controller.signal }).catch(() => {});
      for (let ticks = n % 20; ticks > 0; ticks--) await (ticks % 2 ? null : new Promise((r) => setImmediate(r)));
      controller.abort();
      await work;
    }
    const waits = Array.from({ length: 20 }, (_, n) => client.lease("node:2").catch((error) => error.code));
    await client.close();
    console.log([...new Set(await Promise.all(waits))].length);
  `);
  assert.equal(code, 0, text);
  assert.equal(text, "1\n");
});

test("fake timers that are there before the import, as with jest, do not stop a keeper", async () => {
  const module = (name: string) => JSON.stringify(new URL(`../src/${name}.js`, import.meta.url).href);
  const { code, text } = await spawned(`
    globalThis.setTimeout = globalThis.clearTimeout = () => 0;
    globalThis.performance = { now: () => 0 };
    Date.now = () => 0;
    const { Client } = await import(${module("index")});
    const { sleep } = await import(${module("stop")});
    const client = new Client();
    const lease = await client.lease("node:fake");
    const before = lease.leftMs;
    await sleep(5);
    console.log(lease.leftMs < before);
    await client.close();
  `);
  assert.equal(code, 0, text);
  assert.equal(text, "true\n");
});
