import type { Client } from "./client.js";
import { backoff, cancel, later } from "./clock.js";
import {
  Exhausted,
  InterlockError,
  InvalidRequest,
  OutcomeUnknown,
  TaskMoved,
  leaseIsGone,
  mayPass,
  sessionIsGone,
} from "./errors.js";
import { within } from "./context.js";
import { Run } from "./hold.js";
import { resultOf, unstored, type Result } from "./json.js";
import { lossOf, type Session } from "./keeper.js";
import { Lease } from "./lease.js";
import { Pace, linked, listen, sleep, type Signal } from "./stop.js";
import { checkTTL, clip, isA, warn, words } from "./text.js";
import type { RequestParameters } from "./transport.js";
import { limits } from "./types.js";
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
  /** The task's result, at most 64 KiB of JSON; of a message, the reply. */
  result?: unknown;
  reads?: t.ReadRequest[];
  writes?: t.WriteRequest[];
  /** Requires that no key of the commit was written after this version. */
  asOf?: t.Decimal;
  /** Follow-up tasks. */
  tasks?: t.TaskRequest[];
  messages?: t.MessageRequest[];
  /** For the next holder of the keys, and with the written documents: what is above 4 KiB is cut off. */
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
  /**
   * What becomes of a task whose handler has returned a result that cannot be stored. done, if left out:
   * in place of the result it has { interlock: "result not stored", reason }. dead: it fails for that
   * reason. It is not handled again, as its work was done.
   */
  unstorable?: "done" | "dead";
  /** Is called for each attempt that did not end with the task done. An error that it throws is a warning. */
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

type Handler = (job: Job) => Done | undefined | void | PromiseLike<Done | undefined | void>;

/** Works on the tasks of a queue; see Client.work. */
export async function work(client: Client, options: WorkOptions, handle: Handler): Promise<void> {
  checkTTL(options.ttlMs);
  const most = options.concurrency ?? 1;
  if (!(most >= 1)) throw new TypeError(`a concurrency of ${most} handles nothing: use 1 or more`);
  const { closed } = client.keeper;
  if (closed.aborted) throw closed.reason;
  const worker = new Worker(client, options, handle);
  const running = new Set<Promise<void>>();
  let pace = new Pace(client.clock);
  try {
    while (!worker.stop.aborted) {
      if (running.size >= most) {
        await Promise.race(running);
        continue;
      }
      const tasks = await worker.pull(Math.min(most - running.size, limits.maxPull));
      if (tasks.length > 0) pace = new Pace(client.clock);
      else await pace.next(worker.stop).catch(() => {});
      for (const handed of tasks) {
        const run = worker.run(handed).finally(() => running.delete(run));
        running.add(run);
      }
    }
  } finally {
    await Promise.all(running);
    worker.end();
  }
}

/** A task as it was handed out, in answer to a pull that was sent at sentAt. */
interface Handed {
  session: Session;
  assignment: t.Assignment;
  sentAt: number;
}

class Worker {
  /** Ends the pulls: with the signal of the options, or with the client. */
  readonly stop: AbortSignal;
  /** Ends the waiting for reports: as long after that as a request is tried again. */
  readonly #late = new AbortController();
  readonly #undo: (() => void)[] = [];
  /** Whether it was told that no server answers, since one did. */
  #told = false;

