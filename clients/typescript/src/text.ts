const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Matches half of a surrogate pair, which no UTF-8 has. */
const half = /\p{Surrogate}/u;

/** Whether a text has a form in UTF-8. */
export function isWellFormed(text: string): boolean {
  return !half.test(text);
}

/** Returns how many bytes a text has in UTF-8. */
export function sizeOf(text: string): number {
  return encoder.encode(text).length;
}

/** Returns as much of a text as fits into so many bytes of UTF-8. Halves of surrogate pairs are replaced. */
export function clip(text: string, most: number): string {
  const bytes = encoder.encode(text);
  let end = Math.min(bytes.length, most);
  while (end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--; // within a character
  return decoder.decode(bytes.subarray(0, end));
}

/** Whether a value that was thrown is of a class. A revoked proxy can be thrown, too. */
export function isA<T>(value: unknown, kind: abstract new (...args: never[]) => T): value is T {
  try {
    return value instanceof kind;
  } catch {
    return false;
  }
}

/** Returns what was thrown in words. It never throws. */
export function words(error: unknown): string {
  try {
    const text = isA(error, Error) ? error.message || error.name : error;
    return String(text);
  } catch {
    return "something that has no form as a text was thrown";
  }
}

const longTTLs = new Set<number>();

/** Warns of a ttl above an hour, once for each: in milliseconds, an hour is 3,600,000. */
export function checkTTL(ttlMs: number | undefined): void {
  if (ttlMs === undefined || !(ttlMs > 3_600_000) || longTTLs.has(ttlMs)) return;
  longTTLs.add(ttlMs);
  const hours = Math.round(ttlMs / 360_000) / 10;
  warn(
    `a ttl of ${ttlMs} ms is ${hours} hours: when the process dies, its keys stay taken for so long. Leases are ` +
      "renewed by themselves, so that a ttl of seconds or minutes does, such as 30_000",
  );
}

/** Tells whoever runs the program, once for each call. */
export function warn(message: string): void {
  interface Process {
    emitWarning?(message: string, type: string): void;
  }
  const { process, console } = globalThis as { process?: Process; console?: { warn(text: string): void } };
  if (typeof process?.emitWarning === "function") process.emitWarning(message, "InterlockWarning");
  else console?.warn(`InterlockWarning: ${message}`);
}
