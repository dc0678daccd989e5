package shell

import "maps"

// table has the programs that are known, by their names. What is not there could write anything.
var table = map[string]program{}

func init() {
	for _, part := range []map[string]program{
		readers(), reporters, filters, writers, copiers, prefixes, formatters, fetchers, packers, projects,
		{"git": git, "hub": git},
	} {
		maps.Copy(table, part)
	}
	for name := range shells {
		table[name] = shell
	}
	plain := shell
	plain.special = (*reader).plainShell
	for _, name := range []string{"sh", "dash", "ash"} {
		table[name] = plain
	}
}

// readers write no file that exists, whatever their words are.
func readers() map[string]program {
	all := map[string]program{}
	for name := range words(`
		true false : test [ type hash which whereis exit return break continue logout wait jobs fg bg disown hey kill
		pkill killall pgrep ps top htop free uptime uname hostname whoami who w id groups users last tty stty tput clear
		reset date cal sleep usleep yes pwdx alias unalias getopts ulimit umask times history bind complete compgen
		compopt shopt setopt unsetopt let dirs enable caller fc help logger lsof fuser df du stat file readlink realpath
		md5sum sha1sum sha256sum sha512sum shasum md5 cksum sum b2sum wc nl od hexdump strings nm ldd readelf size diff
		cmp comm diff3 colordiff delta difft bat batcat more most man apropos whatis tldr jq gron jp fx printenv locale
		getconf getent arch nproc lscpu lsblk lsmod lsusb lspci dmesg journalctl systemctl service mount ping ping6
		traceroute dig nslookup host whois netstat ss ip ifconfig route arp nc ncat telnet ssh mosh mkdir rmdir mkfifo
		column paste join fmt fold expand unexpand pr tsort numfmt factor bc dc expr units exa eza lsd tokei loc ack pt
		xdg-open open pbpaste say notify-send pyright pycodestyle pydocstyle vulture radon safety shellcheck hadolint
		yamllint actionlint ansible-lint tfsec checkov luacheck jshint vale proselint staticcheck errcheck ineffassign
		govulncheck nilaway revive deadcode benchstat gocyclo godoc cpplint iwyu include-what-you-use htmlhint csslint
		detekt pmd mysql mongosh k9s kubectx kubens stern gcloud az heroku fly flyctl vercel netlify base32 xclip wl-copy
		pbcopy zparseopts print whence where rehash autoload emulate zmodload unhash identify ffprobe mediainfo figlet
		cowsay fortune lolcat onefetch neofetch wrk ghz grpcurl Get-Content Get-ChildItem Select-String Get-Location
		Test-Path Write-Output dir findstr
	`) {
		all[name] = program{}
	}
	return all
}

