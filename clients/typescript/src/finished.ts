import type { Client } from "./client.js";
import { Deadlock, Refused } from "./errors.js";
import type { RequestOptions } from "./options.js";
import { Pace } from "./stop.js";
import { limits, type Operations } from "./types.js";
import type * as t from "./types.js";

/** How long one question lasts while what it waits for may come to be a lease around the caller. */
export const shortPollMs = 5000;

/** Who waits: a client and a flow of its session. */
export interface Waiter {
  client: Client;
  flow: string;
}

const settled: ReadonlySet<string | undefined> = new Set(["done", "dead", "cancelled"]);

/**
 * Waits for the end of a task. A task that waits for what encloses the call would never end: the server finds that
 * at once, by the session and flow of a wait. Each wait has one of each, so those around the call ask in turn.
 */
export async function finished(
  client: Client,
  id: t.TaskID,
  waiters: Waiter[],
  { signal, waitMs = Infinity }: RequestOptions & { waitMs?: number },
): Promise<t.Task> {
  const { clock, party } = client;
  const until = clock.steady() + waitMs;
  const pace = new Pace(clock);
  for (let n = 0, all = waiters.length; ; n++) {
    const most = waiters.length < 2 ? limits.maxLongPollMs : n < all ? 100 : shortPollMs;
    const wait = Math.round(Math.max(0, Math.min(most, until - clock.steady())));
    const query: NonNullable<Operations["getTask"]["query"]> = { wait_ms: wait };
    const waiter = waiters.shift();
    if (waiter) {
      query.session = (await waiter.client.keeper.session(signal)).id;
      query.flow = waiter.flow;
    }
    try {
      const view = await client.request("getTask", { path: { id }, query }, { signal, waitMs: wait });
      if (settled.has(view.task.state) || clock.steady() >= until) return view.task;
      if (waiter) waiters.push(waiter);
    } catch (error) {
      const isOther = waiter !== undefined && waiter.client.party !== party;
      if (!isOther || error instanceof Deadlock || !(error instanceof Refused)) throw error;
      continue; // that session has ended, or is of no use here
    }
    await pace.next(signal);
  }
}
