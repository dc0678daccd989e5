// The journal's events as sentences.
import { span } from './ui.jsx';

const keysOf = (e) => (e.claims || []).map((c) => c.key).join(', ') || e.key || e.pattern || e.queue || '';

const anotherAgent = 'another agent'; // a wait without keys is one that the agent declared

const acquires = (e, k) => `acquires ${k}${e.waited_ms ? ' after ' + span(e.waited_ms) : ''}`;

const forms = {
  granted: acquires,
  admitted: acquires,
  queued: (e, k) => `waits for ${k || anotherAgent}`,
  left: (e, k) => {
    if (e.reason === 'deadlock') return k ? `is refused ${k}: a deadlock` : `cannot wait for ${anotherAgent}: a deadlock`;
    return (k ? `leaves the line of ${k}` : `no longer waits for ${anotherAgent}`) + ` (${(e.reason || '').replaceAll('_', ' ')})`;
  },
  ended: (e, k) => {
    const what = k || 'fence ' + e.fence;
    if (e.reason === 'released') return `releases ${what}`;
    const why = ` (${e.reason.replaceAll('_', ' ')})`;
    return lost.has(e.reason) ? `loses ${what}${why}` : `ends its lease ${k ? 'on ' + k : 'with fence ' + e.fence}${why}`;
  },
  grace: (e, k) => `is in grace at ${k} (${(e.reason || '').replaceAll('_', ' ')})`,
  closed: (e, k) => `leaves ${k} closed for its lock delay`,
  parked: (e, k) => `parks its lease on ${k}`,
  resumed: (e, k) => `resumes its lease on ${k}`,
  converted: (e, k) => `converts its lease to ${k}`,
  session_opened: () => 'opens a session',
  session_ended: (e) => e.reason === 'session_expired' ? 'loses its session: no heartbeat came' : 'closes its session',
  written: (e, k) => `writes ${k}`,
  pattern_set: (e) => `sets the pattern ${e.pattern}`,
  pattern_dropped: (e) => `deletes the pattern ${e.pattern}`,
  queue_set: (e) => {
    const { paused, drain } = e.queue_settings || {};
    const state = [paused && 'paused', drain && 'draining'].filter(Boolean).join(' and ');
    return `sets the queue ${e.queue}${state && ': ' + state}`;
  },
  queue_dropped: (e) => `deletes the queue ${e.queue}`,
  opened: () => 'A server began a new epoch',
  task_submitted: (e) => `submits a task to ${e.queue}`,
  task_dispatched: (e) => `starts attempt ${e.attempt} of a task`,
  task_attempt_failed: (e) => `fails at attempt ${e.attempt} (${e.outcome || e.reason})`,
};

/** The event in words; the agent stands before them. */
export function sentence(e) {
  const form = forms[e.event];
  return form ? form(e, keysOf(e)) : [e.event.replaceAll('_', ' '), keysOf(e)].filter(Boolean).join(' ');
}

const lost = new Set(['ttl', 'stall', 'max_hold', 'session_expired', 'park_limit', 'preempted', 'revoked']);
const failed = new Set([...lost, 'deadlock', 'barrier_broken', 'wait_limit', 'lapsed', 'nack', 'target_ended']);

/** Whether a wait or a lease ended otherwise than its agent wanted. */
export const endedBadly = (reason) => failed.has(reason);

/** What went wrong in an event: a word, or ''. */
export function trouble(e) {
  if (e.reason === 'deadlock' || e.event === 'deadlock') return 'deadlock';
  if (e.event === 'ended' && lost.has(e.reason)) return e.reason === 'revoked' ? 'revoked' : 'lost';
  if (/refused/.test(e.event)) return 'refused';
  if (e.event === 'task_attempt_failed' && e.state === 'dead') return 'dead letter';
  if (e.event === 'opened') return 'start';
  return '';
}

export const keyOf = (e) => (e.claims && e.claims[0] && e.claims[0].key) || e.key || '';
