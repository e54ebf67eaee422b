package policy

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/provenance"
)

// bindings compiles `same_record:` and `of:` (R37).
func (r *reader) bindings(p *Policy, c *Contract, f *toolFile) {
	for _, list := range f.SameRecord.lists {
		if len(list.Items) < 2 {
			r.Fault(list.Node, "a record is named by one argument and has at least one more", "same_record: [/order_id, /item_ids/*]")
			continue
		}
		b := Binding{}
		for i, t := range list.Items {
			at, ok := r.bound(t, i == 0)
			if !ok {
				break
			}
			b.Others = append(b.Others, at)
		}
		if len(b.Others) > 0 {
			b.First, b.Others = b.Others[0], b.Others[1:]
		}
		c.Bindings = append(c.Bindings, b)
	}
	r.of(p, c, f.Args)
	for i := range f.Cases.Items {
		r.of(p, c, f.Cases.Items[i].body.Args)
	}
	if len(c.Bindings) > 0 && p.Profile == Strict {
		c.Bindings = nil
		r.WarnAt(c.Line, c.Col, "profile strict binds no arguments to a record (R37)", "")
	}
}

// bound reads the pointer of an argument of a record; the one that names it is exact.
func (r *reader) bound(t strictyaml.String, exact bool) (provenance.Pattern, bool) {
	at, _ := provenance.ParsePattern(t.S)
	switch {
	case t.Node.Kind != strictyaml.Text: // a fault already
	case len(at.Tokens) == 0:
		r.Fault(t.Node, "not a pointer to an argument", "/order_id")
	case exact && !at.Exact():
		r.Fault(t.Node, "what names the record is one argument: its pointer holds no *", "/order_id")
	default:
		return at, true
	}
	return at, false
}

// of compiles `of:` and `by:` of arguments.
func (r *reader) of(p *Policy, c *Contract, m strictyaml.Map[argFile]) {
	for _, e := range m.Entries {
		if !e.Value.Of.Given() {
			r.FaultIf(e.Value.By.Given(), e.Value.By.Node, "by joins the record of another argument to this one's (R37)", "of: /order_id, by: customer")
			continue
		}
		first, ok := r.bound(e.Value.Of, false)
		by := r.collection(p, e.Value.By)
		if other, err := provenance.ParsePattern(e.Key.Value); ok && err == nil {
			r.FaultIf(stars(first) > stars(other), e.Value.Of.Node, "a * stands for the index that this argument has, and it has fewer", "/order_id")
			c.Bindings = append(c.Bindings, Binding{first, []provenance.Pattern{other}, by})
		}
	}
}

// agrees compiles `agrees:` (R37).
func (r *reader) agrees(f *argFile, a *ArgRule) {
	for _, t := range f.Agrees.Items {
		at, ok := r.bound(t, false)
		if !ok {
			continue
		}
		if at.Source == a.At.Source || stars(at) > stars(a.At) || at.Tokens[len(at.Tokens)-1] == "*" {
			r.Fault(t.Node, "what shows a value says of another argument, by its name, what this call has there: a * stands for the index that this one has", "agrees: [/owner, /repo]")
			continue
		}
		a.Agrees = append(a.Agrees, at)
	}
	r.FaultIf(len(a.Agrees) > 0 && !slices.ContainsFunc(a.From, func(s Source) bool { return s.Kind == FromOutput }), f.Agrees.Node, "agrees is of what outputs vouch for", "from: [user, output]")
	r.FaultIf(len(a.Agrees) > 0 && slices.ContainsFunc(a.From, Source.elsewhere), f.Agrees.Node, "of what is put together, was said or was only seen nothing shows the whole value, and agrees asks it of nothing", "from: [user, output]")
}

// elsewhere reports whether a source takes what no output vouches for whole.
func (s Source) elsewhere() bool {
	return s.Kind == FromSeen || s.Kind == FromSaidBy || s.Kind == FromNamed || s.Kind == FromDerived && s.Op != Due
}

// stars is how many indices or keys a pattern leaves open.
func stars(p provenance.Pattern) (n int) {
	for _, t := range p.Tokens {
		if t == "*" {
			n++
		}
	}
	return n
}

// extensions compiles `extensions:` (R36).
func (r *reader) extensions(f *argFile, a *ArgRule) {
	for _, e := range f.Extensions.Items {
		r.FaultIf(e.Node.Kind == strictyaml.Text && !extensionForm().MatchString(e.S), e.Node, "an extension is a dot, letters and digits, or nothing: '' for names without a dot", "extensions: [.md, .txt]")
		a.Extensions = append(a.Extensions, e.S)
	}
}

var extensionForm = text.Pattern(`^(\.[A-Za-z0-9]{1,16}){0,3}$`)

