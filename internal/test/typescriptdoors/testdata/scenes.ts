/** The scenes that each framework plays with a fake model: its part calls one tool, or one node. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Client, OutcomeUnknown } from "@interlockdev/client";

/** Runs an agent whose model calls the tool refund once, for an account. It returns what the model reads. */
export type Play = (
  client: Client,
  account: string,
  tool: () => Promise<string>,
  signal?: AbortSignal,
) => Promise<string>;

export function scenes(framework: string, play: Play): void {
  const clients: Client[] = [];
  const client = (agent: string) => {
    const one = new Client({ agent: `${framework}-${agent}` });
    clients.push(one);
    return one;
  };
  const key = (scene: string) => `${framework}-${scene}`;
  const holders = async (scene: string) => (await client("operator").look(`account:${key(scene)}`)).holders;

  test(`${framework}: a free key is held while the tool runs, and free afterwards`, async () => {
    const said = await play(client("one"), key("free"), async () => {
      assert.equal((await holders("free"))[0]?.agent, `${framework}-one`);
      return "refunded";
    });
    assert.match(said, /refunded/);
    assert.deepEqual(await holders("free"), []);
  });

  test(`${framework}: the model reads why a held key is refused`, async () => {
    const holder = await client("holder").lease(`account:${key("held")}`, { purpose: "late fee" });
    const said = await play(client("one"), key("held"), () => assert.fail("the tool runs without a lease"));
    assert.match(said, /Not done: account:\S+ is held by \w+-?\w*-holder \(live, \\?"late fee\\?"\).*Next step: /);
    await holder.release();
  });

  test(`${framework}: a tool that fails releases its lease`, async () => {
    const broken = () => Promise.reject(new Error("the bank is down"));
    const said = await play(client("one"), key("raises"), broken).catch(String);
    assert.match(said, /the bank is down/);
    assert.deepEqual(await holders("raises"), []);
  });

  test(`${framework}: the model reads the result of a tool whose lease was lost meanwhile`, async () => {
    const operator = client("operator");
    const said = await play(client("one"), key("lost"), async () => {
      const [holder] = await holders("lost");
      assert.ok(holder);
      const body = { key: `account:${key("lost")}`, fence: holder.fence, reason: "it was silent" };
      await operator.request("revokeLease", { body });
      return "refunded";
    });
    assert.match(said, /It returned: refunded\. The lease on account:\S+ was lost meanwhile \(.*\): others may/);
    assert.match(said, /Check before you repeat it\./);
    assert.doesNotMatch(said, /Not done|acquire again/);
  });

  test(`${framework}: the model reads that a tool may have been done in part`, async () => {
    const unknown = new OutcomeUnknown({ code: "outcome_unknown", message: "no answer came" });
    const said = await play(client("one"), key("part"), () => Promise.reject(unknown));
    assert.match(said, /It may have been done in part: no answer came\. Check before you repeat it\./);
    assert.deepEqual(await holders("part"), []);
  });

  test(`${framework}: an agent that is cancelled in its tool releases its lease`, async () => {
    const controller = new AbortController();
    const playing = play(
      client("one"),
      key("cancelled"),
      async () => {
        controller.abort();
        throw controller.signal.reason;
      },
      controller.signal,
    );
    await playing.catch(() => {});
    assert.deepEqual(await holders("cancelled"), []);
  });

  test(`${framework}: of two agents that race for one key, one runs and the other reads the refusal, or waits`, async () => {
    let running = 0;
    const tool = async () => {
      assert.equal(++running, 1, "two tools run at a time");
      await holders("race");
      running--;
      return "refunded";
    };
    const said = await Promise.all(["one", "two"].map((agent) => play(client(agent), key("race"), tool)));
    assert.ok(said.some((s) => /refunded/.test(s)));
    assert.ok(said.every((s) => /refunded|is held by/.test(s)));
    assert.deepEqual(await holders("race"), []);
  });

  after(() => Promise.all(clients.map((c) => c.close())));
}