// filters print what they read, or the names of files.
var filters = map[string]program{
	"cat": {special: (*reader).cat}, "tac": {does: passes}, "rev": {does: passes},
	"head": {value: "-n -c --lines --bytes", does: passes}, "tail": {value: "-n -c --lines --bytes", does: passes},
	"tr": {skip: 2, does: passes}, "cut": {value: "-d -f -c -b --delimiter --fields", does: passes},
	"shuf": {value: "-n -e", output: "-o --output", does: passes},
	"sort": {
		value: "-k -t -S -T --key --field-separator --buffer-size --temporary-directory --parallel --batch-size " +
			"--compress-program --files0-from",
		output: "-o --output", does: passes,
	},
	"uniq": {value: "-f -s -w --skip-fields --skip-chars --check-chars", special: (*reader).uniq},
	"sed": {
		value: "-e -f -l --expression --file --line-length", maybe: "-i -I --in-place", never: "-h",
		special: (*reader).sed,
	},
	"gsed":  {value: "-e -f -l --expression --file --line-length", maybe: "-i -I --in-place", special: (*reader).sed},
	"awk":   awk,
	"gawk":  awk,
	"mawk":  awk,
	"nawk":  awk,
	"grep":  grep,
	"egrep": grep,
	"fgrep": grep,
	"zgrep": grep,
	"ggrep": grep,
	"rg": {
		value: "-e -f -m -A -B -C -g -t -T -j -r -E -M --regexp --file --max-count --glob --iglob --type " +
			"--type-not --replace --sort --max-depth --context --after-context --before-context --color --threads",
		special: (*reader).grep,
	},
	"ag":    grep,
	"ugrep": grep,
	"find":  {special: (*reader).find}, "gfind": {special: (*reader).find},
	"fd": {value: fdValues, special: (*reader).fd}, "fdfind": {value: fdValues, special: (*reader).fd},
	"ls":     {value: "-I -w -T --ignore --hide", special: (*reader).ls},
	"dir":    {special: (*reader).ls},
	"vdir":   {special: (*reader).ls},
	"locate": {value: "-n -l", does: lists}, "mdfind": {does: lists},
	"fzf": {value: "-q -f --query --filter --preview --bind --height", does: passes}, "cygpath": {does: passes},
	// What mktemp makes no other agent has, wherever that is.
	"mktemp":  {special: func(*reader, *arguments) stream { return stream{known: true, text: "/dev/mktemp\n"} }},
	"dirname": {special: (*reader).dirname}, "basename": {special: (*reader).basename},
	"xmllint": {output: "--output", value: "--xpath --encode --schema", does: reads},
	"yq": {
		value: "-o -p -I --output-format --input-format --indent --from-file -s --split-exp",
		only:  "-i --inplace -y", special: (*reader).yq,
	},
	"envsubst": {}, "iconv": {value: "-f -t --from-code --to-code", output: "-o --output"},
	"base64": {value: "-w -b -i", output: "-o"}, "xxd": {value: "-s -l -c -g -o", does: second},
	"pandoc": {
		value:  "-f -t -r -w --from --to --template --metadata -M -V --css --bibliography",
		output: "-o --output",
	},
	"dot": {value: "-T -K -G -N -E", output: "-o"}, "cmark": {}, "pygmentize": {value: "-l -f -O", output: "-o"},
	"m4": {}, "cpp": {output: "-o", value: "-I -D"}, "csvsort": {}, "csvcut": {}, "csvgrep": {},
	"xsltproc": {output: "-o --output", value: "--param --stringparam"}, "jo": {}, "datamash": {}, "hexyl": {},
	"watch": {value: "-n --interval", first: true, special: (*reader).operandsAsText},
	"tee":   {does: files}, "sponge": {does: files}, "pee": {special: (*reader).eachAsText},
}

var awk = program{
	value:  "-F -v -f -e -i -l --field-separator --assign --file --source --include",
	output: "-o --pretty-print -d -p",
	maybe:  "-o -d -p --pretty-print --profile --dump-variables", first: true, special: (*reader).awk,
}

var grep = program{
	value: "-e -f -m -A -B -C -D -d -g --regexp --file --max-count --include --exclude --exclude-dir --context " +
		"--after-context --before-context",
	special: (*reader).grep,
}

