package provenance

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// TestPlacesAgainstModel holds R38 against its definition, read out slowly: a
// place says nothing of a leaf if it is not in force, if lines have it not count, if its tool does not reach
// the leaf's field, or if something that no tool which lowered by then reaches is of a kind
// that the place is named by, and nothing of it is the place; else the leaf is
// worth no more than what went there. In a list what the call names is of no
// record. A name that a tool reaches must be, or lie in, one that counts.
func TestPlacesAgainstModel(t *testing.T) {
	type act struct {
		n, cleared uint64
		p          Place
	}
	one, two := Line{Tool: "s/a", Arg: "/x"}, Line{Tool: "s/a", Arg: "/y"}
	rests := [][][]Line{nil, nil, {{one}}, {{one, two}}, {{one}, {two}}}
	kinds := []string{"", "note", "folder"}
	ids := []string{`"n1"`, `"N1"`, `"n2"`, `"f1"`, `17`, `"17"`, `"/d"`, `"/d/a"`, `"/d/a/b"`, `"/d/ab/"`, `"\\d\\a"`}
	low, kept := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
		yes := func(name string) bool { return rapid.Bool().Draw(t, name) }
		named := func(n int, label writ.Label) (args []Arg) {
			for range n {
				args = append(args, Arg{Value: strictjson.Of([]byte(pick("id", ids...))), Collection: pick("kind", kinds...), Names: true, Decides: true, Label: label})
			}
			return args
		}
		ps, acts, n := NewPlaces(), []act(nil), uint64(0)
		for range rapid.IntRange(0, 6).Draw(t, "acts") {
			n++
			if len(acts) > 0 && yes("clear") {
				i := rapid.IntRange(0, len(acts)-1).Draw(t, "which")
				if ps.Clear(acts[i].n, n) != (acts[i].cleared == 0) {
					t.Fatal("a place is cleared once")
				}
				for k := range acts {
					if acts[k].cleared == 0 && acts[i].cleared == 0 && k != i && acts[k].p.Tool == acts[i].p.Tool && slices.Equal(acts[k].p.At, acts[i].p.At) {
						acts[k].cleared = n
					}
				}
				if acts[i].cleared == 0 {
					acts[i].cleared = n
				}
				continue
			}
			args := append(named(rapid.IntRange(0, 2).Draw(t, "named"), writ.System),
				Arg{Value: strictjson.Of([]byte(`"some text"`)), Label: rapid.SampledFrom([]writ.Label{writ.Model, writ.External, writ.System}).Draw(t, "label"),
					Rests: rests[rapid.IntRange(0, len(rests)-1).Draw(t, "rests")]})
			p, ok := PlaceOf("s", pick("tool", "a", "b"), args)
			if ok != (p.Label < writ.System) {
				t.Fatal("what is worth system lowers nothing")
			}
			if !ok {
				continue
			}
			same := 0
			for _, a := range acts {
				if a.cleared == 0 && a.p.Tool == p.Tool && a.p.Label <= p.Label && a.p.CountsWith(&p) && (slices.Equal(a.p.At, p.At) || len(a.p.kinds()) == 0) {
					same++
				}
			}
			if ps.Covers(p) && same < 2 {
				t.Fatalf("%+v is said to be covered", p)
			}
			ps.Lower(n, p)
			acts = append(acts, act{n: n, p: p})
		}
		through := uint64(rapid.IntRange(0, int(n)).Draw(t, "through"))
		rule := func() *OutputRule {
			return &OutputRule{Label: writ.System, Collection: pick("collection", kinds...), Authoritative: yes("authoritative")}
		}
		records := []*record{{}, {element: true}}
		o := Observation{Server: "s", OK: true, Args: named(rapid.IntRange(0, 2).Draw(t, "asked"), writ.System)}
		for range rapid.IntRange(1, 5).Draw(t, "leaves") {
			o.Leaves = append(o.Leaves, Leaf{Value: strictjson.Of([]byte(pick("leaf", ids...))), Rule: rule(), record: records[rapid.IntRange(0, 1).Draw(t, "record")]})
		}
		sets := map[string]bool{"a": yes("a sets"), "b": yes("b sets")}
		o.Reaches = func(_, tool string, r *OutputRule) bool {
			return !r.Authoritative && (sets[tool] || r.Collection == "note")
		}

		var force []Line
		for _, l := range []Line{one, two} {
			if yes("in force") {
				force = append(force, l)
			}
		}
		counts := func(p *Place) bool { // none of some lines is in force
			return len(p.Rests) == 0 || slices.ContainsFunc(p.Rests, func(of []Line) bool {
				return !slices.ContainsFunc(of, func(l Line) bool { return slices.Contains(force, l) })
			})
		}
		for _, a := range acts { // a place that is said to count wherever another does
			for _, b := range acts {
				if a.p.CountsWith(&b.p) && counts(&b.p) && !counts(&a.p) {
					t.Fatalf("%v does not count where %v does", a.p.Rests, b.p.Rests)
				}
			}
		}
		s := newStanding(ps, nil, through, 0, 0, &o, func(l *lowered) bool { return counts(&l.Place) })
		for i := range o.Leaves {
			leaf := &o.Leaves[i]
			want := writ.Operator
			for _, a := range acts {
				if a.n > through || a.cleared != 0 && a.cleared <= through || !counts(&a.p) || !o.Reaches("s", a.p.Tool, leaf.Rule) {
					continue
				}
				same, any, doubt := false, false, false
				for _, kind := range a.p.kinds() {
					var count, reached []string
					name := func(k string, v strictjson.Value, counts bool) {
						if k != kind {
							return
						}
						b := plainText(v.Raw()) + "/"
						if counts {
							count = append(count, b)
						}
						for _, r := range a.p.At {
							a := r.Text + "/"
							same = same || r.Of == kind && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a))
						}
					}
					for _, g := range o.Args {
						name(g.Collection, g.Value, !leaf.record.element)
					}
					for j := range o.Leaves {
						l := &o.Leaves[j]
						if l.record != leaf.record || l.Rule.Collection != kind {
							continue
						}
						if slices.ContainsFunc(acts, func(b act) bool { return b.n <= through && counts(&b.p) && o.Reaches("s", b.p.Tool, l.Rule) }) {
							reached = append(reached, plainText(l.Value.Raw())+"/")
						} else {
							name(kind, l.Value, true)
						}
					}
					any = any || len(count) > 0
					for _, r := range reached {
						doubt = doubt || !slices.ContainsFunc(count, func(c string) bool { return strings.HasPrefix(r, c) })
					}
				}
				if !any || same || doubt {
					want = min(want, a.p.Label)
				}
			}
			if got := s.label(leaf); got != want {
				t.Fatalf("leaf %d (%s) keeps %v, want %v", i, leaf.Value.Raw(), got, want)
			}
			if want < writ.System {
				low++
			} else {
				kept++
			}
		}
	})
	if low == 0 || kept == 0 {
		t.Errorf("the draw never meets both answers: %d lowered, %d kept", low, kept)
	}
}

