package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Tools that are not in go.mod, each at the version with which the repository passes.
const (
	gofumpt     = "mvdan.cc/gofumpt@v0.10.0"
	staticcheck = "honnef.co/go/tools/cmd/staticcheck@v0.7.0"
)

// packageLimit ends a package with a test that hangs. The largest package takes 5 minutes of two processors by itself,
// and some times as long on a busy machine.
const packageLimit = "-timeout=25m"

// groups are the names of several suites.
var groups = map[string][]string{
	"test": {"lint", "fresh", "unit", "examples"},
	"prove": {
		"crash", "race", "simulation", "fuzz", "postgres", "etcd", "redis", "firestore", "s3", "doors", "browser",
		"packages", "deploy", "cross",
	},
	"engines": {"postgres", "etcd", "redis", "firestore", "s3"},
}

// table lists all suites in the order in which they begin: what is quick and likely to fail comes first, then what is
// long, so that no long one runs alone at the end.
var table = []suite{
	{
		name: "fresh", about: "generated files against their sources", load: 1, long: true,
		jobs: programs(
			program("gen", "go", "run", "./internal/gen", "-check"),
			program("web/build", "go", "-C", "web/build", "run", ".", "-check"),
			program("deploy/gen", "go", "-C", "deploy", "run", "./gen", "-check"),
		),
	},
	{
		name: "lint", about: "format, vet, staticcheck", load: 1.5, long: true,
		jobs: programs(
			job{name: "gofumpt", argv: []string{"go", "run", gofumpt, "-l", "."}, silent: true},
			program("vet", "go", "vet", "./..."),
			program("staticcheck", "go", "run", staticcheck, "./..."),
		),
	},
	{
		// Four packages at a time: most of them wait, for a disk, a server or a clock.
		name: "unit", about: "all Go tests in their short form", load: 1.5,
		jobs: func() ([]job, error) {
			packages, err := unitPackages()
			return []job{{flags: shortly("-p=4", packageLimit), packages: packages}}, err
		},
	},
	{
		name: "examples", about: "the example programs and scripts", load: 0.7, long: true,
		jobs: tests(job{flags: []string{packageLimit}, packages: []string{"./examples/..."}}),
	},
	{
		name: "crash", about: "killed and stopped processes, failing disks, cut lines; CRASH_TIME (20s) a history",
		load: 1, long: true, search: true,
		jobs: tests(job{
			flags:    []string{"-count=1", "-timeout=" + setting("CRASH_LIMIT", "25m"), "-parallel=3"},
			packages: []string{"./internal/test/crashtest"}, args: []string{"-history=" + setting("CRASH_TIME", "20s")},
		}),
	},
	{
		name: "postgres",
		about: "the journal in PostgreSQL, FAILOVERS (4) fail-overs, faults for HISTORY_TIME (20s), " +
			"several servers for SHARES_TIME (2m)",
		load: 0.8, long: true,
		jobs: tests(
			job{flags: []string{"-count=1", packageLimit, "-race"}, packages: []string{"./journal/pgjournal"}},
			job{
				flags: []string{"-count=1", "-timeout=45m"}, packages: []string{"./internal/test/pgtest"},
				args: []string{
					"-failovers", setting("FAILOVERS", "4"), "-shares", setting("SHARES_TIME", "2m"),
					"-history", setting("HISTORY_TIME", "20s"),
				},
			},
		),
	},
	{
		name: "simulation", about: "what the short form leaves out: simulated worlds, long random runs, crash states",
		load: 1.9, long: true, search: true, scripts: []string{"scripts/typescript-tools.sh"},
		jobs: longTests,
	},
	{
		// The engine has no goroutines of its own, shards run it under the race detector, and the sandbox has few: the
		// second job adds their tests with more than one. Suite unit has run all of these tests without the detector.
		// The journals in PostgreSQL and Redis are run under it by suites of their own, and nowhere else again.
		name: "race", about: "tests of packages with goroutines under the race detector", load: 1.5,
		jobs: func() ([]job, error) {
			packages, err := listPackages(concurrent...)
			if err != nil {
				return nil, err
			}
			packages = slices.DeleteFunc(packages, isApart)
			return []job{
				{flags: []string{packageLimit, "-race", "-short"}, packages: packages, skip: sequential},
				{
					flags: []string{packageLimit, "-race", "-short"}, run: parallel,
					packages: []string{"./engine", "./workspace/sandbox"},
				},
			}, nil
		},
	},
	{
		name: "fuzz", about: "each fuzz target with FUZZ_TIME (5000x) inputs", load: 1.9, search: true,
		jobs: fuzzTargets,
	},
	{
		name:  "doors",
		about: "programs that read the OpenAPI document, suites of MCP and of locks over Redis, frameworks, Deno and Bun",
		load:  1, long: true,
		scripts: []string{
			"scripts/openapi-tools.sh", "scripts/door-tools.sh", "scripts/redis-tools.sh",
			"scripts/typescript-tools.sh doors", "scripts/python-tools.sh", "scripts/framework-tools.sh",
		},
		jobs: tests(
			program("otlptest/vet", "go", "-C", "internal/test/otlptest", "vet", "."),
			job{
				flags: []string{"-count=1", packageLimit, "-p", "1"},
				packages: []string{
					"./internal/test/openapitest", "./internal/test/doorstest", "./internal/test/frameworktest",
					"./internal/test/redistest", "./internal/test/typescriptdoors",
				},
			},
			job{folder: "internal/test/otlptest", flags: []string{"-count=1", packageLimit}, packages: []string{"."}},
		),
	},
	{
		name: "etcd", about: "the journal in etcd and FAILOVERS (4) fail-overs, with a real cluster", load: 1, timed: true,
		long: true,
		jobs: func() ([]job, error) {
			j := job{
				folder: "journal/etcdjournal/etcdtest", flags: []string{"-count=1", packageLimit}, packages: []string{"."},
				args: []string{"-failovers", setting("FAILOVERS", "4")},
			}
			if namespaces() {
				j.args = append(j.args, "-namespaces")
			} else {
				fmt.Println("etcd: no network namespaces can be made here: the cut is tested by proxies only")
				j.skip = "^TestCutByNamespace$"
			}
			return []job{j}, nil
		},
	},
	{
		name: "redis", about: "the journal in Redis and Valkey and fail-over, with real servers, replicas and a cluster",
		load: 1, timed: true, long: true, scripts: []string{"scripts/valkey.sh"},
		jobs: tests(
			job{flags: []string{"-count=1", packageLimit, "-race"}, packages: []string{"./journal/redisjournal"}},
			job{
				flags: []string{"-count=1", packageLimit, "-parallel=3"}, packages: []string{"./internal/test/valkeytest"},
				args: []string{"-failovers", "3", "-history", "8s", "-shares", "15s"},
			},
		),
	},
	{
		name: "firestore", about: "the journal in Firestore and fail-over, with Google's emulator",
		load: 1, timed: true, long: true,
		scripts: []string{"scripts/valkey.sh"},
		jobs: tests(job{
			flags: []string{"-count=1", packageLimit}, packages: []string{"./internal/test/firestoretest"},
			args: []string{"-failovers", "3", "-history", "10s"},
		}),
	},
	{
		name: "s3", about: "the journal in S3 and fail-over, with two implementations of S3",
		load: 1, timed: true, long: true,
		jobs: tests(job{
			folder: "journal/oncejournal/s3test", flags: []string{"-count=1", packageLimit}, packages: []string{"."},
			args: []string{"-failovers", "3", "-history", "10s"},
		}),
	},
	{
		name: "packages", about: "a release and the images built twice, their files, both packages installed (root)",
		load: 1.5, long: true, scripts: []string{"scripts/typescript-tools.sh", "scripts/python-tools.sh"},
		jobs: func() ([]job, error) {
			j := job{flags: []string{"-count=1", packageLimit}, packages: []string{"./internal/release"}}
			if exec.Command("unshare", "--mount", "--net", "true").Run() == nil {
				j.args = []string{"-install"}
			} else {
				fmt.Println("packages: not root, so the package is not installed and no image is built")
				j.skip = "^Test(Install|Image)$"
			}
			return []job{j}, nil
		},
	},
	{
		name: "browser", about: "the dashboard in Chromium", load: 1.2, long: true,
		jobs: tests(
			program("browsertest/vet", "go", "-C", "web/browsertest", "vet", "."),
			job{
				folder: "web/browsertest", flags: []string{"-count=1", packageLimit, "-parallel", "3"},
				packages: []string{"."},
			},
		),
	},
	{
		name: "deploy", about: "the Helm chart and the manifests, and a rollout of real servers", load: 1, long: true,
		jobs: tests(
			program("deploy/vet", "go", "-C", "deploy", "vet", "./..."),
			job{folder: "deploy", flags: []string{"-count=1", packageLimit}, packages: []string{"./..."}},
		),
	},
	{
		name: "cross", about: "vet for macOS, Windows and Linux on ARM, and of bench/peers; build for Windows",
		load: 1.9, long: true,
		jobs: programs(
			program("bench/peers", "go", "-C", "bench/peers", "vet", "./..."),
			program("darwin/arm64", "env", "GOOS=darwin", "GOARCH=arm64", "go", "vet", "./..."),
			program("linux/arm64", "env", "GOOS=linux", "GOARCH=arm64", "go", "vet", "./..."),
			program("windows/vet", "env", "GOOS=windows", "GOARCH=amd64", "go", "vet", "./..."),
			program("windows/amd64", append([]string{"env", "GOOS=windows", "GOARCH=amd64", "go", "build"}, portable...)...),
		),
	},
}

