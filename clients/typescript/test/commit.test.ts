/** hold: "commit": tools that read take no lease, and tools that write are refused if what was read has changed. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { LeaseLost, guarded, type Client, type GuardOptions } from "../src/index.js";
import { guardTools } from "../src/ai-sdk.js";
import { Server } from "./server.js";

let server: Server;
let a: Client;
let b: Client;

before(async () => {
  server = await Server.start();
  a = server.client("one");
  b = server.client("other");
});
after(() => server[Symbol.asyncDispose]());

const refused: GuardOptions = { hold: "commit", waitMs: 0 };
const never = () => assert.fail("it ran");

/** The tools of an agent, for a key. */
const tools = (client = a) => ({
  get: guarded(client, "{key}", ({ key }: { key: string }) => `read ${key}`, { hold: "commit", reads: true }),
  set: guarded(client, "{key}", ({ key }: { key: string }) => `wrote ${key}`, refused),
  not: guarded(client, "{key}", never, refused),
});

/** What others do between a read and a write, and whether it counts. */
const acts: Record<string, [act: (key: string) => Promise<unknown>, counts: boolean]> = {
  takes: [
    async (key) => {
      const lease = await b.lease(key, { purpose: 'charge "twice"' });
      await lease.release({ note: "wrote 65" });
    },
    true,
  ],
  "takes above": [(key) => b.withLease(key.split("/")[0] ?? "", () => {}), true],
  "takes below": [(key) => b.withLease(`${key}/limits`, () => {}), true],
  "moves on": [
    async (key) => {
      const lease = await b.lease(key);
      await lease.convert([{ key: `${key}-next` }]);
      await lease.release();
    },
    true,
  ],
  parks: [
    async (key) => {
      const lease = await b.lease(key);
      const id = await lease.park({ keys: "free" });
      await (await b.resume(id)).release();
    },
    true,
  ],
  works: [
    async (key) => {
      const queue = key.replaceAll(/[^a-z]/g, "-");
      await b.request("setQueue", { path: { queue }, body: {} });
      await b.submit({ queue, claims: [{ key }], payload: 1 });
      const ends = new AbortController();
      await b.work({ queue, signal: ends.signal }, () => ends.abort()).catch(() => {});
    },
    true,
  ],
  "writes a document": [
    (key) => b.commit({ writes: [{ key, put: { balance: 65 } }], note: "late fee" }),
    true,
  ],
  shares: [(key) => b.withLease(key, { mode: "shared" }, () => {}), false],
  "changes nothing": [async (key) => (await b.lease(key)).release({ outcome: "unchanged" }), false],
  "is elsewhere": [(key) => b.withLease(`${key}-next`, () => {}), false],
};

for (const [name, [act, counts]] of Object.entries(acts)) {
  for (const below of ["", "/part"]) {
    test(`another agent ${name} between a read and a write${below && ", below a key"}`, async () => {
      const key = `${name.replaceAll(" ", "-")}${below && "-below"}:k${below}`;
      const { get, set, not } = tools();
      await b.commit({ writes: [{ key: `${key}-first`, put: 1 }] });
      await a.turn(async () => {
        assert.equal(await get({ key }), `read ${key}`);
        await act(key);
        if (!counts) return assert.equal(await set({ key }), `wrote ${key}`);
        const text = String(await not({ key }));
        assert.ok(text.startsWith(`Not done: ${key} may have changed since this run read it: other `), text);
        assert.ok(text.endsWith("Next step: read it again, then decide"), text);
        if (name === "takes") assert.match(text, /had it \(purpose "charge \\"twice\\"", note "wrote 65"\)/);
        if (name === "writes a document") {
          assert.match(text, /other wrote the document \(note "late fee"\)/);
          assert.match(text, /the document \S+ changed by .*\{"balance":65\}/);
        }
        assert.match(String(await not({ key })), /^Not done: this run has not read \S+ yet, or not since/);
        await get({ key });
        assert.equal(await set({ key }), `wrote ${key}`);
        assert.equal(await set({ key }), `wrote ${key}`, "what it wrote itself is no change");
      });
      assert.deepEqual((await b.look(key)).holders, []);
    });
  }
}

test("a run reads before it writes, and one that is over was another", async () => {
  const { get, set, not } = tools();
  const at = { key: "first" };
  await a.turn(() => get(at));
  await a.turn(async () => {
    assert.match(
      String(await not(at)),
      /^Not done: this run has not read first yet.*read it first, then decide/,
    );
    await get(at);
    assert.equal(await set(at), "wrote first");
  });
  for (const tool of [get, not]) await assert.rejects(tool(at), /no run encloses this call/);
});

test("what is read while another agent may be writing is no ground for a decision", async () => {
  const { get, not, set } = tools();
  for (const outcome of ["done", "unchanged"]) {
    const at = { key: `busy-${outcome}` };
    const lease = await b.lease(at.key, { purpose: "phone call" });
    await a.turn(async () => {
      assert.equal(await get(at), `read ${at.key}`, "it waits for nobody");
      assert.match(String(await not(at)), /is held by other/);
      await lease.release({ outcome });
      if (outcome === "done") {
        assert.match(String(await not(at)), /other had it \(purpose "phone call", outcome "done"\)/);
        await get(at);
      }
      assert.equal(await set(at), `wrote ${at.key}`);
    });
  }
});

