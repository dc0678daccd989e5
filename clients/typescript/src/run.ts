import type { Client } from "./client.js";
import { Lease } from "./lease.js";
import type { Signal } from "./stop.js";
import { checkTTL } from "./text.js";
import { limits } from "./types.js";
import type * as t from "./types.js";

/** A run of a workflow that is to be admitted. */
export interface RunOptions {
  org: string;
  workflow?: string;
  purpose?: string;
  priority?: number;
  ttlMs?: number;
  maxHoldMs?: number;
  /** How long it may stand in line: 2 s if left out, and 55 s at most. */
  waitMs?: number;
  signal?: Signal;
}

/** Starts a run, as a lease on a permit of the organisation and of the workflow. */
export async function startRun(client: Client, options: RunOptions): Promise<Lease> {
  checkTTL(options.ttlMs);
  const session = await client.keeper.session(options.signal);
  const flow = client.flowAround();
  const wait = Math.min(options.waitMs ?? limits.defaultRunWaitMs, limits.maxLongPollMs);
  const body: t.RunRequest = { org: options.org, session: session.id, flow };
  if (options.workflow !== undefined) body.workflow = options.workflow;
  if (options.purpose !== undefined) body.purpose = options.purpose;
  if (options.priority !== undefined) body.priority = options.priority;
  if (options.ttlMs !== undefined) body.ttl_ms = options.ttlMs;
  if (options.maxHoldMs !== undefined) body.max_hold_ms = options.maxHoldMs;
  const start = (waitMs: number) => {
    const idempotencyKey = crypto.randomUUID();
    return client.line.undoable(
      (sending) =>
        client.transport.send(
          "startRun",
          { body: { ...body, wait_ms: waitMs } },
          { ...sending, idempotencyKey, waitMs },
        ),
      ({ data }) => client.keeper.insist("endRun", { path: { id: data.run.id }, body: {} }),
      options.signal,
    );
  };
  const { data, sentAt } = await client.firstUnlessOwn(wait, start);
  const grant = await client.keeper.adopt(session, data.run.lease, sentAt);
  const granted: t.Granted = { ...data, lease: data.run.lease, changed: false, reused: false };
  return new Lease(client, grant, granted, flow);
}
