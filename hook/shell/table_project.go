package shell

// projects are package managers, builds and languages: scripts of the project are known by their names only.
var projects = map[string]program{
	"npm": {
		chdir: "--prefix -C", value: "-w --workspace --registry --loglevel", does: reads,
		subs: npmVerbs("package.json package-lock.json", (*reader).oneScript),
	},
	"pnpm": {
		chdir: "-C --dir", value: "-F --filter", special: (*reader).runScript, first: true,
		subs: npmVerbs("package.json pnpm-lock.yaml", (*reader).runScript),
	},
	"yarn": {
		chdir: "--cwd", special: (*reader).runScript, first: true,
		subs: npmVerbs("package.json yarn.lock", (*reader).runScript),
	},
	"bun": {
		chdir: "--cwd", special: (*reader).runScript, first: true,
		subs: npmVerbs("package.json bun.lock", (*reader).runScript),
	},
	"npx": toolRunner, "bunx": toolRunner, "pnpx": toolRunner, "uvx": toolRunner,
	"make":  maker,
	"gmake": maker,
	"just": {
		value: "-f -d --justfile --working-directory", never: "-n --dry-run -l --list --summary --show",
		special: (*reader).script,
	},
	"task":    {value: "-t -d --taskfile --dir", never: "-n --dry -l --list --list-all", special: (*reader).script},
	"rake":    {never: "-n --dry-run -T", special: (*reader).script},
	"ninja":   {value: "-C -f -j", never: "-n", special: (*reader).script},
	"cmake":   {does: opaque},
	"ctest":   {does: reads},
	"meson":   {does: opaque},
	"gradle":  gradle,
	"gradlew": gradle,
	"mvn":     gradle,
	"mvnw":    gradle,
	"sbt":     gradle,
	"bazel":   {does: opaque, subs: map[string]program{"query": {}, "info": {}, "test": {}, "version": {}}},
	"nx": {
		value: "-c", does: opaque,
		subs: map[string]program{
			"format:write": {does: whole}, "format": {does: whole}, "format:check": {}, "graph": {}, "show": {},
			"test": {does: opaque},
		},
	},
	"turbo": {
		special: (*reader).oneScript, first: true,
		subs: map[string]program{"run": {special: (*reader).oneScript, first: true}},
	},
	"lerna":   {does: opaque},
	"rush":    {does: opaque},
	"vite":    {does: opaque},
	"webpack": {does: opaque},
	"next":    {does: opaque},
	"jest": {
		value: "-c -t --config --testNamePattern", only: "-u --updateSnapshot --init", bare: true, does: large,
	},
	"vitest":     {only: "-u --update", bare: true, does: large},
	"mocha":      {},
	"ava":        {only: "-u --update-snapshots", bare: true, does: large},
	"playwright": {does: opaque},
	"cypress":    {does: opaque},
	"tap":        {},
	"pytest": {
		value: "-k -m -c -p -n -o --rootdir", output: "--junitxml --junit-xml",
		only: "--snapshot-update --inline-snapshot", bare: true, does: large,
	},
	"tox":      {does: opaque},
	"nox":      {does: opaque},
	"coverage": {},
	"unittest": {},
	"phpunit":  {},
	"rspec":    {},
	"bats":     {},
	"busted":   {},
	"go": {chdir: "-C", whole: true, does: opaque, subs: map[string]program{
		"fmt":       {whole: true, value: "-mod", never: "-n", bare: true, does: paths},
		"fix":       {bare: true, does: paths},
		"build":     goBuild,
		"test":      goBuild,
		"install":   goBuild,
		"vet":       {whole: true, only: "-fix", bare: true, does: paths},
		"list":      {},
		"env":       {},
		"version":   {},
		"doc":       {},
		"clean":     {},
		"tool":      {does: opaque},
		"telemetry": {},
		"bug":       {},
		"get":       {touches: "go.mod go.sum"},
		"run":       {does: opaque},
		"generate":  {never: "-n", whole: true, does: large},
		"work":      {touches: "go.work go.work.sum"},
		"mod": {does: reads, subs: map[string]program{
			"tidy":   {never: "-diff", whole: true, touches: "go.mod go.sum"},
			"edit":   {never: "-print -json", whole: true, touches: "go.mod"},
			"init":   {touches: "go.mod"},
			"vendor": {does: around}, "download": {}, "graph": {}, "verify": {}, "why": {},
		}},
	}},
	"cargo": {value: "--config -Z --color", chdir: "-C", does: opaque, subs: map[string]program{
		"fmt":               {special: (*reader).cargoFmt},
		"fix":               {does: whole},
		"clippy":            {only: "--fix", does: whole},
		"build":             {},
		"b":                 {},
		"check":             {},
		"c":                 {},
		"test":              {},
		"t":                 {},
		"nextest":           {},
		"doc":               {},
		"tree":              {},
		"metadata":          {},
		"search":            {},
		"clean":             {},
		"bench":             {},
		"audit":             {},
		"deny":              {},
		"outdated":          {},
		"version":           {},
		"locate-project":    {},
		"verify-project":    {},
		"add":               {never: "-n --dry-run", touches: "Cargo.toml Cargo.lock"},
		"remove":            {never: "-n --dry-run", touches: "Cargo.toml Cargo.lock"},
		"rm":                {touches: "Cargo.toml Cargo.lock"},
		"update":            {never: "-n --dry-run", touches: "Cargo.lock"},
		"generate-lockfile": {touches: "Cargo.lock"},
		"init":              {touches: "Cargo.toml"},
		"run":               {does: opaque},
		"r":                 {does: opaque},
		"install":           {},
		"insta":             {does: opaque}, "sort": {never: "-c --check", touches: "Cargo.toml"},
	}},
	"pip":  pip,
	"pip3": pip,
	"pipx": {
		does: reads,
		subs: map[string]program{"run": {first: true, special: (*reader).tool}, "install": {}, "list": {}},
	},
	"uv": {chdir: "--directory --project", does: opaque, subs: map[string]program{
		"run": {value: "-p --with --extra --group --python --package", first: true, special: (*reader).uvRun},
		"tool": {
			does: reads,
			subs: map[string]program{
				"run": {value: "--from --with", first: true, special: (*reader).tool}, "install": {}, "list": {},
			},
		},
		"add":     {touches: "pyproject.toml uv.lock"},
		"remove":  {touches: "pyproject.toml uv.lock"},
		"lock":    {never: "--check --locked --dry-run", touches: "uv.lock"},
		"sync":    {never: "--locked --frozen --dry-run", touches: "uv.lock"},
		"pip":     pip,
		"venv":    {},
		"python":  {},
		"tree":    {},
		"version": {},
		"cache":   {},
		"format":  {never: "--check --diff", bare: true, does: large},
	}},
	"poetry": {chdir: "-C --directory", does: opaque, subs: map[string]program{
		"run":     {first: true, special: (*reader).uvRun},
		"add":     {never: "--dry-run", touches: "pyproject.toml poetry.lock"},
		"remove":  {never: "--dry-run", touches: "pyproject.toml poetry.lock"},
		"update":  {never: "--dry-run", touches: "poetry.lock"},
		"lock":    {touches: "poetry.lock"},
		"install": {},
		"show":    {},
		"check":   {},
		"env":     {},
		"version": {touches: "pyproject.toml"},
		"build":   {},
		"shell":   {},
	}},
	"pdm": {
		does: opaque,
		subs: map[string]program{
			"run": {first: true, special: (*reader).uvRun}, "add": {touches: "pyproject.toml pdm.lock"},
			"install": {}, "list": {},
		},
	},
	"hatch": {
		does: opaque,
		subs: map[string]program{
			"run": {first: true, special: (*reader).uvRun}, "fmt": {never: "--check", bare: true, does: large},
			"test": {}, "version": {},
		},
	},
	"rye": {
		does: opaque,
		subs: map[string]program{
			"run": {first: true, special: (*reader).uvRun}, "fmt": {never: "--check", bare: true, does: large},
			"lint": {only: "--fix", bare: true, does: large}, "test": {}, "list": {},
		},
	},
	"pipenv": {
		does: opaque,
		subs: map[string]program{
			"run": {first: true, special: (*reader).uvRun}, "install": {touches: "Pipfile Pipfile.lock"}, "graph": {},
			"check": {},
		},
	},
	"conda": {
		does: reads,
		subs: map[string]program{
			"run": {value: "-n -p --name --prefix", first: true, special: (*reader).uvRun}, "install": {}, "list": {},
		},
	},
	"bundle": {
		does: opaque,
		subs: map[string]program{
			"exec": {first: true, special: (*reader).uvRun}, "install": {touches: "Gemfile.lock"},
			"update": {touches: "Gemfile.lock"}, "add": {touches: "Gemfile Gemfile.lock"}, "list": {}, "show": {},
			"outdated": {}, "info": {},
		},
	},
	"gem": {does: reads},
	"composer": {
		chdir: "-d --working-dir", does: opaque,
		subs: map[string]program{
			"require": {touches: "composer.json composer.lock"}, "remove": {touches: "composer.json composer.lock"},
			"update": {touches: "composer.lock"}, "install": {}, "show": {}, "validate": {}, "outdated": {},
			"exec": {first: true, special: (*reader).tool},
		},
	},
	"deno": {does: opaque, subs: map[string]program{
		"fmt":   {value: "-c --config --ext", never: "--check", bare: true, does: paths},
		"lint":  {only: "--fix", bare: true, does: paths},
		"check": {},
		"test":  {},
		"info":  {},
		"doc":   {},
		"bench": {},
		"types": {},
		"run":   {does: opaque}, "eval": {does: opaque}, "task": {first: true, special: (*reader).oneScript},
	}},
	"python": python, "python3": python, "python2": python, "py": python, "pypy3": python,
	"node":           {value: "-e -p -r --eval --print --require --import", first: true, special: (*reader).node},
	"nodejs":         {value: "-e -p -r", first: true, special: (*reader).node},
	"ts-node":        {does: opaque},
	"tsx":            {does: opaque},
	"php":            {never: "-l -v -i -m", does: opaque},
	"lua":            {never: "-v", does: opaque},
	"osascript":      {does: opaque},
	"Rscript":        {does: opaque},
	"julia":          {never: "-v", does: opaque},
	"java":           {never: "-version", whole: true, does: opaque},
	"pwsh":           {does: opaque},
	"powershell":     {does: opaque},
	"docker":         docker,
	"podman":         docker,
	"nerdctl":        docker,
	"docker-compose": {does: opaque, subs: dockerCompose},
	"vagrant":        {does: opaque},
	"apt":            {},
	"apt-get":        {},
	"apk":            {},
	"dnf":            {},
	"yum":            {},
	"brew":           {},
	"pacman":         {},
	"snap":           {},
	"dpkg":           {},
	"rpm":            {},
	"rustup":         {},
	"port":           {},
	"helm": {
		does: reads,
		subs: map[string]program{
			"create": {does: large}, "pull": {only: "--untar", does: around}, "package": {does: around},
			"template": {folder: "--output-dir", value: "-f --set"}, "lint": {}, "list": {},
		},
	},
	"ansible-playbook": {never: "--check -C --syntax-check --list-tasks", does: opaque},
	"alembic":          {does: opaque},
	"rails":            {does: opaque},
	"django-admin":     {does: opaque},
	"prisma": {
		does: opaque,
		subs: map[string]program{
			"format": {touches: "schema.prisma prisma/schema.prisma"}, "validate": {}, "studio": {},
		},
	},
}

