import assert from "node:assert/strict";
import { test } from "node:test";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import {
  Annotation,
  Command,
  END,
  MemorySaver,
  MessagesAnnotation,
  START,
  StateGraph,
  interrupt,
} from "@langchain/langgraph";
import { ToolNode, toolsCondition } from "@langchain/langgraph/prebuilt";
import { z } from "zod";
import {
  Client,
  DoneInPart,
  Held,
  type Lease,
  LeaseLost,
  guarded,
} from "@interlockdev/client";
import {
  leasedGraph,
  leasedNode,
  leasedSaver,
} from "@interlockdev/client/langgraph";
import {
  type Agent,
  type Result,
  type Script,
  type Tools,
  runs,
  scenes,
} from "./scenes.js";

for (const hold of ["run", "call"] as const) {
  scenes(`langgraph-${hold}`, async (client, account, run, signal) => {
    const refund = tool(
      guarded(client, "account:{account_id}", () => run(), { waitMs: 0, hold }),
      {
        name: "refund",
        description: "Refunds a fee",
        schema: z.object({ account_id: z.string() }),
      },
    );
    const model = ({ messages }: typeof MessagesAnnotation.State) => {
      const last = messages.at(-1);
      if (last?.getType() === "tool")
        return { messages: [new AIMessage(String(last.content))] };
      const call = {
        name: "refund",
        args: { account_id: account },
        id: "call-1",
        type: "tool_call" as const,
      };
      return { messages: [new AIMessage({ content: "", tool_calls: [call] })] };
    };
    const compiled = new StateGraph(MessagesAnnotation)
      .addNode("model", model)
      .addNode("tools", new ToolNode([refund]))
      .addEdge(START, "model")
      .addConditionalEdges("model", toolsCondition)
      .addEdge("tools", "model")
      .compile();
    const graph = hold === "run" ? leasedGraph(client, compiled) : compiled;
    const { messages } = await graph.invoke(
      { messages: [new HumanMessage("refund")] },
      signal ? { signal } : {},
    );
    return String(messages.at(-1)?.content);
  });
}

/** Returns an agent whose model follows a script, with guarded tools. */
function follower(
  client: Client,
  functions: Tools,
  script: Script,
  hold: "run" | "commit" = "run",
  saver?: MemorySaver,
) {
  const schema = z.object({
    account: z.string(),
    amount: z.number().optional(),
  });
  const tools = Object.entries(functions).map(([name, run]) =>
    tool(
      guarded(
        client,
        "account:{account}",
        (args: { account: string; amount?: number | undefined }) =>
          run({ account: args.account, amount: args.amount ?? NaN }),
        { hold, reads: hold === "commit" && name === "read" },
      ),
      { name, description: name, schema },
    ),
  );
  const model = async ({ messages }: typeof MessagesAnnotation.State) => {
    const results: Result[] = messages
      .filter((message) => message.getType() === "tool")
      .map((message) => ({
        name: message.name ?? "",
        text: String(message.content),
      }));
    const said = await script(results);
    if (typeof said === "string") return { messages: [new AIMessage(said)] };
    const calls = said.map((call, n) => ({
      ...call,
      id: `call-${results.length + n}`,
      type: "tool_call" as const,
    }));
    return { messages: [new AIMessage({ content: "", tool_calls: calls })] };
  };
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("model", model)
    .addNode("tools", new ToolNode(tools))
    .addEdge(START, "model")
    .addConditionalEdges("model", toolsCondition)
    .addEdge("tools", "model");
  return leasedGraph(
    client,
    saver ? graph.compile({ checkpointer: saver }) : graph.compile(),
  );
}

const start = { messages: [new HumanMessage("go on")] };

runs("langgraph-invoke", (async (client, tools, script, hold) => {
  const { messages } = await follower(client, tools, script, hold).invoke(start);
  return String(messages.at(-1)?.content);
}) satisfies Agent);

runs("langgraph-stream", (async (client, tools, script, hold) => {
  let said = "";
  for await (const { messages } of await follower(client, tools, script, hold).stream(
    start,
    {
      streamMode: "values",
    },
  ))
    said = String(messages.at(-1)?.content);
  return said;
}) satisfies Agent);

