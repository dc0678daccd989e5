package securitytest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/proto"
)

var slowAttacks = []attack{
	{
		56, "Half requests", "opens 200 connections and sends half a header, or half a body, on each",
		"others are answered as before; each connection is cut off after ten seconds",
		halfRequests,
		[]string{"server.TestSlowClientsAreCutOff", "server.TestLongPollOutlivesTheReadTimeout"},
	},
	{
		57, "Announced bodies that never come", "announces a large body on 200 connections and sends one byte of each",
		"memory grows with what came, and not with what was announced", announcedBodies, nil,
	},
	{
		58, "Clients that never read",
		"asks for large answers on 40 connections, and for events and documents on 40 more, and reads none",
		"others are not delayed, and memory stays bounded",
		neverReading,
		[]string{"server.TestNeverReadingClientIsCutOff", "server.TestPausedReaderBlocksNobody"},
	},
	{
		59, "Streams that never read", "sends operations over the session stream and reads no answer",
		"the stream is held up by itself; others are not delayed, and memory stays bounded",
		deafStream,
		[]string{
			"server.TestClientThatNeverReads", "server.TestClientThatNeverReadsOverGRPC", "server.TestOutgoingIsBounded",
		},
	},
	{
		79, "Half greetings",
		"opens 200 connections to the session port and says nothing, half a greeting, or half a hello on each",
		"others are answered as before; each connection is cut off after ten seconds", framedHalves,
		[]string{"server.TestSlowGreeting", "proto.TestFramedPings"},
	},
	{
		80, "Announced frames that never come", "announces the largest frame on 50 links and sends one byte of each",
		"memory grows with what came, and not with what was announced", framedAnnounced,
		[]string{"proto.TestFramedAnnounced"},
	},
	{
		60, "Readers of events", "opens more readers of events than a tenant may have",
		"429 too_many_streams for the one above the limit; events that end and other tenants are read", tooManyReaders,
		nil,
	},
	{
		61, "Keys, waiters, leases and sessions without end",
		"takes all of them, as one tenant with a quota",
		"429 quota above it, in words; another tenant takes as many as before",
		quotas,
		[]string{"server.TestQuotas", "server.TestQuotaOfTwoTenants"},
	},
	{
		62, "Requests without end", "sends requests as fast as it can, against a quota of requests",
		"429 with Retry-After, heartbeats and releases go through, and another tenant notices nothing",
		requestQuota,
		[]string{"server.TestQuotaAtTheDoor", "server.TestVitalIsNeverRefused"},
	},
	{
		63, "Connections that break", "breaks off 200 calls that wait in line",
		"nobody is left in the line, and the next one in it is granted", brokenWaits,
		[]string{"server.TestBrokenConnectionLeavesTheLine"},
	},
}

// figure is one of the server's own figures.
func (s *site) figure(t *testing.T, name string) float64 {
	t.Helper()
	text := s.agent(t, acme, "GET", "/metrics", "").want(200).raw
	_, rest, ok := strings.Cut(text, "\n"+name+" ")
	if !ok {
		t.Fatalf("there is no figure %s", name)
	}
	line, _, _ := strings.Cut(rest, "\n")
	v, err := strconv.ParseFloat(line, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// memory returns the process's memory in bytes.
func (s *site) memory(t *testing.T) float64 {
	t.Helper()
	return s.figure(t, "go_memstats_heap_inuse_bytes") + s.figure(t, "go_memstats_stack_inuse_bytes")
}

// undisturbed measures how another tenant is served meanwhile. The bound is far above
// what a call takes on a busy machine, and below the shortest timeout of the server, 10 s.
func undisturbed(t *testing.T, s *site) {
	t.Helper()
	for i := range 20 {
		began := time.Now()
		lease := s.agent(t, acme, "POST", "/v1/leases", `{"claims":[{"key":"undisturbed:1"}]}`).want(200).must("lease.id")
		s.agent(t, acme, "POST", "/v1/leases/"+lease+"/release", `{}`).want(200)
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("lease %d of another tenant took %v", i, took)
		}
	}
}

func halfRequests(t *testing.T, s *site) {
	head := "POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + s.secrets[rival] +
		"\r\nContent-Type: application/json\r\n"
	halves := []string{
		"", "POST /v1/le", head, head + "Content-Length: 100\r\n\r\n{", head + "Transfer-Encoding: chunked\r\n\r\n5\r\n{",
	}
	before := s.memory(t)
	var open [200]net.Conn
	for i := range open {
		open[i] = s.connect(t)
		if _, err := io.WriteString(open[i], halves[i%len(halves)]); err != nil {
			t.Fatal(err)
		}
	}
	undisturbed(t, s)
	for i, c := range open {
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("connection %d, with %.20q, is still open after %v", i, halves[i%len(halves)], busy.Patience())
		}
	}
	if grown := s.memory(t) - before; grown > 64<<20 {
		t.Errorf("memory grew by %.0f bytes", grown)
	}
}

