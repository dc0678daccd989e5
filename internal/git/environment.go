package git

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Pinned returns the configuration of each call, as "name=value". The lines below merge and diff decide what a merge
// makes of three trees, so a change of them is another boundary.
func Pinned() []string {
	return []string{
		// What a merge is.
		"merge.renames=true",
		"merge.renameLimit=32767",
		"merge.directoryRenames=conflict",
		"merge.conflictStyle=merge",
		"merge.renormalize=false",
		"diff.algorithm=histogram",
		"diff.renames=true",
		"diff.renameLimit=32767",
		"diff.suppressBlankEmpty=false",
		"core.attributesFile=" + os.DevNull,
		"core.bigFileThreshold=512m",
		"core.precomposeUnicode=false",
		"core.autocrlf=false",
		"i18n.commitEncoding=UTF-8",
		"i18n.logOutputEncoding=UTF-8",
		// What is printed, and how.
		"core.quotePath=false",
		"core.pager=cat",
		"color.ui=false",
		"log.showSignature=false",
		"advice.detachedHead=false",
		// What git would start besides.
		"core.hooksPath=" + os.DevNull,
		"core.fsmonitor=false",
		"core.excludesFile=" + os.DevNull,
		"commit.gpgSign=false",
		"tag.gpgSign=false",
		"gc.auto=0",
		"maintenance.auto=false",
		"protocol.ext.allow=never",
		"submodule.recurse=false",
		"fetch.recurseSubmodules=false",
		"push.recurseSubmodules=no",
		"init.defaultBranch=main",
	}
}

// base is the environment that each call begins with. The identity is for reflogs, and for commits that name none.
func base() []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"),
		"LC_ALL=C",
		"TZ=UTC",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_LITERAL_PATHSPECS=1",
		"GIT_AUTHOR_NAME=interlock", "GIT_AUTHOR_EMAIL=interlock@localhost",
		"GIT_COMMITTER_NAME=interlock", "GIT_COMMITTER_EMAIL=interlock@localhost",
	}
	for _, name := range system() {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// system lists the variables that programs need on an operating system to start at all, or to make temporary files.
func system() []string {
	if runtime.GOOS == "windows" {
		return []string{"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP"}
	}
	return []string{"TMPDIR"}
}

// configuration puts configuration into the environment, where it is stronger than that of every file.
func configuration(config []string) []string {
	env := make([]string, 0, 1+2*len(config))
	env = append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(config)))
	for i, line := range config {
		name, value, _ := strings.Cut(line, "=")
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+name, "GIT_CONFIG_VALUE_"+n+"="+value)
	}
	return env
}

// Remote selects, from an environment, the variables that git needs to reach and trust a remote repository: the agent
// and the command of SSH, prompts for passwords, proxies, certificates, and HOME for known hosts and .netrc. A
// credential helper is configuration: pass it as Repository.Config.
func Remote(environ []string) (env []string) {
	for _, line := range environ {
		name, _, _ := strings.Cut(line, "=")
		switch strings.ToUpper(name) {
		case "HOME", "USERPROFILE", "SSH_AUTH_SOCK", "SSH_ASKPASS", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT",
			"GIT_ASKPASS", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR",
			"GIT_SSL_CAINFO", "GIT_SSL_CAPATH":
			env = append(env, line)
		}
	}
	return env
}

// Signing selects, from an environment, the variables that lead gpg, gpgsm and ssh-keygen to keys and agents. It has
// no terminal, display or program to ask a person with.
func Signing(environ []string) (env []string) {
	for _, line := range environ {
		name, _, _ := strings.Cut(line, "=")
		switch strings.ToUpper(name) {
		case "HOME", "USERPROFILE", "APPDATA", "GNUPGHOME", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR":
			env = append(env, line)
		}
	}
	return env
}
