/** Two agents of the Vercel AI SDK charge one account. The model is its mock. */
import { type LanguageModel, generateText, stepCountIs, tool } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { z } from "zod";
import { balances, charge } from "./bank.js";
import { Client } from "@interlockdev/client";
import { guardTools, leaseOf } from "@interlockdev/client/ai-sdk";

function teller(client: Client, model: LanguageModel) {
  const chargeTool = tool({
    description: "Charges a fee to an account.",
    inputSchema: z.object({ account_id: z.string(), amount: z.number() }),
    execute: ({ account_id, amount }, call) => charge(account_id, amount, leaseOf(call).fence),
  });
  const tools = guardTools(
    client,
    { chargeTool },
    { chargeTool: "account:{account_id}" },
    { waitMs: 20_000 },
  );
  return generateText({ model, tools, prompt: "charge the fee", stopWhen: stepCountIs(3) });
}

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** Calls the tool, and repeats its result. */
const fake = () =>
  new MockLanguageModelV3({
    doGenerate: async ({ prompt }) => {
      const last = prompt.at(-1);
      if (last?.role !== "tool") {
        const input = JSON.stringify({ account_id: "7", amount: 35 });
        const call = { type: "tool-call" as const, toolCallId: "1", toolName: "chargeTool", input };
        return {
          content: [call],
          finishReason: { unified: "tool-calls", raw: undefined },
          usage,
          warnings: [],
        };
      }
      const [result] = last.content;
      const text = result?.type === "tool-result" && result.output.type === "text" ? result.output.value : "";
      const content = [{ type: "text" as const, text }];
      return { content, finishReason: { unified: "stop", raw: undefined }, usage, warnings: [] };
    },
  });

async function run(name: string): Promise<void> {
  const client = new Client({ agent: name });
  console.log((await teller(client, fake())).text);
  await client.close();
}

await Promise.all([run("ann"), run("bob")]);
console.log("balance", balances["7"]);