// writers write the files that are their operands.
var writers = map[string]program{
	"rm":        {special: (*reader).remove},
	"unlink":    {does: files},
	"trash":     {special: (*reader).remove},
	"rimraf":    {does: large},
	"del":       {does: files},
	"trash-put": {special: (*reader).remove},
	"shred":     {value: "-n -s --iterations --size", does: files},
	"truncate":  {value: "-s -r --size --reference", does: files},
	"fallocate": {value: "-l -o --length --offset", does: files},
	"touch":     {value: "-d -t -r --date --reference --time", does: files}, "mknod": {does: first},
	"chmod": {special: (*reader).modes}, "chown": {value: "--reference --from", special: (*reader).modes},
	"chgrp":   {value: "--reference", special: (*reader).modes},
	"setfacl": {value: "-m -x -M -X", does: files}, "chattr": {skip: 1, does: files}, "xattr": {does: opaque},
	"dd": {never: "-h", special: (*reader).dd},
	"patch": {
		value: "-p -F -D -g -r -V -B -Y -z -i --strip --fuzz --ifdef --get --reject-file --version-control " +
			"--prefix --basename-prefix --suffix --input",
		output: "-o --output", chdir: "-d --directory", never: "--dry-run -C --check -v", special: (*reader).patch,
	},
	"ed": lineEditor, "red": lineEditor, "ex": editor,
	"vi":    editor,
	"vim":   editor,
	"nvim":  editor,
	"nano":  {does: files},
	"emacs": {value: "-l -f --eval --load", does: files},
	"perl": {
		value: "-e -E -I -M -m -F -x -C", maybe: "-i -d -D", digits: "-0 -l", first: true, special: (*reader).perl,
	},
	"ruby": {
		value: "-e -I -r -C -E -F -x", maybe: "-i -T -W -K", digits: "-0", first: true, special: (*reader).perl,
	},
	"sd":      {value: "-n -f --max-replacements --flags", never: "-p --preview", skip: 2, does: files},
	"replace": {does: opaque}, "fastmod": {does: large, skip: 2, bare: true}, "codemod": {does: large, skip: 2},
	"rpl": {never: "-s --dry-run", does: files, skip: 2}, "sad": {only: "-k --commit", does: large, skip: 2},
	"comby":    {only: "-i -in-place", whole: true, does: around},
	"ast-grep": astGrep, "sg": astGrep,
	"rename":  {value: "-e", never: "-n --nono --no-act", special: (*reader).rename},
	"prename": {value: "-e", never: "-n --nono --no-act", special: (*reader).rename},
	"mmv":     {never: "-n", does: opaque}, "detox": {never: "-n --dry-run", does: paths}, "vidir": {does: large},
	"split":             {value: "-b -l -n -a -C --bytes --lines --number", special: (*reader).split},
	"csplit":            {value: "-f -b -n --prefix --suffix-format --digits", special: (*reader).csplit},
	"strip":             {output: "-o", value: "-K -N -R", does: files},
	"objcopy":           {does: second},
	"install_name_tool": {does: last},
	"script":            {value: "-c --command -T -O -I", first: true, special: (*reader).commandOption, does: first},
	"crudini":           {only: "--set --del --merge", output: "--output", does: first},
	"dasel":             {value: "-f -w -r", does: opaque},
	"jscodeshift": {
		value: "-t --transform --parser --extensions --ignore-pattern", never: "-d --dry -p --print", does: large,
	},
	"convert":   {does: last},
	"magick":    {does: last},
	"mogrify":   {value: "-resize -quality -format -crop", whole: true, does: files},
	"ffmpeg":    {value: ffmpegValues, whole: true, does: files},
	"sqlite3":   {does: first},
	"pg_dump":   {output: "-f --file", value: "-h -U -d -t -n -p"},
	"mysqldump": {output: "-r --result-file"},
	"openssl":   {output: "-out -keyout", whole: true}, "ssh-keygen": {output: "-f", value: "-t -b -C -N -P"},
	"gpg": {output: "-o --output", value: "-u -r --recipient"}, "age": {output: "-o --output", value: "-r -i"},
	"ctags": {output: "-f -o", value: "-R", touches: "tags"}, "etags": {output: "-o", touches: "TAGS"},
	"ln":            {value: "-S -t --suffix --target-directory", maybe: "--backup", special: (*reader).link},
	"crontab":       {},
	"screencapture": {does: files},
	"wkhtmltopdf":   {does: last},
	"rsvg-convert":  {output: "-o --output"},
	"Set-Content":   {does: first},
	"Add-Content":   {does: first},
	"Out-File":      {does: first},
	"Remove-Item":   {does: large},
	"apply_patch":   {special: func(r *reader, c *arguments) stream { return r.applyPatch(c.args) }},
	"applypatch":    {special: func(r *reader, c *arguments) stream { return r.applyPatch(c.args) }},
}

const ffmpegValues = "-i -f -c -c:v -c:a -b:v -b:a -r -s -ss -t -to -vf -af -filter_complex -map -preset -crf " +
	"-vframes -loglevel"