  constructor(
    readonly client: Client,
    readonly options: WorkOptions,
    readonly handle: Handler,
  ) {
    const { signal, end } = linked([options.signal, client.draining, client.keeper.closed]);
    this.stop = signal;
    const hurry = () => {
      const timer = later(() => this.#late.abort(signal.reason), client.transport.config.retryForMs);
      this.#undo.push(() => cancel(timer));
    };
    this.#undo.push(end);
    if (signal.aborted) hurry();
    else this.#undo.push(listen(signal, hurry));
  }

  end(): void {
    for (const undo of this.#undo) undo();
  }

  /** Warns once that no server answers. */
  readonly #tell = (error: InterlockError): void => {
    if (this.#told) return;
    this.#told = true;
    warn(
      `the worker of the queue ${this.options.queue} goes on when a server answers again: ${error.message}`,
    );
  };

  /** Pulls tasks. A pull whose answer was lost is repeated under its key, until it is known. */
  async pull(max: number): Promise<Handed[]> {
    const { client, options, stop } = this;
    const { keeper } = client;
    const path = { queue: options.queue };
    const body = (session: Session, wait: number): t.PullRequest => ({
      session: session.id,
      max,
      wait_ms: wait,
      ...(options.ttlMs === undefined ? {} : { ttl_ms: options.ttlMs }),
    });
    let session: Session | undefined;
    let idempotencyKey = "";
    const handed = ({ data, sentAt }: { data: t.Pulled; sentAt: number }, session: Session): Handed[] => {
      this.#told = false;
      return data.tasks.map((assignment) => ({ session, assignment, sentAt }));
    };
    for (let tries = 1; ; tries++) {
      try {
        const present = await keeper.session(stop);
        if (present !== session) idempotencyKey = crypto.randomUUID(); // it is another request
        session = present;
        const parameters = { path, body: body(present, pullMs) };
        const sending = { signal: stop, idempotencyKey, waitMs: pullMs };
        return handed(await client.transport.send("pullTasks", parameters, sending), present);
      } catch (error) {
        if (keeper.closed.aborted) return [];
        if (stop.aborted) {
          // The server may have handed tasks out in that moment: they go to others at once.
          if (session) {
            const asked = session;
            const last = keeper.insist("pullTasks", { path, body: body(asked, 0) }, { idempotencyKey });
            await client.line.shielded(last.then((answer) => this.#giveBack(handed(answer, asked))));
          }
          return [];
        }
        if (!(error instanceof InterlockError)) throw error;
        if (session && sessionIsGone(error.code)) keeper.sessionLost(session, error);
        else if (!(mayPass(error) || error instanceof Exhausted) || (!error.retryable && !session))
          throw error;
        else this.#tell(error);
        await sleep(Math.max(error.retryAfterMs, backoff(tries, 0, 5000)), stop).catch(() => {});
      }
    }
  }

  async #giveBack(tasks: Handed[]): Promise<void> {
    const body = { reason: "the worker is stopping", delay_ms: 0 };
    const work = tasks.map(({ assignment: { lease } }) =>
      this.client.keeper.insist("nackTask", { path: { id: lease.id }, body }),
    );
    await Promise.allSettled(work);
  }

  /** Handles one task. It ends with the attempt, or when that can never end. */
  run(handed: Handed): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#attempt(handed, resolve).then(resolve, reject);
    });
  }

  /**
   * Handles one task, and reports how that ended, whatever comes: a lease that nobody ends is kept by the
   * heartbeats for as long as the process lives. lost is called if the handler waits for what cannot come, and was
   * collected as garbage: what holds it must hold no part of the attempt.
   */
  async #attempt({ session, assignment, sentAt }: Handed, lost: () => void): Promise<void> {
    const { client } = this;
    const report = new Report(client, assignment.lease.id, this.#late.signal, this.#tell);
    let lease: Lease | undefined;
    let isReported = false;
    let failure: unknown = new Error("the worker failed");
    const run = new Run();
    try {
      const grant = await client.keeper.adopt(session, assignment.lease, sentAt);
      grant.abandon = report.abandoned(lost);
      const granted = { ...assignment, outcome: "granted", reused: false } as unknown as t.Granted;
      const { task, documents } = assignment;
      const { payload, approval } = task;
      lease = new Lease(client, grant, granted, task.id);
      const held = lease;
      const job: Job = { task, payload, lease, signal: lease.signal, documents, approval };
      try {
        const done =
          (await held.enclose(() => within({ client, flow: task.id, run }, () => this.handle(job)))) ?? {};
        if (lease.loss) throw lease.loss; // told of it, the handler may have stopped halfway
        lease.reports();
        await this.#acknowledge(report, task, done, lease);
        isReported = true;
      } catch (error) {
        failure = error;
        this.#complain(error, job);
      }
    } catch (error) {
      failure = error;
    } finally {
      lease?.reports();
      const ended = run.end();
      if (!isReported) await report.failed(failure);
      await ended;
      lease?.end(isReported ? "its task is done" : "the attempt at its task is over");
    }
  }

  /** Reports that a task is done. It throws what ends the attempt otherwise. */
  async #acknowledge(report: Report, task: t.Task, done: Done, lease: Lease): Promise<void> {
    let stored: Result | undefined;
    const ack = async (): Promise<void> => {
      const { reads, writes, asOf, tasks, messages, note } = done;
      if (stored?.problem !== undefined) {
        if (this.options.unstorable === "dead") throw new Dead(`result not stored: ${stored.problem}`);
        warn(`the task ${task.id} is done, and its result is not stored: ${stored.problem}`);
      }
      const body = { result: stored?.value, reads, writes, as_of: asOf, tasks, messages } as t.AckRequest;
      if (note !== undefined) body.note = clip(String(note), limits.maxNoteBytes);
      await report.send("ackTask", body);
    };
    try {
      const { result } = done;
      if (result !== undefined) stored = resultOf(result);
      try {
        await ack();
      } catch (error) {
        if (!isRefusedAsWrong(error) || !stored || stored.problem !== undefined) throw error;
        stored = unstored(error.message);
        await ack();
      }
    } catch (error) {
      if (isHopeless(error) || !isA(error, InterlockError)) {
        if (isA(error, Dead)) throw error;
        throw new Dead(`it was handled, and what the handler returned is refused: ${words(error)}`);
      }
      if (isRefusal(error) && leaseIsGone(error.code)) {
        lease.lose(lossOf(error));
        throw lease.loss ?? error;
      }
      throw error;
    }
  }

  /** Tells the program of an attempt that failed. */
  #complain(error: unknown, job: Job): void {
    const failed = (wrong: unknown) => warn(`onError of the worker failed: ${words(wrong)}`);
    try {
      const told: unknown = this.options.onError?.(error, job);
      if (told !== undefined) Promise.resolve(told).catch(failed);
    } catch (wrong) {
      failed(wrong);
    }
  }
}

