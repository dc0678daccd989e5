package securitytest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/proto"
)

var oversizeAttacks = []attack{
	{
		45, "Headers and addresses", "sends 100 KB of headers, 10,000 headers, or an address of 100 KB",
		"431 or 400, before the request is parsed", largeHeaders, nil,
	},
	{
		46, "Bodies", "sends every operation a body above its bound, announced or in chunks",
		"413 body_too_large, and the connection ends", largeBodies, nil,
	},
	{
		47, "Invalid lengths",
		"announces 2^63 bytes, a negative or a second length, or chunks in a form that others may read differently",
		"400, or 413, and no second request is read out of the body", badLengths, nil,
	},
	{
		48, "Chunks without an end", "sends chunks for ever", "413 when the bound is passed, and the connection ends",
		endlessChunks, nil,
	},
	{
		49, "Compressed bodies", "sends a body that is small and grows a thousandfold when it is unpacked",
		"nothing is unpacked: a refusal", compressed, nil,
	},
	{
		50, "Texts and lists", "goes above the bound of each text, list and number, over HTTP and the stream",
		"400 with the bound in words", largeTexts,
		[]string{"server.TestBodiesAreReadStrictly"},
	},
	{
		51, "Depth",
		"nests arrays and objects a hundred thousand deep, in a body, a document, a patch, a payload and an effect",
		"400 at once, and the server lives", deepJSON, nil,
	},
	{
		52, "JSON that two readers read differently",
		"sends a name twice, in another case, unknown, escaped; a comment, NaN, a byte order mark, something behind the end",
		"400 invalid_request", ambiguousJSON, nil,
	},
	{
		53, "Numbers", "sends fences above 2^53 and 2^64, exponents, fractions, -0 and signs",
		"exact, or 400: never another number", numbers, nil,
	},
	{
		54, "Frames of the stream", "sends a frame above its bound, or metadata of 100 KB",
		"the stream ends with body_too_large, or is refused; other streams go on", largeFrames,
		[]string{"server.TestBadFramesEndTheStream"},
	},
	{
		78, "Records of the session port",
		"sends a frame or a hello above its bound, a frame before its hello, no record, or another protocol",
		"the link ends, with body_too_large where it was one; other streams go on", framedFrames,
		[]string{"proto.TestFramedRefuses", "proto.TestFramedAnnounced", "server.TestFramedDoor"},
	},
	{
		55, "Answers", "asks for more in one answer than fits: limits, many keys, large documents",
		"answers are bounded, and listings go on with a cursor", largeAnswers,
		[]string{"server.TestListsOfDocuments"},
	},
}

func largeHeaders(t *testing.T, s *site) {
	head := "GET /v1/keys%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + s.secrets[rival] +
		"\r\nConnection: close\r\n%s\r\n"
	for name, text := range map[string]string{
		"one header":   fmt.Sprintf(head, "", "X-Large: "+strings.Repeat("x", 100<<10)+"\r\n"),
		"many headers": fmt.Sprintf(head, "", strings.Repeat("X-Many: y\r\n", 10_000)),
		"the address":  fmt.Sprintf(head, "?prefix="+strings.Repeat("x", 100<<10), ""),
	} {
		if got := s.raw(t, text); got != nil && got.status != 431 && got.status != 400 && got.status != 414 {
			t.Errorf("%s: %d %.200s", name, got.status, got.raw)
		}
	}
	s.agent(t, rival, "GET", "/v1/keys?prefix="+strings.Repeat("x", 600), "").want(400)
	if got := s.agent(
		t, rival, "POST", "/v1/leases", `{"claims":[{"key":"g:1"}]}`, "Idempotency-Key", strings.Repeat("i", 129),
	); !got.is(400, "too_long") {
		t.Errorf("a long Idempotency-Key: %d %s", got.status, got.raw)
	}
}

