package provenance

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPattern(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		match         bool
	}{
		{"", "", true},
		{"", "/a", false},
		{"/a", "/a", true},
		{"/a", "/a/b", false}, // a label at a container labels nothing below it
		{"/a/b", "/a", false},
		{"/a/*", "/a/b", true},
		{"/a/*", "/a/0", true},
		{"/a/*", "/a", false},
		{"/a/*", "/a/b/c", false},
		{"/a~1b/~0", "/a~1b/~0", true},
		{"/", "/", true}, // the empty key
		{"/a", "/A", false},
		{"/*", "/*", true},
	} {
		p, q := mustPattern(t, c.pattern), mustPattern(t, c.path)
		if p.Match(q.Tokens) != c.match {
			t.Errorf("%q names %q: %v", c.pattern, c.path, !c.match)
		}
	}
	for _, bad := range []string{"a", "a/b", "/a~", "/a~2", "#/a", " /a"} {
		if _, err := ParsePattern(bad); err == nil {
			t.Errorf("%q is a pattern", bad)
		}
	}
	if mustPattern(t, "/a/*").Exact() || !mustPattern(t, "/a/0").Exact() {
		t.Error("Exact")
	}
}

func TestSpecificity(t *testing.T) {
	for _, c := range []struct {
		a, b        string
		beats, ties bool
	}{
		{"/a/0", "/a/*", true, false},
		{"/a/*", "/a/0", false, false},
		{"/a/*", "/*/*", true, false},
		{"/a/*", "/*/b", false, true},
		{"/a/*", "/a/*", false, true},
		{"/a", "/a", false, true},
		{"/a", "/b", false, false},
		{"/a/*", "/b/*", false, false},
		{"/a", "/a/*", false, false},
	} {
		a, b := mustPattern(t, c.a), mustPattern(t, c.b)
		if a.Beats(b) != c.beats || a.Ties(b) != c.ties || b.Ties(a) != c.ties {
			t.Errorf("%q against %q: beats %v, ties %v", c.a, c.b, a.Beats(b), a.Ties(b))
		}
	}
}

// Where no two patterns tie, the best of those that name a path is the same
// whatever their order, and beats every other.
func TestBestIsUnique(t *testing.T) {
	token := rapid.SampledFrom([]string{"a", "b", "*"})
	rapid.Check(t, func(t *rapid.T) {
		var ps []Pattern
		for range rapid.IntRange(1, 6).Draw(t, "n") {
			p, _ := ParsePattern("/" + strings.Join(rapid.SliceOfN(token, 2, 3).Draw(t, "tokens"), "/"))
			ok := true
			for _, q := range ps {
				ok = ok && !p.Ties(q)
			}
			if ok {
				ps = append(ps, p)
			}
		}
		path := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 2, 3).Draw(t, "path")
		i := best(len(ps), path, func(i int) (Pattern, bool) { return ps[i], true })
		for j, q := range ps {
			if q.Match(path) && (i < 0 || i != j && !ps[i].Beats(q)) {
				t.Fatalf("%v: %q is not better than %q", path, ps[i].Source, q.Source)
			}
		}
		if i >= 0 && !ps[i].Match(path) {
			t.Fatalf("%q does not name %v", ps[i].Source, path)
		}
	})
}

func TestConflict(t *testing.T) {
	rule := func(at string, text bool, x Extract, pointer string, keys bool) OutputRule {
		return OutputRule{At: mustPattern(t, at), InText: text, Extract: x, Pointer: mustPattern(t, pointer), Keys: keys, Pattern: regexp.MustCompile("")}
	}
	for _, c := range []struct {
		name string
		a, b OutputRule
		want bool
	}{
		{"one leaf twice", rule("/a", false, "", "", false), rule("/a", false, "", "", false), true},
		{"exact and wildcard", rule("/a", false, "", "", false), rule("/*", false, "", "", false), false},
		{"leaf and keys", rule("/a", false, "", "", false), rule("/a", false, "", "", true), false},
		{"leaf and its lines", rule("/a", false, "", "", false), rule("/a", false, ExtractLines, "", false), true},
		{"two line patterns", rule("/a", false, ExtractLines, "", false), rule("/a", false, ExtractLines, "", false), true},
		{"two pointers of one JSON text", rule("/a", false, ExtractJSON, "/x", false), rule("/a", false, ExtractJSON, "/y", false), false},
		{"one pointer of one JSON text twice", rule("/a", false, ExtractJSON, "/x", false), rule("/a", false, ExtractJSON, "/x", false), true},
		{"one text by two roads", rule("/a", false, ExtractJSON, "/x", false), rule("/a", false, ExtractLines, "", false), true},
		{"extractors of two leaves", rule("/a", false, ExtractLines, "", false), rule("/b", false, ExtractLines, "", false), false},
		{"extractors, exact and wildcard", rule("/a", false, ExtractLines, "", false), rule("/*", false, ExtractLines, "", false), false},
		{"extractors that tie", rule("/a/*", false, ExtractJSON, "/x", false), rule("/*/b", false, ExtractJSON, "/y", false), true},
		{"text and structure", rule("", true, ExtractJSON, "/x", false), rule("/x", false, "", "", false), false},
		{"two in one block", rule("", true, ExtractLines, "", false), rule("", true, ExtractLines, "", false), true},
		{"two pointers in one block", rule("", true, ExtractJSON, "/x", false), rule("", true, ExtractJSON, "/*/y", false), false},
	} {
		if Conflict(c.a, c.b) != c.want || Conflict(c.b, c.a) != c.want {
			t.Errorf("%s: conflict %v", c.name, !c.want)
		}
	}
	other := rule("", true, ExtractLines, "", false)
	other.Block = 1
	if Conflict(rule("", true, ExtractLines, "", false), other) {
		t.Error("two blocks conflict")
	}
}
