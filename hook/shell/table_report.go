package shell

// reporters only read, but for the file that an option names, or the files that one has them mend.
var reporters = map[string]program{
	"mlr":   {whole: true, only: "-I", does: large},
	"tree":  {value: "-L -P -I -H -T --charset --filelimit --gitfile", output: "-o"},
	"sdiff": {value: "-I -w --width --diff-program", output: "-o --output"},
	"less":  {value: "-b -D -h -j -k -P -p -T -t -x -y -z", output: "-o -O --log-file --LOG-FILE"},
	"info":  {value: "-f -d -n -k --file --node", output: "-o --output"},
	"xsv":   {output: "-o --output"},
	"psql": {
		value:  "-c -f -d -h -p -U -v -F -P -R -T --command --file --dbname --host --port --username --set --variable",
		output: "-o -L --output --log-file",
	},
	"redis-cli": {value: "-h -p -a -n -u -i -r -s", output: "--rdb --functions-rdb"},
	"ab":        {value: "-n -c -t -p -T -H -C -A -P -X -m -s -u -v", output: "-e -g"},
	"vegeta":    {whole: true, output: "-output -o"},
	"pprof":     {whole: true, output: "-output"},
	"pv":        {value: "-L -s -N -i -w -H -B -R -d -F", output: "-o --output"},
	"cloc":      {output: "--out --report-file --counted --ignored --categorized --unicode"},
	"scc":       {value: "-f -i -x -s -M", output: "-o --output"},

	"mypy": {
		value: "-p -m -c --config-file --python-version --platform", output: "--junit-xml",
		folder: "--html-report --txt-report --xml-report --any-exprs-report --cobertura-xml-report --linecount-report " +
			"--linecoverage-report --lineprecision-report --xslt-html-report --xslt-txt-report",
	},
	"pylint":    {value: "-d -e -f -j --rcfile --disable --enable", output: "--output"},
	"flake8":    {value: "--max-line-length --select --ignore --exclude --config --format", output: "--output-file"},
	"bandit":    {value: "-c -f -t -s -b -n", output: "-o --output"},
	"pip-audit": {value: "-f -r -s", output: "-o --output", only: "--fix", does: around},
	"cppcheck":  {output: "--output-file", folder: "--cppcheck-build-dir", value: "-I -j -D --enable --suppress"},
	"gosec":     {whole: true, value: "-fmt -exclude -include -conf", output: "-out"},
	"jsonlint":  {value: "-t --indent -s", only: "-i --in-place", does: files},
	"tflint":    {value: "-c --config --filter --chdir -f --format", only: "--fix", bare: true, does: large},

	"kubectl": {value: "-n --namespace --context", does: reads, subs: copiesFromPods},
	"oc":      {value: "-n --namespace --context", does: reads, subs: copiesFromPods},
	"aws": {
		value: "--profile --region --output --endpoint-url", does: reads,
		subs: map[string]program{"s3": {does: reads, subs: map[string]program{
			"cp": {value: "--exclude --include", never: "--dryrun", special: (*reader).remote},
			"mv": {value: "--exclude --include", never: "--dryrun", special: (*reader).remote},
			"sync": {
				value: "--exclude --include", never: "--dryrun", special: (*reader).remote,
			},
			"ls": {}, "rm": {}, "mb": {}, "rb": {}, "presign": {},
		}}},
	},
	"sftp": {value: "-b -P -i -o -F", does: opaque}, "ftp": {does: opaque},
}

var copiesFromPods = map[string]program{"cp": {value: "-c --container --retries", special: (*reader).remote}}
