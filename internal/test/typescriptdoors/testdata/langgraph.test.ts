import assert from "node:assert/strict";
import { test } from "node:test";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Annotation, END, MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode, toolsCondition } from "@langchain/langgraph/prebuilt";
import { z } from "zod";
import { Client, Held, LeaseLost, guarded } from "@interlockdev/client";
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

test("a saver writes checkpoints only while the lease of its thread is held", async () => {
  await using client = new Client({ agent: "thread-1" });
  const lease = await client.lease("thread:42");
  const saver = leasedSaver(new MemorySaver(), lease);
  const graph = new StateGraph(State)
    .addNode("charge", () => ({ done: "yes" }))
    .addEdge(START, "charge")
    .addEdge("charge", END)
    .compile({ checkpointer: saver });
  const config = { configurable: { thread_id: "42" } };
  assert.equal((await graph.invoke({ account: "x" }, config)).done, "yes");
  assert.equal((await graph.getState(config)).values.done, "yes");
  await lease.release();
  await assert.rejects(graph.invoke({ account: "y" }, config), LeaseLost);
  assert.equal((await graph.getState(config)).values.account, "x");
});