var lineEditor = program{value: "-p", does: files, special: (*reader).editor}

var editor = program{
	value: "-c --cmd -u -S -T -i -t -w -W", never: "-R", output: "-w -W", plus: true, does: files,
	special: (*reader).editor,
}

var astGrep = program{
	does: reads, value: "-p -r -l --pattern --rewrite --lang", only: "-U --update-all", bare: true,
	subs: map[string]program{
		"run": {
			value: "-p -r -l --pattern --rewrite --lang",
			only:  "-U --update-all -i --interactive",
			bare:  true,
			does:  large,
		},
		"scan": {value: "-r -c --rule --config", only: "-U --update-all -i --interactive", bare: true, does: large},
		"test": {}, "lsp": {}, "new": {},
	},
}

// copiers have their target last.
var copiers = map[string]program{
	"cp":  {value: "-S -t --suffix --target-directory --sparse", maybe: "--backup --reflink --preserve", does: copies},
	"gcp": {value: "-S -t --suffix --target-directory", does: copies},
	"mv":  {value: "-S -t --suffix --target-directory", maybe: "--backup", does: moves},
	"gmv": {value: "-S -t --suffix --target-directory", does: moves},
	"install": {
		value: "-g -m -o -S -t --group --mode --owner --suffix --target-directory", maybe: "--backup",
		special: (*reader).install,
	},
	"rsync": {
		value: "-e -f -T -B --rsh --filter --exclude --include --exclude-from --include-from --files-from " +
			"--temp-dir --backup-dir --log-file --suffix --bwlimit --max-size --chmod",
		never: "-n --dry-run --list-only", special: (*reader).remote,
	},
	"scp":    {value: "-c -F -i -J -l -o -P -S", special: (*reader).remote},
	"rclone": {does: opaque}, "ditto": {does: last}, "xcopy": {does: last}, "robocopy": {does: second},
	"cpio": {
		value: "-E -F -H -M -R", only: "-i -p --extract --pass-through", never: "-t --list", does: around,
	},
	"Copy-Item": {does: last}, "Move-Item": {does: opaque},
}

