package console

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/cli"
)

// Policy is the policy that is in force: one text, with what was kept from answers behind it.
type Policy struct {
	File     string // "" for the built-in example's
	Digest   string
	Source   []byte
	Findings []Finding
	Kept     []Kept
	Differs  string         // how its file is otherwise than what is in force, "" where it is the same
	Unlike   []cli.DiffLine // the lines by which it is
	Disk     []byte         // what stands in it then
	Takes    []string       // the lines of a terminal that take back what was kept, and put that in force
}

// Finding is what lint, or a server that is there, has to say of a line.
type Finding struct {
	Line int // from 1
	Text string
}

// Kept is what a person allowed from now on, in words.
type Kept struct {
	Words, By, At string
	Taken         bool // back in the file, and counts still
}

// Bounds of one page of a policy, whose text has maxDrawn bytes of it at most.
const (
	maxPolicyLines = 1000
	maxLine        = 2000
	maxKept        = 200
)

type policyPage struct {
	Policy
	Lines          []policyLine
	From, All      int
	Earlier, Later string
	MoreFindings   int
	MoreKept       int
	Unlike         []diffLine
	MoreUnlike     int
}

type policyLine struct {
	N        int
	Text     string
	Findings []string
}

// policyAt is where a line of the policy is shown.
func policyAt(line int) string { return fmt.Sprintf("/policy?at=%d#L%[1]d", line) }

// policy shows a part of the text in force, each finding beside its line.
func (c *Console) policy(x *request) error {
	from, err := x.place("from")
	if err != nil {
		return err
	}
	at, err := x.place("at")
	if err != nil {
		return err
	}
	leave, err := c.health.await(x)
	if err != nil {
		return err
	}
	defer leave()
	in, err := c.o.Policy(x.Context())
	if err != nil {
		return err
	}
	p := policyPage{Policy: *in, All: bytes.Count(bytes.TrimRight(in.Source, "\n"), []byte("\n")) + 1}
	if at > 0 && (p.All > maxPolicyLines || len(in.Source) > maxDrawn) { // with some lines before it
		from = at - 10
	}
	p.From = int(min(max(from, 1), int64(p.All)))
	p.Findings = slices.Clone(in.Findings)
	slices.SortStableFunc(p.Findings, func(a, b Finding) int { return a.Line - b.Line })
	beside := map[int][]string{}
	for _, f := range p.Findings {
		if n := len(beside[f.Line]); n < maxNotes {
			beside[f.Line] = append(beside[f.Line], f.Text)
		}
	}
	n, room := 0, maxDrawn
	for line := range bytes.Lines(in.Source) {
		if n++; n < p.From || n > p.All {
			continue
		}
		if len(p.Lines) == maxPolicyLines || room <= 0 {
			p.Later = fmt.Sprintf("/policy?from=%d", n)
			break
		}
		l := policyLine{n, clip(strings.TrimRight(string(line), "\r\n"), maxLine), beside[n]}
		for _, f := range l.Findings {
			room -= len(f)
		}
		room -= len(l.Text)
		p.Lines = append(p.Lines, l)
	}
	if p.From > 1 {
		p.Earlier = fmt.Sprintf("/policy?from=%d", max(1, p.From-maxPolicyLines))
	}
	p.MoreFindings, p.MoreKept = max(0, len(p.Findings)-maxRules), max(0, len(in.Kept)-maxKept)
	p.Findings = p.Findings[:len(p.Findings)-p.MoreFindings]
	p.Kept = in.Kept[:len(in.Kept)-p.MoreKept]
	p.Unlike, p.MoreUnlike = someLines(in.Unlike)
	return c.show(x, http.StatusOK, "policy.html", "Policy", p)
}

// someLines are the first of those by which two texts differ, and how many there are beside them.
func someLines(all []cli.DiffLine) (out []diffLine, more int) {
	others := map[int]string{} // of a line that changed, the other text
	for i := 0; i < len(all); i++ {
		gone, is := i, i
		for ; is < len(all) && all[is].Sign == "-"; is++ {
		}
		for i = is; i < len(all) && all[i].Sign == "+"; i++ {
			if from := gone + i - is; from < is {
				others[from], others[i] = all[i].Text, all[from].Text
			}
		}
		if i > gone {
			i--
		}
	}
	for room := maxDrawn / 4; len(out) < min(len(all), maxRules) && room > 0; {
		l := diffLine{DiffLine: all[len(out)]}
		if utf8.RuneCountInString(l.Text) > maxLine {
			other, changed := others[len(out)]
			l.cut(other, changed)
		}
		out, room = append(out, l), room-len(l.Text)-len(l.Rest)
	}
	return out, len(all) - len(out)
}

// diffLine is a line that differs, and how many characters of it are not shown: the same in both
// before and behind what is, and a hole, in which they may differ.
type diffLine struct {
	cli.DiffLine
	Before, Hole, Behind int
	Rest                 string // behind the hole
}

// cut leaves as much of a long line as there is room for: around what changed, where it did.
func (l *diffLine) cut(other string, changed bool) {
	const around = 200 // bytes
	s, from, to := l.Text, 0, len(l.Text)
	if changed {
		for from < min(len(s), len(other)) && s[from] == other[from] {
			from++
		}
		same := 0
		for same < min(len(s), len(other))-from && s[len(s)-1-same] == other[len(other)-1-same] {
			same++
		}
		from, to = max(0, from-around), min(len(s), to-same+around)
		for ; from > 0 && !utf8.RuneStart(s[from]); from-- {
		}
		for ; to < len(s) && !utf8.RuneStart(s[to]); to++ {
		}
	}
	l.Before, l.Behind = utf8.RuneCountInString(s[:from]), utf8.RuneCountInString(s[to:])
	l.Text = s[from:to]
	if r := []rune(l.Text); len(r) > maxLine {
		l.Text, l.Hole, l.Rest = string(r[:maxLine/2]), len(r)-maxLine, string(r[len(r)-maxLine/2:])
	}
}
