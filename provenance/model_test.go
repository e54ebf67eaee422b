package provenance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// model is the ledger as the rules say it, slow and plain: lists, and every
// question asked of every entry.
type model struct {
	facts []modelFact
	sent  []modelSent
}

type modelFact struct {
	value             strictjson.Value
	server, pointer   string
	label             writ.Label
	lowered, said     bool
	beside, named     bool
	stranger          bool
	intact, minted    bool // the server can have given it: with nothing against it, or the places of acts alone
	written           bool // it cannot
	typ               Type
	collection, owner string
	evidence          uint32
}

type modelSent struct {
	server string
	act    bool
	arg    Arg
	call   uint32 // the evidence of the call, 0 for one without
}

// texts are the spellings under which a value is recognised as sent before.
func (m *model) texts(t Type, v strictjson.Value) (out []string) {
	switch v.Kind() {
	case strictjson.String, strictjson.Number:
	default:
		return nil
	}
	for _, typ := range []Type{Untyped, t} {
		if c, _, why := Canonical(typ, v); why == "" && c != "" {
			out = append(out, strings.ToLower(c)) // the pool is ASCII
		}
	}
	return out
}

// pointer spells where a leaf stands; those of the model stand in no text.
func (l *Leaf) pointer() string {
	var path []string
	for at := l.at; at != nil; at = at.parent {
		path = append([]string{at.token}, path...)
	}
	return strictjson.Pointer(path)
}

