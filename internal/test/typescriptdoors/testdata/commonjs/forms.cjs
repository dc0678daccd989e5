// CommonJS and ES modules in one process.
const { Client, Held } = require("@interlockdev/client");

async function forms() {
  const modules = await import("@interlockdev/client");
  for (const name of ["Client", "Held", "Lease", "LeaseLost", "guarded", "put"]) {
    if (modules[name] !== require("@interlockdev/client")[name]) throw new Error(`there are two of ${name}`);
  }
  const { guardTools } = await import("@interlockdev/client/ai-sdk");
  if (guardTools !== require("@interlockdev/client/ai-sdk").guardTools) throw new Error("there are two");
  const client = new modules.Client({ agent: "forms" });
  const key = `forms:${crypto.randomUUID()}`;
  const lease = await client.lease(key);
  const refusal = await client.lease(key, { waitMs: 0 }).catch((error) => error);
  if (!(refusal instanceof Held) || !(client instanceof Client)) throw refusal;
  await lease.release();
  await client.close();
  console.log("ok");
}

forms();
