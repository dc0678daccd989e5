/** Two agents of the Vercel AI SDK charge one account, and none waits while the other one thinks. The model is a mock. */
import { type LanguageModel, generateText, stepCountIs, tool } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { z } from "zod";
import { balances, read, write } from "./bank.js";
import { Client } from "@interlockdev/client";
import { guardTools, leaseOf } from "@interlockdev/client/ai-sdk";

function teller(client: Client, model: LanguageModel) {
  const readBalance = tool({
    description: "Reads the balance of an account.",
    inputSchema: z.object({ account_id: z.string() }),
    execute: ({ account_id }) => read(account_id),
  });
  const writeBalance = tool({
    description: "Writes the balance of an account.",
    inputSchema: z.object({ account_id: z.string(), balance: z.number() }),
    execute: ({ account_id, balance }, call) => write(account_id, balance, leaseOf(call).fence),
  });
  const account = "account:{account_id}";
  const tools = guardTools(
    client,
    { readBalance, writeBalance },
    { readBalance: account, writeBalance: account },
    { hold: "commit", reads: ["readBalance"], waitMs: 20_000 },
  );
  return client.turn(() =>
    generateText({ model, tools, prompt: "charge a fee of 35", stopWhen: stepCountIs(9) }),
  );
}

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** Reads the balance, writes what is left of it, reads again if it is told to, and repeats the last result. */
const fake = () =>
  new MockLanguageModelV3({
    doGenerate: async ({ prompt }) => {
      const said = prompt.flatMap((message) => (message.role === "tool" ? message.content : []));
      const texts = said.flatMap((part) =>
        part.type === "tool-result" && part.output.type === "text" ? [part.output.value] : [],
      );
      const last = texts.at(-1) ?? "read it again";
      const warnings: never[] = [];
      if (last.includes("left")) {
        const content = [{ type: "text" as const, text: last }];
        return { content, finishReason: { unified: "stop", raw: undefined }, usage, warnings };
      }
      const [toolName, args] = last.includes("read it again")
        ? ["readBalance", {}]
        : ["writeBalance", { balance: Number(last) - 35 }];
      const input = JSON.stringify({ account_id: "7", ...args });
      const call = { type: "tool-call" as const, toolCallId: `${toolName}-${texts.length}`, toolName, input };
      return { content: [call], finishReason: { unified: "tool-calls", raw: undefined }, usage, warnings };
    },
  });

async function run(name: string): Promise<void> {
  const client = new Client({ agent: name });
  console.log((await teller(client, fake())).text);
  await client.close();
}

await Promise.all([run("ann"), run("bob")]);
console.log("balance", balances["7"]);
