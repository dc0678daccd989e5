package main

import (
	"bytes"
	"fmt"
	"slices"
	"time"
)

// The plot has a panel for each strategy, one below the other, on the same scales: from
// left to right the time since the starts, upwards the requests in each bin.
const (
	plotWidth   = 800
	panelHeight = 150
	leftMargin  = 60
	rightMargin = 20
	headHeight  = 34 // of a panel's title
	footHeight  = 44 // below the last panel, for the time
)

func draw(all []*result, budget time.Duration) []byte {
	most := 1
	for _, r := range all {
		most = max(most, slices.Max(r.bins(budget)))
	}
	height := len(all)*(panelHeight+headHeight) + footHeight
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12">`+
		"\n",
		plotWidth, height, plotWidth, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", plotWidth, height)
	width := float64(plotWidth - leftMargin - rightMargin)
	for i, r := range all {
		bottom := float64((i+1)*(panelHeight+headHeight)) - 4
		y := func(n int) float64 { return bottom - float64(n)/float64(most)*panelHeight }
		fmt.Fprintf(
			&b, `<text x="%d" y="%.0f" font-weight="bold" fill="#222">%s</text>`+"\n", leftMargin, bottom-panelHeight-10,
			r.name,
		)
		fmt.Fprintf(&b, `<text x="%d" y="%.0f" text-anchor="end" fill="#444">%d requests, %d of %d started</text>`+"\n",
			plotWidth-rightMargin, bottom-panelHeight-10, len(r.sent), len(r.waits), len(r.waits)+r.gaveUp)
		for _, n := range []int{0, most / 2, most} {
			fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end" fill="#444">%d</text>`+
				"\n",
				leftMargin, y(n), plotWidth-rightMargin, leftMargin-6, y(n)+4, n)
		}
		counts := r.bins(budget)
		step := width / float64(len(counts))
		b.WriteString(`<path shape-rendering="crispEdges" fill="#2a6f97" d="`)
		for j, n := range counts {
			if n > 0 {
				fmt.Fprintf(&b, "M%.2f %.1fV%.1fh%.2fV%.1fz", leftMargin+float64(j)*step, bottom, y(n), step, bottom)
			}
		}
		b.WriteString(`"/>` + "\n")
	}
	bottom := height - footHeight
	for at := time.Duration(0); at <= budget; at += budget / 4 {
		x := leftMargin + width*float64(at)/float64(budget+bin)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle" fill="#444">%s</text>`+"\n", x, bottom+16, at)
	}
	fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle" fill="#444">time since the starts; a bar is the requests of %s</text>`+
		"\n",
		leftMargin+width/2, bottom+36, bin)
	b.WriteString("</svg>\n")
	return b.Bytes()
}
