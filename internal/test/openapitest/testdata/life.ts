// The life of a lease, with the types that openapi-typescript generated. Usage: node life.js URL

import createClient from "openapi-fetch";
import type { components, paths } from "./generated.js";

declare const process: { argv: string[] };
type Problem = components["schemas"]["Problem"];

function must(condition: unknown, value: unknown): asserts condition {
  if (!condition) throw new Error("unexpected: " + JSON.stringify(value));
}

const client = createClient<paths>({ baseUrl: process.argv[2] });
const body = { agent: "typescript", purpose: "try it", claims: [{ key: "account:2" }] };

const granted = await client.POST("/v1/leases", { body });
must(granted.data && "lease" in granted.data, granted.error);
const id: string = granted.data.lease.id;
const fence: string = granted.data.lease.fence;

const refused = await client.POST("/v1/leases", { body });
must(refused.response.status === 409 && refused.error, refused.data);
const problem: Problem = refused.error;
must(problem.code === "held" && problem.holders?.[0]?.agent === "typescript", problem);

const params = { path: { id } };
const got = await client.GET("/v1/leases/{id}", { params });
must(got.data?.lease.fence === fence, got);
const renewed = await client.POST("/v1/leases/{id}/renew", { params, body: { progress: "half" } });
must(renewed.data?.lease.id === id, renewed);
const released = await client.POST("/v1/leases/{id}/release", { params, body: { outcome: "done" } });
must(released.data?.outcome === "released", released);
const gone = await client.POST("/v1/leases/{id}/release", { params, body: {} });
must(gone.error?.code === "released", gone);
console.log("typescript: ok");
