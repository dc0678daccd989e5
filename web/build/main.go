package main

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// aliases are the files behind the names that the sources import.
var aliases = map[string]string{
	"preact":               "vendor/preact/preact.mjs",
	"preact/hooks":         "vendor/preact/hooks.mjs",
	"@preact/signals":      "vendor/signals/signals.mjs",
	"@preact/signals-core": "vendor/signals-core/signals-core.mjs",
	"@dagrejs/dagre":       "vendor/dagre/dagre.esm.js",
}

// page is index.html, with the names of the script and the style.
const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark">
<title>Interlock</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/ui/%s">
<script type="module" src="/ui/%s"></script>
</head>
<body><div id="app"><noscript>The dashboard needs JavaScript. The same answers: /openapi.json</noscript></div></body>
</html>
`

func main() {
	check := flag.Bool("check", false, "write nothing, and fail if web/dist is stale")
	flag.Parse()
	if err := run("..", *check); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	files, err := bundle(root)
	if err != nil {
		return err
	}
	dist := filepath.Join(root, "dist")
	if check {
		return compare(dist, files)
	}
	if err := os.RemoveAll(dist); err != nil {
		return err
	}
	if err := os.MkdirAll(dist, 0o755); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dist, name), content, 0o644); err != nil {
			return err
		}
		fmt.Printf("web/dist/%s: %d bytes\n", name, len(content))
	}
	return nil
}

// bundle returns the files of web/dist by their names.
func bundle(root string) (map[string][]byte, error) {
	absolute, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	where := map[string]string{}
	for name, file := range aliases {
		where[name] = filepath.Join(absolute, file)
	}
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: absolute, EntryPoints: []string{"app/main.jsx", "app/style.css"}, Outdir: "dist",
		EntryNames: "[name]-[hash]", Bundle: true, Alias: where,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
		Format: api.FormatESModule, Target: api.ES2022, LegalComments: api.LegalCommentsEndOfFile,
		JSX: api.JSXTransform, JSXFactory: "h", JSXFragment: "Fragment", Charset: api.CharsetUTF8,
	})
	if len(result.Errors) > 0 {
		text := api.FormatMessages(result.Errors, api.FormatMessagesOptions{Kind: api.ErrorMessage})
		return nil, fmt.Errorf("esbuild: %s", strings.Join(text, "\n"))
	}
	files := map[string][]byte{}
	var script, style string
	for _, f := range result.OutputFiles {
		name := path.Base(filepath.ToSlash(f.Path))
		if files[name] = f.Contents; path.Ext(name) == ".css" {
			style = name
		} else {
			script = name
		}
	}
	files["index.html"] = fmt.Appendf(nil, page, style, script)
	return files, nil
}

// hashed is the name of an asset.
var hashed = regexp.MustCompile(`^[a-z]+-[A-Z0-9]{8}\.(js|css)$`)

// compare fails unless a folder has these files and no others.
func compare(dist string, files map[string][]byte) error {
	entries, err := os.ReadDir(dist)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, ok := files[e.Name()]; !ok {
			return fmt.Errorf("web/dist/%s is stale: run go -C web/build run .", e.Name())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name != "index.html" && !hashed.MatchString(name) {
			return fmt.Errorf("%s: want a name with a hash", name)
		}
		old, err := os.ReadFile(filepath.Join(dist, name))
		if err != nil || !bytes.Equal(old, files[name]) {
			return fmt.Errorf("web/dist/%s is not what the sources make: run go -C web/build run .", name)
		}
	}
	return nil
}
