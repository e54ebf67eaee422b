package provenance

import (
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/text"
)

// # Where a site is meant
//
// An order that reaches through its sentence, and a question, are of what is on a site only where the
// turn says so: it names the host, or speaks of a page.

// elsewhere reports whether an order that reaches further, and ends at e, has all sites that its turn names behind
// it, where it does not reach: "set a reminder for Elm Street, and open shop.example".
func (p parsedPhrase) elsewhere(s, said string, e int, nouns []string) (is bool) {
	if !p.reaches && !slices.Contains(p.tail.ends(false), "for") || len(Hosts(s[max(0, e-longestReached):e])) > 0 {
		return false
	}
	behind := s[e:min(len(s), e+longestReached)]
	for _, at := range anyWordIn().FindAllStringIndex(behind, -1) {
		if len(Hosts(behind[at[0]:at[1]])) == 0 {
			continue
		}
		if reachesTo(said[e:e+at[0]], nouns) {
			return false
		}
		is = true
	}
	return is
}

// longestReached is how far from an order a site is looked for, in bytes.
const longestReached = 1 << 10

var anyWordIn = text.Pattern(`\S+`)

// isAsked reports whether a question that begins at i opens its sentence, in nobody's mouth, and that names a site:
// "is there sencha on tea.example?" has what it asks about looked up there.
func isAsked(s, said string, i int) bool {
	from := sentenceOf(said[:i])
	sentence := s[from : i+endOf(s[i:])]
	return !quoted(said, i) && !endsQuotation(said[:i]) && !listedAs(said[:i]) && len(unled(wordsOf(unplaced(said[from:i])))) == 0 && namesSite(sentence) && !hasAny(wordsOf(sentence), ofGiving)
}

// namesSite reports whether a text names a host that is no file, and onSite whether what stands around its bytes
// [start, end) is of a page in any way.
func namesSite(s string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(s, blank), func(w string) bool { return len(Hosts(w)) > 0 && !isFile(w) })
}

func onSite(s string, start, end int) bool {
	near := s[max(0, start-longestOrder):min(len(s), end+longestOrder)]
	return hasAny(wordsOf(near), sites) || namesSite(near)
}

var (
	sites = wordSet("site website page webpage form shop store portal browser tab seite webseite formular page formulaire página formulario sito pagina modulo formulário pagina formulier")
	// ofGiving are words of a question that asks what becomes of what is given away, or that is answered by what is no site's.
	ofGiving = wordSet(`safe secure wise dangerous risky leaked stored exposed public put type typed enter give send share upload submit
		notes mail mails email emails file files inbox`)
)