// begins compiles `begins:` and `in:` (R36).
func (r *reader) begins(f *argFile, a *ArgRule) {
	for _, b := range f.Begins.Items {
		r.FaultIf(b.Node.Kind == strictyaml.Text && !beginForm().MatchString(b.S), b.Node, "a beginning is letters and what parts them from the rest: nothing but what is meant begins so", "begins: [fix-, docs/]")
		a.Begins = append(a.Begins, b.S)
	}
	for _, t := range f.In.Items {
		at, _ := provenance.ParsePattern(t.S)
		if t.Node.Kind != strictyaml.Text {
			continue // a fault already
		}
		if !single(at) || at.Source == a.At.Source || !a.At.Exact() {
			r.Fault(t.Node, "in what an act makes something another argument says: the pointers of both hold no *", "in: [/owner, /repo]")
			continue
		}
		a.In = append(a.In, at)
	}
	r.FaultIf(f.In.Given() && !a.Makes, f.In.Node, "what is in something an act makes there (R36)", "makes: true")
}

var beginForm = text.Pattern(`^[A-Za-z]{1,32}[-_/]$`)

// within holds what `in:` and `agrees:` name to arguments that are judged: what is anybody's
// words tells no two places apart.
func (r *reader) within(c *Contract) {
	all := slices.Clone(c.Args)
	for _, k := range c.Cases {
		all = append(all, k.Args...)
	}
	for _, a := range all {
		if a.Sorts && (c.CaseAt == nil && c.Effect != Read || a.Constants() == 0) {
			r.FaultAt(a.Line, a.Col, "sorts is of constants that say how the list of a read is sorted", "role: control, from: [const: [name, size]], sorts: true")
		}
		judged := func(word, of string, all []provenance.Pattern, roles ...Role) {
			for _, at := range all {
				if !slices.ContainsFunc(c.Args, func(o ArgRule) bool { return o.At.Source == at.Source && slices.Contains(roles, o.Role) }) {
					r.FaultAt(a.Line, a.Col, word+" is of "+of+" that the contract has in whatever case, and "+strictyaml.Word(at.Source)+" is none", word+": [/owner, /repo]")
				}
			}
		}
		judged("in", "targets, selectors or controls", a.In, Target, Selector, Control)
		judged("agrees", "targets, selectors, controls or times", a.Agrees, Target, Selector, Control, TimeRole)
	}
}

// decimal reads a number that is not negative.
func (r *reader) decimal(v strictyaml.Anything) string {
	raw := []byte(v.Node.Value)
	d, _, why := "", false, writ.FormNotCanonical
	if v.Node.Kind.Scalar() && strictjson.KindOf(raw) == strictjson.Number {
		d, _, why = provenance.Canonical(provenance.Decimal, strictjson.StringOf(v.Node.Value))
	}
	if why != "" || strings.HasPrefix(d, "-") {
		r.Fault(v.Node, "a plain number, not negative", "max: 100")
		return ""
	}
	return d
}

// phrases compiles `phrases:` (R21).
func (r *reader) phrases(f strictyaml.Words) (out []string) {
	for _, t := range f.Items {
		text := t.Node.Kind == strictyaml.Text
		r.FaultIf(text && (utf8.RuneCountInString(t.S) < 4 || len(t.S) > 200 || strings.TrimSpace(t.S) != t.S), t.Node, "a phrase is what a user says, between 4 characters and 200", "phrases: [unlock the door]")
		r.FaultIf(strings.Contains(t.S, "…"), t.Node, "an order alone goes on behind other words", "orders: [sign up …, rebase … onto]")
		if why := provenance.PhraseFault(t.S); text && why != "" {
			r.Fault(t.Node, "no phrase can be read from it: "+why, "phrases: [(close|shut) it, <delete> it]")
		}
		out = append(out, t.S)
	}
	return out
}

// plain compiles phrases that are one wording each: what a user calls a thing, he calls it so.
func (r *reader) plain(f strictyaml.Words) []string {
	for _, t := range f.Items {
		r.FaultIf(strings.ContainsAny(t.S, "()<>|?"), t.Node, "what a thing is called is plain words", "")
	}
	return r.phrases(f)
}

// maxOrders bounds the orders of one argument.
const maxOrders = 32

// orders compiles `orders:` (R9).
func (r *reader) orders(f strictyaml.Words) (out []string) {
	const example = "orders: [<delete>, take down]"
	for _, t := range f.Items {
		if t.Node.Kind != strictyaml.Text {
			continue // a fault already
		}
		r.FaultIf(len(t.S) < 2 || len(t.S) > 200, t.Node, "an order is what a user says, between 2 characters and 200", example)
		if why := provenance.PhraseFault(t.S); why != "" {
			r.Fault(t.Node, "no order can be read from it: "+why, example)
		}
		r.FaultIf(slices.Contains(out, t.S), t.Node, strictyaml.Word(t.S)+" stands twice", "remove one")
		if strings.HasSuffix(t.S, " …") {
			r.reaching = append(r.reaching, t.Node)
		}
		out = append(out, t.S)
	}
	r.FaultIf(emptyList(f.Place) || len(out) > maxOrders, f.Node, "between 1 and 32 orders", example)
	return out
}

