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
// place says nothing of a leaf if it is not in force, if its tool does not reach
// the leaf's field, or if something that no tool which lowered by then reaches is of a kind
// that the place is named by, and nothing of it is the place; else the leaf is
// worth no more than what went there. In a list what the call names is of no
// record. A name that a tool reaches must be, or lie in, one that counts.
func TestPlacesAgainstModel(t *testing.T) {
	type act struct {
		n, cleared uint64
		p          Place
	}
	kinds := []string{"", "note", "folder"}
	ids := []string{`"n1"`, `"N1"`, `"n2"`, `"f1"`, `17`, `"17"`, `"/d"`, `"/d/a"`, `"/d/a/b"`, `"/d/ab/"`, `"\\d\\a"`}
	lowered, kept := 0, 0
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
				Arg{Value: strictjson.Of([]byte(`"some text"`)), Label: rapid.SampledFrom([]writ.Label{writ.Model, writ.External, writ.System}).Draw(t, "label")})
			p, ok := PlaceOf("s", pick("tool", "a", "b"), args)
			if ok != (p.Label < writ.System) {
				t.Fatal("what is worth system lowers nothing")
			}
			if !ok {
				continue
			}
			same := 0
			for _, a := range acts {
				if a.cleared == 0 && a.p.Tool == p.Tool && a.p.Label <= p.Label && (slices.Equal(a.p.At, p.At) || len(a.p.kinds()) == 0) {
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

		s := newStanding(ps, nil, through, 0, 0, &o)
		for i := range o.Leaves {
			leaf := &o.Leaves[i]
			want := writ.Operator
			for _, a := range acts {
				if a.n > through || a.cleared != 0 && a.cleared <= through || !o.Reaches("s", a.p.Tool, leaf.Rule) {
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
						if slices.ContainsFunc(acts, func(b act) bool { return b.n <= through && o.Reaches("s", b.p.Tool, l.Rule) }) {
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
				lowered++
			} else {
				kept++
			}
		}
	})
	if lowered == 0 || kept == 0 {
		t.Errorf("the draw never meets both answers: %d lowered, %d kept", lowered, kept)
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
	if s := newStanding(ps, nil, 1, 0, 1, &o); s.label(&o.Leaves[0]) != writ.Operator || !s.asked(&o.Leaves[0]) || s.asked(&Leaf{Rule: &OutputRule{Authoritative: true}}) {
		t.Error("it lowers something but links, or none")
	}
	ps.Lower(2, act)
	if !ps.Clear(1, 3) || ps.Clear(1, 4) || ps.Covers(links) {
		t.Error("it is not cleared once")
	}
	s := newStanding(ps, nil, 3, 0, 0, &o)
	if s.label(&o.Leaves[0]) != writ.Model || s.asked(&o.Leaves[0]) {
		t.Error("the act's place was cleared, or the read's was not")
	}
	if s := newStanding(ps, nil, 1, 0, 0, &o); !s.asked(&o.Leaves[0]) {
		t.Error("as of an earlier number it is in force")
	}
}
