import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { mock, test } from "node:test";
import { Clock } from "../src/index.js";
import { cancel, later } from "../src/clock.js";
import { Stop, linked, listen, orAborted, sleep } from "../src/stop.js";
import { clip, isWellFormed, words } from "../src/text.js";

test("timers and clocks that a test has put in the place of the real ones are not used", async () => {
  const real = performance.now;
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: 0 });
  performance.now = () => 0;
  try {
    const clock = new Clock();
    const began = clock.steady();
    await sleep(1);
    await new Promise<void>((resolve) => later(resolve, 1));
    cancel(later(() => assert.fail("it was cancelled"), 1));
    const { signal } = linked([], 1);
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    assert.ok(began > 0 && clock.steady() > began && clock.now() > began);
  } finally {
    mock.timers.reset();
    performance.now = real;
  }
});

test("a pause that is longer than a timer can be does not end at once", async () => {
  const stop = new Stop();
  let isOver = false;
  const end = sleep(2 ** 40, stop).finally(() => (isOver = true));
  await sleep(1);
  assert.equal(isOver, false);
  stop.abort("enough");
  await assert.rejects(end, (reason) => reason === "enough");
});

test("however many listen to a signal, it has one listener, and none at the end", async () => {
  const controller = new AbortController();
  const { signal } = controller;
  const count = () => getEventListeners(signal, "abort").length;
  const links = Array.from({ length: 30 }, () => linked([signal]));
  const waits = Array.from({ length: 30 }, () => orAborted(sleep(60_000, signal), signal));
  assert.equal(count(), 1);
  for (const link of links.slice(0, 15)) link.end();
  for (const link of links.slice(0, 15)) link.end(); // a second time changes nothing
  assert.equal(count(), 1);
  controller.abort("enough");
  assert.equal(count(), 0);
  assert.deepEqual(
    new Set(await Promise.all(waits.map((w) => w.catch((e: unknown) => e)))),
    new Set(["enough"]),
  );
  assert.equal(links.filter((link) => link.signal.aborted).length, 15);

  const other = new AbortController();
  const undo = [1, 2].map(() => listen(other.signal, () => assert.fail("it was taken back")));
  for (const f of undo) f();
  assert.equal(getEventListeners(other.signal, "abort").length, 0);
  other.abort();
});

test("a text is cut off at a character, and halves of pairs are replaced", () => {
  assert.equal(clip("网网网", 8), "网网");
  assert.equal(clip("\u{1f600}\u{1f600}", 7), "\u{1f600}");
  assert.equal(clip("\u{1f600}", 3), "");
  assert.equal(clip("a\ud800b", 5), "a\ufffdb");
  assert.equal(clip("\ufeffa", 4), "\ufeffa");
  assert.deepEqual(["\u{1f600}", "\ud83d", "\ude00\ud83d"].map(isWellFormed), [true, false, false]);
  assert.deepEqual([new Error("x"), new TypeError(), null, 1n, Symbol("s")].map(words), [
    "x",
    "TypeError",
    "null",
    "1",
    "Symbol(s)",
  ]);
});
