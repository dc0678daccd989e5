import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Client } from "../src/index.js";
import { NodeSender } from "../src/node.js";
import { Server, failure, until } from "./server.js";

let server: Server;
let other: Client;

before(async () => {
  server = await Server.start();
  other = server.client("support-2");
});
after(() => server[Symbol.asyncDispose]());

/** Where a call may be when its caller ends it: before and after the server has got each request. */
type Point = { request: number; after: boolean };

/** A client whose caller ends its signal at a point, and the number of requests so far. */
type Ended = { client: Client; count: () => number };

/** Returns a function that does work, and ends the signal before or after it if it is the one of the point. */
function ending(point: Point, controller: AbortController) {
  let count = 0;
  const around = async <T>(work: () => Promise<T>): Promise<T> => {
    const here = ++count === point.request;
    if (here && !point.after) controller.abort(new Error("the caller has left"));
    const answer = await work();
    if (here && point.after) controller.abort(new Error("the caller has left"));
    return answer;
  };
  return { around, count: () => count };
}

const ways: Record<string, (point: Point, controller: AbortController) => Ended> = {
  "with fetch": (point, controller) => {
    const { around, count } = ending(point, controller);
    const cut: typeof fetch = (input, init) => around(() => fetch(input, init));
    return { client: server.client("billing-7", { fetch: cut }), count };
  },
  "with the HTTP of Node": (point, controller) => {
    const { around, count } = ending(point, controller);
    const client = server.client("billing-7");
    const { sender } = client.transport.config;
    assert.ok(sender instanceof NodeSender);
    client.transport.config.sender = {
      send: (request) => around(() => sender.send(request)),
      open: (request) => sender.open(request),
      close: () => sender.close(),
    };
    return { client, count };
  },
};

const scenes = Object.entries(ways).flatMap(([by, way]) => [
  { by, way, held: false },
  { by, way, held: true },
]);

for (const { by, way, held } of scenes) {
  const scene = held ? "a key that another agent holds" : "a free key";
  test(`a call that is ended at any point leaves neither a lease nor a ticket: ${scene}, ${by}`, async () => {
    let points = 0;
    for (let request = 1; ; request++) {
      let reached = false;
      for (const after of [false, true]) {
        const key = `end:${by}:${held}:${request}:${after}`;
        const holder = held ? await other.lease(key) : undefined;
        const controller = new AbortController();
        const { client, count } = way({ request, after }, controller);
        // The call may end before the key is freed, so its end is handled at once.
        let ended = false;
        const work = client
          .lease(key, { signal: controller.signal })
          .catch((error: Error) => {
            assert.equal(error.message, "the caller has left");
            return undefined;
          })
          .finally(() => (ended = true));
        const freed = holder !== undefined && (request > 3 || (request === 3 && after)); // 3 waits for that
        if (freed) {
          await until(other, key, 1, 1, () => ended);
          await holder.release();
        }
        const lease = await work;
        await lease?.release();
        reached ||= count() >= request && controller.signal.aborted;
        await client.line.settled();
        await until(other, key, holder && !freed ? 1 : 0, 0);
        await holder?.release();
        points++;
      }
      if (!reached) break;
    }
    assert.ok(points >= 6, `only ${points} points`);
  });
}

test("a signal that has ended sends nothing", async () => {
  let count = 0;
  const counting: typeof fetch = (input, init) => {
    count++;
    return fetch(input, init);
  };
  const client = server.client("billing-7", { fetch: counting });
  const reason = new Error("never");
  assert.equal(await failure(client.lease("end:1", { signal: AbortSignal.abort(reason) })), reason);
  assert.equal(await failure(client.look("end:1", { signal: AbortSignal.abort(reason) })), reason);
  assert.equal(count, 0);
});

test("a caller that leaves the line wakes nobody and the next one is granted", async () => {
  const holder = await other.lease("end:2");
  const controller = new AbortController();
  const client = server.client("billing-7");
  const leaving = failure(client.lease("end:2", { signal: controller.signal }));
  await until(other, "end:2", 1, 1);
  const staying = client.lease("end:2");
  await until(other, "end:2", 1, 2);
  controller.abort();
  assert.equal(((await leaving) as Error).name, "AbortError");
  await until(other, "end:2", 1, 1);
  await holder.release();
  await (await staying).release();
});
