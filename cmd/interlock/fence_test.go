//go:build unix

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/tools"
)

// debianPython is the one that Debian's python3-cryptography belongs to.
const debianPython = "/usr/bin/python3"

// driver calls the function of the page for each case of standard input, and writes
// what it gave or refused with.
const driver = `
import sys
for case in json.load(sys.stdin):
    try:
        print("fence", verify(case["statement"], case["key_set"], case["namespace"], case["key"], case["highest"]))
    except ValueError as refusal:
        print(refusal)
`

type pythonCase struct {
	name      string
	Statement string          `json:"statement"`
	KeySet    json.RawMessage `json:"key_set"`
	Namespace string          `json:"namespace"`
	Key       string          `json:"key"`
	Highest   json.Number     `json:"highest"`
	want      string
}

// TestPagePython takes the function of docs/signed-fences.md and runs it on
// statements of a real server.
func TestPagePython(t *testing.T) {
	t.Parallel()
	tools.Need(t, debianPython)
	page := readPage(t, "../../docs/signed-fences.md")
	function := strings.TrimSpace(onTheirLines(page.of("python")))
	if lines := strings.Count(function, "\n") + 1; !strings.Contains(function, "def verify(") || lines > 35 {
		t.Fatalf("the page has no short function verify, but %d lines", lines)
	}

	r := newRig(t)
	lock := func(keys ...string) (lease string) {
		out := r.must(append([]string{"lock"}, keys...)...)
		_, after, _ := strings.Cut(out, "INTERLOCK_LEASE=")
		lease, _, _ = strings.Cut(after, "\n")
		return strings.Trim(lease, "'")
	}
	sign := func(lease string, flags ...string) string {
		return strings.TrimSpace(r.must(append([]string{"fence", "sign", lease}, flags...)...))
	}
	keys := func() json.RawMessage { return json.RawMessage(r.must("fence", "keys")) }

	lease, reader, foreign := lock(
		"account:12345",
	), lock("account:7", "--shared"), lock("account:12345", "--namespace", "other")
	good, short := sign(lease), sign(lease, "--ttl", "1ms")
	before := keys()
	r.must("fence", "rotate")
	fresh := sign(lease)
	after := keys()
	r.server.Kill()
	r.restart()
	restarted := keys()

	head, rest, _ := strings.Cut(good, ".")
	body, tail, _ := strings.Cut(rest, ".")
	_, otherRest, _ := strings.Cut(sign(foreign, "--namespace", "other"), ".")
	otherBody, _, _ := strings.Cut(otherRest, ".")
	const key, fence = "account:12345", "fence 1"
	under := func(header string) string { return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + rest }
	runPython(t, function, []pythonCase{
		{"good", good, before, "default", key, "0", fence},
		{"good, below", good, before, "default", key + "/fees", "1", fence},
		{"signed before a rotation", good, after, "default", key, "1", fence},
		{"signed after a rotation", fresh, after, "default", key, "1", fence},
		{"after a restart", good, restarted, "default", key, "1", fence},
		{"a new key and an old set", fresh, before, "default", key, "1", "unknown key: get the key set anew"},
		{"expired", short, before, "default", key, "0", "expired"},
		{"another payload", head + "." + otherBody + "." + tail, before, "other", key, "0", "wrong signature"},
		{
			"another signature", head + "." + body + "." + strings.Repeat("A", 86), before, "default", key, "0",
			"wrong signature",
		},
		{"no header", under(`["alg"]`), before, "default", key, "0", "no signed fence"},
		{"a deep header", under(strings.Repeat("[", 100_000)), before, "default", key, "0", "no signed fence"},
		{"two parts", head + "." + tail, before, "default", key, "0", "no signed fence"},
		{"an empty header", under(`{}`), before, "default", key, "0", "no signed fence"},
		{
			"a header without a key", under(`{"alg":"EdDSA","typ":"interlock-fence+jwt"}`), before, "default", key, "0",
			"unknown key: get the key set anew",
		},
		{"another namespace", good, before, "other", key, "0", "of another namespace"},
		{
			"of another namespace", sign(foreign, "--namespace", "other"), restarted, "default", key, "0",
			"of another namespace",
		},
		{"another key", good, before, "default", "account:123456", "0", "for other keys"},
		{"an ancestor", good, before, "default", "account:1234", "0", "for other keys"},
		{"a reader's", sign(reader), restarted, "default", "account:7", "0", "for other keys"},
		{"too low", good, before, "default", key, "2", "a later fence was seen"},
		{"far too low", good, before, "default", key, "18446744073709551615", "a later fence was seen"},
	})
}

func runPython(t *testing.T, function string, cases []pythonCase) {
	t.Helper()
	input, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(debianPython, "-I", "-c", function+"\n"+driver)
	var out, problems bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf(
			"%s with cryptography is needed (scripts/install-deps.sh installs it): %v\n%s", debianPython, err,
			problems.String(),
		)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(cases) {
		t.Fatalf("%d answers to %d cases: %s", len(lines), len(cases), out.String())
	}
	for i, c := range cases {
		if lines[i] != c.want {
			t.Errorf("%s: %q, want %q", c.name, lines[i], c.want)
		}
	}
}
