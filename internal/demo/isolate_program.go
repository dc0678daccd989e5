package demo

import (
	"fmt"
	"regexp"
	"strings"
)

// isolateTask is what one agent of the isolate scene wants of the program.
type isolateTask struct {
	agent, purpose string
	// do makes the change in a program as it is now. Doing it again changes nothing.
	do func(program)
	// done reports whether a program has the change.
	done func(program) bool
}

// firstProgram is the program that all agents change: fees and orders, and routes by area.
func firstProgram() program {
	p := program{
		"fee.go": "package shop\n\nconst feePercent = 2\n\n// The late fee of an amount in cents.\n" +
			"func fee(cents int) int { return cents * feePercent / 100 }\n",
		"order.go":   "package shop\n\nfunc total(cents int) int { return cents + fee(cents) }\n",
		"invoice.go": "package shop\n\nfunc invoice(cents int) int { return fee(cents) }\n",
	}
	for _, area := range areas {
		p[routesOf(area)] = fmt.Sprintf("package shop\n\nvar %sRoutes = map[string]func(int) int{\n}\n", area)
	}
	return p
}

// areas have a file of routes each, to which two agents add one: their lines collide.
var areas = []string{"shop", "stock", "staff", "press"}

func routesOf(area string) string { return "routes_" + area + ".go" }

// isolateTasks are the tasks of the twenty agents, in the order in which they begin.
func isolateTasks() []isolateTask {
	var tasks []isolateTask
	add := func(purpose string, do func(program), done func(program) bool) {
		tasks = append(tasks, isolateTask{fmt.Sprintf("agent-%02d", len(tasks)+1), purpose, do, done})
	}
	handler := func(name string) string { return "package shop\n\nfunc " + name + "(cents int) int { return cents }\n" }
	add("rename fee to lateFee", func(p program) {
		for name, text := range p {
			p[name] = feeWord.ReplaceAllString(text, "lateFee(")
		}
	}, func(p program) bool { return p.has("func lateFee(") && !p.has("func fee(") })
	for i, name := range []string{"reminder", "warning"} {
		file := name + ".go"
		add("add a "+name+" that charges the fee", func(p program) {
			p[file] = fmt.Sprintf("package shop\n\nfunc %s(cents int) int { return %d * %s(cents) }\n", name, i+1, p.feeName())
		}, func(p program) bool { return strings.Contains(p[file], "func "+name) })
	}
	add("round the fee", func(p program) {
		p["fee.go"] = strings.Replace(p["fee.go"], "cents * feePercent / 100", "(cents*feePercent + 50) / 100", 1)
	}, func(p program) bool { return strings.Contains(p["fee.go"], "+ 50") })
	for i, name := range features[:2*len(areas)] {
		area := areas[i/2]
		file, route := routesOf(area), fmt.Sprintf("\t%q: %s,\n", "/"+name, name)
		add("add the route /"+name, func(p program) {
			p[name+".go"] = handler(name)
			if !strings.Contains(p[file], route) {
				p[file] = strings.TrimSuffix(p[file], "}\n") + route + "}\n"
			}
		}, func(p program) bool { return strings.Contains(p[file], route) && p[name+".go"] != "" })
	}
	for _, name := range []string{"audit", "backup", "calendar", "digest", "email", "forecast", "graph", "history"} {
		add("add "+name, func(p program) { p[name+".go"] = handler(name) }, func(p program) bool {
			return strings.Contains(p[name+".go"], "func "+name)
		})
	}
	return tasks
}

var feeWord = regexp.MustCompile(`\bfee\(`)

// feeName is the name that the fee has in a program now.
func (p program) feeName() string {
	if p.has("func lateFee(") {
		return "lateFee"
	}
	return "fee"
}

// has reports whether any file has a text.
func (p program) has(text string) bool {
	for _, t := range p {
		if strings.Contains(t, text) {
			return true
		}
	}
	return false
}
