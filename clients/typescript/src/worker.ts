import type { Client } from "./client.js";
import { clip } from "./effect.js";
import { InterlockError, LeaseLost, OutcomeUnknown, Unreachable, sessionIsGone } from "./errors.js";
import { Lease, under } from "./lease.js";
import type { Session } from "./keeper.js";
import { sleep, type Signal } from "./stop.js";
import type * as t from "./types.js";

/** A task that a worker has been given. */
export interface Job {
  task: t.Task;
  /** What the submitter has sent along. */
  payload: unknown;
  /** The lease on the task's keys. */
  lease: Lease;
  /** Aborts when the lease is lost. */
  signal: AbortSignal;
  /** The documents at the task's keys. */
  documents: readonly t.Document[];
  /** A person's answer to an earlier question of the task. */
  approval: t.Approval | undefined;
}

/** The end of a task that is done. All of it takes effect together, or nothing. */
export interface Done {
  /** The task's result; of a message, the reply. */
  result?: unknown;
  reads?: t.ReadRequest[];
  writes?: t.WriteRequest[];
  /** Requires that no key of the commit was written after this version. */
  asOf?: t.Decimal;
  /** Follow-up tasks. */
  tasks?: t.TaskRequest[];
  messages?: t.MessageRequest[];
  /** For the next holder of the keys, and with the written documents. */
  note?: string;
}

/** How a process works on the tasks of a queue. */
export interface WorkOptions {
  queue: string;
  /** How many tasks are handled at a time: 1 if left out. */
  concurrency?: number;
  /** The ttl of the leases; the queue's if left out. */
  ttlMs?: number;
  /** Ends the work: no more tasks are taken, and those that run are finished. */
  signal?: Signal;
  /** Is called for each attempt that did not end with the task done. */
  onError?: (error: unknown, job: Job) => void;
}

/** Thrown by a handler: the attempt has failed, and the next one comes after delayMs. */
export class RetryAfter extends Error {
  override name = "RetryAfter";

  constructor(
    readonly delayMs: number,
    reason: string,
  ) {
    super(reason);
  }
}

/** Thrown by a handler: no further attempt makes sense. */
export class Dead extends Error {
  override name = "Dead";
}

/** Thrown by a handler: a person has to decide first. The next attempt has the answer. */
export class NeedsApproval extends Error {
  override name = "NeedsApproval";

  constructor(readonly question: t.Question) {
    super(question.question);
  }
}

/** How long one pull waits for tasks. */
const pullMs = 30_000;

/** Works on the tasks of a queue; see Client.work. */
export async function work(
  client: Client,
  options: WorkOptions,
  handle: (job: Job) => Done | undefined | void | PromiseLike<Done | undefined | void>,
): Promise<void> {
  const most = options.concurrency ?? 1;
  const running = new Set<Promise<void>>();
  const { signal } = options;
  try {
    while (!signal?.aborted) {
      if (running.size >= most) {
        await Promise.race(running);
        continue;
      }
      for (const handed of await pull(client, options, most - running.size)) {
        const run = attempt(client, handed, options, handle).finally(() => running.delete(run));
        running.add(run);
      }
    }
  } finally {
    await Promise.all(running);
  }
}

/** A task as it was handed out, in answer to a pull that was sent at sentAt. */
interface Handed {
  session: Session;
  assignment: t.Assignment;
  sentAt: number;
}

/** Pulls tasks. A pull whose answer was lost is repeated under its key, until it is known. */
async function pull(client: Client, options: WorkOptions, max: number): Promise<Handed[]> {
  const { signal } = options;
  const idempotencyKey = crypto.randomUUID();
  const path = { queue: options.queue };
  const ask = async (session: Session, wait: number, ends: Signal) => {
    const body: t.PullRequest = { session: session.id, max, wait_ms: wait };
    if (options.ttlMs !== undefined) body.ttl_ms = options.ttlMs;
    const answer = await client.transport.send(
      "pullTasks",
      { path, body },
      { signal: ends, idempotencyKey, waitMs: wait },
    );
    return answer.data.tasks.map((assignment) => ({ session, assignment, sentAt: answer.sentAt }));
  };
  for (let tries = 0; ; tries++) {
    let session: Session | undefined;
    try {
      session = await client.keeper.session(signal);
      return await ask(session, pullMs, signal ?? client.keeper.closed);
    } catch (error) {
      if (client.keeper.closed.aborted) throw client.keeper.closed.reason;
      if (signal?.aborted) {
        // The server may have handed tasks out in that moment: they go to others at once.
        if (session) await giveBack(client, await ask(session, 0, client.keeper.closed).catch(() => []));
        return [];
      }
      if (!(error instanceof InterlockError)) throw error;
      if (session && sessionIsGone(error.code)) client.keeper.sessionLost(session, error);
      else if (!(error instanceof Unreachable || error instanceof OutcomeUnknown)) throw error;
      await sleep(Math.random() * Math.min(5000, 100 * 2 ** tries), signal).catch(() => {});
    }
  }
}

async function giveBack(client: Client, tasks: Handed[]): Promise<void> {
  const body = { reason: "the worker is stopping", delay_ms: 0 };
  const work = tasks.map(({ assignment: { lease } }) =>
    client.request("nackTask", { path: { id: lease.id }, body }),
  );
  await Promise.allSettled(work);
}

/** Handles one task, and reports how that ended. */
async function attempt(
  client: Client,
  { session, assignment, sentAt }: Handed,
  options: WorkOptions,
  handle: (job: Job) => Done | undefined | void | PromiseLike<Done | undefined | void>,
): Promise<void> {
  const { task, changed, notes, documents, as_of } = assignment;
  const granted = {
    ...assignment,
    outcome: "granted",
    reused: false,
    changed,
    notes,
    as_of,
  } as unknown as t.Granted;
  const grant = await client.keeper.adopt(session, assignment.lease, sentAt).catch(() => undefined);
  if (!grant) return; // it was over before it arrived
  const lease = new Lease(client, grant, granted, task.id);
  const { payload, approval } = task;
  const job: Job = { task, payload, lease, signal: lease.signal, documents, approval };
  const path = { id: lease.id };
  let failure: unknown;
  try {
    const done = (await handle(job)) ?? {};
    const { result, reads, writes, asOf, tasks, messages, note } = done;
    const body = { result, reads, writes, as_of: asOf, tasks, messages, note } as t.AckRequest;
    await under([lease], () => client.request("ackTask", { path, body }));
    lease.end("its task is done");
    return;
  } catch (error) {
    failure = error;
  }
  try {
    options.onError?.(failure, job);
  } finally {
    if (!(failure instanceof LeaseLost)) await report(client, path, failure);
    lease.end("the attempt at its task is over");
  }
}

/** Reports that an attempt has failed. If no server gets it, the end of the lease tells. */
async function report(client: Client, path: { id: t.LeaseID }, failure: unknown): Promise<void> {
  const reason = clip(failure instanceof Error ? failure.message : String(failure));
  try {
    if (failure instanceof NeedsApproval) {
      await client.request("requestApproval", { path, body: failure.question });
      return;
    }
    const body: t.NackRequest = { reason };
    if (failure instanceof RetryAfter) body.delay_ms = failure.delayMs;
    if (failure instanceof Dead) body.dead = true;
    await client.request("nackTask", { path, body });
  } catch (error) {
    if (!(error instanceof InterlockError)) throw error;
  }
}