function isRefusal(error: unknown): error is InterlockError {
  return error instanceof InterlockError && error.problem !== undefined;
}

/** Whether a request was refused for what is in it: it cannot succeed unchanged. */
function isRefusedAsWrong(error: unknown): error is InvalidRequest {
  return error instanceof InvalidRequest && !leaseIsGone(error.code);
}

/** The refusals of a report that another attempt may overcome, although the same report cannot. */
const overcome: ReadonlySet<string> = new Set(["stale", "parked", "denied", "internal"]);

/** Whether a report was refused because of its content, so that the work would only be repeated to the same end. */
function isHopeless(error: unknown): boolean {
  if (isRefusedAsWrong(error)) return true;
  if (!isRefusal(error) || error.retryable || error instanceof TaskMoved) return false;
  return !leaseIsGone(error.code) && !overcome.has(error.code);
}

type Reporting = "ackTask" | "nackTask" | "requestApproval";

/** Reports the end of an attempt to the server. */
class Report {
  /** Whether the server has told that the attempt is over, or gets a report in the background. */
  #isOver = false;

  constructor(
    readonly client: Client,
    readonly id: t.LeaseID,
    readonly late: AbortSignal,
    readonly tell: (error: InterlockError) => void,
  ) {}

  /**
   * Sends a report until a server has decided it: after an outage the lease may live, and would be kept.
   * When it is too late to wait for that, it goes on in the background.
   */
  async send(operation: Reporting, body: t.AckRequest | t.NackRequest | t.Question): Promise<void> {
    const { keeper } = this.client;
    const parameters = { path: { id: this.id }, body } as RequestParameters<Reporting>;
    const { signal, end } = linked([keeper.closed, this.late]);
    const idempotencyKey = crypto.randomUUID();
    try {
      await keeper.insist(operation, parameters, { signal, idempotencyKey, background: false }, this.tell);
    } catch (error) {
      this.#isOver =
        this.late.aborted || error instanceof TaskMoved || (isRefusal(error) && leaseIsGone(error.code));
      if (keeper.closed.aborted || !this.late.aborted) throw error;
      keeper.insist(operation, parameters, { idempotencyKey }).catch(() => {});
      const message =
        "the worker has ended, and no server has confirmed the end of the attempt: the report goes on";
      throw new OutcomeUnknown({ code: "outcome_unknown", message, cause: error });
    } finally {
      end();
    }
  }

  /** Reports that an attempt has failed, at the last with a plain reason. It never throws. */
  async failed(failure: unknown): Promise<void> {
    if (this.#isOver) return;
    try {
      await this.#explain(failure);
    } catch (error) {
      if (isA(error, InterlockError) && !isRefusedAsWrong(error)) return; // the server has decided
      await this.send("nackTask", { reason: "the handler failed" }).catch(() => {});
    }
  }

  /** Returns what reports that nothing is left of an attempt that has not ended. */
  abandoned(lost: () => void): () => void {
    return () =>
      void this.failed(new Error("the handler can never end: what it waits for is gone")).finally(lost);
  }

  async #explain(failure: unknown): Promise<void> {
    let reason = words(failure);
    if (isA(failure, NeedsApproval)) {
      try {
        const { question, ...more } = failure.question;
        const body = { ...more, question: clip(String(question), limits.maxQuestionBytes) };
        await this.send("requestApproval", body);
        return;
      } catch (error) {
        if (isA(error, InterlockError) && !isRefusedAsWrong(error)) throw error;
        reason = `its question could not be asked: ${words(error)}`;
      }
    }
    const body: t.NackRequest = { reason: clip(reason, limits.maxReasonBytes) };
    if (isA(failure, Dead)) body.dead = true;
    if (isA(failure, RetryAfter) && failure.delayMs >= 0)
      body.delay_ms = Math.round(Math.min(failure.delayMs, limits.maxDelayMs));
    await this.send("nackTask", body);
  }
}
