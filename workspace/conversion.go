package workspace

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/internal/lfs"
	"github.com/interlockdev/interlock/workspace/sandbox"
)

// conversions are what the user's own git does to the content of files between the tree and a commit: ends of lines,
// encodings, and filters such as that of Git LFS. They are read anew for each command, from the configuration of the
// user and of the source, which no agent writes. An agent's own git gets a copy, see write.
//
// A filter is a program, and its command may name a file of the tree. So filters run in a sandbox only; and a filter
// that fails is an error also where the user's git would take the file as it is: what a filter should have encrypted
// must not land. Drivers in allowed are an exception, by interlock.allowUnfiltered.
type conversions struct {
	// config is for git, without filters: "name=value".
	config  []string
	drivers []driver
	allowed []string
	// helpers are further settings that programs of filters read, such as those of lfs.
	helpers []string
	// attributes is what the machine and the user have in files of attributes, and info what the source has in
	// info/attributes, which is stronger than all .gitattributes.
	attributes, info []byte
	// read lists the paths that filters need to see, by interlock.read, and their programs.
	read []string
	// folders of the source's git directory have the files of a filter, such as the keys of git-crypt.
	folders []string
	source  *source
}

// driver is a filter as the user has configured it.
type driver struct {
	name, clean, smudge, process string
	required                     bool
}

// defined reports whether the driver does anything. Git takes no notice of one that does not.
func (d *driver) defined() bool { return cmp.Or(d.clean, d.smudge, d.process) != "" }

// isLFS reports whether the driver is that of Git LFS, by its name or its command.
func (d *driver) isLFS() bool {
	return d.name == lfs.Driver || strings.Contains(d.clean+d.process, "git-lfs")
}

// strict are the settings of a driver that fails where it cannot run. A side without a command takes the content as it
// is, as git does: "cat".
func (d *driver) strict() []string {
	clean, smudge := d.clean, d.smudge
	if d.process == "" {
		clean, smudge = cmp.Or(clean, "cat"), cmp.Or(smudge, "cat")
	}
	return d.settings(clean, smudge, true)
}

// settings has no empty command: with filter.X.process= git would run no clean and no smudge either.
func (d *driver) settings(clean, smudge string, required bool) (config []string) {
	for _, c := range [][2]string{{"clean", clean}, {"smudge", smudge}, {"process", d.process}} {
		if c[1] != "" {
			config = append(config, "filter."+d.name+"."+c[0]+"="+c[1])
		}
	}
	return append(config, fmt.Sprintf("filter.%s.required=%t", d.name, required))
}

// conversions reads what converts files in the source.
func (s *source) conversions(ctx context.Context) (*conversions, error) {
	c := &conversions{config: s.plain(), source: s}
	for i := range s.settings {
		switch at := &s.settings[i]; at.name {
		case "interlock.allowunfiltered":
			c.allowed = append(c.allowed, at.value)
		case "interlock.read":
			c.read = append(c.read, inHome(at.value))
		default:
			c.note(at)
		}
	}
	for i := range c.drivers {
		d := &c.drivers[i]
		for _, command := range []string{d.clean, d.smudge, d.process} {
			if path := program(command); path != "" {
				c.read = append(c.read, path)
			}
		}
		c.folders = append(c.folders, s.foldersOf(d.name)...)
	}
	for i := range s.settings {
		if at := &s.settings[i]; c.helps(at.name) {
			c.helpers = append(c.helpers, at.name+"="+at.value)
		}
	}
	system, err := s.systemAttributes(ctx)
	if err != nil {
		return nil, err
	}
	for _, file := range []string{system, s.userFile("core.attributesfile", "attributes")} {
		if content, err := os.ReadFile(file); err == nil {
			c.attributes = append(append(c.attributes, content...), '\n')
		}
	}
	if content, err := os.ReadFile(filepath.Join(s.dir, "info", "attributes")); err == nil {
		c.info = content
	}
	slices.Sort(c.read)
	c.read = slices.DeleteFunc(slices.Compact(c.read), func(path string) bool { return !exists(path) })
	slices.Sort(c.folders)
	c.folders = slices.Compact(c.folders)
	return c, nil
}

// note keeps a setting of a driver; a later one of the same name wins.
func (c *conversions) note(s *setting) {
	name, key := driverOf(s.name)
	if name == "" {
		return
	}
	i := slices.IndexFunc(c.drivers, func(d driver) bool { return d.name == name })
	if i < 0 {
		i = len(c.drivers)
		c.drivers = append(c.drivers, driver{name: name})
	}
	switch d := &c.drivers[i]; key {
	case "clean":
		d.clean = s.value
	case "smudge":
		d.smudge = s.value
	case "process":
		d.process = s.value
	case "required":
		d.required = isTrue(s.value)
	}
}

