/** Two agents of LangGraph.js charge one account: one tool reads, one writes. The model is a fake one. */
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode, toolsCondition } from "@langchain/langgraph/prebuilt";
import { z } from "zod";
import { balances, read, write } from "./bank.js";
import { Client, guarded } from "@interlockdev/client";
import { leasedGraph } from "@interlockdev/client/langgraph";

type Account = { account_id: string };

function teller(client: Client) {
  const keys = "account:{account_id}";
  const readBalance = tool(
    guarded(client, keys, ({ account_id }: Account) => read(account_id), { waitMs: 20_000 }),
    { name: "readBalance", schema: z.object({ account_id: z.string() }) },
  );
  const writeBalance = tool(
    guarded(
      client,
      keys,
      ({ account_id, balance }: Account & { balance: number }, lease) =>
        write(account_id, balance, lease.fence),
      { waitMs: 20_000 },
    ),
    { name: "writeBalance", schema: z.object({ account_id: z.string(), balance: z.number() }) },
  );
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("model", model)
    .addNode("tools", new ToolNode([readBalance, writeBalance]))
    .addEdge(START, "model")
    .addConditionalEdges("model", toolsCondition)
    .addEdge("tools", "model");
  return leasedGraph(client, graph.compile());
}

/** Reads the balance, writes what is left of it, and repeats the last result. */
function model({ messages }: typeof MessagesAnnotation.State): typeof MessagesAnnotation.Update {
  const last = messages.at(-1);
  const call = (name: string, args: object) => ({
    messages: [
      new AIMessage({ content: "", tool_calls: [{ name, args: { account_id: "7", ...args }, id: name }] }),
    ],
  });
  if (last?.getType() !== "tool") return call("readBalance", {});
  if (last.name === "readBalance") return call("writeBalance", { balance: Number(last.content) - 35 });
  return { messages: [new AIMessage(String(last.content))] };
}

async function run(name: string): Promise<void> {
  const client = new Client({ agent: name });
  const { messages } = await teller(client).invoke({ messages: [new HumanMessage("charge a fee of 35")] });
  console.log(messages.at(-1)?.content);
  await client.close();
}

await Promise.all([run("ann"), run("bob")]);
console.log("balance", balances["7"]);
