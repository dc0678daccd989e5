import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Client,
  Held,
  InterlockError,
  InvalidRequest,
  LeaseLost,
  OutcomeUnknown,
  Refused,
  Unreachable,
  codes,
  type api,
} from "../src/index.js";
import { encode, parse } from "../src/json.js";
import { errorOf } from "../src/errors.js";
import { failure } from "./server.js";

/** A request as it was sent. */
interface Sent {
  url: string;
  method: string;
  headers: Headers;
  body: string;
}

/** Returns a fetch that answers each request by a function, and the requests. */
function answering(...answers: (() => Response | Promise<Response>)[]): {
  fetch: typeof fetch;
  sent: Sent[];
} {
  const sent: Sent[] = [];
  const answer: typeof fetch = async (input, init) => {
    const headers = new Headers(init?.headers);
    sent.push({ url: String(input), method: init?.method ?? "GET", headers, body: String(init?.body ?? "") });
    const next = answers[Math.min(sent.length, answers.length) - 1];
    assert.ok(next);
    return next();
  };
  return { fetch: answer, sent };
}

const json = (status: number, value: unknown) => () =>
  new Response(encode(value), { status, headers: { "Content-Type": "application/json" } });

const problem = (code: api.Code, more: object = {}) =>
  json(codes[code].status, {
    code,
    detail: "because",
    advice: { action: "retry", retry_after_ms: 1, message: "x" },
    ...more,
  });

const refusedConnection = () => {
  throw new TypeError("fetch failed", {
    cause: Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" }),
  });
};
/** A host with several addresses refuses with an error for each, and the code of the first. */
const refusedByAll =
  (...list: string[]) =>
  () => {
    const errors = list.map((code) => Object.assign(new Error(`connect ${code}`), { code }));
    throw Object.assign(new AggregateError(errors), { code: list[0] });
  };
const broken = () => {
  throw new TypeError("fetch failed", {
    cause: Object.assign(new Error("other side closed"), { code: "UND_ERR_SOCKET" }),
  });
};

const two = ["http://a:1", "http://b:1"];

test("a request is repeated under its key, and a repetition goes to the next server", async () => {
  const { fetch, sent } = answering(broken, json(200, { outcome: "committed", version: "7", documents: [] }));
  const client = new Client({ url: two, fetch, credential: "secret", namespace: "acme", agent: "x" });
  assert.equal((await client.commit({ writes: [] })).version, "7");
  assert.deepEqual(
    sent.map((s) => s.url),
    ["http://a:1/v1/commits", "http://b:1/v1/commits"],
  );
  assert.equal(sent[0]?.headers.get("Idempotency-Key"), sent[1]?.headers.get("Idempotency-Key"));
  assert.equal(sent[0]?.body, sent[1]?.body);
  assert.equal(sent[0]?.headers.get("Authorization"), "Bearer secret");
  assert.equal(sent[0]?.headers.get("Interlock-Namespace"), "acme");
});

test("the other server is asked after one that was silent for longer than requests are repeated", async () => {
  const silent = async () => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    return broken();
  };
  const { fetch, sent } = answering(silent, json(200, { outcome: "committed", version: "7", documents: [] }));
  const client = new Client({ url: two, fetch, retryForMs: 10 });
  assert.equal((await client.commit({ writes: [] })).version, "7");
  assert.equal(sent.length, 2);
  const alone = answering(silent, silent, silent);
  assert.ok(
    (await failure(new Client({ url: two, fetch: alone.fetch, retryForMs: 10 }).commit({}))) instanceof
      OutcomeUnknown,
  );
  assert.equal(alone.sent.length, 2);
});

