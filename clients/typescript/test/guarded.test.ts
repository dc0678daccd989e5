/** What a model reads of a call that did not simply return: each error, at each moment. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  ClientClosed,
  Deadlock,
  EffectTaken,
  Forbidden,
  Held,
  InterlockError,
  LeaseLost,
  NotDone,
  OutcomeUnknown,
  Stale,
  Unreachable,
  WaitTimeout,
  guarded,
  type Client,
  type Lease,
  type Reason,
} from "../src/index.js";
import { guardTools } from "../src/ai-sdk.js";
import { Server, failure } from "./server.js";

let server: Server;
let a: Client;
let b: Client;

before(async () => {
  server = await Server.start();
  a = server.client("teller");
  b = server.client("other");
});
after(() => server[Symbol.asyncDispose]());

const advice = { action: "stop", retry_after_ms: 0, message: "acquire again" } as const;
const made = (code: Reason["code"]): Reason => ({ code, message: "so it is", advice });
const packet = { problem: { packet: { stale: [], more: false, message: "7 is 8 now." } } } as never;

/** The errors of the package, what they say without their advice, and whether they refuse a lease. */
const errors: readonly [make: () => InterlockError, says: string, refuses: boolean][] = [
  [() => new Held(made("held")), "so it is", true],
  [() => new WaitTimeout(made("wait_limit")), "so it is", true],
  [() => new Deadlock(made("deadlock")), "so it is", true],
  [() => new Forbidden(made("forbidden")), "so it is", true],
  [() => new LeaseLost(made("expired")), "so it is", true],
  [() => new EffectTaken(made("effect_unknown")), "so it is", true],
  [() => new Stale({ ...made("stale"), ...(packet as object) }), "7 is 8 now", true],
  [() => new Unreachable(made("unreachable")), "so it is", false],
  [() => new OutcomeUnknown(made("outcome_unknown")), "so it is", false],
  [() => new ClientClosed(), "the client was closed, which released its leases", false],
  [() => new InterlockError(made("internal")), "so it is", false],
];

const check = "Check before you repeat it.";
const lost = (key: string) =>
  `The lease on ${key} was lost meanwhile (an operator has revoked it): others may have written. ${check}`;

/** Has the lease of a tool be lost, as a heartbeat would report it. Its key is free on the server. */
async function lose(lease: Lease): Promise<void> {
  await a.request("releaseLease", { path: { id: lease.id }, body: {} });
  lease.lose(new LeaseLost({ code: "revoked", message: "an operator has revoked it", advice }));
}

/** Calls a tool that is guarded by a key. */
const call = (
  key: string,
  tool: (lease: Lease, signal: AbortSignal) => unknown,
  signal?: AbortSignal,
  client = a,
): Promise<unknown> =>
  guarded(client, key, (_args, lease, ends) => tool(lease, ends), { waitMs: 0 })({}, { signal });

/** A client whose leases are refused with an error. */
const refusing = (error: unknown): Client => ({ acquire: () => Promise.reject(error) }) as never;

const never = () => assert.fail("it ran");

test("an error before the tool is a text if it refuses the lease, and is thrown else", async () => {
  for (const [make, , refuses] of errors) {
    const error = make();
    const calling = call("before", never, undefined, refusing(error));
    if (refuses) assert.equal(await calling, `Not done: ${make()}`);
    else assert.equal(await failure(calling), error);
  }
  assert.equal((await b.look("before")).holders.length, 0);
});

test("an error within the tool never says that nothing was done, nor to acquire again", async () => {
  for (const [n, [make, says]] of errors.entries()) {
    const inPart = `It may have been done in part: ${says}.`;
    const thrown = await call(`within:${n}`, () => Promise.reject(make()));
    assert.equal(thrown, `${inPart} ${check}`);
    const both = await call(`within:${n}`, async (lease) => {
      await lose(lease);
      throw make();
    });
    assert.equal(both, `${inPart} ${lost(`within:${n}`)}`);
  }
});

test("an error of the tool itself is thrown, with the loss of its lease as its cause", async () => {
  const own = new TypeError("the bank is closed");
  assert.equal(await failure(call("own", () => Promise.reject(own))), own);
  assert.ok(!("cause" in own));
  const losing = (error: unknown) => async (lease: Lease) => {
    await lose(lease);
    throw error;
  };
  assert.equal(await failure(call("own", losing(own))), own);
  const cause: unknown = own.cause;
  assert.ok(cause instanceof LeaseLost && cause.code === "revoked");
  for (const error of [Object.freeze(new Error("frozen")), new NotDone("declined"), "a text"]) {
    assert.equal(await failure(call("own", losing(error))), error);
  }
});

test("the result of a tool whose lease was lost meanwhile is told", async () => {
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  const results: readonly [unknown, string][] = [
    ["refunded 900", "It returned: refunded 900."],
    ["All is well.", "It returned: All is well."],
    [{ cents: 900n }, 'It returned: {"cents":"900"}.'],
    [false, "It returned: false."],
    [undefined, "It returned nothing."],
    [null, "It returned nothing."],
    [cycle, "It returned: [object Object]."],
  ];
  for (const [result, text] of results) {
    const tool = async (lease: Lease) => {
      await lose(lease);
      return result;
    };
    assert.equal(await call("after", tool), `${text} ${lost("after")}`);
    // Also if the tool knows it.
    const knows = async (lease: Lease) => {
      await lose(lease);
      assert.throws(() => lease.check(), LeaseLost);
      return result;
    };
    assert.equal(await call("after", knows), `${text} ${lost("after")}`);
  }
});