// prefixes run the rest of their words, or a text.
var prefixes = map[string]program{
	"sudo": {
		value: "-u -g -h -p -C -r -t -T -U -R --user --group --host --prompt --chroot --role --type",
		chdir: "-D --chdir", never: "-l --list -v --validate -k -K", first: true, assigns: true, does: runs,
	},
	"doas": {value: "-u -C -a", first: true, does: runs},
	"su":   {value: "-s -g -G -c --command --shell", special: (*reader).commandOption},
	"env": {
		value:   "-u -S --unset --split-string",
		chdir:   "-C --chdir",
		first:   true,
		assigns: true,
		special: (*reader).env,
	},
	"nice":   {value: "-n --adjustment", digits: "-1 -2 -3 -4 -5 -6 -7 -8 -9", first: true, does: runs},
	"ionice": {value: "-c -n -p --class --classdata", first: true, does: runs}, "nohup": {first: true, does: runs},
	"time":     {value: "-f --format", output: "-o --output", first: true, does: runs},
	"gtime":    {value: "-f --format", output: "-o --output", first: true, does: runs},
	"timeout":  {value: "-k -s --kill-after --signal", first: true, skip: 1, does: runs},
	"gtimeout": {value: "-k -s --kill-after --signal", first: true, skip: 1, does: runs},
	"stdbuf":   {value: "-i -o -e --input --output --error", first: true, does: runs},
	"unbuffer": {first: true, does: runs},
	"setsid":   {first: true, does: runs}, "chrt": {value: "-T -P -D", first: true, skip: 1, does: runs},
	"taskset":   {first: true, skip: 1, does: runs},
	"numactl":   {first: true, does: runs},
	"setarch":   {first: true, skip: 1, does: runs},
	"command":   {never: "-v -V", first: true, special: (*reader).noFunction},
	"builtin":   {first: true, special: (*reader).noFunction},
	"exec":      {value: "-a", first: true, does: runs},
	"noglob":    {first: true, does: runs},
	"nocorrect": {first: true, does: runs},
	"xargs": {
		value: "-a -d -E -I -L -n -P -s --arg-file --delimiter --max-args --max-procs --max-chars --process-slot-var",
		maybe: "-i -e -l --replace --eof --max-lines", first: true, special: (*reader).xargs,
	},
	"gxargs": {value: "-a -d -E -I -L -n -P -s", maybe: "-i -e -l", first: true, special: (*reader).xargs},
	"parallel": {
		value: "-j -a -C -I -n -N --jobs --arg-file --colsep --joblog --results --timeout",
		never: "--dry-run --dryrun",
		first: true, special: (*reader).parallel,
	},
	"flock": {
		value: "-w -E --timeout --conflict-exit-code -c --command", first: true, special: (*reader).commandOption,
	},
	"strace":   {value: "-e -p -s -a -S -u", output: "-o", first: true, does: runs},
	"ltrace":   {value: "-e -p -s", output: "-o", first: true, does: runs},
	"valgrind": {first: true, does: runs}, "perf": {does: opaque}, "catchsegv": {first: true, does: runs},
	"chronic":     {first: true, does: runs},
	"ts":          {does: passes},
	"errno":       {},
	"systemd-run": {value: "-p -u -E --unit", first: true, does: runs},
	"hyperfine": {
		value:   "-w -r -m -M -p -c -L -n --warmup --runs --prepare --cleanup --setup",
		output:  "--export-json --export-markdown --export-csv --export-asciidoc --export-orgmode",
		special: (*reader).eachAsText,
	},
	"entr": {first: true, does: runs}, "busybox": {first: true, does: runs}, "toybox": {first: true, does: runs},
	"winpty": {first: true, does: runs}, "caffeinate": {value: "-t -w", first: true, does: runs},
	"cross-env": {first: true, assigns: true, does: runs}, "dotenv": {value: "-e -f -v", first: true, does: runs},
	"direnv": {
		does: reads, subs: map[string]program{"exec": {first: true, skip: 1, does: runs}, "allow": {}, "reload": {}},
	},
	"mise": {
		does: opaque,
		subs: map[string]program{
			"exec": {special: (*reader).behindDashes}, "x": {special: (*reader).behindDashes}, "ls": {},
			"run": {special: (*reader).oneScript, first: true}, "which": {},
		},
	},
	"asdf": {
		does: opaque,
		subs: map[string]program{"exec": {first: true, does: runs}, "current": {}, "list": {}, "which": {}},
	},
	"rbenv": {does: reads, subs: map[string]program{"exec": {first: true, does: runs}}},
	"pyenv": {does: reads, subs: map[string]program{"exec": {first: true, does: runs}}},
	"nvm":   {does: reads, subs: map[string]program{"exec": {first: true, skip: 1, does: runs}}},
	"volta": {does: reads, subs: map[string]program{"run": {value: "--node --npm --yarn", first: true, does: runs}}},
	"interlock": {does: reads, subs: map[string]program{
		"run": {special: (*reader).behindDashes}, "state": {}, "workspace": {}, "merge": {}, "hooks": {}, "init": {},
	}},
	"nix": {
		does: opaque,
		subs: map[string]program{
			"fmt": {bare: true, does: large}, "flake": {does: opaque},
			"develop": {value: "-c --command", does: opaque}, "eval": {}, "search": {},
		},
	},
	"nix-shell": {value: "-p -A -I", does: opaque}, "chroot": {does: opaque}, "unshare": {does: opaque},
	"bwrap":       {does: opaque},
	"firejail":    {does: opaque},
	"proxychains": {first: true, does: runs},
	"tsocks":      {first: true, does: runs},
	"firebase":    {does: opaque}, "at": {does: opaque}, "batch": {does: opaque},
	"tmux": {does: opaque}, "screen": {does: opaque}, "expect": {does: opaque},
}

