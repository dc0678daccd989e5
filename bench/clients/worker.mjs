// One run of the bench of clients in JavaScript: a load on one service by one client. The result is a line of JSON.
//
// The clients are that of Interlock, whose folder is the environment variable INTERLOCK_CLIENT, and the npm package
// redis with SET NX PX and a compare-and-delete by a script, from the folder REDIS_MODULES.
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const TTL_MS = 30_000;
const SETTLED_MS = 1000; // how long after the last lease its client is left alone

const DELETE = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end';

async function interlock(url) {
  const { Client } = await import(join(process.env.INTERLOCK_CLIENT, "index.js"));
  return new Client({ url, agent: "bench", sessionTTLMs: TTL_MS });
}

const clients = {
  async interlock(url) {
    const client = await interlock(url);
    const cycle = (key) => client.withLease(key, {}, () => undefined);
    return { cycle, close: () => client.close() };
  },

  async redis(url) {
    const redis = createRequire(join(process.env.REDIS_MODULES, "x.js"))("redis").createClient(url);
    const call = (name, ...args) =>
      new Promise((done, failed) => redis[name](...args, (error, value) => (error ? failed(error) : done(value))));
    const sha = await call("script", "LOAD", DELETE);
    const cycle = async (key) => {
      const token = randomUUID();
      if ((await call("set", key, token, "NX", "PX", TTL_MS)) !== "OK") throw new Error(`${key} is held`);
      if ((await call("evalsha", sha, 1, key, token)) !== 1) throw new Error(`${key} was lost`);
    };
    return { cycle, close: () => call("quit") };
  },
};

async function cycles(client, url, callers, warmMs, lengthMs) {
  const { cycle, close } = await clients[client](url);
  const begin = performance.now() + warmMs;
  const end = begin + lengthMs;
  const took = [];
  const call = async (key) => {
    for (let now = 0; now < end; ) {
      const began = performance.now();
      await cycle(key);
      now = performance.now();
      if (began >= begin && now <= end) took.push(now - began);
    }
  };
  await Promise.all(Array.from({ length: callers }, (_, i) => call(`bench:${i}`)));
  await close();
  if (took.length === 0) throw new Error("no cycle was complete within the time");
  took.sort((a, b) => a - b);
  const at = (part) => 1e3 * took[Math.min(took.length - 1, Math.floor(took.length * part))];
  return { cycles: (1e3 * took.length) / lengthMs, p50: at(0.5), p99: at(0.99) };
}

async function hold(url, leases, lengthMs) {
  const client = await interlock(url);
  const held = [];
  for (let i = 0; i < leases; i++) held.push(await client.lease(`hold:${i}`));
  await sleep(SETTLED_MS);
  const used = process.cpuUsage();
  const began = performance.now();
  await sleep(lengthMs);
  const { user, system } = process.cpuUsage(used);
  const core = (100 * (user + system)) / 1e3 / (performance.now() - began);
  for (const lease of held) lease.check();
  await client.close();
  return { core };
}

const [client, , url, load, warm, seconds] = process.argv.slice(2);
const result =
  client === "hold"
    ? await hold(url, Number(load), 1e3 * Number(seconds))
    : await cycles(client, url, Number(load), 1e3 * Number(warm), 1e3 * Number(seconds));
console.log(JSON.stringify(result));
