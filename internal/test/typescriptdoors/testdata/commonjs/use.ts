// A module of CommonJS, as NestJS, jest and tsc make them.
import { Client, Held, InterlockError, type Lease } from "@interlockdev/client";
import { guardTools } from "@interlockdev/client/ai-sdk";
import { leasedNode } from "@interlockdev/client/langgraph";

async function use(): Promise<string> {
  const one = new Client({ agent: "commonjs-1" });
  const two = new Client({ agent: "commonjs-2" });
  const key = `commonjs:${crypto.randomUUID()}`;
  const lease: Lease = await one.lease(key);
  const refusal: unknown = await two.lease(key, { waitMs: 0 }).catch((error: unknown) => error);
  await Promise.all([one.close(), two.close()]);
  const good = refusal instanceof Held && refusal instanceof InterlockError && lease.key === key;
  return good && typeof guardTools === "function" && typeof leasedNode === "function" ? "ok" : "wrong";
}

use().then(
  (word) => console.log(word),
  (error: unknown) => {
    console.error(error);
    process.exitCode = 1;
  },
);
