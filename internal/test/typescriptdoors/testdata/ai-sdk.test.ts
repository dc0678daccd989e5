import { generateText, stepCountIs, tool } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { z } from "zod";
import { guardTools, leaseOf } from "@interlockdev/client/ai-sdk";
import { scenes } from "./scenes.js";

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** A model that calls the tool, and then repeats what it has read. */
function model(account: string): MockLanguageModelV3 {
  return new MockLanguageModelV3({
    doGenerate: async ({ prompt }) => {
      const last = prompt.at(-1);
      if (last?.role !== "tool") {
        const input = JSON.stringify({ account_id: account });
        const call = { type: "tool-call" as const, toolCallId: "call-1", toolName: "refund", input };
        return {
          content: [call],
          finishReason: { unified: "tool-calls", raw: undefined },
          usage,
          warnings: [],
        };
      }
      const text = JSON.stringify(last.content);
      return {
        content: [{ type: "text", text }],
        finishReason: { unified: "stop", raw: undefined },
        usage,
        warnings: [],
      };
    },
  });
}

scenes("ai-sdk", async (client, account, run, signal) => {
  const refund = tool({
    description: "Refunds a fee",
    inputSchema: z.object({ account_id: z.string() }),
    execute: (_input, call) => {
      leaseOf(call).check();
      return run();
    },
  });
  const tools = guardTools(client, { refund }, { refund: "account:{account_id}" }, { waitMs: 0 });
  const { text } = await generateText({
    model: model(account),
    prompt: "refund the fee",
    tools,
    stopWhen: stepCountIs(3),
    ...(signal ? { abortSignal: signal } : {}),
  });
  return text;
});
