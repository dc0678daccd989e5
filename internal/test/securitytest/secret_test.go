package securitytest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/busy"
)

var secretAttacks = []attack{
	{
		70, "Secrets in the log", "reads the log, at its most talkative level, after all that the cases before this one did",
		"no credential, no key of a certificate, no id of a lease, session, ticket or effect, no request id and no " +
			"content of a document stands in it",
		secretsInLog,
		[]string{"server.TestEndedLeaseIsLogged"},
	},
	{
		71, "Secrets in answers",
		"reads every answer, refusals, metrics and the output of every command among them, that the cases before this " +
			"one got",
		"no credential stands in any, whether it was good or bad", secretsInAnswers,
		[]string{"server.TestSecretsStayWithTheirHolder"},
	},
	{
		72, "Others' ids",
		"reads, as another agent of the same tenant, every listing, event, refusal and command's output about a holder",
		"the ids by which one could act for it are in none",
		idsOfOthers,
		[]string{"server.TestSecretsStayWithTheirHolder"},
	},
	{
		73, "Secrets in commands",
		"looks at the environment of what interlock run starts, and at a command's complaint about a credential",
		"a credential that was a flag or in a file is not passed on, and never repeated", secretsInCommands, nil,
	},
	{
		74, "Comparing secrets", "measures how long the server takes to find a credential wrong",
		"secrets are compared by crypto/subtle, by digest, and no source file of the server or the guards compares one " +
			"with ==",
		comparisons, nil,
	},
	{
		75, "Guessing ids", "collects ids, and guesses the next one",
		"128 bits from crypto/rand: no package that makes ids uses another source", guessing, nil,
	},
	{
		76, "Secrets at rest", "reads the journal, as a file and by interlock admin journal dump",
		"no credential stands in it, and none of its files may be read by others; a dump has no id by which one could act",
		secretsAtRest, nil,
	},
}

// hidden returns the values that must never be revealed, by kind.
func (s *site) hidden() map[string]string {
	return map[string]string{
		"acme's credential": s.secrets[acme], "acm's credential": s.secrets[rival], "acme's operator": s.operators[acme],
		"acm's operator":                   s.operators[rival],
		"acme's secret without its prefix": s.secrets[acme][4:], "the key of the certificate": s.key,
		"a part of a credential": s.secrets[rival][4:36],
	}
}

func lacks(t *testing.T, what, text string, secrets map[string]string) {
	t.Helper()
	if len(text) < 1000 {
		t.Errorf("%s has only %d bytes", what, len(text))
	}
	for name, secret := range secrets {
		if len(secret) < 8 {
			t.Fatalf("%s is no secret", name)
		}
		if i := strings.Index(text, secret); i >= 0 {
			t.Errorf("%s has %s: ...%.200q", what, name, text[max(0, i-100):])
		}
	}
}

func secretsInLog(t *testing.T, s *site) {
	theirs, _ := s.worlds(t)
	lease := s.agent(
		t, rival, "POST", "/v1/leases", `{"claims":[{"key":"in-the-log:1"}]}`, "Idempotency-Key",
		"request-id-of-nobody-else",
	).want(200).must("lease.id")
	s.agent(
		t, rival, "POST", "/v1/commits", `{"writes":[{"key":"in-the-log:2","put":"content-of-nobody-else"}]}`,
	).want(200)
	s.agent(t, rival, "POST", "/v1/leases/"+lease+"/release", `{}`).want(200)
	busy.Wait(
		t, "the end of the lease is logged", func() bool { return strings.Contains(s.log.String(), "in-the-log:1") },
	)
	secrets := s.hidden()
	for _, word := range []string{"lease", "ticket", "session", "effect", "run"} {
		secrets["acme's "+word] = theirs[word][2:]
	}
	secrets["a lease"], secrets["a request id"], secrets["a document"] = lease[2:], "request-id-of-nobody-else",
		"content-of-nobody-else"
	lacks(t, "the log", s.log.String(), secrets)
}

func secretsInAnswers(t *testing.T, s *site) {
	lacks(t, "what the server said", s.said.String(), s.hidden())
}