// fetchers write what they fetch.
var fetchers = map[string]program{
	"curl": {
		value: "-A -b -d -e -E -F -H -K -m -o -r -T -u -U -w -x -X -y -Y -z --output --output-dir --data " +
			"--data-raw --data-binary --json --form --header --user --request --url --max-time --connect-timeout " +
			"--retry --proxy --cacert --cert --key --cookie --user-agent --referer --write-out --range " +
			"--upload-file --resolve --data-urlencode --limit-rate --retry-delay",
		output:  "-c -D --cookie-jar --dump-header --trace --trace-ascii --stderr --libcurl --etag-save --hsts",
		special: (*reader).curl,
	},
	"wget": {
		value: "-O -P -U -t -T -i -Q -w -A -R -D -I -X -l -e --output-document --directory-prefix --user-agent " +
			"--tries --timeout --header --post-data --post-file --user --password --limit-rate --input-file " +
			"--method --body-data",
		output:  "-o -a --output-file --append-output --save-cookies",
		never:   "--spider -V -h",
		special: (*reader).wget,
	},
	"aria2c": {value: "-x -s -j", folder: "-d --dir", output: "-o --out", does: around},
	"http":   {output: "-o --output", only: "-d --download -o --output", does: reads},
	"xh":     {output: "-o --output"},
	"https":  {output: "-o --output"},
	"yt-dlp": {does: around}, "gsutil": {does: opaque}, "s3cmd": {does: opaque},
	"gh": {value: "-R --repo", does: reads, subs: map[string]program{
		"pr": {value: "-R --repo", does: reads, subs: map[string]program{
			"checkout":      {value: "-b --branch -R --repo", does: whole},
			"merge":         {value: "-t -b -R", only: "-d --delete-branch", does: whole},
			"create":        {},
			"view":          {},
			"list":          {},
			"diff":          {},
			"status":        {},
			"checks":        {},
			"comment":       {},
			"review":        {},
			"edit":          {},
			"close":         {},
			"ready":         {},
			"update-branch": {},
		}},
		"co":   {does: whole},
		"repo": {does: reads, subs: map[string]program{"sync": {does: whole}, "clone": {}, "view": {}, "list": {}}},
		"run": {does: reads, subs: map[string]program{
			"download": {value: "-n -p -R --name --pattern", chdir: "-D --dir", does: around},
			"list":     {},
			"view":     {},
			"watch":    {},
		}},
		"release": {does: reads, subs: map[string]program{
			"download": {value: "-p -R -A --pattern", output: "-O --output", chdir: "-D --dir", does: around},
			"list":     {},
			"view":     {},
			"create":   {},
		}},
		"issue":     {},
		"api":       {},
		"auth":      {},
		"search":    {},
		"browse":    {},
		"workflow":  {},
		"gist":      {},
		"label":     {},
		"secret":    {},
		"variable":  {},
		"extension": {},
		"alias":     {},
		"status":    {},
		"cache":     {},
		"ruleset":   {},
		"org":       {},
		"project":   {},
		"copilot":   {},
	}},
	"glab": {
		does: reads,
		subs: map[string]program{
			"mr": {
				does: reads,
				subs: map[string]program{"checkout": {does: whole}, "list": {}, "view": {}, "create": {}},
			},
		},
	},
	"hg": {chdir: "--cwd -R", does: opaque, subs: map[string]program{
		"update":   {does: whole},
		"up":       {does: whole},
		"checkout": {does: whole},
		"co":       {does: whole},
		"revert":   {does: whole},
		"merge":    {does: whole},
		"rebase":   {does: whole},
		"pull":     {only: "-u --update", does: whole},
		"shelve":   {does: whole},
		"unshelve": {does: whole},
		"purge":    {does: whole},
		"commit":   {value: "-m -l -u -d -F", special: (*reader).allCommit},
		"ci":       {value: "-m -l -u -d -F", special: (*reader).allCommit},
		"add":      {},
		"status":   {},
		"st":       {},
		"log":      {},
		"diff":     {},
		"annotate": {},
		"branches": {},
		"heads":    {},
		"push":     {},
		"identify": {},
		"import":   {does: whole},
		"remove":   {does: paths},
		"rename":   {does: moves},
	}},
	"svn": {does: opaque, subs: map[string]program{
		"update": {bare: true, does: large},
		"up":     {bare: true, does: large},
		"revert": {bare: true, does: large},
		"switch": {does: whole},
		"merge":  {does: whole},
		"commit": {value: "-m -l -u -d -F", special: (*reader).allCommit},
		"ci":     {value: "-m -l -u -d -F", special: (*reader).allCommit},
		"status": {},
		"st":     {},
		"log":    {},
		"diff":   {},
		"info":   {},
		"blame":  {},
		"cat":    {},
		"list":   {},
	}},
	"jj": {chdir: "-R --repository", does: opaque, subs: map[string]program{
		"new":      {does: whole},
		"edit":     {does: whole},
		"abandon":  {does: whole},
		"rebase":   {does: whole},
		"squash":   {does: whole},
		"restore":  {does: whole},
		"undo":     {does: whole},
		"split":    {does: whole},
		"commit":   {value: "-m -l -u -d -F", special: (*reader).allCommit},
		"log":      {},
		"diff":     {},
		"status":   {},
		"st":       {},
		"show":     {},
		"describe": {},
		"op":       {},
	}},
}

