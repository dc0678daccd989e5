/** Two processes run one thread of LangGraph.js, whose checkpoints have the balance. Each lease is one run. */
import { setTimeout } from "node:timers/promises";
import { Annotation, type BaseCheckpointSaver, MemorySaver, START, StateGraph } from "@langchain/langgraph";
import { Client } from "@interlockdev/client";
import { leasedSaver } from "@interlockdev/client/langgraph";

async function chargeThread(client: Client, saver: BaseCheckpointSaver): Promise<void> {
  const config = { configurable: { thread_id: "42" } };
  await client.withLease(
    "thread:42",
    { purpose: "charge the fee", waitMs: 20_000 },
    async (lease, signal) => {
      const graph = builder.compile({ checkpointer: leasedSaver(saver, lease) });
      const { balance } = await graph.invoke({ fee: 35 }, { ...config, signal });
      console.log(`${balance} left, under fence ${lease.fence}`);
    },
  );
}

const Account = Annotation.Root({ balance: Annotation<number>, fee: Annotation<number> });

async function charge({ balance, fee }: typeof Account.State): Promise<typeof Account.Update> {
  await setTimeout(50); // a model thinks
  return { balance: (balance ?? 100) - fee };
}

const builder = new StateGraph(Account).addNode("charge", charge).addEdge(START, "charge");

async function run(name: string, saver: BaseCheckpointSaver): Promise<void> {
  const client = new Client({ agent: name });
  await chargeThread(client, saver);
  await client.close();
}

const saver = new MemorySaver();
await Promise.all([run("ann", saver), run("bob", saver)]);
const latest = await saver.getTuple({ configurable: { thread_id: "42" } });
console.log("balance", latest?.checkpoint.channel_values["balance"]);
