package provenance

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// linksOf is links without regard to time: each form over the whole text.
func linksOf(s string) (out []string) {
	if !strings.Contains(s, ".") || !utf8.ValidString(s) {
		return nil
	}
	for _, f := range atomForms[:slices.IndexFunc(atomForms, func(f atomForm) bool { return f.kind == PathAtom })] {
		rest, done := "", 0
		for _, at := range f.form().FindAllStringIndex(s, -1) {
			link := strings.TrimRight(s[at[0]:at[1]], ".,;:!?*_")
			before, _ := utf8.DecodeLastRuneInString(s[:at[0]])
			part := isAlnum(before) || strings.ContainsRune("/@.-_\\", before)
			if (f.kind == LinkAtom && f.t == URL || f.kind == HostAtom) && !part && isAtom(f.kind, link) && len(out) < maxLinks && !slices.Contains(out, link) {
				out = append(out, link)
			}
			rest, done = rest+s[done:at[0]]+" ", at[1]
		}
		s = rest + s[done:]
	}
	return out
}

func TestLinks(t *testing.T) {
	pieces := rapid.SampledFrom([]string{"https://one.example/a", "one.example", "a@b.example", "2026-01-02", "12.05.2026", "10:30", "9:05:11", "10.0.0.1", "1.2.3.4.5",
		"例え。テスト", "http://[::1]:80/x", "http://localhost", "mailto:x", "see:", "e.g.", "Ph.D", "(", ")", "<", ">", "\"", "'", "`", "[", "]", "|", "=", "&", "/", "\\", "-", "_", "@", "#", ":", ".",
		",", "。", "?", "a", "Bob", "x.y", "co.uk", "://", "http", "\u00a0", "\u200b", "\v", " ", " ", " ", "\n", "\t", "\r\n", "\f"})
	rapid.Check(t, func(rt *rapid.T) {
		s := strings.Join(rapid.SliceOfN(pieces, 0, 24).Draw(rt, "pieces"), "")
		if got, want := links(s), linksOf(s); !slices.Equal(got, want) {
			rt.Fatalf("%q: %q, want %q", s, got, want)
		}
	})
}