test("an unknown outcome is distinct from no server, and from a refusal", async () => {
  const client = (...answers: (() => Response)[]) =>
    new Client({ url: "http://a:1", fetch: answering(...answers).fetch, retryForMs: 0 });
  assert.ok((await failure(client(broken).commit({}))) instanceof OutcomeUnknown);
  assert.ok((await failure(client(refusedConnection).commit({}))) instanceof Unreachable);
  assert.ok((await failure(client(broken).look("k"))) instanceof Unreachable, "a query has no outcome");
  const several = await failure(client(refusedByAll("ECONNREFUSED", "EADDRNOTAVAIL")).commit({}));
  assert.ok(several instanceof Unreachable && several.message.includes("connect ECONNREFUSED"));
  assert.ok(
    (await failure(client(refusedByAll("ECONNREFUSED", "ECONNRESET")).commit({}))) instanceof OutcomeUnknown,
  );
  const held = await failure(client(problem("held")).commit({}));
  assert.ok(held instanceof Held && held instanceof Refused);
  assert.ok(
    (await failure(client(() => new Response("oops", { status: 502 })).commit({}))) instanceof OutcomeUnknown,
  );
  assert.ok(
    (await failure(client(() => new Response("oops", { status: 404 })).commit({}))) instanceof Unreachable,
  );
});

test("a request without a key is not repeated after an unknown outcome", async () => {
  const { fetch, sent } = answering(broken, json(200, { rotated: true }));
  const client = new Client({ url: "http://a:1", fetch });
  assert.ok((await failure(client.request("rotateFenceKeys", { body: {} }))) instanceof OutcomeUnknown);
  assert.equal(sent.length, 1);
  const second = answering(refusedConnection, json(200, { rotated: true }));
  const patient = new Client({ url: "http://a:1", fetch: second.fetch, retryForMs: 30_000 });
  await patient.request("rotateFenceKeys", { body: {} });
  assert.equal(second.sent.length, 2);
});

test("a quota does not decide about a request that may have been carried out", async () => {
  const { fetch, sent } = answering(broken, problem("quota_exceeded"), json(200, { version: "7" }));
  const client = new Client({ url: "http://a:1", fetch });
  assert.equal((await client.commit({})).version, "7");
  assert.equal(new Set(sent.map((s) => s.headers.get("Idempotency-Key"))).size, 1);
  const alone = new Client({ url: "http://a:1", fetch: answering(problem("quota_exceeded")).fetch });
  assert.equal(((await failure(alone.commit({}))) as InterlockError).code, "quota_exceeded");
});

test("a standby is left for the active server, and only addresses of the list are followed", async () => {
  const active = (http: string) => problem("not_owner", { active: { http, grpc: "" } });
  const three = [...two, "http://c:1"];
  const named = answering(active("http://c:1"), json(200, { version: "7" }));
  await new Client({ url: three, fetch: named.fetch }).commit({});
  assert.deepEqual(
    named.sent.map((s) => new URL(s.url).host),
    ["a:1", "c:1"],
  );
  const foreign = answering(active("http://evil:1"), json(200, { version: "7" }));
  await new Client({ url: three.join(", "), fetch: foreign.fetch }).commit({});
  assert.deepEqual(
    foreign.sent.map((s) => new URL(s.url).host),
    ["a:1", "b:1"],
  );
});

test("the owner of the shard is asked next, if it is on the list", async () => {
  const forwarded = (owner: string) => () =>
    new Response(encode({ version: "7" }), {
      headers: { "Content-Type": "application/json", "Interlock-Owner": owner },
    });
  const { fetch, sent } = answering(
    forwarded("http://b:1"),
    forwarded("http://evil:1"),
    json(200, { version: "8" }),
  );
  const client = new Client({ url: two, fetch });
  for (let i = 0; i < 3; i++) await client.commit({});
  assert.deepEqual(
    sent.map((s) => new URL(s.url).host),
    ["a:1", "b:1", "b:1"],
  );
});

