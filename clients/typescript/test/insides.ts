/** What may be done inside of a lease, as functions; and as a program that does it below `interlock run`. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { Client, Deadlock, InterlockError, add, guarded } from "../src/index.js";
import { guardTools } from "../src/ai-sdk.js";
import { leasedNode } from "../src/langgraph.js";

/** A wait would never end, and fails. */
const patient = {
  waitMs: Infinity,
  onQueued: () => {
    throw new Error("it stands in line behind its own agent");
  },
};

/** The doors: each uses a key once. */
export const insides: Record<string, (client: Client, key: string) => Promise<unknown>> = {
  lease: async (client, key) => (await client.lease(key, patient)).release(),
  shared: async (client, key) => (await client.lease(key, { ...patient, mode: "shared" })).release(),
  several: async (client, key) => (await client.lease([key, `${key}/more`], patient)).release(),
  withLease: (client, key) => client.withLease(key, patient, () => client.withLease(key, patient, () => {})),
  guarded: async (client, key) => assert.equal(await guarded(client, key, () => "done", patient)({}), "done"),
  "guarded by call": async (client, key) => {
    const options = { ...patient, hold: "call" as const };
    assert.equal(await guarded(client, key, () => "done", options)({}, { toolCallId: "1" } as never), "done");
  },
  turn: (client, key) =>
    client.turn(async () => {
      const tool = guarded(client, key, () => "done", patient);
      for (const id of ["1", "2"]) assert.equal(await tool({}, { toolCallId: id } as never), "done");
    }),
  guardTools: async (client, key) => {
    const { tool } = guardTools(client, { tool: { execute: () => "done" } }, { tool: key }, patient);
    const execute = tool.execute as (input: object, call: object) => unknown;
    assert.equal(await execute({}, { toolCallId: "1" }), "done");
  },
  commit: (client, key) => client.commit({ writes: [add(`${key}/sum`, 1)] }),
  update: (client, key) =>
    client.update<number>(`${key}/document`, (value) => (value ?? 0) + 1, { tries: 99 }),
  leasedNode: async (client, key) =>
    leasedNode(
      client,
      () => key,
      () => {},
      patient,
    )({}, {}),
};

type Work = () => Promise<unknown>;

/** How the work is begun. */
export const styles: Record<string, (work: Work) => Promise<unknown>> = {
  call: (work) => work(),
  all: (work) => Promise.all([work(), work(), work()]),
  later: async (work) => {
    await Promise.resolve();
    return (async () => work())();
  },
  timer: (work) => new Promise((resolve, reject) => setTimeout(() => work().then(resolve, reject), 1)),
};

/** Does all of it in a process that a command has started with a lease on the key. */
async function main(key: string): Promise<void> {
  await using client = new Client();
  await using twin = new Client();
  for (const [style, run] of Object.entries(styles))
    for (const [inside, use] of Object.entries(insides))
      for (const one of [client, twin])
        for (const at of [key, `${key}/below`])
          await run(() => use(one, at)).catch((cause) => {
            throw new Error(`${inside} by ${style} on ${at}`, { cause });
          });
  // What the command holds is held, and what was taken besides is given back.
  assert.equal((await client.look(key)).holders[0]?.fence, process.env["INTERLOCK_FENCE"]);
  await using apart = new Client({ join: false });
  await using named = new Client({ agent: "sub-agent" });
  const others = process.env["INTERLOCK_AGENT"] === undefined ? [apart] : [apart, named];
  for (const other of others) {
    const refused = await other.lease(key, patient).catch((error: unknown) => error);
    assert.ok(refused instanceof Deadlock, String(refused));
    assert.match(String(refused), /your own lease/);
  }
  const apartFlow = await client
    .lease(key, { ...patient, flow: "sub-agent" })
    .catch((error: unknown) => error);
  assert.ok(apartFlow instanceof Deadlock, String(apartFlow));
  // Calls beside each other exclude each other on other keys, and no wait is for oneself.
  let running = 0;
  const alone = async () => {
    assert.equal(++running, 1);
    await apart.look("beside");
    running--;
  };
  await Promise.all([1, 2, 3].map(() => client.withLease("beside", alone)));
  // So do the runs of a process that has many agents.
  let sum = 0;
  const read = guarded(client, "sum", () => String(sum));
  const write = guarded(client, "sum", ({ to }: { to: number }) => String((sum = to)));
  const spend = () =>
    client.turn(async () => {
      const seen = Number(await read({}));
      await apart.look("sum");
      await write({ to: seen + 1 });
    });
  await Promise.all([1, 2, 3, 4].map(spend));
  assert.equal(sum, 4);
  const left = await client.lease("left:over");
  assert.equal((await apart.look("left:over")).holders.length, 1);
  await client.close();
  assert.equal(left.held, false);
  assert.deepEqual((await apart.look("left:over")).holders, []);
  assert.equal((await apart.look(key)).holders.length, 1);
  console.log("joined: all");
}

const [, program, key] = process.argv;
if (program === fileURLToPath(import.meta.url) && key !== undefined) {
  await main(key).catch((error: unknown) => {
    console.log(error);
    if (error instanceof InterlockError) console.log(String(error));
    process.exitCode = 1;
  });
}