var (
	docker = program{value: "-H --context", does: opaque, subs: map[string]program{
		"ps":      {},
		"images":  {},
		"logs":    {},
		"inspect": {},
		"pull":    {},
		"push":    {},
		"version": {},
		"info":    {},
		"stats":   {},
		"top":     {},
		"stop":    {},
		"start":   {},
		"kill":    {},
		"rm":      {},
		"rmi":     {},
		"network": {},
		"volume":  {},
		"build":   {},
		"tag":     {},
		"login":   {},
		"system":  {},
		"compose": {does: opaque, subs: dockerCompose},
		"cp":      {special: (*reader).remote},
		"run":     {does: opaque},
		"exec":    {does: opaque},
	}}
	dockerCompose = map[string]program{
		"ps": {}, "logs": {}, "config": {}, "pull": {}, "stop": {}, "down": {}, "top": {}, "images": {}, "build": {},
	}
	maker = program{
		value: "-f -I -j -l -o -W --file --makefile --jobs", maybe: "-j -l --jobs", chdir: "-C --directory",
		never: "-n --just-print --dry-run --recon -q --question -v", special: (*reader).script,
	}
	gradle     = program{value: "-p -b -c -f -pl -P", never: "-m --dry-run -v", special: (*reader).script}
	toolRunner = program{value: "-p --package --from --with -w --workspace", first: true, special: (*reader).tool}
	goBuild    = program{
		whole:  true,
		output: "-o -coverprofile -cpuprofile -memprofile -blockprofile -mutexprofile -trace -json-file",
		value: "-run -bench -count -timeout -tags -ldflags -mod -p -exec -benchtime -parallel -fuzz -fuzztime " +
			"-cover -coverpkg",
	}
	pip = program{
		does: reads,
		subs: map[string]program{
			"install": {}, "list": {}, "show": {}, "freeze": {}, "download": {folder: "-d --dest", value: "-r"},
			"check": {}, "compile": {output: "-o --output-file"}, "uninstall": {}, "config": {},
		},
	}
	python = program{value: "-c -m -W -X", ends: "-c -m", first: true, never: "-h", special: (*reader).python}
)

// npmVerbs are the commands of a package manager of JavaScript, with the files that adding a package changes. With run
// some run programs, too, and others scripts alone.
func npmVerbs(manifests string, run func(*reader, *arguments) stream) map[string]program {
	all := map[string]program{}
	for name := range words(`
		ls list why outdated view info show search audit-ci ping whoami pack publish login logout root bin
		prefix doctor config cache help-search explain fund token access owner licenses store team profile
		docs repo bugs ci
	`) {
		all[name] = program{}
	}
	adds := program{
		value: "-w --workspace --tag", never: "--dry-run --frozen-lockfile --immutable", touches: manifests,
	}
	for name := range words(`
		install i add update up upgrade uninstall remove rm un dedupe prune link unlink version init pkg
		set-version patch-commit
	`) {
		all[name] = adds
	}
	all["audit"] = program{subs: map[string]program{"fix": adds}}
	for name := range words("run run-script rum urn") {
		all[name] = program{first: true, special: run}
	}
	for name := range words("test t tst start stop restart build dev lint") {
		all[name] = program{does: opaque}
	}
	for name := range words("exec x dlx") {
		all[name] = toolRunner
	}
	return all
}
