package memory

import (
	"fmt"
	"html"
	"strings"
)

// panel is one chart: lines of shares from 0 to 1 over something.
type panel struct {
	title, over string
	marks       []string // along it; the points of a line lie on the marks or evenly between the first and the last
	lines       []line
}

type line struct {
	name   string
	points []float64
}

// The colours of lines, told apart by people who see colours otherwise too.
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

const (
	panelWidth, panelHeight = 400, 190
	left, top               = 40, 30
	perRow                  = 2
)

// SVG draws what changed over updates, one panel for each system, and recall over
// claims; nothing where neither was measured.
func (r *Report) SVG() string {
	var ps []panel
	for _, l := range r.Long {
		p := panel{over: "updates of one value, every fifth correction in another spelling", marks: []string{"1", fmt.Sprint(len(l.Current))},
			lines: []line{{"current", l.Current}, {"stale", l.Stale}, {"flagged", l.Flagged}}}
		p.title = r.named(l.System, " (rule, emulated)")
		ps = append(ps, p)
	}
	p := panel{title: "recall on our conversations, together in one memory", over: "claims beside the turns"}
	for _, s := range r.Systems {
		session, turn := line{name: s.Name + ", session@5"}, line{name: s.Name + ", turn@10"}
		var marks []string
		for _, x := range r.Recall {
			if x.System == s.ID && x.Data == together {
				session.points, turn.points = append(session.points, x.Session5), append(turn.points, x.Turn10)
				marks = append(marks, fmt.Sprint(x.Claims))
			}
		}
		if marks != nil {
			p.marks, p.lines = marks, append(p.lines, session, turn)
		}
	}
	if p.lines != nil {
		ps = append(ps, p)
	}
	if ps == nil {
		return ""
	}
	var b strings.Builder
	rows := (len(ps) + perRow - 1) / perRow
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		perRow*(panelWidth+2*left), rows*(panelHeight+4*top))
	for i, p := range ps {
		fmt.Fprintf(&b, "<g transform=\"translate(%d %d)\">\n", left+i%perRow*(panelWidth+2*left), top+i/perRow*(panelHeight+4*top))
		p.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (p *panel) draw(b *strings.Builder) {
	text := func(x, y int, anchor, s string) {
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, html.EscapeString(s))
	}
	text(0, -10, "start", p.title)
	for k := range 5 {
		y := panelHeight - k*panelHeight/4
		fmt.Fprintf(b, "<path d=\"M0 %dH%d\" stroke=\"#ddd\"/>\n", y, panelWidth)
		text(-6, y+4, "end", fmt.Sprintf("%.2f", float64(k)/4))
	}
	for k, m := range p.marks {
		text(k*panelWidth/max(1, len(p.marks)-1), panelHeight+14, "middle", m)
	}
	text(panelWidth/2, panelHeight+28, "middle", p.over)
	for k, l := range p.lines {
		colour := colours[k%len(colours)]
		fmt.Fprintf(b, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"", colour)
		for i, v := range l.points {
			// In tenths of a pixel, as whole numbers: the same on every machine.
			x, y := 10*panelWidth*i/max(1, len(l.points)-1), 10*panelHeight-int(float64(v*10*panelHeight)+0.5)
			fmt.Fprintf(b, "%d.%d,%d.%d ", x/10, x%10, y/10, y%10)
		}
		b.WriteString("\"/>\n")
		at := k * panelWidth / len(p.lines)
		fmt.Fprintf(b, "<path d=\"M%d %dh14\" stroke=\"%s\" stroke-width=\"3\"/>\n", at, panelHeight+42, colour)
		text(at+18, panelHeight+46, "start", l.name)
	}
}
