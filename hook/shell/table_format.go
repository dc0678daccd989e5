package shell

// formatters rewrite files in place: always, or with one of these options.
var formatters = map[string]program{
	// Go.
	"gofmt":     {whole: true, value: "-r -cpuprofile", only: "-w", does: paths},
	"gofumpt":   {whole: true, value: "-lang -modpath", only: "-w", never: "-version", does: paths},
	"goimports": {whole: true, value: "-local -srcdir", only: "-w", does: paths},
	"gci": {
		does: reads,
		subs: map[string]program{"write": {value: "-s --section", does: paths}, "print": {}, "diff": {}, "list": {}},
	},
	"golines": {
		value: "-m -t --max-len --tab-len --base-formatter", only: "-w --write-output", never: "--dry-run",
		does: paths,
	},
	"golangci-lint": {does: reads, subs: map[string]program{
		"run":     {value: "-c -E -D --config --enable --disable --timeout", only: "--fix", bare: true, does: large},
		"fmt":     {value: "-c -E --config --enable", never: "-d --diff", bare: true, does: large},
		"linters": {},
		"version": {},
		"cache":   {},
	}},
	"gomodifytags": {whole: true, value: "-file -add-tags -line -struct", only: "-w", does: opaque},
	"gorename":     {whole: true, does: around}, "misspell": {whole: true, only: "-w", does: paths},
	"modernize":  {whole: true, only: "-fix", does: large},
	"addlicense": {whole: true, never: "-check", value: "-c -l -y -f", does: large},

	// Python.
	"black": {
		value: "-c -t -l -W --code --target-version --line-length --include --exclude --extend-exclude " +
			"--force-exclude --config --workers --required-version --stdin-filename --line-ranges",
		never: "--check --diff -h -c --code", does: paths,
	},
	"blue": {value: "-l -t --line-length", never: "--check --diff", does: paths},
	"isort": {
		value: "-l -p -o -s -m --line-length --profile --settings-path --settings-file --skip --project --src",
		never: "-c --check --check-only --diff -d --stdout --show-config --show-files -h", does: paths,
	},
	"ruff": {value: "--config", does: opaque, subs: map[string]program{
		"format": {
			value: "--config --line-length --target-version --exclude --stdin-filename --range --cache-dir " +
				"--extension",
			never: "--check --diff -h", bare: true, does: paths,
		},
		"check": {
			value: "--config --select --ignore --extend-select --exclude --output-format --target-version " +
				"--line-length",
			only:   "--fix --fix-only --add-noqa",
			output: "-o --output-file",
			never:  "--diff -h --no-fix",
			bare:   true,
			does:   paths,
		},
		"rule": {}, "config": {}, "linter": {}, "clean": {}, "version": {}, "server": {}, "analyze": {},
	}},
	"autopep8": {
		value: "-j -p -a --max-line-length --select --ignore --exclude", only: "-i --in-place", never: "-d --diff",
		does: paths,
	},
	"yapf": {
		value: "-l -e --style --lines --exclude", only: "-i --in-place", never: "-d --diff -q --quiet", does: paths,
	},
	"autoflake": {
		value: "-j --imports --exclude --config", only: "-i --in-place", never: "-c --check --check-diff",
		does: paths,
	},
	"pyupgrade":              {does: paths},
	"docformatter":           {value: "-j --wrap-summaries", only: "-i --in-place", never: "-c --check", does: paths},
	"usort":                  {does: reads, subs: map[string]program{"format": {does: paths}, "check": {}, "diff": {}}},
	"ufmt":                   {does: reads, subs: map[string]program{"format": {does: paths}, "check": {}, "diff": {}}},
	"2to3":                   {value: "-f -x -j --fix", only: "-w --write", does: paths},
	"futurize":               {only: "-w --write", does: paths},
	"reorder-python-imports": {does: paths}, "djlint": {only: "--reformat", never: "--check", does: paths},
	"sqlfluff": {
		does: reads,
		subs: map[string]program{
			"fix":    {value: "--dialect -r --rules", bare: true, does: paths},
			"format": {value: "--dialect", bare: true, does: paths}, "lint": {}, "parse": {},
		},
	},
	"sqlfmt":   {never: "--check --diff", does: paths},
	"mdformat": {value: "--wrap --exclude", never: "--check", does: paths},
	"pre-commit": {does: opaque, subs: map[string]program{
		"run":             {bare: true, does: whole},
		"install":         {},
		"uninstall":       {},
		"autoupdate":      {touches: ".pre-commit-config.yaml"},
		"clean":           {},
		"validate-config": {}, "sample-config": {}, "gc": {},
	}},
	"snakefmt":     {never: "--check --diff", does: paths},
	"cmake-format": {only: "-i --in-place", value: "-c", output: "-o", does: paths},
	"gersemi":      {only: "-i --in-place", does: paths},
	"codespell":    {value: "-S -L -I --skip --ignore-words", only: "-w --write-changes", bare: true, does: paths},
	"typos":        {value: "--config --exclude", only: "-w --write-changes", never: "--diff", bare: true, does: paths},

	// JavaScript and the web.
	"prettier": {
		value: "--config --ignore-path --plugin --parser --print-width --tab-width --log-level --loglevel " +
			"--stdin-filepath",
		only: "-w --write", never: "--find-config-path --file-info --support-info -h", does: paths,
	},
	"prettierd": {}, "eslint_d": eslint, "eslint": eslint,
	"biome": {does: reads, subs: map[string]program{
		"format":  {only: "--write --fix", value: "--config-path --stdin-file-path", bare: true, does: paths},
		"lint":    {only: "--write --fix --apply --apply-unsafe", value: "--config-path", bare: true, does: paths},
		"check":   {only: "--write --fix --apply --apply-unsafe", value: "--config-path", bare: true, does: paths},
		"migrate": {only: "--write", touches: "biome.json"},
		"init":    {touches: "biome.json"},
		"ci":      {},
		"rage":    {},
		"explain": {},
	}},
	"rome": {
		does: reads,
		subs: map[string]program{"format": {only: "--write", does: paths}, "check": {only: "--apply", does: paths}},
	},
	"dprint": {
		does: reads,
		subs: map[string]program{
			"fmt": {bare: true, value: "-c --config", never: "--diff", does: paths}, "check": {},
			"output-file-paths": {},
		},
	},
	"stylelint": {
		value: "--config -c --custom-syntax -f --formatter", output: "-o --output-file", only: "--fix", does: paths,
	},
	"tslint": {
		value: "-c -p -t --config --project --format", output: "-o --out", only: "--fix", bare: true, does: paths,
	},
	"standard": {only: "--fix", bare: true, does: paths}, "xo": {only: "--fix", bare: true, does: paths},
	"oxlint": {
		value: "-c -A -D -W --config", only: "--fix --fix-suggestions --fix-dangerously", bare: true, does: paths,
	},
	"oxfmt":             {never: "--check --list-different", value: "-c --config", bare: true, does: paths},
	"js-beautify":       {value: "-s -f --file", only: "-r --replace", output: "-o --outfile", does: paths},
	"tsfmt":             {only: "-r --replace", does: paths},
	"lint-staged":       {does: whole},
	"sort-package-json": {never: "--check -c", touches: "package.json"},
	"markdownlint":      {value: "-c -i --config --ignore", only: "-f --fix", output: "-o --output", does: paths},
	"markdownlint-cli2": {only: "--fix", bare: true, does: large},
	"htmlbeautifier":    {does: paths},
	"textlint":          {only: "--fix", does: paths},
	"remark":            {only: "-o --output", does: paths}, "svgo": {does: opaque},
	"npm-check-updates": {only: "-u --upgrade", touches: "package.json"},
	"ncu":               {only: "-u --upgrade", touches: "package.json"},

	// C, Rust, JVM and others.
	"clang-format": {
		value: "--style -style --lines --assume-filename --fallback-style",
		only:  "-i",
		never: "-n --dry-run",
		does:  paths,
	},
	"clang-tidy": {
		value: "-p --checks --config", only: "-fix --fix --fix-errors -fix-errors", whole: true, does: paths,
	},
	"clang-apply-replacements": {does: large},
	"astyle":                   {never: "--dry-run -Z", does: paths},
	"uncrustify":               {value: "-c -l -f", only: "--replace --no-backup", does: paths},
	"indent":                   {output: "-o", whole: true, does: files},
	"rustfmt":                  {value: "--edition --config --config-path --emit", never: "--check -h -V", does: paths},
	"leptosfmt":                {never: "--check -s --stdin", does: paths},
	"taplo": {
		does: reads,
		subs: map[string]program{
			"fmt":    {never: "--check --diff", bare: true, value: "-c -o --option", does: paths},
			"format": {never: "--check --diff", bare: true, does: paths}, "lint": {}, "get": {},
		},
	},
	"google-java-format":   {only: "-i -r --replace", does: paths},
	"ktlint":               {only: "-F --format", bare: true, does: paths},
	"ktfmt":                {never: "-n --dry-run", does: paths},
	"scalafmt":             {value: "-c --config", never: "--check --test --stdout --list", bare: true, does: paths},
	"palantir-java-format": {only: "-i --replace", does: paths},
	"scalafix":             {never: "--check --test", bare: true, does: paths},
	"terraform":            terraform, "tofu": terraform,
	"terragrunt": {
		does: opaque,
		subs: map[string]program{
			"hclfmt": {never: "--check --terragrunt-check --diff", bare: true, does: large},
			"hcl":    {bare: true, does: large}, "plan": {}, "output": {}, "validate": {},
		},
	},
	"packer": {
		does: opaque,
		subs: map[string]program{
			"fmt": {whole: true, never: "-check", bare: true, does: paths}, "validate": {}, "inspect": {},
		},
	},
	"shfmt":    {value: "-i -ln -filename --indent", whole: true, only: "-w -write", never: "-d", does: paths},
	"beautysh": {never: "-c --check", value: "-i", does: paths}, "rubocop": {
		value:  "-c -f --config --format --only --except",
		output: "-o --out",
		only:   "-a -A -x --autocorrect --autocorrect-all --fix-layout --auto-correct",
		bare:   true, does: paths,
	},
	"standardrb": {only: "--fix --fix-unsafely", bare: true, does: paths}, "rufo": {never: "-c --check", does: paths},
	"php-cs-fixer": {
		does: reads,
		subs: map[string]program{
			"fix": {value: "--rules --config", never: "--dry-run", bare: true, does: paths}, "check": {},
			"list-files": {},
		},
	},
	"phpcbf": {value: "--standard", bare: true, does: paths},
	"pint":   {never: "--test", bare: true, does: paths},
	"phpcs":  {},
	"rector": {
		does: reads,
		subs: map[string]program{"process": {never: "-n --dry-run", bare: true, does: large}, "list": {}},
	},
	"swiftformat": {value: "--config --rules --swiftversion", never: "--lint --dryrun", does: paths},
	"swiftlint": {
		only: "--fix --autocorrect", bare: true, does: large,
		subs: map[string]program{
			"lint": {only: "--fix", bare: true, does: paths}, "autocorrect": {bare: true, does: large}, "rules": {},
		},
	},
	"swift-format": {only: "-i --in-place", bare: true, does: paths},
	"dart": {does: opaque, subs: map[string]program{
		"format": {
			value: "-o -l --output --line-length", never: "--set-exit-if-changed-only", special: (*reader).dartFormat,
		},
		"fix":       {only: "--apply", never: "-n --dry-run", bare: true, does: large},
		"analyze":   {},
		"test":      {},
		"info":      {},
		"--version": {},
	}},
	"flutter": {
		does: opaque,
		subs: map[string]program{
			"format": {never: "-n --dry-run", does: paths}, "analyze": {}, "test": {}, "doctor": {}, "devices": {},
		},
	},
	"dotnet": {does: opaque, subs: map[string]program{
		"format":    {value: "--include --exclude --severity", never: "--verify-no-changes", bare: true, does: large},
		"test":      {},
		"--info":    {},
		"csharpier": {bare: true, never: "--check", does: large},
	}},
	"csharpier": {never: "--check", does: paths},
	"zig": {does: opaque, subs: map[string]program{
		"fmt": {never: "--check", does: paths}, "version": {}, "env": {},
	}},
	"nixfmt":      {never: "-c --check", does: paths},
	"alejandra":   {never: "-c --check", does: paths},
	"nixpkgs-fmt": {never: "--check", does: paths},
	"buf": {
		does: reads,
		subs: map[string]program{
			"format": {only: "-w --write", bare: true, does: large}, "generate": {does: large}, "lint": {},
			"breaking": {}, "build": {},
		},
	},
	"buildifier": {whole: true, value: "-lint -type", never: "-mode=check -mode=diff", does: paths},
	"gn": {
		does: opaque, subs: map[string]program{"format": {never: "--dry-run", does: paths}, "desc": {}, "args": {}},
	},
	"mix": {
		does: opaque,
		subs: map[string]program{
			"format": {never: "--check-formatted --dry-run", bare: true, does: large}, "test": {}, "deps": {},
			"help": {},
		},
	},
	"ormolu":          {value: "-m --mode", only: "-i -m --mode", never: "-c", does: paths},
	"fourmolu":        {value: "-m --mode", only: "-i -m --mode", does: paths},
	"stylish-haskell": {only: "-i --inplace", does: paths},
	"brittany":        {value: "--write-mode", only: "--write-mode", does: paths},
	"hlint":           {only: "--refactor", does: paths},
	"elm-format":      {never: "--validate", does: paths},
	"purs-tidy":       {does: reads, subs: map[string]program{"format-in-place": {does: large}, "check": {}}},
	"stylua":          {never: "-c --check", value: "-f --config-path", does: paths},
	"lua-format":      {only: "-i --in-place", does: paths},
	"perltidy":        {only: "-b", value: "-pro", output: "-o", whole: true, does: files},
	"latexindent":     {only: "-w -wd", whole: true, does: files},
	"bibtex-tidy":     {only: "-m --modify", does: paths},
	"typstyle":        {only: "-i --inplace", does: paths},
	"fprettify":       {never: "-d --diff -s --stdout", does: paths},
	"fish_indent":     {only: "-w --write", does: paths},
	"tidy":            {only: "-m -modify", whole: true, does: files},
	"pg_format":       {only: "-i --inplace", output: "-o --output", does: paths},
	"cljfmt":          {does: reads, subs: map[string]program{"fix": {bare: true, does: large}, "check": {}}},
	"zprint":          {only: "-w -fw", whole: true, does: files},
	"nimpretty":       {does: files},
	"crystal": {
		does: opaque,
		subs: map[string]program{
			"tool": {does: reads, subs: map[string]program{"format": {never: "--check", bare: true, does: paths}}},
			"spec": {},
		},
	},
	"dos2unix":    {value: "-c", never: "-i --info", does: files},
	"unix2dos":    {value: "-c", never: "-i --info", does: files},
	"mac2unix":    {does: files},
	"treefmt":     {never: "--fail-on-change-only", bare: true, does: large},
	"keep-sorted": {never: "--mode=lint", does: files},
	"msgmerge":    {only: "-U --update", output: "-o --output-file", does: first},
	"lefthook":    {does: whole},
	"husky":       {},
	"gopls": {
		does: reads,
		subs: map[string]program{
			"format":  {only: "-w -write", whole: true, does: paths},
			"rename":  {only: "-w -write", whole: true, does: around},
			"imports": {only: "-w", whole: true, does: paths}, "check": {},
		},
	},
}

var eslint = program{
	value: "-c --config --ext --rulesdir --plugin --rule --parser --ignore-path --ignore-pattern -f --format " +
		"--max-warnings --cache-location",
	output: "-o --output-file",
	only:   "--fix --fix-type",
	never:  "--fix-dry-run --print-config -h",
	bare:   true,
	does:   paths,
}

var terraform = program{
	whole: true, chdir: "-chdir", never: "-version -help", does: opaque,
	subs: map[string]program{
		"fmt":       {whole: true, never: "-check -write=false", bare: true, does: paths},
		"plan":      {whole: true, output: "-out", value: "-var -var-file"},
		"validate":  {},
		"show":      {},
		"output":    {},
		"state":     {},
		"providers": {},
		"version":   {},
		"graph":     {},
		"console":   {},
		"get":       {},
		"workspace": {},
	},
}