runs("langgraph-events", (async (client, tools, script, hold) => {
  let said = "";
  for await (const { event, data } of follower(
    client,
    tools,
    script,
    hold,
  ).streamEvents(start, { version: "v2" }))
    if (event === "on_chain_end" && data.output?.messages)
      said = String(data.output.messages.at(-1)?.content);
  return said;
}) satisfies Agent);

runs("langgraph-batch", (async (client, tools, script, hold) => {
  const [state] = await follower(client, tools, script, hold).batch([start]);
  return String(state?.messages.at(-1)?.content);
}) satisfies Agent);

test("a run that asks a person parks its leases, and goes on with them", async () => {
  await using client = new Client({ agent: "asks" });
  await using other = new Client({ agent: "waits" });
  const account = "asks-1";
  const key = `account:${account}`;
  let balance = 100;
  const tools: Tools = {
    read: () => String(balance),
    write: ({ amount }) => {
      balance = amount ?? NaN;
      return "written";
    },
  };
  const script: Script = async (results) => {
    const last = results.at(-1);
    if (!last) return [{ name: "read", args: { account } }];
    if (last.name === "write") return last.text;
    const delta = interrupt("how much?") as number;
    return [
      { name: "write", args: { account, amount: Number(last.text) + delta } },
    ];
  };
  const graph = follower(
    client,
    tools,
    script,
    "run",
    new MemorySaver(),
  );
  const config = { configurable: { thread_id: "asks" } };
  await graph.invoke(start, config);
  assert.equal((await other.look(key)).holders[0]?.parking?.keys, "kept");
  assert.ok(
    (await other
      .lease(key, { waitMs: 0 })
      .catch((error: unknown) => error)) instanceof Held,
  );
  const { messages } = await graph.invoke(new Command({ resume: 30 }), config);
  assert.equal(String(messages.at(-1)?.content), "written");
  assert.equal(balance, 130);
  assert.deepEqual((await other.look(key)).holders, []);
});

test("a run that asks a person is refused if others wrote meanwhile", async () => {
  await using client = new Client({ agent: "asks" });
  await using other = new Client({ agent: "writes" });
  const account = "asks-2";
  let balance = 100;
  const tools: Tools = {
    read: () => String(balance),
    write: ({ amount }) => {
      balance = amount ?? NaN;
      return "written";
    },
  };
  const heard: string[] = [];
  const script: Script = async (results) => {
    const last = results.at(-1);
    if (last?.text.startsWith("Not done")) heard.push(last.text);
    if (!last || last.text.startsWith("Not done"))
      return [{ name: "read", args: { account } }];
    if (last.name === "write") return last.text;
    const delta = interrupt("how much?") as number;
    return [
      { name: "write", args: { account, amount: Number(last.text) + delta } },
    ];
  };
  const graph = follower(client, tools, script, "commit", new MemorySaver());
  const config = { configurable: { thread_id: "asks" } };
  await graph.invoke(start, config);
  await other.withLease(`account:${account}`, { purpose: "fee" }, () => {
    balance -= 10; // nobody waits for the person
  });
  await graph.invoke(new Command({ resume: 30 }), config);
  assert.match(heard[0] ?? "", /writes had it \(purpose "fee"\)/);
  const { messages } = await graph.invoke(new Command({ resume: 30 }), config);
  assert.equal(String(messages.at(-1)?.content), "written");
  assert.equal(balance, 120);
});

test("a node whose own nested lease was refused is not repeated", async () => {
  await using client = new Client({ agent: "node-1" });
  await using other = new Client({ agent: "node-2" });
  await using _ = await other.lease("ledger:taken");
  for (const retryPolicy of [
    { maxAttempts: 3 },
    { maxAttempts: 3, retryOn: (e: unknown) => e instanceof Held },
  ]) {
    let times = 0;
    const node = leasedNode(
      client,
      (state: typeof State.State) => `account:${state.account}`,
      async () => {
        times++;
        await client.withLease("ledger:taken", { waitMs: 0 }, assert.fail);
        return { done: "yes" };
      },
    );
    const graph = new StateGraph(State)
      .addNode("charge", node, {
        retryPolicy: { ...retryPolicy, initialInterval: 1 },
      })
      .addEdge(START, "charge")
      .compile();
    await assert.rejects(graph.invoke({ account: "nested" }), DoneInPart);
    assert.equal(times, 1);
  }
});

