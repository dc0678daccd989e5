import type { Client } from "./client.js";

/** What is used of a process. */
interface Process {
  pid: number;
  on(signal: string, listener: () => void): void;
  off(signal: string, listener: () => void): void;
  listenerCount(signal: string): number;
  kill(pid: number, signal: string): void;
}

/** The clients that drain at a signal of the process. */
const draining = new Map<string, { clients: Set<Client>; listener: () => void }>();

/**
 * Has a client drain at signals of the process, and returns what takes that back. Once all clients have, the process
 * ends by the signal, unless the program listens to it as well. A second signal does not wait for them.
 */
export function drainOn(client: Client, signals: readonly string[]): () => void {
  const { process } = globalThis as { process?: Process };
  if (signals.length > 0 && typeof process?.on !== "function")
    throw new TypeError("drainOn needs the signals of a process, which this runtime does not have");
  for (const signal of signals) {
    let known = draining.get(signal);
    if (!known) {
      const clients = new Set<Client>();
      known = { clients, listener: () => void end(signal, clients) };
      process?.on(signal, known.listener);
      draining.set(signal, known);
    }
    known.clients.add(client);
  }
  return () => {
    for (const signal of signals) {
      const known = draining.get(signal);
      if (known?.clients.delete(client) && known.clients.size === 0) forget(signal);
    }
  };
}

function forget(signal: string): void {
  const { process } = globalThis as unknown as { process: Process };
  const known = draining.get(signal);
  if (known) process.off(signal, known.listener);
  draining.delete(signal);
}

async function end(signal: string, clients: ReadonlySet<Client>): Promise<void> {
  const { process } = globalThis as unknown as { process: Process };
  forget(signal);
  await Promise.allSettled([...clients].map((client) => client.drain()));
  if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
}
