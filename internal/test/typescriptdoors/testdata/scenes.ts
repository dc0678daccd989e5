/** The scenes that each framework plays with a fake model. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Client, OutcomeUnknown } from "@interlockdev/client";

/** A call of a tool that a model makes, and the result of one that it has read. */
export interface Call {
  name: string;
  args: { account: string; amount?: number };
}
export interface Result {
  name: string;
  text: string;
}

/** Says what comes after the results so far: calls of tools, or the last word. */
export type Script = (results: readonly Result[]) => Promise<Call[] | string>;

/** The functions of tools. */
export type Tools = Record<
  string,
  (args: Call["args"]) => Promise<string> | string
>;

/**
 * Runs an agent whose model follows a script. Its tools take account:{account}, to the end of the run or with
 * hold: "commit", where the tool read only reads. It returns the last word.
 */
export type Agent = (
  client: Client,
  tools: Tools,
  script: Script,
  hold?: "run" | "commit",
) => Promise<string>;

/** Runs an agent whose model calls the tool refund once, for an account. It returns what the model reads. */
export type Play = (
  client: Client,
  account: string,
  tool: () => Promise<string>,
  signal?: AbortSignal,
) => Promise<string>;

const times = 20;

/** Plays what takes more than one tool. */
export function runs(framework: string, agent: Agent): void {
  const clients = ["one", "two", "operator"].map(
    (name) => new Client({ agent: `${framework}-${name}` }),
  );
  const [one, two, operator] = clients as [Client, Client, Client];
  after(() => Promise.all(clients.map((client) => client.close())));

  /** Accounts with tools that read and write their balances. */
  const bank = (...accounts: string[]) => {
    const balances = Object.fromEntries(
      accounts.map((account) => [account, 100]),
    );
    const tools: Tools = {
      read: ({ account }) => String(balances[account]),
      write: ({ account, amount }) => {
        balances[account] = amount ?? NaN;
        return "written";
      },
    };
    return { balances, tools };
  };

  /** Thinks until another agent stands in line, or has had the time for it. */
  const think = async (account: string) => {
    for (let n = 0; n < 20; n++)
      if ((await operator.look(`account:${account}`)).length > 0) return;
  };

  test(`${framework}: of two agents that read, think and write none loses an update`, async () => {
    for (let n = 0; n < times; n++) {
      const account = `${framework}-sum-${n}`;
      const { balances, tools } = bank(account);
      const add =
        (delta: number): Script =>
        async (results) => {
          const last = results.at(-1);
          if (!last) return [{ name: "read", args: { account } }];
          if (last.name === "write") return last.text;
          await think(account);
          return [
            {
              name: "write",
              args: { account, amount: Number(last.text) + delta },
            },
          ];
        };
      const said = await Promise.all([
        agent(one, tools, add(50)),
        agent(two, tools, add(-20)),
      ]);
      assert.deepEqual(said, ["written", "written"]);
      assert.equal(balances[account], 130);
      assert.deepEqual((await operator.look(`account:${account}`)).holders, []);
    }
  });

  test(`${framework}: of two agents that have read the same one writes, and the other one reads again`, async () => {
    for (let n = 0; n < times; n++) {
      const account = `${framework}-commit-${n}`;
      const { balances, tools } = bank(account);
      let reads = 0;
      let all = () => {};
      const met = new Promise<void>((resolve) => (all = resolve));
      const add =
        (delta: number): Script =>
        async (results) => {
          const last = results.at(-1);
          if (!last || /read it again, then decide/.test(last.text)) {
            reads++;
            return [{ name: "read", args: { account } }];
          }
          if (last.name === "write") return last.text;
          if (reads >= 2) all();
          await met;
          const amount = Number(last.text) + delta;
          return [{ name: "write", args: { account, amount } }];
        };
      const said = await Promise.all([
        agent(one, tools, add(50), "commit"),
        agent(two, tools, add(-20), "commit"),
      ]);
      assert.deepEqual(said, ["written", "written"]);
      assert.deepEqual([balances[account], reads], [130, 3]);
      assert.deepEqual((await operator.look(`account:${account}`)).holders, []);
    }
  });

  test(`${framework}: agents that take two keys in different orders are told so, and begin anew`, async () => {
    let refusals = 0;
    for (let n = 0; n < times; n++) {
      const [a, b] = [`${framework}-a-${n}`, `${framework}-b-${n}`] as const;
      const { balances, tools } = bank(a, b);
      const move =
        (from: string, to: string): Script =>
        async (results) => {
          const refused = results.find((result) =>
            result.text.startsWith("Not done: "),
          );
          if (refused) return refused.text;
          const [source, target] = results.map((result) => Number(result.text));
          if (source === undefined)
            return [{ name: "read", args: { account: from } }];
          if (results.length === 1) await think(from);
          if (target === undefined)
            return [{ name: "read", args: { account: to } }];
          if (results.length === 2)
            return [
              { name: "write", args: { account: from, amount: source - 10 } },
            ];
          if (results.length === 3)
            return [
              { name: "write", args: { account: to, amount: target + 10 } },
            ];
          return "moved";
        };
      const until = async (client: Client, script: Script) => {
        for (;;) {
          const said = await agent(client, tools, script);
          if (said === "moved") return;
          refusals++;
          assert.match(
            said,
            /This call has done nothing.*end this run, which gives account:\S+ back/,
          );
        }
      };
      await Promise.all([until(one, move(a, b)), until(two, move(b, a))]);
      assert.deepEqual(balances, { [a]: 100, [b]: 100 });
    }
    assert.ok(refusals > 0, "no deadlock came");
  });

  test(`${framework}: calls of one step take one key in turn`, async () => {
    const account = `${framework}-step`;
    const { balances, tools } = bank(account);
    const charge = async ({ amount }: Call["args"]) => {
      const balance = balances[account] ?? NaN;
      await operator.look(account);
      balances[account] = balance - (amount ?? NaN);
      return "charged";
    };
    const script: Script = async (results) =>
      results.length > 0
        ? results.map((result) => result.text).join(" ")
        : [1, 2, 3].map((amount) => ({
            name: "charge",
            args: { account, amount },
          }));
    assert.equal(
      await agent(one, { ...tools, charge }, script),
      "charged charged charged",
    );
    assert.equal(balances[account], 94);
  });
}