func announcedBodies(t *testing.T, s *site) {
	for i := range 4 {
		began := s.memory(t)
		calls := []string{
			fmt.Sprintf(
				"POST /v1/leases HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", interlock.MaxBodyBytes,
			),
			fmt.Sprintf(
				"PUT /v1/state/g:announced HTTP/1.1\r\nIf-None-Match: *\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n",
				interlock.MaxDocumentBytes,
			),
			fmt.Sprintf(
				"POST /v1/commits HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", interlock.MaxCommitBytes,
			),
			fmt.Sprintf("PUT /v1/files/announced HTTP/1.1\r\nIf-None-Match: *\r\nContent-Length: %d\r\n", 4<<20),
		}
		for range 50 {
			_, err := io.WriteString(
				s.connect(t), calls[i]+"Host: localhost\r\nAuthorization: Bearer "+s.secrets[rival]+"\r\n\r\n{",
			)
			if err != nil {
				t.Fatal(err)
			}
		}
		undisturbed(t, s)
		if grown := s.memory(t) - began; grown > 24<<20 {
			t.Errorf("%.40s: 50 bytes in all, and memory grew by %.0f bytes", calls[i], grown)
		}
	}
}

// mute sends a request and reads nothing of the answer.
func mute(t *testing.T, s *site, path string) net.Conn {
	t.Helper()
	c := s.connect(t)
	if _, err := fmt.Fprintf(
		c, "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", path, s.secrets[rival],
	); err != nil {
		t.Fatal(err)
	}
	return c
}

func neverReading(t *testing.T, s *site) {
	before := s.memory(t)
	for range 20 {
		mute(t, s, "/openapi.json")
		mute(t, s, "/v1/state?prefix=big:&values=true")
		mute(t, s, "/v1/events?follow=true&from=1")
		mute(t, s, "/v1/watch?values=true&from=1")
	}
	s.agent(t, rival, "POST", "/v1/commits", `{"writes":[{"key":"g:mute","put":0}]}`).want(200)
	for range 100 {
		s.agent(
			t, rival, "POST", "/v1/commits",
			`{"note":"`+strings.Repeat("n", 4000)+
				`","reads":[{"key":"g:mute","present":true}],"writes":[{"key":"g:mute","put":"`+strings.Repeat("x", 20_000)+
				`"}]}`,
		).want(200)
	}
	undisturbed(t, s)
	// One that reads gets everything, at once.
	s.agent(
		t, rival, "POST", "/v1/commits",
		`{"agent":"heard-by-readers","reads":[{"key":"g:mute","present":true}],"writes":[{"key":"g:mute","put":1}]}`,
	).want(200)
	s.follow(t, s.secrets[rival], "/v1/watch?from=1").until("heard-by-readers")
	// The server bounds what is in flight. As much again is garbage before the collector runs.
	grown, held := s.memory(t)-before, s.figure(t, "interlock_in_flight_bytes")
	if grown > 2*(held+64<<20) || held > 256<<20 {
		t.Errorf("memory grew by %.0f bytes, with %.0f in flight", grown, held)
	}
}

func deafStream(t *testing.T, s *site) {
	before := s.memory(t)
	frame := &proto.ClientFrame{}
	for i := range 500 {
		frame.Ops = append(frame.Ops, proto.Op{
			Kind: proto.OpReadState, Seq: uint64(i + 1), Bodies: true,
			State: &proto.StateQuery{Keys: []interlock.Key{"big:0"}},
		})
	}
	for range 4 {
		l := s.agentStream(t, rival)
		go func() {
			for l.stream.SendMsg(frame) == nil {
			}
		}()
	}
	undisturbed(t, s)
	other := s.agentStream(t, rival)
	other.send(openOp(1, "hears"))
	other.reply(1)
	if grown := s.memory(t) - before; grown > 256<<20 {
		t.Errorf("memory grew by %.0f bytes", grown)
	}
}

func tooManyReaders(t *testing.T, s *site) {
	// The cases before this one have left; their ends are noticed by and by.
	busy.Wait(t, "no reader is left", func() bool { return s.figure(t, "interlock_event_streams") == 0 })
	for range 64 {
		c := mute(t, s, "/v1/events?follow=true")
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			t.Fatal(line, err)
		}
	}
	s.agent(t, rival, "GET", "/v1/events?follow=true", "").want(429, "too_many_streams")
	s.agent(t, rival, "GET", "/v1/events", "").want(200)
	s.agent(t, rival, "GET", "/v1/watch", "").want(429, "too_many_streams")
	s.agent(t, acme, "GET", "/v1/events", "").want(200)
	undisturbed(t, s)
}