func (m *model) observe(o Observation, l *Leaf) modelFact {
	f := modelFact{value: l.Value, server: o.Server, pointer: l.pointer(), evidence: o.Evidence, label: writ.External, owner: l.owner}
	base := writ.External
	authoritative := false
	if l.Rule != nil {
		base, authoritative = l.Rule.Label, l.Rule.Authoritative
		f.named, f.typ, f.collection = true, l.Type, l.Rule.Collection
	} else {
		f.beside = !strings.HasPrefix(f.pointer, "/structuredContent")
	}
	f.stranger = base <= writ.External
	inCollection := func(g modelFact) bool {
		return g.label >= writ.System && g.collection == f.collection &&
			(Equal(Untyped, g.value, l.Value) || g.typ != "" && g.typ == f.typ && Equal(f.typ, g.value, l.Value))
	}
	known := m.known(l.Value)
	if f.collection != "" {
		known = slices.ContainsFunc(m.facts, inCollection)
	}
	// R4, part by part
	own, repeats, narrow, holds, pointed := writ.Operator, writ.Operator, writ.Operator, false, false
	for _, a := range o.Args {
		if !a.Narrow || Equal(Untyped, a.Value, l.Value) {
			own = min(own, a.Label)
		}
		pointed = pointed || !a.Narrow && a.Label < writ.System && !a.Vague
		if a.Narrow && Equal(Untyped, a.Value, l.Value) {
			narrow = min(narrow, a.Label)
		}
		for _, x := range m.texts(a.Type, a.Value) {
			for _, y := range m.texts(f.typ, l.Value) {
				f.said = f.said || !a.Narrow && a.Label == writ.Model && len(x) >= 4 && len(y) >= 4 && strings.Contains(x, y)
				holds = holds || !a.Narrow && a.Label < writ.System && len(x) >= 4 && strings.Contains(y, x)
				switch {
				case x != y:
				case a.Narrow:
					own, narrow = min(own, a.Label), min(narrow, a.Label)
				case a.Label == writ.System && f.collection != "" && !known:
					repeats = min(repeats, writ.External)
				default:
					repeats = min(repeats, a.Label)
				}
			}
		}
	}
	inside := writ.Operator
	before := writ.Operator
	asked, id := false, false // of an earlier read: a piece of it, or holding it; and with a digit
	placed := writ.Operator   // R38
	for _, s := range m.sent {
		if s.arg.Label >= writ.System {
			continue
		}
		if s.act && !s.arg.Narrow && s.server == o.Server {
			placed = min(placed, s.arg.Label)
		}
		for _, a := range m.texts(s.arg.Type, s.arg.Value) {
			if s.arg.Narrow && len(a) < 4 {
				continue
			}
			for _, b := range m.texts(f.typ, l.Value) {
				if a == b {
					before = min(before, s.arg.Label)
					f.said = f.said || s.arg.Label == writ.Model
				}
				if s.arg.Narrow || len(a) < 4 || len(b) < 4 {
					continue
				}
				if !s.act && !s.arg.Vague && (strings.Contains(a, b) || strings.Contains(b, a)) {
					asked, id = true, id || strings.Contains(a, b) || strings.ContainsAny(a, "0123456789")
				}
				if !s.act {
					continue
				}
				in := strings.Contains(a, b)
				f.said = f.said || in && s.arg.Label == writ.Model
				if in = in && !(atom(b) && known); in {
					inside = min(inside, s.arg.Label)
				}
				if strings.Contains(b, a) || in {
					before = min(before, s.arg.Label)
				}
			}
		}
	}
	switch {
	case o.Act && f.collection != "": // R5
		decides := writ.Operator
		for _, a := range o.Args {
			if a.Decides {
				decides = min(decides, a.Label)
			}
		}
		stored := writ.Operator // by other acts (R38): a handle may be what they put there
		for _, s := range m.sent {
			if s.act && !s.arg.Narrow && s.server == o.Server && s.call != o.Evidence && s.arg.Label < writ.System {
				stored = min(stored, s.arg.Label)
			}
		}
		f.label = min(base, decides, inside, repeats, stored)
		f.lowered = f.label < base
	case o.Act:
		f.label = min(base, writ.External)
		all := writ.Operator
		for _, a := range o.Args {
			if !a.Narrow {
				all = min(all, a.Label)
			}
		}
		f.lowered = min(before, placed, all) < writ.External
	case authoritative:
		f.label = base
	default:
		f.label = min(base, own, before, repeats, placed)
		f.lowered = f.label < base
		theirs := slices.ContainsFunc(o.Args, func(a Arg) bool {
			return slices.ContainsFunc(m.texts(a.Type, a.Value), func(x string) bool { return slices.Contains(m.texts(f.typ, l.Value), x) })
		})
		given := slices.Contains(numbered, string(l.Value.Raw()))
		switch raw := string(l.Value.Raw()); {
		case l.Rule == nil || base != writ.External || raw == "null" || raw == `""`:
		case !given || before < writ.System || id || theirs:
			f.written = !SmallSpace(Untyped, l.Value)
		default:
			f.minted = narrow >= writ.System && repeats >= writ.System && !f.said && !holds && (!pointed || own >= writ.System)
		}
		f.intact = f.named && base == writ.External && min(own, before, repeats, placed) >= writ.System && !asked && !f.said
	}
	return f
}

// numbered are the values of the pool that a server can have numbered something by.
var numbered = []string{`"13"`, `13`, `"1234567"`, `1234567`, `1234567.0`, `"T-1042"`, `"T-104"`}

// mints reads the facts of a field in their order: a value it had before anybody sent it
// stays the server's.
func (m *model) mints(server, pointer string) (may, not bool) {
	for i, f := range m.facts {
		if f.server != server || f.pointer != "/structuredContent"+pointer || !f.named {
			continue
		}
		may = may || f.minted
		not = not || f.written && !slices.ContainsFunc(m.facts[:i], func(g modelFact) bool {
			return g.minted && g.server == f.server && g.pointer == f.pointer && g.typ == f.typ && g.collection == f.collection && Equal(f.typ, g.value, f.value)
		})
	}
	return may && !not, not
}

func (m *model) known(v strictjson.Value) bool {
	return slices.ContainsFunc(m.facts, func(f modelFact) bool { return f.label >= writ.System && Equal(Untyped, f.value, v) })
}

