import { backoff, steadyNow } from "./clock.js";
import { Stop } from "./stop.js";

/** How long a silent server is passed over: another one has its shards after that. */
const avoidedMs = 5000;

/** With several servers, signs of life are timed as if the ttl were at most this long. */
export const attentiveMs = 6000;

/** Returns the base of a server's address. The path of the API may stand in it, and nothing else. */
function baseOf(text: string): string {
  const shown = text.replace(/\/\/[^/]*@/, "//...@"); // it may have a password
  let url: URL;
  try {
    url = new URL(text.includes("://") ? text : `http://${text}`);
  } catch {
    throw new TypeError(`${shown} is no address of a server: it should look like http://127.0.0.1:7420`);
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new TypeError(`${shown} is no address of HTTP: use http:// or https://`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new TypeError(`${shown} has a user or a password: leave them out, and pass credential`);
  }
  if (!/^(\/v1)?\/*$/.test(url.pathname) || url.search !== "" || url.hash !== "") {
    throw new TypeError(
      `${shown} has more than the address of a server: leave out what follows ${url.origin}`,
    );
  }
  return url.origin;
}

/** The servers of a cluster, in the order in which they are tried. It stays with the one that answered last. */
export class Servers {
  readonly #urls: string[];
  #current = 0;
  #silentAt = new Map<number, number>(); // when one last gave no answer
  #leaving: Stop[];

  constructor(urls: string | readonly string[]) {
    const list = (typeof urls === "string" ? urls.split(",") : [...urls])
      .map((u) => u.trim())
      .filter((u) => u !== "");
    if (list.length === 0) throw new TypeError("no URL of a server: pass url, such as http://127.0.0.1:7420");
    this.#urls = list.map(baseOf);
    this.#leaving = this.#urls.map(() => new Stop());
  }

  get several(): boolean {
    return this.#urls.length > 1;
  }

  get count(): number {
    return this.#urls.length;
  }

  /** The addresses of all of them. */
  get urls(): readonly string[] {
    return this.#urls;
  }

  /** The index of the server to use. */
  get current(): number {
    return this.#current;
  }

  url(index: number): string {
    return this.#urls[index] ?? "";
  }

  /** Ends when the server is left for another one. */
  leaving(index: number): Stop | undefined {
    return this.several ? this.#leaving[index] : undefined;
  }

  /**
   * Takes note that a server did not answer, or is not the active one: the next one is tried. One that was silent is
   * passed over for a while: others that still name it do not know yet. If all were, the next one is tried anyway.
   */
  failed(index: number, isSilent = false): void {
    if (isSilent) this.#silentAt.set(index, steadyNow());
    if (!this.several || this.#current !== index) return;
    const order = this.#urls.map((_, n) => (index + 1 + n) % this.#urls.length);
    this.#current = order.find((n) => !this.#avoids(n)) ?? order[0] ?? 0;
    this.#leaving[index]?.abort(new Error(`${this.url(index)} was left for another server`));
    this.#leaving[index] = new Stop();
  }

  #avoids(index: number): boolean {
    const at = this.#silentAt.get(index);
    return at !== undefined && steadyNow() - at < avoidedMs;
  }

  /**
   * Goes to the owner of the shard that another server named. Only an address of the list is followed, and not one that
   * has just been silent, unless it is alive: it has answered by way of the other server.
   */
  follow(url: string | null | undefined, isAlive = false): boolean {
    if (!url) return false;
    const index = this.#urls.indexOf(url.replace(/\/+$/, ""));
    if (index < 0 || (this.#avoids(index) && !isAlive)) return false;
    this.#current = index;
    return true;
  }

  /** The pause between two rounds over all servers: a standby takes over within seconds. */
  pause(tries: number, estimate: number): number {
    if (!this.several) return backoff(tries, estimate, 5000);
    const round = Math.floor(tries / this.#urls.length);
    return tries % this.#urls.length === 0
      ? Math.random() * Math.min(1000, 100 * 2 ** Math.min(round, 8))
      : 0;
  }
}