// apart lists the packages that are suites of their own, so that suite unit does not test them.
var apart = []string{
	"./examples/...", "./internal/release", "./internal/test/crashtest", "./internal/test/doorstest",
	"./internal/test/firestoretest", "./internal/test/frameworktest", "./internal/test/openapitest",
	"./internal/test/pgtest",
	"./internal/test/redistest", "./internal/test/typescriptdoors", "./internal/test/valkeytest", "./journal/pgjournal",
	"./journal/redisjournal",
}

// longest lists the packages that take longest in suites unit and simulation, so that none of them runs alone at the
// end.
var longest = []string{
	"cmd/interlock", "internal/test/pythontest", "internal/test/scenariotest", "internal/test/typescripttest",
	"internal/test/securitytest", "internal/test/checkouttest", "internal/test/suite", "internal/demo", "engine",
	"internal/bench", "merge/merger", "workspace", "internal/test/boundarytest",
}

// concurrent lists the packages with goroutines.
var concurrent = []string{
	"./guard/...", "./resp/...", "./cluster/...", "./shard/...", "./client/...", "./server/...", "./journal/...",
	"./webhook/...", "./mcp/...", "./hook/...", "./internal/agent/...", "./internal/hookclient/...", "./internal/api/...",
	"./internal/endpoint/...",
}