func largeBodies(t *testing.T, s *site) {
	tried := 0
	for _, op := range s.operations(t) {
		if !op.hasBody {
			continue
		}
		tried++
		a := op.call(op.trials()[0], sampleIDs, op.credential(s, rival))
		var kind strings.Builder
		for i := 0; i+1 < len(a.header); i += 2 {
			fmt.Fprintf(&kind, "%s: %s\r\n", a.header[i], a.header[i+1])
		}
		if op.kind == "" {
			kind.WriteString("Content-Type: application/json\r\n")
		}
		got := s.raw(
			t,
			fmt.Sprintf(
				"%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n%sContent-Length: %d\r\n\r\n", a.method, a.path,
				a.as, kind.String(), 1<<30,
			),
		)
		if !got.is(413, "body_too_large") || !got.closes {
			t.Errorf("%s with a body of 1 GiB: %+v", op.id, got)
		}
	}
	if tried < 35 {
		t.Errorf("only %d operations have a body", tried)
	}
	large := `{"agent":"` + strings.Repeat("x", interlock.MaxBodyBytes) + `"}`
	s.agent(t, rival, "POST", "/v1/leases", large).want(413, "body_too_large")
	s.agent(
		t, rival, "PUT", "/v1/state/g:large", strings.Repeat("x", interlock.MaxDocumentBytes+1), "Content-Type",
		"text/plain", "If-None-Match", "*",
	).want(413)
}

func badLengths(t *testing.T, s *site) {
	smuggled := "POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + s.secrets[rival] +
		"\r\nContent-Type: application/json\r\nContent-Length: 33\r\n\r\n"
	// A length beside well-formed chunks is not among them: the chunks count (RFC 9112, 6.3).
	for i, lengths := range []string{
		"Content-Length: 9223372036854775807", "Content-Length: 9223372036854775808",
		"Content-Length: 99999999999999999999999", "Content-Length: -1", "Content-Length: +2", "Content-Length: 0x10",
		"Content-Length: 2\r\nContent-Length: 200", "Content-Length: 2, 200",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
		"Transfer-Encoding: xchunked", "Transfer-Encoding : chunked", "Transfer-Encoding: chunked, gzip",
		"Transfer-Encoding:\vchunked", "Content-Length: 2\r\n : x",
	} {
		got := s.raw(
			t,
			"POST /v1/commits HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+s.secrets[rival]+
				"\r\nContent-Type: application/json\r\n"+lengths+"\r\n\r\n0\r\n\r\n"+smuggled+
				fmt.Sprintf(`{"claims":[{"key":"smuggled:%c"}]}`, 'a'+i),
		)
		if got != nil && (got.status < 400 || got.status >= 600) {
			t.Errorf("%q: %d %s", lengths, got.status, got.raw)
		}
		if got := s.agent(t, rival, "GET", fmt.Sprintf("/v1/keys/smuggled:%c", 'a'+i), ""); got.str("state") == "held" {
			t.Errorf("%q: a second request was read out of the body", lengths)
		}
	}
}

func endlessChunks(t *testing.T, s *site) {
	for _, path := range []string{"/v1/leases", "/v1/commits", "/v1/tasks"} {
		c := s.connect(t)
		fmt.Fprintf(
			c,
			"POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: "+
				"application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
			path, s.secrets[rival],
		)
		written := make(chan int, 1)
		go func() {
			chunk := fmt.Sprintf("10000\r\n%s\r\n", strings.Repeat(" ", 1<<16))
			n := 0
			for {
				if _, err := io.WriteString(c, chunk); err != nil || n > 64<<20 {
					written <- n
					return
				}
				n += 1 << 16
			}
		}()
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		} else if res.StatusCode != 413 || !res.Close {
			t.Errorf("%s: %s", path, res.Status)
		}
		_ = c.SetReadDeadline(time.Now().Add(busy.Patience()))
		_, _ = io.Copy(io.Discard, c)
		c.Close()
		if n := <-written; n > 32<<20 {
			t.Errorf("%s: the server read %d bytes", path, n)
		}
	}
}

func compressed(t *testing.T, s *site) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(bytes.Repeat([]byte(" "), 64<<20))
	_ = w.Close()
	for _, coding := range []string{"gzip", "deflate", "br", "identity, gzip"} {
		got := s.agent(t, rival, "POST", "/v1/leases", packed.String(), "Content-Encoding", coding)
		if got.status != 400 && got.status != 413 && got.status != 415 {
			t.Errorf("%s: %d %s", coding, got.status, got.raw)
		}
	}
}

