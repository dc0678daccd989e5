package seeded

import (
	"bufio"
	"bytes"
	"slices"
	"strings"
)

// finder is a check of the repository that may find mistakes: the tests of a package that
// a pattern names, or the command that runs simulated worlds.
type finder struct {
	name    string
	folder  string   // of the package
	command bool     // it is a command; else its tests are meant
	args    []string // of the built binary
}

// finders are general: each states an invariant of many runs. The suites of packages come last,
// for mistakes that the others cannot see. Each suite has a limit that is far above its usual
// duration. One that exceeds its limit has found nothing: a test that waits in vain must fail
// by itself and name the awaited event.
var finders = []finder{
	{name: "worlds", folder: "cmd/interlock-sim", command: true, args: []string{"-seeds", "1..1000000", "-first"}},
	{
		name: "model", folder: "engine",
		args: []string{"-test.run=^TestModel$", "-runs=1000000", "-shrink=false", "-test.timeout=0"},
	},
	{name: "sweep", folder: "engine", args: []string{"-test.run=^TestShorterTTLDuringSweep$"}},
	{name: "move", folder: "engine", args: []string{"-test.run=^(TestClosedNamespace|TestFenceAboveBoth|TestMoveOrder)$"}},
	{name: "task-model", folder: "engine", args: []string{"-test.run=^(TestRandomTasks|TestRandomRuns)$"}},
	{
		name: "crashes", folder: "journal/filejournal",
		args: []string{"-test.run=^(TestCrash|TestKill|TestEverySync|TestFailed)"},
	},
	{
		name: "damage", folder: "journal/filejournal",
		args: []string{"-test.run=^(TestFlip|TestDamaged|TestSpliced|TestForged|TestSpoiled|TestNewer)"},
	},
	{
		name: "space", folder: "journal/filejournal",
		args: []string{"-test.run=^(TestSpace|TestOpenOnFullDisk|TestPreparing)", "-test.timeout=20s"},
	},
	{name: "copies", folder: "journal/filejournal", args: []string{"-test.run=^TestCopied$"}},
	{name: "scripts", folder: "engine", args: []string{"-test.run=^TestScripts$"}},
	{name: "shard", folder: "shard", args: suite()},
	{name: "client", folder: "client", args: suite()},
	// which is the slowest, and about words
	{name: "server", folder: "server", args: suite("-test.skip=^TestOpenAPI$")},
	// which wait for limits
	{
		name: "security", folder: "internal/test/securitytest",
		args: suite("-test.run=^TestCases$", "-test.skip=^TestCases$/^(56|79)_"),
	},
	{name: "neighbours", folder: "internal/test/securitytest", args: suite("-test.run=^TestNeighbours$")},
	{name: "rights", folder: "internal/test/securitytest", args: suite("-test.run=^TestRoles$")},
	{name: "reserved", folder: "internal/test/securitytest", args: suite("-test.run=^TestReserved$")},
	{
		name: "links", folder: "internal/test/securitytest",
		args: suite("-test.run=^(TestRightsOfLinks|TestThingsOfPrincipals)$"),
	},
	{name: "proto", folder: "proto", args: suite()},
	{name: "lua", folder: "resp/script", args: suite()},
	{name: "redis-port", folder: "resp", args: suite("-test.skip=^TestProgramsAtRedis$")},
	{name: "redis-programs", folder: "resp", args: suite("-test.run=^TestProgramsAtRedis$")}, // beside a real Redis
	{name: "placement", folder: "placement", args: suite()},
	{name: "cluster", folder: "cluster", args: suite()},
	{name: "train", folder: "merge/train", args: suite()},
	{name: "sequence", folder: "merge/sequence", args: suite()},
	{name: "merge", folder: "merge", args: suite()},
	{name: "merger", folder: "merge/merger", args: suite("-test.skip=^(TestKilledMerger|TestInjectedFaults)$")},
	{
		name: "merger-requests", folder: "merge/merger",
		args: suite("-test.run=^(TestRequest|TestStoppedMergerCannotRequest)"),
	},
	{name: "forge", folder: "merge/forge", args: suite()},
	{name: "merger-faults", folder: "merge/merger", args: suite("-test.run=^TestInjectedFaults$")},
	{name: "merger-sign", folder: "merge/merger", args: suite("-test.run=^(TestSigning|TestForgeDemands)")},
	{
		name: "merger-line", folder: "merge/merger",
		args: suite("-test.run=^(TestStack|TestBase|TestFreeze|TestPriority|TestSupersede)"),
	},
	{
		name: "boundary", folder: "internal/test/boundarytest",
		args: []string{"-test.run=^TestWorlds$", "-test.failfast", "-test.timeout=0"},
	},
	{name: "workspace", folder: "workspace", args: suite()},
	{
		name: "sandbox", folder: "workspace/sandbox",
		args: suite("-test.run=^(TestOwnTree|TestHidden|TestPaths|TestOutsideProcess)$"),
	},
	// A real shell, in a checkout that agents of six harnesses share.
	{name: "checkout", folder: "internal/test/checkouttest", args: suite("-test.run=^TestSharedCheckout$", "-seeds=14")},
	{name: "commands", folder: "hook/shell", args: suite("-test.run=^TestCommands$")},
	{name: "hook", folder: "hook", args: suite("-test.skip=^TestLimitsPage$")},
	{name: "region", folder: "hook/region", args: suite()},
	{name: "place", folder: "hook/place", args: suite()},
	{name: "mcp", folder: "mcp", args: suite("-test.skip=^TestLimitsPage$")},
	{name: "mcp-process", folder: "cmd/interlock", args: suite("-test.run=^TestMCP")},
	{name: "remote", folder: "journal/remote", args: suite()},
	{
		name: "etcd", folder: "journal/etcdjournal/etcdtest",
		args: suite("-test.run=^(TestConformance|TestOpenTogether|TestDamage)$"),
	},
	{
		name: "etcd-faults", folder: "journal/etcdjournal/etcdtest",
		args: suite("-test.run=^(TestBarrierWithoutMajority|TestCompaction)$"),
	},
	{
		name: "pgjournal", folder: "journal/pgjournal",
		args: suite(
			"-test.run=^(TestConformance|TestUnsafeServer|TestLostTail|TestLostEntries|TestPromotedWithoutOwner|" +
				"TestLostTakeover|TestSynchronousStandby|TestCommittedLocally)$",
		),
	},
	{name: "oncejournal", folder: "journal/oncejournal", args: suite()},
	{name: "s3", folder: "journal/oncejournal/s3test", args: suite("-test.run=^(TestReplaced|TestUnsafeStore)$")},
	{
		name: "firestore", folder: "internal/test/firestoretest",
		args: suite("-test.run=^(TestReplaced|TestConformance)$/^AppendLargest$"),
	},
	{
		name: "redisjournal", folder: "journal/redisjournal",
		args: suite(
			"-test.run=^(TestConformance|TestUnsafeServer|TestLostTail|TestLostEpoch|TestPromotedWithoutOwner|" +
				"TestReplicaHasIt|TestReplicaHasSynced|TestFewerReplicas)$",
		),
	},
	{name: "fences", folder: "guard", args: suite()}, // of Redis, SQLite and PostgreSQL, as an agent uses them
	{name: "postgres", folder: "guard/postgres", args: suite("-test.run=^(TestScripts|TestInstall)$")},
	{name: "sqlite", folder: "guard/sqlite", args: suite()},
	{name: "git", folder: "guard/git", args: suite()},
	{name: "files", folder: "guard/file", args: suite()},
	{name: "signed", folder: "guard/signed", args: suite()},
	{name: "proxy", folder: "guard/proxy", args: suite()},
	{name: "questions", folder: "guard/apiclient", args: suite()},
	{name: "python-worlds", folder: "internal/test/pythontest", args: []string{"-test.run=^TestWorlds$"}},
	{name: "typescript-worlds", folder: "internal/test/typescripttest", args: []string{"-test.run=^TestWorlds$"}},
}

