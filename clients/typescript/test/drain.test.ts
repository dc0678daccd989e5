import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import type { Client } from "../src/index.js";
import { Server, until } from "./server.js";

/** How a process and its workers end. */

let server: Server;
let operator: Client;

before(async () => {
  server = await Server.start();
  operator = server.client("operator");
});
after(() => server[Symbol.asyncDispose]());

/** A program with the client, and its lines. */
class Program {
  readonly child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly ended: Promise<unknown[]>;

  constructor(text: string) {
    const index = new URL("../src/index.js", import.meta.url).href;
    const before = `import { Client } from ${JSON.stringify(index)};\nconst stdin = process.stdin;\n`;
    this.child = spawn(process.execPath, ["--input-type=module", "--eval", before + text], {
      env: { ...process.env, INTERLOCK_URL: server.url },
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.ended = once(this.child, "exit");
    assert.ok(this.child.stdout);
    this.#lines = createInterface(this.child.stdout)[Symbol.asyncIterator]();
  }

  async line(): Promise<string> {
    return ((await this.#lines.next()) as IteratorResult<string, string>).value;
  }
}

const working = (queue: string) => `
  const one = new Client({ drainOn: ["SIGTERM", "SIGINT"], agent: "one" });
  const two = new Client({ drainOn: ["SIGTERM"], agent: "two" });
  const lease = await one.lease("${queue}:lease");
  lease.signal.addEventListener("abort", () => console.log(lease.signal.reason.code));
  const over = two.work({ queue: "${queue}" }, async (job) => {
    console.log("begun");
    await new Promise((resolve) => stdin.once("data", resolve));
    stdin.pause();
    return { result: "charged" };
  });
  over.then(() => console.log("worker over"));
`;

test("at its signal a process finishes its tasks, releases its leases and ends", async () => {
  await operator.request("setQueue", { path: { queue: "drain" }, body: {} });
  const first = await operator.submit({ queue: "drain" });
  const program = new Program(working("drain"));
  assert.equal(await program.line(), "begun");
  const second = await operator.submit({ queue: "drain" });
  program.child.kill("SIGTERM");
  assert.equal(await program.line(), "session_ended"); // of the client without workers
  await until(operator, "drain:lease", 0, 0);
  program.child.stdin?.write("go\n");
  assert.equal(await program.line(), "worker over");
  assert.deepEqual(await program.ended, [null, "SIGTERM"]);
  const { task } = await operator.request("getTask", { path: { id: first.id } });
  assert.deepEqual([task.state, task.result, task.attempt], ["done", "charged", 1]);
  const rest = await operator.request("getTask", { path: { id: second.id } });
  assert.equal(rest.task.attempt ?? 0, 0);
});

test("a second signal does not wait, and a listener of the program keeps the process", async () => {
  await operator.request("setQueue", { path: { queue: "twice" }, body: {} });
  await operator.submit({ queue: "twice" });
  const program = new Program(working("twice"));
  assert.equal(await program.line(), "begun");
  program.child.kill("SIGTERM");
  assert.equal(await program.line(), "session_ended");
  program.child.kill("SIGTERM");
  assert.deepEqual(await program.ended, [null, "SIGTERM"]);

  const other = new Program(`
    const client = new Client({ drainOn: ["SIGTERM"] });
    const lease = await client.lease("twice:own");
    process.once("SIGTERM", () => client.drain().then(() => process.exit(7)));
    process.on("SIGTERM", () => {});
    console.log("ready");
    stdin.resume();
  `);
  assert.equal(await other.line(), "ready");
  other.child.kill("SIGTERM");
  assert.deepEqual(await other.ended, [7, null]);
  await until(operator, "twice:own", 0, 0);
});

test("a client that is closed listens to no signal, and work with it returns", async () => {
  const count = process.listenerCount("SIGUSR2");
  const clients = [1, 2].map(() => server.client("billing-7", { drainOn: ["SIGUSR2"] }));
  assert.equal(process.listenerCount("SIGUSR2"), count + 1);
  await operator.request("setQueue", { path: { queue: "closed" }, body: {} });
  for (const client of clients) {
    const before = client.work({ queue: "closed" }, () => {});
    await client.close();
    await before;
    await client.drain();
  }
  assert.equal(process.listenerCount("SIGUSR2"), count);
});