// quota returns rival one; back takes it back.
func quota(t *testing.T, s *site, text string) (back func()) {
	t.Helper()
	s.operator(t, rival, "PUT", "/v1/namespace", `{"closed":false,"quota":`+text+`}`).want(200)
	return func() {
		busy.Wait(t, "the quota is taken back", func() bool {
			return s.operator(t, rival, "PUT", "/v1/namespace", `{"closed":false}`).status == 200
		})
	}
}

func quotas(t *testing.T, s *site) {
	const n = 100
	s.agent(t, rival, "POST", "/v1/leases", `{"claims":[{"key":"awaited"}],"ttl_ms":600000}`).want(200)
	for _, c := range []struct{ quota, path, body string }{
		{`{"keys":%d}`, "/v1/leases", `{"claims":[{"key":"many:%d"}]}`},
		{`{"leases":%d}`, "/v1/leases", `{"claims":[{"key":"much","mode":"shared"}],"agent":"%d"}`},
		{`{"waiters":%d}`, "/v1/leases", `{"claims":[{"key":"awaited"}],"on_conflict":"wait","agent":"%d"}`},
		{`{"sessions":%d}`, "/v1/sessions", `{"agent":"%d"}`},
		{`{"documents":%d}`, "/v1/commits", `{"writes":[{"key":"many-doc:%d","put":1}]}`},
	} {
		back := quota(t, s, fmt.Sprintf(c.quota, n))
		refused := 0
		for i := range n + 10 {
			got := s.agent(t, rival, "POST", c.path, fmt.Sprintf(c.body, i))
			switch {
			case got.status == 429 && (got.str("code") == "quota_exceeded" || strings.HasPrefix(got.str("code"), "too_many")):
				refused++
			case got.status >= 300:
				t.Fatalf("%s: %d %s", c.quota, got.status, got.raw)
			}
		}
		if refused < 10 {
			t.Errorf("%s: %d of %d were refused", c.quota, refused, n+10)
		}
		undisturbed(t, s)
		back()
	}
}

func requestQuota(t *testing.T, s *site) {
	session := s.agent(t, rival, "POST", "/v1/sessions", `{"agent":"hasty","ttl_ms":600000}`).want(200).must("session.id")
	lease := s.agent(
		t, rival, "POST", "/v1/leases", `{"session":"`+session+`","claims":[{"key":"hasty:1"}]}`,
	).want(200).must("lease.id")
	defer quota(t, s, `{"requests_per_s":20}`)()
	refused := 0
	for range 200 {
		got := s.agent(t, rival, "GET", "/v1/keys/hasty:1", "")
		if got.status == 429 {
			refused++
			if got.header.Get("Retry-After") == "" || got.str("code") != "quota_exceeded" {
				t.Fatalf("%v %s", got.header, got.raw)
			}
		}
	}
	if refused < 50 {
		t.Errorf("%d of 200 were refused", refused)
	}
	s.agent(t, rival, "POST", "/v1/sessions/"+session+"/heartbeat", `{}`).want(200)
	s.agent(t, rival, "POST", "/v1/leases/"+lease+"/release", `{}`).want(200)
	undisturbed(t, s)
}

func brokenWaits(t *testing.T, s *site) {
	const key = "broken:1"
	lease := s.agent(t, rival, "POST", "/v1/leases", `{"claims":[{"key":"`+key+`"}]}`).want(200).must("lease.id")
	body := `{"wait_ms":50000,"claims":[{"key":"` + key + `"}]}`
	length := func() string { return s.agent(t, rival, "GET", "/v1/keys/"+key, "").want(200).raw }
	var all []net.Conn
	for range 200 {
		c := s.connect(t)
		fmt.Fprintf(
			c,
			"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: "+
				"application/json\r\nContent-Length: %d\r\n\r\n%s",
			s.secrets[rival], len(body), body,
		)
		all = append(all, c)
	}
	busy.Wait(t, "all stand in line", func() bool { return strings.Contains(length(), `"length":200`) })
	for _, c := range all {
		c.Close()
	}
	busy.Wait(t, "nobody is in line", func() bool { return strings.Contains(length(), `"length":0`) })
	s.agent(t, rival, "POST", "/v1/leases/"+lease+"/release", `{}`).want(200)
	s.agent(t, rival, "POST", "/v1/leases", `{"claims":[{"key":"`+key+`"}]}`).want(200)
}
