import { words } from "./text.js";

/** A proxy that the environment names. */
export interface Proxy {
  url: URL;
  /** The header Proxy-Authorization, if its address has credentials. */
  authorization: string | undefined;
  /** The proxy in words, without credentials. */
  shown: string;
}

/** Says that a proxy, and no server, has failed. Nothing was carried out. */
export class ProxyError extends Error {
  constructor(
    message: string,
    /** The next step in words. */
    readonly next: string,
    /** Whether another try makes no sense. */
    readonly isFinal: boolean,
    readonly code: unknown = "ERR_PROXY",
  ) {
    super(message);
  }

  /** The proxy does not answer. */
  static unreachable({ shown }: Proxy, error: unknown): ProxyError {
    const next = "correct the variable, or name the server in NO_PROXY if it is reached without a proxy";
    return new ProxyError(`${shown} cannot be reached (${words(error)})`, next, false);
  }

  /** The proxy does not let a request through. */
  static refused({ shown }: Proxy, target: URL, status: number): ProxyError {
    const next =
      status === 407
        ? "put the user and the password of the proxy into the variable: http://USER:PASSWORD@HOST:PORT"
        : `have the proxy allow connections to ${target.host}, or name that in NO_PROXY if it is reached without one`;
    return new ProxyError(`${shown} answered ${status} for ${target.host}`, next, status < 500);
  }
}

type Environment = Record<string, string | undefined>;

/**
 * Which proxy leads to an address, by HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, in capital or small letters.
 * What runs on this machine is reached without one.
 */
export class Proxies {
  readonly #exceptions: readonly string[];

  constructor(readonly env: Environment) {
    this.#exceptions = (this.#variable("NO_PROXY")?.[1] ?? "").split(/[\s,]+/).filter((one) => one !== "");
  }

  #variable(name: string): [string, string] | undefined {
    for (const one of [name, name.toLowerCase()]) {
      const value = this.env[one]?.trim();
      if (value) return [one, value];
    }
    return undefined;
  }

  /** Returns the proxy that leads to an address. It throws a TypeError if that of the environment is none. */
  for(target: URL): Proxy | undefined {
    const own = target.protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY";
    const variable = this.#variable(own) ?? this.#variable("ALL_PROXY");
    if (!variable || isLoopback(hostOf(target))) return undefined;
    if (this.#exceptions.some((one) => excepts(one, target))) return undefined;
    return proxyOf(...variable);
  }
}

function proxyOf(name: string, value: string): Proxy {
  let url: URL;
  try {
    url = new URL(value.includes("://") ? value : `http://${value}`);
  } catch {
    throw new TypeError(`${name} is no address of a proxy: it should look like http://proxy.example:3128`);
  }
  const shown = `the proxy ${url.protocol}//${url.host} of ${name}`;
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new TypeError(`${shown} is not one of HTTP: use an address with http:// or https://`);
  const user = decoded(url.username);
  const credentials = new TextEncoder().encode(`${user}:${decoded(url.password)}`);
  const basic = `Basic ${btoa(String.fromCharCode(...credentials))}`;
  return { url, shown, authorization: user === "" ? undefined : basic };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a percent sign that stands for itself
  }
}

/** The host of an address, without the brackets of IPv6. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
}

function isLoopback(host: string): boolean {
  return (
    host === "localhost" || host.endsWith(".localhost") || host === "::1" || /^127(\.\d+){3}$/.test(host)
  );
}

/** Whether an entry of NO_PROXY is about an address: *, a host or its domain, an address or its network. */
function excepts(entry: string, target: URL): boolean {
  if (entry === "*") return true;
  const host = hostOf(target);
  const [, name = "", port] = /^(.*?)(?::(\d+))?$/.exec(entry.replace(/^\[(.*)\]/, "$1")) ?? [];
  const isAddress = /^[\d.]+$|:/.test(host);
  if (entry.includes("/")) return isAddress && isWithin(host, entry);
  if (isAddress && entry.replace(/^\[(.*)\]$/, "$1") === host) return true;
  if (port !== undefined && port !== (target.port || (target.protocol === "https:" ? "443" : "80")))
    return false;
  const domain = name.toLowerCase().replace(/^\*?\./, "");
  return domain !== "" && (host === domain || (!isAddress && host.endsWith(`.${domain}`)));
}

/** Whether an address is in a network such as 10.0.0.0/8. */
function isWithin(host: string, network: string): boolean {
  const [base = "", length = ""] = network.split("/");
  const one = bitsOf(host);
  const other = bitsOf(base.replace(/^\[|\]$/g, ""));
  const bits = Number(length);
  return one !== undefined && one.length === other?.length && one.slice(0, bits) === other.slice(0, bits);
}

/** Returns an address of IPv4 or IPv6 as a text of bits. */
function bitsOf(address: string): string | undefined {
  const bits = (parts: readonly string[], radix: number, size: number) =>
    parts
      .map((part) =>
        parseInt(part || "0", radix)
          .toString(2)
          .padStart(size, "0"),
      )
      .join("");
  if (/^\d+(\.\d+){3}$/.test(address)) return bits(address.split("."), 10, 8);
  if (!/^[\da-f:]+$/i.test(address) || !address.includes(":")) return undefined;
  const [head = "", tail] = address.split("::");
  const before = head === "" ? [] : head.split(":");
  const behind = !tail ? [] : tail.split(":");
  const gap = tail === undefined ? 0 : Math.max(0, 8 - before.length - behind.length);
  return bits([...before, ...Array<string>(gap).fill("0"), ...behind], 16, 16);
}