// plainText is the folded text of a short ASCII literal.
func plainText(raw []byte) string {
	if s, ok := strictjson.Text(raw); ok {
		return strings.TrimSuffix(strings.ToLower(strings.ReplaceAll(s, `\`, "/")), "/")
	}
	return string(raw)
}

// TestManyPlaces: above the bound places of a tool are told apart no more, and
// nothing is forgotten (D03).
func TestManyPlaces(t *testing.T) {
	ps := NewPlaces()
	place := func(i int) Place {
		return Place{Server: "s", Tool: "t", Label: writ.Model, At: []Resource{{"note", "n" + string(rune('a'+i%26)) + strings.Repeat("x", i/26)}}}
	}
	for i := range maxPlaces + 2 {
		ps.Lower(uint64(i+1), Place{Server: "s", Tool: "t", Label: writ.External, At: []Resource{{"note", "id" + strings.Repeat("0", i%7)}}})
	}
	if !ps.Covers(Place{Server: "s", Tool: "t", Label: writ.External, At: []Resource{{"note", "never lowered"}}}) {
		t.Error("beyond the bound a place is anywhere")
	}
	if ps.Covers(place(0)) {
		t.Error("a place is covered by a lower label alone")
	}
	if n := len(ps.tools[[2]string{"s", "t"}].groups["note"].every); n > maxPlaces {
		t.Errorf("%d places told apart", n)
	}
}

// TestLinksAlone: the place of a read is no place of an act, and is cleared alone.
func TestLinksAlone(t *testing.T) {
	args := []Arg{{Value: strictjson.Of([]byte(`"https://evil.example/"`)), Label: writ.Model}}
	links, ok := AskedOf("s", "t", args)
	if !ok {
		t.Fatal("no link is found")
	}
	for _, label := range []writ.Label{writ.External, writ.User} {
		if _, ok := AskedOf("s", "t", []Arg{{Value: args[0].Value, Label: label}}); ok {
			t.Errorf("a link worth %v is the model's", label)
		}
	}
	act, _ := PlaceOf("s", "t", args)
	ps := NewPlaces()
	ps.Lower(1, links)
	if !ps.Covers(links) || ps.Covers(act) {
		t.Error("one place of a read covers the next, and no act")
	}
	rule := &OutputRule{Label: writ.System}
	o := Observation{Server: "s", Tool: "u", OK: true, Leaves: []Leaf{{Value: strictjson.Of([]byte(`"x"`)), Rule: rule, record: &record{}}}}
	if s := newStanding(ps, nil, 1, 0, 1, &o, every); s.label(&o.Leaves[0]) != writ.Operator || !s.asked(&o.Leaves[0]) || s.asked(&Leaf{Rule: &OutputRule{Authoritative: true}}) {
		t.Error("it lowers something but links, or none")
	}
	ps.Lower(2, act)
	if !ps.Clear(1, 3) || ps.Clear(1, 4) || ps.Covers(links) {
		t.Error("it is not cleared once")
	}
	s := newStanding(ps, nil, 3, 0, 0, &o, every)
	if s.label(&o.Leaves[0]) != writ.Model || s.asked(&o.Leaves[0]) {
		t.Error("the act's place was cleared, or the read's was not")
	}
	if s := newStanding(ps, nil, 1, 0, 0, &o, every); !s.asked(&o.Leaves[0]) {
		t.Error("as of an earlier number it is in force")
	}
}

// TestWhatAPlaceRestsOn: on lines alone where each value that lowers it rests on some, and
// never on more than the bound.
func TestWhatAPlaceRestsOn(t *testing.T) {
	line := func(arg string) []Line { return []Line{{Tool: "s/t", Arg: arg}} }
	arg := func(label writ.Label, rests ...[]Line) Arg {
		return Arg{Value: strictjson.Of([]byte(`"x"`)), Label: label, Rests: rests}
	}
	many := Arg{Value: strictjson.Of([]byte(`"x"`)), Label: writ.External}
	for i := range maxRests + 1 {
		many.Rests = append(many.Rests, line(strings.Repeat("a", i)))
	}
	narrow, ours := arg(writ.Model), arg(writ.External)
	narrow.Narrow, ours.Ours = true, true
	for _, c := range []struct {
		name  string
		args  []Arg
		rests int
		label writ.Label
	}{
		{"one", []Arg{arg(writ.External, line("a"))}, 1, writ.External},
		{"twice the same", []Arg{arg(writ.External, line("a")), arg(writ.External, line("a"))}, 1, writ.External},
		{"two", []Arg{arg(writ.External, line("a")), arg(writ.External, line("b"))}, 2, writ.External},
		{"beside what lowers nothing", []Arg{arg(writ.System), narrow, arg(writ.External, line("a")), ours}, 1, writ.External},
		{"before a text", []Arg{arg(writ.External, line("a")), arg(writ.Model)}, 0, writ.Model},
		{"behind a text", []Arg{arg(writ.Model), arg(writ.External, line("a"))}, 0, writ.Model},
		{"around one", []Arg{arg(writ.External, line("a")), arg(writ.External), arg(writ.External, line("b"))}, 0, writ.External},
		{"as many as there may be", []Arg{{Value: many.Value, Label: writ.External, Rests: many.Rests[1:]}}, maxRests, writ.External},
		{"more", []Arg{many, arg(writ.External, line("b"))}, 0, writ.External},
	} {
		if p, ok := PlaceOf("s", "t", c.args); !ok || len(p.Rests) != c.rests || p.Label != c.label {
			t.Errorf("%s: %+v", c.name, p)
		}
	}
	// What an act takes along.
	at := []Resource{{"note", "n"}}
	for _, c := range []struct {
		there, own [][]Line
		label      writ.Label // of its own
		rests      int
	}{
		{[][]Line{line("a")}, nil, writ.System, 1},
		{[][]Line{line("a")}, [][]Line{line("b")}, writ.External, 2},
		{[][]Line{line("a")}, nil, writ.External, 0},
		{nil, [][]Line{line("b")}, writ.External, 0},
	} {
		ps := NewPlaces()
		ps.Lower(1, Place{Server: "s", Tool: "t", Label: writ.External, At: at, Rests: c.there})
		p := ps.Carried(Place{Server: "s", Tool: "u", Label: c.label, At: at, Rests: c.own}, func(string, string) bool { return true })
		if p.Label != writ.External || len(p.Rests) != c.rests {
			t.Errorf("%+v: %+v", c, p)
		}
	}
	// Lowered by what rests on lines, it is lowered again by what does not.
	ps, firm := NewPlaces(), Place{Server: "s", Tool: "t", Label: writ.External, At: at}
	some, more := firm, firm
	some.Rests, more.Rests = [][]Line{line("a")}, [][]Line{line("a"), line("b")}
	for n := range uint64(2) {
		ps.Lower(n+1, more)
	}
	if !ps.Covers(more) || !ps.Covers(some) || ps.Covers(firm) {
		t.Error("what counts less often stands for what counts more often, or not for what counts less often still")
	}
	// A tool whose places do not count forges no name.
	rule := &OutputRule{Label: writ.System, Collection: "note"}
	in := &record{}
	o := Observation{Server: "s", Tool: "u", OK: true, Leaves: []Leaf{{Value: strictjson.Of([]byte(`"other"`)), Rule: rule, record: in}}}
	ps.Lower(3, Place{Server: "s", Tool: "v", Label: writ.External, At: at})
	o.Reaches = func(_, tool string, r *OutputRule) bool { return tool == "t" || r != rule }
	for _, lifted := range []bool{false, true} {
		s := newStanding(ps, nil, 3, 0, 0, &o, func(l *lowered) bool { return len(l.Rests) == 0 || !lifted })
		if of := s.label(&Leaf{Rule: &OutputRule{}, record: in}); (of == writ.Operator) != lifted {
			t.Errorf("another record's field keeps %v, lifted %v", of, lifted)
		}
	}
}
