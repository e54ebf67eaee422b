package policy

import (
	"slices"
	"strings"

	"github.com/writ-project/writ/provenance"
)

// Composite is a way in which the user writes several arguments as one word (R15):
// `composites: ['{/owner}/{/repo}#{/number}']`. Arguments and the text between them take
// turns: Text[0] stands before Args[0], the last of Text behind the last argument.
type Composite struct {
	Args []provenance.Pattern // exact, two or more, each once
	Text []string             // one more than Args
}

// composites compiles `composites:`. Whoever reads such a word back cuts it in one place
// alone: what stands between two arguments holds a character that no part of it may have.
func (r *reader) composites(c *Contract, f *toolFile) {
	for _, t := range f.Composites.Items {
		k := Composite{}
		rest, isForm := t.S, true
		for isForm && strings.Contains(rest, "{") {
			text, pointer, _ := strings.Cut(rest, "{")
			name, after, closed := strings.Cut(pointer, "}")
			at, _ := provenance.ParsePattern(name)
			isForm = closed && single(at) && (len(k.Args) == 0 || strings.ContainsAny(text, "/:#@")) &&
				!slices.ContainsFunc(k.Args, func(p provenance.Pattern) bool { return p.Source == at.Source })
			k.Args, k.Text, rest = append(k.Args, at), append(k.Text, text), after
		}
		k.Text = append(k.Text, rest)
		isForm = isForm && !slices.ContainsFunc(k.Text, func(s string) bool {
			return strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '}' })
		})
		if !isForm || len(k.Args) < 2 {
			r.Fault(t.Node, "a composite is two or more arguments in one word, with / : # or @ between them (R15)", "composites: ['{/owner}/{/repo}']")
			continue
		}
		for _, at := range k.Args {
			named := false
			c.everyArg(func(a *ArgRule, _ Effect) bool {
				named = a.At.Source == at.Source && (a.Role == Target || a.Role == Selector)
				return !named
			})
			r.FaultIf(!named, t.Node, "a part of a composite is a target or a selector that the contract names", "")
		}
		c.Composites = append(c.Composites, k)
	}
}

// Write returns the word that a composite makes of the values of its arguments, as many
// as it has.
func (k *Composite) Write(values []string) string {
	var b strings.Builder
	for i, v := range values {
		b.WriteString(k.Text[i])
		b.WriteString(v)
	}
	b.WriteString(k.Text[len(k.Args)])
	return b.String()
}