// driver returns the driver of a name, nil if it is not defined.
func (c *conversions) driver(name string) *driver {
	for i := range c.drivers {
		if d := &c.drivers[i]; d.name == name && d.defined() {
			return d
		}
	}
	return nil
}

// helps reports whether programs of filters read a setting. Others, such as those of credential helpers, are secrets
// without a use here. The place of the objects of Git LFS is the workspace's own.
func (c *conversions) helps(name string) bool {
	section, _, _ := strings.Cut(name, ".")
	switch section {
	case "lfs":
		return name != "lfs.storage" && !strings.HasPrefix(name, "lfs.customtransfer.")
	case "transcrypt", "git-crypt", "git-agecrypt":
		return len(c.drivers) > 0
	case "core", "filter", "user", "remote", "branch", "include", "includeif", "credential", "http", "url", "interlock":
		return false
	}
	return slices.ContainsFunc(c.drivers, func(d driver) bool { return strings.ToLower(d.name) == section })
}

// strict are all settings for git in a sandbox.
func (c *conversions) strict() []string {
	config := slices.Concat(c.config, c.helpers)
	for i := range c.drivers {
		switch d := &c.drivers[i]; {
		case !d.defined():
		case c.allows(d.name):
			config = append(config, d.settings(d.clean, d.smudge, d.required)...)
		default:
			config = append(config, d.strict()...)
		}
	}
	return config
}

// without are the settings for git that runs no filter.
func (c *conversions) without() []string {
	config := slices.Clone(c.config)
	for i := range c.drivers {
		name := "filter." + c.drivers[i].name
		config = append(config, name+".clean=", name+".smudge=", name+".process=", name+".required=false")
	}
	return config
}

// allows reports whether files may go without a filter that cannot run.
func (c *conversions) allows(driver string) bool { return slices.Contains(c.allowed, driver) }

// digest tells the conversions from others: a base checkout has files that were converted so.
func (c *conversions) digest() string {
	if len(c.config)+len(c.drivers) == 0 && len(bytes.TrimSpace(c.attributes))+len(bytes.TrimSpace(c.info)) == 0 {
		return ""
	}
	sum := sha256.New()
	for _, line := range c.strict() {
		fmt.Fprintf(sum, "%d %s\n", len(line), line)
	}
	fmt.Fprintf(sum, "%q %q", c.attributes, c.info)
	return hex.EncodeToString(sum.Sum(nil)[:4])
}

// refuse is about paths with a filter that cannot run.
func (c *conversions) refuse(driver, why string, paths []string) error {
	slices.Sort(paths)
	named := strings.Join(paths[:min(len(paths), 4)], ", ")
	if len(paths) > 4 {
		named += fmt.Sprintf(" and %d more", len(paths)-4)
	}
	return problem(
		CodeFilter, "the filter %s cannot run (%s), and without it the content of %s would be wrong: make it work in the "+
			"repository's configuration, name files that it needs by git config --add interlock.read PATH, or take the "+
			"files as they are by git config --add interlock.allowUnfiltered %s", driver, why, named, driver,
	)
}

// check refuses paths with a filter that is not defined, or cannot run without a sandbox. It takes the driver of each
// path.
func (c *conversions) check(used map[string]string, sandboxed bool) error {
	missing := map[string][]string{}
	for path, driver := range used {
		if !c.allows(driver) && (c.driver(driver) == nil || !sandboxed) {
			missing[driver] = append(missing[driver], path)
		}
	}
	for driver, paths := range missing {
		why := "it is not configured"
		if c.driver(driver) != nil {
			why = "filters run in a sandbox, and there is none on this machine"
		}
		return c.refuse(driver, why, paths)
	}
	return nil
}

// failed makes a refusal of an error of git where a filter failed, with the path that git named.
func (c *conversions) failed(err error) error {
	failure, path, driver := filterFailed(err)
	if driver == "" {
		return err
	}
	return c.refuse(driver, firstLines(failure.Stderr, 2), []string{path})
}