test("a stream of writes is opened again at the owner of the shard, if that is on the list, and not for ever", async () => {
  const line = encode({ index: "6", key: "k" }) + "\n";
  const stream = (owner?: string) => () =>
    new Response(line, {
      headers: { "Content-Type": "application/x-ndjson", ...(owner ? { "Interlock-Owner": owner } : {}) },
    });
  const refused = (http: string) => problem("not_owner", { active: { http, grpc: "" } });
  const cases: [(() => Response)[], string][] = [
    [[stream("http://b:1"), stream()], "ab"],
    [[stream("http://evil:1")], "a"],
    [[stream("http://a:1")], "a"], // one address in front of all servers
    [[refused("http://b:1"), stream("http://a:1"), stream("http://b:1")], "aba"],
    [
      [
        stream("http://b:1"),
        refusedConnection,
        stream("http://b:1"),
        refusedConnection,
        stream("http://b:1"),
      ],
      "ababa",
    ],
    [[refused("http://b:1"), refused("http://a:1"), refused("http://b:1"), stream()], "abab"],
  ];
  for (const [answers, hosts] of cases) {
    const { fetch, sent } = answering(...answers);
    const client = new Client({ url: two, fetch });
    for await (const write of client.watch({ key: "k" })) {
      assert.equal(write.key, "k");
      break;
    }
    assert.equal(sent.map((s) => new URL(s.url).hostname).join(""), hosts);
  }
});

test("keys are encoded in the path, and parameters may be repeated", async () => {
  const { fetch, sent } = answering(json(200, { documents: [{ key: "x" }, { key: "y" }] }));
  const client = new Client({ url: "http://a:1/v1/", fetch });
  await client.look("repo:web/a b?.ts");
  await client.readAll(["x", "y&z"]);
  assert.deepEqual(
    sent.map((s) => s.url),
    ["http://a:1/v1/keys/repo%3Aweb/a%20b%3F.ts", "http://a:1/v1/state?key=x&key=y%26z&values=true"],
  );
});

test("an address that is no address is refused at once", () => {
  assert.throws(() => new Client({ url: "ftp://a" }), /is no address of HTTP/);
  for (const url of [[], "", " , ", [" "]]) assert.throws(() => new Client({ url }), /no URL of a server/);
  for (const url of ["http://a:1/base", "http://a:1/v1/keys", "http://a:1/v2", "a:1?x=1", "http://a:1/#x"])
    assert.throws(() => new Client({ url }), /leave out what follows http:\/\/a:1$/);
  assert.throws(
    () => new Client({ url: "http://ann:secret@a:1" }),
    (e) => e instanceof TypeError && /pass credential/.test(e.message) && !e.message.includes("secret"),
  );
  assert.throws(() => new Client({ url: "http://a b" }), /is no address of a server: it should look like/);
  for (const url of ["http://a:1,", " http://a:1/v1 , ", "a:1/v1/,", ["a:1", ""], "http://a:1\n"])
    assert.equal(new Client({ url }).transport.config.servers.url(0), "http://a:1");
  assert.equal(new Client({ url: "127.0.0.1:7420" }).agent, `typescript-${process.pid}`);
});

test("a line break at the end of a credential is left out, and what no header can have is refused", async () => {
  for (const end of ["", "\n", "\r\n"]) {
    const { fetch, sent } = answering(json(200, { documents: [{}] }));
    await new Client({ url: "a:1", fetch, credential: `secret${end}` }).read("k");
    assert.equal(sent[0]?.headers.get("Authorization"), "Bearer secret");
  }
  for (const credential of [
    "se\ncret",
    "secret\n\n",
    "\nsecret",
    "secret\r",
    "se cret",
    "se\tcret",
    "se\0",
    "gehëim",
  ])
    assert.throws(
      () => new Client({ credential }),
      (e) => e instanceof TypeError && /^the credential has/.test(e.message) && !e.message.includes("se"),
    );
  assert.throws(() => new Client({ namespace: "a\nb" }), /^TypeError: the namespace has/);
});

test("what cannot be encoded is told before anything is sent", async () => {
  const { fetch, sent } = answering(json(200, { version: "7" }));
  const client = new Client({ url: "a:1", fetch });
  const cycle: unknown[] = [];
  cycle.push(cycle);
  const broken = { toJSON: () => assert.fail("no form") };
  for (const work of [
    client.commit({ writes: [{ key: "k", put: cycle }] }),
    client.commit({ writes: [{ key: "k", put: broken }] }),
    client.look("\ud800"),
    client.commit({ idempotencyKey: "a\nb" }),
  ]) {
    const error = await failure(work);
    assert.ok(error instanceof InvalidRequest && /was not sent, as it cannot be encoded/.test(error.message));
  }
  assert.equal(sent.length, 0);
});