// packers make archives, or unpack them.
var packers = map[string]program{
	"tar": tar, "gtar": tar, "bsdtar": tar,
	"unzip":      {value: "-d -x -P", never: "-l -t -p -c -v -Z -z", special: (*reader).unzip},
	"zipinfo":    {},
	"unrar":      {does: around},
	"zip":        {value: "-i -x -n -b -P", output: "-O --out", never: "-T", special: (*reader).zip},
	"gzip":       compressor,
	"gunzip":     compressor,
	"bzip2":      compressor,
	"bunzip2":    compressor,
	"xz":         compressor,
	"unxz":       compressor,
	"zstd":       compressor,
	"unzstd":     compressor,
	"lz4":        compressor,
	"compress":   compressor,
	"uncompress": compressor,
	"pigz":       compressor,
	"brotli":     compressor,
	"zcat":       {}, "gzcat": {}, "bzcat": {}, "xzcat": {}, "zstdcat": {}, "zless": {},
	"7z":  {special: (*reader).zip7, value: "-o -p"},
	"7za": {special: (*reader).zip7, value: "-o -p"},
	"7zz": {special: (*reader).zip7, value: "-o -p"},
	"ar":  {skip: 1, does: first}, "ranlib": {does: files}, "ouch": {does: opaque},
	"gcc":     compiler,
	"g++":     compiler,
	"cc":      compiler,
	"c++":     compiler,
	"clang":   compiler,
	"clang++": compiler,
	"ld":      compiler,
	"rustc": {
		output: "-o", folder: "--out-dir", value: "-C -L -l --crate-type --crate-name --edition --target --extern",
		does: around,
	},
	"javac": {folder: "-d", value: "-cp -classpath", whole: true, does: around},
	"tsc": {
		value: "-p -t -m --project --target --module --outDir --outFile", never: "--noEmit -v -h --showConfig",
		special: (*reader).tsc,
	},
	"esbuild": {output: "--outfile", folder: "--outdir"}, "protoc": {does: opaque}, "sass": {does: last},
}

var compiler = program{
	value:   "-I -L -l -D -U -x -std -include -isystem -T -MF",
	output:  "-o -MF",
	never:   "-fsyntax-only -E -M -MM",
	whole:   true,
	special: (*reader).compile,
}

var compressor = program{
	value:   "-S -T -b -o",
	output:  "-o",
	never:   "-c --stdout --to-stdout -l --list -t --test -V -h",
	special: (*reader).compressed,
}

const tarValues = "-f -C -X -T -b -H -g -I -K -V -N --file --directory --exclude --exclude-from --files-from " +
	"--transform --strip-components --owner --group --mode --mtime --use-compress-program --format --xform"

var tar = program{value: tarValues, special: (*reader).tar}
