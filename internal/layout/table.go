package layout

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Module is the path of this module.
const Module = "github.com/interlockdev/interlock"

// rule lists the imports beyond the standard library that are allowed to the packages at and
// below a folder. Test files are free.
type rule struct {
	folder string
	// local lists folders of this module. A folder includes what is below it, and
	// "." is the root package alone. A package may always import what is in its
	// own rule's folder.
	local []string
	// remote lists prefixes of other modules' packages.
	remote []string
	// tests means that only test files, and packages of other rules with tests set, may import
	// these packages.
	tests bool
}

// table is the import table of docs/architecture.md. The rule with the longest
// folder that fits counts, and a package that no rule fits is an error: the
// author of a folder decides here what it may see.
//
//	cmd ─► server ─► shard ─► engine ──► root
//	  │       │         └───► journal ─►  ▲
//	  │       └──► proto ─────────────────┤
//	  └─► client ──► proto ───────────────┘
var table = []rule{
	{folder: "."},
	{folder: "engine", local: []string{"."}},
	{folder: "engine/internal/collection"},
	{
		folder: "engine/internal/keypath", local: []string{".", "engine/message", "internal/invisible"},
		remote: []string{"golang.org/x/text/unicode/norm"},
	},
	{folder: "engine/internal/lockmode", local: []string{"."}},
	{
		folder: "engine/internal/store",
		local: []string{
			".", "engine/internal/collection", "engine/internal/keypath", "engine/internal/lockmode", "engine/message",
			"engine/record",
		},
	},
	{folder: "engine/message", local: []string{"."}},
	{folder: "engine/record", local: []string{".", "engine/message"}},
	{
		folder: "journal", local: []string{".", "internal/filelock"},
		remote: []string{"golang.org/x/sys/unix", "golang.org/x/sys/windows"},
	},
	{
		folder: "journal/etcdjournal", local: []string{".", "journal", "journal/remote"},
		remote: []string{"go.etcd.io/etcd/api/v3", "go.etcd.io/etcd/client/v3", "go.uber.org/zap", "google.golang.org/grpc"},
	},
	{
		folder: "journal/pgjournal", local: []string{".", "journal", "journal/remote"},
		remote: []string{"github.com/jackc/pgx/v5/pgconn"},
	},
	{folder: "journal/oncejournal", local: []string{".", "journal", "journal/remote"}},
	{folder: "journal/redisjournal", local: []string{".", "journal", "journal/remote"}},
	{folder: "journal/remote", local: []string{".", "journal"}},
	{folder: "placement", local: []string{"."}},
	{folder: "shard", local: []string{".", "engine", "journal"}, remote: []string{"golang.org/x/sys/unix"}},
	{
		folder: "sim",
		local: []string{
			".", "engine", "journal", "journal/remote", "placement", "shard", "internal/prose", "internal/simdisk",
			"internal/simengine",
		},
	},
	{
		folder: "workspace", local: []string{"internal/filelock", "internal/git", "internal/lfs", "workspace/sandbox"},
		remote: []string{"golang.org/x/sys/unix"},
	},
	{folder: "web"},
	{folder: "web/build", remote: []string{"github.com/evanw/esbuild"}},
	{folder: "web/browsertest", tests: true},
	{folder: "webhook", local: []string{".", "engine", "shard", "internal/invisible", "internal/prose"}},
	{folder: "sim/seeded"},
	{folder: "proto", local: []string{"."}, remote: []string{"google.golang.org/grpc"}},
	{
		folder: "server",
		local: []string{
			".", "engine", "shard", "proto", "guard/file", "guard/signed", "internal/action", "internal/invisible",
			"internal/advice", "internal/incident", "internal/loopback", "internal/packet", "internal/problem",
			"internal/prose", "internal/report", "internal/timeline", "internal/traceparent", "webhook",
		},
		remote: []string{
			"google.golang.org/grpc", "github.com/prometheus/client_golang", "github.com/prometheus/client_model",
		},
	},
	{
		folder: "client", local: []string{".", "internal/endpoint", "internal/filelock", "proto"},
		remote: []string{"google.golang.org/grpc", "golang.org/x/sys/unix"},
	},
	{folder: "cluster", local: []string{".", "journal/remote", "placement"}},
	{folder: "cmd", local: []string{"sim"}},
	{folder: "cmd/interlock-hook", local: []string{"internal/home", "internal/hookclient"}},
	{
		folder: "cmd/interlock", local: []string{"workspace/sandbox"},
		remote: []string{"github.com/spf13/cobra", "github.com/spf13/pflag"},
	},
	{
		folder: "cmd/interlock/internal/account",
		local: []string{
			".", "client", "cmd/interlock/internal/cli", "cmd/interlock/internal/feed", "cmd/interlock/internal/link",
			"cmd/interlock/internal/view", "internal/api", "internal/filelock", "writer/account",
		},
		remote: []string{"github.com/spf13/cobra"},
	},
	{
		folder: "cmd/interlock/internal/acquire",
		local: []string{
			".", "cmd/interlock/internal/cli", "cmd/interlock/internal/link", "cmd/interlock/internal/view",
			"internal/api", "internal/prose",
		},
		remote: []string{"github.com/spf13/cobra", "golang.org/x/term"},
	},
	{
		folder: "cmd/interlock/internal/approval",
		local:  []string{".", "cmd/interlock/internal/cli", "cmd/interlock/internal/view", "internal/api"},
		remote: []string{"github.com/spf13/cobra"},
	},
	{
		folder: "cmd/interlock/internal/cli",
		local: []string{
			".", "client", "engine/record", "internal/api", "internal/endpoint", "internal/home", "internal/invisible",
			"internal/prose", "journal",
		},
		remote: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/sys/unix", "golang.org/x/term"},
	},
	{
		folder: "cmd/interlock/internal/contexts",
		local:  []string{"cmd/interlock/internal/cli"},
		remote: []string{"github.com/spf13/cobra"},
	},
	{
		folder: "cmd/interlock/internal/credential",
		local:  []string{".", "cmd/interlock/internal/cli", "server"},
		remote: []string{"github.com/spf13/cobra"},
	},
	{
		folder: "cmd/interlock/internal/datadir",
		local:  []string{".", "cmd/interlock/internal/cli", "engine/record", "journal", "placement", "shard"},
	},
	{
		folder: "cmd/interlock/internal/effect",
		local: []string{
			".", "client", "cmd/interlock/internal/cli", "cmd/interlock/internal/confine", "cmd/interlock/internal/job",
			"cmd/interlock/internal/link", "cmd/interlock/internal/view", "internal/api",
		},
		remote: []string{"github.com/spf13/cobra"},
	},
	{
		folder: "cmd/interlock/internal/feed",
		local:  []string{".", "client", "cmd/interlock/internal/cli", "cmd/interlock/internal/view", "internal/api"},
	},
	{
		folder: "cmd/interlock/internal/archive",
		local:  []string{"cmd/interlock/internal/cli", "journal/filejournal", "server", "shard"},
	},
	{
		folder: "cmd/interlock/internal/report",
		local: []string{
			".", "cmd/interlock/internal/archive", "cmd/interlock/internal/cli", "cmd/interlock/internal/view",
			"internal/api",
		},
		remote: []string{"github.com/spf13/cobra"},
	},
	{
		folder: "cmd/interlock/internal/past",
		local:  []string{"cmd/interlock/internal/archive", "cmd/interlock/internal/cli", "internal/api"},
		remote: []string{"github.com/spf13/cobra"},
	},
	{
		folder: "cmd/interlock/internal/file",
		local:  []string{".", "cmd/interlock/internal/cli", "guard/file", "internal/api"},
		remote: []string{"github.com/spf13/cobra"},
	},
	{
		folder: "cmd/interlock/internal/guard",
		local:  []string{".", "cmd/interlock/internal/cli", "guard", "internal/filelock", "server"},
		remote: []string{"github.com/jackc/pgx/v5/pgconn", "github.com/spf13/cobra"},
	},
	{
		folder: "cmd/interlock/internal/hooks",
		local: []string{
			".", "cmd/interlock/internal/cli", "cmd/interlock/internal/settings", "hook/place", "internal/home",
			"internal/hookclient", "internal/loopback",
		},
		remote: []string{"github.com/spf13/cobra"},
	},
	{
		folder: "cmd/interlock/internal/inspect",
		local: []string{
			".", "cmd/interlock/internal/archive", "cmd/interlock/internal/cli", "cmd/interlock/internal/feed",
			"cmd/interlock/internal/merge", "cmd/interlock/internal/view", "internal/api",
		},
		remote: []string{"github.com/spf13/cobra"},
	},
	{
		folder: "cmd/interlock/internal/job",
		local:  []string{".", "cmd/interlock/internal/cli"},
		remote: []string{"golang.org/x/sys/unix", "golang.org/x/sys/windows", "golang.org/x/term"},
	},
	{
		folder: "cmd/interlock/internal/journal",
		local: []string{
			".", "cluster", "cmd/interlock/internal/cli", "cmd/interlock/internal/datadir",
			"cmd/interlock/internal/view", "placement",
			"engine", "internal/api", "journal", "shard",
		},
		remote: []string{"github.com/spf13/cobra", "golang.org/x/term"},
	},
	{
		folder: "cmd/interlock/internal/lease",
		local: []string{
			".", "cmd/interlock/internal/acquire", "cmd/interlock/internal/cli", "cmd/interlock/internal/link",
			"cmd/interlock/internal/view", "guard/signed", "internal/api",
		},
		remote: []string{"github.com/spf13/cobra", "golang.org/x/term"},
	},
	{
		folder: "cmd/interlock/internal/link",
		local:  []string{".", "client", "cmd/interlock/internal/cli", "internal/api"},
		remote: []string{"github.com/spf13/pflag"},
	},
	{
		folder: "cmd/interlock/internal/mcp",
		local: []string{
			".", "cmd/interlock/internal/cli", "cmd/interlock/internal/link", "cmd/interlock/internal/serve",
			"internal/agent", "internal/api", "internal/filelock", "mcp",
		},
		remote: []string{"github.com/spf13/cobra", "golang.org/x/sys/unix", "golang.org/x/sys/windows"},
	},
	{
		folder: "cmd/interlock/internal/merge",
		local: []string{
			".", "client", "cmd/interlock/internal/cli", "cmd/interlock/internal/confine", "cmd/interlock/internal/job",
			"cmd/interlock/internal/link", "cmd/interlock/internal/view", "internal/api", "internal/git", "internal/scratch",
			"hook", "merge", "workspace/sandbox",
		},
		remote: []string{"github.com/spf13/cobra"},
	},
	{
		folder: "cmd/interlock/internal/message",
		local: []string{
			".", "cmd/interlock/internal/cli", "cmd/interlock/internal/task", "cmd/interlock/internal/view",
			"internal/api",
		},
		remote: []string{"github.com/spf13/cobra"},
	},
	{
		folder: "cmd/interlock/internal/namespace",
		local:  []string{"cmd/interlock/internal/cli", "cmd/interlock/internal/view", "internal/api"},
		remote: []string{"github.com/spf13/cobra", "github.com/spf13/pflag"},
	},
	{
		folder: "cmd/interlock/internal/pattern",
		local:  []string{".", "cmd/interlock/internal/cli", "cmd/interlock/internal/view", "internal/api"},
		remote: []string{"github.com/spf13/cobra", "github.com/spf13/pflag"},
	},
	{
		folder: "cmd/interlock/internal/queue",
		local:  []string{".", "cmd/interlock/internal/cli", "cmd/interlock/internal/view", "internal/api"},
		remote: []string{"github.com/spf13/cobra", "github.com/spf13/pflag"},
	},
	{
		folder: "cmd/interlock/internal/run",
		local: []string{
			".", "cmd/interlock/internal/acquire", "cmd/interlock/internal/cli", "cmd/interlock/internal/job",
			"cmd/interlock/internal/link", "cmd/interlock/internal/view", "client", "internal/api", "internal/prose",
			"workspace/sandbox",
		},
		remote: []string{"github.com/spf13/cobra"},
	},
	{
		folder: "cmd/interlock/internal/serve",
		local: []string{
			".", "cluster", "cmd/interlock/internal/cli", "cmd/interlock/internal/datadir", "engine/record", "guard/file",
			"guard/signed", "hook", "internal/otlp", "journal", "mcp", "placement", "resp", "server", "shard", "web",
		},
		remote: []string{"github.com/spf13/cobra", "golang.org/x/sys/unix"},
	},
	{
		folder: "cmd/interlock/internal/settings",
		local:  []string{"cmd/interlock/internal/cli", "internal/home"},
		remote: []string{"github.com/aymanbagabas/go-udiff", "github.com/tailscale/hujson"},
	},
	{
		folder: "cmd/interlock/internal/state",
		local: []string{
			".", "cmd/interlock/internal/cli", "cmd/interlock/internal/feed", "cmd/interlock/internal/view",
			"internal/api",
		},
		remote: []string{"github.com/spf13/cobra", "github.com/spf13/pflag"},
	},
	{
		folder: "cmd/interlock/internal/task",
		local: []string{
			".", "cmd/interlock/internal/acquire", "cmd/interlock/internal/cli", "cmd/interlock/internal/job",
			"cmd/interlock/internal/link", "cmd/interlock/internal/view", "client", "internal/api",
		},
		remote: []string{"github.com/spf13/cobra", "github.com/spf13/pflag"},
	},
	{
		folder: "cmd/interlock/internal/webhook",
		local:  []string{".", "cmd/interlock/internal/cli", "internal/api"},
		remote: []string{"github.com/spf13/cobra"},
	},
	{
		folder: "cmd/interlock/internal/try",
		local: []string{
			"cmd/interlock/internal/cli", "cmd/interlock/internal/datadir", "internal/api", "internal/bench", "internal/demo",
		},
		remote: []string{"github.com/spf13/cobra", "golang.org/x/term"},
	},
	{
		folder: "cmd/interlock/internal/top",
		local: []string{
			".", "client", "cmd/interlock/internal/cli", "cmd/interlock/internal/feed", "cmd/interlock/internal/view",
			"internal/api", "internal/invisible",
		},
		remote: []string{"github.com/spf13/cobra", "golang.org/x/term", "golang.org/x/text/width"},
	},
	{
		folder: "cmd/interlock/internal/trace",
		local: []string{
			"cmd/interlock/internal/archive", "cmd/interlock/internal/cli", "internal/api", "internal/otlp",
			"internal/spans",
		},
		remote: []string{"github.com/spf13/cobra"},
	},
	{
		folder: "cmd/interlock/internal/view",
		local:  []string{".", "cmd/interlock/internal/cli", "engine/record", "internal/api", "internal/prose"},
		remote: []string{"github.com/spf13/cobra"},
	},
	{folder: "workspace/database", remote: []string{"github.com/jackc/pgx/v5/pgconn"}},
	{folder: "workspace/sandbox", remote: []string{"golang.org/x/sys/unix"}},
	{
		folder: "cmd/interlock/internal/confine",
		local:  []string{"cmd/interlock/internal/cli", "workspace/sandbox"},
		remote: []string{"github.com/spf13/cobra"},
	},
	{
		folder: "cmd/interlock/internal/workspace",
		local: []string{
			".", "client", "cmd/interlock/internal/acquire", "cmd/interlock/internal/cli",
			"cmd/interlock/internal/confine", "cmd/interlock/internal/link",
			"cmd/interlock/internal/run", "cmd/interlock/internal/settings", "hook/place", "internal/api", "internal/loopback",
			"merge", "workspace", "workspace/database", "workspace/sandbox",
		},
		remote: []string{"github.com/spf13/cobra"},
	},
	{folder: "guard"},
	{folder: "guard/postgres"},
	{folder: "guard/sqlite"},
	{folder: "guard/redis"},
	{folder: "guard/apiclient", local: []string{".", "guard/signed", "internal/api"}},
	{folder: "guard/apiclient/apitest", local: []string{"journal", "server", "shard"}},
	{
		folder: "guard/file", local: []string{".", "internal/filelock", "internal/invisible", "internal/packet"},
	},
	{folder: "guard/git", local: []string{".", "guard/apiclient", "internal/jsonname"}},
	{folder: "guard/signed", local: []string{".", "internal/jsonname"}},
	{folder: "guard/proxy", local: []string{".", "guard/apiclient", "guard/signed", "internal/jsonname"}},
	{
		folder: "hook",
		local: []string{
			".", "internal/agent", "internal/api", "internal/hookclient", "internal/invisible", "internal/jsonname",
			"internal/prose", "internal/problem",
		},
		remote: []string{"golang.org/x/text/unicode/norm"},
	},
	{folder: "hook/place", local: []string{"hook/region"}, remote: []string{"golang.org/x/text/unicode/norm"}},
	{folder: "hook/region"},
	{folder: "hook/shell", remote: []string{"mvdan.cc/sh/v3/syntax"}},
	{
		folder: "mcp", local: []string{".", "internal/agent", "internal/api", "internal/invisible"},
		remote: []string{"github.com/modelcontextprotocol/go-sdk"},
	},
	{
		folder: "merge/merger", local: []string{".", "client", "internal/git", "merge", "merge/forge"},
		remote: []string{"golang.org/x/text/cases", "golang.org/x/text/unicode/norm"},
	},
	{folder: "merge/forge", local: []string{"internal/git", "internal/loopback"}},
	{folder: "merge/sequence"},
	{folder: "merge/train"},
	{folder: "resp", local: []string{".", "engine", "internal/invisible", "server"}},
	{folder: "writer", local: []string{".", "client", "internal/jsonname"}},
	{
		folder: "merge",
		local:  []string{"internal/filelock", "internal/git", "internal/lfs", "internal/scratch", "merge/sequence"},
	},
	{folder: "examples", local: []string{".", "engine", "journal", "shard", "server", "client", "guard/signed", "writer"}},

	{folder: "bench/clients", local: []string{"internal/bench", "internal/launch"}},
	{
		folder: "bench/peers", local: []string{"internal/bench", "internal/launch"},
		remote: []string{
			"github.com/bsm/redislock", "github.com/go-redsync/redsync/v4", "github.com/jackc/pgx/v5",
			"github.com/redis/go-redis/v9",
			"github.com/redis/rueidis", "go.etcd.io/etcd/client/v3", "go.etcd.io/etcd/server/v3", "go.uber.org/zap",
		},
	},

	{folder: "deploy"},

	{folder: "internal/api", local: []string{".", "internal/endpoint"}},
	{folder: "internal/advice", local: []string{".", "engine/record", "internal/histogram", "internal/prose"}},
	{folder: "internal/agent", local: []string{".", "internal/api", "internal/endpoint"}},
	{folder: "internal/action", local: []string{"."}, remote: []string{"github.com/gowebpki/jcs"}},
	{
		folder: "internal/bench",
		local: []string{
			".", "client", "engine", "internal/git", "internal/launch", "internal/prose", "internal/trace", "merge", "proto",
		},
	},
	{
		folder: "internal/demo",
		local: []string{
			".", "client", "guard/file", "internal/filelock", "internal/launch", "internal/trace", "writer",
		},
		remote: []string{"golang.org/x/sys/unix"},
	},
	{folder: "internal/endpoint"},
	{folder: "internal/filelock", remote: []string{"golang.org/x/sys/unix", "golang.org/x/sys/windows"}},
	{
		folder: "internal/gen", local: []string{".", "internal/problem"},
		remote: []string{"github.com/bufbuild/protocompile", "google.golang.org/protobuf"},
	},
	{folder: "internal/git"},
	{folder: "internal/lfs", local: []string{"internal/git"}},
	{folder: "internal/histogram"},
	{folder: "internal/home"},
	{folder: "internal/hookclient", local: []string{"hook/place", "hook/region", "internal/invisible"}},
	{folder: "internal/incident", local: []string{".", "engine/record", "internal/prose"}},
	{folder: "internal/invisible"},
	{folder: "internal/jsonname"},
	{folder: "internal/launch"},
	{folder: "internal/loopback"},
	{folder: "internal/layout"},
	{
		folder: "internal/packet", local: []string{".", "internal/invisible"},
		remote: []string{"github.com/aymanbagabas/go-udiff"},
	},
	{folder: "internal/problem", local: []string{"."}},
	{folder: "internal/prose", local: []string{".", "engine", "internal/invisible", "internal/problem"}},
	{
		folder: "internal/otlp", local: []string{"internal/invisible"},
		remote: []string{
			"github.com/prometheus/client_golang/prometheus", "github.com/prometheus/client_model/go",
			"go.opentelemetry.io/proto/slim/otlp", "google.golang.org/protobuf",
		},
	},
	{folder: "internal/release", remote: []string{"golang.org/x/crypto/x509roots/fallback/bundle"}},
	{folder: "internal/scratch", local: []string{"internal/filelock"}},
	{folder: "internal/simdisk", local: []string{"journal/filejournal/device"}},
	{folder: "internal/simengine", local: []string{".", "journal"}},
	{folder: "internal/test", local: []string{"internal/launch"}, tests: true},
	{folder: "internal/test/apitest", local: []string{"journal", "server", "shard"}, tests: true},
	{
		folder: "internal/test/clientworld", local: []string{"internal/test", "journal/memjournal", "server", "shard"},
		tests: true,
	},
	{folder: "internal/test/crashtest", local: []string{"."}, tests: true},
	{folder: "internal/test/lockscript", local: []string{"resp/script"}, tests: true},
	{folder: "internal/test/depstest", local: []string{"internal/test"}, tests: true},
	{folder: "internal/test/exampletest", local: []string{"journal", "server", "shard"}, tests: true},
	{
		folder: "internal/report",
		local: []string{
			".", "engine/record", "internal/advice", "internal/histogram", "internal/incident", "internal/prose",
		},
	},
	{folder: "internal/test/forgetest", tests: true},
	{
		folder: "internal/test/history", local: []string{".", "internal/api"},
		remote: []string{"github.com/anishathalye/porcupine"}, tests: true,
	},
	{
		folder: "internal/test/launchtest", local: []string{"internal/filelock", "internal/launch", "internal/test"},
		tests: true,
	},
	{folder: "internal/test/memory", local: []string{"internal/filelock"}, tests: true},
	{
		folder: "internal/test/postgrestest", local: []string{"internal/launch", "internal/test"},
		remote: []string{"github.com/jackc/pgx/v5"}, tests: true,
	},
	{
		folder: "internal/test/protomessage", local: []string{"internal/test/tools"},
		remote: []string{"github.com/bufbuild/protocompile", "google.golang.org/grpc", "google.golang.org/protobuf"},
		tests:  true,
	},
	{folder: "internal/test/redisserver", local: []string{"internal/launch", "internal/test"}, tests: true},
	{
		folder: "internal/test/remotetest",
		local: []string{
			".", "client", "cluster", "internal/launch", "internal/test", "journal", "placement", "shard",
		},
		tests: true,
	},
	{
		folder: "internal/test/scenariotest", local: []string{".", "client", "internal/launch", "internal/test"},
		tests: true,
	},
	{folder: "internal/spans", local: []string{".", "internal/api"}},
	{folder: "internal/timeline", local: []string{".", "engine/record", "internal/prose", "internal/traceparent"}},
	{folder: "internal/trace"},
	{folder: "internal/traceparent"},
}