/** Fails as TLS does in a runtime. */
const handshake = (text: string, code?: string) => () => {
  throw new TypeError("fetch failed", { cause: Object.assign(new Error(text), code ? { code } : {}) });
};

test("a server that is not to be spoken to is named at once, with what to set", async () => {
  const cases: [() => Response, RegExp][] = [
    [
      handshake("unable to verify the first certificate", "UNABLE_TO_VERIFY_LEAF_SIGNATURE"),
      /NODE_EXTRA_CA_CERTS/,
    ],
    [handshake("self-signed certificate", "DEPTH_ZERO_SELF_SIGNED_CERT"), /NODE_EXTRA_CA_CERTS/],
    [handshake("certificate has expired", "CERT_HAS_EXPIRED"), /certificate has expired/],
    [handshake("Hostname/IP does not match", "ERR_TLS_CERT_ALTNAME_INVALID"), /by a name that is in its/],
    [handshake("client error (Connect): unsuccessful tunnel"), /the proxy of the environment .* NO_PROXY/],
    [handshake("Proxy refused to open a tunnel: 407 No"), /put the user and the password/],
    [handshake("client error (Connect): invalid peer certificate: UnknownIssuer"), /DENO_CERT/],
    [handshake("write EPROTO: ssl3_get_record:wrong version number", "EPROTO"), /does not speak TLS.*http:/],
    [
      () => new Response("Client sent an HTTP request to an HTTPS server.\n", { status: 400 }),
      /speaks TLS.*use an address with https/,
    ],
  ];
  for (const [answer, words] of cases)
    for (const url of ["https://a:1", ["https://a:1", "https://b:1"]]) {
      const { fetch, sent } = answering(answer);
      const client = new Client({ url, fetch });
      const tries = typeof url === "string" ? 1 : 2;
      const error = await failure(client.lease("k"));
      assert.ok(error instanceof Unreachable && !error.retryable, String(error));
      assert.match(String(error), words);
      assert.match(String(error), /nothing was carried out/);
      assert.equal(sent.length, tries);
      assert.match(String(await failure(client.work({ queue: "q" }, () => {}))), words);
      assert.match(String(await failure(client.watch({ key: "k" }).next())), words);
    }
});

test("another server is asked when the certificate of one is not trusted", async () => {
  const untrusted = handshake("self-signed certificate", "DEPTH_ZERO_SELF_SIGNED_CERT");
  const { fetch, sent } = answering(untrusted, json(200, { version: "7" }));
  assert.equal((await new Client({ url: two, fetch }).commit({})).version, "7");
  assert.equal(sent.length, 2);
});

test("integers beyond 2^53 are strings, and a bigint is sent in full", () => {
  assert.deepEqual(
    parse('{"a": 9007199254740993, "b": [1, -9007199254740993], "c": "9007199254740993", "d": 1.5e300}'),
    {
      a: "9007199254740993",
      b: [1, "-9007199254740993"],
      c: "9007199254740993",
      d: 1.5e300,
    },
  );
  assert.deepEqual(parse('{"text": "say \\"9007199254740993\\" \\\\", "n": 9007199254740991}'), {
    text: 'say "9007199254740993" \\',
    n: 9007199254740991,
  });
  assert.equal(encode({ a: 9007199254740993n, b: "x" }), '{"a":9007199254740993,"b":"x"}');
});

test("every code has an error with a sentence and a next step", () => {
  for (const code of Object.keys(codes) as api.Code[]) {
    const error = errorOf({ code, message: "it is so." });
    assert.equal(error.code, code);
    assert.equal(String(error), `it is so. Next step: ${codes[code].next}`);
    assert.equal(error.retryable, codes[code].retryable);
    assert.equal(error.name, error.constructor.name);
  }
  assert.ok(errorOf({ code: "taken", message: "" }) instanceof LeaseLost);
});