func largeTexts(t *testing.T, s *site) {
	x := func(n int) string { return strings.Repeat("x", n) }
	many := func(n int, one string) string { return "[" + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + "]" }
	held := s.agent(t, rival, "POST", "/v1/leases", `{"claims":[{"key":"large:1"}]}`).want(200).must("lease.id")
	for _, c := range []struct{ path, body string }{
		{"/v1/leases", `{"claims":[{"key":"` + x(513) + `"}]}`},
		{"/v1/leases", `{"agent":"` + x(129) + `","claims":[{"key":"k"}]}`},
		{"/v1/leases", `{"flow":"` + x(129) + `","claims":[{"key":"k"}]}`},
		{"/v1/leases", `{"purpose":"` + x(513) + `","claims":[{"key":"k"}]}`},
		{"/v1/leases", `{"claims":` + many(65, `{"key":"k"}`) + `}`},
		{"/v1/leases", `{"any":true,"claims":` + many(1025, `{"key":"k"}`) + `}`},
		{"/v1/leases", `{"claims":[]}`},
		{"/v1/leases", `{"priority":101,"claims":[{"key":"k"}]}`},
		{"/v1/leases", `{"ttl_ms":1,"claims":[{"key":"k"}]}`},
		{"/v1/leases", `{"ttl_ms":9223372036854775807,"claims":[{"key":"k"}]}`},
		{"/v1/leases", `{"claims":[{"key":"k","permits":4294967297}]}`},
		{"/v1/leases", `{"claims":[{"key":"k","parties":257}]}`},
		{"/v1/leases", `{"claims":[{"key":"k","parts":4097}]}`},
		{"/v1/leases/" + held + "/release", `{"note":"` + x(4097) + `"}`},
		{"/v1/leases/" + held + "/renew", `{"progress":"` + x(513) + `"}`},
		{"/v1/revocations", `{"key":"k","fence":"1","reason":"` + x(513) + `"}`},
		{"/v1/commits", `{"note":"` + x(4097) + `","writes":[{"key":"k","put":1}]}`},
		{"/v1/commits", `{"reads":` + many(257, `{"key":"k","version":"1"}`) + `}`},
		{"/v1/commits", `{"writes":` + many(257, `{"key":"k","add":1}`) + `}`},
		{"/v1/commits", `{"leases":` + many(1000, `"`+held+`"`) + `}`},
		{"/v1/effects", `{"tool":"` + x(17<<10) + `","target":"t"}`},
		{"/v1/tasks", `{"queue":"` + x(513) + `"}`},
		{"/v1/tasks", `{"queue":"q","payload":"` + x(257<<10) + `"}`},
		{"/v1/queues/q/pull", `{"max":65}`},
		{"/v1/sessions", `{"agent":"` + x(129) + `"}`},
	} {
		if got := s.operator(t, rival, "POST", c.path, c.body); got.status != 400 && got.status != 413 && got.status != 404 {
			t.Errorf("%s %.60s: %d %.200s", c.path, c.body, got.status, got.raw)
		} else if len(got.raw) > 4096 {
			t.Errorf("%s %.60s: an answer of %d bytes", c.path, c.body, len(got.raw))
		}
	}
	l := s.agentStream(t, rival)
	l.send(openOp(1, "large"))
	l.reply(1)
	for i, c := range []interlock.LeaseRequest{
		{Claims: []interlock.Claim{{Key: interlock.Key(x(513))}}},
		{Claims: []interlock.Claim{{Key: "k"}}, Purpose: x(513)},
		{Claims: []interlock.Claim{{Key: "k"}}, Flow: x(129)},
		{Claims: make([]interlock.Claim, 65)},
		{},
	} {
		for j := range c.Claims {
			if c.Claims[j].Key == "" {
				c.Claims[j].Key = interlock.Key(fmt.Sprint("k", j))
			}
		}
		seq := uint64(i + 2)
		l.send(acquireOp(1, seq, c))
		if got := l.reply(seq); got.Code == "" {
			t.Errorf("acquire %d on the stream: %v", i, got)
		}
	}
}

