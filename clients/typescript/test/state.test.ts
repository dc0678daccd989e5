import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Refused, Stale, add, merge, put, remove, seen, text, type Client } from "../src/index.js";
import { Server, failure } from "./server.js";

let server: Server;
let a: Client;
let b: Client;

before(async () => {
  server = await Server.start();
  a = server.client("billing-7");
  b = server.client("support-2");
});
after(() => server[Symbol.asyncDispose]());

test("a document is created, changed and deleted", async () => {
  const nothing = await a.read("account:1");
  assert.deepEqual([nothing.absent, nothing.version], [true, "0"]);
  await a.commit({ reads: seen(nothing), writes: [put("account:1", { balance: 100 })] });
  const present = await b.read("account:1");
  assert.deepEqual(present.value, { balance: 100 });
  assert.equal(present.agent, "billing-7");
  await b.commit({ reads: seen(present), writes: [merge("account:1", { owner: "ann" })], note: "asked for" });
  assert.deepEqual((await a.read("account:1")).value, { balance: 100, owner: "ann" });
  const { versions } = await a.history("account:1");
  assert.deepEqual(
    versions.map((v) => v.op),
    ["merge", "put"],
  );
  await a.commit({ reads: seen(await a.read("account:1")), writes: [remove("account:1")] });
  assert.equal((await a.read("account:1")).absent, true);
});

test("a commit on an old version is refused with what changed, by whom and why", async () => {
  await a.commit({ writes: [put("account:2", { balance: 100 })] });
  const old = await a.read("account:2");
  await b.commit({ reads: seen(old), writes: [put("account:2", { balance: 65 })], note: "late fee" });
  const error = await failure(a.commit({ reads: seen(old), writes: [put("account:2", { balance: 90 })] }));
  assert.ok(error instanceof Stale);
  const [change] = error.changes;
  assert.deepEqual(
    [change?.key, change?.now.agent, change?.now.note],
    ["account:2", "support-2", "late fee"],
  );
  assert.deepEqual(change?.diff.patch, [{ op: "replace", path: "/balance", value: 65 }]);
  assert.match(String(error), /Your environment changed while you were thinking/);
  assert.deepEqual((await a.read("account:2")).value, { balance: 65 });
});

test("a commit under a lease needs no version, and others are refused", async () => {
  await a.commit({ writes: [text("page:1", "draft")] });
  await using lease = await a.lease("page:1");
  const error = await failure(
    b.commit({ writes: [text("page:1", "mine")], reads: [{ key: "page:1", present: true }] }),
  );
  assert.ok(error instanceof Refused && error.code === "held");
  const done = await lease.commit({ writes: [text("page:1", "final")], note: "reviewed" });
  assert.equal(done.documents[0]?.fence, lease.fence);
  assert.equal((await b.read("page:1")).text, "final");
});

test("update is repeated until no other commit was faster", async () => {
  const one = (client: Client) =>
    client.update<{ n: number }>("counter:1", (value) => ({ n: (value?.n ?? 0) + 1 }), { note: "one more" });
  await Promise.all([one(a), one(b), one(a), one(b), one(a)]);
  assert.deepEqual((await a.read("counter:1")).value, { n: 5 });
});

test("additions never conflict, keep their bounds, and are exact beyond 2^53", async () => {
  await Promise.all(Array.from({ length: 10 }, () => a.commit({ writes: [add("sum:1", 5, { max: 50 })] })));
  assert.equal((await b.read("sum:1")).value, 50);
  const error = await failure(b.commit({ writes: [add("sum:1", 1, { max: 50 })] }));
  assert.ok(error instanceof Refused && error.code === "out_of_bounds");
  await a.commit({ writes: [add("sum:2", 9_007_199_254_740_993n)] });
  assert.equal((await b.read("sum:2")).value, "9007199254740993");
});

test("a listing follows its cursors", async () => {
  const keys = Array.from({ length: 120 }, (_, n) => `list:${String(n).padStart(3, "0")}`);
  await a.commit({ writes: keys.map((key) => put(key, key)) });
  const found: string[] = [];
  for await (const document of b.list("list:")) found.push(document.key);
  assert.deepEqual(found, keys);
});

test("a watch goes on after a restart of the server, without a gap and without a repetition", async () => {
  const other = await Server.start();
  try {
    const client = other.client("billing-7");
    const controller = new AbortController();
    const seenVersions: unknown[] = [];
    await client.commit({ writes: [put("watched:0", 0)] });
    const watching = (async () => {
      for await (const write of client.watch({ prefix: "watched:", from: "1", signal: controller.signal })) {
        seenVersions.push(write.value);
        if (write.value === 1) await other.restart();
        if (write.value === 3) return;
      }
    })();
    await client.commit({ writes: [put("watched:1", 1)] });
    await client.commit({ writes: [put("watched:2", 2)] });
    await client.commit({ writes: [put("watched:3", 3)] });
    await watching;
    assert.deepEqual(seenVersions, [0, 1, 2, 3]);
    const reason = new Error("enough");
    const waiting = failure(client.watch({ key: "watched:0", signal: controller.signal }).next());
    controller.abort(reason);
    assert.equal(await waiting, reason);
  } finally {
    await other[Symbol.asyncDispose]();
  }
});

test("a watch from an index that never was is refused", async () => {
  const error = await failure(a.watch({ key: "x", from: "999999999" }).next());
  assert.ok(error instanceof Refused && error.code === "future_version");
});