const State = Annotation.Root({
  account: Annotation<string>,
  done: Annotation<string>,
});

test("a node runs under a lease, and a retry policy waits for a holder", async () => {
  await using client = new Client({ agent: "node-1" });
  await using other = new Client({ agent: "node-2" });
  const holder = await other.lease("account:node");
  let refusals = 0;
  const node = leasedNode(
    client,
    (state: typeof State.State) => `account:${state.account}`,
    (_state, _config, lease) => ({ done: lease.fence }),
    { waitMs: 0 },
  );
  const retryOn = (error: unknown) => {
    refusals++;
    void holder.release();
    return error instanceof Held;
  };
  const graph = new StateGraph(State)
    .addNode("charge", node, {
      retryPolicy: { retryOn, initialInterval: 10, maxAttempts: 5 },
    })
    .addEdge(START, "charge")
    .addEdge("charge", END)
    .compile();
  const { done } = await graph.invoke({ account: "node" });
  assert.ok(refusals > 0 && BigInt(done) > BigInt(holder.fence));
  assert.deepEqual((await client.look("account:node")).holders, []);
});

const charge = (saver: MemorySaver) =>
  new StateGraph(State)
    .addNode("charge", () => ({ done: "yes" }))
    .addEdge(START, "charge")
    .addEdge("charge", END)
    .compile({ checkpointer: saver });

/** Ends a lease on the server. Its holder notices it at its next heartbeat, in 10 s. */
async function revoke(lease: Lease): Promise<void> {
  const body = JSON.stringify({
    key: lease.key,
    fence: lease.fence,
    reason: "it was silent",
  });
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch(`${process.env["INTERLOCK_URL"]}/v1/revocations`, {
    method: "POST",
    body,
    headers,
  });
  assert.ok(answer.ok, await answer.text());
}

test("a saver refuses a holder that has not noticed that there is a later one", async () => {
  await using client = new Client({ agent: "thread-1" });
  await using other = new Client({ agent: "thread-2" });
  const config = { configurable: { thread_id: "43" } };
  const memory = new MemorySaver();
  const first = await client.lease("thread:43", { graceMs: 0 });
  await revoke(first);
  await using later = await other.lease("thread:43");
  await charge(leasedSaver(memory, later)).invoke({ account: "later" }, config);
  assert.ok(first.held);
  const stale = charge(leasedSaver(memory, first));
  const fenced = (error: unknown) =>
    error instanceof LeaseLost && error.code === "fenced";
  await assert.rejects(stale.invoke({ account: "first" }, config), fenced);
  await assert.rejects(stale.updateState(config, { account: "first" }), fenced);
  await assert.rejects(
    leasedSaver(memory, first).putWrites(
      config,
      [["account", "first"]],
      "task",
    ),
    fenced,
  );
  await assert.rejects(leasedSaver(memory, first).deleteThread("43"), fenced);
  assert.equal((await stale.getState(config)).values.account, "later");
  await charge(leasedSaver(memory, later)).invoke({ account: "again" }, config);
});

test("a saver writes checkpoints only while the lease of its thread is held", async () => {
  await using client = new Client({ agent: "thread-1" });
  const lease = await client.lease("thread:42");
  const graph = charge(leasedSaver(new MemorySaver(), lease));
  const config = { configurable: { thread_id: "42" } };
  assert.equal((await graph.invoke({ account: "x" }, config)).done, "yes");
  assert.equal((await graph.getState(config)).values.done, "yes");
  await lease.release();
  await assert.rejects(graph.invoke({ account: "y" }, config), LeaseLost);
  assert.equal((await graph.getState(config)).values.account, "x");
});