func deepJSON(t *testing.T, s *site) {
	const depth = 100_000
	arrays, objects := strings.Repeat("[", depth)+strings.Repeat("]", depth), strings.Repeat(`{"a":`, depth)+"1"+strings.Repeat("}", depth)
	for _, deep := range []string{arrays, objects, strings.Repeat("[", depth)} {
		for _, c := range []struct{ path, before, behind string }{
			{"/v1/leases", "", ""},
			{"/v1/leases", `{"claims":`, "}"},
			{"/v1/commits", `{"writes":[{"key":"k","put":`, "}]}"},
			{"/v1/commits", `{"writes":[{"key":"k","merge":`, "}]}"},
			{"/v1/tasks", `{"queue":"q","payload":`, "}"},
			{"/v1/effects", `{"tool":"t","target":"t","arguments":`, "}"},
			{"/v1/sessions/" + sampleIDs["session"] + "/heartbeat", `{"progress":`, "}"},
		} {
			if got := s.agent(t, rival, "POST", c.path, c.before+deep+c.behind); got.status != 400 && got.status != 413 &&
				got.status != 404 {
				t.Errorf("%s %s: %d %.200s", c.path, c.before, got.status, got.raw)
			}
		}
		for _, kind := range []string{"application/json", "application/merge-patch+json"} {
			method := map[string]string{"application/json": "PUT"}[kind]
			if method == "" {
				method = "PATCH"
			}
			if got := s.agent(
				t, rival, method, "/v1/state/g:deep", deep, "Content-Type", kind, "If-None-Match", "*",
			); got.status < 400 ||
				got.status >= 500 {
				t.Errorf("%s: %d %.200s", method, got.status, got.raw)
			}
		}
	}
	s.send(t, ask{method: "GET", path: "/healthz"}).want(200)
}

func ambiguousJSON(t *testing.T, s *site) {
	for _, body := range []string{
		`{"claims":[{"key":"a"}],"claims":[{"key":"b"}]}`, `{"claims":[{"key":"a","key":"b"}]}`,
		`{"claims":[{"key":"a"}],"cl\u0061ims":[{"key":"b"}]}`,
		`{"Claims":[{"key":"a"}]}`, `{"claims":[{"KEY":"a"}]}`, `{"claims":[{"key":"a"}],"x":1}`,
		`{"claims":[{"key":"a"}]}{"claims":[{"key":"b"}]}`, `{"claims":[{"key":"a"}]} x`,
		"\ufeff" + `{"claims":[{"key":"a"}]}`, `{"claims":[{"key":"a"},]}`, `{"claims":[{"key":"a"}],}`,
		`{'claims':[{'key':'a'}]}`, `{claims:[{key:"a"}]}`, `{"claims":[{"key":"a"}]/**/}`,
		"{\"claims\":[{\"key\":\"a\nb\"}]}", `{"claims":[{"key":"\x61"}]}`, `{"claims":null}`, `{"claims":{"key":"a"}}`,
		`[{"key":"a"}]`, `"claims"`, `{"claims":[{"key":["a"]}]}`,
		`{"claims":[{"key":"a"}],"any":"true"}`, `{"claims":[{"key":"a"}],"any":1}`,
		`{"claims":[{"key":"a"}],"ttl_ms":"1000"}`, "{\"claims\":[{\"key\":\"a\"}]}\x00",
		`{"claims":[{"key":"a"}],"__proto__":{}}`, `{"claims":[{"key":"\ud83d"}]}`,
	} {
		if got := s.agent(t, rival, "POST", "/v1/leases", body); got.status != 400 {
			t.Errorf("%s: %d %s", body, got.status, got.raw)
		}
	}
	for _, put := range []string{"\ufeff{}", "{} {}", "{a:1}", "NaN", "Infinity", "01", "\xff", ""} {
		if got := s.agent(
			t, rival, "PUT", "/v1/state/g:json", put, "Content-Type", "application/json", "If-None-Match", "*",
		); got.status != 400 {
			t.Errorf("a document %q: %d %s", put, got.status, got.raw)
		}
	}
}