func idsOfOthers(t *testing.T, s *site) {
	theirs, _ := s.worlds(t)
	var all strings.Builder
	for _, op := range s.operations(t) {
		if op.method != "GET" || op.endless || op.process {
			continue
		}
		for _, tr := range op.trials() {
			if ids, _, _ := kind(words(&op, tr)); ids == 0 {
				all.WriteString(s.send(t, op.call(tr, theirs, s.secrets[acme])).raw)
			}
		}
	}
	all.WriteString(s.agent(t, acme, "POST", "/v1/leases", `{"claims":[{"key":"`+theirs["key"]+`"}]}`).want(409).raw)
	all.WriteString(
		s.agent(t, acme, "POST", "/v1/leases", `{"on_conflict":"skip","claims":[{"key":"`+theirs["key"]+`"}]}`).want(200).raw,
	)
	for _, args := range [][]string{
		{"key", "list"},
		{"key", "get", theirs["key"]},
		{"lease", "list"},
		{"agent", "list"},
		{"status"},
		{"why", theirs["key"]},
		{"why", "--agent", theirs["agent"]},
		{"key", "waits"},
		{"log"},
		{"lock", "--wait=0s", theirs["key"]},
		{"effect", "list"},
	} {
		out := s.known(t, acme, args...)
		all.WriteString(out)
	}
	secrets := map[string]string{}
	for _, word := range []string{"lease", "parked", "ticket", "session", "effect"} {
		secrets["the id of a "+word] = theirs[word][2:]
	}
	lacks(t, "what others see", all.String(), secrets)
}

func secretsInCommands(t *testing.T, s *site) {
	file := filepath.Join(t.TempDir(), "credential")
	s.write(t, file, s.secrets[rival])
	flags := []string{"--url", "https://" + s.server.HTTP, "--grpc-addr", s.server.GRPC, "--tls-ca", s.certificate}
	for _, how := range [][]string{{"--credential", s.secrets[rival]}, {"--credential-file", file}} {
		out, code := s.command(
			t, "", append(append([]string{"run"}, append(flags, how...)...), "commanded:1", "--", "env")...,
		)
		if code != 0 || !strings.Contains(out, "INTERLOCK_LEASE=") {
			t.Fatalf("exit code %d: %s", code, out)
		}
		if strings.Contains(out, s.secrets[rival]) {
			t.Error("the command has the credential in its environment")
		}
	}
	for _, bad := range []string{"bad-secret-of-mine\x1b[2J", "bad-secret-of-mine and more", "bad-secret-of-mine"} {
		for _, args := range [][]string{{"key", "list"}, {"key", "get", "k"}, {"log"}} {
			out, code := s.command(t, "", append(append(args, flags...), "--credential", bad)...)
			if code == 0 || strings.Contains(out, "bad-secret") || strings.Contains(out, "no command") {
				t.Errorf("%v: exit code %d, %s", args, code, out)
			}
		}
	}
}

func secretsAtRest(t *testing.T, s *site) {
	theirs, _ := s.worlds(t)
	files := 0
	var all strings.Builder
	list, err := os.ReadDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range list {
		b, err := os.ReadFile(filepath.Join(s.dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files++
		all.Write(b)
	}
	if files < 2 || !strings.Contains(all.String(), mark) {
		t.Fatalf("%d files of %d bytes", files, all.Len())
	}
	lacks(t, "the journal", all.String(), s.hidden())
	onlyOurs(t, s.dir)
	dump, code := s.command(t, "", "admin", "journal", "dump", s.dir, "-o", "json")
	if code != 0 || !strings.Contains(dump, mark) {
		t.Fatalf("exit code %d: %.500s", code, dump)
	}
	secrets := s.hidden()
	for _, word := range []string{"lease", "ticket", "session", "effect"} {
		secrets["acme's "+word] = theirs[word][2:]
	}
	lacks(t, "the dump", dump, secrets)
	for line := range strings.Lines(dump) {
		unharmful(t, "the dump", line)
	}
}
