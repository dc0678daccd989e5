import type { Lease } from "./lease.js";
import type { Signal } from "./stop.js";
import type * as t from "./types.js";

/** A change of documents, all or none. */
export interface Commit {
  /** The versions that it depends on; seen makes them of documents. */
  reads?: readonly t.ReadRequest[];
  /** put, merge, text, add and remove make them. */
  writes?: readonly t.WriteRequest[];
  /** The leases that it is made under. */
  leases?: readonly (Lease | t.LeaseID)[];
  /** Why, for readers of the change. */
  note?: string;
  /** Requires that no key of the commit was written after this version. */
  asOf?: t.Decimal;
  flow?: string;
  /** Repetitions with the same key happen once. Left out, each call has its own. */
  idempotencyKey?: string;
  signal?: Signal;
}

/** Makes a document of a JSON value. */
export function put(key: string, value: unknown): t.WriteRequest {
  return { key, put: value };
}

/** Changes a JSON document by a merge patch (RFC 7396). */
export function merge(key: string, patch: unknown): t.WriteRequest {
  return { key, merge: patch };
}

/** Makes a document of a text. */
export function text(key: string, content: string, contentType?: string): t.WriteRequest {
  return { key, text: content, ...(contentType === undefined ? {} : { content_type: contentType }) };
}

/** Adds to a counter. It needs no version, and the server checks the bounds of the sum. */
export function add(
  key: string,
  number: number | bigint,
  bounds: { min?: number; max?: number } = {},
): t.WriteRequest {
  return { key, add: number as number, ...bounds };
}

/** Deletes a document. */
export function remove(key: string): t.WriteRequest {
  return { key, delete: true };
}

/** Returns the reads of a commit that depends on these documents as they are here. */
export function seen(...documents: readonly t.Document[]): t.ReadRequest[] {
  return documents.map(({ key, version }) => ({ key, version }));
}

/** Returns the body of a commit. */
export function commitBody(commit: Commit, agent: string, session: t.SessionID | undefined): t.CommitRequest {
  const body: t.CommitRequest = session === undefined ? { agent } : { session };
  if (commit.flow !== undefined && session !== undefined) body.flow = commit.flow;
  if (commit.note !== undefined) body.note = commit.note;
  if (commit.asOf !== undefined) body.as_of = commit.asOf;
  if (commit.reads !== undefined) body.reads = [...commit.reads];
  if (commit.writes !== undefined) body.writes = [...commit.writes];
  if (commit.leases !== undefined) body.leases = commit.leases.map((l) => (typeof l === "string" ? l : l.id));
  return body;
}