// mostNames bounds what of a collection is called otherwise: each name is held against all.
const mostNames = 1000

// called compiles what else users call the members of a collection (R6). One name is of
// one member, and no member is called as another is written: else the user's word for the
// one would vouch for the other.
func (r *reader) called(f *strictyaml.Map[strictyaml.Words]) map[string][]provenance.Alias {
	if !f.Given() {
		return nil
	}
	of, out := map[string]string{}, map[string][]provenance.Alias{}
	n := 0
	for _, e := range f.Entries {
		of[e.Key.Value] = e.Key.Value
		if n += 1 + len(e.Value.Items); n > mostNames {
			r.Fault(e.Key, "the members that are called otherwise and their names are more than "+strconv.Itoa(mostNames), "")
			return nil
		}
	}
	for _, e := range f.Entries {
		r.FaultIf(emptyList(e.Value.Place), e.Value.Node, "the member has no other name", "TX: [Texas]")
		for _, t := range e.Value.Items {
			member, taken := of[t.S]
			switch {
			case t.Node.Kind != strictyaml.Text:
				continue // told before
			case taken && member != e.Key.Value:
				r.Fault(t.Node, "two members are called "+strictyaml.Word(t.S), "TX: [Texas]")
			case taken:
				r.Fault(t.Node, "this is the member itself, or told before", "TX: [Texas]")
			case len(t.S) > 200 || strings.TrimSpace(t.S) != t.S || provenance.SmallSpace(provenance.Untyped, strictjson.StringOf(t.S)):
				r.Fault(t.Node, "what users call a member is a name of 3 characters to 200 bytes, and no number", "TX: [Texas]")
			}
			of[t.S] = e.Key.Value
			out[e.Key.Value] = append(out[e.Key.Value], provenance.Alias{Text: t.S})
		}
	}
	for member, names := range out {
		for i := range names {
			names[i].Longer = longer(names[i].Text, member, of)
		}
	}
	return out
}

// longer are the names of other members that have one in them.
func longer(name, member string, of map[string]string) (out []string) {
	for other, its := range of {
		if its != member && len(other) > len(name) && strings.Contains(strings.ToLower(other), strings.ToLower(name)) {
			out = append(out, other)
		}
	}
	slices.Sort(out)
	return out
}

// saying checks that phrases, the contract's or a case's, and no_args: user stand
// together.
func (r *reader) saying(c *Contract, f *toolFile) {
	said := len(c.Phrases) > 0 || slices.ContainsFunc(c.Cases, func(k Case) bool { return len(k.Phrases) > 0 })
	if (c.NoArgs == NoArgsUser) != said {
		at := strictyaml.Node{Line: c.Line, Column: c.Col}
		for _, n := range []*strictyaml.Node{f.NoArgs.Node, f.Phrases.Node} {
			if n != nil {
				at = *n
			}
		}
		r.FaultAt(at.Line, at.Column, "no_args: user and phrases belong together", "no_args: user, phrases: [unlock the door]")
	}
}

// budgets compiles `budgets:` (R27).
func (r *reader) budgets(c *Contract, f *toolFile) {
	for i := range f.Budgets.Items {
		k := &f.Budgets.Items[i]
		b := Budget{Calls: k.Calls.N, HasSum: k.Sum.Given(), HasPer: k.Per.Given()}
		at := func(t strictyaml.String) (p provenance.Pattern) {
			if !t.Given() {
				return p
			}
			p, err := provenance.ParsePattern(t.S)
			r.FaultIf(err != nil || len(p.Tokens) == 0, t.Node, "not a pointer to an argument", "/amount")
			return p
		}
		b.Sum, b.Per = at(k.Sum), at(k.Per)
		switch {
		case k.Calls.Given() == k.Sum.Given() || k.Sum.Given() != k.Max.Given():
			r.Fault(k.Node, "a budget has calls, or the sum of an amount and its max", "{ calls: 10, within: 1h } or { sum: /amount, max: 500 }")
		case k.Calls.Given() && (k.Calls.N < 1 || k.Calls.N > 1_000_000):
			r.Fault(k.Calls.Node, "calls is between 1 and 1000000", "")
		}
		if k.Max.Given() {
			b.Max = r.decimal(k.Max)
		}
		b.Within = r.duration(k.Within, "within: 1h")
		c.Budgets = append(c.Budgets, b)
	}
}

// duration reads a time, 0 where none is given.
func (r *reader) duration(t strictyaml.String, hint string) time.Duration {
	if !t.Given() || t.Node.Kind != strictyaml.Text {
		return 0
	}
	d, err := time.ParseDuration(t.S)
	r.FaultIf(err != nil || d < time.Second || d > 31*24*time.Hour, t.Node, "a time between 1s and 744h", hint)
	return d
}
