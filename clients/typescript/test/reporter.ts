import { basename } from "node:path";

interface Event {
  type: string;
  data: {
    name: string;
    nesting: number;
    file?: string;
    skip?: string | boolean;
    todo?: string | boolean;
    details?: { type?: string; error?: unknown };
  };
}

/** Writes one line of JSON for each test: the Go test that starts this reports them. */
export default async function* report(events: AsyncIterable<Event>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    if ((type !== "test:pass" && type !== "test:fail") || data.details?.type === "suite") continue;
    const left = data.skip !== undefined || data.todo !== undefined; // a test that does not run has not passed
    const file = data.file === undefined ? "node" : basename(data.file, ".test.js");
    const passed = type === "test:pass" && !left;
    const error = left ? "it was left out" : words(data.details?.error);
    yield `${JSON.stringify({ file, name: data.name, passed, error })}\n`;
  }
}

function words(error: unknown): string {
  if (error === undefined) return "";
  const cause = error instanceof Error && error.cause !== undefined ? `\n${words(error.cause)}` : "";
  return error instanceof Error ? `${error.stack ?? error.message}${cause}` : String(error);
}