test("a lease that its check finds lost, and a signal that it aborts, end a tool in part", async () => {
  const inPart = `It may have been done in part: an operator has revoked it. ${check}`;
  const checks = async (lease: Lease) => {
    await lose(lease);
    lease.check();
  };
  assert.equal(await call("check", checks), inPart);
  const reasons = [
    (signal: AbortSignal): unknown => signal.reason,
    () => new DOMException("This operation was aborted", "AbortError"),
  ];
  for (const reason of reasons) {
    const aborts = async (lease: Lease, signal: AbortSignal) => {
      await lose(lease);
      assert.ok(signal.aborted);
      throw reason(signal);
    };
    assert.equal(await call("check", aborts), inPart);
  }
});

test("a cancellation by the caller is thrown, whatever its reason", async () => {
  for (const reason of [
    new Error("stop"),
    new LeaseLost(made("expired")),
    new Held(made("held")),
    undefined,
  ]) {
    const early = new AbortController();
    early.abort(reason);
    assert.equal(await failure(call("cancelled", never, early.signal)), early.signal.reason);
    for (const loses of [false, true]) {
      const within = new AbortController();
      const tool = async (lease: Lease, signal: AbortSignal) => {
        within.abort(reason);
        if (loses) await lose(lease);
        throw signal.reason;
      };
      assert.equal(await failure(call("cancelled", tool, within.signal)), within.signal.reason);
    }
  }
});

test("a nested lease that is refused does not undo what came before it", async () => {
  const done: string[] = [];
  await using _ = await b.lease("ledger:1", { purpose: "audit" });
  const text = await call("account:7", async () => {
    done.push("debited 3");
    await a.withLease("ledger:1", { waitMs: 0 }, never);
  });
  assert.deepEqual(done, ["debited 3"]);
  const says = /^It may have been done in part: ledger:1 is held by other .*\. Check before you repeat it\.$/;
  assert.match(String(text), says);
});

test("a tool that returns the refusal of another guarded function may have acted before", async () => {
  const credit = guarded(a, "ledger:{id}", () => "credited 3", { waitMs: 0 });
  const transfer = guarded(a, "account:{id}", (args: { id: number }) => credit(args), { waitMs: 0 });
  const both = guarded(a, "audit:{id}", credit, { waitMs: 0 });
  const { tools } = guardTools(a, { tools: { execute: credit } }, { tools: "audit:{id}" }, { waitMs: 0 });
  assert.equal(await transfer({ id: 2 }), "credited 3");
  await using _ = await b.lease("ledger:2");
  const inPart =
    /^It may have been done in part: ledger:2 is held by other.*\. Check before you repeat it\.$/;
  assert.match(await transfer({ id: 2 }), inPart);
  // Nothing else was called.
  assert.match(await both({ id: 2 }), /^Not done: ledger:2 is held by other/);
  assert.match(await tools.execute({ id: 2 }), /^Not done: ledger:2 is held by other/);
});

test("a release without an answer changes nothing of a result, nor of an error", async () => {
  const unknown = () => Promise.reject(new OutcomeUnknown(made("outcome_unknown")));
  const silent = (lease: Lease) => Object.defineProperty(lease, "release", { value: unknown });
  const result = await call("silent:1", (lease) => {
    silent(lease);
    return "refunded";
  });
  assert.equal(result, "refunded");
  const own = new Error("the bank is closed");
  const failing = call("silent:2", (lease) => {
    silent(lease);
    throw own;
  });
  assert.equal(await failure(failing), own);
});

test("a lease that the tool itself releases or parks is not lost", async () => {
  assert.equal(await call("mine:1", (lease) => lease.release().then(() => "refunded")), "refunded");
  const parks = (lease: Lease) => lease.park({ reason: "May it be paid?" }).then(() => "asked");
  assert.equal(await call("mine:2", parks), "asked");
});

test("a result that has yet to run is refused", async () => {
  const numbers = async function* () {
    yield 1;
  };
  await assert.rejects(
    call("stream", () => numbers()),
    /would run on after its lease/,
  );
});

test("the model reads a report past the tool's own form of its result", async () => {
  const tool = {
    execute: async (input: { id: number }) => ({ cents: input.id }),
    toModelOutput: ({ output }: { output: { cents: number } }) => ({
      type: "text",
      value: `${output.cents} cents`,
    }),
  };
  const { refund } = guardTools(a, { refund: tool }, { refund: "form:{id}" }, { waitMs: 0 });
  const read = async (id: number) => refund.toModelOutput({ output: await refund.execute({ id }) }).value;
  assert.equal(await read(7), "7 cents");
  await using _ = await b.lease("form:7");
  assert.match(await read(7), /^Not done: form:7 is held by other/);
});

test("a tool that yields and then fails may have been done in part", async () => {
  const execute = async function* (_input: { id: number }) {
    yield "debited";
    throw new OutcomeUnknown(made("outcome_unknown"));
  };
  const { refund } = guardTools(a, { refund: { execute } }, { refund: "yields:{id}" });
  const result: unknown = await refund.execute({ id: 1 });
  assert.equal(result, `It may have been done in part: so it is. ${check}`);
});