// find asks the questions of a refusal one after the other, each of all that is
// left.
func (m *model) find(q Query) (vouched []modelFact, reason writ.Reason, contested bool) {
	var all []modelFact
	for _, f := range m.facts {
		_, canonical, _ := Canonical(q.Type, f.value)
		other := q.Type == Email && f.typ == Untyped && !canonical // another spelling of an address (R25)
		if Equal(Untyped, f.value, q.Value) || q.Type != Untyped && (f.typ == q.Type || other) && Equal(q.Type, f.value, q.Value) {
			all = append(all, f)
		}
	}
	if _, _, why := Canonical(q.Type, q.Value); why != "" || len(all) == 0 {
		return nil, writ.ProvenanceUnseen, false
	}
	low := writ.ProvenanceReflected
	for _, f := range all {
		if !f.lowered {
			low = writ.ProvenanceLabel
		}
	}
	left := all
	for _, question := range []struct {
		reason writ.Reason
		pass   func(modelFact) bool
	}{
		{low, func(f modelFact) bool { return f.named && f.label >= writ.System }},
		{writ.ProvenanceSource, func(f modelFact) bool {
			if q.Server != "" && f.server != q.Server {
				return false
			}
			if q.HasAt {
				rest, ok := strings.CutPrefix(f.pointer, "/structuredContent")
				return ok && rest == q.At.Source
			}
			if f.collection != "" && q.Collection != "" && f.collection != q.Collection {
				return false
			}
			return q.Strict || q.Collection != "" && f.collection == q.Collection || q.Type != "" && f.typ == q.Type
		}},
		{writ.ProvenanceSmall, func(f modelFact) bool {
			if !SmallSpace(q.Type, q.Value) {
				return true
			}
			if s := string(q.Value.Raw()); q.Authority && (s == `""` || s == "null") {
				return false
			}
			if q.Collection != "" && f.collection == q.Collection {
				return true
			}
			// A number or a text of a field that has no type is of the argument's, where it names the field.
			plain := f.typ == Untyped && !q.Strict && (q.Value.Kind() == strictjson.Number || q.Value.Kind() == strictjson.String)
			return q.HasAt && q.Type != "" && (f.typ == q.Type || plain) && (q.Collection == "" || f.collection == "")
		}},
		{writ.ProvenanceOpenTarget, func(f modelFact) bool {
			return !q.Target || f.collection != "" && q.Closed(f.collection) ||
				f.owner != "" && len(q.Owners) > 0 && f.owner == string(q.Owners[0])
		}},
	} {
		var next []modelFact
		for _, f := range left {
			if question.pass(f) {
				next = append(next, f)
			}
		}
		if left = next; len(left) == 0 {
			return nil, question.reason, false
		}
	}
	for _, f := range all {
		written := f.label <= writ.External && f.stranger || f.label == writ.External && !f.lowered
		if !written || f.said {
			continue
		}
		twin := slices.ContainsFunc(left, func(v modelFact) bool { return v.evidence == f.evidence })
		contested = contested || !f.beside || !twin
	}
	slices.SortStableFunc(left, func(a, b modelFact) int { return int(b.label) - int(a.label) })
	return left, "", contested
}

func (m *model) seen(v strictjson.Value) bool {
	value, _ := v.Text()
	return slices.ContainsFunc(m.facts, func(f modelFact) bool {
		text, _ := f.value.Text()
		words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n\"'()<>,;", r) })
		link := strings.Contains(value, ".") && !strings.Contains(value, "@") && !strings.ContainsAny(value[:1], "/.") && slices.Contains(words, value)
		return !f.said && !f.lowered && f.label > writ.Model && (Equal(Untyped, f.value, v) || link)
	})
}

