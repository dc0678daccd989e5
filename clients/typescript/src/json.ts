import { clip, isWellFormed, sizeOf, words } from "./text.js";
import { limits } from "./types.js";

/** Strings, which stay, and the numbers between them. */
const tokens = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** A text without 16 digits in a row has no integer beyond 2^53. */
const large = /\d{16}/;

/** Parses JSON. An integer that has no exact form as a number is returned as a string of digits. */
export function parse(text: string): unknown {
  if (!large.test(text)) return JSON.parse(text);
  const exact = text.replace(tokens, (token) =>
    token.startsWith('"') || /[.eE]/.test(token) || Number.isSafeInteger(Number(token))
      ? token
      : `"${token}"`,
  );
  return JSON.parse(exact);
}

/** JSON that is encoded already. */
class Encoded {
  constructor(readonly text: string) {}
}

/** Encodes a value as JSON. A bigint becomes a number in full. */
export function encode(
  value: unknown,
  check?: (name: string, part: unknown, whole: unknown) => void,
): string {
  const verbatim: string[] = [];
  const mark = crypto.randomUUID();
  const text = JSON.stringify(value, function (this: unknown, name, part: unknown) {
    check?.(name, part, this);
    if (typeof part !== "bigint" && !(part instanceof Encoded)) return part;
    verbatim.push(part instanceof Encoded ? part.text : part.toString());
    return `${mark}${verbatim.length - 1}`;
  });
  if (verbatim.length === 0) return text;
  return text.replace(new RegExp(`"${mark}(\\d+)"`, "g"), (_all, at: string) => verbatim[Number(at)] ?? "0");
}

/** Throws if JSON has no form for a part of a value, and would leave it out or put null in its place. */
function exactly(name: string, part: unknown, whole: unknown): void {
  const where = name === "" ? "it" : clip(name, 40);
  if (typeof part === "number" && !Number.isFinite(part)) throw new TypeError(`${where} is ${part}`);
  const isNothing = part === undefined || typeof part === "function" || typeof part === "symbol";
  if (isNothing && (name === "" || Array.isArray(whole))) throw new TypeError(`${where} is ${typeof part}`);
  if (!isWellFormed(name) || (typeof part === "string" && !isWellFormed(part)))
    throw new TypeError(`${where} has half of a surrogate pair`);
}

/** The result of something that was done, as the server keeps it. */
export interface Result {
  /** The result in JSON. */
  value: unknown;
  /** Why it is not the one that was returned, if it is not. */
  problem?: string;
}

/** How long the reason is for which a result is not stored, in bytes. */
const problemBytes = 200;

/** Returns a result that can be stored: work that was done is not undone by what it returned. */
export function resultOf(value: unknown): Result {
  try {
    const text = encode(value, exactly);
    const size = sizeOf(text);
    if (size > limits.maxResultBytes) {
      return unstored(`the result has ${size} bytes as JSON, and the maximum is ${limits.maxResultBytes}`);
    }
    return { value: new Encoded(text) };
  } catch (error) {
    return unstored(`the result has no form in JSON: ${words(error)}`);
  }
}

/** Returns what is stored in place of a result. */
export function unstored(why: string): Result {
  const problem = clip(why.replace(/[\s\p{Cc}]+/gu, " "), problemBytes);
  return { value: { interlock: "result not stored", reason: problem }, problem };
}