func numbers(t *testing.T, s *site) {
	fence := func(text string) *answer {
		return s.agent(t, rival, "POST", "/v1/fences/check", `{"key":"g:numbers","fence":`+text+`}`)
	}
	for _, bad := range []string{
		`1`, `"-1"`, `"01"`, `"1.0"`, `"1e3"`, `"+1"`, `" 1"`, `""`, `"18446744073709551616"`, `"0x1"`, `"١"`, `"1_000"`,
		`null`, `[1]`,
	} {
		if got := fence(bad); got.status != 400 {
			t.Errorf("fence %s: %d %s", bad, got.status, got.raw)
		}
	}
	for _, large := range []string{"9007199254740993", "18446744073709551615"} {
		if got := fence(`"` + large + `"`); got.status != 409 && got.status != 200 {
			t.Errorf("fence %s: %d %s", large, got.status, got.raw)
		}
	}
	for _, bad := range []string{"1e3", "1.0", "1.5", "1e999", "--1", "01", ".5", "99999999999999999999", "-1", "true"} {
		if got := s.agent(
			t, rival, "POST", "/v1/leases", `{"claims":[{"key":"g:numbers"}],"ttl_ms":`+bad+`}`,
		); got.status != 400 {
			t.Errorf("ttl_ms %s: %d %s", bad, got.status, got.raw)
		}
	}
	// Kept values are kept exactly.
	const exact = `{"n":12345678901234567890123.0100,"m":-0.0,"k":1e400}`
	s.agent(
		t, rival, "PUT", "/v1/state/g:exact", exact, "Content-Type", "application/json", "If-None-Match", "*",
	).want(200)
	if got := s.agent(t, rival, "GET", "/v1/state/g:exact", "").want(200); got.raw != exact {
		t.Errorf("%s became %s", exact, got.raw)
	}
	for _, version := range []string{"18446744073709551616", "-1", "1.5", "01", "x"} {
		if got := s.agent(t, rival, "GET", "/v1/state/g:exact?version="+version, ""); got.status != 400 {
			t.Errorf("version %s: %d %s", version, got.status, got.raw)
		}
	}
}

func largeFrames(t *testing.T, s *site) {
	other := s.agentStream(t, rival)
	other.send(openOp(1, "bystander"))
	other.reply(1)
	l := s.agentStream(t, rival)
	l.send(proto.Op{Kind: proto.OpHeartbeat, Seq: 1, Progress: strings.Repeat("x", proto.MaxFrameBytes)})
	if code := l.ends(); code != interlock.CodeBodyTooLarge {
		t.Errorf("a large frame ends the stream with %q", code)
	}
	huge := s.agentStream(t, rival)
	huge.send(proto.Op{Kind: proto.OpHeartbeat, Seq: 1, Progress: strings.Repeat("x", 3*proto.MaxFrameBytes)})
	huge.ends()
	ctx := metadata.NewOutgoingContext(
		t.Context(), metadata.Pairs("authorization", "Bearer "+s.secrets[rival], "x-large", strings.Repeat("x", 100<<10)),
	)
	if stream, err := s.newStream(t, ctx); err == nil {
		if err := stream.RecvMsg(&proto.ServerFrame{}); err == nil {
			t.Error("metadata of 100 KB is taken")
		}
	}
	other.send(openOp(2, "still"))
	other.reply(2)
}

func largeAnswers(t *testing.T, s *site) {
	for _, path := range []string{
		"/v1/keys?limit=%s", "/v1/state?limit=%s", "/v1/tasks?limit=%s", "/v1/effects?limit=%s", "/v1/hot?limit=%s",
		"/v1/approvals?limit=%s", "/v1/parked?limit=%s", "/v1/leases?limit=%s",
		"/v1/tickets?limit=%s", "/v1/sessions?limit=%s", "/v1/runs?limit=%s",
	} {
		for _, limit := range []string{"1000000000", "-1", "0", "1e9", "18446744073709551617", "x"} {
			if got := s.agent(t, rival, "GET", fmt.Sprintf(path, limit), ""); got.status != 400 {
				t.Errorf(path+": %d", limit, got.status)
			}
		}
	}
	for i := range 6 {
		s.agent(
			t, rival, "PUT", fmt.Sprintf("/v1/state/big:%d", i), strings.Repeat("x", 1<<20), "Content-Type", "text/plain",
			"If-None-Match", "*",
		).want(200)
	}
	got := s.agent(
		t, rival, "GET", "/v1/state?key=big:0&key=big:1&key=big:2&key=big:3&key=big:4&key=big:5&values=true", "",
	)
	if got.status != 413 && len(got.raw) > 8<<20 {
		t.Errorf("%d with %d bytes", got.status, len(got.raw))
	}
	if list := s.agent(t, rival, "GET", "/v1/state?prefix=big:&values=true", "").want(200); len(list.raw) > 8<<20 ||
		list.str("cursor") == "" {
		t.Errorf("a listing of %d bytes, cursor %q", len(list.raw), list.str("cursor"))
	}
	many := strings.Repeat("key=a&", 257)
	s.agent(t, rival, "GET", "/v1/state?"+strings.TrimSuffix(many, "&"), "").want(400)
}