func (m *model) join(q Query) bool {
	text, _ := q.Value.Text()
	for _, d := range m.facts {
		for _, n := range m.facts {
			if d.typ != Path || d.label < writ.System || n.label < writ.System || n.typ != Path && n.typ != Name {
				continue
			}
			if q.Target && (!q.Closed(d.collection) || !q.Closed(n.collection)) {
				continue
			}
			dir, _ := d.value.Text()
			name, _ := n.value.Text()
			if n.typ == Path {
				name = name[strings.LastIndexByte(name, '/')+1:]
			}
			if j, ok := JoinPath(dir, name); ok && j == text {
				return true
			}
		}
	}
	return false
}

// values are drawn so that they often are, hold or spell each other.
var values = []string{
	`"bob"`, `"bob@example.com"`, `"bob@EXAMPLE.com"`, `"write to bob@example.com"`, `"BOB@example.com"`, `"example"`,
	`"/srv"`, `"/srv/in"`, `"/srv/a.txt"`, `"/srv/in/a.txt"`, `"a.txt"`, `"see /srv/a.txt now"`,
	`"13"`, `13`, `"1234567"`, `1234567`, `1234567.0`, `"id 1234567"`, `true`, `null`, `""`,
	`"T-1042"`, `"as T-1042 says"`, `"T-104"`, `"some old words"`,
}