export function scenes(framework: string, play: Play): void {
  const clients: Client[] = [];
  const client = (agent: string) => {
    const one = new Client({ agent: `${framework}-${agent}` });
    clients.push(one);
    return one;
  };
  const key = (scene: string) => `${framework}-${scene}`;
  const holders = async (scene: string) =>
    (await client("operator").look(`account:${key(scene)}`)).holders;

  test(`${framework}: a free key is held while the tool runs, and free afterwards`, async () => {
    const said = await play(client("one"), key("free"), async () => {
      assert.equal((await holders("free"))[0]?.agent, `${framework}-one`);
      return "refunded";
    });
    assert.match(said, /refunded/);
    assert.deepEqual(await holders("free"), []);
  });

  test(`${framework}: the model reads why a held key is refused`, async () => {
    const holder = await client("holder").lease(`account:${key("held")}`, {
      purpose: "late fee",
    });
    const said = await play(client("one"), key("held"), () =>
      assert.fail("the tool runs without a lease"),
    );
    assert.match(
      said,
      /Not done: account:\S+ is held by [\w-]+-holder \(live, \\?"late fee\\?"\).*Next step: /,
    );
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
      const body = {
        key: `account:${key("lost")}`,
        fence: holder.fence,
        reason: "it was silent",
      };
      await operator.request("revokeLease", { body });
      return "refunded";
    });
    assert.match(
      said,
      /It returned: refunded\. The lease on account:\S+ was lost meanwhile \(.*\): others may/,
    );
    assert.match(said, /Check before you repeat it\./);
    assert.doesNotMatch(said, /Not done|acquire again/);
  });

  test(`${framework}: the model reads that a tool may have been done in part`, async () => {
    const unknown = new OutcomeUnknown({
      code: "outcome_unknown",
      message: "no answer came",
    });
    const said = await play(client("one"), key("part"), () =>
      Promise.reject(unknown),
    );
    assert.match(
      said,
      /It may have been done in part: no answer came\. Check before you repeat it\./,
    );
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
    while ((await holders("cancelled")).length > 0); // a framework may leave before its tool has
  });

  test(`${framework}: of two agents that race for one key, one runs and the other reads the refusal, or waits`, async () => {
    let running = 0;
    const tool = async () => {
      assert.equal(++running, 1, "two tools run at a time");
      await holders("race");
      running--;
      return "refunded";
    };
    const said = await Promise.all(
      ["one", "two"].map((agent) => play(client(agent), key("race"), tool)),
    );
    assert.ok(said.some((s) => /refunded/.test(s)));
    assert.ok(said.every((s) => /refunded|is held by/.test(s)));
    assert.deepEqual(await holders("race"), []);
  });

  after(() => Promise.all(clients.map((c) => c.close())));
}