// sequential matches the long tests of concurrent packages that do the same many times in one goroutine: they open
// the journal after each crash and with each damaged byte. The race detector finds nothing more in them than in one.
const sequential = "^(TestFlip.*|TestForgeEveryByte|TestCrashEverywhere|TestCrashInRecovery)$"

// parallel matches the tests with several goroutines in packages whose other tests have one.
const parallel = "Picture|Forward|Signal"

// unseen lists packages in which the race detector sees nothing but what matches parallel: the engine starts no
// goroutine, and the programs of other languages are other processes.
var unseen = []string{"engine", "internal/test/pythontest", "internal/test/typescripttest"}

// portable lists what is built for Windows, where no journal directory can be owned.
var portable = []string{
	".", "./client", "./cmd/interlock/...", "./cmd/interlock-hook", "./guard/...", "./journal/...", "./proto", "./server",
	"./shard", "./writer/...",
}

func program(name string, argv ...string) job { return job{name: name, argv: argv} }

func programs(jobs ...job) func() ([]job, error) { return tests(jobs...) }

func tests(jobs ...job) func() ([]job, error) { return func() ([]job, error) { return jobs, nil } }

// longForm asks for the long form of tests that have a short one: SHORT= of a call of make.
func longForm() bool { v, set := os.LookupEnv("SHORT"); return set && v == "" }

// shortly returns flags with -short, unless the long form is asked for.
func shortly(flags ...string) []string {
	if longForm() {
		return flags
	}
	return append(flags, "-short")
}

// namespaces reports whether this process can make network namespaces.
func namespaces() bool {
	name := fmt.Sprintf("interlock-try-%d", os.Getpid())
	if exec.Command("ip", "netns", "add", name).Run() != nil {
		return false
	}
	return exec.Command("ip", "netns", "del", name).Run() == nil
}

// listPackages returns the import paths of packages of the module.
func listPackages(patterns ...string) ([]string, error) {
	args := []string{"list"}
	for _, p := range patterns {
		args = append(args, module+strings.TrimPrefix(p, "."))
	}
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return strings.Fields(string(out)), nil
}

// isApart reports whether a package is a suite of its own.
func isApart(path string) bool {
	return slices.ContainsFunc(apart, func(p string) bool {
		p = strings.TrimPrefix(p, "./")
		folder, all := strings.CutSuffix(p, "/...")
		return short(path) == p || all && (short(path) == folder || strings.HasPrefix(short(path), folder+"/"))
	})
}

// unitPackages returns the packages that are no suite of their own, in the order in which they begin.
func unitPackages() ([]string, error) {
	packages, err := listPackages("./...")
	packages = slices.DeleteFunc(packages, isApart)
	longestFirst(packages)
	return packages, err
}

// longestFirst moves the packages that take longest to the front.
func longestFirst(packages []string) {
	rank := func(path string) int {
		if i := slices.Index(longest, strings.TrimPrefix(short(path), "./")); i >= 0 {
			return i
		}
		return len(longest)
	}
	slices.SortStableFunc(packages, func(a, b string) int { return rank(a) - rank(b) })
}
