import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { connect, type AddressInfo, type Server as Listener, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Client, Unreachable } from "../src/index.js";
import { Proxies } from "../src/proxy.js";
import { failure } from "./server.js";

/** The proxies that the environment names. */

const targets: [env: Record<string, string>, target: string, proxy: string | undefined][] = [
  [{ HTTPS_PROXY: "http://p:3128" }, "https://a.example", "http://p:3128/"],
  [{ https_proxy: "p:3128" }, "https://a.example", "http://p:3128/"],
  [{ HTTPS_PROXY: "http://p:3128" }, "http://a.example", undefined],
  [{ HTTP_PROXY: "http://p" }, "http://a.example:7420", "http://p/"],
  [{ HTTP_PROXY: "http://p", ALL_PROXY: "http://q" }, "https://a.example", "http://q/"],
  [{ HTTP_PROXY: "http://p", ALL_PROXY: "http://q" }, "http://a.example", "http://p/"],
  [{ all_proxy: "https://q" }, "http://a.example", "https://q/"],
  [{ ALL_PROXY: " " }, "http://a.example", undefined],
  ...["localhost", "api.localhost", "127.0.0.1", "127.8.8.8", "[::1]", "LOCALHOST"].map(
    (host): [Record<string, string>, string, undefined] => [
      { ALL_PROXY: "p" },
      `http://${host}:7420`,
      undefined,
    ],
  ),
  ...(
    [
      ["*", "a.example", true],
      ["a.example", "a.example", true],
      ["A.Example", "a.example", true],
      ["example", "a.example", true],
      [".example", "a.example", true],
      ["*.example", "a.example", true],
      ["example", "aexample", false],
      ["b, a.example", "a.example", true],
      ["b a.example", "a.example", true],
      ["a.example:7420", "a.example:7420", true],
      ["a.example:80", "a.example", true],
      ["a.example:7421", "a.example:7420", false],
      ["10.1.2.3", "10.1.2.3:7420", true],
      ["10.1.2.3:7420", "10.1.2.3:7420", true],
      ["2.3", "10.1.2.3", false],
      ["10.0.0.0/8", "10.1.2.3", true],
      ["10.0.0.0/8", "11.1.2.3", false],
      ["10.1.2.0/23", "10.1.3.255", true],
      ["10.0.0.0/8", "a.example", false],
      ["fd00::/8", "[fd12::1]", true],
      ["fd00::/8", "[fe80::1]", false],
      ["fd12::1", "[fd12::1]:7420", true],
      ["[fd12::1]", "[fd12::1]:7420", true],
      [",", "a.example", false],
    ] as const
  ).map(([no, host, isException]): [Record<string, string>, string, string | undefined] => [
    { ALL_PROXY: "http://p", NO_PROXY: no },
    `http://${host}`,
    isException ? undefined : "http://p/",
  ]),
];

test("each address has its proxy", () => {
  for (const [env, target, proxy] of targets) {
    assert.equal(new Proxies(env).for(new URL(target))?.url.href, proxy, JSON.stringify([env, target]));
  }
  const { authorization, shown } =
    new Proxies({ ALL_PROXY: "http://al%40x:p%3Aw%C3%BC@p:1" }).for(new URL("http://a")) ?? assert.fail();
  assert.equal(authorization, `Basic ${Buffer.from("al@x:p:wü").toString("base64")}`);
  assert.equal(shown, "the proxy http://p:1 of ALL_PROXY");
});

test("what is no proxy is told when the client is made, unless it is not used", () => {
  const url = "http://a.example";
  const { env } = process;
  try {
    for (const [value, why] of [
      ["socks5://p:1080", /the proxy socks5:\/\/p:1080 of ALL_PROXY is not one of HTTP/],
      ["http://user:secret@:x", /^TypeError: ALL_PROXY is no address of a proxy: it should look like/],
    ] as const) {
      process.env = { ...env, ALL_PROXY: value };
      assert.throws(
        () => new Client({ url }),
        (error) => why.test(String(error)) && !String(error).includes("secret"),
      );
      new Client({ url: "http://127.0.0.1:7420" });
      new Client({ url, fetch });
    }
  } finally {
    process.env = env;
  }
});

const answer = JSON.stringify({ outcome: "committed", version: "7", documents: [] });
const headers = { "content-type": "application/json" };

let folder: string;
let secure: Listener;
let plain: Listener;
let proxy: Listener;
const seen: string[] = [];
let refuse = 0;