// filterFailed finds the path and the driver in what git complains: "fatal: PATH: clean filter 'X' failed" or
// "fatal: PATH: smudge filter X failed".
func filterFailed(err error) (failure *git.Error, path, driver string) {
	failure, ok := errors.AsType[*git.Error](err)
	if !ok {
		return nil, "", ""
	}
	for line := range strings.Lines(failure.Stderr) {
		line = strings.TrimSpace(line)
		for _, side := range []string{": clean filter ", ": smudge filter "} {
			at, rest, found := strings.Cut(line, side)
			name, ended := strings.CutSuffix(rest, " failed")
			if found && ended {
				return failure, strings.TrimPrefix(strings.TrimPrefix(at, "fatal: "), "error: "), strings.Trim(name, "'")
			}
		}
	}
	return nil, "", ""
}

// converts reports whether a setting decides what git makes of a file's content, or of its name.
func converts(name string) bool {
	switch name {
	case "core.autocrlf", "core.eol", "core.safecrlf", "core.checkroundtripencoding", "core.ignorecase",
		"core.precomposeunicode", "core.symlinks":
		return true
	}
	return false
}

// plain are the settings of the user that decide how files are converted, without filters. The last one of a name
// counts.
func (s *source) plain() (config []string) {
	for i := range s.settings {
		if c := &s.settings[i]; converts(c.name) {
			config = append(config, c.name+"="+c.value)
		}
	}
	return config
}

// withoutFilters is a configuration that converts files in the source as the user's does, but runs no program.
func (s *source) withoutFilters() []string {
	c := conversions{config: append(s.plain(), "core.attributesFile="+s.userFile("core.attributesfile", "attributes"))}
	for i := range s.settings {
		c.note(&s.settings[i])
	}
	return c.without()
}

// driverOf splits the name of a setting filter.DRIVER.KEY.
func driverOf(name string) (driver, key string) {
	rest, ok := strings.CutPrefix(name, "filter.")
	dot := strings.LastIndexByte(rest, '.')
	if !ok || dot <= 0 || strings.ContainsAny(rest, "=\n") {
		return "", ""
	}
	return rest[:dot], rest[dot+1:]
}

// systemAttributes is the machine's file of attributes, or "".
func (s *source) systemAttributes(ctx context.Context) (string, error) {
	if isTrue(os.Getenv("GIT_ATTR_NOSYSTEM")) {
		return "", nil
	}
	// Git tells its path since 2.41. Before, it is that of most packages.
	result, err := s.here().Run(ctx, git.Call{
		Args: []string{"var", "GIT_ATTR_SYSTEM"}, Answers: []int{1, 128, 129}, Env: []string{"GIT_ATTR_NOSYSTEM"},
	})
	if err != nil || result.Exit != 0 {
		return "/etc/gitattributes", err
	}
	return strings.TrimSpace(string(result.Out)), nil
}

// foldersOf lists the folders of the git directory that have files of a filter: git-crypt keeps its keys in git-crypt,
// and a driver git-crypt-NAME has them there, too.
func (s *source) foldersOf(driver string) (list []string) {
	for name := driver; name != ""; {
		if info, err := os.Lstat(filepath.Join(s.dir, name)); err == nil && info.IsDir() && !ofGit(name) {
			list = append(list, name)
		}
		dash := strings.LastIndexByte(name, '-')
		if dash < 0 {
			break
		}
		name = name[:dash]
	}
	return list
}

// ofGit reports whether a name in a git directory is git's own, or another place has it. Git LFS has a store.
func ofGit(name string) bool {
	switch name {
	case "objects", "refs", "logs", "hooks", "info", "branches", "modules", "worktrees", lfs.Driver:
		return true
	}
	return !filepath.IsLocal(name) || strings.ContainsAny(name, "/\\")
}

// program is the file of a command's first word, with its links resolved, if it is none that a sandbox shows anyway.
func program(command string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(command), " ")
	word = strings.Trim(word, `"'`)
	if word == "" || strings.HasPrefix(word, ".") {
		return ""
	}
	path, err := exec.LookPath(inHome(word))
	if err != nil || !filepath.IsAbs(path) || sandbox.System(path) {
		return ""
	}
	return path
}

// inHome resolves a path that begins with ~/.
func inHome(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}

// filters returns which of the paths git converts with a filter, and the driver of each. With cached it reads the
// attributes of the index.
func filters(ctx context.Context, r *git.Repository, paths []string, cached bool) (map[string]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	args := []string{"check-attr", "--stdin", "-z", "filter"}
	if cached {
		args = slices.Insert(args, 1, "--cached")
	}
	out, err := r.Feed(ctx, []byte(strings.Join(paths, "\x00")+"\x00"), args...)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for fields := strings.Split(out, "\x00"); len(fields) > 3; fields = fields[3:] {
		if driver := fields[2]; driver != "unspecified" && driver != "unset" && driver != "set" {
			found[fields[0]] = driver
		}
	}
	return found, nil
}
