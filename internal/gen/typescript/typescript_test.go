package typescript

import (
	"strings"
	"testing"
)

const sample = `{
  "types": [
    {"name": "LeaseID", "kind": "value", "type": "string", "description": "Its holder's secret."},
    {"name": "Progress", "kind": "value", "type": "json", "json_types": ["string", "object"]},
    {"name": "Mode", "kind": "words", "values": ["exclusive", "shared"]},
    {"name": "Empty", "kind": "object", "fields": []},
    {"name": "Lease", "kind": "object", "exclusive": ["a", "b"], "description": "A lease.", "fields": [
      {"name": "id", "type": "LeaseID"},
      {"name": "fence", "type": "decimal", "optional": true, "description": "Pass it along."},
      {"name": "keys", "type": "string", "list": true, "enum": ["x", "y"]},
      {"name": "deleted", "type": "boolean", "enum": ["true"]},
      {"name": "value", "type": "json"},
      {"name": "tries", "type": "integer", "optional": true, "default": 5}]}
  ],
  "codes": [{"code": "held", "status": 409, "title": "Held", "retryable": true, "transient": false, "action": "wait",
    "retry_after_ms": 5000, "next": "say \"please\""}],
  "operations": [
    {"id": "getLease", "method": "GET", "path": "/v1/leases/{id}", "summary": "Get a lease", "parameters": [
      {"name": "id", "in": "path", "type": "LeaseID"},
      {"name": "Last-Event-ID", "in": "header", "type": "decimal", "optional": true},
      {"name": "Interlock-Namespace", "in": "header", "type": "string", "optional": true}],
     "answers": [{"types": ["Lease"]}, {"types": ["Lease", "Empty"], "stream": true}]},
    {"id": "setLease", "method": "PUT", "path": "/v1/leases", "summary": "Set a lease", "parameters": [
      {"name": "Idempotency-Key", "in": "header", "type": "string", "optional": true}],
     "body": {"type": "bytes", "content_type": "text/plain", "optional": true}, "answers": [{}]}
  ],
  "limits": [{"name": "MaxURLBytes", "value": 2048}, {"name": "MinTTL", "value": 1000, "unit": "ms"}]
}`

func TestRender(t *testing.T) {
	text, err := render([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"/** Its holder's secret. */\nexport type LeaseID = string;\n",
		"export type Progress = string | Record<string, unknown>;\n",
		"export type Mode =\n  | \"exclusive\"\n  | \"shared\";\n",
		"export type Empty = Record<string, never>;\n",
		"/** A lease. One of a, b is there. */\nexport interface Lease {\n  id: LeaseID;\n  /** Pass it along. */\n" +
			"  fence?: string;\n  keys: (\"x\" | \"y\")[];\n  deleted: true;\n  value: unknown;\n" +
			"  /** Default: 5. */\n  tries?: number;\n}\n",
		"    next:\n      \"say \\\"please\\\"\",\n",
		"  getLease: {\n    path: {\n      id: LeaseID;\n    };\n    header?: {\n      \"Last-Event-ID\"?: string;\n    };\n" +
			"    answer: Lease | Empty;\n  };\n",
		"  setLease: {\n    body?: Uint8Array;\n    answer: undefined;\n  };\n",
		"  getLease: { method: \"GET\", path: \"/v1/leases/{id}\", streams: true },\n",
		"  setLease: { method: \"PUT\", path: \"/v1/leases\", keyed: true, sends: \"text/plain\" },\n",
		"  maxURLBytes: 2048,\n  minTTLMs: 1000,\n",
	} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the file lacks\n%s\nin\n%s", part, text)
		}
	}
	if strings.Contains(string(text), "Interlock-Namespace") {
		t.Error("the namespace is the client's, and no parameter")
	}
}

func TestUnknownKind(t *testing.T) {
	if _, err := render([]byte(`{"types": [{"name": "X", "kind": "tuple"}]}`)); err == nil {
		t.Error("a type of an unknown kind is left out in silence")
	}
}