const port = (listener: Listener) => (listener.address() as AddressInfo).port;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "interlock-proxy-"));
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const subject = ["-subj", "/CN=api.example", "-addext", "subjectAltName=DNS:api.example"];
  const made = [
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:prime256v1",
    "-nodes",
    "-days",
    "2",
  ];
  execFileSync("openssl", [...made, "-keyout", key, "-out", cert, ...subject], { stdio: "ignore" });
  const commit = (_: IncomingMessage, out: ServerResponse) => void out.writeHead(200, headers).end(answer);
  secure = createSecureServer({ key: readFileSync(key), cert: readFileSync(cert) }, commit);
  plain = createServer(commit);
  // Names are known to the proxy alone.
  const guarded = createServer((asked, out) => {
    seen.push(`${asked.method} ${asked.url} ${asked.headers.host} ${asked.headers["proxy-authorization"]}`);
    if (refuse) return void out.writeHead(refuse).end();
    const { method, headers } = asked;
    const path = new URL(asked.url ?? "").pathname;
    const onward = request({ host: "127.0.0.1", port: port(plain), method, path, headers }, (answered) => {
      out.writeHead(answered.statusCode ?? 0, answered.headers);
      answered.pipe(out);
    });
    asked.pipe(onward);
  });
  guarded.on("connect", (asked: IncomingMessage, socket: Socket) => {
    seen.push(`CONNECT ${asked.url} ${asked.headers.host} ${asked.headers["proxy-authorization"]}`);
    socket.on("error", () => {});
    if (refuse) return void socket.end(`HTTP/1.1 ${refuse} No\r\nContent-Length: 0\r\n\r\n`);
    const onward = connect(port(secure), "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      onward.pipe(socket).pipe(onward);
    });
    onward.on("error", () => {});
  });
  proxy = guarded;
  for (const listener of [secure, plain, proxy]) await once(listener.listen(0, "127.0.0.1"), "listening");
});
after(() => {
  for (const listener of [secure, plain, proxy]) listener.close();
  rmSync(folder, { recursive: true });
});

/** Runs a program with the client, and returns what it prints. A process that ends has no connection that keeps it. */
async function run(program: string, env: Record<string, string>): Promise<string> {
  const index = new URL("../src/index.js", import.meta.url).href;
  const text = `import { Client } from ${JSON.stringify(index)};\n${program}`;
  const own = { NODE_EXTRA_CA_CERTS: join(folder, "cert.pem"), ...env };
  const child = spawn(process.execPath, ["--input-type=module", "--eval", text], {
    env: { PATH: "", ...own },
  });
  let out = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (part) => (out += String(part)));
  await once(child, "close");
  return out;
}

const commits = (url: string) => `
  const client = new Client({ url: ${JSON.stringify(url)} });
  for (let n = 0; n < 2; n++) console.log((await client.commit({})).version);
`;

test("requests of http: go to the proxy as a whole", async () => {
  seen.length = 0;
  const env = { HTTP_PROXY: `http://al:pw@127.0.0.1:${port(proxy)}` };
  assert.equal(await run(commits("http://api.example"), env), "7\n7\n");
  const one = "POST http://api.example/v1/commits api.example Basic YWw6cHc=";
  assert.deepEqual(seen, [one, one]);
});

test("a connection of https: goes through a tunnel, and is used again", async () => {
  seen.length = 0;
  const env = { HTTPS_PROXY: `http://al:pw@127.0.0.1:${port(proxy)}` };
  assert.equal(await run(commits("https://api.example:7420"), env), "7\n7\n");
  assert.deepEqual(seen, ["CONNECT api.example:7420 api.example:7420 Basic YWw6cHc="]);
});

test("the name in a certificate counts behind a proxy as well", async () => {
  const text = await run(commits("https://other.example"), { HTTPS_PROXY: `127.0.0.1:${port(proxy)}` });
  assert.match(text, /the certificate of https:\/\/other\.example is not trusted .*nothing was carried out/);
});

for (const scheme of ["http", "https"]) {
  for (const status of [407, 403, 503]) {
    test(`a proxy that answers ${status} to ${scheme}: is told`, async () => {
      if (scheme === "http" && status !== 407) return; // that is the answer of the server, as far as anyone can tell
      refuse = status;
      const { env } = process;
      process.env = { ...env, ALL_PROXY: `http://127.0.0.1:${port(proxy)}` };
      try {
        const url = `${scheme}://api.example`;
        const client = new Client({ url, ...(status < 500 ? {} : { retryForMs: 0 }) });
        const error = await failure(client.commit({}));
        assert.ok(error instanceof Unreachable, String(error));
        assert.match(
          String(error),
          /the proxy http:\/\/127\.0\.0\.1:\d+ of ALL_PROXY answered \d+ for api\.example/,
        );
        assert.equal(error.retryable, status >= 500);
        assert.match(String(error), status === 407 ? /USER:PASSWORD@/ : /have the proxy allow connections/);
        await client.close();
      } finally {
        process.env = env;
        refuse = 0;
      }
    });
  }
  test(`a proxy that cannot be reached is told for ${scheme}:`, async () => {
    const gone = createServer();
    await once(gone.listen(0, "127.0.0.1"), "listening");
    const { env } = process;
    process.env = { ...env, ALL_PROXY: `http://127.0.0.1:${port(gone)}` };
    gone.close();
    await once(gone, "close");
    try {
      const error = await failure(new Client({ url: `${scheme}://api.example` }).commit({}));
      assert.ok(error instanceof Unreachable, String(error));
      assert.match(
        String(error),
        /the proxy .* of ALL_PROXY cannot be reached .*ECONNREFUSED.*Next step: correct the/,
      );
    } finally {
      process.env = env;
    }
  });
}