test("a read by another tool is no second read, and the same call is", async () => {
  const { get, set, not } = tools();
  const list = guarded(a, "{key}", () => "listed", { hold: "commit", reads: true });
  const at = { key: "two-tools" };
  await a.turn(async () => {
    await get(at);
    await b.withLease(at.key, () => {});
    await list(at);
    assert.match(String(await not(at)), /may have changed/);
    await get(at);
    await b.withLease(at.key, () => {});
    await get(at);
    assert.equal(await set(at), "wrote two-tools");
  });
});

test("a call that fails has read nothing, and what was read before counts on", async () => {
  let act = (): string => assert.fail("it ran");
  const { set, not } = tools();
  const get = guarded(a, "{key}", () => act(), { hold: "commit", reads: true });
  const at = { key: "failed-read" };
  const closed = () => {
    throw new Error("the bank is closed");
  };
  const refuse = () => {
    throw new LeaseLost({ code: "expired", message: "the lease on ledger has ended" });
  };
  const failures: [how: string, act: () => string, told: RegExp][] = [
    ["throws", closed, /the bank is closed/],
    ["meets an error of the package", refuse, /^It may have been done in part/],
    ["returns a refusal", () => "Not done: another tool was refused", /^Not done/],
  ];
  for (const [how, fails, told] of failures)
    await a.turn(async () => {
      const failed = async () => {
        act = fails;
        assert.match(await get(at).catch(String), told, how);
      };
      await failed();
      assert.match(String(await not(at)), /has not read/, how);
      act = () => "read";
      await get(at);
      await b.withLease(at.key, () => {});
      await failed();
      assert.match(String(await not(at)), /may have changed/, how);
      act = () => "read";
      await get(at);
      assert.equal(await set(at), `wrote ${at.key}`);
    });
});

test("two runs within one lease, which the server takes for one holder", async () => {
  const { get, set, not } = tools();
  const at = { key: "within" };
  let begin = () => {};
  const begun = new Promise<void>((resolve) => (begin = resolve));
  let end = () => {};
  const ends = new Promise<void>((resolve) => (end = resolve));
  const slow = guarded(a, "{key}", async (_at: typeof at) => (begin(), await ends, "wrote"), refused);
  await a.withLease(at.key, async () => {
    const other = a.turn(async () => {
      await get(at);
      return slow(at);
    });
    await a.turn(async () => {
      await begun;
      await get(at);
      end();
      assert.equal(await other, "wrote");
      assert.match(String(await not(at)), /another run under the lease around both had it/);
      await get(at);
      assert.equal(await set(at), "wrote within");
    });
  });
});

test("twenty times, two agents lose nothing, and no lease of a refused call is a change", async () => {
  let balance = 100;
  const turn = (client: Client, delta: number) => {
    const options = { hold: "commit" as const, waitMs: 60_000 };
    const get = guarded(client, "sum", () => balance, { hold: "commit", reads: true });
    const put = guarded(
      client,
      "sum",
      async ({ value }: { value: number }) => {
        await client.look("sum");
        balance = value;
        return "written";
      },
      options,
    );
    return client.turn(async () => {
      for (let n = 0; n < 50; n++) {
        const value = Number(await get({})) + delta;
        if ((await put({ value })) === "written") return;
      }
      assert.fail("refused 50 times");
    });
  };
  for (let n = 0; n < 20; n++) await Promise.all([turn(a, 50), turn(b, -20)]);
  assert.equal(balance, 100 + 20 * 30);
});

test("as many readers of events as may be open keep no call from its comparison", async () => {
  const client = server.client("read", { namespace: "read" });
  const ends = new AbortController();
  const ask = { headers: { "interlock-namespace": "read" }, signal: ends.signal };
  const follow = () => fetch(`${server.url}/v1/events?follow=true`, ask);
  for (const { status } of await Promise.all(Array.from({ length: 64 }, follow))) assert.equal(status, 200);
  const one = await follow();
  assert.equal(one.status, 429);
  const { get, set } = tools(client);
  for (let n = 0; n < 3; n++)
    await client.turn(async () => {
      assert.equal(await get({ key: "read" }), "read read");
      assert.equal(await set({ key: "read" }), "wrote read");
    });
  ends.abort();
});

test("settings that do not fit are told", async () => {
  const make = (options: GuardOptions) => () => guarded(a, "k", never, options);
  assert.throws(make({ reads: true }), /reads is for hold: "commit"/);
  assert.throws(
    make({ hold: "commit", mode: "shared", flow: "f" }),
    /takes the whole key: leave out mode, flow/,
  );
  const shared = guarded(a, () => ({ key: "k", mode: "shared" as const }), never, refused);
  await a.turn(() => assert.rejects(shared({}), /takes the whole key/));
  const own = { get: { execute: never }, set: { execute: never } };
  const keys = { get: "k", set: "k" };
  assert.throws(() => guardTools(a, own, keys, { hold: "commit" }), /needs reads/);
  assert.throws(() => guardTools(a, own, keys, { hold: "commit", reads: ["got"] }), /reads has got/);
});
