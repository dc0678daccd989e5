package script

import (
	"crypto/sha1"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shipped are the scripts of the libraries, with the SHA-1 under which they call them.
var shipped = []struct {
	file, sha string
	form      Form
}{
	{"redis-py-release", "c3f8721cbb97f72bc19e972846bd7aaf91901658", Release},
	{"redis-py-extend", "a4e8783852e6b949f9ef3a97212805108459a890", Extend},
	{"redis-py-reacquire", "1cac51482acf5858da00f6d685d68f886cd6b6b2", Reacquire},
	{"redislock-refresh", "a7aba3bc5d6e99b3003da8b9d80a63b9f4092ecf", CompareExpire},
	{"redislock-release", "cf0e94b2e9ffc7e04395cf88f7583fc309985910", CompareDelete},
	{"redislock-pttl", "6484da7d58920897fdc22b7f9afd1a3d47524ea8", CompareTTL},
	{"redislock-obtain", "80a1b5f2cfccec3b7119ba7721d2127682b691a7", Obtain},
	{"redsync-delete", "e950836ed1e694540c503ef9972b8de518044d3b", DeleteOrGone},
	{"redsync-touchwithsetnx", "b6b55c439e02c6f52ffb8be7ec8c0d0ac816ea79", TouchOrSet},
	{"redsync-touch", "d75bb8b5bd13532ddedd17762e772346e39b321e", CompareExpire},
	{"redlock-py-unlock", "4e92fdc63815b3a0a2dd1c1df3694de73607c88d", CompareDelete},
	{"pottery-acquired", "f5f7bd3a3aa4a63c507c1155c5ea1219b350d992", Remaining},
	{"pottery-extend", "ba015a80261b616e7a62d35df0b8e3edbe6c9414", CompareExpire},
	{"pottery-release", "a4aada0b36710970eedaaaeec4a6b7d8c78c4f80", CompareDelete},
	{"aioredlock-set-lock", "c75a9bf1538efcdb1f383acc3e273c5089d57e58", SetOrExtend},
	{"aioredlock-unset-lock", "241e4ca540a1cc4ec1f32d9eb9f879e607d7e6e5", Unset},
	{"aioredlock-get-lock-ttl", "f908d3f43dbcabc68fc0c9ecaf1fa4a285ecdb0a", HolderTTL},
	{"redlock-4-lock", "e5a322e2634ef59a516e8ea150cb085afafee684", AcquireAll},
	{"redlock-4-extend", "ce46f80993d5dac20dd066eb301a4e37994bdbed", ExtendAll},
	{"redlock-4-unlock", "0f0f23b9048b36752b5be114f357ba083449f908", ReleaseAll},
	{"redlock-5-acquire", "96da70f7716f27d278a5218544df37fd8b0a5e4c", AcquireAll},
	{"redlock-5-extend", "aed6f382e410db8ba7926d4e5e9aab410bf2a78a", ExtendAll},
	{"redlock-5-release", "e4612211c9f8f51c257e26e056b0a654b3187242", ReleaseAll},
	{"seed-001", "315655a482d824a9d391e61882230e71e489e670", CompareDelete},
}

func text(t testing.TB, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "shipped", file+".lua"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestShipped: each script of a library has its meaning, and each form is that of a library.
func TestShipped(t *testing.T) {
	seen := map[Form]bool{}
	for _, s := range shipped {
		source := text(t, s.file)
		if sum := sha1.Sum([]byte(source)); hex.EncodeToString(sum[:]) != s.sha {
			t.Errorf("%s has the SHA-1 %x, want %s", s.file, sum, s.sha)
		}
		if got := Recognise(source); got != s.form {
			t.Errorf("%s is %v, want %v", s.file, got, s.form)
		}
		seen[s.form] = true
	}
	files, err := filepath.Glob(filepath.Join("testdata", "shipped", "*.lua"))
	if err != nil || len(files) != len(shipped) {
		t.Errorf("%d files for %d scripts (%v)", len(files), len(shipped), err)
	}
	for f := CompareDelete; int(f) < len(forms); f++ {
		if !seen[f] {
			t.Errorf("no script of a library has the form %v", f)
		}
	}
}

// TestSpellings: blanks, comments, quotes, the case of commands, semicolons and the names of locals do
// not count.
func TestSpellings(t *testing.T) {
	for source, want := range map[string]Form{
		"-- mine\nif redis.call('GET',KEYS[1])==ARGV[1]\r\nthen return redis.call('DEL',KEYS[1]);\nelse return 0;" +
			"end": CompareDelete,
		`local t = redis.call("get", KEYS[1]) if not t or t ~= ARGV[1] then return 0 end --[[ mine
			]] redis.call("del", KEYS[1]) return 1`: Release,
	} {
		if got := Recognise(source); got != want {
			t.Errorf("%v, want %v: %s", got, want, source)
		}
	}
}

// TestUnknown: what looks like a known script and is none is unknown.
func TestUnknown(t *testing.T) {
	for _, source := range []string{
		"", "return 1", `return redis.call("del", KEYS[1])`,
		// A global that has the name of a numbered local, and a local of another scope.
		`local token = redis.call("get", KEYS[1]) if not v0 or v0 ~= ARGV[1] then return 0 end
			redis.call("del", KEYS[1]) return 1`,
		`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[2]) else return 0 end`,
		`if redis.call("get", KEYS[1]) ~= ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`,
		`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end return 1`,
		`if redis.call("g\101t", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`,
		`if redis.call([[get]], KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`,
		`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end --[[`,
		`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del', KEYS[1]) else return 0 end`,
		`redis.call("lpush", KEYS[1], ARGV[1]) return 1`,
		strings.Repeat(" ", maxText) + forms[CompareDelete].text,
	} {
		if got := Recognise(source); got != Unknown {
			t.Errorf("is taken for %v: %s", got, source)
		}
	}
}

// TestArguments: a form is called with its keys and at least its arguments.
func TestArguments(t *testing.T) {
	for _, c := range []struct {
		form       Form
		keys, args int
		want       bool
	}{
		{Release, 1, 1, true},
		{Release, 1, 3, true},
		{Release, 0, 1, false},
		{Release, 2, 1, false},
		{Release, 1, 0, false},
		{AcquireAll, 3, 2, true},
		{AcquireAll, 0, 2, false},
		{Unknown, 1, 1, false},
	} {
		if got := c.form.Takes(c.keys, c.args); got != c.want {
			t.Errorf("%v takes %d keys and %d arguments: %t", c.form, c.keys, c.args, got)
		}
	}
}

// FuzzOneToken changes one token of a script of a library: it is cut out, doubled, replaced by another or
// moved. The result is never recognised as what it was.
func FuzzOneToken(f *testing.F) {
	for i := range shipped {
		for how := range uint8(4) {
			f.Add(uint8(i), uint16(i*7), how, "ARGV")
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, at uint16, how uint8, other string) {
		s := shipped[int(which)%len(shipped)]
		tokens, ok := tokenise(text(t, s.file))
		if !ok {
			t.Fatalf("%s has no tokens", s.file)
		}
		i := int(at) % len(tokens)
		changed := append([]string{}, tokens[:i]...)
		switch how % 4 {
		case 0: // cut out
		case 1:
			changed = append(changed, tokens[i], tokens[i])
		case 2:
			changed = append(changed, other)
		case 3:
			changed = append(changed, tokens[(i+1)%len(tokens)])
		}
		changed = append(changed, tokens[i+1:]...)
		again, ok := tokenise(strings.Join(changed, " "))
		if ok && strings.Join(again, separator) == strings.Join(tokens, separator) {
			return // a comment, or a token in place of its like
		}
		if got := Recognise(strings.Join(changed, " ")); got == s.form && !sameNames(again, tokens) {
			t.Errorf("%s with token %d changed is still recognised: %s", s.file, i, strings.Join(changed, " "))
		}
	})
}

// sameNames reports whether two scripts differ in the name of one local alone, as where a loop has a
// variable that is not used.
func sameNames(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && (i == 0 || b[i-1] != "for" && b[i-1] != "local") {
			return false
		}
	}
	return true
}
