import {
  generateText,
  simulateReadableStream,
  stepCountIs,
  streamText,
  tool,
  type ToolSet,
} from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { z } from "zod";
import { guardTools, leaseOf } from "@interlockdev/client/ai-sdk";
import {
  type Agent,
  type Result,
  type Script,
  runs,
  scenes,
} from "./scenes.js";

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
        const call = {
          type: "tool-call" as const,
          toolCallId: "call-1",
          toolName: "refund",
          input,
        };
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

for (const hold of ["run", "call"] as const) {
  scenes(`ai-sdk-${hold}`, async (client, account, run, signal) => {
    const refund = tool({
      description: "Refunds a fee",
      inputSchema: z.object({ account_id: z.string() }),
      execute: (_input, call) => {
        leaseOf(call).check();
        return run();
      },
    });
    const tools = guardTools(
      client,
      { refund },
      { refund: "account:{account_id}" },
      { waitMs: 0, hold },
    );
    const answer = () =>
      generateText({
        model: model(account),
        prompt: "refund the fee",
        tools,
        stopWhen: stepCountIs(3),
        ...(signal ? { abortSignal: signal } : {}),
      });
    const { text } = await (hold === "run" ? client.turn(answer) : answer());
    return text;
  });
}

type Prompt = Parameters<MockLanguageModelV3["doGenerate"]>[0]["prompt"];
type Stream = Awaited<ReturnType<MockLanguageModelV3["doStream"]>>["stream"];
type Chunk = Stream extends ReadableStream<infer C> ? C : never;

/** Returns what a model says next, in the form of the SDK. */
async function next(script: Script, prompt: Prompt) {
  const results: Result[] = [];
  for (const message of prompt) {
    if (message.role !== "tool") continue;
    for (const part of message.content)
      if (part.type === "tool-result")
        results.push({
          name: part.toolName,
          text: String((part.output as { value?: unknown }).value),
        });
  }
  const said = await script(results);
  if (typeof said === "string")
    return {
      content: [{ type: "text" as const, text: said }],
      reason: "stop" as const,
    };
  const content = said.map(({ name, args }, n) => ({
    type: "tool-call" as const,
    toolCallId: `call-${results.length + n}`,
    toolName: name,
    input: JSON.stringify(args),
  }));
  return { content, reason: "tool-calls" as const };
}

const agent =
  (
    answer: (model: MockLanguageModelV3, tools: ToolSet) => Promise<string>,
  ): Agent =>
  (client, functions, script, hold = "run") => {
    const inputSchema = z.object({
      account: z.string(),
      amount: z.number().optional(),
    });
    const tools = Object.fromEntries(
      Object.entries(functions).map(([name, run]) => [
        name,
        tool({
          inputSchema,
          execute: async ({ account, amount }) =>
            run({ account, amount: amount ?? NaN }),
        }),
      ]),
    );
    const keys = Object.fromEntries(
      Object.keys(tools).map((name) => [name, "account:{account}"]),
    );
    const fake = new MockLanguageModelV3({
      doGenerate: async ({ prompt }) => {
        const { content, reason } = await next(script, prompt);
        return {
          content,
          finishReason: { unified: reason, raw: undefined },
          usage,
          warnings: [],
        };
      },
      doStream: async ({ prompt }) => {
        const { content, reason } = await next(script, prompt);
        const chunks = content.flatMap((part): Chunk[] =>
          part.type === "tool-call"
            ? [part]
            : [
                { type: "text-start" as const, id: "1" },
                { type: "text-delta" as const, id: "1", delta: part.text },
                { type: "text-end" as const, id: "1" },
              ],
        );
        const finish: Chunk = {
          type: "finish",
          finishReason: { unified: reason, raw: undefined },
          usage,
        };
        return {
          stream: simulateReadableStream({ chunks: [...chunks, finish] }),
        };
      },
    });
    const options =
      hold === "commit" ? { hold, reads: ["read"] } : ({ hold } as const);
    return client.turn(() =>
      answer(fake, guardTools(client, tools, keys, options)),
    );
  };

const settings = { prompt: "go on", stopWhen: stepCountIs(9) };
runs(
  "ai-sdk-text",
  agent(
    async (model, tools) =>
      (await generateText({ ...settings, model, tools })).text,
  ),
);
runs(
  "ai-sdk-stream",
  agent(
    async (model, tools) =>
      await streamText({ ...settings, model, tools }).text,
  ),
);
