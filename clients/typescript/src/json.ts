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

/** Encodes a value as JSON. A bigint becomes a number in full. */
export function encode(value: unknown): string {
  const integers: string[] = [];
  const mark = crypto.randomUUID();
  const text = JSON.stringify(value, (_key, part: unknown) => {
    if (typeof part !== "bigint") return part;
    integers.push(part.toString());
    return `${mark}${integers.length - 1}`;
  });
  if (integers.length === 0) return text;
  return text.replace(new RegExp(`"${mark}(\\d+)"`, "g"), (_all, at: string) => integers[Number(at)] ?? "0");
}
