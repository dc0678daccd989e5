package merge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// format is the number of the rules in this package: how a commit is written, and how its inputs are chosen. A change
// that changes the commit id of any landing raises it.
const format = 2

// Profile is all that decides a merge besides the trees. Two boundaries with the same digest give the same commits.
type Profile struct {
	// Format is the number of this package's own rules.
	Format int `json:"format"`
	// Git is the whole version, such as "2.39.5". Another version may merge differently.
	Git string `json:"git"`
	// Configuration is each line that git gets, as "name=value".
	Configuration []string `json:"configuration"`
	// Attributes are lines of a .gitattributes file, stronger than those of the tree. Usually empty.
	Attributes string `json:"attributes,omitempty"`
	// Drivers are merge drivers that attributes may name.
	Drivers []Driver `json:"drivers,omitempty"`
	// Renumbers are rules that give numbered files free numbers. See [ReadRenumber].
	Renumbers []Renumber `json:"renumbers,omitempty"`
}

// Driver is a program that merges the files to which attributes assign it.
type Driver struct {
	// Name is its name in attributes: merge=NAME.
	Name string `json:"name"`
	// Program is the path of the program. It is not part of the digest: the program may lie elsewhere on another host.
	Program string `json:"-"`
	// Arguments are its arguments in the form of git's merge.NAME.driver, such as "%O %A %B".
	Arguments string `json:"arguments"`
	// Digest is that of the program's file, as "sha256:…".
	Digest string `json:"digest"`
}

// NewProfile makes the profile of the git in PATH, with attributes and drivers of the caller's choice. It reads each
// driver's program, and fills in its path and digest.
func NewProfile(ctx context.Context, attributes string, drivers ...Driver) (Profile, error) {
	version, err := git.ReadVersion(ctx)
	if err != nil {
		return Profile{}, err
	}
	if !version.AtLeast(2, 38) {
		return Profile{}, fmt.Errorf("git %s cannot merge without a checkout: install git 2.38 or newer", version.Text)
	}
	p := Profile{Format: format, Git: version.Text, Configuration: git.Pinned(), Attributes: attributes}
	for _, d := range drivers {
		if err := d.read(); err != nil {
			return Profile{}, err
		}
		p.Drivers = append(p.Drivers, d)
	}
	return p, nil
}

// read finds the program and computes its digest.
func (d *Driver) read() error {
	if err := git.CheckName(d.Name); err != nil {
		return fmt.Errorf("merge driver: %w", err)
	}
	switch d.Name {
	case "text", "binary", "union":
		return fmt.Errorf("merge driver %q: git has one of this name: choose another", d.Name)
	}
	program, digest, err := readProgram(d.Program)
	if err != nil {
		return fmt.Errorf("merge driver %q: %w", d.Name, err)
	}
	d.Program, d.Digest = program, digest
	return nil
}

// readProgram finds a program, and returns its path and the digest of its file.
func readProgram(name string) (program, digest string, err error) {
	if program, err = exec.LookPath(name); err == nil {
		program, err = filepath.Abs(program)
	}
	if err != nil {
		return "", "", err
	}
	f, err := os.Open(program)
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", "", err
	}
	return program, "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// Digest is the profile's identity, as "sha256:…". Each landing's commit carries it.
func (p *Profile) Digest() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic("merge: a profile has a value that JSON cannot hold: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// check returns an error unless this process can carry out the profile: the same git, and the same drivers.
func (p *Profile) check(ctx context.Context) error {
	drivers := make([]Driver, len(p.Drivers))
	copy(drivers, p.Drivers)
	here, err := NewProfile(ctx, p.Attributes, drivers...)
	if err != nil {
		return err
	}
	for _, r := range p.Renumbers {
		if r.program != "" {
			if _, r.Digest, err = readProgram(r.program); err != nil {
				return fmt.Errorf("renumber %s: %w", r.Sequence, err)
			}
		}
		here.Renumbers = append(here.Renumbers, r)
	}
	if want, have := p.Digest(), here.Digest(); want != have {
		return fmt.Errorf("the profile %s is not that of this machine, %s: its git is %s, and here is %s; "+
			"make a profile here, and compare drivers and commands", want, have, p.Git, here.Git)
	}
	return nil
}

// config returns the drivers as configuration, with the program quoted for the shell that git starts.
//
// Git takes each exit code but 0 for a conflict. A program that is not there any more (126, 127), or that something
// interrupted or killed (130, 137, 143), found none, so the shell ends git instead.
func (p *Profile) config() (lines []string) {
	for _, d := range p.Drivers {
		quoted := "'" + strings.ReplaceAll(d.Program, "'", `'\''`) + "'"
		lines = append(lines, "merge."+d.Name+".driver="+quoted+" "+d.Arguments+
			"; s=$?; case $s in 126|127|130|137|143) kill -KILL $PPID;; esac; exit $s")
	}
	return lines
}
