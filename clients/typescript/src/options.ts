import type { Clock } from "./clock.js";
import type { Sending } from "./transport.js";
import type * as t from "./types.js";

/** The settings of a client. Each has a default that works with a server on this machine. */
export interface ClientOptions {
  /** The URLs of the servers of one cluster, in a list or separated by commas: INTERLOCK_URL if left out. */
  url?: string | readonly string[];
  /** The credential: INTERLOCK_CREDENTIAL if left out. */
  credential?: string;
  /** The tenant; the credential's if left out. */
  namespace?: string;
  /** The name that other agents and people see: INTERLOCK_AGENT if left out, else typescript and a number. */
  agent?: string;
  /**
   * How long the session, with its leases, outlives its last heartbeat: the maximum of their ttl. If left out, that of
   * their keys' patterns counts, else 30 s.
   */
  sessionTTLMs?: number;
  /**
   * How long a request is tried again while no server answers: 30 s if left out. Left out, a request fails at once as
   * long as no server has ever answered and the connection is refused.
   */
  retryForMs?: number;
  /**
   * Sends the requests in place of the HTTP of Node, and of the global fetch elsewhere. Those go through the proxy that
   * HTTPS_PROXY, HTTP_PROXY or ALL_PROXY name, but for the addresses of NO_PROXY and this machine.
   */
  fetch?: typeof fetch;
  /**
   * For how long a thread of its own keeps the leases while the event loop stands still, such as in a computation:
   * not at all if left out. It does not use fetch, which must be left out.
   */
  standbyMs?: number;
  /** The clock that leases are timed by. */
  clock?: Clock;
  /**
   * Signals of the process, such as ["SIGTERM"], at which the client drains. Then the process ends by the signal,
   * unless the program listens to it as well. A second signal does not wait. None if left out.
   */
  drainOn?: readonly string[];
  /**
   * The sessionID of the process before, if this one was started in its place. Its leases pass to this client as they
   * are asked for: at once, ahead of the line, each under a new fence. That holds while that session lives; if its
   * process does, too, its leases are lost there. Two processes must not do so to each other in turns.
   */
  takeOver?: t.SessionID;
  /**
   * Whether the client is part of what encloses it. Below `interlock run` and `interlock task work` it then
   * joins their session, and within a lease of another client of the same server, credential and agent it
   * uses that one's session: what they hold is its own. Left out, it joins if url, namespace, credential and
   * agent are not others than those of the environment. true: a client that cannot join is a TypeError.
   * false: it has a session of its own, as a sub-agent that must not share.
   */
  join?: boolean;
}

/** How the run of an agent is begun. */
export interface TurnOptions {
  /** A flow of its own, for a run that must not use what encloses it. Left out, it is that of the enclosing lease. */
  flow?: string;
}

/** The settings of a request. */
export interface RequestOptions extends Sending {}
