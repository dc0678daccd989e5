import assert from "node:assert/strict";
import { test } from "node:test";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Annotation, END, MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode, toolsCondition } from "@langchain/langgraph/prebuilt";
import { z } from "zod";
import { Client, Held, type Lease, LeaseLost, guarded } from "@interlockdev/client";
import { leasedNode, leasedSaver } from "@interlockdev/client/langgraph";
import { scenes } from "./scenes.js";

scenes("langgraph", async (client, account, run, signal) => {
  const refund = tool(
    guarded(client, "account:{account_id}", () => run(), { waitMs: 0 }),
    {
      name: "refund",
      description: "Refunds a fee",
      schema: z.object({ account_id: z.string() }),
    },
  );
  const model = ({ messages }: typeof MessagesAnnotation.State) => {
    const last = messages.at(-1);
    if (last?.getType() === "tool") return { messages: [new AIMessage(String(last.content))] };
    const call = { name: "refund", args: { account_id: account }, id: "call-1", type: "tool_call" as const };
    return { messages: [new AIMessage({ content: "", tool_calls: [call] })] };
  };
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("model", model)
    .addNode("tools", new ToolNode([refund]))
    .addEdge(START, "model")
    .addConditionalEdges("model", toolsCondition)
    .addEdge("tools", "model")
    .compile();
  const { messages } = await graph.invoke(
    { messages: [new HumanMessage("refund")] },
    signal ? { signal } : {},
  );
  return String(messages.at(-1)?.content);
});

const State = Annotation.Root({ account: Annotation<string>, done: Annotation<string> });

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
    .addNode("charge", node, { retryPolicy: { retryOn, initialInterval: 10, maxAttempts: 5 } })
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
  const body = JSON.stringify({ key: lease.key, fence: lease.fence, reason: "it was silent" });
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
  const fenced = (error: unknown) => error instanceof LeaseLost && error.code === "fenced";
  await assert.rejects(stale.invoke({ account: "first" }, config), fenced);
  await assert.rejects(stale.updateState(config, { account: "first" }), fenced);
  await assert.rejects(leasedSaver(memory, first).putWrites(config, [["account", "first"]], "task"), fenced);
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