// suite has the short tests of a package run until one fails.
func suite(more ...string) []string {
	return append([]string{"-test.short", "-test.failfast", "-test.timeout=50s"}, more...)
}

func finderNamed(name string) *finder {
	i := slices.IndexFunc(finders, func(f finder) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return &finders[i]
}

// Finders names those that some mistakes need, in the order in which there are finders.
func Finders(bugs []Bug) (names []string) {
	for _, f := range finders {
		if slices.ContainsFunc(bugs, func(b Bug) bool { return slices.Contains(b.Finders, f.name) }) {
			names = append(names, f.name)
		}
	}
	return names
}

// target is the source of one binary: several finders may share it.
type target struct {
	folder  string
	command bool
}

func (f *finder) target() target { return target{f.folder, f.command} }

// build returns the arguments of the go command that build it, in its folder: some tests are a
// module of their own.
func (t target) build(overlay, out string) []string {
	args := []string{"test", "-c"}
	if t.command {
		args = []string{"build"}
	}
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	return append(args, "-o="+out, ".")
}

// timedOut reports whether a test was ended by its limit.
func timedOut(output []byte) bool {
	return bytes.Contains(output, []byte("panic: test timed out after "))
}

// evidence returns the line of a finder's output that describes best what is wrong.
func evidence(output []byte) (line string) {
	s := bufio.NewScanner(bytes.NewReader(output))
	s.Buffer(nil, 1<<20)
	var panicked, last string
	for s.Scan() {
		text := strings.TrimSpace(s.Text())
		switch {
		case strings.HasPrefix(text, "seed "), strings.Contains(text, "_test.go:"):
			if line == "" {
				line = text
			}
		case strings.HasPrefix(text, "panic:"):
			if panicked == "" {
				panicked = text
			}
		case text != "" && text != "FAIL":
			last = text
		}
	}
	switch {
	case line != "":
	case panicked != "":
		line = panicked
	default:
		line = last
	}
	const most = 240
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + " ..."
	}
	return line
}