// Imports checks every package below root against the table, and returns what breaks it and the
// folders with two rules.
func Imports(root string) ([]string, error) {
	return checkImports(root, table)
}

func checkImports(root string, table []rule) (problems []string, err error) {
	imports, err := readImports(root)
	if err != nil {
		return nil, err
	}
	for i, r := range table {
		if slices.ContainsFunc(table[:i], func(o rule) bool { return o.folder == r.folder }) {
			problems = append(problems, fmt.Sprintf("%s has two rules in internal/layout/table.go: merge them", r.folder))
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(imports)) {
		r := ruleFor(table, folder)
		if r == nil {
			problems = append(
				problems, fmt.Sprintf("%s: no rule says what it may import: add it to internal/layout/table.go", folder),
			)
			continue
		}
		for _, imported := range imports[folder] {
			switch of := ruleFor(table, strings.TrimPrefix(imported, Module+"/")); {
			case !r.allows(imported):
				problems = append(problems, fmt.Sprintf("%s must not import %s", folder, imported))
			case of != nil && of.tests && !r.tests:
				problems = append(problems, fmt.Sprintf("%s must not import %s outside its tests", folder, imported))
			}
		}
	}
	return problems, nil
}

func ruleFor(table []rule, folder string) *rule {
	var best *rule
	for i := range table {
		r := &table[i]
		if within(folder, r.folder) && (best == nil || len(r.folder) > len(best.folder)) {
			best = r
		}
	}
	return best
}

// within reports whether folder is at or below top; "." is the root package alone.
func within(folder, top string) bool {
	return folder == top || top != "." && strings.HasPrefix(folder, top+"/")
}

func (r *rule) allows(imported string) bool {
	if imported == Module || strings.HasPrefix(imported, Module+"/") {
		folder := "."
		if imported != Module {
			folder = strings.TrimPrefix(imported, Module+"/")
		}
		return within(folder, r.folder) || slices.ContainsFunc(r.local, func(top string) bool { return within(folder, top) })
	}
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		return true // the standard library
	}
	return slices.ContainsFunc(r.remote, func(top string) bool { return within(imported, top) })
}

// readImports lists, by folder, what the non-test files of each package import.
func readImports(root string) (map[string][]string, error) {
	imports := map[string][]string{}
	err := walk(root, func(name string) error {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder := path.Dir(name)
		list := imports[folder]
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			list = append(list, imported)
		}
		slices.Sort(list)
		imports[folder] = slices.Compact(list)
		return nil
	})
	return imports, err
}

// walk visits the files that belong to the repository, by their slash-separated
// names below root.
func walk(root string, visit func(name string) error) error {
	return fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch {
			case name == ".", name == ".ci":
				return nil
			case strings.HasPrefix(d.Name(), "."), d.Name() == "testdata", name == "bin", name == "dist", name == "data":
				return fs.SkipDir
			}
			return nil
		}
		return visit(name)
	})
}
