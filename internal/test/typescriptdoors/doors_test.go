package typescriptdoors

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/release/npm"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/frameworkpage"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/tools"
	"github.com/interlockdev/interlock/internal/test/typescripttest"
)

func TestMain(m *testing.M) { launchtest.Main(m) }

// site is a folder of a user, with the package installed, and a server.
type site struct {
	*testing.T
	folder, tarball string
	env             []string
}

func open(t *testing.T) *site {
	t.Helper()
	tools.Need(t, "node", tools.TypeScriptCompiler, tools.TypeScriptDoors, tools.DoorsNode)
	server := launchtest.Start(t, launch.Config{DataDir: t.TempDir()})
	s := &site{T: t, folder: t.TempDir()}
	s.env = append(
		os.Environ(), "INTERLOCK_URL=http://"+server.HTTP, "NO_COLOR=1", "HOME="+s.folder, "DENO_NO_UPDATE_CHECK=1",
	)
	if err := os.CopyFS(s.folder, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	body, err := npm.Pack("../../..", "1.2.3", time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	s.tarball = filepath.Join(t.TempDir(), npm.Name("1.2.3"))
	if err := os.WriteFile(s.tarball, body, 0o600); err != nil {
		t.Fatal(err)
	}
	s.install(body)
	return s
}

// install puts the package beside those of dist/typescriptdoors, as npm does.
func (s *site) install(tarball []byte) {
	s.Helper()
	modules := filepath.Join(s.folder, "node_modules")
	if err := os.Mkdir(modules, 0o700); err != nil {
		s.Fatal(err)
	}
	installed := filepath.Join(tools.TypeScriptDoorsFolder(), "node_modules")
	entries, err := os.ReadDir(installed)
	if err != nil {
		s.Fatal(err)
	}
	for _, e := range entries {
		if err := os.Symlink(filepath.Join(installed, e.Name()), filepath.Join(modules, e.Name())); err != nil {
			s.Fatal(err)
		}
	}
	packed, err := gzip.NewReader(bytes.NewReader(tarball))
	if err != nil {
		s.Fatal(err)
	}
	for archive := tar.NewReader(packed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			s.Fatal(err)
		}
		name := filepath.Join(modules, "@interlockdev/client", strings.TrimPrefix(header.Name, "package/"))
		text, err := io.ReadAll(archive)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, text, 0o600))
		if err != nil {
			s.Fatal(err)
		}
	}
}

// command is a program in the folder of the site; a name with a slash is one of its packages.
func (s *site) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	s.Helper()
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		found, err := filepath.Glob(filepath.Join(s.folder, "node_modules", name))
		if err != nil || len(found) == 0 {
			s.Fatalf("there is no %s for this platform: %v", name, err)
		}
		name = found[0]
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = s.folder, s.env
	return cmd
}

func (s *site) run(name string, args ...string) string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), busy.Patience())
	defer cancel()
	out, err := s.command(ctx, name, args...).CombinedOutput()
	if err != nil {
		s.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestFrameworks plays the scenes with each framework and its fake models.
func TestFrameworks(t *testing.T) {
	s := open(t)
	s.run(".bin/tsc", "-p", ".")
	ctx, cancel := context.WithTimeout(t.Context(), busy.Patience())
	defer cancel()
	reporter := typescripttest.Reporter(t)
	passed := typescripttest.Report(t, s.command(
		ctx, "node", "--test", "--test-reporter="+reporter, "build/ai-sdk.test.js", "build/langgraph.test.js",
	))
	if passed < 50 {
		t.Errorf("only %d scenes were played", passed)
	}
}

// TestExamples compiles the examples of the frameworks, and compares what they print with their page.
func TestExamples(t *testing.T) {
	s := open(t)
	files, err := filepath.Glob(filepath.Join(frameworkpage.Folder(), "*.ts"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.folder, filepath.Base(file)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.run(".bin/tsc", "-p", ".")
	for _, example := range frameworkpage.Examples(t, ".ts") {
		t.Run(example, func(t *testing.T) {
			one := *s
			one.T = t
			times := 20
			if testing.Short() {
				times = 2
			}
			for range times {
				frameworkpage.Check(t, example, one.run("node", "build/"+strings.TrimSuffix(example, ".ts")+".js"))
			}
		})
	}
}

// runtimes are the commands that run a program.
var runtimes = map[string][]string{
	"node":       {"node"},
	"newer/node": {filepath.Join(tools.DoorsFolder(), "node")},
	"deno":       {"@deno/*/deno", "run", "--allow-env", "--allow-net"},
	"bun":        {"@oven/bun-*/bin/bun", "run"},
}

// TestRuntimes runs the client on each runtime, as ES modules and, where a program may read its files, as CommonJS
// beside them. A process that ends proves that no timer keeps it.
func TestRuntimes(t *testing.T) {
	s := open(t)
	for runtime, command := range runtimes {
		programs := map[string]string{"smoke.mjs": filepath.Base(runtime) + ": ok\n", "standby.mjs": "kept\n"}
		if runtime != "deno" {
			programs["commonjs/forms.cjs"] = "ok\n"
		}
		for program, says := range programs {
			t.Run(runtime+"/"+filepath.Base(program), func(t *testing.T) {
				one := *s
				one.T = t
				if out := one.run(command[0], append(slices.Clip(command[1:]), program)...); out != says {
					t.Errorf("%s prints %q", program, out)
				}
			})
		}
	}
}

// TestCommonJS compiles a module of CommonJS in each way that projects do, and runs it.
func TestCommonJS(t *testing.T) {
	s := open(t)
	for _, way := range [][2]string{{"commonjs", "node10"}, {"node16", "node16"}, {"nodenext", "nodenext"}} {
		t.Run(way[0], func(t *testing.T) {
			one := *s
			one.T = t
			one.run(
				".bin/tsc", "--target", "es2022", "--lib", "es2022,dom,esnext.disposable", "--types", "node", "--strict",
				"--module", way[0], "--moduleResolution", way[1], "commonjs/use.ts",
			)
			if out := one.run("node", "commonjs/use.js"); out != "ok\n" {
				t.Errorf("use.js prints %q", out)
			}
		})
	}
}

// TestPackage checks the package with programs that know how packages are resolved.
func TestPackage(t *testing.T) {
	s := open(t)
	if out := s.run(".bin/publint", s.tarball, "--strict"); !strings.Contains(out, "All good!") {
		t.Errorf("publint has findings:\n%s", out)
	}
	out := s.run(".bin/attw", s.tarball, "--no-color")
	for _, entry := range []string{"", "/ai-sdk", "/langgraph"} {
		if !strings.Contains(out, `"@interlockdev/client`+entry+`"`) {
			t.Errorf("attw does not know the entry %q:\n%s", entry, out)
		}
	}
}