func TestLedgerAgainstModel(t *testing.T) {
	type answers struct{ ok, refused int }
	var total answers
	rapid.Check(t, func(t *rapid.T) {
		l := NewLedger([32]byte{7}, Caps{})
		m := &model{}
		pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
		label := rapid.SampledFrom([]writ.Label{writ.Model, writ.External, writ.Party, writ.System, writ.System, writ.System, writ.Operator})
		typ := rapid.SampledFrom([]Type{Untyped, Untyped, ID, Email, Path, Path, Name, Decimal})
		yes := func(name string) bool { return rapid.IntRange(0, 3).Draw(t, name) == 0 }
		for n := range rapid.IntRange(1, 8).Draw(t, "calls") {
			server := pick("server", "a", "b")
			act := yes("act")
			var given []Arg
			for range rapid.IntRange(0, 2).Draw(t, "args") {
				given = append(given, Arg{
					Value: strictjson.Of([]byte(pick("arg", values...))), Type: typ.Draw(t, "argtype"), Label: label.Draw(t, "arglabel"),
					Narrow: yes("narrow"), Vague: yes("vague"), Decides: yes("decides"),
				})
			}
			own := l.Sent(server, "put", act, given)
			for _, a := range given {
				m.sent = append(m.sent, modelSent{server, act, a, uint32(n + 1)})
			}
			var rules []OutputRule
			var doc []string
			for i := range rapid.IntRange(0, 4).Draw(t, "leaves") {
				key := "k" + strconv.Itoa(i)
				doc = append(doc, fmt.Sprintf(`"%s":%s`, key, pick("leaf", values...)))
				if !yes("unnamed") {
					p, _ := ParsePattern("/" + key)
					rules = append(rules, OutputRule{
						At: p, Label: label.Draw(t, "label"), Type: typ.Draw(t, "type"), Collection: pick("collection", "", "open", "shut"),
						Authoritative: yes("authoritative"), HasOwner: true, Owner: []string{"k0"},
					})
				}
			}
			result := `{"structuredContent":{` + strings.Join(doc, ",") + `},"content":[{"type":"text","text":` + pick("text", `"x"`, values[1], values[8]) + `}]}`
			o := Observation{Evidence: uint32(n + 1), Server: server, Tool: "t", Act: act, OK: !yes("failed"), Args: given, OwnPlace: own}
			o.Leaves = Extraction(rules, strictjson.Of([]byte(result)), strictjson.Value{}).Leaves
			p, err := l.Prepare(o)
			if err != nil {
				t.Fatal(err)
			}
			var between []Arg
			if yes("overtaken") { // another call is decided before this one is committed
				between = []Arg{{Value: strictjson.Of([]byte(pick("arg", values...))), Label: label.Draw(t, "arglabel")}}
				l.Sent("b", "put", true, between)
				m.sent = append(m.sent, modelSent{"b", true, between[0], 0})
			}
			if err := l.Commit(p); err != nil {
				t.Fatal(err)
			}
			if o.OK {
				var more []modelFact
				for i := range o.Leaves {
					more = append(more, m.observe(o, &o.Leaves[i]))
				}
				for i := range more { // R28: an owner is a leaf of its own
					at := slices.IndexFunc(more, func(f modelFact) bool { return f.pointer == "/structuredContent/k0" })
					if at < 0 || more[at].label < writ.System {
						more[i].owner = ""
					}
				}
				m.facts = append(m.facts, more...)
			}
		}
		if l.Len() != len(m.facts) {
			t.Fatalf("%d leaves, want %d", l.Len(), len(m.facts))
		}
		for _, v := range values {
			q := Query{
				Value: strictjson.Of([]byte(v)), Type: typ.Draw(t, "type"), Collection: pick("collection", "", "open", "shut"),
				Server: pick("server", "", "", "a"), Authority: yes("authority"), Target: yes("target"), Strict: yes("strict"),
				Closed: func(c string) bool { return c == "shut" },
			}
			if yes("owner") {
				q.Owners = [][]byte{[]byte(`"bob"`)}
			}
			if yes("at") {
				q.At, _ = ParsePattern(pick("pointer", "/k0", "/k1"))
				q.HasAt = true
			}
			a := l.Find(q)
			if len(q.Owners) > 0 {
				q.Owners[0] = []byte(`"bob`) // as the model keeps owners: kind, then text
			}
			want, reason, contested := m.find(q)
			if a.Reason != reason || a.Contested != contested {
				t.Fatalf("find %+v: %q %v, want %q %v", q, a.Reason, a.Contested, reason, contested)
			}
			if reason == "" {
				total.ok++
				if best := a.Vouched[0]; best.Label != want[0].label || best.Evidence != want[0].evidence || best.Pointer != want[0].pointer {
					t.Fatalf("find %s: best %+v, want %+v", v, best, want[0])
				}
				if len(want) <= maxOrigins && len(a.Vouched) != len(want) {
					t.Fatalf("find %s: %d origins, want %d", v, len(a.Vouched), len(want))
				}
			} else {
				total.refused++
			}
			if q.Value.Kind() == strictjson.String {
				if _, ok := l.Seen(q.Value); ok != m.seen(q.Value) {
					t.Fatalf("seen %s: %v", v, ok)
				}
			}
			server, pointer := pick("server", "a", "b"), pick("pointer", "/k0", "/k1")
			gave := Query{Value: q.Value, Server: server, Tool: "t", HasAt: true, Ours: true, Minted: yes("minted")}
			gave.At, _ = ParsePattern(pointer)
			here := slices.ContainsFunc(m.facts, func(f modelFact) bool {
				return f.server == server && f.pointer == "/structuredContent"+pointer && Equal(Untyped, f.value, q.Value) && (!gave.Minted && f.intact && f.label == writ.External || gave.Minted && f.minted)
			})
			if a := l.Find(gave); (len(a.Vouched) > 0) != (here && !SmallSpace(Untyped, q.Value)) {
				t.Fatalf("given %+v: %+v", gave, a)
			}
			may, not := l.Mints(server, "t", pointer)
			if wantMay, wantNot := m.mints(server, pointer); may != wantMay || not != wantNot {
				t.Fatalf("%s#%s can be the server's: %v %v, want %v %v", server, pointer, may, not, wantMay, wantNot)
			}
			jq := Query{Value: q.Value, Target: q.Target, Closed: q.Closed}
			if j := l.FindJoin(jq); (j.Reason == "") != m.join(jq) {
				t.Fatalf("join %s: %q", v, j.Reason)
			}
		}
	})
	if !testing.Short() && (total.ok == 0 || total.refused == 0) { // of a fifth of the draws none may
		t.Errorf("the draw never meets both answers: %+v", total)
	}
}
